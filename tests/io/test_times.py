"""Dates and times in the columns of a log."""

import datetime
import zoneinfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import driftbandit as db
from driftbandit import errors
from driftbandit.identify import as_log, read_log
from driftbandit.io import tables
from driftbandit.io.logs import split_notes
from driftbandit.replays import as_table
from log_files import CALLED, OTHERS, refused_exactly

UTC = datetime.UTC
DATES = ["2024-01-31", "2024-02-01", "2024-03-01"]


def rounds_of(days):
    """The rounds and notes of three rows with these days."""
    log = read_log({"day": days} | OTHERS, columns=CALLED)
    assert log.names == ("a", "b")
    assert log.sequences[0].rewards.tolist() == [1, 0, 2]
    return log.sequences[0].rounds.tolist(), log.notes


@pytest.mark.parametrize(
    ("days", "rounds", "note"),
    [
        (DATES, [0, 1, 30], "days since 2024-01-31"),
        (["2024-01-01", "2024-01-08", "2024-01-15"], [0, 7, 14], "days since 2024-01-01"),
        (["1969-12-31", "1970-01-01", "2262-06-01"], [0, 1, 106_803], "days since 1969-12-31"),
        (
            ["2024-01-31T09:00Z", "2024-01-31 09:15 UTC", "2024-01-31T13:00:00.000+02:00"],
            [0, 1, 8],
            "steps of 15 minutes since 2024-01-31 09:00:00",
        ),
        (
            ["2024-01-31 00:00", "2024-01-31", "2024-01-31 01:00:00"],
            [0, 0, 1],
            "hours since 2024-01-31 00:00:00",
        ),
        (
            ["2024-01-31 09:00:00", "2024-02-01 09:00:00", "2024-02-05 09:00:00"],
            [0, 1, 5],
            "days since 2024-01-31 09:00:00",
        ),
        (
            ["2024-01-31 09:00:00.25", "2024-01-31 09:00:01", "2024-01-31 09:00:02"],
            [0, 3, 7],
            "steps of 250 milliseconds since 2024-01-31 09:00:00.250000",
        ),
        (["2024-01-31"] * 3, [0, 0, 0], "days since 2024-01-31"),
    ],
)
def test_dates_and_times_are_rounds(days, rounds, note):
    notes, zoned = (f"Rounds are {note}.",), (f"Rounds are {note} UTC.",)
    assert rounds_of(days) == (rounds, zoned if "Z" in days[0] else notes)
    moments = pd.to_datetime([day.replace(" UTC", "Z") for day in days], format="ISO8601", utc=True)
    forms = [moments, moments.tz_localize(None), list(moments.to_pydatetime())]
    forms += [np.array(moments.tz_localize(None), f"M8[{unit}]") for unit in ("us", "ms")]
    forms.append(pa.array(moments.tz_localize(None).to_numpy().astype("M8[us]")))
    forms.append(pa.array(moments.as_unit("us")))
    for number, form in enumerate(forms):
        if moments.max().year < 2262:
            form = form.as_unit("ns") if isinstance(form, pd.DatetimeIndex) else form
        assert rounds_of(form) == (rounds, zoned if number in (0, 2, 6) else notes)
    table = {"day": moments.as_unit("us"), **OTHERS}
    frame = pd.DataFrame(table)
    pq.write_table(pa.table(frame), "l.parquet")
    frame.to_csv("l.csv", index=False)
    mixed = frame.assign(other=["x", 3, None])  # of types that no Arrow column holds
    for data in ("l.parquet", "l.csv", frame, frame.set_index("day"), mixed):
        log = read_log(data, columns=CALLED)
        assert log.sequences[0].rounds.tolist() == rounds
        assert log.notes[-1:] == zoned


def test_python_dates_are_rounds():
    days = [datetime.date.fromisoformat(day) for day in DATES]
    assert rounds_of(days)[0] == [0, 1, 30]
    assert rounds_of(np.array(DATES, "M8[D]"))[0] == [0, 1, 30]
    assert rounds_of(pa.array(days))[0] == [0, 1, 30]
    zone = datetime.timezone(datetime.timedelta(hours=2))
    first = datetime.datetime(2024, 1, 31, 2, tzinfo=zone)
    later = [datetime.datetime(2024, 1, 31, hour, tzinfo=UTC) for hour in (1, 3)]
    assert rounds_of([first, *later]) == (
        [0, 1, 3],
        ("Rounds are hours since 2024-01-31 00:00:00 UTC.",),
    )


def test_a_step_is_at_most_a_day():
    days = ["2024-01-01 00:00", "2024-01-02 12:00", "2024-01-04 00:00"]
    assert rounds_of(days) == (
        [0, 3, 6],
        ("Rounds are steps of 12 hours since 2024-01-01 00:00:00.",),
    )


def test_local_midnights_are_days_though_clocks_change():
    days = ["2024-03-30T00:00+01:00", "2024-03-31T00:00+01:00", "2024-04-01T00:00+02:00"]
    note = "Rounds are days since 2024-03-30, local time."
    assert rounds_of(days) == ([0, 1, 2], (note,))
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    days = [datetime.datetime(2024, 10, day, tzinfo=zone) for day in (26, 27, 28)]
    assert rounds_of(days)[0] == [0, 1, 2]
    for unit in ("us", "ns"):
        zoned = pa.array(days).cast(pa.timestamp(unit, "Europe/Berlin"))
        pq.write_table(pa.table({"day": zoned, **OTHERS}), "l.parquet")
        log = read_log("l.parquet", columns=CALLED)
        assert log.sequences[0].rounds.tolist() == [0, 1, 2]
        assert log.notes[-1:] == ("Rounds are days since 2024-10-26, local time.",)
    # Two places in one day: what their clocks show is not in order.
    days = ["2024-03-30T00:00+12:00", "2024-03-30T00:00+11:00", "2024-03-31T00:00+12:00"]
    assert rounds_of(days)[0] == [0, 1, 24]
    log = read_log({"day": days} | OTHERS, columns=CALLED, every="day")
    assert log.notes == ("Rounds are days since 2024-03-29 UTC.",)


def test_sequences_may_start_on_other_days_and_be_days():
    columns = {
        "sequence": np.array(["2024-02-01"] * 2 + ["2024-01-31"] * 2, "M8[D]"),
        "round": ["2024-02-01 10:00", "2024-02-01 12:00", "2024-01-31 08:00", "2024-01-31 10:00"],
        "arm": [1, 2, 1, 2],
        "reward": [1, 2, 3, 4],
    }
    log = as_log(columns)
    assert [one.label for one in log.sequences] == ["2024-02-01", "2024-01-31"]
    assert [one.rounds.tolist() for one in log.sequences] == [[13, 14], [0, 1]]
    assert log.notes == ("Rounds are steps of 2 hours since 2024-01-31 08:00:00.",)


def test_a_step_is_found_across_blocks(monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_CELLS", 6)
    start = np.datetime64("2024-01-31T00:00:00")
    times = start + np.array([0, 30, 60, 90, 120, 130]) * np.timedelta64(1, "m")
    for given in (times, [str(time) for time in times]):
        log = as_log({"round": given, "arm": [0] * 6, "reward": [1] * 6})
        assert log.sequences[0].rounds.tolist() == [0, 3, 6, 9, 12, 13]


def test_a_clock_that_is_finer_than_decisions_is_said():
    rng = np.random.default_rng(0)
    moments = np.datetime64("2024-01-31T00:00:00") + np.cumsum(rng.integers(1, 720, 50))
    log = as_log({"round": moments, "arm": [0] * 50, "reward": [1] * 50})
    assert log.sequences[0].rounds.tolist() == (moments - moments[0]).astype(int).tolist()
    assert log.notes[0].startswith("Rounds are seconds since 2024-01-31 ")
    gap = np.median(np.diff(moments).astype(int))
    assert f"Half of the gaps are {gap:,.0f} rounds or longer" in log.notes[0]
    assert log.notes[0].endswith('say --every hour (in Python, every="hour").')


@pytest.mark.parametrize(
    ("every", "rounds", "note"),
    [
        ("hour", [0, 1, 39], "hours since 2024-01-31 09:00:00"),
        ("1h", [0, 1, 39], "hours since 2024-01-31 09:00:00"),
        (" 30 Minutes ", [0, 1, 78], "steps of 30 minutes since 2024-01-31 09:30:00"),
        ("6 hours", [0, 0, 7], "steps of 6 hours since 2024-01-31 06:00:00"),
        ("day", [0, 0, 2], "days since 2024-01-31"),
        ("week", [0, 0, 0], "steps of 7 days since 2024-01-29"),
    ],
)
def test_a_length_may_be_given(every, rounds, note):
    times = ["2024-01-31 09:59:59.5", "2024-01-31 10:00:00", "2024-02-02 00:59:59"]
    log = read_log({"round": times, "arm": [0] * 3, "reward": [1] * 3}, every=every)
    assert log.sequences[0].rounds.tolist() == rounds
    assert log.notes == (f"Rounds are {note}.",)


def test_what_is_wrong_with_a_step_is_said():
    columns = {"round": [0], "arm": [0], "reward": [1]}
    message = "every: was given, and the rounds are numbers; leave it out"
    refused_exactly(lambda: read_log(columns, every="hour"), message)
    message = "every: was given, and no index of a wide table has times; leave it out, "
    message += "or give read_log(data, every=…)"
    for data in (np.ones((3, 2)), columns):
        refused_exactly(lambda data=data: as_table(data, every="hour"), message)
    for every in ("", "0 hours", "-1 day", "fortnight", "1.5 hours", 3600, "9999 weeks", "hours 2"):
        with pytest.raises(db.InvalidInput, match=r"every: is .*; give a number and a unit, as"):
            read_log(columns | {"round": ["2024-01-31"]}, every=every)


def test_numbers_stay_as_they_are():
    seconds = [1_706_659_200, 1_706_659_201, 2**53]
    assert rounds_of(seconds) == (seconds, ())
    assert rounds_of([str(second) for second in seconds]) == (seconds, ())


NO_TIME = "give it as 2024-01-31 or 2024-01-31T09:30:00"


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (
            ["2024-01-31", "2024-02-30", "x"],
            "2: round '2024-02-30' is not a date or time, as those",
        ),
        (["2024-01-31", 5, "x"], "2: round 5 is not a date or time, as those before are; give it"),
        (["2024-01-31", "", "x"], f"2: round is missing; {NO_TIME}"),
        (np.array(["2024-01-31", "NaT", "NaT"], "M8[ns]"), f"2: round is missing; {NO_TIME}"),
        (
            [3, "2024-01-31", 4],
            "2: round '2024-01-31' is a date, and others are numbers; write all",
        ),
        (["31/01/2024"] * 3, "1: round '31/01/2024' is not a whole number; give a whole number"),
        (
            ["2024-01-31T00:00Z", "2024-01-31T01:00", "x"],
            "2: round '2024-01-31T01:00' has a time zone where others have none, or has none",
        ),
        (DATES[::-1], "2: round 2024-02-01 comes after round 2024-03-01; sort the rows of a"),
        (["0001-01-01T00:00+02:00"] * 3, "1: round '0001-01-01T00:00+02:00' "),
    ],
)
def test_what_is_wrong_with_a_date_is_said(days, said):
    with pytest.raises(db.InvalidInput) as caught:
        rounds_of(days)
    assert str(caught.value).startswith(f"log row {said}")


def test_dates_without_dashes_are_said():
    others = {"arm": [0, 1], "reward": [1, 2]}
    note = "Rounds such as 20240131 look like dates and are read as numbers: write 2024-01-31."
    assert as_log({"round": [20240131, 20240201]} | others).notes == (note,)
    for rounds in ([20240131, 20240232], [0, 20240201], [20240131, 99990101]):
        assert as_log({"round": rounds} | others).notes == ()


@pytest.mark.parametrize(
    ("every", "note"),
    [
        ("30s", "steps of 30 seconds"),
        ("15min", "steps of 15 minutes"),
        ("15 mins", "steps of 15 minutes"),
        ("2 hours", "steps of 2 hours"),
        ("2hrs", "steps of 2 hours"),
        ("7d", "steps of 7 days"),
        ("1w", "steps of 7 days"),
        ("250ms", "steps of 250 milliseconds"),
        ("5 us", "steps of 5 microseconds"),
        ("second", "seconds"),
    ],
)
def test_units_may_be_short(every, note):
    log = read_log({"round": ["2024-01-01"], "arm": [0], "reward": [1]}, every=every)
    assert log.notes[0].startswith(f"Rounds are {note} since 2024-01-01")


def logged(times, **options):
    return read_log(
        {"round": times, "arm": ["a"] * len(times), "reward": [1] * len(times)}, **options
    )


@pytest.mark.parametrize(
    ("times", "options"),
    [
        (["2024-01-31", "2024-02-01", "2024-02-04"], {}),
        (["2024-01-31 09:00", "2024-01-31 10:15", "2024-02-04 23:45"], {}),
        (["2024-03-30T12:00Z", "2024-03-31T02:00Z", "2024-04-01T05:00Z"], {}),
        (["2024-03-30T12:00+01:00", "2024-03-31T12:00+02:00"], {}),  # days of local time
        (["2024-03-30T12:20Z", "2024-03-31T12:20Z"], {"every": "1h", "zone": "Europe/Berlin"}),
        (["2024-03-30 12:20", "2024-03-31 12:20"], {"every": "1h", "zone": "Europe/Berlin"}),
    ],
)
def test_the_round_of_a_logs_time_is_its_round(times, options):
    log = logged(times, **options)
    found = [log.round_of(time) for time in times]
    assert found == log.sequences[0].rounds.tolist()
    assert [type(one) for one in found] == [int] * len(found)
    moments = [pd.Timestamp(time) for time in times]
    assert [log.round_of(moment) for moment in moments] == found
    assert [log.round_of(moment.to_pydatetime()) for moment in moments] == found


def test_other_times_have_rounds_too():
    log = logged(["2024-01-31 09:00", "2024-01-31 10:00"])
    assert log.round_of("2024-01-31 12:59") == 3  # within the hour
    assert log.round_of(datetime.date(2024, 2, 1)) == 15
    assert log.round_of(np.datetime64("2024-01-31T08:59")) == -1
    berlin = logged(["2024-03-30 12:00", "2024-03-30 13:00"], zone="Europe/Berlin")
    assert berlin.round_of("2024-03-31T10:00Z") == 24  # clocks went forward: it is noon there
    assert berlin.round_of("2024-03-31 12:00") == 24


@pytest.mark.parametrize(
    ("times", "time", "said"),
    [
        ([0, 1], "2024-01-31", "this log knows no times, only numbers of rounds"),
        (["2024-01-31 09:00", "2024-01-31 10:00"], 7, "7 is not a date or time"),
        (["2024-01-31 09:00", "2024-01-31 10:00"], "2024-01-31T10:00Z", "has a time zone, and"),
        (["2024-01-31T09:00Z", "2024-01-31T10:00Z"], "2024-01-31 10:00", "has no time zone, and"),
    ],
)
def test_a_time_is_written_as_the_log_writes_it(times, time, said):
    with pytest.raises(db.InvalidInput, match=f"^time: .*{said}"):
        logged(times).round_of(time)


@pytest.mark.parametrize(
    ("unit", "size"), [("seconds", 1), ("milliseconds", 1000), ("microseconds", 10**6)]
)
def test_counts_since_1970_are_noticed(unit, size):
    first = 1_475_567_982 * size
    log = as_log({"round": [first, first + 3600 * size], "arm": [0, 1], "reward": [1, 2]})
    (note,) = log.notes
    assert note.startswith(f"Rounds such as {first} look like {unit} since 1970")
    assert "write times, as 2016-10-04 07:59:42, and say --every hour" in note
    assert split_notes([note]) == ([], [note])  # a warning
    short = as_log({"round": [7, first], "arm": [0, 1], "reward": [1, 2]})
    assert short.notes == ()


def test_nanoseconds_are_refused_with_a_remedy():
    columns = {"round": [1_475_567_982 * 10**9], "arm": [0], "reward": [1]}
    with pytest.raises(errors.InvalidInput, match=r"too large; .*a time as 2024-01-31T09:30:00"):
        as_log(columns)


@pytest.mark.parametrize(
    ("mean", "unit", "size"),
    [(3600, "hours", 3600), (40, "seconds", 1), (90, "minutes", 60), (3 * 86400, "days", 86400)],
)
def test_stamps_far_finer_than_plays_are_rounded(mean, unit, size):
    rng = np.random.default_rng(0)
    gaps = rng.integers(mean * 900_000, mean * 1_200_000, 400)
    moments = np.datetime64("2026-01-05T07:11:13.000001") + np.cumsum(gaps)
    rows = {"round": moments, "arm": [0] * 400, "reward": [1] * 400}
    log = read_log(rows)
    start = moments[0].astype(f"M8[{unit[0] if unit != 'days' else 'D'}]")
    if unit == "minutes":
        start = moments[0].astype("M8[m]")
    expected = (moments - start) // np.timedelta64(size, "s")
    assert log.sequences[0].rounds.tolist() == expected.tolist()
    (note,) = log.notes
    assert note.startswith(f"Rounds are {unit} since 2026-01-0")
    assert "and times are rounded down to that: for other rounds say --every 15min" in note
    assert split_notes([note]) == ([], [note])
    assert log.clock.round_of(moments[-1]) == log.sequences[0].rounds[-1]
    for every, step in (("1 ms", 1000), ("1us", 1)):  # which overrules
        rounds = read_log(rows, every=every).sequences[0].rounds
        assert rounds[-1] == (moments[-1].astype(int) // step) - (moments[0].astype(int) // step)
    later = read_log(rows | {"round": moments + np.timedelta64(1000, "D")})
    ahead = as_log(later, clock=log.clock).sequences[0].rounds - log.sequences[0].rounds
    assert set(ahead) == {1000 * 86400 // size}


def test_an_index_of_fine_stamps_keeps_its_rows_apart():
    minutes = pd.to_timedelta([0, 360, 365], "min")
    stamps = pd.Timestamp("2026-01-05") + minutes - pd.to_timedelta([0, 1, 1], "us")
    wide = pd.DataFrame({"a": [1.0, 2, 3], "b": [3.0, 2, 1]}, index=stamps)
    assert as_table(wide).times.tolist() == [0, 21_599_999_999, 21_899_999_999]
