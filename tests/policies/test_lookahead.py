"""P7: a bonus for what later rounds can use."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
import naive
from driftbandit.kalman import Belief
from driftbandit.policies import lookahead
from driftbandit.simulation import Options
from driftbandit.theory import two_step_value
from systems import assert_close, situation

checked = settings(deadline=None, derandomize=True, max_examples=50)


# Lookahead.


@checked
@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.integers(1, 7),
    st.sampled_from([0.0, 0.5]),
    st.integers(1, 4),
)
def test_P7_lookahead_equals_the_difference_of_two_filters(seed, d, k, reward_std, steps):
    """w_h w_hᵀ is what a filter that saw arm a's reward knows more than one that saw nothing."""
    model, arms, belief = situation(seed, d, k, reward_std, rank=d)
    weights = 0.7 ** np.arange(float(steps))
    ours = lookahead.bonus(belief, model, arms, weights)
    textbook = naive.bonus_lookahead(
        *belief, model.transition, model.process_cov, reward_std, arms, steps, 0.7
    )
    # The textbook's eigenvalues are exact to rounding of P itself, their roots to its root.
    scale = np.abs(arms).sum(axis=1).max() * math.sqrt(np.trace(belief.cov))
    np.testing.assert_allclose(ours, textbook, rtol=1e-8, atol=1e-7 * scale)
    if reward_std > 0:
        np.testing.assert_allclose(ours, textbook, rtol=1e-8, atol=1e-10 * scale)


def test_P7_one_step_is_the_two_step_value():
    model, arms, belief = situation(3, 4, 6, 0.5, rank=4)
    value = two_step_value(belief, model, arms)
    ahead = (arms @ model.transition @ belief.mean).max()
    ours = arms @ belief.mean + ahead + lookahead.bonus(belief, model, arms, np.ones(1))
    np.testing.assert_allclose(ours, value, rtol=1e-12)


@pytest.mark.parametrize("k", [3, 40])
def test_lookahead_under_jax(k):
    """Pair by pair and bend by bend, three steps."""
    model, arms, belief = situation(5, 4, k, 0.5, rank=2)
    expected = lookahead.bonus(belief, model, arms, np.ones(3))
    with jax.enable_x64(True):
        args = jax.tree.map(jnp.asarray, (belief, arms, np.ones(3)))
        found = jax.jit(lambda b, rows, weights: lookahead.bonus(b, model, rows, weights))(*args)
        assert_close(found, expected, 1e-11)


def test_what_changes_no_choice_is_worth_nothing():
    """An arm that is far ahead whatever is learned: no bonus for anybody; IDEA gives one."""
    model = db.LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
    belief = Belief(np.array([100.0, 0.0]), np.eye(2))
    bonus = lookahead.bonus(belief, model, np.eye(2), np.ones(2))
    assert (bonus < 1e-100).all()
    assert (db.policies.idea.bonus(belief.cov, model, np.eye(2)) > 0.1).all()


def test_a_reward_the_plan_makes_known_is_worth_no_more_later():
    """σ = 0, one state that stays: whatever is learned now, the next reward would tell as well."""
    model = db.LGDS([[1.0]], [[0.0]], reward_std=0.0, initial_cov=[[4.0]])
    arms = np.array([[1.0], [-1.0]])
    belief = Belief(np.zeros(1), np.array([[4.0]]))
    one, two = (lookahead.bonus(belief, model, arms, np.ones(h)) for h in (1, 2))
    np.testing.assert_allclose(one, 2 * math.sqrt(2 / math.pi), rtol=1e-12)  # E|2ω|
    np.testing.assert_allclose(two, one, rtol=1e-6)


def test_lookahead_has_lower_regret_than_idea():
    """Cauchy systems, where it is told most clearly: 40 systems, paired."""
    systems = list(db.families.sample("cauchy", systems=40, n_states=5, n_arms=5))
    regret = db.simulate(
        systems, None, ["idea", "lookahead"], 200, runs=4, options=Options(checkpoints=1)
    ).regret
    logs = np.log(regret["lookahead"].mean(axis=1) / regret["idea"].mean(axis=1))
    assert logs.mean() + 2.5 * logs.std() / math.sqrt(40) < 0
