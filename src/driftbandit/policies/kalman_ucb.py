"""Kalman-UCB: optimism about each arm's own reward, Algorithm 2 (P13).

u(a | P) = w √(aᵀPa),   w = √log(1/δ)
"""

import numpy as np

from driftbandit import errors
from driftbandit.actions import sphere
from driftbandit.arrays import Array, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, factor
from driftbandit.policies.base import LengthRatio, Policy, Problem
from driftbandit.policies.optimistic import arm_variances, optimistic

__all__ = ["bonus", "length_ratio", "policy"]


def bonus(cov: Array, model: LGDS, arms: Array, width: float = 1.0) -> Array:
    """u(a | P) = w √(aᵀPa), the predicted reward's standard deviation times w (P13).

    Args:
        cov: P(t|t−1), d × d.
        model: Γ, Q, σ (not used: σ is the same for every arm).
        arms: k × d.
        width: w.

    Example:
        >>> import numpy as np
        >>> bonus(np.eye(2), None, np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
        [5.0, 1.0]
    """
    _, variances = arm_variances(cov, arms)
    return width * namespace(cov).sqrt(variances)


def length_ratio(cov: np.ndarray, model: LGDS, width: float = 1.0) -> LengthRatio:
    """Kalman-UCB's bonus as a length (P13): w √(aᵀPa) = ‖w Fᵀa‖, F Fᵀ = P.

    Args:
        cov, model, width: P(t|t−1), d × d; Γ, Q, σ (not used); w.

    Example:
        >>> ratio = length_ratio(np.diag([4.0, 9.0]), None, width=2.0)
        >>> round(float(np.linalg.norm(ratio.stretch @ ratio.factor.T @ [0.0, 1.0])), 9)
        6.0
    """
    return LengthRatio(factor(cov), width * np.eye(len(cov)), None, width)


def on_sphere(belief: Belief, problem: Problem, noise: Array) -> Array:
    """The best unit vector, by the secular equation (`actions.secular`)."""
    return sphere.kalman_ucb_arm(belief, problem.constants["width"])


def policy(width: float = 1.0) -> Policy:
    """Kalman-UCB (Algorithm 2, P13).

    Args:
        width: w ≥ 0; 1 is the algorithm box's value, √log(1/δ) the text's.

    Example:
        >>> from driftbandit import Agent
        >>> model = LGDS(np.eye(2) / 2, np.diag([1.0, 4.0]), reward_std=1.0)
        >>> decision = Agent(model, np.eye(2), policy=policy(width=3.0)).ask()
        >>> decision.arm, round(decision.bonus, 3)  # 3 √(4 / (1 − ¼))
        (1, 6.928)
    """
    width = errors.number(width, "width", low=0)
    return optimistic(
        "kalman_ucb", bonus, on_sphere=on_sphere, length_ratio=length_ratio, width=width
    )
