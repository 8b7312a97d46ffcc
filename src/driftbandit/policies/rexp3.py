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
from driftbandit.policies.base import (
    BatchAbilities,
    Noise,
    Policy,
    Prepared,
    Problem,
    Systems,
    if_given,
    prepare_alone,
)
from driftbandit.policies.ucb import reward_drifts, reward_scales

__all__ = ["Rexp3State", "policy"]


class Rexp3State(NamedTuple):
    """Exp3's weights and how old they are."""

    log_weights: Array  # log w_a, k numbers
    age: Array  # rounds since the last restart


def prepare(batch: int | None, gamma: float | None, systems: Systems, rounds: int) -> Prepared:
    """Batch length Δ and exploration γ as published, with the variation budget of each model."""
    n, k = len(systems), len(systems[0][1])
    span = 6 * reward_scales(systems, rounds)
    lengths = np.full(n, rounds if batch is None else batch)
    if batch is None:
        fastest = reward_drifts(systems, rounds)  # V = n · fastest / span
        drifts = fastest > 0
        length = (k * math.log(k)) ** (1 / 3) * (span[drifts] / fastest[drifts]) ** (2 / 3)
        lengths[drifts] = np.clip(np.ceil(length), 1, rounds)
    explored = np.minimum(1.0, np.sqrt(k * math.log(k) / ((math.e - 1) * lengths)))
    constants = {
        "span": np.where(span > 0, span, 1.0),
        "batch": lengths.astype(np.int32),
        "gamma": explored if gamma is None else np.full(n, gamma),
    }
    return constants, Rexp3State(np.zeros((n, k)), np.zeros(n, np.int32))


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
    together = functools.partial(prepare, batch, gamma)
    return Policy(
        "rexp3",
        functools.partial(prepare_alone, together),
        choose,
        update,
        noise=Noise("uniform", "one"),
        parameters={"batch": batch, "gamma": gamma},
        batch=BatchAbilities(prepare_stack=together),
    )
