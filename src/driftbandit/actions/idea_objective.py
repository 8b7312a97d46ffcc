"""IDEA's score of unit vectors (P15), in the coordinates in which P is diagonal.

With P = V Λ Vᵀ, b = Vᵀa (a unit vector like a), m = Vᵀẑ, S = Λ + σ² and T = Γ V Λ,

    ⟨a, ẑ⟩ + ‖ΓPa‖/√(aᵀPa + σ²) = ⟨b, m⟩ + u,   u = ‖T b‖ / √(bᵀSb).

P is rounded up as in `driftbandit.kalman`, so scores equal those of lists of arms. If σ = 0 and P
is singular (a known constant state), u drops to 0 at vectors that teach nothing, but grows toward
them, so that no best vector exists. Adding four roundings of the largest variance to S makes u
continuous, and costs about 10⁻⁸ of the score.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit import kalman
from driftbandit.arrays import Array, dots, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS

FLOOR = 4.0  # how many roundings of the largest variance are added to S


class Frame(NamedTuple):
    """A belief in its own coordinates; lengths are in units of ``unit``."""

    vectors: Array  # V, d × d
    variances: Array  # Λ, d numbers, ascending
    mean: Array  # m / unit, d numbers
    seen: Array  # S / p, d numbers, p the largest of them
    diagonal: Array  # the same as a diagonal matrix, d × d
    moves: Array  # T / (√p unit), d × d
    unit: Array  # max(‖m‖, ‖T S^(−½)‖), Frobenius norm: the size of scores


def framed(belief: Belief, model: LGDS) -> Frame:
    """The belief in the coordinates in which P is diagonal."""
    xp = namespace(belief.cov)
    variances, vectors = xp.linalg.eigh(kalman.rounded_up(belief.cov))
    variances = xp.maximum(variances, 0.0)
    floor = FLOOR * rounding(variances.dtype) * variances[-1]
    seen = variances + model.reward_std**2 + floor
    largest = or_one(seen[-1])
    moves = (model.transition @ vectors) * (variances / xp.sqrt(largest))
    seen = or_one(seen / largest)  # all zero if P and σ are: nothing moves
    mean = belief.mean @ vectors
    size = xp.sum(moves * moves / seen)
    unit = xp.sqrt(or_one(xp.maximum(mean @ mean, size)))
    diagonal = seen * identity(seen.shape[0], seen.dtype)
    return Frame(vectors, variances, mean / unit, seen, diagonal, moves / unit, unit)


class Idea(NamedTuple):
    """⟨b, m⟩ + u, u = √(bᵀDb / bᵀSb) with D = TᵀT."""

    frame: Frame
    form: Array  # D, d × d

    def scores(self, rows: Array) -> Array:
        """⟨b, m⟩ + u of every row b."""
        frame = self.frame
        moved = rows @ frame.moves.T
        variance = (rows * rows) @ frame.seen
        return rows @ frame.mean + namespace(rows).sqrt(dots(moved, moved) / variance)

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """Gradient, n × d, and Hessian between tangents, n × d × d, of u at every row.

        With q = u², z = Sb, s = bᵀSb and C = D − qS: ∇u = Cb/us (zero where u is), orthogonal to b,
        ∇²u = C/us − ∇u kᵀ − k ∇uᵀ, k = 2z/s + ∇u/2u; between tangents ∇²u + b ∇uᵀ + ∇u bᵀ.
        """
        xp = namespace(rows)
        z = rows * self.frame.seen
        s = dots(rows, z)
        seen = rows @ self.form
        q = dots(rows, seen) / s
        u = xp.sqrt(xp.where(q > 0, q, math.inf))
        share = 1 / (u * s)
        gradient = (seen - q[:, None] * z) * share[:, None]
        k = z * (2 / s)[:, None] + gradient * (0.5 / u)[:, None]
        cross = gradient[:, :, None] * (k - rows)[:, None, :]
        C = self.form - q[:, None, None] * self.frame.diagonal
        return gradient, C * share[:, None, None] - cross - cross.mT


def idea(frame: Frame) -> Idea:
    """IDEA's objective."""
    return Idea(frame, frame.moves.T @ frame.moves)


def or_one(value: Array) -> Array:
    """The value, or one where it is not positive: safe to divide by."""
    return namespace(value).where(value > 0, value, 1.0)


def normalized(rows: Array) -> Array:
    """Every row scaled to length one."""
    return rows / namespace(rows).sqrt(dots(rows, rows))[..., None]


@functools.lru_cache(maxsize=8)
def rounding(dtype: Any) -> float:
    """The machine epsilon."""
    return float(np.finfo(dtype).eps)


@functools.lru_cache(maxsize=64)
def identity(n_states: int, dtype: Any) -> np.ndarray:
    """The identity matrix, made once."""
    eye = np.eye(n_states, dtype=dtype)
    eye.setflags(write=False)
    return eye
