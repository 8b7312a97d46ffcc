"""The curve on which the best vector lies, from the most telling vector to the best guess.

Let q(b) = bᵀDb / bᵀSb and suppose that u grows with q alone, as IDEA's does (u = √q). Of all unit
vectors with q = ρ the best is the one with the largest ⟨b, m⟩: it maximizes one quadratic form,
(mᵀb)², under bᵀCb ≥ 0, C = D − ρS, and bᵀb = 1. Two quadratic forms map the unit sphere onto a
convex set (Brickman 1961), so that Lagrange's dual is exact:

    max (mᵀb)² = min over y ≥ 0 of λ_max(m mᵀ + yC),   b ∝ (τI − C)⁻¹ m,   τ ≥ λ_max(C),

and τ is the one root of Σ κ_i m_i² / (τ − κ_i)² = 0 (that is, bᵀCb = 0) in the frame of C, κ_i its
eigenvalues. So the search over the sphere is one over ρ, from q(m) up to the largest q.

Brickman, L. (1961), On the field of values of a matrix, Proc. AMS 12, 61–66. In two dimensions the
sphere maps onto an ellipse alone; but a linear function has its maximum over the part of the
filled ellipse in a half-plane at a point of its rim.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.arrays import Array, dots, namespace
from driftbandit.sphere.frame import Frame, normalized, rounding

__all__ = ["Curves", "Points", "curves"]

PARTS = 15
"""Each refinement divides the interval of a root by it."""
SMALLEST = 1e-18
"""By which m, whose size is about one, is lengthened, so that zero has a direction too."""
TICKS = np.arange(1.0, PARTS) / PARTS
"""Where it is divided."""


class Points(NamedTuple):
    """Points of the curves, of one form after the other."""

    rows: Array
    """b, forms n × d."""
    leads: Array
    """The leading eigenvectors of C, forms n × d."""


class Curves(NamedTuple):
    """The curves of several forms D, taken together: one factorization at a time."""

    frame: Frame
    forms: Array
    """D, forms × d × d."""
    start: Array
    """m in length one, or, where that is zero, some other vector; d numbers."""
    low: Array
    """√q(m) of every form."""
    high: Array
    """The largest √q of every form."""

    def levels(self, x: Array) -> Array:
        """√ρ of places x in [0, 1] along the curves: near the largest they turn quadratically."""
        return self.low[:, None] + (self.high - self.low)[:, None] * (1 - x * x)

    def at(self, levels: Array) -> Points:
        """The best vectors with q = ρ, from levels √ρ, forms × n; near enough to climb from."""
        found = self._solved(levels, refinements=2)
        rows = normalized((found.vectors @ found.shares[:, :, None])[:, :, 0])
        return Points(rows, found.vectors[:, :, -1])

    def duals(self, levels: Array) -> Array:
        """Lagrange's y at levels √ρ, forms × n; forms n numbers, right to ten digits in most cases.

        In the hard case they are those of another m nearby. Any y ≥ 0 gives a bound.
        """
        found = self._solved(levels, refinements=10)
        square = self.frame.mean @ self.frame.mean  # m = N(τI − C)b, y = N²τ
        return square * found.tau * dots(found.shares, found.shares) / found.size

    def _solved(self, levels: Array, refinements: int) -> _Solved:
        """The solutions; two refinements leave τ − λ_max(C) right to 15 %, ten to ten digits."""
        xp = namespace(self.forms)
        C = self.forms[:, None] - (levels * levels)[:, :, None, None] * self.frame.diagonal
        d = C.shape[-1]
        kappa, vectors = xp.linalg.eigh(xp.reshape(C, (-1, d, d)))
        size = xp.maximum(kappa[:, -1:], -kappa[:, :1]) + SMALLEST**2
        kappa = kappa / size
        gaps = kappa[:, -1:] - kappa
        parts = _tilted(self.start @ vectors)
        offset = _root(kappa, parts, gaps, refinements)
        return _Solved(vectors, parts / (offset + gaps), (offset + kappa[:, -1:])[:, 0], size[:, 0])


class _Solved(NamedTuple):
    """b ∝ (τI − C)⁻¹ m at many levels, in the frame of C and in units of its size."""

    vectors: Array
    """C's, forms n × d × d."""
    shares: Array
    """m_i / (τ − κ_i), forms n × d."""
    tau: Array
    """τ, forms n."""
    size: Array
    """The largest |κ_i|, forms n."""


def curves(frame: Frame, forms: Array) -> Curves:
    """The curves of the forms D, forms × d × d."""
    xp = namespace(forms)
    root = xp.sqrt(frame.seen)
    values = xp.linalg.eigvalsh(forms / root[:, None] / root)
    guess = frame.mean + xp.copysign(SMALLEST, frame.mean)
    start = guess / xp.sqrt(guess @ guess)
    low = (forms @ start) @ start / ((start * start) @ frame.seen)
    low, high = (xp.sqrt(xp.maximum(end, 0.0)) for end in (low, values[:, -1]))
    return Curves(frame, forms, start, low, xp.maximum(low, high))


def _tilted(parts: Array) -> Array:
    """With a rounding's share of m on the leading eigenvector, where it has less.

    In this hard case m says nothing about the sign there, and the root runs into the pole; with
    the tilt it stops a rounding before it, at one of the two best vectors.
    """
    xp = namespace(parts)
    lead = parts[:, -1:]
    least = rounding(parts.dtype) ** 0.75  # of m in length one
    lead = xp.copysign(xp.maximum(xp.abs(lead), least), lead)
    return xp.concat([parts[:, :-1], lead], axis=1)


def _root(kappa: Array, parts: Array, gaps: Array, refinements: int) -> Array:
    """The δ > 0 with Σ κ_i m_i² / (δ + gap_i)² = 0, above which the sum is negative; n × 1."""
    xp = namespace(kappa)
    weights = (kappa * parts * parts)[:, :, None]
    log: Any = math.log(rounding(kappa.dtype)) - 5
    width = 20.0 - log
    ticks: Any = TICKS.astype(kappa.dtype)
    for _ in range(refinements):
        tried = xp.exp(log + width * ticks)[..., None]
        inverse = 1 / (tried + gaps[:, None, :])  # n × ticks × d
        above = xp.sum((inverse * inverse) @ weights > 0, axis=1)  # of all ticks the first
        width = width / PARTS
        log = log + width * above
    return xp.exp(log + width / 2)
