"""Rewards of real arms, round by round: `Table` and `as_table`."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import index, parsing, tables
from driftbandit.io.arms_reader import read_arms
from driftbandit.io.log_columns import REQUIRED, REWARD
from driftbandit.io.log_reader import as_log
from driftbandit.io.logs import Arms, Log, Sequence, checked_names
from driftbandit.system import Name

LARGEST = 2 * 10**7  # rounds × arms
REMEDY = "give a path, a log, or a T × k table of rewards"


class Rows:
    """What `Table` and `Decisions` share: rows in order of time, each with one or more rewards."""

    times: np.ndarray
    rewards: np.ndarray
    names: tuple[Name, ...]
    contexts: np.ndarray | None = None  # values of context features in each row, n × J
    context_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.times)

    @property
    def waits(self) -> np.ndarray:
        """Rounds from the previous row to each row; 0 for the first."""
        return np.diff(self.times, prepend=self.times[:1])

    @property
    def wide(self) -> np.ndarray:
        """Rewards, rows × arms; NaN where they are not known."""
        return self.rewards

    @property
    def offered(self) -> np.ndarray:
        """How many arms' rewards each row shows."""
        return np.asarray(np.isfinite(self.wide).sum(axis=1))

    @property
    def counts(self) -> np.ndarray:
        """Which rows count if they are in the test part."""
        return self.offered > 0

    def log(self, last: int | None = None, less: float = 0.0) -> Log:
        """The first ``last`` rows as a log, with ``less`` subtracted from every reward."""
        wide = self.wide[:last]
        rows, arms = np.nonzero(np.isfinite(wide))
        contexts = None if self.contexts is None else self.contexts[rows]
        plays = self.times[rows] - self.times[0], arms, wide[rows, arms] - less
        sequence = Sequence(*plays, features=contexts)
        return Log((sequence,), self.names, feature_names=self.context_names)

    def split(self, train: float) -> int:
        """The first row of the test part, which starts with a round; ``train`` is a share of rows.

        Example:
            >>> Table(np.zeros((10, 2))).split(0.75)
            7
        """
        train = errors.number(train, "train", low=0, high=1, strict=True)
        first = int(np.searchsorted(self.times, self.times[int(train * len(self))]))
        parts = {"training": self.offered[:first] > 0, "test": self.counts[first:]}
        for part, known in parts.items():
            if (rows := known.sum()) < 2:
                problem = f"leaves {rows} of {len(self)} rows with a reward in the {part} part"
                raise errors.InvalidInput("train", problem, "each part needs two; give more data")
        return first


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Table(Rows):
    """The reward of every arm in every round or, for a log, of the arm that was played.

    Args:
        rewards: T × k; NaN where an arm was not offered, or its reward is unknown.
        names: of the arms, k texts or whole numbers; (): their numbers.
        features: k × d, the known features of each arm.
        title: name of the data.
        unit: of the rewards.
        notes: how the data was read, in sentences.
        times: the round of each row, T increasing whole numbers; None: 0 to T − 1. Rounds between
            two rows pass without a reward; a gap takes one step, however long it is.

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
        names = checked_names(self.names or range(rewards.shape[1]))
        if len(names) != rewards.shape[1]:
            problem = f"are {len(names)} for {rewards.shape[1]} arms"
            raise errors.InvalidInput("names", problem, "name every column of rewards")
        features = None if self.features is None else Arms(names, self.features).features
        times = _times(self.times, len(rewards))
        rewards.setflags(write=False)
        times.setflags(write=False)
        vars(self).update(rewards=rewards, names=names, features=features, times=times)  # frozen
        several, seen = (self.offered >= 2).sum(), (self.offered > 0).sum()
        if 0 < several < seen / 2:
            problem = f"has rewards of several arms in {several} rounds of {seen}, one in the rest"
            remedy = "give all arms of every round, or one arm per round"
            raise errors.InvalidInput("data", problem, remedy)

    @property
    def logged(self) -> bool:
        """Whether every round shows at most one arm's reward."""
        return bool((self.offered < 2).all())

    @property
    def partial(self) -> bool:
        """Whether some rounds offer a part of the arms."""
        return bool(((self.offered > 0) & (self.offered < len(self.names))).any())

    def __repr__(self) -> str:
        rewards = f"arms={len(self.names)}, rewards={self.offered.sum()}"
        return f"Table(rounds={len(self)}, {rewards}, logged={self.logged})"


def as_table(
    data: Any,
    names: Any = None,
    features: Any = None,
    *,
    every: str | None = None,
    zone: str | None = None,
) -> Table:
    """Convert ``data`` to a `Table`.

    Args:
        data: a `Table`; a `Log`, or what `read_log` reads: the path of a CSV or Parquet file, or
            columns round, arm and reward (if they have other names, give ``read_log(data,
            columns=…)``); or a wide table, one column per arm: an array, a mapping of columns, a
            data frame. An index of times, or one called round, says when each row was; any other is
            ignored.
        names: of the arms, if the data does not name them.
        features: k × d, or `Arms`, or the path of an arms file.
        every: length of a round, as "15 minutes", if the index of a wide table has times; that of a
            log is an argument of `read_log`, and so is its zone.
        zone: whose clocks the rounds count, as "Europe/Berlin", if that index has times.

    Example:
        >>> as_table({"round": [3, 3, 4], "arm": ["a", "b", "a"], "reward": [1, 2, 3]}).rewards
        array([[ 1.,  2.], [ 3., nan]])
        >>> as_table({"a": [1, 3], "b": [2, None]}).names
        ('a', 'b')
    """
    return table_of(*read(data, names, features, every, zone))


def read(
    data: Any, names: Any = None, features: Any = None, every: Any = None, zone: Any = None
) -> tuple[Log | Table, Any]:
    """The data, as a log if it has one row per reward, and the features; see `as_table`."""
    if isinstance(features, str | os.PathLike):
        features = read_arms(features)
    if isinstance(features, Arms):
        names, features = features.names, features.features
    return _log_or_table(data, names, every, zone), features


def _log_or_table(data: Any, names: Any, every: Any, zone: Any) -> Log | Table:
    is_log = isinstance(data, Log | str | os.PathLike)
    wide = None if is_log or isinstance(data, Table) else tables.in_memory(data, "data")
    places = [] if wide is None else wide.without_index
    called = () if wide is None else tuple(wide.columns[place] for place in places)
    is_log = is_log or any(str(name) in REQUIRED for name in called)
    times, notes = (None, ()) if wide is None or is_log else index.rounds_of(wide, every, zone)
    for argument, value in {"every": every, "zone": zone}.items():
        if value and times is None:
            problem = "was given, and no index of a wide table has times"
            remedy = f"leave it out, or give read_log(data, {argument}=…)"
            raise errors.InvalidInput(argument, problem, remedy)
    if is_log:
        return as_log(data, names)
    if wide is not None and places:
        blocks = [np.stack([*map(parsing.real, block.columns)], 1) for block in wide.read(places)]
        if blocks:
            rewards = np.concatenate(blocks)
            data = Table(rewards, called, notes=notes, times=times)  # type: ignore[arg-type]
    if isinstance(data, np.ndarray | list | tuple):
        return Table(data, () if names is None else names)  # type: ignore[arg-type]
    if not isinstance(data, Table):
        raise errors.InvalidInput("data", f"has type {type(data).__name__}", REMEDY)
    if names is None:
        return data
    names = checked_names(names)
    if set(names) != set(data.names):
        shown, has = parsing.first_names(names), parsing.first_names(data.names)
        raise errors.InvalidInput("names", f"are {shown}, the data has {has}", "name the same arms")
    order = [data.names.index(name) for name in names]
    return dataclasses.replace(data, rewards=data.rewards[:, order], names=names)


def only_sequence(log: Log) -> Sequence:
    """The log's sequence; several are refused."""
    if len(log.sequences) > 1:
        problem = f"holds {len(log.sequences)} sequences"
        raise errors.InvalidInput("data", problem, "replay one sequence at a time")
    return log.sequences[0]


def table_of(data: Log | Table, features: Any = None) -> Table:
    """One row per round with a reward; repeated plays of an arm are averaged.

    ``features`` are k × d, of the arms; None: those of a table, if it has any.
    """
    if isinstance(data, Table):
        return data if features is None else dataclasses.replace(data, features=features)
    plays = only_sequence(data)
    seen = ~np.isnan(plays.rewards)
    times, rows = np.unique(plays.rounds[seen], return_inverse=True)
    means = cell_means(len(times), len(data.names), rows, plays.arms[seen], plays.rewards[seen])
    notes = (*data.notes, *data.unused_features)
    return Table(means, data.names, features, notes=notes, times=times - plays.rounds[0])


def cell_means(
    rounds: int, n_arms: int, rows: np.ndarray, arms: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """The mean of all values of each round and arm; NaN where there is none."""
    check_size(rounds, n_arms)
    place, size = rows * n_arms + arms, rounds * n_arms
    counts = np.bincount(place, minlength=size)
    sums = np.bincount(place, values, minlength=size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means.reshape(rounds, n_arms)


def _times(values: Any, rows: int) -> np.ndarray:
    if values is None:
        return np.arange(rows)
    times = np.asarray(values)
    whole = times.shape == (rows,) and np.issubdtype(times.dtype, np.integer)
    if not whole or times[0] < 0 or (np.diff(times) <= 0).any():
        problem = f"are not {rows} increasing whole numbers, one for each row of the data"
        raise errors.InvalidInput("times", problem, "leave them out: each row is then a round")
    return times.astype(np.int64)


def _rewards(values: Any) -> np.ndarray:
    try:
        rewards = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise errors.InvalidInput("data", "is not a table of numbers", REMEDY) from None
    if rewards.ndim != 2 or 0 in rewards.shape:
        raise errors.InvalidInput("data", f"has shape {rewards.shape}", REMEDY)
    check_size(*rewards.shape)
    for row, arm in np.argwhere(np.abs(rewards) > errors.LARGEST)[:1]:
        problem = f"round {row} of arm {arm} is {rewards[row, arm]:g}"
        raise errors.InvalidInput("data", problem, REWARD)
    return rewards


def check_size(rounds: int, n_arms: int) -> None:
    """Refuse tables of no round, of no choice between arms, and those that are too large."""
    if rounds == 0:
        raise errors.InvalidInput("data", "holds no reward", "give the rewards of the arms played")
    if n_arms < 2:
        raise errors.InvalidInput("data", "holds one arm", "give the rewards of two or more")
    if rounds * n_arms > LARGEST:
        problem = f"holds {rounds} rounds of {n_arms} arms"
        raise errors.InvalidInput("data", problem, f"{LARGEST:,} rewards are the most")
