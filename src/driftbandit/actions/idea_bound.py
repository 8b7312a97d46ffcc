"""An upper bound on IDEA's score over the unit sphere: branch and bound along the curve.

Every b has some q = bᵀDb / bᵀSb = ρ, and for every y ≥ 0 (see `idea_search`)

    ⟨b, m⟩² ≤ λ_max(m mᵀ + y(D − ρS)).

On an interval of ρ of width w, let y be linear between the multipliers of its ends. Then the matrix
is at most its chord plus ¼ w² max(y′, 0) S, and λ_max, being convex, is at most the chord of its
values at the ends plus as much of the largest S. Since √q is concave, the score is at most the
height of its tangent, a line, plus the root of another line: a maximum in closed form. Intervals
whose bound exceeds the best known score are halved until none does by more than asked. ρ < q(m)
need not be searched, since m itself beats all of it. NumPy only.
"""

from __future__ import annotations

import numpy as np

from driftbandit.actions.idea_objective import Frame, Idea
from driftbandit.actions.idea_search import Curve, curve

__all__ = ["upper_bound"]

FIRST = 16
"""Intervals at the start."""
MOST = 50
"""Times that intervals are halved."""
LARGEST = 512
"""Intervals at a time, beyond which none is halved any more."""
MARGIN = 8
"""Roundings times d by which an eigenvalue may be wrong, relative to the largest; it is added."""


def upper_bound(objective: Idea, score: float, accuracy: float) -> float:
    """An upper bound on the score, at most ``accuracy`` above the best if that is ``score``."""
    along = curve(objective.frame, objective.form)
    ends = np.linspace(0, 1, FIRST + 1)[::-1] ** 2  # x along the curve
    low, high = ends[:-1], ends[1:]  # √ρ rises as x falls
    bounds = np.full(FIRST, np.inf)
    settled, wanted = score, score + accuracy * abs(score)
    for _ in range(MOST):
        bounds = np.minimum(bounds, _over(along, along.levels(low), along.levels(high)))
        open_ = bounds > wanted
        settled = max(settled, float(bounds[~open_].max(initial=-np.inf)))
        low, high, bounds = low[open_], high[open_], bounds[open_]
        if not 0 < 2 * len(low) <= LARGEST:
            break
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        bounds = np.tile(bounds, 2)
    return max(settled, float(bounds.max(initial=-np.inf)))


def _over(along: Curve, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The bound over every interval of √ρ: y linear or, near a pole of y, constant."""
    duals = along.duals(np.concatenate([low, (low + high) / 2, high]))
    first, middle, last = np.maximum(duals, 0.0).reshape(3, -1)
    ends = np.stack([low, high]) ** 2
    linear = _highest(along.frame, along.form, ends, np.stack([first, last]))
    constant = _highest(along.frame, along.form, ends, np.stack([middle, middle]))
    return np.minimum(linear, constant)


def _highest(frame: Frame, form: np.ndarray, ends: np.ndarray, duals: np.ndarray) -> np.ndarray:
    """The same with y linear between its values at the ends, 2 × intervals."""
    C = form - ends[..., None, None] * frame.diagonal
    values = np.linalg.eigvalsh(np.outer(frame.mean, frame.mean) + duals[..., None, None] * C)
    margin = MARGIN * len(frame.mean) * np.finfo(float).eps
    lengths = np.maximum(values[..., -1], 0.0) + margin * np.abs(values).max(axis=-1)
    # Over t in [0, 1] from end to end: height + rise t + √(first − fall t).
    span = ends[1] - ends[0]
    bulge = np.maximum(duals[1] - duals[0], 0.0) * span * frame.seen[-1] / 4
    first, fall = lengths[0] + bulge, lengths[0] - lengths[1]
    value = np.sqrt(ends.mean(axis=0))
    slope = 0.5 / np.where(value > 0, value, 1.0)
    height, rise = value - slope * span / 2, slope * span
    with np.errstate(divide="ignore", invalid="ignore"):
        top = (first - (fall / (2 * rise)) ** 2) / fall
    top = np.clip(np.nan_to_num(top, nan=1.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    tried = np.stack([np.zeros_like(top), top, np.ones_like(top)])
    longest = np.sqrt(np.maximum(first - fall * tried, 0.0))
    return np.asarray((height + rise * tried + longest).max(axis=0))
