"""Which arms policies name along a log, against loops over an agent."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit.policies import make
from driftbandit.replays import naming
from logged_plays import logged
from reward_tables import drifting

MODEL = db.LGDS(0.97 * np.eye(4), 0.1 * np.eye(4), 0.5)
ARMS = np.eye(4)


def nothing():
    pass


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
    who = naming.player(make(name), MODEL, ARMS, rows)
    named = naming.named(who, rows, 20, 1, 0, nothing)
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
    who = naming.player(make(name), MODEL, ARMS, rows)
    [named] = naming.named(who, rows, 20, 1, 0, nothing, 0.25)
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
    rows = log()
    who = naming.player(make("thompson"), MODEL, ARMS, rows)
    named = naming.named(who, rows, 0, 5, 0, nothing)
    assert named.shape == (5, 80)
    assert not (named == named[0]).all()
    np.testing.assert_array_equal(named, naming.named(who, rows, 0, 5, 0, nothing))


def counting(choice):
    """A policy that always names one arm and counts its rewards."""

    def update(state, problem, arm, reward):
        return state + 1

    return db.policies.Policy("counting", lambda *_: ({}, 0), lambda *_: choice, update)


def test_rejection_thins_to_the_smallest_chance(monkeypatch):
    """Whatever a policy names, it sees a reward in the share p_min of the rounds."""
    seen, learn = [], naming.Player.learn
    monkeypatch.setattr(
        naming.Player, "learn", lambda *given: seen.append(given[2]) or learn(*given)
    )
    rows = logged(np.zeros((4000, 4)), "uneven")
    assert naming.least_chance(rows) == pytest.approx(0.1)
    for arm in range(4):
        who = naming.player(counting(arm), MODEL, ARMS, rows)
        naming.named(who, rows, 0, 1, arm, nothing, 0.1)
    for plays in np.bincount(seen):
        assert abs(plays - 400) < 4 * np.sqrt(4000 * 0.1 * 0.9)


def test_an_unknown_chance_teaches_nothing_by_rejection():
    rows = log("uniform")
    rows.chances[1:] = np.nan
    who = naming.player(make("ucb"), MODEL, ARMS, rows)
    [named] = naming.named(who, rows, 1, 1, 0, nothing, 0.25)
    assert len(set(named.tolist())) == 1


def test_an_arm_that_does_not_exist_is_refused():
    rows = log()
    who = naming.player(counting(4), MODEL, ARMS, rows)
    with pytest.raises(db.InvalidInput, match="arm of policy 'counting': is 4"):
        naming.named(who, rows, 0, 1, 0, nothing)
