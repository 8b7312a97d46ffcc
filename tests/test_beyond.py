"""Policies beyond the paper's: lookahead, rollout, Thompson sampling, information-directed."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
import naive
from driftbandit.arrays import lower_factor
from driftbandit.gaussian.lines import excess, gain
from driftbandit.kalman import Belief
from driftbandit.policies import Problem, information_directed, lookahead, rollout
from driftbandit.simulation import Options
from driftbandit.theory import two_step_value
from systems import assert_close, random_system

checked = settings(deadline=None, derandomize=True, max_examples=50)


def situation(seed, d, k, reward_std, rank):
    """A random model, arms, and a belief whose covariance has the given rank."""
    model, arms = random_system(seed, d, k=k, reward_std=reward_std)
    rng = np.random.default_rng([seed, d, k, rank])
    root = rng.standard_normal((d, rank))
    return model, arms, Belief(rng.standard_normal(d), root @ root.T)


def problem_of(policy, model, arms):
    constants, _ = policy.prepare(model, arms, 100)
    return Problem(model, arms, constants)


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


# Rollout.


def test_a_rollout_of_one_round_is_the_two_step_value():
    """Depth one, many scenarios: the envelope's mean over equally likely surprises."""
    model, arms, belief = situation(7, 3, 4, 0.5, rank=3)
    policy = rollout.policy(depth=1, scenarios=4000)
    values = rollout.values(belief, problem_of(policy, model, arms), arms)
    np.testing.assert_allclose(values, two_step_value(belief, model, arms), rtol=1e-3)


def test_of_many_arms_a_rollout_tries_the_promising():
    """Forty arms of which one is far ahead; the one tried last in order is found too."""
    model = db.LGDS(0.5 * np.eye(2), 0.01 * np.eye(2), reward_std=0.1)
    arms = np.random.default_rng(0).standard_normal((40, 2))
    belief = Belief(np.array([30.0, 0.0]), 0.01 * np.eye(2))
    policy = rollout.policy()
    assert policy.choose(belief, problem_of(policy, model, arms), None) == arms[:, 0].argmax()


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


def test_thompson_plays_an_arm_as_often_as_it_may_be_best():
    """Two arms: P(⟨a − b, z⟩ > 0) = Φ(⟨a − b, ẑ⟩ / √((a − b)ᵀP(a − b)))."""
    model, arms, belief = situation(9, 3, 2, 0.5, rank=3)
    policy = db.policies.make("thompson")
    problem = problem_of(policy, model, arms)
    noise = np.random.default_rng(0).standard_normal((4000, 3))
    share = np.mean([policy.choose(belief, problem, row) == 0 for row in noise])
    gap = arms[0] - arms[1]
    chance = scipy.special.ndtr(gap @ belief.mean / math.sqrt(gap @ belief.cov @ gap))
    assert share == pytest.approx(chance, abs=4 * math.sqrt(0.25 / 4000))


@checked
@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), min_size=1, max_size=4))
def test_the_least_information_ratio_is_found(arms):
    """No chance q on a fine grid does better, for any pair."""
    regret, information = np.array(arms).T
    least, share = information_directed.shares(regret, information)
    q = np.linspace(0, 1, 501)
    for a in range(len(arms)):
        for b in range(len(arms)):
            mixed = q * regret[a] + (1 - q) * regret[b]
            told = q * information[a] + (1 - q) * information[b] + information_directed.LEAST
            assert least[a, b] <= (mixed**2 / told).min() * (1 + 1e-9) + 1e-300
            assert 0 <= share[a, b] <= 1


def test_information_directed_asks_about_the_next_round():
    """Γ = 0: nothing learned now helps later, so the best prediction is played."""
    model = db.LGDS(np.zeros((2, 2)), np.eye(2), reward_std=1.0)
    belief = Belief(np.array([0.1, 0.0]), np.diag([0.01, 25.0]))
    policy = db.policies.make("information_directed(points=4096)")
    problem = problem_of(policy, model, np.eye(2))
    regret, information = information_directed.regret_and_information(belief, problem)
    assert (information < 0.01).all()
    moving = model.__class__(0.9 * np.eye(2), np.eye(2), reward_std=1.0)
    problem = problem_of(policy, moving, np.eye(2))
    _, more = information_directed.regret_and_information(belief, problem)
    assert more[1] > 10 * information.max()
    assert regret[0] < regret[1]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("lookahead(steps=0)", "steps"),
        ("lookahead(discount=2)", "discount"),
        ("rollout(scenarios=3)", "scenarios"),
        ("rollout(depth=0)", "depth"),
        ("information_directed(points=48)", "points"),
    ],
)
def test_bad_parameters(text, named):
    with pytest.raises(db.InvalidInput, match=named):
        db.policies.make(text)
