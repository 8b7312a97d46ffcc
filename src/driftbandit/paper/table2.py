"""Table II: every policy's excess over the Kalman Oracle's regret, by family (P21)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import statistics
from driftbandit.paper.readings import PLAIN, Options
from driftbandit.policies import TITLES
from driftbandit.report import Block, Cell, Figure, Heading, Points, Table, Text, figures, numbers
from driftbandit.result import Result, median_and_iqr, quartiles
from driftbandit.studies import Outcome, Specification
from driftbandit.studies.target import Document, Summary

_FILTERS = ("idea", "kode", "kalman_ucb", "kalman_oracle")
POLICIES = (*_FILTERS, "ucb", "sliding_window_ucb", "rexp3", "oful", "random")
"""The paper's, whatever else is registered."""
PRINTED = (*_FILTERS, "oful", "random", "rexp3", "sliding_window_ucb", "ucb")
"""The order of the printed table's rows."""
GROUPS = (("idea", "kode", "kalman_ucb"), ("oful", "random", "rexp3", "ucb"))
"""As published, every policy of the first group (filters) is below all of the second."""
CRITERION = "within 25% (or within 0.03 if they are below 0.2)"

Row = Mapping[str, Any]


class Published(NamedTuple):
    """One cell of Table II: (R − R_oracle)/R_oracle over 10 000 runs."""

    median: float
    iqr: float


def _published(text: str) -> dict[str, Published]:
    cells = np.array(text.split(), float).reshape(-1, 2).tolist()
    return {p: Published(*cell) for p, cell in zip(GROUPS[0] + GROUPS[1], cells, strict=True)}


_CELLS = {
    "gaussian": "1.37 0.86  1.41 0.88  1.52 0.95  3.94 2.99  3.95 2.99  3.95 2.98  3.84 3.10",
    "cauchy": "1.82 8.25  1.84 8.33  2.40 12.44  7.78 25.95  7.86 25.82  7.85 25.87  7.73 25.47",
    "uniform": "0.84 0.43  0.88 0.45  0.90 0.45  1.79 1.16  1.82 1.14  1.82 1.14  1.72 1.18",
    "bernoulli": "0.11 0.08  0.11 0.09  0.44 0.22  2.66 1.40  2.90 1.51  2.87 1.51  2.71 1.46",
    "exponential": "0.08 0.07  0.08 0.07  0.57 0.26  3.30 1.70  3.34 1.73  3.32 1.73  3.16 1.70",
}
PUBLISHED = {family: _published(text) for family, text in _CELLS.items()}
"""By family and policy; sliding-window UCB is described in the paper but not in its table."""


def specification(options: Options) -> Specification:
    """The paper's policies on every family."""
    return options.specification(POLICIES)


def document(outcome: Outcome) -> dict[str, Any]:
    """One row per family and policy: its median excess regret, and the published one."""
    by_system = getattr(outcome.specification.cells[0], "reading", PLAIN).medians == "systems"
    rows = []
    for family, result in outcome.results().items():
        excess = of_means(result) if by_system else result.normalized()
        others = sorted(excess.keys() - set(PRINTED))
        excess = {name: excess[name] for name in (*PRINTED, *others) if name in excess}
        intervals = statistics.median_intervals([*excess.values()], resamples=1000)
        for (policy, values), (low, high) in zip(excess.items(), intervals, strict=True):
            median, iqr = median_and_iqr(values)
            known = PUBLISHED.get(family, {}).get(policy)
            row = {"family": family, "policy": policy, "median": median, "iqr": iqr}
            row |= {"median_low": low, "median_high": high, "quartiles": quartiles(values)[::2]}
            row["runs"] = int(result.regret[policy].size)
            row["published_median"] = known.median if known else None
            row["published_iqr"] = known.iqr if known else None
            rows.append(row)
    return {"rows": rows}


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
    """Mean |log(median / published)|: 0.1 is 10% off on average; NaN if none is published."""
    pairs = [(_median(row), row["published_median"]) for row in rows if row["published_median"]]
    found = [log_distance(mine, target) for mine, target in pairs]
    return float(np.mean(found)) if found else math.nan


def log_distance(value: float, printed: float) -> float:
    """|log(value / printed)|, where a printed 0.08 stands for anything from 0.075 to 0.085.

    Example:
        >>> round(log_distance(1.5, 1.37), 3), log_distance(0.083, 0.08)
        (0.087, 0.0)
    """
    if math.isinf(value):
        return math.inf
    value, low, high = max(value, 1e-3), printed - 0.005, printed + 0.005
    return max(math.log(value / high), math.log(low / value), 0.0)


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


def figure(document: Document) -> figures.Figure:
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
    known = [rows for family, rows in _by_family(document).items() if family in PUBLISHED]
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
    if family not in PUBLISHED:
        return f"{family}: not published."
    off = [TITLES[row["policy"]] for row in rows if agrees(row) is False]
    order = "in the published order" if groups_in_order(rows) else "NOT in the published order"
    verdict = f"medians too far off for {', '.join(off)}" if off else "all medians reproduced"
    return (
        f"{family}: {verdict}; the two groups of policies are {order}; "
        f"mean distance |log(median/published)| {distance(rows):.2f}."
    )
