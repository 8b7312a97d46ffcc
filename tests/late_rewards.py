"""Agents that are told their rewards late, in any order, or never."""

import dataclasses
import random

import numpy as np

from driftbandit import Agent
from driftbandit.policies import make


def assert_same(state, other):
    """Bit for bit."""
    assert type(state) is type(other)
    for value, expected in zip(state, other, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)


def told_by(agent, rounds, rewards, rng):
    """Ask in these rounds and tell each reward within the window, at random or, without, at once.

    rewards[i] is decision i's, or all arms'; None: it never comes. What an agent learns must not
    depend on who it is told by, so it may change hands on the way.
    """
    waiting = []
    for number, now in enumerate(rounds):
        early = [one for one in waiting if one.round + agent.window >= now and rng.random() < 0.7]
        due = [one for one in waiting if one not in early]
        for one in rng.sample(due, len(due)):
            assert agent.tell(one, rewards[one.id]) == "learned"
        waiting = early
        if rng.random() < 0.1:
            agent = Agent.from_json(agent.to_json(), agent.policy)
        decision = agent.ask(round=now)
        if rewards[number] is not None:
            waiting.append(decision)
    for one in rng.sample(waiting, len(waiting)):
        assert agent.tell(one, rewards[one.id]) == "learned"
    return agent


class AtOnce(random.Random):
    """Leaves nothing to chance: nobody waits, and everything is in order."""

    def random(self):
        return 1.0

    def sample(self, population, k):
        return list(population)


def scripted(name, arms):
    """The policy, but for its choices: these are given."""
    script = iter(arms)
    return dataclasses.replace(make(name), choose=lambda state, problem, noise: next(script))
