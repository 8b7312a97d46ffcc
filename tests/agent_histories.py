"""A system with named arms, and agents that know a history of it."""

import numpy as np

from driftbandit import LGDS, System, families, policies

MODEL, ARMS = families.sample("gaussian", n_states=3, n_arms=4, seed=3)[0]
NAMES = ("left", "right", "both", "none")
SYSTEM = System(MODEL, ARMS, NAMES)
WALK = LGDS(np.eye(3), 0.1 * np.eye(3), 0.5, np.diag([1.0, 2.0, 3.0]))
SCORED = [n for n in policies.available() if n not in ("rexp3", "kalman_oracle")]


def history(rows=50, seed=0, first=0, gap=1):
    """Rounds, arms and rewards."""
    rng = np.random.default_rng(seed)
    rounds = first + gap * np.arange(rows)
    arms = [NAMES[i] for i in rng.integers(4, size=rows)]
    return rounds.tolist(), arms, rng.standard_normal(rows).tolist()


def asked(agent, rounds, arms, rewards):
    """The same as decisions of the agent's own."""
    for now, arm, reward in zip(rounds, arms, rewards, strict=True):
        agent.tell(agent.ask(arms=[arm], round=now), reward)
    return agent


def assert_same(agent, other):
    assert (agent.round, agent._history.now) == (other.round, other._history.now)
    for value, expected in zip(agent.state, other.state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)
