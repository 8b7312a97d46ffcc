"""Rival policies that only `exploration.py` plays: they are not worth a place in the registry.

Each is a `Policy`, so `simulate` and `Agent` take it like any other:

    db.simulate(model, arms, policies=["reach", PREDICTIVE], rounds=1000)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import driftbandit as db
from driftbandit import kalman
from driftbandit.arrays import dots, first_highest, inverse, lower_factor, namespace
from driftbandit.policies import Noise, Policy, Problem, filtering, optimistic

__all__ = ["AR2", "CENTERED", "PREDICTIVE", "ar2", "future_information", "reads_own_state"]

SHARPEST = 1e-9
"""The least variance of the noise relative to that of the rewards: with less, J overflows."""


def _centered(cov: Any, model: db.LGDS, arms: Any) -> Any:
    """IDEA without what moves all arms alike: ‖(I − 11ᵀ/k) A Γ P a‖ / √(aᵀPa + σ²)."""
    xp = namespace(cov)
    apart = arms - xp.mean(arms, axis=0)
    seen = kalman.spread(cov, model, arms)
    moved = (seen.cross @ model.transition.T) @ apart.T
    return xp.sqrt(dots(moved, moved) / seen.variance)


CENTERED = optimistic("centered_idea", _centered)


def future_information(model: db.LGDS, arms: np.ndarray, rounds: int) -> np.ndarray:
    """J: what the rewards of all arms in the coming rounds tell about today's state, d × d.

    The information filter, run backwards. Let M be the information about a state in the rewards of
    its own round and of all later ones, and C the arms. A state z(t) tells of z(t+1) = Γ z(t) + ξ,
    so that information M about z(t+1) is (M⁻¹ + Q)⁻¹ about Γ z(t):

        J = Γᵀ (M⁻¹ + Q)⁻¹ Γ = Γᵀ M (I + Q M)⁻¹ Γ,   M = CᵀC/σ² + J

    n doublings add the rewards of 2ⁿ rounds. They end after ``rounds``: a state that never forgets
    would let J grow without limit.

    Example:
        >>> model = db.LGDS([[0.5]], [[0.75]], reward_std=1.0)
        >>> future_information(model, np.eye(1), 100).round(4).tolist()
        [[0.1504]]
    """
    identity, sides = np.eye(model.n_states), arms.T @ arms
    size = float(np.abs(arms).max() ** 2 * np.abs(model.start_cov()).max())
    m = sides / (max(model.reward_std**2, SHARPEST * size) or 1.0)
    a, h = model.transition, model.process_cov
    for _ in range(math.ceil(math.log2(max(rounds, 2)))):
        through = np.linalg.solve(identity + h @ m, np.hstack([a, h @ a.T]))
        middle, late = np.split(through, 2, axis=1)
        new = a @ middle, h + a @ late, m + a.T @ m @ middle
        if not all(np.isfinite(part).all() for part in new):
            break
        a, h, m = new[0], (new[1] + new[1].T) / 2, (new[2] + new[2].T) / 2
    told = np.linalg.solve(identity + model.process_cov @ m, model.transition)
    found = model.transition.T @ m @ told
    return (found + found.T) / 2


def _future(model: db.LGDS, arms: np.ndarray, rounds: int) -> dict[str, np.ndarray]:
    return {"future": future_information(model, arms, rounds)}


def _lasting_draw(belief: kalman.Belief, future: Any, noise: Any) -> Any:
    """ẑ + L U ε, with P = L Lᵀ and U Uᵀ = I − (I + LᵀJL)⁻¹."""
    xp = namespace(belief.cov)
    root = lower_factor(belief.cov)
    identity = xp.eye(root.shape[0], dtype=root.dtype)
    told = identity - inverse(identity + root.T @ future @ root)
    return belief.mean + root @ (lower_factor(told) @ noise)


def _predictive(belief: kalman.Belief, problem: Problem, noise: Any) -> Any:
    """Predictive sampling: play the best arm of what an imagined future would reveal.

        a = argmax ⟨a, z̃⟩,   z̃ = E(z | history, rewards of all arms from the next round on)

    with those rewards drawn from what is expected of them (Liu, Kuang and Van Roy 2023,
    "Non-Stationary Bandit Learning via Predictive Sampling"). Thompson sampling draws the state
    itself, and so seeks to know what will be out of date before it pays. Here, what no future
    reward shows is not in z̃.

    In a linear Gaussian system nothing has to be imagined. Given the history, z ~ N(ẑ, P). Given
    the future as well, its covariance is P⁺ = (P⁻¹ + J)⁻¹, whatever the rewards are, with J of
    `future_information`. By the law of total variance, z̃ ~ N(ẑ, P − P⁺). With P = L Lᵀ,

        P − P⁺ = L (I − (I + LᵀJL)⁻¹) Lᵀ = P F (I + FᵀPF)⁻¹ FᵀP,   J = F Fᵀ,

    of which the first form stays exact if J is large. J = ∞ is Thompson sampling, J = 0 is KODE.
    For AR(1) arms of variance one and noise σ, J = ρ²M/(1 + (1 − ρ²)M) and M = 1/σ² + J.
    """
    return first_highest(problem.arms @ _lasting_draw(belief, problem.constants["future"], noise))


PREDICTIVE = filtering("predictive_sampling", _predictive, _future, noise=Noise("normal", "states"))


class Turns(NamedTuple):
    """What AR2 knows: the belief, and which arms wait to be explored."""

    belief: kalman.Belief
    turn: Any  # the round's number since the last restart
    waiting: Any  # for how many rounds each arm has been triggered; 0: it is not


def _ar2_choose(state: Turns, problem: Problem, noise: Any) -> Any:
    """All arms in turn after a restart; then the best arm and the longest waiting one in turn."""
    xp = namespace(state.waiting)
    k = problem.arms.shape[0]
    best = first_highest(problem.arms @ state.belief.mean)
    longest = first_highest(state.waiting)
    explores = (state.turn % 2 == 1) & (xp.max(state.waiting) > 0)
    return xp.where(state.turn < k, state.turn, xp.where(explores, longest, best))


def _ar2_update(state: Turns, problem: Problem, arm: Any, reward: Any) -> Turns:
    """Filter the reward; trigger the arms whose estimates are within their errors of the best."""
    model, arms, constants = problem
    belief = kalman.step(state.belief, model, arms[arm], reward)
    xp = namespace(belief.cov)
    expected = arms @ belief.mean
    variances = xp.maximum(dots(arms @ belief.cov, arms), xp.zeros((), dtype=belief.cov.dtype))
    behind = xp.max(expected) - expected
    triggered = (behind > 0) & (behind <= constants["width"] * xp.sqrt(variances))
    played = xp.arange(arms.shape[0]) == arm
    turn = (state.turn + 1) % constants["epoch"]
    waiting = xp.where(
        (state.waiting > 0) | triggered, state.waiting + 1, xp.zeros_like(state.waiting)
    )
    waiting = xp.where(played | (turn == 0), xp.zeros_like(waiting), waiting)
    return Turns(belief, turn, waiting)


def ar2(width: float = 1.0) -> Policy:
    """AR2 of Chen, Golrezaei and Bouneffouf (2023), simplified, for independent AR(1) arms.

    "Non-Stationary Bandits with Auto-Regressive Temporal Dependency": every second round exploits,
    the others explore. An arm is triggered when its estimate is within its error of the best one.
    Of the triggered arms, the one that has waited longest is explored. After each epoch it
    starts again, and plays every arm once.

    This is our reading of the algorithm, not the authors' code. What we changed: (1) Estimates and
    errors are the Kalman filter's, ⟨a, ẑ⟩ and √(aᵀPa), because rewards are noisy. (2) The best of
    all estimates is exploited, not the better of the arms played last. (3) A restart plays every
    arm once and triggers none, but keeps the belief, in which old rewards count as little as they
    should. (4) ``width`` is not a constant of the proof: 1 is the best of ¼, ½, 1 and 2 where the
    memory is 1000 rounds; where it is 10 rounds, ¼ is better.

    An epoch has k/(α s)³ rounds; s is the drift of one round in units of the arm's own standard
    deviation, and s² = 1 − α². Arms that never forget have no restarts.

    Args:
        width: c₁, how many errors an arm may be behind to be triggered.
    """

    def prepare(model: db.LGDS, arms: np.ndarray, rounds: int) -> tuple[dict[str, Any], Turns]:
        constants = {"width": width, "epoch": _epoch(model, arms, rounds)}
        return constants, Turns(kalman.prior(model), np.int32(0), np.zeros(len(arms), np.int32))

    return Policy("ar2", prepare, _ar2_choose, _ar2_update, parameters={"width": width})


def _epoch(model: db.LGDS, arms: np.ndarray, rounds: int) -> np.int32:
    longest = max(rounds, 1) + 1  # no restart
    if model.spectral_radius >= 1:
        return np.int32(longest)
    moved = np.einsum("kd,de,ke->k", arms, model.process_cov, arms)
    total = np.einsum("kd,de,ke->k", arms, model.stationary_cov(), arms)
    drift = min(float(np.mean(moved / total)), 1.0)
    scale = (1 - drift) * drift
    epoch = len(arms) / scale**1.5 if scale > 0 else math.inf
    return np.int32(min(math.ceil(min(epoch, longest)), longest))


AR2 = ar2()


def reads_own_state(system: db.System) -> bool:
    """Whether the arms are independent: each reads states that no other one reads.

    Example:
        >>> model = db.LGDS(np.eye(2) / 2, np.eye(2), reward_std=1.0)
        >>> [reads_own_state(db.System(model, arms)) for arms in ([[1, 0], [0, 1]], [[1, 1]] * 2)]
        [True, False]
    """
    model, arms = system.model, np.asarray(system.arms)
    off = ~np.eye(model.n_states, dtype=bool)
    coupled = (model.transition[off] != 0).any() or (model.process_cov[off] != 0).any()
    return not coupled and bool(((arms != 0).sum(axis=0) <= 1).all())
