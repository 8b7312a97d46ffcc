"""IDEA, Information filter Directed Exploration for Action-selection, Algorithm 3 (P15).

    u(a | P) = ‖Γ P a‖ / √(aᵀPa + σ²)

By how much the reward of arm a moves the prediction of the next state, in standard deviations of
that reward: an arm earns its bonus by what it teaches about every arm.
"""

from driftbandit import kalman
from driftbandit.arrays import Array, dots, namespace
from driftbandit.model import LGDS
from driftbandit.policies.base import Policy
from driftbandit.policies.optimistic import optimistic

__all__ = ["bonus", "policy"]


def bonus(cov: Array, model: LGDS, arms: Array) -> Array:
    """u(a | P) = ‖Γ P a‖ / √(aᵀPa + σ²); zero for an arm whose reward is known.

    Args:
        cov: P(t|t−1), d × d.
        model: Γ, Q, σ.
        arms: k × d.

    Returns:
        k bonuses.

    Example:
        >>> import numpy as np
        >>> from driftbandit.model import LGDS
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=0.0)
        >>> bonus(np.eye(2), model, np.array([[3.0, 4.0], [0.0, 1.0]])).round(9).tolist()
        [0.5, 0.5]
    """
    moves = kalman.moves(cov, model, arms)
    return namespace(cov).sqrt(dots(moves, moves))


def policy() -> Policy:
    """IDEA has no parameters."""
    return optimistic("idea", bonus)
