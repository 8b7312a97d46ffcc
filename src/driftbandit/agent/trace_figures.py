"""Figures of a trace: what the arms paid and which one was played; needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from driftbandit import errors
from driftbandit.report import figures
from driftbandit.system import label

Trace: TypeAlias = Any  # a `tracing.Trace`, which imports this module
WIDTH = 5.4  # inches; small, so that its letters can be read on a phone
MOST = 7  # arms in color; gray is the color of the others
OTHERS = "#bbbbbb"
LINES = (("black", "-"), ("#888888", "-"), ("black", "--"), ("#888888", "--"), ("black", ":"))


def of(trace: Trace, arm: int | None, against: Mapping[str, Trace]) -> figures.Figure:
    """Choices above, and below cumulative regret or the belief about one arm."""
    _check(trace, against)
    figure, (upper, lower) = figures.grid(2, 1, WIDTH, 2.4, sharex=True, height_ratios=[3, 2])
    choices(upper, trace)
    handles, names = upper.get_legend_handles_labels()
    columns = min(len(names), 4 if max(map(len, names)) <= 12 else 2)
    look: dict[str, Any] = {"fontsize": 9, "frameon": False, "handlelength": 1.2}
    figure.legend(handles, names, loc="outside upper center", ncols=columns, **look)
    upper.set_title(f"Choices of {trace.title} (dots)", fontsize=10)
    if arm is None:
        regrets(lower, _once([(trace.title, trace), *against.items()]))
    else:
        belief(lower, trace, arm)
    lower.set_xlabel("round", fontsize=9)
    lower.grid(alpha=0.3)
    lower.tick_params(labelsize=9)
    return figure


def choices(axis: Any, trace: Trace) -> None:
    """The expected reward of every arm as a line, and a dot on the line of the played one."""
    rounds = np.arange(len(trace))
    colors = _colors(trace)
    for row in sorted(colors, key=lambda row: colors[row] != OTHERS):  # the others below
        color, values, played = colors[row], trace.expected[:, row], trace.chosen == row
        axis.plot(rounds, values, color=color, lw=1.0, alpha=0.5)
        dots: dict[str, Any] = {"ls": "", "marker": "o", "ms": 3.5, "mew": 0, "zorder": 4}
        axis.plot(rounds[played], values[played], color=color, **dots)
        if color != OTHERS:
            name = label(trace.names[row])
            axis.plot([], [], color=color, marker="o", ms=4, lw=1.2, label=name)
    if OTHERS in colors.values():
        axis.plot([], [], color=OTHERS, marker="o", ms=4, lw=1.2, label="others")
    axis.set_ylabel("expected reward", fontsize=9)
    axis.margins(x=0.02)
    axis.grid(alpha=0.3)
    axis.tick_params(labelsize=9)


def regrets(axis: Any, traces: Mapping[str, Trace]) -> None:
    """Cumulative regret of each trace; without color, which stands for arms."""
    for place, (name, trace) in enumerate(traces.items()):
        color, line = LINES[place % len(LINES)]
        axis.plot(trace.regret, color=color, ls=line, lw=1.6, label=name)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("regret so far", fontsize=9)
    if len(traces) > 1:
        axis.legend(fontsize=9, frameon=False, loc="upper left")


def belief(axis: Any, trace: Trace, arm: int) -> None:
    """What the policy believes of an arm: ±2 standard deviations, the truth, and the rewards."""
    if np.isnan(trace.uncertainties).all():
        problem = f"{trace.label} has no Kalman filter, and so no uncertainty to draw"
        raise errors.InvalidInput("arm", problem, "leave it out")
    rounds, color = np.arange(len(trace)), _colors(trace)[arm]
    mean, width = trace.means[:, arm], 2 * trace.uncertainties[:, arm]
    band: dict[str, Any] = {"color": color, "alpha": 0.25, "lw": 0, "label": "belief, ±2 s.d."}
    axis.fill_between(rounds, mean - width, mean + width, **band)
    axis.plot(rounds, trace.expected[:, arm], color=color, lw=1.2, label="truth")
    played = trace.chosen == arm
    axis.plot(rounds[played], trace.rewards[played], ".", color="black", ms=2.5, label="rewards")
    axis.set_ylabel(f"arm {label(trace.names[arm])}", fontsize=9)
    above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}
    axis.legend(fontsize=9, ncols=3, handlelength=1.2, **above)


def _colors(trace: Trace) -> dict[int, str]:
    """The color of each row; if there are too many, only those that matter most have one."""
    n_arms = len(trace.names)
    if n_arms <= len(figures.COLORS):
        return dict(enumerate(figures.COLORS[:n_arms]))
    weight = sum(np.bincount(rows, minlength=n_arms) for rows in (trace.chosen, trace.best))
    first = sorted(np.argsort(-weight, kind="stable")[:MOST].tolist())
    return dict.fromkeys(range(n_arms), OTHERS) | dict(zip(first, figures.COLORS, strict=False))


def named(against: Any) -> dict[str, Trace]:
    """One trace or several, by their policies."""
    several = list(against) if isinstance(against, Iterable) else [against]
    return _once([(getattr(trace, "title", ""), trace) for trace in several])


def _once(pairs: list[tuple[str, Trace]]) -> dict[str, Trace]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            problem = f"has {name!r} twice"
            raise errors.InvalidInput("against", problem, "give a mapping from names to traces")
    return dict(pairs)


def _check(trace: Trace, against: Mapping[str, Trace]) -> None:
    for other in against.values():
        is_trace = isinstance(other, type(trace))
        if not (is_trace and np.array_equal(other.expected, trace.expected)):
            problem = f"has {other!r:.60}, which is not a trace of this world"
            raise errors.InvalidInput("against", problem, "give traces of the same model and seed")
