"""Reads logs of decisions from files and tables in memory.

    sequence,round,arm,reward,chance,x_heat  sequence: optional; the independent run of a row
    monday,0,left,0.7,0.5,21.5               round: time step in its sequence; gaps are fine
    monday,1,right,,,22.0                    reward: empty if it was not observed
                                             chance: optional; empty if it is not known

Rounds may be dates or times. Columns that start with ``x_`` are features of a row. ``columns`` maps
the names of the others to a table's own. All else is ignored.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import log_columns, parsing, tables
from driftbandit.io.log_columns import COLUMNS, OwnNames
from driftbandit.io.logs import Arms, Log, Sequence, checked_names, frozen, names_of
from driftbandit.io.parsing import Kind
from driftbandit.io.tables import Columns
from driftbandit.io.times import Clock, Rounds
from driftbandit.system import Name

FAR = 1000  # how many times as far from the median as most a reward is that gets a note
APART = 30  # and how many times as far as any that gets none: tails are long, but have no gaps


def read_log(
    data: Any,
    names: Any = None,
    *,
    columns: OwnNames | None = None,
    every: str | None = None,
    zone: str | None = None,
    clock: Clock | None = None,
) -> Log:
    r"""Read a log of decisions from a file or a table.

    Args:
        data: the path of a file, .csv, .csv.gz or .parquet; or a mapping of columns, an Arrow
            table or a data frame. It has the columns round, arm, reward and, if it holds several
            independent sequences, sequence; chance, the probability with which the log's policy
            played the arm, if that is known; and features, whose names start with x_. Other columns
            are ignored. Rounds are whole numbers, or dates and times, which are converted to steps
            since the first one.
        names: of all arms, in order; None: the arms that were played, sorted as numbers if all are
            whole numbers, else as text.
        columns: the table's own column names, as {"round": "day", "arm": "variant"}.
        every: the length of a round if rounds are times, as "15 minutes" or "1h"; None: the
            longest that divides all times, up to a day, or a longer one if times are far apart.
        zone: whose clocks the rounds count if they are times, as "Europe/Berlin"; None: UTC if
            times have a zone, else the times as they are.
        clock: of an earlier log or a system (``Log.clock``), whose rounds go on; not with ``every``
            or ``zone``.

    Returns:
        The log, grouped by sequence and otherwise in the table's order. Its ``notes`` say what was
        ignored, how long a round is, and which rewards look wrong.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "log.csv"
        ...     _ = path.write_text("day,arm,reward\n2026-01-01,b,0.5\n2026-01-03,a,\n")
        ...     log = read_log(path, columns={"round": "day"})
        >>> log.names, log.sequences[0].rounds.tolist(), log.rewards_seen
        (('a', 'b'), [0, 2], 1)
        >>> read_log({"round": [0, 1, 1], "arm": ["b", 3, 3.0], "reward": [1, 2, 3]}).names
        ('3', 'b')
        >>> read_log("no/such/log.csv")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: no/such/log.csv: cannot be read (No such file or ...
    """
    names = None if names is None else checked_names(names)
    time = Rounds(every, zone, clock)
    if isinstance(data, str | os.PathLike):
        source = (os.fspath(data), *log_columns.flags(columns, every, zone))
        with tables.opened(data, "log") as table:
            return _log(table, names, columns, time, source)
    held = tables.in_memory(data, "log")
    if held is None:
        remedy = "give a path, a mapping of columns, an Arrow table or a data frame"
        if isinstance(data, Log):
            remedy = "it is read already: use it as it is"
        raise errors.InvalidInput("log", f"has type {type(data).__name__}", remedy)
    return _log(held, names, columns, time)


def as_log(data: Any, names: Any = None, clock: Clock | None = None) -> Log:
    """A `Log` as it is, and anything else as `read_log` reads it.

    Args:
        data: a `Log`, or what `read_log` takes.
        names: of all arms, in order, those of the log among them; None: those of the log.
        clock: whose rounds count the log's times; None: its own.

    Example:
        >>> log = as_log({"round": [0, 1], "arm": ["b", "a"], "reward": [1, 2]})
        >>> as_log(log) is log, as_log(log, ("c", "b", "a")).sequences[0].arms.tolist()
        (True, [1, 2])
    """
    if not isinstance(data, Log):
        return read_log(data, names, clock=clock)
    log = data if names is None else data.of_arms(checked_names(names))
    return log if clock is None else log.counted_by(clock)


def log_of_system(system: Any, data: Any) -> Log:
    """A log that a system is to predict, with the system's arms and in its rounds.

    Times are counted by the system's clock, if it has one. A system with a ``first_round`` contains
    all rounds before it, so that a log which holds some of them is refused, as an agent refuses it.

    Args:
        system: a `System`, or what `fit` returned.
        data: as for `as_log`.

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
    log = as_log(data, system.names, getattr(system, "clock", None))
    start = getattr(system, "first_round", None)
    first = min(int(sequence.rounds[0]) for sequence in log.sequences)
    if start is not None and first < start:
        last = max(int(sequence.rounds[-1]) for sequence in log.sequences)
        learned = f"the model was learned from those before round {start}, in which it starts"
        remedy = f"give only rounds from {start} on, or what fit returned in place of its system"
        raise errors.InvalidInput("log", f"holds rounds {first} to {last}, but {learned}", remedy)
    return log


def log_and_features(log: Any, arms: Any = None) -> tuple[Log, np.ndarray | None]:
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
        return as_log(log, arms.names), arms.features
    read = as_log(log)
    if arms is None:
        return read, None
    features = errors.matrix(arms, "arms", shape=(None, None))
    texts = [name for name in read.names if isinstance(name, str)]
    if texts and not isinstance(log, Log):
        problem = f"is an array, and the log calls an arm {parsing.shown(texts[0])}"
        remedy = "say which row belongs to which arm: give Arms(names, features)"
        raise errors.InvalidInput("arms", problem, remedy)
    k = len(features)
    if len(read.names) < k and set(read.names) <= set(range(k)):
        read = read.of_arms(tuple(range(k)))  # arms that were never played have rows too
    if len(read.names) != k:
        problem = f"has {k} rows for the log's {len(read.names)} arms"
        raise errors.InvalidInput("arms", problem, "give one row of features for each arm")
    return read, features


def _log(
    table: tables.Table,
    names: tuple[Name, ...] | None,
    columns: Any,
    time: Rounds,
    source: tuple[str, ...] = (),
) -> Log:
    places = log_columns.places(table, columns)
    features = tuple(name for name in places if name not in COLUMNS)
    sequences = parsing.Labels(remedy=COLUMNS["sequence"].remedy)
    played = parsing.Labels(None if names is None else map(str, names))
    kinds = {name: column.kind(name) for name, column in COLUMNS.items()} | {
        "sequence": sequences.kind("sequence", dates=True),
        "round": Kind("round", time.read, time.fault),
        "arm": played.kind("arm"),
    }
    kinds |= {name: log_columns.feature(name) for name in features}
    fields = {name: column.field or "codes" for name, column in COLUMNS.items()}
    wanted = {fields.get(name, name): (place, kinds[name]) for name, place in places.items()}
    labels = sequences.names
    check = functools.partial(_check_order, table=table, time=time, labels=labels)
    rows, lines = tables.read_rows(table, wanted, check, cells=max(1, len(features)))
    if features:
        rows["features"] = np.stack([rows.pop(name) for name in features], axis=1)
    rows.setdefault("codes", np.zeros(len(lines), np.int32))
    arms = names or names_of(played.names)
    far = _far_out(rows, lines, table.unit, arms, time)
    ranked = range(len(arms)) if names else sorted(range(len(arms)), key=arms.__getitem__)
    rows["arms"] = np.argsort(ranked)[rows["arms"]]
    rows["rounds"] = time.numbered(rows["rounds"])
    rows = _sorted(rows)
    notes = (log_columns.ignored(table, places), time.note, _repeated(rows), far)
    return Log(
        _sequences(rows, labels or [""]),
        tuple(arms[i] for i in ranked),
        tuple(filter(None, notes)),
        features,
        time.clock,
        source,
    )


def _sorted(rows: Columns) -> Columns:
    """The rows by sequence and round. Within a sequence, only repeated wall times are moved."""
    codes, rounds = rows["codes"], rows["rounds"]
    later = (codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (rounds[1:] >= rounds[:-1]))
    if later.all():
        return rows
    order = np.lexsort((rounds, codes))
    return {name: column[order] for name, column in rows.items()}


def _check_order(
    rows: Columns, lines: np.ndarray, *, table: tables.Table, time: Rounds, labels: list[str]
) -> None:
    """Refuse a row whose round is before that of an earlier row of its sequence."""
    codes = rows.get("codes", np.zeros(len(lines), np.int32))
    order = np.argsort(codes, kind="stable")
    codes, rounds = codes[order], time.in_order(rows["rounds"])[order]
    late = np.flatnonzero((codes[1:] == codes[:-1]) & (rounds[1:] < rounds[:-1])) + 1
    if late.size:
        worst = late[order[late].argmin()]
        row, last, label = order[worst], rounds[worst - 1], [*labels, ""][codes[worst]]
        of = f" of sequence {parsing.shown(label)}" if label else ""
        shown = time.shown(rows["rounds"][row])
        problem = f"round {shown} comes after round {time.shown(last)}{of}"
        remedy = "sort the rows of a sequence by round" + time.went_back(rows["rounds"][row], last)
        raise errors.InvalidInput(table.place(lines[row]), problem, remedy)


def _sequences(rows: Columns, labels: list[str]) -> tuple[Sequence, ...]:
    """Sequences of checked rows, grouped by code; not copied: there may be 10⁶ of them."""
    columns = {field: frozen(column) for field, column in rows.items() if field != "codes"}
    ends = np.cumsum(np.bincount(rows["codes"])).tolist()
    sequences = []
    for start, end, label in zip([0, *ends[:-1]], ends, labels, strict=True):
        sequence = object.__new__(Sequence)  # fields that are not set are None by default
        own = {field: column[start:end] for field, column in columns.items()}
        sequence.__dict__.update(own, label=label)
        sequences.append(sequence)
    return tuple(sequences)


def _far_out(
    rows: Columns, lines: np.ndarray, unit: str, arms: tuple[Name, ...], time: Rounds
) -> str:
    """A note on a reward that is absurdly far from the others, or a few; "" if there are none."""
    seen = np.flatnonzero(~np.isnan(rows["rewards"]))
    far, ratio = far_out(rows["rewards"][seen])
    if not far.size:
        return ""
    row = seen[far[0]]
    arm, round_ = arms[rows["arms"][row]], time.shown(rows["rounds"][row])
    where = f"{unit.capitalize()} {lines[row]} (round {round_}, arm {parsing.shown(arm)})"
    apart = f"{ratio:,.0f}" if ratio < 1e9 else f"{ratio:.0e}"
    said = f"pays {rows['rewards'][row]:g}, {apart} times as far from the median as most"
    count = len(far) - 1
    more = f"; {count} more {'is' if count == 1 else 'are'} far away, too" if count else ""
    return f"{where} {said}: check it{more}."


def far_out(rewards: np.ndarray) -> tuple[np.ndarray, float]:
    """The places of rewards that are absurdly far from the others, the farthest first.

    At most one in a hundred can be. They are `FAR` times as far from the median as the median
    reward that differs from it, and `APART` times as far as all others: no heavy tail, no rare
    jackpot among equal rewards, and no arm that always pays its own constant looks like that.

    Returns:
        Places; and how many times as far from the median as most rewards the first one is.

    Example:
        >>> rewards = np.random.default_rng(0).standard_normal(200)
        >>> rewards[56] = 1e6
        >>> far_out(rewards)[0], far_out(rewards[:56])[0]
        (array([56]), array([], dtype=int64))
    """
    none = np.empty(0, np.int64), 0.0
    if len(rewards) < 2:
        return none
    median = float(np.median(rewards))
    apart = np.abs(rewards - median)
    differ = apart[apart > 1e-9 * abs(median)]  # else sums that are rounded would differ
    if not differ.size:
        return none
    scale, most = float(np.median(differ)), max(1, len(rewards) // 100)
    order = np.argpartition(apart, -most - 1)[-most - 1 :]
    order = order[np.argsort(-apart[order])]
    ends = (apart[order][:-1] > FAR * scale) & (apart[order][:-1] > APART * apart[order][1:])
    count = int(np.flatnonzero(ends)[-1]) + 1 if ends.any() else 0
    return order[:count], float(apart[order[0]]) / scale


def _repeated(rows: Columns) -> str:
    """A note on rows that repeat another; "" if none does."""
    keys = [rows[name] for name in ("codes", "rounds", "arms", "rewards")]
    codes, rounds, _, rewards = keys
    beside = np.append(False, (rounds[1:] == rounds[:-1]) & (codes[1:] == codes[:-1]))
    beside[:-1] |= beside[1:]
    # Whole rewards do not count: clicks are often equal by chance.
    places = np.flatnonzero(beside & ~np.isnan(rewards) & (rewards != np.round(rewards)))
    parts = np.stack([column[places] for column in keys])
    parts = parts[:, np.lexsort(parts)]
    count = int((parts[:, 1:] == parts[:, :-1]).all(axis=0).sum())
    if not count:
        return ""
    verb = "row repeats" if count == 1 else "rows repeat"
    return f"{count:,} {verb} another one (same round, arm and reward)."
