"""LinUCB and its variants for a parameter that moves: ridge regression plus optimism.

    θ̂ = V⁻¹ Σ w_s a X,   V = λI + Σ w_s a aᵀ   over past rounds s with weights w_s
    argmax_a  ⟨a, θ̂⟩ + β ‖a‖_M,   β = √λ S + R √(2 log(1/δ) + volume),   L = max ‖a‖

The variants differ in what they remember (weights, M, volume):

    OFUL          w_s = 1        M = V⁻¹      log(det V / λ^d)
    D-LinUCB      γ^(t−s)        V⁻¹ṼV⁻¹      d log(1 + L² w / (λd)), w = Σ γ^(2(t−s))
    LB-WeightUCB  γ^(t−s)        V⁻¹          the same
    RestartUCB    1 since the last restart, every H rounds; V⁻¹; the same, w = rounds since then
    SW-LinUCB     1 in the last w rounds; V⁻¹; β = √λ S + R √(d log((1 + L² w / λ) / δ))

Abbasi-Yadkori et al. (2011) (P19); Russac, Vernade and Cappé (2019); Wang, Zhao and Zhou (2023);
Zhao, Zhang, Jiang and Zhou (2020); Cheung, Simchi-Levi and Zhu (2019).

Ṽ = λI + Σ γ^(2(t−s)) a aᵀ is the covariance of the noise in Σ γ^(t−s) a X; since Ṽ ≤ V,
LB-WeightUCB needs only one matrix. R² = max aᵀZa + σ² is taken from the model. If rewards are
missing, only rounds with a reward count. The proofs of D- and SW-LinUCB have a gap in the bias of
θ̂ (Zhao et al. 2021, Touati and Vincent 2020); a regret of order d^⅞ B^¼ n^¾ has been proved since,
for LB-WeightUCB d^¾ B^¼ n^¾. B = n max √(aᵀDa) / R with D = (Γ − I) Z (Γ − I)ᵀ + Q of the model. A
memory that is not given is at least d rounds, our own choice: fewer cannot show d directions.

All take ``delta``, the chance δ that the confidence ellipsoid fails; ``ridge``, λ (None: the
largest ‖a‖², as OFUL's theorem requires); ``bound``, S ≥ ‖θ‖ (None: √tr Z, the root mean square of
‖z‖).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, inverse, namespace, put
from driftbandit.model import LGDS
from driftbandit.policies.base import (
    ActionAbilities,
    AgentAbilities,
    BatchAbilities,
    Policy,
    Prepared,
    Problem,
    Systems,
    highest,
    if_given,
    prepare_alone,
)
from driftbandit.policies.optimistic import arm_variances
from driftbandit.policies.ucb import reward_drift, reward_scale, reward_scales, settled_moments

__all__ = ["discounted_linucb", "oful", "restarted_linucb"]
__all__ += ["sliding_window_linucb", "weighted_linucb"]

LONGEST = 100_000  # longest window by default: all of its rounds are stored

Number = float | None


class _Tuning(NamedTuple):
    """What a user can set."""

    delta: float
    memory: Any  # γ, w or H; None: from the model
    ridge: Number
    bound: Number


def _policy(
    name: str, functions: tuple[Any, Any, Any], tuning: _Tuning, memory: str | None = None
) -> Policy:
    """The policy of prepare, scores and update; ``memory`` is the name of that parameter."""
    delta = errors.number(tuning.delta, "delta", low=0, high=1, strict=True)
    ridge = if_given(errors.number, tuning.ridge, "ridge", low=0, strict=True)
    bound = if_given(errors.number, tuning.bound, "bound", low=0)
    if memory == "gamma":
        given = if_given(errors.number, tuning.memory, "gamma", low=0, high=1)
    else:
        high = 10**7 if memory == "window" else 2**31 - 1
        given = if_given(errors.whole_number, tuning.memory, str(memory), low=1, high=high)
    prepare, scores, update = functions
    tuning = _Tuning(delta, given, ridge, bound)
    remembered = {memory: given} if memory else {}
    return Policy(
        name,
        functools.partial(prepare, tuning),
        highest(scores),
        update,
        parameters={"delta": delta, **remembered, "ridge": ridge, "bound": bound},
        actions=ActionAbilities(contexts="in advance"),
        agent=AgentAbilities(reads_features=True),
    )


def _constant_stack(tuning: _Tuning, systems: Systems, rounds: int) -> dict[str, Array]:
    """The numbers in β of n systems: R from the model, λ = L² and S = √tr Z unless given."""
    n, d = len(systems), systems[0][0].n_states
    arms = np.stack([rows for _, rows in systems]).reshape(n, -1, d)  # of all rounds
    longest = np.einsum("nkd,nkd->nk", arms, arms).max(axis=1)
    ridge = longest if tuning.ridge is None else np.full(n, tuning.ridge)
    bound: Any = tuning.bound
    if bound is None:
        traces = np.trace(settled_moments(systems, rounds), axis1=1, axis2=2)
        bound = np.sqrt(np.maximum(traces, 0.0))
    return {
        "ridge": ridge,
        "scale": reward_scales(systems, rounds),
        "log_odds": np.full(n, 2 * math.log(1 / tuning.delta)),
        "growth": longest / (ridge * d),
        "bias": np.sqrt(ridge) * bound,
    }


def _constants(tuning: _Tuning, model: LGDS, arms: Array, rounds: int) -> dict[str, float]:
    """The same numbers of one system."""
    found = _constant_stack(tuning, [(model, arms)], rounds)
    return {name: float(values[0]) for name, values in found.items()}


def _relative_drift(model: LGDS, arms: Array, rounds: int) -> float:
    """B / n: how far the fastest arm's mean moves in a round, in units of R."""
    return reward_drift(model, arms, rounds) / (reward_scale(model, arms, rounds) or 1.0)


def _radius(constants: Mapping[str, Array], volume: Array) -> Array:
    """β."""
    spread = namespace(volume).sqrt(constants["log_odds"] + volume)
    return constants["bias"] + constants["scale"] * spread


def _weight_radius(state: Any, weight: Array, problem: Problem) -> Array:
    """β for a memory of weight w, whose volume is d log(1 + L² w / (λd))."""
    growth, n_states = problem.constants["growth"], state.total.shape[0]
    return _radius(problem.constants, n_states * namespace(weight).log1p(growth * weight))


def _scores(inverse: Array, total: Array, radius: Array, arms: Array) -> tuple[Array, Array]:
    """⟨a, θ̂⟩ and β √(aᵀV⁻¹a)."""
    cross, variances = arm_variances(inverse, arms)
    return cross @ total, radius * namespace(total).sqrt(variances)


def _one_more(inverse: Array, row: Array) -> tuple[Array, Array]:
    """(V + a aᵀ)⁻¹ by Sherman–Morrison, and 1 + aᵀV⁻¹a = det(V + a aᵀ) / det V."""
    cross = inverse @ row
    growth = 1 + namespace(row).vecdot(row, cross)
    return inverse - cross[:, None] * (cross / growth)[None, :], growth


def _forgotten(design: Array, share: Array, seen: Array, fresh: Array) -> Array:
    """The design after a round that leaves this share of its past; the ridge stays λI."""
    return share * design + seen + (1 - share) * fresh


class RidgeState(NamedTuple):
    """Ridge regression so far."""

    inverse: Array  # V⁻¹, d × d, kept by rank-one updates
    total: Array  # Σ a X, d numbers
    log_det: Array  # log(det V / λ^d)


def _prepare_oful(tuning: _Tuning, systems: Systems, rounds: int) -> Prepared:
    n, d = len(systems), systems[0][0].n_states
    constants = _constant_stack(tuning, systems, rounds)
    inverse = np.eye(d) / constants["ridge"][:, None, None]
    return constants, RidgeState(inverse, np.zeros((n, d)), np.zeros(n))


def _oful_scores(state: RidgeState, problem: Problem) -> tuple[Array, Array]:
    radius = _radius(problem.constants, state.log_det)
    return _scores(state.inverse, state.total, radius, problem.arms)


def _oful_update(state: RidgeState, problem: Problem, arm: Array, reward: Array) -> RidgeState:
    row = problem.arms[arm]
    inverse, growth = _one_more(state.inverse, row)
    log_det = state.log_det + namespace(row).log(growth)
    return RidgeState(inverse, state.total + row * reward, log_det)


def oful(delta: float = 0.1, ridge: Number = None, bound: Number = None) -> Policy:
    """OFUL with confidence 1 − δ, for a parameter that does not move."""
    functions = _prepare_oful, _oful_scores, _oful_update
    made = _policy("oful", functions, _Tuning(delta, None, ridge, bound))
    together: Any = made.prepare
    alone = functools.partial(prepare_alone, together)
    return dataclasses.replace(made, prepare=alone, batch=BatchAbilities(prepare_stack=together))


class RestartedState(NamedTuple):
    """Ridge regression since the last restart."""

    inverse: Array  # as in `RidgeState`
    total: Array
    age: Array  # rounds since the last restart


def _prepare_restarted(tuning: _Tuning, model: LGDS, arms: Array, rounds: int) -> Prepared:
    d, batch = model.n_states, tuning.memory
    if batch is None:
        drift = _relative_drift(model, arms, rounds)
        best = d**0.25 / math.sqrt(drift) if drift > 0 else math.inf
        batch = int(min(rounds, 2**31 - 1, max(d, best)))
    constants = _constants(tuning, model, arms, rounds)
    start = RestartedState(np.eye(d) / constants["ridge"], np.zeros(d), np.zeros(()))
    return constants | {"batch": np.int32(batch)}, start


def _restarted_scores(state: RestartedState, problem: Problem) -> tuple[Array, Array]:
    radius = _weight_radius(state, state.age, problem)
    return _scores(state.inverse, state.total, radius, problem.arms)


def _restarted_update(
    state: RestartedState, problem: Problem, arm: Array, reward: Array
) -> RestartedState:
    """OFUL's update; λ⁻¹I and 0 when the batch is full."""
    row = problem.arms[arm]
    xp = namespace(row)
    learned, _ = _one_more(state.inverse, row)
    fresh = xp.eye(row.shape[0], dtype=row.dtype) / problem.constants["ridge"]
    age = state.age + 1
    full = age >= problem.constants["batch"]
    return RestartedState(
        xp.where(full, fresh, learned),
        xp.where(full, 0.0, state.total + row * reward),
        xp.where(full, 0.0, age),
    )


def restarted_linucb(
    delta: float = 0.1, batch: int | None = None, ridge: Number = None, bound: Number = None
) -> Policy:
    """RestartUCB with confidence 1 − δ.

    Args:
        batch: H, rounds between restarts; None: d^¼ √(n/B), the choice of the corrected proof,
            which balances its √d H^{3/2} B with its d n / √H.
    """
    functions = _prepare_restarted, _restarted_scores, _restarted_update
    return _policy("restarted_linucb", functions, _Tuning(delta, batch, ridge, bound), "batch")


class DiscountedState(NamedTuple):
    """Discounted ridge regression so far."""

    design: Array  # V, d × d
    squared: Array  # Ṽ, d × d
    total: Array  # Σ γ^(t−s) a X, d numbers
    weight: Array  # Σ γ^(2(t−s)): the source's (1 − γ^(2t)) / (1 − γ²), valid for γ = 1, too


def _prepare_discounted(tuning: _Tuning, model: LGDS, arms: Array, rounds: int) -> Prepared:
    d, gamma = model.n_states, tuning.memory
    if gamma is None:
        drift = _relative_drift(model, arms, rounds)
        gamma = 1 - min(1 / d, (drift / d) ** (2 / 3))
    constants = _constants(tuning, model, arms, rounds)
    start = constants["ridge"] * np.eye(d)
    return constants | {"gamma": gamma}, DiscountedState(start, start, np.zeros(d), np.zeros(()))


def _discounted_scores(state: DiscountedState, problem: Problem) -> tuple[Array, Array]:
    """⟨a, θ̂⟩ and β √(aᵀV⁻¹ṼV⁻¹a)."""
    # No rank-one form: every round brings the ridge back to λI.
    cross = problem.arms @ inverse(state.design)
    _, variances = arm_variances(state.squared, cross)
    radius = _weight_radius(state, state.weight, problem)
    return cross @ state.total, radius * namespace(state.total).sqrt(variances)


def _discounted_update(
    state: DiscountedState, problem: Problem, arm: Array, reward: Array
) -> DiscountedState:
    """V ← γV + a aᵀ + (1 − γ) λI, Ṽ the same with γ², b ← γb + a X, w ← γ²w + 1."""
    gamma, row = problem.constants["gamma"], problem.arms[arm]
    seen = row[:, None] * row[None, :]
    fresh = problem.constants["ridge"] * namespace(row).eye(row.shape[0], dtype=row.dtype)
    return DiscountedState(
        _forgotten(state.design, gamma, seen, fresh),
        _forgotten(state.squared, gamma**2, seen, fresh),
        gamma * state.total + row * reward,
        gamma**2 * state.weight + 1,
    )


def discounted_linucb(
    delta: float = 0.1, gamma: Number = None, ridge: Number = None, bound: Number = None
) -> Policy:
    """D-LinUCB with confidence 1 − δ.

    Args:
        gamma: γ, the share of a reward's weight that is left a round later; None: 1 − (B / (dn))^⅔
            as published.
    """
    functions = _prepare_discounted, _discounted_scores, _discounted_update
    return _policy("discounted_linucb", functions, _Tuning(delta, gamma, ridge, bound), "gamma")


class WeightedState(NamedTuple):
    """As `DiscountedState`, without Ṽ."""

    design: Array
    total: Array
    weight: Array


def _prepare_weighted(tuning: _Tuning, model: LGDS, arms: Array, rounds: int) -> Prepared:
    d, gamma = model.n_states, tuning.memory
    if gamma is None:
        drift = _relative_drift(model, arms, rounds)
        gamma = 1 - min(1 / d, max(1 / rounds, math.sqrt(drift / d)))
    constants = _constants(tuning, model, arms, rounds)
    start = WeightedState(constants["ridge"] * np.eye(d), np.zeros(d), np.zeros(()))
    return constants | {"gamma": gamma}, start


def _weighted_scores(state: WeightedState, problem: Problem) -> tuple[Array, Array]:
    # No rank-one form: every round brings the ridge back to λI.
    radius = _weight_radius(state, state.weight, problem)
    return _scores(inverse(state.design), state.total, radius, problem.arms)


def _weighted_update(
    state: WeightedState, problem: Problem, arm: Array, reward: Array
) -> WeightedState:
    """V ← γV + a aᵀ + (1 − γ) λI, b ← γb + a X, w ← γ²w + 1."""
    gamma, row = problem.constants["gamma"], problem.arms[arm]
    fresh = problem.constants["ridge"] * namespace(row).eye(row.shape[0], dtype=row.dtype)
    return WeightedState(
        _forgotten(state.design, gamma, row[:, None] * row[None, :], fresh),
        gamma * state.total + row * reward,
        gamma**2 * state.weight + 1,
    )


def weighted_linucb(
    delta: float = 0.1, gamma: Number = None, ridge: Number = None, bound: Number = None
) -> Policy:
    """LB-WeightUCB with confidence 1 − δ.

    Args:
        gamma: γ, the share of a reward's weight that is left a round later; None:
            1 − max(1/n, √(B / (dn))) as published.
        ridge: λ; the source has d times the default, which can make it play the longest arm
            forever if drift leaves only a few rounds in memory.
    """
    functions = _prepare_weighted, _weighted_scores, _weighted_update
    return _policy("weighted_linucb", functions, _Tuning(delta, gamma, ridge, bound), "gamma")


class LinearWindowState(NamedTuple):
    """The last w rounds as a ring buffer, and their sums."""

    design: Array  # V, d × d
    total: Array  # Σ a X over the window, d numbers
    rows: Array  # the arm played in each stored round, zeros if there is none yet; w × d or longer
    rewards: Array
    place: Array  # where the next round goes, 0 … w − 1


def _prepare_window(tuning: _Tuning, model: LGDS, arms: Array, rounds: int) -> Prepared:
    d, window = model.n_states, tuning.memory
    size = window
    if window is None:
        drift = _relative_drift(model, arms, rounds)
        best = (d / drift) ** (2 / 3) if drift > 0 else math.inf
        window = math.ceil(min(rounds, LONGEST, max(d, best)))
        size = 1 << (window - 1).bit_length()  # few sizes, so that studies share compiled programs
    constants = _constants(tuning, model, arms, rounds)
    volume = d * (math.log1p(constants["growth"] * d * window) + math.log(1 / tuning.delta))
    radius = constants["bias"] + constants["scale"] * math.sqrt(volume)
    ring = np.zeros((size, d)), np.zeros(size), np.zeros((), np.int32)
    start = LinearWindowState(constants["ridge"] * np.eye(d), np.zeros(d), *ring)
    return {"radius": radius, "window": np.int32(window)}, start


def _prepare_windows(prepare: Any, systems: Systems, rounds: int) -> Prepared:
    """Each system's, with ring buffers as long as the longest, so that they stack."""
    each = [prepare(model, arms, rounds) for model, arms in systems]
    n, d = len(systems), systems[0][0].n_states
    size = max(len(state.rewards) for _, state in each)
    constants = {name: np.array([found[name] for found, _ in each]) for name in each[0][0]}
    designs = np.stack([state.design for _, state in each])
    ring = np.zeros((n, size, d)), np.zeros((n, size)), np.zeros(n, np.int32)
    return constants, LinearWindowState(designs, np.zeros((n, d)), *ring)


def _window_scores(state: LinearWindowState, problem: Problem) -> tuple[Array, Array]:
    # Rank-one steps of V⁻¹ lose digits where rounds leave, a hundred times as many for small λ.
    return _scores(inverse(state.design), state.total, problem.constants["radius"], problem.arms)


def _window_update(
    state: LinearWindowState, problem: Problem, arm: Array, reward: Array
) -> LinearWindowState:
    """Add the new round, subtract the oldest one, overwrite it in the ring."""
    row, old, paid = problem.arms[arm], state.rows[state.place], state.rewards[state.place]
    return LinearWindowState(
        state.design + row[:, None] * row[None, :] - old[:, None] * old[None, :],
        state.total + row * reward - old * paid,
        put(state.rows, state.place, row),
        put(state.rewards, state.place, reward),
        (state.place + 1) % problem.constants["window"],
    )


def sliding_window_linucb(
    delta: float = 0.1, window: int | None = None, ridge: Number = None, bound: Number = None
) -> Policy:
    """SW-LinUCB with confidence 1 − δ.

    Args:
        window: w, rounds remembered; None: (dn/B)^⅔ as published.
    """
    functions = _prepare_window, _window_scores, _window_update
    made = _policy(
        "sliding_window_linucb", functions, _Tuning(delta, window, ridge, bound), "window"
    )
    together = functools.partial(_prepare_windows, made.prepare)
    return dataclasses.replace(made, batch=BatchAbilities(prepare_stack=together))
