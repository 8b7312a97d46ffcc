"""Rollouts: a deprecated policy, which `make` still builds with a warning."""

import copy
import pickle

import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit import policies
from driftbandit.io.model_file import to_document
from driftbandit.kalman import Belief
from driftbandit.policies import REGISTRY, TITLES, Problem, make, rollout
from driftbandit.theory import two_step_value
from engine_paths import states_and_rewards
from systems import problem_of, random_system, situation

WARNING = "^rollout is deprecated; use reach, "


def made(policy="rollout", **parameters):
    with pytest.warns(FutureWarning, match=WARNING) as caught:
        found = make(policy, **parameters)
    assert len(caught) == 1
    return found


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


@pytest.mark.parametrize("parameters", [{}, {"depth": 2, "scenarios": 4, "discount": 1.0}])
def test_decisions_and_simulated_regret_equal_the_textbook(parameters):
    model, arms = random_system(11, 3, k=5)
    states, rewards = states_and_rewards(model, arms, 150, seed=3)
    system = model.transition, model.process_cov, float(model.reward_std), None, arms
    expected = naive.play("rollout", *system, rewards, None, **parameters)
    policy = rollout.policy(**parameters)
    constants, belief = policy.prepare(model, arms, len(rewards))
    problem, played = Problem(model, arms, constants), []
    for row in rewards:
        played.append(int(policy.choose(belief, problem, None)))
        belief = policy.update(belief, problem, played[-1], row[played[-1]])
    assert played == expected
    result = db.simulate(model, arms, [policy], rounds=150, runs=1, seed=3)
    ours = result.regret[policies.short_label(policy)][0]
    np.testing.assert_allclose(ours, naive.regret(arms, states, expected), rtol=1e-10)


# Its name.


def test_no_list_shows_it():
    assert "rollout" not in {*REGISTRY, *TITLES, *policies.available(independent=True)}
    with pytest.raises(db.InvalidInput) as caught:
        make("rolout")
    assert "rollout" not in str(caught.value)


def test_its_name_still_builds_it_with_one_warning():
    assert made() == made("Rollout") == rollout.policy()
    other = rollout.policy(depth=2, scenarios=4)
    assert made("rollout(depth=2, scenarios=4)") == made(depth=2, scenarios=4) == other
    assert policies.short_label(other) == "rollout(depth=2, scenarios=4)"
    assert policies.title("rollout(depth=2)") == "Rollout(depth=2)"
    assert policies.filters("rollout")
    for copied in (pickle.loads(pickle.dumps(other)), copy.deepcopy(other)):  # without a warning
        assert copied == other
    with pytest.warns(FutureWarning, match=WARNING) as caught:
        assert list(policies.chosen(["idea", "rollout"])) == ["idea", "rollout"]
    assert len(caught) == 1


def test_stored_agents_with_it_still_load(tmp_path):
    """As a file says that an older version wrote: the policy by name and parameters."""
    path = tmp_path / "agent.json"
    agent = db.Agent(*random_system(1, 2), rollout.policy(depth=2))
    for reward in (1.0, -0.5, 0.3):
        agent.tell(agent.ask(), reward)
    agent.save(path)
    assert '"rollout"' in path.read_text()
    with pytest.warns(FutureWarning, match=WARNING) as caught:
        loaded = db.Agent.load(path)
    assert len(caught) == 1
    assert loaded.policy == agent.policy
    assert loaded.ask() == agent.ask()


@pytest.mark.filterwarnings("always:rollout is deprecated:FutureWarning")
def test_stored_experiments_with_it_still_load(tmp_path, recwarn):
    """After a restart, the service rebuilds the agent and goes on; once each, it warns."""
    inprocess = pytest.importorskip("service.inprocess")
    model, arms = random_system(1, 2)
    document, agent = to_document(db.System(model, arms)), db.Agent(model, arms, rollout.policy())
    with inprocess.Service(tmp_path) as service:
        one = service.create(system=document, policy="rollout")
        assert one.get("/state")["policy_title"] == policies.title(agent.policy.label)
        assert one.decide()["arm"] == agent.ask().arm
        one.tell(0, 1.0)
        assert len(recwarn) == 1
    agent.tell(0, 1.0)
    with inprocess.Service(tmp_path) as service:
        assert inprocess.Experiment(service, "one").decide()["arm"] == agent.ask().arm
    assert len(recwarn) == 2
