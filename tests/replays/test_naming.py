"""Which arms policies name along a log, against loops over an agent."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit.policies import make
from driftbandit.replays import naming
from driftbandit.replays.tasks import Task
from logged_plays import logged
from reward_tables import drifting

MODEL = db.LGDS(0.97 * np.eye(4), 0.1 * np.eye(4), 0.5)
ARMS = np.eye(4)


def log(kind="adaptive", gap=True):
    found = logged(drifting(seed=3) - 5, kind)
    if gap:
        found.times[30:] += 7
    return found


def plays(rows):
    return zip(rows.waits.tolist(), rows.arms.tolist(), rows.rewards.tolist(), strict=True)


@pytest.mark.parametrize("name", ["idea", "ucb", "oful", "discounted_ucb"])
def test_following_equals_an_agent_that_is_told_plays(name):
    rows = log()
    named = naming.choices(make(name), Task(rows, 20, MODEL, ARMS, 0.0))
    agent = db.Agent(MODEL, ARMS, name, rounds=87, window=0)
    expected = []
    for t, (wait, arm, reward) in enumerate(plays(rows)):
        agent.advance(wait - (t > 0))  # the play before advanced one round
        scores = [score.mean + score.bonus for score in agent.scores()]
        expected.append(int(np.argmax(scores)))
        agent.tell_play(arm, reward)
    assert named.tolist() == [expected[20:]]


@pytest.mark.parametrize("name", ["idea", "ucb"])
def test_rejection_from_uniform_play_equals_an_agent(name):
    """All chances are equal, so every match is accepted."""
    rows = log("uniform")
    [named] = naming.choices(make(name), Task(rows, 20, MODEL, ARMS, 0.0, "rejection", runs=1))
    agent = db.Agent(MODEL, ARMS, name, rounds=87, window=0)
    expected = []
    for t, (wait, arm, reward) in enumerate(plays(rows)):
        agent.advance(wait - (t > 0))
        decision = agent.ask()
        expected.append(decision.arm)
        if decision.arm == arm:
            agent.tell(decision, reward)
    assert named.tolist() == expected[20:]


def test_random_policies_draw_in_every_run():
    task = Task(log(), 0, MODEL, ARMS, 0.0, runs=5)
    named = naming.choices(make("thompson"), task)
    assert named.shape == (5, 80)
    assert not (named == named[0]).all()
    np.testing.assert_array_equal(named, naming.choices(make("thompson"), task))


def counting(choice, seen):
    """A policy that always names one arm and notes the arms of which it sees a reward."""

    def update(state, problem, arm, reward):
        seen.append(arm)
        return state

    return db.policies.Policy("counting", lambda *_: ({}, 0), lambda *_: choice, update)


def test_rejection_thins_to_the_smallest_chance():
    """Whatever a policy names, it sees a reward in the share p_min of the rounds."""
    rows = logged(np.zeros((4000, 4)), "uneven")
    assert naming.least_chance(rows) == pytest.approx(0.1)
    for arm in range(4):
        seen = []
        task = Task(rows, 0, MODEL, ARMS, 0.0, "rejection", runs=1, seed=arm)
        naming.choices(counting(arm, seen), task)
        assert set(seen) == {arm}
        assert abs(len(seen) - 400) < 4 * np.sqrt(4000 * 0.1 * 0.9)


def test_an_unknown_chance_teaches_nothing_by_rejection():
    """All known chances are equal, so every match of them is accepted."""
    rows, seen = log("uniform"), []
    rows.chances[10:70] = np.nan
    named = naming.choices(counting(1, seen), Task(rows, 0, MODEL, ARMS, 0.0, "rejection", runs=1))
    assert named.shape == (1, 20)  # what is not known does not count
    assert len(seen) == (rows.arms[np.isfinite(rows.chances)] == 1).sum() > 0


def test_an_arm_that_does_not_exist_is_refused():
    with pytest.raises(db.InvalidInput, match="arm of policy 'counting': is 4"):
        naming.choices(counting(4, []), Task(log(), 0, MODEL, ARMS, 0.0))
