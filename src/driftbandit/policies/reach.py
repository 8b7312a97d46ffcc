"""Reach: explore as far as what is learned about differences between arms reaches.

    a = argmax ⟨a, ẑ⟩ + max(u∞, u₃),   u∞ the index of a play, u₃ its gain within three rounds

**The index** asks how much a play could pay in the long run. Let e = a − (mean of the other arms),
and let s_h be how far a reward of a, one standard deviation above what was expected, moves the
prediction of ⟨e, z⟩ h rounds later. What a reward tells about all arms alike cancels in e. If there
is another arm that always pays λ, play a n times; if it proves to be better, stay with it for H
rounds. The n plays cost n(λ − ⟨a, ẑ⟩). They move the prediction by w_n ω, with

    w_n = |eᵀΓPa| / √(aᵀPa + σ²/n),   ω ~ N(0, 1),

and pay H E(⟨a, ẑ⟩ + w_n ω − λ)⁺ = H w_n ψ((λ − ⟨a, ẑ⟩)/w_n), ψ(x) = E(ω − x)⁺. Both sides are equal
at λ = ⟨a, ẑ⟩ + w_n f(H/n), where x = f(r) solves x = r ψ(x). Whoever is disappointed early stops
early, so that n plays cost less: n^0.7 of them. With this power, f comes closest to the Gittins
index of arms that never change. The index is the highest such λ:

    u∞(a) = max_n w_n f(H_a/n^0.7),   n = 1, 4, 16, …

With n = 1 and f = 1 it is IDEA's bonus for independent arms. f grows like √(2 log H): it is 0.9 for
ten rounds and 2.4 for a thousand. Where noise hides what a single reward tells, n is large.

**How long knowledge lasts.** A play shows up in s_h for L = 2 Σ_h s_h |s_h| / s₁² − 1 rounds, which
is (1 + ρ²)/(1 − ρ²) for a state that keeps ρ of itself. A small part that lasts for ever, such as
an offset that is not quite known, counts little. The sum is over blocks of rounds 1, 2, 3–4, 5–8, …
with the mean of s_h in each: knowledge of a state that rotates turns against itself, and cancels.
Whoever stays with an arm learns more about it, so that H = 2L − 1; if the sum is below one, H is
that sum and the index shrinks by it. What the filter would have learned anyway is no reason to
play a: let each of the other arms be played equally often, and a itself a twentieth as often, with
the error covariance P̄ at which that settles. Then what a taught fades with

    w_(h+1) = Γ (I + P̄ Ī)⁻¹ w_h,   w₁ = Γ P a,   Ī the information of a round,

and the sum of a block is ⟨n_a, P a⟩ with one vector n_a per arm and block, for which j doublings
add 2^j terms. 2^j is the smallest power of two that reaches ``rounds`` or 20/|1 − ρ|, with ρ of the
states that arms read. P̄ is the error covariance of a known state after as many rounds.
The numbers 2 and a twentieth were chosen on problems of the kinds that the page "Regret by memory"
shows, with other seeds: other systems where those are random, and other runs elsewhere.

**Three rounds** are short enough to be computed instead of bounded: u₃ is the gain within them
(`three_rounds`). It counts what a tells about other arms, and it knows that predictions cross by
themselves. This matters where states are forgotten or rotate within a few rounds; the index ignores
both. A play is worth at least either of the two.

**Long lists, many states and new arms** have no n_a. There all directions in which the k listed
arms differ replace e: E = (k/(k − 1))² r Cov(arms), of rank r, instead of eeᵀ. All arms are played
equally often. H and n are those of an average arm: s_h s₁, s₁² and aᵀPa are averages over the
arms less their mean. Where contexts change the arms, they are taken for unit vectors, of which all
directions count alike: E = I, as in IDEA.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from driftbandit import kalman
from driftbandit.actions import sphere
from driftbandit.arrays import (
    Array,
    dots,
    first_highest,
    largest,
    namespace,
    or_infinite,
    polynomial,
    times,
)
from driftbandit.gaussian.lines import excess
from driftbandit.kalman import Belief, Spread
from driftbandit.model import LGDS, RANK_TOLERANCE, factor
from driftbandit.policies import three_rounds
from driftbandit.policies.base import (
    ActionAbilities,
    BatchAbilities,
    LengthRatio,
    Policy,
    Problem,
    highest,
)
from driftbandit.policies.checked import Checked, checked, trusted
from driftbandit.policies.optimistic import filtering

__all__ = ["index_factor", "policy"]

MOST = 128  # arms compared in pairs: of longer lists those with the highest ⟨a, ẑ⟩ + u∞
LONGEST_LIST = 8192  # arms with an index of their own; longer lists get that of an average arm
MOST_WORK = 2.0**28  # k d³ of all n_a, which take two seconds; larger systems get none
REPEATS = 4.0  # n is a power of this
EASE = 0.7  # n plays cost n to this power: see `benchmarks/gittins.py`
OWN = 0.05  # how often a is played while what it taught fades, relative to another arm
SETTLED = 20.0  # memories 1/|1 − ρ| after which nothing is left, or a state has outgrown all else


def index_factor(log_ratio: Array) -> Array:
    """f(r), the root of x = r ψ(x), ψ(x) = E(ω − x)⁺, to 4 × 10⁻⁷ of itself.

    Computed as √(l + 3) times a polynomial in t = (l − 3)/(l + 3), l = log r.

    Args:
        log_ratio: log r, for r ≤ 10¹²; r < 1 counts as 1.

    Example:
        >>> index_factor(np.log([1.0, 10.0, 1000.0])).round(4).tolist()
        [0.276, 0.9374, 2.4364]
    """
    xp = namespace(log_ratio)
    log = xp.maximum(log_ratio, xp.zeros((), dtype=log_ratio.dtype))
    longer = log + MIDDLE
    return polynomial(_coefficients(), (log - MIDDLE) / longer) * xp.sqrt(longer)


MIDDLE, DEGREE, LONGEST = 3.0, 12, 1e12


@functools.cache
def _coefficients() -> np.ndarray:
    """Coefficients of the polynomial, lowest first."""
    longest = math.log(LONGEST)
    end = (longest - MIDDLE) / (longest + MIDDLE)
    nodes = np.cos(math.pi * (np.arange(4 * DEGREE) + 0.5) / (4 * DEGREE))
    t = (nodes + 1) * (end + 1) / 2 - 1
    log = MIDDLE * (1 + t) / (1 - t)
    low, high = np.zeros_like(t), np.sqrt(2 * log) + 1
    for _ in range(60):
        x = (low + high) / 2
        above = np.exp(log) * excess(x) > x
        low, high = np.where(above, x, low), np.where(above, high, x)
    fitted = chebyshev.Chebyshev.fit(t, x / np.sqrt(log + MIDDLE), DEGREE, domain=[-1, end])
    return fitted.convert(kind=np.polynomial.Polynomial).coef


def constants(model: LGDS, arms: np.ndarray, rounds: int) -> dict[str, Any]:
    """What the sums of s_h over each block take of P a, for every arm and for an average one.

    Args:
        model, arms, rounds: Γ, Q, σ; k × d, or k × rounds × d where contexts change the arms: then
            all unit vectors stand for them; the horizon.
    """
    k, levels = len(arms), 1 + int(math.log(max(rounds, 1), REPEATS))
    repeats = REPEATS ** np.arange(float(levels))
    found: dict[str, Any] = {"logs": np.log(repeats), "noises": model.reward_std**2 / repeats}
    together = arms.ndim == 2 and k > 1
    rows = model.without_offsets(arms) if together else np.eye(model.n_states)[~model.constants]
    rows = rows if len(rows) else np.zeros((1, model.n_states))
    basis = _read(model.moving.transition, rows)
    seen = rows @ basis
    read = _Read(
        basis.T @ model.moving.transition @ basis,
        basis.T @ model.process_cov @ basis,
        float(model.reward_std) ** 2,
        rounds,
    )
    information = seen.T @ seen / len(rows)
    apart = seen - seen.mean(axis=0) if together else seen
    found["spread"] = basis @ (apart.T @ apart / len(rows)) @ basis.T
    apart = apart * (k / (k - 1)) if together else apart
    rank = np.linalg.matrix_rank(apart)
    among = apart.T @ apart * (rank / len(rows))
    sides = basis @ read.transition.T @ among
    found["all_first"] = sides @ read.transition @ basis.T
    found["all"] = (
        sides @ _blocks(read, np.eye(len(among))[None], information[None])[:, 0] @ basis.T
    )
    if not together or k > LONGEST_LIST:
        return found
    found |= {"arms": arms, **(three_rounds.tables(model, arms) if k <= MOST else {})}
    if k * float(len(read.transition)) ** 3 <= MOST_WORK:
        alone = (1 - OWN) * seen[:, :, None] * seen[:, None, :]
        others = (information * k - alone) / (k - 1 + OWN)
        own = _blocks(read, apart[:, None, :], others)[:, :, 0]
        found["own"] = np.concatenate([arms[None], own @ basis.T])
    return found


def _read(transition: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span what arms read, now or later: aᵀ, aᵀΓ, aᵀΓ², …

    The covariance of everything else may grow without bounds, and its rounding errors with it.
    """
    d = len(transition)
    basis, rank, scale = arms.T, 0, max(float(np.abs(transition).max()), 1e-300)
    while True:
        left, sizes, _ = np.linalg.svd(basis, full_matrices=False)
        known, rank = rank, int((sizes > RANK_TOLERANCE * sizes[0]).sum())
        if rank in (0, d):
            return np.eye(d)
        if rank == known:
            return left[:, :rank]
        basis = np.hstack([left[:, :rank], transition.T @ left[:, :rank] / scale])


class _Read(NamedTuple):
    """What arms read of a system, and the horizon."""

    transition: np.ndarray
    process_cov: np.ndarray
    noise: float  # σ²
    rounds: int


def _blocks(read: _Read, rows: np.ndarray, information: np.ndarray) -> np.ndarray:
    """E Σ_h C^h Γ over blocks of l rounds, divided by √l, C = Γ (I + P̄ Ī)⁻¹; blocks × n × r × d.

    Args:
        read: Γ, Q, σ²; the horizon.
        rows: E, n × r × d.
        information: σ² Ī, n × d × d.
    """
    transition, process_cov, noise, rounds = read
    identity = np.eye(len(transition))
    radius = float(np.abs(np.linalg.eigvals(transition)).max())
    memory = SETTLED / max(abs(1 - radius), 1e-12)
    doublings = math.ceil(math.log2(max(1.0, min(rounds, memory))))
    # With σ = 0 one reward tells all: as much as with 1e-4 of the spread of d rounds' drift.
    drift = process_cov
    for _ in range(len(transition) - 1):
        drift = transition @ drift @ transition.T + process_cov
    fresh = np.sum(information * drift, axis=(1, 2), keepdims=True)
    noises = np.maximum(noise, 1e-8 * fresh)
    information = information / np.where(noises > 0, noises, 1.0)
    # P ↦ H + A P (I + G P)⁻¹ Aᵀ is 2^j rounds of the filter.
    a = np.broadcast_to(transition, information.shape)
    g = information
    h = np.broadcast_to(process_cov, information.shape)
    for _ in range(doublings):
        through = np.linalg.solve(identity + h @ g, np.concatenate([a, h @ a.mT], axis=-1))
        middle, late = np.split(through, 2, axis=-1)
        a, g, h = a @ middle, g + a.mT @ g @ middle, h + a @ late
    settled = np.linalg.inv(identity + h @ information)
    power, total, blocks = transition @ settled, rows, [rows]
    for j in range(doublings):
        more = total @ power
        blocks.append(more / 2 ** (j / 2))
        total, power = total + more, power @ power
    return np.stack(blocks) @ transition


def _factors(blocks: Array, constants: Any) -> tuple[Array, Array]:
    """f(H/n^0.7), zero where n > H, and what an H < 1 shrinks it by; from Σ s_h / √l of each block.

    H is at most 10¹². Of k arms, f(H/n^0.7) is n × k.
    """
    xp, limits = namespace(blocks), np.finfo(blocks.dtype)
    zero, logs, first = xp.zeros((), dtype=blocks.dtype), constants["logs"], blocks[0]
    total = xp.sum(blocks * abs(blocks), axis=0)
    stays = xp.minimum(total / (first * first + limits.tiny / limits.eps), LONGEST / 4)
    logs = logs[:, None] if first.ndim else logs
    log = xp.log(xp.maximum(4 * stays - 3, 1.0))
    factors = xp.where(log >= logs, index_factor(log - EASE * logs), zero)
    return factors, xp.minimum(xp.maximum(stays, zero), 1.0)


def bonus(belief: Belief, problem: Problem) -> Array:
    """max(u∞, u₃) of every arm; of arms that were not listed, u∞ of an average arm."""
    model, arms, constants = problem
    if not _listed(arms, constants):
        return average_bonus(belief, problem)
    xp, seen = namespace(belief.cov), kalman.spread(belief.cov, model, arms)
    index = own_bonus(seen, problem) if "own" in constants else average_bonus(belief, problem)
    if len(arms) <= MOST:
        return xp.maximum(index, three_rounds.gains(seen, belief, problem))
    order = xp.argsort(-(arms @ belief.mean + index), stable=True)
    best = order[:MOST]
    some = Spread(seen.cov, seen.cross[best], seen.variance[best])
    tables = three_rounds.tables(model, arms[best])
    soon = three_rounds.gains(some, belief, Problem(model, arms[best], tables))
    soon = xp.concat([soon, xp.zeros_like(index[MOST:])])[xp.argsort(order)]
    return xp.maximum(index, soon)


def _listed(arms: Array, constants: Any) -> bool:
    """Whether these arms are those that the constants were prepared for."""
    listed = constants.get("arms")
    if listed is None or arms.shape != listed.shape:
        return False
    return arms is listed or not isinstance(arms, np.ndarray) or np.array_equal(arms, listed)


def own_bonus(seen: Spread, problem: Problem) -> Array:
    """u∞ with the H and the n of every arm."""
    constants = problem.constants
    every = dots(seen.cross, constants["own"])
    known, blocks = every[0], every[1:]
    factors, shrunk = _factors(blocks, constants)
    xp, noises = namespace(known), constants["noises"]
    variances = or_infinite(xp.maximum(known, 0.0) + noises[:, None], noises[-1])
    return abs(blocks[0]) * shrunk * largest(factors / xp.sqrt(variances), axis=0)


def average_bonus(belief: Belief, problem: Problem) -> Array:
    """u∞ with the H and the n of an average arm; a length ratio, as IDEA's bonus."""
    model, arms, constants = problem
    factor, noise = _average(belief.cov, model, constants)
    seen = kalman.spread(belief.cov, model, arms)
    xp = namespace(belief.cov)
    known = xp.maximum(dots(arms, seen.cross), xp.zeros((), dtype=belief.cov.dtype))
    moved = xp.maximum(dots(times(seen.cross, constants["all_first"]), seen.cross), 0.0)
    zero = xp.zeros((), dtype=belief.cov.dtype)
    return factor * xp.sqrt(moved / or_infinite(known + noise, zero))


def _average(cov: Array, model: LGDS, constants: Any) -> tuple[Array, Array]:
    """f(H/n) and σ²/n of an average arm."""
    xp = namespace(cov)
    crossed = cov @ constants["spread"]
    known = xp.sum(xp.diagonal(crossed))
    blocks = xp.sum((crossed @ cov) * constants["all"], axis=(-2, -1))
    noises, zero = constants["noises"], xp.zeros((), dtype=cov.dtype)
    factors, shrunk = _factors(blocks, constants)
    best = first_highest(factors / xp.sqrt(or_infinite(known + noises, zero)))
    return factors[best] * shrunk, noises[best]


def length_ratio(state: Checked, problem: Problem) -> tuple[Array, LengthRatio]:
    """The scores of `average_bonus`, for very many arms."""
    mean, cov = trusted(state)
    model, _, constants = problem
    scale, noise = _average(cov, model, constants)
    root = factor(cov)
    stretch = float(scale) * factor(constants["all_first"]).T
    size = float(np.linalg.norm(stretch) * np.linalg.norm(root))
    return mean, LengthRatio(root, stretch @ root, math.sqrt(float(noise)), size)


def on_sphere(state: Checked, problem: Problem, noise: Array) -> Array:
    """IDEA's best unit vector (`actions.idea_search`)."""
    return sphere.idea_arm(Belief(state.mean, state.cov), problem.model)


def scores(state: Checked, problem: Problem) -> tuple[Array, Array]:
    """⟨a, ẑ⟩, and max(u∞, u₃) for the spread that rewards do not contradict."""
    return times(problem.arms, state.mean), bonus(trusted(state), problem)


def policy() -> Policy:
    """Reach, which explores as far as the drift lets knowledge last; it has no parameters."""
    made = filtering(
        "reach",
        highest(scores),
        constants,
        actions=ActionAbilities(
            compares=LONGEST_LIST, length_ratio=length_ratio, on_sphere=on_sphere, contexts="online"
        ),
        batch=BatchAbilities(scratch_size=lambda d, k: k * d + 4 * min(k, MOST) ** 2),
    )
    return checked(made)
