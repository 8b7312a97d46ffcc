"""The likelihood, its gradient and the predictions equal those of a loop over single rounds."""

import dataclasses

import jax
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from driftbandit.identify.data import padded
from driftbandit.identify.structured import likelihood
from driftbandit.identify.structured.moves import padded_states, places_of, whole
from driftbandit.structure import Layout
from known_structures import known, log_of, naive_filter
from random_structures import GROUPS, MODEST, random_log, structures

MANY = (
    "level(arm, own) + level(group, memory=free) + season(5, unchanging, start=2) "
    "+ season(4, group, loadings=[1, -0.5, 2]) + regression(x_a, arm) "
    "+ regression(x_b, shared, drifting) + ar(2, shared, loadings=free) + noise(shared)",
    "constant(arm) + trend(shared, damping=free, loadings=free) + season(6, arm, own, harmonics=3)",
)
FACTORS = (
    "constant(arm) + factors(2) + level(shared, loadings=free)",
    "factors(3, diagonal) + level(arm) + season(4)",
    "constant(arm) + factors(2, scalar)",
)
ALONE = (
    "level(arm, own) + season(5, arm, unchanging, start=2) + trend(arm, damping=free) "
    "+ regression(x_a, arm) + regression(x_b, arm, drifting) + ar(2, arm) + noise(arm, own)"
)
"""No two arms share a state."""


def at_random(structure, log, seed=0):
    """A structure with random parameters."""
    found = known(structure, log, {}, GROUPS, center=1.5)
    theta = found.problem.centers
    theta += 0.5 * np.random.default_rng(seed).standard_normal(len(theta))
    return dataclasses.replace(found, theta=theta)


def assert_right(found, log, tolerance):
    """The loss and its gradient are those of a dense loop and of central differences."""
    value, slope = found.problem.loss(found.theta)
    assert -value == pytest.approx(naive_filter(found, log)[0], rel=tolerance, abs=tolerance)
    # Of fourth order: steps are so long that the loss's rounding errors do not count.
    steps, sides = 1e-3 * np.eye(len(slope)), {1: 8, -1: -8, 2: -1, -2: 1}
    expected = np.array(
        [
            sum(w * found.problem.loss(found.theta + s * step)[0] for s, w in sides.items()) / 12e-3
            for step in steps
        ]
    )
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("structure", [*MANY, *FACTORS, ALONE])
def test_many_arms_and_sequences_equal_a_dense_loop(structure):
    log = random_log(0, sequences=3)
    begins = [one.rounds[0] for one in log.sequences[1:]]
    ends = [one.rounds[-1] for one in log.sequences[:-1]]
    assert (np.array(begins) < ends).any()  # turned backwards
    found = at_random(structure, log)
    assert_right(found, log, 1e-9)
    if structure != MANY[1]:
        _, means, variances, _ = naive_filter(found, log)
        predicted = found.problem.predicted(found.theta)
        np.testing.assert_allclose(predicted[0], means, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(predicted[1], variances, rtol=1e-8)


@settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate])
@given(structures(2, MODEST), st.integers(0, 2**32 - 1))
def test_random_structures_equal_a_dense_loop_and_differences(structure, seed):
    log = random_log(seed)
    assert_right(at_random(structure, log, seed), log, 1e-7)


@pytest.mark.nightly
@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(structures(4, MODEST), st.integers(0, 2**32 - 1))
def test_many_random_structures_equal_a_dense_loop_and_differences(structure, seed):
    log = random_log(seed, sequences=3)
    assert_right(at_random(structure, log, seed), log, 1e-6)


def test_arms_that_share_no_state_are_computed_side_by_side():
    log = random_log(0, sequences=3)
    found = at_random(ALONE, log)
    layout, apart, k = found.layout, found.problem.described.rows.apart, len(log.names)
    most = int(np.bincount(np.concatenate([one.arms for one in log.sequences])).max())
    assert apart.order.shape == (k, padded(most + 4))  # steps for one arm's plays, not for all
    assert len(places_of(layout)[0].there) == padded_states(layout.n_states // k)
    with jax.enable_x64(True):
        belief, *_ = likelihood.predicted(*found.problem.moves(found.theta)[0])
    mean, cov = whole(layout, *belief)
    *_, belief = naive_filter(found, log)
    np.testing.assert_allclose(mean, belief[0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(cov, belief[1], rtol=1e-8, atol=1e-9)
    assert known(MANY[0], log, {}, GROUPS).problem.described.rows.apart is None


def test_long_pauses_equal_many_single_rounds():
    rounds = np.array([0, 1, 700, 701, 5000])
    log = log_of(rounds, np.array([0, 1, 0, 0, 1]), np.array([1.0, -1, 2, 0.5, 3]))
    text = "trend(arm, damping=0.9) + season(7) + level(shared, memory=50)"
    found = known(text, log, {"season(7).change": 0.2})
    density = naive_filter(found, log)[0]
    assert found.problem.log_likelihood(found.theta) == pytest.approx(density, rel=1e-9)


def test_the_prior_is_added_to_the_loss():
    log = log_of(np.arange(5), np.zeros(5, int), np.array([1.0, 2, 3, 2, 1]))
    found = known("level(arm)", log, {"noise": 0.3}, prior=2.0)
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


def test_structures_of_about_the_same_size_share_a_compiled_program():
    log = random_log(0)
    texts = "constant(arm) + season(4)", "factors(2) + level(arm)", "trend(arm) + level(shared)"
    first, *others = (at_random(text, log) for text in texts)
    first.problem.loss(first.theta)
    count = likelihood.objective_and_slopes._cache_size()
    for other in others:
        assert len(other.layout.states) != len(first.layout.states)
        other.problem.loss(other.theta)
    assert likelihood.objective_and_slopes._cache_size() == count
