"""The oracle where no steady state exists: a level that arms share beside levels of their own."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit.kalman import Belief
from driftbandit.policies import Problem, kalman_oracle
from driftbandit.structure import Layout

SYSTEM = Layout("level(arm) + level(shared)", ["a", "b", "c"]).system({"noise": 0.5})


def test_it_filters_from_the_prior():
    model, arms = SYSTEM.model, SYSTEM.arms
    constants, state = kalman_oracle.prepare(model, arms, 10)
    assert constants == {}
    problem, rng = Problem(model, arms, constants), np.random.default_rng(0)
    mean, cov = model.start_mean(), model.start_cov()
    for _ in range(5):
        rewards = rng.standard_normal(3)
        state = kalman_oracle.update(state, problem, 0, rewards)
        gain = cov @ arms.T @ np.linalg.inv(arms @ cov @ arms.T + model.reward_std**2 * np.eye(3))
        mean = model.transition @ (mean + gain @ (rewards - arms @ mean))
        cov = model.transition @ (cov - gain @ arms @ cov) @ model.transition.T + model.process_cov
    assert isinstance(state, Belief)
    np.testing.assert_allclose(state.mean, mean, atol=1e-9)
    np.testing.assert_allclose(state.cov, cov, atol=1e-9)


def test_simulate_plays_it():
    pytest.importorskip("jax")
    result = db.simulate(SYSTEM, policies=["kalman_oracle", "idea"], rounds=100, runs=20)
    assert result.regret["kalman_oracle"].mean() < result.regret["idea"].mean()


def test_systems_with_and_without_a_steady_state_do_not_mix():
    seen = db.LGDS(0.5 * np.eye(4), np.eye(4), 1.0)
    with pytest.raises(db.NotDetectable, match="system 1"):
        kalman_oracle.prepare_stack([(seen, SYSTEM.arms), (SYSTEM.model, SYSTEM.arms)], 10)
