"""Users' tables: CSV and Parquet files, and columns in memory.

A table is read in blocks of rows, each row with its line number, so that memory stays bounded and
errors name the line. Rows before a broken line are yielded before its error is raised, so that
errors name the first bad line. CSV is read without pyarrow, which the plain install leaves out;
Arrow reads Parquet and data frames.
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
from driftbandit.io import frames, parsing
from driftbandit.io.parsing import Values

MOST_ROWS = 10**8
MOST_BYTES = 4 * 2**30  # also of an unpacked .csv.gz
LONGEST_LINE = 2**22  # characters; a file without line ends must not fill the memory
BLOCK_CELLS = 2**18  # values in one block
CSV_BLOCK_CELLS = 2**13  # short lists of text are three times as fast as long ones
SUFFIXES = (".csv", ".csv.gz", ".parquet")
PATH_REMEDY = "give the path of a CSV or Parquet file"
TOO_LONG = f"{MOST_BYTES:,} bytes and {MOST_ROWS:,} rows are the most; split it"
CSV_FAULTS = (csv.Error, OSError, EOFError, zlib.error)


class Block(NamedTuple):
    """Some rows of a table: its columns in order, and the line or row number of each row."""

    columns: list[Values]
    numbers: Sequence[int]


class Table(NamedTuple):
    """A table that is read block by block."""

    name: str
    columns: list[str]
    unit: str  # what its rows are counted in: "line" or "row"
    # Yields the blocks of the columns with these numbers; other columns may hold anything.
    read: Callable[[Sequence[int]], Iterator[Block]]
    index_columns: tuple[int, ...] = ()  # numbers of those that were a data frame's index

    @property
    def without_index(self) -> list[int]:
        """The numbers of all other columns."""
        return [place for place in range(len(self.columns)) if place not in self.index_columns]

    @property
    def blocks(self) -> Iterator[Block]:
        """The blocks of all columns."""
        return self.read(range(len(self.columns)))

    def place(self, number: int) -> str:
        """Where a row is, as errors say it."""
        return f"{self.name} {self.unit} {number}"


def too_long(name: str) -> errors.InvalidInput:
    """The error for a table with too many rows or values."""
    return errors.InvalidInput(name, "is too long", TOO_LONG)


# Files


@contextlib.contextmanager
def opened(path: Any, what: str) -> Iterator[Table]:
    """Open a CSV or Parquet file, by the ending of its name; errors call it ``what``."""
    try:
        path = os.fspath(path)
    except TypeError:
        problem = f"{parsing.shown(path)} is not a path"
        raise errors.InvalidInput(what, problem, PATH_REMEDY) from None
    name = errors.printable(os.fsdecode(path)) or "''"
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise _unreadable(name, error) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a plain file"
        raise errors.InvalidInput(name, f"is {kind}", PATH_REMEDY)
    ending = next((end for end in SUFFIXES if os.fsdecode(path).lower().endswith(end)), None)
    if ending is None:
        remedy = f"name it {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise errors.InvalidInput(name, "has an unknown file ending", remedy)
    if status.st_size > MOST_BYTES:
        raise errors.InvalidInput(name, f"has {status.st_size:,} bytes", TOO_LONG)
    with contextlib.ExitStack() as stack:
        try:
            file: Any = stack.enter_context(open(path, "rb"))
        except OSError as error:
            raise _unreadable(name, error) from None
        if ending == ".parquet":
            yield _parquet(file, name)
        else:
            if ending == ".csv.gz":
                file = stack.enter_context(gzip.open(file))
            # utf-8-sig drops the BOM; bytes that are not UTF-8 are kept for the error
            text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
            yield _csv(stack.enter_context(text), name)


def _unreadable(name: str, error: Exception) -> errors.InvalidInput:
    reason = " ".join(str(getattr(error, "strerror", None) or error).split())
    reason = errors.printable(reason if len(reason) <= 120 else reason[:117] + "...")
    return errors.InvalidInput(name, f"cannot be read ({reason})", PATH_REMEDY)


def _csv(text: IO[str], name: str) -> Table:
    reader = csv.reader(_lines(text), strict=True)
    try:
        header = next((record for record in reader if record), None)
    except CSV_FAULTS as error:
        raise _csv_fault(name, 1, error) from None
    if header is None:
        raise errors.InvalidInput(name, "is empty", "begin with a line of column names")
    if any(map(parsing.UNDECODED.search, header)):
        raise errors.InvalidInput(f"{name} line 1", "is not UTF-8 text", "save it as UTF-8")
    header = [column.strip() for column in header]
    if len(header) == 1 and (other := re.search(r"[;\t|]", header[0])):
        problem = f"has its columns separated by {other[0]!r}"
        raise errors.InvalidInput(f"{name} line 1", problem, "separate them by commas")
    return Table(name, header, "line", functools.partial(_csv_blocks, reader, name, len(header)))


def _csv_fault(name: str, line: int, error: Exception) -> errors.InvalidInput:
    if not isinstance(error, csv.Error):
        return _unreadable(name, error)
    return errors.InvalidInput(f"{name} line {line}", f"is not CSV ({error})", "check its quotes")


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
    fault, ended = None, False
    while not ended:
        rows: list[list[str]] = []
        lines: list[int] = []
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
        except CSV_FAULTS as error:
            fault = _csv_fault(name, start, error)
        ended = len(rows) < most
        if rows:
            columns = list(zip(*rows, strict=True))
            yield Block([list(columns[place]) for place in places], lines)
        if fault is not None:
            raise fault


def _parquet(file: IO[bytes], name: str) -> Table:
    with errors.needing(f"reading {name}"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    faults = (pa.ArrowException, OSError)
    try:
        parquet = pq.ParquetFile(file, pre_buffer=False)
        columns, rows = list(parquet.schema_arrow.names), parquet.metadata.num_rows
        names, index = frames.names_and_index(parquet.schema_arrow)
    except faults as error:
        raise _unreadable(name, error) from None
    if rows > MOST_ROWS:
        raise errors.InvalidInput(name, f"has {rows:,} rows", TOO_LONG)

    def batches(places: Sequence[int]) -> Iterator[Any]:
        wanted = [columns[place] for place in places]
        try:
            for batch in parquet.iter_batches(_rows_of_block(places), columns=wanted):
                yield batch.select(wanted)
        except faults as error:
            raise _unreadable(name, error) from None

    return Table(name, names, "row", lambda places: _arrow_blocks(batches(places)), index)


def _rows_of_block(places: Sequence[int]) -> int:
    return max(1, BLOCK_CELLS // max(1, len(places)))


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
    kind = array.type
    if pa.types.is_floating(kind) or (pa.types.is_integer(kind) and not array.null_count):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return list(array.cast(pa.timestamp("us", kind.tz), safe=False).to_pylist())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _microseconds_at_least(np.asarray(array.to_numpy(zero_copy_only=False)))
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
    data, index = frames.flat(data)
    if hasattr(data, "__arrow_c_stream__"):  # tables of pyarrow, polars and pandas
        table = _arrow_table(data, name)
        if table is not None:
            return table._replace(index_columns=index or table.index_columns)
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):  # a frame Arrow cannot hold
        return _mapping(list(data.columns), data.__getitem__, name)._replace(index_columns=index)
    return None


def _arrow_table(data: Any, name: str) -> Table | None:
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        table, index = frames.flat(pa.table(data))
    except (pa.ArrowException, TypeError, ValueError):  # a single column; columns of mixed types
        return None

    def read(places: Sequence[int]) -> Iterator[Block]:
        chosen = table.select(list(places))
        return _arrow_blocks(iter(chosen.to_batches(max_chunksize=_rows_of_block(places))))

    return Table(name, list(table.column_names), "row", read, index)


def _mapping(names: list[Any], get: Callable[[Any], Any], name: str) -> Table:
    def read(places: Sequence[int]) -> Iterator[Block]:
        columns = {names[place]: _column(get(names[place]), name, names[place]) for place in places}
        lengths = {column: len(values) for column, values in columns.items()}
        for (one, n), (other, m) in itertools.pairwise(lengths.items()):
            if n != m:
                problem = f"column {parsing.shown(other)} has {m} rows"
                problem += f", {parsing.shown(one)} has {n}"
                raise errors.InvalidInput(name, problem, "make all columns equally long")
        rows, most = max(lengths.values(), default=0), _rows_of_block(places)
        for start in range(0, rows, most):
            end = min(start + most, rows)
            part = [values[start:end] for values in columns.values()]
            yield Block(part, range(start + 1, end + 1))

    return Table(name, names, "row", read)


def _column(values: Any, name: str, column: Any) -> Values:
    if hasattr(values, "to_pylist"):  # arrow arrays, in one piece or several
        values = values.to_pylist()
    elif not isinstance(values, np.ndarray) and hasattr(values, "__array__"):  # a pandas Series
        values = np.asarray(values)
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if values.dtype.kind == "M":
            return _microseconds_at_least(values)
        plain = values.dtype.kind in "iuf" and not np.ma.isMaskedArray(values)
        return values if plain else list(values.tolist())
    if isinstance(values, np.ndarray | str | bytes) or not isinstance(values, Sequence):
        problem = f"column {parsing.shown(column)} is {parsing.shown(values)}"
        raise errors.InvalidInput(name, problem, "give a list or a 1-D array")
    return list(values)


def _microseconds_at_least(times: np.ndarray) -> np.ndarray:
    """Times in microseconds or longer units: `tolist` makes numbers of shorter ones."""
    fine = np.datetime_data(times.dtype)[0] in ("ns", "ps", "fs", "as")
    return times.astype("M8[us]") if fine else times
