"""The result of a replay: rewards per round, and a table with paired intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, statistics
from driftbandit.identify.structured.fitting import Fit
from driftbandit.replays import estimates, support
from driftbandit.report import storable
from driftbandit.report.numbers import short
from driftbandit.system import Name

LEADER = "training_leader"  # the reference strategy that always plays the best arm of training
LOGGING = "logging"  # the reference strategy that is what the log did
NONE = np.empty(0)
STORED: tuple[str, ...] = ("unit", "method", "logged", "chances", "feedback", "warm", "seed")
STORED += ("train_rounds", "test_rounds")  # what a document has under the same name
ALWAYS = "always "  # with the name of an arm: the reference strategy that always plays it


class Played(NamedTuple):
    """A policy on the test part, averaged over its runs, or a reference strategy."""

    earned: np.ndarray  # per round; with a log, an unbiased estimate of it
    counted: np.ndarray  # per round: 1; with a log, the share of runs that chose the logged arm
    means: np.ndarray = NONE  # mean reward of each run of a policy
    shares: np.ndarray = NONE  # how often a policy chose each arm: k numbers that add up to 1
    unsupported: float = 0.0  # with a log, share of rounds in which the named arm had no chance
    arm: Name | None = None  # the arm that a reference strategy always plays; None for all others
    setting: str = ""  # what a reference strategy chose on the training part, in words

    @classmethod
    def known(cls, earned: np.ndarray, **fields: Any) -> Played:
        """What was earned in rounds that all count: it is no estimate."""
        return cls(earned, np.ones(len(earned)), **fields)


class Predictability(NamedTuple):
    """How well a filter that sees every known reward predicts the test part, as R².

    1 − Σ (X − X̂)² / Σ (X − X̄)², X̂ the prediction one round ahead, X̄ the arm's training mean:
    1 is perfect, 0 no better than the means, and below 0 worse than them.
    """

    rewards: float  # R² of the rewards
    # R² of their differences from the mean over the round's arms, on which a choice depends; None
    # for logs, which do not show them.
    differences: float | None


class Row(NamedTuple):
    """One line of the table."""

    label: str
    kind: str  # "policy" or "reference"
    arm: Name | None  # the arm that a reference strategy always plays; None for all others
    mean: float  # reward per round; NaN if the log never plays what the policy names
    low: float  # low and high: interval of that mean; NaN if it is not trusted
    high: float
    total: float  # reward of all rounds
    spread: float  # standard deviation of the mean over the policy's runs; NaN if there is only one
    counted: float  # all rounds; with a log, those in which it chose the logged arm
    effective: float  # all rounds; with a log, the effective sample size of their weights
    difference: float  # mean minus the baseline's; NaN for the baseline itself
    difference_low: float  # interval of that difference, paired by rounds; NaN if it is not known
    difference_high: float
    verdict: str  # from that interval: "better", "worse", "no difference seen" or "too few to tell"
    trusted: bool = True  # whether the data tells enough of this row for an interval
    reason: str = ""  # why it does not, or why there is no interval of the difference
    # With a log, the factor by which the odds of its chances may be wrong until "better" or "worse"
    # is gone, see `estimates.tolerance`; NaN without such a verdict.
    tolerance: float = math.nan


class Ends(NamedTuple):
    """An interval, or why there is none."""

    low: float = math.nan
    high: float = math.nan
    independent: float = math.nan  # rounds it rests on
    doubt: str = ""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Every policy on the test part of real data."""

    title: str
    unit: str
    names: tuple[Name, ...]  # of the arms
    method: str  # "full", "ips", "dr" or "rejection"
    train_rounds: int  # rounds of the training part; with a log, decisions that have a reward
    test_rounds: int  # likewise of the test part
    first_round: int  # first round of the test part, counted from the start of the data
    rounds: np.ndarray  # rounds of the test part that count, from the start of the data
    played: Mapping[str, Played]  # by label of policy
    references: Mapping[str, Played]  # reference strategies, by name
    predictability: Predictability
    fit: Fit  # of rewards minus their mean, learned from the training part
    warm: bool
    seed: int
    compared: str | None  # the baseline that was asked for; None: see `baseline`
    notes: tuple[str, ...]
    shown: estimates.Shown | None = None  # what a log shows of the test part; None: all arms
    chances: str | None = None  # of a log: "logged", "uniform" or "estimated"
    feedback: float | None = None  # chance that a policy sees a reward, if learning by rejection

    @property
    def logged(self) -> bool:
        """Whether the data is a log of one reward per decision."""
        return self.shown is not None

    def mean(self, label: str) -> float:
        """Reward per round of a policy or reference strategy."""
        own = self._row(label)
        return float(own.earned.mean()) if own.counted.any() else math.nan

    def unsupported(self, label: str) -> float:
        """Share of rounds in which a log gave no chance to what a policy or reference names."""
        return self._row(label).unsupported

    def cumulative(self, label: str, less: str | None = None) -> np.ndarray:
        """Cumulative reward over the test part, minus that of another label if one is given."""
        other = 0.0 if less is None else self._row(less).earned
        return np.cumsum(self._row(label).earned - other)

    @property
    def baseline(self) -> str:
        """The label that all are compared with: the one asked for, or the training part's best arm.

        A log may show too little of that arm. Then it is the logging policy, whose rewards are
        known.
        """
        if self.compared is not None:
            return self.compared
        return LOGGING if self.doubt(LEADER) else LEADER

    def doubt(self, label: str, base: str | None = None) -> str:
        """Why a log cannot tell the mean of a row, or its difference from another; else empty.

        Every row is judged alike: see `replays.support`. What the log itself earned is known.
        """
        if self.shown is None:
            return ""
        rows = {who: self._row(who) for who in (label, base) if who not in (None, LOGGING)}
        for who, row in rows.items():
            if doubt := support.doubt(row.counted, row.unsupported, self.shown):
                return doubt if who == label else f"{who}: {doubt}"
        pair = [*rows.values()]
        if len(pair) < 2 or np.array_equal(pair[0].earned, pair[1].earned):
            return ""
        lost = pair[0].unsupported + pair[1].unsupported
        return support.doubt_of_difference(pair[0].counted, pair[1].counted, lost, self.shown)

    def rows(self, *, confidence: float = 0.95) -> list[Row]:
        """The table, highest mean first.

        If the data shows all arms, intervals come from a circular block bootstrap over rounds. They
        say how certain a mean, or a paired difference, is for rounds like these, not how another
        history would have gone. With a log, the interval of an estimate is for these very
        rounds, given that the rewards of other arms are not known; see `replays.estimates`. Where
        the data cannot tell, there is neither an interval nor a verdict, and ``reason`` says why.
        """
        confidence = errors.number(confidence, "confidence", low=0, high=1, strict=True)
        how = self.baseline, confidence
        rows = [self._line(label, *how) for label in (*self.played, *self.references)]
        return sorted(rows, key=lambda row: math.inf if math.isnan(row.mean) else -row.mean)

    def _line(self, label: str, baseline: str, confidence: float) -> Row:
        own, mean = self._row(label), self._interval(label, None, confidence)
        apart, difference, verdict = Ends(), math.nan, ""
        if label != baseline:
            apart = self._interval(label, baseline, confidence)
            difference = self.mean(label) - self.mean(baseline)
            # Of a gain, more is better.
            ends = -apart.high, -apart.low, apart.independent, confidence
            verdict = statistics.verdict(*ends) if not apart.doubt else statistics.TOO_FEW
        who = label, "policy" if label in self.played else "reference", own.arm
        spread = float(own.means.std(ddof=1)) if len(own.means) > 1 else math.nan
        paid = self.mean(label), mean.low, mean.high, float(own.earned.sum()), spread
        effective = mean.independent if self.logged else float(len(own.earned))
        gain = float(own.counted.sum()), effective, difference, apart.low, apart.high
        tolerance = self._tolerance(label, baseline, apart, verdict)
        known = not mean.doubt, mean.doubt or apart.doubt, tolerance
        return Row(*who, *paid, *gain, verdict, *known)

    def _row(self, label: str) -> Played:
        rows = {**self.references, **self.played}
        return rows[errors.closest(label, "label", rows)]

    def _uncertain(self, *labels: str | None) -> list[np.ndarray]:
        """What these rows counted; what the log earned is known and adds no uncertainty."""
        return [self._row(label).counted for label in labels if label not in (None, LOGGING)]

    def _interval(self, label: str, base: str | None, confidence: float) -> Ends:
        """The interval of a mean, or of a difference from ``base``."""
        series = self._row(label).earned - (0.0 if base is None else self._row(base).earned)
        if self.shown is None:
            return self._block_interval(series, base is not None, confidence)
        mean, uncertain = float(series.mean()), self._uncertain(label, base)
        if not uncertain:
            return Ends(mean, mean, float(len(self.rounds)))
        least = min(estimates.effective(counted, self.shown) for counted in uncertain)
        if doubt := self.doubt(label, base):
            return Ends(independent=least, doubt=doubt)
        spread = estimates.variances(uncertain[0], self.shown, *uncertain[1:])
        return Ends(*estimates.interval(mean, spread, confidence), least)

    def _block_interval(self, series: np.ndarray, paired: bool, confidence: float) -> Ends:
        """The bootstrap interval of data that shows all arms."""
        drawn = statistics.block_interval(series, confidence=confidence, seed=self.seed)
        independent = len(series) / drawn.block
        # A difference is compared with zero: if two policies seldom differ, few rounds decide.
        outcomes = len(series) / estimates.kurtosis(series, 0.0 if paired else None)
        if statistics.verdict(0.0, 0.0, independent, confidence) == statistics.TOO_FEW:
            doubt = f"{independent:.1f} blocks of rounds that depend on each other"
        elif outcomes < support.OUTCOMES and (not paired or series.any()):
            doubt = support.ALIKE if paired else support.CARRIED.format(short(outcomes, 2))
        else:
            return Ends(drawn.low, drawn.high, independent)
        return Ends(independent=independent, doubt=doubt)

    def _tolerance(self, label: str, baseline: str, apart: Ends, verdict: str) -> float:
        """`estimates.tolerance` of a verdict; NaN if it is neither "better" nor "worse"."""
        if self.shown is None or verdict not in (statistics.BETTER, statistics.WORSE):
            return math.nan
        counted, other = (sum(self._uncertain(who)) for who in (label, baseline))
        pulls = (counted - other) * (1 / self.shown.chances - 1) * self.shown.residuals
        sign, end = (1, apart.low) if verdict == statistics.BETTER else (-1, apart.high)
        return estimates.tolerance(sign * end, sign * pulls)

    def __repr__(self) -> str:
        shown = ", ".join(list(self.played)[:4]) + ", …" * (len(self.played) > 4)
        return f"Replay({len(self.names)} arms, {self.test_rounds} test rounds: {shown})"

    def __str__(self) -> str:
        less, rows = f"minus {self.baseline}", self.rows()
        first = max([20, *(len(row.label) for row in rows)])
        lines = [f"{'':<{first}} {'mean reward':>12} {'95% interval':>22} {less:>26}"]
        for row in rows:
            ends = f"{row.low:.4g} to {row.high:.4g}" if row.trusted else statistics.TOO_FEW
            apart = f"{row.difference_low:.3g} to {row.difference_high:.3g}"
            apart = f"{row.difference:+.3g} ({apart})" if row.label != self.baseline else ""
            apart = statistics.TOO_FEW if row.verdict == statistics.TOO_FEW else apart
            lines.append(f"{row.label:<{first}} {row.mean:>12.4g} {ends:>22} {apart:>26}")
        return "\n".join(lines)

    def to_document(self) -> dict[str, Any]:
        """Everything but the rewards per round, ready for JSON."""
        fit, tried = self.fit, self.fit.comparison
        model = {
            "summary": fit.summary(),
            "drift": fit.drift._asdict(),
            "states": fit.n_states,
            "spectral_radius": fit.spectral_radius,
            "reward_std": float(fit.model.reward_std),
            "selection": tried and dict(zip(map(str, tried.structures), tried.scores, strict=True)),
            "converged": fit.converged,
        }
        document = {
            "data": self.title,
            "arms": self.names,
            **{name: getattr(self, name) for name in STORED},
            "counted_rounds": len(self.rounds),
            "model": model,
            "predictability": self.predictability._asdict(),
            "baseline": self.baseline,
            "rows": [row._asdict() for row in self.rows()],
            "shares": {
                label: dict(zip(map(str, self.names), played.shares.tolist(), strict=True))
                for label, played in self.played.items()
            },
            "notes": self.notes,
        }
        return dict(storable(document))
