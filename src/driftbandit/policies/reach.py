"""Reach: explore as far as what is learned about differences between arms reaches.

    a = argmax ⟨a, ẑ⟩ + max(u∞, u₃),   u∞ the index of a play, u₃ its gain within three rounds

**The index** asks how much a play could pay in the long run. Let e = a − (mean of the other arms),
and let s_h be how far a reward of a, one standard deviation above what was expected, moves the
prediction of ⟨e, z⟩ h rounds later. What a reward tells about all arms alike cancels in e. If there
is another arm that always pays λ, play a n times; if it proves to be better, stay with it for H
rounds. The n plays cost n(λ − ⟨a, ẑ⟩). They move the prediction by w_n ω, with

    w_n = |eᵀΓPa| / √(aᵀPa + σ²/n),   ω ~ N(0, 1),

and pay H E(⟨a, ẑ⟩ + w_n ω − λ)⁺ = H w_n ψ((λ − ⟨a, ẑ⟩)/w_n), ψ(x) = E(ω − x)⁺. Both sides are equal
at λ = ⟨a, ẑ⟩ + w_n f(H/n), where x = f(r) solves x = r ψ(x). The index is the highest such λ:

    u∞(a) = max_n w_n f(H_a/n),   n = 1, 4, 16, …

With n = 1 and f = 1 it is IDEA's bonus for independent arms. f grows like √(2 log H): it is 0.9 for
ten rounds and 2.4 for a thousand. Where noise hides what a single reward tells, n is large.

**How long knowledge lasts.** A play shows up in s_h for L = 2 Σ_h s_h²/s₁² − 1 rounds, which is
(1 + ρ²)/(1 − ρ²) for a state that keeps ρ of itself. Whoever stays with an arm learns more about
it, so that H = 2L − 1. What the filter would have learned anyway is no reason to play a: let each
of the other arms be played equally often, and a itself a twentieth as often, with the error
covariance P̄ at which that settles. Then what a taught fades with

    w_(h+1) = Γ (I + P̄ Ī)⁻¹ w_h,   w₁ = Γ P a,   Ī the information of a round,

and Σ_h s_h² = w₁ᵀ N_a w₁, where j doublings add 2^j terms to N_a. 2^j is the largest power of two
within ``rounds`` and 20/|1 − ρ|, with ρ of the states that arms read. P̄ is the error covariance of
a known state after as many rounds.
The two numbers, 2 and a twentieth, were chosen on problems of the kinds that the page "Regret by
memory" shows, with other seeds: other systems where those are random, and other runs elsewhere.

**Three rounds** are short enough to be computed instead of bounded. u₃ is the gain of `lookahead`
if the best of the other arms alone may overtake. It counts what a tells about other arms, and it
knows that predictions cross by themselves. This matters where states are forgotten or rotate
within a few rounds; the index ignores both. A play is worth at least either of the two.

**Long lists, many states and new arms** have no table of N_a. There all directions in which the k
listed arms differ replace e: E = (k/(k − 1))² r Cov(arms), of rank r, instead of eeᵀ. All arms are
played equally often. H and n are those of an average arm: Σ_h s_h², s₁² and aᵀPa are averages over
the arms less their mean. Where contexts change the arms, they are taken for unit vectors, of which
all directions count alike: E = I, as in IDEA.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from driftbandit import kalman
from driftbandit.actions import sphere
from driftbandit.arrays import Array, dots, first_highest, namespace, or_infinite, times
from driftbandit.gaussian.lines import excess
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, RANK_TOLERANCE, factor
from driftbandit.policies.base import (
    ActionAbilities,
    BatchAbilities,
    LengthRatio,
    Policy,
    Problem,
    highest,
)
from driftbandit.policies.lookahead import Plan
from driftbandit.policies.optimistic import filtering

__all__ = ["index_factor", "policy"]

SOON = 3  # rounds of which the gain is computed
MOST = 128  # arms compared in pairs; longer lists get the index of an average arm
MOST_WORK = MOST**4  # k d³ of a table that takes two seconds; larger systems get no table
REPEATS = 4.0  # n is a power of this
OWN = 0.05  # how often a is played while what it taught fades, relative to another arm
SETTLED = 20.0  # memories 1/|1 − ρ| after which nothing is left, or a state has outgrown all else
TANGENTS = np.linspace(0.0, 3.0, 7)
UPS = np.exp(-(TANGENTS**2) / 2) / math.sqrt(2 * math.pi)
DOWNS = np.array([math.erfc(x / math.sqrt(2)) / 2 for x in TANGENTS])
"""φ(x) and Φ(−x): w ψ(g/w) is the highest of the lines φ(x) w − Φ(−x) g."""


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
    t = (log - MIDDLE) / (log + MIDDLE)
    *lower, value = _coefficients()
    for coefficient in reversed(lower):
        value = value * t + coefficient
    return value * xp.sqrt(log + MIDDLE)


MIDDLE, DEGREE, LONGEST = 3.0, 12, 1e12


@functools.cache
def _coefficients() -> list[float]:
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
    return [float(c) for c in fitted.convert(kind=np.polynomial.Polynomial).coef]


def constants(model: LGDS, arms: np.ndarray, rounds: int) -> dict[str, Any]:
    """N and its first term, of every arm and of an average one.

    Args:
        model, arms, rounds: Γ, Q, σ; k × d, or k × rounds × d where contexts change the arms: then
            all unit vectors stand for them; the horizon.
    """
    k, levels = len(arms), 1 + int(math.log(max(rounds, 1), REPEATS))
    found: dict[str, Any] = {"repeats": REPEATS ** np.arange(float(levels))}
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
    reached = _reaches(read, among[None], information[None])
    found["all"], found["all_first"] = (basis @ matrix[0] @ basis.T for matrix in reached)
    if together and k <= MOST and k * read.transition.shape[0] ** 3 <= MOST_WORK:
        alone = (1 - OWN) * seen[:, :, None] * seen[:, None, :]
        others = (information * k - alone) / (k - 1 + OWN)
        own, _ = _reaches(read, apart[:, :, None] * apart[:, None, :], others)
        first = apart @ read.transition @ basis.T
        found |= {"own": basis @ own @ basis.T, "own_first": first, "arms": arms}
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


def _reaches(
    read: _Read, among: np.ndarray, information: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Γᵀ Σ_h (C^h)ᵀ E C^h Γ and its first term, C = Γ (I + P̄ Ī)⁻¹; n × d × d.

    Args:
        read: Γ, Q, σ²; the horizon.
        among: E, n × d × d.
        information: σ² Ī.
    """
    transition, process_cov, noise, rounds = read
    identity = np.eye(len(transition))
    radius = float(np.abs(np.linalg.eigvals(transition)).max())
    memory = SETTLED / max(abs(1 - radius), 1e-12)
    doublings = math.floor(math.log2(max(1.0, min(rounds, memory))))
    # With σ = 0 one reward tells all: as much as with 1e-4 of the spread of d rounds' drift.
    drift = process_cov
    for _ in range(len(transition) - 1):
        drift = transition @ drift @ transition.T + process_cov
    fresh = np.sum(information * drift, axis=(1, 2), keepdims=True)
    noises = np.maximum(noise, 1e-8 * fresh)
    information = information / np.where(noises > 0, noises, 1.0)
    # P ↦ H + A P (I + G P)⁻¹ Aᵀ is 2^j rounds of the filter.
    a = np.broadcast_to(transition, among.shape)
    g = information
    h = np.broadcast_to(process_cov, among.shape)
    for _ in range(doublings):
        through = np.linalg.solve(identity + h @ g, np.concatenate([a, h @ a.mT], axis=-1))
        middle, late = np.split(through, 2, axis=-1)
        a, g, h = a @ middle, g + a.mT @ g @ middle, h + a @ late
    settled = np.linalg.inv(identity + h @ information)
    power, total = transition @ settled, among
    for _ in range(doublings):
        total, power = total + power.mT @ total @ power, power @ power
    return transition.T @ total @ transition, transition.T @ among @ transition


def _lasting(first: Array, total: Array) -> Array:
    """H = 2L − 1 ≥ 1, L = 2 Σ_h s_h²/s₁² − 1; at most 10¹²."""
    xp = namespace(first)
    share = first / or_infinite(total, xp.zeros((), dtype=first.dtype))
    return 4 / xp.minimum(xp.maximum(share, 4 / LONGEST), 1.0) - 3


def _index(first: Array, total: Array, known: Array, noise: Array, repeats: Array) -> Array:
    """u∞ from s₁² and Σ s_h² in units where P a is not divided by anything, and aᵀPa."""
    xp = namespace(first)
    zero = xp.zeros((), dtype=first.dtype)
    lasting = _lasting(first, total)[:, None]
    factors = index_factor(xp.log(lasting) - xp.log(repeats))
    squares = factors * factors / or_infinite(known[:, None] + noise / repeats, zero)
    return xp.sqrt(first * xp.max(xp.where(repeats <= lasting, squares, zero), axis=-1))


def _soon(belief: Belief, model: LGDS, arms: Array) -> Array:
    """u₃: what a reward of each arm gains within three rounds, if one other arm may overtake."""
    xp = namespace(belief.cov)
    move = kalman.moves(belief.cov, model, arms)
    plan = Plan(belief.cov, model)
    mean = model.transition @ belief.mean
    total = xp.zeros_like(arms[:, 0])
    up, down = (xp.asarray(one, dtype=move.dtype)[:, None, None] for one in (UPS, DOWNS))
    for h in range(SOON):
        predictions, slopes = arms @ mean, move @ arms.T
        best = first_highest(predictions)
        width = abs(slopes - slopes[:, best][:, None])
        behind = xp.max(predictions) - predictions
        gains = xp.max(up * width - down * behind, axis=0)
        total = total + xp.max(gains, axis=-1)
        if h + 1 < SOON:
            move = plan.passed_on(move, arms[best])
            mean = model.transition @ mean
    return total


def bonus(belief: Belief, problem: Problem) -> Array:
    """max(u∞, u₃) of every arm."""
    model, arms, constants = problem
    xp = namespace(belief.cov)
    if not _prepared(arms, constants):
        return average_bonus(belief, problem)
    seen = kalman.spread(belief.cov, model, arms)
    known = xp.maximum(dots(arms, seen.cross), xp.zeros((), dtype=belief.cov.dtype))
    first = dots(seen.cross, constants["own_first"])
    total = dots((constants["own"] @ seen.cross[:, :, None])[:, :, 0], seen.cross)
    noise = model.reward_std**2
    index = _index(first * first, total, known, noise, constants["repeats"])
    return xp.maximum(index, _soon(belief, model, arms))


def _prepared(arms: Array, constants: Any) -> bool:
    """Whether the table of N_a is that of these arms."""
    if "own" not in constants or arms.shape != constants["arms"].shape:
        return False
    return not isinstance(arms, np.ndarray) or np.array_equal(arms, constants["arms"])


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
    crossed = crossed @ cov
    first = xp.sum(crossed * constants["all_first"])
    total = xp.sum(crossed * constants["all"])
    zero = xp.zeros((), dtype=cov.dtype)
    lasting = _lasting(first, total)
    repeats = constants["repeats"]
    noises = model.reward_std**2 / repeats
    factors = index_factor(xp.log(lasting) - xp.log(repeats))
    values = factors / xp.sqrt(or_infinite(known + noises, zero))
    best = first_highest(xp.where(repeats <= lasting, values, zero))
    return factors[best], noises[best]


def length_ratio(belief: Belief, problem: Problem) -> tuple[Array, LengthRatio]:
    """The scores of `average_bonus`, for very many arms."""
    model, _, constants = problem
    scale, noise = _average(belief.cov, model, constants)
    root = factor(belief.cov)
    stretch = float(scale) * factor(constants["all_first"]).T
    size = float(np.linalg.norm(stretch) * np.linalg.norm(root))
    return belief.mean, LengthRatio(root, stretch @ root, math.sqrt(float(noise)), size)


def on_sphere(belief: Belief, problem: Problem, noise: Array) -> Array:
    """IDEA's best unit vector (`actions.idea_search`)."""
    return sphere.idea_arm(belief, problem.model)


def scores(belief: Belief, problem: Problem) -> tuple[Array, Array]:
    """⟨a, ẑ⟩ and max(u∞, u₃)."""
    return problem.arms @ belief.mean, bonus(belief, problem)


def policy() -> Policy:
    """Reach, which explores as far as the drift lets knowledge last; it has no parameters."""
    return filtering(
        "reach",
        highest(scores),
        constants,
        actions=ActionAbilities(
            compares=MOST, length_ratio=length_ratio, on_sphere=on_sphere, contexts="online"
        ),
        batch=BatchAbilities(scratch_size=lambda d, k: k * d + 4 * k * k),
    )
