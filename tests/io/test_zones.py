"""The clocks of time zones, checked against zoneinfo moment by moment."""

import datetime
import functools
import zoneinfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from driftbandit.io import zones
from driftbandit.io.zones import DAY, MICROSECOND, Zone, described
from log_files import refused, refused_exactly

UTC = datetime.UTC
START = datetime.datetime.min
HOUR = DAY // 24
NAMES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"]
NAMES += ["Africa/Casablanca", "America/Sao_Paulo", "Asia/Kathmandu", "Europe/Dublin"]
MOMENTS = st.datetimes(datetime.datetime(1850, 1, 1), datetime.datetime(2100, 1, 1))


known = functools.cache(Zone)  # it keeps the changes of each year


def code(time):
    return (time.replace(tzinfo=None) - START) // MICROSECOND


def clock(moment, name):
    """What the clocks of a zone show at a moment, and the moment, by zoneinfo."""
    return moment.replace(tzinfo=UTC).astimezone(zoneinfo.ZoneInfo(name))


def exists(wall, name):
    zone = zoneinfo.ZoneInfo(name)
    there = wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
    return there.replace(tzinfo=None) == wall


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.lists(MOMENTS, min_size=1, max_size=20))
@example(
    "Europe/Berlin", [datetime.datetime(2024, 3, 31, 0, 59, 59), START.replace(2024, 3, 31, 1)]
)
@example("Pacific/Apia", [datetime.datetime(2011, 12, 30, hour) for hour in (9, 10)])
def test_clocks_show_what_zoneinfo_says(name, moments):
    walls = known(name).wall(np.array([code(moment) for moment in moments]))
    assert walls.tolist() == [code(clock(moment, name)) for moment in moments]


NEAR = st.tuples(
    st.sampled_from(NAMES), st.integers(1980, 2030), st.lists(st.integers(-9, 9), min_size=1)
)


@settings(max_examples=60, deadline=None)
@given(NEAR)
def test_skipped_and_repeated_times_are_known(near):
    name, year, quarters = near
    zone = Zone(name)
    for change in zone.changes(code(START.replace(year)), code(START.replace(year))):
        moments = [change.moment + quarter * HOUR // 4 for quarter in sorted(quarters)]
        walls = np.array([time + change.before for time in moments])
        times = [START + int(wall) * MICROSECOND for wall in walls]
        never = [not exists(time, name) and time.time() != datetime.time() for time in times]
        assert zone.skipped(walls).tolist() == never
        # What the clocks showed one after another is in order, though they went back.
        seen = zone.in_order(zone.wall(np.array(moments)))
        assert (np.diff(seen) >= 0).all()


def test_codes_that_are_no_times_are_left_alone(monkeypatch):
    walls = np.array([-1, code(START.replace(2024, 3, 31, 2)), -1])
    assert Zone("Europe/Berlin").skipped(walls).tolist() == [False, True, False]
    assert Zone("Europe/Berlin").in_order(np.array([-1])).tolist() == [-1]
    asked = []
    monkeypatch.setattr(Zone, "changes", lambda zone, first, last: asked.append(first) or [])
    Zone("Europe/Berlin").skipped(walls)
    assert asked == [walls[1] - DAY]  # years from 1 on would take a second


@pytest.mark.parametrize(
    ("name", "spans"),
    [
        ("Europe/Berlin", ["2024-03-31 02:00 to 03:00", "2024-10-27 03:00 to 02:00"]),
        ("America/New_York", ["2024-03-10 02:00 to 03:00", "2024-11-03 02:00 to 01:00"]),
        ("Australia/Lord_Howe", ["2024-10-06 02:00 to 02:30", "2024-04-07 02:00 to 01:30"]),
    ],
)
def test_the_changes_of_a_year(name, spans):
    day = code(START.replace(2024))
    assert described(Zone(name).changes(day, day)) == (
        f"Clocks went forward once ({spans[0]}): times in between have no rows. "
        f"Clocks went back once ({spans[1]}): times in between came twice and share rounds."
    )
    assert len(Zone(name).changes(day, day + 366 * DAY)) == 4


def test_many_changes_are_shortened():
    said = described(
        Zone("Europe/Berlin").changes(code(START.replace(2000)), code(START.replace(2009)))
    )
    assert said.startswith("Clocks went forward 10 times (2000-03-26 02:00 to 03:00, 2001-03-25")
    assert "2002-03-31 02:00 to 03:00, …, 2009-03-29 02:00 to 03:00): times" in said
    two = Zone("Europe/Berlin").changes(code(START.replace(2023)), code(START.replace(2024)))
    assert "forward twice (2023-03-26 02:00 to 03:00, 2024-03-31 02:00 to 03:00)" in described(two)


def test_the_ends_of_the_calendar():
    for name in NAMES:
        zone = Zone(name)
        ends = np.array([zones.FIRST, zones.LAST])
        assert (np.abs(zone.wall(ends[:1]) - ends[:1]) < DAY).all()
        assert (np.abs(zone.wall(ends[1:]) - ends[1:]) < DAY).all()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Europe", None),
        ("", None),
        ("../../etc/passwd", None),
        ("/etc/hosts", None),
        ("+02:00", None),
        ("a\0b", None),
        ("é" * 300, None),
        (3, None),
        (b"UTC", None),
    ],
)
def test_unknown_zones_are_refused(name, near):
    hint = f"did you mean {near}? " if near else ""
    with pytest.raises(ValueError, match="zone: ") as caught:
        Zone(name)
    remedy = f"is not a time zone; {hint}give a name such as Europe/Berlin or America/New_York"
    assert str(caught.value).endswith(remedy)
    refused(lambda: Zone(name), "zone: ")


def test_without_a_database_the_package_is_named(monkeypatch):
    monkeypatch.setattr(zoneinfo, "available_timezones", set)

    def nothing(name):
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", nothing)
    message = "zone: this system has no database of time zones; install the Python package tzdata"
    refused_exactly(lambda: Zone("Europe/Berlin"), message)
