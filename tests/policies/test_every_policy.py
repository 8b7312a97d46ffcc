"""One list of checks over the whole registry: every policy equals its textbook loop."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit.policies import Problem
from driftbandit.simulation import Options, with_xla
from engine_paths import noises, states_and_rewards

POLICIES = db.policies.available()
KALMAN = ("kode", "kalman_ucb", "idea")
SLOW = ("reach", "lookahead", "information_directed")
ROUNDS = 150  # crosses the engine's span of 128
SHAPE = 3, 5  # of states and arms; programs for the paper's ten take far longer to compile


def shuffled_systems(states, arms, systems, seed):
    """Random systems of one shape from three laws: different scales, orders, correlations."""
    laws = ("gaussian", "exponential", "uniform")
    return [
        db.families.sample(laws[i % 3], n_states=states, n_arms=arms, seed=seed, first=i)[0]
        for i in range(systems)
    ]


def numbers(model):
    return model.transition, model.process_cov, float(model.reward_std)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("library", ["numpy", pytest.param("jax", marks=pytest.mark.nightly)])
def test_decisions_equal_the_textbook(name, library):
    """P9, P12, P13, P15, P18, P19: round by round the same arm."""
    for model, arms in shuffled_systems(*SHAPE, 1 if name in SLOW else 3, seed=11):
        _, rewards = states_and_rewards(model, arms, ROUNDS, seed=3)
        noise = noises(name, ROUNDS, 3, seed=3)
        expected = _textbook(name, model, arms, rewards, noise)
        assert _played(name, library, model, arms, rewards, noise) == expected


_known = {}


def _textbook(name, model, arms, rewards, noise):
    """The textbook's arms, played once for both libraries."""
    key = name, rewards.tobytes()
    if key not in _known:
        _known[key] = naive.play(name, *numbers(model), None, arms, rewards, noise)
    return _known[key]


@functools.cache
def _one_round(policy, compiled):
    def play(state, problem, row, draw):
        arm = policy.choose(state, problem, draw)
        return arm, policy.update(state, problem, arm, row if policy.full_information else row[arm])

    return jax.jit(play) if compiled else play


def _played(policy, library, model, arms, rewards, noise):
    policy = db.policies.make(policy) if isinstance(policy, str) else policy
    constants, state = policy.prepare(model, arms, len(rewards))
    problem, played = Problem(model, arms, constants), []
    with jax.enable_x64(True):
        if library == "jax":
            state, problem = jax.tree.map(jnp.asarray, (state, problem))
        for row, draw in zip(rewards, noise, strict=True):
            arm, state = _one_round(policy, library == "jax")(state, problem, row, draw)
            played.append(int(arm))
    return played


@pytest.mark.parametrize("name", POLICIES)
def test_systems_are_prepared_together_as_alone(name):
    """Bit for bit, without noise and without drift too."""
    systems = shuffled_systems(*SHAPE, 6, seed=2)
    still = np.zeros((3, 3))
    systems += [(db.LGDS(0.5 * np.eye(3), still, noise), systems[0][1]) for noise in (0.0, 1.0)]
    policy = db.policies.make(name)
    if policy.batch.prepare_stack is None or name == "sliding_window_linucb":  # rings of one length
        return
    together = policy.batch.prepare_stack(systems, ROUNDS)
    alone = [policy.prepare(model, arms, ROUNDS) for model, arms in systems]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *alone)
    assert jax.tree.structure(together) == jax.tree.structure(stacked)
    for one, other in zip(*map(jax.tree.leaves, (together, stacked)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.fixture(
    scope="module",
    params=[
        (SHAPE, "lanes"),
        (SHAPE, "xla"),
        pytest.param(((10, 10), "lanes"), marks=pytest.mark.nightly),
        pytest.param(((10, 10), "xla"), marks=pytest.mark.nightly),
    ],
    ids=str,
)
def batch(request):
    """Every policy at once on three systems, two runs each; every night of the paper's size."""
    shape, engine = request.param
    systems = shuffled_systems(*shape, 3, seed=5)
    study = {"rounds": ROUNDS, "runs": 2, "seed": 9, "options": Options(stream="batch")}
    return systems, db.simulate(systems, None, POLICIES, engine=engine, **study)


@pytest.mark.parametrize("name", POLICIES)
def test_simulated_regret_equals_the_textbook(name, batch):
    """P4: the batch engine's regret, at every checkpoint of every run, to 1e-10."""
    systems, result = batch
    for s, (model, arms) in enumerate(systems):
        for run in range(1 if name in SLOW else 2):
            where = {"seed": 9, "stream": "batch", "system": s, "run": run}
            states, rewards = states_and_rewards(model, arms, ROUNDS, **where)
            noise = noises(name, ROUNDS, model.n_states, **where)
            played = naive.play(name, *numbers(model), None, arms, rewards, noise)
            path = naive.regret_path(arms, states, played)
            np.testing.assert_allclose(
                result.curves[name][s, run], path[result.checkpoints - 1], rtol=1e-10
            )
            assert result.regret[name][s, run] == result.curves[name][s, run, -1]


def test_an_unstable_state(batch):
    """ρ(Γ) = 1.1, a state that grows a millionfold; of `batch`'s shape, compiled already."""
    systems = [
        (db.LGDS(11 / 9 * model.transition, model.process_cov, 1.0, np.eye(model.n_states)), arms)
        for model, arms in batch[0]
    ]
    assert min(model.spectral_radius for model, _ in systems) > 1.09
    result = db.simulate(systems, None, POLICIES, rounds=ROUNDS, runs=2, seed=9)
    for name, regret in result.regret.items():
        assert np.isfinite(regret).all(), name
    assert (result.regret["idea"].mean(axis=1) < result.regret["random"].mean(axis=1)).all()


@pytest.mark.parametrize("name", KALMAN)
@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_bonus_equals_the_textbook(name, library):
    """P12, P13, P15: u(a | P) to 1e-10, on covariances of every rank."""
    rng = np.random.default_rng(4)
    bonus = getattr(db.policies, name).bonus
    for model, arms in shuffled_systems(4, 6, 6, seed=2):
        rank = rng.integers(1, 5)
        root = rng.standard_normal((4, rank))
        cov = root @ root.T
        with jax.enable_x64(True):
            args = (cov, model, arms)
            if library == "jax":
                ours = jax.jit(bonus)(*jax.tree.map(jnp.asarray, args))
            else:
                ours = bonus(*args)
        expected = getattr(naive, f"bonus_{name}")(cov, *numbers(model), arms)
        np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("kalman_ucb", {"width": 2.5}),
        pytest.param("lookahead", {"steps": 4, "discount": 0.5}, marks=pytest.mark.nightly),
        pytest.param("information_directed", {"points": 16}, marks=pytest.mark.nightly),
        ("ucb", {"delta": 0.01}),
        ("sliding_window_ucb", {"window": 20, "delta": 0.3}),
        ("discounted_ucb", {"gamma": 0.8, "xi": 0.05}),
        ("rexp3", {"batch": 30, "gamma": 0.2}),
        ("oful", {"delta": 0.5, "ridge": 0.1, "bound": 0.01}),
        ("discounted_linucb", {"delta": 0.5, "gamma": 0.9, "ridge": 0.1, "bound": 0.01}),
        ("sliding_window_linucb", {"delta": 0.5, "window": 11, "ridge": 0.1, "bound": 0.01}),
        ("weighted_linucb", {"delta": 0.5, "gamma": 0.9, "ridge": 0.1, "bound": 0.01}),
        ("restarted_linucb", {"delta": 0.5, "batch": 13, "ridge": 0.1, "bound": 0.01}),
    ],
)
def test_parameters_reach_the_policy(text, parameters, batch):
    """Other parameters than the defaults, against the textbook loop with the same ones."""
    model, arms = batch[0][0]  # of a shape that most policies are compiled for already
    states, rewards = states_and_rewards(model, arms, ROUNDS)
    noise = noises(text, ROUNDS, model.n_states)
    played = naive.play(text, *numbers(model), None, arms, rewards, noise, **parameters)
    policy = db.policies.make(text, **parameters)
    result = db.simulate(model, arms, [policy], rounds=ROUNDS, runs=1)
    expected = naive.regret(arms, states, played)
    np.testing.assert_allclose(result.regret[text][0], expected, rtol=1e-10)
    assert played != naive.play(text, *numbers(model), None, arms, rewards, noise)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("lookahead", {"steps": 4, "discount": 0.5}),
        ("information_directed", {"points": 16}),
    ],
)
def test_parameters_reach_slow_policies(name, parameters):
    """As above, under NumPy."""
    model, arms = shuffled_systems(*SHAPE, 1, seed=5)[0]
    _, rewards = states_and_rewards(model, arms, ROUNDS)
    noise = noises(name, ROUNDS, model.n_states)
    expected = naive.play(name, *numbers(model), None, arms, rewards, noise, **parameters)
    policy = db.policies.make(name, **parameters)
    assert _played(policy, "numpy", model, arms, rewards, noise) == expected


LINEAR = (
    *("oful", "discounted_linucb", "sliding_window_linucb"),
    *("weighted_linucb", "restarted_linucb"),
)


SCORING = (*KALMAN, "reach", "lookahead", "thompson", "kalman_oracle", *LINEAR)


@pytest.mark.parametrize("name", SCORING)
def test_ties_go_to_the_first_arm(name):
    """Duplicate arms (Bernoulli draws them): the later copy of an arm is never played."""
    model = db.LGDS([[0.5, 0.2], [0.0, 0.7]], np.eye(2), 0.5)
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    _, rewards = states_and_rewards(model, arms, 100)
    played = _played(name, "numpy", model, arms, rewards, noises(name, 100, 2))
    assert set(played) == {0, 1}


@pytest.mark.parametrize(
    "names",
    [
        ["idea", "rexp3", "oful", "kalman_oracle"],
        pytest.param(POLICIES, marks=pytest.mark.nightly),
    ],
    ids=["some", "all"],
)
def test_one_arm_one_state(names):
    """k = d = 1, with and without noise: nothing to choose, no regret, no NaN."""
    systems = [(db.LGDS([[0.5]], [[1.0]], reward_std), [[2.0]]) for reward_std in (0.0, 1.0)]
    result = db.simulate(systems, None, names, rounds=70, runs=3)
    for name in names:
        np.testing.assert_array_equal(result.regret[name], 0.0, err_msg=name)


def test_a_compiled_rule_is_shared_by_all_parameters(monkeypatch):
    monkeypatch.setattr(with_xla, "kept_programs", collections.OrderedDict())
    model, arms = db.families.sample("gaussian", n_states=2, n_arms=3)[0]
    policies = [db.policies.make("kalman_ucb", width=w) for w in (1, 2, 3, 4)]
    db.simulate(model, arms, policies, rounds=10, runs=2, engine="xla")
    assert len(with_xla.kept_programs) == 2  # the environment and the rule
