"""The spread that a policy trusts: the model's, unless rewards contradict it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
import naive
from driftbandit import kalman
from driftbandit.kalman import Belief
from driftbandit.policies import Problem, make
from driftbandit.policies.checked import Checked, trusted
from engine_paths import states_and_rewards

REACH = make("reach")
checked = settings(deadline=None, derandomize=True, max_examples=200)


def scale(state):
    return float(trusted(state).cov[0, 0] / state.cov[0, 0])


@checked
@given(st.integers(0, 10**6), st.integers(0, 10**4))
def test_the_scale_equals_the_textbook(seed, rounds):
    rng = np.random.default_rng(seed)
    shares = rng.beta(1, 5, rounds)
    x = np.stack([shares, 1 - shares])
    excess, weight = x @ rng.normal(0, 2, rounds), 20 * np.eye(2) + x @ x.T
    state = Checked(np.zeros(2), 3.0 * np.eye(2), excess, weight)
    assert scale(state) == pytest.approx(naive.trusted_scale(excess, weight), rel=1e-9)


def with_rewards(model, arms, assumed=None, rounds=4000, unit=1.0, runs=1):
    """The state of a policy that plays all arms in turn, each for some rounds."""
    problem = Problem(assumed or model, unit * arms, {})
    _, rewards = states_and_rewards(model, arms, rounds)
    _, state = REACH.prepare(assumed or model, unit * arms, rounds)
    for t, row in enumerate(rewards):
        arm = t // runs % len(arms)
        state = REACH.update(state, problem, arm, unit * row[arm])
    return state


def independent(decay=0.95, reward_std=1.0, scale=1.0, arms=4):
    eye = np.eye(arms)
    return db.LGDS(decay * eye, scale * (1 - decay**2) * eye, reward_std), eye


def test_the_sums_equal_the_textbook():
    model, arms = independent()
    state, rounds = with_rewards(model, arms, rounds=50), 50
    _, rewards = states_and_rewards(model, arms, rounds)
    law = (model.transition, model.process_cov, 1.0)
    mean, cov = np.zeros(4), model.start_cov()
    excess, weight = np.zeros(2), 20 * np.eye(2)
    for t in range(rounds):
        arm, reward = arms[t % 4], rewards[t, t % 4]
        more, heavier = naive.surprise_sums(mean, cov, 1.0, arm, reward)
        excess, weight = excess + more, weight + heavier
        mean, cov = naive.kalman_step(mean, cov, *law, arm, reward)
    np.testing.assert_allclose(state.excess, excess, rtol=1e-9)
    np.testing.assert_allclose(state.weight, weight, rtol=1e-9)
    np.testing.assert_allclose(state.mean, mean, rtol=1e-9)


def after_rounds(reward_std, seed, rounds=400):
    """The scale after some rounds of a model that holds."""
    model, arms = independent(0.9, reward_std=reward_std)
    rng = np.random.default_rng(seed)
    _, state = REACH.prepare(model, arms, rounds)
    z, problem = rng.standard_normal(4), Problem(model, arms, {})
    for t in range(rounds):
        reward = z[t % 4] + reward_std * rng.standard_normal()
        state = REACH.update(state, problem, t % 4, reward)
        z = 0.9 * z + math.sqrt(0.19) * rng.standard_normal(4)
    return scale(state)


@pytest.mark.parametrize("reward_std", [0.3, 1.0, 3.0])
def test_a_model_that_holds_is_trusted(reward_std):
    scales = np.array([after_rounds(reward_std, seed) for seed in range(40)])
    assert abs(scales.mean() - 1) < 4 * scales.std() / math.sqrt(len(scales))
    assert scales.std() < math.sqrt(2 / 20)


@pytest.mark.parametrize("spread", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_the_true_spread_is_found_whatever_the_noise(spread, noise):
    """Surprises of variance c v + r σ², in rounds that are more and less uncertain."""
    model, arms = independent()
    rng = np.random.default_rng(3)
    belief, (_, state) = kalman.prior(model), REACH.prepare(model, arms, 10)
    for _ in range(20_000):
        row = rng.uniform(0.3, 1.5) * arms[0]
        reward = math.sqrt(spread * row[0] ** 2 + noise) * rng.standard_normal()
        before = state._replace(mean=belief.mean, cov=belief.cov)
        state = REACH.agent.observe(before, Problem(model, row[None], {}), 0, reward)
    # Surprises beyond three standard deviations count as three: what is too large looks smaller.
    assert scale(state) == pytest.approx(spread, rel=0.3, abs=0.2)


@pytest.mark.parametrize(("factor", "low", "high"), [(4.0, 0.2, 0.8), (0.25, 1.4, 5.0)])
def test_a_wrong_spread_is_noticed(factor, low, high):
    model, arms = independent()
    wrong, _ = independent(scale=factor)
    state = with_rewards(model, arms, wrong, runs=10)
    assert low < scale(state) < high


def test_units_do_not_matter():
    model, arms = independent()
    wide = db.LGDS(model.transition, 4 * model.process_cov, 1.0)
    base = with_rewards(model, arms, wide, rounds=300)
    large = db.LGDS(model.transition, 4 * model.process_cov, 1e6)
    other = with_rewards(model, arms, large, rounds=300, unit=1e6)
    np.testing.assert_allclose(other.excess, base.excess, rtol=1e-6)
    np.testing.assert_allclose(other.weight, base.weight, rtol=1e-6)


def test_rewards_that_are_known_tell_nothing():
    model = db.LGDS(np.eye(2), np.zeros((2, 2)), 0.0, initial_cov=np.zeros((2, 2)))
    problem, (_, state) = Problem(model, np.eye(2), {}), REACH.prepare(model, np.eye(2), 10)
    state = REACH.update(state, problem, 0, 5.0)
    assert state.excess.tolist() == [0.0, 0.0]
    assert state.weight.tolist() == [[20.0, 0.0], [0.0, 20.0]]


def test_one_outlier_counts_as_three_standard_deviations():
    model, arms = independent()
    _, state = REACH.prepare(model, arms, 10)
    after = REACH.update(state, Problem(model, arms, {}), 0, 1e6)
    np.testing.assert_allclose(after.excess, 0.5 * (9 - 0.995007278), rtol=1e-9)
    assert scale(after) == pytest.approx(1.2, abs=0.01)


def test_agents_keep_the_sums(tmp_path):
    """In files, for a new arm, and without time passing."""
    agent = db.Agent(*independent(), policy="reach", names=list("abcd"))
    for reward in (3.0, -4.0, 2.0, 5.0):
        agent.tell(agent.ask(), reward)
    sums = agent.state[2:]
    assert sums[1][0, 0] > 20
    agent.save(tmp_path / "agent.json")
    np.testing.assert_equal(db.Agent.load(tmp_path / "agent.json").state[2:], sums)
    agent.add_arm("e", [1.0, 1.0, 0.0, 0.0])
    np.testing.assert_equal(agent.state[2:], sums)
    problem = agent.problem
    observed = REACH.agent.observe(agent.state, problem, 1, 0.7)
    moved = REACH.agent.advance(observed, problem, 1)
    both = REACH.update(agent.state, problem, 1, 0.7)
    for one, other in zip(moved, both, strict=True):
        np.testing.assert_array_equal(one, other)
    assert isinstance(trusted(moved), Belief)
