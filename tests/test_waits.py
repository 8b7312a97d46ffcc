"""Unseen rounds: long stretches at once are the same as round by round."""

import itertools

import numpy as np
import pytest

from driftbandit.identify import Log, Sequence, em, fit, one_step, restarts
from driftbandit.identify.data import Data, data_of
from driftbandit.identify.smoothing import bits_of, gap_transitions, predicted
from systems import assert_close, random_system
from test_em import played, start


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


@pytest.mark.parametrize("radius", [0.6, 0.98, 1.02])
@pytest.mark.parametrize("singular", [False, True])
def test_sums_are_those_of_every_round(radius, singular):
    model, arms = random_system(2, 2, k=3, radius=radius)
    noise = np.diag([0.5, 0.0]) if singular else model.process_cov
    log = sparse_log()
    parameters = start(arms)._replace(
        transition=model.transition / radius * min(radius, 1.002), process_cov=noise
    )
    data = data_of(log)
    assert data.gap_lengths is not None
    found = em.e_step(parameters, data, whole=True)
    expected = em.e_step(parameters, round_by_round(log))
    assert found.transitions == expected.transitions > 1500
    for name, value in expected._asdict().items():
        assert_close(getattr(found, name), value, 1e-8)


def test_shortened_sums_have_the_same_slopes():
    """S₁₀ − Γ S₀₀ and R − nQ are the likelihood's slopes: EM rests where they are zero."""
    model, arms = random_system(2, 2, k=3, radius=0.6)
    parameters = start(arms)._replace(transition=model.transition, process_cov=model.process_cov)
    slopes = []
    for whole in (True, False):
        sums = em.e_step(parameters, data_of(sparse_log()), whole)
        Γ, Q = parameters.transition, parameters.process_cov
        turned = Γ @ sums.across.T
        left = sums.after - turned - turned.T + Γ @ sums.before @ Γ.T
        slopes.append((sums.across - Γ @ sums.before, left - sums.transitions * Q))
    assert sums.transitions < 1000
    for ours, theirs in zip(*slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_predictions_are_those_of_every_round():
    model, arms = random_system(2, 2, k=3, radius=0.98)
    log = sparse_log()
    parameters = start(arms)._replace(transition=model.transition, process_cov=model.process_cov)
    data, whole = data_of(log), round_by_round(log)
    found, expected = predicted(parameters, data), predicted(parameters, whole)
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(ours[data.seen > 0], theirs[whole.seen > 0], rtol=1e-9)


def test_a_climb_over_pauses_rises_to_where_every_rounds_does():
    model, arms = random_system(2, 2, k=3, radius=0.95)
    data = played(model, arms, 1, 240, missing=0.0)
    rounds = np.arange(240) + np.where(np.arange(240) >= 120, 400, 0)
    log = Log(
        (Sequence(rounds, data.arms[0, :, 0].astype(np.int64), data.rewards[0, :, 0]),),
        tuple("012"),
    )
    ends = []
    for grid in (data_of(log), round_by_round(log)):
        found, heights, _ = em.run(
            start(arms), grid, em.Options(stable=True), 100, 1e-6, lambda share: None
        )
        assert (np.diff(heights) > -1e-6).all()
        ends.append((heights[-1], found.transition))
    assert ends[0][0] == pytest.approx(ends[1][0], abs=0.02)
    np.testing.assert_allclose(ends[0][1], ends[1][1], atol=0.03)


def test_moments_are_means_over_pairs_of_plays():
    log = sparse_log()
    data, offsets = data_of(log), np.array([0.1, -0.2, 0.3])
    sums, pairs = np.zeros((2, restarts.LAGS, 3, 3))
    for one in log.sequences:
        left = one.rewards - offsets[one.arms]
        for i, j in itertools.product(range(len(left)), repeat=2):
            lag = int(one.rounds[i] - one.rounds[j])
            if 1 <= lag <= restarts.LAGS:
                sums[lag - 1, one.arms[i], one.arms[j]] += left[i] * left[j]
                pairs[lag - 1, one.arms[i], one.arms[j]] += 1
    assert_close(restarts.moments_of(data, offsets), sums / np.maximum(pairs, 1), 1e-12)


def test_moments_of_many_plays_in_a_round_are_little_work():
    """A loop over pairs of slots would take 400 million steps of NumPy here."""
    rng = np.random.default_rng(0)
    plays, rounds = 20_000, np.repeat([0, 1], 20_000)
    one = Sequence(rounds, rng.integers(3, size=2 * plays), rng.standard_normal(2 * plays))
    found = restarts.moments_of(data_of(Log((one,), ("a", "b", "c"))), np.zeros(3))
    chosen = [one.rewards[(rounds == t) & (one.arms == 1)] for t in (0, 1)]
    assert_close(found[0, 1, 1], chosen[0].mean() * chosen[1].mean(), 1e-12)


def test_lengths_in_binary():
    model, _ = random_system(2, 3, k=3, radius=0.9)
    lengths = np.array([1, 6, 1000])
    bits = bits_of(data_of(sparse_log())._replace(gap_lengths=lengths))
    F, Q = gap_transitions(model.transition, model.process_cov, bits)
    for number, length in enumerate(lengths):
        np.testing.assert_allclose(
            F[number], np.linalg.matrix_power(model.transition, int(length)), atol=1e-5
        )
        walk = type(model)(model.transition, model.process_cov, 1.0, np.zeros((3, 3)))
        np.testing.assert_allclose(Q[number], walk.state_cov(int(length)), rtol=1e-4)


@pytest.mark.parametrize(
    ("rounds", "options"),
    [("pause", {"n_states": 2, "structure": "diagonal", "starts": 1}), ("unix", {})],
)
def test_a_pause_and_the_seconds_of_a_clock_are_no_work(rounds, options):
    """Round by round the first is 3 × 10⁵ steps, the second 10⁵: minutes, or for ever."""
    rng = np.random.default_rng(3)
    t, z, rewards = np.arange(250), np.zeros(2), []
    arms = rng.integers(2, size=250)
    for arm in arms:
        rewards.append(z[arm] + 0.3 * rng.standard_normal())
        z = 0.95 * z + 0.3 * rng.standard_normal(2)
    moved = t + 300_000 * (t >= 125) if rounds == "pause" else 1_700_000_000 + 300 * t
    log = {"round": moved, "arm": arms, "reward": np.array(rewards)}
    found = fit(log, **options)
    assert found.converged
    memory = -1 / np.log(found.spectral_radius) / (300 if rounds == "unix" else 1)
    assert 8 < memory < 60  # the truth is 19.5
    assert one_step(found, log).share > 0.3
    assert found.model.is_stable
