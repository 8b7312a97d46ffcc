"""Kalman Thompson sampling: play the best arm of a state drawn from the belief, Thompson (1933).

    a = argmax ⟨a, z̃⟩,   z̃ ~ N(ẑ, P)

An arm is played with the probability that it is the best one. That explores much for a state that
moves: a good part of what is learned is out of date before it pays off.
"""

from __future__ import annotations

from driftbandit.actions import sphere
from driftbandit.arrays import Array, first_highest, lower_factor
from driftbandit.kalman import Belief
from driftbandit.policies.base import ActionAbilities, Noise, Policy, Problem
from driftbandit.policies.optimistic import filtering

__all__ = ["policy"]


def drawn(belief: Belief, noise: Array) -> Array:
    """z̃ = ẑ + L ε with P = L Lᵀ."""
    return belief.mean + lower_factor(belief.cov) @ noise


def choose(belief: Belief, problem: Problem, noise: Array) -> Array:
    """The best arm in the drawn state."""
    return first_highest(problem.arms @ drawn(belief, noise))


def on_sphere(belief: Belief, problem: Problem, noise: Array) -> Array:
    """The drawn state, scaled to length one."""
    return sphere.direction(drawn(belief, noise))


def policy() -> Policy:
    """Thompson sampling has no parameters."""
    abilities = ActionAbilities(on_sphere=on_sphere)
    return filtering("thompson", choose, noise=Noise("normal", "states"), actions=abilities)
