"""Discounting, beyond the textbook loops: what the published policies are known for."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit.policies import Problem

STILL = db.LGDS(np.zeros((3, 3)), np.zeros((3, 3)), reward_std=1.0)  # R = 1
EYE = np.eye(3)


def played(policy, paid, model=STILL, arms=EYE):
    """The arms a policy plays where arm i pays paid[t, i], and the state it ends in."""
    constants, state = policy.prepare(model, arms, len(paid))
    problem = Problem(model, arms, constants)
    chosen = []
    for row in paid:
        chosen.append(int(policy.choose(state, problem, None)))
        state = policy.update(state, problem, chosen[-1], row[chosen[-1]])
    return np.array(chosen), state, problem


def test_after_an_abrupt_change_d_ucb_recovers_and_ucb_does_not():
    """Garivier and Moulines (2011): the best arm drops below another one, once.

    The mean of all its rewards stays above the other arm's for twice as long as it was good.
    """
    rounds, change = 3000, 1500
    means = np.tile([0.8, 0.6, 0.3], (rounds, 1))
    means[change:, 0] = 0.5
    paid = means + 0.1 * np.random.default_rng(0).standard_normal(means.shape)
    model = db.LGDS(0 * EYE, 0 * EYE, reward_std=0.1)
    for name, before, after in [("discounted_ucb", 0, 1), ("ucb", 0, 0)]:
        chosen, _, _ = played(db.policies.make(name), paid, model)
        assert np.mean(chosen[change - 500 : change] == before) > 0.9, name
        assert np.mean(chosen[-1000:] == after) > 0.9, name


def test_d_ucb_remembers_so_many_rounds():
    """n_t(γ) = (1 − γ^t) / (1 − γ), whatever is played; without discount N_a counts plays."""
    paid = np.random.default_rng(1).standard_normal((300, 3))
    _, state, _ = played(db.policies.make("discounted_ucb", gamma=0.95), paid)
    assert state.counts.sum() == pytest.approx((1 - 0.95**300) / 0.05, rel=1e-12)
    chosen, state, _ = played(db.policies.make("discounted_ucb", gamma=1), paid)
    np.testing.assert_array_equal(state.counts, np.bincount(chosen))


def test_d_ucb_before_and_after_the_first_reward():
    """n < 1 or n = 1: no bonus but the infinite one, no NaN; γ = 0 keeps the last round alone."""
    policy = db.policies.make("discounted_ucb", gamma=0)
    chosen, state, problem = played(policy, np.ones((7, 3)))
    assert list(chosen) == [0, 1, 0, 1, 0, 1, 0]
    means, bonuses = policy.scores(state, problem)
    np.testing.assert_array_equal(means, [1, 0, 0])
    np.testing.assert_array_equal(bonuses, [0, np.inf, np.inf])
    faint = state._replace(counts=state.counts * 0.25, sums=state.sums * 0.25)
    np.testing.assert_array_equal(policy.scores(faint, problem), [means, bonuses])


def test_d_linucb_without_discount_is_ridge_regression():
    """γ = 1: Ṽ = V, OFUL's θ̂ and √(aᵀV⁻¹a), and OFUL's radius with det V at its largest.

    det(V / λ) ≤ (tr V / (λd))^d ≤ (1 + L²t / (λd))^d: the radius is OFUL's or more.
    """
    model, arms = db.families.sample("exponential", n_states=3, n_arms=5, seed=1)[0]
    paid = np.random.default_rng(2).standard_normal((80, 5))
    ours, ridge = (db.policies.make(name) for name in ("discounted_linucb(gamma=1)", "oful"))
    chosen, state, problem = played(ours, paid, model, arms)
    rows, rewards = arms[chosen], paid[range(80), chosen]
    design = problem.constants["ridge"] * EYE + rows.T @ rows
    np.testing.assert_allclose(state.design, design, rtol=1e-12)
    np.testing.assert_allclose(state.squared, design, rtol=1e-12)
    assert state.weight == 80

    constants, theirs = ridge.prepare(model, arms, 80)
    of_oful = Problem(model, arms, constants)
    for arm, reward in zip(chosen, rewards, strict=True):
        theirs = ridge.update(theirs, of_oful, arm, reward)
    means, bonuses = ours.scores(state, problem)
    their_means, their_bonuses = ridge.scores(theirs, of_oful)
    np.testing.assert_allclose(means, their_means, rtol=1e-10)
    ratio = bonuses / their_bonuses
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-10)
    assert 1 <= ratio[0] < 1.5


def test_d_linucb_follows_a_parameter_that_jumps():
    """Russac, Vernade and Cappé (2019), abrupt changes: θ turns round, OFUL keeps the old arm."""
    angles = np.arange(8) * np.pi / 4
    arms = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    model = db.LGDS(np.zeros((2, 2)), np.zeros((2, 2)), reward_std=0.1)
    rounds, change = 1200, 800
    means = np.where(np.arange(rounds)[:, None] < change, arms[:, 0], -arms[:, 0])
    paid = means + 0.1 * np.random.default_rng(3).standard_normal(means.shape)
    forgets = db.policies.make("discounted_linucb", gamma=0.97, bound=1)
    remembers = db.policies.make("oful", bound=1)
    for policy, place in [(forgets, 4), (remembers, 0)]:
        chosen, _, _ = played(policy, paid, model, arms)
        assert np.mean(chosen[change - 100 : change] == 0) > 0.5, policy.name
        assert np.mean(chosen[change + 100 : change + 300] == place) > 0.5, policy.name


def test_defaults_of_gamma():
    """1 − ¼√(1/n); 1 − (B / (dn))^⅔, which is 1 where nothing drifts and at least 1 − 1/d."""
    ucb, linear = (db.policies.make(f"discounted_{name}") for name in ("ucb", "linucb"))
    assert ucb.prepare(STILL, EYE, 400)[0]["gamma"] == 1 - 0.25 / 20
    # One state: D = (1 − 0.9)² + 0.19 = 0.2 for Z = 1, R² = 4 (1 + σ²).
    slow = db.LGDS([[0.9]], [[0.19]], reward_std=np.sqrt(3) * 2)
    gamma = linear.prepare(slow, np.array([[2.0]]), 100)[0]["gamma"]
    assert gamma == pytest.approx(1 - (np.sqrt(0.2 * 4) / 4) ** (2 / 3), rel=1e-12)
    assert linear.prepare(STILL, EYE, 100)[0]["gamma"] == 1
    fast = db.LGDS(-0.99 * EYE, EYE, reward_std=0.0)
    assert linear.prepare(fast, EYE, 100)[0]["gamma"] == pytest.approx(2 / 3)
