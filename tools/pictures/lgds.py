"""`lgds.gif`: a hidden state in the plane, arms as directions, and the belief of the filter."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from driftbandit.kalman import Belief

from . import canvas
from .play import Play, beliefs, circle, played

SIZE = 720, 430
ROUNDS, PHASES, HOLD, SEED = 16, 6, 1000, 0
STEPS = list(range(ROUNDS * PHASES))
NAMES = "ABCD"


@functools.cache
def run() -> tuple[np.ndarray, Play, list[tuple[Belief, Belief]]]:
    """IDEA on the first seed, 0."""
    model, arms = circle(0.98, 40, 0.04, 0.3, [20, 100, 190, 290])
    play = played(model, arms, "idea", ROUNDS + 1, SEED)
    return arms, play, beliefs(model, arms, play)


def between(first: Any, second: Any, share: float) -> Any:
    """A state or a belief on the way from one to the other, for smooth motion."""
    if isinstance(first, Belief):
        return Belief(*(between(a, b, share) for a, b in zip(first, second, strict=True)))
    return (1 - share) * first + share * second


def ellipse(belief: Belief, **style: object) -> Ellipse:
    """The region that holds the state with 90%."""
    sizes, axes = np.linalg.eigh(belief.cov)
    width, height = 2 * np.sqrt(4.605 * sizes)  # 4.605: the 90% quantile of χ² with 2 degrees
    angle = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
    return Ellipse(tuple(belief.mean), width, height, angle=angle, **style)


@canvas.styled
def frame(step: int, scale: float = 1.0) -> Figure:
    """Half of a round's phases show its reward, the other half how the state moves on."""
    arms, play, paths = run()
    t, phase = divmod(step, PHASES)
    half = PHASES // 2
    moving, share = phase >= half, (phase % half + 1) / half
    (before, after), (ahead, _) = paths[t], paths[t + 1]
    belief = between(after, ahead, share) if moving else between(before, after, share)
    z = between(*play.states[t : t + 2], share) if moving else play.states[t]
    figure = canvas.figure(*SIZE, scale)
    plane, lines = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.0, right=0.97, top=0.78, bottom=0.13, wspace=0.08)
    _draw_plane(plane, arms, play, t, moving, z, belief)
    _draw_lines(lines, play, t)
    figure.text(0.02, 0.93, "Hidden state, and belief", fontsize=16, weight="bold")
    figure.text(0.54, 0.93, "Expected rewards", fontsize=16, weight="bold")
    # Both sentences stay in place, so that they can be read while the picture moves.
    doing = ("A play shrinks the belief.", 0.865), ("Between plays it grows.", 0.805)
    for (words, y), now in zip(doing, (not moving, moving), strict=True):
        figure.text(0.02, y, words, color=canvas.BLUE if now else "#BBBBBB")
    figure.text(0.54, 0.865, "● the arm that is played")
    figure.text(0.02, 0.03, "● state", color=canvas.INK)
    figure.text(0.17, 0.03, "● belief, 90%", color=canvas.BLUE)
    return figure


def _draw_plane(
    axes: Any, arms: np.ndarray, play: Play, t: int, moving: bool, z: np.ndarray, belief: Belief
) -> None:
    reach = np.abs(play.states).max() + 0.8
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    played_arm = None if moving else int(play.choices[t])
    for i, (arm, color) in enumerate(zip(arms, canvas.ARMS, strict=False)):
        far, chosen = 0.88 * reach * arm, i == played_arm
        axes.plot(*zip((0, 0), far, strict=True), color=color, lw=5 if chosen else 2.5)
        axes.text(*(1.1 * far), NAMES[i], color=color, weight="bold", ha="center", va="center")
    axes.add_patch(ellipse(belief, facecolor="#0072B230", edgecolor=canvas.BLUE, lw=2, zorder=3))
    trail = np.vstack([play.states[max(0, t - 6) : t + 1], z])
    axes.plot(*trail.T, color=canvas.GRAY, lw=1.5, zorder=4)
    if played_arm is not None:  # the reward is the length of the projection
        foot = (arms[played_arm] @ z) * arms[played_arm]
        axes.plot(*zip(z, foot, strict=True), color=canvas.INK, lw=1.5, ls=":", zorder=4)
    axes.plot(*z, "o", color=canvas.INK, ms=9, zorder=5)


def _draw_lines(axes: Any, play: Play, t: int) -> None:
    seen, most = np.arange(t + 1), 1.1 * np.abs(play.expected).max()
    heights = canvas.spaced(play.expected[t], 0.12 * most)
    for i, color in enumerate(canvas.ARMS[: len(NAMES)]):
        axes.plot(seen, play.expected[: t + 1, i], color=color, lw=2.5)
        axes.text(t + 0.6, heights[i], NAMES[i], color=color, weight="bold", va="center")
    points = play.expected[seen, play.choices[: t + 1]]
    axes.scatter(seen, points, s=42, color=canvas.INK, lw=0, zorder=3)
    axes.set(xlim=(-1, ROUNDS + 1), ylim=(-most, most), yticks=[0], xlabel="round")
    axes.set_xticks([0, 4, 8, 12, 16])
    axes.axhline(0, color=canvas.PALE, lw=1, zorder=0)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
