"""Results as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from driftbandit import statistics
from driftbandit.result import ORACLE, Result, median_and_iqr
from driftbandit.statistics import Paired

__all__ = ["against", "comparison", "explanation", "footer"]

VERDICT_STYLES = {"better": "green", "worse": "red"}


def comparison(results: dict[str, Result]) -> Iterator[Table]:
    """One table over all families where there are several and the Oracle played, else one each."""
    if len(results) > 1 and all(ORACLE in result.regret for result in results.values()):
        yield _excess(results)
    else:
        for name, result in results.items():
            yield _single(name, result)


def _table(title: str) -> Table:
    """A table that fits five families into 80 columns, whose long names are cut before others."""
    width = min(len(title), 80)  # or a narrow table would break its title
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=0, show_edge=False, min_width=width)
    table.add_column("policy", overflow="ellipsis")
    return table


def _cell(values: tuple[float, float]) -> str:
    return f"{_short(values[0])} ({_short(values[1])})"


def _short(value: float) -> str:
    """Two decimals, or three digits from ten on."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"


def _excess(results: dict[str, Result]) -> Table:
    table = _table("Excess regret over the Kalman Oracle's: median (IQR) over runs")
    cells: dict[str, list[tuple[float, float]]] = {}
    for name, result in results.items():
        table.add_column(name, justify="right", no_wrap=True)
        for policy, values in result.normalized(ORACLE).items():
            cells.setdefault(policy, []).append(median_and_iqr(values))
    best = [min(column, key=lambda cell: cell[0]) for column in zip(*cells.values(), strict=True)]
    for policy, row in sorted(
        cells.items(), key=lambda item: sum(np.log1p([c[0] for c in item[1]]))
    ):
        table.add_row(
            policy,
            *(
                ("[bold green]" if cell[0] <= top[0] else "") + _cell(cell)
                for cell, top in zip(row, best, strict=True)
            ),
        )
    table.add_section()
    means = [f"{result.regret[ORACLE].mean():.3g}" for result in results.values()]
    table.add_row("(Oracle's mean)", *means, style="dim")
    return table


def _single(name: str, result: Result) -> Table:
    table = _table(f"{name}: regret after {result.rounds} rounds")
    for heading in ("mean", "± s.e.", "median", "IQR"):
        table.add_column(heading, justify="right", no_wrap=True)
    excess = result.normalized(ORACLE) if ORACLE in result.regret else {}
    if excess:
        table.add_column("excess over Oracle", justify="right", no_wrap=True)
    rows = sorted(result.summary().items(), key=lambda item: item[1]["mean"])
    best = next((policy for policy, _ in rows if policy != ORACLE), None)
    for policy, row in rows:
        cells = [
            f"{row['mean']:,.4g}",
            f"{row['standard_error']:,.2g}",
            f"{row['median']:,.4g}",
            f"{row['iqr']:,.3g}",
        ]
        if policy in excess:
            cells.append(_cell(median_and_iqr(excess[policy])))
        style = "bold green" if policy == best else "dim" if policy == ORACLE else None
        table.add_row(policy, *cells, style=style)
    return table


def against(name: str, result: Result, baseline: str) -> Table:
    """Every policy against one of them, run by run."""
    table = _table(f"{name}: run by run against the baseline, {baseline}")
    for heading in ("difference", "95 % interval", "wins, %"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    rows = result.compare(baseline, seed=result.seed)
    for policy, row in sorted(rows.items(), key=lambda item: item[1].median_difference):
        verdict = Text(row.verdict, VERDICT_STYLES.get(row.verdict, ""))
        style = "dim" if policy == ORACLE else None
        table.add_row(policy, *_difference(row), _wins(row), verdict, style=style)
    return table


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
