"""From the curve to the best vector: the highest points of the curve, climbed from by Newton.

On the sphere the gradient of f = ⟨b, m⟩ + u is g − νb with g = m + ∇u, ν = ⟨b, g⟩, and minus its
Hessian is νI − ∇²u between tangents. A step solves (νI − ∇²u + θI) δ = g − νb. θ = 0 is Newton's;
with θ above the Hessian's size it points uphill whatever the Hessian. All are tried side by side,
and the present point too, so that no round goes down.
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

POINTS = 20
"""Of a curve."""
_T = (np.arange(POINTS) + 0.5) / POINTS
PLACES = _T**3 / (_T**3 + (1 - _T) ** 2)
"""Of the points: dense at both ends, since either of ‖m‖ and u may be small against the other."""
TOGETHER, ALONE = 3, 2
"""Rounds for all starts, and for the best of them."""
DAMPINGS = (3e-14, 0.03, 0.3, 3.0)
"""θ in units of the Hessian's size; the first is there so that no system is singular."""
ROUNDINGS = 16
"""By which Newton's step may score less than others: near the top, scores tell nothing apart."""
STILL = 1e-5
"""Newton's steps shorter than it are the last ones: the next is its square."""


def highest(objective: Objective) -> Array:
    """The unit vector b with the highest score, d numbers."""
    xp = namespace(objective.frame.mean)
    if objective.exact:
        starts = _starts(objective, objective.forms, 4)
    else:  # the curve of the form at the best guess so far comes closer
        starts = _starts(objective, objective.forms, 2)
        top = starts[xp.argmax(objective.scores(starts))]
        nearer = _starts(objective, objective.form_at(top)[None, :, :], 2)
        starts = xp.concat([starts, nearer], axis=0)
    rows = climbed(objective, starts, TOGETHER)
    best = xp.argmax(objective.scores(rows))
    return climbed(objective, rows[best][None, :], ALONE)[0]


def _starts(objective: Objective, forms: Array, count: int) -> Array:
    """Of every form's curve so many highest points, and the highest peak beside the first."""
    xp = namespace(forms)
    along = curves(objective.frame, forms)
    rows = along.at(along.levels(xp.asarray(PLACES, dtype=forms.dtype))).rows
    rows = xp.concat([rows, along.starts[:, None, :]], axis=1)
    curved, n, d = rows.shape
    rows = xp.reshape(rows, (curved * n, d))
    scores = xp.reshape(objective.scores(rows), (curved, n))
    top = xp.argmax(scores, axis=1)
    steps = scores[:, 1:] - scores[:, :-1]
    end = xp.ones_like(steps[:, :1])
    rises = xp.concat([end, steps], axis=1) >= 0
    falls = xp.concat([steps, -end], axis=1) <= 0
    peaks = rises & falls & (np.arange(n) != top[:, None])
    other = xp.argmax(xp.where(peaks, scores, -np.inf), axis=1)
    picked = xp.concat([xp.argsort(scores, axis=1)[:, -count:], other[:, None]], axis=1)
    picked = picked + n * np.arange(curved)[:, None]
    return xp.take(rows, xp.reshape(picked, (curved * (count + 1),)), axis=0)


def climbed(objective: Objective, rows: Array, rounds: int) -> Array:
    """Every row, n × d, moved uphill so many times, under NumPy fewer where all stand still."""
    if isinstance(rows, np.ndarray):
        for _ in range(rounds):
            rows, steps = _climbed_once(objective, rows)
            if np.abs(steps).max() < STILL:
                break
        return rows
    from jax import lax  # which is loaded if the rows are its arrays

    return lax.fori_loop(0, rounds, lambda _, rows: _climbed_once(objective, rows)[0], rows)


def _climbed_once(objective: Objective, rows: Array) -> tuple[Array, Array]:
    """The rows after a round, and Newton's steps."""
    xp = namespace(rows)
    n, choices = rows.shape[0], len(DAMPINGS) + 1
    steps = _steps(objective, rows)
    tried = xp.concat([normalized(rows[:, None, :] + steps), rows[:, None, :]], axis=1)
    tried = xp.reshape(tried, (n * choices, rows.shape[1]))
    scores = xp.reshape(objective.scores(tried), (n, choices))
    best = xp.argmax(scores + xp.abs(scores) * _preferred(rows.dtype), axis=1)
    return xp.take(tried, best + choices * np.arange(n), axis=0), steps[:, 0]


@functools.lru_cache(maxsize=8)
def _preferred(dtype: Any) -> np.ndarray:
    """A few roundings for Newton's step, nothing for the other choices."""
    return np.array([ROUNDINGS * rounding(dtype)] + [0.0] * len(DAMPINGS), dtype)


@functools.lru_cache(maxsize=64)
def _dampings(states: int, dtype: Any) -> np.ndarray:
    """θI of every damping."""
    return np.array(DAMPINGS, dtype)[:, None, None] * identity(states, dtype)


def residuals(objective: Objective, rows: Array) -> Array:
    """‖(I − bbᵀ)∇f‖ of every row: zero at a stationary point."""
    gradient, _ = objective.slopes(rows)
    gradient = gradient + objective.frame.mean
    tangent = gradient - dots(rows, gradient)[:, None] * rows
    return namespace(rows).sqrt(dots(tangent, tangent))


def _steps(objective: Objective, rows: Array) -> Array:
    """The step of every damping, n × dampings × d."""
    xp = namespace(rows)
    eye = identity(rows.shape[1], rows.dtype)
    slope, hessian = objective.slopes(rows)
    gradient = slope + objective.frame.mean
    height = dots(rows, gradient)[:, None]
    tangent = gradient - height * rows
    # (I − bbᵀ)(νI − ∇²u)(I − bbᵀ), where ∇²u b = −∇u since u does not depend on b's length.
    cross = rows[:, :, None] * (slope + 0.5 * height * rows)[:, None, :]
    flat = height[:, :, None] * eye - hessian - cross - cross.mT
    square = xp.sum(flat * flat, axis=(1, 2))
    size = xp.sqrt(xp.where(square > 0, square, 1.0))[:, None, None]
    flat = flat / size + rows[:, :, None] * rows[:, None, :]
    damped = flat[:, None] + _dampings(rows.shape[1], rows.dtype)
    return xp.linalg.solve(damped, (tangent[:, :, None] / size)[:, None])[..., 0]
