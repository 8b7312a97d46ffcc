"""A belief in the coordinates in which its covariance is diagonal, and in units of its own.

With P = V Λ Vᵀ and b = Vᵀa, a unit vector like a, the score of a is

    ⟨b, m⟩ + u,   m = Vᵀẑ,   and u depends on x = b / √(bᵀSb) alone,   S = Λ + σ²,

since the reward of a moves the next prediction by T x ω, T = Γ V Λ. Division by S is safe: what is
known (λ = 0) moves nothing.

P is rounded up as `driftbandit.kalman` does it, so that scores here are those of lists of arms.
Where σ = 0 and P is singular all the same (a known constant state), u jumps to 0 at the vectors
that tell nothing, and the best vector does not exist: the closer to them the better. There
four roundings of the largest variance are added to S, which keeps a vector away from them, at a
price of about 10⁻⁸ of the score.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from driftbandit import kalman
from driftbandit.arrays import Array, dots, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS

__all__ = ["Frame", "framed", "identity", "normalized", "or_one", "rounding"]

FLOOR = 4.0
"""Roundings of the largest variance that are added to every one."""


class Frame(NamedTuple):
    """See the module's first lines; lengths are in units of ``unit``."""

    vectors: Array
    """V, d × d."""
    variances: Array
    """Λ, d numbers, in rising order."""
    mean: Array
    """m / unit, d numbers."""
    seen: Array
    """S / p, d numbers, p the largest of them."""
    diagonal: Array
    """The same as a matrix, d × d."""
    moves: Array
    """T / (√p unit), d × d."""
    unit: Array
    """The larger of ‖m‖ and ‖T S^(−½)‖, Frobenius' norm: scores are about as large."""


def framed(belief: Belief, model: LGDS) -> Frame:
    """The belief in its own frame."""
    xp = namespace(belief.cov)
    variances, vectors = xp.linalg.eigh(kalman.rounded_up(belief.cov))
    variances = xp.maximum(variances, 0.0)
    floor = FLOOR * rounding(variances.dtype) * variances[-1]
    seen = variances + model.reward_std**2 + floor
    largest = or_one(seen[-1])
    moves = (model.transition @ vectors) * (variances / xp.sqrt(largest))
    seen = or_one(seen / largest)  # all zero: P and σ are, and nothing moves
    mean = belief.mean @ vectors
    size = xp.sum(moves * moves / seen)
    unit = xp.sqrt(or_one(xp.maximum(mean @ mean, size)))
    diagonal = seen * identity(seen.shape[0], seen.dtype)
    return Frame(vectors, variances, mean / unit, seen, diagonal, moves / unit, unit)


def or_one(value: Array) -> Array:
    """The value, and one where it is not above zero: to divide by."""
    return namespace(value).where(value > 0, value, 1.0)


def normalized(rows: Array) -> Array:
    """Every row in length one."""
    return rows / namespace(rows).sqrt(dots(rows, rows))[..., None]


@functools.lru_cache(maxsize=8)
def rounding(dtype: Any) -> float:
    """The distance of 1 to the next number, looked up once."""
    return float(np.finfo(dtype).eps)


@functools.lru_cache(maxsize=64)
def identity(n_states: int, dtype: Any) -> np.ndarray:
    """The identity, made once."""
    eye = np.eye(n_states, dtype=dtype)
    eye.setflags(write=False)
    return eye
