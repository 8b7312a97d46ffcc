"""The report of a replay: its table, how to read it, and the figure of cumulative gains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandit import policies, statistics
from driftbandit.identify.structured.comparison import drifts
from driftbandit.io.logs import split_notes
from driftbandit.replays.result import ALWAYS, LEADER, LOGGING, Replay, Row
from driftbandit.report import Block, Cell, Figure, Points, Report, Table, Text, verdict_cell
from driftbandit.report.figures import grid, styles
from driftbandit.report.numbers import estimate, percent, short
from driftbandit.system import label as arm_label

# Reference strategies in words; {} is the arm, or what was chosen on the training part.
MEANINGS = {
    "best_arm": "{} in hindsight",
    LEADER: "{}, the best arm of the training part",
    "full_information": "the arm with the highest prediction of a filter that sees all rewards",
    "per_round_best": "the best arm of every round",
    "random": "every arm with equal probability",
    "last_value": "the arm whose last seen reward is highest",
    "epsilon_greedy": "the arm with the highest forgotten mean, or a random one ({})",
    "seasonal_mean": "the arm with the highest seasonal mean plus last deviation ({})",
    LOGGING: "what the log itself earned",
}
MOST_ARMS = 8  # fixed arms of a log in the table: the best ones
FOLLOWS = (
    "every policy learns from all rewards of the log and names an arm before each one; how it "
    "explores by itself is not tested."
)
METHODS = {
    "dr": f"Doubly robust estimates: {FOLLOWS}",
    "ips": f"Inverse propensity scores: {FOLLOWS}",
    "rejection": (
        "Every policy learns only where its choice is the logged arm: it sees {} of the rewards. "
        "By itself it would see all of them, so its row is a cautious estimate. Fixed arms learn "
        "nothing and lose nothing by this: if one is as high as a policy, that does not speak for "
        "the arm. --method dr lets policies learn from every reward of the log."
    ),
}
TOO_FEW = (
    f"{statistics.TOO_FEW}: there is no interval or no verdict, because the data shows too little "
    "of the row, or of its difference. Do not rank such rows by their means. --json says why."
)
LOG_COLUMNS = (
    "n eff.: effective number of rounds in which the log played what the policy names. Γ: if the "
    "odds p/(1 − p) of the logged chances are wrong by this factor, because the log also looked at "
    "something that moves the rewards, the verdict may be gone."
)
CHANCES = {
    "logged": "Chances: from the log.",
    "uniform": "Chances: the same for all arms, as you said.",
    "estimated": "Chances: how often the log played each arm.",
}
# Reference strategies in the figure, and their lines; the best arm of each round is far above.
SHOWN = {
    "best_arm": ("best arm, in hindsight", "--"),
    LEADER: ("best arm of the training part", ":"),
    "full_information": ("filter that sees all arms", "-."),
}
DEPTH = 0.4  # how far below zero the axis may go, as a share of its height above zero


def report(result: Replay, name: str = "") -> Report:
    """The report of a replay; by default the data's name is its title."""
    name = name or result.title
    columns = ["", "", "mean", "95%", f"− {result.baseline}", "95% of −"]
    counted = f"{len(result.rounds)} test {'rewards' if result.logged else 'rounds'}"
    table = Table(
        f"Reward per round{_unit(result)}, over {counted}",
        columns + ["n eff.", "Γ"] * result.logged,
        [_cells(row, result.logged) for row in _shown_rows(result.rows(), result.baseline)],
    )
    figure = Figure(
        _gain(result),
        "One line for each policy and reference strategy of which the data tells enough, over the "
        "rounds of the test part.",
        lambda: draw(result),
        "gain",
    )
    blocks: list[Block] = [table, *(Text(text, "dim") for text in explanation(result)), figure]
    plain, warnings = split_notes(result.notes)
    blocks += [Points(plain, "dim")] if plain else []
    blocks += [Points(warnings, "bad")] if warnings else []
    return Report(f"Replay of {name}", "", blocks, result.to_document() | {"data": name})


def _unit(result: Replay) -> str:
    return f", {result.unit}" if result.unit else ""


def _shown_rows(rows: list[Row], baseline: str) -> list[Row]:
    """All rows, but only the best of many single arms: those first of which enough is known."""
    single = [row for row in rows if row.label.startswith(ALWAYS)]
    single.sort(key=lambda row: not row.trusted)
    hidden = {row.label for row in single[MOST_ARMS:]} - {baseline}
    return [row for row in rows if row.label not in hidden]


def _cells(row: Row, logged: bool) -> list[Cell]:
    mean, ends = estimate(row.mean, row.low, row.high)
    if logged and row.label == LOGGING:
        ends = "known"
    elif not row.trusted:
        ends = statistics.TOO_FEW
    paired = row.difference, row.difference_low, row.difference_high
    difference, apart = estimate(*paired, signed=True) if row.verdict else ("", "")
    if row.verdict == statistics.TOO_FEW:
        apart = statistics.TOO_FEW
    entries = [(row.label, None), (mean, row.mean), (ends, row.low)]
    entries += [(difference, row.difference), (apart, None)]
    if logged:
        text = "" if math.isnan(row.tolerance) else short(row.tolerance, 3)
        entries += [(f"{row.effective:,.0f}", row.effective), (text, row.tolerance)]
    name, *cells = (
        Cell(text, sort, tone="" if row.kind == "policy" else "dim") for text, sort in entries
    )
    verdict = row.verdict if row.trusted else statistics.TOO_FEW
    return [name, verdict_cell(verdict, symbol=True), *cells]


def explanation(result: Replay) -> list[str]:
    """How to read the table, in sentences."""
    rows, explained, n_states = result.rows(), result.predictability, result.fit.n_states
    shown = _shown_rows(rows, result.baseline)
    model = f"A model with {n_states} state{'s' * (n_states > 1)}"
    if not drifts(result.fit.structure):
        model = "A model without drift"
    first = "learned from" if result.method in ("dr", "ips") else "played"
    start = f"Every policy {first} them first" if result.warm else "Every policy starts after them"
    share = f"explains {100 * explained.rewards:.1f}% of the variance"
    if explained.differences is not None:
        share += f" of rewards, and {100 * explained.differences:.1f}% of the variance between arms"
    meanings = [
        f"{name} is {MEANINGS[name].format(own.setting if own.arm is None else arm_label(own.arm))}"
        for name, own in result.references.items()
        if name in MEANINGS
    ]
    counted = "rewards" if result.logged else "rounds"
    intervals = "block bootstrap over rounds"
    if result.logged:
        intervals = "for what the arms would have paid in these very rounds"
    sentences = [
        f"{model}, learned from {result.train_rounds} {counted}. {start}. One round ahead in the "
        f"test part, a filter that sees every reward {share}.",
        f"−: mean reward minus that of {result.baseline}, with its interval. ▲ better, ▼ worse, "
        "≈ no difference seen, ? too few to tell. Rows whose difference may be zero count as "
        f"equal; --baseline NAME compares with another row. Intervals: {intervals}.",
        f"Reference strategies: {'; '.join(meanings)}.",
    ]
    if result.chances is not None:
        seen = percent(result.feedback or 0.0)
        sentences.insert(1, f"{METHODS[result.method].format(seen)} {CHANCES[result.chances]}")
        if hidden := len(rows) - len(shown):
            sentences[-1] += f" {hidden} more arms are left out."
        sentences.append(LOG_COLUMNS)
    if any(row.reason for row in shown):
        sentences.append(TOO_FEW)
    return sentences


def gains(result: Replay) -> dict[str, np.ndarray]:
    """Cumulative reward minus that of random play; for a log, minus what the log earned."""
    shown = [*result.played, *(name for name in SHOWN if name in result.references)]
    opponent = LOGGING if result.logged else "random"
    known = [label for label in shown if not result.doubt(label)]
    return {label: result.cumulative(label, opponent) for label in known}


def draw(result: Replay) -> Any:
    """The figure of `gains`; it cuts off lines that end far below zero."""
    lines = gains(result)
    figure, [axis] = grid(1, 1, 8.4, 4.6)
    bottom, top = _range(list(lines.values()) or [np.zeros(1)])
    span = top - bottom
    axis.set_ylim(bottom - 0.03 * span, top + 0.03 * span)
    axis.axhline(0, color="#999999", lw=0.8)
    rounds = result.rounds - result.first_round
    looks = styles(lines, known=policies.available(), black=tuple(SHOWN))
    for label, line in sorted(lines.items(), key=lambda item: -item[1][-1]):
        below = f" ↓ {line[-1]:,.0f}" if line[-1] < bottom - 0.03 * span else ""
        style = {"lw": 2.0 if policies.filters(label) else 1.1, "ms": 4, "markevery": 0.1}
        style |= looks[label] | ({"ls": SHOWN[label][1]} if label in SHOWN else {})
        axis.plot(rounds, line, label=title(result, label) + below, **style)
    axis.set_title(_gain(result) + _unit(result), loc="left", fontsize=10)
    xlabel = f"round of the test part, after {result.train_rounds} of training"
    axis.set(xlabel=xlabel, xlim=(0, max(int(rounds[-1]), 1)))
    axis.grid(alpha=0.25)
    if lines:
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    else:
        axis.text(0.5, 0.8, statistics.TOO_FEW, transform=axis.transAxes, ha="center")
    return figure


def _gain(result: Replay) -> str:
    if result.logged:
        return "Cumulative gain over the log, estimated"
    return "Cumulative gain over random play"


def _range(lines: list[np.ndarray]) -> tuple[float, float]:
    """Both ends of the vertical axis."""
    highest = max(0.0, *(float(line.max()) for line in lines))
    lowest = min(0.0, *(float(line[-1]) for line in lines))
    least = max(lowest, -DEPTH * highest) if highest > 0 else lowest
    inside = [float(line.min()) for line in lines if line[-1] >= least]
    lowest = min([least, *inside]) if inside else lowest  # if all end far below, all are shown
    return lowest, max(highest, lowest + 1e-12)


def title(result: Replay, label: str) -> str:
    """What the figure calls a policy or reference strategy."""
    if label not in result.references:
        return policies.title(label)
    arm = result.references[label].arm
    return SHOWN[label][0] if arm is None else f"{SHOWN[label][0]}: {arm_label(arm)}"
