"""The result of a replay: rewards per round, a table with paired intervals, and its report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, policies, statistics
from driftbandit.identify.fitting import Fit
from driftbandit.identify.structured.fitting import StructuredFit
from driftbandit.report import (
    Block,
    Cell,
    Figure,
    Points,
    Report,
    Table,
    Text,
    figures,
    storable,
    verdict_cell,
)
from driftbandit.report.numbers import estimate
from driftbandit.system import Name
from driftbandit.system import label as arm_label

# Reference strategies in words; {} is the arm.
MEANINGS = {
    "best_arm": "{} in hindsight",
    "training_leader": "{}, the best arm of the training part",
    "full_information": "the arm with the highest prediction of a filter that sees all rewards",
    "per_round_best": "the best arm of every round",
    "random": "every arm with equal probability",
    "logging": "the choices of the log",
}
# Reference strategies in the figure, and their lines; the best arm of each round is far above.
SHOWN = {
    "best_arm": ("best arm, in hindsight", "--"),
    "training_leader": ("best arm of the training part", ":"),
    "full_information": ("filter that sees all arms", "-."),
}
DEPTH = 0.4  # how far below zero the axis may go, as a share of its height above zero


Pair = tuple[np.ndarray, np.ndarray]  # rewards per round, and which rounds count


class Played(NamedTuple):
    """One policy on the test part, averaged over its runs."""

    earned: np.ndarray  # per round; with a log: zero where the choice was not the logged arm
    counted: np.ndarray  # per round: 1; with a log: the share of runs that chose the logged arm
    means: np.ndarray  # mean reward of each run; NaN if none of its rounds counts
    shares: np.ndarray  # how often each arm was chosen: k numbers that add up to 1


class Reference(NamedTuple):
    """A strategy that needs no learning."""

    earned: np.ndarray  # per round; zero where the log does not show what it would have earned
    counted: np.ndarray  # per round: 1 where that is known, else 0
    arm: Name | None = None  # the arm it plays, if that is always the same one


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
    mean: float  # reward per round; with a log, per round that counts
    low: float  # low and high: interval of that mean
    high: float
    total: float  # reward of all rounds; with a log, of those that count
    spread: float  # standard deviation of the mean over the policy's runs; NaN if there is only one
    counted: float  # rounds that count: all; with a log, those in which it chose the logged arm
    difference: float  # mean minus the baseline's; NaN for the baseline itself
    difference_low: float  # interval of that difference, paired by rounds
    difference_high: float
    verdict: str  # from that interval: "better", "worse", "no difference seen" or "too few to tell"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Every policy on the test part of real data."""

    title: str
    unit: str
    names: tuple[Name, ...]  # of the arms
    logged: bool  # whether each round shows one arm only
    train_rounds: int  # rounds of the training part; with a log, those that have a reward
    test_rounds: int  # likewise of the test part
    first_round: int  # first round of the test part, counted from the start of the data
    rounds: np.ndarray  # rounds of the test part that offered an arm, from the start of the data
    played: Mapping[str, Played]  # by label of policy
    references: Mapping[str, Reference]  # reference strategies, by name
    predictability: Predictability
    fit: (
        Fit | StructuredFit
    )  # the model of rewards minus their mean, learned from the training part
    warm: bool
    seed: int
    compared: str | None  # the baseline that was asked for
    notes: tuple[str, ...]

    def mean(self, label: str) -> float:
        """Reward per round of a policy or reference strategy."""
        return _mean(*self.pair(label))

    def cumulative(self, label: str, less: str | None = None) -> np.ndarray:
        """Cumulative reward over the test part, minus that of another label if one is given."""
        other = 0.0 if less is None else self.pair(less)[0]
        return np.cumsum(self.pair(label)[0] - other)

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
        """
        confidence = errors.number(confidence, "confidence", low=0, high=1, strict=True)
        baseline, found = self.baseline, []
        base = self.pair(baseline)
        for label in (*self.played, *self.references):
            earned, counted = pair = self.pair(label)
            low, high, _ = self._interval(pair, None, confidence)
            difference, verdict = (math.nan, math.nan, math.nan), ""
            if label != baseline:
                least, most, blocks = self._interval(pair, base, confidence)
                difference = _mean(*pair) - _mean(*base), least, most
                verdict = _verdict(least, most, blocks, confidence)
            kind, arm, spread = "policy", None, math.nan
            if label in self.references:
                kind, arm = "reference", self.references[label].arm
            else:
                means = self.played[label].means
                means = means[np.isfinite(means)]
                spread = float(means.std(ddof=1)) if len(means) > 1 else math.nan
            mean, sums = _mean(*pair), (float(earned.sum()), spread, float(counted.sum()))
            found.append(Row(label, kind, arm, mean, low, high, *sums, *difference, verdict))
        return sorted(found, key=lambda row: math.inf if math.isnan(row.mean) else -row.mean)

    def pair(self, label: str) -> Pair:
        """Rewards per round, and which rounds count."""
        errors.closest(label, "label", [*self.played, *self.references])
        both = self.played[label] if label in self.played else self.references[label]
        return both.earned, both.counted

    def _interval(
        self, pair: Pair, base: Pair | None, confidence: float
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
        less = f"minus {self.baseline}"
        lines = [f"{'':<20} {'mean reward':>12} {'95 % interval':>22} {less:>26}"]
        for row in self.rows():
            ends = f"{row.low:.4g} to {row.high:.4g}"
            apart = f"{row.difference_low:.3g} to {row.difference_high:.3g}"
            apart = f"{row.difference:+.3g} ({apart})" if row.label != self.baseline else ""
            lines.append(f"{row.label:<20} {row.mean:>12.4g} {ends:>22} {apart:>26}")
        return "\n".join(lines)

    def to_document(self) -> dict[str, Any]:
        """Everything but the rewards per round, ready for JSON."""
        fit, selection = self.fit, None
        if (choice := fit.selection) is not None:
            labels = (one.label for one in choice.candidates)
            selection = dict(zip(labels, choice.scores, strict=True))
        model = {
            "summary": fit.summary(),
            "states": fit.n_states,
            "spectral_radius": fit.spectral_radius,
            "reward_std": float(fit.model.reward_std),
            "selection": selection,
            "converged": fit.converged,
        }
        same = ("unit", "logged", "train_rounds", "test_rounds", "warm", "seed")
        document: dict[str, Any] = {"data": self.title, "arms": list(self.names)}
        document |= {name: getattr(self, name) for name in same}
        document |= {
            "counted_rounds": len(self.rounds),
            "model": model,
            "predictability": self.predictability._asdict(),
            "baseline": self.baseline,
            "rows": [row._asdict() for row in self.rows()],
            "shares": {
                label: dict(zip(map(str, self.names), played.shares.tolist(), strict=True))
                for label, played in self.played.items()
            },
            "notes": list(self.notes),
        }
        return dict(storable(document))


def _mean(earned: np.ndarray, counted: np.ndarray) -> float:
    whole = float(counted.sum())
    return float(earned.sum()) / whole if whole > 0 else math.nan


def _share(earned: np.ndarray, counted: np.ndarray) -> np.ndarray:
    return np.asarray((earned - _mean(earned, counted) * counted) / counted.mean())


def _verdict(low: float, high: float, blocks: float, confidence: float) -> str:
    """Of an interval of a gain, where more is better."""
    if math.isnan(low):
        return statistics.TOO_FEW
    return statistics.verdict(-high, -low, blocks, confidence)


# The report


def report(result: Replay, name: str = "") -> Report:
    """The report of a replay; by default the data's name is its title."""
    name = name or result.title
    unit = f", {result.unit}" if result.unit else ""
    columns = ["", "", "mean", "95 %", f"− {result.baseline}", "95 % of −"]
    table = Table(
        f"Reward per round{unit}, over {len(result.rounds)} test rounds",
        columns + ["matched"] * result.logged,
        [_cells(row, result.logged) for row in result.rows()],
    )
    figure = Figure(
        f"Cumulative gain over {_opponent(result)}",
        "One line for each policy and reference strategy, over the rounds of the test part.",
        lambda: draw(result),
        "gain",
    )
    blocks: list[Block] = [table, *(Text(text, "dim") for text in explanation(result)), figure]
    if result.notes:
        blocks.append(Points(result.notes, "bad"))
    return Report(f"Replay of {name}", "", blocks, result.to_document() | {"data": name})


def _cells(row: Row, logged: bool) -> list[Cell]:
    mean, ends = estimate(row.mean, row.low, row.high)
    difference = apart = ""
    if row.verdict:
        paired = row.difference, row.difference_low, row.difference_high
        difference, apart = estimate(*paired, signed=True)
    entries = [(mean, row.mean), (ends, row.low), (difference, row.difference), (apart, None)]
    entries += [(f"{row.counted:,.0f}", row.counted)] * logged
    cells = [Cell(text, sort if text else None) for text, sort in entries]
    if row.kind != "policy":
        cells = [dataclasses.replace(cell, tone="dim") for cell in cells]
    return [Cell(row.label, tone=cells[0].tone), verdict_cell(row.verdict, symbol=True), *cells]


def explanation(result: Replay) -> list[str]:
    """How to read the table, in sentences."""
    explained, n_states = result.predictability, result.fit.n_states
    model = f"A model with {n_states} state{'s' * (n_states > 1)}"
    start = "Every policy played them first" if result.warm else "Every policy starts after them"
    share = (
        f"a filter that sees every reward explains {100 * explained.rewards:.1f} % of the variance"
    )
    if explained.differences is not None:
        share += (
            f" of rewards, and {100 * explained.differences:.1f} % of the variance between arms"
        )
    meanings = [
        f"{name} is {MEANINGS[name].format('' if one.arm is None else arm_label(one.arm))}"
        for name, one in result.references.items()
    ]
    said = [
        f"{model if n_states else 'A model without drift'}, learned from {result.train_rounds} "
        f"rounds. {start}. One round ahead in the test part, {share}.",
        f"−: mean reward minus that of {result.baseline}, with its interval. ▲ better, ▼ worse, "
        "≈ no difference seen, ? too few rounds to tell. Intervals: block bootstrap over rounds.",
        f"Reference strategies: {'; '.join(meanings)}.",
    ]
    if result.logged:
        said.append("matched: rounds in which the choice was the logged arm; only these count.")
    return said


def gains(result: Replay) -> dict[str, np.ndarray]:
    """Cumulative reward minus that of random play; for a log, minus the logging policy's.

    For a log it estimates the gain if all rounds counted: Σ (X − m) / p over the rounds in which
    the choice was the logged arm, with p their share and m the mean of the log.
    """
    shown = [*result.played, *(name for name in SHOWN if name in result.references)]
    if not result.logged:
        return {label: result.cumulative(label, "random") for label in shown}
    mean, found = result.mean("logging"), {}
    for label in shown:
        earned, counted = result.pair(label)
        if counted.any():
            found[label] = np.cumsum(earned - mean * counted) / counted.mean()
    return found


def draw(result: Replay) -> Any:
    """The figure of `gains`; it cuts off lines that end far below zero."""
    lines = gains(result) or {"": np.zeros(len(result.rounds))}
    figure, [axis] = figures.grid(1, 1, 8.4, 4.6)
    bottom, top = _range(list(lines.values()))
    span = top - bottom
    axis.set_ylim(bottom - 0.03 * span, top + 0.03 * span)
    axis.axhline(0, color="#999999", lw=0.8)
    rounds = result.rounds - result.first_round
    looks = figures.styles(lines, known=policies.available(), black=tuple(SHOWN))
    for label, line in sorted(lines.items(), key=lambda item: -item[1][-1]):
        below = f" ↓ {line[-1]:,.0f}" if line[-1] < bottom - 0.03 * span else ""
        style = {"lw": 2.0 if policies.filters(label) else 1.1, "ms": 4, "markevery": 0.1}
        style |= looks[label] | ({"ls": SHOWN[label][1]} if label in SHOWN else {})
        axis.plot(rounds, line, label=title(result, label) + below, **style)
    unit = f", {result.unit}" if result.unit else ""
    axis.set_title(f"Cumulative gain over {_opponent(result)}{unit}", loc="left", fontsize=10)
    xlabel = f"round of the test part, after {result.train_rounds} of training"
    axis.set(xlabel=xlabel, xlim=(0, max(int(rounds[-1]), 1)))
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _opponent(result: Replay) -> str:
    return "the logging policy" if result.logged else "random play"


def _range(lines: list[np.ndarray]) -> tuple[float, float]:
    """Both ends of the vertical axis."""
    highest = max(0.0, *(float(line.max()) for line in lines))
    lowest = min(0.0, *(float(line[-1]) for line in lines))
    least = max(lowest, -DEPTH * highest) if highest > 0 else lowest
    inside = [float(line.min()) for line in lines if line[-1] >= least]
    lowest = min(least, *inside)
    return lowest, max(highest, lowest + 1e-12)


def title(result: Replay, label: str) -> str:
    """What the figure calls a policy or reference strategy."""
    if label not in result.references:
        return policies.title(label)
    arm = result.references[label].arm
    return SHOWN[label][0] if arm is None else f"{SHOWN[label][0]}: {arm_label(arm)}"
