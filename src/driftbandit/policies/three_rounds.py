"""What a reward of each arm gains within three rounds: u₃ of `reach`.

    u₃(a) = Σ_h 0.8^(h−1) max_b w_h ψ(g_h/w_h),   h = 1, 2, 3,   ψ(x) = E(ω − x)⁺

It is the gain of `lookahead`, with its weights and its plan, if the best of the other arms alone
may overtake: g_h is how far b is behind the best prediction of round h, and w_h how far a reward of
a, one standard deviation above what was expected, moves b's prediction towards it. The plan is to
play that best prediction in each round. Rewards of now and later are jointly Gaussian: what a
reward moves in h rounds, given what the plan's rewards tell until then, is Cov(x_a(t), x_b(t+h))
less what both share with those, over the root of what they leave of Var x_a(t).
"""

from __future__ import annotations

import math

import numpy as np

from driftbandit.arrays import (
    Array,
    dots,
    first_highest,
    largest,
    namespace,
    normal_cdf,
    or_infinite,
    times,
)
from driftbandit.kalman import Belief, Spread
from driftbandit.model import LGDS
from driftbandit.policies.base import Problem

__all__ = ["gains", "tables"]

ROUNDS = 3
WEIGHTS = 0.8 ** np.arange(float(ROUNDS))
TANGENTS = np.linspace(0.0, 3.0, 7)[:, None, None]  # for arrays of rounds and arms
UPS = np.exp(-(TANGENTS**2) / 2) / math.sqrt(2 * math.pi)
DOWNS = normal_cdf(-TANGENTS)
"""φ(x) and Φ(−x): w ψ(g/w) is the highest of the lines φ(x) w − Φ(−x) g."""


def tables(model: LGDS, arms: Array) -> dict[str, Array]:
    """What `gains` needs of the arms b, a row for each of the next three rounds and each arm.

    The rows bᵀΓʰ; the same one and two rounds earlier; Γ²; the part of the drift in the covariance
    of b's reward, in the first and in the second round, with the state in the second; its part of
    the variance of b's reward in the first.
    """
    xp, transition, drift = namespace(arms), model.transition, model.process_cov
    once, none = arms @ transition, xp.zeros_like(arms)
    twice = once @ transition
    later = transition @ drift @ transition.T + drift
    return {
        "ahead": xp.stack([once, twice, twice @ transition]),
        "once": xp.stack([none, arms, once]),
        "twice": xp.stack([none, none, once]),
        "square": transition @ transition,
        "drifted": xp.stack([arms @ drift @ transition.T, arms @ later]),
        "fresh": xp.maximum(dots(arms @ drift, arms), xp.zeros((), dtype=arms.dtype)),
    }


def gains(seen: Spread, belief: Belief, problem: Problem) -> Array:
    """u₃: what a reward of each arm gains within three rounds, if one other arm may overtake.

    The plan is to play the arms ``one``, ``two`` and ``three``.

    Args:
        seen: `kalman.spread` of the problem's arms; no others teach or overtake.
        belief, problem: ẑ and P; the constants of `tables`.
    """
    model, arms, constants = problem
    noise, xp = model.reward_std**2, namespace(belief.cov)
    least = seen.variance * (16 * arms.shape[1] * np.finfo(belief.cov.dtype).eps)
    ahead, square, drifted = constants["ahead"], constants["square"], constants["drifted"]
    predictions = ahead @ belief.mean
    one, two, three = (first_highest(predictions[h]) for h in range(ROUNDS))
    shared = ahead @ seen.cross.T  # Cov(reward of b in h rounds, that of a now), 3 × k × k
    # The plan's first reward: its covariances with the state a round later and with later rewards.
    read = times(seen.cov, ahead[0, one])
    cross = times(square, read) + drifted[0, one]
    spread = or_infinite(dots(ahead[0, one], read) + constants["fresh"][one] + noise, noise)
    tells, first = constants["once"] @ cross, shared[0, one]
    weight = first / spread
    left = xp.maximum(seen.variance - weight * first, least)
    # The second one, given the first.
    shared = shared - tells[..., None] * weight
    second = shared[1, two]
    later = times(square, times(seen.cov, ahead[1, two])) + drifted[1, two]
    later = later - cross * (tells[1, two] / spread)
    spread = or_infinite(xp.maximum(dots(arms[two], later), 0 * noise) + noise, noise)
    weight = second / spread
    lefts = [seen.variance, left, xp.maximum(left - weight * second, least)]
    shared = shared - (constants["twice"] @ later)[..., None] * weight
    others = xp.concat([row[None, None] for row in (first, second, shared[2, three])])
    sizes = xp.sqrt(xp.concat([row[None, None] for row in lefts]))
    widths = abs(shared - others) * (1 / sizes)
    behind = largest(predictions, axis=1, keepdims=True) - predictions
    up, down, weights = (xp.asarray(x, dtype=left.dtype) for x in (UPS, DOWNS, WEIGHTS))
    gains = up[..., None] * widths - (down * behind)[..., None]
    return times(weights, largest(largest(gains, axis=0), axis=1))
