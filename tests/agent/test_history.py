"""Plays that somebody else chose."""

import contextlib
import dataclasses
import math
from collections import namedtuple

import numpy as np
import pytest

import naive
from agent_histories import ARMS, MODEL, NAMES, SCORED, SYSTEM, WALK, asked, assert_same, history
from driftbandit import LGDS, Agent, InvalidInput, Refit, System, kalman, policies
from driftbandit.agent import refitting
from driftbandit.agent.arms import ArmNames
from driftbandit.io.log_reader import read_log
from driftbandit.io.logs import Log, Sequence


@pytest.mark.parametrize("window", [0, 7, 100])
@pytest.mark.parametrize("name", SCORED)
def test_a_play_is_a_decision_that_was_told(name, window):
    """Bit for bit, whoever chose; and one by one as all at once."""
    plays = history()
    ours = asked(Agent(SYSTEM, policy=name, window=window), *plays)
    one_by_one = Agent(SYSTEM, policy=name, window=window)
    for now, arm, reward in zip(*plays, strict=True):
        assert one_by_one.tell_play(arm, reward, round=now) == "learned"
    at_once = Agent(SYSTEM, policy=name, window=window)
    assert at_once.tell_log(dict(zip(("round", "arm", "reward"), plays, strict=True))) == {
        "learned": 50
    }
    for agent in (one_by_one, at_once):
        assert_same(agent, ours)
        assert agent._history.decided == 0
    assert at_once.to_json() == one_by_one.to_json()
    back = Agent.from_json(at_once.to_json())
    assert back.to_json() == at_once.to_json()
    assert back.ask() == at_once.ask()


def test_the_filter_knows_what_others_played():
    """P5: against the textbook, with a pause and a play without reward."""
    agent = Agent(SYSTEM)
    mean, cov = np.zeros(3), naive.stationary_cov(MODEL.transition, MODEL.process_cov)
    for now, arm, reward in [(0, 1, 0.7), (1, 2, None), (2, 0, -0.3), (3, None, None), (4, 3, 1.2)]:
        if arm is None:
            agent.advance()
        else:
            told = "missing" if reward is None else "learned"
            assert agent.tell_play(NAMES[arm], reward) == told
        assert agent.round == now + 1
        if reward is None:
            mean = MODEL.transition @ mean
            cov = MODEL.transition @ cov @ MODEL.transition.T + MODEL.process_cov
        else:
            mean, cov = naive.kalman_step(
                mean, cov, MODEL.transition, MODEL.process_cov, MODEL.reward_std, ARMS[arm], reward
            )
    np.testing.assert_allclose(agent.state.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(agent.state.cov, cov, rtol=1e-9)


def test_plays_among_decisions():
    """In the past within the window: as if they had been told in the order of time."""
    agent, other = Agent(SYSTEM, window=5), Agent(SYSTEM, window=5)
    for now in range(12):
        one, two = agent.ask(arms=["both"]), other.ask(arms=["both"])
        agent.tell(one, 0.1 * now)
        other.tell(two, 0.1 * now)
        if now in (8, 10):
            assert other.tell_play("left", 2.0, round=now) == "learned"
    assert agent.tell_play("left", 2.0, round=10) == "learned"
    assert agent.tell_play("left", 2.0, round=8) == "learned"
    assert_same(agent, other)
    assert agent.tell(8, 0.1 * 8) == "duplicate"
    assert agent.tell(11, 0.1 * 11) == "duplicate"


@pytest.mark.parametrize("model", [MODEL, WALK], ids=["stationary", "started"])
def test_history_before_the_first_round(model):
    """Rounds below zero, told to a fresh agent or to one that has decided: the same belief."""
    rounds, arms, rewards = history(first=-50)
    log = list(zip(rounds, arms, rewards, strict=True))
    fresh = Agent(System(model, ARMS, NAMES), window=3)
    assert fresh.tell_log(log) == {"learned": 50}
    assert fresh.round == 0
    late = Agent(System(model, ARMS, NAMES), window=3)
    for agent in (fresh, late):
        for t in range(10):
            agent.tell(agent.ask(arms=["left"]), 0.1 * t)
    assert late.tell_log(log) == {"learned": 50}
    assert_same(fresh, late)
    # The prior is that of the history's first round.
    shifted = asked(Agent(System(model, ARMS, NAMES)), *history())
    for t in range(10):
        shifted.tell(shifted.ask(arms=["left"]), 0.1 * t)
    np.testing.assert_array_equal(fresh.state.mean, shifted.state.mean)
    np.testing.assert_array_equal(fresh.state.cov, shifted.state.cov)


def test_history_that_begins_late():
    """Unix time: a random walk's doubt does not grow from 1970 on."""
    agent, other = Agent(WALK, ARMS), Agent(WALK, ARMS)
    plays = [(0, 1, 0.5), (1, 2, 0.3)]
    assert agent.tell_log([(1_700_000_000 + t, arm, x) for t, arm, x in plays]) == {"learned": 2}
    other.tell_log(plays)
    np.testing.assert_array_equal(agent.state.cov, other.state.cov)
    assert agent.ask().round == 1_700_000_002


def test_too_late_once_the_log_is_not_whole():
    agent = Agent(SYSTEM, window=2, memory=5)
    for _ in range(6):
        agent.tell(agent.ask(), 1.0)
    assert agent.tell_play("left", 0.5, round=0) == "learned"  # all is known still
    for _ in range(6):
        agent.tell(agent.ask(), 1.0)
    before = agent.to_json()
    assert agent.tell_play("left", 0.5, round=0) == "too late"
    assert agent.tell_log([(0, "left", 1.0), (0, "right", math.nan)]) == {
        "missing": 1,
        "too late": 1,
    }
    assert agent.to_json() == before
    assert Agent.from_json(before).tell_play("left", 0.5, round=0) == "too late"


class Table:
    """A table as pandas has it: columns by name, without being a mapping."""

    def __init__(self, **columns):
        self.data, self.columns = columns, list(columns)

    def __getitem__(self, name):
        return np.array(self.data[name])


def test_logs_as_people_have_them():
    rounds, arms, rewards = history(20)
    rewards[3] = math.nan
    numbers = [NAMES.index(arm) for arm in arms]
    Row = namedtuple("Row", "round arm reward")
    forms = [
        {"round": rounds, "arm": arms, "reward": rewards, "city": ["Bonn"] * 20},
        {"round": np.array(rounds), "arm": np.array(arms), "reward": np.array(rewards)},
        {"arm": arms, "reward": rewards},
        Table(round=rounds, arm=arms, reward=rewards),
        zip(rounds, arms, rewards, strict=True),
        [Row(*row) for row in zip(rounds, arms, rewards, strict=True)][::-1],
        Log((Sequence(rounds, numbers, rewards),), NAMES),
        [Row(*row)._asdict() for row in zip(rounds, arms, rewards, strict=True)],
        [{"arm": arm, "reward": x} for arm, x in zip(arms, rewards, strict=True)],
    ]
    with contextlib.suppress(ImportError):  # the plain install has none
        import pandas

        forms += [
            pandas.DataFrame({"arm": arms, "reward": pandas.array(rewards, "Float64")}),
            zip(rounds, arms, [pandas.NA if math.isnan(x) else x for x in rewards], strict=True),
        ]
    ends = []
    for form in forms:
        agent = Agent(SYSTEM)
        assert agent.tell_log(form) == {"missing": 1, "learned": 19}
        ends.append(agent.to_json())
    assert len(set(ends)) == 1
    plain = Agent(MODEL, ARMS)
    plain.tell_log(Sequence(rounds, numbers, rewards))
    by_text = Agent(MODEL, ARMS)
    by_text.tell_log(Log((Sequence(rounds, numbers, rewards),), ("0", "1", "2", "3")))
    assert plain.to_json() == by_text.to_json()
    np.testing.assert_array_equal(plain.state.mean, agent.state.mean)
    assert agent.tell_log([]) == {}


def test_clicks_are_rewards():
    told = [
        lambda a, yes: a.tell(a.ask(arms=["left"]), yes),
        lambda a, yes: a.tell_play("left", yes),
        lambda a, yes: a.tell_log([(None, "left", yes)]),
        lambda a, yes: a.tell_log({"arm": ["left"], "reward": np.array([yes])}),
    ]
    for tell in told:
        for yes, no in ((True, False), (np.True_, np.False_)):
            agent, other = Agent(SYSTEM), Agent(SYSTEM)
            tell(agent, yes), tell(agent, no)
            tell(other, 1.0), tell(other, 0.0)
            assert agent.to_json() == other.to_json()


def test_arms_of_files_are_found_by_text_at_once():
    names = [*range(1, 4), "05"]
    agent = Agent(System(MODEL, ARMS, names))
    assert agent.tell_log([(0, "3", 1.0), (1, "05", 1.0)]) == {"learned": 2}
    assert [entry.arm for entry in agent._history.ledger] == [2, 3]
    for arms in (agent, Agent(MODEL, ARMS)):
        for text in ("02", "5", "9" * 5000, "٣", ""):
            with pytest.raises(InvalidInput, match="is not the name of an arm"):
                arms.tell_log([(0, text, 1.0)])

    many = [f"arm {i}" for i in range(3000)]
    found = ArmNames([*many, 7], 3001)
    assert [found.row_in_log(name) for name in ("arm 0", "7", "arm 2999")] == [0, 3000, 2999]


WRONG = [
    ([{"arm": "left", "reward": 1.0}, {"arm": "left"}], "log: row 1 has no 'reward'"),
    ([(0, "left", 1.0), (1, "up", 1.0)], "log row 1: arm: 'up' is not the name of an arm"),
    ([(0, "left", 1.0), (1, "left", math.inf)], "log row 1: reward: is inf"),
    ([(0, "left", 1.0), (0.5, "left", 1.0)], "log row 1: round: 0.5"),
    ([(0, "left", 1.0), (0, "left")], "log: row 1 is"),
    ([(2**60, "left", 1.0)], "log row 0: round: is 1152921504606846976"),
    ({"arm": ["left"]}, "log: has no column 'reward'"),
    ({"arm": ["left"], "reward": [1.0, 2.0]}, "log: has columns of the lengths 1, 2"),
    ({"arm": "left", "reward": [1.0]}, "log: column arm is 'left'"),
    ("log.csv", "log.csv: cannot be read"),
    (b"log.csv", "log: is b'log.csv'"),
    (None, "log: is None"),
]


@pytest.mark.parametrize(("log", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_bad_log_teaches_nothing(log, message):
    agent = Agent(SYSTEM)
    before = agent.to_json()
    with pytest.raises(InvalidInput, match=message):
        agent.tell_log(log)
    assert agent.to_json() == before


def test_a_policy_that_fails_on_a_log_has_learned_nothing():
    plain = policies.make("idea")

    def picky(belief, problem, arm, reward):
        if reward > 5:
            raise RuntimeError("too much")
        return plain.agent.observe(belief, problem, arm, reward)

    agent = Agent(
        SYSTEM,
        policy=dataclasses.replace(plain, name="picky", agent=plain.agent._replace(observe=picky)),
        window=3,
    )
    asked(agent, *history(10))
    before, state = agent.to_json(), agent.state
    with pytest.raises(RuntimeError, match="too much"):
        agent.tell_log([(t, "left", float(t - 20)) for t in range(5, 30)])
    assert agent.to_json() == before
    np.testing.assert_array_equal(agent.state.cov, state.cov)


def test_features_and_vectors_that_others_played():
    agent = Agent(SYSTEM)
    assert agent.tell_play("guest", 1.0, features=[1.0, 2.0, 0.0]) == "learned"
    belief = kalman.observe(kalman.prior(MODEL), MODEL, np.array([1.0, 2.0, 0.0]), 1.0)
    np.testing.assert_array_equal(agent.state.mean, kalman.advance(belief, MODEL).mean)
    assert Agent.from_json(agent.to_json()).to_json() == agent.to_json()
    round_one = Agent(MODEL, "sphere")
    assert round_one.tell_play([0.6, 0.8, 0.0], 1.0) == "learned"
    assert Agent.from_json(round_one.to_json()).to_json() == round_one.to_json()
    with pytest.raises(InvalidInput, match="arm: has length 5"):
        round_one.tell_play([3.0, 4.0, 0.0], 1.0)


def test_a_log_is_learned_from_once(monkeypatch):
    """A refit at its end, not one on the way after every 20 rewards."""
    logs = []

    def learned(entries, arms, options, start):
        logs.append(len(entries))
        return MODEL, arms

    monkeypatch.setattr(refitting, "learned", learned)
    refit = Refit(after=20, background=False, check=False)
    agent = Agent(None, ARMS, names=NAMES, window=5, refit=refit)
    agent.tell_log(zip(*history(200), strict=True))
    assert logs == [194]


def test_a_first_play_without_reward_lets_time_begin():
    """A turning state, as seasons have, is in phase: told at once as one by one."""
    turn = LGDS([[0.0, 1.0], [-1.0, 0.0]], 0.01 * np.eye(2), 1.0, 0.1 * np.eye(2), [1.0, 0.0])
    rows = System(turn, [[1.0, 0.0]], ["a"])
    at_once, one_by_one = Agent(rows), Agent(rows)
    assert at_once.tell_log({"arm": ["a", "a"], "reward": [None, 0.5]}) == {
        "missing": 1,
        "learned": 1,
    }
    assert one_by_one.tell_play("a", None) == "missing"
    assert one_by_one.tell_play("a", 0.5) == "learned"
    assert at_once.to_json() == one_by_one.to_json()


CALLED = {"round": "hour", "arm": "variant", "reward": "pay"}
TIMES = ["2024-01-31 09:00", "2024-01-31 11:00", "2024-01-31 12:00"]


def test_a_log_may_be_a_file_or_a_table_with_times_and_other_names(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"hour": TIMES, "variant": ["left", "right", "left"], "pay": [1.0, 2, 3]})
    path = tmp_path / "log.csv"
    table.to_csv(path, index=False)
    stamped = table.assign(hour=pd.to_datetime(table["hour"]))
    plain = Agent(SYSTEM)
    plain.tell_log([(0, "left", 1.0), (2, "right", 2.0), (3, "left", 3.0)])
    for form in (path, str(path), table, stamped, dict(table)):
        agent = Agent(SYSTEM)
        assert agent.tell_log(read_log(form, columns=CALLED)) == {"learned": 3}
        assert_same(agent, plain)
    for form in (table, stamped):
        agent = Agent(SYSTEM)
        agent.tell_log(form.rename(columns={name: role for role, name in CALLED.items()}))
        assert_same(agent, plain)
    halves = Agent(SYSTEM)
    halves.tell_log(read_log(path, columns=CALLED, every="30 minutes", zone="Europe/Berlin"))
    assert halves.round == 7


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (lambda a: a.tell_log("none.csv"), "none.csv: cannot be read"),
        (lambda a: a.tell_log({"variant": ["left"], "reward": [1.0]}), r"columns=\{\"arm\": "),
        (
            lambda a: a.tell_log([(TIMES[0], "left", 1.0)]),
            "row 0: round: .* times are for round_of, or read_log",
        ),
        (lambda a: a.tell_log(7), r"log: is 7; .* a path \(see read_log\)"),
        (
            lambda a: a.tell_log(Log((Sequence([0], [0], [1.0]),), (0,))),
            "0 is not the name of an arm",
        ),
    ],
)
def test_a_log_that_cannot_be_read_says_what_would_be(told, said):
    with pytest.raises(InvalidInput, match=said):
        told(Agent(SYSTEM))
