"""A log as one long list of plays, with what happens to the state before each of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.identify.data import ROUNDING, check_size, padded
from driftbandit.io.logs import Log
from driftbandit.structure import Layout, Structure
from driftbandit.structure.layout import Units

SHORT = 5000  # logs with fewer plays are padded, so that similar ones share a compiled program
FAR = 1e5  # arms' means farther apart, in spreads of an arm's rewards, are not learned
LARGEST_GRADIENT = 2 * 10**7  # numbers that a gradient may keep: plays × states²


class Apart(NamedTuple):
    """The plays of each arm alone, k × m, if no two arms share a state.

    Every arm also has a row at the first play of each sequence and at the last play of the log.
    """

    order: Any  # which of the n plays; one that does not exist if another arm was played
    moves: Any  # what the arm's states do before it: index into ``gaps``
    gaps: Any  # as in `Rows`, between plays of the same arm
    resets: Any


class Rows(NamedTuple):
    """n plays, sequence after sequence in order of time."""

    moves: Any  # what the state does before the play: index into ``gaps``, n
    arms: Any  # n
    rewards: Any  # less their center, n; zero where none was observed
    seen: Any  # 1 where a reward was observed, else 0, n
    features: Any  # values of the structure's context features, n × J
    gaps: Any  # distinct numbers of rounds that pass, u; the first is 0
    resets: Any  # 1 where a new sequence begins: states that move are drawn anew, u
    apart: Apart | None = None

    @property
    def plays(self) -> Rows:
        """The plays alone, as a loop over them takes them."""
        return self._replace(gaps=None, resets=None, apart=None)

    def split(self, place: int) -> tuple[Rows, Rows]:
        """The plays before that place, and the others."""
        parts = self[:5]
        kinds = {"gaps": self.gaps, "resets": self.resets}
        early, late = ([part[cut] for part in parts] for cut in (np.s_[:place], np.s_[place:]))
        return Rows(*early, **kinds), Rows(*late, **kinds)


class Described(NamedTuple):
    """A log's rows, and the units they are measured in."""

    rows: Rows
    centers: Any  # what was subtracted from the rewards of each arm, k
    units: Units
    n_rows: int  # without padding
    rounds: np.ndarray  # the round of each row, n_rows
    sequences: np.ndarray  # the sequence of each row, n_rows

    @property
    def center(self) -> np.ndarray:
        """What was subtracted from the reward of each row, n_rows."""
        return np.asarray(self.centers[self.rows.arms[: self.n_rows]])


def rows_of(log: Log, layout: Layout, like: Described | None = None) -> Described:
    """The rows of a log, whose features and rewards are checked; in its own units, or those given.

    Args:
        log, layout: what was played; the structure for its arms.
        like: rows of another log with the same units.
    """
    rounds = np.concatenate([one.rounds for one in log.sequences])
    arms = np.concatenate([one.arms for one in log.sequences])
    rewards = np.concatenate([one.rewards for one in log.sequences])
    owners = np.repeat(np.arange(len(log.sequences)), [len(one) for one in log.sequences])
    seen = ~np.isnan(rewards)
    if seen.sum() < (2 if like is None else 1):
        problem = "has one reward" if seen.any() else "has no reward"
        raise errors.InvalidInput("log", problem, "give at least two")
    check_size(rewards[seen], "rewards")
    features = features_of(log, layout.structure)
    typical = np.sqrt((features[seen] ** 2).mean(axis=0))
    centers, scale = _centers_and_scale(arms[seen], rewards[seen], layout)
    units = Units(scale, np.where(typical > 0, typical, 1.0))
    if like is not None:
        centers, units = np.broadcast_to(like.centers, len(log.names)), like.units
    moves, table = _kinds(np.stack([_changes(rounds), _changes(owners) > 0], axis=1))
    n = len(rounds)
    size = padded(n) if n < SHORT else n
    more = size - n
    rows = Rows(
        np.pad(moves, (0, more)),
        np.pad(arms, (0, more)).astype(np.int32),
        np.pad(np.where(seen, rewards - centers[arms], 0.0), (0, more)),
        np.pad(seen.astype(float), (0, more)),
        np.pad(features, ((0, more), (0, 0))),
        table[:, 0],
        table[:, 1].astype(float),
        None if layout.apart is None else _apart(rounds, owners, arms, len(log.names), size),
    )
    return Described(rows, centers, units, n, rounds, owners)


def _kinds(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The kind of each pair of gap and reset, and all kinds; kind 0 is that nothing happens."""
    kinds, moves = np.unique(np.vstack([[[0, 0]], pairs]), axis=0, return_inverse=True)
    same = int(moves.reshape(-1)[0])
    order = np.append(same, np.delete(np.arange(len(kinds)), same))
    table = np.zeros((padded(len(kinds)), 2), np.int64)
    table[: len(kinds)] = kinds[order]
    return np.argsort(order)[moves.reshape(-1)[1:]].astype(np.int32), table


def _apart(rounds: np.ndarray, owners: np.ndarray, arms: np.ndarray, k: int, none: int) -> Apart:
    """The plays of each arm; ``none`` is the number of a play that does not exist."""
    begins = np.flatnonzero(np.diff(owners, prepend=-1))  # states are drawn anew there
    always = np.append(begins, len(rounds) - 1)
    places = [np.union1d(np.flatnonzero(arms == arm), always) for arm in range(k)]
    steps = [np.stack([_changes(rounds[at]), _changes(owners[at]) > 0], axis=1) for at in places]
    kinds, table = _kinds(np.concatenate(steps))
    ends = np.cumsum([len(at) for at in places])
    size = padded(max(map(len, places)))
    order, moves = np.full((k, size), none, np.int32), np.zeros((k, size), np.int32)
    for arm, (at, each) in enumerate(zip(places, np.split(kinds, ends[:-1]), strict=True)):
        order[arm, : len(at)] = np.where(arms[at] == arm, at, none)
        moves[arm, : len(at)] = each
    return Apart(order, moves, table[:, 0], table[:, 1].astype(float))


def _changes(values: np.ndarray) -> np.ndarray:
    return np.diff(values, prepend=values[0])


def features_of(log: Log, structure: Structure) -> np.ndarray:
    """The values of a structure's context features in each row of a log, checked, n × J."""
    wanted = structure.features
    if not wanted:
        return np.zeros((log.rows, 0))
    for name in wanted:
        if name not in log.feature_names:
            has = ", ".join(log.feature_names) or "no column that begins with x_"
            problem = f"needs {name}, and the log has {has}"
            raise errors.InvalidInput("regression: features", problem, "add the column to the log")
    places = [log.feature_names.index(name) for name in wanted]
    found = np.concatenate([np.asarray(one.features)[:, places] for one in log.sequences])
    for name, values in zip(wanted, found.T, strict=True):
        check_size(values, f"values of {name}")
    return found


def _centers_and_scale(
    arms: np.ndarray, rewards: np.ndarray, layout: Layout
) -> tuple[np.ndarray, float]:
    """What is subtracted from the rewards of each arm, k; and the rewards' spread around it.

    That is their mean, if a component can hold it. If each arm has a mean of its own, and these are
    much farther apart than an arm's rewards, it is the arm's mean: it need not be learned.
    """
    k, size = len(layout.names), float(np.abs(rewards).max())
    center = float(rewards.mean()) if layout.mean_states.any() else 0.0
    centers = np.full(k, center)
    whole = _spread(rewards - center)
    counts = np.bincount(arms, minlength=k)
    if layout.mean_states.sum() == k and counts.max() > 1:
        own = np.where(counts > 0, np.bincount(arms, rewards, k) / np.maximum(counts, 1), center)
        left = rewards - own[arms]
        left = np.where(np.abs(left) <= ROUNDING * np.abs(rewards), 0.0, left)
        within = _spread(left)
        if 0 < within < whole / FAR:
            return own, within
    return centers, whole if whole > ROUNDING * size else size or 1.0


def _spread(values: np.ndarray) -> float:
    """The root of the mean square, which does not overflow."""
    largest = float(np.abs(values).max())
    return largest * float(np.sqrt(((values / largest) ** 2).mean())) if largest > 0 else 0.0
