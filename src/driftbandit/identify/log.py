"""Logs of decisions: which arm was played in which round, and what it paid.

    sequence,round,arm,reward          sequence: optional, which independent run a row is of
    monday,0,left,0.7                  round: time step of its sequence; may be left out or repeat
    monday,1,right,                    reward: empty where none was seen

An arms file says what each arm reads of the state: a column ``arm``, and one column per feature.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.identify import files

__all__ = ["Arms", "Log", "Sequence", "as_log", "read_arms", "read_log"]

REQUIRED = ("round", "arm", "reward")
COLUMNS = ("sequence", *REQUIRED)
REMEDIES = {
    "round": "give a whole number from 0 to 2^53",
    "reward": "give a finite number, or leave it empty",
    "feature": "give a finite number",
    "arm": "give text or a number",
    "sequence": "give text or a number, or leave the column out",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Sequence:
    """What was played and paid in one independent run, in order of time.

    Args:
        rounds: n whole numbers ≥ 0 that never decrease; equal ones are plays of one round.
        arms: n numbers of arms, from 0.
        rewards: n rewards; NaN where none was seen.
        label: what the sequence is called.

    Example:
        >>> Sequence([0, 1, 3], [0, 1, 0], [0.5, float("nan"), 0.7]).rewards_seen
        2
    """

    rounds: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    label: str = ""

    def __post_init__(self) -> None:
        for field, type_ in (("rounds", np.int64), ("arms", np.int64), ("rewards", np.float64)):
            values = getattr(self, field)
            if not isinstance(values, np.ndarray) or values.dtype != type_ or values.ndim != 1:
                values = _converted(values, field)
            values = values.copy()
            values.setflags(write=False)
            object.__setattr__(self, field, values)
        self._check()

    @classmethod
    def _of_checked(cls, columns: list[np.ndarray], rows: slice, label: str) -> Sequence:
        """What a reader has checked already, not copied: a log may hold 10⁶ sequences."""
        sequence = object.__new__(cls)
        values = zip(("rounds", "arms", "rewards"), columns, strict=True)
        sequence.__dict__.update({field: column[rows] for field, column in values}, label=label)
        return sequence

    def _check(self) -> None:
        n = len(self.rounds)
        if not n == len(self.arms) == len(self.rewards) or n == 0:
            problem = f"has {n} rounds, {len(self.arms)} arms and {len(self.rewards)} rewards"
            raise errors.InvalidInput("sequence", problem, "give one of each per row, and a row")
        if self.rounds[0] < 0 or (self.rounds[1:] < self.rounds[:-1]).any():
            raise errors.InvalidInput("rounds", "run backwards", "sort the rows by round")
        if self.arms.min() < 0:
            raise errors.InvalidInput("arms", f"is {self.arms.min()}", "count arms from 0")
        if (np.abs(self.rewards) > errors.LARGEST).any():  # NaN is not
            raise errors.InvalidInput("rewards", "hold one too large", REMEDIES["reward"])
        if not isinstance(self.label, str):
            raise errors.InvalidInput("label", f"{files.shown(self.label)} is no text", "give text")

    @property
    def rewards_seen(self) -> int:
        """How many rewards are not missing."""
        return int(np.count_nonzero(~np.isnan(self.rewards)))

    def __len__(self) -> int:
        """n, the rows."""
        return len(self.rounds)


def _converted(values: Any, field: str) -> np.ndarray:
    """A column of a sequence that is not of its type yet."""
    table = files.in_memory({field: values}, "sequence")
    assert table is not None
    parts = [np.empty(0, np.int64)]
    for (cells,), numbers in table.blocks:
        column = "reward" if field == "rewards" else "round"
        part = files.real(cells) if column == "reward" else files.whole(cells)
        wrong = _first(np.isinf(part) if column == "reward" else part < 0)
        if wrong < len(part):
            problem = _problem(column, cells[wrong], called=field[:-1])
            raise errors.InvalidInput(f"sequence row {numbers[wrong]}", *problem)
        parts.append(part)
    return np.concatenate(parts).astype(np.float64 if field == "rewards" else np.int64)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Log:
    """What was played and paid, sequence by sequence.

    Args:
        sequences: one or more.
        names: the arms' labels; a sequence's arm numbers count along them.

    Example:
        >>> as_log({"round": [0, 1], "arm": ["left", "right"], "reward": [0.7, None]})
        Log(sequences=1, rows=2, rewards_seen=1, arms=2)
    """

    sequences: tuple[Sequence, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        names = _checked_names(self.names)
        sequences = tuple(self.sequences) if isinstance(self.sequences, list | tuple) else ()
        if not sequences or not all(isinstance(one, Sequence) for one in sequences):
            problem = f"{files.shown(self.sequences)} is not a tuple of sequences"
            raise errors.InvalidInput("sequences", problem, "give one Sequence or more")
        largest = max(int(one.arms.max()) for one in sequences)
        if largest >= len(names):
            problem = f"hold {len(names)}, and a sequence plays arm {largest}"
            raise errors.InvalidInput("names", problem, "name every arm")
        object.__setattr__(self, "sequences", sequences)
        object.__setattr__(self, "names", names)

    @property
    def rows(self) -> int:
        """How many plays there are, in all sequences."""
        return sum(map(len, self.sequences))

    @property
    def rewards_seen(self) -> int:
        """How many of them have a reward."""
        return sum(one.rewards_seen for one in self.sequences)

    def __repr__(self) -> str:
        return (
            f"Log(sequences={len(self.sequences)}, rows={self.rows}, "
            f"rewards_seen={self.rewards_seen}, arms={len(self.names)})"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Arms:
    """Arms by name, and what each reads of the state.

    Args:
        names: k different labels.
        features: k × d; no row is zero.

    Example:
        >>> Arms(("left", "right"), [[1, 0], [0, 1]]).features.shape
        (2, 2)
    """

    names: tuple[str, ...]
    features: np.ndarray

    def __post_init__(self) -> None:
        names = _checked_names(self.names)
        features = errors.matrix(self.features, "features", shape=(len(names), None))
        silent = _first(np.asarray(~features.any(axis=1)))
        if silent < len(names):
            raise errors.InvalidInput("features", f"row {silent} is the zero vector", _NO_ZERO)
        features.setflags(write=False)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "features", features)


_NO_ZERO = "an arm needs at least one non-zero entry"


def read_log(path: Any, names: Any = None) -> Log:
    """Read a log of decisions from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the columns round, arm, reward and, if it
            holds several independent sequences, sequence.
        names: the labels of the arms there are, in order; None: those that were played, in order
            of first appearance.

    Returns:
        The log; its rows are grouped by sequence and stay in the file's order.

    Example:
        >>> read_log("no/such/log.csv")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: no/such/log.csv: cannot be read (No such file or ...
    """
    names = None if names is None else _checked_names(names)
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
        ('b', '3')
    """
    names = None if names is None else _checked_names(names)
    if isinstance(data, Log):
        if names is not None and names != data.names:
            problem = f"has the arms {_some(data.names)}, names are {_some(names)}"
            raise errors.InvalidInput("log", problem, "give the names the log was made with")
        return data
    if isinstance(data, str | os.PathLike):
        return read_log(data, names)
    table = files.in_memory(data, "log")
    if table is None:
        remedy = "give a Log, a path, a mapping of columns or an Arrow table"
        raise errors.InvalidInput("log", f"has type {type(data).__name__}", remedy)
    return _log(table, names)


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


def _log(table: files.Table, names: tuple[str, ...] | None) -> Log:
    for column in table.columns:  # before what is missing: a misspelled name is both
        errors.closest(column, f"{table.name} column", COLUMNS)
    _check_columns(table, REQUIRED)
    arms, sequences, clock = files.Labels(names), files.Labels(), _Clock()
    parts: list[tuple[np.ndarray, ...]] = []
    rows = 0
    for columns, numbers in table.blocks:
        cells = dict(zip(table.columns, columns, strict=True))
        rounds, rewards = files.whole(cells["round"]), files.real(cells["reward"])
        played = arms.codes(cells["arm"])
        if "sequence" in cells:
            codes = sequences.codes(cells["sequence"])
        else:
            codes = np.zeros(len(numbers), np.int64)
        wrong = {
            "sequence": _first(codes < 0),
            "round": _first(rounds < 0),
            "arm": _first(played < 0),
            "reward": _first(np.abs(rewards) > errors.LARGEST),
        }
        column = min(wrong, key=wrong.__getitem__)
        good = wrong[column]
        late, last = clock.check(codes[:good], rounds[:good])
        if late < good:
            of = f" of sequence {files.shown(sequences.names[codes[late]])}" if sequences else ""
            problem = f"round {rounds[late]} comes after round {last}{of}"
            remedy = "sort the rows of a sequence by round"
            raise errors.InvalidInput(table.place(numbers[late]), problem, remedy)
        if good < len(numbers):
            problem, remedy = _problem(column, cells[column][good], arms.names if names else ())
            raise errors.InvalidInput(table.place(numbers[good]), problem, remedy)
        parts.append((codes.astype(np.int32), rounds, played.astype(np.int32), rewards))
        rows += len(numbers)
        if rows > files.MOST_ROWS:
            raise files.too_long(table.name)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give at least one decision")
    labels = sequences.names if "sequence" in table.columns else [""]
    return Log(tuple(_grouped(parts, labels)), names or tuple(arms.names))


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


def _grouped(parts: list[tuple[np.ndarray, ...]], labels: list[str]) -> list[Sequence]:
    """The sequences of all rows, each in its own order."""
    codes, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    parts.clear()
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        columns = [column[order] for column in columns]
    columns[1] = columns[1].astype(np.int64)
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
    labels = files.Labels()
    places: list[int] = []
    parts: list[np.ndarray] = []
    for columns, numbers in table.blocks:
        cells = dict(zip(table.columns, columns, strict=True))
        rows = np.stack([files.real(cells[feature]) for feature in features], axis=1)
        codes = labels.codes(cells["arm"])
        places += numbers
        if len(places) * len(table.columns) > files.MOST_ROWS:
            raise files.too_long(table.name)
        start = len(places) - len(numbers)
        wrong = ~(np.abs(rows) <= errors.LARGEST)
        bad = wrong.any(axis=1) | ~rows.any(axis=1) | (codes != start + np.arange(len(codes)))
        if bad.any():
            i = _first(bad)
            first = f"{table.unit} {places[codes[i]]}" if codes[i] < start + i else None
            raise errors.InvalidInput(table.place(numbers[i]), *_arm_problem(cells, i, first))
        parts.append(rows)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give one row per arm")
    return Arms(tuple(labels.names), np.concatenate(parts))


def _arm_problem(cells: dict[str, Any], row: int, first: str | None) -> tuple[str, str]:
    """What is wrong with a row of an arms file; ``first``: where its label stands already."""
    arm = cells["arm"][row]
    if files.label_of(arm) is None:
        return _problem("arm", arm)
    if first is not None:
        return f"arm {files.shown(arm)} stands in {first} too", "give each arm one row"
    for feature, column in cells.items():
        if feature != "arm" and not np.abs(files.real(column[row : row + 1])[0]) <= errors.LARGEST:
            return _problem("feature", column[row], called=f"feature {files.shown(feature)}")
    return f"all features of arm {files.shown(arm)} are zero", _NO_ZERO


# What is wrong


def _check_columns(table: files.Table, required: tuple[str, ...]) -> None:
    twice = [column for column in table.columns if table.columns.count(column) > 1]
    if twice:
        problem = f"has two columns {files.shown(twice[0])}"
        raise errors.InvalidInput(table.name, problem, "give each once")
    lacking = [repr(column) for column in required if column not in table.columns]
    if lacking:
        problem = f"has no column {', '.join(lacking)}"
        raise errors.InvalidInput(table.name, problem, f"give {', '.join(required)}")


def _first(wrong: np.ndarray) -> int:
    """The first place that is true, or the length."""
    return int(wrong.argmax()) if wrong.any() else len(wrong)


def _problem(column: str, value: Any, known: Any = (), called: str = "") -> tuple[str, str]:
    """What is wrong with a cell, and what would be right."""
    called, text, remedy = called or column, files.shown(value), REMEDIES[column]
    if isinstance(value, str) and files.UNDECODED.search(value):
        return f"{called} {text} is not UTF-8 text", "save the file as UTF-8"
    if files.missing(value):
        return f"{called} is missing", remedy
    if column in ("arm", "sequence"):
        label = files.label_of(value)
        if label is None:
            return f"{called} {text} is not a label", remedy
        near = difflib.get_close_matches(label[:100], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"unknown arm {files.shown(label)}", f"{hint}known: {_some(known)}"
    number = files.is_number(value)
    if column != "round":
        if number:
            return f"{called} {text} is too large", f"{errors.LARGEST:g} is the most"
        finite = "finite " if isinstance(value, float | np.floating) else ""
        return f"{called} {text} is not a {finite}number", remedy
    size = files.real([value])[0]
    if number and size < 0:
        return f"{called} {text} is negative", remedy
    if number and size >= files.LARGEST_ROUND:
        return f"{called} {text} is too large", remedy
    return f"{called} {text} is not a whole number", remedy


def _checked_names(names: Any) -> tuple[str, ...]:
    """Labels of arms, all different, at least one."""
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        problem = f"{files.shown(names)} is not a list of labels"
        raise errors.InvalidInput("names", problem, "give a tuple of texts")
    found: dict[str, None] = {}
    for name in names:
        label = files.label_of(name)
        if label is None:
            raise errors.InvalidInput("names", *_problem("arm", name))
        if label in found:
            problem = f"hold {files.shown(label)} twice"
            raise errors.InvalidInput("names", problem, "give each arm once")
        found[label] = None
    if not found:
        raise errors.InvalidInput("names", "are none", "give at least one")
    return tuple(found)


def _some(names: Any) -> str:
    """The names, or as many as fit on a line."""
    few = ", ".join(errors.printable(name[:30]) for name in names[:6])
    return few + (f", … ({len(names)} arms)" if len(names) > 6 else "")
