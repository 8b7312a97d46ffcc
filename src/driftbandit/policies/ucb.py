"""UCB: the mean reward of each arm plus a confidence radius, Algorithm 4 (P18).

argmax_a  μ̂_a + √(2 R² log(1/δ) / N_a),   arms never played first
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, namespace
from driftbandit.model import LGDS
from driftbandit.policies.base import Policy, Problem, highest
from driftbandit.policies.scale import reward_scale

__all__ = ["UCBState", "policy"]


class UCBState(NamedTuple):
    """What was paid so far, k numbers each."""

    sums: Array
    """S_a."""
    counts: Array
    """N_a."""


def prepare(
    delta: float, model: LGDS, arms: Array, rounds: int
) -> tuple[Mapping[str, Any], UCBState]:
    """√(2 R² log(1/δ)), with R² = max aᵀZa + σ²."""
    radius = reward_scale(model, arms, rounds) * math.sqrt(2 * math.log(1 / delta))
    return {"radius": radius}, UCBState(np.zeros(len(arms)), np.zeros(len(arms)))


def scores(state: UCBState, problem: Problem) -> tuple[Array, Array]:
    """μ̂_a and radius / √N_a; zero and infinite for arms without a reward."""
    xp = namespace(state.sums)
    seen = xp.maximum(state.counts, xp.ones_like(state.counts))
    radius = xp.where(state.counts > 0, problem.constants["radius"] / xp.sqrt(seen), math.inf)
    return state.sums / seen, radius


def update(state: UCBState, problem: Problem, arm: Array, reward: Array) -> UCBState:
    """S_a += X, N_a += 1."""
    xp = namespace(state.sums)
    played = xp.arange(state.sums.shape[0]) == arm
    return UCBState(xp.where(played, state.sums + reward, state.sums), state.counts + played)


def policy(delta: float = 0.1) -> Policy:
    """UCB with confidence 1 − ``delta``; R is taken from the model."""
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    return Policy(
        "ucb",
        functools.partial(prepare, delta),
        highest(scores),
        update,
        parameters={"delta": delta},
        scores=scores,
    )
