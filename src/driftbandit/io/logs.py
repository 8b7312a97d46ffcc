"""Logs of decisions (which arm was played in which round, and what it paid), and arms."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import parsing, tables
from driftbandit.io.log_columns import COLUMNS, FEATURE
from driftbandit.io.parsing import Kind, whole, whole_fault
from driftbandit.io.times import Clock
from driftbandit.system import Name, round_of

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")  # a label that is a whole number: 7, not 07
FACTS = ("Rounds are ", "Ignored columns: ")  # how notes begin that are nothing to worry about
NO_ZERO = "an arm needs at least one non-zero entry"


@dataclasses.dataclass(frozen=True, eq=False)
class Sequence:
    """The plays of one independent run, in order of time.

    Args:
        rounds: n whole numbers ≥ 0 that never decrease; equal ones are plays of one round.
        arms: n arm numbers, from 0.
        rewards: n rewards; NaN where none was observed.
        label: the sequence's name.
        chances: n numbers in (0, 1], the probability with which the log's policy played the row's
            arm; NaN where it is not known. None: the log does not say.
        features: n × J numbers, the context of each row. None: there is none.

    Example:
        >>> Sequence([0, 1, 3], [0, 1, 0], [0.5, float("nan"), 0.7]).rewards_seen
        2
        >>> Sequence([0, 1], [0, 1], [0.5, 0.7], features=[[20.5, 1], [18, 0]]).features.shape
        (2, 2)
    """

    rounds: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    label: str = ""
    chances: np.ndarray | None = None
    features: np.ndarray | None = None

    def __post_init__(self) -> None:
        kinds = {column.field: column.kind(name) for name, column in COLUMNS.items()}
        kinds |= {name: Kind(name[:-1], whole, whole_fault) for name in ("rounds", "arms")}
        fields = {name: vars(self).get(name) for name in kinds}
        fields = {name: values for name, values in fields.items() if values is not None}
        table = tables.in_memory(fields, "sequence")
        assert table is not None  # it is a mapping
        wanted = {name: (place, kinds[name]) for place, name in enumerate(fields)}
        columns, _ = tables.read_rows(table, wanted)
        vars(self).update({name: frozen(values) for name, values in columns.items()})  # frozen
        if (self.rounds[1:] < self.rounds[:-1]).any():
            raise errors.InvalidInput("rounds", "decrease", "sort the rows by round")
        if self.features is not None:
            features = errors.matrix(self.features, "features", shape=(len(self), None))
            vars(self).update(features=frozen(features))
        if not isinstance(self.label, str):
            raise errors.InvalidInput("label", f"{self.label!r} is not text", "give text")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What it holds row by row, by field, without what is None.

        Example:
            >>> list(Sequence([0, 1], [0, 1], [0.5, 0.7]).arrays)
            ['rounds', 'arms', 'rewards']
        """
        return {name: x for name, x in vars(self).items() if isinstance(x, np.ndarray)}

    def changed(self, **arrays: np.ndarray) -> Sequence:
        """The sequence with other arrays, which are not checked; rounds may be below 0.

        Example:
            >>> Sequence([0, 1], [0, 1], [0.5, 0.7]).changed(rounds=np.array([-5, -4])).rounds
            array([-5, -4])
        """
        other = copy.copy(self)
        vars(other).update({name: frozen(values) for name, values in arrays.items()})
        return other

    @property
    def rewards_seen(self) -> int:
        """How many rewards were observed."""
        return int(np.count_nonzero(~np.isnan(self.rewards)))

    def __len__(self) -> int:
        """n, the number of rows."""
        return len(self.rounds)


def frozen(values: np.ndarray) -> np.ndarray:
    """The same array, which can no longer be changed."""
    values.setflags(write=False)
    return values


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Log:
    """The plays and rewards of one or more sequences.

    Args:
        sequences: one or more.
        names: of the arms, texts or whole numbers; arm i of a sequence is ``names[i]``.
        notes: sentences on what the reader ignored or chose.
        feature_names: of the J features of each row, which start with ``x_``.
        clock: how rounds count times, if the log was read from a table with times.
        source: the file's path, if there is one, and the options with which a command reads it.

    Example:
        >>> one = Sequence([0, 1], [0, 1], [0.7, float("nan")], features=[[20.5], [18.0]])
        >>> log = Log((one,), ("left", "right"), feature_names=("x_heat",))
        >>> log
        Log(sequences=1, rows=2, rewards_seen=1, arms=2)
        >>> log.rows, log.rewards_seen, [log.names[arm] for arm in log.sequences[0].arms]
        (2, 1, ['left', 'right'])
        >>> log.unused_features
        ('The features x_heat are not used.',)
    """

    sequences: tuple[Sequence, ...]
    names: tuple[Name, ...]
    notes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    clock: Clock | None = None
    source: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names, features = checked_names(self.names), _feature_names(self.feature_names)
        sequences = tuple(self.sequences) if isinstance(self.sequences, list | tuple) else ()
        if not sequences or not all(isinstance(part, Sequence) for part in sequences):
            problem = f"{parsing.shown(self.sequences)} is not a tuple of sequences"
            raise errors.InvalidInput("sequences", problem, "give one Sequence or more")
        largest = max(int(sequence.arms.max()) for sequence in sequences)
        if largest >= len(names):
            problem = f"hold {len(names)}, and a sequence plays arm {largest}"
            raise errors.InvalidInput("names", problem, "name every arm")
        for number, sequence in enumerate(sequences):
            has = 0 if sequence.features is None else sequence.features.shape[1]
            if has != len(features):
                problem = f"are {len(features)}, and sequence {number} has {has} features"
                raise errors.InvalidInput("feature_names", problem, "name each feature")
        vars(self).update(sequences=sequences, names=names, feature_names=features)  # frozen

    @property
    def rows(self) -> int:
        """Plays in all sequences."""
        return sum(map(len, self.sequences))

    @property
    def rewards_seen(self) -> int:
        """Rewards observed in all sequences."""
        return sum(sequence.rewards_seen for sequence in self.sequences)

    def only(self, rows: np.ndarray) -> Log:
        """The log of some rows, one or more: a mask over those of all sequences.

        Example:
            >>> log = Log((Sequence([0, 1], [0, 1], [1.0, 2.0]), Sequence([5], [0], [3.0])), (0, 1))
            >>> [one.rounds.tolist() for one in log.only(np.array([False, True, True])).sequences]
            [[1], [5]]
        """
        ends = np.cumsum([*map(len, self.sequences)])
        masks = zip(self.sequences, np.split(rows, ends[:-1]), strict=True)
        kept = (
            sequence.changed(**{field: array[mask] for field, array in sequence.arrays.items()})
            for sequence, mask in masks
            if mask.any()
        )
        return dataclasses.replace(self, sequences=tuple(kept))

    def of_arms(self, names: tuple[Name, ...]) -> Log:
        """The same plays of arms that are named in this order; there may be more of them.

        Example:
            >>> log = Log((Sequence([0, 1], [0, 1], [1.0, 2.0]),), (7, 8))
            >>> log.of_arms(("left", "8", "7")).sequences[0].arms.tolist()
            [2, 1]
        """
        if names == self.names:
            return self
        places = {str(name): place for place, name in enumerate(names)}
        if not places.keys() >= set(map(str, self.names)):
            has, wanted = parsing.first_names(self.names), parsing.first_names(names)
            problem = f"has the arms {has}, names are {wanted}"
            raise errors.InvalidInput("log", problem, "give a log of these arms")
        moved = np.array([places[str(name)] for name in self.names])
        sequences = tuple(part.changed(arms=moved[part.arms]) for part in self.sequences)
        return dataclasses.replace(self, sequences=sequences, names=names)

    def counted_by(self, clock: Clock) -> Log:
        """The same times in the rounds of another clock, below 0 before its start.

        Example:
            >>> from driftbandit.identify import read_log
            >>> rows = {"arm": ["a", "a"], "reward": [1, 2]}
            >>> first = read_log({"round": ["2026-01-05 00:00", "2026-01-05 01:00"]} | rows)
            >>> later = read_log({"round": ["2026-01-06 00:00", "2026-01-08 00:00"]} | rows)
            >>> later.sequences[0].rounds.tolist()
            [0, 2]
            >>> later.counted_by(first.clock).sequences[0].rounds.tolist()
            [24, 72]
        """
        own = self.clock
        if own is None or own == clock:
            return self
        moved = [part.changed(rounds=clock.recounted(part.rounds, own)) for part in self.sequences]
        return dataclasses.replace(self, sequences=tuple(moved), clock=clock)

    def round_of(self, time: Any) -> int:
        """The round in which a time falls, if the log's rounds were dates or times.

        Args:
            time: text such as "2024-01-31T09:30", a date or a datetime; with a time zone if the
                log's times have one.

        Returns:
            Its number; it may be after the log's last, or below 0 before the log's first.

        Example:
            >>> from driftbandit.identify import as_log
            >>> hours = ["2024-01-31 09:00", "2024-01-31 10:00"]
            >>> log = as_log({"round": hours, "arm": ["a", "b"], "reward": [1, 2]})
            >>> log.round_of("2024-01-31 12:15")
            3
        """
        return round_of(self.clock, time, "log")

    @property
    def unused_features(self) -> tuple[str, ...]:
        """A note for methods that do not use the features of rows; () if there are none."""
        names = ", ".join(errors.printable(name) for name in self.feature_names)
        return (f"The features {names} are not used.",) if names else ()

    def __repr__(self) -> str:
        rows = f"rows={self.rows}, rewards_seen={self.rewards_seen}"
        return f"Log(sequences={len(self.sequences)}, {rows}, arms={len(self.names)})"


@dataclasses.dataclass(frozen=True, eq=False)
class Arms:
    """Arms by name, with their features.

    Args:
        names: k different texts or whole numbers.
        features: k × d, how each arm reads the state; no row is zero.

    Example:
        >>> from driftbandit.identify import as_log
        >>> arms = Arms(("left", "right"), [[1, 0], [1, 1]])
        >>> log = as_log({"round": [0, 1], "arm": ["right", "right"], "reward": [2, 3]}, arms.names)
        >>> arms.features[log.sequences[0].arms].tolist()  # what was played, row by row
        [[1.0, 1.0], [1.0, 1.0]]
    """

    names: tuple[Name, ...]
    features: np.ndarray

    def __post_init__(self) -> None:
        names = checked_names(self.names)
        features = errors.matrix(self.features, "features", shape=(len(names), None))
        zero = parsing.first(np.asarray(~features.any(axis=1)))
        if zero < len(names):
            raise errors.InvalidInput("features", f"row {zero} is the zero vector", NO_ZERO)
        vars(self).update(names=names, features=frozen(features))  # the class is frozen


def _feature_names(names: Any) -> tuple[str, ...]:
    names = tuple(names) if isinstance(names, list | tuple) else (names,)
    for name in names:
        several = names.count(name) > 1
        if several or not isinstance(name, str) or not name.startswith(FEATURE):
            problem = f"hold {parsing.shown(name)}{' twice' if several else ''}"
            remedy = f"give a tuple of different texts that start with {FEATURE}"
            raise errors.InvalidInput("feature_names", problem, remedy)
    return names


def checked_names(names: Any) -> tuple[Name, ...]:
    """The names of one arm or more, all different, as a log would read them."""
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        problem = f"{parsing.shown(names)} is not a list of labels"
        raise errors.InvalidInput("names", problem, "give a tuple of texts")
    names, labels = list(names), parsing.Labels()
    codes = labels.codes(names)
    place = parsing.first(codes != np.arange(len(names)))
    if place < len(names):
        problem, remedy = labels.kind("arm").problem(names[place])
        if codes[place] >= 0:
            twice = labels.names[codes[place]]
            problem, remedy = f"hold {parsing.shown(twice)} twice", "give each arm once"
        raise errors.InvalidInput("names", problem, remedy)
    if not names:
        raise errors.InvalidInput("names", "are none", "give at least one")
    return names_of(labels.names)


def names_of(labels: Iterable[str]) -> tuple[Name, ...]:
    """Arm names from a table's labels: whole numbers if all labels are, else texts."""
    names = tuple(labels)
    return tuple(map(int, names)) if all(map(WHOLE.fullmatch, names)) else names


def split_notes(notes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Notes that say how a log was read, and those that warn of something.

    Example:
        >>> split_notes(["Rounds are days since 2024-01-31.", "All rewards are zero."])
        (['Rounds are days since 2024-01-31.'], ['All rewards are zero.'])
    """
    notes = list(notes)
    plain = [note for note in notes if note.startswith(FACTS) and " say --" not in note]
    return plain, [note for note in notes if note not in plain]
