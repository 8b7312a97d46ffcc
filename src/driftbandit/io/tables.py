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
import itertools
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.io import frames, parsing
from driftbandit.io.parsing import Kind, Values

MOST_ROWS = 10**8
MOST_BYTES = 4 * 2**30  # also of an unpacked .csv.gz
LONGEST_LINE = 2**22  # characters; a file without line ends must not fill the memory
BLOCK_CELLS = 2**18  # values in one block
CSV_BLOCK_CELLS = 2**13  # short lists of text are three times as fast as long ones
# utf-8-sig drops the BOM; bytes that are not UTF-8 are kept for the error
TEXT: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
OPENERS: dict[str, Callable[[str], Any]] = {
    ".csv": functools.partial(open, **TEXT),
    ".csv.gz": functools.partial(gzip.open, mode="rt", **TEXT),
    ".parquet": functools.partial(open, mode="rb"),
}
FINE_UNITS = ("ns", "ps", "fs", "as")
PATH_REMEDY = "give the path of a CSV or Parquet file"
TOO_LONG = f"{MOST_BYTES:,} bytes and {MOST_ROWS:,} rows are the most; split it"


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

    def place(self, number: int) -> str:
        """Where a row is, as errors say it."""
        return f"{self.name} {self.unit} {number}"


Columns = dict[str, np.ndarray]


def read_rows(
    table: Table,
    wanted: Mapping[str, tuple[int, Kind]],
    check: Callable[[Columns, np.ndarray], None] = lambda columns, lines: None,
    cells: int = 1,
) -> tuple[Columns, np.ndarray]:
    """Read columns of a table as numbers; the first bad row is refused.

    Args:
        table: with one row or more.
        wanted: by any name, the place of a column and what it holds. In a row with several bad
            values the first of these columns counts.
        check: raises an error if rows are wrong together; it gets the rows before the first one
            with a bad value, as returned.
        cells: how many values a row counts for, in what is too long.

    Returns:
        The numbers by the names of ``wanted``, and the line or row number of each row.

    Example:
        >>> table = in_memory({"arm": ["a", "b", "a"], "reward": [1, 2, 3]}, "log")
        >>> rewards = Kind("reward", parsing.real, parsing.real_fault, np.isinf)
        >>> columns, lines = read_rows(table, {"rewards": (1, rewards)})
        >>> columns["rewards"].tolist(), lines.tolist()
        ([1.0, 2.0, 3.0], [1, 2, 3])
        >>> read_rows(table, {"rewards": (0, rewards)})
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: log row 1: reward 'a' is not a number; give a finite...
    """
    places, kinds = zip(*wanted.values(), strict=True)
    for name in (table.columns[place] for place in places):
        if table.columns.count(name) > 1:
            problem = f"has two columns {parsing.shown(name)}"
            raise errors.InvalidInput(table.name, problem, "give each once")
    parts: list[list[np.ndarray]] = []
    rows, fault = 0, None
    blocks = iter(table.read(places))
    try:
        for values, numbers in blocks:
            part = [kind.read(column) for kind, column in zip(kinds, values, strict=True)]
            wrong = [kind.wrong(column) for kind, column in zip(kinds, part, strict=True)]
            first_wrong = [parsing.first(mask) for mask in wrong]
            good = min(first_wrong)
            parts.append([column[:good] for column in (*part, np.asarray(numbers, np.uint32))])
            if good < len(numbers):
                bad = first_wrong.index(good)
                said, remedy = kinds[bad].problem(values[bad][good])
                more = int(wrong[bad].sum()) - 1 + _count_bad(kinds[bad], bad, blocks)
                if kinds[bad].counted and more:
                    said += f", as in {more:,} more row{'s' if more > 1 else ''}"
                raise errors.InvalidInput(table.place(numbers[good]), said, remedy)
            rows += len(numbers)
            if rows * cells > MOST_ROWS:
                raise errors.InvalidInput(table.name, "is too long", TOO_LONG)
    except errors.InvalidInput as error:  # a row before it may be wrong, too
        fault = error
    if not parts:
        raise fault or errors.InvalidInput(table.name, "holds no rows", "give at least one")
    *arrays, lines = (np.concatenate(column) for column in zip(*parts, strict=True))
    columns = dict(zip(wanted, arrays, strict=True))
    check(columns, lines)
    if fault is not None:
        raise fault
    return columns, lines


def _count_bad(kind: Kind, column: int, blocks: Iterator[Block]) -> int:
    """How many rows of these blocks have a bad value in that column."""
    count = 0
    with contextlib.suppress(errors.InvalidInput):  # the table is broken later: that comes next
        for block, _ in blocks if kind.counted else ():
            count += int(kind.wrong(kind.read(block[column])).sum())
    return count


# Files


@contextlib.contextmanager
def opened(path: Any, what: str) -> Iterator[Table]:
    """Open a CSV or Parquet file, by the ending of its name; errors call it ``what``."""
    try:
        path = os.fsdecode(path)
    except TypeError:
        problem = f"{parsing.shown(path)} is not a path"
        raise errors.InvalidInput(what, problem, PATH_REMEDY) from None
    name = errors.printable(path) or "''"
    with _naming(name, ValueError):  # a name with a zero byte
        status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a plain file"
        raise errors.InvalidInput(name, f"is {kind}", PATH_REMEDY)
    ending = next((end for end in OPENERS if path.lower().endswith(end)), None)
    if ending is None:
        remedy = "name it .csv, .csv.gz or .parquet"
        raise errors.InvalidInput(name, "has an unknown file ending", remedy)
    if status.st_size > MOST_BYTES:
        raise errors.InvalidInput(name, f"has {status.st_size:,} bytes", TOO_LONG)
    with _naming(name):
        file = OPENERS[ending](path)
    with file:
        yield _parquet(file, name) if ending == ".parquet" else _csv(file, name)


@contextlib.contextmanager
def _naming(name: str, *others: type[Exception]) -> Iterator[None]:
    """Name the file in errors of reading it."""
    faults: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, *others)
    try:
        yield
    except faults as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        reason = errors.printable(reason if len(reason) <= 120 else reason[:117] + "...")
        raise errors.InvalidInput(name, f"cannot be read ({reason})", PATH_REMEDY) from None


def _csv(text: IO[str], name: str) -> Table:
    reader = csv.reader(_lines(text, name), strict=True)
    try:
        header = next((record for record in reader if record), None)
    except csv.Error as error:
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


def _csv_fault(name: str, line: int, error: csv.Error) -> errors.InvalidInput:
    return errors.InvalidInput(f"{name} line {line}", f"is not CSV ({error})", "check its quotes")


def _lines(text: IO[str], name: str) -> Iterator[str]:
    total = 0
    with _naming(name):
        for line in iter(functools.partial(text.readline, LONGEST_LINE), ""):
            total += len(line)
            if len(line) == LONGEST_LINE:
                raise csv.Error(f"a line of {LONGEST_LINE:,} characters or more")
            if total > MOST_BYTES:
                raise OSError(f"unpacked it has more than {MOST_BYTES:,} bytes")
            yield line


def _csv_blocks(reader: Any, name: str, width: int, places: Sequence[int]) -> Iterator[Block]:
    most, start = max(1, CSV_BLOCK_CELLS // width), reader.line_num + 1
    rows: list[list[Any]] = []
    fault = None
    try:
        for record in reader:
            if len(record) not in (0, width):
                fields = "1 field" if len(record) == 1 else f"{len(record)} fields"
                problem = f"has {fields}, the header {width}"
                remedy = "give every line as many as the header"
                raise errors.InvalidInput(f"{name} line {start}", problem, remedy)
            if record:  # else: an empty line
                record.append(start)
                rows.append(record)
            start = reader.line_num + 1
            if len(rows) == most:
                yield _csv_block(rows, places)
                rows = []
    except csv.Error as error:
        fault = _csv_fault(name, start, error)
    except errors.InvalidInput as error:
        fault = error
    if rows:
        yield _csv_block(rows, places)
    if fault is not None:
        raise fault


def _csv_block(rows: list[list[Any]], places: Sequence[int]) -> Block:
    *columns, lines = zip(*rows, strict=True)
    return Block([list(columns[place]) for place in places], lines)


def _parquet(file: IO[bytes], name: str) -> Table:
    with errors.needing(f"reading {name}"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    with _naming(name, pa.ArrowException):
        parquet = pq.ParquetFile(file, pre_buffer=False)
        columns, rows = list(parquet.schema_arrow.names), parquet.metadata.num_rows
        names, index = frames.names_and_index(parquet.schema_arrow)
    if rows > MOST_ROWS:
        raise errors.InvalidInput(name, f"has {rows:,} rows", TOO_LONG)

    def read(places: Sequence[int]) -> Iterator[Block]:
        wanted = [columns[place] for place in places]
        batches = parquet.iter_batches(_rows_of_block(places), columns=wanted)
        with _naming(name, pa.ArrowException):
            yield from _arrow_blocks(batch.select(wanted) for batch in batches)

    return Table(name, names, "row", read, index)


def _rows_of_block(places: Sequence[int]) -> int:
    return max(1, BLOCK_CELLS // max(1, len(places)))


def _arrow_blocks(batches: Iterable[Any]) -> Iterator[Block]:
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
    kind, is_time = array.type, pa.types.is_timestamp(array.type)
    if is_time and kind.tz is not None:
        return list(array.cast(pa.timestamp("us", kind.tz), safe=False).to_pylist())
    is_number = pa.types.is_floating(kind) or (pa.types.is_integer(kind) and not array.null_count)
    if is_number or is_time or pa.types.is_date(kind):
        return _plain(array.to_numpy(zero_copy_only=False))
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
    table = _arrow_table(data, name) if hasattr(data, "__arrow_c_stream__") else None
    if table is None and hasattr(data, "columns") and hasattr(data, "__getitem__"):
        table = _mapping(list(data.columns), data.__getitem__, name)
    return table and table._replace(index_columns=index or table.index_columns)


def _arrow_table(data: Any, name: str) -> Table | None:
    """A table of pyarrow, polars or pandas; None if Arrow cannot hold it."""
    try:
        import pyarrow as pa

        table, index = frames.flat(pa.table(data))
    except ImportError:
        return None
    except (pa.ArrowException, TypeError, ValueError):  # a single column; columns of mixed types
        return None

    def read(places: Sequence[int]) -> Iterator[Block]:
        chosen = table.select(list(places))
        return _arrow_blocks(chosen.to_batches(max_chunksize=_rows_of_block(places)))

    return Table(name, list(table.column_names), "row", read, index)


def _mapping(names: list[Any], get: Callable[[Any], Any], name: str) -> Table:
    def read(places: Sequence[int]) -> Iterator[Block]:
        called = [names[place] for place in places]
        columns = [_column(get(column), name, column) for column in called]
        lengths = zip(map(parsing.shown, called), map(len, columns), strict=True)
        for (left, n), (right, m) in itertools.pairwise(lengths):
            if n != m:
                problem = f"column {right} has {m} rows, {left} has {n}"
                raise errors.InvalidInput(name, problem, "make all columns equally long")
        rows, most = len(columns[0]) if columns else 0, _rows_of_block(places)
        for start in range(0, rows, most):
            part = [values[start : start + most] for values in columns]
            yield Block(part, range(start + 1, start + 1 + len(part[0])))

    return Table(name, names, "row", read)


def _column(values: Any, name: str, column: Any) -> Values:
    if hasattr(values, "to_pylist"):  # arrow arrays, in one piece or several
        values = values.to_pylist()
    elif not isinstance(values, np.ndarray) and hasattr(values, "__array__"):  # a pandas Series
        values = np.asarray(values)
    if isinstance(values, np.ndarray) and values.ndim == 1:
        plain = values.dtype.kind in "iufM" and not np.ma.isMaskedArray(values)
        return _plain(values) if plain else list(values.tolist())
    if isinstance(values, np.ndarray | str | bytes) or not isinstance(values, Sequence):
        problem = f"column {parsing.shown(column)} is {parsing.shown(values)}"
        raise errors.InvalidInput(name, problem, "give a list or a 1-D array")
    return list(values)


def _plain(values: np.ndarray) -> np.ndarray:
    """Times in microseconds or longer units, of shorter ones `tolist` makes numbers; or numbers."""
    is_fine = values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] in FINE_UNITS
    return values.astype("M8[us]") if is_fine else values
