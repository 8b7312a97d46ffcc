"""OFUL: optimism for a linear parameter that stands still, Abbasi-Yadkori et al. (2011) (P19).

V = λI + Σ a aᵀ,  θ̂ = V⁻¹ Σ a X
argmax_a  ⟨a, θ̂⟩ + β √(aᵀV⁻¹a),   β = R √(2 log(√(det V / λ^d) / δ)) + √λ S
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
from driftbandit.policies.scale import reward_scale

__all__ = ["RidgeState", "policy"]


class RidgeState(NamedTuple):
    """Ridge regression so far."""

    inverse: Array
    """V⁻¹, d × d, kept by rank-one updates."""
    total: Array
    """Σ a X, d numbers."""
    log_det: Array
    """log(det V / λ^d)."""


def prepare(
    delta: float, ridge: float | None, bound: float | None, model: LGDS, arms: Array, rounds: int
) -> tuple[Mapping[str, Any], RidgeState]:
    """R, S and λ from the model where they are not given."""
    if ridge is None:
        ridge = float(np.einsum("kd,kd->k", arms, arms).max())
    if bound is None:
        bound = math.sqrt(max(float(np.trace(model.settled_moment(rounds))), 0.0))
    constants = {
        "scale": reward_scale(model, arms, rounds),
        "log_odds": 2 * math.log(1 / delta),
        "bias": math.sqrt(ridge) * bound,
    }
    d = model.n_states
    return constants, RidgeState(np.eye(d) / ridge, np.zeros(d), np.zeros(()))


def scores(state: RidgeState, problem: Problem) -> tuple[Array, Array]:
    """⟨a, θ̂⟩ and β √(aᵀV⁻¹a)."""
    xp = namespace(state.total)
    constants = problem.constants
    radius = constants["scale"] * xp.sqrt(state.log_det + constants["log_odds"]) + constants["bias"]
    cross, variances = arm_variances(state.inverse, problem.arms)
    return cross @ state.total, radius * xp.sqrt(variances)


def update(state: RidgeState, problem: Problem, arm: Array, reward: Array) -> RidgeState:
    """Sherman–Morrison: V⁻¹ ← V⁻¹ − V⁻¹a aᵀV⁻¹ / (1 + aᵀV⁻¹a), log det V += log(1 + aᵀV⁻¹a)."""
    xp = namespace(state.total)
    row = problem.arms[arm]
    cross = state.inverse @ row
    growth = 1 + xp.vecdot(row, cross)
    return RidgeState(
        state.inverse - cross[:, None] * (cross / growth)[None, :],
        state.total + row * reward,
        state.log_det + xp.log(growth),
    )


def policy(delta: float = 0.1, ridge: float | None = None, bound: float | None = None) -> Policy:
    """OFUL with confidence 1 − ``delta``; R² = max aᵀZa + σ² is taken from the model.

    Args:
        delta: chance that the confidence ellipsoid fails.
        ridge: λ; None: the largest ‖a‖², as the theorem asks.
        bound: S, a bound on ‖θ‖; None: √tr Z, the root mean square of ‖z‖.
    """
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    if ridge is not None:
        ridge = errors.number(ridge, "ridge", low=0, strict=True)
    if bound is not None:
        bound = errors.number(bound, "bound", low=0)
    return Policy(
        "oful",
        functools.partial(prepare, delta, ridge, bound),
        highest(scores),
        update,
        parameters={"delta": delta, "ridge": ridge, "bound": bound},
        scores=scores,
        reads_features=True,
    )
