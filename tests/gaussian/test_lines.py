"""P7: the envelope of lines, its expected maximum and who leads."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from driftbandit.gaussian.lines import (
    excess,
    expected_highest,
    gain,
    leading_intervals,
    probabilities,
    radial_gain,
)

checked = settings(deadline=None, derandomize=True, max_examples=60)


numbers = st.sampled_from([-3.0, -1.0, -1e-9, 0.0, 1e-9, 0.5, 1.0, 2.0, 40.0]) | st.floats(-5, 5)


some_lines = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=7).map(
    lambda pairs: np.array(pairs).T
)


# Lines.


@checked
@given(some_lines)
def test_P7_highest_line_by_quadrature(lines):
    """Ties, parallel lines and triple points included."""
    m, s = lines
    w, weights = np.polynomial.legendre.leggauss(40)
    cuts = set(np.arange(-12.0, 13.0, 2.0))
    for b in range(len(m)):
        for c in range(b):
            if s[b] != s[c] and abs(m[b] - m[c]) < 12 * abs(s[b] - s[c]):
                cuts.add((m[b] - m[c]) / (s[c] - s[b]))
    cuts = np.array(sorted(cuts))
    half = np.diff(cuts)[:, None] / 2
    x = (cuts[:-1, None] + cuts[1:, None]) / 2 + half * w
    highest = (m[:, None, None] + s[:, None, None] * x).max(axis=0)
    exact = (half * weights * highest * np.exp(-(x**2) / 2)).sum() / math.sqrt(2 * math.pi)
    assert expected_highest(m, s) == pytest.approx(exact, rel=1e-10, abs=1e-10)


@checked
@given(some_lines)
def test_P7_one_line_leads_everywhere(lines):
    m, s = lines
    low, high = leading_intervals(m, s)
    leads = low < high
    edges = np.sort(np.concatenate([low[leads], high[leads]]))
    assert edges[0] == -math.inf
    assert edges[-1] == math.inf
    chance = probabilities(m, s)
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    assert (chance >= 0).all()
    for w in (-3.3, -0.1, 0.7, 2.9):
        inside = leads & (low < w) & (w < high)
        if inside.any():
            height = (m + s * w)[inside]
            assert height == pytest.approx((m + s * w).max(), abs=1e-6)


def test_P7_a_small_gain_keeps_its_digits():
    """Arms far apart: the gain 1e-20 is lost beside 1e3 only in the last addition."""
    m, s = np.array([0.0, -9.0]), np.array([0.0, 1.0])
    gain = float(expected_highest(m, s))
    exact = math.exp(-40.5) / math.sqrt(2 * math.pi) - 9 * 0.5 * math.erfc(9 / math.sqrt(2))
    assert gain == pytest.approx(exact, rel=1e-9)
    assert 0 < gain < 1e-18


checked = settings(deadline=None, derandomize=True, max_examples=50)


# The envelope.


def test_P7_excess_keeps_its_digits():
    """ψ(x) = φ(x) ∫ u exp(−xu − u²/2) du, to 1e-13 of itself from the middle to the far tail."""
    for x in (0.0, 0.3, 1.0, 2.7, 5.0, 9.0, 17.0, 30.0, 37.0):
        ratio = scipy.integrate.quad(
            lambda u, x=x: u * math.exp(-x * u - u * u / 2), 0, math.inf, epsabs=0, epsrel=1e-13
        )[0]
        exact = ratio * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        assert excess(np.array(-x)) == pytest.approx(exact, rel=1e-13)
    x = np.linspace(0, 3, 50)
    textbook = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) - x * scipy.special.ndtr(-x)
    np.testing.assert_allclose(excess(x), textbook, rtol=1e-12)
    assert excess(np.array([-math.inf, math.inf])).tolist() == pytest.approx([0, 0], abs=1e-300)
    with jax.enable_x64(True):
        x = np.linspace(0, 37, 500)
        np.testing.assert_allclose(excess(jnp.asarray(x)), excess(x), rtol=2e-12)


@checked
@given(st.integers(0, 10**6), st.integers(1, 45), st.booleans())
def test_P7_bend_by_bend_equals_pair_by_pair(seed, k, ties):
    """Both equal a textbook sum over the crossings, parallel and equal lines included."""
    rng = np.random.default_rng(seed)
    offsets, slopes = rng.standard_normal((2, k))
    if ties:
        offsets, slopes = offsets.round(), slopes.round()
    exact = naive.expected_highest(offsets, slopes) - offsets.max()
    with pytest.MonkeyPatch.context() as patch:
        for few in (0, 100):
            patch.setattr("driftbandit.gaussian.lines.FEW", few)
            assert gain(offsets, slopes) == pytest.approx(exact, rel=1e-10, abs=1e-12)


# What nobody can beat.


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_the_gain_along_a_line_is_that_of_lengths_with_signs(dimension):
    rng = np.random.default_rng(dimension)
    offsets, slopes = rng.standard_normal((2, 3, 6))
    offsets[0, :2], slopes[1, :2] = 1.0, -3.0  # ties: of the highest, and of the flattest
    length = np.linalg.norm(rng.standard_normal((dimension, 50_000)), axis=0)[:, None]
    sides = [offsets[:, None] + sign * length * slopes[:, None] for sign in (1, -1)]
    best = np.mean([scores.max(axis=2) for scores in sides], axis=0)
    found = offsets.max(axis=1) + radial_gain(offsets, slopes, dimension)
    assert (np.abs(best.mean(axis=1) - found) < 4.5 * best.std(axis=1) / math.sqrt(50_000)).all()
    if dimension == 1:
        assert found == pytest.approx(expected_highest(offsets, slopes), rel=1e-12)
