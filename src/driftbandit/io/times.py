"""Rounds as people write them: whole numbers, dates, or dates with a time of day.

A column is read as its first entry is. Dates and times become whole numbers of steps since the
log's first one. A step is the greatest that all of them are multiples of, at most a day; or what
the user says, such as "15 minutes".
"""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import parsing
from driftbandit.io.parsing import Values

__all__ = ["Rounds", "as_text", "is_time"]

ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z| ?UTC|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
MICROSECOND = datetime.timedelta(microseconds=1)
DAY = 86_400_000_000
UNITS = {"day": DAY, "hour": DAY // 24, "minute": 60_000_000, "second": 1_000_000}
UNITS |= {"millisecond": 1000, "microsecond": 1}
"""In microseconds."""
STEPS = UNITS | {"week": 7 * DAY, "d": DAY, "h": DAY // 24, "min": 60_000_000}
"""What a step may be given in."""
STEP = re.compile(r"([1-9][0-9]{0,8})? *([a-z]+?)s?")
EPOCH = datetime.date(1970, 1, 1).toordinal() * DAY - DAY
"""Microseconds from the first day of year 1 to NumPy's zero: no time is negative."""
SPARSE = 50
"""A step so much shorter than most gaps is more likely the clock's than the user's."""
MOST_DAYS = 100_000
"""Different times that may all be of different days; with more, wall clocks are not looked at."""
FIRST_DATE, LAST_DATE = 19000101, 21001231
"""Between which whole numbers may be meant as dates."""
NO_TIME = (
    "is not a date or time, as those before are",
    "give it as 2024-01-31 or 2024-01-31T09:30:00",
)
ZONES = ("has a time zone where others have none, or has none", "write all alike")


class Rounds:
    """Reads a column of rounds, block by block, and numbers them at the end.

    Args:
        step: of a round, as "15 minutes" or "day", counted from midnight, that of UTC if times
            have a zone (a week from Monday);
            None: the greatest that all times share, at most a day.

    Example:
        >>> rounds = Rounds()
        >>> read = rounds.read(["2024-01-31", "2024-02-02 12:00", "2024-02-03"])
        >>> rounds.numbered(read).tolist(), rounds.note
        ([0, 5, 6], 'Rounds are steps of 12 hours since 2024-01-31 00:00:00.')
    """

    def __init__(self, step: str | None = None) -> None:
        self.note = ""
        self._step = None if step is None else _microseconds(step)
        self._times: bool | None = None  # None: no entry was seen
        self._zoned: bool | None = None
        self._offsets: dict[int, int] = {}  # moment: how far its wall clock is ahead of UTC
        self._memory: dict[Any, int] = {}

    def read(self, values: Values) -> np.ndarray:
        """Whole numbers, or microseconds since year 1; −1 where an entry is neither."""
        if self._times is None:
            first = next((value for value in values if not _missing(value)), None)
            self._times = None if first is None else is_time(first)
        if not self._times:
            whole = not isinstance(values, np.ndarray) or values.dtype.kind in "iuf"
            return parsing.whole(values) if whole else np.full(len(values), -1)
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            moments = values.astype("M8[us]")
            known = ~np.isnat(moments)
            return np.where(known, np.where(known, moments.astype(np.int64), 0) + EPOCH, -1)
        return np.fromiter(map(self._remembered, values), np.int64, len(values))

    def _remembered(self, value: Any) -> int:
        """Rounds come again and again: most entries are those of the row before."""
        if not isinstance(value, str):
            return self._moment(value)
        found = self._memory.get(value)
        if found is None:
            if len(self._memory) > 10_000:
                self._memory.clear()
            found = self._memory[value] = self._moment(value)
        return found

    def _moment(self, value: Any) -> int:
        moment = _parsed(value)
        if moment is None:
            return -1
        if isinstance(moment, datetime.datetime):
            offset = moment.utcoffset()
            if self._zoned is None:
                self._zoned = offset is not None
            if (offset is not None) != self._zoned:
                return -1
            minutes = moment.hour * 60 + moment.minute
            ahead = 0 if offset is None else offset // MICROSECOND
            code = (
                (moment.toordinal() - 1) * DAY
                + (minutes * 60 + moment.second) * 1_000_000
                + moment.microsecond
                - ahead
            )
            if ahead and len(self._offsets) < MOST_DAYS:
                self._offsets[code] = ahead
            return code
        return (moment.toordinal() - 1) * DAY

    def problem(self, value: Any) -> tuple[str, str]:
        """What is wrong with an entry, and what would be right."""
        if self._times and _missing(value):
            return "round is missing", NO_TIME[1]
        if self._times:
            said, remedy = NO_TIME if _parsed(value) is None else ZONES
            return f"round {parsing.shown(value)} {said}", remedy
        if is_time(value):
            return (
                f"round {parsing.shown(value)} is a date, and others are numbers",
                "write all alike",
            )
        said, remedy = parsing.problem("round", value)
        if isinstance(value, str) and value.strip() and not parsing.is_number(value):
            remedy += ", or a date such as 2024-01-31"
        return said, remedy

    def shown(self, code: int) -> str:
        """A round as errors show it."""
        return _written(int(code)) if self._times else str(code)

    def numbered(self, codes: np.ndarray) -> np.ndarray:
        """The rounds of all rows as whole numbers; what was chosen for that is in `note`."""
        if not self._times:
            if self._step is not None:
                problem = "was given, and the rounds are numbers"
                raise errors.InvalidInput("step (--round-step)", problem, "leave it out")
            self.note = _looks_like_dates(codes)
            return codes
        zone = " UTC" if self._zoned else ""
        step = self._step or _shared(codes)
        wall = self._wall(codes) if self._step is None and step < DAY else None
        if wall is not None:
            codes, step, zone = wall, DAY, ", local time"
        first = int(codes.min())
        first -= first % step if self._step else 0
        unit = next(unit for unit, size in UNITS.items() if step % size == 0)
        many = step // UNITS[unit]
        steps = f"{unit}s" if many == 1 else f"steps of {many} {unit}s"
        self.note = f"Rounds are {steps} since {_written(first, step)}{zone}."
        rounds = np.asarray((codes - first) // step)
        gaps = np.diff(np.unique(rounds))
        if self._step is None and step < DAY and np.median(gaps) >= SPARSE:
            self.note += (
                f" Half of the gaps are {np.median(gaps):,.0f} rounds or longer: for longer"
            )
            self.note += ' rounds say --round-step hour (in Python, step="hour").'
        return rounds

    def _wall(self, codes: np.ndarray) -> np.ndarray | None:
        """What local clocks showed, where that is whole days apart and UTC is not.

        Midnights are 23 or 25 hours apart where clocks are put forward or back.
        """
        if not 0 < len(self._offsets) < MOST_DAYS:
            return None
        moments, places = np.unique(codes, return_inverse=True)
        ahead = [self._offsets.get(code, 0) for code in moments.tolist()]
        shown = moments + np.array(ahead, np.int64)
        fits = _shared(shown) == DAY and (np.diff(shown) > 0).all()
        return np.asarray(shown[places]) if fits else None


def _looks_like_dates(codes: np.ndarray) -> str:
    """A note if all rounds could be dates that were written without dashes.

    Example:
        >>> _looks_like_dates(np.array([20240131, 20240201]))
        'Rounds such as 20240131 look like dates and are read as numbers: write 2024-01-31.'
        >>> _looks_like_dates(np.array([20240131, 20240132]))
        ''
    """
    first = int(codes.min())
    if first < FIRST_DATE or codes.max() > LAST_DATE:
        return ""
    dates = [
        f"{code // 10_000}-{code // 100 % 100:02}-{code % 100:02}" for code in np.unique(codes)
    ]
    if not all(map(is_time, dates)):
        return ""
    return f"Rounds such as {first} look like dates and are read as numbers: write {dates[0]}."


def _shared(codes: np.ndarray) -> int:
    """The greatest step that all times are multiples of, at most a day."""
    return math.gcd(int(np.gcd.reduce(codes - codes.min())), DAY)


def _microseconds(step: Any) -> int:
    """A step as users write it.

    Example:
        >>> _microseconds("15 minutes"), _microseconds("hour")
        (900000000, 3600000000)
    """
    remedy = f'give a number and a unit, as "15 minutes"; units: {", ".join((*UNITS, "week"))}'
    match = STEP.fullmatch(step.strip().lower()) if isinstance(step, str) else None
    unit = STEPS.get(match[2]) if match else None
    if match is None or unit is None or int(match[1] or 1) * unit > 1000 * DAY:
        raise errors.InvalidInput("step (--round-step)", f"is {parsing.shown(step)}", remedy)
    return int(match[1] or 1) * unit


def is_time(value: Any) -> bool:
    """Whether an entry is a date, with or without a time of day.

    Example:
        >>> is_time("2024-01-31"), is_time("2024-01-31T09:30Z"), is_time("20240131"), is_time(7)
        (True, True, False, False)
    """
    return _parsed(value) is not None


def _missing(value: Any) -> bool:
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return parsing.missing(value) or value != value  # pandas' NaT too


def _parsed(value: Any) -> datetime.date | None:
    """A date, or a datetime, which is one too; None if the entry is neither."""
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()  # None if it is not a time
    if isinstance(value, datetime.date):
        return value if value == value else None
    text = value.strip() if isinstance(value, str) else ""
    if not ISO.fullmatch(text):
        return None
    try:
        if len(text) == 10:
            return datetime.date.fromisoformat(text)
        return datetime.datetime.fromisoformat(re.sub(" ?UTC", "Z", text))
    except ValueError:  # February 30
        return None


def _written(code: int, step: int = DAY) -> str:
    moment = datetime.datetime.min + code * MICROSECOND
    return str(moment) if step % DAY or code % DAY else str(moment.date())


def as_text(values: Values) -> Values:
    """Dates as labels: their text; all else as it is.

    Example:
        >>> as_text(np.array(["2024-01-31"], "M8[ns]")), as_text(["x", datetime.date(2024, 1, 31)])
        (['2024-01-31'], ['x', '2024-01-31'])
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = values.astype("M8[us]").tolist()
    if isinstance(values, np.ndarray) or not any(isinstance(v, datetime.date) for v in values):
        return values
    return [_label(value) if isinstance(value, datetime.date) else value for value in values]


def _label(moment: datetime.date) -> str | None:
    if moment != moment:
        return None
    text = str(moment)
    return text.removesuffix(" 00:00:00")
