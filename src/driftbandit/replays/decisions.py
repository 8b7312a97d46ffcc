"""Logs with one reward per decision: `Decisions`, and the chances with which arms were played."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.contexts import Contexts, read_rows
from driftbandit.io.logs import Arms, Log
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
        names, features, notes: as in `Table`.
        contexts: values of context features in each decision, the same for all arms, n × J.
        context_names: of these features.

    Example:
        >>> from driftbandit.identify import Sequence
        >>> log = Log((Sequence([4, 5], [0, 1], [1.0, 2.0], chances=[0.5, 0.25]),), ("a", "b"))
        >>> decisions = decisions_of(log)
        >>> decisions.times.tolist(), decisions.chances.tolist()
        ([0, 1], [0.5, 0.25])
    """

    times: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    chances: np.ndarray
    names: tuple[Name, ...]
    features: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    contexts: np.ndarray | None = None
    context_names: tuple[str, ...] = ()

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

    def arms_in(self, arms: np.ndarray, contexts: Contexts) -> np.ndarray:
        """The arms (k × d) as the contexts change them in each decision, n × k × d."""
        assert self.contexts is not None  # a log without contexts has no model that reads them
        used = self.contexts[:, [self.context_names.index(name) for name in contexts]]
        return np.asarray(read_rows(arms, list(contexts.values()), used[:, None]))


def has_chances(data: Log | Table) -> bool:
    """Whether the log says with which chance an arm was played, at least once."""
    sequences = data.sequences if isinstance(data, Log) else ()
    columns = [rows.chances for rows in sequences if rows.chances is not None]
    return any(bool(np.isfinite(chances).any()) for chances in columns)


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
    log = data
    if isinstance(log, Table):
        if not log.logged:
            problem = "shows several arms in a round, so nothing has to be estimated"
            raise errors.InvalidInput("method", problem, "leave it out")
        features = log.features if features is None else features
        log = log.log()
    features = None if features is None else Arms(log.names, features).features
    rows, k = only_sequence(log), len(log.names)
    check_size(n := rows.rewards_seen, k)
    notes = data.notes
    if n < len(rows):
        notes += (
            f"{len(rows) - n} of {len(rows)} rows have no reward and are left out; that is fair "
            "only if rewards are missing for reasons that have nothing to do with the arm.",
        )
    plays = only_sequence(log.only(~np.isnan(rows.rewards)))
    if chances is None:
        drawn = np.full(n, np.nan) if plays.chances is None else plays.chances
        if not np.isfinite(drawn).any():
            raise errors.InvalidInput("data", "is a log without chances", REMEDY)
    elif has_chances(log):
        problem = f"is {chances!r}, and the log has a column of chances"
        raise errors.InvalidInput("chances", problem, "leave it out, or remove the column")
    elif chances == "uniform":
        drawn = np.full(n, 1 / k)
    else:
        drawn = (np.bincount(plays.arms) / n)[plays.arms]
    columns = plays.rounds - rows.rounds[0], plays.arms, plays.rewards, drawn
    contexts = plays.features, log.feature_names
    return Decisions(*columns, log.names, features, notes, *contexts)
