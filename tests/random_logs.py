"""Logs of random play on systems whose states drift."""

from typing import NamedTuple

import numpy as np

from driftbandit.identify import Log, Sequence
from driftbandit.model import factor


class Plays(NamedTuple):
    """Of S sequences, n rounds with m plays each; ``seen`` is 0 where a reward is missing."""

    arms: np.ndarray
    rewards: np.ndarray
    seen: np.ndarray
    lengths: np.ndarray


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
    return Plays(chosen, rewards * seen, seen, np.full(sequences, rounds))


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
