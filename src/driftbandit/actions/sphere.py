"""The unit vector that a Kalman policy plays, and an upper bound on the score of all others.

**Kalman-UCB**: the global maximum of ⟨a, ẑ⟩ + w √(aᵀPa) over unit vectors (P13). Since √(aᵀPa) =
max ⟨a, P^½ q⟩ over ‖q‖ ≤ 1, it equals max ‖ẑ + P^½ q‖ over ‖q‖ ≤ w. Squared, this is the maximum of
a convex quadratic over a ball: a trust-region problem. With P = V Λ Vᵀ, eigenvalues λ_1 ≥ λ_2 ≥ …
and m = Vᵀẑ, weak duality gives an upper bound on the squared maximum for every μ > λ_1,

    D(μ) = μ (w² + Σ m_i² / (μ − λ_i)),

with equality at the minimum of D, where Σ λ_i m_i² / (μ − λ_i)² = w² (the secular equation). The
best vector is a_i ∝ m_i / (μ − λ_i), and μ > λ_1 certifies that the maximum is global. If m has no
component along the leading eigenvector (the hard case), the equation may have no root. Then a
component as large as one rounding error of the score is added, so that a root exists. (Moré and
Sorensen 1983, SIAM J. Sci. Stat. Comput. 4, 553.)

**IDEA**: see `idea_search`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.actions.idea_objective import framed, idea, normalized, or_one, rounding
from driftbandit.actions.idea_search import highest, residuals, upper_bound
from driftbandit.arrays import Array, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS

__all__ = ["Solution", "best", "direction", "idea_arm", "kalman_ucb_arm", "secular"]

ACCURACY = 1e-9  # IDEA's bound is refined until its gap is this fraction of the score
GRID, REFINEMENTS = 32, 2  # REFINEMENTS times, the root's bracket shrinks by GRID − 1
NEWTON = 3  # number of Newton steps after the refinements


class Solution(NamedTuple):
    """A unit vector and its certificate; `best` returns it.

    Example:
        >>> model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> belief = Belief(np.array([0.0, 3.0]), np.diag([4.0, 0.0]))
        >>> found = best(belief, model, "kalman_ucb", width=2.0)
        >>> abs(found.arm).round(6).tolist(), round(found.value, 6)
        ([0.8, 0.6], 5.0)
        >>> found.residual < 1e-6, found.bound >= found.value, found.gap < 1e-6
        (True, True, True)
    """

    arm: np.ndarray  # a, d numbers
    value: float  # its score ⟨a, ẑ⟩ + u(a | P)
    residual: float  # ‖(I − aaᵀ)∇‖, the gradient along the sphere; zero at a stationary point
    bound: float  # no unit vector has a higher score

    @property
    def gap(self) -> float:
        """The largest possible difference between another vector's score and this one's."""
        return self.bound - self.value


def direction(vector: Array) -> Array:
    """The vector scaled to length one, or the first coordinate vector if it is zero.

    Args:
        vector: d numbers, of NumPy or JAX.

    Example:
        >>> direction(np.array([3.0, 4.0])).tolist(), direction(np.zeros(2)).tolist()
        ([0.6, 0.8], [1.0, 0.0])
    """
    xp = namespace(vector)
    largest = xp.max(xp.abs(vector))
    first = xp.astype(xp.arange(vector.shape[0]) == 0, vector.dtype)
    safe = xp.where(largest > 0, vector / xp.where(largest > 0, largest, 1.0), first)
    return safe / xp.sqrt(safe @ safe)


def idea_arm(belief: Belief, model: LGDS) -> Array:
    """The unit vector with the highest ⟨a, ẑ⟩ + ‖ΓPa‖/√(aᵀPa + σ²), IDEA's choice.

    Args:
        belief, model: as in `best`, which also returns a bound; unchecked, of NumPy or JAX.

    Example:
        >>> model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> idea_arm(Belief(np.array([1.0, 0.0]), np.diag([1.0, 9.0])), model).round(3).tolist()
        [0.702, 0.712]
    """
    frame = framed(belief, model)
    return frame.vectors @ highest(idea(frame))


def kalman_ucb_arm(belief: Belief, width: Array) -> Array:
    """The unit vector with the highest ⟨a, ẑ⟩ + w √(aᵀPa), Kalman-UCB's choice.

    Args:
        belief: as in `best`, which also returns a bound; unchecked, of NumPy or JAX.
        width: w ≥ 0.

    Example:
        >>> belief = Belief(np.array([0.0, 3.0]), np.diag([4.0, 0.0]))
        >>> [abs(kalman_ucb_arm(belief, width)).round(6).tolist() for width in (0.0, 2.0)]
        [[0.0, 1.0], [0.8, 0.6]]
    """
    return secular(belief.mean, belief.cov, width)[0]


def secular(mean: Array, cov: Array, width: Array) -> tuple[Array, Array]:
    """The unit vector with the highest ⟨a, ẑ⟩ + w √(aᵀPa), and the bound √D(μ).

    Args:
        mean, cov: ẑ and P.
        width: w ≥ 0.

    Example:
        >>> arm, bound = secular(np.array([0.0, 3.0]), np.diag([4.0, 0.0]), 2.0)  # z₂ is known
        >>> arm.round(6).tolist(), float(bound.round(6))
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
    multiplier = values[-1] + offset  # μ in units of the largest eigenvalue
    dual = multiplier * (radius * radius + xp.sum(m * m / (offset + gaps)))
    return arm, unit * xp.sqrt(dual)


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
    for _ in range(NEWTON):  # 1/√sum is concave: a step from the left never overshoots the root
        squares = weights / (t + gaps) ** 2
        size = xp.sqrt(xp.sum(squares))
        slope = or_one(xp.sum(squares / (t + gaps)))  # zero if P is zero; then any t works
        t = t + (size / radius - 1) * xp.sum(squares) / slope
    return t


def best(belief: Belief, model: LGDS, policy: str = "idea", width: float = 1.0) -> Solution:
    """The unit vector that a Kalman policy plays, with an upper bound on the score of any other.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1), as `kalman.prior` and `kalman.step` return it.
        model: Γ, Q, σ.
        policy: "idea", "kode" or "kalman_ucb".
        width: w, for Kalman-UCB only.

    Returns:
        `Solution`: the vector, its score, and how much better another one could be.

    Example:
        >>> model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> found = best(Belief(np.array([1.0, 0.0]), np.diag([1.0, 9.0])), model)
        >>> found.arm.round(3).tolist(), round(found.value, 3), found.gap < 1e-8
        ([0.702, 0.712], 3.06, True)
    """
    policy = errors.closest(policy, "policy", ("idea", "kode", "kalman_ucb"))
    width = errors.number(width, "width", low=0)
    mean = errors.matrix(belief.mean, "belief.mean", shape=(model.n_states,))
    belief = Belief(mean, errors.covariance(belief.cov, "belief.cov", size=model.n_states))
    if policy == "idea":
        return _idea(belief, model)
    if policy == "kalman_ucb":
        return _kalman_ucb(belief, width)
    arm = direction(belief.mean)
    value = float(arm @ belief.mean)
    return Solution(arm, value, 0.0, value)


def _kalman_ucb(belief: Belief, width: float) -> Solution:
    arm, bound = secular(belief.mean, belief.cov, width)
    cross = belief.cov @ arm
    deviation = float(np.sqrt(max(arm @ cross, 0.0)))
    gradient = belief.mean + (width / deviation * cross if deviation > 0 else 0.0)
    value = float(arm @ belief.mean + width * deviation)
    residual = float(np.linalg.norm(gradient - (arm @ gradient) * arm))
    return Solution(arm, value, residual, max(float(bound), value))


def _idea(belief: Belief, model: LGDS) -> Solution:
    frame = framed(belief, model)
    objective = idea(frame)
    row = highest(objective)
    score = float(objective.scores(row[None, :])[0])
    bound = max(upper_bound(objective, score, ACCURACY), score)
    residual = float(residuals(objective, row[None, :])[0])
    unit = float(frame.unit)
    return Solution(frame.vectors @ row, unit * score, unit * residual, unit * bound)
