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
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, inverse, namespace
from driftbandit.model import LGDS
from driftbandit.policies import confidence
from driftbandit.policies.base import Policy, Problem, highest
from driftbandit.policies.optimistic import arm_variances

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
    d = model.n_states
    if gamma is None:
        drift = confidence.relative_drift(model, arms, rounds)
        gamma = 1 - min(1 / d, (drift / d) ** (2 / 3))
    constants = confidence.constants(delta, ridge, bound, model, arms, rounds)
    start = constants["ridge"] * np.eye(d)
    return constants | {"gamma": gamma}, DiscountedState(start, start, np.zeros(d), np.zeros(()))


def scores(state: DiscountedState, problem: Problem) -> tuple[Array, Array]:
    """⟨a, θ̂⟩ and β √(aᵀV⁻¹ṼV⁻¹a)."""
    xp = namespace(state.total)
    radius = confidence.radius(problem.constants, state.weight, state.total.shape[0])
    # No rank-one form: every round brings the ridge back to λI.
    cross = problem.arms @ inverse(state.design)
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
    delta, ridge, bound = confidence.checked(delta, ridge, bound)
    if gamma is not None:
        gamma = errors.number(gamma, "gamma", low=0, high=1)
    return Policy(
        "discounted_linucb",
        functools.partial(prepare, delta, gamma, ridge, bound),
        highest(scores),
        update,
        parameters={"delta": delta, "gamma": gamma, "ridge": ridge, "bound": bound},
        scores=scores,
        reads_features=True,
    )
