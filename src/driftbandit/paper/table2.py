"""Table II: every policy's excess over the Kalman Oracle's regret, by family (P21)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import statistics
from driftbandit.paper import published
from driftbandit.paper.readings import PLAIN, Options
from driftbandit.policies import TITLES
from driftbandit.report import Block, Cell, Figure, Heading, Points, Table, Text, figures, numbers
from driftbandit.result import Result, median_and_iqr, quartiles
from driftbandit.studies import Outcome, Specification, Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

POLICIES = (
    *("idea", "kode", "kalman_ucb", "kalman_oracle"),
    *("ucb", "sliding_window_ucb", "rexp3", "oful", "random"),
)
"""The paper's, whatever else is registered."""
PRINTED = (
    *("idea", "kode", "kalman_ucb", "kalman_oracle"),
    *("oful", "random", "rexp3", "sliding_window_ucb", "ucb"),
)
"""The order of the printed table's rows."""
GROUPS = (("idea", "kode", "kalman_ucb"), ("oful", "random", "rexp3", "ucb"))
"""As published, every policy of the first group (filters) is below all of the second."""
CRITERION = "within 25 % (or within 0.03 if they are below 0.2)"

Document = Mapping[str, Any]
Row = Mapping[str, Any]


def specification(options: Options) -> Specification:
    """The paper's policies on every family."""
    return options.specification(POLICIES)


def document(outcome: Outcome) -> dict[str, Any]:
    """Rows of family, policy, median, iqr, runs, published_median, published_iqr."""
    by_system = getattr(outcome.specification.cells[0], "reading", PLAIN).medians == "systems"
    rows = []
    for family, result in outcome.results().items():
        excess = of_means(result) if by_system else result.normalized()
        for policy in sorted(excess, key=_printed_place):
            values = excess[policy]
            median, iqr = median_and_iqr(values)
            low, high = statistics.median_interval(values, resamples=1000)
            known = published.TABLE2.get(family, {}).get(policy)
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


def _printed_place(policy: str) -> tuple[int, str]:
    """Sorts as in the paper's table, other policies last."""
    return (PRINTED.index(policy) if policy in PRINTED else len(PRINTED), policy)


def of_means(result: Result) -> dict[str, np.ndarray]:
    """The excess of every system's mean regret over its runs."""
    means = {policy: regret.mean(axis=1) for policy, regret in result.regret.items()}
    return dataclasses.replace(result, regret=means).normalized()


def agrees(row: Row) -> bool | None:
    """Whether a median is near the published one (see `CRITERION`); None: not published."""
    target = row["published_median"]
    if target is None:
        return None
    allowed = 0.03 if target < 0.2 else 0.25 * target
    return bool(abs(_median(row) - target) <= allowed)


def _median(row: Row) -> float:
    return math.inf if row["median"] is None else float(row["median"])


def distance(rows: list[Row]) -> float:
    """Mean |log(median / published)|: 0.1 is 10 % off on average; NaN if none is published."""
    pairs = [(_median(row), row["published_median"]) for row in rows if row["published_median"]]
    found = [published.distance(mine, target) for mine, target in pairs]
    return float(np.mean(found)) if found else math.nan


def groups_in_order(rows: list[Row]) -> bool:
    """Whether the medians of all filters are below those of the others, in one family."""
    median = {row["policy"]: _median(row) for row in rows}
    first, second = ([median[p] for p in group if p in median] for group in GROUPS)
    return max(first, default=-math.inf) < min(second, default=math.inf)


def _by_family(document: Document) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in document["rows"]:
        found.setdefault(row["family"], []).append(row)
    return found


def figure(document: Document) -> Drawing:
    """Medians and quartiles by family, with the published medians."""
    by_family = _by_family(document)
    names = [row["policy"] for row in next(iter(by_family.values()))]
    drawing, axes = figures.grid(
        len(by_family), len(by_family), 7.2, 0.9 + 0.3 * len(names), sharey=True
    )
    handles: dict[str, Any] = {}
    for axis, (family, rows) in zip(axes, by_family.items(), strict=True):
        for place, row in enumerate(rows):
            values = [row["quartiles"][0], row["median"], row["quartiles"][1]]
            low, median, high = np.array(values, float)  # None becomes NaN, which is not drawn
            axis.plot([low, high], [place, place], color=figures.COLORS[0], lw=2.5, alpha=0.45)
            look = {"ls": "", "marker": "o", "ms": 5, "color": figures.COLORS[0]}
            [handles["median and quartiles over runs"]] = axis.plot(median, place, **look)
            if row["published_median"] is not None:
                look = {"marker": "D", "ms": 6, "mfc": "none", "color": figures.COLORS[1], "ls": ""}
                [handles["published median"]] = axis.plot(row["published_median"], place, **look)
        axis.set_title(family, fontsize=9)
        axis.set_xscale("symlog", linthresh=0.1)
        axis.set_xticks([0, 0.1, 1, 10], ["0", "0.1", "1", "10"])
        axis.set_xlim(-0.01, max(12, *(1.2 * (row["quartiles"][1] or 0) for row in rows)))
        axis.minorticks_off()
        figures.name_rows(axis, [TITLES.get(name, name) for name in names])
    drawing.supxlabel("excess regret, in multiples of the Kalman Oracle's", fontsize=9)
    drawing.legend(
        handles.values(), handles, loc="outside upper center", ncols=2, fontsize=8, frameon=False
    )
    return drawing


def blocks(document: Document) -> list[Block]:
    """The table with the published values, and what did not reproduce."""
    by_family = _by_family(document)
    cells = {(row["family"], row["policy"]): row for row in document["rows"]}
    listed = [row["policy"] for row in next(iter(by_family.values()))]
    rows = [
        [TITLES.get(policy, policy), *(_cell(cells[family, policy]) for family in by_family)]
        for policy in listed
    ]
    met, judged = _met(document)
    counted = f"{document['rows'][0]['runs']} runs"
    if "medians=systems" in document.get("settings", {}).get("reading", ""):
        counted = f"the means of systems, {counted} in all,"
    return [
        Heading("Table II: regret beyond the Kalman Oracle's", "table2"),
        Text(
            "The excess of a run is (R − R_oracle) / R_oracle: 0 is as good as the Oracle, which "
            "sees every arm's reward; 1 is twice its regret. All policies see the same states and "
            f"the same noise. {met} of {judged} published medians are reproduced {CRITERION}."
        ),
        Table(
            f"Median (interquartile range) over {counted} per family; below, the published values. "
            "Medians farther off than that are marked.",
            ["policy", *by_family],
            rows,
        ),
        Figure(
            "Medians and quartiles of the excess regret, and the published medians.",
            "For each family, every policy's median excess regret with its quartiles, beside the "
            "published median",
            lambda: figure(document),
            "table2",
        ),
        Text("What reproduced, and what did not:"),
        Points([_finding(family, found) for family, found in by_family.items()]),
    ]


def _met(document: Document) -> tuple[int, int]:
    """How many published medians are reproduced, and how many there are."""
    judged = [found for row in document["rows"] if (found := agrees(row)) is not None]
    return sum(judged), len(judged)


def summary(document: Document) -> Summary:
    """How many published medians are reproduced, and whether the policies' order is."""
    known = [rows for family, rows in _by_family(document).items() if family in published.TABLE2]
    ordered = sum(map(groups_in_order, known))
    what = (
        f"published medians are reproduced {CRITERION}; the two groups of policies are in the "
        f"published order in {ordered} of {len(known)} families"
    )
    return Summary.counted(*_met(document), what)


def _cell(row: Row) -> Cell:
    values = (f"{value:.2f}" if value is not None else "∞" for value in (row["median"], row["iqr"]))
    printed = numbers.NONE
    if row["published_median"] is not None:
        printed = f"{row['published_median']:.2f} ({row['published_iqr']:.2f})"
    wrong = agrees(row) is False
    return Cell("{} ({})".format(*values), _median(row), printed, "bad" if wrong else "")


def _finding(family: str, rows: list[Row]) -> str:
    if family not in published.TABLE2:
        return f"{family}: not published."
    off = [TITLES[row["policy"]] for row in rows if agrees(row) is False]
    order = "in the published order" if groups_in_order(rows) else "NOT in the published order"
    verdict = f"medians too far off for {', '.join(off)}" if off else "all medians reproduced"
    return (
        f"{family}: {verdict}; the two groups of policies are {order}; "
        f"mean distance |log(median/published)| {distance(rows):.2f}."
    )
