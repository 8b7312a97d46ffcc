"""What a replay gives back: per-round rewards, and a table of them with paired intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, policies, statistics
from driftbandit.identify.fitting import Fit
from driftbandit.replays.yardsticks import Predictability, Yardstick
from driftbandit.system import Name

__all__ = ["Played", "Replay", "Row"]


class Played(NamedTuple):
    """One policy on the test part, averaged over its runs."""

    earned: np.ndarray
    """Per round; with a log: where the choice was the logged arm, else zero."""
    counted: np.ndarray
    """Per round: 1, or with a log the share of runs whose choice was the logged arm."""
    means: np.ndarray
    """Mean reward of each run; NaN for one without a round that counts."""
    shares: np.ndarray
    """How often each arm was chosen, k numbers that add up to 1."""


class Row(NamedTuple):
    """One line of the table."""

    label: str
    kind: str
    """ "policy" or "yardstick"."""
    arm: Name | None
    """The arm a yardstick plays, where it is always the same; None: a policy, or it changes."""
    mean: float
    """Reward per round; with a log, per round that counts."""
    low: float
    """Interval of that mean."""
    high: float
    total: float
    """Reward of all rounds; with a log, of those that count."""
    spread: float
    """Standard deviation of the mean over the policy's runs; NaN where there is one."""
    counted: float
    """How many rounds count: all, or with a log those in which the choice was the logged arm."""
    difference: float
    """Mean minus the baseline's; NaN for the baseline itself."""
    difference_low: float
    """Interval of that difference, round by round."""
    difference_high: float
    verdict: str
    """What that interval says: "better", "worse", "no difference seen", or too few to tell."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Every policy on the test part of real data."""

    title: str
    unit: str
    names: tuple[Name, ...]
    """Of the arms."""
    logged: bool
    """Whether each round shows one arm alone."""
    train_rounds: int
    """Rounds of the training part, and of the test part; with a log, those it has a reward of."""
    test_rounds: int
    first_round: int
    """The test part's first, numbered from the data's first."""
    rounds: np.ndarray
    """The rounds of the test part in which an arm was on offer, numbered from the data's first."""
    played: Mapping[str, Played]
    """By label of policy."""
    yardsticks: Mapping[str, Yardstick]
    predictability: Predictability
    fit: Fit
    """The model, learned from the training part, of rewards less their mean."""
    warm: bool
    seed: int
    compared: str | None
    """The baseline that was asked for."""
    notes: tuple[str, ...]

    def mean(self, label: str) -> float:
        """Reward per round of a policy or yardstick."""
        return _mean(*self._pair(label))

    def cumulative(self, label: str, less: str | None = None) -> np.ndarray:
        """Reward so far in every round of the test part, less that of another if one is named."""
        other = 0.0 if less is None else self._pair(less)[0]
        return np.cumsum(self._pair(label)[0] - other)

    @property
    def baseline(self) -> str:
        """Whom policies are compared with: as asked for, or the best without a Kalman filter.

        Logs are compared with the logging policy alone: two policies meet different rounds.
        """
        if self.logged:
            return "logging"
        if self.compared is not None:
            return self.compared
        rivals = [label for label in self.played if not policies.filters(label)]
        return max(rivals, key=self.mean) if rivals else "random"

    def rows(self, *, confidence: float = 0.95) -> list[Row]:
        """The table, highest mean first.

        Intervals are of circular block bootstraps of the rounds. They say how sure a mean, or a
        paired difference, is for rounds like these; not how another history had gone.

        Args:
            confidence: of the intervals.
        """
        confidence = errors.number(confidence, "confidence", low=0, high=1, strict=True)
        baseline = self.baseline
        base = self._pair(baseline)
        found = []
        for label in (*self.played, *self.yardsticks):
            earned, counted = self._pair(label)
            low, high, _ = self._interval((earned, counted), None, confidence)
            difference, ends, verdict = math.nan, (math.nan, math.nan), ""
            if label != baseline:
                difference = _mean(earned, counted) - _mean(*base)
                *ends_, blocks = self._interval((earned, counted), base, confidence)
                ends = (ends_[0], ends_[1])
                verdict = _verdict(*ends, blocks, confidence)
            found.append(
                Row(
                    label,
                    "policy" if label in self.played else "yardstick",
                    None if label in self.played else self.yardsticks[label].arm,
                    _mean(earned, counted),
                    low,
                    high,
                    float(earned.sum()),
                    self._spread(label),
                    float(counted.sum()),
                    difference,
                    *ends,
                    verdict,
                )
            )
        return sorted(found, key=lambda row: -row.mean if row.mean == row.mean else math.inf)

    def _pair(self, label: str) -> tuple[np.ndarray, np.ndarray]:
        errors.closest(label, "label", [*self.played, *self.yardsticks])
        both = self.played[label] if label in self.played else self.yardsticks[label]
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
        """Ends, and how many blocks there are."""
        columns = [*pair, *(base or ())]
        if any(part.sum() == 0 for part in columns[1::2]) or len(pair[0]) < 2:
            return math.nan, math.nan, 1.0
        # What a round adds to the estimate: its memory says how long blocks must be.
        share = _share(*pair) - (0.0 if base is None else _share(*base))
        block = statistics.block_length(share)
        drawn = statistics.block_means(np.stack(columns, axis=1), block, seed=self.seed)
        with np.errstate(invalid="ignore", divide="ignore"):  # a resample without a match
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
        """Everything but the per-round rewards, as JSON has it."""
        return {
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
                "summary": self.fit.summary(),
                "states": self.fit.n_states,
                "spectral_radius": _plain(self.fit.spectral_radius),
                "reward_std": float(self.fit.model.reward_std),
                "selection": None
                if self.fit.selection is None
                else dict(
                    zip(
                        (one.label for one in self.fit.selection.candidates),
                        map(_plain, self.fit.selection.scores),
                        strict=True,
                    )
                ),
                "converged": self.fit.converged,
            },
            "predictability": {
                name: _plain(value) for name, value in self.predictability._asdict().items()
            },
            "baseline": self.baseline,
            "rows": [
                {name: _plain(value) for name, value in row._asdict().items()}
                for row in self.rows()
            ],
            "shares": {
                label: dict(zip(map(str, self.names), played.shares.tolist(), strict=True))
                for label, played in self.played.items()
            },
            "notes": list(self.notes),
        }


def _mean(earned: np.ndarray, counted: np.ndarray) -> float:
    whole = float(counted.sum())
    return float(earned.sum()) / whole if whole > 0 else math.nan


def _share(earned: np.ndarray, counted: np.ndarray) -> np.ndarray:
    return np.asarray((earned - _mean(earned, counted) * counted) / counted.mean())


def _verdict(low: float, high: float, blocks: float, confidence: float) -> str:
    if math.isnan(low) or 2.0 ** (1 - blocks) > 1 - confidence:
        return "too few to tell"
    if low > 0:
        return "better"
    return "worse" if high < 0 else "no difference seen"


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
