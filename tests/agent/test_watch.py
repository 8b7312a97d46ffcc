"""The agent's own health, and what it does on an alarm: the same whenever rewards come."""

import hashlib
import json
import random

import numpy as np
import pytest

import naive
from driftbandit import LGDS, Agent, InvalidInput, Refit, System, monitor
from driftbandit.agent import refitting
from driftbandit.agent.watch import MEMORY, widened
from driftbandit.io.log_reader import as_log
from driftbandit.monitoring.surprises import surprises_of
from late_rewards import AtOnce, assert_same, scripted, told_by
from monitored import ARMS, MODEL, NAMES, NOISE, SYSTEM, played
from refusals import Case, assert_refused, each

TRANSITION, PROCESS = MODEL.transition, MODEL.process_cov


def rewards_of(seed, rounds, **changes):
    """Arms and rewards of random play, one a round."""
    log = played(seed, rounds, **changes)
    return [NAMES.index(name) for name in log["arm"]], list(log["reward"])


def lived(seed, rounds, rng, window=10, missing=False, changes=None, **options):
    arms, rewards = rewards_of(seed, rounds, **(changes or {}))
    if missing:
        rewards = [None if t % 7 == 3 else x for t, x in enumerate(rewards)]
    agent = Agent(SYSTEM, policy=scripted("idea", arms), window=window, **options)
    return told_by(agent, range(rounds), rewards, rng)


def test_surprises_are_those_of_the_log():
    """Of the settled rewards, in the same words as `monitor` without its view in hindsight."""
    agent = lived(1, 120, AtOnce(), window=20)
    log = as_log({name: column[:99] for name, column in played(1, 120).items()}, NAMES)
    found = surprises_of(SYSTEM, log)
    health = agent.health(level=0.05)
    np.testing.assert_allclose(health.surprises.values, found.values, rtol=1e-9)
    assert health.surprises.rounds.tolist() == found.rounds.tolist()
    names = [arm.name for arm in health.arms]
    assert [names[arm] for arm in health.surprises.arms] == list(played(1, 120)["arm"][:99])
    whole = monitor(SYSTEM, log, level=0.05)
    for name in ("mean square", "rounds", "arms", "outliers"):
        assert health.tests[name].value == pytest.approx(whole.tests[name].value)


@pytest.mark.parametrize("options", [{}, {"on_alarm": "widen"}])
def test_rewards_in_any_order(options):
    """Late, missing, stored on the way: the same surprises, charts and alarms, bit for bit."""
    ends = [
        lived(3, 260, rng, missing=True, changes={"speed": 25.0}, **options)
        for rng in (AtOnce(), random.Random(1))
    ]
    assert ends[0].to_json() == ends[1].to_json()
    assert_same(ends[0].state, ends[1].state)
    assert ends[0].health().surprises.values.tolist() == ends[1].health().surprises.values.tolist()
    if options:
        assert len(ends[0].alarms) >= 1
        assert ends[0].alarms == ends[1].alarms


@pytest.mark.parametrize("window", [0, 10])
def test_widening_multiplies_q(window):
    """The filter with Q of each time: the belief is that of the textbook."""
    arms, rewards = rewards_of(3, 260, speed=25.0)
    changes = {"speed": 25.0}
    agent = lived(3, 260, AtOnce(), window=window, changes=changes, on_alarm="widen")
    first = agent.alarms[0]
    assert first.kind in ("higher", "lower", "larger")
    assert first.since <= first.alarm < 249
    ratio = agent.model.process_cov[0, 0] / PROCESS[0, 0]
    assert 1 < ratio <= 2 ** len(agent.alarms)
    np.testing.assert_allclose(agent.model.process_cov, ratio * PROCESS)
    if len(agent.alarms) == 1:
        mean, cov = np.zeros(ARMS), naive.stationary_cov(TRANSITION, PROCESS)
        for t, (arm, reward) in enumerate(zip(arms, rewards, strict=True)):
            process = PROCESS if t < first.alarm else ratio * PROCESS
            row = np.eye(ARMS)[arm]
            mean, cov = naive.kalman_step(mean, cov, TRANSITION, process, NOISE, row, reward)
        np.testing.assert_allclose(agent.state.mean, mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(agent.state.cov, cov, rtol=1e-8, atol=1e-10)


def test_several_settled_at_once():
    """An alarm in the middle of what a pause settles: as if it had been settled one by one."""
    log = played(3, 260, speed=25.0)
    one, other = (Agent(SYSTEM, window=300, on_alarm="widen") for _ in range(2))
    one.tell_log(log)
    one.advance(700)
    for row in zip(*log.values(), strict=True):
        other.tell_play(row[1], row[2], round=row[0])
    for _ in range(350):
        other.advance(2)
    assert one.alarms
    assert one.to_json() == other.to_json()


def test_a_true_model_is_left_alone():
    agent = lived(5, 400, AtOnce(), window=0, on_alarm="widen")
    assert agent.alarms == ()
    assert agent.model is MODEL
    assert agent.health().holds


def test_the_state_of_a_decision_is_of_the_new_model():
    """Window 0: the alarm comes while the next decision is made."""
    arms, rewards = rewards_of(3, 260, speed=25.0)
    agent = Agent(SYSTEM, policy=scripted("idea", arms), window=0, on_alarm="widen")
    for reward in rewards:
        before = agent.model
        decision = agent.ask()
        if agent.model is not before:
            break
        agent.tell(decision, reward)
    again = Agent.from_json(agent.to_json(), agent.policy)
    for one in (agent, again):
        one.tell(decision, 0.3)
    assert_same(agent.state, again.state)


def test_memory_is_bounded():
    agent = Agent(LGDS([[0.5]], [[1.0]], 1.0), [[1.0]], window=0)
    agent.tell_log({"arm": [0] * 2500, "reward": [0.1] * 2500})
    assert len(agent.health().surprises.values) == MEMORY
    assert agent.health().surprises.rounds[0] == 2499 - MEMORY


def test_removed_arms_and_offered_features_keep_their_names():
    agent = Agent(SYSTEM, window=0)
    for name in NAMES * 6:
        agent.tell(agent.ask([name]), 0.1)
    agent.remove_arm("a")
    agent.tell(agent.ask({"new": [0.0, 1.0, 1.0, 0.0]}), 0.1)
    agent.advance(2)
    assert [arm.name for arm in agent.health().arms] == ["a", "b", "c", "d", "new"]
    agent.replace_model(System(MODEL, np.eye(ARMS)[1:], NAMES[1:]))
    assert len(agent.health().surprises.values) == 25


def test_known_rewards_have_no_surprise():
    still = LGDS(np.eye(2), np.zeros((2, 2)), 0.0, np.eye(2))
    agent = Agent(still, np.eye(2), window=0)
    agent.tell_log({"arm": [0, 1] * 20, "reward": [0.5, -2.0] * 20})
    with pytest.raises(InvalidInput, match="agent: has 2 settled rewards"):
        agent.health()


@pytest.mark.parametrize("on_alarm", [None, "widen"])
def test_the_largest_rewards_can_be_stored(on_alarm):
    agent = Agent(LGDS([[0.5]], [[1e-6]], 1e-3), [[1.0]], window=0, on_alarm=on_alarm)
    agent.tell_log({"arm": [0] * 40, "reward": [1e149, -1e149] * 20})
    again = Agent.from_json(agent.to_json())
    assert again.to_json() == agent.to_json()
    assert on_alarm or not again.health().holds


def test_plays_before_the_first_round_are_noted_in_order():
    log = played(1, 60)
    one, other = (Agent(SYSTEM, window=5) for _ in range(2))
    one.tell_log(log)
    halves = [
        {name: column[part] for name, column in log.items()}
        for part in (slice(30, None), slice(0, 30))
    ]
    for half in halves:
        other.tell_log(half)
    assert one.health().surprises.values.tolist() == other.health().surprises.values.tolist()


# Refits.


@pytest.fixture
def learned(monkeypatch):
    """What refits learned from; they give Q twice as large."""
    logs = []

    def learned(entries, arms, options, start):
        logs.append([entry.round for entry in entries])
        return widened(start or MODEL, 2.0), arms

    monkeypatch.setattr(refitting, "learned", learned)
    return logs


def test_a_refit_learns_from_what_follows_the_change(learned):
    refit = Refit(background=False, after=20, check=False)
    agent = lived(
        3, 260, AtOnce(), window=0, changes={"speed": 25.0}, on_alarm="refit", refit=refit
    )
    assert len(learned) == len(agent.alarms) >= 1
    for log, alarm in zip(learned, agent.alarms, strict=True):
        end = max(alarm.alarm, 19)  # the first one waits for enough rewards
        assert log == list(range(min(alarm.since, end - 19), end + 1))
    assert agent._history.log[0].round == learned[-1][0]
    assert not agent._history.complete
    again = Agent.from_json(agent.to_json(), scripted("idea", [0, 1]))
    assert again.to_json() == agent.to_json()
    assert again.alarms == agent.alarms
    agent.replace_model(MODEL)  # replays what is left


def test_without_an_alarm_nothing_is_learned(learned):
    refit = Refit(background=False, after=20, check=False)
    lived(5, 200, AtOnce(), window=0, on_alarm="refit", refit=refit)
    assert learned == []


def test_an_agent_without_a_model_learns_one_first(learned):
    refit = Refit(background=False, after=20, check=False)
    agent = Agent(None, np.eye(ARMS), window=0, refit=refit, on_alarm="refit")
    for _ in range(60):
        agent.tell(agent.ask(), 0.1)
    assert len(learned) == 1 + len(agent.alarms)
    assert len(learned[0]) >= 20


@pytest.mark.parametrize("rng", [AtOnce(), random.Random(2)], ids=["at once", "late"])
def test_refits_in_any_order(rng, learned):
    options = {"window": 10, "missing": True, "changes": {"speed": 25.0}, "on_alarm": "refit"}
    options["refit"] = Refit(background=False, after=20, check=False)
    end = lived(3, 260, rng, **options)
    assert end.to_json() == lived(3, 260, AtOnce(), **options).to_json()
    assert end.alarms


# Stored agents.


def document(agent):
    return json.loads(agent.to_json())


def text(whole):
    inside = json.dumps(whole["agent"])
    checksum = hashlib.sha256(inside.encode()).hexdigest()
    return f'{{"driftbandit_agent": 3, "checksum": "{checksum}", "agent": {inside}}}'


def test_older_files_have_no_watch():
    agent = Agent(SYSTEM, window=0)
    agent.tell_log(played(1, 40))
    whole = document(agent)
    del whole["agent"]["watch"], whole["agent"]["on_alarm"]
    old = Agent.from_json(text(whole))
    assert old.ask() == agent.ask()
    with pytest.raises(InvalidInput, match="agent: has 1 settled rewards"):
        old.health()


def tampered(change):
    whole = document(Agent(SYSTEM, window=0, on_alarm="widen"))
    whole["agent"]["watch"] |= change
    return lambda: Agent.from_json(text(whole))


BAD = [
    ("a round that is not whole", {"surprises": [[0.5, "a", 1.0]]}, "0.5"),
    ("no name", {"surprises": [[0, None, 1.0]]}, "None"),
    ("no number", {"surprises": [[0, "a", "x"]]}, "'x'"),
    ("too few columns", {"surprises": [[0, "a"]]}, ""),
    ("not a list", {"surprises": 3}, ""),
    ("unknown chart", {"charts": [["a", "sideways", 1.0, 0, 1, 1.0]]}, "sideways"),
    ("negative chart", {"charts": [["a", "higher", -1.0, 0, 1, 1.0]]}, "-1"),
    ("empty chart", {"charts": [["a", "higher", 1.0, 0, 0, 1.0]]}, "0"),
    ("unknown alarm", {"alarms": [["a", "sideways", 0, 1, ""]]}, "sideways"),
    ("an alarm in a sequence", {"alarms": [["a", "higher", 0, 1, "s"]]}, "'s'"),
    ("a refit from nowhere", {"refit_since": "x"}, "'x'"),
]


@each([Case(name, tampered(change), "text", value) for name, change, value in BAD])
def test_damaged_watches(case):
    assert_refused(case)


def test_charts_without_on_alarm():
    whole = document(Agent(SYSTEM))
    whole["agent"]["watch"]["charts"] = [["a", "higher", 1.0, 0, 1, 1.0]]
    with pytest.raises(InvalidInput, match="charts: are there, without on_alarm"):
        Agent.from_json(text(whole))


CASES = [
    Case("unknown", lambda: Agent(SYSTEM, on_alarm="wide"), "on_alarm", "'widen'"),
    Case("a number", lambda: Agent(SYSTEM, on_alarm=2), "on_alarm", "2"),
    Case("no refit", lambda: Agent(SYSTEM, on_alarm="refit"), "on_alarm", "refit is None"),
    Case("ucb", lambda: Agent(SYSTEM, policy="ucb", on_alarm="widen"), "on_alarm", "ucb"),
    Case("health of ucb", lambda: Agent(SYSTEM, policy="ucb").health(), "health", "ucb"),
    Case("alarms of random", lambda: Agent(SYSTEM, policy="random").alarms, "alarms", "random"),
    Case(
        "the oracle",
        lambda: Agent(SYSTEM, policy="kalman_oracle").health(),
        "health",
        "the rewards of all arms",
    ),
    Case("nothing settled", lambda: Agent(SYSTEM).health(), "agent", "0 settled"),
    Case("level", lambda: Agent(SYSTEM).health(level=2), "level", "2"),
]


@each(CASES)
def test_bad_input(case):
    assert_refused(case)


def test_a_model_without_drift_cannot_be_widened_and_is_still_judged():
    """Constants: alarms are noted, and do not clear what health judges."""
    model = LGDS(np.eye(1), np.zeros((1, 1)), 1.0, 0.01 * np.eye(1), [0.0])
    agent = Agent(model, [[1.0]], on_alarm="widen", window=0)
    noise = np.random.default_rng(0).standard_normal(60)
    agent.tell_log({"arm": [0] * 60, "reward": noise + np.where(np.arange(60) < 30, 0.0, 8.0)})
    assert agent.alarms
    assert not agent.model.process_cov.any()
    assert not agent.health().holds
