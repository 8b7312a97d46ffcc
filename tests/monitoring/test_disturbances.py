"""Smoothed disturbances against the joint normal distribution of everything."""

import numpy as np
import pytest

from driftbandit import LGDS, System
from driftbandit.io.logs import Sequence
from driftbandit.monitoring import disturbances
from driftbandit.monitoring.surprises import steps

TRANSITION = np.array([[0.9, 0.3], [-0.2, 0.7]])
PROCESS = np.array([[1.0, 0.4], [0.4, 0.5]])
ARMS = np.array([[1.0, 0.0], [0.8, -1.5], [0.3, 0.4]])
SYSTEM = System(LGDS(TRANSITION, PROCESS, 0.5), ARMS)
ONE = Sequence(
    [2, 2, 3, 6, 7, 7, 8], [0, 1, 1, 2, 0, 2, 1], [0.3, -1.0, 2.0, 0.7, np.nan, 1.0, -2.0]
)


def naive_disturbances():
    """E[ξ(t) | rewards] and its covariance: every reward is linear in z(2), ξ(2), ξ(3), … and η."""
    seen = np.flatnonzero(~np.isnan(ONE.rewards))
    moves, n = 6, len(seen)  # ξ(2) … ξ(7)
    size = 2 + 2 * moves + n
    prior = np.zeros((size, size))
    prior[:2, :2] = SYSTEM.model.stationary_cov()
    for t in range(moves):
        prior[2 + 2 * t : 4 + 2 * t, 2 + 2 * t : 4 + 2 * t] = PROCESS
    prior[-n:, -n:] = 0.25 * np.eye(n)
    reads = np.zeros((n, size))
    for i, row in enumerate(seen):
        passed = ONE.rounds[row] - 2
        arm = ARMS[ONE.arms[row]]
        reads[i, :2] = arm @ np.linalg.matrix_power(TRANSITION, passed)
        for t in range(passed):
            power = np.linalg.matrix_power(TRANSITION, passed - 1 - t)
            reads[i, 2 + 2 * t : 4 + 2 * t] = arm @ power
        reads[i, 2 + 2 * moves + i] = 1.0
    gain = prior @ reads.T @ np.linalg.inv(reads @ prior @ reads.T)
    mean, cov = gain @ ONE.rewards[seen], gain @ reads @ prior
    blocks = [slice(2 + 2 * t, 4 + 2 * t) for t in range(moves)]
    return [mean[part] for part in blocks], [cov[part, part] for part in blocks]


@pytest.mark.parametrize("numbers", [10, 2_000_000])
def test_the_pass_backwards_is_the_joint_distribution(numbers, monkeypatch):
    """In one block and in many."""
    monkeypatch.setattr(disturbances, "NUMBERS", numbers)
    filtered = list(steps(SYSTEM.model, ARMS[ONE.arms], ONE))
    draws = np.array([[step.error / np.sqrt(step.variance)] for step in filtered])
    blocks = list(disturbances.disturbances(TRANSITION, filtered, ONE.rounds, draws))
    assert len(blocks) == (6 if numbers == 10 else 1)
    r, N, simulated, rounds = (np.concatenate(column) for column in zip(*blocks, strict=True))
    assert rounds.tolist() == [8, 7, 6, 5, 4, 3]
    np.testing.assert_allclose(simulated[:, :, 0], r, rtol=1e-9, atol=1e-12)
    for place, (mean, cov) in enumerate(zip(*naive_disturbances(), strict=True)):
        np.testing.assert_allclose(PROCESS @ r[5 - place], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(PROCESS @ N[5 - place] @ PROCESS, cov, rtol=1e-8, atol=1e-10)


def test_jumps_are_the_largest_standardized_disturbances():
    filtered = list(steps(SYSTEM.model, ARMS[ONE.arms], ONE))
    jumps = disturbances.Jumps(ARMS, PROCESS)
    for block in disturbances.disturbances(TRANSITION, filtered, ONE.rounds, np.zeros((6, 0))):
        jumps.add(block, 3)
    means, covs = naive_disturbances()
    for arm, row in enumerate(ARMS):
        sizes = [
            abs(row @ mean) / np.sqrt(row @ cov @ row)
            for mean, cov in zip(means, covs, strict=True)
        ]
        assert jumps.sizes[arm] == pytest.approx(max(sizes))
        assert jumps.rounds[arm] == 3 + int(np.argmax(sizes))
        assert jumps.sequences[arm] == 3
    assert jumps.tries == 6 * 3


def test_a_sequence_of_one_round_has_no_moves():
    one = Sequence([5, 5], [0, 1], [1.0, 2.0])
    filtered = list(steps(SYSTEM.model, ARMS[one.arms], one))
    found = disturbances.disturbances(TRANSITION, filtered, one.rounds, np.zeros((2, 0)))
    assert list(found) == []
