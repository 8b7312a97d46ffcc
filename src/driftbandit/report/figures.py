"""The style of figures, and the kinds of chart used in several places; needs matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.io.atomic import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure  # `figures.Figure` in annotations

# Okabe and Ito's palette, safe for readers with any kind of color vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D1F", "#666666")
GRAY = COLORS[-1]
MORE_COLORS = (
    *("#2233EE", "#00BB00", "#FF0066", "#AA1188", "#11DDAA", "#9933DD", "#226600", "#CC5555"),
    *("#B0B0B0", "#440088", "#AACC44", "#661111", "#AA88FF", "#0B3D2E", "#FFAA88", "#FF44DD"),
)
"""For figures with more than eight lines: far in CIELAB from those eight and from each other."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
PLAIN: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False}
"""Matplotlib settings of every figure; `grid` applies them."""
FORMATS = (".png", ".svg", ".pdf")


def styles(
    labels: Iterable[str], known: Sequence[str] = (), black: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """One color and marker per label of a figure; no two labels have the same color.

    Args:
        labels: in the order in which those that are not known take their colors.
        known: labels whose style is the same in every figure, such as the registered policies.
        black: labels drawn in black without a marker, such as a reference.

    Example:
        >>> found = styles(["b", "mine"], known=("a", "b"))
        >>> found["b"] == styles(["b"], known=("a", "b"))["b"], found["mine"]["marker"]
        (True, 'D')
    """
    labels = list(labels)
    order = [label for label in dict.fromkeys([*known, *labels]) if label not in black]
    found: dict[str, dict[str, Any]] = {
        label: {"color": _color(i), "marker": MARKERS[(i + i // 8) % len(MARKERS)]}
        for i, label in enumerate(order)
    }
    return {label: found.get(label, {"color": "black", "marker": ""}) for label in labels}


def _color(place: int) -> str:
    """The color of a label; beyond the palette, the same colors again, each time darker."""
    palette = COLORS + MORE_COLORS
    again, place = divmod(place, len(palette))
    parts = (int(palette[place][start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(part * 0.7**again):02X}" for part in parts)


def beside(labels: Iterable[str]) -> float:
    """Inches to add to a figure whose axis has these names at its side, so that it keeps its size.

    Example:
        >>> beside(["idea", "kalman_ucb"]), round(beside(["mixed, with half the usual bonus"]), 2)
        (0.0, 1.19)
    """
    return 0.066 * max([0, *(len(label) - 14 for label in labels)])


def grid(
    panels: int, columns: int, width: float, height: float, **options: Any
) -> tuple[Figure, list[Any]]:
    """A figure of panels in rows of ``columns``, in plain style; unused ones are left for notes.

    The figure's width and each row's height are in inches; ``options`` go to ``subplots``.
    """
    with errors.needing("a plot"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    rows = -(-panels // columns)
    with mpl.rc_context(PLAIN):
        figure = Figure(figsize=(width, rows * height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for axis in axes:
        axis.tick_params(labelsize=8)
    return figure, axes


def note(panels: Sequence[Any], text: str) -> None:
    """Clear unused panels and write ``text`` into the first."""
    for number, axis in enumerate(panels):
        axis.set_axis_off()
        if number == 0:
            axis.text(0.5, 0.5, text, ha="center", va="center", fontsize=9)


def name_rows(axis: Any, names: Sequence[str]) -> None:
    """Name the rows of a chart, the first on top, with a light grid across them."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(max(len(names), 1) - 0.5, -0.5)  # also if nothing is named
    axis.grid(axis="x", alpha=0.3)


def interval_rows(
    axis: Any,
    rows: Sequence[tuple[float, float, float]],
    colors: Sequence[str],
    markers: Sequence[str] = (),
) -> None:
    """One row per (low, value, high): a line from end to end and a mark at the value; NaN: none."""
    for place, (low, value, high) in enumerate(rows):
        look: dict[str, Any] = {"color": colors[place], "solid_capstyle": "butt"}
        axis.plot([low, high], [place, place], marker="|", ms=8, lw=2.5, alpha=0.5, **look)
        marker = markers[place] if markers else "o"
        axis.plot(value, place, marker=marker, ls="", ms=5, color=colors[place])


def boxes(
    axis: Any, rows: Sequence[tuple[float, float, float, float]], colors: Sequence[str]
) -> None:
    """One row per (quartile, median, quartile, mean): a box, a line and a dot."""
    for place, (low, middle, high, mean) in enumerate(rows):
        color = colors[place]
        axis.barh(place, high - low, left=low, height=0.6, color=color, alpha=0.35)
        axis.plot([middle, middle], [place - 0.3, place + 0.3], color=color, lw=2)
        axis.plot(mean, place, "o", color=color, ms=4)


def curves(
    axis: Any,
    x: np.ndarray,
    lines: Mapping[str, np.ndarray],
    looks: Mapping[str, Mapping[str, Any]],
    *,
    bands: bool = True,
    dashed: Sequence[str] = (),
) -> None:
    """The median of each label's curves (n × len(x)), and a band between the quartiles."""
    for label, values in lines.items():
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
        line = "--" if label in dashed else "-"
        axis.plot(x, middle, label=label, ls=line, ms=4, markevery=5, **looks[label])
        if bands:
            axis.fill_between(x, low, high, color=looks[label]["color"], alpha=0.15, lw=0)
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)


def heat_map(
    axis: Any, values: np.ndarray, widest: float, text: Callable[[float], str], bold: np.ndarray
) -> None:
    """Ratios as colors from 1 / widest (blue) to widest (red), with their numbers; NaN is gray."""
    import matplotlib as mpl
    from matplotlib.colors import LogNorm

    for (line, column), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        dark = abs(np.log(value)) > 0.65 * np.log(widest)  # at both ends of the scale
        weight = "bold" if bold[line, column] else "normal"
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 5.8, "weight": weight}
        axis.text(column, line, text(value), color="white" if dark else "black", **look)
    shades = mpl.colormaps["RdBu_r"].with_extremes(bad="#eeeeee")
    norm = LogNorm(1 / widest, widest)
    axis.spines[:].set_visible(False)
    axis.imshow(values, cmap=shades, norm=norm, aspect="auto", interpolation="nearest")


def log_ticks(axis: Any, low: float, high: float) -> None:
    """A few plain ticks on a log axis from ``low`` to ``high``: 1, 2, 5, 10 or powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    decades = float(np.log10(high / low))
    narrow = decades < 1.7
    step = 10.0 ** max(1, int(np.ceil(decades / 3)))
    axis.set_major_locator(LogLocator(step, subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    if narrow:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def content(figure: Figure, kind: str) -> bytes:
    """The bytes of a figure's png, svg or pdf file, the same for the same figure."""
    with errors.needing("a plot"):
        import matplotlib as mpl

    changing = {"svg": "Date", "pdf": "CreationDate"}.get(kind, "Software")  # left out
    sink = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "driftbandit"}):
        figure.savefig(sink, format=kind, dpi=200, metadata={changing: None})
    return sink.getvalue()


def svg(figure: Figure) -> str:
    """The text of a figure's SVG file."""
    return content(figure, "svg").decode()


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a .png, .svg or .pdf file, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        name = errors.printable(str(path))
        raise errors.InvalidInput("path", f"is {name}", "end it in .png, .svg or .pdf")
    write_whole(path, content(figure, path.suffix[1:].lower()))
