"""Which seasons to try on a log: a quick test for their periods, before models are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from driftbandit.identify.predictions import one_step
from driftbandit.identify.structured.fitting import Problem, best_of_starts
from driftbandit.identify.structured.rows import rows_of
from driftbandit.io.logs import Log
from driftbandit.structure import Layout

PERIODS = (7, 12, 24, 52, 168)  # that are tested by default, in rounds
CYCLES = 4  # a season must repeat this often in the log
WAVES = 2  # of each period: enough to notice it
LEVEL = 0.05  # of all tests together
MOST = 2  # seasons at once


def shown_periods(log: Log) -> tuple[float, ...]:
    """The periods of `PERIODS`, at most two, with which a log's rewards rise and fall.

    What is tested are the errors of predictions by a level for each arm.
    """
    layout = Layout("level(arm)", log.names)
    problem = Problem(layout, rows_of(log, layout), 1.0)
    data = problem.described
    means, _ = problem.predicted(best_of_starts(problem, 1).theta)
    seen = data.rows.seen[: data.n_rows] > 0
    wrong = data.rows.rewards[: data.n_rows] + data.center - means
    arms = np.concatenate([one.arms for one in log.sequences])
    return candidates(wrong[seen], data.rounds[seen], arms[seen])


def season_warning(found: Any, log: Log) -> str:
    """A warning if a model without a season leaves one unexplained; else empty.

    Args:
        found: as `fit` returned it, or a system.
        log: that it was learned from.
    """
    ahead = one_step(found, log)
    parts = ("rounds", "arms", "rewards")
    rounds, arms, rewards = (
        np.concatenate([getattr(each, part) for each in log.sequences]) for part in parts
    )
    seen = ~np.isnan(rewards)
    shown = candidates(ahead.surprises, rounds[seen], arms[seen])
    if not shown:
        return ""
    every = " and every ".join(f"{period:g}" for period in shown)
    return (
        f"The model has no season, and what it leaves unexplained repeats every {every} rounds: "
        f"its noise is not all chance. Try --season {shown[0]:g}, or season({shown[0]:g}) in a "
        "structure."
    )


def candidates(
    errors: np.ndarray,
    rounds: np.ndarray,
    arms: np.ndarray,
    periods: Sequence[float] = PERIODS,
) -> tuple[float, ...]:
    """The periods with which prediction errors rise and fall, the clearest first.

    Waves of each period are regressed on the errors, once for all arms together and once for each
    arm (F test, Bonferroni's correction). The test assumes equal variances, so the errors of each
    arm are first divided by their spread. A period that was found is held fixed while the others
    are tested again, so that 24 does not show up because 12 is there.

    Args:
        errors: one-step prediction errors of a model without a season, n.
        rounds: the round of each, n.
        arms: the arm of each, n numbers from 0.
        periods: that are tested.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> days = np.arange(300)
        >>> weekly = np.sin(2 * np.pi * days / 7) + rng.normal(size=300)
        >>> candidates(weekly, days, days % 2), candidates(rng.normal(size=300), days, days % 2)
        ((7,), ())
    """
    errors = errors / _spreads(errors, arms)
    span = int(rounds.max() - rounds.min()) + 1
    left = [period for period in periods if period * CYCLES <= span]
    fixed, found = np.ones((len(errors), 1)), list[float]()
    own = np.equal.outer(arms, np.unique(arms)).astype(float)
    while left and len(found) < MOST:
        chances = {}
        for period in left:
            shared = _waves(rounds, period)
            each = (shared[:, :, None] * own[:, None, :]).reshape(len(errors), -1)
            chances[period] = min(_chance(errors, fixed, more) for more in (shared, each))
        best = min(chances, key=lambda period: chances[period])
        if chances[best] > LEVEL / (2 * len(periods)):
            break
        found.append(best)
        left.remove(best)
        shared = _waves(rounds, best)
        each = (shared[:, :, None] * own[:, None, :]).reshape(len(errors), -1)
        fixed = np.hstack([fixed, each])
    return tuple(found)


def _spreads(errors: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """For each error, the root mean square of those of its arm; 1 where all are zero."""
    squares = np.bincount(arms, errors**2) / np.maximum(np.bincount(arms), 1)
    spreads = np.sqrt(squares)[arms]
    return np.where(spreads > 0, spreads, 1.0)


def _waves(rounds: np.ndarray, period: float) -> np.ndarray:
    count = min(WAVES, max(int(period / 2), 1))
    angles = np.outer(rounds, 2 * np.pi * np.arange(1, count + 1) / period)
    return np.hstack([np.cos(angles), np.sin(angles)])


def _chance(errors: np.ndarray, fixed: np.ndarray, more: np.ndarray) -> float:
    """The p-value of F: how likely such a gain is if ``more`` explains nothing."""
    before, _ = _left(errors, fixed)
    after, rank = _left(errors, np.hstack([fixed, more]))
    gained = rank - _left(errors, fixed)[1]
    spare = len(errors) - rank
    if gained < 1 or spare < rank or after <= 0:
        return 1.0
    ratio = (before - after) / gained / (after / spare)
    return float(special.fdtrc(gained, spare, max(ratio, 0.0)))


def _left(errors: np.ndarray, design: np.ndarray) -> tuple[float, int]:
    """Sum of squares that a regression leaves, and its rank."""
    weights, _, rank, _ = np.linalg.lstsq(design, errors, rcond=None)
    return float(((errors - design @ weights) ** 2).sum()), int(rank)
