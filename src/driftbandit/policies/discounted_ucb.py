"""Discounted UCB: UCB that forgets geometrically, Garivier and Moulines (2011).

    N_a = Σ γ^(t−s) over the rounds s ≤ t that played a,   S_a = Σ γ^(t−s) X_s,   n = Σ_a N_a
    argmax_a  S_a / N_a + 2 B √(ξ log n / N_a),   arms never played first

Half of the bonus covers what forgetting leaves of the past, the other half the noise. B is the
width of the rewards' interval in the source; normal rewards have none, and R takes its place.
Where rewards are missing, rounds count that have one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, namespace
from driftbandit.model import LGDS
from driftbandit.policies.base import Policy, Problem, highest
from driftbandit.policies.scale import reward_scale
from driftbandit.policies.ucb import UCBState

__all__ = ["policy"]


def prepare(
    gamma: float | None, xi: float, model: LGDS, arms: Array, rounds: int
) -> tuple[Mapping[str, Any], UCBState]:
    """γ, and 2 R √ξ with R² = max aᵀZa + σ²."""
    if gamma is None:
        gamma = 1 - 0.25 / math.sqrt(rounds)
    radius = 2 * reward_scale(model, arms, rounds) * math.sqrt(xi)
    return {"gamma": gamma, "radius": radius}, UCBState(np.zeros(len(arms)), np.zeros(len(arms)))


def scores(state: UCBState, problem: Problem) -> tuple[Array, Array]:
    """S_a / N_a and radius √(log n / N_a); zero and infinite for arms without a reward."""
    xp = namespace(state.sums)
    seen = xp.where(state.counts > 0, state.counts, 1.0)
    log_total = xp.log(xp.maximum(xp.sum(state.counts), xp.ones((), dtype=seen.dtype)))
    radius = problem.constants["radius"] * xp.sqrt(log_total / seen)
    return state.sums / seen, xp.where(state.counts > 0, radius, math.inf)


def update(state: UCBState, problem: Problem, arm: Array, reward: Array) -> UCBState:
    """S ← γ S, N ← γ N, then S_a += X, N_a += 1."""
    gamma = problem.constants["gamma"]
    played = namespace(state.sums).arange(state.sums.shape[0]) == arm
    return UCBState(gamma * state.sums + played * reward, gamma * state.counts + played)


def policy(gamma: float | None = None, xi: float = 0.6) -> Policy:
    """Discounted UCB; R is taken from the model.

    Args:
        gamma: γ, what is left of a reward's weight a round later; None: 1 − ¼ √(1/n), the choice
            of Garivier and Moulines (2011) for one change within n rounds.
        xi: ξ, the size of the bonus; their theorem asks for more than ½, they play 0.6.
    """
    if gamma is not None:
        gamma = errors.number(gamma, "gamma", low=0, high=1)
    xi = errors.number(xi, "xi", low=0)
    return Policy(
        "discounted_ucb",
        functools.partial(prepare, gamma, xi),
        highest(scores),
        update,
        parameters={"gamma": gamma, "xi": xi},
        scores=scores,
    )
