"""UCB, Algorithm 4, and two variants that forget: a confidence radius around each arm's mean (P18).

    UCB      argmax_a  S_a / N_a + √(2 R² log(1/δ) / N_a),   S_a the sum of N_a rewards
    SW-UCB   the same over the last ``window`` rounds (Algorithm 5, whose inner loop adds X_t where
             X_τ is meant)
    D-UCB    argmax_a  S_a / N_a + 2 R √(ξ log n / N_a),   N_a = Σ γ^(t−s), S_a = Σ γ^(t−s) X_s over
             the rounds s ≤ t that played a, n = Σ_a N_a; Garivier and Moulines (2011)

Arms without a reward come first. Half of D-UCB's bonus covers the bias from old rewards, the other
half the noise; R replaces the width of the rewards' interval, which normal rewards do not have. If
rewards are missing, only rounds with a reward count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, namespace, put
from driftbandit.model import LGDS
from driftbandit.policies.base import (
    ActionAbilities,
    BatchAbilities,
    Policy,
    Prepared,
    Problem,
    Systems,
    highest,
    if_given,
    prepare_alone,
)

__all__ = ["discounted_ucb", "reward_drift", "reward_drifts", "reward_scale", "reward_scales"]
__all__ += ["settled_moments", "sliding_window_ucb", "ucb"]

FAINT = 1e-20  # discounted rewards, of which float32 keeps all digits, and log n / N_a is finite


def reward_scales(systems: Systems, rounds: int) -> Array:
    """R = √(max_a aᵀZa + σ²) of n systems: the largest root mean square of a reward (P18).

    Z is the stationary covariance, or E z zᵀ after ``rounds`` if ρ(Γ) ≥ 1.
    """
    moments = settled_moments(systems, rounds)
    noise = np.array([model.reward_std**2 for model, _ in systems])
    variances = _largest_variances(systems, moments) + noise
    for i in np.flatnonzero(~np.isfinite(variances)).tolist():
        radius = f"spectral radius {systems[i][0].spectral_radius:g}"
        problem = f"is {rounds}, by when a state with {radius} exceeds the largest number"
        raise errors.InvalidInput("rounds", problem, "play fewer rounds")
    return np.sqrt(np.maximum(variances, 0.0))


def reward_drifts(systems: Systems, rounds: int) -> Array:
    """max_a √(aᵀDa), D = (Γ − I) Z (Γ − I)ᵀ + Q: how far the fastest arm's mean moves in a round.

    Root mean square, n numbers, with the Z of `reward_scales`.
    """
    transition = np.stack([model.transition for model, _ in systems])
    change = transition - np.eye(transition.shape[1])
    process_cov = np.stack([model.process_cov for model, _ in systems])
    drifts = change @ settled_moments(systems, rounds) @ change.mT + process_cov
    return np.sqrt(np.maximum(_largest_variances(systems, drifts), 0.0))


def reward_scale(model: LGDS, arms: Array, rounds: int) -> float:
    """R of one system."""
    return float(reward_scales([(model, arms)], rounds)[0])


def reward_drift(model: LGDS, arms: Array, rounds: int) -> float:
    """max_a √(aᵀDa) of one system."""
    return float(reward_drifts([(model, arms)], rounds)[0])


def settled_moments(systems: Systems, rounds: int) -> Array:
    """The `LGDS.settled_moment` of n systems, n × d × d."""
    return np.stack([model.settled_moment(rounds) for model, _ in systems])


def _largest_variances(systems: Systems, covs: Array) -> Array:
    arms = np.stack([rows for _, rows in systems])
    arms = arms.reshape(len(arms), -1, arms.shape[-1])  # of all rounds
    return np.einsum("nkd,nde,nke->nk", arms, covs, arms).max(axis=1)


class UCBState(NamedTuple):
    """Sums over all rewards, k numbers each."""

    sums: Array  # S_a
    counts: Array  # N_a


def _prepare(delta: float, systems: Systems, rounds: int) -> Prepared:
    radius = reward_scales(systems, rounds) * math.sqrt(2 * math.log(1 / delta))
    return {"radius": radius}, _no_rewards(systems)


def _no_rewards(systems: Systems) -> UCBState:
    shape = len(systems), len(systems[0][1])
    return UCBState(np.zeros(shape), np.zeros(shape))


def _scores(state: UCBState | WindowState, problem: Problem) -> tuple[Array, Array]:
    """S_a / N_a and radius / √N_a; zero and infinite for arms without a reward."""
    xp = namespace(state.sums)
    seen = xp.maximum(state.counts, xp.ones_like(state.counts))
    radius = xp.where(state.counts > 0, problem.constants["radius"] / xp.sqrt(seen), math.inf)
    return state.sums / seen, radius


def _update(state: UCBState, problem: Problem, arm: Array, reward: Array) -> UCBState:
    xp = namespace(state.sums)
    played = xp.arange(state.sums.shape[0]) == arm
    return UCBState(xp.where(played, state.sums + reward, state.sums), state.counts + played)


def ucb(delta: float = 0.1) -> Policy:
    """UCB with confidence 1 − ``delta``; R is taken from the model."""
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    prepare = functools.partial(_prepare, delta)
    return _policy("ucb", prepare, (_scores, _update), {"delta": delta})


class WindowState(NamedTuple):
    """The last ``window`` rounds as a ring buffer, and their sums."""

    sums: Array  # S_a over the window, k numbers
    counts: Array  # N_a over the window, k numbers
    arms: Array  # the arm played in each stored round; −1 if there is none yet
    rewards: Array
    place: Array  # where the next round goes, 0 … window − 1


def _prepare_window(delta: float, window: int | None, systems: Systems, rounds: int) -> Prepared:
    constants, _ = _prepare(delta, systems, rounds)
    if window is None:
        window = max(1, min(rounds, math.ceil(2 * math.sqrt(rounds * math.log(rounds)))))
    n = len(systems)
    ring = np.full((n, window), -1, np.int32), np.zeros((n, window)), np.zeros(n, np.int32)
    return constants, WindowState(*_no_rewards(systems), *ring)


def _window_update(state: WindowState, problem: Problem, arm: Array, reward: Array) -> WindowState:
    """Add the new round, subtract the oldest one, overwrite it in the ring."""
    index = namespace(state.sums).arange(state.sums.shape[0])
    enters, leaves = index == arm, index == state.arms[state.place]
    return WindowState(
        state.sums + enters * reward - leaves * state.rewards[state.place],
        state.counts + enters - leaves,
        put(state.arms, state.place, arm),
        put(state.rewards, state.place, reward),
        (state.place + 1) % state.arms.shape[0],
    )


def sliding_window_ucb(window: int | None = None, delta: float = 0.1) -> Policy:
    """Sliding-window UCB with confidence 1 − ``delta``; R is taken from the model.

    Args:
        window: rounds remembered; None: 2 √(n log n), the choice of Garivier and Moulines (2011)
            for one change within n rounds.
        delta: chance that a confidence interval fails.
    """
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    window = if_given(errors.whole_number, window, "window", low=1, high=10**7)
    prepare = functools.partial(_prepare_window, delta, window)
    parameters = {"window": window, "delta": delta}
    return _policy("sliding_window_ucb", prepare, (_scores, _window_update), parameters)


def _prepare_discounted(gamma: float | None, xi: float, systems: Systems, rounds: int) -> Prepared:
    if gamma is None:
        gamma = 1 - 0.25 / math.sqrt(rounds)
    radius = 2 * reward_scales(systems, rounds) * math.sqrt(xi)
    return {"gamma": np.full(len(systems), gamma), "radius": radius}, _no_rewards(systems)


def _discounted_scores(state: UCBState, problem: Problem) -> tuple[Array, Array]:
    """S_a / N_a and radius √(log n / N_a); zero and infinite for arms without a reward."""
    xp = namespace(state.sums)
    seen = xp.where(state.counts > 0, state.counts, 1.0)
    log_total = xp.log(xp.maximum(xp.sum(state.counts), xp.ones((), dtype=seen.dtype)))
    radius = problem.constants["radius"] * xp.sqrt(log_total / seen)
    return state.sums / seen, xp.where(state.counts > 0, radius, math.inf)


def _discounted_update(state: UCBState, problem: Problem, arm: Array, reward: Array) -> UCBState:
    """S ← γ S, N ← γ N, then S_a += X, N_a += 1.

    An arm with N_a below `FAINT` keeps S_a and N_a. Its mean stays S_a / N_a, and neither number
    becomes so small that it has no digits left, or zero, as that of an arm without a reward.
    """
    xp = namespace(state.sums)
    gamma = xp.where(state.counts < FAINT, xp.ones_like(state.counts), problem.constants["gamma"])
    played = xp.arange(state.sums.shape[0]) == arm
    return UCBState(gamma * state.sums + played * reward, gamma * state.counts + played)


def discounted_ucb(gamma: float | None = None, xi: float = 0.6) -> Policy:
    """Discounted UCB; R is taken from the model.

    Args:
        gamma: γ, the share of a reward's weight that is left a round later; None: 1 − ¼ √(1/n), the
            choice of Garivier and Moulines (2011) for one change within n rounds.
        xi: ξ, the size of the bonus; their theorem asks for more than ½, they use 0.6.
    """
    gamma = if_given(errors.number, gamma, "gamma", low=0, high=1)
    xi = errors.number(xi, "xi", low=0)
    prepare = functools.partial(_prepare_discounted, gamma, xi)
    functions = _discounted_scores, _discounted_update
    return _policy("discounted_ucb", prepare, functions, {"gamma": gamma, "xi": xi})


def _policy(
    name: str, prepare: Any, functions: tuple[Any, Any], parameters: Mapping[str, Any]
) -> Policy:
    """The policy of a ``prepare_stack``, scores and update."""
    scores, update = functions
    alone = functools.partial(prepare_alone, prepare)
    return Policy(
        name,
        alone,
        highest(scores),
        update,
        parameters=parameters,
        actions=ActionAbilities(contexts="in advance"),
        batch=BatchAbilities(prepare_stack=prepare),
    )
