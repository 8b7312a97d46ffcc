"""Kalman Oracle: sees every arm's reward, plays the highest prediction; Algorithm 1 (P9, P10).

    z̃ ← Γ (z̃ + K (X − C z̃)),   K = P_A Cᵀ (C P_A Cᵀ + σ² I)⁻¹

It cannot be played in a bandit; it is the baseline that regret is divided by. As in the paper, it
uses the steady-state gain from the first round on: optimal once the error has settled, but blind to
a mode that is uncertain at the start (Σ0) and never moved by Q.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit import kalman, steady_state
from driftbandit.actions import sphere
from driftbandit.arrays import Array, first_highest
from driftbandit.model import LGDS
from driftbandit.policies import base
from driftbandit.policies.base import Policy, Prepared, Problem, Systems

__all__ = ["OracleState", "policy"]


class OracleState(NamedTuple):
    """The oracle's prediction; its covariance is P_A from the start."""

    mean: Array  # z̃, d numbers


def prepare(model: LGDS, arms: Array, rounds: int) -> Prepared:
    """K from the steady state."""
    return {"gain": steady_state.oracle_gain(model, arms)}, OracleState(model.start_mean())


def prepare_stack(systems: Systems, rounds: int) -> Prepared:
    """`prepare` for systems of one shape, whose steady states are solved together."""
    means = kalman.priors([model for model, _ in systems]).mean
    return {"gain": steady_state.oracle_gains(systems)}, OracleState(means)


def choose(state: OracleState, problem: Problem, noise: Array) -> Array:
    """Argmax ⟨a, z̃⟩."""
    return first_highest(problem.arms @ state.mean)


def on_sphere(state: OracleState, problem: Problem, noise: Array) -> Array:
    """z̃ scaled to length one; it sees the rewards of the d coordinate vectors (P8)."""
    return sphere.direction(state.mean)


def observe(state: OracleState, problem: Problem, arm: Array, rewards: Array) -> OracleState:
    """z̃ ← z̃ + K (X − C z̃)."""
    surprise = rewards - problem.arms @ state.mean
    return OracleState(state.mean + problem.constants["gain"] @ surprise)


def advance(state: OracleState, problem: Problem, rounds: int = 1) -> OracleState:
    """z̃ ← Γ z̃, each round."""
    transition = problem.model.transition
    if rounds > 1:
        transition = np.linalg.matrix_power(transition, rounds)
    return OracleState(transition @ state.mean)


def update(state: OracleState, problem: Problem, arm: Array, rewards: Array) -> OracleState:
    """Fold in the rewards, then advance one round."""
    return advance(observe(state, problem, arm, rewards), problem)


def policy() -> Policy:
    """The Kalman Oracle has no parameters."""
    return Policy(
        "kalman_oracle",
        prepare,
        choose,
        update,
        full_information=True,
        actions=base.ActionAbilities(on_sphere=on_sphere),
        agent=base.AgentAbilities(observe=observe, advance=advance),
        batch=base.BatchAbilities(prepare_stack=prepare_stack),
    )
