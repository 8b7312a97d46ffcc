"""Choice among structures: the one that best predicts the next rewards.

    score = mean of log p(reward | the rounds before; parameters from the rounds before a cut)

How a candidate is scored: `scores`; which of them is chosen: `comparison`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.identify.data import no_arm_varies
from driftbandit.identify.progress import Progress
from driftbandit.identify.structured import ordered
from driftbandit.identify.structured.comparison import (
    Comparison,
    Scored,
    comparison_of,
    drifts,
)
from driftbandit.identify.structured.fitting import (
    ITERATIONS,
    STARTS,
    Fit,
    fit_structure,
    plays,
)
from driftbandit.identify.structured.periods import shown_periods
from driftbandit.identify.structured.rows import features_of
from driftbandit.identify.structured.scores import CUTS, densities, places
from driftbandit.io.logs import Log
from driftbandit.model import LGDS
from driftbandit.structure import (
    Component,
    Layout,
    Structure,
    constant,
    factors,
    level,
    noise,
    parse,
    regression,
    season,
)
from driftbandit.structure.kinds import Season
from driftbandit.system import Name

LEAST = 20  # rewards to learn from, and to score
BASES = (
    "constant(arm)",
    "constant(arm) + noise(arm, own)",
    "level(arm)",
    "constant(arm) + level(shared)",
    "constant(arm) + level(arm, memory=free)",
    "constant(arm) + level(shared, memory=free, loadings=free)",
)
"""What is compared by default; then components are added to the best as long as that helps. Of one
arm nothing is shared or unequal, and a factor with a weight for each arm needs three."""
SIZES = (2, 3, 5, 8, 13)  # of shared states, tried one after the other
MOST_ROWS = 20_000  # of a longer log of one sequence, the last ones are used
FEW_HARMONICS = 2  # of the seasons that are tried first


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
        structures: what to compare. None: `BASES`; then a shared level, unequal noise, seasons and
            the log's context features are added to the chosen one, one after the other, as long as
            the score rises by more than its standard error. A season that all arms share and one
            for each arm are first tried with the same number of waves. Then states that arms share
            are tried (`structure.factors`). If the chosen one has a season and drifts, it is
            compared with the season and constant means.
        periods: of the seasons, if ``structures`` is None; None: of all up to 200 rounds, those
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
    given = [Layout(one, log.names, groups) for one in _several(structures, len(log.names))]
    _check_log(log, [one.structure for one in given], structures is None)
    if structures is None:
        periods = shown_periods(log) if periods is None else periods
    seasons = periods or [
        part.period
        for one in given
        for part in one.structure.components
        if isinstance(part, Season)
    ]
    extras = _extras(log, seasons) if structures is None else []
    p_value = ordered.p_value(log, seasons)
    found: list[Scored] = []

    def score(layout: Layout, begin: float, end: float) -> None:
        size = layout.n_states, len(layout.free)

        def tell(share: float) -> None:
            report(begin + (end - begin) * share)

        found.append((layout.structure, densities(log, layout, prior, tell), size))

    done, last = 0.0, 1.0 if structures is not None else 0.4
    while given:
        steps = np.linspace(done, last, len(given) + 1).tolist()
        for one, begin, end in zip(given, steps, steps[1:], strict=False):
            score(one, begin, end)
        done, last, given = last, last + (1 - last) / 2, []
        if structures is None:
            tried = {str(one) for one, *_ in found}
            best = comparison_of(found, p_value).chosen
            new = (one for one in _larger(best, extras) if str(one) not in tried)
            given = [Layout(one, log.names, groups) for one in new]
    if structures is None:
        compared = comparison_of(found, p_value)
        found += _factors(log, compared, prior, lambda share: report(done + (1 - done) * share))
        found += _still_rival(log, comparison_of(found, p_value), prior)
    return comparison_of(found, p_value)


def _still_rival(log: Log, found: Comparison, prior: float) -> list[Scored]:
    """Constant means and the season of a chosen structure that drifts: is there drift beside it?"""
    best = found.chosen
    kept = tuple(one for one in best.components if one.kind in ("season", "regression"))
    still = Structure((*parse("constant(arm)").components, *kept))
    if not (kept and drifts(best)) or str(still) in map(str, found.structures):
        return []
    layout = Layout(still, log.names)
    each = densities(log, layout, prior, lambda share: None)
    return [(still, each, (layout.n_states, len(layout.free)))]


def _factors(
    log: Log, found: Comparison, prior: float, report: Callable[[float], None]
) -> list[Scored]:
    """Two, three, … states that drift together, as long as more of them predict better.

    States that turn, or drive each other, are seen by no other component.
    """
    if no_arm_varies(*plays(log)):
        return []
    tried: list[Scored] = []
    for number, size in enumerate(SIZES):
        if size >= len(log.names):
            break
        layout = Layout(constant("arm") + factors(size), log.names)
        each = densities(log, layout, prior, lambda share: None)
        tried.append((layout.structure, each, (layout.n_states, len(layout.free))))
        report((number + 1) / len(SIZES))
        if found.joined(comparison_of(tried)).chosen != layout.structure:
            break
    return tried


def recent(log: Log) -> tuple[Log, list[str]]:
    """The last `MOST_ROWS` of a log of one sequence, and a note that says so."""
    if log.rows <= MOST_ROWS or len(log.sequences) > 1:
        return log, []
    (sequence,) = log.sequences
    last = log.only(sequence.rounds >= sequence.rounds[-MOST_ROWS])
    return last, [f"The last {last.rows:,} of {log.rows:,} rows are used."]


def can_compare(log: Log) -> bool:
    """Whether there are enough rewards to learn from, and to score."""
    return min(_early_and_late(log)) >= LEAST


def _early_and_late(log: Log) -> tuple[int, int]:
    """The rewards before and after the first cut."""
    seen = ~np.isnan(np.concatenate([one.rewards for one in log.sequences]))
    lengths = [len(one) for one in log.sequences]
    early = places(np.repeat(np.arange(len(lengths)), lengths)) < CUTS[0]
    return int((seen & early).sum()), int((seen & ~early).sum())


def _checked_periods(periods: Any) -> list[float] | None:
    if periods is None:
        return None
    if not isinstance(periods, Iterable) or isinstance(periods, str):
        raise errors.InvalidInput("periods", f"is {periods!r}", "give a list of numbers, as [7]")
    return [season(one).period for one in periods]  # type: ignore[attr-defined]


def _several(structures: Any, n_arms: int) -> list[Structure]:
    if structures is None:
        few = {1: ("noise", "shared"), 2: ("loadings",)}.get(n_arms, ())
        structures = [text for text in BASES if not any(word in text for word in few)]
    found = list(structures) if isinstance(structures, list | tuple) else [structures]
    if not found:
        raise errors.InvalidInput("structure", "is an empty list", "give one structure or more")
    return [parse(one) for one in found]  # all of them, before any is fitted


def _check_log(log: Log, given: Sequence[Structure], all_features: bool) -> None:
    """Refuse, before anything is fitted, a log that is too short or lacks features."""
    tried = [*given, *_with_features(log)] if all_features else given
    for one in tried:
        features_of(log, one)
    if not can_compare(log):
        remedy = f"give one structure, or at least {4 * LEAST} rewards"
        said = f"has {log.rewards_seen} rewards to compare structures"
        raise errors.InvalidInput("log", said, remedy)


def _extras(log: Log, periods: Sequence[float]) -> list[Structure]:
    """Components that may be added."""
    found: list[Component] = []
    if len(log.names) > 1:
        found = [level("shared"), noise("arm", own=True)]
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


def fit_components(
    log: Log,
    structure: Any,
    groups: Mapping[Name, Any] | None,
    periods: Sequence[float] | None,
    prior: float,
    starts: int,
    work: Progress,
    start: LGDS | None = None,
    iterations: int = ITERATIONS,
) -> Fit:
    """Learn a structure's parameters; of several or "auto", those of the one that predicts best."""
    starts = min(errors.whole_number(starts, "starts", low=1), len(STARTS))
    comparison, several = None, isinstance(structure, list | tuple)
    if periods is not None and structure != "auto":
        raise errors.InvalidInput("periods", "was given", 'give it with structure="auto"')
    if several or structure == "auto":
        given = structure if several else None
        comparison = compare(log, given, groups, prior, periods, work.part(0.8))
        structure = comparison.chosen
    report = work.part(1 - work.share)
    found = fit_structure(log, structure, groups, prior, starts, report, start, iterations)
    return dataclasses.replace(found, comparison=comparison)
