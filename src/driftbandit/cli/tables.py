"""Results as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from rich.table import Table
from rich.text import Text

from driftbandit import statistics
from driftbandit.cli import layout
from driftbandit.result import ORACLE, Result, median_and_iqr
from driftbandit.statistics import Paired

__all__ = ["against", "comparison", "explanation", "footer", "leaders"]

VERDICT_STYLES = {"better": "green", "worse": "red"}


def comparison(results: dict[str, Result], width: int) -> Iterator[Text | Table]:
    """One table over all families where there are several and the Oracle played, else one each."""
    if len(results) > 1 and all(ORACLE in result.regret for result in results.values()):
        yield from _excess(results, width)
    else:
        for name, result in results.items():
            yield from _single(name, result, width)


def _cell(values: tuple[float, float]) -> str:
    return f"{_short(values[0])} ({_short(values[1])})"


def _short(value: float) -> str:
    """Two decimals, or three digits from ten on."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"


def _excess(results: dict[str, Result], width: int) -> Iterator[Text | Table]:
    cells: dict[str, list[tuple[float, float]]] = {}
    for result in results.values():
        for policy, values in result.normalized(ORACLE).items():
            cells.setdefault(policy, []).append(median_and_iqr(values))
    best = [min(column, key=lambda cell: cell[0]) for column in zip(*cells.values(), strict=True)]
    rows = []
    for policy, row in sorted(
        cells.items(), key=lambda item: sum(np.log1p([c[0] for c in item[1]]))
    ):
        texts = [
            Text(_cell(cell), "bold green" if cell[0] <= top[0] else "")
            for cell, top in zip(row, best, strict=True)
        ]
        rows.append(layout.Row([policy, *texts]))
    means = [f"{result.regret[ORACLE].mean():.3g}" for result in results.values()]
    rows.append(layout.Row(["(Oracle's mean)", *means], "dim", ruled=True))
    title = "Excess regret over the Kalman Oracle's: median (IQR) over runs"
    yield from layout.tables(title, ["policy", *results], rows, width)


def _single(name: str, result: Result, width: int) -> Iterator[Text | Table]:
    headings = ["policy", "mean", "± s.e.", "median", "IQR"]
    excess = result.normalized(ORACLE) if ORACLE in result.regret else {}
    if excess:
        headings.append("excess over Oracle")
    ordered = sorted(result.summary().items(), key=lambda item: item[1]["mean"])
    best = next((policy for policy, _ in ordered if policy != ORACLE), None)
    rows = []
    for policy, row in ordered:
        cells = [
            policy,
            f"{row['mean']:,.4g}",
            f"{row['standard_error']:,.2g}",
            f"{row['median']:,.4g}",
            f"{row['iqr']:,.3g}",
        ]
        if excess:
            cells.append(_cell(median_and_iqr(excess[policy])) if policy in excess else "")
        style = "bold green" if policy == best else "dim" if policy == ORACLE else ""
        rows.append(layout.Row(cells, style))
    yield from layout.tables(f"{name}: regret after {result.rounds} rounds", headings, rows, width)


def leaders(results: dict[str, Result]) -> Iterator[str]:
    """Of each study: whether the policy with the lowest mean regret is told from the second."""
    explained = False
    for name, result in results.items():
        rivals = [policy for policy in result.regret if policy != ORACLE]
        if len(rivals) < 2:
            continue
        best = result.best()
        found = result.compare(best, seed=result.seed)
        second = min((p for p in found if p != ORACLE), key=lambda p: found[p].mean_difference)
        row = found[second]
        told, ends = row.mean_verdict, f"{row.mean_low:.3g} to {row.mean_high:.3g}"
        more = "--systems" if row.independent < row.runs else "--runs"
        start = f"{name}: {best} is lowest, {second} second"
        if told == "worse":
            yield f"{start}. They are clearly apart: the second has {ends} more regret."
        elif told == "too few to tell":
            yield f"{start}. {row.runs} runs cannot tell them apart: give more {more}."
        elif row.mean_low == row.mean_high == 0:
            yield f"{start}. Their regret is the same in all {row.runs} runs."
        else:
            yield (
                f"{start}. {row.runs} runs do not tell them apart: the second has {ends} more "
                f"regret. More {more} would narrow that."
            )
        explained |= told != "too few to tell"
    if explained:
        unit = ", in units of the Oracle's" if result.in_oracle_units else ""
        yield f"(95 % intervals of the mean difference over paired runs{unit}.)"


def against(name: str, result: Result, baseline: str, width: int) -> Iterator[Text | Table]:
    """Every policy against one of them, run by run."""
    rows = []
    found = result.compare(baseline, seed=result.seed)
    for policy, row in sorted(found.items(), key=lambda item: item[1].median_difference):
        verdict = Text(row.verdict, VERDICT_STYLES.get(row.verdict, ""))
        difference, ends = _difference(row)
        cells: list[str | Text] = [policy, verdict, difference, ends, _wins(row)]
        rows.append(layout.Row(cells, "dim" if policy == ORACLE else ""))
    headings = ["policy", "verdict", "difference", "95 % interval", "wins, %"]
    title = f"{name}: run by run against the baseline, {baseline}"
    yield from layout.tables(title, headings, rows, width, left=(0, 1))


def _difference(row: Paired) -> tuple[str, str]:
    """The median and its interval, to two digits of the interval's width."""
    size, width = max(abs(row.low), abs(row.high)), row.high - row.low
    form = ".3g"
    if 0 < width < math.inf and 1e-4 < size < 1e7:
        least = 2 if size < 10 else 0
        form = f",.{min(max(1 - math.floor(math.log10(width)), least), 6)}f"
    ends = "-" if math.isnan(row.low) else f"{row.low:{form}} to {row.high:{form}}"
    return f"{row.median_difference:+{form}}", ends


def _wins(row: Paired) -> str:
    rate = f"{100 * row.win_rate:.0f}"
    if math.isnan(row.win_low):
        return rate
    return f"{rate} ({100 * row.win_low:.0f}–{100 * row.win_high:.0f})"


def explanation(results: dict[str, Result]) -> str:
    """How to read the tables of `against`."""
    first = next(iter(results.values()))
    regret = next(iter(first.regret.values()))
    drawn = "systems" if statistics.several_systems(regret) else "runs"
    scale = ", in units of the Oracle's" if first.in_oracle_units else ""
    return (
        f"difference: the policy's regret minus the baseline's{scale}; median over {regret.size} "
        "paired runs. Positive: the policy is worse than the baseline. wins: runs in which it has "
        "less regret than the baseline, ties count half. 95 % intervals and verdicts: bootstrap "
        f"over {len(statistics.units(regret))} {drawn}."
    )


def footer(results: dict[str, Result]) -> str:
    """One line on what was played and how fast."""
    rounds = sum(
        sum(regret.size for regret in result.regret.values()) * result.rounds
        for result in results.values()
    )
    play = sum(result.timing.play for result in results.values())
    compile_ = sum(result.timing.compile for result in results.values())
    first = next(iter(results.values()))
    runs = next(iter(first.regret.values())).size
    return (
        f"{runs} runs × {first.rounds} rounds per policy, seed {first.seed}; "
        f"{rounds / 1e6:.2f} M rounds in {play:.1f} s ({rounds / play / 1e6:.2f} M/s) on "
        f"{first.timing.device}, compiled in {compile_:.1f} s"
    )
