"""Rexp3: Exp3 restarted every Δ rounds, Besbes, Gur and Zeevi (2014) (P19).

    p_a = (1 − γ) w_a / Σ w + γ / k,    w_a ← w_a exp(γ (x / p_a) / k) for the played arm

Exp3 needs rewards in [0, 1]: x = clip(½ + X / (6 R), 0, 1), so that ±3 standard deviations of the
largest arm fill the interval.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, namespace
from driftbandit.model import LGDS
from driftbandit.policies.base import Noise, Policy, Prepared, Problem, if_given
from driftbandit.policies.ucb import reward_drift, reward_scale

__all__ = ["Rexp3State", "policy"]


class Rexp3State(NamedTuple):
    """Exp3's weights and how old they are."""

    log_weights: Array  # log w_a, k numbers
    age: Array  # rounds since the last restart


def prepare(
    batch: int | None, gamma: float | None, model: LGDS, arms: Array, rounds: int
) -> Prepared:
    """Batch length Δ and exploration γ as published, with the variation budget of the model."""
    k = len(arms)
    span = 6 * reward_scale(model, arms, rounds)
    if batch is None:
        fastest = reward_drift(model, arms, rounds)  # V = n · fastest / span
        batch = rounds
        if fastest > 0:
            length = (k * math.log(k)) ** (1 / 3) * (span / fastest) ** (2 / 3)
            batch = max(1, min(rounds, math.ceil(length)))
    if gamma is None:
        gamma = min(1.0, math.sqrt(k * math.log(k) / ((math.e - 1) * batch)))
    constants = {"span": span or 1.0, "batch": np.int32(batch), "gamma": gamma}
    return constants, Rexp3State(np.zeros(k), np.zeros((), np.int32))


def _probabilities(state: Rexp3State, gamma: Array) -> Array:
    xp = namespace(state.log_weights)
    weights = xp.exp(state.log_weights - xp.max(state.log_weights))
    return (1 - gamma) * weights / xp.sum(weights) + gamma / weights.shape[0]


def choose(state: Rexp3State, problem: Problem, noise: Array) -> Array:
    """The first arm whose cumulative probability exceeds the uniform number."""
    xp = namespace(state.log_weights)
    cumulative = xp.cumulative_sum(_probabilities(state, problem.constants["gamma"]))
    # The last arm gets what rounding leaves between the final sum and one.
    return xp.sum(cumulative[:-1] <= noise)


def update(state: Rexp3State, problem: Problem, arm: Array, reward: Array) -> Rexp3State:
    """Raise the played arm's weight; forget everything when the batch is full."""
    xp = namespace(state.log_weights)
    constants = problem.constants
    chance = _probabilities(state, constants["gamma"])[arm]
    payoff = xp.clip(0.5 + reward / constants["span"], 0.0, 1.0)
    k = state.log_weights.shape[0]
    raised = state.log_weights + (xp.arange(k) == arm) * (constants["gamma"] * payoff / chance / k)
    age = state.age + 1
    full = age >= constants["batch"]
    return Rexp3State(xp.where(full, 0.0, raised), xp.where(full, 0, age))


def policy(batch: int | None = None, gamma: float | None = None) -> Policy:
    """Rexp3, by default with the published tuning for the model's own variation budget.

    Args:
        batch: Δ, rounds between restarts; None: ⌈(k log k)^⅓ (n/V)^⅔⌉, V = n max √(aᵀDa) / (6R)
            with D = (Γ − I) Z (Γ − I)ᵀ + Q.
        gamma: share of uniform play; None: min(1, √(k log k / ((e − 1) Δ))).
    """
    batch = if_given(errors.whole_number, batch, "batch", low=1, high=2**31 - 1)
    gamma = if_given(errors.number, gamma, "gamma", low=0, high=1)
    return Policy(
        "rexp3",
        functools.partial(prepare, batch, gamma),
        choose,
        update,
        noise=Noise("uniform", "one"),
        parameters={"batch": batch, "gamma": gamma},
    )
