"""Figure 1: Kalman-UCB's excess regret against IDEA's, one dot per system (P22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import statistics
from driftbandit.paper import table2
from driftbandit.report import Block, Cell, Figure, Heading, Points, Table, Text, figures, numbers
from driftbandit.studies import Outcome
from driftbandit.studies.target import Document, Summary

NEAR = 2.0
PUBLISHED = {"gaussian": "on", "cauchy": "on", "uniform": "on"}
PUBLISHED |= {"bernoulli": "above", "exponential": "above"}
"""By family, where Kalman-UCB's dots lie relative to the diagonal, in Figures 1 and 2 (P22)."""
specification = table2.specification


def place(family: str, idea: Any, kalman_ucb: Any, near: float) -> tuple[str, bool | None]:
    """Where the dots of a family lie, and whether that is as published (None: not published).

    A median ratio of their coordinates between 1/near and near counts as on the diagonal.

    Example:
        >>> place("gaussian", [1.0, 2.0], [1.1, 2.2], near=2)
        ('gaussian: 1.1 times, on the diagonal, as published', True)
    """
    x, y, shown = _positive(idea, kalman_ucb)
    said = PUBLISHED.get(family)
    if not shown.any():
        return f"{family}: no system has both above zero", None if said is None else False
    ratio = float(np.median(y[shown] / x[shown]))
    where = "on" if 1 / near < ratio < near else "above" if ratio >= near else "below"
    verdict = "as published" if where == said else f"NOT as published ({said} it)"
    if said is None:
        verdict = "not published"
    text = f"{family}: {ratio:.3g} times, {where} the diagonal, {verdict}"
    return text, None if said is None else where == said


def as_published(places: list[tuple[str, bool | None]], what: str) -> Summary:
    """How many of the `place`s agree with the paper."""
    judged = [agrees for _, agrees in places if agrees is not None]  # the others: not published
    return Summary.counted(sum(judged), len(judged), f"families: Kalman-UCB's {what} as published")


def scatter(axis: Any, x: Any, y: Any, **look: Any) -> tuple[int, list[float]]:
    """Draw positive pairs on log axes; return the number of other pairs, and the dots' range."""
    x, y, shown = _positive(x, y)
    axis.set(xscale="log", yscale="log")
    axis.scatter(x[shown], y[shown], lw=0, alpha=0.5, rasterized=True, **look)
    both = np.concatenate([x[shown], y[shown]])
    return int((~shown).sum()), [float(both.min()), float(both.max())] if both.size else []


def diagonal(axis: Any, ends: list[float], **look: Any) -> None:
    """Draw the dashed diagonal, with the same range on both axes and plain ticks."""
    axis.plot(ends, ends, "--", **look)
    room = [ends[0] / 1.2, ends[1] * 1.2]
    axis.set(aspect="equal", xlim=room, ylim=room)
    for one in (axis.xaxis, axis.yaxis):
        figures.log_ticks(one, *room)


def percent(share: float) -> Cell:
    """A share of systems or runs, in a table."""
    return Cell(f"{100 * share:.0f}%", share)


def _positive(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both as arrays, and where both are positive; NaN, an infinite excess, is not."""
    x, y = np.array(x, float), np.array(y, float)
    return x, y, (x > 0) & (y > 0)


def document(outcome: Outcome) -> dict[str, Any]:
    """The excess regret of both policies in every system, and their paired comparison."""
    found = {}
    for family, result in outcome.results().items():
        means = table2.of_means(result)
        excess = {policy: means[policy].tolist() for policy in ("idea", "kalman_ucb")}
        runs = result.normalized()
        paired = statistics.paired(runs["idea"], runs["kalman_ucb"])
        kept = {k: getattr(paired, k) for k in ("median_difference", "low", "high", "win_rate")}
        won = float(np.mean(np.less(excess["idea"], excess["kalman_ucb"])))
        found[family] = excess | kept | {"systems_won": won}
    return {"families": found}


def figure(document: Document) -> figures.Figure:
    """One panel per family, log axes in percent of the Oracle's regret, the diagonal dashed."""
    families = document["families"]
    drawing, panels = figures.grid(len(families), columns=3, width=6.6, height=2.1)
    for axis, (family, values) in zip(panels, families.items(), strict=False):
        x, y = (100 * np.array(values[policy], float) for policy in ("idea", "kalman_ucb"))
        size = 5 if len(x) > 300 else 9
        hidden, ends = scatter(axis, x, y, s=size, color=figures.COLORS[0])
        axis.set_title(family + (f" ({hidden} not above 0)" if hidden else ""), fontsize=9)
        if ends:
            diagonal(axis, ends, lw=1.2, color=figures.COLORS[1])
    drawing.supxlabel("IDEA: excess regret, % of the Oracle's", fontsize=9)
    drawing.supylabel("Kalman-UCB: excess regret, % of the Oracle's", fontsize=9)
    unused = panels[len(families) :]
    figures.note(unused, "One dot per system.\nAbove the dashed line\nIDEA has less regret.")
    return drawing


def blocks(document: Document) -> list[Block]:
    """The scatter plots, and the same as paired numbers."""
    rows = [
        [family, *(percent(v[key]) for key in ("systems_won", "win_rate")), _difference(v)]
        for family, v in document["families"].items()
    ]
    return [
        Heading("Figure 1: IDEA against Kalman-UCB", "figure1"),
        Text(
            "The paper's claim: close to the diagonal for Gaussian, Cauchy and Uniform, above it "
            "(IDEA is better) for Bernoulli and Exponential. From the runs of Table II. "
            "Kalman-UCB's excess in multiples of IDEA's, in the median system (below "
            f"{NEAR:g} times counts as on the diagonal of these log axes):"
        ),
        Points([text for text, _ in _places(document)]),
        Figure(
            "Excess regret of Kalman-UCB against IDEA's: means over each system's runs.",
            "Scatter plots, one per family, with a dashed diagonal",
            lambda: figure(document),
            "figure1",
        ),
        Table(
            "IDEA against Kalman-UCB, paired run by run. Negative differences: IDEA has less "
            "regret, in multiples of the Oracle's. Intervals resample systems.",
            ["family", "systems won by IDEA", "runs won by IDEA", "median difference"],
            rows,
        ),
    ]


def _places(document: Document) -> list[tuple[str, bool | None]]:
    return [
        place(family, values["idea"], values["kalman_ucb"], NEAR)
        for family, values in document["families"].items()
    ]


def summary(document: Document) -> Summary:
    """In how many families the dots lie where the paper has them."""
    return as_published(_places(document), "excess regret lies")


def _difference(values: Mapping[str, Any]) -> Cell:
    if values["median_difference"] is None:
        return Cell(numbers.NONE)
    note = ""
    if values["low"] is not None and values["high"] is not None:
        note = f"95%: {values['low']:+.3f} to {values['high']:+.3f}"
    return Cell(f"{values['median_difference']:+.3f}", values["median_difference"], note)
