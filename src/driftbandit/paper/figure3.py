"""Figure 3: the cost of a wrong Γ, wrong arms or a wrong Q (P24)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit.paper.readings import Options
from driftbandit.policies import TITLES
from driftbandit.report import Block, Cell, Figure, Heading, Points, Table, Text, figures, numbers
from driftbandit.result import ORACLE
from driftbandit.studies import Outcome, Specification
from driftbandit.studies.target import Document, Summary

POLICIES = ("kode", "idea", "kalman_ucb")
SYMBOLS = {"transition": "Γ", "arms": "arms", "process_cov": "Q"}
TARGETS = tuple(SYMBOLS)
STRENGTHS = (0.1, 1.0, 10.0)
PANELS = tuple(itertools.product(TARGETS, STRENGTHS))
BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
ALL = "all families"
CONGRUENT = "_congruent"
PUBLISHED: dict[str, dict[str, float]] = {
    "transition": {"kode": 0.09, "idea": 0.18, "kalman_ucb": 0.23},
    "arms": {"kode": 0.47, "idea": 0.48, "kalman_ucb": 0.40},
}
"""Growth of the median normalized regret at ν = 10, by what is perturbed; none is given for Q."""

Row = Mapping[str, Any]


def specification(options: Options) -> Specification:
    """Every family unperturbed, and with each of Γ, arms and Q perturbed by each ν."""
    form = CONGRUENT if options.congruent else ""
    wrong = {"transition": "transition", "arms": "arms", "process_cov": f"process_cov{form}"}
    cells = [
        options.cell(family, perturbed=perturbed, strength=strength)
        for family in options.families
        for perturbed, strength in [("", 0.0), *((wrong[target], nu) for target, nu in PANELS)]
    ]
    return options.specification((*POLICIES, ORACLE), cells)


def document(outcome: Outcome) -> dict[str, Any]:
    """Quantiles of the excess regret by target, ν and policy, for each family and for all."""
    results = outcome.results()
    cells: list[Any] = list(outcome.specification.cells)
    excess: dict[tuple[str, str, float, str], np.ndarray] = {}
    for cell in cells:
        for policy, values in results[cell.label].normalized().items():
            target = cell.perturbed.removesuffix(CONGRUENT)
            excess[cell.family, target, cell.strength, policy] = values.ravel()
    rows = []
    families = list(dict.fromkeys(cell.family for cell in cells))
    for family, members in [*((family, [family]) for family in families), (ALL, families)]:
        for (target, strength), policy in itertools.product(PANELS, POLICIES):
            keys = [("", 0.0, policy), (target, strength, policy)]
            plain, wrong = (np.concatenate([excess[f, *key] for f in members]) for key in keys)
            before, quantiles = float(np.median(plain)), np.quantile(wrong, BOX).tolist()
            known = PUBLISHED.get(target, {}).get(policy) if strength == 10 else None
            row = {"family": family, "perturbed": target, "strength": strength, "policy": policy}
            row |= {"quantiles": quantiles, "unperturbed_median": before}
            row["change"] = quantiles[2] / before - 1 if before > 0 else None
            row["whole_change"] = (1 + quantiles[2]) / (1 + before) - 1
            rows.append(row | {"published_change": known})
    return {"rows": rows, "quantiles": list(BOX)}


def figure(document: Document) -> figures.Figure:
    """Boxes of regret in multiples of the Oracle's; rows Γ, arms, Q; columns ν."""
    drawing, axes = figures.grid(len(PANELS), 3, 6.6, 5.6 / 3, sharex=True, sharey="row")
    for row in _rows(document, ALL):
        axis = axes[PANELS.index((row["perturbed"], row["strength"]))]
        place = POLICIES.index(row["policy"])
        # 1 + excess: the Oracle's own regret is 1, so a log axis can show everything.
        names = ("whislo", "q1", "med", "q3", "whishi")
        box: dict[str, Any] = {n: 1 + q for n, q in zip(names, row["quantiles"], strict=True)}
        look: dict[str, Any] = {"widths": 0.6, "patch_artist": True, "manage_ticks": False}
        look["boxprops"] = {"facecolor": figures.COLORS[place], "alpha": 0.55}
        look["medianprops"] = {"color": "black", "lw": 1.5}
        axis.bxp([box | {"fliers": []}], positions=[place], **look)
        axis.plot([place - 0.38, place + 0.38], 2 * [1 + row["unperturbed_median"]], "k:", lw=1.5)
    for axis, (target, strength) in zip(axes, PANELS, strict=True):
        axis.set_yscale("log")
        axis.set_xticks(range(len(POLICIES)), [TITLES[p] for p in POLICIES], fontsize=8)
        axis.grid(axis="y", alpha=0.3)
        figures.log_ticks(axis.yaxis, 1, 20)
        if target == TARGETS[0]:
            axis.set_title(f"ν = {strength:g}", fontsize=9)
        if strength == STRENGTHS[0]:
            axis.set_ylabel(f"{SYMBOLS[target]} perturbed", fontsize=9)
    drawing.supylabel("regret, in multiples of the Kalman Oracle's (log scale)", fontsize=9)
    return drawing


def _rows(document: Document, family: str) -> list[Row]:
    return [row for row in document["rows"] if row["family"] == family]


def blocks(document: Document) -> list[Block]:
    """The boxes, and the growth of the medians with the published ones."""
    cells = {(r["family"], r["perturbed"], r["strength"], r["policy"]): r for r in document["rows"]}
    families = [name for name in dict.fromkeys(key[0] for key in cells) if name != ALL]
    by_strength: list[list[Cell | str]] = []
    by_family: list[list[Cell | str]] = []
    for target, policy in itertools.product(TARGETS, POLICIES):
        name = f"{SYMBOLS[target]}, {TITLES[policy]}"
        pooled = [cells[ALL, target, strength, policy] for strength in STRENGTHS]
        growth = [row["whole_change"] for row in pooled]
        last = [pooled[-1]["change"], pooled[-1]["published_change"]]
        by_strength.append([name, *map(_percent, growth + last)])
        strongest = [cells[family, target, STRENGTHS[-1], policy] for family in families]
        by_family.append([name, *(_percent(row["whole_change"]) for row in strongest)])
    strengths = [f"ν = {strength:g}" for strength in STRENGTHS]
    near, known = _met(document)
    verdict = "reproduced" if near == known else "did NOT reproduce"
    return [
        Heading("Figure 3: robustness", "figure3"),
        Text(
            "The learners' Γ, arms or Q is transformed by T = I + νΞ; the Oracle knows the truth. "
            "T⁻¹QT is not symmetric, so its symmetric part is projected onto the covariances. The "
            "paper does not say which families its boxes hold, or what its percentages are "
            "relative to. Here all families are pooled, and growth is that of the median regret in "
            "multiples of the Oracle's, relative to its unperturbed value; for ν = 10 the growth "
            "of the excess alone is listed too."
        ),
        Figure(
            "Boxes: quartiles; whiskers: 5% and 95% of runs; dotted: unperturbed median.",
            "Box plots in three rows (transition, arms, process covariance) and three columns "
            "(strength 0.1, 1 and 10) for KODE, IDEA and Kalman-UCB",
            lambda: figure(document),
            "figure3",
        ),
        Table(
            "Growth of the median regret, all families pooled.",
            ["perturbed, policy", *strengths, "excess, ν = 10", "published, ν = 10"],
            by_strength,
        ),
        Table("The same at ν = 10 by family.", ["perturbed, policy", *families], by_family),
        Text(
            f"The published growth of the medians {verdict}: {near} of {known} numbers are within "
            "ten percentage points."
        ),
        Text("The policy with the lowest median, all families pooled:"),
        Points([_lowest(document, target) for target in TARGETS]),
    ]


def _met(document: Document) -> tuple[int, int]:
    """How many published growths are met within ten percentage points, and how many there are."""
    known = [row for row in _rows(document, ALL) if row["published_change"]]
    near = sum(abs(row["whole_change"] - row["published_change"]) < 0.1 for row in known)
    return near, len(known)


def summary(document: Document) -> Summary:
    """How many of the published growths of the medians are reproduced."""
    what = "published growths of the median regret at ν = 10 are within ten percentage points"
    return Summary.counted(*_met(document), what)


def _lowest(document: Document, target: str) -> str:
    """The best policy at each ν; as published it is IDEA, except KODE for Γ at ν = 10."""
    winners = []
    for strength in STRENGTHS:
        panel = (target, strength)
        rows = [r for r in _rows(document, ALL) if (r["perturbed"], r["strength"]) == panel]
        best = min(rows, key=lambda row: row["quantiles"][2])
        winners.append(f"{TITLES[best['policy']]} at ν = {strength:g}")
    published = "IDEA, but KODE at ν = 10" if target == "transition" else "IDEA everywhere"
    return f"{SYMBOLS[target]} perturbed: {', '.join(winners)} (published: {published})."


def _percent(value: float | None) -> Cell:
    return Cell(numbers.NONE) if value is None else Cell(f"{100 * value:+.0f}%", value)
