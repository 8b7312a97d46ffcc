"""IDEA, Information filter Directed Exploration for Action-selection, Algorithm 3 (P15).

    u(a | P) = ‖Γ P a‖ / √(aᵀPa + σ²)

How far the reward of arm a moves the prediction of the next state per standard deviation of that
reward: the bonus is what an arm teaches about all arms.
"""

import numpy as np

from driftbandit import kalman
from driftbandit.actions import sphere
from driftbandit.arrays import Array, dots, namespace, times
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, factor
from driftbandit.policies.base import LengthRatio, Policy, Problem
from driftbandit.policies.optimistic import optimistic

__all__ = ["bonus", "length_ratio", "policy"]


def bonus(cov: Array, model: LGDS, arms: Array) -> Array:
    """u(a | P) = ‖Γ P a‖ / √(aᵀPa + σ²); zero for an arm whose reward is known.

    Args:
        cov: P(t|t−1), d × d.
        model: Γ, Q, σ.
        arms: k × d.

    Example:
        >>> import numpy as np
        >>> from driftbandit.model import LGDS
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=0.0)
        >>> bonus(np.eye(2), model, np.array([[3.0, 4.0], [0.0, 1.0]])).round(9).tolist()
        [0.5, 0.5]
    """
    seen = kalman.spread(cov, model, arms)
    moved = times(seen.cross, model.transition.T)
    return namespace(cov).sqrt(dots(moved, moved) / seen.variance)


def length_ratio(cov: np.ndarray, model: LGDS) -> LengthRatio:
    """IDEA's bonus as a ratio of lengths (P15): ‖Γ P a‖ = ‖Γ F Fᵀa‖, aᵀPa = ‖Fᵀa‖², F Fᵀ = P.

    Args:
        cov, model: P(t|t−1), d × d; Γ, Q, σ.

    Example:
        >>> model = LGDS(np.eye(2) / 2, np.eye(2), reward_std=1.0)
        >>> ratio, arm = length_ratio(np.eye(2), model), np.array([0.0, 1.0])
        >>> seen = ratio.factor.T @ arm
        >>> divisor = np.hypot(np.linalg.norm(seen), ratio.noise)
        >>> round(float(np.linalg.norm(ratio.stretch @ seen) / divisor), 6)  # 0.5 / √2
        0.353553
        >>> bonus(np.eye(2), model, arm[None]).round(6).tolist()
        [0.353553]
    """
    root = factor(cov)
    size = float(np.linalg.norm(model.transition) * np.linalg.norm(root))
    return LengthRatio(root, model.transition @ root, float(model.reward_std), size)


def on_sphere(belief: Belief, problem: Problem, noise: Array) -> Array:
    """The best unit vector (`actions.idea_search`)."""
    return sphere.idea_arm(belief, problem.model)


def policy() -> Policy:
    """IDEA (Algorithm 3, P15); it has no parameters.

    Example:
        >>> from driftbandit import Agent
        >>> model = LGDS(np.diag([0.9, 0.5]), np.eye(2), reward_std=1.0)
        >>> Agent(model, np.eye(2), policy=policy()).ask().arm  # the slow state teaches more
        0
    """
    return optimistic("idea", bonus, on_sphere=on_sphere, length_ratio=length_ratio)
