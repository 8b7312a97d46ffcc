"""Rivals from the literature, beyond the textbook loops: what each was published for.

`benchmarks/rivals.py` measures exponents of regret with intervals; here are small versions.
"""

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

FORGETTING = (
    *("discounted_linucb", "sliding_window_linucb"),
    *("weighted_linucb", "restarted_linucb"),
)
EYE = np.eye(2)
RUSSAC = {"delta": 0.01, "ridge": 0.1, "bound": 1.0}
"""δ, λ and S in the experiments of Russac, Vernade and Cappé (2019)."""


def still(states, scale=1.0):
    """A model that tells policies R, and nothing of how θ moves."""
    return db.LGDS(np.zeros((states, states)), np.zeros((states, states)), scale)


def circle(count):
    angles = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def tuned(name, rounds, variation, d=2):
    """The published memory for so many rounds and so much variation."""
    memory = {
        "oful": {},
        "discounted_linucb": {"gamma": 1 - (variation / (d * rounds)) ** (2 / 3)},
        "sliding_window_linucb": {"window": math.ceil((d * rounds / variation) ** (2 / 3))},
        "weighted_linucb": {"gamma": 1 - math.sqrt(variation / (d * rounds))},
        "restarted_linucb": {"batch": int(d**0.25 * math.sqrt(rounds / variation))},
    }
    return make(name, **RUSSAC, **memory[name])


def learned(policy, model, arms, played, rewards):
    """The state after those rounds, and the problem."""
    constants, state = policy.prepare(model, arms, len(played))
    problem = Problem(model, arms, constants)
    for arm, reward in zip(played, rewards, strict=True):
        state = policy.update(state, problem, arm, reward)
    return state, problem


def lost(policy, means, noise, arms, scale):
    """Regret of one run where arm i pays means[t, i] and noise."""
    model = still(arms.shape[1], scale)
    constants, state = policy.prepare(model, arms, len(means))
    problem = Problem(model, arms, constants)
    regret = 0.0
    for mean, shock in zip(means, noise, strict=True):
        arm = int(policy.choose(state, problem, None))
        state = policy.update(state, problem, arm, mean[arm] + shock)
        regret += mean.max() - mean[arm]
    return regret


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
    rings = {len(state.rewards) for _, state in policy.batch.prepare_all(systems, rounds)}
    assert len(rings) == 1
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


# The published examples.


def test_a_parameter_that_jumps():
    """Russac et al. (2019): θ = (1, 0), (−1, 0), (0, 1), (0, −1), 6000 rounds, σ = 1."""
    places = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0, -1], [0, -1]], float)
    arms = circle(12)
    means = np.repeat(places, 1000, axis=0) @ arms.T
    noise = np.random.default_rng(0).standard_normal(6000)
    keeps = lost(tuned("oful", 6000, 1.0), means, noise, arms, 1.0)
    assert keeps > 3000
    for name in FORGETTING:
        policy = tuned(name, 6000, variation=4 + math.sqrt(2))
        assert lost(policy, means, noise, arms, 1.0) < 0.5 * keeps, name


def turn(angle):
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def regrets(world, arms, policies, rounds, scale, runs=16):
    """Each run's regret, by policy, where policies are told R = scale and nothing else."""
    assumed = [(still(world.n_states, scale), arms)]
    return db.simulate(
        world, arms, policies, rounds, runs, assumed=assumed, options=Options(checkpoints=1)
    ).regret


def slope(regrets):
    """Exponent of mean regret in n between two horizons, and its error."""
    (first, few), (last, many) = regrets.items()
    wide = [one.std(ddof=1) / one.mean() / math.sqrt(len(one)) for one in (few, many)]
    ratio = math.log(last / first)
    return math.log(many.mean() / few.mean()) / ratio, math.hypot(*wide) / ratio


def test_growth_while_a_parameter_turns():
    """Half a turn in n rounds, whatever n: bounds grow as n^⅔ and n^¾, OFUL's regret as n.

    A parameter that turns is an LGDS: a rotation, without noise.
    """
    found, names = {}, ("oful", *FORGETTING)
    for rounds in (250, 4000):
        world = db.LGDS(turn(math.pi / rounds), 0 * EYE, 0.3, 0 * EYE, initial_mean=[1.0, 0.0])
        policies = [tuned(name, rounds, variation=math.pi) for name in names]
        found[rounds] = regrets(world, circle(12), policies, rounds, scale=0.3)
    exponents = {name: slope({n: each[name] for n, each in found.items()}) for name in names}
    value, error = exponents.pop("oful")
    assert value - 3 * error > 0.9
    for name, (value, error) in exponents.items():
        assert value + 3 * error < 0.85, name
        assert found[4000][name].mean() < 0.25 * found[4000]["oful"].mean(), name


def test_two_changes():
    """Garivier and Moulines (2011): means 0.5, 0.3, 0.4, the last 0.9 for a fifth of the time."""
    rounds = 10_000
    means = np.tile([0.5, 0.3, 0.4], (rounds, 1))
    means[3000:5000, 2] = 0.9
    noise = 0.1 * np.random.default_rng(1).standard_normal(rounds)
    window = math.ceil(2 * math.sqrt(rounds * math.log(rounds) / 2))
    policies = {
        "ucb": make("ucb", delta=rounds**-1.2),
        "discounted_ucb": make("discounted_ucb", gamma=1 - 0.25 * math.sqrt(2 / rounds), xi=2.4),
        "sliding_window_ucb": make("sliding_window_ucb", window=window, delta=window**-1.2),
    }
    regret = {name: lost(one, means, noise, np.eye(3), 0.1) for name, one in policies.items()}
    assert regret["discounted_ucb"] < 0.5 * regret["ucb"]
    assert regret["sliding_window_ucb"] < 0.5 * regret["ucb"]


def test_ucb_grows_as_the_logarithm():
    """Σ 2R² log(1/δ) / Δ for δ = 1/n: each arm is left once its radius is below its gap."""
    gaps, scale, found = np.array([0.0, 0.2, 0.4]), 0.25, {}
    world = db.LGDS(np.eye(3), np.zeros((3, 3)), scale, np.zeros((3, 3)), initial_mean=1 - gaps)
    for rounds in (500, 8000):
        policy = make("ucb", delta=1 / rounds)
        found[rounds] = regrets(world, np.eye(3), [policy], rounds, scale, runs=32)["ucb"].mean()
        expected = 2 * scale**2 * math.log(rounds) * (1 / gaps[1:]).sum()
        assert 0.5 < found[rounds] / expected < 1.2
    assert found[8000] / found[500] < 2  # log 8000 / log 500 = 1.4; √16 = 4


def test_oful_grows_as_the_root():
    """A parameter that stands still, arms all around: √n and logarithms."""
    world = db.LGDS(EYE, 0 * EYE, 1.0, 0 * EYE, initial_mean=[0.6, 0.8])
    policy, arms = make("oful", **RUSSAC), circle(12)
    found = {n: regrets(world, arms, [policy], n, scale=1.0)["oful"] for n in (250, 4000)}
    value, error = slope(found)
    assert value - 3 * error > 0.35
    assert value + 3 * error < 0.75


def test_rexp3_follows_waves_and_exp3_does_not():
    """Besbes, Gur and Zeevi (2014): means ½ ± 0.3 sin, a variation of 3 in n rounds, V known.

    The waves are an LGDS too: a rotation of which one coordinate is read, with both signs.
    """
    rounds = 8000
    world = db.LGDS(turn(5 * math.pi / rounds), 0 * EYE, 0.1, 0 * EYE, initial_mean=[0.3, 0.0])
    batch = math.ceil((2 * math.log(2)) ** (1 / 3) * (rounds / 3) ** (2 / 3))
    policies = [make("rexp3", batch=length) for length in (batch, rounds)]
    arms = np.array([[0.0, 1.0], [0.0, -1.0]])
    found = regrets(world, arms, policies, rounds, scale=1 / 6)  # ±½ fill Exp3's interval
    restarted, kept = (regret.mean() for regret in found.values())
    assert restarted < 0.7 * kept


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("sliding_window_linucb(window=0)", "window"),
        ("sliding_window_linucb(window=2.5)", "window"),
        ("sliding_window_linucb(delta=1)", "delta"),
        ("weighted_linucb(gamma=1.1)", "gamma"),
        ("weighted_linucb(ridge=0)", "ridge"),
        ("restarted_linucb(batch=0)", "batch"),
        ("restarted_linucb(bound=-1)", "bound"),
    ],
)
def test_parameters_out_of_range(text, argument):
    with pytest.raises(db.InvalidInput, match=argument):
        make(text)


def test_two_workers_and_many_states():
    """More states than a small matrix has, in two threads: programs that call LAPACK would hang."""
    systems = list(db.families.sample("gaussian", systems=8, n_states=21, n_arms=4))
    names = ["discounted_linucb", "sliding_window_linucb"]
    result = db.simulate(
        systems, None, names, rounds=4, runs=64, device="cpu", options=Options(workers=2)
    )
    assert all(np.isfinite(regret).all() for regret in result.regret.values())
