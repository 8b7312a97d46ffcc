"""KODE, Kalman filter Observer Dependent Exploration: play the highest prediction (P19).

u(a | P) = 0
"""

from driftbandit.actions import sphere
from driftbandit.arrays import Array, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.policies.base import Policy, Problem
from driftbandit.policies.optimistic import optimistic

__all__ = ["bonus", "policy"]


def bonus(cov: Array, model: LGDS, arms: Array) -> Array:
    """u(a | P) = 0 for each of the k arms (P19).

    Args:
        cov, model, arms: as for `idea.bonus`; only the number of arms counts.

    Example:
        >>> import numpy as np
        >>> bonus(np.eye(2), None, np.ones((3, 2))).tolist()
        [0.0, 0.0, 0.0]
    """
    return namespace(arms).zeros(arms.shape[0], dtype=cov.dtype)


def on_sphere(belief: Belief, problem: Problem, noise: Array) -> Array:
    """ẑ scaled to length one."""
    return sphere.direction(belief.mean)


def policy() -> Policy:
    """KODE (P19): no bonus, no parameters.

    Example:
        >>> import numpy as np
        >>> from driftbandit.kalman import Belief
        >>> problem = Problem(None, np.array([[1.0, 0.0], [0.6, 0.8]]), {})
        >>> int(policy().choose(Belief(np.array([1.0, 2.0]), np.eye(2)), problem, None))
        1
    """
    return optimistic("kode", bonus, on_sphere=on_sphere)
