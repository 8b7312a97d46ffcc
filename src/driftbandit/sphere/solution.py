"""The best unit vector of a policy, with its certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.sphere import bounds, objectives, secular
from driftbandit.sphere.ascent import highest, residuals
from driftbandit.sphere.frame import framed

__all__ = [
    "Solution",
    "best",
    "direction",
    "idea",
    "idea_arm",
    "kalman_ucb",
    "kalman_ucb_arm",
    "kode",
    "lookahead",
    "lookahead_arm",
]

ACCURACY = 1e-9
"""Gap, relative to the score, that IDEA's bound is refined to."""
ROUGH = 1e-4
"""The same for lookahead, whose bound has a gap of its own."""


class Solution(NamedTuple):
    """A unit vector, and what is known about it."""

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
        """By how much the best vector can at most be better."""
        return self.bound - self.value


def direction(vector: Array) -> Array:
    """The vector in length one; of zero, the first coordinate's unit vector.

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
    """IDEA's choice: the unit vector with the highest ⟨a, ẑ⟩ + ‖ΓPa‖/√(aᵀPa + σ²)."""
    frame = framed(belief, model)
    return frame.vectors @ highest(objectives.idea(frame))


def kalman_ucb_arm(belief: Belief, width: Array) -> Array:
    """Kalman-UCB's choice: the unit vector with the highest ⟨a, ẑ⟩ + w √(aᵀPa)."""
    return secular.solved(belief.mean, belief.cov, width).arm


def lookahead_arm(belief: Belief, model: LGDS, weights: Array) -> Array:
    """Lookahead's choice; see `lookahead`."""
    frame = framed(belief, model)
    return frame.vectors @ highest(objectives.lookahead(frame, belief, model, weights))


def kode(belief: Belief, model: LGDS) -> Solution:
    """KODE's: ẑ itself, in length one."""
    arm = direction(belief.mean)
    value = float(arm @ belief.mean)
    return Solution(arm, value, 0.0, value)


def kalman_ucb(belief: Belief, model: LGDS, width: float = 1.0) -> Solution:
    """Kalman-UCB's: the global maximum, since its multiplier is above P's eigenvalues."""
    found = secular.solved(belief.mean, belief.cov, width)
    arm = found.arm
    cross = belief.cov @ arm
    deviation = float(np.sqrt(max(arm @ cross, 0.0)))
    gradient = belief.mean + (width / deviation * cross if deviation > 0 else 0.0)
    value = float(arm @ belief.mean + width * deviation)
    residual = float(np.linalg.norm(gradient - (arm @ gradient) * arm))
    return Solution(arm, value, residual, max(float(found.bound), value))


def idea(belief: Belief, model: LGDS) -> Solution:
    """IDEA's, and a bound that is tight but for rounding."""
    frame = framed(belief, model)
    objective = objectives.idea(frame)
    row = highest(objective)
    score = float(objective.scores(row[None, :])[0])
    ceiling = bounds.idea(objective, score, ACCURACY)
    return _outside(objective, row, score, ceiling)


def lookahead(belief: Belief, model: LGDS, weights: Any) -> Solution:
    """The unit vector with the highest value of rounds ahead, played greedily from the next one on.

        ⟨a, ẑ⟩ + Σ_h w_h (E ‖Γ^h ẑ + Γ^(h−1) v ω‖ − ‖Γ^h ẑ‖),   v = ΓPa/√(aᵀPa + σ²),   ω ~ N(0, 1)

    With one weight, 1, it is P7's two-step value less ‖Γẑ‖. The value is right to 10⁻¹⁰. The bound
    holds, with a gap that stays: it takes every v for one across Γ^h ẑ.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1).
        model: Γ, Q, σ.
        weights: w_1 … w_H ≥ 0.
    """
    weights = errors.matrix(weights, "weights", shape=(None,))
    if weights.min() < 0:
        raise errors.InvalidInput("weights", f"hold {weights.min():g}", "give numbers ≥ 0")
    frame = framed(belief, model)
    objective = objectives.lookahead(frame, belief, model, weights)
    row = highest(objective)
    score = float(objective.scores(row[None, :])[0])
    ceiling = bounds.lookahead(objective, row, score, ROUGH)
    return _outside(objective, row, score, ceiling)


def _outside(
    objective: objectives.Objective, row: np.ndarray, score: float, ceiling: float
) -> Solution:
    unit = float(objective.frame.unit)
    residual = float(residuals(objective, row[None, :])[0])
    arm = objective.frame.vectors @ row
    return Solution(arm, unit * score, unit * residual, unit * max(ceiling, score))


POLICIES: dict[str, Callable[..., Solution]] = {
    "idea": idea,
    "kode": kode,
    "kalman_ucb": kalman_ucb,
}
"""Who plays argmax ⟨a, ẑ⟩ + u(a | P), and how that is solved."""


def best(belief: Belief, model: LGDS, policy: str = "idea") -> Solution:
    """The unit vector that a Kalman policy plays, with a proof of how good it is.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1), as `kalman.prior` and `kalman.step` give it.
        model: Γ, Q, σ.
        policy: "idea", "kode" or "kalman_ucb(width=2)"; `lookahead` takes its weights itself.

    Returns:
        `Solution`.

    Example:
        >>> model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> found = best(Belief(np.array([1.0, 0.0]), np.diag([1.0, 9.0])), model)
        >>> found.arm.round(3).tolist(), round(found.value, 3), found.gap < 1e-8
        ([0.702, 0.712], 3.06, True)
    """
    from driftbandit.policies import make  # which knows the sphere itself

    made = make(policy)
    solve = POLICIES[errors.closest(made.name, "policy", POLICIES)]
    mean = errors.matrix(belief.mean, "belief.mean", shape=(model.n_states,))
    cov = errors.covariance(belief.cov, "belief.cov", size=model.n_states)
    return solve(Belief(mean, cov), model, **made.parameters)
