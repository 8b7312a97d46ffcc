"""Agents that know how their rounds count times: from a system, or from the log they are told."""

import dataclasses
import datetime
import json

import numpy as np
import pytest

import driftbandit as db
from agent_histories import SYSTEM
from driftbandit.agent.stored import checksum
from driftbandit.errors import InvalidInput
from driftbandit.identify import as_log, read_log
from driftbandit.io import model_file
from driftbandit.io.times import Clock

HOURS = [f"2026-01-05T{hour:02}:00" for hour in (0, 1, 3, 4)]
LOG = {"round": HOURS, "arm": ["left", "right"] * 2, "reward": [0.1, 0.2, 0.3, 0.4]}
CLOCK = as_log(LOG).clock
TIMED = dataclasses.replace(SYSTEM, clock=CLOCK, first_round=5)


def test_an_agent_knows_the_times_of_its_system_also_after_a_restart(tmp_path):
    db.save_model(TIMED, tmp_path / "model.json")
    system = db.load_model(tmp_path / "model.json")
    assert system == TIMED
    assert system != dataclasses.replace(TIMED, clock=None)
    assert system.round_of("2026-01-05T09:59") == 9
    agent = db.Agent(system)
    agent.save(tmp_path / "agent.json")
    again = db.Agent.load(tmp_path / "agent.json")
    assert again.to_json() == agent.to_json()
    now = datetime.datetime(2026, 1, 6, 1, 30)
    assert again.round_of(now) == agent.round_of(now) == 25
    assert again.ask(round=again.round_of(now)).round == 25


def test_an_agent_knows_the_times_of_the_first_log_that_it_is_told():
    agent = db.Agent(SYSTEM)
    assert agent.tell_log(LOG) == {"learned": 4}
    assert agent.round_of("2026-01-05T06:10") == 6
    late = db.Agent(SYSTEM)
    late.ask()  # rounds count something else
    late.tell_log(LOG)
    with pytest.raises(InvalidInput, match="time: cannot be read: this agent knows no times"):
        late.round_of("2026-01-05T06:10")


def test_later_logs_count_the_same_rounds():
    agent, plain = db.Agent(TIMED), db.Agent(TIMED)
    later = LOG | {"round": [time.replace("05T", "06T") for time in HOURS]}
    assert agent.tell_log(later) == {"learned": 4}
    plain.tell_log(LOG | {"round": [24, 25, 27, 28]})
    assert agent.to_json() == plain.to_json()
    with pytest.raises(InvalidInput, match="log: holds rounds 0 to 4, but the model was learned"):
        agent.tell_log(LOG)


@pytest.mark.parametrize(
    ("times", "rounds"),
    [
        (["2026-01-06", "2026-01-08"], [24, 72]),
        (["2026-01-06T00:30", "2026-01-06T02:59"], [24, 26]),
        (["2026-01-06T07:10"], [31]),
    ],
)
def test_later_times_fall_into_the_rounds_of_the_clock(times, rounds):
    """However far apart they are, and even if there is only one."""
    agent, plain = db.Agent(TIMED), db.Agent(TIMED)
    plays = {"arm": ["left"] * len(times), "reward": [1.0] * len(times)}
    assert agent.tell_log({"round": times} | plays) == {"learned": len(times)}
    plain.tell_log({"round": rounds} | plays)
    assert agent.to_json() == plain.to_json()


DAILY = ["2026-03-27T09:00+01:00", "2026-03-28T09:00+01:00", "2026-03-29T09:00+02:00"]


@pytest.mark.parametrize("options", [{}, {"zone": "Europe/Berlin"}])
def test_local_days_go_on_after_a_clock_was_set(options):
    plays = {"arm": ["left"] * 3, "reward": [1.0] * 3}
    agent = db.Agent(SYSTEM)
    agent.tell_log(read_log({"round": DAILY} | plays, **options))
    assert agent.round == 3
    more = {"round": ["2026-03-31T09:00+02:00"], "arm": ["left"], "reward": [1.0]}
    assert agent.tell_log(more) == {"learned": 1}
    assert agent.round == 5


def test_logs_with_other_rounds_are_refused():
    agent = db.Agent(TIMED)
    before = agent.to_json()
    plays = {"arm": ["left", "left"], "reward": [1.0, 2.0]}
    zoned = {"round": ["2026-01-06T00:00Z", "2026-01-06T01:00Z"]} | plays
    with pytest.raises(InvalidInput, match="log: has times with a time zone, and those before"):
        agent.tell_log(zoned)
    days = {"round": ["2026-01-06", "2026-01-08"]} | plays
    said = "counts rounds as days since 2026-01-06, which are not parts of hours since .*; give its"
    with pytest.raises(InvalidInput, match=said):
        agent.tell_log(read_log(days, every="day"))  # the hours of its times are lost
    assert agent.to_json() == before


HOURLY = {"round": ["2026-01-06 01:00", "2026-01-06 05:00"], "arm": ["left"] * 2, "reward": [1, 2]}


@pytest.mark.parametrize("options", [{}, {"every": "hour"}, {"every": "30min"}, {"clock": CLOCK}])
def test_a_later_log_that_was_read_by_itself_goes_on_after_a_restart(options, tmp_path):
    """Its rounds are steps of four hours, or whatever was said; the agent's are hours."""
    db.Agent(TIMED).save(tmp_path / "agent.json")
    agent, plain = db.Agent.load(tmp_path / "agent.json"), db.Agent(TIMED)
    called = {"round": "when", "reward": "pay"}
    file = {called.get(name, name): column for name, column in HOURLY.items()}
    assert agent.tell_log(read_log(file, columns=called, **options)) == {"learned": 2}
    plain.tell_log(HOURLY | {"round": [25, 29]})
    assert agent.to_json() == plain.to_json()


def test_times_of_dates_and_of_utc_are_counted_by_the_clock_of_a_zone():
    plays = {"arm": ["left"] * 2, "reward": [1.0, 2.0]}
    there = {"round": ["2026-01-05 00:00", "2026-01-05 01:00"]} | plays
    clock = read_log(there, zone="Europe/Berlin").clock
    for times in (["2026-01-06", "2026-01-08"], ["2026-01-05T23:00Z", "2026-01-07T23:00Z"]):
        later = read_log({"round": times} | plays)
        assert as_log(later, clock=clock).sequences[0].rounds.tolist() == [24, 72]
    with pytest.raises(InvalidInput, match="log: counts rounds as"):
        as_log(read_log({"round": times} | plays, zone="UTC"), clock=clock)
    with pytest.raises(InvalidInput, match="log: counts rounds as"):
        as_log(read_log({"round": times} | plays), clock=CLOCK)


def test_a_log_goes_on_with_the_clock_of_another():
    later = LOG | {"round": ["2026-01-05T07:20", "2026-01-07", "2026-01-07", "2026-01-08"]}
    assert as_log(later, clock=CLOCK).sequences[0].rounds.tolist() == [7, 48, 48, 72]
    assert as_log(later, clock=CLOCK).clock == CLOCK
    for option in ({"every": "hour"}, {"zone": "UTC"}):
        with pytest.raises(InvalidInput, match="was given beside a clock"):
            read_log(later, clock=CLOCK, **option)


def test_a_new_model_must_count_the_same_rounds():
    agent = db.Agent(TIMED)
    agent.replace_model(SYSTEM)  # without a clock: the agent's stays
    other = dataclasses.replace(CLOCK, start=CLOCK.start + CLOCK.step)
    agent.replace_model(dataclasses.replace(SYSTEM, clock=other))  # it fits any round
    assert agent.round_of("2026-01-05T06:00") == 6
    with pytest.raises(InvalidInput, match="system: counts rounds as hours since 2026-01-05 01:00"):
        agent.replace_model(dataclasses.replace(TIMED, clock=other))


def test_an_agent_takes_the_clock_of_a_model_only_with_its_rounds():
    agent = db.Agent(SYSTEM)
    agent.advance(1000)
    anywhere = dataclasses.replace(TIMED, first_round=None)
    agent.replace_model(anywhere)
    agent.replace_model(anywhere, start=1000)
    with pytest.raises(InvalidInput, match="this agent knows no times"):
        agent.round_of("2026-01-05T06:00")
    agent = db.Agent(SYSTEM)
    agent.advance(5)
    agent.replace_model(TIMED)
    assert agent.round_of("2026-01-05T06:00") == 6


def test_files_without_a_clock_can_be_read():
    agent = db.Agent(TIMED)
    whole = json.loads(agent.to_json())
    del whole["agent"]["clock"]
    whole["checksum"] = checksum(json.dumps(whole["agent"]))
    with pytest.raises(InvalidInput, match="this agent knows no times"):
        db.Agent.from_json(json.dumps(whole)).round_of("2026-01-05T06:00")
    assert "clock" not in model_file.to_document(SYSTEM)
    assert model_file.from_document(model_file.to_document(SYSTEM)).clock is None
    with pytest.raises(InvalidInput, match="this system knows no times"):
        SYSTEM.round_of("2026-01-05T06:00")


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(
    "times", [["2026-01-05", "2026-01-06"], ["2026-01-05T09:30:00.000001Z", "2026-01-05T11:00Z"]]
)
def test_every_clock_is_stored(times, zone):
    clock = read_log({"round": times, "arm": ["a", "a"], "reward": [1, 2]}, zone=zone).clock
    assert Clock.from_document(json.loads(json.dumps(clock.to_document()))) == clock


GOOD = CLOCK.to_document()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (3, "clock: is 3"),
        ({"start": "2026-01-05"}, "clock: is {'start'"),
        (GOOD | {"start": "soon"}, "clock: start is 'soon'"),
        (GOOD | {"start": "2026-01-05T00:00Z"}, "clock: start is"),
        (GOOD | {"step": 0}, "clock step: is 0"),
        (GOOD | {"zone": "Europe/Atlantis"}, "zone: 'Europe/Atlantis' is not a time zone"),
        (GOOD | {"zoned": "yes"}, "clock zoned: is 'yes'"),
        (GOOD | {"local": None}, "clock local: is None"),
    ],
)
def test_damaged_clocks_are_refused(wrong, said):
    document = model_file.to_document(SYSTEM) | {"clock": wrong}
    with pytest.raises(InvalidInput, match=f"^model file {said}"):
        model_file.from_document(document)


def test_a_system_takes_only_clocks():
    with pytest.raises(InvalidInput, match="clock: has type str; give the clock of a Log"):
        dataclasses.replace(SYSTEM, clock="hours")


def test_a_fit_with_components_keeps_the_clock_of_its_log():
    hours = np.arange("2026-01-05T00", "2026-01-07T00", dtype="datetime64[h]")
    rewards = np.random.default_rng(0).standard_normal(48)
    table = {"round": hours, "arm": ["left", "right"] * 24, "reward": rewards}
    found = db.fit(table, structure="constant(arm)", starts=1)
    assert found.system.round_of("2026-01-07T02:00") == 50
    assert found.start_system.clock == found.system.clock
