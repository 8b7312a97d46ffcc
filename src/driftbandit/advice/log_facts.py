"""What a log shows: who chose, how arms drift, how far ahead that is known, what policies earn."""

from __future__ import annotations

import bisect
import dataclasses
import math
from typing import Any, Literal, NamedTuple

import numpy as np

from driftbandit import statistics
from driftbandit.advice.finding import Number, Tell
from driftbandit.arrays import Array, namespace
from driftbandit.identify import Comparison, Fit, Log, components, one_step
from driftbandit.identify.data import no_arm_varies
from driftbandit.identify.findings import Answer, Verdict, answer
from driftbandit.policies import PREFERRED, Policy, Problem, random
from driftbandit.replays import Replay, Row, support
from driftbandit.replays.decisions import has_chances
from driftbandit.replays.result import ALWAYS, LEADER, LOGGING
from driftbandit.structure import Component, Structure
from driftbandit.structure.kinds import Season as Waves
from driftbandit.system import Name, System

Evidence = Literal["full", "chances", "none"]
TRAIN = 0.4  # share of the log to learn from; estimates from a log need many rounds to test
ROUNDING = 1e-24  # share of the rewards' square below which their variance is rounding
DRAWS = 4000  # of the parameters, for intervals
FOREVER = 2**19  # rounds: what lasts longer does not fade
PLAYED = (PREFERRED, "kalman_ucb", "ucb", "discounted_ucb")  # by default
RANDOM, FIXED = "random", "fixed"
REFERENCES = (LOGGING, RANDOM, LEADER)  # that a table shows
NO_WIDTH = 1e-9  # share of a mean: narrower intervals have no width
RUNS, FEWEST_RUNS = 200, 32  # of the forecast; fewer if there are many states and arms
WORK = 2.5e9  # runs × rounds × states × (states + arms) of the forecast: about 15 s
LONGEST = 1000  # rounds of the forecast
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
    arms, rewards = zip(*((part.arms, part.rewards) for part in log.sequences), strict=True)
    return np.concatenate(arms), np.concatenate(rewards)


def contents(log: Log, chances: str | None = None) -> Contents:
    """What the log holds; ``chances``: what the caller says of those that it lacks."""
    k, parts = len(log.names), log.sequences
    arms, rewards = plays_of(log)
    seen = ~np.isnan(rewards)
    arms, rewards = arms[seen], rewards[seen]
    plays = np.bincount(arms, minlength=k)
    sums = np.bincount(arms, rewards, k)
    counts = zip(log.names, plays.tolist(), sums.tolist(), strict=True)
    least = None
    if has_chances(log):
        known = [part.chances for part in parts if part.chances is not None]
        least = float(np.nanmin(np.concatenate(known)))
    return Contents(
        rows=log.rows,
        rewards=len(rewards),
        rounds=sum(len(np.unique(part.rounds)) for part in parts),
        span=sum(int(part.rounds[-1] - part.rounds[0]) + 1 for part in parts),
        sequences=len(parts),
        arms=tuple(
            ArmCount(name, n, n / len(rewards), total / n if n else math.nan)
            for name, n, total in counts
        ),
        evidence=_evidence(log, chances),
        least_chance=least,
        features=log.feature_names,
        notes=tuple(log.notes),
        constant=no_arm_varies(arms, rewards) and bool((plays[plays > 0] >= OFTEN).all()),
    )


def _evidence(log: Log, chances: str | None) -> Evidence:
    if len(log.sequences) > 1 or len(log.names) < 2:
        return "none"
    if chances is not None or has_chances(log):
        return "chances"
    (part,) = log.sequences
    seen = ~np.isnan(part.rewards)
    rounds, _ = np.unique(np.stack([part.rounds[seen], part.arms[seen]]), axis=1)
    arms_shown = np.unique(rounds, return_counts=True)[1]
    return "full" if (arms_shown >= 2).mean() >= 0.5 else "none"


def horizon(log: Log) -> int:
    """Over how many rounds a change is shown: a week of days; 100 rounds, or 10 of a short log."""
    if any(note.startswith("Rounds are days") for note in log.notes):
        return 7
    longest = max(int(part.rounds[-1] - part.rounds[0]) for part in log.sequences)
    return 100 if longest >= 1000 else 10


def speed(fit: Fit, rounds: int, seed: int = 0) -> Speed | None:
    """How far an arm's mean moves in so many rounds, by the levels of a model.

    A random walk with steps d moves by d √h; a level that returns to zero by factors φ, with
    steps d, by √(2 d² (1 − φ^h) / (1 − φ²)). Intervals: draws from the parameters' distribution.
    None: the model has no level.
    """
    levels = {i: part for i, part in enumerate(fit.structure.components) if part.kind == "level"}
    if not levels:
        return None
    rng, size = np.random.default_rng(seed), len(fit.theta)
    root = np.linalg.cholesky(fit.covariance + 1e-12 * np.eye(size))
    drawn = rng.standard_normal((DRAWS, size)) @ root.T
    theta = fit.theta + np.vstack([np.zeros(size), drawn])  # the estimate, then the draws

    def drawn_values(component: int, name: str) -> np.ndarray:
        wanted = component, name, None
        free = [(each.component, each.parameter.name, each.copy) for each in fit.layout.free]
        return np.exp(theta[:, free.index(wanted)])

    own, shared = np.zeros((2, len(theta)))  # variance of the change, by each arm's level and all's
    for place, level in levels.items():
        steps = drawn_values(place, "drift") * fit.problem.described.units.scale
        variance = steps**2 * rounds
        if getattr(level, "memory", None) is not None:
            rate = 1 / drawn_values(place, "memory")
            variance = 2 * steps**2 * np.expm1(-rate * rounds) / np.expm1(-2 * rate)
        total = shared if level.scope == "shared" else own
        total += variance

    def estimate(values: np.ndarray) -> tuple[Any, Any, Any]:
        low, high = np.quantile(values[1:], [0.025, 0.975]).tolist()
        return float(values[0]), low, high

    common: tuple[Any, Any, Any] = (None, None, None)
    if shared.any():
        common = estimate(shared / (own + shared))
    change = estimate(np.sqrt(own + shared))
    return Speed(rounds, *change, float(fit.model.reward_std), *common, str(fit.structure))


def split(log: Log) -> np.ndarray:
    """Which rows are in the test part: the later rounds of every sequence.

    One sequence is cut as `replay` cuts it: at a share of the rounds, or of the decisions.
    """
    test = []
    for part in log.sequences:
        seen = ~np.isnan(part.rewards)
        known = part.rounds[seen] if seen.any() else part.rounds
        each = known if part.chances is not None else np.unique(known)
        test.append(part.rounds >= each[int(TRAIN * len(each))])
    return np.concatenate(test)


def predictability(
    fit: Fit, log: Log, test: np.ndarray, last: Fit, seed: int = 0
) -> Predictability:
    """How well a model of the first rounds predicts the others, one step ahead.

        share = 1 − Σ (x − x̂)² / Σ (x − x̄)²,   x̄ the mean of the arm in the sequence's test part

    Args:
        fit: learned from the training part.
        log: all rounds.
        test: which rows are in the test part.
        last: learned from the whole log; says how the knowledge fades.
    """
    ahead = one_step(fit, log)
    arms, rewards = plays_of(log)
    seen = ~np.isnan(rewards)
    sequences = np.repeat(np.arange(len(log.sequences)), [len(part) for part in log.sequences])
    groups = (sequences * len(log.names) + arms)[seen & test]
    rewards, means = ahead.rewards[test[seen]], ahead.means[test[seen]]
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


def half_life(fit: Fit, lost: float) -> float:
    """Rounds without rewards until predictions of the arms' means are worse by that variance."""

    def variance(rounds: int) -> float:
        return float(np.vecdot(fit.arms @ fit.model.state_cov(rounds), fit.arms).mean())

    worse = variance(0) + lost
    rounds = bisect.bisect_left(range(FOREVER + 1), worse, lo=1, key=variance)
    return float(rounds) if rounds <= FOREVER else math.inf


# Seasons


class Season(NamedTuple):
    """A pattern that repeats."""

    period: float
    swing: float  # from its lowest to its highest point, mean over arms
    differs: bool  # whether the model has a pattern for each arm
    own: Answer  # whether models with a pattern for each arm predict better


def seasons(fit: Fit, comparison: Comparison) -> tuple[Season, ...]:
    """The seasons of a model, as they were in the last four cycles of the log.

    Args:
        fit: the model.
        comparison: that it comes from; says whether arms share each season.
    """
    paths = components(fit)
    result = []
    for period, parts in _seasons_of(fit.structure).items():
        texts, swings = set(map(str, parts)), []
        for name in fit.names:
            mine = [p for p in paths if p.component in texts and p.label in ("", str(name))]
            rounds, total = mine[0].rounds, np.sum([path.mean for path in mine], axis=0)
            last = rounds > rounds[-1] - 4 * period
            phases = np.floor(rounds[last] % period).astype(int)
            counts = np.bincount(phases)
            sums = np.bincount(phases, total[last])
            swings.append(float(np.ptp(sums[counts > 0] / counts[counts > 0])))
        differs = any(part.scope == "arm" for part in parts)
        own = own_pattern(comparison, period)
        result.append(Season(period, float(np.mean(swings)), differs, own))
    return tuple(result)


def own_pattern(comparison: Comparison, period: float) -> Answer:
    """Whether a pattern for each arm predicts better than one that all arms share.

    Of the structures with a season of that period, the best with one for each arm is compared with
    the best whose season is shared; both kinds were tried with the same number of waves.
    """

    def parts(structure: Structure) -> list[Component]:
        return _seasons_of(structure).get(period, [])

    having = [i for i, structure in enumerate(comparison.structures) if parts(structure)]
    return answer(
        comparison.part(having), lambda one: any(part.scope != "shared" for part in parts(one))
    )


def _seasons_of(structure: Structure) -> dict[float, list[Component]]:
    """The components that are seasons, by their period."""
    found: dict[float, list[Component]] = {}
    for part in structure.components:
        if isinstance(part, Waves):
            found.setdefault(float(part.period), []).append(part)
    return found


class Drift(NamedTuple):
    """What models with and without drift and seasons say."""

    drift: Answer
    season: Answer
    speed: Speed | None
    seasons: tuple[Season, ...]
    comparison: Comparison
    fit: Fit  # of the chosen structure

    @property
    def structure(self) -> str:
        """The one that was chosen."""
        return str(self.fit.structure)

    @property
    def moves(self) -> Verdict:
        """Whether the best arm may change: something drifts or repeats, or depends on a context."""
        if any(part.features and part.scope == "arm" for part in self.fit.structure.components):
            return "yes"
        both = {self.drift.verdict, self.season.verdict}
        return "yes" if "yes" in both else "no" if both == {"no"} else "cannot tell"


# What policies would have earned


class Earned(NamedTuple):
    """What a policy or a reference strategy would have earned per round in the test part."""

    label: str
    kind: str  # "policy" or "reference"
    arm: Name | None  # of a strategy that always plays the same one
    mean: float
    low: float
    high: float
    effective: float  # rounds of the log that show it
    trusted: bool  # whether they are enough for an interval
    reason: str  # why they are not
    unsupported: float  # share of rounds in which the log gives no chance to what it names
    over_fixed: Number | None  # compared with the best arm of the training part
    over_log: Number | None  # compared with what the log earned; None: it had no policy of its own


class Replayed(NamedTuple):
    """The test part of the log, played by policies that learned from the training part."""

    method: str  # "full" or "dr"
    train_rounds: int
    test_rounds: int
    structure: str  # chosen on the training part
    confidence: float  # of each interval, so that those of all policies hold together with 95%
    fixed: Name  # the best arm of the training part
    rows: tuple[Earned, ...]  # highest mean first
    best: str  # the policy to prefer: `PREFERRED` if it is as good as any, else the highest
    # of those that the log shows; if it shows none, `PREFERRED`, and nothing is known of it
    notes: tuple[str, ...]
    equal: tuple[str, ...] = ()  # policies whose difference from the highest may be luck

    def row(self, label: str) -> Earned:
        """The row with that label."""
        return next(row for row in self.rows if row.label == label)


class Forecast(NamedTuple):
    """What the model expects of the rounds after the log's last."""

    policy: str
    rounds: int
    runs: int
    fixed: Name  # the arm with the highest expected reward in these rounds
    over_fixed: Number
    over_random: Number


def replayed(result: Replay, confidence: float) -> Replayed:
    """Each row of a replay, compared with the best arm of the training part and with the log."""

    def compared(base: str) -> dict[str, Row]:
        rows = dataclasses.replace(result, compared=base).rows(confidence=confidence)
        return {row.label: row for row in rows}

    over_fixed = compared(LEADER)
    over_log = compared(LOGGING) if result.logged else {}
    rows = tuple(
        Earned(
            *(row.label, row.kind, row.arm, row.mean, row.low, row.high, row.effective),
            trusted=not (doubt := result.doubt(label)),
            reason=doubt,
            unsupported=result.unsupported(label),
            over_fixed=_gain(row),
            over_log=_gain(over_log.get(label)),
        )
        for label, row in over_fixed.items()
    )
    played = [row for row in rows if row.kind == "policy"]
    known = [row.label for row in played if row.trusted]
    highest = (known or [row.label for row in played])[0]
    rivals = compared(highest)
    equal = tuple(label for label in rivals if label in known and _is_level(rivals[label]))
    fixed = result.references[LEADER].arm
    assert fixed is not None
    best = PREFERRED if PREFERRED in (equal if known else result.played) else highest
    parts = result.method, result.train_rounds, result.test_rounds, str(result.fit.structure)
    return Replayed(*parts, confidence, fixed, rows, best, result.notes, equal)


def _gain(row: Row | None) -> Number | None:
    """The difference from the baseline; None: this is the baseline, or there is none."""
    if row is None or not row.verdict:
        return None
    # Two that hardly ever differ are known to be alike: more data would not tell them apart.
    verdict = statistics.NO_DIFFERENCE if row.reason == support.ALIKE else row.verdict
    return Number(row.difference, row.difference_low, row.difference_high, verdict)


def _is_level(row: Row) -> bool:
    """Whether the difference from the baseline, the highest policy, may be luck.

    An interval without width comes from rounds in which the log plays what neither policy names:
    then only predictions differ, and the log shows nothing.
    """
    nothing = row.difference_high - row.difference_low <= NO_WIDTH * abs(row.mean)
    return not math.isnan(row.mean) and (nothing or row.verdict != statistics.WORSE)


def shown_rows(done: Replayed) -> list[Earned]:
    """The rows of a table: policies, the fixed choice, the log, random, the best arm in hindsight.

    Arms that are always played have a row each; only the best is shown, of those that are known.
    """
    hindsight = [row for row in done.rows if row.label.startswith(ALWAYS) and row.trusted]
    hindsight += [row for row in done.rows if row.label == "best_arm"]
    hindsight = [row for row in hindsight if row.arm != done.fixed][:1]
    shown = [row for row in done.rows if row.kind == "policy" or row.label in REFERENCES]
    shown += [row for row in hindsight if row.mean > done.row(LEADER).mean]
    return sorted(shown, key=lambda row: math.inf if math.isnan(row.mean) else -row.mean)


# The forecast


@dataclasses.dataclass(frozen=True)  # equal for the same arm, so it compiles once
class _Always:
    """``choose`` of the policy that always plays one arm."""

    arm: int

    def __call__(self, state: Any, problem: Problem, noise: Array) -> Array:
        xp = namespace(problem.arms)
        return xp.asarray(self.arm, dtype=xp.int32)


def fixed_policy(arm: int) -> Policy:
    """The policy that always plays the arm of that number."""
    return Policy(FIXED, random.prepare, _Always(arm), random.update)


def forecast(
    fit: Fit, who: str, policy: Policy, rounds: int, runs: int | None, seed: int, progress: Tell
) -> Forecast:
    """Simulate the rounds after the log's last: a policy, the best fixed arm, random choice.

    Paired: all see the same states and noise, so differences of regret are differences of rewards.
    """
    from driftbandit.simulation import Options, simulate

    rounds = min(rounds, LONGEST)
    if runs is None:
        states, arms = fit.n_states, len(fit.names)
        runs = int(np.clip(WORK / (rounds * states * (states + arms)), FEWEST_RUNS, RUNS))
    arm = best_fixed(fit.system, rounds)
    how: dict[str, Any] = {"device": "cpu", "options": Options(checkpoints=1), "progress": progress}
    played: list[str | Policy] = [policy, fixed_policy(arm), RANDOM]
    result = simulate(fit.system, policies=played, rounds=rounds, runs=runs, seed=seed, **how)
    rows = result.compare(policy, seed=seed)

    def gain(other: str) -> Number:  # regret of the other, minus the policy's
        row = rows[other]
        ends = row.mean_low / rounds, row.mean_high / rounds
        verdict = statistics.verdict(-ends[1], -ends[0], runs)
        return Number(row.mean_difference / rounds, *ends, verdict)

    return Forecast(who, rounds, runs, fit.names[arm], gain(FIXED), gain(RANDOM))


def best_fixed(system: System, rounds: int) -> int:
    """The arm with the highest expected reward, averaged over the next rounds."""
    total = np.sum([system.model.state_mean(time) for time in range(rounds)], axis=0)
    return int(np.argmax(system.arms @ total))
