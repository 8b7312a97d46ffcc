"""P7, P15: two rounds ahead, on finite sets and on the sphere."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from driftbandit import LGDS
from driftbandit.gaussian.lines import expected_highest, leading_intervals, probabilities
from driftbandit.kalman import Belief
from driftbandit.policies import idea
from driftbandit.theory import sphere_two_step_value, two_step_upper_bound, two_step_value
from systems import random_system

checked = settings(deadline=None, derandomize=True, max_examples=60)
numbers = st.sampled_from([-3.0, -1.0, -1e-9, 0.0, 1e-9, 0.5, 1.0, 2.0, 40.0]) | st.floats(-5, 5)
some_lines = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=7).map(
    lambda pairs: np.array(pairs).T
)


def beliefs(seed, d, k, reward_std=0.5, scale=1.0):
    """A random (model, belief, arms)."""
    model, arms = random_system(seed, d, k=k, reward_std=reward_std)
    rng = np.random.default_rng([seed, d, k])
    root = rng.standard_normal((d, d))
    return model, Belief(scale * rng.standard_normal(d), root @ root.T), arms


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


# Finite sets.


@pytest.mark.parametrize("reward_std", [0.0, 0.5])
@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 1), (4, 3), (7, 2)])
def test_P7_finite_value_equals_brute_force(k, d, reward_std):
    for seed in range(3):
        model, belief, arms = beliefs(seed, d, k, reward_std)
        expected = naive.two_step_value(*belief, model.transition, reward_std, arms)
        assert two_step_value(belief, model, arms) == pytest.approx(expected, abs=1e-10, rel=1e-10)


def test_P7_is_the_same_under_jax_and_bend_by_bend(monkeypatch):
    model, belief, arms = beliefs(1, 4, 9)
    expected = two_step_value(belief, model, arms)
    with jax.enable_x64(True):
        there = Belief(*(jnp.asarray(part) for part in belief))
        found = jax.jit(lambda b, a: two_step_value(b, model, a))(there, jnp.asarray(arms))
        assert np.asarray(found) == pytest.approx(expected, rel=1e-12)
        found = jax.jit(lambda b: two_step_value(b, model, arms))(there)  # arms of NumPy
        assert np.asarray(found) == pytest.approx(expected, rel=1e-12)
        monkeypatch.setattr("driftbandit.gaussian.lines.FEW", 0)
        found = jax.jit(lambda b: two_step_value(b, model, arms))(there)
        assert np.asarray(found) == pytest.approx(expected, rel=1e-12)
    assert two_step_value(belief, model, arms) == pytest.approx(expected, rel=1e-12)


@checked
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 6))
def test_P7_looking_is_worth_something(seed, d, k):
    """Two rounds are worth at least this arm and next round's best guess, at most the sphere's."""
    model, belief, arms = beliefs(seed, d, k)
    value = two_step_value(belief, model, arms)
    blind = arms @ belief.mean + (arms @ model.transition @ belief.mean).max()
    assert (value >= blind - 1e-10).all()
    unit = arms / np.linalg.norm(arms, axis=1, keepdims=True)
    on_sphere = sphere_two_step_value(belief, model, unit)
    assert (two_step_value(belief, model, unit) <= on_sphere + 1e-10).all()


def test_P7_no_noise_and_nothing_in_doubt():
    model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=0.0)
    belief = Belief(np.array([1.0, 2.0]), np.zeros((2, 2)))
    assert two_step_value(belief, model, np.eye(2)).tolist() == [2.0, 3.0]
    on_sphere = sphere_two_step_value(belief, model, np.eye(2))
    assert on_sphere == pytest.approx(np.array([1, 2]) + 0.5 * math.sqrt(5), rel=1e-14)


# The sphere.


@pytest.mark.parametrize("d", [2, 5, 10])
def test_P7_sphere_value_equals_gauss_hermite_where_the_length_is_smooth(d):
    for seed in range(5):
        model, belief, arms = beliefs(seed, d, 3, scale=30.0)
        found = sphere_two_step_value(belief, model, arms)
        for arm, value in zip(arms, found, strict=True):
            expected = naive.sphere_two_step_value(*belief, model.transition, model.reward_std, arm)
            assert value == pytest.approx(expected, rel=1e-7)


def test_P7_sphere_value_where_the_length_has_a_kink():
    """One state: E |Γẑ + v ω| is a folded normal's mean."""
    model = LGDS([[0.8]], [[1.0]], reward_std=0.6)
    belief = Belief(np.array([0.7]), np.array([[2.0]]))
    m, v = 0.56, 0.8 * 2 / math.sqrt(2.36)
    folded = v * math.sqrt(2 / math.pi) * math.exp(-(m**2) / (2 * v**2))
    folded += m * math.erf(m / (v * math.sqrt(2)))
    assert sphere_two_step_value(belief, model, [[1.0]]) == pytest.approx(0.7 + folded, rel=1e-13)


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_P15_theorem_5_holds(d):
    """100 (ẑ, P) × 25 unit arms for each d: 10⁴ in all."""
    for seed in range(100):
        scale = 10.0 ** np.random.default_rng(seed).uniform(-3, 3)
        model, belief, arms = beliefs(seed, d, 25, reward_std=0.3 * (seed % 3), scale=scale)
        arms = arms / np.linalg.norm(arms, axis=1, keepdims=True)
        value = sphere_two_step_value(belief, model, arms)
        bound = two_step_upper_bound(belief, model, arms)
        assert (value <= bound * (1 + 1e-12) + 1e-12 * scale).all()
        # Jensen: not below what the mean alone is worth.
        ahead = np.linalg.norm(model.transition @ belief.mean)
        assert (value >= arms @ belief.mean + ahead - 1e-12 * (1 + ahead)).all()
        # And tight to √(2/π) of the bonus where nothing is known yet.
        start = Belief(np.zeros(d), belief.cov)
        exact = math.sqrt(2 / math.pi) * idea.bonus(belief.cov, model, arms)
        assert sphere_two_step_value(start, model, arms) == pytest.approx(exact, rel=1e-12)


def test_P15_its_argmax_is_idea():
    model, belief, arms = beliefs(2, 4, 6)
    best = (arms @ belief.mean + idea.bonus(belief.cov, model, arms)).argmax()
    assert two_step_upper_bound(belief, model, arms).argmax() == best


@pytest.mark.parametrize("unit", [1e-120, 1e-60, 1e60])
def test_P15_in_any_units_of_the_rewards(unit):
    model, belief, arms = beliefs(2, 4, 6)
    scaled = LGDS(model.transition, unit**2 * model.process_cov, unit * model.reward_std)
    there = Belief(unit * belief.mean, unit**2 * belief.cov)
    for function in (two_step_upper_bound, sphere_two_step_value, two_step_value):
        expected = unit * function(belief, model, arms)
        assert function(there, scaled, arms) == pytest.approx(expected, rel=1e-12)
