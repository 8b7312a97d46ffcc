"""Tables of users: CSV and Parquet files, and columns in memory.

A table comes as blocks of rows, each row with its place in the file, so that memory stays bounded
and what is wrong is named where it stands. A block that ends early is checked before the fault
that ended it is raised: the first bad line is the one that is named.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import io
import itertools
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.io import parsing
from driftbandit.io.parsing import Values

__all__ = [
    "Block",
    "Table",
    "in_memory",
    "opened",
    "too_long",
]

MOST_ROWS = 10**8
MOST_BYTES = 4 * 2**30
"""A larger file is refused unread, a packed one as soon as that much has come out of it."""
LONGEST_LINE = 2**22
"""Characters; a file without line ends must not fill the memory."""
BLOCK_CELLS = 2**18
CSV_BLOCK_CELLS = 2**13
"""Cells of one block; short lists of text are three times as fast as long ones."""
SUFFIXES = (".csv", ".csv.gz", ".parquet")


class Block(NamedTuple):
    """Some rows of a table: its columns in order, and the number of the line or row of each."""

    columns: list[Values]
    numbers: Sequence[int]


class Table(NamedTuple):
    """What a table is called, its columns' names, what its rows are counted in, and its rows."""

    name: str
    columns: list[str]
    unit: str
    read: Callable[[Sequence[int]], Iterator[Block]]
    """Gives the blocks of the columns with these numbers; what is not asked for is not looked at,
    and may hold anything. Once."""

    @property
    def blocks(self) -> Iterator[Block]:
        """All columns."""
        return self.read(range(len(self.columns)))

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
        raise errors.InvalidInput(
            what, f"{parsing.shown(path)} is not a path", _PATH_REMEDY
        ) from None
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
    if any(map(parsing.UNDECODED.search, header)):
        raise errors.InvalidInput(f"{name} line 1", "is not UTF-8 text", "save it as UTF-8")
    header = [column.strip() for column in header]
    if len(header) == 1 and (other := re.search(r"[;\t|]", header[0])):
        problem = f"has its columns separated by {other[0]!r}"
        raise errors.InvalidInput(f"{name} line 1", problem, "separate them by commas")
    return Table(name, header, "line", functools.partial(_csv_blocks, reader, name, len(header)))


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


def _csv_blocks(reader: Any, name: str, width: int, places: Sequence[int]) -> Iterator[Block]:
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
            columns = list(zip(*rows, strict=True))
            yield Block([list(columns[place]) for place in places], lines)
        if fault is not None:
            raise fault
        if len(rows) < most:
            return


def _parquet(file: IO[bytes], name: str) -> Table:
    with errors.needing(f"reading {name}"):
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

    def batches(places: Sequence[int]) -> Iterator[Any]:
        size = max(1, BLOCK_CELLS // max(1, len(places)))
        wanted = [columns[place] for place in places]
        try:
            for batch in parquet.iter_batches(size, columns=wanted):
                yield batch.select(wanted)
        except faults as error:
            raise _unreadable(name, error) from None

    return Table(name, columns, "row", lambda places: _arrow_blocks(batches(places)))


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
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return list(array.cast(pa.timestamp("us", array.type.tz), safe=False).to_pylist())
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        return _moments(np.asarray(array.to_numpy(zero_copy_only=False)))
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        raw = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
        return [v if v is None else v.decode("utf-8", "surrogateescape") for v in raw]


# Columns in memory


def in_memory(data: Any, name: str) -> Table | None:
    """The table of a mapping of columns, an Arrow table or a data frame; None if it is none."""
    if isinstance(data, Mapping):
        return _mapping(list(data), data.__getitem__, name)
    if hasattr(data, "__arrow_c_stream__"):  # pyarrow's, polars' and pandas' tables have it
        table = _arrow_table(data, name)
        if table is not None:
            return table
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):  # a frame Arrow cannot hold
        return _mapping(list(data.columns), data.__getitem__, name)
    return None


def _arrow_table(data: Any, name: str) -> Table | None:
    try:
        import pyarrow as pa
    except ImportError:  # then by columns
        return None
    try:
        table = pa.table(data)
    except (pa.ArrowException, TypeError, ValueError):  # one column alone; columns of all kinds
        return None

    def read(places: Sequence[int]) -> Iterator[Block]:
        size = max(1, BLOCK_CELLS // max(1, len(places)))
        chosen = table.select(list(places))
        return _arrow_blocks(iter(chosen.to_batches(max_chunksize=size)))

    return Table(name, list(table.column_names), "row", read)


def _mapping(names: list[Any], get: Callable[[Any], Any], name: str) -> Table:
    def read(places: Sequence[int]) -> Iterator[Block]:
        columns = {names[place]: _column(get(names[place]), name, names[place]) for place in places}
        lengths = {column: len(values) for column, values in columns.items()}
        for (one, first), (other, second) in itertools.pairwise(lengths.items()):
            if first != second:
                lengths_ = f"has {second} rows, {parsing.shown(one)} has {first}"
                problem = f"column {parsing.shown(other)} {lengths_}"
                raise errors.InvalidInput(name, problem, "make all columns equally long")
        rows = max(lengths.values(), default=0)
        most = max(1, BLOCK_CELLS // max(1, len(columns)))
        return (
            Block(
                [values[start : start + most] for values in columns.values()],
                range(start + 1, min(start + most, rows) + 1),
            )
            for start in range(0, rows, most)
        )

    return Table(name, names, "row", read)


def _column(values: Any, name: str, column: Any) -> Values:
    if hasattr(values, "to_pylist"):  # Arrow arrays, in one piece or several
        values = values.to_pylist()
    elif not isinstance(values, np.ndarray) and hasattr(values, "__array__"):  # a pandas Series
        values = np.asarray(values)
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if values.dtype.kind == "M":
            return _moments(values)
        plain = values.dtype.kind in "iuf" and not np.ma.isMaskedArray(values)
        return values if plain else list(values.tolist())
    if isinstance(values, np.ndarray | str | bytes) or not isinstance(values, Sequence):
        problem = f"column {parsing.shown(column)} is {parsing.shown(values)}"
        raise errors.InvalidInput(name, problem, "give a list or a 1-D array")
    return list(values)


def _moments(times: np.ndarray) -> np.ndarray:
    """Times of microseconds or longer units: Python has no shorter ones, and makes them numbers."""
    fine = np.datetime_data(times.dtype)[0] in ("ns", "ps", "fs", "as")
    return times.astype("M8[us]") if fine else times
