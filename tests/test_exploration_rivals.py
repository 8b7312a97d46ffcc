"""The rivals that only benchmarks/exploration.py plays."""

import sys
from pathlib import Path

import numpy as np
import pytest

import driftbandit as db
from driftbandit.kalman import Belief
from driftbandit.policies import Problem
from systems import random_system

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))  # at the end: only modules of this name are wanted

import exploration  # noqa: E402
import exploration_rivals as rivals  # noqa: E402

EVERY = [rivals.CENTERED, rivals.PREDICTIVE, rivals.AR2]


def autoregressive(decays, noise):
    decays = np.asarray(decays, float)
    return db.LGDS(np.diag(decays), np.diag(1 - decays**2), noise)


@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: policy.name)
def test_engines_and_the_agent_play_it(policy):
    model, arms = autoregressive([0.9, 0.95, 0.99], 1.0), np.eye(3)
    played = {
        engine: db.simulate(model, arms, [policy], rounds=60, runs=3, engine=engine).regret
        for engine in ("lanes", "xla")
    }
    np.testing.assert_allclose(played["lanes"][policy.name], played["xla"][policy.name], rtol=1e-9)
    agent = db.Agent(model, arms, policy=policy)
    for reward in (1.0, -0.5, 0.2, 0.3):
        agent.tell(agent.ask(), reward=reward)


def conditional_cov(model, arms, cov, rounds):
    """Var E(z₀ | rewards of rounds 1 … n) by conditioning the joint normal law, term by term."""
    d, k = model.n_states, len(arms)
    with_start = cov  # Cov(z_t, z_0)
    states = [cov]  # Var z_t
    crosses, blocks = [], np.zeros((rounds * k, rounds * k))
    for t in range(rounds):
        with_start = model.transition @ with_start
        states.append(model.transition @ states[-1] @ model.transition.T + model.process_cov)
        crosses.append(arms @ with_start)
        late = states[-1]
        for s in range(t, rounds):
            block = arms @ late @ arms.T
            blocks[s * k : (s + 1) * k, t * k : (t + 1) * k] = block
            blocks[t * k : (t + 1) * k, s * k : (s + 1) * k] = block.T
            late = model.transition @ late
    cross = np.vstack(crosses).reshape(rounds * k, d)
    noise = model.reward_std**2 * np.eye(rounds * k)
    return cross.T @ np.linalg.solve(blocks + noise, cross)


def test_predictive_sampling_draws_what_the_future_reveals():
    """The covariance of its draws is that of E(z | all rewards to come), computed the long way."""
    rng = np.random.default_rng(3)
    for states, arms_count in ((2, 3), (3, 2)):
        model, arms = random_system(states, states, k=arms_count, radius=0.8)
        root = rng.standard_normal((states, states))
        belief = Belief(np.zeros(states), root @ root.T)
        future = rivals.future_information(model, arms, 1000)
        draws = np.stack([rivals._lasting_draw(belief, future, e) for e in np.eye(states)])
        expected = conditional_cov(model, arms, belief.cov, 80)
        np.testing.assert_allclose(draws.T @ draws, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("noise", [0.1, 1.0, 5.0])
def test_an_independent_arm_has_the_closed_form(decay, noise):
    """J = ρ²M/(1 + qM), M = 1/σ² + J: qM² + (1 − ρ² − q/σ²)M = 1/σ², q = 1 − ρ²."""
    q, s = 1 - decay**2, 1 / noise**2
    b = q - q * s
    M = (-b + np.sqrt(b * b + 4 * q * s)) / (2 * q)
    future = rivals.future_information(autoregressive([decay], noise), np.eye(1), 10**6)
    np.testing.assert_allclose(future, [[M - s]], rtol=1e-7, atol=1e-12)


def test_predictive_sampling_is_thompson_for_what_lasts_and_greedy_for_what_does_not():
    noise = np.array([0.3, -1.2])
    belief = Belief(np.array([0.2, 0.1]), np.array([[2.0, 0.5], [0.5, 1.0]]))
    forgets = autoregressive([0.0, 0.0], 1.0)
    future = rivals.future_information(forgets, np.eye(2), 100)
    np.testing.assert_array_equal(rivals._lasting_draw(belief, future, noise), belief.mean)
    lasts = db.LGDS(np.eye(2), np.zeros((2, 2)), 1.0, initial_cov=np.eye(2))
    future = rivals.future_information(lasts, np.eye(2), 2**20)
    drawn = belief.mean + np.linalg.cholesky(belief.cov) @ noise
    np.testing.assert_allclose(rivals._lasting_draw(belief, future, noise), drawn, atol=1e-4)


@pytest.mark.parametrize("family", db.families.FAMILIES)
def test_without_noise_the_future_is_finite(family):
    model, arms = db.families.sample(family, seed=2)[0]
    sharp = db.LGDS(model.transition, model.process_cov, reward_std=0.0)
    assert np.isfinite(rivals.future_information(sharp, arms, 10**6)).all()


def test_ar2_plays_all_then_explores_every_second_round():
    """Arms of one kind, so that the triggered arms wait in line."""
    model, arms = autoregressive([0.99] * 3, 1.0), np.eye(3)
    policy = rivals.ar2(width=100.0)  # all arms are always triggered
    constants, state = policy.prepare(model, arms, 40)
    assert constants["epoch"] == 41  # 3 / (0.99 √0.0199)³ = 1102 > 40: no restart
    problem, played = Problem(model, arms, constants), []
    for reward in [3.0, 0.0, 0.0, *[3.0, 0.0] * 4]:
        arm = policy.choose(state, problem, None)
        played.append(int(arm))
        state = policy.update(state, problem, arm, reward if arm == 0 else 0.0)
    assert played[:3] == [0, 1, 2]
    explored = played[3::2]
    assert set(played[4::2]) == {0}
    assert explored == [1, 2, 1, 2]


def test_ar2_restarts():
    model, arms = autoregressive([0.9] * 2, 1.0), np.eye(2)
    policy = rivals.ar2(width=0.0)  # nothing is triggered
    constants, state = policy.prepare(model, arms, 1000)
    epoch = int(constants["epoch"])
    assert epoch == int(np.ceil(2 / (0.9 * np.sqrt(0.19)) ** 3))
    problem, played = Problem(model, arms, constants), []
    for _ in range(2 * epoch):
        arm = policy.choose(state, problem, None)
        played.append(int(arm))
        state = policy.update(state, problem, arm, 5.0 * (arm == 0))
    assert [t for t, arm in enumerate(played) if arm == 1] == [1, epoch + 1]


def test_ar2_plays_where_arms_are_independent():
    rng = np.random.default_rng(0)
    for section, expected in (("independent", {True}), ("shared", {False}), ("wrong", {True})):
        cases = exploration.SECTIONS[section](rng)
        own = {
            "ar2" in [getattr(one, "name", one) for one in exploration.players(case, [])]
            for case in cases
            if "season" not in case.name
        }
        assert own == expected


def test_a_policy_is_added_to_results_of_the_same_runs():
    case = next(iter(exploration.SECTIONS["walks"](np.random.default_rng(0))))
    case = case._replace(rounds=20)
    first, second = (exploration.played(case, 4, 0, [name]) for name in ("kode", "ar2"))
    both = exploration.merged(first, second)
    assert set(both["policies"]) == {"reach", "kode", "ar2"}
    assert exploration.merged(None, second) == second
    assert exploration.merged(first | {"seed": 1}, second) == second
    better = first["policies"] | {"reach": {"regret": 0.0}}  # another version of the policy
    assert exploration.merged(first | {"policies": better}, second) == second
