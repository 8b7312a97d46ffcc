"""Logs that an agent is told: plays, and their contexts, from tables, rows or a `Log`."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import frames

COLUMNS = ("round", "arm", "reward")
REMEDY = "give columns round, arm and reward, rows of these three, or a path (see read_log)"
NAMED = 'give columns round, arm and reward, or read_log(…, columns={"arm": "its name", …})'


def read(log: Any, clock: Any = None) -> Any:
    """The log as `read_log` reads it, if it is a file or has times; else as it is.

    The index of a data frame becomes columns, as for `fit`.

    ``clock``: how rounds count times, also those of a `Log`; None: from its first.

    Example:
        >>> days = {"round": ["2024-01-31", "2024-02-02"], "arm": ["a", "b"], "reward": [1, 2]}
        >>> plays_of(read(days))
        [(0, 'a', 1.0, None), (2, 'b', 2.0, None)]
    """
    log, _ = frames.flat(log)
    is_read = isinstance(log, str | os.PathLike) or getattr(log, "clock", None) is not None
    if not is_read and not _has_times(log):
        return log
    from driftbandit.io.log_reader import as_log  # only here: agents seldom read files

    return as_log(log, clock=clock)


def _has_times(log: Any) -> bool:
    if "round" not in (_column_names(log) or ()):
        return False
    kind = getattr(getattr(log["round"], "dtype", None), "kind", "O")
    rounds = _column(log, "round") if kind == "O" else ()
    first = next((round_ for round_ in rounds if round_ is not None), None)
    return kind == "M" or isinstance(first, str | datetime.date | np.datetime64)


def _column_names(log: Any) -> list[Any] | None:
    """The columns of a table or a mapping; None: it is neither."""
    names = getattr(log, "column_names", getattr(log, "columns", None))
    if isinstance(log, Mapping):
        names = log
    return None if names is None or callable(names) else list(names)


def _column(log: Any, name: str) -> list[Any]:
    values = log[name]
    for method in ("to_pylist", "tolist", "to_list"):  # pyarrow; NumPy and pandas; polars
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise errors.InvalidInput("log", f"column {name} is {values!r:.60}", REMEDY)
    return list(values)


def plays_of(log: Any, features: Sequence[str] = ()) -> list[tuple[Any, Any, Any, Any]]:
    """(round, arm, reward, context) of every play, from any log that `Agent.tell_log` takes.

    Args:
        log: what `read` returned.
        features: whose values are the context; without any, it is None, as is a missing round.

    Example:
        >>> plays_of({"arm": ["left", "right"], "reward": [0.5, None]})
        [(None, 'left', 0.5, None), (None, 'right', None, None)]
        >>> plays_of([{"arm": 0, "reward": 1.0, "x_price": 5, "more": 2}], ["x_price"])
        [(None, 0, 1.0, {'x_price': 5})]
    """
    if hasattr(log, "sequences"):
        if len(log.sequences) != 1:
            problem = f"has {len(log.sequences)} sequences"
            raise errors.InvalidInput("log", problem, "give one of log.sequences, or a table")
        names, (sequence,) = getattr(log, "feature_names", ()), log.sequences
        arms = [log.names[number] for number in sequence.arms]
        log = {name: sequence.features[:, place] for place, name in enumerate(names)}
        log |= {"round": sequence.rounds, "arm": arms, "reward": sequence.rewards}
    elif all(hasattr(log, f"{name}s") for name in COLUMNS):  # a `Sequence`
        log = {name: getattr(log, f"{name}s") for name in COLUMNS}
    columns = _column_names(log)
    fields = (*COLUMNS, *features)
    rows = _rows(log, fields) if columns is None else _rows_of_table(log, columns, fields)
    return [
        (round_, arm, reward, dict(zip(features, values, strict=True)) or None)
        for round_, arm, reward, *values in rows
    ]


def _rows_of_table(log: Any, names: list[Any], fields: Sequence[str]) -> Iterable[Sequence[Any]]:
    lacking = [name for name in fields if name not in names and name != "round"]
    if lacking:
        remedy = f"give {', '.join(fields)}" if len(fields) > len(COLUMNS) else NAMED
        raise errors.InvalidInput("log", f"has no column {lacking[0]!r}", remedy)
    columns = [_column(log, name) for name in fields if name in names]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        problem = f"has columns of the lengths {', '.join(map(str, lengths))}"
        raise errors.InvalidInput("log", problem, "give one value of each per row")
    if "round" not in names:
        columns.insert(0, [None] * lengths[0])
    return zip(*columns, strict=True)


def _rows(log: Any, fields: Sequence[str]) -> Iterable[Sequence[Any]]:
    remedy = REMEDY
    if len(fields) > len(COLUMNS):
        remedy = f"give mappings or columns with {', '.join(fields)}"
    if isinstance(log, str | bytes) or not isinstance(log, Iterable):
        raise errors.InvalidInput("log", f"is {errors.printable(repr(log)[:60])}", remedy)
    for number, row in enumerate(log):
        try:
            named = row if isinstance(row, Mapping) else dict(zip(COLUMNS, row, strict=True))
            yield named.get("round"), *(named[name] for name in fields[1:])
        except (KeyError, TypeError, ValueError) as error:
            lacks = f"has no {error}" if isinstance(error, KeyError) else f"is {repr(row)[:60]}"
            problem = errors.printable(f"row {number} {lacks}")
            raise errors.InvalidInput("log", problem, remedy) from None
