"""Kalman Thompson sampling: play the best arm of a state drawn from the belief, Thompson (1933).

    a = argmax ⟨a, z̃⟩,   z̃ ~ N(ẑ, P)

An arm is played with the probability that it is the best one. That is much exploration for a state
that moves: a good part of what is learned is out of date before it pays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftbandit import kalman
from driftbandit.actions import sphere
from driftbandit.arrays import Array, first_highest, lower_factor
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
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
    """The drawn state in length one."""
    return sphere.direction(drawn(belief, noise))


def prepare(model: LGDS, arms: Array, rounds: int) -> tuple[Mapping[str, Any], Belief]:
    """The prior."""
    return {}, kalman.prior(model)


def policy() -> Policy:
    """Thompson sampling has no parameters."""
    return filtering(
        "thompson",
        prepare,
        choose,
        noise=Noise("normal", "states"),
        actions=ActionAbilities(on_sphere=on_sphere),
    )
