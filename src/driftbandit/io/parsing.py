"""Values in users' tables: numbers and labels, and what is wrong with them."""

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
LABEL = "give text or a number"
WHOLE = "give a whole number from 0 to 2^53"
FINITE = "give a finite number"
TOO_LARGE = "is too large", f"{errors.LARGEST:g} is the most"

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
    return value is None or (is_number and math.isnan(value)) or is_nat(value)


def is_nat(value: Any) -> bool:
    """Whether a value is pandas' missing time."""
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


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, or the text of a number."""
    try:
        number = _numeric(value)
        return isinstance(number, str | int) or math.isfinite(number)
    except (TypeError, ValueError):
        return False


def label_problem(
    value: Any, called: str = "arm", remedy: str = LABEL, known: Any = ()
) -> tuple[str, str]:
    """What is wrong with a label, or one that is not among the known ones; what would be right."""
    said = _not_there(value, called, remedy)
    label = None if said else label_of(value)
    if label is None:
        return said or (f"{called} {shown(value)} is not a label", remedy)
    near = difflib.get_close_matches(label[:100], known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown arm {shown(label)}", f"{hint}known: {first_names(known)}"


def number_problem(
    value: Any, called: str, remedy: str = FINITE, outside: tuple[str, str] = TOO_LARGE
) -> tuple[str, str]:
    """What is wrong with a number, and what would be right; ``outside``: of a number as such."""
    if said := _not_there(value, called, remedy):
        return said
    if is_number(value):
        return f"{called} {shown(value)} {outside[0]}", outside[1]
    finite = "finite " if isinstance(value, float | np.floating) else ""
    return f"{called} {shown(value)} is not a {finite}number", remedy


def whole_problem(value: Any, called: str) -> tuple[str, str]:
    """What is wrong with a whole number, such as a round, and what would be right."""
    if said := _not_there(value, called, WHOLE):
        return said
    size = real([value])[0] if is_number(value) else 0.5
    if size < 0:
        return f"{called} {shown(value)} is negative", WHOLE
    if size >= LARGEST_ROUND:
        return f"{called} {shown(value)} is too large", f"{WHOLE}, or a time as 2024-01-31T09:30:00"
    return f"{called} {shown(value)} is not a whole number", WHOLE


def _not_there(value: Any, called: str, remedy: str) -> tuple[str, str] | None:
    if isinstance(value, str) and UNDECODED.search(value):
        return f"{called} {shown(value)} is not UTF-8 text", "save the file as UTF-8"
    return (f"{called} is missing", remedy) if missing(value) else None


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
    return None if is_nat(date) else str(date).removesuffix(" 00:00:00")
