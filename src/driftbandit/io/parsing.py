"""Values in users' tables: numbers, labels, dates and times, and what is wrong with them.

The first value of a column of rounds decides whether it holds numbers or times. Times become whole
numbers of steps since the first time in the log. A step is what the user gives, such as
"15 minutes", or the longest one, up to a day, that divides all times.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandit import errors

LARGEST_ROUND = 2**53
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE_AS_REAL = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
UNDECODED = re.compile("[\ud800-\udfff]")  # bytes that are not UTF-8 are decoded as these
TRUTH = {"true": 1.0, "false": 0.0}
REMEDIES = {
    "round": "give a whole number from 0 to 2^53",
    "reward": "give a finite number, or leave it empty",
    "feature": "give a finite number",
    "arm": "give text or a number",
    "sequence": "give text or a number, or leave the column out",
}

Values = list[Any] | np.ndarray


def shown(value: Any) -> str:
    """A value as errors show it: on one line, at most 60 characters."""
    value = value.item() if isinstance(value, np.generic) else value
    try:
        text = repr(value[:60] if isinstance(value, str | bytes) else value)
    except ValueError:  # python does not print integers of more than 4300 digits
        text = "of thousands of digits"
    text = " ".join(text.split())
    return errors.printable(text if len(text) <= 60 else text[:57] + "...")


def first_names(names: Any) -> str:
    """The first six names and, if there are more, how many there are in all."""
    few = ", ".join(errors.printable(str(name)[:30]) for name in names[:6])
    return few + (f", … ({len(names)} arms)" if len(names) > 6 else "")


def first(wrong: np.ndarray) -> int:
    """The first index that is true, or the length if none is."""
    return int(wrong.argmax()) if wrong.any() else len(wrong)


def missing(value: Any) -> bool:
    """Whether a value is null, NaN, NaT or blank text."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    is_number = isinstance(value, float | np.floating)
    return value is None or (is_number and math.isnan(value)) or _is_nat(value)


def _is_nat(value: Any) -> bool:
    return isinstance(value, datetime.date) and value != value  # pandas' NaT is a date


# Numbers


def real(values: Values) -> np.ndarray:
    """Values as numbers: NaN where one is missing, infinity where it is not a number; true is 1.

    Example:
        >>> real(["1.5", "", "x", "1e3", "true", False]).tolist()
        [1.5, nan, inf, 1000.0, 1.0, 0.0]
    """
    if isinstance(values, np.ndarray) and values.dtype.kind != "M":
        return values.astype(np.float64)
    types = set(map(type, values))
    with contextlib.suppress(OverflowError, ValueError):  # then one by one
        if types <= {int, float}:
            return np.array(values, dtype=np.float64)
        text = "".join(values) if types == {str} else "_"
        if text.isascii() and not any(letter in text for letter in "_nN"):  # 1_0, nan, inf
            return np.array([float(value) if value else math.nan for value in values])
    return np.array([_real(value) for value in values])


def _real(value: Any) -> float:
    if missing(value):
        return math.nan
    if isinstance(value, bool | np.bool_):
        return float(value)
    if isinstance(value, str) and (word := value.strip().lower()) in TRUTH:
        return TRUTH[word]
    try:
        return float(_numeric(value))
    except (TypeError, ValueError, ArithmeticError):
        return math.inf


def whole(values: Values) -> np.ndarray:
    """Values as whole numbers from 0 to 2^53: −1 where one is missing or anything else.

    Example:
        >>> whole(["3", "4.0", "2.5", "-7", ""]).tolist()
        [3, 4, -1, -1, -1]
    """
    if isinstance(values, np.ndarray) and values.dtype.kind != "M":
        good = (values >= 0) & (values <= LARGEST_ROUND)
        if values.dtype.kind == "f":
            good &= values == np.floor(values)
        return np.where(good, values, 0).astype(np.int64) - ~good
    types = set(map(type, values))
    with contextlib.suppress(ValueError, OverflowError):  # then one by one
        if types == {int} or types == {float}:
            return whole(np.array(values, dtype=np.int64 if types == {int} else np.float64))
        if types == {str} and (text := "".join(values)).isascii() and "_" not in text:
            return whole(np.array(list(map(int, values)), dtype=np.int64))
    return np.array([_whole(value) for value in values], dtype=np.int64)


def _whole(value: Any) -> int:
    try:
        number = decimal.Decimal(_numeric(value))
        inside = 0 <= number <= LARGEST_ROUND and number == number.to_integral_value()
        return int(number) if inside else -1
    except (TypeError, ValueError, ArithmeticError):
        return -1


def _numeric(value: Any) -> Any:
    """The value if it is a number, or the text of one; else TypeError."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise TypeError
    return value


def _is_number(value: Any) -> bool:
    try:
        number = _numeric(value)
        return isinstance(number, str | int) or math.isfinite(number)
    except (TypeError, ValueError):
        return False


def problem(column: str, value: Any, known: Any = (), called: str = "") -> tuple[str, str]:
    """What is wrong with a value of a column, and what would be right."""
    called, text, remedy = called or column, shown(value), REMEDIES[column]
    if isinstance(value, str) and UNDECODED.search(value):
        return f"{called} {text} is not UTF-8 text", "save the file as UTF-8"
    if missing(value):
        return f"{called} is missing", remedy
    if column in ("arm", "sequence"):
        label = label_of(value)
        if label is None:
            return f"{called} {text} is not a label", remedy
        near = difflib.get_close_matches(label[:100], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"unknown arm {shown(label)}", f"{hint}known: {first_names(known)}"
    number = _is_number(value)
    if column != "round":
        if number:
            return f"{called} {text} is too large", f"{errors.LARGEST:g} is the most"
        finite = "finite " if isinstance(value, float | np.floating) else ""
        return f"{called} {text} is not a {finite}number", remedy
    size = real([value])[0]
    if number and size < 0:
        return f"{called} {text} is negative", remedy
    if number and size >= LARGEST_ROUND:
        return f"{called} {text} is too large", remedy
    return f"{called} {text} is not a whole number", remedy


# Labels


class Labels(dict[Any, int]):
    """Labels and their numbers, however they are written: "3", 3 and 3.0 are the same label.

    Args:
        names: the labels that exist; None: each new label is added, in order of appearance.

    Example:
        >>> labels = Labels()
        >>> labels.codes(["b", 3, "a", 3.0, "3", " b"]).tolist(), labels.names
        ([0, 1, 2, 1, 1, 0], ['b', '3', 'a'])
    """

    def __init__(self, names: Sequence[str] | None = None) -> None:
        super().__init__()
        self.names = list(names or ())
        self._numbers = {name: i for i, name in enumerate(self.names)}
        self._open = names is None

    def codes(self, values: Values) -> np.ndarray:
        """The number of each label; −1 where the value is not a label or is unknown."""
        if isinstance(values, np.ndarray):
            values = values.tolist()
        elif not set(map(type, values)) <= {str, int, float}:  # True would be found as 1
            values = [value if _may_be_label(value) else None for value in values]
        return np.fromiter(map(self.__getitem__, values), np.int64, len(values))

    def __missing__(self, value: Any) -> int:
        label = label_of(value)
        if label is None:
            return -1
        if self._open and label not in self._numbers:
            self._numbers[label] = len(self.names)
            self.names.append(label)
        self[value] = number = self._numbers.get(label, -1)
        return number


def _may_be_label(value: Any) -> bool:
    numbers = int | float | np.integer | np.floating | decimal.Decimal
    return isinstance(value, str | numbers) and not isinstance(value, bool)


def label_of(value: Any) -> str | None:
    """A label as text; None if the value is not one.

    Example:
        >>> label_of(3.0), label_of("3.00"), label_of("007"), label_of(" x "), label_of("")
        ('3', '3', '007', 'x', None)
    """
    if not _may_be_label(value) or missing(value):
        return None
    if isinstance(value, str):
        text = value.strip()
        if UNDECODED.search(text):
            return None
        match = WHOLE_AS_REAL.fullmatch(text)
        if match is None:
            return text
        return "0" if match[1] == "-0" else match[1]
    try:
        return str(int(value)) if value == int(value) else repr(float(value))
    except (ValueError, ArithmeticError):  # infinite, or of thousands of digits
        return None


def dates_as_text(values: Values) -> Values:
    """Dates and times as text, so that they can be labels; other values as they are.

    Example:
        >>> dates_as_text(np.array(["2024-01-31"], "M8[ns]"))
        ['2024-01-31']
        >>> dates_as_text(["x", datetime.date(2024, 1, 31)])
        ['x', '2024-01-31']
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = values.astype("M8[us]").tolist()
    if isinstance(values, np.ndarray) or not any(isinstance(v, datetime.date) for v in values):
        return values
    return [_date_label(v) if isinstance(v, datetime.date) else v for v in values]


def _date_label(date: datetime.date) -> str | None:
    return None if _is_nat(date) else str(date).removesuffix(" 00:00:00")


# Dates and times

ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z| ?UTC|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
MICROSECOND = datetime.timedelta(microseconds=1)
DAY = 86_400_000_000  # microseconds, in which all times are counted from the start of year 1
UNITS = {"day": DAY, "hour": DAY // 24, "minute": 60_000_000, "second": 1_000_000}
UNITS |= {"millisecond": 1000, "microsecond": 1}
STEP_UNITS = UNITS | {"week": 7 * DAY, "d": DAY, "h": DAY // 24, "min": 60_000_000}
STEP = re.compile(r"([1-9][0-9]{0,8})? *([a-z]+?)s?")
EPOCH = (datetime.date(1970, 1, 1) - datetime.date.min) // MICROSECOND  # NumPy's zero
SPARSE = 50  # if half of the gaps are this many steps or longer, a note suggests a longer step
MOST_OFFSETS = 100_000  # local time is not considered for logs with more distinct times than this
FIRST_DATE, LAST_DATE = 19000101, 21001231  # whole numbers between these may be dates
TIME_REMEDY = "give it as 2024-01-31 or 2024-01-31T09:30:00"


class Rounds:
    """Reads a column of rounds block by block, and numbers them at the end.

    Args:
        step: the length of a round, as "15 minutes" or "day", counted from midnight (UTC if times
            have a zone; weeks from Monday); None: the longest that divides all times, up to a day.

    Example:
        >>> rounds = Rounds()
        >>> read = rounds.read(["2024-01-31", "2024-02-02 12:00", "2024-02-03"])
        >>> rounds.numbered(read).tolist(), rounds.note
        ([0, 5, 6], 'Rounds are steps of 12 hours since 2024-01-31 00:00:00.')
    """

    def __init__(self, step: str | None = None) -> None:
        self.note = ""
        self._step = None if step is None else _microseconds(step)
        self._times: bool | None = None  # None: no value has been seen yet
        self._zoned: bool | None = None
        self._offsets: dict[int, int] = {}  # by time: how far local time is ahead of UTC

    def read(self, values: Values) -> np.ndarray:
        """Whole numbers, or microseconds since year 1; −1 where a value is neither."""
        if self._times is None:
            known = next((value for value in values if not missing(value)), None)
            self._times = None if known is None else _time(known) is not None
        if not self._times:
            number = not isinstance(values, np.ndarray) or values.dtype.kind in "iuf"
            return whole(values) if number else np.full(len(values), -1)
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            times = values.astype("M8[us]")
            return np.where(np.isnat(times), -1, times.astype(np.int64) + EPOCH)
        texts = dict.fromkeys(value for value in values if isinstance(value, str))
        codes = {text: self._code(text) for text in texts}  # most rows repeat the one before
        found = (codes[v] if isinstance(v, str) else self._code(v) for v in values)
        return np.fromiter(found, np.int64, len(values))

    def _code(self, value: Any) -> int:
        time = _time(value)
        if time is None:
            return -1
        if not isinstance(time, datetime.datetime):
            return (time - datetime.date.min) // MICROSECOND
        offset = time.utcoffset()
        if self._zoned is None:
            self._zoned = offset is not None
        if (offset is not None) != self._zoned:
            return -1
        ahead = 0 if offset is None else offset // MICROSECOND
        local = datetime.datetime.combine(time.date(), time.time())  # pandas' own are too short
        code = (local - datetime.datetime.min) // MICROSECOND - ahead
        if ahead and len(self._offsets) < MOST_OFFSETS:
            self._offsets[code] = ahead
        return code

    def problem(self, value: Any) -> tuple[str, str]:
        """What is wrong with a value, and what would be right."""
        if self._times and missing(value):
            return "round is missing", TIME_REMEDY
        is_time, text = _time(value) is not None, f"round {shown(value)}"
        if self._times and is_time:
            return f"{text} has a time zone where others have none, or has none", "write all alike"
        if self._times:
            return f"{text} is not a date or time, as those before are", TIME_REMEDY
        if is_time:
            return f"{text} is a date, and others are numbers", "write all alike"
        said, remedy = problem("round", value)
        if isinstance(value, str) and value.strip() and not _is_number(value):
            remedy += ", or a date such as 2024-01-31"
        return said, remedy

    def shown(self, code: int) -> str:
        """A round as errors show it."""
        return _written(int(code)) if self._times else str(code)

    def numbered(self, codes: np.ndarray) -> np.ndarray:
        """The rounds of all rows as whole numbers; `note` says what they count."""
        if not self._times:
            if self._step is not None:
                said = "was given, and the rounds are numbers"
                raise errors.InvalidInput("step (--round-step)", said, "leave it out")
            self.note = _looks_like_dates(codes)
            return codes
        zone = " UTC" if self._zoned else ""
        step = self._step or _longest_step(codes)
        local = self._local(codes) if self._step is None and step < DAY else None
        if local is not None:
            codes, step, zone = local, DAY, ", local time"
        start = int(codes.min())
        start -= start % step if self._step else 0
        unit = next(unit for unit, size in UNITS.items() if step % size == 0)
        many = step // UNITS[unit]
        steps = f"{unit}s" if many == 1 else f"steps of {many} {unit}s"
        self.note = f"Rounds are {steps} since {_written(start, step)}{zone}."
        rounds = np.asarray((codes - start) // step)
        gap = np.median(np.diff(np.unique(rounds))) if self._step is None and step < DAY else 0
        if gap >= SPARSE:
            self.note += f" Half of the gaps are {gap:,.0f} rounds or longer: for longer rounds say"
            self.note += ' --round-step hour (in Python, step="hour").'
        return rounds

    def _local(self, codes: np.ndarray) -> np.ndarray | None:
        """Local times if they are whole days apart (23 or 25 hours when clocks change), or None."""
        if not 0 < len(self._offsets) < MOST_OFFSETS:
            return None
        times, places = np.unique(codes, return_inverse=True)
        local = times + np.array([self._offsets.get(code, 0) for code in times.tolist()], np.int64)
        fits = _longest_step(local) == DAY and (np.diff(local) > 0).all()
        return np.asarray(local[places]) if fits else None


def _looks_like_dates(codes: np.ndarray) -> str:
    """A note if all rounds could be dates written without dashes, else "".

    Example:
        >>> _looks_like_dates(np.array([20240131, 20240201]))
        'Rounds such as 20240131 look like dates and are read as numbers: write 2024-01-31.'
        >>> _looks_like_dates(np.array([20240131, 20240132]))
        ''
    """
    lowest = int(codes.min())
    if lowest < FIRST_DATE or codes.max() > LAST_DATE:
        return ""
    dates = [f"{c // 10_000}-{c // 100 % 100:02}-{c % 100:02}" for c in np.unique(codes)]
    if any(_time(date) is None for date in dates):
        return ""
    return f"Rounds such as {lowest} look like dates and are read as numbers: write {dates[0]}."


def _longest_step(codes: np.ndarray) -> int:
    """The longest step that divides all times, up to a day."""
    return math.gcd(int(np.gcd.reduce(codes - codes.min())), DAY)


def _microseconds(step: Any) -> int:
    """A step as users write it.

    Example:
        >>> _microseconds("15 minutes"), _microseconds("hour")
        (900000000, 3600000000)
    """
    match = STEP.fullmatch(step.strip().lower()) if isinstance(step, str) else None
    size = int(match[1] or 1) * STEP_UNITS.get(match[2], 0) if match else 0
    if not 0 < size <= 1000 * DAY:
        remedy = f'give a number and a unit, as "15 minutes"; units: {", ".join((*UNITS, "week"))}'
        raise errors.InvalidInput("step (--round-step)", f"is {shown(step)}", remedy)
    return size


def _time(value: Any) -> datetime.date | None:
    """A date or a datetime; None if the value is neither, and is not the text of one."""
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()  # None for NaT
    if isinstance(value, datetime.date):
        return None if _is_nat(value) else value
    text = value.strip() if isinstance(value, str) else ""
    if not ISO.fullmatch(text):  # fromisoformat would also read 20240131
        return None
    try:
        if len(text) == 10:
            return datetime.date.fromisoformat(text)
        return datetime.datetime.fromisoformat(re.sub(" ?UTC", "Z", text))
    except ValueError:  # february 30
        return None


def _written(code: int, step: int = DAY) -> str:
    time = datetime.datetime.min + code * MICROSECOND
    return str(time) if step % DAY or code % DAY else str(time.date())
