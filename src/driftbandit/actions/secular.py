"""Kalman-UCB on the sphere: the global maximum of ⟨a, ẑ⟩ + w √(aᵀPa) over unit vectors (P13).

Since √(aᵀPa) = max ⟨a, P^½ q⟩ over ‖q‖ ≤ 1, the highest score is max ‖ẑ + P^½ q‖ over ‖q‖ ≤ w: a
convex quadratic over a ball, the trust-region problem. In the frame of P, with eigenvalues
λ_1 ≥ λ_2 ≥ … and m = Vᵀẑ, weak duality bounds its square for every μ > λ_1 by

    D(μ) = μ (w² + Σ m_i² / (μ − λ_i)),

with equality at the minimum of D, Σ λ_i m_i² / (μ − λ_i)² = w², the secular equation. The best
vector is a_i ∝ m_i / (μ − λ_i). So μ > λ_1 certifies that the maximum is global. If m has no part
along the leading eigenvector (the hard case), the equation may have no root; a rounding of the
score, added there, gives it one. (Moré and Sorensen 1983, SIAM J. Sci. Stat. Comput. 4, 553.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandit.actions.idea_objective import normalized, or_one, rounding
from driftbandit.arrays import Array, namespace

GRID, REFINEMENTS, NEWTON = 32, 2, 3
"""The bracket of the root is divided by GRID − 1 this many times; then come Newton steps."""


class Secular(NamedTuple):
    """The best vector of Kalman-UCB."""

    arm: Array
    """a, d numbers."""
    multiplier: Array
    """μ, above the largest eigenvalue of P."""
    bound: Array
    """√D(μ): no unit vector scores more."""


def solved(mean: Array, cov: Array, width: Array) -> Secular:
    """The unit vector with the highest ⟨a, ẑ⟩ + w √(aᵀPa).

    Args:
        mean: ẑ, d numbers.
        cov: P, d × d.
        width: w ≥ 0.

    Returns:
        `Secular`.

    Example:
        >>> found = solved(np.array([0.0, 3.0]), np.diag([4.0, 0.0]), 2.0)  # one state is known
        >>> found.arm.round(6).tolist(), float(found.bound.round(6))
        ([0.8, 0.6], 5.0)
    """
    xp = namespace(cov)
    values, vectors = xp.linalg.eigh(cov)
    eps = rounding(values.dtype)
    largest = or_one(xp.max(values))
    values = xp.maximum(values / largest, xp.zeros_like(values))
    radius = width * xp.sqrt(largest)
    m = mean @ vectors
    unit = or_one(xp.max(xp.abs(m)) + radius)
    m = m / unit
    radius = xp.maximum(radius / unit, xp.asarray(eps**2, dtype=values.dtype))
    lead = xp.where(m[-1] < 0, xp.minimum(m[-1], -eps), xp.maximum(m[-1], eps))
    tilted = xp.concat([m[:-1], lead[None]])
    gaps = values[-1] - values
    offset = _root(values * tilted * tilted, gaps, radius)
    shares = tilted / (offset + gaps)
    arm = vectors @ normalized(shares * offset)  # scaled, so that squares do not overflow
    multiplier = values[-1] + offset
    dual = multiplier * (radius * radius + xp.sum(m * m / (offset + gaps)))
    return Secular(arm, multiplier * largest, unit * xp.sqrt(dual))


def _root(weights: Array, gaps: Array, radius: Array) -> Array:
    """The t > 0 with Σ weights_i / (t + gap_i)² = w²."""
    xp = namespace(weights)
    tiny = float(np.finfo(weights.dtype).tiny) ** 0.5
    sizes = xp.stack([weights[-1], xp.sum(weights)])
    low, high = xp.log(xp.sqrt(xp.maximum(sizes, xp.full_like(sizes, tiny))) / radius)
    ticks: Any = np.linspace(0.0, 1.0, GRID, dtype=weights.dtype)
    width = high - low
    for _ in range(REFINEMENTS):
        tried = xp.exp(low + width * ticks)
        sums = xp.sum(weights / (tried[:, None] + gaps) ** 2, axis=1)
        above = xp.sum(xp.astype(sums > radius * radius, weights.dtype))
        width = width / (GRID - 1)
        low = low + width * xp.clip(above - 1, 0, GRID - 2)
    t = xp.exp(low)
    for _ in range(
        NEWTON
    ):  # on 1/√sum, concave and nearly linear: from the left, never past the root
        squares = weights / (t + gaps) ** 2
        size = xp.sqrt(xp.sum(squares))
        slope = or_one(xp.sum(squares / (t + gaps)))  # zero if P is: any t will do
        t = t + (size / radius - 1) * xp.sum(squares) / slope
    return t
