"""Choice among structures: the one that best predicts the next rewards.

    score = mean of log p(reward | the rounds before; parameters from the rounds before a cut)

The parameters are learned from the first half of every sequence and score the next eighth; then
from the first 5/8, and so on, as they would have been learned at that time.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.identify.restarts import Progress
from driftbandit.identify.structured.fitting import (
    STARTS,
    Problem,
    StructuredFit,
    best_of_starts,
    fit_structure,
    minimized,
)
from driftbandit.identify.structured.rows import rows_of
from driftbandit.io.logs import Log
from driftbandit.structure import Layout, Structure, level, parse, regression, season
from driftbandit.system import Name

CUTS = (0.5, 0.625, 0.75, 0.875, 1.0)
BLOCKS = 20  # of consecutive rewards, whose means give the standard error
LEAST = 20  # rewards to learn from, and to score
PERIODS = (7, 12, 24)  # of the seasons that are tried by default
CYCLES = 4  # a season must repeat this often in the log
SLACK = 1e-3  # gain per reward that is worth another component
BASES = (
    "constant(arm)",
    "level(arm)",
    "constant(arm) + level(shared)",
    "constant(arm) + level(arm, memory=free)",
)
"""What is compared by default; then components are added to the best as long as that helps."""
FEW_HARMONICS = 2  # of seasons that every arm has for itself


class Comparison(NamedTuple):
    """Structures in the order in which they were tried, and how well they predicted.

    Example:
        >>> from driftbandit.identify import as_log
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 100))
        >>> rewards = 5 + np.cumsum(0.3 * drift) + 0.5 * noise
        >>> log = as_log({"round": range(100), "arm": ["a"] * 100, "reward": rewards})
        >>> still, moving = (compare(log, [text]) for text in ("constant(arm)", "level(arm)"))
        >>> both = still.joined(moving)
        >>> str(both.chosen), both.scored, both.scores[1] > both.scores[0]
        ('level(arm)', 50, True)
        >>> gain, error = both.difference(1, 0)  # per reward
        >>> round(gain, 1), round(error, 1)
        (1.6, 0.1)
    """

    structures: tuple[Structure, ...]
    scores: tuple[float, ...]  # mean log-likelihood of the scored rewards
    errors: tuple[float, ...]  # standard error of the difference from the highest score
    scored: int  # number of scored rewards
    densities: tuple[np.ndarray, ...] = ()  # log-likelihood of each scored reward, by structure

    @property
    def chosen(self) -> Structure:
        """The one with the highest score."""
        return self.structures[int(np.argmax(self.scores))]

    def difference(self, one: int, other: int) -> tuple[float, float]:
        """How much higher the score of structure ``one`` is than that of ``other``; ± its error."""
        apart = self.densities[one] - self.densities[other]
        return float(apart.mean()), _standard_error(apart)

    def joined(self, more: Comparison) -> Comparison:
        """Both comparisons as one; they scored the same rewards of the same log."""
        structures = (*self.structures, *more.structures)
        return _comparison(list(zip(structures, (*self.densities, *more.densities), strict=True)))


def compare(
    log: Log,
    structures: Sequence[Any] | None = None,
    groups: Mapping[Name, Any] | None = None,
    prior: float = 1.0,
    periods: Sequence[float] | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Comparison:
    """Compare structures on a log.

    Args:
        log, groups, prior: as in `fit_structure`.
        structures: what to compare. None: `BASES`; then a shared level, seasons and the log's
            context features are added to the best of them, one after the other, as long as the
            score rises.
        periods: of the seasons, if ``structures`` is None; None: 7, 12 and 24, if each repeats four
            times in the log.
        report: called with the share of the work done.

    Returns:
        The scores, and which structure is the best.

    Example:
        >>> from driftbandit.identify import as_log
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 100))
        >>> rewards = 5 + np.cumsum(0.3 * drift) + 0.5 * noise
        >>> log = as_log({"round": range(100), "arm": ["a"] * 100, "reward": rewards})
        >>> found = compare(log, ["constant(arm)", "level(arm)"])
        >>> for structure, score in zip(found.structures, found.scores, strict=True):
        ...     print(f"{structure}: {score:.2f}")
        constant(arm): -2.58
        level(arm): -0.98
    """
    if structures is not None and periods is not None:
        problem = f"is {periods!r}, and the structures are given"
        raise errors.InvalidInput("periods", problem, "write season(…) into the structures")
    prior = errors.number(prior, "prior", low=0)
    extras = _extras(log, _checked_periods(periods)) if structures is None else []
    found: list[tuple[Structure, np.ndarray]] = []

    def score(one: Any, share: float) -> float:
        structure = parse(one)
        found.append((structure, _densities(log, structure, groups, prior)))
        report(share)
        return float(found[-1][1].mean())

    given = BASES if structures is None else _several(structures)
    part = 1.0 if structures is not None else 0.4
    scores = [score(one, part * (i + 1) / len(given)) for i, one in enumerate(given)]
    if structures is None:
        best, high = found[int(np.argmax(scores))][0], max(scores)
        while True:
            left = [one for one in extras if _is_new(one, best)]
            trials = [best + one for one in left]
            share = part + (1 - part) * len(best.components) / (len(best.components) + 2)
            rises = [score(one, share) for one in trials]
            if not rises or max(rises) < high + SLACK:
                break
            best, high = trials[int(np.argmax(rises))], max(rises)
    return _comparison(found)


def _checked_periods(periods: Any) -> list[float] | None:
    if periods is None:
        return None
    if not isinstance(periods, Iterable) or isinstance(periods, str):
        raise errors.InvalidInput("periods", f"is {periods!r}", "give a list of numbers, as [7]")
    return [season(one).period for one in periods]  # type: ignore[attr-defined]


def _several(structures: Any) -> list[Any]:
    found = list(structures) if isinstance(structures, list | tuple) else [structures]
    if not found:
        raise errors.InvalidInput("structure", "is an empty list", "give one structure or more")
    return [parse(one) for one in found]  # all of them, before any is fitted


def _extras(log: Log, periods: Sequence[float] | None) -> list[Structure]:
    """Components that may be added."""
    span = max(int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences)
    if periods is None:
        periods = [one for one in PERIODS if one * CYCLES <= span]
    found = [level("shared")]
    for period in periods:
        few = min(FEW_HARMONICS, max(int(period / 2), 1))
        found += [season(period), season(period, few, "arm")]
    if log.feature_names:
        found += [regression(log.feature_names), regression(log.feature_names, "arm")]
    return [parse(one) for one in found]


def _is_new(extra: Structure, base: Structure) -> bool:
    """Whether the base has no such component with the same scope yet."""
    (one,) = extra.components
    return all(
        (type(one), one.scope, getattr(one, "period", None))
        != (type(other), other.scope, getattr(other, "period", None))
        for other in base.components
    )


def _comparison(found: list[tuple[Structure, np.ndarray]]) -> Comparison:
    structures, each = zip(*found, strict=True)
    best = max(each, key=np.mean)
    doubts = tuple(_standard_error(best - one) for one in each)
    means = tuple(float(one.mean()) for one in each)
    return Comparison(structures, means, doubts, len(best), each)


def _standard_error(differences: np.ndarray) -> float:
    """Of their mean; neighbors depend on each other, so blocks are compared."""
    blocks = np.array([block.mean() for block in np.array_split(differences, BLOCKS)])
    return float(blocks.std(ddof=1) / math.sqrt(BLOCKS))


def _densities(
    log: Log, structure: Structure, groups: Mapping[Name, Any] | None, prior: float
) -> np.ndarray:
    """Log-densities of the rewards after the first cut, in the order of the log."""
    layout = Layout(structure, log.names, groups)
    problem = Problem(layout, rows_of(log, layout), prior)
    data = problem.described
    seen = data.rows.seen[: data.n_rows] > 0
    place = _places(data.sequences)
    if min((seen & (place < CUTS[0])).sum(), (seen & (place >= CUTS[0])).sum()) < LEAST:
        remedy = f"give one structure, or at least {4 * LEAST} rewards"
        raise errors.InvalidInput("log", f"has {seen.sum()} rewards to compare structures", remedy)
    logs, theta = np.full(data.n_rows, np.nan), None
    for cut, until in itertools.pairwise(CUTS):
        early = problem.only(place < cut)
        end = best_of_starts(early, 2) if theta is None else minimized(early, theta)
        theta = end.theta
        means, variances = problem.predicted(theta)
        rewards = data.rows.rewards[: data.n_rows] + data.center
        each = -0.5 * (np.log(2 * math.pi * variances) + (rewards - means) ** 2 / variances)
        now = seen & (place >= cut) & (place < until)
        logs[now] = each[now]
    return logs[seen & (place >= CUTS[0])]


def _places(sequences: np.ndarray) -> np.ndarray:
    """How far each row is in its sequence, from 0 to 1."""
    counts = np.bincount(sequences)
    first = np.cumsum(counts) - counts
    return np.asarray((np.arange(len(sequences)) - first[sequences]) / counts[sequences])


def fit_components(
    log: Log,
    structure: Any,
    groups: Mapping[Name, Any] | None,
    periods: Sequence[float] | None,
    prior: float | None,
    starts: int,
    work: Progress,
) -> StructuredFit:
    """Learn a structure's parameters; of several or "auto", those of the one that predicts best."""
    prior = errors.number(1.0 if prior is None else prior, "prior", low=0)
    starts = min(errors.whole_number(starts, "starts", low=1), len(STARTS))
    comparison, several = None, isinstance(structure, list | tuple)
    if periods is not None and structure != "auto":
        raise errors.InvalidInput("periods", "was given", 'give it with structure="auto"')
    if several or structure == "auto":
        given = structure if several else None
        comparison = compare(log, given, groups, prior, periods, work.part(0.8, 0))
        structure = comparison.chosen
    report = work.part(1 - work.share, 0)
    found = fit_structure(log, structure, groups, prior, starts, report)
    return dataclasses.replace(found, comparison=comparison)
