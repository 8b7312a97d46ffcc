"""Tables of users: CSV and Parquet files, columns in memory, and what their cells say.

A table comes as blocks of rows, each row with its place in the file, so that memory stays bounded
and what is wrong is named where it stands. A block that ends early is checked before the fault
that ended it is raised: the first bad line is the one that is named.
"""

from __future__ import annotations

import contextlib
import csv
import decimal
import functools
import gzip
import io
import itertools
import math
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from driftbandit import errors

__all__ = [
    "Block",
    "Labels",
    "Table",
    "in_memory",
    "is_number",
    "label_of",
    "missing",
    "opened",
    "real",
    "shown",
    "too_long",
    "whole",
]

MOST_ROWS = 10**8
MOST_BYTES = 4 * 2**30
"""A larger file is refused unread, a packed one as soon as that much has come out of it."""
LONGEST_LINE = 2**22
"""Characters; a file without line ends must not fill the memory."""
BLOCK_CELLS = 2**18
CSV_BLOCK_CELLS = 2**13
"""Cells of one block; short lists of text are three times as fast as long ones."""
LARGEST_ROUND = 2**53
SUFFIXES = (".csv", ".csv.gz", ".parquet")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE_AS_REAL = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
UNDECODED = re.compile("[\ud800-\udfff]")
"""Bytes that are no UTF-8 arrive as these."""

Values = list[Any] | np.ndarray


class Block(NamedTuple):
    """Some rows of a table: its columns in order, and the number of the line or row of each."""

    columns: list[Values]
    numbers: Sequence[int]


class Table(NamedTuple):
    """What a table is called, its columns' names, what its rows are counted in, and its rows."""

    name: str
    columns: list[str]
    unit: str
    blocks: Iterator[Block]

    def place(self, number: int) -> str:
        """Where a row stands, as errors say it."""
        return f"{self.name} {self.unit} {number}"


# Files


@contextlib.contextmanager
def opened(path: Any, what: str) -> Iterator[Table]:
    """Open a CSV or Parquet file, by the ending of its name.

    Args:
        path: the file; .csv, .csv.gz or .parquet.
        what: what the file is, for errors: "log" or "arms".
    """
    try:
        path = os.fspath(path)
        name = errors.printable(path if isinstance(path, str) else os.fsdecode(path))
    except TypeError:
        raise errors.InvalidInput(what, f"{shown(path)} is not a path", _PATH_REMEDY) from None
    name = name or "''"
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # the last: a name with a zero byte
        raise _unreadable(name, error) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a plain file"
        raise errors.InvalidInput(name, f"is {kind}", _PATH_REMEDY)
    ending = next((end for end in SUFFIXES if os.fsdecode(path).lower().endswith(end)), None)
    if ending is None:
        remedy = f"name it {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, as what it is"
        raise errors.InvalidInput(name, "has a name that does not tell its kind", remedy)
    if status.st_size > MOST_BYTES:
        raise errors.InvalidInput(name, f"has {status.st_size:,} bytes", _TOO_LONG)
    with contextlib.ExitStack() as stack:
        try:
            file: IO[bytes] = stack.enter_context(open(path, "rb"))
        except OSError as error:
            raise _unreadable(name, error) from None
        if ending == ".parquet":
            yield _parquet(file, name)
        else:
            packed = ending == ".csv.gz"
            unpacked: Any = stack.enter_context(gzip.open(file)) if packed else file
            # the BOM is taken off; bytes that are no UTF-8 are kept, and named where they stand
            text = io.TextIOWrapper(unpacked, "utf-8-sig", errors="surrogateescape", newline="")
            yield _csv(stack.enter_context(text), name)


_PATH_REMEDY = "give the path of a CSV or Parquet file"
_TOO_LONG = f"{MOST_BYTES:,} bytes and {MOST_ROWS:,} rows are the most; split it"


def _unreadable(name: str, error: Exception) -> errors.InvalidInput:
    reason = " ".join(str(getattr(error, "strerror", None) or error).split())
    reason = errors.printable(reason if len(reason) <= 120 else reason[:117] + "...")
    return errors.InvalidInput(name, f"cannot be read ({reason})", _PATH_REMEDY)


def too_long(name: str) -> errors.InvalidInput:
    """The error of a table with more rows, cells or bytes than are read."""
    return errors.InvalidInput(name, "is too long", _TOO_LONG)


def _csv(text: IO[str], name: str) -> Table:
    reader = csv.reader(_lines(text), strict=True)
    try:
        header = next((record for record in reader if record), None)
    except _FAULTS as error:
        raise _csv_fault(name, f"{name} line 1", error) from None
    if header is None:
        raise errors.InvalidInput(name, "is empty", "begin with a line of column names")
    if any(map(UNDECODED.search, header)):
        raise errors.InvalidInput(f"{name} line 1", "is not UTF-8 text", "save it as UTF-8")
    header = [column.strip() for column in header]
    if len(header) == 1 and (other := re.search(r"[;\t|]", header[0])):
        problem = f"has its columns separated by {other[0]!r}"
        raise errors.InvalidInput(f"{name} line 1", problem, "separate them by commas")
    return Table(name, header, "line", _csv_blocks(reader, name, len(header)))


_FAULTS = (csv.Error, OSError, EOFError, zlib.error)


def _csv_fault(name: str, place: str, error: Exception) -> errors.InvalidInput:
    if isinstance(error, csv.Error):
        return errors.InvalidInput(place, f"is not CSV ({error})", "check its quotes")
    return _unreadable(name, error)


def _lines(text: IO[str]) -> Iterator[str]:
    total = 0
    for line in iter(functools.partial(text.readline, LONGEST_LINE), ""):
        total += len(line)
        if len(line) == LONGEST_LINE:
            raise csv.Error(f"a line of {LONGEST_LINE:,} characters or more")
        if total > MOST_BYTES:
            raise OSError(f"unpacked it has more than {MOST_BYTES:,} bytes")
        yield line


def _csv_blocks(reader: Any, name: str, width: int) -> Iterator[Block]:
    most, start = max(1, CSV_BLOCK_CELLS // width), reader.line_num + 1
    while True:
        rows: list[list[str]] = []
        lines: list[int] = []
        fault = None
        try:
            for record in reader:
                if len(record) == width:
                    rows.append(record)
                    lines.append(start)
                elif record:  # else: an empty line
                    fields = f"{len(record)} field" + "s" * (len(record) != 1)
                    problem = f"has {fields}, the header {width}"
                    remedy = "give every line as many as the header"
                    fault = errors.InvalidInput(f"{name} line {start}", problem, remedy)
                    break
                start = reader.line_num + 1
                if len(rows) == most:
                    break
        except _FAULTS as error:
            fault = _csv_fault(name, f"{name} line {start}", error)
        if rows:
            yield Block([list(column) for column in zip(*rows, strict=True)], lines)
        if fault is not None:
            raise fault
        if len(rows) < most:
            return


def _parquet(file: IO[bytes], name: str) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    faults = (pa.ArrowException, OSError)
    try:
        parquet = pq.ParquetFile(file, pre_buffer=False)
        columns, rows = list(parquet.schema_arrow.names), parquet.metadata.num_rows
    except faults as error:
        raise _unreadable(name, error) from None
    if rows > MOST_ROWS:
        raise errors.InvalidInput(name, f"has {rows:,} rows", _TOO_LONG)

    def batches() -> Iterator[Any]:
        try:
            yield from parquet.iter_batches(max(1, BLOCK_CELLS // max(1, len(columns))))
        except faults as error:
            raise _unreadable(name, error) from None

    return Table(name, columns, "row", _arrow_blocks(batches()))


def _arrow_blocks(batches: Iterator[Any]) -> Iterator[Block]:
    start = 1
    for batch in batches:
        if batch.num_rows:
            numbers = range(start, start + batch.num_rows)
            yield Block([_from_arrow(column) for column in batch.columns], numbers)
            start += batch.num_rows


def _from_arrow(array: Any) -> Values:
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    if pa.types.is_floating(array.type) or (
        pa.types.is_integer(array.type) and not array.null_count
    ):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        raw = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
        return [v if v is None else v.decode("utf-8", "surrogateescape") for v in raw]


# Columns in memory


def in_memory(data: Any, name: str) -> Table | None:
    """The table of a mapping of columns or of an Arrow table; None if ``data`` is neither."""
    if isinstance(data, Mapping):
        return _mapping(data, name)
    if not hasattr(data, "__arrow_c_stream__"):  # pyarrow's, polars' and pandas' tables have it
        return None
    import pyarrow as pa

    try:
        table = pa.table(data)
    except (pa.ArrowException, TypeError, ValueError):  # one column alone has it too
        return None
    width = max(1, table.num_columns)
    batches = table.to_batches(max_chunksize=max(1, BLOCK_CELLS // width))
    return Table(name, list(table.column_names), "row", _arrow_blocks(iter(batches)))


def _mapping(data: Mapping[Any, Any], name: str) -> Table:
    columns = {column: _column(values, name, column) for column, values in data.items()}
    lengths = {column: len(values) for column, values in columns.items()}
    for (one, first), (other, second) in itertools.pairwise(lengths.items()):
        if first != second:
            problem = f"column {shown(other)} has {second} rows, {shown(one)} has {first}"
            raise errors.InvalidInput(name, problem, "make all columns equally long")
    rows = max(lengths.values(), default=0)
    most = max(1, BLOCK_CELLS // max(1, len(columns)))
    blocks = (
        Block(
            [values[start : start + most] for values in columns.values()],
            range(start + 1, min(start + most, rows) + 1),
        )
        for start in range(0, rows, most)
    )
    return Table(name, list(columns), "row", blocks)


def _column(values: Any, name: str, column: Any) -> Values:
    if hasattr(values, "to_pylist"):  # Arrow arrays, in one piece or several
        values = values.to_pylist()
    elif not isinstance(values, np.ndarray) and hasattr(values, "__array__"):  # a pandas Series
        values = np.asarray(values)
    if isinstance(values, np.ndarray) and values.ndim == 1:
        plain = values.dtype.kind in "iuf" and not np.ma.isMaskedArray(values)
        return values if plain else list(values.tolist())
    if isinstance(values, np.ndarray | str | bytes) or not isinstance(values, Sequence):
        problem = f"column {shown(column)} is {shown(values)}"
        raise errors.InvalidInput(name, problem, "give a list or a 1-D array")
    return list(values)


# Cells


def shown(value: Any) -> str:
    """A value as errors show it: on one line, cut short."""
    value = value.item() if isinstance(value, np.generic) else value
    try:
        text = repr(value[:60] if isinstance(value, str | bytes) else value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        text = "of thousands of digits"
    text = " ".join(text.split())
    return errors.printable(text if len(text) <= 60 else text[:57] + "...")


def missing(value: Any) -> bool:
    """Whether a cell is empty: null, NaN, or text of spaces alone."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float | np.floating) and math.isnan(value))


def real(values: Values) -> np.ndarray:
    """Cells as numbers: NaN where one is missing, infinite where it is no number.

    Example:
        >>> real(["1.5", "", "x", "1e3"]).tolist()
        [1.5, nan, inf, 1000.0]
    """
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    types = set(map(type, values))
    if types <= {int, float}:
        with contextlib.suppress(OverflowError):
            return np.array(values, dtype=np.float64)
    elif types == {str}:
        text = "".join(values)
        if text.isascii() and not ("_" in text or "n" in text or "N" in text):  # 1_0, nan, inf
            with contextlib.suppress(ValueError):
                return np.array([float(value) if value else math.nan for value in values])
    return np.array([_real(value) for value in values])


def _real(value: Any) -> float:
    if missing(value):
        return math.nan
    try:
        return float(_numeric(value))
    except (TypeError, ValueError, ArithmeticError):
        return math.inf


def whole(values: Values) -> np.ndarray:
    """Cells as whole numbers from 0 to 2^53: −1 where one is missing or something else.

    Example:
        >>> whole(["3", "4.0", "2.5", "-7", ""]).tolist()
        [3, 4, -1, -1, -1]
    """
    if isinstance(values, np.ndarray):
        good = (values >= 0) & (values <= LARGEST_ROUND)
        if values.dtype.kind == "f":
            good &= values == np.floor(values)
        return np.where(good, values, 0).astype(np.int64) - ~good
    types = set(map(type, values))
    with contextlib.suppress(ValueError, OverflowError):
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
    """The value if it is a number, or text that is one."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise TypeError
    return value


def is_number(value: Any) -> bool:
    """Whether a cell is a finite number, or text that is one."""
    try:
        number = _numeric(value)
        return isinstance(number, str | int) or math.isfinite(number)
    except (TypeError, ValueError):
        return False


class Labels(dict[Any, int]):
    """Labels and their numbers, found by any writing: "3", 3 and 3.0 are one label.

    Args:
        names: the labels there are; None: each new one is added, in order of appearance.

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
        """The number of each label, −1 where it is none or unknown."""
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
    """A label as text; None if ``value`` is none.

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
