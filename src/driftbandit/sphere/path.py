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

GRID = 16
"""Where a root is looked for at once; each refinement divides its interval by GRID − 1."""
TICKS = np.linspace(0.0, 1.0, GRID)


class Points(NamedTuple):
    """Points of the curves."""

    rows: Array
    """b, forms × n × d."""
    duals: Array
    """y of Lagrange's dual, forms × n."""


class Curves(NamedTuple):
    """The curves of several forms D, taken together: one factorization at a time."""

    frame: Frame
    forms: Array
    """D, forms × d × d."""
    starts: Array
    """m in length one, or, where that is zero, the next most telling vector; forms × d."""
    low: Array
    """√q(m) of every form."""
    high: Array
    """The largest √q of every form."""

    def levels(self, x: Array) -> Array:
        """√ρ of places x in [0, 1] along the curves: near the largest they turn quadratically."""
        return self.low[:, None] + (self.high - self.low)[:, None] * (1 - x * x)

    def at(self, levels: Array, refinements: int = 2) -> Points:
        """The best vectors with q = ρ.

        Args:
            levels: √ρ, forms × n.
            refinements: two leave τ − λ_max(C) right to 15 %, ten to ten digits.
        """
        xp = namespace(self.forms)
        count, n = levels.shape
        squares = (levels * levels)[:, :, None, None]
        C = self.forms[:, None] - squares * self.frame.diagonal
        kappa, vectors = xp.linalg.eigh(C)
        d = kappa.shape[-1]
        parts = xp.reshape((self.starts[:, None, None, :] @ vectors)[:, :, 0, :], (count * n, d))
        kappa, vectors = xp.reshape(kappa, (count * n, d)), xp.reshape(vectors, (count * n, d, d))
        size = _or_one(xp.max(xp.abs(kappa), axis=1, keepdims=True))
        gaps = (kappa[:, -1:] - kappa) / size
        parts = _tilted(parts)
        offset = _root(kappa / size, parts, gaps, refinements)
        shares = parts / (offset + gaps)
        rows = normalized((vectors @ shares[:, :, None])[:, :, 0])
        tau = offset[:, 0] + kappa[:, -1] / size[:, 0]
        square = self.frame.mean @ self.frame.mean
        duals = square * tau * dots(shares, shares) / size[:, 0]  # m = N(τI − C)b, y = N²τ
        return Points(xp.reshape(rows, (count, n, d)), xp.reshape(duals, (count, n)))


def curves(frame: Frame, forms: Array) -> Curves:
    """The curves of the forms D, forms × d × d."""
    xp = namespace(forms)
    mean, seen = frame.mean, frame.seen
    root = xp.sqrt(seen)
    values, vectors = xp.linalg.eigh(forms / root[:, None] / root)
    square = mean @ mean
    guess = mean / xp.sqrt(_or_one(square))
    second = normalized(vectors[:, :, max(-2, -len(root))] / root)
    starts = xp.where(square > 0, guess, second)
    low = dots((starts[:, None, :] @ forms)[:, 0, :], starts) / dots(starts * seen, starts)
    low = xp.sqrt(xp.maximum(low, xp.zeros_like(low)))
    high = xp.sqrt(xp.maximum(values[:, -1], xp.zeros_like(low)))
    return Curves(frame, forms, starts, low, xp.maximum(low, high))


def _or_one(value: Array) -> Array:
    return namespace(value).where(value > 0, value, 1.0)


def _tilted(parts: Array) -> Array:
    """With a rounding's share of m on the leading eigenvector, where it has less.

    In this hard case m says nothing about the sign there, and the root runs into the pole; with
    the tilt it stops a rounding before it, at one of the two best vectors.
    """
    xp = namespace(parts)
    least = rounding(parts.dtype) ** 0.75 * xp.max(xp.abs(parts), axis=1, keepdims=True)
    lead = parts[:, -1:]
    lead = xp.where(xp.abs(lead) < least, xp.where(lead < 0, -least, least), lead)
    return xp.concat([parts[:, :-1], lead], axis=1)


def _root(kappa: Array, parts: Array, gaps: Array, refinements: int) -> Array:
    """The δ > 0 with Σ κ_i m_i² / (δ + gap_i)² = 0, above which the sum is negative; n × 1."""
    xp = namespace(kappa)
    weights = (kappa * parts * parts)[:, :, None]
    low = math.log(rounding(kappa.dtype)) - 5
    log = xp.full((kappa.shape[0], 1), low, dtype=kappa.dtype)
    width = 20.0 - low
    ticks: Any = TICKS.astype(kappa.dtype)
    for _ in range(refinements):
        tried = xp.exp(log + width * ticks)  # n × GRID
        inverse = 1 / (tried[:, :, None] + gaps[:, None, :])
        above = xp.sum((inverse * inverse) @ weights > 0, axis=1)
        width = width / (GRID - 1)
        log = log + width * xp.clip(above - 1, 0, GRID - 2)
    return xp.exp(log + width / 2)
