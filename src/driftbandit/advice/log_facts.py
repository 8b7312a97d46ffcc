"""What a log shows: who chose, how fast arms drift, its seasons, how far ahead it is known."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from driftbandit import kalman, statistics
from driftbandit.identify.findings import Answer, answer
from driftbandit.identify.predictions import one_step
from driftbandit.identify.structured.comparison import Comparison
from driftbandit.identify.structured.components import components
from driftbandit.identify.structured.fitting import Fit
from driftbandit.io.logs import Log, Sequence
from driftbandit.replays.decisions import has_chances
from driftbandit.structure import Component, Structure
from driftbandit.system import Name

Evidence = Literal["full", "chances", "none"]
TRAIN = 0.4  # share of the log to learn from; estimates from a log need many rounds to test
WEEK, HUNDRED, TEN = 7, 100, 10  # rounds over which a change is shown
ROUNDING = 1e-24  # share of the rewards' square below which their variance is rounding
DRAWS = 4000  # of the parameters, for intervals
FOREVER = 10**6  # rounds: what lasts longer does not fade
OFTEN = 5  # plays of an arm, after which it may be said to pay always the same


class ArmCount(NamedTuple):
    """How often an arm was played, and what it paid."""

    name: Name
    rewards: int
    share: float
    mean: float  # NaN if no reward was seen


class Contents(NamedTuple):
    """What the log holds."""

    rows: int
    rewards: int
    rounds: int  # distinct rounds with a row
    span: int  # rounds from the first to the last
    sequences: int
    arms: tuple[ArmCount, ...]
    evidence: Evidence
    """What it says about arms that were not played: their rewards, the chances, or nothing."""
    least_chance: float | None
    features: tuple[str, ...]
    notes: tuple[str, ...]
    constant: bool = False  # whether every arm was played often, and always paid the same


class Speed(NamedTuple):
    """Standard deviation of the change of an arm's mean over some rounds."""

    rounds: int
    change: float
    low: float  # 95% interval
    high: float
    noise: float  # standard deviation of a reward around its mean
    shared: float | None  # share of the change's variance that all arms have in common
    shared_low: float | None
    shared_high: float | None
    structure: str  # of the model that says so


class Predictability(NamedTuple):
    """How well the next reward is known in advance."""

    share: float  # of the variance around each arm's mean in the test part, one step ahead
    low: float  # 95% interval
    high: float
    rewards: int  # that were predicted, all after those that the model was learned from
    half_life: float | None
    """Rounds without rewards until half of that is gone; infinite: never; None: nothing is."""


def plays_of(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """The arms and rewards of all sequences."""
    parts = log.sequences
    return np.concatenate([one.arms for one in parts]), np.concatenate(
        [one.rewards for one in parts]
    )


def contents(log: Log, chances: str | None = None) -> Contents:
    """What the log holds; ``chances``: what the caller says of those that it lacks."""
    k = len(log.names)
    arms, rewards = plays_of(log)
    seen = ~np.isnan(rewards)
    plays = np.bincount(arms[seen], minlength=k)
    sums = np.bincount(arms[seen], rewards[seen], k)
    counts = tuple(
        ArmCount(name, int(n), float(n / max(seen.sum(), 1)), float(total / n) if n else math.nan)
        for name, n, total in zip(log.names, plays, sums, strict=True)
    )
    played = plays[plays > 0]
    pairs = len(np.unique(np.stack([arms[seen], rewards[seen]]), axis=1).T)
    known = [one.chances for one in log.sequences if one.chances is not None]
    least = float(np.nanmin(np.concatenate(known))) if has_chances(log) else None
    return Contents(
        rows=log.rows,
        rewards=int(seen.sum()),
        rounds=sum(len(np.unique(one.rounds)) for one in log.sequences),
        span=sum(int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences),
        sequences=len(log.sequences),
        arms=counts,
        evidence=_evidence(log, chances),
        least_chance=least,
        features=log.feature_names,
        notes=tuple(log.notes),
        constant=pairs == len(played) and bool((played >= OFTEN).all()),
    )


def _evidence(log: Log, chances: str | None) -> Evidence:
    if len(log.sequences) > 1 or len(log.names) < 2:
        return "none"
    if chances is not None or has_chances(log):
        return "chances"
    (one,) = log.sequences
    seen = ~np.isnan(one.rewards)
    pairs = np.unique(np.stack([one.rounds[seen], one.arms[seen]], axis=1), axis=0)
    shown = np.unique(pairs[:, 0], return_counts=True)[1]
    return "full" if len(shown) and (shown >= 2).mean() >= 0.5 else "none"


def horizon(log: Log) -> int:
    """Over how many rounds a change is shown: a week of days; 100 rounds, or 10 of a short log."""
    if any(note.startswith("Rounds are days") for note in log.notes):
        return WEEK
    longest = max(int(one.rounds[-1] - one.rounds[0]) for one in log.sequences)
    return HUNDRED if longest >= TEN * HUNDRED else TEN


def speed(found: Fit, rounds: int, seed: int = 0) -> Speed | None:
    """How far an arm's mean moves in so many rounds, by the levels of a model.

    A random walk with steps d moves by d √h; a level that returns to zero by factors φ, with
    steps d, by √(2 d² (1 − φ^h) / (1 − φ²)). Intervals: draws from the parameters' distribution.
    None: the model has no level.
    """
    if not any(component.kind == "level" for component in found.structure.components):
        return None
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(found.covariance + 1e-12 * np.eye(len(found.theta)))
    drawn = found.theta + rng.standard_normal((DRAWS, len(found.theta))) @ root.T
    best, each = (_variances(found, theta, rounds) for theta in (found.theta[None], drawn))
    total, totals = (np.sqrt(both[0] + both[1]) for both in (best, each))
    low, high = np.quantile(totals, [0.025, 0.975])
    common: tuple[float | None, float | None, float | None] = (None, None, None)
    if best[1].any():
        shares = each[1] / (each[0] + each[1])
        ends = np.quantile(shares, [0.025, 0.975])
        common = float((best[1] / (best[0] + best[1]))[0]), float(ends[0]), float(ends[1])
    noise = float(found.model.reward_std)
    change = float(total[0]), float(low), float(high)
    return Speed(rounds, *change, noise, *common, str(found.structure))


def _variances(found: Fit, theta: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the change of an arm's mean, by its own level and by the shared one; θ is draws × p."""
    own, shared = np.zeros(len(theta)), np.zeros(len(theta))
    for index, component in enumerate(found.structure.components):
        if component.kind != "level":
            continue
        steps = _drawn(found, theta, index, "drift") * found.problem.described.units.scale
        variance = steps**2 * rounds
        if getattr(component, "memory", None) is not None:
            rate = 1 / _drawn(found, theta, index, "memory")
            variance = 2 * steps**2 * np.expm1(-rate * rounds) / np.expm1(-2 * rate)
        if component.scope == "shared":
            shared = shared + variance
        else:
            own = own + variance
    return own, shared


def _drawn(found: Fit, theta: np.ndarray, index: int, name: str) -> np.ndarray:
    places = [
        place
        for place, free in enumerate(found.layout.free)
        if free.component == index and free.parameter.name == name and free.copy is None
    ]
    return np.asarray(np.exp(theta[:, places[0]]))


def split(log: Log) -> np.ndarray:
    """Which rows are in the test part: the later rounds of every sequence.

    One sequence is cut as `replay` cuts it: at a share of the rounds, or of the decisions.
    """
    test = []
    for one in log.sequences:
        seen = ~np.isnan(one.rewards)
        known = one.rounds[seen] if seen.any() else one.rounds
        each = known if one.chances is not None else np.unique(known)
        test.append(one.rounds >= each[int(TRAIN * len(each))])
    return np.concatenate(test)


def training(log: Log, test: np.ndarray, *, features: bool = False) -> Log:
    """The rows that are not in the test part, with or without features."""
    ends = np.cumsum([len(one) for one in log.sequences])
    parts = [
        Sequence(
            one.rounds[~later],
            one.arms[~later],
            one.rewards[~later],
            one.label,
            features=one.features[~later] if features and one.features is not None else None,
        )
        for one, later in zip(log.sequences, np.split(test, ends[:-1]), strict=True)
        if not later.all()
    ]
    return Log(tuple(parts), log.names, feature_names=log.feature_names if features else ())


def predictability(
    found: Fit, log: Log, test: np.ndarray, last: Fit, seed: int = 0
) -> Predictability:
    """How well a model of the first rounds predicts the others, one step ahead.

        share = 1 − Σ (x − x̂)² / Σ (x − x̄)²,   x̄ the mean of the arm in the sequence's test part

    Args:
        found: learned from the training part.
        log: all rounds.
        test: which rows are in the test part.
        last: learned from the whole log; says how the knowledge fades.
    """
    ahead = one_step(found, log)
    arms, rewards = plays_of(log)
    seen = ~np.isnan(rewards)
    test = test[seen]
    owners = np.repeat(np.arange(len(log.sequences)), [len(one) for one in log.sequences])
    rewards, means = ahead.rewards[test], ahead.means[test]
    groups = (owners * len(log.names) + arms)[seen][test]
    own = (np.bincount(groups, rewards) / np.maximum(np.bincount(groups), 1))[groups]
    wrong, spread = (rewards - means) ** 2, (rewards - own) ** 2
    variance = float(spread.mean())
    if len(rewards) < 2 or variance <= ROUNDING * float((rewards**2).mean()):
        return Predictability(math.nan, math.nan, math.nan, len(rewards), None)
    share = 1 - float(wrong.mean()) / variance
    # The error of a ratio of means is that of the mean of wrong − (1 − share) spread.
    errors = (wrong - (1 - share) * spread) / variance
    ends = statistics.block_interval(errors, seed=seed)
    faded = half_life(last, 0.5 * share * variance) if share > 0 else None
    return Predictability(share, share - ends.high, share - ends.low, len(rewards), faded)


def half_life(found: Fit, lost: float) -> float:
    """Rounds without rewards until predictions of the arms' means are worse by that variance."""
    model, arms = found.model, found.arms

    def uncertain(rounds: int) -> float:
        belief = kalman.prior(model)
        cov = kalman.advance(belief, model, rounds).cov if rounds else belief.cov
        return float(np.einsum("ai,ij,aj->a", arms, np.asarray(cov), arms).mean())

    start, high = uncertain(0), 1
    while uncertain(high) - start < lost:
        high *= 2
        if high > FOREVER:
            return math.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if uncertain(middle) - start >= lost else (middle, high)
    return float(high)


# Seasons


class Season(NamedTuple):
    """A pattern that repeats."""

    period: float
    swing: float  # from its lowest to its highest point, mean over arms
    differs: bool  # whether the model has a pattern for each arm
    own: Answer | None = None  # whether models with a pattern for each arm predict better


def seasons(found: Fit, comparison: Comparison | None = None) -> tuple[Season, ...]:
    """The seasons of a model, as they were in the last four cycles of the log.

    Args:
        found: the model.
        comparison: that it comes from; says whether arms share each season.
    """
    parts = [one for one in found.structure.components if one.kind == "season"]
    paths = components(found)
    result = []
    for period in dict.fromkeys(_period(one) for one in parts):
        texts = {str(one) for one in parts if _period(one) == period}
        differs = any(one.scope == "arm" for one in parts if _period(one) == period)
        swings = []
        for name in found.names:
            mine = [p for p in paths if p.component in texts and p.label in ("", str(name))]
            rounds, total = mine[0].rounds, np.sum([path.mean for path in mine], axis=0)
            last = rounds > rounds[-1] - 4 * period
            phases = np.floor(rounds[last] % period)
            points = [float(total[last][phases == one].mean()) for one in np.unique(phases)]
            swings.append(max(points) - min(points))
        own = None if comparison is None else own_pattern(comparison, period)
        result.append(Season(period, float(np.mean(swings)), differs, own))
    return tuple(result)


def own_pattern(comparison: Comparison, period: float) -> Answer:
    """Whether a pattern for each arm predicts better than one that all arms share.

    Of the structures with a season of that period, the best with one for each arm is compared with
    the best whose season is shared; both kinds were tried with the same number of waves.
    """
    having = [i for i, one in enumerate(comparison.structures) if _scopes(one, period)]
    return answer(comparison.part(having), lambda one: _scopes(one, period) != {"shared"})


def _scopes(structure: Structure, period: float) -> set[str]:
    """Who has a season of that period."""
    parts = [one for one in structure.components if one.kind == "season"]
    return {one.scope for one in parts if _period(one) == period}


def _period(component: Component) -> float:
    return float(component.period)  # type: ignore[attr-defined]
