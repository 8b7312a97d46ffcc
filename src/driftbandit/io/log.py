"""Logs of decisions: which arm was played in which round, and what it paid."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import parsing, tables
from driftbandit.system import Name

__all__ = ["NO_ZERO", "Arms", "Log", "Sequence", "checked_names", "names_of"]

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""A label that is a whole number: 7, not 07."""


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
            raise errors.InvalidInput("rewards", "hold one too large", parsing.REMEDIES["reward"])
        if not isinstance(self.label, str):
            raise errors.InvalidInput(
                "label", f"{parsing.shown(self.label)} is no text", "give text"
            )

    @property
    def rewards_seen(self) -> int:
        """How many rewards are not missing."""
        return int(np.count_nonzero(~np.isnan(self.rewards)))

    def __len__(self) -> int:
        """n, the rows."""
        return len(self.rounds)


def _converted(values: Any, field: str) -> np.ndarray:
    """A column of a sequence that is not of its type yet."""
    table = tables.in_memory({field: values}, "sequence")
    assert table is not None
    parts = [np.empty(0, np.int64)]
    for (given,), numbers in table.blocks:
        column = "reward" if field == "rewards" else "round"
        part = parsing.real(given) if column == "reward" else parsing.whole(given)
        wrong = parsing.first(np.isinf(part) if column == "reward" else part < 0)
        if wrong < len(part):
            problem = parsing.problem(column, given[wrong], called=field[:-1])
            raise errors.InvalidInput(f"sequence row {numbers[wrong]}", *problem)
        parts.append(part)
    return np.concatenate(parts).astype(np.float64 if field == "rewards" else np.int64)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Log:
    """What was played and paid, sequence by sequence.

    Args:
        sequences: one or more.
        names: of the arms, texts or whole numbers; a sequence's arm numbers count along them.
        notes: what the reader left out or chose by itself, in sentences.

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
        names: k different texts or whole numbers.
        features: k × d; no row is zero.

    Example:
        >>> Arms(("left", "right"), [[1, 0], [0, 1]]).features.shape
        (2, 2)
    """

    names: tuple[Name, ...]
    features: np.ndarray

    def __post_init__(self) -> None:
        names = checked_names(self.names)
        features = errors.matrix(self.features, "features", shape=(len(names), None))
        silent = parsing.first(np.asarray(~features.any(axis=1)))
        if silent < len(names):
            raise errors.InvalidInput("features", f"row {silent} is the zero vector", NO_ZERO)
        features.setflags(write=False)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "features", features)


NO_ZERO = "an arm needs at least one non-zero entry"


def checked_names(names: Any) -> tuple[Name, ...]:
    """Names of arms, all different, at least one; as `names_of` reads them."""
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
    return names_of(found)


def names_of(labels: Iterable[str]) -> tuple[Name, ...]:
    """What arms are called, from their labels in a table: whole numbers if all are, else texts.

    Example:
        >>> names_of(["5", "10"]), names_of(["5", "new"])
        ((5, 10), ('5', 'new'))
    """
    found = tuple(labels)
    return tuple(map(int, found)) if all(map(WHOLE.fullmatch, found)) else found
