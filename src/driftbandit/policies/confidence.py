"""What the LinUCB policies that forget have in common: how wide they trust their regression.

    β = √λ S + R √(2 log(1/δ) + d log(1 + L² w / (λd))),   L = max ‖a‖

with w the weight of what is remembered: Σ γ^(2(t−s)), or the number of rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, namespace
from driftbandit.model import LGDS
from driftbandit.policies.scale import reward_drift, reward_scale

__all__ = ["checked", "constants", "radius", "relative_drift"]


def constants(
    delta: float, ridge: float | None, bound: float | None, model: LGDS, arms: Array, rounds: int
) -> dict[str, float]:
    """The numbers in β: R from the model, λ = L² and S = √tr Z where they are not given."""
    longest = float(np.einsum("kd,kd->k", arms, arms).max())
    ridge = longest if ridge is None else ridge
    if bound is None:
        bound = math.sqrt(max(float(np.trace(model.settled_moment(rounds))), 0.0))
    return {
        "ridge": ridge,
        "scale": reward_scale(model, arms, rounds),
        "log_odds": 2 * math.log(1 / delta),
        "growth": longest / (ridge * model.n_states),
        "bias": math.sqrt(ridge) * bound,
    }


def radius(constants: Mapping[str, Array], weight: Array, n_states: int) -> Array:
    """β for a memory of that weight."""
    xp = namespace(weight)
    volume = n_states * xp.log1p(constants["growth"] * weight)
    return constants["bias"] + constants["scale"] * xp.sqrt(constants["log_odds"] + volume)


def relative_drift(model: LGDS, arms: Array, rounds: int) -> float:
    """B / n: how far the fastest arm's mean moves in a round, in units of R.

    The sources bound the length of θ's path, with arms and rewards of about one.
    """
    return reward_drift(model, arms, rounds) / (reward_scale(model, arms, rounds) or 1.0)


def checked(
    delta: float, ridge: float | None, bound: float | None
) -> tuple[float, float | None, float | None]:
    """δ, λ and S, or an error that says what is wrong with them."""
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    if ridge is not None:
        ridge = errors.number(ridge, "ridge", low=0, strict=True)
    if bound is not None:
        bound = errors.number(bound, "bound", low=0)
    return delta, ridge, bound
