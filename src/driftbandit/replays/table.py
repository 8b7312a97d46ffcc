"""Rewards of real arms, round by round."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import parsing, tables
from driftbandit.io.logs import REQUIRED, Arms, Log, Sequence, as_log, checked_names, read_arms
from driftbandit.system import Name

__all__ = ["Table", "as_table"]

LARGEST = 2 * 10**7
"""Rounds × arms."""
REMEDY = "give a path, a log, or a T × k table of rewards"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Table:
    """What every arm would have paid in every round, or what the logged one paid.

    Args:
        rewards: T × k; NaN where an arm was not on offer, or its reward is unknown.
        names: of the arms, k texts or whole numbers; (): their numbers.
        features: k × d, what is known of each arm.
        title: what the data is called.
        unit: of the rewards.
        notes: how the data was read, in sentences.
        times: the round of each row, T rising whole numbers; None: 0 to T − 1. What lies between
            two rows passes unseen, at the cost of one step however long it is.

    Example:
        >>> nan = float("nan")
        >>> Table([[1.0, 2.0], [3.0, nan], [0.5, 0.1]], ("left", "right"))
        Table(rounds=3, arms=2, rewards=5, logged=False)
    """

    rewards: np.ndarray
    names: tuple[Name, ...] = ()
    features: np.ndarray | None = None
    title: str = ""
    unit: str = ""
    notes: tuple[str, ...] = ()
    times: np.ndarray = None  # type: ignore[assignment]  # None becomes 0 to T − 1

    def __post_init__(self) -> None:
        rewards = _rewards(self.rewards)
        k = rewards.shape[1]
        names = checked_names(self.names or range(k))
        if len(names) != k:
            problem = f"are {len(names)} for {k} arms"
            raise errors.InvalidInput("names", problem, "name every column of rewards")
        if k < 2:
            raise errors.InvalidInput("data", "holds one arm", "there is nothing to choose")
        features = self.features
        if features is not None:
            features = Arms(names, features).features
        several = (np.isfinite(rewards).sum(axis=1) >= 2).sum()
        seen = np.isfinite(rewards).any(axis=1).sum()
        if 0 < several < seen / 2:
            problem = f"has rewards of several arms in {several} rounds of {seen}, else of one"
            remedy = "give all arms of every round, or one arm per round"
            raise errors.InvalidInput("data", problem, remedy)
        times = _times(self.times, len(rewards))
        rewards.setflags(write=False)
        times.setflags(write=False)
        for field, value in (("rewards", rewards), ("names", names), ("features", features)):
            object.__setattr__(self, field, value)
        object.__setattr__(self, "times", times)

    @property
    def logged(self) -> bool:
        """Whether at most one arm's reward is known of each round."""
        return not (np.isfinite(self.rewards).sum(axis=1) >= 2).any()

    def __len__(self) -> int:
        """T, the rows."""
        return len(self.rewards)

    @property
    def waits(self) -> np.ndarray:
        """How many rounds each row lies after the one before it; 0 for the first."""
        return np.diff(self.times, prepend=self.times[:1])

    def __repr__(self) -> str:
        rounds, arms = self.rewards.shape
        seen = int(np.isfinite(self.rewards).sum())
        return f"Table(rounds={rounds}, arms={arms}, rewards={seen}, logged={self.logged})"

    def split(self, train: float) -> int:
        """The first row after the training part, which takes a share of all rows.

        Example:
            >>> Table(np.zeros((10, 2))).split(0.75)
            7
        """
        train = errors.number(train, "train", low=0, high=1, strict=True)
        first = int(train * len(self))
        for part, rows in (("training", self.rewards[:first]), ("test", self.rewards[first:])):
            rounds = int(np.isfinite(rows).any(axis=1).sum())
            if rounds < 2:
                problem = f"leaves {rounds} of {len(self)} rounds with a reward in the {part} part"
                raise errors.InvalidInput("train", problem, "two are the least; give more data")
        return first

    def log(self, first: int, last: int, less: float = 0.0) -> Log:
        """The rows from ``first`` to ``last`` (left out) as a log, each reward lowered."""
        part = self.rewards[first:last]
        rows, arms = np.nonzero(np.isfinite(part))
        rounds = self.times[first:last][rows] - self.times[first]
        return Log((Sequence(rounds, arms, part[rows, arms] - less),), self.names)


def as_table(
    data: Any,
    names: Any = None,
    features: Any = None,
    *,
    columns: Mapping[str, str] | None = None,
    step: str | None = None,
) -> Table:
    """The table that ``data`` is, or holds.

    Args:
        data: a `Table`; a `Log`, or what `read_log` reads: the path of a CSV or Parquet file, or
            columns round, arm and reward; or a wide table, one column per arm: an array, a mapping
            of columns, a data frame.
        names: of the arms there are, where the data does not say.
        features: k × d, or `Arms`, or the path of an arms file.
        columns: what a log calls its columns, as {"round": "day"}; see `read_log`.
        step: how long a round is, if a log has times, as "15 minutes"; see `read_log`.

    Example:
        >>> as_table({"round": [3, 3, 4], "arm": ["a", "b", "a"], "reward": [1, 2, 3]}).rewards
        array([[ 1.,  2.], [ 3., nan]])
        >>> as_table({"a": [1, 3], "b": [2, None]}).names
        ('a', 'b')
    """
    if isinstance(features, str | os.PathLike):
        features = read_arms(features, columns=columns)
    if isinstance(features, Arms):
        names, features = features.names, features.features
    table = _table(data, names, columns, step)
    return table if features is None else dataclasses.replace(table, features=features)


def _table(data: Any, names: Any, called: Any, step: Any) -> Table:
    columns = [str(column) for column in getattr(data, "columns", ())]
    if isinstance(data, Mapping):
        columns = [str(column) for column in data]
    by_rows = any(name in REQUIRED for name in columns) or bool(columns and called)
    if isinstance(data, Log | str | os.PathLike) or by_rows:
        return _of_log(as_log(data, names, columns=called, step=step))
    if called or step:
        problem = "was given, and the data is not a log"
        given = "columns" if called else "step (--round-step)"
        raise errors.InvalidInput(given, problem, "leave it out")
    if isinstance(data, Table):
        return data if names is None else _ordered(data, names)
    if columns:
        wide = tables.in_memory(data, "data")
        if wide is not None:
            blocks = [np.stack([*map(parsing.real, block.columns)], 1) for block in wide.blocks]
            if blocks:
                table = Table(np.concatenate(blocks), tuple(wide.columns))
                return table if names is None else _ordered(table, names)
    if isinstance(data, np.ndarray | list | tuple):
        return Table(data, () if names is None else names)  # type: ignore[arg-type]
    raise errors.InvalidInput("data", f"has type {type(data).__name__}", REMEDY)


def _ordered(table: Table, names: Any) -> Table:
    """The same table with its arms in the order of the names."""
    names = checked_names(names)
    if set(names) != set(table.names):
        problem = f"are {parsing.some(names)}, the data has {parsing.some(table.names)}"
        raise errors.InvalidInput("names", problem, "name the same arms")
    order = [table.names.index(name) for name in names]
    return dataclasses.replace(table, rewards=table.rewards[:, order], names=names)


def _of_log(log: Log) -> Table:
    """One row per round that has a reward; several plays of an arm are averaged."""
    if len(log.sequences) > 1:
        problem = f"holds {len(log.sequences)} sequences"
        raise errors.InvalidInput("data", problem, "replay one at a time: time is one line")
    one = log.sequences[0]
    seen = ~np.isnan(one.rewards)
    times, rows = np.unique(one.rounds[seen], return_inverse=True)
    rounds, k = len(times), len(log.names)
    if rounds * k > LARGEST:
        problem = f"holds {rounds} rounds of {k} arms"
        raise errors.InvalidInput("data", problem, f"{LARGEST:,} rewards are the most")
    place = rows * k + one.arms[seen]
    counts = np.bincount(place, minlength=rounds * k)
    sums = np.bincount(place, one.rewards[seen], minlength=rounds * k)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Table(means.reshape(rounds, k), log.names, notes=log.notes, times=times - one.rounds[0])


def _times(values: Any, rows: int) -> np.ndarray:
    if values is None:
        return np.arange(rows)
    times = np.asarray(values)
    whole = times.shape == (rows,) and np.issubdtype(times.dtype, np.integer)
    if not whole or times[0] < 0 or (np.diff(times) <= 0).any():
        problem = f"are not {rows} rising whole numbers, one for each row of the data"
        raise errors.InvalidInput("times", problem, "leave them out: rows are then rounds")
    return times.astype(np.int64)


def _rewards(values: Any) -> np.ndarray:
    try:
        rewards = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise errors.InvalidInput("data", "is not a table of numbers", REMEDY) from None
    if rewards.ndim != 2 or 0 in rewards.shape:
        raise errors.InvalidInput("data", f"has shape {rewards.shape}", REMEDY)
    if rewards.size > LARGEST:
        problem = f"holds {len(rewards)} rounds of {rewards.shape[1]} arms"
        raise errors.InvalidInput("data", problem, f"{LARGEST:,} rewards are the most")
    if np.isinf(rewards).any() or (np.abs(rewards) > errors.LARGEST).any():
        row, arm = (int(i) for i in np.argwhere(np.abs(rewards) > errors.LARGEST)[0])
        problem = f"round {row} of arm {arm} is {rewards[row, arm]:g}"
        raise errors.InvalidInput("data", problem, parsing.REMEDIES["reward"])
    return rewards
