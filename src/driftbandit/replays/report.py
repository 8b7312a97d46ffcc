"""What a replay shows: the table, how to read it, and the gain over chance round by round."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import policies
from driftbandit.replays.result import Replay, Row
from driftbandit.report import (
    Block,
    Cell,
    Figure,
    Points,
    Report,
    Table,
    Text,
    Tone,
    figures,
    numbers,
    verdict_cell,
)
from driftbandit.system import label as arm_label

__all__ = ["draw", "gains", "report"]

MEANINGS = {
    "best_arm": "{} in hindsight",
    "training_leader": "{}, the best arm of the training part",
    "full_information": "the arm with the highest prediction of a filter that sees all rewards",
    "per_round_best": "the best arm of every round",
    "random": "every arm with equal probability",
    "logging": "the choices of the log",
}
"""Reference strategies in words; {} is the arm."""
SHOWN = {
    "best_arm": ("best arm, in hindsight", "--"),
    "training_leader": ("best arm of the training part", ":"),
    "full_information": ("filter that sees all arms", "-."),
}
"""Reference strategies in the figure, and their lines; the best arm of each round is far above."""
DEPTH = 0.4
"""How far below zero the axis may go, as a share of its height above zero."""


def report(result: Replay, name: str = "") -> Report:
    """The report of a replay.

    Args:
        result: from `replay`.
        name: of the data; by default its title.
    """
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
    mean, ends = numbers.estimate(row.mean, row.low, row.high)
    difference = apart = ""
    if row.verdict:
        difference, apart = numbers.estimate(
            row.difference, row.difference_low, row.difference_high, signed=True
        )
    entries = [(mean, row.mean), (ends, row.low), (difference, row.difference), (apart, None)]
    entries += [(f"{row.counted:,.0f}", row.counted)] * logged
    tone: Tone = "dim" if row.kind != "policy" else ""
    cells = [Cell(text, sort if text else None, tone=tone) for text, sort in entries]
    return [Cell(row.label, tone=tone), verdict_cell(row.verdict, symbol=True), *cells]


def explanation(result: Replay) -> list[str]:
    """How to read the table, in sentences."""
    told, n_states = result.predictability, result.fit.n_states
    model = f"A model with {n_states} state{'s' * (n_states > 1)}"
    start = "Every policy played them first" if result.warm else "Every policy starts after them"
    share = f"a filter that sees every reward explains {100 * told.rewards:.1f} % of the variance"
    if told.differences is not None:
        share += f" of rewards, and {100 * told.differences:.1f} % of the variance between arms"
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

    For a log it is an estimate: Σ (X − m) / p over the rounds in which the choice was the logged
    arm, p their share, m the mean of the log: the gain if the policy played in all rounds.
    """
    shown = [*result.played, *(name for name in SHOWN if name in result.references)]
    if not result.logged:
        return {label: result.cumulative(label, "random") for label in shown}
    mean, found = result.mean("logging"), {}
    for label in shown:
        both = result.played[label] if label in result.played else result.references[label]
        if both.counted.any():
            found[label] = np.cumsum(both.earned - mean * both.counted) / both.counted.mean()
    return found


def draw(result: Replay) -> Any:
    """The figure of `gains`; a line that ends far below zero leaves it."""
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
        style = {"lw": 2.0 if policies.filters(label) else 1.1, "ms": 4, "markevery": 0.1} | looks[
            label
        ]
        if label in SHOWN:
            style["ls"] = SHOWN[label][1]
        axis.plot(rounds, line, label=title(result, label) + below, **style)
    unit = f", {result.unit}" if result.unit else ""
    axis.set_title(f"Cumulative gain over {_opponent(result)}{unit}", loc="left", fontsize=10)
    axis.set_xlabel(f"round of the test part, after {result.train_rounds} of training")
    axis.set_xlim(0, max(int(rounds[-1]), 1))
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
