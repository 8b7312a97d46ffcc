"""From the curve to the best vector: the highest points of the curve, climbed from by Newton.

On the sphere the gradient of f = ⟨b, m⟩ + u is g = m + ∇u − μb, μ = ⟨b, m⟩, and minus its Hessian
between tangents is M = μI − H, H that of u; b itself, which M takes to μb, is at right angles to g.
A step solves (M + θI) δ = g. θ = 0 is Newton's; with θ above M's size it points uphill whatever M.
All are tried side by side, and the present point too, so that no round goes down.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from driftbandit.arrays import Array, dots, namespace
from driftbandit.sphere.frame import identity, normalized, rounding
from driftbandit.sphere.objectives import Objective
from driftbandit.sphere.path import curves

__all__ = ["climbed", "highest", "residuals"]

KEPT = 2
"""Points for every curve, the highest of all: they and their mirror images are climbed from."""
TOGETHER, ALONE = 2, 12
"""Rounds for all starts, and at most for the best of them."""
DAMPINGS = (3e-14, 1e-5, 1e-2, 2.0)
"""θ in units of M's size. The first is there so that no system is singular; the next
leave a ridge, which bends, by shorter steps; the last always points uphill."""
LEAST = 1e-36
"""Added to M's squared size, which is about one, so that zero can be divided by, too."""
ROUNDINGS = 16
"""By which Newton's step may score less than others: near the top, scores tell nothing apart."""
STILL = 1e-4
"""Newton's steps shorter than it are the last ones: the next is its square."""


def highest(objective: Objective) -> Array:
    """The unit vector b with the highest score, d numbers."""
    xp = namespace(objective.frame.mean)
    rough = objective.rough()
    rows = climbed(rough, _starts(rough), TOGETHER)
    best = xp.argmax(_scores(objective, rows))
    return climbed(objective, rows[best][None, :], ALONE)[0]


def _starts(objective: Objective) -> Array:
    """The highest points of the curves, and their mirror images.

    The image in the plane across C's leading eigenvector has the same q. Where m says little about
    the eigenvector there is a top on either side, and the curve, which jumps from one to the other
    where m says nothing, may have points on one side only.
    """
    forms = objective.forms
    xp = namespace(forms)
    along = curves(objective.frame, forms)
    points = along.at(along.levels(_places(objective.points, forms.dtype)))
    top = xp.argsort(_scores(objective, points.rows))[-KEPT * forms.shape[0] :]
    rows, leads = xp.take(points.rows, top, axis=0), xp.take(points.leads, top, axis=0)
    return xp.concat([rows, rows - 2 * dots(rows, leads)[:, None] * leads], axis=0)


def _scores(objective: Objective, rows: Array) -> Array:
    """Of every row; of one that is none, since numbers were too small or too large, minus ∞."""
    return namespace(rows).fmax(objective.scores(rows), -np.inf)


def climbed(objective: Objective, rows: Array, rounds: int) -> Array:
    """Every row, n × d, moved uphill so many times, fewer where all stand still."""
    if isinstance(rows, np.ndarray):
        for _ in range(rounds):
            rows, steps = _climbed_once(objective, rows)
            if np.abs(steps).max() < STILL:
                break
        return rows
    from jax import lax  # which is loaded if the rows are its arrays

    def moving(state: tuple[Any, Array, Array]) -> Any:
        return (state[0] < rounds) & (abs(state[2]).max() >= STILL)

    def moved(state: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        return (state[0] + 1, *_climbed_once(objective, state[1]))

    return lax.while_loop(moving, moved, (0, rows, rows))[1]


def _climbed_once(objective: Objective, rows: Array) -> tuple[Array, Array]:
    """The rows after a round, and Newton's steps."""
    xp = namespace(rows)
    n, d = rows.shape
    choices = len(DAMPINGS) + 1
    steps = _steps(objective, rows)
    tried = xp.concat([normalized(rows[:, None, :] + steps), rows[:, None, :]], axis=1)
    tried = xp.reshape(tried, (n * choices, d))
    scores = xp.reshape(_scores(objective, tried), (n, choices))
    best = xp.argmax(scores + _preferred(rows.dtype), axis=1)
    return tried[best + choices * np.arange(n)], steps[:, 0]


@functools.lru_cache(maxsize=8)
def _places(points: int, dtype: Any) -> np.ndarray:
    """Of the points: dense at both ends, since either of ‖m‖ and u may be small."""
    t = (np.arange(points) + 0.5) / points
    return np.asarray(t**3 / (t**3 + (1 - t) ** 2), dtype)


@functools.lru_cache(maxsize=8)
def _preferred(dtype: Any) -> np.ndarray:
    """A few roundings for Newton's step, nothing for the other choices."""
    return np.array([ROUNDINGS * rounding(dtype)] + [0.0] * len(DAMPINGS), dtype)


@functools.lru_cache(maxsize=64)
def _dampings(n_states: int, dtype: Any) -> np.ndarray:
    """θI of every damping, none below a few roundings."""
    sizes = np.maximum(DAMPINGS, ROUNDINGS * rounding(dtype))
    return sizes.astype(dtype)[:, None, None] * identity(n_states, dtype)


def residuals(objective: Objective, rows: Array) -> Array:
    """‖g‖ of every row: zero at a stationary point."""
    gradient, _, _ = _slopes(objective, rows)
    return namespace(rows).sqrt(dots(gradient, gradient))


def _slopes(objective: Objective, rows: Array) -> tuple[Array, Array, Array]:
    """g, n × d, and μ, n × 1, and H, n × d × d, of every row."""
    slope, hessian = objective.slopes(rows)
    height = (rows @ objective.frame.mean)[:, None]
    return slope + objective.frame.mean - height * rows, height, hessian


def _steps(objective: Objective, rows: Array) -> Array:
    """The step of every damping, n × dampings × d."""
    n, d = rows.shape
    xp = namespace(rows)
    gradient, height, hessian = _slopes(objective, rows)
    M = height[:, :, None] * identity(d, rows.dtype) - hessian
    entries = xp.reshape(M, (n, d * d))
    size = xp.sqrt(dots(entries, entries) + LEAST)[:, None, None]
    damped = (M / size)[:, None] + _dampings(d, rows.dtype)
    return xp.linalg.solve(damped, (gradient[:, :, None] / size)[:, None])[..., 0]
