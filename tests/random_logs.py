"""Logs of random play on systems whose states drift, and where EM begins."""

import numpy as np

from driftbandit.identify import Log, Sequence
from driftbandit.identify.data import Data, Parameters
from driftbandit.model import factor


def played(model, arms, sequences, rounds, plays=1, missing=0.2, seed=0):
    """A log of random play, `plays` arms a round, some rewards missing."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((sequences, model.n_states)) @ factor(model.start_cov()).T
    chosen = rng.integers(len(arms), size=(sequences, rounds, plays))
    rewards = np.empty(chosen.shape)
    for t in range(rounds):
        rewards[:, t] = np.einsum("smd,sd->sm", arms[chosen[:, t]], z)
        shocks = rng.standard_normal(z.shape) @ factor(model.process_cov).T
        z = z @ model.transition.T + shocks
    rewards += model.reward_std * rng.standard_normal(rewards.shape)
    seen = (rng.random(rewards.shape) >= missing).astype(float)
    return Data(chosen, rewards * seen, seen, np.full(sequences, rounds))


def start(arms, offsets=None, size=0.5):
    d = arms.shape[1]
    offsets = np.zeros(len(arms)) if offsets is None else offsets
    return Parameters(
        size * np.eye(d), np.eye(d), np.asarray(1.0), np.zeros(d), np.eye(d), arms, offsets
    )


def log_of(data, k):
    """A log with the data's rewards, arms named by their numbers."""
    sequences = []
    for s, length in enumerate(data.lengths):
        rounds, slots = np.nonzero(data.seen[s, :length] > 0)
        arms, rewards = data.arms[s, rounds, slots], data.rewards[s, rounds, slots]
        sequences.append(Sequence(rounds.astype(np.int64), arms.astype(np.int64), rewards))
    return Log(tuple(sequences), tuple(str(i) for i in range(k)))


def drifting(rows, arms=4, memory=0.95, drift=1.0, noise=0.3, seed=0, factor=False):
    """A log of random play; arms drift by themselves, or with one factor."""
    rng = np.random.default_rng(seed)
    loads = rng.standard_normal((arms, 1)) if factor else np.eye(arms)
    z = drift * rng.standard_normal(loads.shape[1])
    played, offsets = rng.integers(arms, size=rows), 0.3 * rng.standard_normal(arms)
    rewards = np.empty(rows)
    for t, arm in enumerate(played):
        rewards[t] = offsets[arm] + loads[arm] @ z + noise * rng.standard_normal()
        z = memory * z + drift * np.sqrt(1 - memory**2) * rng.standard_normal(len(z))
    return {"round": np.arange(rows), "arm": played, "reward": rewards}


def sparse_log(seed=0, arms=3):
    """Two sequences with pauses of many lengths, and rounds with two plays."""
    rng = np.random.default_rng(seed)
    ones = []
    for rows in (40, 25):
        gaps = rng.choice([0, 1, 1, 1, 2, 5, 37, 150], size=rows)
        rounds = np.cumsum(gaps).astype(np.int64)
        chosen = rng.integers(arms, size=rows)
        ones.append(Sequence(rounds, chosen, rng.standard_normal(rows)))
    return Log(tuple(ones), tuple(map(str, range(arms))))


def round_by_round(log):
    """The same log with a row for every round."""
    span = max(int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences)
    shape = (len(log.sequences), span, 4)
    data = Data(
        np.zeros(shape, int),
        np.zeros(shape),
        np.zeros(shape),
        np.array([int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences]),
    )
    for s, one in enumerate(log.sequences):
        for i, (t, arm, reward) in enumerate(zip(one.rounds, one.arms, one.rewards, strict=True)):
            slot = i - int(np.searchsorted(one.rounds, t))
            place = (s, int(t - one.rounds[0]), slot)
            data.arms[place], data.rewards[place], data.seen[place] = arm, reward, 1
    return data
