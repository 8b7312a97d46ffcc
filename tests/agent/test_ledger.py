"""Many decisions in a round: what need not stay open leaves memory, and nothing else changes."""

import random

import numpy as np
import pytest

from driftbandit import LGDS, Agent
from driftbandit.agent import history
from driftbandit.agent.ledger import room_for

MODEL = LGDS([[0.9, 0.3], [-0.2, 0.7]], [[1.0, 0.4], [0.4, 0.5]], 0.5)
ARMS = [[1.0, 0.0], [0.0, 1.0], [0.8, -1.5]]


def assert_same_state(agent, other):
    for value, expected in zip(agent.state, other.state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)


def played(agent, batches, size, share=1.0, seed=0):
    """Batches of which a share gets rewards; returns all decisions, and rewards by number."""
    rng, made, rewards = random.Random(seed), [], {}
    for _ in range(batches):
        batch = agent.ask_many(size, distinct=False)
        told = [(one, rng.gauss(0, 1)) for one in batch if rng.random() < share]
        rng.shuffle(told)
        assert set(agent.tell_many(told)) <= {"learned"}
        rewards |= {one.id: reward for one, reward in told}
        made += batch
    return made, rewards


def test_batches_with_rewards_leave_memory_long_before_the_window(monkeypatch):
    agent, patient = Agent(MODEL, ARMS), None
    made, _ = played(agent, 30, 200)
    assert agent.settled >= 30 * 200 - 200 - history.KEPT
    assert agent.in_window() == 6000 - agent.settled <= 1200
    assert agent.waiting() == 0
    with monkeypatch.context() as patch:
        patch.setattr(history, "KEPT", 10**9)
        patient = Agent(MODEL, ARMS)
        others, _ = played(patient, 30, 200)
        assert patient.in_window() == 6000
    assert made == others  # the same arms, means and bonuses, bit for bit
    assert_same_state(agent, patient)
    again = Agent.from_json(agent.to_json())
    assert again.settled == agent.settled
    assert again.ask() == agent.ask() == patient.ask()


def test_a_decision_without_a_reward_keeps_what_its_reward_can_change(monkeypatch):
    """Its reward comes 3000 decisions later, inside the window, and counts in its own round."""
    agent = Agent(MODEL, ARMS)
    monkeypatch.setattr(history, "KEPT", 50)
    first = agent.ask()
    made, rewards = played(agent, 30, 100, share=0.9)
    assert agent.settled == 0
    assert agent.tell(first, 7.0) == "learned"
    patient = Agent(MODEL, ARMS)
    patient.tell(patient.ask(), 7.0)
    for one in made:
        patient.record(one)
        if one.id in rewards:
            patient.tell(one, rewards[one.id])
    assert_same_state(agent, patient)
    for one in made:
        if one.id not in rewards:
            assert agent.tell(one, 0.1) == "learned"
    agent.ask()
    assert agent.settled >= 2900


def test_very_many_decisions_are_settled_even_if_one_waits(monkeypatch):
    monkeypatch.setattr(history, "MOST", 500)
    monkeypatch.setattr(history, "KEPT", 50)
    agent = Agent(MODEL, ARMS)
    first = agent.ask()
    played(agent, 12, 60)
    assert agent.in_window() <= 560
    assert agent.tell(first, 1.0) == "too late"


def test_one_decision_a_round_stays_for_the_whole_window(monkeypatch):
    """Whatever the limits of rounds with many decisions are."""
    monkeypatch.setattr(history, "MOST", 5)
    monkeypatch.setattr(history, "KEPT", 5)
    agent = Agent(MODEL, ARMS, window=40)
    made = []
    for _ in range(40):
        made.append(agent.ask())
        agent.tell(made[-1], 0.25)
    assert (agent.settled, agent.in_window(), agent.waiting()) == (0, 40, 0)
    assert agent.tell(made[0], 0.25) == "duplicate"


def test_large_states_leave_earlier(monkeypatch):
    monkeypatch.setattr("driftbandit.agent.ledger.MEMORY", 100 * 2 * (2 + 4 + 2 + 4) * 8)
    agent = Agent(MODEL, ARMS, window=10)
    assert room_for(agent.state) == 100
    played(agent, 30, 10)
    assert agent.in_window() <= 110


RECORDED = [(name, None) for name in ("idea", "thompson", "discounted_ucb", "random")]
RECORDED += [("idea", "widen"), ("thompson", "widen")]


@pytest.mark.parametrize(("policy", "on_alarm"), RECORDED)
def test_what_is_recorded_without_explaining_is_computed_later_and_the_same(
    policy, on_alarm, monkeypatch
):
    """The rewards of a copy come late; its states are computed only when they are needed."""
    monkeypatch.setattr(history, "KEPT", 10)
    options = {"policy": policy, "window": 30, "on_alarm": on_alarm}
    agent, copy = Agent(MODEL, ARMS, **options), Agent(MODEL, ARMS, **options)
    rng, waiting = random.Random(1), []
    for number in range(400):
        decisions = agent.ask_many(9 if number % 7 == 0 else 1, distinct=False)
        for decision in decisions:
            copy.record(decision, explain=False)
        waiting += decisions
        while len(waiting) > 20:
            one = waiting.pop(rng.randrange(len(waiting)))
            reward = rng.gauss(0, 6 if number > 200 else 1)
            assert agent.tell(one, reward) == copy.tell(one, reward)
        if number % 97 == 0:
            assert copy.to_json() == agent.to_json()
    assert copy.to_json() == agent.to_json()
    assert copy.ask() == agent.ask()
    assert agent.settled > agent.round  # several in a round, some of which left it early
    if on_alarm:
        assert agent.alarms
        assert agent.alarms == copy.alarms


def test_many_late_rewards_are_folded_at_once(monkeypatch):
    """Else a second server needs as long for them as all of them took one by one."""
    from driftbandit.agent import ledger

    agent = Agent(MODEL, ARMS, window=300)
    copy = Agent.from_json(agent.to_json())
    steps, observed = [0], ledger.observed

    def counted(*given):
        steps[0] += 1
        return observed(*given)

    made = [agent.ask() for _ in range(200)]
    for one in made:
        copy.record(one, explain=False)
    monkeypatch.setattr(ledger, "observed", counted)
    for late in range(200):
        decision = agent.ask()
        made.append(decision)
        copy.record(decision, explain=False)
        copy.tell(made[late], 0.5)
    assert steps[0] < 4 * 400  # 200 × 200 if every one were folded alone
    assert copy.state.mean.shape == (2,)
    assert steps[0] < 5 * 400


def test_waiting_decisions_are_counted_in_any_life():
    rng = random.Random(5)
    agent, waiting = Agent(MODEL, ARMS, window=6), {}
    for _ in range(300):
        what = rng.random()
        if what < 0.5:
            for one in agent.ask_many(rng.randrange(1, 4), distinct=False):
                waiting[one.id] = one
        elif what < 0.8 and waiting:
            one = waiting.pop(rng.choice(list(waiting)))
            assert agent.tell(one, rng.gauss(0, 1)) in ("learned", "too late")
        elif what < 0.85:
            agent.advance(rng.randrange(3))
        elif what < 0.9:
            agent.tell_play(rng.randrange(3), 1.0, round=max(0, agent.round - rng.randrange(3)))
        elif what < 0.95:
            agent = Agent.from_json(agent.to_json())
        later = agent.round + rng.randrange(4)
        inside = [one for one in waiting.values() if one.round >= later - 6]
        assert agent.waiting(later) == len(inside)
