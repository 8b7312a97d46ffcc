"""The report of a model's health, and its figure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandit.monitoring import charts, checks, words
from driftbandit.monitoring.findings import Findings, Test
from driftbandit.report import (
    Block,
    Cell,
    Facts,
    Figure,
    Points,
    Report,
    Row,
    Table,
    Text,
    storable,
)
from driftbandit.report.figures import COLORS, GRAY, grid
from driftbandit.report.numbers import percent, short
from driftbandit.system import label

WINDOW = 50  # rewards of the running mean square
MOST_ROWS = 50  # arms in the table: those that are off come first
TITLES = {
    "mean square": "mean square of the surprises",
    "rounds": "autocorrelation over rounds (share that earlier ones explain)",
    "arms": "autocorrelation within arms (share that earlier ones explain)",
    "outliers": "surprises beyond three robust standard deviations",
    "jumps": "largest jump of an arm in hindsight, in standard deviations",
    "changes": "highest chart (CUSUM, single surprises), as a share of its limit",
}
EXPLAINED = (
    "A surprise is (reward − predicted) / standard deviation. Under the true model surprises are "
    "independent and standard normal."
)


def report(health: Findings, name: str = "log") -> Report:
    """The report of a model's health on a log of that name."""
    summary = words.summary(health)
    shown: list[Block] = [_facts(health), _tests(health), Text(EXPLAINED, "dim")]
    if health.changes:
        shown.append(Points([words.change_sentence(one) for one in health.changes[:20]], "bad"))
    shown.append(_arms(health))
    if health.parts:
        shown.append(_parts(health))
    caption = f"{name}: surprises of {len(health.surprises.values):,} rewards"
    alt = "Surprises over time, running mean square, autocorrelations and CUSUM charts."
    shown.append(Figure(caption, alt, lambda: draw(health, caption), "health"))
    return Report(f"Does the model hold on {name}?", summary, shown, _data(health, summary))


def _data(health: Findings, summary: str) -> dict[str, Any]:
    return dict(
        storable(
            {
                "holds": health.holds,
                "summary": summary,
                "level": health.level,
                "rewards": len(health.surprises.values),
                "tests": [test._asdict() for test in health.tests.values()],
                "changes": [change._asdict() for change in health.changes],
                "arms": [
                    arm._replace(change=None)._asdict() | {"off": arm.change is not None}
                    for arm in health.arms
                ],
                "parts": [part._asdict() for part in health.parts],
            }
        )
    )


def _facts(health: Findings) -> Facts:
    rewards = len(health.surprises.values)
    chance = f"{percent(health.level)}, for all tests together"
    off = ", ".join(label(name) for name in health.off[:10]) or "none"
    return Facts(
        {
            "verdict": "the model holds" if health.holds else "the model does not hold",
            "surprises": f"{rewards:,}, of {len(health.arms):,} arms",
            "arms that are off": off,
            "chance of a false alarm": chance,
        }
    )


def _band(test: Test) -> str:
    if test.low == 0:
        return f"at most {short(test.high)}"
    return f"{short(test.low)} to {short(test.high)}"


def _tests(health: Findings) -> Table:
    rows: list[Row] = []
    for name, test in health.tests.items():
        verdict = Cell("holds", tone="good") if test.holds else Cell("fails", tone="bad")
        p_value = "–" if test.p_value is None else short(test.p_value, 2)
        rows.append([TITLES[name], short(test.value), _band(test), p_value, verdict])
    return Table("Tests", ["test", "value", "normal", "p-value", "verdict"], rows)


def _arms(health: Findings) -> Table:
    rows: list[Row] = []
    for arm in sorted(health.arms, key=lambda arm: arm.change is None)[:MOST_ROWS]:
        square = Cell(short(arm.mean_square), note=f"{short(arm.low)} to {short(arm.high)}")
        change: Cell | str = "–"
        if arm.change is not None:
            text = words.KINDS[arm.change.kind].format(arm.change.since)
            change = Cell(text, tone="bad")
        rows.append([label(arm.name), arm.rewards, f"{arm.mean:+.2f}", square, change])
    left = len(health.arms) - len(rows)
    caption = "Arms" + (f" (and {left:,} more)" if left else "")
    return Table(caption, ["arm", "rewards", "mean", "mean square (95% band)", "change"], rows)


def _parts(health: Findings) -> Table:
    off = health.off_parts()
    rows: list[Row] = [
        [
            Cell(label(part.name), tone="bad" if part in off else ""),
            f"{part.speed:+.1f}",
            short(part.speed_p_value, 2),
            f"{part.jump:.1f}, in round {part.jump_round}",
            short(part.jump_p_value, 2),
        ]
        for part in health.parts
    ]
    columns = ["part", "moves more (+) or less (−)", "p-value", "largest jump", "p-value"]
    return Table("Parts of the state, in standard deviations", columns, rows)


def draw(health: Findings, title: str) -> Any:
    """Surprises, their running mean square, their autocorrelation, and the charts."""
    figure, axes = grid(4, 2, 9.5, 2.9)
    _draw_surprises(axes[0], health)
    _draw_mean_square(axes[1], health)
    _draw_correlations(axes[2], health)
    _draw_charts(axes[3], health)
    for axis in axes:
        axis.title.set_fontsize(9)
    figure.suptitle(title, fontsize=11)
    return figure


def _times(health: Findings) -> tuple[np.ndarray, str]:
    found = health.surprises
    if found.sequences[-1] == found.sequences[0]:
        return found.rounds, "round"
    return np.arange(len(found.rounds)), "rewards in the order of the log"


def _draw_surprises(axis: Any, health: Findings) -> None:
    u = health.surprises.values
    times, unit = _times(health)
    by_number = dict(zip(np.unique(health.surprises.arms).tolist(), health.arms, strict=True))
    off = np.array([by_number[arm].change is not None for arm in health.surprises.arms.tolist()])
    alpha = max(0.1, min(0.7, 400 / len(u)))
    dots = {"ls": "", "marker": ".", "ms": 4, "alpha": alpha, "rasterized": True}
    axis.plot(times[~off], u[~off], color=COLORS[0], **dots)
    if off.any():
        axis.plot(times[off], u[off], color=COLORS[1], **dots | {"alpha": max(alpha, 0.4)})
        axis.plot([], [], ".", color=COLORS[1], label="arms that are off")
        axis.legend(fontsize=7, frameon=False, loc="upper left")
    for height in (-2, 2):
        axis.axhline(height, color=GRAY, lw=1, ls="--")
    beyond = float((np.abs(u) > 2).mean())
    axis.set_title(f"surprises: {100 * beyond:.1f}% beyond ±2 (normal: 4.6%)")
    axis.set(xlabel=unit, ylabel="surprise")


def _draw_mean_square(axis: Any, health: Findings) -> None:
    u = health.surprises.values
    times, unit = _times(health)
    size = min(WINDOW, len(u))
    running = np.convolve(u**2, np.ones(size) / size, "valid")
    low, high = checks.mean_square_band(size, 0.05)
    axis.axhspan(low, high, color=GRAY, alpha=0.15, lw=0)
    axis.axhline(1, color=GRAY, lw=1, ls="--")
    axis.plot(times[size - 1 :], running, color=COLORS[0], lw=1.2)
    axis.set_ylim(bottom=0)
    axis.set_title(f"mean square of {size} surprises, 95% band")
    axis.set(xlabel=unit, ylabel="mean square")


def _draw_correlations(axis: Any, health: Findings) -> None:
    looks = {"rounds": (COLORS[0], -0.18, "over rounds"), "arms": (COLORS[1], 0.18, "within arms")}
    for name, (found, spread) in health.correlations.items():
        color, shift, text = looks[name]
        lags = np.arange(1, len(found) + 1)
        axis.bar(lags + shift, found, 0.34, color=color, label=text)
        for sign in (-1, 1):
            axis.plot(lags + shift, sign * 2 * spread, "_", color=color, ms=9, alpha=0.6)
    axis.axhline(0, color=GRAY, lw=0.8)
    axis.legend(fontsize=7, frameon=False, ncols=2, loc="upper right")
    axis.margins(y=0.25)
    axis.set_title("autocorrelation, with ±2 standard deviations")
    axis.set(xlabel="lag", ylabel="autocorrelation")


def _draw_charts(axis: Any, health: Findings) -> None:
    """The charts of all arms, and those of the arms that are off or else the highest ones."""
    found = health.surprises
    times, unit = _times(health)
    everything = np.arange(len(found.values))
    numbers = np.unique(found.arms).tolist()
    streams = [(None, everything)] + [(arm, everything[found.arms == arm]) for arm in numbers]
    lines, limits = [], {**health.limits, "peak": math.inf}  # single surprises are shown above
    for arm, places in streams:
        heights = charts.highest(found.values[places], limits)
        name = "all arms" if arm is None else f"arm {label(health.arms[numbers.index(arm)].name)}"
        lines.append((name, times[places], heights))
    lines = [lines[0], *sorted(lines[1:], key=lambda line: -line[2].max())[:3]]
    for (name, when, heights), color in zip(lines, COLORS, strict=False):
        axis.plot(when, heights, color=color, lw=1.2, label=name)
    axis.axhline(1, color=GRAY, lw=1, ls="--")
    for arm in health.arms if unit == "round" else ():
        if arm.change is not None:
            axis.axvline(arm.change.since, color=GRAY, lw=1, ls=":")
    top = max(float(line[2].max()) for line in lines)
    if top > 5:
        axis.set_yscale("symlog", linthresh=1)
    axis.set_ylim(bottom=0, top=max(1.4, 1.4 * top))
    axis.legend(fontsize=7, frameon=False, ncols=2, loc="upper left")
    axis.set_title("highest CUSUM chart of each, in units of its limit")
    axis.set(xlabel=unit, ylabel="height / limit")
