"""Reads logs of decisions from files and tables in memory.

    sequence,round,arm,reward,chance,x_heat  sequence: optional; the independent run of a row
    monday,0,left,0.7,0.5,21.5               round: time step in its sequence; gaps are fine
    monday,1,right,,,22.0                    reward: empty if it was not observed
                                             chance: optional; empty if it is not known

Rounds may be dates or times. Columns that start with ``x_`` are features of a row. ``columns`` maps
the names of the others to a table's own. All else is ignored.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import log_columns, parsing, tables, times
from driftbandit.io.log_columns import Columns
from driftbandit.io.logs import FEATURE, Arms, Log, Sequence, checked_names, names_of
from driftbandit.io.parsing import Values
from driftbandit.system import Name


def read_log(
    path: Any,
    names: Any = None,
    *,
    columns: Columns | None = None,
    every: str | None = None,
    zone: str | None = None,
    clock: times.Clock | None = None,
) -> Log:
    r"""Read a log of decisions from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the columns round, arm, reward and, if it
            holds several independent sequences, sequence; chance, the probability with which the
            log's policy played the arm, if that is known; and features, whose names start with x_.
            Other columns are ignored. Rounds are whole numbers, or dates and times, which are
            converted to steps since the first one.
        names: of all arms, in order; None: the arms that were played, sorted as numbers if all are
            whole numbers, else as text.
        columns: the file's own column names, as {"round": "day", "arm": "variant"}.
        every: the length of a round if rounds are times, as "15 minutes" or "1h"; None: the
            longest that divides all times, up to a day.
        zone: whose clocks the rounds count if they are times, as "Europe/Berlin"; None: UTC if
            times have a zone, else the times as they are.
        clock: of an earlier log (``Log.clock``), whose rounds go on; not with ``every`` or
            ``zone``.

    Returns:
        The log, grouped by sequence and otherwise in the file's order. Its ``notes`` say what was
        ignored, and how long a round is.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "log.csv"
        ...     _ = path.write_text("day,arm,reward\n2026-01-01,b,0.5\n2026-01-03,a,\n")
        ...     log = read_log(path, columns={"round": "day"})
        >>> log.names, log.sequences[0].rounds.tolist(), log.rewards_seen
        (('a', 'b'), [0, 2], 1)
        >>> read_log("no/such/log.csv")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: no/such/log.csv: cannot be read (No such file or ...
    """
    names = None if names is None else checked_names(names)
    with tables.opened(path, "log") as table:
        return _log(table, names, columns, times.Rounds(every, zone, clock))


def as_log(
    data: Any,
    names: Any = None,
    *,
    columns: Columns | None = None,
    every: str | None = None,
    zone: str | None = None,
    clock: times.Clock | None = None,
) -> Log:
    """Convert data to a log.

    Args:
        data: a Log, the path of a file, a mapping of columns, an Arrow table or a data frame.
        names: as in ``read_log``; those of a Log must be the same.
        columns: as in ``read_log``, like ``every``, ``zone`` and ``clock``; not for a Log.

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
        options = {"columns": columns, "every": every, "zone": zone, "clock": clock}
        for argument, option in options.items():
            if option:
                problem = "was given beside a Log, which is read already"
                raise errors.InvalidInput(argument, problem, "leave it out")
        return data
    if isinstance(data, str | os.PathLike):
        return read_log(data, names, columns=columns, every=every, zone=zone, clock=clock)
    table = tables.in_memory(data, "log")
    if table is None:
        remedy = "give a Log, a path, a mapping of columns or an Arrow table"
        raise errors.InvalidInput("log", f"has type {type(data).__name__}", remedy)
    return _log(table, names, columns, times.Rounds(every, zone, clock))


def log_of_system(
    system: Any,
    log: Any,
    columns: Columns | None = None,
    every: str | None = None,
    zone: str | None = None,
) -> Log:
    """A log that a system is to predict, in the system's own rounds.

    Times are counted by the system's clock, if it has one. A system with a ``first_round`` contains
    all rounds before it, so that a log which holds some of them is refused, as an agent refuses it.

    Args:
        system: a `System`, or what `fit` returned.
        log, columns, every, zone: as in `as_log`.

    Example:
        >>> from driftbandit import LGDS, System
        >>> days = as_log({"round": ["2026-01-05"], "arm": [0], "reward": [0.1]})
        >>> learned = System(LGDS([[0.5]], [[1.0]], 1.0), [[1.0]], first_round=1, clock=days.clock)
        >>> later = {"round": ["2026-01-08", "2026-01-10"], "arm": [0, 0], "reward": [0.2, 0.3]}
        >>> log_of_system(learned, later).sequences[0].rounds.tolist()
        [3, 5]
        >>> log_of_system(learned, days)
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: log: holds rounds 0 to 0, but the model was learned from...
    """
    clock = getattr(system, "clock", None)
    known = None if isinstance(log, Log) or every is not None or zone is not None else clock
    read = as_log(log, system.names, columns=columns, every=every, zone=zone, clock=known)
    ahead = 0
    if clock is not None and read.clock is not None:
        ahead = clock.rounds_until(read.clock, owner="system")
    if ahead:
        read = dataclasses.replace(read, sequences=tuple(_moved(s, ahead) for s in read.sequences))
        read = dataclasses.replace(read, clock=clock)
    start = getattr(system, "first_round", None)
    first = min(int(sequence.rounds[0]) for sequence in read.sequences)
    if start is not None and first < start:
        last = max(int(sequence.rounds[-1]) for sequence in read.sequences)
        learned = f"the model was learned from those before round {start}, in which it starts"
        remedy = f"give only rounds from {start} on, or what fit returned in place of its system"
        raise errors.InvalidInput("log", f"holds rounds {first} to {last}, but {learned}", remedy)
    return read


def _moved(sequence: Sequence, rounds: int) -> Sequence:
    """The sequence so many rounds later; rounds before the clock's start are below 0."""
    moved = copy.copy(sequence)
    vars(moved)["rounds"] = sequence.rounds + rounds
    return moved


def log_and_features(
    log: Any,
    arms: Any = None,
    columns: Columns | None = None,
    every: str | None = None,
    zone: str | None = None,
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
        return as_log(log, arms.names, columns=columns, every=every, zone=zone), arms.features
    features = None if arms is None else errors.matrix(arms, "arms", shape=(None, None))
    read = as_log(log, columns=columns, every=every, zone=zone)
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


def _log(
    table: tables.Table, names: tuple[Name, ...] | None, columns: Any, time: times.Rounds
) -> Log:
    places = log_columns.places(table, log_columns.checked(columns))
    features = log_columns.features(table, places)
    read = places | features
    arms = parsing.Labels(None if names is None else [str(name) for name in names])
    sequences, clock = parsing.Labels(), _LastRounds()
    parts: list[dict[str, np.ndarray]] = []
    rows = 0
    blocks = iter(table.read(list(read.values())))
    for block, numbers in blocks:
        given = dict(zip(read, block, strict=True))
        part, bad = _parsed(given, sequences, arms, time)
        wrong = {name: parsing.first(mask) for name, mask in bad.items()}
        column = min(wrong, key=wrong.__getitem__)
        good = wrong[column]
        codes, rounds = part["codes"][:good], part["rounds"][:good]
        late, last = clock.first_late(codes, time.in_order(rounds))
        if late < good:
            of = f" of sequence {parsing.shown(sequences.names[codes[late]])}" if sequences else ""
            problem = f"round {time.shown(rounds[late])} comes after round {time.shown(last)}{of}"
            remedy = "sort the rows of a sequence by round" + time.went_back(rounds[late], last)
            raise errors.InvalidInput(table.place(numbers[late]), problem, remedy)
        if good < len(numbers):
            said, remedy = _problem(column, given[column][good], time, arms.names if names else ())
            if column not in ("sequence", "round", "arm"):
                place = list(read).index(column)
                more = int(bad[column].sum()) - 1 + _count_bad(column, place, blocks)
                said += f", as in {more:,} more row{'s' * (more > 1)}" if more else ""
            raise errors.InvalidInput(table.place(numbers[good]), said, remedy)
        short = {name: part[name].astype(np.int32) for name in ("codes", "arms")}
        parts.append(part | short)
        rows += len(numbers)
        if rows * max(1, len(features)) > tables.MOST_ROWS:
            raise tables.too_long(table.name)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give at least one decision")
    found = names or names_of(arms.names)
    ranked = range(len(found)) if names else sorted(range(len(found)), key=found.__getitem__)
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    whole["rounds"] = time.numbered(whole["rounds"])
    whole["arms"] = np.argsort(ranked)[whole["arms"]]
    whole = _sorted(whole)
    labels = sequences.names if "sequence" in places else [""]
    ones = _sequences(whole, labels)
    notes = log_columns.ignored(table, read), time.note, _repeated(whole)
    order = tuple(found[i] for i in ranked)
    return Log(ones, order, tuple(filter(None, notes)), tuple(features), time.clock)


def _parsed(
    given: dict[str, Values], sequences: parsing.Labels, arms: parsing.Labels, time: times.Rounds
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The columns of a block as numbers, and which rows of each are bad."""
    features = [name for name in given if name.startswith(FEATURE)]
    part = {"codes": np.zeros(len(given["round"]), np.int64)}
    if "sequence" in given:
        part["codes"] = sequences.codes(parsing.dates_as_text(given["sequence"]))
    part |= {"rounds": time.read(given["round"]), "arms": arms.codes(given["arm"])}
    part["rewards"] = parsing.real(given["reward"])
    bad = {
        "sequence": part["codes"] < 0,
        "round": part["rounds"] < 0,
        "arm": part["arms"] < 0,
        "reward": _bad_numbers("reward", part["rewards"]),
    }
    if "chance" in given:
        part["chances"] = parsing.real(given["chance"])
        bad["chance"] = _bad_numbers("chance", part["chances"])
    if features:
        part["features"] = np.stack([parsing.real(given[name]) for name in features], axis=1)
        bad |= {x: _bad_numbers(x, part["features"][:, j]) for j, x in enumerate(features)}
    return part, bad


def _bad_numbers(column: str, values: np.ndarray) -> np.ndarray:
    """Where a column of rewards, chances or features holds what it must not."""
    if column == "chance":
        return parsing.not_chances(values)
    if column == "reward":
        return np.asarray(np.abs(values) > errors.LARGEST)
    return np.asarray(~(np.abs(values) <= errors.LARGEST))  # a feature, which is never missing


def _count_bad(column: str, place: int, blocks: Iterator[tables.Block]) -> int:
    """How many rows of these blocks have a bad value in that column."""
    found = 0
    with contextlib.suppress(errors.InvalidInput):  # the table is broken later: that comes next
        for block, _ in blocks:
            found += int(_bad_numbers(column, parsing.real(block[place])).sum())
    return found


def _problem(column: str, value: Any, time: times.Rounds, known: Any) -> tuple[str, str]:
    """What is wrong with a value of a column, and what would be right."""
    if column.startswith(FEATURE):
        return parsing.problem("feature", value, called=f"feature {parsing.shown(column)}")
    return time.problem(value) if column == "round" else parsing.problem(column, value, known)


def _sorted(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows by sequence and round. Within a sequence, only repeated wall times are moved."""
    codes, rounds = rows["codes"], rows["rounds"]
    later = (codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (rounds[1:] >= rounds[:-1]))
    if later.all():
        return rows
    order = np.lexsort((rounds, codes))
    return {name: column[order] for name, column in rows.items()}


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


def _sequences(rows: dict[str, np.ndarray], labels: list[str]) -> tuple[Sequence, ...]:
    """Sequences of checked rows, grouped by code; not copied: there may be 10⁶ of them."""
    absent = dict.fromkeys(("chances", "features"))
    columns = {field: column for field, column in rows.items() if field != "codes"}
    for column in columns.values():
        column.setflags(write=False)
    ends = np.cumsum(np.bincount(rows["codes"])).tolist()
    found = []
    for start, end, label in zip([0, *ends[:-1]], ends, labels, strict=True):
        sequence = object.__new__(Sequence)
        own = {field: column[start:end] for field, column in columns.items()}
        sequence.__dict__.update(absent | own, label=label)
        found.append(sequence)
    return tuple(found)


def _repeated(whole: dict[str, np.ndarray]) -> str:
    """A note on rows that repeat another; "" if none does."""
    codes, rounds, arms, rewards = (whole[n] for n in ("codes", "rounds", "arms", "rewards"))
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
