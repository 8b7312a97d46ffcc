"""Figures at an exact size in pixels, and animations that share one palette."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

# Okabe and Ito's palette, as in `driftbandit.report.figures`.
BLUE, RED, GREEN, PINK, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
INK, GRAY, PALE = "#222222", "#767676", "#DDDDDD"
ARMS = (GREEN, PINK, ORANGE, "#56B4E9", "#8C6D1F")
"""Colors of arms. Blue and red are kept for policies and beliefs."""
DPI = 100
FRAME = 85
"""Milliseconds per frame."""
STYLE = {
    "font.size": 14,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GRAY,
    "axes.labelcolor": INK,
    "xtick.color": GRAY,
    "ytick.color": GRAY,
    "text.color": INK,
}
styled = mpl.rc_context(STYLE)
"""A decorator: the function draws in this style."""


def figure(width: int, height: int, scale: float = 1.0) -> Figure:
    """An empty white figure of width × height pixels; ``scale`` multiplies both, not the fonts."""
    return Figure(figsize=(width / DPI, height / DPI), dpi=DPI * scale, facecolor="white")


def image(figure: Figure) -> Image.Image:
    """The figure's pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])


def spaced(values: Any, gap: float) -> np.ndarray:
    """Heights for labels of these values, at least ``gap`` apart, in the same order."""
    values = np.asarray(values, float)
    order, placed = np.argsort(values, kind="stable"), values.copy()
    for low, high in itertools.pairwise(order):
        placed[high] = max(placed[high], placed[low] + gap)
    return placed


def with_white(picture: Image.Image) -> Image.Image:
    """The same with its lightest colors made white: a palette of averages makes the paper gray."""
    palette = np.array(picture.getpalette()).reshape(-1, 3)
    palette[palette.min(axis=1) > 246] = 255
    picture.putpalette(palette.ravel().tolist())
    return picture


def save_still(figure: Figure, path: Path) -> None:
    """A PNG with a small palette: line drawings need no more, and take a third of the bytes."""
    with_white(image(figure).quantize(128, dither=Image.Dither.NONE)).save(path, optimize=True)


def save_animation(frames: Iterable[Image.Image], path: Path, hold: int, colors: int = 48) -> None:
    """A GIF that repeats forever and shows its last frame for ``hold`` milliseconds.

    All frames use the palette of the last one, which has every color; so a frame differs from the
    one before only where something moved, and Pillow stores only that part.
    """
    pictures = list(frames)
    palette = with_white(pictures[-1].quantize(colors, dither=Image.Dither.NONE))
    pictures = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    durations = [FRAME] * (len(pictures) - 1) + [hold]
    pictures[0].save(
        path, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True
    )
