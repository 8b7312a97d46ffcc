"""Logs with one reward per decision: `Decisions`, and the chances with which arms were played."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io.logs import Arms, Log, Sequence
from driftbandit.replays.data import Table, check_size, only_sequence
from driftbandit.system import Name

CHANCES = ("estimated", "uniform")  # what can be said of a log that has no chances
FROM_TABLE = ("names", "features", "title", "unit", "notes")
REMEDY = (
    "add a column chance: the probability with which each arm was drawn; say --chances uniform "
    "(in Python, chances='uniform') if every arm had the same one, or --chances estimated"
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """Decisions in order of time: which arm was played, with which chance, and what it paid.

    Args:
        times: n whole numbers that never decrease. Decisions of one round are taken in this order,
            and no time passes between them.
        arms, rewards: n arm numbers; n rewards, none missing.
        chances: n probabilities with which these arms were drawn, given all that happened before;
            NaN where they are not known.
        names, features: as in `Table`.
        title, unit, notes: likewise.
        contexts: values of context features in each decision, the same for all arms, n × J.
        context_names: of these features.

    Example:
        >>> log = Log((Sequence([4, 5], [0, 1], [1.0, 2.0], chances=[0.5, 0.25]),), ("a", "b"))
        >>> decisions_of(log)
        Decisions(rows=2, arms=2, chances known=2)
    """

    times: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    chances: np.ndarray
    names: tuple[Name, ...]
    features: np.ndarray | None = None
    title: str = ""
    unit: str = ""
    notes: tuple[str, ...] = ()
    contexts: np.ndarray | None = None
    context_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """n, the number of decisions."""
        return len(self.arms)

    def __repr__(self) -> str:
        known = int(np.isfinite(self.chances).sum())
        return f"Decisions(rows={len(self)}, arms={len(self.names)}, chances known={known})"

    @property
    def waits(self) -> np.ndarray:
        """Rounds from the previous decision to each one; 0 for the first."""
        return np.diff(self.times, prepend=self.times[:1])

    def split(self, train: float) -> int:
        """The first decision of the test part, which starts with a round."""
        train = errors.number(train, "train", low=0, high=1, strict=True)
        first = int(np.searchsorted(self.times, self.times[int(train * len(self))]))
        known = int(np.isfinite(self.chances[first:]).sum())
        for part, rows in (("training", first), ("test", known)):
            if rows < 2:
                problem = f"leaves {rows} of {len(self)} decisions in the {part} part"
                raise errors.InvalidInput("train", problem, "each part needs two; give more data")
        return first

    def since(self, first: int) -> Decisions:
        """The decisions from number ``first`` on."""
        columns = ["times", "arms", "rewards", "chances"]
        columns += ["contexts"] * (self.contexts is not None)
        return dataclasses.replace(self, **{name: getattr(self, name)[first:] for name in columns})

    def wide(self, less: float = 0.0) -> np.ndarray:
        """Rewards minus ``less`` as n × k, NaN for the arms that were not played."""
        found = np.full((len(self), len(self.names)), np.nan)
        found[np.arange(len(self)), self.arms] = self.rewards - less
        return found

    def log(self, last: int, less: float = 0.0) -> Log:
        """The first ``last`` decisions as a log, with ``less`` subtracted from every reward."""
        plays = self.times[:last] - self.times[0], self.arms[:last], self.rewards[:last] - less
        features = None if self.contexts is None else self.contexts[:last]
        one = Sequence(*plays, features=features)
        return Log((one,), self.names, feature_names=self.context_names)


def has_chances(data: Log | Table) -> bool:
    """Whether the log says with which chance an arm was played, at least once."""
    if isinstance(data, Table):
        return False
    return any(one.chances is not None and np.isfinite(one.chances).any() for one in data.sequences)


def decisions_of(data: Log | Table, chances: str | None = None, features: Any = None) -> Decisions:
    """One decision for each row that has a reward.

    Args:
        data: a log, or a table that shows one arm per round.
        chances: None: those of the log; "uniform": 1/k for all k arms; "estimated": how often each
            arm was played in the whole log.
        features: k × d, of the arms; None: those of a table, if it has any.
    """
    found = _of_table(data) if isinstance(data, Table) else _of_log(data)
    if features is not None:
        found = dataclasses.replace(found, features=Arms(found.names, features).features)
    k = len(found.names)
    check_size(len(found), k)
    if len(found) == 0:
        raise errors.InvalidInput("data", "holds no reward", "give the rewards of the arms played")
    if k < 2:
        raise errors.InvalidInput("data", "holds one arm", "give the rewards of two or more")
    if chances is None:
        if not np.isfinite(found.chances).any():
            raise errors.InvalidInput("data", "is a log without chances", REMEDY)
        return found
    errors.closest(chances, "chances", CHANCES)
    if has_chances(data):
        problem = f"is {chances!r}, and the log has a column of chances"
        raise errors.InvalidInput("chances", problem, "leave it out, or remove the column")
    if chances == "uniform":
        assumed = np.full(len(found), 1 / k)
    else:
        assumed = (np.bincount(found.arms, minlength=k) / len(found))[found.arms]
    return dataclasses.replace(found, chances=assumed)


def _of_table(table: Table) -> Decisions:
    if not table.logged:
        problem = "shows several arms in a round, so nothing has to be estimated"
        raise errors.InvalidInput("method", problem, "leave it out")
    same: dict[str, Any] = {name: getattr(table, name) for name in FROM_TABLE}
    return dataclasses.replace(_of_log(table.log(0, len(table))), **same)


def _of_log(log: Log) -> Decisions:
    one = only_sequence(log)
    seen = ~np.isnan(one.rewards)
    notes, lost = log.notes, int((~seen).sum())
    if lost:
        notes += (
            f"{lost} of {len(one)} rows have no reward and are left out; that is fair only if "
            "rewards are missing for reasons that have nothing to do with the arm.",
        )
    chances = np.full(len(one), np.nan) if one.chances is None else one.chances
    plays = one.rounds[seen] - one.rounds[0], one.arms[seen], one.rewards[seen], chances[seen]
    contexts = None if one.features is None else one.features[seen]
    names = log.feature_names
    return Decisions(*plays, log.names, notes=notes, contexts=contexts, context_names=names)
