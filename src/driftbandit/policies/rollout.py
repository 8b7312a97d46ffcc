"""Rollout: simulate each arm followed by greedy play, and play the arm with the best outcome.

    a = argmax ⟨a, ẑ⟩ + (1/N) Σ_ω Σ_h γ^(h−1) max_b ⟨b, ẑ_h⟩,   h = 1 … H

This is one step of policy improvement on a base policy (Bertsekas, Tsitsiklis and Wu 1997). The
base policy is KODE, which plays greedily. A scenario is H future surprises ω_1 … ω_H ~ N(0, 1). If
arm b is played with belief (ẑ, P), the next belief is

    ẑ⁺ = Γẑ + Γ P b ω / √(bᵀPb + σ²),   P⁺ = g(P, b)   (P5, P7),

so only the surprises are random. Every arm is tried on the same N scenarios (common random
numbers), which removes most of the variance of the differences between arms. Half of the scenarios
are the other half with opposite signs (antithetic variates), which removes errors that are linear
in the surprises. The first surprise is stratified into N equally likely values; `lookahead`
computes its effect exactly. Unlike in lookahead, later choices respond to later surprises. If there
are more than 16 arms, only the 16 with the highest ⟨a, ẑ⟩ + IDEA's bonus are tried.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy

from driftbandit import errors, kalman
from driftbandit.arrays import Array, first_highest, namespace
from driftbandit.kalman import Belief
from driftbandit.policies import idea
from driftbandit.policies.base import ActionAbilities, BatchAbilities, Policy, Problem
from driftbandit.policies.optimistic import filtering

__all__ = ["policy", "scenarios"]

TRIED = 16  # largest number of arms that are tried


def scenarios(count: int, depth: int) -> np.ndarray:
    """N × H surprises of variance one, in pairs of opposite sign; the first column is stratified.

    Example:
        >>> drawn = scenarios(8, 3)
        >>> drawn.shape, abs(drawn.sum(axis=0)).max() < 1e-12
        ((8, 3), np.True_)
    """
    half = np.random.default_rng(0).standard_normal((count // 2, depth))
    half[:, 0] = scipy.special.ndtri((np.arange(count // 2) + 0.5) / count)
    half /= np.sqrt(np.mean(half**2, axis=0))
    return np.concatenate([half, -half])


def _constants(depth: int, count: int, discount: float, *_: Any) -> dict[str, np.ndarray]:
    weights = discount ** np.arange(float(depth))
    return {"surprises": scenarios(count, depth), "weights": weights}


def values(belief: Belief, problem: Problem, tried: Array) -> Array:
    """⟨a, ẑ⟩ plus the mean value of the later rounds, for each of the m tried arms."""
    xp = namespace(belief.cov)
    model, arms, constants = problem
    surprises, weights = constants["surprises"], constants["weights"]
    m, (n, depth), d = tried.shape[0], surprises.shape, arms.shape[1]
    means = xp.broadcast_to(belief.mean, (m, n, d))
    covs = xp.broadcast_to(belief.cov, (m, n, d, d))
    played = xp.broadcast_to(tried[:, None, :], (m, n, d))
    total = xp.zeros((m, n), dtype=belief.cov.dtype)
    for step in range(depth):
        surprise = xp.broadcast_to(surprises[:, step], (m, n))
        means, covs = kalman.imagined_step(Belief(means, covs), model, played, surprise)
        predictions = means @ arms.T
        total = total + weights[step] * xp.max(predictions, axis=-1)
        played = arms[first_highest(predictions)]
    return tried @ belief.mean + xp.mean(total, axis=-1)


def choose(belief: Belief, problem: Problem, noise: Array) -> Array:
    """The arm with the highest value."""
    xp = namespace(belief.cov)
    model, arms, _ = problem
    if arms.shape[0] <= TRIED:
        return first_highest(values(belief, problem, arms))
    promise = arms @ belief.mean + idea.bonus(belief.cov, model, arms)
    places = xp.sort(xp.argsort(-promise, stable=True)[:TRIED])
    return places[first_highest(values(belief, problem, arms[places]))]


def policy(depth: int = 3, scenarios: int = 16, discount: float = 0.8) -> Policy:
    """Rollout of greedy play.

    Args:
        depth: H, the number of rounds to simulate after this one.
        scenarios: N, the number of scenarios; must be even.
        discount: γ, the weight of a round relative to the round before.
    """
    depth = errors.whole_number(depth, "depth", low=1, high=50)
    scenarios = errors.whole_number(scenarios, "scenarios", low=2, high=10_000)
    if scenarios % 2:
        raise errors.InvalidInput("scenarios", f"is {scenarios}", "give an even number")
    discount = errors.number(discount, "discount", low=0, high=1)

    def size(d: int, k: int) -> int:
        return min(k, TRIED) * scenarios * (4 * d * d + 3 * d + 2 * k)

    return filtering(
        "rollout",
        choose,
        functools.partial(_constants, depth, scenarios, discount),
        parameters={"depth": depth, "scenarios": scenarios, "discount": discount},
        actions=ActionAbilities(contexts="online"),
        batch=BatchAbilities(scratch_size=size),
    )
