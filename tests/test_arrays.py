"""The few lines that ask which array library is at work."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit.arrays import NO_ARM, first_highest, inverse, lower_factor, put


def definite(d, decades, seed):
    """A symmetric matrix whose eigenvalues fall from one over so many decades."""
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    return (turn * 10.0 ** -np.linspace(0, decades, d)) @ turn.T


@pytest.mark.parametrize("d", [1, 2, 3, 10, 21])
def test_inverse_of_a_batch(d):
    """Elimination without pivoting is as good as LAPACK: errors of the condition number times ε."""
    matrices = np.stack([definite(d, decades, seed=decades) for decades in range(9)])
    with jax.enable_x64(True):
        ours = np.asarray(jax.jit(jax.vmap(inverse))(jnp.asarray(matrices)))
    for matrix, found in zip(matrices, ours, strict=True):
        expected = np.linalg.inv(matrix)
        np.testing.assert_array_equal(inverse(matrix), expected)
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert error <= 10 * np.finfo(float).eps * np.linalg.cond(matrix)


@pytest.mark.parametrize("library", [np, jnp])
@pytest.mark.parametrize("shape", [(4,), (4, 3), (1, 2)])
def test_put(library, shape):
    """One entry, or one row, of a copy."""
    array = library.asarray(np.ones(shape))
    changed = put(array, shape[0] - 1, -1.0)
    assert (np.asarray(changed)[-1] == -1).all()
    assert (np.asarray(changed)[:-1] == 1).all()
    assert (np.asarray(array) == 1).all()


TIED_CASES = [
    ([1.0, 1.0 + 2**-52, 0.5], 0),
    ([0.5, 1.0, 1.0 + 2**-40], 2),
    ([0.0, 50.0, -1e15], 1),  # an arm that is far worse than the others makes no ties of them
    ([0.0, 0.0, 0.0], 0),
    ([-math.inf, 3.0, 3.0], 1),
    ([1.0, math.inf, math.inf], 1),
    ([-math.inf, -math.inf], 0),
    ([3, 5, 5], 1),
]


@pytest.mark.parametrize(("scores", "first"), TIED_CASES)
def test_the_first_highest_is_the_same_in_both_libraries(scores, first):
    row = np.array(scores)
    with jax.enable_x64(True):
        under_jax = int(jax.jit(first_highest)(row))
    assert int(first_highest(row)) == under_jax == first
    assert first_highest(np.array([row, row])).tolist() == [first, first]


@pytest.mark.parametrize("scores", [[1.0, math.nan, 2.0], [math.inf, math.nan], [0.0, math.nan]])
def test_nan_is_no_score(scores):
    """It would win for good, so agents and simulations need to notice it."""
    row = np.array(scores)
    assert int(first_highest(row)) == NO_ARM
    assert first_highest(np.array([row, [0.0] * len(row)])).tolist() == [NO_ARM, 0]
    assert int(jax.jit(first_highest)(row)) == NO_ARM


checked = settings(deadline=None, derandomize=True, max_examples=50)


# Thompson sampling and information-directed sampling.


@checked
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(0, 6))
def test_factors_of_singular_covariances(seed, d, rank):
    root = np.random.default_rng(seed).standard_normal((d, min(rank, d)))
    cov = root @ root.T
    factor = lower_factor(cov)
    assert np.isfinite(factor).all()
    assert np.abs(factor @ factor.T - cov).max() <= 1e-6 * max(np.abs(cov).max(), 1e-300)
    assert (factor == np.tril(factor)).all()
    if rank >= d:
        np.testing.assert_allclose(factor, np.linalg.cholesky(cov), rtol=1e-6, atol=1e-9)
