"""`drift.gif`: drifting payoffs, IDEA on the highest line, UCB on an average of the past."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from . import canvas
from .play import Play, circle, played

SIZE = 720, 520
ROUNDS, STRIDE, HOLD, SEEDS = 120, 2, 2200, 99
STEPS = [*range(STRIDE, ROUNDS, STRIDE), ROUNDS]
"""How many rounds each frame shows."""


class Run(NamedTuple):
    """The same states and the same noise, played twice."""

    seed: int
    idea: Play
    ucb: Play


@functools.cache
def run() -> Run:
    """Of 99 runs, the one whose difference in regret is the median: a typical one."""
    model, arms = circle(0.99, 60, 0.02, 0.6, [0, 72, 144, 216, 288])
    runs = [
        Run(s, *(played(model, arms, p, ROUNDS, s) for p in ("idea", "ucb"))) for s in range(SEEDS)
    ]
    return sorted(runs, key=lambda r: r.ucb.regret[-1] - r.idea.regret[-1])[SEEDS // 2]


@canvas.styled
def frame(step: int, scale: float = 1.0) -> Figure:
    """The figure after so many rounds."""
    run_ = run()
    figure = canvas.figure(*SIZE, scale)
    top, low = figure.subplots(2, 1, sharex=True, height_ratios=[2.3, 1])
    figure.subplots_adjust(left=0.085, right=0.985, top=0.83, bottom=0.115, hspace=0.12)
    figure.text(0.02, 0.935, "Five arms whose payoffs drift", fontsize=18, weight="bold")
    seen = np.arange(step)
    for line, color in zip(run_.idea.expected.T, canvas.ARMS, strict=True):
        top.plot(seen, line[:step], color=color, lw=2, alpha=0.55, solid_capstyle="round")
    players = ("IDEA", run_.idea, canvas.BLUE, "o", 34), ("UCB", run_.ucb, canvas.RED, "X", 40)
    for _, play, color, marker, size in reversed(players):
        points = play.expected[seen, play.choices[:step]]
        top.scatter(seen, points, s=size, color=color, marker=marker, lw=0, zorder=3)
        low.plot(seen, play.regret[:step], color=color, lw=3)
    lost = [play.regret[step - 1] for _, play, *_ in players]
    most = 1.12 * run_.ucb.regret[-1]
    heights = canvas.spaced(lost, 0.2 * most)
    for (name, _, color, *_), value, height in zip(players, lost, heights, strict=True):
        low.text(step + 1, height, f"{name} {value:.0f}", color=color, va="center", weight="bold")
    spread = 1.08 * np.abs(run_.idea.expected).max()
    top.set(xlim=(-1, ROUNDS + 20), ylim=(-spread, spread), yticks=[], ylabel="payoff")
    low.set(ylim=(-0.08 * most, most), xlabel="round", yticks=[], ylabel="regret")
    low.set_xticks([0, 40, 80, 120])
    for axes in (top, low):
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
    figure.text(0.02, 0.865, "● IDEA predicts the drift", color=canvas.BLUE, weight="bold")
    figure.text(0.42, 0.865, "✖ UCB averages the past", color=canvas.RED, weight="bold")
    return figure
