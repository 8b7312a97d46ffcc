"""Figure 1: Kalman-UCB's excess regret against IDEA's, one dot per system (P22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from driftbandit import plots, statistics
from driftbandit.paper import table2
from driftbandit.paper.target import Size, Summary, Target
from driftbandit.report import Cell, Paragraph, Picture, Points, Section, Table
from driftbandit.study import Outcome

__all__ = ["TARGET", "place"]

ON = ("gaussian", "cauchy", "uniform")
"""Families whose dots the paper has on the diagonal; the others' lie above it."""
NEAR = 2.0


def place(family: str, idea: Any, kalman_ucb: Any, near: float) -> str:
    """Where the dots lie, by the median of their ratios, and whether that is as published.

    Args:
        family: of the panel.
        idea: horizontal coordinates.
        kalman_ucb: vertical coordinates.
        near: a median ratio below this, and above its inverse, is on the diagonal.

    Example:
        >>> place("gaussian", [1.0, 2.0], [1.1, 2.2], near=2)
        'gaussian: 1.1 times, on the diagonal, as published'
    """
    x, y = np.array(idea, float), np.array(kalman_ucb, float)
    shown = (x > 0) & (y > 0)
    if not shown.any():
        return f"{family}: no system has both above zero"
    ratio = float(np.median(y[shown] / x[shown]))
    where = "on" if 1 / near < ratio < near else "above" if ratio >= near else "below"
    said = "on" if family in ON else "above"
    verdict = "as published" if where == said else f"NOT as published ({said} it)"
    return f"{family}: {ratio:.3g} times, {where} the diagonal, {verdict}"


def document(outcome: Outcome) -> dict[str, Any]:
    """Both policies' excess regret of every system, and the paired comparison."""
    found = {}
    for family, result in outcome.results().items():
        means = table2.of_means(result)
        excess = {policy: means[policy].tolist() for policy in ("idea", "kalman_ucb")}
        runs = result.normalized()
        paired = statistics.paired(runs["idea"], runs["kalman_ucb"])
        found[family] = excess | {
            "median_difference": paired.median_difference,
            "low": paired.low,
            "high": paired.high,
            "win_rate": paired.win_rate,
            "systems_won": float(np.mean(np.less(excess["idea"], excess["kalman_ucb"]))),
        }
    return {"families": found}


def figure(document: Mapping[str, Any]) -> Figure:
    """One panel per family, log axes in percent of the Oracle's regret, the diagonal dashed."""
    families = document["families"]
    drawing, panels = plots.grid(len(families), columns=3, width=6.6, height=2.1)
    for axis, (family, values) in zip(panels, families.items(), strict=False):
        x, y = (100 * np.array(values[policy], float) for policy in ("idea", "kalman_ucb"))
        shown = (x > 0) & (y > 0)  # False too for NaN, which stands for an infinite excess
        hidden = int((~shown).sum())
        axis.set_title(family + (f" ({hidden} not above 0)" if hidden else ""), fontsize=9)
        if not shown.any():
            continue
        ends = [min(x[shown].min(), y[shown].min()), max(x[shown].max(), y[shown].max())]
        size = 5 if shown.sum() > 300 else 9
        axis.scatter(
            x[shown], y[shown], s=size, lw=0, alpha=0.5, color=plots.COLORS[0], rasterized=True
        )
        axis.plot(ends, ends, "--", lw=1.2, color=plots.COLORS[1])
        room = [ends[0] / 1.2, ends[1] * 1.2]
        axis.set(xscale="log", yscale="log", aspect="equal", xlim=room, ylim=room)
        for one in (axis.xaxis, axis.yaxis):
            plots.log_ticks(one, *room)
    drawing.supxlabel("IDEA: excess regret, % of the Oracle's", fontsize=9)
    drawing.supylabel("Kalman-UCB: excess regret, % of the Oracle's", fontsize=9)
    plots.note(
        panels[len(families) :],
        "One dot per system.\nAbove the dashed line\nIDEA loses less.",
    )
    return drawing


def section(document: Mapping[str, Any], svg: str) -> Section:
    """The scatter, and the same as paired numbers."""
    rows = [
        [
            family,
            Cell(f"{100 * v['systems_won']:.0f} %", v["systems_won"]),
            Cell(f"{100 * v['win_rate']:.0f} %", v["win_rate"]),
            _difference(v),
        ]
        for family, v in document["families"].items()
    ]
    return Section(
        "figure1",
        "Figure 1: IDEA against Kalman-UCB",
        [
            Paragraph(
                "The paper's claim: close to the diagonal for Gaussian, Cauchy and Uniform, above "
                "it (IDEA better) for Bernoulli and Exponential. Drawn from Table II's runs. "
                "Kalman-UCB's excess in multiples of IDEA's, in the median system (below "
                f"{NEAR:g} times counts as on the diagonal of these log axes):"
            ),
            Points(_places(document)),
            Picture(
                "Excess regret of Kalman-UCB against IDEA's, means of every system's runs.",
                "Scatter plots, one per family, with a dashed diagonal",
                svg,
            ),
            Table(
                "IDEA against Kalman-UCB, paired run by run. Negative: IDEA loses less, in "
                "multiples of the Oracle's regret; intervals resample systems.",
                ["family", "systems won by IDEA", "runs won by IDEA", "median difference"],
                rows,
            ),
        ],
    )


def _places(document: Mapping[str, Any]) -> list[str]:
    return [
        place(family, values["idea"], values["kalman_ucb"], NEAR)
        for family, values in document["families"].items()
    ]


def summary(document: Mapping[str, Any]) -> Summary:
    """In how many families the dots lie where the paper has them."""
    return as_published(_places(document), "excess regret lies")


def as_published(places: list[str], what: str) -> Summary:
    """How many of `place`'s texts agree with the paper."""
    met = sum(text.endswith(", as published") for text in places)
    return Summary.counted(met, len(places), f"families: Kalman-UCB's {what} as published")


def _difference(values: Mapping[str, Any]) -> Cell:
    if values["median_difference"] is None:
        return Cell("")
    note = ""
    if values["low"] is not None and values["high"] is not None:
        note = f"95 %: {values['low']:+.3f} to {values['high']:+.3f}"
    return Cell(f"{values['median_difference']:+.3f}", values["median_difference"], note)


TARGET = Target(
    "figure1",
    "Figure 1",
    full=Size(1000, 10, 1000),
    quick=Size(100, 4, 1000),
    specification=table2.specification,
    document=document,
    figure=figure,
    section=section,
    summary=summary,
)
