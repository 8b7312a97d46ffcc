"""Logs of decisions (which arm was played in which round, and what it paid) and arms files.

    sequence,round,arm,reward          sequence: optional; the independent run a row belongs to
    monday,0,left,0.7                  round: time step in its sequence; gaps and repeats are fine
    monday,1,right,                    reward: empty if it was not observed

Rounds may be dates or times. ``columns`` maps these names to a table's own; other columns are
ignored. An arms file has a column ``arm`` and one column of numbers for each feature.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import parsing, tables
from driftbandit.system import Name

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")  # a label that is a whole number: 7, not 07
REQUIRED = ("round", "arm", "reward")
COLUMNS = ("sequence", *REQUIRED, "chance")
Columns = Mapping[str, str]  # a table's own names for the columns of a log
NO_ZERO = "an arm needs at least one non-zero entry"


@dataclasses.dataclass(frozen=True, eq=False)
class Sequence:
    """The plays of one independent run, in order of time.

    Args:
        rounds: n whole numbers ≥ 0 that never decrease; equal ones are plays of one round.
        arms: n arm numbers, from 0.
        rewards: n rewards; NaN where none was observed.
        label: the sequence's name.

    Example:
        >>> Sequence([0, 1, 3], [0, 1, 0], [0.5, float("nan"), 0.7]).rewards_seen
        2
    """

    rounds: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    label: str = ""
    chances: np.ndarray | None = None  # of the arms that were played; NaN where unknown
    features: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.chances is not None:
            object.__setattr__(self, "chances", np.array(self.chances, np.float64))
        for field, type_ in (("rounds", np.int64), ("arms", np.int64), ("rewards", np.float64)):
            values = getattr(self, field)
            if not isinstance(values, np.ndarray) or values.dtype != type_ or values.ndim != 1:
                values = _converted(values, field)
            values = values.copy()
            values.setflags(write=False)
            object.__setattr__(self, field, values)
        n = len(self.rounds)
        if not n == len(self.arms) == len(self.rewards) or n == 0:
            problem = f"has {n} rounds, {len(self.arms)} arms and {len(self.rewards)} rewards"
            raise errors.InvalidInput("sequence", problem, "give one of each per row, and a row")
        if self.rounds[0] < 0 or (self.rounds[1:] < self.rounds[:-1]).any():
            raise errors.InvalidInput("rounds", "decrease", "sort the rows by round")
        if self.arms.min() < 0:
            raise errors.InvalidInput("arms", f"is {self.arms.min()}", "count arms from 0")
        if (np.abs(self.rewards) > errors.LARGEST).any():
            problem = "hold one that is too large"
            raise errors.InvalidInput("rewards", problem, parsing.REMEDIES["reward"])
        if not isinstance(self.label, str):
            raise errors.InvalidInput("label", f"{self.label!r} is not text", "give text")

    @property
    def rewards_seen(self) -> int:
        """How many rewards were observed."""
        return int(np.count_nonzero(~np.isnan(self.rewards)))

    def __len__(self) -> int:
        """n, the number of rows."""
        return len(self.rounds)


def _converted(values: Any, field: str) -> np.ndarray:
    table = tables.in_memory({field: values}, "sequence")
    assert table is not None
    column, dtype = ("reward", np.float64) if field == "rewards" else ("round", np.int64)
    parts = [np.empty(0, dtype)]
    for (given,), numbers in table.blocks:
        part = parsing.real(given) if column == "reward" else parsing.whole(given)
        wrong = parsing.first(np.isinf(part) if column == "reward" else part < 0)
        if wrong < len(part):
            problem = parsing.problem(column, given[wrong], called=field[:-1])
            raise errors.InvalidInput(f"sequence row {numbers[wrong]}", *problem)
        parts.append(part)
    return np.concatenate(parts)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Log:
    """The plays and rewards of one or more sequences.

    Args:
        sequences: one or more.
        names: of the arms, texts or whole numbers; arm i of a sequence is ``names[i]``.
        notes: sentences on what the reader ignored or chose.

    Example:
        >>> one = Sequence([0, 1], [0, 1], [0.7, float("nan")])
        >>> Log((one,), ("left", "right"))
        Log(sequences=1, rows=2, rewards_seen=1, arms=2)
    """

    sequences: tuple[Sequence, ...]
    names: tuple[Name, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = checked_names(self.names)
        sequences = tuple(self.sequences) if isinstance(self.sequences, list | tuple) else ()
        if not sequences or not all(isinstance(one, Sequence) for one in sequences):
            problem = f"{parsing.shown(self.sequences)} is not a tuple of sequences"
            raise errors.InvalidInput("sequences", problem, "give one Sequence or more")
        largest = max(int(one.arms.max()) for one in sequences)
        if largest >= len(names):
            problem = f"hold {len(names)}, and a sequence plays arm {largest}"
            raise errors.InvalidInput("names", problem, "name every arm")
        vars(self).update(sequences=sequences, names=names)  # the class is frozen

    @property
    def rows(self) -> int:
        """Plays in all sequences."""
        return sum(map(len, self.sequences))

    @property
    def rewards_seen(self) -> int:
        """Rewards observed in all sequences."""
        return sum(one.rewards_seen for one in self.sequences)

    def __repr__(self) -> str:
        return (
            f"Log(sequences={len(self.sequences)}, rows={self.rows}, "
            f"rewards_seen={self.rewards_seen}, arms={len(self.names)})"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Arms:
    """Arms by name, with their features.

    Args:
        names: k different texts or whole numbers.
        features: k × d, how each arm reads the state; no row is zero.

    Example:
        >>> Arms(("left", "right"), [[1, 0], [0, 1]]).features.shape
        (2, 2)
    """

    names: tuple[Name, ...]
    features: np.ndarray

    def __post_init__(self) -> None:
        names = checked_names(self.names)
        features = errors.matrix(self.features, "features", shape=(len(names), None))
        zero = parsing.first(np.asarray(~features.any(axis=1)))
        if zero < len(names):
            raise errors.InvalidInput("features", f"row {zero} is the zero vector", NO_ZERO)
        features.setflags(write=False)
        vars(self).update(names=names, features=features)  # the class is frozen


def checked_names(names: Any) -> tuple[Name, ...]:
    """The names of one arm or more, all different, as a log would read them."""
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        problem = f"{parsing.shown(names)} is not a list of labels"
        raise errors.InvalidInput("names", problem, "give a tuple of texts")
    found: dict[str, None] = {}
    for name in names:
        label = parsing.label_of(name)
        if label is None:
            raise errors.InvalidInput("names", *parsing.problem("arm", name))
        if label in found:
            problem = f"hold {parsing.shown(label)} twice"
            raise errors.InvalidInput("names", problem, "give each arm once")
        found[label] = None
    if not found:
        raise errors.InvalidInput("names", "are none", "give at least one")
    return _names(found)


def _names(labels: Iterable[str]) -> tuple[Name, ...]:
    """Arm names from a table's labels: whole numbers if all labels are, else texts."""
    found = tuple(labels)
    return tuple(map(int, found)) if all(map(WHOLE.fullmatch, found)) else found


# Reading logs


def read_log(
    path: Any, names: Any = None, *, columns: Columns | None = None, step: str | None = None
) -> Log:
    """Read a log of decisions from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the columns round, arm, reward and, if it
            holds several independent sequences, sequence. Other columns are ignored. Rounds are
            whole numbers, or dates and times, which are converted to steps since the first one.
        names: of all arms, in order; None: the arms that were played, sorted as numbers if all are
            whole numbers, else as text.
        columns: the file's own column names, as {"round": "day", "arm": "variant"}.
        step: the length of a round if rounds are times, as "15 minutes"; None: the longest that
            divides all times, up to a day.

    Returns:
        The log, grouped by sequence and otherwise in the file's order. Its ``notes`` say what was
        ignored, and how long a round is.

    Example:
        >>> read_log("no/such/log.csv")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: no/such/log.csv: cannot be read (No such file or ...
    """
    names = None if names is None else checked_names(names)
    with tables.opened(path, "log") as table:
        return _log(table, names, columns, step)


def as_log(
    data: Any, names: Any = None, *, columns: Columns | None = None, step: str | None = None
) -> Log:
    """Convert data to a log.

    Args:
        data: a Log, the path of a file, a mapping of columns, an Arrow table or a data frame.
        names: as in ``read_log``; those of a Log must be the same.
        columns: as in ``read_log``, like ``step``; not for a Log.

    Example:
        >>> as_log({"round": [0, 1, 1], "arm": ["b", 3, 3.0], "reward": [1, 2, 3]}).names
        ('3', 'b')
    """
    names = None if names is None else checked_names(names)
    if isinstance(data, Log):
        if names is not None and names != data.names:
            has, given = parsing.first_names(data.names), parsing.first_names(names)
            problem = f"has the arms {has}, names are {given}"
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
    log: Any, arms: Any = None, columns: Columns | None = None, step: str | None = None
) -> tuple[Log, np.ndarray | None]:
    """The log, and the features of its arms if they are given.

    An array's row i belongs to arm i or, if the k arms have other numbers, to the i-th by size.

    Example:
        >>> log = {"round": [0, 1, 2], "arm": [10, 9, 5], "reward": [1, 2, 3]}
        >>> log_and_features(log, [[1.0], [2.0], [3.0]])[0].names
        (5, 9, 10)
        >>> log_and_features(log | {"arm": [2, 0, 2]}, [[1.0], [2.0], [3.0]])[0].names
        (0, 1, 2)
    """
    if isinstance(arms, Arms):
        return as_log(log, arms.names, columns=columns, step=step), arms.features
    features = None if arms is None else errors.matrix(arms, "arms", shape=(None, None))
    read = as_log(log, columns=columns, step=step)
    if features is None:
        return read, None
    k = len(features)
    if not isinstance(log, Log):
        texts = [name for name in read.names if isinstance(name, str)]
        if texts:
            problem = f"is an array, and the log calls an arm {parsing.shown(texts[0])}"
            remedy = "say which row belongs to which arm: give Arms(names, features)"
            raise errors.InvalidInput("arms", problem, remedy)
        if set(read.names) <= set(range(k)):  # arms that were never played have rows too
            places = np.array(read.names)
            ones = [dataclasses.replace(one, arms=places[one.arms]) for one in read.sequences]
            read = dataclasses.replace(read, sequences=tuple(ones), names=tuple(range(k)))
    if len(read.names) != k:
        problem = f"has {k} rows for the log's {len(read.names)} arms"
        raise errors.InvalidInput("arms", problem, "give one row of features for each arm")
    return read, features


def _log(table: tables.Table, names: tuple[Name, ...] | None, columns: Any, step: Any) -> Log:
    places = _log_columns(table, _checked_columns(columns))
    arms = parsing.Labels(None if names is None else [str(name) for name in names])
    sequences, clock, time = parsing.Labels(), _LastRounds(), parsing.Rounds(step)
    parts: list[tuple[np.ndarray, ...]] = []
    rows = 0
    for block, numbers in table.read(list(places.values())):
        given = dict(zip(places, block, strict=True))
        rounds, rewards = time.read(given["round"]), parsing.real(given["reward"])
        played, codes = arms.codes(given["arm"]), np.zeros(len(numbers), np.int64)
        if "sequence" in given:
            codes = sequences.codes(parsing.dates_as_text(given["sequence"]))
        wrong = {
            "sequence": parsing.first(codes < 0),
            "round": parsing.first(rounds < 0),
            "arm": parsing.first(played < 0),
            "reward": parsing.first(np.abs(rewards) > errors.LARGEST),
        }
        chances = np.full(len(numbers), np.nan)
        if "chance" in given:
            chances = parsing.real(given["chance"])
            wrong["chance"] = parsing.first((chances <= 0) | (chances > 1))
        column = min(wrong, key=wrong.__getitem__)
        good = wrong[column]
        late, last = clock.first_late(codes[:good], rounds[:good])
        if late < good:
            of = f" of sequence {parsing.shown(sequences.names[codes[late]])}" if sequences else ""
            problem = f"round {time.shown(rounds[late])} comes after round {time.shown(last)}{of}"
            remedy = "sort the rows of a sequence by round"
            raise errors.InvalidInput(table.place(numbers[late]), problem, remedy)
        if good < len(numbers):
            value, known = given[column][good], arms.names if names else ()
            said = time.problem(value) if column == "round" else None
            if column == "chance":
                said = f"chance {parsing.shown(value)}", "give a number in (0, 1]"
            said = said or parsing.problem(column, value, known)
            raise errors.InvalidInput(table.place(numbers[good]), *said)
        parts.append((codes.astype(np.int32), rounds, played.astype(np.int32), rewards, chances))
        rows += len(numbers)
        if rows > tables.MOST_ROWS:
            raise tables.too_long(table.name)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give at least one decision")
    found = names or _names(arms.names)
    ranked = range(len(found)) if names else sorted(range(len(found)), key=found.__getitem__)
    codes, rounds, played, rewards, chances = map(np.concatenate, zip(*parts, strict=True))
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        columns = (codes, rounds, played, rewards, chances)
        codes, rounds, played, rewards, chances = (x[order] for x in columns)
    rounds, played = time.numbered(rounds), np.argsort(ranked)[played]
    labels = sequences.names if "sequence" in places else [""]
    fields = {"rounds": rounds, "arms": played, "rewards": rewards}
    if "chance" in places:
        fields["chances"] = chances
    ones = _sequences(codes, fields, labels)
    notes = _ignored(table, places), time.note, _repeated(codes, rounds, played, rewards)
    return Log(ones, tuple(found[i] for i in ranked), tuple(filter(None, notes)))


def _checked_columns(columns: Any) -> dict[str, Any]:
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


def _log_columns(table: tables.Table, columns: dict[str, Any]) -> dict[str, int]:
    """The position of each of a log's columns in the table."""
    called = {role: role for role in COLUMNS if role not in columns.values()} | columns
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
    _check_single(table, called.values())
    found = sorted(COLUMNS.index(role) for role in called if called[role] in table.columns)
    return {COLUMNS[i]: table.columns.index(called[COLUMNS[i]]) for i in found}


def _check_single(table: tables.Table, names: Iterable[Any]) -> None:
    for name in names:
        if table.columns.count(name) > 1:
            problem = f"has two columns {parsing.shown(name)}"
            raise errors.InvalidInput(table.name, problem, "give each once")


def _ignored(table: tables.Table, places: dict[str, int]) -> str:
    """A note on the columns that are ignored; "" if there are none."""
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
    return errors.printable(str(column)[:20]) or "''"


class _LastRounds:
    """The last round of every sequence so far."""

    def __init__(self) -> None:
        self._last = np.full(16, -1)

    def first_late(self, codes: np.ndarray, rounds: np.ndarray) -> tuple[int, int]:
        """The first row whose round is before its sequence's last round, and that last round."""
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
        self._last[codes] = rounds  # NumPy keeps the last of several
        return n, 0


def _sequences(
    codes: np.ndarray, columns: dict[str, np.ndarray], labels: list[str]
) -> tuple[Sequence, ...]:
    """Sequences of checked columns, grouped by code; not copied: there may be 10⁶ of them."""
    for column in columns.values():
        column.setflags(write=False)
    ends = np.cumsum(np.bincount(codes)).tolist()
    found = []
    for start, end, label in zip([0, *ends[:-1]], ends, labels, strict=True):
        sequence = object.__new__(Sequence)
        rows = {field: column[start:end] for field, column in columns.items()}
        sequence.__dict__.update(rows, label=label)
        found.append(sequence)
    return tuple(found)


def _repeated(codes: np.ndarray, rounds: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> str:
    """A note on rows that repeat another; "" if none does."""
    beside = np.append(False, (rounds[1:] == rounds[:-1]) & (codes[1:] == codes[:-1]))
    beside[:-1] |= beside[1:]
    # Whole rewards do not count: clicks are often equal by chance.
    rows = np.flatnonzero(beside & ~np.isnan(rewards) & (rewards != np.round(rewards)))
    parts = np.stack([column[rows] for column in (codes, rounds, arms, rewards)])
    parts = parts[:, np.lexsort(parts)]
    count = int((parts[:, 1:] == parts[:, :-1]).all(axis=0).sum())
    if not count:
        return ""
    verb = "row repeats" if count == 1 else "rows repeat"
    return f"{count:,} {verb} another one (same round, arm and reward)."


# Reading arms


def read_arms(path: Any, *, columns: Columns | None = None) -> Arms:
    """Read the arms' features from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the column arm and one column of numbers
            or more, of any name; one row per arm.
        columns: as in ``read_log``: the column arm may have the log's name for it.

    Example:
        >>> read_arms("/")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: /: is a folder; give the path of a CSV or Parquet file
    """
    with tables.opened(path, "arms") as table:
        return _arms(table, _checked_columns(columns).get("arm", "arm"))


def _arms(table: tables.Table, called: str) -> Arms:
    table = table._replace(columns=["arm" if name == called else name for name in table.columns])
    features = [column for column in table.columns if column != "arm"]
    _check_single(table, table.columns)
    if "arm" not in table.columns:
        raise errors.InvalidInput(table.name, "has no column 'arm'", "give arm")
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
        start = len(places)
        places += numbers
        if len(places) * len(table.columns) > tables.MOST_ROWS:
            raise tables.too_long(table.name)
        good = np.abs(rows) <= errors.LARGEST
        new = codes == start + np.arange(len(codes))
        i = parsing.first(~(good.all(axis=1) & rows.any(axis=1) & new))
        if i < len(numbers):
            before = f"{table.unit} {places[codes[i]]}" if codes[i] < start + i else ""
            wrong = [name for name, fine in zip(features, good[i], strict=True) if not fine]
            said = _arm_problem({name: given[name][i] for name in given}, before, wrong)
            raise errors.InvalidInput(table.place(numbers[i]), *said)
        parts.append(rows)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give one row per arm")
    return Arms(_names(labels.names), np.concatenate(parts))


def _arm_problem(row: dict[str, Any], before: str, wrong: list[str]) -> tuple[str, str]:
    """What is wrong with a row: no label, a label that is in ``before`` too, or its features."""
    arm = row["arm"]
    if parsing.label_of(arm) is None:
        return parsing.problem("arm", arm)
    if before:
        return f"arm {parsing.shown(arm)} is in {before} too", "give each arm one row"
    if wrong:
        called = f"feature {parsing.shown(wrong[0])}"
        return parsing.problem("feature", row[wrong[0]], called=called)
    return f"all features of arm {parsing.shown(arm)} are zero", NO_ZERO
