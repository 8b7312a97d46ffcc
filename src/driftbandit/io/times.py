"""Dates and times as rounds.

The first value of a column of rounds decides whether it holds numbers or times. Times become whole
numbers of steps since the first time in the log. A step is what the user gives, such as
"15 minutes", or the longest one, up to a day, that divides all times; if that is far shorter than
the gaps between times, they are rounded down to days, hours, minutes, …. The clock is that of a
time zone if the user names one; else UTC if times have a zone, and their own clock if they have
none.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.io.parsing import Fault, Values, is_number, missing, shown, whole, whole_fault
from driftbandit.io.zones import DAY, FIRST, LAST, MICROSECOND, Zone, code_of, described

ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
# All times are counted in microseconds from the start of year 1.
UNITS = {"day": DAY, "hour": DAY // 24, "minute": 60_000_000, "second": 1_000_000}
UNITS |= {"millisecond": 1000, "microsecond": 1}
STEP_UNITS = UNITS | {"week": 7 * DAY}
SHORT_UNITS = {"w": "week", "d": "day", "h": "hour", "hr": "hour", "min": "minute"}
SHORT_UNITS |= {"s": "second", "sec": "second", "ms": "millisecond", "us": "microsecond"}
STEP = re.compile(r"([1-9][0-9]{0,8})? *(ms|us|s|[a-z]+?)s?")
EPOCH = code_of(datetime.datetime(1970, 1, 1))  # NumPy's zero
SPARSE = 50  # if half of the gaps are this many steps or longer, a note suggests a longer step
FINE = 1000  # and if they are this many, times are rounded
MOST_OFFSETS = 100_000  # local time is not considered for logs with more distinct times than this
FIRST_DATE, LAST_DATE = 19000101, 21001231  # whole numbers between these may be dates
SINCE = [code_of(datetime.datetime(year, 1, 1)) - EPOCH for year in (2000, 2100)]  # may be times
TIME_REMEDY = "give it as 2024-01-31 or 2024-01-31T09:30:00"


@dataclasses.dataclass(frozen=True)
class Clock:
    """How the rounds of a log count its times: as steps since its first.

    Args:
        start: when round 0 began, in microseconds since year 1.
        step: the length of a round, in microseconds.
        zone: whose clocks the rounds count, if that was said.
        zoned: whether the log's times have a zone; None: they are dates.
        local: whether rounds are days of local time, of times that have a zone.
        exact: whether all times of the log are starts of rounds, so that rounds tell them in full.

    Example:
        >>> rounds = Rounds()
        >>> _ = rounds.numbered(rounds.read(["2024-01-31 09:00", "2024-01-31 11:00"]))
        >>> rounds.clock.round_of("2024-01-31 12:59"), rounds.clock.round_of("2024-02-01")
        (1, 7)
        >>> str(rounds.clock), Clock.from_document(rounds.clock.to_document()) == rounds.clock
        ('steps of 2 hours since 2024-01-31 09:00:00', True)
    """

    start: int
    step: int
    zone: str | None = None
    zoned: bool | None = None
    local: bool = False
    exact: bool = dataclasses.field(default=False, compare=False)

    def round_of(self, time: Any) -> int:
        """The round in which a time falls; below 0 if it is before the log's first."""
        moment = _moment(time)
        if moment is None:
            raise errors.InvalidInput("time", f"{shown(time)} is not a date or time", TIME_REMEDY)
        code = moment.code + (moment.ahead if self.local else 0)
        who = "time", f"{shown(time)} has"
        return int(self.count(np.array([code]), moment.zoned, who)[0])

    def count(
        self,
        codes: np.ndarray,
        zoned: bool | None,
        who: tuple[str, str] = ("log", "has times with"),
    ) -> np.ndarray:
        """The rounds in which times fall.

        Args:
            codes: the times, in UTC if they have a zone and rounds are no local days; else as
                clocks showed them.
            zoned: whether they have a zone; None: they are dates.
            who: the argument and the beginning of the error if they should have none, or one.
        """
        if self.zone is None and zoned is not None and zoned != bool(self.zoned):
            has, have = ("a", "none") if zoned else ("no", "one")
            problem = f"{who[1]} {has} time zone, and those before have {have}"
            raise errors.InvalidInput(who[0], problem, "write times as before")
        if self.zone is not None and zoned:
            codes = Zone(self.zone).wall(codes)
        return np.asarray((codes - self.start) // self.step)

    def recounted(self, rounds: np.ndarray, other: Clock) -> np.ndarray:
        """Rounds of another clock in the own ones, if each of them lies within one.

        Example:
            >>> hours, days = Clock(0, DAY // 24), Clock(0, DAY, exact=True)
            >>> hours.recounted(np.array([1, 3]), days)  # the other log has dates alone
            array([24, 72])
            >>> hours.recounted(np.array([1, 3]), Clock(0, DAY))  # or had times, which are lost
            Traceback (most recent call last):
            driftbandit.errors.InvalidInput: log: counts rounds as days since 0001-01-01, which ...
        """
        within = not (self.step % other.step or (other.start - self.start) % other.step)
        same = self.zone == other.zone
        alike = (
            self.local == other.local
            and other.zone in (None, self.zone)
            and (other.exact or (same and within))
            and (self.zone is not None or other.zoned in (None, bool(self.zoned)))
        )
        if not alike:
            problem = f"counts rounds as {other}, which are not parts of {self}"
            remedy = "give its file or table, or read it with that clock: read_log(…, clock=…)"
            raise errors.InvalidInput("log", problem, remedy)
        return self.count(other.start + rounds * other.step, None if same else other.zoned)

    def rounds_until(self, other: Clock, argument: str = "log") -> int:
        """The round in which another clock's round 0 begins; both count the same steps.

        Errors call the other clock's owner ``argument``, and the own one the agent.
        """
        alike = (self.step, self.zone, bool(self.zoned), self.local)
        same = alike == (other.step, other.zone, bool(other.zoned), other.local)
        rounds, rest = divmod(other.start - self.start, self.step)
        if not same or rest:
            problem = f"counts rounds as {other}, and the agent as {self}"
            remedy = "give its file or table, without every and zone"
            raise errors.InvalidInput(argument, problem, remedy)
        return rounds

    def __str__(self) -> str:
        """As "hours since 2024-01-31 09:00:00"."""
        unit, size = next(pair for pair in UNITS.items() if self.step % pair[1] == 0)
        many = self.step // size
        steps = f"{unit}s" if many == 1 else f"steps of {many} {unit}s"
        place = f" on the clock of {self.zone}" if self.zone else " UTC" if self.zoned else ""
        place = ", local time" if self.local else place
        return f"{steps} since {_written(self.start, self.step)}{place}"

    def to_document(self) -> dict[str, Any]:
        """Its fields as JSON values; the start as text."""
        fields = dataclasses.asdict(self) | {"start": _written(self.start)}
        return {name: value for name, value in fields.items() if name != "exact"}

    @classmethod
    def from_document(cls, document: Any) -> Clock:
        """The clock of `to_document`."""
        remedy = "give the fields that fit wrote, or leave it out"
        names = {field.name for field in dataclasses.fields(cls)} - {"exact"}
        if not isinstance(document, dict) or set(document) != names:
            raise errors.InvalidInput("clock", f"is {shown(document)}", remedy)
        moment = _moment(document["start"])
        if moment is None or moment.zoned:
            raise errors.InvalidInput("clock", f"start is {shown(document['start'])}", TIME_REMEDY)
        errors.whole_number(document["step"], "clock step", low=1, high=1000 * DAY)
        if document["zone"] is not None:
            Zone(document["zone"])
        if document["zoned"] is not None:
            errors.boolean(document["zoned"], "clock zoned")
        errors.boolean(document["local"], "clock local")
        return cls(**document | {"start": moment.code})


class Rounds:
    """Reads a column of rounds block by block, and numbers them at the end.

    Args:
        every: the length of a round, as "15 minutes" or "1h", counted from midnight (UTC if times
            have a zone; weeks from Monday); None: the longest that divides all times, up to a day.
        zone: as "Europe/Berlin": rounds count what the clocks showed there. Times without a zone
            are what they showed. When clocks go back, times come twice and share rounds.
        known: the clock of an earlier log, whose rounds go on, instead of both.
        apart: whether different times are different rounds, so that none is rounded.

    Example:
        >>> rounds = Rounds()
        >>> read = rounds.read(["2024-01-31", "2024-02-02 12:00", "2024-02-03"])
        >>> rounds.numbered(read).tolist(), rounds.note
        ([0, 5, 6], 'Rounds are steps of 12 hours since 2024-01-31 00:00:00.')
    """

    def __init__(
        self,
        every: str | None = None,
        zone: str | None = None,
        known: Clock | None = None,
        apart: bool = False,
    ) -> None:
        self.note = ""
        self.clock: Clock | None = None  # once times are numbered
        self._options = {"every": every, "zone": zone}
        if known is not None:
            self._refuse_options("was given beside a clock, which says it")
            zone = known.zone
        self._known, self._apart = known, apart
        self._step = None if every is None else _microseconds(every)
        self._zone = None if zone is None else Zone(zone)
        self._times: bool | None = None  # None: no value has been seen yet
        self._zoned: bool | None = None
        self._offsets: dict[int, int] = {}  # by time: how far local time is ahead of UTC

    def _refuse_options(self, problem: str) -> None:
        for argument, value in self._options.items():
            if value is not None:
                raise errors.InvalidInput(argument, problem, "leave it out")

    def read(self, values: Values) -> np.ndarray:
        """Whole numbers, or microseconds since year 1; −1 where a value is neither."""
        if self._times is None:
            known = next((value for value in values if not missing(value)), None)
            self._times = None if known is None else _moment(known) is not None
        if not self._times:
            return whole(values)
        codes = self._codes(values)
        if self._zone is not None:
            wrong = (codes < FIRST) | (codes > LAST)
            if not self._zoned:
                wrong |= self._zone.skipped(codes)
            codes = np.where(wrong, -1, codes)
        return codes

    def _codes(self, values: Values) -> np.ndarray:
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            times = values.astype("M8[us]")
            return np.where(np.isnat(times), -1, times.astype(np.int64) + EPOCH)
        texts = dict.fromkeys(value for value in values if isinstance(value, str))
        code_of_text = {text: self._code(text) for text in texts}  # most repeat the one before
        codes = (code_of_text[v] if isinstance(v, str) else self._code(v) for v in values)
        return np.fromiter(codes, np.int64, len(values))

    def _code(self, value: Any) -> int:
        moment = _moment(value)
        if moment is None:
            return -1
        zoned = moment.zoned if self._zone is None else bool(moment.zoned)
        if zoned is not None:
            self._zoned = zoned if self._zoned is None else self._zoned
            if zoned != self._zoned:
                return -1
        if moment.ahead and len(self._offsets) < MOST_OFFSETS:
            self._offsets[moment.code] = moment.ahead
        return moment.code

    def fault(self, value: Any) -> Fault:
        """What is wrong with a value, and what would be right."""
        is_time = _moment(value) is not None
        if not self._times:
            if is_time:
                return "is a date, and others are numbers", "write all alike"
            said, remedy = whole_fault(value)
            if isinstance(value, str) and value.strip() and not is_number(value):
                remedy += ", or a date such as 2024-01-31"
            return said, remedy
        if not is_time:
            return "is not a date or time, as those before are", TIME_REMEDY
        code = self._code(value)
        if code < 0 or self._zone is None:
            return "has a time zone where others have none, or has none", "write all alike"
        if not FIRST <= code <= LAST:
            return "is too early or too late for a time zone", "leave out the zone"
        said = f"was never on the clock of {self._zone.name}, which went forward then"
        return said, "write times of another clock with their zone, as 2024-01-31T09:30Z"

    def shown(self, code: int) -> str:
        """A round as errors show it."""
        if not self._times:
            return str(code)
        place = " UTC" if self._zone is not None and self._zoned else ""
        return f"{_written(int(code))}{place}"

    def in_order(self, codes: np.ndarray) -> np.ndarray:
        """Numbers that do not decrease if the rows are in order of time."""
        if self._zone is None or not self._times or self._zoned:
            return codes
        return self._zone.in_order(codes)

    def went_back(self, code: int, last: int) -> str:
        """A hint if a round is before the last one because a clock may have been set back."""
        may = self._times and self._zone is None and not self._zoned and last - code <= DAY // 24
        return ", or give the --zone of a clock that was set back" if may else ""

    def numbered(self, codes: np.ndarray) -> np.ndarray:
        """The rounds of all rows as whole numbers; `note` says what they count."""
        if not self._times:
            self._refuse_options("was given, and the rounds are numbers")
            self.note = _looks_like_times(codes)
            return codes
        if self._known is not None:
            self.clock = dataclasses.replace(self._known, exact=False)
            self.note = f"Rounds are {self.clock}."
            local = codes + self._ahead(codes) if self.clock.local else codes
            return self.clock.count(local, self._zoned)
        changes = note = ""
        if self._zone is not None:
            codes, changes = self._on_clock(codes, self._zone)
        step, exact = self._step or _longest_step(codes), self._step is None
        days = self._local(codes) if exact and step < DAY and self._zone is None else None
        if days is not None:
            codes, step = days, DAY
        if exact:
            finest = step
            step, note = _rounded(codes, finest, self._apart)
            exact = step == finest
        start = int(codes.min())
        if not exact:
            start -= start % step
        zone = None if self._zone is None else self._zone.name
        self.clock = Clock(start, step, zone, self._zoned, days is not None, exact)
        self.note = f"Rounds are {self.clock}.{changes}{note}"
        return np.asarray((codes - start) // step)

    def _on_clock(self, codes: np.ndarray, zone: Zone) -> tuple[np.ndarray, str]:
        """What the clocks of a zone showed, and a sentence on their changes within the log."""
        first, last = int(codes.min()), int(codes.max())
        inside = []
        for change in zone.changes(first - DAY, last + DAY):
            start, end = (change.moment, change.moment) if self._zoned else change.wall
            if first < end and start <= last:
                inside.append(change)
        return zone.wall(codes) if self._zoned else codes, " " + described(inside)

    def _local(self, codes: np.ndarray) -> np.ndarray | None:
        """Local times if they are whole days apart (23 or 25 hours when clocks change), or None."""
        if not 0 < len(self._offsets) < MOST_OFFSETS:
            return None
        times, places = np.unique(codes, return_inverse=True)
        local = times + self._ahead(times)
        fits = _longest_step(local) == DAY and (np.diff(local) > 0).all()
        return np.asarray(local[places]) if fits else None

    def _ahead(self, codes: np.ndarray) -> np.ndarray:
        """How far local time was ahead of UTC."""
        return np.array([self._offsets.get(code, 0) for code in codes.tolist()], np.int64)


def _looks_like_times(codes: np.ndarray) -> str:
    """A note if all numbers could be dates without dashes, or count units since 1970; else "".

    Example:
        >>> _looks_like_times(np.array([20240131, 20240201]))
        'Rounds such as 20240131 look like dates and are read as numbers: write 2024-01-31.'
        >>> _looks_like_times(np.array([1475567982_000000, 1475571582_000000]))
        'Rounds such as 1475567982000000 look like microseconds since 1970 and are read as ...
        >>> _looks_like_times(np.array([20240131, 20240132])), _looks_like_times(np.arange(5))
        ('', '')
    """
    lowest, highest = int(codes.min()), int(codes.max())
    said = f"Rounds such as {lowest} look like "
    if lowest >= FIRST_DATE and highest <= LAST_DATE:
        dates = [f"{c // 10_000}-{c // 100 % 100:02}-{c % 100:02}" for c in np.unique(codes)]
        if all(map(_moment, dates)):
            return f"{said}dates and are read as numbers: write {dates[0]}."
    for unit in ("second", "millisecond", "microsecond"):
        size = UNITS[unit]
        if SINCE[0] // size <= lowest and highest <= SINCE[1] // size:
            said += f"{unit}s since 1970 and are read as rounds: write times, as "
            said += f"{_written(EPOCH + lowest * size)}, and say --every hour"
            return said + ' (in Python, every="hour").'
    return ""


def _rounded(codes: np.ndarray, step: int, apart: bool) -> tuple[int, str]:
    """The step, or a longer one if it is far shorter than the gaps; and a note on that.

    Example:
        >>> _rounded(np.array([0, 3_600_000_001, 9_000_000_000]), 1, apart=False)[0] == DAY // 24
        True
    """
    gaps = np.diff(np.unique(codes))
    gap = float(np.median(gaps)) if len(gaps) else 0.0
    if gap < SPARSE * step or step == DAY:
        return step, ""
    if gap < FINE * step or apart:
        said, other = f"{gap / step:,.0f} rounds or longer: for longer rounds", "hour"
    else:
        unit, step = next((unit, size) for unit, size in UNITS.items() if size <= gap)
        said = f"1 {unit} or longer, and times are rounded down to that: for other rounds"
        other = "15min"
    return step, f' Half of the gaps are {said} say --every {other} (in Python, every="{other}").'


def _longest_step(codes: np.ndarray) -> int:
    """The longest step that divides all times, up to a day."""
    return math.gcd(int(np.gcd.reduce(codes - codes.min())), DAY)


def _microseconds(every: Any) -> int:
    """The length of a round as users write it.

    Example:
        >>> _microseconds("15 minutes"), _microseconds("15min"), _microseconds("hour")
        (900000000, 900000000, 3600000000)
    """
    match = STEP.fullmatch(every.strip().lower()) if isinstance(every, str) else None
    count, unit = match.groups() if match else (None, "")
    size = int(count or 1) * STEP_UNITS.get(SHORT_UNITS.get(unit, unit), 0)
    if not 0 < size <= 1000 * DAY:
        units = ", ".join(STEP_UNITS)
        remedy = f'give a number and a unit, as "15 minutes" or "1h"; units: {units}'
        raise errors.InvalidInput("every", f"is {shown(every)}", remedy)
    return size


class _Moment(NamedTuple):
    code: int  # in microseconds since year 1, in UTC if it has a zone
    zoned: bool | None = None  # None: it is a date
    ahead: int = 0  # how far its clock is ahead of UTC


def _moment(value: Any) -> _Moment | None:
    """A date or a time; None if the value is neither, and is not the text of one."""
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()  # None for NaT
    if isinstance(value, str):
        text = value.strip().replace(" UTC", "Z").replace("UTC", "Z")
        kind = datetime.date if len(text) == 10 else datetime.datetime
        try:  # fromisoformat alone would also read 20240131
            value = kind.fromisoformat(text) if ISO.fullmatch(text) else None
        except ValueError:  # february 30
            return None
    if not isinstance(value, datetime.date) or missing(value):
        return None
    if not isinstance(value, datetime.datetime):
        return _Moment(code_of(datetime.datetime.combine(value, datetime.time())))
    offset = value.utcoffset()
    wall = code_of(datetime.datetime.combine(value.date(), value.time()))  # pandas' own are short
    ahead = 0 if offset is None else offset // MICROSECOND
    return _Moment(wall - ahead, offset is not None, ahead)


def _written(code: int, step: int = DAY) -> str:
    time = datetime.datetime.min + code * MICROSECOND
    return str(time) if step % DAY or code % DAY else str(time.date())
