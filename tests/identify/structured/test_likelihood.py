"""The likelihood, its gradient and the predictions equal those of a loop over single rounds."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from driftbandit.structure import Layout
from known_structures import known, log_of, naive_filter
from random_structures import GROUPS, random_log, structures

MANY = (
    "level(arm, own) + level(group, memory=free) + season(5, unchanging, start=2) "
    "+ season(4, group, loadings=[1, -0.5, 2]) + regression(x_a, arm) "
    "+ regression(x_b, shared, drifting) + ar(2, shared, loadings=free) + noise(shared)",
    "constant(arm) + trend(shared, damping=free, loadings=free) + season(6, arm, own, harmonics=3)",
)


def random_theta(layout, seed):
    rng = np.random.default_rng(seed)
    centers = np.array([free.center for free in layout.free])
    return centers + 0.5 * rng.standard_normal(len(centers))


def at_random(structure, log, seed=0):
    """A structure with random parameters, and the log's own center."""
    found = known(structure, log, {}, GROUPS, center=1.5)
    theta = random_theta(found.layout, seed)
    likelihood = found.problem.log_likelihood(theta)
    object.__setattr__(found, "theta", theta)
    object.__setattr__(found, "log_likelihood", likelihood)
    return found


def slopes(problem, theta, step=1e-5):
    """Central differences of the log-likelihood."""
    found = []
    for i in range(len(theta)):
        move = step * np.eye(len(theta))[i]
        rise = problem.log_likelihood(theta + move) - problem.log_likelihood(theta - move)
        found.append(rise / (2 * step))
    return np.array(found)


@pytest.mark.parametrize("structure", MANY, ids=["first", "second"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_many_arms_and_sequences_equal_a_dense_loop(structure, seed):
    # Sequences begin before and after the end of the one before; see `random_log`.
    log = random_log(seed, sequences=3)
    found = at_random(structure, log, seed)
    density, means, variances, _ = naive_filter(found, log)
    assert found.log_likelihood == pytest.approx(density, rel=1e-10)
    predicted = found.problem.predicted(found.theta)
    np.testing.assert_allclose(predicted[0], means, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(predicted[1], variances, rtol=1e-8)


@pytest.mark.parametrize("structure", MANY, ids=["first", "second"])
def test_the_gradient_of_many_arms_equals_differences(structure):
    found = at_random(structure, random_log(5, sequences=3), 5)
    minus = found.problem.loss(found.theta)[1]
    expected = slopes(found.problem, found.theta)
    np.testing.assert_allclose(-minus, expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=4, deadline=None, derandomize=True, phases=[Phase.generate])
@given(structures(3), st.integers(0, 2**32 - 1))
def test_random_structures_equal_a_dense_loop_and_differences(structure, seed):
    log = random_log(seed)
    found = at_random(structure, log, seed)
    density, means, variances, _ = naive_filter(found, log)
    assert found.log_likelihood == pytest.approx(density, rel=1e-7, abs=1e-7)
    predicted = found.problem.predicted(found.theta)
    np.testing.assert_allclose(predicted[0], means, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(predicted[1], variances, rtol=1e-6)
    minus = found.problem.loss(found.theta)[1]
    expected = slopes(found.problem, found.theta)
    np.testing.assert_allclose(-minus, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_long_pauses_equal_many_single_rounds():
    rounds = np.array([0, 1, 700, 701, 5000])
    log = log_of(rounds, np.array([0, 1, 0, 0, 1]), np.array([1.0, -1, 2, 0.5, 3]))
    text = "trend(arm, damping=0.9) + season(7) + level(shared, memory=50)"
    found = known(text, log, {"season(7).change": 0.2})
    density, means, variances, _ = naive_filter(found, log)
    assert found.log_likelihood == pytest.approx(density, rel=1e-9)
    predicted = found.problem.predicted(found.theta)
    np.testing.assert_allclose(predicted[0], means, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(predicted[1], variances, rtol=1e-8)


def test_the_prior_is_added_to_the_loss():
    log = log_of(np.arange(5), np.zeros(5, int), np.array([1.0, 2, 3, 2, 1]))
    found = known("trend(arm, damping=0.9) + season(7)", log, {"noise": 0.3}, prior=2.0)
    theta = found.theta + 0.1
    away = (theta - found.problem.centers) / found.problem.spreads
    value, slope = found.problem.loss(theta)
    assert value == pytest.approx(away @ away - found.problem.log_likelihood(theta))
    free = found.problem._replace(prior=0.0).loss(theta)[1]
    np.testing.assert_allclose(slope - free, 2 * away / found.problem.spreads)


def test_equal_layouts_share_a_program_and_others_do_not():
    one, other = Layout("level(arm)", ["a", "b"]), Layout("level(arm)", ["c", "d"])
    assert one == other
    assert hash(one) == hash(other)
    digits = "level(arm, drift=0.1234567890123)", "level(arm, drift=0.1234567890124)"
    assert Layout(digits[0], ["a"]) != Layout(digits[1], ["a"])
    groups = {"a": 1, "b": 1}, {"a": 1, "b": 2}
    same, apart = (Layout("level(group)", ["a", "b"], each) for each in groups)
    assert same != apart
