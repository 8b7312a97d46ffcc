"""Results as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich import box
from rich.table import Table

from driftbandit.result import ORACLE, Result, median_and_iqr

__all__ = ["comparison", "footer"]


def comparison(results: dict[str, Result]) -> Iterator[Table]:
    """One table over all families where there are several and the Oracle played, else one each."""
    if len(results) > 1 and all(ORACLE in result.regret for result in results.values()):
        yield _excess(results)
    else:
        for name, result in results.items():
            yield _single(name, result)


def _table(title: str) -> Table:
    """A table that fits five families into 80 columns."""
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("policy", no_wrap=True)
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
        table.add_column(name, justify="right")
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
        table.add_column(heading, justify="right")
    excess = result.normalized(ORACLE) if ORACLE in result.regret else {}
    if excess:
        table.add_column("excess over Oracle", justify="right")
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
