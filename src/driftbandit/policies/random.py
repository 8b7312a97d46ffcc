"""Random: every arm with the same chance (P19)."""

from __future__ import annotations

from typing import NamedTuple

from driftbandit.actions import sphere
from driftbandit.arrays import Array, namespace
from driftbandit.model import LGDS
from driftbandit.policies import base
from driftbandit.policies.base import Noise, Policy, Prepared, Problem

__all__ = ["policy"]


class Nothing(NamedTuple):
    """No memory."""


def prepare(model: LGDS, arms: Array, rounds: int) -> Prepared:
    """No constants."""
    return {}, Nothing()


def choose(state: Nothing, problem: Problem, noise: Array) -> Array:
    """⌊u k⌋; the minimum guards against u k rounding up to k."""
    xp = namespace(noise)
    k = problem.arms.shape[0]
    return xp.minimum(xp.astype(noise * k, xp.int32), xp.asarray(k - 1, dtype=xp.int32))


def on_sphere(state: Nothing, problem: Problem, noise: Array) -> Array:
    """A standard normal vector scaled to length one: uniform on the sphere."""
    return sphere.direction(noise)


def update(state: Nothing, problem: Problem, arm: Array, reward: Array) -> Nothing:
    """Learn nothing."""
    return state


def policy() -> Policy:
    """Uniformly random play has no parameters."""
    return Policy(
        "random",
        prepare,
        choose,
        update,
        noise=Noise("uniform", "one"),
        actions=base.ActionAbilities(
            on_sphere=on_sphere, sphere_noise=Noise("normal", "states"), contexts="online"
        ),
        agent=base.AgentAbilities(reads_features=True),
    )
