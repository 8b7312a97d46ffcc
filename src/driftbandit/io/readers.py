"""Reading logs of decisions and arms, from files and from tables in memory.

    sequence,round,arm,reward          sequence: optional, which independent run a row is of
    monday,0,left,0.7                  round: time step of its sequence; gaps and repeats are fine
    monday,1,right,                    reward: empty where none was seen

Rounds may be dates or times (`times`); ``columns`` says what a table calls its columns, and other
columns are ignored. An arms file says what each arm reads of the state: a column ``arm``, and one
column per feature.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import parsing, tables, times
from driftbandit.io.log import NO_ZERO, Arms, Log, Sequence, checked_names, names_of
from driftbandit.system import Name

__all__ = ["as_log", "log_and_features", "read_arms", "read_log"]

REQUIRED = ("round", "arm", "reward")
COLUMNS = ("sequence", *REQUIRED)


def read_log(
    path: Any,
    names: Any = None,
    *,
    columns: Mapping[str, str] | None = None,
    step: str | None = None,
) -> Log:
    """Read a log of decisions from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the columns round, arm, reward and, if it
            holds several independent sequences, sequence. Other columns are ignored. Rounds are
            whole numbers, or dates and times, which become days or the greatest common step.
        names: of the arms there are, in order; None: those that were played, sorted: by size if
            all are whole numbers, else as text.
        columns: what the file calls them, as {"round": "day", "arm": "variant"}; None: as above.
        step: how long a round is, if rounds are times, as "15 minutes"; None: as above.

    Returns:
        The log; its rows are grouped by sequence and stay in the file's order. Its ``notes`` say
        what was ignored, and what a round is.

    Example:
        >>> read_log("no/such/log.csv")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: no/such/log.csv: cannot be read (No such file or ...
    """
    names = None if names is None else checked_names(names)
    with tables.opened(path, "log") as table:
        return _log(table, names, columns, step)


def as_log(
    data: Any,
    names: Any = None,
    *,
    columns: Mapping[str, str] | None = None,
    step: str | None = None,
) -> Log:
    """The log that ``data`` is, or holds.

    Args:
        data: a Log, the path of one, a mapping of columns, or an Arrow table (or a data frame
            that can be had as one).
        names: as in ``read_log``; a Log must have been made with the same.
        columns: as in ``read_log``; a Log has none.
        step: as in ``read_log``; a Log has its own.

    Example:
        >>> as_log({"round": [0, 1, 1], "arm": ["b", 3, 3.0], "reward": [1, 2, 3]}).names
        ('3', 'b')
    """
    names = None if names is None else checked_names(names)
    if isinstance(data, Log):
        if names is not None and names != data.names:
            problem = f"has the arms {parsing.some(data.names)}, names are {parsing.some(names)}"
            raise errors.InvalidInput("log", problem, "give the names the log was made with")
        if columns or step:
            problem = "was given beside a Log, which is read already"
            raise errors.InvalidInput("columns" if columns else "step", problem, "leave it out")
        return data
    if isinstance(data, str | os.PathLike):
        return read_log(data, names, columns=columns, step=step)
    table = tables.in_memory(data, "log")
    if table is None:
        remedy = "give a Log, a path, a mapping of columns or an Arrow table"
        raise errors.InvalidInput("log", f"has type {type(data).__name__}", remedy)
    return _log(table, names, columns, step)


def log_and_features(
    log: Any,
    arms: Any = None,
    columns: Mapping[str, str] | None = None,
    step: str | None = None,
) -> tuple[Log, np.ndarray | None]:
    """The log, and what each of its arms reads of the state, if that is given.

    Args:
        log: anything `as_log` takes.
        arms: `Arms`; or k × d features of arms that the log numbers: row i is of arm i, or, if
            the numbers are others and there are k, of the i-th by size; None: not known.
        columns: as in ``read_log``, and ``step`` as well.

    Example:
        >>> log = {"round": [0, 1, 2], "arm": [10, 9, 5], "reward": [1, 2, 3]}
        >>> log_and_features(log, [[1.0], [2.0], [3.0]])[0].names
        (5, 9, 10)
        >>> log_and_features(log | {"arm": [2, 0, 2]}, [[1.0], [2.0], [3.0]])[0].names
        (0, 1, 2)
    """
    if arms is None:
        return as_log(log, columns=columns, step=step), None
    if isinstance(arms, Arms):
        return as_log(log, arms.names, columns=columns, step=step), arms.features
    features = errors.matrix(arms, "arms", shape=(None, None))
    k, read = len(features), as_log(log, columns=columns, step=step)
    if not isinstance(log, Log):
        words = [name for name in read.names if isinstance(name, str)]
        if words:
            problem = f"is an array, and the log calls an arm {parsing.shown(words[0])}"
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


def read_arms(path: Any, *, columns: Mapping[str, str] | None = None) -> Arms:
    """Read the arms' features from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the column arm and one column or more of
            numbers, whatever their names; one row per arm.
        columns: as in ``read_log``: the column arm may be called as in the log.

    Example:
        >>> read_arms("/")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: /: is a folder; give the path of a CSV or Parquet file
    """
    with tables.opened(path, "arms") as table:
        return _arms(table, _checked_columns(columns).get("arm", "arm"))


# Logs


def _log(table: tables.Table, names: tuple[Name, ...] | None, columns: Any, step: Any) -> Log:
    places, note = _places(table, _checked_columns(columns))
    arms = parsing.Labels(None if names is None else [str(name) for name in names])
    sequences, clock, time = parsing.Labels(), _Clock(), times.Rounds(step)
    parts: list[tuple[np.ndarray, ...]] = []
    rows = 0
    for cell_columns, numbers in table.read(list(places.values())):
        given = dict(zip(places, cell_columns, strict=True))
        rounds, rewards = time.read(given["round"]), parsing.real(given["reward"])
        played = arms.codes(given["arm"])
        if "sequence" in given:
            codes = sequences.codes(times.as_text(given["sequence"]))
        else:
            codes = np.zeros(len(numbers), np.int64)
        wrong = {
            "sequence": parsing.first(codes < 0),
            "round": parsing.first(rounds < 0),
            "arm": parsing.first(played < 0),
            "reward": parsing.first(np.abs(rewards) > errors.LARGEST),
        }
        column = min(wrong, key=wrong.__getitem__)
        good = wrong[column]
        late, last = clock.check(codes[:good], rounds[:good])
        if late < good:
            of = f" of sequence {parsing.shown(sequences.names[codes[late]])}" if sequences else ""
            problem = f"round {time.shown(rounds[late])} comes after round {time.shown(last)}{of}"
            remedy = "sort the rows of a sequence by round"
            raise errors.InvalidInput(table.place(numbers[late]), problem, remedy)
        if good < len(numbers):
            value = given[column][good]
            if column == "round":
                problem, remedy = time.problem(value)
            else:
                problem, remedy = parsing.problem(column, value, arms.names if names else ())
            raise errors.InvalidInput(table.place(numbers[good]), problem, remedy)
        parts.append((codes.astype(np.int32), rounds, played.astype(np.int32), rewards))
        rows += len(numbers)
        if rows > tables.MOST_ROWS:
            raise tables.too_long(table.name)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give at least one decision")
    labels = sequences.names if "sequence" in places else [""]
    found = names or names_of(arms.names)
    order = range(len(found)) if names else sorted(range(len(found)), key=found.__getitem__)
    ones, repeated = _grouped(parts, labels, np.argsort(order), time)
    notes = tuple(filter(None, (note, time.note, repeated)))
    return Log(tuple(ones), tuple(found[i] for i in order), notes)


def _checked_columns(columns: Any) -> dict[str, Any]:
    """What a table calls the columns of a log, by what they are."""
    if not isinstance(columns, Mapping | None):
        remedy = 'give a mapping, such as {"round": "day"}'
        raise errors.InvalidInput("columns", f"is {parsing.shown(columns)}", remedy)
    found = {errors.closest(key, "columns", COLUMNS): name for key, name in (columns or {}).items()}
    names = list(found.values())
    for name in names:
        if names.count(name) > 1:
            problem = f"name {parsing.shown(name)} twice"
            raise errors.InvalidInput("columns", problem, "give each column once")
    return found


def _places(table: tables.Table, columns: dict[str, Any]) -> tuple[dict[str, int], str]:
    """Where each column of a log is in the table, and a note on those that are ignored."""
    free = [role for role in COLUMNS if role not in columns.values()]
    called = {role: role for role in free} | columns
    wanted = [role for role in COLUMNS if role in (*REQUIRED, *columns)]
    lacking = [role for role in wanted if called.get(role) not in table.columns]
    if lacking:
        has = ", ".join(_shown_name(column) for column in table.columns[:6])
        has += ", …" * (len(table.columns) > 6)
        names = ", ".join({parsing.shown(columns.get(role, role)): None for role in lacking})
        near = difflib.get_close_matches(names.strip("'"), map(str, table.columns), n=1)
        hint = f"did you mean {_shown_name(near[0])}? " if near else ""
        options = " ".join(f"--{role}-column NAME" for role in lacking)
        python = f"'{lacking[0]}': NAME" + ", …" * (len(lacking) > 1)
        remedy = f"{hint}it has {has or 'none'}; say {options}"
        remedy += f" (in Python, columns={{{python}}})"
        raise errors.InvalidInput(table.name, f"has no column {names}", remedy)
    places = {}
    for role, name in sorted(called.items(), key=lambda item: COLUMNS.index(item[0])):
        if table.columns.count(name) > 1:
            problem = f"has two columns {parsing.shown(name)}"
            raise errors.InvalidInput(table.name, problem, "give each once")
        if name in table.columns:
            places[role] = table.columns.index(name)
    return places, _ignored(table, places)


def _ignored(table: tables.Table, places: dict[str, int]) -> str:
    """Which columns are not looked at; "" if there are none."""
    left = [name for i, name in enumerate(table.columns) if i not in places.values()]
    left = [_shown_name(name) for name in left if not str(name).startswith("__index_level_")]
    if not left:
        return ""
    shown = ", ".join(left[:6]) + (f" and {len(left) - 6} more" if len(left) > 6 else "")
    note = f"Ignored columns: {shown}."
    for near in [] if "sequence" in places else difflib.get_close_matches("sequence", left, n=1):
        note += f" If {near} is the sequence, say --sequence-column {near}."
    return note


def _shown_name(column: Any) -> str:
    """A column's name as messages show it."""
    return errors.printable(str(column)[:20]) or "''"


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
    parts: list[tuple[np.ndarray, ...]], labels: list[str], ranks: np.ndarray, time: times.Rounds
) -> tuple[list[Sequence], str]:
    """The sequences of all rows, each in its own order, and a note on rows that are there twice.

    Arms are counted by their ranks.
    """
    codes, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    parts.clear()
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, *columns = (column[order] for column in (codes, *columns))
    columns[:2] = time.numbered(columns[0]), ranks[columns[1]]
    for column in columns:
        column.setflags(write=False)
    ends = np.cumsum(np.bincount(codes)).tolist()
    starts = [0, *ends[:-1]]
    ones = [
        Sequence._of_checked(columns, slice(start, end), label)
        for start, end, label in zip(starts, ends, labels, strict=True)
    ]
    return ones, _repeated(codes, *columns)


def _repeated(*columns: np.ndarray) -> str:
    """How many rows are there twice, from sequences, rounds, arms and rewards; "" if none.

    Whole rewards do not count: clicks, yes and no are often alike.
    """
    codes, rounds, _, rewards = columns
    beside = np.append(False, (rounds[1:] == rounds[:-1]) & (codes[1:] == codes[:-1]))
    beside[:-1] |= beside[1:]
    rows = np.flatnonzero(beside & ~np.isnan(rewards) & (rewards != np.round(rewards)))
    parts = [column[rows] for column in columns]
    order = np.lexsort(parts)
    same = [part[order][1:] == part[order][:-1] for part in parts]
    count = int(np.logical_and.reduce(same).sum())
    if not count:
        return ""
    verb = "row repeats" if count == 1 else "rows repeat"
    return f"{count:,} {verb} another one (same round, arm and reward)."


# Arms


def _arms(table: tables.Table, called: str) -> Arms:
    table = table._replace(columns=["arm" if name == called else name for name in table.columns])
    features = [column for column in table.columns if column != "arm"]
    _check_columns(table, ("arm",))
    if "" in features:
        problem = f"column {table.columns.index('') + 1} has no name"
        raise errors.InvalidInput(table.name, problem, "name it, or leave it out")
    if not features:
        raise errors.InvalidInput(table.name, "has no features", "give a column of numbers")
    labels = parsing.Labels()
    places: list[int] = []
    parts: list[np.ndarray] = []
    for columns, numbers in table.blocks:
        given = dict(zip(table.columns, columns, strict=True))
        rows = np.stack([parsing.real(given[feature]) for feature in features], axis=1)
        codes = labels.codes(given["arm"])
        places += numbers
        if len(places) * len(table.columns) > tables.MOST_ROWS:
            raise tables.too_long(table.name)
        start = len(places) - len(numbers)
        wrong = ~(np.abs(rows) <= errors.LARGEST)
        bad = wrong.any(axis=1) | ~rows.any(axis=1) | (codes != start + np.arange(len(codes)))
        if bad.any():
            i = parsing.first(bad)
            first = f"{table.unit} {places[codes[i]]}" if codes[i] < start + i else None
            raise errors.InvalidInput(table.place(numbers[i]), *_arm_problem(given, i, first))
        parts.append(rows)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give one row per arm")
    return Arms(names_of(labels.names), np.concatenate(parts))


def _arm_problem(given: dict[str, Any], row: int, first: str | None) -> tuple[str, str]:
    """What is wrong with a row of an arms file; ``first``: where its label stands already."""
    arm = given["arm"][row]
    if parsing.label_of(arm) is None:
        return parsing.problem("arm", arm)
    if first is not None:
        return f"arm {parsing.shown(arm)} stands in {first} too", "give each arm one row"
    for feature, column in given.items():
        if (
            feature != "arm"
            and not np.abs(parsing.real(column[row : row + 1])[0]) <= errors.LARGEST
        ):
            return parsing.problem(
                "feature", column[row], called=f"feature {parsing.shown(feature)}"
            )
    return f"all features of arm {parsing.shown(arm)} are zero", NO_ZERO


def _check_columns(table: tables.Table, required: tuple[str, ...]) -> None:
    twice = [column for column in table.columns if table.columns.count(column) > 1]
    if twice:
        problem = f"has two columns {parsing.shown(twice[0])}"
        raise errors.InvalidInput(table.name, problem, "give each once")
    lacking = [repr(column) for column in required if column not in table.columns]
    if lacking:
        problem = f"has no column {', '.join(lacking)}"
        raise errors.InvalidInput(table.name, problem, f"give {', '.join(required)}")
