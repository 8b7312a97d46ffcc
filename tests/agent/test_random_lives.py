"""The online engine against a plain list of decisions and rewards, over random lives of an agent.

The list is folded from scratch with the textbook's filter at every check; rewards come in order,
late, twice, wrongly, never, or too late; the agent is stored, brought back, and killed.
"""

import copy
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import naive
from driftbandit import LGDS, Agent, InvalidInput, errors
from driftbandit.io import atomic

TRANSITION = np.array([[0.9, 0.3], [-0.2, 0.7]])
PROCESS = np.array([[1.0, 0.4], [0.4, 0.5]])
STD = 0.5
MODEL = LGDS(TRANSITION, PROCESS, STD)
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, -1.5]])
PRIOR = np.zeros(2), naive.stationary_cov(TRANSITION, PROCESS)
STILL = np.eye(2), np.zeros((2, 2))


class Played:
    """One decision, or somebody else's play, as the list knows it."""

    def __init__(self, decision, row, round=None):
        self.decision, self.row = decision, row
        self.round = decision.round if round is None else round
        self.reward = None


class Life:
    """What was decided and paid."""

    def __init__(self):
        self.played = []
        self.round = 0  # of the next question
        self.now = 0
        self.waited = False  # whether time passed before anything was played

    def ours(self):
        return [one for one in self.played if one.decision is not None]

    def belief(self, round):
        """The textbook's, in a round: correct for rewards that are known, predict between them."""
        (mean, cov), then = PRIOR, 0
        for one in self.played:
            mean, cov = predicted(mean, cov, one.round - then)
            then = one.round
            if one.reward is not None:
                mean, cov = naive.kalman_step(mean, cov, *STILL, STD, one.row, one.reward)
        return predicted(mean, cov, round - then)


def predicted(mean, cov, rounds):
    power = np.linalg.matrix_power(TRANSITION, rounds)
    return power @ mean, naive.state_cov(TRANSITION, PROCESS, cov, rounds)


def assert_near(value, expected):
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)


PLACES = st.integers(0, 99)
REWARDS = st.floats(-20, 20)
NEW = st.lists(st.sampled_from([-2.0, -0.3, 0.5, 1.0]), min_size=2, max_size=2)
OFFERS = st.one_of(
    st.none(),
    st.lists(st.integers(0, 2), min_size=1, max_size=3),
    st.lists(NEW, min_size=1, max_size=3),
)


class AgentMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "agent.json"

    @initialize(window=st.sampled_from([0, 1, 3, 8, 100]))
    def begin(self, window):
        self.window = window
        self.agent, self.life = Agent(MODEL, ARMS, "idea", window=window), Life()
        self.saved = None

    # Asking.

    def ask(self, offer, round, given=None):
        decision = self.agent.ask(offer, round=given)
        life = self.life
        assert (decision.id, decision.round) == (len(life.ours()), round)
        rows = ARMS if offer is None else np.array(offer)
        numbers = range(3)
        if rows.ndim == 1:
            numbers, rows = offer, ARMS[offer]
        elif offer is not None:
            numbers = range(len(offer))
        mean, cov = life.belief(round)
        bonus = naive.bonus_idea(cov, TRANSITION, PROCESS, STD, rows)
        place = list(numbers).index(decision.arm)
        expected = rows @ mean
        assert expected[place] + bonus[place] >= (expected + bonus).max() - 1e-9
        row = rows[place]
        assert_near(decision.mean, expected[place])
        assert_near(decision.bonus, bonus[place])
        assert_near(decision.uncertainty, np.sqrt(row @ cov @ row))
        life.played.append(Played(decision, row))
        life.now, life.round = round, round + 1

    @rule(offer=OFFERS)
    def ask_next(self, offer):
        self.ask(offer, self.life.round)

    @rule(offer=OFFERS)
    def ask_again(self, offer):
        """In the same round."""
        self.ask(offer, self.life.now, self.life.now)

    @rule(offer=OFFERS, gap=st.integers(1, 4))
    def ask_later(self, offer, gap):
        self.ask(offer, self.life.now + gap, self.life.now + gap)

    @rule(rounds=st.integers(1, 3))
    def advance(self, rounds):
        self.agent.advance(rounds)
        self.life.waited |= not self.life.played
        self.life.round += rounds
        self.life.now = self.life.round

    @precondition(lambda self: self.life.now)
    @rule(place=PLACES)
    def ask_before(self, place):
        """In the past."""
        with pytest.raises(InvalidInput, match="round"):
            self.agent.ask(round=place % self.life.now)

    # Telling.

    def open(self, told):
        """Decisions inside the window with a reward, or without."""
        return [
            one
            for one in self.life.ours()
            if one.round >= self.life.now - self.window and (one.reward is not None) is told
        ]

    def late(self):
        return [one for one in self.life.ours() if one.round < self.life.now - self.window]

    def tell(self, one, reward, by_number=False):
        named = one.decision.id if by_number else one.decision
        assert self.agent.tell(named, reward) == "learned"
        one.reward = reward

    @precondition(lambda self: self.open(False))
    @rule(reward=REWARDS)
    def tell_in_order(self, reward):
        self.tell(self.open(False)[0], reward)

    @precondition(lambda self: self.open(False))
    @rule(place=PLACES, reward=REWARDS, by_number=st.booleans())
    def tell_any(self, place, reward, by_number):
        waiting = self.open(False)
        self.tell(waiting[place % len(waiting)], reward, by_number)

    @rule(offer=OFFERS, reward=REWARDS)
    def play(self, offer, reward):
        """A round as it should be."""
        self.ask(offer, self.life.round)
        self.tell(self.life.ours()[-1], reward)

    @precondition(lambda self: self.life.round)
    @rule(arm=st.integers(0, 2), reward=REWARDS, gap=st.integers(-4, 2))
    def another_plays(self, arm, reward, gap):
        """Before, in or after the present round, inside the window."""
        life = self.life
        round = max(life.now + gap, life.now - self.window, 0)
        assert self.agent.tell_play(arm, reward, round=round) == "learned"
        place = sum(one.round <= round for one in life.played)
        life.played.insert(place, Played(None, ARMS[arm], round))
        life.played[place].reward = reward
        life.now, life.round = max(life.now, round), max(life.round, round + 1)

    @rule(count=st.integers(1, 3), reward=REWARDS)
    def ask_many(self, count, reward):
        """Different arms in the next round, of which the first is told."""
        life, first = self.life, len(self.life.ours())
        found = self.agent.ask_many(count)
        assert [one.id for one in found] == list(range(first, first + count))
        assert {one.round for one in found} == {life.round}
        assert len({one.arm for one in found}) == count
        life.played.extend(Played(one, ARMS[one.arm]) for one in found)
        life.now, life.round = life.round, life.round + 1
        self.tell(life.played[-count], reward)

    @precondition(lambda self: self.open(False))
    @rule(seed=st.integers(0, 99))
    def catch_up(self, seed):
        """All that are waited for, in any order."""
        waiting, rng = self.open(False), random.Random(seed)
        for one in rng.sample(waiting, len(waiting)):
            self.tell(one, rng.gauss(0, 3))

    @precondition(lambda self: self.open(False))
    @rule(place=PLACES)
    def tell_nothing(self, place):
        waiting = self.open(False)
        assert self.agent.tell(waiting[place % len(waiting)].decision, None) == "missing"

    @precondition(lambda self: self.open(True))
    @rule(place=PLACES)
    def tell_twice(self, place):
        told = self.open(True)
        one = told[place % len(told)]
        assert self.agent.tell(one.decision, one.reward) == "duplicate"

    @precondition(lambda self: self.open(True))
    @rule(place=PLACES, reward=st.one_of(st.none(), st.just(99.0)))
    def tell_otherwise(self, place, reward):
        told = self.open(True)
        with pytest.raises(InvalidInput, match="was told"):
            self.agent.tell(told[place % len(told)].decision, reward)

    @precondition(lambda self: self.late())
    @rule(place=PLACES, reward=st.one_of(st.none(), REWARDS))
    def tell_too_late(self, place, reward):
        late = self.late()
        assert self.agent.tell(late[place % len(late)].decision, reward) == "too late"

    # Storing.

    @rule()
    def save(self):
        self.agent.save(self.path)
        self.saved = copy.deepcopy(self.life)

    @precondition(lambda self: self.saved)
    @rule()
    def kill(self):
        """What was not saved is gone."""
        self.agent, self.life = Agent.load(self.path), copy.deepcopy(self.saved)

    @rule()
    def restore(self):
        before = self.agent.to_json()
        self.agent = Agent.from_json(before)
        assert self.agent.to_json() == before

    # Comparing.

    @rule()
    def compare(self):
        assert self.agent.round == self.life.round
        mean, cov = self.life.belief(self.life.round)
        assert_near(self.agent.state.mean, mean)
        assert_near(self.agent.state.cov, cov)

    def teardown(self):
        """Told the same at once and in order, another agent knows the same, bit for bit."""
        self.compare()
        other = Agent(MODEL, ARMS, "idea", window=self.window)
        if (
            self.life.waited and self.life.played and self.life.played[0].round
        ):  # else the prior is that of the first round
            other.advance(1)
        for one in self.life.played:
            decision = other.ask([one.row.tolist()], round=one.round)
            if one.reward is not None:
                other.tell(decision, one.reward)
        if other.round < self.life.round:
            other.advance(self.life.round - other.round)
        for value, expected in zip(other.state, self.agent.state, strict=True):
            np.testing.assert_array_equal(value, expected, strict=True)
        self.folder.cleanup()


LIVES = [(150, False), (30, True), pytest.param(500, False, marks=pytest.mark.nightly)]


@pytest.mark.parametrize(("lives", "compiled"), LIVES)
def test_lives_of_an_agent(monkeypatch, lives, compiled):
    """Of 50 steps each; files are written as ever, but do not wait for the disk."""
    if compiled:
        errors.require("compiled", "llvmlite", "jax")  # or the test is skipped
    monkeypatch.setitem(Agent.__init__.__kwdefaults__, "compiled", compiled)
    monkeypatch.setattr(atomic.os, "fsync", lambda handle: None)
    run_state_machine_as_test(
        AgentMachine,
        settings=settings(
            derandomize=True, max_examples=lives, stateful_step_count=50, deadline=None
        ),
    )
