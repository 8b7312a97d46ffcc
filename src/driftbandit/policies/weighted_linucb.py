"""LB-WeightUCB: discounted LinUCB with one matrix, Wang, Zhao and Zhou (2023).

    V = λI + Σ γ^(t−s) a aᵀ,   θ̂ = V⁻¹ Σ γ^(t−s) a X
    argmax_a  ⟨a, θ̂⟩ + β √(aᵀV⁻¹a)
    β = √λ S + R √(2 log(1/δ) + d log(1 + L² w / (λd))),   w = Σ γ^(2(t−s)),   L = max ‖a‖

D-LinUCB measures in V⁻¹ṼV⁻¹; since Ṽ ≤ V, that is at most V⁻¹, and one matrix is enough. The regret
is of order d^¾ B^¼ n^¾ for λ = d. Where rewards are missing, rounds count that have one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, inverse, namespace
from driftbandit.model import LGDS
from driftbandit.policies import confidence
from driftbandit.policies.base import Policy, Problem, highest
from driftbandit.policies.optimistic import arm_variances

__all__ = ["WeightedState", "policy"]


class WeightedState(NamedTuple):
    """Discounted ridge regression so far."""

    design: Array
    """V, d × d."""
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
) -> tuple[Mapping[str, Any], WeightedState]:
    """R, S, λ and γ from the model where they are not given."""
    d = model.n_states
    if gamma is None:
        drift = confidence.relative_drift(model, arms, rounds)
        gamma = 1 - min(1 / d, max(1 / rounds, math.sqrt(drift / d)))
    constants = confidence.constants(delta, ridge, bound, model, arms, rounds)
    start = WeightedState(constants["ridge"] * np.eye(d), np.zeros(d), np.zeros(()))
    return constants | {"gamma": gamma}, start


def scores(state: WeightedState, problem: Problem) -> tuple[Array, Array]:
    """⟨a, θ̂⟩ and β √(aᵀV⁻¹a)."""
    xp = namespace(state.total)
    radius = confidence.radius(problem.constants, state.weight, state.total.shape[0])
    # No rank-one form: every round brings the ridge back to λI.
    cross, variances = arm_variances(inverse(state.design), problem.arms)
    return cross @ state.total, radius * xp.sqrt(variances)


def update(state: WeightedState, problem: Problem, arm: Array, reward: Array) -> WeightedState:
    """V ← γV + a aᵀ + (1 − γ) λI, b ← γb + a X, w ← γ²w + 1."""
    gamma, ridge = problem.constants["gamma"], problem.constants["ridge"]
    row = problem.arms[arm]
    fresh = ridge * namespace(row).eye(row.shape[0], dtype=row.dtype)
    return WeightedState(
        gamma * state.design + row[:, None] * row[None, :] + (1 - gamma) * fresh,
        gamma * state.total + row * reward,
        gamma**2 * state.weight + 1,
    )


def policy(
    delta: float = 0.1,
    gamma: float | None = None,
    ridge: float | None = None,
    bound: float | None = None,
) -> Policy:
    """LB-WeightUCB with confidence 1 − ``delta``; R² = max aᵀZa + σ² is taken from the model.

    Args:
        delta: chance that the confidence ellipsoid fails.
        gamma: γ, what is left of a reward's weight a round later; None: 1 − max(1/n, √(B / (dn)))
            as published, with the model's B as for D-LinUCB and, by our choice, 1 − 1/d at
            least, a memory of d rounds: fewer do not show d directions.
        ridge: λ; None: the largest ‖a‖², as for OFUL. The source has d times that, which after the
            few rounds that drift leaves in memory can let the longest arm be played for ever.
        bound: S, a bound on ‖θ‖; None: √tr Z, the root mean square of ‖z‖.
    """
    delta, ridge, bound = confidence.checked(delta, ridge, bound)
    if gamma is not None:
        gamma = errors.number(gamma, "gamma", low=0, high=1)
    return Policy(
        "weighted_linucb",
        functools.partial(prepare, delta, gamma, ridge, bound),
        highest(scores),
        update,
        parameters={"delta": delta, "gamma": gamma, "ridge": ridge, "bound": bound},
        scores=scores,
        reads_features=True,
    )
