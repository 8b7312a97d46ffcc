"""How much any unit vector can score at most: a search of the curve that leaves nothing out.

Every b has some q = bᵀDb / bᵀSb = ρ, and for every y ≥ 0 (see `path`)

    ⟨b, m⟩² ≤ λ_max(m mᵀ + y(D − ρS)).

Over an interval of ρ, of width w, let y be linear between the duals of its ends. Then the matrix
is at most its chord plus ¼ w² max(y′, 0) S, and λ_max, being convex, at most the chord of its
values at the ends plus as much of the largest S. If moreover u ≤ g(q) with g concave, the score is
at most the height of a line, g's tangent, plus the root of another: a maximum in closed form.
Intervals whose bound exceeds the best known score are halved until none does by more than asked;
ρ < q(m) need not be searched, since m itself beats all of it. On NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from driftbandit.gaussian.lengths import derivatives, expected_length
from driftbandit.sphere.frame import Frame
from driftbandit.sphere.objectives import Idea, Lookahead
from driftbandit.sphere.path import Curves, curves

__all__ = ["idea", "lookahead"]

FIRST = 16
"""Intervals at the start."""
MOST = 50
"""Times that intervals are halved."""
LARGEST = 512
"""Intervals at a time beyond which nothing is halved any more."""
MARGIN = 8
"""Roundings times d by which an eigenvalue may be wrong, relative to the largest; it is added."""


class Ceiling(NamedTuple):
    """u ≤ g(q), q the ratio of ``form``."""

    form: np.ndarray
    tangent: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    """g and its derivative at every ρ."""


def idea(objective: Idea, score: float, accuracy: float) -> float:
    """An upper bound of IDEA's score, at most ``accuracy`` above the best if that is ``score``."""

    def root(rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = np.sqrt(rho)
        return value, 0.5 / np.where(value > 0, value, 1.0)

    return _bounded(objective.frame, Ceiling(objective.form, root), score, accuracy)


def lookahead(objective: Lookahead, row: np.ndarray, score: float, accuracy: float) -> float:
    """An upper bound of lookahead's score.

    E ‖m + vω‖ is largest where v is across m, and concave in ‖v‖² there. One round ahead that is a
    ceiling; several add up the tangents at ``row``. Both are above u wherever v is not across m, so
    that a gap stays however good the vector is.
    """
    weights, squares, forms = objective.weights, objective.squares, objective.squared.swapaxes(0, 1)
    shortest = float(weights @ np.sqrt(squares))
    if len(weights) == 1:
        weight, square = float(weights[0]), squares[:1]

        def gained(rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            length = expected_length(square, 0 * rho, rho)
            return weight * length - shortest, derivatives(square, 0 * rho, rho, weight).c

        return _bounded(objective.frame, Ceiling(forms[0], gained), score, accuracy)
    x = row / np.sqrt((row * row) @ objective.frame.seen)
    at = np.einsum("i,hij,j->h", x, forms, x)
    slopes = derivatives(squares, 0 * at, at, weights).c
    height = float(weights @ expected_length(squares, 0 * at, at) - slopes @ at) - shortest
    form = np.tensordot(slopes, forms, axes=1)

    def line(rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return height + rho, np.ones_like(rho)

    return _bounded(objective.frame, Ceiling(form, line), score, accuracy)


def _bounded(frame: Frame, ceiling: Ceiling, score: float, accuracy: float) -> float:
    along = curves(frame, ceiling.form[None, :, :])
    ends = np.linspace(0, 1, FIRST + 1)[::-1] ** 2  # x along the curve
    low, high = ends[:-1], ends[1:]  # √ρ rises as x falls
    bounds = np.full(FIRST, np.inf)
    settled, wanted = score, score + accuracy * abs(score)
    for _ in range(MOST):
        bounds = np.minimum(
            bounds, _over(along, ceiling, along.levels(low)[0], along.levels(high)[0])
        )
        open_ = bounds > wanted
        settled = max(settled, float(bounds[~open_].max(initial=-np.inf)))
        low, high, bounds = low[open_], high[open_], bounds[open_]
        if not 0 < 2 * len(low) <= LARGEST:
            break
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        bounds = np.tile(bounds, 2)
    return max(settled, float(bounds.max(initial=-np.inf)))


def _over(along: Curves, ceiling: Ceiling, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The bound over every interval of √ρ: with y linear, or, near a pole of y, constant."""
    levels = np.concatenate([low, (low + high) / 2, high])
    duals = along.duals(levels[None, :])
    first, middle, last = np.maximum(duals, 0.0).reshape(3, -1)
    ends = np.stack([low, high]) ** 2
    linear = _highest(along.frame, ceiling, ends, np.stack([first, last]))
    constant = _highest(along.frame, ceiling, ends, np.stack([middle, middle]))
    return np.minimum(linear, constant)


def _highest(frame: Frame, ceiling: Ceiling, ends: np.ndarray, duals: np.ndarray) -> np.ndarray:
    """The same with y linear between its values at the ends, 2 × intervals."""
    C = ceiling.form - ends[..., None, None] * frame.diagonal
    values = np.linalg.eigvalsh(np.outer(frame.mean, frame.mean) + duals[..., None, None] * C)
    margin = MARGIN * len(frame.mean) * np.finfo(float).eps
    lengths = np.maximum(values[..., -1], 0.0) + margin * np.abs(values).max(axis=-1)
    # Over t in [0, 1] from end to end: height + rise t + √(first − fall t).
    span = ends[1] - ends[0]
    bulge = np.maximum(duals[1] - duals[0], 0.0) * span * frame.seen[-1] / 4
    first, fall = lengths[0] + bulge, lengths[0] - lengths[1]
    value, slope = ceiling.tangent(ends.mean(axis=0))
    height, rise = value - slope * span / 2, slope * span
    with np.errstate(divide="ignore", invalid="ignore"):
        top = (first - (fall / (2 * rise)) ** 2) / fall
    top = np.clip(np.nan_to_num(top, nan=1.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    tried = np.stack([np.zeros_like(top), top, np.ones_like(top)])
    longest = np.sqrt(np.maximum(first - fall * tried, 0.0))
    return np.asarray((height + rise * tried + longest).max(axis=0))
