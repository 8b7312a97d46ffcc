"""Time zones: what the clocks of a place showed, and when they were changed.

Moments are microseconds since the start of year 1, UTC; wall times are the same count of what the
clocks showed. ``zoneinfo`` says how far the clocks are ahead at a moment, not when they change, so
the changes of a year are searched for once.
"""

from __future__ import annotations

import bisect
import datetime
import difflib
import functools
import itertools
import zoneinfo
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.io.parsing import shown

MICROSECOND = datetime.timedelta(microseconds=1)
SECOND = 1_000_000
DAY = 86_400 * SECOND
FIRST, LAST = DAY, 3_652_058 * DAY  # a day inside what datetime can hold: clocks may be ahead
MOST_SHOWN = 4  # a note lists so many clock changes forward, and so many back
REMEDY = "give a name such as Europe/Berlin or America/New_York"


class Change(NamedTuple):
    """The clocks are changed at a moment, from so far ahead of UTC to so far ahead of UTC."""

    moment: int
    before: int
    after: int

    @property
    def wall(self) -> tuple[int, int]:
        """The wall times that are skipped or repeated: from the first, up to the second."""
        low, high = sorted((self.before, self.after))
        return self.moment + low, self.moment + high

    @property
    def forward(self) -> bool:
        """Whether wall times are skipped."""
        return self.after > self.before


class Zone:
    """The clocks of a time zone.

    Args:
        name: in the IANA database, as "Europe/Berlin".

    Example:
        >>> berlin = Zone("Europe/Berlin")
        >>> noon = 738_974 * DAY + DAY // 2  # 2024-03-30 12:00 UTC
        >>> ((berlin.wall(np.array([noon, noon + DAY])) - noon) // (3600 * SECOND)).tolist()
        [1, 26]
    """

    def __init__(self, name: Any) -> None:
        try:
            self._zone = zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError, AttributeError):
            raise _unknown(name) from None  # OSError: the name of a folder, such as "Europe"
        self.name = str(name)

    def changes(self, first: int, last: int) -> list[Change]:
        """All changes from the start of the first moment's year to the end of the last's."""
        years = range(_time(first).year, _time(last).year + 1)
        return [change for year in years for change in _changes(self._zone, year)]

    def wall(self, moments: np.ndarray) -> np.ndarray:
        """What the clocks showed at these moments."""
        first = int(moments.min())
        changes = self.changes(first, int(moments.max()))
        start = changes[0].before if changes else _ahead(self._zone, first)
        ahead = np.array([start, *(change.after for change in changes)])
        at = np.array([change.moment for change in changes], np.int64)
        return np.asarray(moments + ahead[np.searchsorted(at, moments, side="right")])

    def skipped(self, walls: np.ndarray) -> np.ndarray:
        """Where the clocks never showed these wall times; midnight may stand for a whole day."""
        never = np.zeros(len(walls), bool)
        for start, end in self._walls(walls, forward=True):
            never |= (start <= walls) & (walls < end) & (walls % DAY > 0)
        return never

    def in_order(self, walls: np.ndarray) -> np.ndarray:
        """Wall times that grow with time: repeated ones all count as the first of them."""
        for start, end in self._walls(walls, forward=False):
            walls = np.where((start <= walls) & (walls < end), start, walls)
        return walls

    def _walls(self, walls: np.ndarray, forward: bool) -> list[tuple[int, int]]:
        walls = walls[walls >= 0]  # others are no times
        if not walls.size:
            return []
        nearby = self.changes(int(walls.min()) - DAY, int(walls.max()) + DAY)
        return [change.wall for change in nearby if change.forward == forward]


@functools.cache
def _changes(zone: zoneinfo.ZoneInfo, year: int) -> list[Change]:
    """The changes of a year: between two midnights (UTC) there is one at the most."""
    start = max(code_of(datetime.datetime(year, 1, 1)), FIRST)
    end = min(code_of(datetime.datetime(year, 12, 31)) + DAY, LAST)
    days = [(day, _ahead(zone, day)) for day in (*range(start, end, DAY), end)]
    pairs = itertools.pairwise(days)
    return [_change(zone, low, high) for (low, old), (high, new) in pairs if old != new]


def _change(zone: zoneinfo.ZoneInfo, low: int, high: int) -> Change:
    """The change between two moments, to the second."""
    before, seconds = _ahead(zone, low), range(low, high + SECOND, SECOND)
    place = bisect.bisect(seconds, False, key=lambda moment: _ahead(zone, moment) != before)
    return Change(seconds[place], before, _ahead(zone, high))


def _ahead(zone: zoneinfo.ZoneInfo, moment: int) -> int:
    """How far the clocks are ahead of UTC, in microseconds."""
    ahead = _time(moment).replace(tzinfo=datetime.UTC).astimezone(zone).utcoffset()
    assert ahead is not None
    return ahead // MICROSECOND


def described(changes: Sequence[Change]) -> str:
    """What happened to the clocks, in sentences.

    Example:
        >>> berlin = Zone("Europe/Berlin")
        >>> described(berlin.changes(738_974 * DAY, 738_974 * DAY)[:1])
        'Clocks went forward once (2024-03-31 02:00 to 03:00): times in between have no rows.'
        >>> described([])
        'Clocks did not change in this log.'
    """
    said = []
    for forward, way, effect in (
        (True, "forward", "have no rows"),
        (False, "back", "came twice and share rounds"),
    ):
        spans = [_span(change) for change in changes if change.forward == forward]
        if spans:
            often = {1: "once", 2: "twice"}.get(len(spans), f"{len(spans)} times")
            if len(spans) > MOST_SHOWN:
                spans = [*spans[: MOST_SHOWN - 1], "…", spans[-1]]
            listed = ", ".join(spans)
            said.append(f"Clocks went {way} {often} ({listed}): times in between {effect}.")
    return " ".join(said) or "Clocks did not change in this log."


def _span(change: Change) -> str:
    """What the clocks showed before and after a change."""
    before = _time(change.moment + change.before)
    after = _time(change.moment + change.after)
    date = "" if before.date() == after.date() else f"{after.date()} "
    return f"{before:%Y-%m-%d %H:%M} to {date}{after:%H:%M}"


def _time(code: int) -> datetime.datetime:
    code = min(max(code, FIRST), LAST)
    return datetime.datetime.min + datetime.timedelta(microseconds=code)


def code_of(time: datetime.datetime) -> int:
    """Microseconds since the start of year 1."""
    return (time - datetime.datetime.min) // MICROSECOND


def _unknown(name: Any) -> errors.InvalidInput:
    known = zoneinfo.available_timezones()
    if not known:
        problem = "this system has no database of time zones"
        return errors.InvalidInput("zone", problem, "install the Python package tzdata")
    words = {zone.rpartition("/")[2].lower(): zone for zone in sorted(known, reverse=True)}
    words |= {zone.lower(): zone for zone in known}
    asked = name.strip().lower().replace(" ", "_") if isinstance(name, str) else ""
    near = difflib.get_close_matches(asked, words, n=1, cutoff=0.75)
    hint = f"did you mean {words[near[0]]}? " if near else ""
    return errors.InvalidInput("zone", f"{shown(name)} is not a time zone", hint + REMEDY)
