"""Models that start in a given round, since they contain what was learned from earlier ones."""

import dataclasses
import json

import numpy as np
import pytest

import driftbandit as db
from agent_histories import MODEL, SCORED, SYSTEM, assert_same
from driftbandit import kalman
from driftbandit.agent.stored import checksum

FIRST = 899
BELIEF = {"initial_mean": np.array([1.0, -2.0, 0.5]), "initial_cov": 0.1 * np.eye(3)}
LEARNED = dataclasses.replace(SYSTEM, model=dataclasses.replace(MODEL, **BELIEF), first_round=FIRST)
PLAIN = dataclasses.replace(LEARNED, first_round=None)


def test_the_first_question_is_in_the_first_round():
    agent = db.Agent(LEARNED)
    assert agent.round == FIRST
    assert agent.ask() == db.Agent(PLAIN).ask(round=FIRST)
    assert agent.round == FIRST + 1


@pytest.mark.parametrize("name", SCORED)
def test_a_later_first_question_lets_the_state_move(name):
    agent, plain = db.Agent(LEARNED, policy=name), db.Agent(PLAIN, policy=name)
    plain.ask(round=FIRST)  # fixes where its time begins
    assert agent.scores(round=911) == plain.scores(round=911)
    agent.ask(round=911)
    plain.ask(round=911)
    assert agent.scores() == plain.scores()


def test_what_is_known_of_a_later_round_is_less():
    later = kalman.advance(kalman.prior(LEARNED.model), LEARNED.model, 12)
    found = [score.mean for score in db.Agent(LEARNED).scores(round=911)]
    np.testing.assert_allclose(found, SYSTEM.arms @ later.mean)
    untouched = [score.mean for score in db.Agent(PLAIN).scores(round=911)]  # any may be its first
    np.testing.assert_allclose(untouched, SYSTEM.arms @ BELIEF["initial_mean"])


def test_later_plays_are_told_as_ever():
    agent, plain = db.Agent(LEARNED, window=3), db.Agent(PLAIN, window=3)
    plain.advance(FIRST)
    plain._history.base = plain._history.ledger.round = FIRST
    log = [(FIRST + t, "left", 0.1 * t) for t in range(10)]
    assert agent.tell_log(log) == plain.tell_log(log) == {"learned": 10}
    assert_same(agent, plain)
    assert agent.tell_play("right", 1.0, round=FIRST) == "learned"  # late, but all is still kept


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda one: one.tell_log([(0, "left", 1.0), (898, "left", 1.0)]),
            "log: holds rounds 0 to 898, but the model was learned from the rounds before 899, in "
            "which it starts; tell only rounds from 899 on, or make the agent of start_system",
        ),
        (
            lambda one: one.tell_log([(0, "left", 1.0), (950, "left", 1.0)]),
            "log: holds rounds 0 to 950, but the model was learned from the rounds before 899, in "
            "which it starts; tell only rounds from 899 on, or make the agent of start_system",
        ),
        (
            lambda one: one.tell_play("left", 1.0, round=898),
            "round: is 898, but the model was learned from the rounds before 899, in which it "
            "starts; tell only rounds from 899 on, or make the agent of start_system",
        ),
        (
            lambda one: one.ask(round=3),
            "round: is 3, but the model starts in round 899; give this round or a later one",
        ),
    ],
)
@pytest.mark.parametrize("played", [0, 5])
def test_earlier_rounds_are_refused(ask, said, played):
    agent = db.Agent(LEARNED, window=2)
    for _ in range(played):
        agent.tell(agent.ask(), 0.5)
    for one in (agent, db.Agent.from_json(agent.to_json())):
        before = one.to_json()
        with pytest.raises(db.InvalidInput) as caught:
            ask(one)
        if not (played and "is 3" in said):  # by then the agent is in a later round
            assert str(caught.value) == said
        assert one.to_json() == before


def test_a_stored_agent_keeps_its_first_round_and_older_files_have_none():
    agent = db.Agent(LEARNED)
    again = db.Agent.from_json(agent.to_json())
    assert (again.round, again.ask(round=911)) == (FIRST, agent.ask(round=911))
    assert again.to_json() == agent.to_json()
    assert '"start"' not in db.Agent(PLAIN).to_json()
    stored = json.loads(agent.to_json())
    for wrong in ("soon", 5000):
        inside = stored["agent"] | {"start": wrong}
        text = json.dumps(stored | {"agent": inside, "checksum": checksum(json.dumps(inside))})
        with pytest.raises(db.InvalidInput):
            db.Agent.from_json(text)


@pytest.mark.parametrize("policy", ["idea", "discounted_linucb"])
def test_arms_may_come_and_go(policy):
    agent = db.Agent(LEARNED, policy=policy)
    agent.tell(agent.ask(), 1.0)
    agent.add_arm("new", [0.1, 0.2, 0.3])
    agent.remove_arm("left")
    with pytest.raises(db.InvalidInput, match="learned from the rounds before"):
        agent.tell_log([(0, "right", 1.0)])


def test_a_replaced_model_starts_in_its_own_first_round():
    agent = db.Agent(SYSTEM, window=5)
    agent.tell_log([(t, "left", 0.01 * t) for t in range(910)])
    agent.ask(round=920)  # settles everything
    agent.replace_model(LEARNED)  # which knows all before round 899
    new = db.Agent(LEARNED, window=5)
    new.tell_log([(t, "left", 0.01 * t) for t in range(FIRST, 910)])
    one, other = agent.ask(round=921), new.ask(round=921)
    assert one[1:3] == other[1:3]
    np.testing.assert_allclose(one[3:], other[3:])
    with pytest.raises(db.InvalidInput, match="learned from the rounds before"):
        agent.tell_log([(0, "right", 1.0)])
    agent.replace_model(PLAIN.model)  # another model, which has seen nothing
    assert agent.tell_play("right", 1.0, round=918) == "learned"


def test_a_model_that_contains_open_plays_is_not_taken():
    agent = db.Agent(SYSTEM)
    agent.tell_log([(t, "left", 0.01 * t) for t in range(FIRST)])
    with pytest.raises(db.InvalidInput) as caught:
        agent.replace_model(LEARNED)
    assert str(caught.value) == (
        "system: the first round is 899, and the agent goes on from round 798; "
        "give start_system with a start of 798 or before, or make a new agent"
    )
    with pytest.raises(db.InvalidInput, match="and the agent goes on from round 0"):
        db.Agent(SYSTEM).replace_model(LEARNED)
    agent.replace_model(LEARNED, start=0)  # whoever says when, is believed


def test_a_refit_knows_only_the_own_log():
    agent = db.Agent(LEARNED, window=0, refit=db.Refit(after=30, iterations=3, background=False))
    rng = np.random.default_rng(0)
    for _ in range(40):
        agent.tell(agent.ask(), rng.standard_normal())
    assert agent.round == FIRST + 40
    assert agent.refit_failure is None
    assert agent._history.start is None


def test_a_trace_counts_from_zero():
    one, other = db.trace(LEARNED, rounds=10), db.trace(PLAIN, rounds=10)
    assert one.agent.round == 10
    np.testing.assert_array_equal(one.chosen, other.chosen)
