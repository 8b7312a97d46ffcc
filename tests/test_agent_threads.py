"""One agent, many threads; and refits that do not block decisions."""

import dataclasses
import random
import threading
import time

import numpy as np
import pytest

from driftbandit import LGDS, Agent, InvalidInput, Refit, families, policies
from driftbandit.agent import refitting

MODEL, ARMS = families.sample("gaussian", n_states=3, n_arms=4, seed=3)[0]
LEARNED = LGDS(np.diag([0.9, 0.5, 0.2]), np.eye(3), 0.5)


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


class Teacher:
    """Stands for the fit: it waits until it is let go."""

    def __init__(self, result=LEARNED):
        self.begun, self.go, self.logs, self.result = (
            threading.Event(),
            threading.Event(),
            [],
            result,
        )

    def __call__(self, entries, arms, options, start, seed):
        self.logs.append([entry.round for entry in entries])
        self.begun.set()
        assert self.go.wait(30)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result, arms


@pytest.fixture
def teacher(monkeypatch):
    one = Teacher()
    monkeypatch.setattr(refitting, "learned", one)
    yield one
    one.go.set()


def rounds_of(agent, count, seed=0):
    rng = random.Random(seed + agent.round)
    for _ in range(count):
        agent.tell(agent.ask(), rng.gauss(0, 1))


def refolded(agent):
    """An agent that was told the same with the learned model from the start."""
    other = Agent(LEARNED, ARMS, window=agent.window)
    for entry in [*agent._history.log, *agent._history.ledger]:
        other.tell(other.ask(arms=[entry.arm], round=entry.round), entry.reward)
    return other


def test_a_refit_does_not_block(teacher):
    """Decisions go on with the old model, and then with the new one and all that came between."""
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20))
    rounds_of(agent, 26)
    assert teacher.begun.wait(30)
    assert not agent.wait_for_refit(timeout=0)
    rounds_of(agent, 150)  # the model is still being learned
    assert agent.model is MODEL
    teacher.go.set()
    assert agent.wait_for_refit()
    assert agent.model is LEARNED
    assert teacher.logs == [list(range(20))]
    other = refolded(agent)
    assert agent._history.ledger.round == other._history.ledger.round == 169
    for value, expected in zip(agent.state, other.state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)
    assert agent._history.until_refit == 20 - 150  # it is due again
    rounds_of(agent, 1)
    agent.wait_for_refit()
    assert len(teacher.logs) == 2


def test_a_saved_agent_learns_again(teacher):
    """What is under way is not stored, and is due at once where the agent goes on."""
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20))
    rounds_of(agent, 30)
    assert teacher.begun.wait(30)
    other = Agent.from_json(agent.to_json())
    assert other.to_json() == agent.to_json()
    assert other.wait_for_refit()  # there is none
    rounds_of(other, 1)
    teacher.go.set()
    assert other.wait_for_refit()
    assert agent.wait_for_refit()
    assert [len(log) for log in teacher.logs] == [20, 25]
    np.testing.assert_array_equal(other.model.transition, LEARNED.transition)


def test_a_refit_in_the_background_that_fails(monkeypatch, caplog):
    teacher = Teacher(RuntimeError("no memory left"))
    teacher.go.set()
    monkeypatch.setattr(refitting, "learned", teacher)
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20))
    rounds_of(agent, 26)
    assert agent.wait_for_refit()
    rounds_of(agent, 10)
    assert agent.model is MODEL
    assert agent.refit_failure == "no memory left"
    assert "no memory left" in caplog.text
    assert len(teacher.logs) == 1
    assert agent._history.until_refit == 10
    with pytest.raises(RuntimeError, match="no memory left"):
        agent.refit()


@pytest.mark.parametrize("change", ["model", "arms"])
def test_what_is_being_learned_is_dropped_when_the_agent_changes(teacher, change):
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20))
    rounds_of(agent, 26)
    assert teacher.begun.wait(30)
    task = agent._history.refit_task
    if change == "model":
        agent.replace_model(dataclasses.replace(MODEL, reward_std=2.0))
    else:
        agent.add_arm("new", [1.0, 0.0, 0.0])
    kept = agent.model
    teacher.go.set()
    assert task.done.wait(30)
    assert agent.model is kept
    assert agent.refit_failure is None
    rounds_of(agent, 19)
    agent.wait_for_refit()
    assert (agent.model is LEARNED) is (change == "arms")  # it was due, and began again
    rounds_of(agent, 1)
    agent.wait_for_refit()
    assert agent.model is LEARNED


def test_a_refit_that_was_dropped_does_not_say_why_it_failed(teacher, caplog):
    teacher.result = RuntimeError("no memory left")
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20))
    rounds_of(agent, 26)
    assert teacher.begun.wait(30)
    task = agent._history.refit_task
    agent.replace_model(dataclasses.replace(MODEL, reward_std=2.0))
    teacher.go.set()
    assert task.done.wait(30)
    for thread in threading.enumerate():
        if thread.name == "driftbandit refit":
            thread.join()
    assert agent.refit_failure is None
    assert not caplog.text


def test_a_log_that_fails_while_a_model_is_learned(teacher):
    """What it would have settled is not in the new model's state either."""
    plain = policies.make("idea")

    def picky(belief, problem, arm, reward):
        if reward > 5:
            raise RuntimeError("too much")
        return plain.agent.observe(belief, problem, arm, reward)

    own = dataclasses.replace(plain, name="picky", agent=plain.agent._replace(observe=picky))
    agent = Agent(MODEL, ARMS, own, window=5, refit=Refit(after=20))
    rounds_of(agent, 26)
    assert teacher.begun.wait(30)
    rounds_of(agent, 3)
    rewards = [1.0] * 1500 + [9.0]  # a block of 1000 is settled before it fails
    with pytest.raises(RuntimeError, match="too much"):
        agent.tell_log({"arm": [0] * 1501, "reward": rewards})
    assert agent._history.settled_since_refit == len(agent._history.since_refit) == 3
    teacher.go.set()
    assert agent.wait_for_refit()
    assert agent._history.until_refit == 20 - 3
    for value, expected in zip(agent.state, refolded(agent).state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)
    rounds_of(agent, 3)


def test_a_model_that_explodes_is_not_swapped_in(monkeypatch):
    wild = LGDS(1.5 * np.eye(3), np.eye(3), 1.0, np.eye(3))
    monkeypatch.setattr(refitting, "learned", lambda entries, arms, *_: (wild, arms))
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20, stable=False))
    rounds_of(agent, 25)
    agent.advance(2000)
    agent.wait_for_refit()
    assert "has outgrown the largest number" in agent.refit_failure
    assert agent.model is MODEL
    assert agent.ask().round == 2025


def test_refit_by_hand_is_done_when_it_returns(teacher):
    """And another thread may ask meanwhile."""
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=1000))
    rounds_of(agent, 30)
    hand = threading.Thread(target=agent.refit)
    hand.start()
    assert teacher.begun.wait(30)
    rounds_of(agent, 10)
    assert agent.model is MODEL
    teacher.go.set()
    hand.join()
    assert agent.model is LEARNED
    for value, expected in zip(agent.state, refolded(agent).state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)


def test_waiting_makes_background_refits_repeatable():
    """The real fit, twice."""
    ends = []
    for _ in range(2):
        agent = Agent(None, ARMS, window=2, refit=Refit(after=25, iterations=5))
        for _ in range(35):
            rounds_of(agent, 1)
            agent.wait_for_refit()
        ends.append(agent.to_json())
    assert ends[0] == ends[1]
    assert agent._history.has_model


def test_background_is_checked():
    with pytest.raises(InvalidInput, match="background: is 1"):
        Refit(background=1)
