"""Rounds that count the clock of a time zone, on the days on which clocks change."""

import datetime
import zoneinfo

import numpy as np
import pyarrow as pa
import pytest

from driftbandit.identify import read_log
from driftbandit.replays import as_table
from log_files import put_parquet, refused, refused_exactly

UTC = datetime.UTC
DAYS = [  # a local midnight before clocks change
    ("Europe/Berlin", "2024-03-30"),
    ("Europe/Berlin", "2024-10-26"),
    ("America/New_York", "2024-03-09"),
    ("America/New_York", "2024-11-02"),
]
LENGTHS = {
    "15min": 15,
    "1h": 60,
    "2 hours": 120,
    "7d": 10_080,
    "1d": 1440,
    "1w": 10_080,
    "30s": 0.5,
}


def moments_of(name, start, every, days=3):
    """Moments from a local midnight on, ``every`` minutes apart, as zoneinfo knows them."""
    zone = zoneinfo.ZoneInfo(name)
    first = datetime.datetime.fromisoformat(start).replace(tzinfo=zone)
    last = first + datetime.timedelta(days=days)  # the same time of day on the wall clock
    step, moment, found = datetime.timedelta(minutes=every), first.astimezone(UTC), []
    while moment < last.astimezone(UTC):
        found.append(moment.astimezone(zone))
        moment += step
    return found


def on_the_wall(moment):
    return moment.replace(tzinfo=None)


def log_of(times, **options):
    rows = {"round": times, "arm": [0] * len(times), "reward": np.arange(len(times)) / 7}
    return read_log(rows, **options)


@pytest.mark.parametrize(("name", "start"), DAYS)
@pytest.mark.parametrize("every", LENGTHS)
def test_rounds_count_the_wall_clock(name, start, every):
    moments = moments_of(name, start, 10)
    zero = on_the_wall(moments[0])
    if LENGTHS[every] == 10_080:
        zero -= datetime.timedelta(days=zero.weekday())  # weeks begin on Monday
    minutes = [(on_the_wall(moment) - zero).total_seconds() / 60 for moment in moments]
    rounds = [int(minute // LENGTHS[every]) for minute in minutes]
    order = sorted(range(len(rounds)), key=rounds.__getitem__)  # stable
    texts = [moment.astimezone(UTC).isoformat() for moment in moments]
    for times in (moments, texts, [moment.isoformat() for moment in moments]):
        log = log_of(times, every=every, zone=name)
        assert log.sequences[0].rounds.tolist() == [rounds[i] for i in order]
        assert log.sequences[0].rewards.tolist() == [i / 7 for i in order]
    walls = [on_the_wall(moment) for moment in moments]  # as the clock is read off
    for times in (walls, np.array(walls, "M8[us]"), [str(wall) for wall in walls]):
        naive = log_of(times, every=every, zone=name)
        assert naive.sequences[0].rounds.tolist() == [rounds[i] for i in order]
        assert naive.sequences[0].rewards.tolist() == [i / 7 for i in order]
        assert naive.notes == log.notes
    assert f"on the clock of {name}. Clocks went " in log.notes[0]


@pytest.mark.parametrize(("name", "start"), DAYS)
def test_nine_is_always_nine_o_clock(name, start):
    moments = moments_of(name, start, 60)
    rounds = log_of(moments, every="1h", zone=name).sequences[0].rounds
    assert (rounds % 24).tolist() == [moment.hour for moment in moments]
    missing, twice = set(range(72)) - set(rounds.tolist()), np.flatnonzero(np.bincount(rounds) == 2)
    spring, repeated = len(moments) == 71, 24 + (2 if name == "Europe/Berlin" else 1)
    assert (missing, twice.tolist()) == (({26}, []) if spring else (set(), [repeated]))
    plain = log_of(moments, every="1h").sequences[0].rounds  # without a zone, hours that passed
    assert plain.tolist() == list(range(len(moments)))


def test_the_note_says_the_clock_and_its_changes():
    said = {
        (3, 1): "Clocks did not change in this log.",
        (
            3,
            31,
        ): "Clocks went forward once (2024-03-31 02:00 to 03:00): times in between have no rows.",
        (
            10,
            27,
        ): "Clocks went back once (2024-10-27 03:00 to 02:00): times in between came twice and "
        "share rounds.",
    }
    for (month, day), sentence in said.items():
        note = f"Rounds are hours since 2024-{month:02}-{day:02} 00:00:00 on the clock of"
        times = [datetime.datetime(2024, month, day, hour) for hour in (0, 4)]
        assert log_of(times, every="1h", zone="Europe/Berlin").notes == (
            f"{note} Europe/Berlin. {sentence}",
        )
    berlin = {"zone": "Europe/Berlin"}
    # The log ends before the change: its last hour is the first of the two.
    before = log_of(["2024-10-26T23:00Z", "2024-10-27T00:30Z"], **berlin).notes[0]
    assert before.endswith("Clocks did not change in this log.")
    after = log_of(["2024-10-27T00:30Z", "2024-10-27T01:00Z"], **berlin).notes[0]
    assert "Clocks went back once (2024-10-27 03:00 to 02:00)" in after
    for times, changed in {  # read off a clock: 02:00 may be before or after it was set back
        ("2024-03-31T03:00", "2024-03-31T04:00"): False,
        ("2024-03-31T00:00", "2024-03-31T01:59"): False,
        ("2024-03-31T01:59", "2024-03-31T03:00"): True,
        ("2024-10-27T01:00", "2024-10-27T01:59"): False,
        ("2024-10-27T01:00", "2024-10-27T02:00"): True,
        ("2024-10-27T03:00", "2024-10-27T04:00"): False,
    }.items():
        assert ("Clocks went" in log_of(times, **berlin).notes[0]) == changed
    days = log_of(["2024-03-30", "2024-03-31", "2024-04-01"], **berlin)
    assert days.sequences[0].rounds.tolist() == [0, 1, 2]
    assert days.notes[0].startswith(
        "Rounds are days since 2024-03-30 on the clock of Europe/Berlin."
    )


def test_a_day_may_begin_without_a_midnight():
    days = ["2018-11-03", "2018-11-04", "2018-11-05"]  # on the 4th, 00:00 was 01:00 in São Paulo
    for times in (days, np.array(days, "M8[D]"), np.array(days, "M8[ns]")):
        log = log_of(times, zone="America/Sao_Paulo")
        assert log.sequences[0].rounds.tolist() == [0, 1, 2]


def test_sequences_repeat_the_hour_on_their_own():
    times = ["2024-10-27T02:30", "2024-10-27T02:45", "2024-10-27T02:15", "2024-10-27T02:00"]
    rows = {"round": times, "arm": [0, 1, 2, 3], "reward": [1, 2, 3, 4]}
    rows |= {"sequence": ["a", "b", "a", "b"], "x_n": [0, 1, 2, 3], "chance": [0.1, 0.2, 0.3, 0.4]}
    log = read_log(rows, every="15min", zone="Europe/Berlin")
    first, second = log.sequences
    assert (first.rounds.tolist(), second.rounds.tolist()) == ([1, 2], [0, 3])
    assert (first.arms.tolist(), second.arms.tolist()) == ([2, 0], [3, 1])
    assert (first.chances.tolist(), second.chances.tolist()) == ([0.3, 0.1], [0.4, 0.2])
    assert (first.features.tolist(), second.features.tolist()) == ([[2], [0]], [[3], [1]])


def test_a_zone_is_read_from_files_as_from_memory():
    moments = moments_of("America/New_York", "2024-11-02", 30)
    options = {"every": "30min", "zone": "Europe/Berlin"}  # where clocks do not change then
    rows = {"round": pa.array(moments).cast(pa.timestamp("ns", "America/New_York"))}
    rows |= {"arm": [0] * len(moments), "reward": [0.5] * len(moments)}
    log = read_log(put_parquet("l.parquet", rows), **options)
    pa.table(rows).to_pandas().to_csv("l.csv", index=False)
    texts = read_log("l.csv", **options)
    for one in (log, texts, read_log(pa.table(rows), **options)):
        assert one.sequences[0].rounds.tolist() == list(range(len(moments)))
        assert one.notes[0].startswith(
            "Rounds are steps of 30 minutes since 2024-11-02 05:00:00 on"
        )
        assert one.notes[0].endswith("Clocks did not change in this log.")


HERE = {"zone": "Europe/Berlin"}
LENGTH = 'give a number and a unit, as "15 minutes" or "1h"; units: day, hour, minute, second, '
LENGTH += "millisecond, microsecond, week"
WRONG_CLOCKS = {
    "skipped": (["2024-03-31T02:00"], HERE, "log row 1: round '2024-03-31T02:00' was never on the"),
    "skipped array": (
        np.array(["2024-03-31T01:59", "2024-03-31T02:59"], "M8[s]"),
        HERE,
        "log row 2: round datetime.datetime(2024, 3, 31, 2, 59) was never on the clock of Europe/",
    ),
    "back": (
        ["2024-10-27T03:00", "2024-10-27T02:59"],
        HERE,
        "log row 2: round 2024-10-27 02:59:00 comes after round 2024-10-27 03:00:00; sort the rows",
    ),
    "back in the hour": (
        ["2024-10-27T01:10Z", "2024-10-27T00:50Z"],
        HERE,
        "log row 2: round 2024-10-27 00:50:00 UTC comes after round 2024-10-27 01:10:00 UTC; sort",
    ),
    "some with a zone": (
        ["2024-03-01T02:00Z", "2024-03-01T02:00"],
        HERE,
        "log row 2: round '2024-03-01T02:00' has a time zone where others have none, or has none",
    ),
    "a date": (["2024-03-01T02:00Z", "2024-03-02"], HERE, "log row 2: round '2024-03-02' has a"),
    "year 1": (["0001-01-01"], HERE, "log row 1: round '0001-01-01' is too early or too late"),
    "year 9999": (["9999-12-31T12:00"], HERE, "log row 1: round '9999-12-31T12:00' is too early"),
    "numbers": ([3], HERE, "zone: was given, and the rounds are numbers; leave it out"),
    "no time": (["2024-03-01", "x"], HERE, "log row 2: round 'x' is not a date or time, as those"),
    "zone": (["2024-03-01"], {"zone": "Berlin"}, "zone: 'Berlin' is not a time zone; did you mean"),
    "zone 3": (["2024-03-01"], {"zone": 3}, "zone: 3 is not a time zone; give a name such as"),
    "month": (["2024-03-01"], {"every": "1month"}, f"every: is '1month'; {LENGTH}"),
    "m": (["2024-03-01"], {"every": "5m"}, f"every: is '5m'; {LENGTH}"),
    "0h": (["2024-03-01"], {"every": "0h"}, f"every: is '0h'; {LENGTH}"),
    "twice": (["2024-03-01"], {"every": "1h30min"}, f"every: is '1h30min'; {LENGTH}"),
}


@pytest.mark.parametrize("case", WRONG_CLOCKS)
def test_what_is_wrong_with_a_clock_is_said(case):
    times, options, start = WRONG_CLOCKS[case]
    refused(lambda: log_of(times, **options), start)


def test_a_zone_belongs_to_a_log_that_is_not_read_yet():
    message = "log: has type Log; it is read already: use it as it is"
    refused_exactly(lambda: read_log(log_of(["2024-01-31"]), zone="UTC"), message)
    message = "zone: was given, and no index of a wide table has times; leave it out, "
    message += "or give read_log(data, zone=…)"
    refused_exactly(lambda: as_table(np.ones((3, 2)), zone="UTC"), message)
