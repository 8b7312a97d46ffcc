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
    """u(a | P) = 0 for each of the k arms; the arguments are the same as for `idea.bonus`."""
    return namespace(arms).zeros(arms.shape[0], dtype=cov.dtype)


def on_sphere(belief: Belief, problem: Problem, noise: Array) -> Array:
    """ẑ scaled to length one."""
    return sphere.direction(belief.mean)


def policy() -> Policy:
    """KODE: no bonus, no parameters."""
    return optimistic("kode", bonus, on_sphere=on_sphere)
