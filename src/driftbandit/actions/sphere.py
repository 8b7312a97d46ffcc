"""The unit vector that a Kalman policy plays, with a bound on how much better another could be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.actions import secular
from driftbandit.actions.idea_objective import framed, idea
from driftbandit.actions.idea_search import highest, residuals, upper_bound
from driftbandit.arrays import Array, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS

__all__ = ["Solution", "best", "direction", "idea_arm", "kalman_ucb_arm"]

ACCURACY = 1e-9
"""Gap, relative to the score, to which IDEA's bound is refined."""


class Solution(NamedTuple):
    """A unit vector and its certificate."""

    arm: np.ndarray
    """a, d numbers."""
    value: float
    """Its score ⟨a, ẑ⟩ + u(a | P)."""
    residual: float
    """‖(I − aaᵀ)∇‖, the gradient of the score along the sphere; zero at a stationary point."""
    bound: float
    """No unit vector scores more."""

    @property
    def gap(self) -> float:
        """The most by which another vector could be better."""
        return self.bound - self.value


def direction(vector: Array) -> Array:
    """The vector scaled to length one; for zero, the first coordinate vector.

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
    """The unit vector with the highest ⟨a, ẑ⟩ + ‖ΓPa‖/√(aᵀPa + σ²), IDEA's choice."""
    frame = framed(belief, model)
    return frame.vectors @ highest(idea(frame))


def kalman_ucb_arm(belief: Belief, width: Array) -> Array:
    """The unit vector with the highest ⟨a, ẑ⟩ + w √(aᵀPa), Kalman-UCB's choice."""
    return secular.solved(belief.mean, belief.cov, width).arm


def best(belief: Belief, model: LGDS, policy: str = "idea", width: float = 1.0) -> Solution:
    """The unit vector that a Kalman policy plays, with a proof of how good it is.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1), as `kalman.prior` and `kalman.step` return it.
        model: Γ, Q, σ.
        policy: "idea", "kode" or "kalman_ucb".
        width: w of Kalman-UCB.

    Returns:
        `Solution`.

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
    return _kode(belief) if policy == "kode" else _kalman_ucb(belief, width)


def _kode(belief: Belief) -> Solution:
    arm = direction(belief.mean)
    value = float(arm @ belief.mean)
    return Solution(arm, value, 0.0, value)


def _kalman_ucb(belief: Belief, width: float) -> Solution:
    found = secular.solved(belief.mean, belief.cov, width)
    arm = found.arm
    cross = belief.cov @ arm
    deviation = float(np.sqrt(max(arm @ cross, 0.0)))
    gradient = belief.mean + (width / deviation * cross if deviation > 0 else 0.0)
    value = float(arm @ belief.mean + width * deviation)
    residual = float(np.linalg.norm(gradient - (arm @ gradient) * arm))
    return Solution(arm, value, residual, max(float(found.bound), value))


def _idea(belief: Belief, model: LGDS) -> Solution:
    frame = framed(belief, model)
    objective = idea(frame)
    row = highest(objective)
    score = float(objective.scores(row[None, :])[0])
    bound = max(upper_bound(objective, score, ACCURACY), score)
    residual = float(residuals(objective, row[None, :])[0])
    unit = float(frame.unit)
    return Solution(frame.vectors @ row, unit * score, unit * residual, unit * bound)
