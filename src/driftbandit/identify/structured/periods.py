"""Which seasons to try on a log: a quick test for their periods, before models are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from driftbandit.identify.data import ROUNDING
from driftbandit.identify.predictions import one_step
from driftbandit.identify.structured.fitting import Problem, best_of_starts
from driftbandit.identify.structured.rows import rows_of
from driftbandit.io.logs import Log
from driftbandit.structure import Layout

LONGEST = 200  # rounds: all whole periods up to this one are tested
USUAL = (7, 12, 24, 48, 52, 96, 144, 168, 288, 336, 365, 1440, 10080)  # and these, of calendars
NEAR = 0.9  # share of the highest gain from which on periods are about as clear
CYCLES = 4  # a season must repeat this often in the log
WAVES = 2  # of each period: enough to notice it
MOST_WAVES = 6  # of a period that was found
LINES = np.array([2, 3, 4, 6, 8, 12])  # how far waves nearby are, in waves over the whole log
LEVEL = 0.05  # of all tests together
MOST = 2  # seasons at once


def shown_periods(log: Log) -> tuple[float, ...]:
    """The periods, at most two, with which a log's rewards rise and fall.

    What is tested are the errors of predictions by a level for each arm.
    """
    layout = Layout("level(arm)", log.names)
    problem = Problem(layout, rows_of(log, layout), 1.0)
    data = problem.described
    means, _ = problem.predicted(best_of_starts(problem, 1).theta)
    seen = data.rows.seen[: data.n_rows] > 0
    wrong = data.rows.rewards[: data.n_rows] + data.center - means
    arms = np.concatenate([one.arms for one in log.sequences])
    return candidates(wrong[seen], data.rounds[seen], arms[seen], data.sequences[seen])


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
    errors: np.ndarray, rounds: np.ndarray, arms: np.ndarray, sequences: np.ndarray | None = None
) -> tuple[float, ...]:
    """The periods with which prediction errors rise and fall, the clearest first.

    Waves of each whole period up to `LONGEST`, and of the `USUAL` ones, are regressed on the errors
    of all arms together and on those of each arm (F tests, Bonferroni's correction). Errors are in
    units of their arm's spread. Those of one round may have a shock in common: their mean is one
    number of the first test, and the second one takes what is left. All waves of a period that was
    found are held fixed while the others are tested again. Of periods that are about as clear, a
    usual one is taken, or the shortest.

    Args:
        errors: one-step prediction errors of a model without a season, n.
        rounds: the round of each, n.
        arms: the arm of each, n numbers from 0.
        sequences: of each, n; None: there is one.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> days = np.arange(300)
        >>> weekly = np.sin(2 * np.pi * days / 7) + rng.normal(size=300)
        >>> candidates(weekly, days, days % 2), candidates(rng.normal(size=300), days, days % 2)
        ((7,), ())
    """
    errors = errors / _spreads(errors, arms)
    span = int(rounds.max() - rounds.min()) + 1
    left = [each for each in sorted({*range(2, LONGEST + 1), *USUAL}) if each * CYCLES <= span]
    limit, found = LEVEL / (2 * max(len(left), 1)), list[float]()
    one = np.zeros_like(rounds) if sequences is None else sequences
    tests = list(_series(errors, rounds, arms, one))
    while left and len(found) < MOST:
        gains = {period: max(_gain(parts, period, limit) for parts in tests) for period in left}
        highest = max(gains.values())
        near = [period for period in left if gains[period] >= NEAR * highest > 0]
        best = min(near, key=lambda period: (period not in USUAL, period), default=None)
        if best is None or not any(_stands_out(parts, best, limit, span) for parts in tests):
            break
        found.append(best)
        left.remove(best)
        tests = [[part.without(best) for part in parts] for parts in tests]
    return tuple(found)


class Part(NamedTuple):
    """Errors whose season is the same, and an orthonormal basis of what is held fixed."""

    errors: np.ndarray
    rounds: np.ndarray
    fixed: np.ndarray

    def without(self, period: float) -> Part:
        """The same beside all waves of a period."""
        more = np.hstack([self.fixed, _waves(self.rounds, period, MOST_WAVES)])
        return self._replace(
            fixed=_basis(more) if more.shape[1] < len(self.errors) / 2 else self.fixed
        )


def _series(
    errors: np.ndarray, rounds: np.ndarray, arms: np.ndarray, sequences: np.ndarray
) -> tuple[list[Part], list[Part]]:
    """The errors of all arms as one part, and a part for each arm."""
    _, of, counts = np.unique(
        np.stack([sequences, rounds]), axis=1, return_inverse=True, return_counts=True
    )
    of = of.ravel()
    means = np.bincount(of, errors) / counts
    first = np.unique(of, return_index=True)[1]
    weights = np.sqrt(counts)  # a mean of many errors is more exact
    whole = Part(means * weights, rounds[first], _basis(weights[:, None]))
    apart = np.where(counts[of] > 1, errors - means[of], errors)
    apart[np.abs(apart) <= ROUNDING * np.abs(errors)] = 0.0
    own = (np.flatnonzero(arms == arm) for arm in np.unique(arms))
    return [whole], [Part(apart[at], rounds[at], _basis(np.ones((len(at), 1)))) for at in own]


def _gain(parts: Sequence[Part], period: float, limit: float) -> float:
    """Akaike's gain by waves of that period; −∞ if the F test does not see them."""
    share, gained, spare = _shares(parts, period)
    seen = gained and float(special.fdtrc(gained, spare, share)) <= limit
    return spare * math.log1p(share * gained / spare) - 2 * gained if seen else -math.inf


def _stands_out(parts: Sequence[Part], period: float, limit: float, span: int) -> bool:
    """Whether the F test sees waves of that period beside those of periods nearby.

    Errors of a model that is not quite right resemble each other: then all long waves explain
    something. States that turn have waves of about the same length. A season is one narrow line.
    """
    share, gained, spare = _shares(parts, period)
    usual = 1.0
    for lines in (LINES, -LINES):  # the spectrum may rise to one side
        often = 1 / period + lines / span
        around = [_shares(parts, 1 / each)[0] for each in often if 1 / span < each < 0.5]
        usual = max(usual, float(np.median(around)) if around else 1.0)
    return gained > 0 and float(special.fdtrc(gained, spare, share / usual)) <= limit


def _shares(parts: Sequence[Part], period: float) -> tuple[float, int, int]:
    """F of waves of that period, and its degrees of freedom; (0, 0, 0) if there are too few."""
    before = after = 0.0
    gained = spare = 0
    for errors, rounds, fixed in parts:
        left = errors - fixed @ (fixed.T @ errors)
        waves = _waves(rounds, period, WAVES)
        basis = _basis(waves - fixed @ (fixed.T @ waves))
        rank = fixed.shape[1] + basis.shape[1]
        if len(errors) <= 2 * rank:
            continue
        square = float(left @ left)
        before += square
        after += max(square - float(((basis.T @ left) ** 2).sum()), 0.0)
        gained += basis.shape[1]
        spare += len(errors) - rank
    if gained < 1 or after <= 0:
        return 0.0, 0, 0
    return max((before - after) / gained / (after / spare), 0.0), gained, spare


def _basis(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the same."""
    values, vectors = np.linalg.eigh(columns.T @ columns)
    real = values > 1e-9 * len(columns)
    return np.asarray(columns @ (vectors[:, real] / np.sqrt(values[real])))


def _spreads(errors: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """For each error, the root mean square of those of its arm; 1 where all are zero."""
    squares = np.bincount(arms, errors**2) / np.maximum(np.bincount(arms), 1)
    spreads = np.sqrt(squares)[arms]
    return np.where(spreads > 0, spreads, 1.0)


def _waves(rounds: np.ndarray, period: float, most: int) -> np.ndarray:
    count = min(most, max(int(period / 2), 1))
    angles = np.outer(rounds, 2 * np.pi * np.arange(1, count + 1) / period)
    return np.hstack([np.cos(angles), np.sin(angles)])
