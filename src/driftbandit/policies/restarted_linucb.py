"""RestartUCB: LinUCB that starts anew every H rounds, Zhao, Zhang, Jiang and Zhou (2020).

    V = λI + Σ a aᵀ,   θ̂ = V⁻¹ Σ a X   over the t rounds since the last restart
    argmax_a  ⟨a, θ̂⟩ + β √(aᵀV⁻¹a)
    β = √λ S + R √(2 log(1/δ) + d log(1 + L² t / (λd))),   L = max ‖a‖

Its regret is of order d^⅞ B^¼ n^¾ by the corrected proof; the first one had B^⅓ n^⅔. Where rewards
are missing, rounds count that have one.
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
from driftbandit.policies import confidence
from driftbandit.policies.base import Policy, Problem, highest
from driftbandit.policies.optimistic import arm_variances

__all__ = ["RestartedState", "policy"]


class RestartedState(NamedTuple):
    """Ridge regression since the last restart."""

    inverse: Array
    """V⁻¹, d × d, kept by rank-one updates, as OFUL's."""
    total: Array
    """Σ a X, d numbers."""
    age: Array
    """t, rounds since the last restart."""


def prepare(
    delta: float,
    batch: int | None,
    ridge: float | None,
    bound: float | None,
    model: LGDS,
    arms: Array,
    rounds: int,
) -> tuple[Mapping[str, Any], RestartedState]:
    """R, S, λ and H from the model where they are not given."""
    d = model.n_states
    if batch is None:
        drift = confidence.relative_drift(model, arms, rounds)
        best = d**0.25 / math.sqrt(drift) if drift > 0 else math.inf
        batch = int(min(rounds, 2**31 - 1, max(d, best)))
    constants = confidence.constants(delta, ridge, bound, model, arms, rounds)
    start = RestartedState(np.eye(d) / constants["ridge"], np.zeros(d), np.zeros(()))
    return constants | {"batch": np.int32(batch)}, start


def scores(state: RestartedState, problem: Problem) -> tuple[Array, Array]:
    """⟨a, θ̂⟩ and β √(aᵀV⁻¹a)."""
    radius = confidence.radius(problem.constants, state.age, state.total.shape[0])
    cross, variances = arm_variances(state.inverse, problem.arms)
    return cross @ state.total, radius * namespace(state.total).sqrt(variances)


def update(state: RestartedState, problem: Problem, arm: Array, reward: Array) -> RestartedState:
    """V⁻¹ ← V⁻¹ − V⁻¹a aᵀV⁻¹ / (1 + aᵀV⁻¹a), b ← b + a X; λ⁻¹I and 0 when the batch is full."""
    xp = namespace(state.total)
    row = problem.arms[arm]
    cross = state.inverse @ row
    learned = state.inverse - cross[:, None] * (cross / (1 + xp.vecdot(row, cross)))[None, :]
    fresh = xp.eye(row.shape[0], dtype=row.dtype) / problem.constants["ridge"]
    age = state.age + 1
    full = age >= problem.constants["batch"]
    return RestartedState(
        xp.where(full, fresh, learned),
        xp.where(full, 0.0, state.total + row * reward),
        xp.where(full, 0.0, age),
    )


def policy(
    delta: float = 0.1,
    batch: int | None = None,
    ridge: float | None = None,
    bound: float | None = None,
) -> Policy:
    """RestartUCB with confidence 1 − ``delta``; R² = max aᵀZa + σ² is taken from the model.

    Args:
        delta: chance that the confidence ellipsoid fails.
        batch: H, rounds between restarts; None: d^¼ √(n/B), the choice of the corrected proof,
            which balances its √d H^{3/2} B with its d n / √H, with the model's B as for D-LinUCB
            and, by our choice, d at least: fewer rounds do not show d directions.
        ridge: λ; None: the largest ‖a‖², as for OFUL.
        bound: S, a bound on ‖θ‖; None: √tr Z, the root mean square of ‖z‖.
    """
    delta, ridge, bound = confidence.checked(delta, ridge, bound)
    if batch is not None:
        batch = errors.whole_number(batch, "batch", low=1, high=2**31 - 1)
    return Policy(
        "restarted_linucb",
        functools.partial(prepare, delta, batch, ridge, bound),
        highest(scores),
        update,
        parameters={"delta": delta, "batch": batch, "ridge": ridge, "bound": bound},
        scores=scores,
        reads_features=True,
    )
