"""Choice among structures: the one that best predicts the next rewards.

    score = mean of log p(reward | the rounds before; parameters from the rounds before a cut)

The parameters are learned from the first half of every sequence and score the next eighth; then
from the first 5/8, and so on, as they would have been learned at that time; if arms share states
and the log is long, from the last rewards before the cut (`Problem.for_search`).

Of structures whose scores are within one standard error of the highest, the simplest is chosen.
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
from driftbandit.identify.structured.periods import shown_periods
from driftbandit.identify.structured.rows import features_of, rows_of
from driftbandit.io.logs import Log
from driftbandit.structure import Component, Layout, Structure, level, parse, regression, season
from driftbandit.structure.kinds import Season
from driftbandit.system import Name

CUTS = (0.5, 0.625, 0.75, 0.875, 1.0)
BLOCKS = 20  # of consecutive rewards, whose means give the standard error
LEAST = 20  # rewards to learn from, and to score
SLACK = 1e-3  # per reward: structures whose scores are this close are as good as each other
BASES = (
    "constant(arm)",
    "level(arm)",
    "constant(arm) + level(shared)",
    "constant(arm) + level(arm, memory=free)",
)
"""What is compared by default; then components are added to the best as long as that helps."""
FEW_HARMONICS = 2  # of the seasons that are tried first


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
        >>> both.chosen_place, str(both.part([0]).chosen)
        (1, 'constant(arm)')
    """

    structures: tuple[Structure, ...]
    scores: tuple[float, ...]  # mean log-likelihood of the scored rewards
    errors: tuple[float, ...]  # standard error of the difference from the highest score
    scored: int  # number of scored rewards
    densities: tuple[np.ndarray, ...] = ()  # log-likelihood of each scored reward, by structure
    sizes: tuple[tuple[int, int], ...] = ()  # number of states and of parameters, by structure

    def __repr__(self) -> str:
        return f"Comparison({self.chosen}, of {len(self.structures)} structures)"

    @property
    def chosen(self) -> Structure:
        """The simplest whose score is within one standard error (or 0.001) of the highest.

        Simpler: fewer states; then fewer parameters; then the higher score.
        """
        return self.structures[self.chosen_place]

    @property
    def chosen_place(self) -> int:
        """The place of `chosen` in ``structures``."""
        best, places = max(self.scores), range(len(self.scores))
        near = [i for i in places if best - self.scores[i] <= max(self.errors[i], SLACK)]
        return min(near, key=lambda i: (self._sizes[i], -self.scores[i]))

    @property
    def _sizes(self) -> tuple[tuple[int, int], ...]:
        return self.sizes or ((0, 0),) * len(self.scores)

    def difference(self, one: int, other: int) -> tuple[float, float]:
        """How much higher the score of structure ``one`` is than that of ``other``; ± its error."""
        apart = self.densities[one] - self.densities[other]
        return float(apart.mean()), _standard_error(apart)

    def part(self, places: Sequence[int]) -> Comparison:
        """Only the structures at these places."""
        rows = [(self.structures[i], self.densities[i], self._sizes[i]) for i in places]
        return _comparison(rows) if rows else Comparison((), (), (), self.scored)

    def joined(self, more: Comparison) -> Comparison:
        """Both comparisons as one; they scored the same rewards of the same log."""
        parts = [(one.structures, one.densities, one._sizes) for one in (self, more)]
        return _comparison([row for part in parts for row in zip(*part, strict=True)])


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
            context features are added to the chosen one, one after the other, as long as the
            score rises by more than its standard error. A season that all arms share and one for
            each arm are first tried with the same number of waves.
        periods: of the seasons, if ``structures`` is None; None: of 7, 12, 24, 52 and 168, those
            that a quick test finds in the log, at most two (`periods.shown_periods`).
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
    periods = _checked_periods(periods)
    given = [Layout(one, log.names, groups) for one in _several(structures)]
    _check_log(log, [one.structure for one in given], structures is None)
    extras = _extras(log, periods) if structures is None else []
    found: list[tuple[Structure, np.ndarray, tuple[int, int]]] = []

    def score(layout: Layout, begin: float, end: float) -> None:
        size = layout.n_states, len(layout.free)

        def tell(share: float) -> None:
            report(begin + (end - begin) * share)

        found.append((layout.structure, _densities(log, layout, prior, tell), size))

    done, last = 0.0, 1.0 if structures is not None else 0.4
    while given:
        steps = np.linspace(done, last, len(given) + 1).tolist()
        for one, begin, end in zip(given, steps, steps[1:], strict=False):
            score(one, begin, end)
        done, last, given = last, last + (1 - last) / 2, []
        if structures is None:
            tried = {str(one) for one, *_ in found}
            larger = _larger(_comparison(found).chosen, extras)
            new = (one for one in larger if str(one) not in tried)
            given = [Layout(one, log.names, groups) for one in new]
    return _comparison(found)


def _checked_periods(periods: Any) -> list[float] | None:
    if periods is None:
        return None
    if not isinstance(periods, Iterable) or isinstance(periods, str):
        raise errors.InvalidInput("periods", f"is {periods!r}", "give a list of numbers, as [7]")
    return [season(one).period for one in periods]  # type: ignore[attr-defined]


def _several(structures: Any) -> list[Structure]:
    structures = BASES if structures is None else structures
    found = list(structures) if isinstance(structures, list | tuple) else [structures]
    if not found:
        raise errors.InvalidInput("structure", "is an empty list", "give one structure or more")
    return [parse(one) for one in found]  # all of them, before any is fitted


def _check_log(log: Log, given: Sequence[Structure], all_features: bool) -> None:
    """Refuse, before anything is fitted, a log that is too short or lacks features."""
    tried = [*given, *_with_features(log)] if all_features else given
    for one in tried:
        features_of(log, one)
    seen = ~np.isnan(np.concatenate([one.rewards for one in log.sequences]))
    lengths = [len(one) for one in log.sequences]
    early = _places(np.repeat(np.arange(len(lengths)), lengths)) < CUTS[0]
    if min((seen & early).sum(), (seen & ~early).sum()) < LEAST:
        remedy = f"give one structure, or at least {4 * LEAST} rewards"
        raise errors.InvalidInput("log", f"has {seen.sum()} rewards to compare structures", remedy)


def _extras(log: Log, periods: Sequence[float] | None) -> list[Structure]:
    """Components that may be added."""
    if periods is None:
        periods = shown_periods(log)
    found = [level("shared")]
    for period in periods:
        found += season_pair(period)
    return [*map(parse, found), *_with_features(log)]


def _with_features(log: Log) -> list[Structure]:
    names = log.feature_names
    return [parse(regression(names)), parse(regression(names, "arm"))] if names else []


def season_pair(period: float) -> tuple[Component, Component]:
    """A season that all arms share, and one for each arm, with the same number of waves.

    So that their scores show whether arms differ, not which number of waves is right.

    Example:
        >>> [str(one) for period in (4, 24) for one in season_pair(period)]
        ['season(4)', 'season(4, arm)', 'season(24, harmonics=2)', 'season(24, arm, harmonics=2)']
    """
    few = FEW_HARMONICS if period / 2 >= FEW_HARMONICS + 1 else None
    return season(period, few), season(period, few, "arm")


def _larger(base: Structure, extras: Sequence[Structure]) -> list[Structure]:
    """The base with one more component, or with all waves of a shared season."""
    found = []
    for extra in extras:
        if _is_new(extra, base):
            (one,) = extra.components
            has_own = any(_period(other) == _period(one) for other in base.components)
            found.append(base + (_all_waves(one) if has_own else one))
    for one in base.components:
        parts = [_all_waves(other) if other is one else other for other in base.components]
        found.append(Structure(tuple(parts)))
    return [one for one in found if one != base]


def _all_waves(component: Component) -> Component:
    """A shared season with its usual number of waves; anything else unchanged."""
    if isinstance(component, Season) and component.scope == "shared":
        return dataclasses.replace(component, harmonics=None)
    return component


def _period(component: Component) -> float:
    """Of a season; NaN, which equals nothing, of anything else."""
    return component.period if isinstance(component, Season) else math.nan


def _is_new(extra: Structure, base: Structure) -> bool:
    """Whether the base has no such component with the same scope yet."""
    (one,) = extra.components
    return all(
        (type(one), one.scope, getattr(one, "period", None))
        != (type(other), other.scope, getattr(other, "period", None))
        for other in base.components
    )


def _comparison(found: Sequence[tuple[Structure, np.ndarray, tuple[int, int]]]) -> Comparison:
    structures, each, sizes = zip(*found, strict=True)
    best = max(each, key=np.mean)
    doubts = tuple(_standard_error(best - one) for one in each)
    means = tuple(float(one.mean()) for one in each)
    return Comparison(structures, means, doubts, len(best), each, sizes)


def _standard_error(differences: np.ndarray) -> float:
    """Of their mean; neighbors depend on each other, so blocks are compared."""
    blocks = np.array([block.mean() for block in np.array_split(differences, BLOCKS)])
    return float(blocks.std(ddof=1) / math.sqrt(BLOCKS))


def _densities(
    log: Log, layout: Layout, prior: float, report: Callable[[float], None]
) -> np.ndarray:
    """Log-densities of the rewards after the first cut, in the order of the log."""
    problem = Problem(layout, rows_of(log, layout), prior)
    data = problem.described
    seen = data.rows.seen[: data.n_rows] > 0
    place = _places(data.sequences)
    logs, theta = np.full(data.n_rows, np.nan), None
    for cut, until in itertools.pairwise(CUTS):
        early = problem.for_search(log, place < cut)
        end = best_of_starts(early, 2) if theta is None else minimized(early, theta)
        theta = end.theta
        means, variances = problem.predicted(theta)
        rewards = data.rows.rewards[: data.n_rows] + data.center
        each = -0.5 * (np.log(2 * math.pi * variances) + (rewards - means) ** 2 / variances)
        now = seen & (place >= cut) & (place < until)
        logs[now] = each[now]
        report((until - CUTS[0]) / (CUTS[-1] - CUTS[0]))
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
