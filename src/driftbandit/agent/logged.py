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
TIMES = "give whole numbers; for times, read_log makes a log of columns"


def read(log: Any, clock: Any = None) -> Any:
    """The log as `read_log` reads it, if it is a file or has times; else as it is.

    The index of a data frame becomes columns, as for `fit`.

    ``clock``: how rounds count times, also those of a `Log`; None: from its first.

    Example:
        >>> days = {"round": ["2024-01-31", "2024-02-02"], "arm": ["a", "b"], "reward": [1, 2]}
        >>> rows_of(read(days))
        [(0, 'a', 1.0), (2, 'b', 2.0)]
    """
    log, _ = frames.flat(log)
    is_read = isinstance(log, str | os.PathLike) or getattr(log, "clock", None) is not None
    if not is_read and not _has_times(log):
        return log
    from driftbandit.io.log_reader import as_log  # only here: agents seldom read files

    return as_log(log, clock=clock)


def _has_times(log: Any) -> bool:
    names = getattr(log, "column_names", getattr(log, "columns", None))
    if names is None and isinstance(log, Mapping):
        names = log
    if names is None or callable(names) or "round" not in list(names):
        return False
    kind = getattr(getattr(log["round"], "dtype", None), "kind", "O")
    if kind != "O":
        return bool(kind == "M")
    known = (one for one in _column(log["round"], "round") if one is not None)
    return isinstance(next(known, None), str | datetime.date | np.datetime64)


def rows_of(log: Any) -> list[tuple[Any, Any, Any]]:
    """(round, arm, reward) of every play, from any log that `Agent.tell_log` takes.

    Example:
        >>> rows_of({"arm": ["left", "right"], "reward": [0.5, None]})
        [(None, 'left', 0.5), (None, 'right', None)]
    """
    if hasattr(log, "sequences"):
        if len(log.sequences) != 1:
            problem = f"has {len(log.sequences)} sequences"
            raise errors.InvalidInput("log", problem, "give one of log.sequences, or a table")
        one = log.sequences[0]
        arms = [log.names[number] for number in one.arms]
        return list(zip(one.rounds.tolist(), arms, one.rewards.tolist(), strict=True))
    if all(hasattr(log, f"{name}s") for name in COLUMNS):
        log = {name: getattr(log, f"{name}s") for name in COLUMNS}
    column_names = getattr(log, "column_names", getattr(log, "columns", None))
    if isinstance(log, Mapping) or column_names is not None:
        return _rows_of_table(log, list(log if column_names is None else column_names))
    if isinstance(log, str | bytes) or not isinstance(log, Iterable):
        raise errors.InvalidInput("log", f"is {errors.printable(repr(log)[:60])}", REMEDY)
    rows = []
    for number, row in enumerate(log):
        try:
            if isinstance(row, Mapping):
                round_, arm, reward = row.get("round"), row["arm"], row["reward"]
            else:
                round_, arm, reward = row
        except (KeyError, TypeError, ValueError) as error:
            problem = f"row {number} is {errors.printable(repr(row)[:60])}"
            if isinstance(error, KeyError):
                problem = f"row {number} has no {error.args[0]!r}"
            raise errors.InvalidInput("log", problem, REMEDY) from None
        rows.append((round_, arm, reward))
    return rows


def _rows_of_table(log: Any, names: list[Any]) -> list[tuple[Any, Any, Any]]:
    for name in ("arm", "reward"):
        if name not in names:
            raise errors.InvalidInput("log", f"has no column {name!r}", NAMED)
    arms, rewards = _column(log["arm"], "arm"), _column(log["reward"], "reward")
    rounds = _column(log["round"], "round") if "round" in names else [None] * len(arms)
    if not len(rounds) == len(arms) == len(rewards):
        problem = f"has {len(rounds)} rounds, {len(arms)} arms and {len(rewards)} rewards"
        raise errors.InvalidInput("log", problem, "give one of each per row")
    return list(zip(rounds, arms, rewards, strict=True))


def _column(values: Any, name: str) -> list[Any]:
    for method in ("to_pylist", "tolist", "to_list"):  # pyarrow; NumPy and pandas; polars
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise errors.InvalidInput("log", f"column {name} is {values!r:.60}", REMEDY)
    return list(values)


def contexts_of(
    log: Any, features: Sequence[str], n_rows: int
) -> list[dict[str, Any]] | list[None]:
    """The context of every play: the values of the features by name; None if there are none.

    Example:
        >>> contexts_of({"arm": [0, 1], "reward": [1, 2], "x_price": [5, 6]}, ["x_price"], 2)
        [{'x_price': 5}, {'x_price': 6}]
    """
    if not features:
        return [None] * n_rows
    remedy = f"give {', '.join(features)} of every play, as columns"
    if hasattr(log, "sequences"):
        named = enumerate(getattr(log, "feature_names", ()))
        log = {name: log.sequences[0].features[:, place] for place, name in named}
    names = getattr(log, "column_names", getattr(log, "columns", log))
    if isinstance(log, Mapping) or names is not log:
        for name in features:
            if name not in list(names):
                raise errors.InvalidInput("log", f"has no column {name!r}", remedy)
        columns = [_column(log[name], name) for name in features]
        if any(len(column) != n_rows for column in columns):
            raise errors.InvalidInput("log", "has columns of different lengths", remedy)
        return [dict(zip(features, row, strict=True)) for row in zip(*columns, strict=True)]
    if not isinstance(log, Iterable):  # a `Sequence`, whose features have no names
        raise errors.InvalidInput("log", f"is a {type(log).__name__}", "give a Log, or a table")
    for number, row in enumerate(log):
        if not isinstance(row, Mapping) or any(name not in row for name in features):
            problem = f"row {number} is {errors.printable(repr(row)[:60])}"
            raise errors.InvalidInput("log", problem, f"{remedy} or in mappings")
    return [{name: row[name] for name in features} for row in log]
