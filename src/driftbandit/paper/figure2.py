"""Figure 2: both policies' intervals of the metric φ against each other (P17, P23)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from driftbandit.paper.figure1 import as_published, diagonal, percent, place, scatter
from driftbandit.paper.readings import Options
from driftbandit.report import Block, Figure, Heading, Points, Table, Text, figures
from driftbandit.studies import Outcome, Size, Specification
from driftbandit.studies.target import Document, Summary

POLICIES = ("idea", "kalman_ucb")
FORMS = ("printed", "squared")
"""φ as printed, with ‖μ‖, and the squared 2-Wasserstein distance, with ‖μ‖²."""
ENDS = {"low": "lower end", "high": "upper end"}
NEAR = 1.2


def specification(options: Options) -> Specification:
    """The metric of every system, in float64 on the CPU; nothing is played."""
    plain = dataclasses.replace(
        options, size=Size(options.size.systems, 1, 1), dtype="float64", platform="cpu"
    )
    return dataclasses.replace(plain.specification(POLICIES), measure="metric")


def document(outcome: Outcome) -> dict[str, Any]:
    """Both ends of both policies' intervals, printed and squared, of every system."""
    found = {}
    for family, columns in outcome.columns.items():
        values = {name: v.tolist() for name, v in columns.items() if name not in ("system", "run")}
        shares = {}
        for form in FORMS:
            for end in ENDS:
                idea, ucb = (columns[f"{policy}.{form}.{end}"] for policy in POLICIES)
                shares[f"{form}.{end}"] = float(np.mean(idea < ucb))
        found[family] = {"intervals": values, "idea_lower": shares}
    return {"families": found}


def figure(document: Document) -> figures.Figure:
    """Printed above, squared below; one column per family; log axes, the diagonal dashed."""
    families = document["families"]
    drawing, axes = figures.grid(2 * len(families), len(families), 1.5 * len(families) + 0.4, 1.95)
    panels = iter(axes)
    for form in FORMS:
        for family, found in families.items():
            axis, ends = next(panels), []
            for end, color, marker in zip(ENDS, figures.COLORS[1::-1], "^o", strict=True):
                x, y = (found["intervals"][f"{policy}.{form}.{end}"] for policy in POLICIES)
                look = {"s": 6, "color": color, "marker": marker, "label": ENDS[end]}
                ends += scatter(axis, x, y, **look)[1]
            if ends:
                diagonal(axis, [min(ends), max(ends)], lw=1, color="black")
            axis.tick_params(labelsize=7)
            if form == FORMS[0]:
                axis.set_title(family, fontsize=9)
    for axis, form in zip(axes[:: len(families)], FORMS, strict=True):
        axis.set_ylabel(form, fontsize=9)
    drawing.supxlabel("φ of IDEA (reward units, squared)", fontsize=9)
    drawing.supylabel("φ of Kalman-UCB (reward units, squared)", fontsize=9)
    look = {"ncols": 2, "fontsize": 8, "frameon": False, "markerscale": 2}
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", **look)
    return drawing


def _places(document: Document) -> list[tuple[str, bool | None]]:
    found = {family: values["intervals"] for family, values in document["families"].items()}
    return [
        place(family, ends["idea.printed.high"], ends["kalman_ucb.printed.high"], NEAR)
        for family, ends in found.items()
    ]


def summary(document: Document) -> Summary:
    """In how many families the upper ends lie where the paper has them."""
    return as_published(_places(document), "upper end of φ lies")


def blocks(document: Document) -> list[Block]:
    """The scatter plots, and how often each end is smaller for IDEA."""
    rows = [
        [family, *map(percent, found["idea_lower"].values())]
        for family, found in document["families"].items()
    ]
    return [
        Heading("Figure 2: the metric φ of both policies", "figure2"),
        Text(
            "φ(i, j | P) measures how far a policy's view of the arms is from the Oracle's; the "
            "interval spans all pairs of arms and all steady-state covariances. Above the dashed "
            "line Kalman-UCB's is larger, which predicts that IDEA does better. The paper prints "
            "‖μ‖ where the squared 2-Wasserstein distance has ‖μ‖²: both are drawn."
        ),
        Figure(
            "Intervals of φ: lower ends (triangles) and upper ends (dots).",
            "Scatter plots of the lower and upper ends of the metric, printed and squared form",
            lambda: figure(document),
            "figure2",
        ),
        Text(
            "In the paper the upper ends are on the diagonal for Gaussian, Cauchy and Uniform, and "
            "above it for Bernoulli and Exponential. Kalman-UCB's upper end as printed, in "
            f"multiples of IDEA's, in the median system (below {NEAR:g} counts as on it):"
        ),
        Points([text for text, _ in _places(document)]),
        Table(
            "Share of systems in which IDEA's end is below Kalman-UCB's: lower and upper end of φ, "
            "printed and squared.",
            ["family", *(f"{form} {end}" for form in FORMS for end in ENDS)],
            rows,
        ),
    ]
