"""The random walk that an agent without a model starts from takes its size from first rewards."""

import hashlib
import json
import random

import numpy as np
import pytest

from driftbandit import Agent, Refit
from driftbandit.agent.first_rewards import EXTREME, random_walk, size_of
from late_rewards import AtOnce, assert_same, scripted, told_by

NEVER = Refit(after=5000)
NAMES = ["a", "b", "c"]


def paid(agent, rewards):
    for reward in rewards:
        agent.tell(agent.ask(), reward)
    return agent


@pytest.mark.parametrize("unit", [0.01, 1.0, 5000.0])
def test_the_unit_of_rewards_does_not_matter(unit):
    """Equal decisions in cents and in thousands; from the first reward on, also equal beliefs."""
    rng, agents = np.random.default_rng(0), [Agent(names=NAMES, refit=NEVER) for _ in range(2)]
    means = np.array([0.2, 0.5, 0.8])
    for _ in range(90):
        decisions = [agent.ask() for agent in agents]
        assert decisions[0].arm == decisions[1].arm
        reward = means[NAMES.index(decisions[0].arm)] + 0.1 * rng.standard_normal()
        for agent, decision, scale in zip(agents, decisions, (1.0, unit), strict=True):
            agent.tell(decision, scale * reward)
        plain, other = (agent.state.mean for agent in agents)
        np.testing.assert_allclose(other, unit * plain, rtol=1e-6)
    assert agents[0].ask().arm == "c"


def test_revenues_in_the_thousands_are_explored():
    """With a fixed scale of 1, the first arm seemed best for ever."""
    agent, means, plays = Agent(names=NAMES, refit=NEVER), {"a": 1000, "b": 1300, "c": 2000}, []
    for _ in range(60):
        decision = agent.ask()
        plays.append(decision.arm)
        agent.tell(decision, means[decision.arm])
    assert set(plays) == set(NAMES)
    assert plays[-20:].count("c") > 15  # and now and then another, which may have drifted


def test_the_size_of_clicks():
    agent = paid(Agent(names=NAMES, refit=NEVER), [0.0] * 10)
    assert agent.model == random_walk(np.eye(3))  # nothing tells how large a click is
    paid(agent, [1.0] + [0.0] * 9)
    expected = random_walk(np.eye(3), 2 * np.sqrt((15 / 16 + 1 / 16) / 17), 1 / 16)
    np.testing.assert_allclose(agent.model.reward_std, expected.reward_std)
    np.testing.assert_allclose(agent.model.initial_mean, [1 / 16] * 3)


@pytest.mark.parametrize("reward", [0.0, 1.1 * EXTREME, -1e-80])
def test_rewards_without_a_size(reward):
    assert size_of([reward], centered=True) is None
    agent = paid(Agent(names=NAMES, refit=NEVER), [reward])
    assert agent.model == random_walk(np.eye(3))


def test_a_given_scale_stays():
    agent = paid(Agent(names=NAMES, refit=Refit(after=5000, scale=3.0)), [100.0] * 5)
    assert agent.model == random_walk(np.eye(3), 3.0)


def test_features_that_arms_share_start_from_zero():
    agent = paid(Agent(None, [[1.0, 0.0], [0.6, 0.8]], refit=NEVER), [30.0])
    np.testing.assert_allclose(agent.model.reward_std, 60 / np.sqrt(2))
    assert agent.model.initial_mean is None


@pytest.mark.parametrize("length", [7, 30, 100, 200])
@pytest.mark.parametrize("seed", [1, 2])
def test_in_any_order(length, seed):
    """The same state, bit for bit, with late and missing rewards, and stored agents go on alike."""
    rng = random.Random(seed)
    played = [rng.randrange(3) for _ in range(length)]
    rewards = [None if t % 7 in (2, 3) else rng.gauss(900, 100) for t in range(length)]
    ends = [
        told_by(
            Agent(names=[0, 1, 2], policy=scripted("idea", played), window=10, refit=NEVER),
            range(length),
            rewards,
            chance,
        )
        for chance in (AtOnce(), rng)
    ]
    assert_same(ends[0].state, ends[1].state)
    assert ends[0].to_json() == ends[1].to_json()
    assert (ends[0]._history.silent is None) is (length >= 200)


def test_stored_and_loaded():
    """At any time; an older file has a scale, and keeps it."""
    rewards = np.random.default_rng(3).normal(50, 5, 120)
    agent = Agent(names=NAMES, window=20, refit=NEVER)
    other = agent
    for reward in rewards:
        other = Agent.from_json(other.to_json())
        assert other.ask().arm == (decision := agent.ask()).arm
        assert other.tell(decision, reward) == agent.tell(decision, reward) == "learned"
        assert other.to_json() == agent.to_json()
    whole = json.loads(paid(Agent(names=NAMES, refit=NEVER), [5.0]).to_json())
    del whole["agent"]["guess"], whole["agent"]["refit"]["check"]
    whole["agent"]["refit"]["scale"] = 1.0
    whole["checksum"] = hashlib.sha256(json.dumps(whole["agent"]).encode()).hexdigest()
    old = Agent.from_json(json.dumps(whole))
    before = old.model
    assert paid(old, [900.0] * 10).model is before
    assert old.refit_options.check is False


def test_arms_that_are_added_and_removed_share_the_size():
    """As if the new arm had been there from the start."""
    agent, other = Agent(names=["a", "b"], refit=NEVER), Agent(names=NAMES, refit=NEVER)
    for place, (arm, reward) in enumerate(
        [("a", 900.0), ("b", 1000.0), ("a", 910.0), ("b", 990.0)]
    ):
        if place == 2:
            agent.add_arm("c")
        for one in (agent, other):
            one.tell(one.ask(arms=[arm]), reward)
    np.testing.assert_allclose(agent.state.mean, other.state.mean)
    assert agent.model == other.model
    agent.remove_arm("a")
    paid(agent, [950.0] * 12)
    assert agent._history.size.mean == pytest.approx(950.0, abs=20)
    assert {score.arm for score in agent.scores()} == {"b", "c"}
