"""What an agent does if nobody names a policy."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit import Agent, Refit
from driftbandit.policies import PREFERRED
from driftbandit.policies.reach import MOST
from systems import random_system


def played(agent, rounds=20, **question):
    rng, names = np.random.default_rng(1), []
    for _ in range(rounds):
        decision = agent.ask(**question)
        assert decision.bonus is None or (np.isfinite(decision.bonus) and decision.bonus >= 0)
        agent.tell(decision, float(rng.standard_normal()))
        names.append(decision.arm)
    return names


@pytest.mark.parametrize("n_arms", [1, 2, 10, MOST, MOST + 1, 10_000])
def test_short_and_long_lists_of_arms(n_arms):
    model, _ = random_system(1, 3)
    agent = Agent(model, np.random.default_rng(n_arms).standard_normal((n_arms, 3)))
    assert agent.policy.name == PREFERRED
    first = agent.scores()
    assert played(agent)
    again = Agent.from_json(agent.to_json())
    assert again.ask() == agent.ask()
    assert n_arms == 1 or max(score.bonus for score in first) > 0


def test_arms_on_offer_and_new_arms():
    model, arms = random_system(2, 3, k=5)
    agent = Agent(model, arms)
    assert set(played(agent, arms=[1, 3])) <= {1, 3}
    known = agent.scores()
    some = agent.scores([1, 3])
    assert [one.bonus for one in some] == [known[1].bonus, known[3].bonus]  # of all own arms
    assert set(played(agent, arms=np.eye(3))) <= {0, 1, 2}
    assert played(Agent(model, "sphere"), rounds=3)


def test_a_system_with_many_states_takes_no_table():
    """One for 100 arms that read 300 states, each sooner or later, took 17 s and a gigabyte."""
    turning = 0.9 * np.roll(np.eye(300), 1, axis=0)
    agent = Agent(db.LGDS(turning, np.eye(300), 1.0), np.eye(300)[:100])
    assert "own" not in agent.problem.constants
    assert len(set(played(agent))) > 5


def test_arms_that_only_contexts_tell_apart():
    """Without its context every arm is zero; an agent plays what a simulation plays."""
    model = db.LGDS(0.95 * np.eye(2), 0.1 * np.eye(2), 0.5)
    system = db.System(model, np.zeros((2, 2)), ["a", "b"], {"price": np.eye(2)})
    agent = Agent(system)
    assert agent.ask(context={"price": 1.0}).bonus > 0.1
    states = {"price": [1.0, 2.0]}
    constants, _ = agent.policy.prepare(model, np.ones((2, 7, 2)), 1000)  # as a simulation does
    for name, value in constants.items():
        np.testing.assert_array_equal(agent.problem.constants[name], value)
    assert Agent(system, compiled=True).ask(context=states) == Agent(system).ask(context=states)


def test_names_alone():
    agent = Agent(names=["a", "b"], refit=Refit(after=30, background=False))
    played(agent, rounds=40)
    assert agent.policy.name == PREFERRED
    assert set(played(agent)) <= {"a", "b"}
