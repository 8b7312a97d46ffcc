"""The leaderboard as one picture: a heat map for each family, and the overall ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from driftbandit import plots
from driftbandit.leaderboard.words import number, title
from driftbandit.result import ORACLE

__all__ = ["figure"]

WIDEST = 1.5
"""Colors tell multiples from 2/3 to 3/2; numbers tell the rest."""
COLUMNS = 2


def figure(document: Mapping[str, Any]) -> Figure:
    """Policies × settings of each family, in multiples of the base's regret; blue is less."""
    listed = [row["policy"] for row in document["overall"]]
    families = list(dict.fromkeys(row["family"] for row in document["rows"]))
    cells = {(row["family"], row["setting"], row["policy"]): row for row in document["rows"]}
    panels = len(families) + 1
    drawing, axes = plots.grid(panels, COLUMNS, 9.6, 0.9 + 0.18 * len(listed))
    for axis, family in zip(axes, families, strict=False):
        _heat(
            axis, document, listed, {key[1:]: row for key, row in cells.items() if key[0] == family}
        )
        axis.set_title(family, fontsize=10)
    _overall(axes[panels - 1], document["overall"])
    for axis in axes[panels:]:
        axis.set_axis_off()
    return drawing


def _heat(
    axis: Any,
    document: Mapping[str, Any],
    listed: list[str],
    cells: Mapping[tuple[str, str], Mapping[str, Any]],
) -> None:
    setups = document["setups"]
    values = np.full((len(listed), len(setups)), np.nan)
    for column, setting in enumerate(setups):
        for line, policy in enumerate(listed):
            row = cells.get((setting, policy))
            if row is None:
                continue
            value = values[line, column] = row["geometric"][0]
            # Dark at both ends of the scale.
            dark = abs(np.log(value)) > 0.65 * np.log(WIDEST)
            axis.text(
                column,
                line,
                number(value, 2),
                ha="center",
                va="center",
                fontsize=5.8,
                color="white" if dark else "black",
                weight="bold" if row["lowest"] else "normal",
            )
    shades = mpl.colormaps["RdBu_r"].with_extremes(bad="#eeeeee")
    scale = LogNorm(1 / WIDEST, WIDEST)
    axis.imshow(values, cmap=shades, norm=scale, aspect="auto", interpolation="nearest")
    axis.set_xticks(
        range(len(setups)), [heading for heading, _ in setups.values()], rotation=45, ha="right"
    )
    axis.set_yticks(range(len(listed)), [title(policy) for policy in listed])
    axis.tick_params(labelsize=7, length=0)


def _overall(axis: Any, rows: list[Mapping[str, Any]]) -> None:
    for line, row in enumerate(rows):
        value, low, high = (np.nan if x is None else x for x in row["geometric"])
        color = "black" if row["policy"] == ORACLE else plots.COLORS[0]
        axis.plot([low, high], [line, line], color=color, lw=2.5, alpha=0.45)
        axis.plot(value, line, "o", ms=4.5, color=color)
    axis.axvline(1, color="black", lw=0.8, ls="--")
    axis.set_xscale("log")
    plots.log_ticks(axis.xaxis, *axis.get_xlim())
    axis.set_yticks(range(len(rows)), [title(row["policy"]) for row in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.tick_params(labelsize=7)
    axis.grid(axis="x", alpha=0.3)
    axis.set_title("all cells, with 95 % intervals", fontsize=10)
    axis.set_xlabel("regret, in multiples of IDEA's (geometric mean)", fontsize=8)
