"""Linear bandits: what each is when it does not forget, and when it does."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
import naive
from driftbandit.policies import Problem, make
from driftbandit.simulation import Options
from engine_paths import states_and_rewards
from systems import played, still

EYE = np.eye(2)


def learned(policy, model, arms, played, rewards):
    """The state after those rounds, and the problem."""
    constants, state = policy.prepare(model, arms, len(played))
    problem = Problem(model, arms, constants)
    for arm, reward in zip(played, rewards, strict=True):
        state = policy.update(state, problem, arm, reward)
    return state, problem


def history(seed, rounds=60, d=3, k=5):
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((k, d))
    return arms, rng.integers(k, size=rounds), rng.standard_normal(rounds)


# What each is when it does not forget, and when it does.


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("sliding_window_linucb", {"window": 60}),
        ("weighted_linucb", {"gamma": 1}),
        ("restarted_linucb", {"batch": 61}),
    ],
)
def test_without_forgetting_they_are_ridge_regression(name, memory):
    """OFUL's θ̂ and √(aᵀV⁻¹a), times a radius that is OFUL's with det V at its largest, or wider."""
    arms, played, rewards = history(1)
    ours, ridge = make(name, ridge=2, bound=1, **memory), make("oful", ridge=2, bound=1)
    means, bonuses = ours.scores(*learned(ours, still(3), arms, played, rewards))
    expected, theirs = ridge.scores(*learned(ridge, still(3), arms, played, rewards))
    np.testing.assert_allclose(means, expected, rtol=1e-10)
    np.testing.assert_allclose(bonuses / theirs, (bonuses / theirs)[0], rtol=1e-10)
    assert 1 <= (bonuses / theirs)[0] < 1.6


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 20))
def test_the_window_alone_counts(seed, window):
    """Whatever came before the last w rounds, scores are the same."""
    arms, played, rewards = history(seed, rounds=window)
    policy = make("sliding_window_linucb", window=window)
    _, before, paid = history(seed + 1, rounds=35)
    state, problem = learned(policy, still(3), arms, played, rewards)
    after = np.concatenate([before % 5, played]), np.concatenate([paid, rewards])
    other, _ = learned(policy, still(3), arms, *after)
    np.testing.assert_allclose(
        policy.scores(other, problem), policy.scores(state, problem), rtol=1e-9, atol=1e-12
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_a_restart_forgets_everything(seed, batch):
    arms, played, rewards = history(seed)
    policy = make("restarted_linucb", batch=batch)
    state, problem = learned(policy, still(3), arms, played, rewards)
    since = len(played) - len(played) % batch
    fresh, _ = learned(policy, still(3), arms, played[since:], rewards[since:])
    np.testing.assert_array_equal(policy.scores(state, problem), policy.scores(fresh, problem))
    assert state.age == len(played) % batch


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 1))
def test_one_matrix_is_wider_than_two(seed, gamma):
    """Ṽ ≤ V: LB-WeightUCB has D-LinUCB's θ̂ and radius, and never the smaller bonus."""
    arms, played, rewards = history(seed)
    one, two = (
        make(name, gamma=gamma, ridge=0.5) for name in ("weighted_linucb", "discounted_linucb")
    )
    means, wide = one.scores(*learned(one, still(3), arms, played, rewards))
    expected, narrow = two.scores(*learned(two, still(3), arms, played, rewards))
    np.testing.assert_allclose(means, expected, rtol=1e-8, atol=1e-12)
    assert (wide >= narrow * (1 - 1e-9)).all()


def test_defaults_of_memory():
    """(dn/B)^⅔, 1 − max(1/n, √(B/(dn))), d^¼ √(n/B); d rounds at least, n where nothing drifts."""
    names = ("sliding_window_linucb", "weighted_linucb", "restarted_linucb")
    window, gamma, batch = (
        lambda *system, name=name, key=key: make(name).prepare(*system, 10_000)[0][key]
        for name, key in zip(names, ("window", "gamma", "batch"), strict=True)
    )
    # Two states, Γ = (1 − s) I, Z = I, R = 1: B/n = √(s² + 1 − (1 − s)²) = √(2s) = 0.01.
    slow = db.LGDS((1 - 5e-5) * np.eye(2), (1 - (1 - 5e-5) ** 2) * np.eye(2), reward_std=0.0)
    system = slow, np.eye(2)
    assert window(*system) == math.ceil(200 ** (2 / 3))
    assert gamma(*system) == pytest.approx(1 - math.sqrt(0.005), rel=1e-9)
    assert batch(*system) == int(2**0.25 * 10)
    for scale, states in ((1e-3, 2), (1e3, 3)):  # neither units nor R matter
        quick = db.LGDS(-0.99 * np.eye(states), scale * np.eye(states), reward_std=0.0)
        fast = quick, scale * np.eye(states)
        assert (window(*fast), batch(*fast)) == (states, states)
        assert gamma(*fast) == pytest.approx(1 - 1 / states)
    rest = still(2), np.eye(2)
    assert (window(*rest), batch(*rest)) == (10_000, 10_000)
    assert gamma(*rest) == 1 - 1e-4


def test_systems_with_windows_of_their_own():
    """Rings of one length, windows of many: each system plays as the textbook says."""
    arms, _, _ = history(2, d=2)
    systems = [(db.LGDS(r * EYE, (1 - r**2) * EYE, 0.5), arms) for r in (0.99, 0.2, 0.999)]
    policy, rounds = make("sliding_window_linucb"), 100
    windows = [int(policy.prepare(*system, rounds)[0]["window"]) for system in systems]
    assert len(set(windows)) == 3
    constants, state = policy.batch.prepare_stack(systems, rounds)
    assert constants["window"].tolist() == windows
    assert max(windows) <= state.rewards.shape[1] < 2 * max(windows)
    result = db.simulate(systems, policies=[policy], rounds=rounds, runs=2)
    for place, (model, _) in enumerate(systems):
        states, rewards = states_and_rewards(model, arms, rounds, system=place, run=1)
        parts = model.transition, model.process_cov, 0.5, None
        played = naive.play(policy.name, *parts, arms, rewards, None)
        assert result.regret[policy.name][place, 1] == pytest.approx(
            naive.regret(arms, states, played), rel=1e-10
        )


@pytest.mark.parametrize("rounds", [30_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_a_window_does_not_rot(rounds):
    """V and Σ a X after many rounds that came and left, against the ring's own sums."""
    arms, _, _ = history(5, d=4, k=9)
    policy = make("sliding_window_linucb", window=40, ridge=1e-2)
    with jax.enable_x64(True):
        constants, state = policy.prepare(still(4), arms, rounds)
        constants, state, rows = jax.tree.map(jnp.asarray, (dict(constants), state, arms))
        problem = Problem(None, rows, constants)

        def step(state, t):
            draw = jax.random.normal(jax.random.fold_in(jax.random.key(0), t), (2,))
            arm = jnp.int32(jnp.abs(draw[0]) * 4) % 9
            after = policy.update(state, problem, arm, draw[1])
            return jax.tree.map(lambda new, old: new.astype(old.dtype), after, state), None

        state = jax.jit(lambda s: jax.lax.scan(step, s, jnp.arange(rounds))[0])(state)
        state = jax.tree.map(np.asarray, state)
    assert np.count_nonzero(state.rewards) == 40
    design = 1e-2 * np.eye(4) + state.rows.T @ state.rows
    largest = np.abs(design).max()
    np.testing.assert_allclose(state.design, design, atol=1e-11 * largest, rtol=0)
    np.testing.assert_allclose(state.total, state.rows.T @ state.rewards, atol=1e-11 * largest)


def test_two_workers_and_many_states():
    """More states than a small matrix has, in two threads: programs that call LAPACK would hang."""
    systems = list(db.families.sample("gaussian", systems=8, n_states=21, n_arms=4))
    names = ["discounted_linucb", "sliding_window_linucb"]
    result = db.simulate(
        systems, None, names, rounds=4, runs=64, device="cpu", options=Options(workers=2)
    )
    assert all(np.isfinite(regret).all() for regret in result.regret.values())


def test_d_linucb_without_discount_is_ridge_regression():
    """γ = 1: Ṽ = V, OFUL's θ̂ and √(aᵀV⁻¹a), and OFUL's radius with det V at its largest.

    det(V / λ) ≤ (tr V / (λd))^d ≤ (1 + L²t / (λd))^d: the radius is OFUL's or more.
    """
    model, arms = db.families.sample("exponential", n_states=3, n_arms=5, seed=1)[0]
    paid = np.random.default_rng(2).standard_normal((80, 5))
    ours, ridge = (db.policies.make(name) for name in ("discounted_linucb(gamma=1)", "oful"))
    chosen, state, problem = played(ours, paid, model, arms)
    rows, rewards = arms[chosen], paid[range(80), chosen]
    design = problem.constants["ridge"] * np.eye(3) + rows.T @ rows
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
