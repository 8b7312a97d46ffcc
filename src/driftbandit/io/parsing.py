"""Values in users' tables: numbers and labels, and what is wrong with them."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors

LARGEST_ROUND = 2**53
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE_AS_REAL = re.compile(r"\A(?:-?(0)|(-?[1-9][0-9]*))\.0+\Z")  # 3.0 is 3, and -0.0 is 0
UNDECODED = re.compile("[\ud800-\udfff]")  # bytes that are not UTF-8 are decoded as these
TRUTH = {"true": 1.0, "false": 0.0}
LABEL = "give text or a number"
WHOLE = "give a whole number from 0 to 2^53"
FINITE = "give a finite number"
TOO_LARGE = "is too large", f"{errors.LARGEST:g} is the most"

Values = list[Any] | np.ndarray
Fault = tuple[str, str]  # what is wrong with a value, and what would be right


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
    scalars = float | np.generic | decimal.Decimal | datetime.date  # pandas' NaT is a date
    return value is None or (isinstance(value, scalars) and bool(value != value))


class Kind(NamedTuple):
    """What a column of a table holds: how it is read, and what is wrong with a bad value.

    Args:
        called: what errors call a value.
        read: numbers for values.
        fault: what is wrong with a value, and what would be right.
        wrong: which of the numbers stand for bad values.
        counted: whether errors say how many rows are bad.

    Example:
        >>> rounds = Kind("round", whole, whole_fault)
        >>> rounds.wrong(rounds.read([3, -1])).tolist(), rounds.problem(-1)[0]
        ([False, True], 'round -1 is negative')
    """

    called: str
    read: Callable[[Values], np.ndarray]
    fault: Callable[[Any], Fault]
    wrong: Callable[[np.ndarray], np.ndarray] = lambda codes: codes < 0
    counted: bool = False

    def problem(self, value: Any) -> Fault:
        """What is wrong with a value, by its name, and what would be right."""
        said, remedy = self.fault(value)
        if isinstance(value, str) and UNDECODED.search(value):
            said, remedy = "is not UTF-8 text", "save the file as UTF-8"
        if missing(value):
            return f"{self.called} is missing", remedy
        return f"{self.called} {shown(value)} {said}", remedy


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
        if types <= {int, float, bool, type(None)}:
            return np.array(values, dtype=np.float64)  # None becomes NaN
        text = "".join(values) if types == {str} else "_"
        if text.isascii() and not any(letter in text for letter in "_nN"):  # 1_0, nan, inf
            return np.array([float(value) if value else math.nan for value in values])
    return np.array([_real(value) for value in values])


def _real(value: Any) -> float:
    if missing(value):
        return math.nan
    if isinstance(value, str | bool | np.bool_) and (word := str(value).strip().lower()) in TRUTH:
        return TRUTH[word]
    number = _exact(value)
    return math.inf if number is None else float(number)


def real_fault(value: Any, remedy: str = FINITE, outside: Fault = TOO_LARGE) -> Fault:
    """What is wrong with a number, and what would be right; ``outside``: of a number as such."""
    if is_number(value):
        return outside
    finite = "finite " if isinstance(value, float | np.floating) else ""
    return f"is not a {finite}number", remedy


def whole(values: Values) -> np.ndarray:
    """Values as whole numbers from 0 to 2^53: −1 where one is missing or anything else.

    Example:
        >>> whole(["3", "4.0", "2.5", "-7", ""]).tolist()
        [3, 4, -1, -1, -1]
    """
    if isinstance(values, np.ndarray) and values.dtype.kind != "M":
        good = (values >= 0) & (values <= LARGEST_ROUND) & (values == np.floor(values))
        return np.where(good, values, 0).astype(np.int64) - ~good
    types = set(map(type, values))
    with contextlib.suppress(ValueError, OverflowError):  # then one by one
        if types in ({int}, {float}):
            return whole(np.array(values, dtype=types.pop()))
        if types == {str} and (text := "".join(values)).isascii() and "_" not in text:
            return whole(np.array(list(map(int, values)), dtype=np.int64))
    return np.array([_whole(value) for value in values], dtype=np.int64)


def _whole(value: Any) -> int:
    number = _exact(value)
    if number is None or not 0 <= number <= LARGEST_ROUND or number % 1:
        return -1
    return int(number)


def whole_fault(value: Any) -> Fault:
    """What is wrong with a whole number, such as a round, and what would be right."""
    number = _exact(value)
    if number is None or (0 <= number <= LARGEST_ROUND):
        return "is not a whole number", WHOLE
    if number < 0:
        return "is negative", WHOLE
    return "is too large", f"{WHOLE}, or a time as 2024-01-31T09:30:00"


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, or the text of a number."""
    return _exact(value) is not None


def _exact(value: Any) -> decimal.Decimal | None:
    """A finite number, or the one that a text writes; None if the value is neither."""
    value = value.item() if isinstance(value, np.generic) else value
    written = isinstance(value, str) and NUMBER.fullmatch(value.strip())
    plain = isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)
    if not written and not plain:
        return None
    try:
        number = decimal.Decimal(value)
    except decimal.InvalidOperation:  # its exponent has twenty digits
        return None
    return number if number.is_finite() else None


# Labels


class Labels(dict[Any, int]):
    """Labels and their numbers, however they are written: "3", 3 and 3.0 are the same label.

    Args:
        names: the labels that exist; None: each new label is added, in order of appearance.
        remedy: what would be right in place of a value that is not a label.

    Example:
        >>> labels = Labels()
        >>> labels.codes(["b", 3, "a", 3.0, "3", " b"]).tolist(), labels.names
        ([0, 1, 2, 1, 1, 0], ['b', '3', 'a'])
    """

    def __init__(self, names: Iterable[str] | None = None, remedy: str = LABEL) -> None:
        self.names, self._remedy, self._open = list(names or ()), remedy, names is None
        super().__init__({name: number for number, name in enumerate(self.names)})

    def codes(self, values: Values) -> np.ndarray:
        """The number of each label; −1 where the value is not a label or is unknown."""
        if isinstance(values, np.ndarray):
            values = values.tolist()
        elif not set(map(type, values)) <= {str, int, float}:  # True would be found as 1
            values = [value if _may_be_label(value) else None for value in values]
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))

    def __missing__(self, value: Any) -> int:
        label = label_of(value)
        if label is None:
            return -1
        if self._open and label not in self:
            self[label] = len(self.names)
            self.names.append(label)
        self[value] = number = self.get(label, -1)
        return number

    def kind(self, called: str, dates: bool = False) -> Kind:
        """How a column of these labels is read; ``dates``: whether they may be dates."""
        read = (lambda values: self.codes(dates_as_text(values))) if dates else self.codes
        return Kind(called, read, self.fault)

    def fault(self, value: Any) -> Fault:
        """What is wrong with a label that has no number, and what would be right."""
        label = label_of(value)
        if label is None:
            return "is not a label", self._remedy
        hint = errors.suggestion(label, self.names)
        return "is unknown", f"{hint}known: {first_names(self.names)}"


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
        return None if UNDECODED.search(value) else WHOLE_AS_REAL.sub(r"\1\2", value.strip())
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
    return [
        str(v).removesuffix(" 00:00:00") if isinstance(v, datetime.date) and not missing(v) else v
        for v in values
    ]
