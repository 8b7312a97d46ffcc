"""Logs with one reward per decision: `Decisions`, and the chances with which arms were played."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.contexts import Contexts, read_rows
from driftbandit.io.logs import Arms, Log, Sequence
from driftbandit.replays.data import Rows, Table, check_size, only_sequence
from driftbandit.system import Name

CHANCES = ("estimated", "uniform")  # what can be said of a log that has no chances
REMEDY = (
    "add a column chance: the probability with which each arm was drawn; say --chances uniform "
    "(in Python, chances='uniform') if every arm had the same one, or --chances estimated"
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Decisions(Rows):
    """Decisions in order of time: which arm was played, with which chance, and what it paid.

    Args:
        times: n whole numbers that never decrease. Decisions of one round are taken in this order,
            and no time passes between them.
        arms, rewards: n arm numbers; n rewards, none missing.
        chances: n probabilities with which these arms were drawn, given all that happened before;
            NaN where they are not known.
        names, features, title, unit, notes: as in `Table`.
        contexts: values of context features in each decision, the same for all arms, n × J.
        context_names: of these features.

    Example:
        >>> log = Log((Sequence([4, 5], [0, 1], [1.0, 2.0], chances=[0.5, 0.25]),), ("a", "b"))
        >>> decisions_of(log)
        Decisions(rows=2, arms=2, chances known=2)
    """

    called = "decisions"
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

    def __repr__(self) -> str:
        known = int(self.counts.sum())
        return f"Decisions(rows={len(self)}, arms={len(self.names)}, chances known={known})"

    @property
    def wide(self) -> np.ndarray:
        """Rewards as n × k, NaN for the arms that were not played."""
        rewards = np.full((len(self), len(self.names)), np.nan)
        rewards[np.arange(len(self)), self.arms] = self.rewards
        return rewards

    @property
    def counts(self) -> np.ndarray:
        """Which decisions count if they are in the test part: those whose chance is known."""
        return np.isfinite(self.chances)

    def log(self, last: int, less: float = 0.0) -> Log:
        """The first ``last`` decisions as a log, with ``less`` subtracted from every reward."""
        plays = self.times[:last] - self.times[0], self.arms[:last], self.rewards[:last] - less
        features = None if self.contexts is None else self.contexts[:last]
        rows = Sequence(*plays, features=features)
        return Log((rows,), self.names, feature_names=self.context_names)

    def arms_in(self, arms: np.ndarray, contexts: Contexts) -> np.ndarray:
        """The arms (k × d) as the contexts change them in each decision, n × k × d."""
        assert self.contexts is not None  # a log without contexts has no model that reads them
        used = self.contexts[:, [self.context_names.index(name) for name in contexts]]
        return np.asarray(read_rows(arms, list(contexts.values()), used[:, None]))


def has_chances(data: Log | Table) -> bool:
    """Whether the log says with which chance an arm was played, at least once."""
    sequences = data.sequences if isinstance(data, Log) else ()
    return any(
        rows.chances is not None and bool(np.isfinite(rows.chances).any()) for rows in sequences
    )


def decisions_of(data: Log | Table, chances: str | None = None, features: Any = None) -> Decisions:
    """One decision for each row that has a reward.

    Args:
        data: a log, or a table that shows one arm per round.
        chances: None: those of the log; "uniform": 1/k for all k arms; "estimated": how often each
            arm was played in the whole log.
        features: k × d, of the arms; None: those of a table, if it has any.
    """
    if chances is not None:
        errors.closest(chances, "chances", CHANCES)
    notes, title, unit = data.notes, "", ""
    if isinstance(data, Table):
        if not data.logged:
            problem = "shows several arms in a round, so nothing has to be estimated"
            raise errors.InvalidInput("method", problem, "leave it out")
        title, unit = data.title, data.unit
        features = data.features if features is None else features
    plays = only_sequence(data.log() if isinstance(data, Table) else data)
    names, k = data.names, len(data.names)
    features = None if features is None else Arms(names, features).features
    seen = ~np.isnan(plays.rewards)
    n, lost = int(seen.sum()), int((~seen).sum())
    check_size(n, k)
    if lost:
        notes += (
            f"{lost} of {len(plays)} rows have no reward and are left out; that is fair only if "
            "rewards are missing for reasons that have nothing to do with the arm.",
        )
    arms = plays.arms[seen]
    if chances is None:
        drawn = np.full(n, np.nan) if plays.chances is None else plays.chances[seen]
        if not np.isfinite(drawn).any():
            raise errors.InvalidInput("data", "is a log without chances", REMEDY)
    elif has_chances(data):
        problem = f"is {chances!r}, and the log has a column of chances"
        raise errors.InvalidInput("chances", problem, "leave it out, or remove the column")
    else:
        played = np.bincount(arms, minlength=k) / n
        drawn = (np.full(k, 1 / k) if chances == "uniform" else played)[arms]
    return Decisions(
        plays.rounds[seen] - plays.rounds[0],
        arms,
        plays.rewards[seen],
        drawn,
        names,
        features,
        title,
        unit,
        notes,
        None if plays.features is None else plays.features[seen],
        () if isinstance(data, Table) else data.feature_names,
    )
