"""Random systems and one comparison that the test files share."""

import numpy as np

from driftbandit import LGDS


def random_system(seed, d, k=4, radius=0.9, reward_std=0.5, noise_rank=None, initial=False):
    """A Gaussian system (model, arms): ρ(Γ) = radius, Q of `noise_rank` (full if None)."""
    rng = np.random.default_rng([seed, d])
    transition = rng.standard_normal((d, d))
    transition *= radius / np.abs(np.linalg.eigvals(transition)).max()
    root = rng.standard_normal((d, d if noise_rank is None else noise_rank))
    start = rng.standard_normal((d, d))
    model = LGDS(transition, root @ root.T, reward_std, start @ start.T if initial else None)
    return model, rng.standard_normal((k, d))


def assert_close(actual, expected, tolerance):
    """No entry is off by more than `tolerance` times the largest expected entry."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    error = np.abs(actual - expected).max()
    assert error <= tolerance * np.abs(expected).max(), f"off by {error:.3g}: {actual}\n{expected}"
