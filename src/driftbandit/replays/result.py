"""The result of a replay: rewards per round, and a table of them with paired intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, policies, statistics
from driftbandit.identify.fitting import Fit
from driftbandit.report import storable
from driftbandit.system import Name

__all__ = ["Played", "Predictability", "Reference", "Replay", "Row"]


class Played(NamedTuple):
    """One policy on the test part, averaged over its runs."""

    earned: np.ndarray
    """Per round; with a log: zero where the choice was not the logged arm."""
    counted: np.ndarray
    """Per round: 1; with a log: the share of runs that chose the logged arm."""
    means: np.ndarray
    """Mean reward of each run; NaN if none of its rounds counts."""
    shares: np.ndarray
    """How often each arm was chosen: k numbers that add up to 1."""


class Reference(NamedTuple):
    """A strategy that needs no learning."""

    earned: np.ndarray
    """Per round; zero where the log does not show what it would have earned."""
    counted: np.ndarray
    """Per round: 1 where that is known, else 0."""
    arm: Name | None = None
    """The arm it plays, if that is always the same one."""


class Predictability(NamedTuple):
    """How well a filter that sees every known reward predicts the test part, as R².

    1 − Σ (X − X̂)² / Σ (X − X̄)², X̂ the prediction one round ahead, X̄ the arm's training mean:
    1 is perfect, 0 no better than the means, and below 0 worse than them.
    """

    rewards: float
    """R² of the rewards."""
    differences: float | None
    """R² of their differences from the mean over the round's arms, on which a choice depends; None
    for logs, which do not show them."""


class Row(NamedTuple):
    """One line of the table."""

    label: str
    kind: str
    """ "policy" or "reference" (a reference strategy)."""
    arm: Name | None
    """The arm that a reference strategy always plays; None for all others."""
    mean: float
    """Reward per round; with a log, per round that counts."""
    low: float
    """Interval of that mean."""
    high: float
    total: float
    """Reward of all rounds; with a log, of those that count."""
    spread: float
    """Standard deviation of the mean over the policy's runs; NaN if there is only one."""
    counted: float
    """Rounds that count: all; with a log, those in which the choice was the logged arm."""
    difference: float
    """Mean minus the baseline's; NaN for the baseline itself."""
    difference_low: float
    """Interval of that difference, paired by rounds."""
    difference_high: float
    verdict: str
    """From that interval: "better", "worse", "no difference seen" or "too few to tell"."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Every policy on the test part of real data."""

    title: str
    unit: str
    names: tuple[Name, ...]
    """Of the arms."""
    logged: bool
    """Whether each round shows one arm only."""
    train_rounds: int
    """Rounds of the training part, and of the test part; with a log, those that have a reward."""
    test_rounds: int
    first_round: int
    """First round of the test part, counted from the start of the data."""
    rounds: np.ndarray
    """Rounds of the test part that offered an arm, counted from the start of the data."""
    played: Mapping[str, Played]
    """By label of policy."""
    references: Mapping[str, Reference]
    """Reference strategies, by name."""
    predictability: Predictability
    fit: Fit
    """The model of rewards minus their mean, learned from the training part."""
    warm: bool
    seed: int
    compared: str | None
    """The baseline that was asked for."""
    notes: tuple[str, ...]

    def mean(self, label: str) -> float:
        """Reward per round of a policy or reference strategy."""
        return _mean(*self._pair(label))

    def cumulative(self, label: str, less: str | None = None) -> np.ndarray:
        """Cumulative reward over the test part, minus that of another label if one is given."""
        other = 0.0 if less is None else self._pair(less)[0]
        return np.cumsum(self._pair(label)[0] - other)

    @property
    def baseline(self) -> str:
        """The label that all are compared with: the one asked for, or the best without a filter.

        With a log it is always the logging policy, because two policies count different rounds.
        """
        if self.logged:
            return "logging"
        if self.compared is not None:
            return self.compared
        rivals = [label for label in self.played if not policies.filters(label)]
        return max(rivals, key=self.mean) if rivals else "random"

    def rows(self, *, confidence: float = 0.95) -> list[Row]:
        """The table, highest mean first.

        Intervals come from a circular block bootstrap over rounds. They say how certain a mean, or
        a paired difference, is for rounds like these, not how another history would have gone.

        Args:
            confidence: of the intervals.
        """
        confidence = errors.number(confidence, "confidence", low=0, high=1, strict=True)
        baseline = self.baseline
        base = self._pair(baseline)
        found = []
        for label in (*self.played, *self.references):
            pair = self._pair(label)
            low, high, _ = self._interval(pair, None, confidence)
            difference = difference_low = difference_high = math.nan
            verdict = ""
            if label != baseline:
                difference = _mean(*pair) - _mean(*base)
                difference_low, difference_high, blocks = self._interval(pair, base, confidence)
                verdict = _verdict(difference_low, difference_high, blocks, confidence)
            reference = self.references.get(label)
            found.append(
                Row(
                    label,
                    "policy" if reference is None else "reference",
                    None if reference is None else reference.arm,
                    _mean(*pair),
                    low,
                    high,
                    float(pair[0].sum()),
                    self._spread(label),
                    float(pair[1].sum()),
                    difference,
                    difference_low,
                    difference_high,
                    verdict,
                )
            )
        return sorted(found, key=lambda row: math.inf if math.isnan(row.mean) else -row.mean)

    def _pair(self, label: str) -> tuple[np.ndarray, np.ndarray]:
        errors.closest(label, "label", [*self.played, *self.references])
        both = self.played[label] if label in self.played else self.references[label]
        return both.earned, both.counted

    def _spread(self, label: str) -> float:
        means = self.played[label].means if label in self.played else np.empty(0)
        means = means[np.isfinite(means)]
        return float(means.std(ddof=1)) if len(means) > 1 else math.nan

    def _interval(
        self,
        pair: tuple[np.ndarray, np.ndarray],
        base: tuple[np.ndarray, np.ndarray] | None,
        confidence: float,
    ) -> tuple[float, float, float]:
        """Both ends, and the number of blocks."""
        columns = [*pair, *(base or ())]
        if any(part.sum() == 0 for part in columns[1::2]) or len(pair[0]) < 2:
            return math.nan, math.nan, 1.0
        # What a round adds to the estimate: its autocorrelation sets the length of the blocks.
        share = _share(*pair) - (0.0 if base is None else _share(*base))
        block = statistics.block_length(share)
        drawn = statistics.block_means(np.stack(columns, axis=1), block, seed=self.seed)
        with np.errstate(invalid="ignore", divide="ignore"):  # a resample in which no round counts
            means = drawn[:, 0::2] / drawn[:, 1::2]
        values = means[:, 0] if base is None else means[:, 0] - means[:, 1]
        values = values[np.isfinite(values)]
        least = min(float(part.sum()) for part in columns[1::2])  # rounds that count
        return *statistics.ends_of(values, confidence), least / block

    def __str__(self) -> str:
        baseline = self.baseline
        lines = [
            f"{'':<20} {'mean reward':>12} {'95 % interval':>22} {f'minus {baseline}':>26}",
        ]
        for row in self.rows():
            ends = f"{row.low:.4g} to {row.high:.4g}"
            apart = ""
            if row.label != baseline:
                apart = f"{row.difference:+.3g} ({row.difference_low:.3g} to "
                apart += f"{row.difference_high:.3g})"
            lines.append(f"{row.label:<20} {row.mean:>12.4g} {ends:>22} {apart:>26}")
        return "\n".join(lines)

    def to_document(self) -> dict[str, Any]:
        """Everything but the rewards per round, ready for JSON."""
        fit, selection = self.fit, None
        if (choice := fit.selection) is not None:
            labels = (one.label for one in choice.candidates)
            selection = dict(zip(labels, choice.scores, strict=True))
        document = {
            "data": self.title,
            "unit": self.unit,
            "arms": list(self.names),
            "logged": self.logged,
            "train_rounds": self.train_rounds,
            "test_rounds": self.test_rounds,
            "counted_rounds": len(self.rounds),
            "warm": self.warm,
            "seed": self.seed,
            "model": {
                "summary": fit.summary(),
                "states": fit.n_states,
                "spectral_radius": fit.spectral_radius,
                "reward_std": float(fit.model.reward_std),
                "selection": selection,
                "converged": fit.converged,
            },
            "predictability": self.predictability._asdict(),
            "baseline": self.baseline,
            "rows": [row._asdict() for row in self.rows()],
            "shares": {
                label: dict(zip(map(str, self.names), played.shares.tolist(), strict=True))
                for label, played in self.played.items()
            },
            "notes": list(self.notes),
        }
        found: dict[str, Any] = storable(document)
        return found


def _mean(earned: np.ndarray, counted: np.ndarray) -> float:
    whole = float(counted.sum())
    return float(earned.sum()) / whole if whole > 0 else math.nan


def _share(earned: np.ndarray, counted: np.ndarray) -> np.ndarray:
    return np.asarray((earned - _mean(earned, counted) * counted) / counted.mean())


def _verdict(low: float, high: float, blocks: float, confidence: float) -> str:
    if math.isnan(low) or 2.0 ** (1 - blocks) > 1 - confidence:
        return statistics.TOO_FEW
    if low > 0:
        return statistics.BETTER
    return statistics.WORSE if high < 0 else statistics.NO_DIFFERENCE
