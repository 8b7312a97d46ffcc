"""One agent, many threads."""

import random
import threading
import time

import numpy as np
import pytest

from driftbandit import Agent, families

MODEL, ARMS = families.sample("gaussian", n_states=3, n_arms=4, seed=3)[0]


def told_in_turn(agent, decisions, learned):
    """The same decisions, and what was learned of them, told in order in one thread."""
    for decision in decisions:
        twin = agent.ask(arms=[decision.arm], round=decision.round)
        assert (twin.id, twin.arm, twin.round) == (decision.id, decision.arm, decision.round)
        if decision.id in learned:
            assert agent.tell(twin, learned[decision.id]) == "learned"
    return agent


def play(agent, rounds, seed, decisions, learned, failures):
    """Ask, keep up to five decisions open, tell them in any order, some never."""
    rng, waiting = random.Random(seed), []
    try:
        for _ in range(rounds):
            waiting.append(agent.ask())
            decisions.append(waiting[-1])
            if rng.random() < 0.01:
                time.sleep(rng.random() * 1e-3)
            while waiting and (len(waiting) > 5 or rng.random() < 0.6):
                one = waiting.pop(rng.randrange(len(waiting)))
                reward = rng.gauss(0, 2)
                if rng.random() < 0.9 and agent.tell(one, reward) == "learned":
                    learned[one.id] = reward
    except BaseException as error:
        failures.append(error)
        raise


def played_by(agent, threads, rounds):
    decisions, learned, failures = [], {}, []
    running = [
        threading.Thread(target=play, args=(agent, rounds, seed, decisions, learned, failures))
        for seed in range(threads)
    ]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert not failures
    return sorted(decisions), learned


@pytest.mark.parametrize("rounds", [500, pytest.param(10**4, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("policy", ["idea", "sliding_window_ucb"])
def test_threads_leave_what_one_would(policy, rounds):
    """Every decision once, nothing lost, and the same state, bit for bit."""
    agent = Agent(MODEL, ARMS, policy, window=60)
    decisions, learned = played_by(agent, threads=8, rounds=rounds)
    assert [one.id for one in decisions] == list(range(8 * rounds))
    assert [one.round for one in decisions] == list(range(8 * rounds))
    assert len(learned) > 4 * rounds  # others came too late, or never
    twin = told_in_turn(Agent(MODEL, ARMS, policy, window=60), decisions, learned)
    assert twin.to_json() == agent.to_json()
    for value, expected in zip(twin.state, agent.state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)
