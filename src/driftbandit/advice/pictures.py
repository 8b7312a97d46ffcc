"""Pictures of advice: the intervals of φ, and the simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from driftbandit import plots
from driftbandit.advice.parts import PLAYED, POLICIES, Floor, Metric, Simulation, title

__all__ = ["intervals", "regrets"]

GRAY = plots.COLORS[7]
_FIRST = (*POLICIES, *(name for name in PLAYED if name not in POLICIES))
COLOR = dict(zip(_FIRST, plots.COLORS, strict=False))
"""Of the policies that play by default; others are gray, as random choice is."""
STYLE: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False}


def intervals(metric: Metric) -> str:
    """The SVG of φ's intervals, as printed and squared."""
    if metric.printed is None or metric.squared is None:
        return ""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.6, 1.6), layout="constrained")
        forms = {"φ, as printed": metric.printed, "φ, squared form": metric.squared}
        for axis, (heading, form) in zip(figure.subplots(1, 2), forms.items(), strict=True):
            for row, policy in enumerate(POLICIES):
                axis.plot(form[policy], [row, row], "|-", color=COLOR[policy], lw=2.5, ms=10)
            low = min(low for low, _ in form.values())
            high = max(high for _, high in form.values())
            if low > 0 and high > 20 * low:
                axis.set_xscale("log")
                plots.log_ticks(axis.xaxis, low, high)
            else:
                axis.set_xlim(left=0)
            _label(axis, heading, POLICIES)
    return plots.save(figure, Path("figure.svg")).decode()


def regrets(simulation: Simulation, floor: Floor) -> str:
    """The SVG of regret per round, and of the differences to the lowest."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.6, 1.0 + 0.22 * len(simulation.policies)), layout="constrained")
        left, right = figure.subplots(1, 2)
        for place, row in enumerate(simulation.policies):
            left.barh(place, row.regret, 0.6, color=COLOR.get(row.policy, GRAY), alpha=0.75)
            left.plot([row.low, row.high], [place, place], "|-", color="black", lw=1.2, ms=6)
        if floor.value is not None:
            left.axvline(floor.value, color="black", ls="--", lw=1)
        _label(left, "regret per round", [row.policy for row in simulation.policies])
        rivals = simulation.differences[:-1]
        for place, gap in enumerate(rivals):
            color = COLOR.get(gap.policy, GRAY)
            right.plot([gap.low, gap.high], [place, place], "|-", color=color, lw=2.5, ms=10)
            right.plot(gap.mean, place, "o", color=color, ms=5)
        right.axvline(0, color="black", ls="--", lw=1)
        lowest = title(simulation.best.policy)
        _label(right, f"more than {lowest}, per round", [row.policy for row in rivals])
    return plots.save(figure, Path("figure.svg")).decode()


def _label(axis: Any, heading: str, policies: Any) -> None:
    axis.set_title(heading, fontsize=9)
    axis.set_yticks(range(len(policies)), [title(policy) for policy in policies])
    axis.set_ylim(len(policies) - 0.5, -0.5)
    axis.tick_params(labelsize=8)
    if axis.get_xscale() == "linear":
        axis.locator_params(axis="x", nbins=5)
    axis.grid(axis="x", alpha=0.3)
