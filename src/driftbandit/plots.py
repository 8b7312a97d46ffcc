"""Figures of simulation results: colour-blind-safe, labelled, written to a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io.atomic import write_whole
from driftbandit.result import ORACLE, Result, quartiles

with errors.needing("a plot"):
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

__all__ = [
    "COLORS",
    "boxes",
    "comparison",
    "cumulative",
    "grid",
    "log_ticks",
    "note",
    "save",
    "write",
]

# Okabe and Ito's palette, told apart by readers with any kind of color vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D1F", "#666666")
PLAIN: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False}
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")


def comparison(results: dict[str, Result], path: Path) -> None:
    """Save the comparison: quartiles of the excess regret by family, or one study's curves."""
    with mpl.rc_context(PLAIN):
        single = len(results) == 1
        with_oracle = all(ORACLE in result.regret for result in results.values())
        figure = _curves(results) if single or not with_oracle else _quartiles(results)
        sink = io.BytesIO()
        figure.savefig(sink, format=path.suffix[1:].lower(), dpi=150)
    write_whole(path, sink.getvalue())


def _styles(labels: list[str]) -> dict[str, dict[str, Any]]:
    return {
        label: {"color": COLORS[i % len(COLORS)], "marker": MARKERS[(i + i // 8) % len(MARKERS)]}
        for i, label in enumerate(label for label in labels if label != ORACLE)
    } | {ORACLE: {"color": "black", "marker": ""}}


def _quartiles(results: dict[str, Result]) -> Any:
    excess = {name: result.normalized(ORACLE) for name, result in results.items()}
    labels = _by_excess(excess)
    styles = _styles(labels)
    size = (2.2 + 1.9 * len(results), 1.3 + 0.34 * len(labels))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(results), sharey=True)
    for axis, (name, values) in zip(axes, excess.items(), strict=True):
        high_end = 0.0
        for row, label in enumerate(labels):
            low, middle, high = quartiles(values[label])
            high_end = max(high_end, high)
            axis.plot([low, high], [row, row], color=styles[label]["color"], lw=2, alpha=0.6)
            axis.plot(middle, row, ms=6, ls="", **styles[label])
        axis.set_title(name)
        axis.set_xscale("symlog", linthresh=0.1)
        axis.set_xlim(left=min(-0.02, axis.get_xlim()[0]))
        axis.set_xticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
        axis.set_xlim(right=max(10, high_end * 1.3))
        axis.grid(axis="x", alpha=0.3)
        axis.minorticks_off()
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    figure.suptitle("Regret above the Kalman Oracle's: lower is better", fontweight="bold")
    words = "(regret − Oracle's) / Oracle's: median and quartiles over runs, one panel per family"
    figure.supxlabel(words, fontsize=10)
    return figure


def _by_excess(excess: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """Policies from best to worst over all families, the order of the command line's table."""
    first = next(iter(excess.values()))

    def size(label: str) -> float:
        return float(sum(np.log1p(quartiles(values[label])[1]) for values in excess.values()))

    return sorted(first, key=size)


def boxes(result: Result) -> Figure:
    """Quartiles of every policy's regret over the runs, from the lowest mean to the highest."""
    labels = sorted(result.regret, key=lambda label: float(result.regret[label].mean()))
    styles = _styles(list(result.regret))
    with mpl.rc_context(PLAIN):
        figure = Figure(figsize=(6.4, 1.3 + 0.34 * len(labels)), layout="constrained")
        axis = figure.subplots()
        for row, label in enumerate(labels):
            low, middle, high = quartiles(result.regret[label])
            color = styles[label]["color"]
            axis.barh(row, high - low, left=low, height=0.6, color=color, alpha=0.35)
            axis.plot([middle, middle], [row - 0.3, row + 0.3], color=color, lw=2)
            axis.plot(float(result.regret[label].mean()), row, "o", color=color, ms=4)
        axis.set_yticks(range(len(labels)), labels)
        axis.invert_yaxis()
        axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
        axis.grid(axis="x", alpha=0.3)
        runs = result.regret[labels[0]].size
        axis.set_xlabel(f"box: quartiles over {runs} runs; line: median; dot: mean")
        axis.set_title(f"Regret after {result.rounds} rounds: lower is better")
    return figure


def cumulative(result: Result) -> Figure:
    """Cumulative regret round by round: median over the runs, and a band between quartiles."""
    if not result.curves:
        raise errors.InvalidInput("curves", "are none in this result", "give checkpoints > 0")
    styles, rounds = _styles(list(result.curves)), result.checkpoints
    with mpl.rc_context(PLAIN):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axis = figure.subplots()
        ends = {label: float(curve[..., -1].mean()) for label, curve in result.curves.items()}
        for label in sorted(ends, key=lambda label: -ends[label]):  # as the lines end, top down
            flat = result.curves[label].reshape(-1, len(rounds))
            low, middle, high = np.quantile(flat, [0.25, 0.5, 0.75], axis=0)
            line = "--" if label == ORACLE else "-"
            axis.plot(rounds, middle, label=label, ls=line, ms=4, markevery=5, **styles[label])
            axis.fill_between(rounds, low, high, color=styles[label]["color"], alpha=0.15, lw=0)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("round")
        axis.set_ylabel("cumulative regret")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        runs = len(flat)
        axis.set_title(f"Cumulative regret, median and quartiles of {runs} runs: lower is better")
    return figure


def write(figure: Figure, path: Path) -> None:
    """Write a figure to a .png, .svg or .pdf file, whole or not at all."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        name = errors.printable(str(path))
        raise errors.InvalidInput("path", f"is {name}", "end it in .png, .svg or .pdf")
    write_whole(path, save(figure, path))


def _curves(results: dict[str, Result]) -> Any:
    """Regret per round so far; in multiples of the Oracle's final one where there is one."""
    size = (1 + 4.6 * len(results), 3.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(results), squeeze=False)
    for axis, (name, result) in zip(axes[0], results.items(), strict=True):
        styles = _styles(list(result.curves))
        rounds = result.checkpoints
        scale: Any = rounds
        axis.set_ylabel("regret per round so far")
        if ORACLE in result.regret and result.regret[ORACLE].all():
            scale = rounds * result.regret[ORACLE].reshape(-1, 1) / result.rounds
            axis.set_ylabel("regret per round so far / Oracle's")
        order = sorted(result.curves, key=lambda label: float(result.curves[label][..., -1].mean()))
        for label in order:  # that of the table
            flat = result.curves[label].reshape(-1, len(rounds)) / scale
            low, middle, high = np.quantile(flat, [0.25, 0.5, 0.75], axis=0)
            line = "--" if label == ORACLE else "-"
            axis.plot(rounds, middle, label=label, ls=line, ms=4, markevery=5, **styles[label])
            if len(result.curves) <= 4:  # more bands than that hide each other
                axis.fill_between(rounds, low, high, color=styles[label]["color"], alpha=0.15, lw=0)
        axis.set_title(f"{name}: median over {len(flat)} runs, lower is better")
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set_xlabel("round")
        axis.grid(alpha=0.3)
    axes[0][-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def grid(panels: int, columns: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure of panels in rows of ``columns``; unused ones are left for notes."""
    rows = -(-panels // columns)
    figure = Figure(figsize=(width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis in axes:
        axis.tick_params(labelsize=8)
    return figure, axes


def note(panels: list[Any], text: str) -> None:
    """Clear unused panels and write ``text`` into the first."""
    for number, axis in enumerate(panels):
        axis.set_axis_off()
        if number == 0:
            axis.text(0.5, 0.5, text, ha="center", va="center", fontsize=9)


def log_ticks(axis: Any, low: float, high: float) -> None:
    """A few plain ticks on a log axis from ``low`` to ``high``: 1, 2, 5, 10 or powers of ten."""
    decades = float(np.log10(high / low))
    narrow = decades < 1.7
    step = 10.0 ** max(1, int(np.ceil(decades / 3)))
    axis.set_major_locator(LogLocator(step, subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    if narrow:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def save(figure: Figure, path: Path) -> bytes:
    """The bytes of a figure's file in the format of ``path``, the same for the same figure."""
    kind = path.suffix[1:].lower()
    unsaid = {"svg": "Date", "pdf": "CreationDate"}.get(kind, "Software")
    sink = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "driftbandit"}):
        figure.savefig(sink, format=kind, dpi=200, metadata={unsaid: None})
    return sink.getvalue()
