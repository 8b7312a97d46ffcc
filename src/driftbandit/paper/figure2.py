"""Figure 2: both policies' intervals of the metric φ against each other (P17, P23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from driftbandit import plots
from driftbandit.paper.figure1 import as_published, place
from driftbandit.paper.target import Options, Size, Summary, Target
from driftbandit.report import Cell, Paragraph, Picture, Points, Section, Table
from driftbandit.study import Outcome, Specification

__all__ = ["TARGET"]

FORMS = {"printed": "φ as printed, with ‖μ‖", "squared": "squared 2-Wasserstein, with ‖μ‖²"}
NEAR = 1.2
ENDS = {"low": "lower end", "high": "upper end"}


def specification(options: Options) -> Specification:
    """The metric of every system; nothing is played."""
    return options.metric(("idea", "kalman_ucb"))


def document(outcome: Outcome) -> dict[str, Any]:
    """Both ends of both policies' intervals, printed and squared, of every system."""
    found = {}
    for family, columns in outcome.columns.items():
        values = {name: v.tolist() for name, v in columns.items() if name not in ("system", "run")}
        shares = {}
        for form in FORMS:
            for end in ENDS:
                idea, ucb = (columns[f"{p}.{form}.{end}"] for p in ("idea", "kalman_ucb"))
                shares[f"{form}.{end}"] = float(np.mean(idea < ucb))
        found[family] = {"intervals": values, "idea_lower": shares}
    return {"families": found}


def figure(document: Mapping[str, Any]) -> Figure:
    """Printed above, squared below; one column per family; log axes, the diagonal dashed."""
    families = document["families"]
    count = len(families)
    drawing = Figure(figsize=(1.5 * count + 0.4, 3.9), layout="constrained")
    axes = drawing.subplots(2, count, squeeze=False)
    for row, form in zip(axes, FORMS, strict=True):
        for axis, (family, found) in zip(row, families.items(), strict=True):
            intervals = found["intervals"]
            ends = []
            for end, color, marker in (
                ("low", plots.COLORS[1], "^"),
                ("high", plots.COLORS[0], "o"),
            ):
                names = (f"{policy}.{form}.{end}" for policy in ("idea", "kalman_ucb"))
                x, y = (np.array(intervals[name], float) for name in names)
                shown = (x > 0) & (y > 0)
                axis.scatter(
                    x[shown],
                    y[shown],
                    s=6,
                    lw=0,
                    alpha=0.5,
                    color=color,
                    marker=marker,
                    label=ENDS[end],
                    rasterized=True,
                )
                ends += [x[shown].min(), x[shown].max(), y[shown].min(), y[shown].max()]
            axis.plot([min(ends), max(ends)], [min(ends), max(ends)], "k--", lw=1)
            axis.set(xscale="log", yscale="log")
            axis.tick_params(labelsize=7)
            for one in (axis.xaxis, axis.yaxis):
                plots.log_ticks(one, min(ends), max(ends))
            if form == "printed":
                axis.set_title(family, fontsize=9)
        row[0].set_ylabel(form, fontsize=9)
    drawing.supxlabel("φ of IDEA (reward units, squared)", fontsize=9)
    drawing.supylabel("φ of Kalman-UCB (reward units, squared)", fontsize=9)
    handles, labels = axes[0][0].get_legend_handles_labels()
    drawing.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=2,
        fontsize=8,
        frameon=False,
        markerscale=2,
    )
    return drawing


def _places(document: Mapping[str, Any]) -> list[str]:
    found = {family: values["intervals"] for family, values in document["families"].items()}
    return [
        place(family, ends["idea.printed.high"], ends["kalman_ucb.printed.high"], NEAR)
        for family, ends in found.items()
    ]


def summary(document: Mapping[str, Any]) -> Summary:
    """In how many families the upper ends lie where the paper has them."""
    return as_published(_places(document), "upper end of φ lies")


def section(document: Mapping[str, Any], svg: str) -> Section:
    """The scatter, and how often each end is smaller for IDEA."""
    rows = [
        [
            family,
            *(
                Cell(f"{100 * share:.0f} %", share)
                for share in (found["idea_lower"][f"{f}.{e}"] for f in FORMS for e in ENDS)
            ),
        ]
        for family, found in document["families"].items()
    ]
    return Section(
        "figure2",
        "Figure 2: the metric φ of both policies",
        [
            Paragraph(
                "φ(i, j | P) measures how far a policy's view of the arms is from the Oracle's; "
                "the interval spans all pairs of arms and all steady covariances. Above the dashed "
                "line Kalman-UCB's is larger, which predicts that IDEA does better. The paper "
                "prints ‖μ‖ where the squared 2-Wasserstein distance has ‖μ‖²: both are drawn."
            ),
            Picture(
                "Intervals of φ: lower ends (triangles) and upper ends (dots).",
                "Scatter plots of the lower and upper ends of the metric, printed and squared form",
                svg,
            ),
            Paragraph(
                "The paper has the upper ends on the diagonal for Gaussian, Cauchy and Uniform, "
                "and above it for Bernoulli and Exponential. Kalman-UCB's upper end as printed, in "
                f"multiples of IDEA's, in the median system (below {NEAR:g} counts as on it):"
            ),
            Points(_places(document)),
            Table(
                "Share of systems in which IDEA's end lies below Kalman-UCB's: lower and "
                "upper end of φ as printed and squared.",
                ["family", *(f"{form} {end}" for form in FORMS for end in ENDS)],
                rows,
            ),
        ],
    )


TARGET = Target(
    "figure2",
    "Figure 2",
    full=Size(1000, 1, 1),
    quick=Size(40, 1, 1),
    specification=specification,
    document=document,
    figure=figure,
    section=section,
    summary=summary,
)
