"""Kalman Oracle: sees every arm's reward, plays the highest prediction; Algorithm 1 (P9, P10).

    z̃ ← Γ (z̃ + K (X − C z̃)),   K = P_A Cᵀ (C P_A Cᵀ + σ² I)⁻¹

It cannot be played in a bandit; it is the baseline that regret is divided by. As in the paper, it
uses the steady-state gain from the first round on: optimal once the error has settled, but blind to
a mode that is uncertain at the start (Σ0) and never moved by Q. If contexts change C from round to
round, there is no steady state; then K is that of the Kalman filter, which starts from the prior.
So it is if a mode that lasts but does not grow never shows in any reward, as the difference between
a shared level and the levels of all arms: its error grows slowly, and no reward depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit import errors, kalman, steady_state
from driftbandit.actions import sphere
from driftbandit.arrays import Array, first_highest, fold
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.policies import base
from driftbandit.policies.base import Policy, Prepared, Problem, Systems

__all__ = ["OracleState", "policy"]

LASTING = 1 + 1e-9  # modes with a larger absolute eigenvalue grow, but for rounding errors


class OracleState(NamedTuple):
    """The oracle's prediction; its covariance is P_A from the start."""

    mean: Array  # z̃, d numbers


def prepare(model: LGDS, arms: Array, rounds: int) -> Prepared:
    """K from the steady state; if there is none, the prior."""
    if np.ndim(arms) == 3:
        return {}, kalman.prior(model)
    try:
        gain = steady_state.oracle_gain(model, arms)
    except errors.NotDetectable:
        if model.spectral_radius > LASTING:
            raise
        return {}, kalman.prior(model)
    return {"gain": gain}, OracleState(model.start_mean())


def prepare_stack(systems: Systems, rounds: int) -> Prepared:
    """`prepare` for systems of one shape, whose steady states are solved together."""
    prior = kalman.priors([model for model, _ in systems])
    if np.ndim(systems[0][1]) == 3:
        return {}, prior
    try:
        gains = steady_state.oracle_gains(systems)
    except errors.NotDetectable:
        if max(model.spectral_radius for model, _ in systems) > LASTING:
            raise
        return {}, prior  # for all systems, whose states have one form
    return {"gain": gains}, OracleState(prior.mean)


def choose(state: OracleState | Belief, problem: Problem, noise: Array) -> Array:
    """Argmax ⟨a, z̃⟩."""
    return first_highest(problem.arms @ state.mean)


def on_sphere(state: OracleState, problem: Problem, noise: Array) -> Array:
    """z̃ scaled to length one; it sees the rewards of the d coordinate vectors (P8)."""
    return sphere.direction(state.mean)


def observe(
    state: OracleState | Belief, problem: Problem, arm: Array, rewards: Array
) -> OracleState | Belief:
    """z̃ ← z̃ + K (X − C z̃); a filter takes the rewards one by one: each has its own noise."""
    if isinstance(state, Belief):

        def one(belief: Belief, seen: tuple[Array, Array]) -> Belief:
            return kalman.observe(belief, problem.model, *seen)

        return fold(one, state, (problem.arms, rewards))
    surprise = rewards - problem.arms @ state.mean
    return OracleState(state.mean + problem.constants["gain"] @ surprise)


def advance(state: OracleState | Belief, problem: Problem, rounds: int = 1) -> OracleState | Belief:
    """z̃ ← Γ z̃, each round."""
    if isinstance(state, Belief):
        return kalman.advance(state, problem.model, rounds)
    transition = problem.model.transition
    if rounds > 1:
        transition = np.linalg.matrix_power(transition, rounds)
    return OracleState(transition @ state.mean)


def update(
    state: OracleState | Belief, problem: Problem, arm: Array, rewards: Array
) -> OracleState | Belief:
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
        actions=base.ActionAbilities(on_sphere=on_sphere, contexts="in advance"),
        agent=base.AgentAbilities(observe=observe, advance=advance),
        batch=base.BatchAbilities(prepare_stack=prepare_stack),
    )
