"""Figures of the advice from a log."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import statistics
from driftbandit.advice import log_play
from driftbandit.advice.log_play import Replayed
from driftbandit.identify.structured.components import components
from driftbandit.identify.structured.fitting import StructuredFit
from driftbandit.io.logs import Log
from driftbandit.policies import title
from driftbandit.report.figures import COLORS, GRAY, grid, interval_rows, name_rows
from driftbandit.system import label

MOST_ROUNDS = 2000  # that a figure shows, the last ones


def means(found: StructuredFit, log: Log) -> Any:
    """Rewards, and each arm's mean over time without seasons; of the last sequence."""
    figure, [axis] = grid(1, 1, 8.0, 3.4)
    one = log.sequences[-1]
    paths = [path for path in components(found) if not path.component.startswith("season(")]
    paths = [path for path in paths if not path.component.startswith("regression(")]
    shown = one.rounds > one.rounds[-1] - MOST_ROUNDS
    plays = np.bincount(one.arms, minlength=len(log.names))
    for place, arm in enumerate(np.argsort(-plays, kind="stable")[: len(COLORS)]):
        color, name = COLORS[place], log.names[arm]
        mine = shown & (one.arms == arm)
        dots = {"ls": "", "marker": ".", "ms": 3, "alpha": 0.35, "rasterized": True}
        axis.plot(one.rounds[mine], one.rewards[mine], color=color, **dots)
        own = [path for path in paths if path.label in ("", str(name))]
        if not own:
            continue
        last = own[0].sequences == own[0].sequences[-1]
        last &= own[0].rounds > one.rounds[-1] - MOST_ROUNDS
        total = np.sum([path.mean for path in own], axis=0)
        axis.plot(own[0].rounds[last], total[last], color=color, lw=1.8, label=_text(label(name)))
    axis.set(xlabel="round", ylabel="reward")
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def gains(done: Replayed) -> Any:
    """Each policy's gain over the fixed arm, with its interval, if the log can tell."""
    gains = [(row, row.over_fixed) for row in log_play.shown_rows(done)]
    rows = [row for row, gain in gains if gain and gain.verdict != statistics.TOO_FEW]
    figure, [axis] = grid(1, 1, 7.0, 0.9 + 0.28 * len(rows))
    ends = [(row.over_fixed.low, row.over_fixed.mean, row.over_fixed.high) for row in rows]  # type: ignore[union-attr]
    colors = [COLORS[0] if row.kind == "policy" else GRAY for row in rows]
    interval_rows(axis, ends, colors)
    axis.axvline(0, color="black", ls="--", lw=1)
    names = [title(row.label) if row.kind == "policy" else _reference(row) for row in rows]
    name_rows(axis, [_text(name) for name in names])
    axis.set_xlabel(f"reward per round, minus that of always {_text(label(done.fixed))}")
    return figure


def _reference(row: log_play.Earned) -> str:
    if row.arm is not None:
        return f"always {label(row.arm)}, in hindsight"
    return {"logging": "the log itself"}.get(row.label, row.label)


def _text(name: str) -> str:
    """Without the marks of a formula."""
    return name.replace("$", r"\$")
