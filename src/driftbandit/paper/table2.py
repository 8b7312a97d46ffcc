"""Table II: every policy's excess over the Kalman Oracle's regret, by family (P21)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from driftbandit import plots, statistics
from driftbandit.paper import published
from driftbandit.paper.target import Options, Size, Summary, Target
from driftbandit.policies import TITLES
from driftbandit.report import Cell, Paragraph, Picture, Points, Section, Table
from driftbandit.result import Result, median_and_iqr, quartiles
from driftbandit.study import Outcome, Specification

__all__ = ["TARGET", "agrees", "distance", "groups_in_order", "of_means", "specification"]

POLICIES = (
    "idea",
    "kode",
    "kalman_ucb",
    "kalman_oracle",
    "ucb",
    "sliding_window_ucb",
    "rexp3",
    "oful",
    "random",
)
"""The paper's, whatever else is registered."""
PRINTED = (
    *("idea", "kode", "kalman_ucb", "kalman_oracle"),
    *("oful", "random", "rexp3", "sliding_window_ucb", "ucb"),
)
"""The order of the printed table's rows."""
GROUPS = (("idea", "kode", "kalman_ucb"), ("oful", "random", "rexp3", "ucb"))
"""Filters first, as published: every one of the first group is below all of the second."""

Row = Mapping[str, Any]


def specification(options: Options) -> Specification:
    """The paper's policies on every family."""
    return options.specification(POLICIES)


def document(outcome: Outcome) -> dict[str, Any]:
    """Rows of family, policy, median, iqr, runs, published_median, published_iqr."""
    by_system = outcome.specification.cells[0].reading.medians == "systems"
    rows = []
    for family, result in outcome.results().items():
        excess = of_means(result) if by_system else result.normalized()
        for policy in sorted(excess, key=_place):
            values = excess[policy]
            median, iqr = median_and_iqr(values)
            low, high = statistics.median_interval(values, resamples=1000)
            known = published.TABLE2[family].get(policy)
            rows.append(
                {
                    "family": family,
                    "policy": policy,
                    "median": median,
                    "iqr": iqr,
                    "median_low": low,
                    "median_high": high,
                    "quartiles": quartiles(values)[::2],
                    "runs": int(result.regret[policy].size),
                    "published_median": known.median if known else None,
                    "published_iqr": known.iqr if known else None,
                }
            )
    return {"rows": rows}


def _place(policy: str) -> tuple[int, str]:
    """Sorts as in the paper's table, other policies last."""
    return (PRINTED.index(policy) if policy in PRINTED else len(PRINTED), policy)


def of_means(result: Result) -> dict[str, np.ndarray]:
    """The excess of every system's mean regret over its runs."""
    means = {policy: regret.mean(axis=1) for policy, regret in result.regret.items()}
    return dataclasses.replace(result, regret=means).normalized()


def agrees(row: Row) -> bool | None:
    """Whether a median is within 25 % of the published one, or 0.03 where that is below 0.2."""
    target = row["published_median"]
    if target is None:
        return None
    allowed = 0.03 if target < 0.2 else 0.25 * target
    return bool(abs(_median(row) - target) <= allowed)


def _drawn(value: float | None) -> float:
    """NaN, which is not drawn, for what JSON could not hold."""
    return math.nan if value is None else value


def _median(row: Row) -> float:
    return math.inf if row["median"] is None else float(row["median"])


def distance(rows: list[Row]) -> float:
    """Mean |log(median / published)|: 0.1 is 10 % off on average."""
    pairs = [(_median(row), row["published_median"]) for row in rows if row["published_median"]]
    return float(np.mean([published.distance(mine, target) for mine, target in pairs]))


def groups_in_order(rows: list[Row]) -> bool:
    """Whether the filters' medians all lie below the others', in one family."""
    median = {row["policy"]: _median(row) for row in rows}
    first, second = GROUPS
    return max(median[p] for p in first) < min(median[p] for p in second)


def _by_family(document: Mapping[str, Any]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in document["rows"]:
        found.setdefault(row["family"], []).append(row)
    return found


def figure(document: Mapping[str, Any]) -> Figure:
    """Medians and quartiles by family, the published medians beside them."""
    by_family = _by_family(document)
    names = [row["policy"] for row in next(iter(by_family.values()))]
    drawing = Figure(figsize=(7.2, 0.9 + 0.3 * len(names)), layout="constrained")
    axes = np.atleast_1d(drawing.subplots(1, len(by_family), sharey=True))
    for axis, (family, rows) in zip(axes, by_family.items(), strict=True):
        for place, row in enumerate(rows):
            color = plots.COLORS[0]
            ends = np.array(row["quartiles"], float)  # NaN, which is not drawn, for None
            axis.plot(ends, [place, place], color=color, lw=2.5, alpha=0.45)
            (mine,) = axis.plot(_drawn(row["median"]), place, "o", ms=5, color=color)
            if row["published_median"] is not None:
                (theirs,) = axis.plot(
                    row["published_median"], place, "D", ms=6, mfc="none", color=plots.COLORS[1]
                )
        axis.set_title(family, fontsize=9)
        axis.set_xscale("symlog", linthresh=0.1)
        axis.set_xticks([0, 0.1, 1, 10], ["0", "0.1", "1", "10"])
        axis.set_xlim(-0.01, max(12, *(1.2 * (row["quartiles"][1] or 0) for row in rows)))
        axis.minorticks_off()
        axis.tick_params(labelsize=8)
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(names)), [TITLES.get(name, name) for name in names])
    axes[0].invert_yaxis()
    drawing.supxlabel("excess regret, in multiples of the Kalman Oracle's", fontsize=9)
    drawing.legend(
        [mine, theirs],
        ["median and quartiles over runs", "published median"],
        loc="outside upper center",
        ncols=2,
        fontsize=8,
        frameon=False,
    )
    return drawing


def section(document: Mapping[str, Any], svg: str) -> Section:
    """The table beside the published values, and what did not reproduce."""
    by_family = _by_family(document)
    families = list(by_family)
    cells = {(row["family"], row["policy"]): row for row in document["rows"]}
    listed = [row["policy"] for row in by_family[families[0]]]
    rows: list[list[Cell | str]] = [
        [TITLES.get(policy, policy), *(_cell(cells[family, policy]) for family in families)]
        for policy in listed
    ]
    met, judged = _met(document)
    runs = document["rows"][0]["runs"]
    counted = f"{runs} runs"
    if "medians=systems" in document.get("settings", {}).get("reading", ""):
        counted = f"the means of systems, {runs} runs in all,"
    return Section(
        "table2",
        "Table II: regret beyond the Kalman Oracle's",
        [
            Paragraph(
                "The excess of a run is (R − R_oracle) / R_oracle: 0 is as good as the Oracle, "
                "which sees every arm's reward, 1 is twice its regret. All policies meet the same "
                f"states and the same noise. {met} of {judged} published medians are met "
                "within 25 % (or 0.03, where they are below 0.2)."
            ),
            Table(
                f"Median (interquartile range) over {counted} per family; below, the published "
                "values. Marked: farther off than that.",
                ["policy", *families],
                rows,
            ),
            Picture(
                "Medians and quartiles of the excess regret, and the published medians.",
                "For each family, every policy's median excess regret with its quartiles, beside "
                "the published median",
                svg,
            ),
            Paragraph("What reproduced, and what did not:"),
            Points([_finding(family, found) for family, found in by_family.items()]),
        ],
    )


def _met(document: Mapping[str, Any]) -> tuple[int, int]:
    """How many published medians are met, and how many there are."""
    judged = [agrees(row) for row in document["rows"] if agrees(row) is not None]
    return sum(map(bool, judged)), len(judged)


def summary(document: Mapping[str, Any]) -> Summary:
    """How many published medians are met, and whether the order of the policies is."""
    by_family = _by_family(document)
    ordered = sum(groups_in_order(rows) for rows in by_family.values())
    what = (
        "published medians are met within 25 % (or 0.03, where they are below 0.2); the two groups "
        f"of policies are in the published order in {ordered} of {len(by_family)} families"
    )
    return Summary.counted(*_met(document), what)


def _cell(row: Row) -> Cell:
    printed = ""
    if row["published_median"] is not None:
        printed = f"{row['published_median']:.2f} ({row['published_iqr']:.2f})"
    known = (f"{value:.2f}" if value is not None else "∞" for value in (row["median"], row["iqr"]))
    return Cell(
        "{} ({})".format(*known), _median(row), printed, "bad" if agrees(row) is False else ""
    )


def _finding(family: str, rows: list[Row]) -> str:
    off = [TITLES[row["policy"]] for row in rows if agrees(row) is False]
    order = "in the published order" if groups_in_order(rows) else "NOT in the published order"
    verdict = f"medians too far off for {', '.join(off)}" if off else "all published medians met"
    return (
        f"{family}: {verdict}; the two groups of policies are {order}; "
        f"mean distance |log(median/published)| {distance(rows):.2f}."
    )


TARGET = Target(
    "table2",
    "Table II",
    full=Size(1000, 10, 1000),
    quick=Size(100, 4, 1000),
    specification=specification,
    document=document,
    figure=figure,
    section=section,
    summary=summary,
)
