"""Information-directed sampling: least squared regret per information, Russo and Van Roy (2018).

    play arm a with the chance π_a that minimizes   (Σ π_a Δ_a)² / Σ π_a v_a
    Δ_a = E max_b ⟨b, z⟩ − ⟨a, ẑ⟩                    the expected regret of arm a
    v_a = Σ_b P(b* = b) (E[⟨a, z⟩ | b* = b] − ⟨a, ẑ⟩)² / (aᵀPa + σ²)

v measures how well the reward of arm a tells which arm b* is best: the variance of its mean given
b*, their bound on the mutual information, relative to the reward's own variance. They assume a
problem that does not change. Here the state moves, and a reward helps only in later rounds: b* is
the best arm of the next round, argmax ⟨b, Γz + ξ⟩.

Expectations are means over n fixed pairs (z, ξ), the same every round: a scrambled Sobol sequence
and its mirror image. An optimal π has at most two arms (their Proposition 6). For arms a and b with
chances q and 1 − q, D = Δ_a − Δ_b and V = v_a − v_b, the ratio is convex in q,

    d/dq (Δ_b + qD)² / (v_b + qV) = 0   ⇔   2D (v_b + qV) = V (Δ_b + qD)   ⇔   q = Δ_b/D − 2 v_b/V,

and where that is outside [0, 1] an end is best.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy

from driftbandit import errors, kalman
from driftbandit.arrays import TIED, Array, first_highest, lower_factor, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, factor
from driftbandit.policies.base import ActionAbilities, BatchAbilities, Noise, Policy, Problem
from driftbandit.policies.optimistic import filtering

__all__ = ["policy"]

MOST = 2000  # arms: every pair of them is compared
LEAST = 1e-12  # added to v ≤ 1, so that an arm that teaches nothing is played for its reward


def _constants(points: int, model: LGDS, arms: Array, rounds: int) -> dict[str, np.ndarray]:
    """Normal points, n × d, for z, and the shocks ξ, n × d."""
    from scipy.stats import qmc  # takes half a second

    d = model.n_states
    uniform = qmc.Sobol(2 * d, rng=np.random.default_rng(0)).random(points // 2)
    half = scipy.special.ndtri(np.clip(uniform, 2.0**-32, 1 - 2.0**-32))
    normal = np.concatenate([half, -half])
    shocks = normal[:, d:] @ factor(model.process_cov).T
    return {"points": normal[:, :d], "shocks": shocks}


def regret_and_information(belief: Belief, problem: Problem) -> tuple[Array, Array]:
    """Δ and v of every arm."""
    xp = namespace(belief.cov)
    model, arms, constants = problem
    spread = constants["points"] @ lower_factor(belief.cov).T  # z − ẑ, n × d
    deviations = arms @ spread.T  # k × n
    expected = arms @ belief.mean
    regret = xp.mean(xp.max(expected[:, None] + deviations, axis=0)) - expected
    later = (belief.mean + spread) @ model.transition.T + constants["shocks"]
    best = first_highest(later @ arms.T)
    chosen = xp.astype(best[:, None] == xp.arange(arms.shape[0]), deviations.dtype)  # n × k
    counts = xp.sum(chosen, axis=0)
    sums = deviations @ chosen  # of arm a's deviations where b is best
    between = xp.sum(sums * sums / xp.where(counts > 0, counts, 1.0), axis=1) / best.shape[0]
    return regret, between / kalman.spread(belief.cov, model, arms).variance


def _rounding(values: Array) -> float:
    return TIED * float(np.finfo(values.dtype).eps)


def shares(regret: Array, information: Array) -> tuple[Array, Array]:
    """The least ratio of every pair (a, b), and the chance q of a in it; k × k each."""
    xp = namespace(regret)
    more, regret_b = regret[:, None] - regret[None, :], regret[None, :]
    richer, rich_b = information[:, None] - information[None, :], information[None, :] + LEAST
    # Equal arms differ by rounding only; dividing by that would give any share.
    more_told = abs(more) > _rounding(more) * xp.max(abs(regret))
    richer_told = abs(richer) > _rounding(richer) * (xp.max(information) + LEAST)
    one = xp.ones((), dtype=regret.dtype)
    inside = regret_b / xp.where(more_told, more, one)
    inside = inside - 2 * rich_b / xp.where(richer_told, richer, one)
    inside = xp.where(more_told & richer_told, xp.clip(inside, 0.0, 1.0), 0.0)

    def ratio(q: Array) -> Array:
        mean = (1 - q) * regret_b + q * regret[:, None]  # exact at both ends
        return mean * mean / ((1 - q) * rich_b + q * (information[:, None] + LEAST))

    share, least = inside, ratio(inside)
    for end in (0.0, 1.0):
        better = ratio(end + 0 * least) < (1 - _rounding(least)) * least
        share, least = xp.where(better, end, share), xp.where(better, ratio(end + 0 * least), least)
    return least, share


def choose(belief: Belief, problem: Problem, noise: Array) -> Array:
    """One of the two arms whose mixture has the least ratio."""
    xp = namespace(belief.cov)
    least, share = shares(*regret_and_information(belief, problem))
    k = least.shape[0]
    order = xp.arange(k)
    once = xp.where(order[:, None] <= order[None, :], least, math.inf)  # (b, a) is (a, b) again
    pair = first_highest(-xp.reshape(once, (k * k,)))
    return xp.where(noise < xp.reshape(share, (k * k,))[pair], pair // k, pair % k)


def policy(points: int = 64) -> Policy:
    """Information-directed sampling for the next round's best arm.

    Args:
        points: n, sampled states; a power of two.
    """
    points = errors.whole_number(points, "points", low=2, high=2**16)
    if points & (points - 1):
        raise errors.InvalidInput("points", f"is {points}", "give a power of two")
    return filtering(
        "information_directed",
        choose,
        functools.partial(_constants, points),
        noise=Noise("uniform", "one"),
        parameters={"points": points},
        actions=ActionAbilities(max_arms=MOST, contexts="online"),
        batch=BatchAbilities(scratch_size=lambda d, k: points * (3 * d + 3 * k) + 6 * k * k),
    )
