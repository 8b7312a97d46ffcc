"""Rollouts."""

import numpy as np

import driftbandit as db
from driftbandit.kalman import Belief
from driftbandit.policies import rollout
from driftbandit.theory import two_step_value
from systems import problem_of, situation

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
