"""Reading logs of decisions and arms, from files and from tables in memory.

    sequence,round,arm,reward          sequence: optional, which independent run a row is of
    monday,0,left,0.7                  round: time step of its sequence; gaps and repeats are fine
    monday,1,right,                    reward: empty where none was seen

An arms file says what each arm reads of the state: a column ``arm``, and one column per feature.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.identify import cells, files
from driftbandit.identify.log import NO_ZERO, Arms, Log, Sequence, checked_names, names_of
from driftbandit.system import Name

__all__ = ["as_log", "log_and_features", "read_arms", "read_log"]

REQUIRED = ("round", "arm", "reward")
COLUMNS = ("sequence", *REQUIRED)


def read_log(path: Any, names: Any = None) -> Log:
    """Read a log of decisions from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the columns round, arm, reward and, if it
            holds several independent sequences, sequence.
        names: of the arms there are, in order; None: those that were played, sorted: by size if
            all are whole numbers, else as text.

    Returns:
        The log; its rows are grouped by sequence and stay in the file's order.

    Example:
        >>> read_log("no/such/log.csv")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: no/such/log.csv: cannot be read (No such file or ...
    """
    names = None if names is None else checked_names(names)
    with files.opened(path, "log") as table:
        return _log(table, names)


def as_log(data: Any, names: Any = None) -> Log:
    """The log that ``data`` is, or holds.

    Args:
        data: a Log, the path of one, a mapping of columns, or an Arrow table (or a data frame
            that can be had as one).
        names: as in ``read_log``; a Log must have been made with the same.

    Example:
        >>> as_log({"round": [0, 1, 1], "arm": ["b", 3, 3.0], "reward": [1, 2, 3]}).names
        ('3', 'b')
    """
    names = None if names is None else checked_names(names)
    if isinstance(data, Log):
        if names is not None and names != data.names:
            problem = f"has the arms {cells.some(data.names)}, names are {cells.some(names)}"
            raise errors.InvalidInput("log", problem, "give the names the log was made with")
        return data
    if isinstance(data, str | os.PathLike):
        return read_log(data, names)
    table = files.in_memory(data, "log")
    if table is None:
        remedy = "give a Log, a path, a mapping of columns or an Arrow table"
        raise errors.InvalidInput("log", f"has type {type(data).__name__}", remedy)
    return _log(table, names)


def log_and_features(log: Any, arms: Any = None) -> tuple[Log, np.ndarray | None]:
    """The log, and what each of its arms reads of the state, if that is given.

    Args:
        log: anything `as_log` takes.
        arms: `Arms`; or k × d features of arms that the log numbers: row i is of arm i, or, if
            the numbers are others and there are k, of the i-th by size; None: not known.

    Example:
        >>> log = {"round": [0, 1, 2], "arm": [10, 9, 5], "reward": [1, 2, 3]}
        >>> log_and_features(log, [[1.0], [2.0], [3.0]])[0].names
        (5, 9, 10)
        >>> log_and_features(log | {"arm": [2, 0, 2]}, [[1.0], [2.0], [3.0]])[0].names
        (0, 1, 2)
    """
    if arms is None:
        return as_log(log), None
    if isinstance(arms, Arms):
        return as_log(log, arms.names), arms.features
    features = errors.matrix(arms, "arms", shape=(None, None))
    k, read = len(features), as_log(log)
    if not isinstance(log, Log):
        words = [name for name in read.names if isinstance(name, str)]
        if words:
            problem = f"is an array, and the log calls an arm {cells.shown(words[0])}"
            remedy = "say which row is whose: give Arms(names, features)"
            raise errors.InvalidInput("arms", problem, remedy)
        if set(read.names) <= set(range(k)):
            read = _renamed(read, tuple(range(k)))
    if len(read.names) != k:
        problem = f"has {k} rows for the log's {len(read.names)} arms"
        raise errors.InvalidInput("arms", problem, "give one row of features for each arm")
    return read, features


def _renamed(log: Log, names: tuple[Name, ...]) -> Log:
    """The same log, its arms counted along ``names``, which hold all of its own."""
    places = np.array([names.index(name) for name in log.names])
    moved = [dataclasses.replace(one, arms=places[one.arms]) for one in log.sequences]
    return dataclasses.replace(log, sequences=tuple(moved), names=names)


def read_arms(path: Any) -> Arms:
    """Read the arms' features from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the column arm and one column or more of
            numbers, whatever their names; one row per arm.

    Example:
        >>> read_arms("/")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: /: is a folder; give the path of a CSV or Parquet file
    """
    with files.opened(path, "arms") as table:
        return _arms(table)


# Logs


def _log(table: files.Table, names: tuple[Name, ...] | None) -> Log:
    for column in table.columns:  # before what is missing: a misspelled name is both
        errors.closest(column, f"{table.name} column", COLUMNS)
    _check_columns(table, REQUIRED)
    arms = cells.Labels(None if names is None else [str(name) for name in names])
    sequences, clock = cells.Labels(), _Clock()
    parts: list[tuple[np.ndarray, ...]] = []
    rows = 0
    for columns, numbers in table.blocks:
        given = dict(zip(table.columns, columns, strict=True))
        rounds, rewards = cells.whole(given["round"]), cells.real(given["reward"])
        played = arms.codes(given["arm"])
        if "sequence" in given:
            codes = sequences.codes(given["sequence"])
        else:
            codes = np.zeros(len(numbers), np.int64)
        wrong = {
            "sequence": cells.first(codes < 0),
            "round": cells.first(rounds < 0),
            "arm": cells.first(played < 0),
            "reward": cells.first(np.abs(rewards) > errors.LARGEST),
        }
        column = min(wrong, key=wrong.__getitem__)
        good = wrong[column]
        late, last = clock.check(codes[:good], rounds[:good])
        if late < good:
            of = f" of sequence {cells.shown(sequences.names[codes[late]])}" if sequences else ""
            problem = f"round {rounds[late]} comes after round {last}{of}"
            remedy = "sort the rows of a sequence by round"
            raise errors.InvalidInput(table.place(numbers[late]), problem, remedy)
        if good < len(numbers):
            problem, remedy = cells.problem(
                column, given[column][good], arms.names if names else ()
            )
            raise errors.InvalidInput(table.place(numbers[good]), problem, remedy)
        parts.append((codes.astype(np.int32), rounds, played.astype(np.int32), rewards))
        rows += len(numbers)
        if rows > files.MOST_ROWS:
            raise files.too_long(table.name)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give at least one decision")
    labels = sequences.names if "sequence" in table.columns else [""]
    found = names or names_of(arms.names)
    order = range(len(found)) if names else sorted(range(len(found)), key=found.__getitem__)
    ranks = np.argsort(order)
    return Log(tuple(_grouped(parts, labels, ranks)), tuple(found[i] for i in order))


class _Clock:
    """The last round of every sequence so far."""

    def __init__(self) -> None:
        self._last = np.full(16, -1)

    def check(self, codes: np.ndarray, rounds: np.ndarray) -> tuple[int, int]:
        """The first row whose round is below its sequence's last one, and that one."""
        n = len(codes)
        if n == 0:
            return 0, 0
        short = int(codes.max()) + 1 - len(self._last)
        if short > 0:
            self._last = np.append(self._last, np.full(short + len(self._last), -1))
        order = np.argsort(codes, kind="stable")
        codes, rounds = codes[order], rounds[order]
        first = np.append(True, codes[1:] != codes[:-1])
        before = np.where(first, self._last[codes], np.append(-1, rounds[:-1]))
        late = np.flatnonzero(rounds < before)
        if late.size:
            worst = late[order[late].argmin()]
            return int(order[worst]), int(before[worst])
        self._last[codes] = rounds  # the last of several stays
        return n, 0


def _grouped(
    parts: list[tuple[np.ndarray, ...]], labels: list[str], ranks: np.ndarray
) -> list[Sequence]:
    """The sequences of all rows, each in its own order; arms are counted by their ranks."""
    codes, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    parts.clear()
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        columns = [column[order] for column in columns]
    columns[1] = ranks[columns[1]]
    for column in columns:
        column.setflags(write=False)
    ends = np.cumsum(np.bincount(codes)).tolist()
    starts = [0, *ends[:-1]]
    return [
        Sequence._of_checked(columns, slice(start, end), label)
        for start, end, label in zip(starts, ends, labels, strict=True)
    ]


# Arms


def _arms(table: files.Table) -> Arms:
    features = [column for column in table.columns if column != "arm"]
    _check_columns(table, ("arm",))
    if "" in features:
        problem = f"column {table.columns.index('') + 1} has no name"
        raise errors.InvalidInput(table.name, problem, "name it, or leave it out")
    if not features:
        raise errors.InvalidInput(table.name, "has no features", "give a column of numbers")
    labels = cells.Labels()
    places: list[int] = []
    parts: list[np.ndarray] = []
    for columns, numbers in table.blocks:
        given = dict(zip(table.columns, columns, strict=True))
        rows = np.stack([cells.real(given[feature]) for feature in features], axis=1)
        codes = labels.codes(given["arm"])
        places += numbers
        if len(places) * len(table.columns) > files.MOST_ROWS:
            raise files.too_long(table.name)
        start = len(places) - len(numbers)
        wrong = ~(np.abs(rows) <= errors.LARGEST)
        bad = wrong.any(axis=1) | ~rows.any(axis=1) | (codes != start + np.arange(len(codes)))
        if bad.any():
            i = cells.first(bad)
            first = f"{table.unit} {places[codes[i]]}" if codes[i] < start + i else None
            raise errors.InvalidInput(table.place(numbers[i]), *_arm_problem(given, i, first))
        parts.append(rows)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give one row per arm")
    return Arms(names_of(labels.names), np.concatenate(parts))


def _arm_problem(given: dict[str, Any], row: int, first: str | None) -> tuple[str, str]:
    """What is wrong with a row of an arms file; ``first``: where its label stands already."""
    arm = given["arm"][row]
    if cells.label_of(arm) is None:
        return cells.problem("arm", arm)
    if first is not None:
        return f"arm {cells.shown(arm)} stands in {first} too", "give each arm one row"
    for feature, column in given.items():
        if feature != "arm" and not np.abs(cells.real(column[row : row + 1])[0]) <= errors.LARGEST:
            return cells.problem("feature", column[row], called=f"feature {cells.shown(feature)}")
    return f"all features of arm {cells.shown(arm)} are zero", NO_ZERO


def _check_columns(table: files.Table, required: tuple[str, ...]) -> None:
    twice = [column for column in table.columns if table.columns.count(column) > 1]
    if twice:
        problem = f"has two columns {cells.shown(twice[0])}"
        raise errors.InvalidInput(table.name, problem, "give each once")
    lacking = [repr(column) for column in required if column not in table.columns]
    if lacking:
        problem = f"has no column {', '.join(lacking)}"
        raise errors.InvalidInput(table.name, problem, f"give {', '.join(required)}")
