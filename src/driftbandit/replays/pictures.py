"""The figure of a replay: what each policy gained over chance, as the test part went on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from driftbandit import plots
from driftbandit.io.atomic import write_whole
from driftbandit.policies import TITLES, available, filters
from driftbandit.replays.result import Replay
from driftbandit.system import label as named

__all__ = ["draw", "gains", "save"]

SHOWN = {
    "best_arm": "best arm, in hindsight",
    "training_leader": "best arm of the training part",
    "full_information": "filter that sees all arms",
}
"""Yardsticks in the figure; the best of each round is far above it."""
DEPTH = 0.4
"""How far below zero the axis goes at most, as a share of its height above."""
COLORS = (*plots.COLORS[:7], "#6A3D9A", "#A50026")
LINE = 0.045
"""Height of a label, as a share of the axis."""


def gains(result: Replay) -> dict[str, np.ndarray]:
    """Reward so far less that of random play; with a log, less the logging policy's, as estimated.

    Σ (X − m) / p over the rounds in which a choice was the logged one, p their share, m the log's
    mean: what the policy gains if it is played in all rounds.
    """
    shown = [*result.played, *(name for name in SHOWN if name in result.yardsticks)]
    if not result.logged:
        return {label: result.cumulative(label, "random") for label in shown}
    mean, found = result.mean("logging"), {}
    for label in shown:
        both = result.played[label] if label in result.played else result.yardsticks[label]
        if both.counted.any():
            found[label] = np.cumsum(both.earned - mean * both.counted) / both.counted.mean()
    return found


def draw(result: Replay) -> Figure:
    """The figure."""
    lines = gains(result)
    if not lines:
        lines = {"": np.zeros(len(result.rounds))}
    with mpl.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8.4, 4.6), layout="constrained")
        axis: Any = figure.subplots()
        bottom, highest = _range(list(lines.values()))
        span = highest - bottom
        axis.set_ylim(bottom - 0.03 * span, highest + 0.03 * span)
        axis.axhline(0, color="#999999", lw=0.8)
        rounds = result.rounds - result.first_round
        ends = []
        own = [label for label in lines if label in result.played]
        for label, line in lines.items():
            style = _style(label, own)
            axis.plot(rounds, line, **style)
            ends.append((float(line[-1]), _title(result, label), style["color"]))
        _label(axis, ends, bottom, span)
        against = "the logging policy" if result.logged else "random play"
        unit = f", {result.unit}" if result.unit else ""
        axis.set_title(f"Gain over {against} so far{unit}", loc="left", fontsize=10)
        axis.set_xlabel(f"round of the test part, after {result.train_rounds} of training")
        axis.set_xlim(0, max(int(rounds[-1]), 1))
        axis.grid(alpha=0.25)
        axis.tick_params(labelsize=8)
    return figure


def _range(lines: list[np.ndarray]) -> tuple[float, float]:
    """Where the axis begins and ends: a line that ends far below zero leaves it."""
    highest = max(0.0, *(float(line.max()) for line in lines))
    lowest = min(0.0, *(float(line[-1]) for line in lines))
    least = max(lowest, -DEPTH * highest) if highest > 0 else lowest
    inside = [float(line.min()) for line in lines if line[-1] >= least]
    lowest = min(least, *inside)
    return lowest, max(highest, lowest + 1e-12)


def save(result: Replay, path: Path) -> None:
    """Write the figure to a file: png, svg or pdf."""
    write_whole(path, plots.save(draw(result), path))


def _title(result: Replay, label: str) -> str:
    if label in result.yardsticks:
        arm = result.yardsticks[label].arm
        return SHOWN[label] if arm is None else f"{SHOWN[label]}: {named(arm)}"
    return TITLES.get(label, label)


def _style(label: str, played: list[str]) -> dict[str, Any]:
    """A policy has the same color in every figure, and dashes where its name stands before."""
    if label not in played:
        dashes = {"best_arm": "--", "training_leader": ":"}
        return {"color": "#333333", "lw": 1.1, "ls": dashes.get(label, "-.")}
    name, names = label.split("(")[0], [other.split("(")[0] for other in played]
    known = [each for each in available() if each not in ("kalman_oracle", "random")]
    known += [each for each in names if each not in known]
    again = names[: played.index(label)].count(name)
    return {
        "color": COLORS[known.index(name) % len(COLORS)],
        "lw": 2.0 if filters(name) else 1.1,
        "ls": (0, (5, again)) if again else "-",
    }


def spread(places: list[float], step: float) -> list[float]:
    """Rising places moved as little as can be, by least squares, to be ``step`` apart.

    Example:
        >>> spread([0.0, 0.0, 5.0], 2.0)
        [-1.0, 1.0, 5.0]
    """
    groups: list[tuple[float, int]] = []  # mean and size of neighbors that move as one
    for i, place in enumerate(places):
        mean, size = place - i * step, 1
        while groups and groups[-1][0] > mean:
            before, many = groups.pop()
            mean, size = (mean * size + before * many) / (size + many), size + many
        groups.append((mean, size))
    means = [mean for mean, size in groups for _ in range(size)]
    return [mean + i * step for i, mean in enumerate(means)]


def _label(axis: Any, ends: list[tuple[float, str, str]], bottom: float, span: float) -> None:
    """Names beside the ends of lines, moved apart where they would overlap."""
    ends = sorted(ends)
    places = spread([max(end, bottom) for end, _, _ in ends], LINE * span)
    for (end, name, color), place in zip(ends, places, strict=True):
        below = f"  ↓ {end:,.0f}" if end < bottom - 0.03 * span else ""
        axis.annotate(
            name + below,
            (1.0, place),
            (6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=color,
            annotation_clip=False,
        )
