"""Surprises against a textbook filter and against the likelihood."""

import numpy as np
import pytest

import naive
from driftbandit import LGDS, System, kalman
from driftbandit.identify import one_step
from driftbandit.io.log_reader import as_log
from driftbandit.io.logs import Log, Sequence
from driftbandit.monitoring.surprises import surprises_of
from monitored import SYSTEM, played


def test_several_rewards_a_round_gaps_and_missing_ones():
    """The textbook's filter, which folds a round's rewards one by one."""
    rng = np.random.default_rng(0)
    transition, process = np.array([[0.9, 0.3], [-0.2, 0.7]]), np.array([[1.0, 0.4], [0.4, 0.5]])
    arms = np.array([[1.0, 0.0], [0.8, -1.5]])
    rounds = [4, 4, 5, 9, 9, 9, 12]
    chosen = [0, 1, 1, 0, 0, 1, 0]
    rewards = rng.standard_normal(7)
    rewards[3] = np.nan
    system = System(LGDS(transition, process, 0.5), arms, ["a", "b"])
    one = Sequence(rounds, chosen, rewards)
    found = surprises_of(system, Log((one, one), ("a", "b")))
    mean, cov, now = np.zeros(2), naive.stationary_cov(transition, process), 4
    expected = []
    for round_, arm, reward in zip(rounds, chosen, rewards, strict=True):
        power = np.linalg.matrix_power(transition, round_ - now)
        mean, cov = power @ mean, naive.state_cov(transition, process, cov, round_ - now)
        now = round_
        if not np.isnan(reward):
            row = arms[arm]
            expected.append((reward - row @ mean) / np.sqrt(row @ cov @ row + 0.25))
            still = np.eye(2), np.zeros((2, 2))
            mean, cov = naive.kalman_step(mean, cov, *still, 0.5, row, reward)
    np.testing.assert_allclose(found.values, expected * 2, rtol=1e-9)
    seen = [0, 1, 2, 4, 5, 6]
    assert found.rounds.tolist() == [rounds[i] for i in seen] * 2
    assert found.arms.tolist() == [chosen[i] for i in seen] * 2
    assert found.sequences.tolist() == [0] * 6 + [1] * 6


def test_one_reward_a_round_is_one_step():
    log = as_log(played(1, 60), SYSTEM.names)
    found = surprises_of(SYSTEM, log)
    np.testing.assert_allclose(found.values, one_step(SYSTEM, log).surprises, rtol=1e-8)
    rows = SYSTEM.arms[log.sequences[0].arms]
    run = kalman.predictions(SYSTEM.model, rows, log.sequences[0].rewards)
    np.testing.assert_allclose(found.values, run.surprises / np.sqrt(run.variances), rtol=1e-9)


def test_rewards_of_one_round_are_independent_only_in_sequence():
    """Why `one_step` does not serve: its errors in one round share the error of the state."""
    rng = np.random.default_rng(2)
    model = LGDS([[0.9]], [[1.0]], 0.3)
    system = System(model, [[1.0], [1.0]], ["a", "b"])
    z, rewards = 0.0, []
    for _ in range(600):
        z = 0.9 * z + rng.standard_normal()
        rewards += [z + 0.3 * rng.standard_normal(), z + 0.3 * rng.standard_normal()]
    log = as_log({"round": np.repeat(range(600), 2), "arm": ["a", "b"] * 600, "reward": rewards})
    ours = surprises_of(system, log).values.reshape(600, 2)
    theirs = one_step(system, log).surprises.reshape(600, 2)
    assert abs(np.corrcoef(ours.T)[0, 1]) < 0.12
    assert np.corrcoef(theirs.T)[0, 1] > 0.8


def test_known_rewards_are_no_surprise():
    """Without noise and without drift: the second look at an arm shows nothing new."""
    system = System(LGDS(np.eye(2), np.zeros((2, 2)), 0.0, np.eye(2)), np.eye(2), ["a", "b"])
    one = Sequence(range(6), [0, 0, 1, 0, 1, 1], [0.5, 0.5, -2.0, 0.5, -2.0, -2.0])
    log = Log((one,), ("a", "b"))
    assert surprises_of(system, log).values == pytest.approx([0.5, -2.0])
