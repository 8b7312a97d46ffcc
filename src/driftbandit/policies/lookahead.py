"""Lookahead: the exact value of an arm's information for the best choices of the next rounds (P7).

    u(a | ẑ, P) = Σ_h γ^(h−1) (E max_b ⟨b, Γ^h ẑ + w_h ω⟩ − max_b ⟨b, Γ^h ẑ⟩),   h = 1 … H

IDEA bounds the first term by a triangle inequality; on a list of arms it is exact.

**One round ahead.** Playing a moves the next prediction to Γẑ + w₁ω, where ω ~ N(0, 1) is the
surprise in the reward and w₁ = Γ P a / √(aᵀPa + σ²). All arms' next predictions are lines in ω;
the best one's is their upper envelope, whose mean is a finite sum (`envelope`).

**Later rounds.** Later rewards would partly have taught the same. Let the plan be to play
b_h = argmax ⟨b, Γ^h ẑ⟩, the best prediction, in round h, and let P_h be its covariances if this
round teaches nothing: P₁ = ΓPΓᵀ + Q, P_(h+1) = g(P_h, b_h). If a's reward is seen, the covariance
of the prediction ẑ_h grows by P_h − P_h(a), since the known and the unknown part of a state add up
to the same. That difference has rank one in every round:

    P_h − P_h(a) = w_h w_hᵀ,   w_(h+1) = Γ (w_h − P_h b β/s) / √(1 − β²/s),
    s = bᵀP_h b + σ²,   β = ⟨b, w_h⟩,   b = b_h.

The difference of two Riccati steps is Γ(I − K bᵀ)(P_h − P_h(a))(I − K(a) bᵀ)ᵀΓᵀ, with the
gains K = P_h b/s and K(a) = (P_h b − β w_h)/(s − β²), and (I − K(a) bᵀ) w_h is (I − K bᵀ) w_h times
s/(s − β²). So every arm costs one vector per round, plus one covariance for all. The plan's own
later surprises are set to zero, so that the envelope stays one of lines.

γ gives less weight to later rounds, for which the plan is less certain. H = 3 and γ = 0.8 were
chosen once, on random systems that are not in the published tables; the docs list what else was
tried.
"""

from __future__ import annotations

import math

import numpy as np

from driftbandit import errors, kalman
from driftbandit.arrays import Array, first_highest, namespace, or_infinite
from driftbandit.gaussian.lines import gain
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.policies.base import ActionAbilities, BatchAbilities, Policy, Problem, highest
from driftbandit.policies.optimistic import filtering

__all__ = ["bonus", "policy"]

MOST = 2000  # arms: about six numbers for each of H k² pairs are held at once


def bonus(belief: Belief, model: LGDS, arms: Array, weights: Array) -> Array:
    """u(a | ẑ, P) = Σ_h c_h (E max_b ⟨b, Γ^h ẑ + w_h ω⟩ − max_b ⟨b, Γ^h ẑ⟩).

    Unlike the other bonuses it depends on ẑ: information that changes no choice has no value.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1).
        model: Γ, Q, σ.
        arms: k × d.
        weights: c_h, one for each round ahead.

    Example:
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=0.0)
        >>> belief = Belief(np.zeros(2), np.diag([1.0, 4.0]))
        >>> bonus(belief, model, np.eye(2), np.ones(1)).round(6).tolist()  # ½ E(ω)⁺, E(ω)⁺
        [0.199471, 0.398942]
    """
    xp = namespace(belief.cov)
    move = kalman.moves(belief.cov, model, arms)
    plan = Plan(belief.cov, model)
    mean = model.transition @ belief.mean
    predictions, slopes = [arms @ mean], [move @ arms.T]
    for _ in range(1, weights.shape[0]):
        move = plan.passed_on(move, arms[first_highest(predictions[-1])])
        mean = model.transition @ mean
        predictions.append(arms @ mean)
        slopes.append(move @ arms.T)
    gains = gain(xp.stack(predictions)[:, None, :], xp.stack(slopes))  # all at once: H × k
    return weights @ gains


class Plan:
    """The rewards to come if the best prediction is played in every later round.

    Only products of P_h with vectors are needed; they go back to P through the rounds between:
    P_h x = Γ (P_(h−1) y − c ⟨c, y⟩/s) + Q x,   y = Γᵀx,   c = P_(h−1) b,   s = bᵀc + σ².
    """

    def __init__(self, cov: Array, model: LGDS) -> None:
        self.cov, self.model = cov, model
        self.seen: list[tuple[Array, Array]] = []
        """c and s of every round of the plan, from the next one on."""

    def times(self, x: Array) -> Array:
        """P_h x, h the round after the last one in ``seen``."""
        transition, noise = self.model.transition, self.model.process_cov
        carried = [x]
        for _ in range(len(self.seen) + 1):
            carried.append(transition.T @ carried[-1])
        product = self.cov @ carried.pop()
        for cross, variance in [*self.seen, (x, math.inf)]:
            product = transition @ product + noise @ carried[-1]
            product = product - cross * ((cross @ carried.pop()) / variance)
        return product

    def passed_on(self, move: Array, best: Array) -> Array:
        """w_(h+1) from the w_h of every arm, past the reward of arm ``best`` in round h."""
        xp = namespace(move)
        cross = self.times(best)
        noise = self.model.reward_std**2
        known = xp.maximum(best @ cross, xp.zeros((), dtype=cross.dtype))
        variance = or_infinite(known + noise, noise)
        self.seen.append((cross, variance))
        overlap = move @ best
        rest = move - (overlap / variance)[:, None] * cross
        # 1 − β²/s is zero if the plan's reward is known once a's is: then nothing is left of w.
        left = 1 - overlap * overlap / variance
        nothing = left < 16 * move.shape[1] * np.finfo(move.dtype).eps
        share = xp.where(nothing, 0.0, 1 / xp.sqrt(xp.where(nothing, 1.0, left)))
        return (rest * share[:, None]) @ self.model.transition.T


def scores(belief: Belief, problem: Problem) -> tuple[Array, Array]:
    """⟨a, ẑ⟩ and u(a | ẑ, P)."""
    model, arms, constants = problem
    return arms @ belief.mean, bonus(belief, model, arms, constants["weights"])


def policy(steps: int = 3, discount: float = 0.8) -> Policy:
    """Lookahead over ``steps`` rounds, for lists of arms and states that forget within about ten.

    Where memory is longer, it explores too little and has more regret than IDEA.

    Args:
        steps: H, rounds looked ahead.
        discount: γ, the weight of a round relative to the round before.
    """
    steps = errors.whole_number(steps, "steps", low=1, high=20)
    discount = errors.number(discount, "discount", low=0, high=1)
    return filtering(
        "lookahead",
        highest(scores),
        {"weights": discount ** np.arange(float(steps))},
        parameters={"steps": steps, "discount": discount},
        actions=ActionAbilities(max_arms=MOST, compares=MOST),
        batch=BatchAbilities(scratch_size=lambda d, k: 6 * steps * k * k),
    )
