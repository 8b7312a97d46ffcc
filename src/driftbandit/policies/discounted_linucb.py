"""D-LinUCB: OFUL that forgets geometrically, Russac, Vernade and Cappé (2019).

    V = λI + Σ γ^(t−s) a aᵀ,   Ṽ = λI + Σ γ^(2(t−s)) a aᵀ,   θ̂ = V⁻¹ Σ γ^(t−s) a X
    argmax_a  ⟨a, θ̂⟩ + β √(aᵀV⁻¹ṼV⁻¹a)
    β = √λ S + R √(2 log(1/δ) + d log(1 + L² w / (λd))),   w = Σ γ^(2(t−s)),   L = max ‖a‖

Noise enters θ̂ by V⁻¹ Σ γ^(t−s) a η, whose covariance has γ² for γ: so Ṽ. The source's w is
(1 − γ^(2t)) / (1 − γ²), the same sum; as a sum it also holds for γ = 1, where Ṽ = V and nothing is
forgotten. Where rewards are missing, rounds count that have one.
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
from driftbandit.policies.optimistic import arm_variances
from driftbandit.policies.scale import reward_drift, reward_scale

__all__ = ["DiscountedState", "policy"]


class DiscountedState(NamedTuple):
    """Discounted ridge regression so far."""

    design: Array
    """V, d × d."""
    squared: Array
    """Ṽ, d × d."""
    total: Array
    """Σ γ^(t−s) a X, d numbers."""
    weight: Array
    """w."""


def prepare(
    delta: float,
    gamma: float | None,
    ridge: float | None,
    bound: float | None,
    model: LGDS,
    arms: Array,
    rounds: int,
) -> tuple[Mapping[str, Any], DiscountedState]:
    """R, S, λ and γ from the model where they are not given."""
    d = model.states
    scale = reward_scale(model, arms, rounds)
    longest = float(np.einsum("kd,kd->k", arms, arms).max())
    if gamma is None:
        # The source has means of rewards up to about one: B counts their drift in units of R.
        drift = reward_drift(model, arms, rounds) / (scale or 1.0)
        gamma = 1 - min(1 / d, (drift / d) ** (2 / 3))
    if ridge is None:
        ridge = longest
    if bound is None:
        bound = math.sqrt(max(float(np.trace(model.settled_moment(rounds))), 0.0))
    constants = {
        "gamma": gamma,
        "ridge": ridge,
        "scale": scale,
        "log_odds": 2 * math.log(1 / delta),
        "growth": longest / (ridge * d),
        "bias": math.sqrt(ridge) * bound,
    }
    start = ridge * np.eye(d)
    return constants, DiscountedState(start, start, np.zeros(d), np.zeros(()))


def scores(state: DiscountedState, problem: Problem) -> tuple[Array, Array]:
    """⟨a, θ̂⟩ and β √(aᵀV⁻¹ṼV⁻¹a)."""
    xp = namespace(state.total)
    constants, d = problem.constants, state.total.shape[0]
    volume = d * xp.log1p(constants["growth"] * state.weight)
    radius = constants["bias"] + constants["scale"] * xp.sqrt(constants["log_odds"] + volume)
    # No rank-one form: every round brings the ridge back to λI.
    cross = problem.arms @ xp.linalg.inv(state.design)
    _, variances = arm_variances(state.squared, cross)
    return cross @ state.total, radius * xp.sqrt(variances)


def update(state: DiscountedState, problem: Problem, arm: Array, reward: Array) -> DiscountedState:
    """V ← γV + a aᵀ + (1 − γ) λI, Ṽ the same with γ², b ← γb + a X, w ← γ²w + 1."""
    gamma, ridge = problem.constants["gamma"], problem.constants["ridge"]
    row = problem.arms[arm]
    seen = row[:, None] * row[None, :]
    fresh = ridge * namespace(row).eye(row.shape[0], dtype=row.dtype)
    return DiscountedState(
        gamma * state.design + seen + (1 - gamma) * fresh,
        gamma**2 * state.squared + seen + (1 - gamma**2) * fresh,
        gamma * state.total + row * reward,
        gamma**2 * state.weight + 1,
    )


def policy(
    delta: float = 0.1,
    gamma: float | None = None,
    ridge: float | None = None,
    bound: float | None = None,
) -> Policy:
    """D-LinUCB with confidence 1 − ``delta``; R² = max aᵀZa + σ² is taken from the model.

    Args:
        delta: chance that the confidence ellipsoid fails.
        gamma: γ, what is left of a reward's weight a round later; None: 1 − (B / (dn))^⅔ as
            published, with the B = n max √(aᵀDa) / R of the model, D = (Γ − I) Z (Γ − I)ᵀ + Q,
            and 1 − 1/d at least, a memory of d rounds: fewer do not show d directions.
        ridge: λ; None: the largest ‖a‖², as for OFUL.
        bound: S, a bound on ‖θ‖; None: √tr Z, the root mean square of ‖z‖.
    """
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    if gamma is not None:
        gamma = errors.number(gamma, "gamma", low=0, high=1)
    if ridge is not None:
        ridge = errors.number(ridge, "ridge", low=0, strict=True)
    if bound is not None:
        bound = errors.number(bound, "bound", low=0)
    return Policy(
        "discounted_linucb",
        functools.partial(prepare, delta, gamma, ridge, bound),
        highest(scores),
        update,
        parameters={"delta": delta, "gamma": gamma, "ridge": ridge, "bound": bound},
        scores=scores,
        reads_features=True,
    )
