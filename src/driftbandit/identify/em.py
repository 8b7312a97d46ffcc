"""Expectation maximization for a system that is read through known, changing arms.

    z(t+1) = Γ z(t) + ξ,   x = o_a + ⟨c_a, z(t)⟩ + η     for every play of arm a in round t

The E-step filters forward and smooths backward (Durbin and Koopman, Time Series Analysis by State
Space Methods, 4.4 to 4.7): it divides by innovation variances alone, so that singular covariances
need no care. Rewards of one round are folded in one by one; rounds without any are predicted only.
All sequences are smoothed at once. The M-step has closed forms; where a structure is asked for,
it climbs in blocks (Meng and Rubin 1993), and the likelihood still never falls.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.arrays import Array

__all__ = [
    "STRUCTURES",
    "Data",
    "Options",
    "Parameters",
    "Prior",
    "Sums",
    "e_step",
    "least_var",
    "m_step",
    "objective",
]

Structure = Literal["free", "diagonal", "scalar"]
STRUCTURES: tuple[Structure, ...] = ("free", "diagonal", "scalar")
UNROLLED = 4
"""Plays of a round that are compiled one by one; more would compile for minutes."""
LEAST = 1e-12
"""Least reward variance, as a share of the rewards' own: below it nothing is left to explain."""


class Data(NamedTuple):
    """S sequences, padded to n rounds with at most m plays each."""

    arms: Array
    """Which arm was played, S × n × m."""
    rewards: Array
    """What it paid, S × n × m; zero where nothing was seen."""
    seen: Array
    """1 where a reward was seen, else 0, S × n × m."""
    lengths: Array
    """Rounds of each sequence, S."""


class Parameters(NamedTuple):
    """What is estimated."""

    transition: Array
    """Γ, d × d."""
    process_cov: Array
    """Q, d × d."""
    reward_var: Array
    """σ²."""
    initial_mean: Array
    """E z(0), d."""
    initial_cov: Array
    """Cov z(0), d × d."""
    reads: Array
    """c_a, k × d: what each arm reads of the state."""
    offsets: Array
    """o_a, k: what each arm pays where the state is zero."""


class Prior(NamedTuple):
    """Rounds imagined beside the log's, of a state with covariance S that forgets at once.

    They enter the likelihood with what they are expected to add to it, up to a constant:

        −½ λ (log det Q + tr Q⁻¹ (S + Γ S Γᵀ))

    Γ is drawn towards zero and Q towards S where a log tells little; a long one overrules them.
    """

    rounds: float
    """λ, how many."""
    cov: Array
    """S, d × d."""

    def added(self, sums: Sums) -> Sums:
        """The sums with those of the imagined rounds."""
        whole = self.rounds * self.cov
        return sums._replace(
            transitions=sums.transitions + self.rounds,
            before=sums.before + whole,
            after=sums.after + whole,
        )

    def log_density(self, parameters: Parameters) -> float:
        """What they add to the log-likelihood."""
        sign, log_det = np.linalg.slogdet(parameters.process_cov)
        if sign <= 0:
            return -math.inf
        spread = self.cov + parameters.transition @ self.cov @ parameters.transition.T
        trace = np.trace(np.linalg.solve(parameters.process_cov, spread))
        return float(-0.5 * self.rounds * (log_det + trace))


class Options(NamedTuple):
    """What may be estimated, and in which form."""

    structure: Structure = "free"
    """Of Γ; a diagonal or scalar Γ comes with a diagonal Q."""
    stable: bool = False
    """Keep ρ(Γ) below 1."""
    reads: bool = False
    """Estimate the read-outs."""
    offsets: bool = False
    """Estimate the offsets."""
    prior: Prior | None = None
    """Rounds imagined beside the log's; None: the log alone."""


class Sums(NamedTuple):
    """What the M-step needs of the smoothed states."""

    log_likelihood: Array
    transitions: Array
    """How many."""
    before: Array
    """Σ E z(t) z(t)ᵀ over rounds that have a next one, d × d."""
    after: Array
    """Σ E z(t+1) z(t+1)ᵀ, d × d."""
    across: Array
    """Σ E z(t+1) z(t)ᵀ, d × d."""
    start_means: Array
    """E z(0) of every sequence, S × d."""
    start_covs: Array
    """Cov z(0), summed over sequences, d × d."""
    plays: Array
    """Rewards seen of each arm, k."""
    paid: Array
    """Σ x of each arm, k."""
    squares: Array
    """Σ x² of each arm, k."""
    means: Array
    """Σ E z over an arm's rewards, k × d."""
    moments: Array
    """Σ E z zᵀ over an arm's rewards, k × d × d."""
    products: Array
    """Σ x E z over an arm's rewards, k × d."""


def e_step(parameters: Parameters, data: Data) -> Sums:
    """Smooth every sequence with the parameters as they are, and add up what matters.

    Args:
        parameters: the current ones.
        data: S sequences.

    Returns:
        `Sums`; ``log_likelihood`` is that of the given parameters.
    """
    with jax.enable_x64(True):
        found = _smoothed(parameters, data)
        return Sums(*(np.asarray(part) for part in found))


@jax.jit
def _smoothed(parameters: Parameters, data: Data) -> Sums:
    each = jax.vmap(functools.partial(_sequence, parameters))(*data)
    return Sums(
        *(
            part if name == "start_means" else part.sum(axis=0)
            for name, part in zip(Sums._fields, each, strict=True)
        )
    )


def _sequence(p: Parameters, arms: Any, rewards: Any, seen: Any, length: Any) -> Sums:
    d, k = p.transition.shape[0], p.reads.shape[0]
    n, m = arms.shape
    there = jnp.arange(n) < length

    def forward(carry: Any, now: Any) -> Any:
        mean, cov, total = carry
        arm, reward, mask = now
        start = (mean, cov)

        def fold(belief: Any, play: Any) -> Any:
            mean, cov, total = belief
            read, offset, x, there = play
            cross = cov @ read
            variance = read @ cross + p.reward_var
            variance = jnp.where(variance > 0, variance, math.inf)
            weight = there / variance
            surprise = x - offset - read @ mean
            likelihood = jnp.log(2 * math.pi * variance) + surprise**2 / variance
            likelihood = jnp.where((there > 0) & jnp.isfinite(variance), likelihood, 0.0)
            belief = (
                mean + cross * (surprise * weight),
                cov - jnp.outer(cross, cross) * weight,
                total - 0.5 * likelihood,
            )
            return belief, (read, cross * weight, surprise * weight, weight)

        plays = (p.reads[arm], p.offsets[arm], reward, mask)
        (mean, cov, total), kept = jax.lax.scan(fold, carry, plays, unroll=min(m, UNROLLED))
        mean, cov = p.transition @ mean, p.transition @ cov @ p.transition.T + p.process_cov
        return (mean, 0.5 * (cov + cov.T), total), (*start, *kept)

    carry = (p.initial_mean, p.initial_cov, jnp.zeros(()))
    (_, _, log_likelihood), path = jax.lax.scan(forward, carry, (arms, rewards, seen))

    def backward(carry: Any, now: Any) -> Any:
        r, N, next_mean, next_cov, next_P, sums = carry
        mean, P, reads, gains, scaled, weights, arm, reward, mask, present, has_next = now
        # After the round: r, N as seen from before the next one, through Γ.
        r_after, N_after = p.transition.T @ r, p.transition.T @ N @ p.transition

        def unfold(after: Any, play: Any) -> Any:
            r, N, fold = after
            read, gain, scale, weight = play
            keep = jnp.eye(d) - jnp.outer(gain, read)
            r = read * scale + keep.T @ r
            N = jnp.outer(read, read) * weight + keep.T @ N @ keep
            return (r, N, fold @ keep), None

        after = (r_after, N_after, jnp.eye(d))
        folded = (reads, gains, scaled, weights)
        (r_after, N_after, fold), _ = jax.lax.scan(
            unfold, after, folded, reverse=True, unroll=min(m, UNROLLED)
        )
        smooth = mean + P @ r_after
        cov = P - P @ N_after @ P
        cov = 0.5 * (cov + cov.T)
        moment = cov + jnp.outer(smooth, smooth)
        lag = (jnp.eye(d) - next_P @ N) @ (p.transition @ fold @ P)  # Cov(z(t+1), z(t))
        before, after, across, plays, paid, squares, means, moments, products = sums
        step = has_next.astype(P.dtype)
        before = before + step * moment
        after = after + step * (next_cov + jnp.outer(next_mean, next_mean))
        across = across + step * (lag + jnp.outer(next_mean, smooth))
        plays = plays.at[arm].add(mask)
        paid = paid.at[arm].add(mask * reward)
        squares = squares.at[arm].add(mask * reward**2)
        means = means.at[arm].add(mask[:, None] * smooth)
        moments = moments.at[arm].add(mask[:, None, None] * moment)
        products = products.at[arm].add((mask * reward)[:, None] * smooth)
        sums = (before, after, across, plays, paid, squares, means, moments, products)
        # Rounds after a sequence's end tell nothing.
        r, N = jnp.where(present, r_after, 0.0), jnp.where(present, N_after, 0.0)
        return (r, N, smooth, cov, P, sums), (smooth, cov)

    zero = jnp.zeros((d, d))
    sums = (
        zero,
        zero,
        zero,
        jnp.zeros(k),
        jnp.zeros(k),
        jnp.zeros(k),
        jnp.zeros((k, d)),
        jnp.zeros((k, d, d)),
        jnp.zeros((k, d)),
    )
    last = (jnp.zeros(d), zero, jnp.zeros(d), zero, zero, sums)
    has_next = jnp.arange(1, n + 1) < length
    rounds = (*path, arms, rewards, seen, there, has_next)
    (_, _, start_mean, start_cov, _, sums), _ = jax.lax.scan(backward, last, rounds, reverse=True)
    before, after, across, *rest = sums
    return Sums(
        log_likelihood,
        jnp.maximum(length - 1, 0),
        before,
        after,
        across,
        start_mean,
        start_cov,
        *rest,
    )


def objective(parameters: Parameters, sums: Sums, options: Options) -> float:
    """What every iteration raises: the log-likelihood, with the prior's part where there is one."""
    prior = 0.0 if options.prior is None else options.prior.log_density(parameters)
    return float(sums.log_likelihood) + prior


def least_var(sums: Sums) -> float:
    """The floor of σ²."""
    return LEAST * float(sums.squares.sum()) / max(float(sums.plays.sum()), 1.0)


def m_step(parameters: Parameters, sums: Sums, options: Options) -> Parameters:
    """The parameters under which the smoothed states are likeliest; likelier than before at least.

        Γ = S₁₀ S₀₀⁻¹,   Q = (S₁₁ − Γ S₁₀ᵀ − S₁₀ Γᵀ + Γ S₀₀ Γᵀ) / N
        σ² = mean of (x − o − ⟨c, ẑ⟩)² + cᵀ V c over all rewards

    Args:
        parameters: the current ones; what is not estimated is kept.
        sums: of the E-step with them.
        options: what to estimate.
    """
    if options.prior is not None:
        sums = options.prior.added(sums)
    transition = _transition(parameters, sums, options)
    process_cov = parameters.process_cov
    if sums.transitions > 0:
        process_cov = _process_cov(transition, sums, options)
    reads, offsets = _reads(parameters, sums, options)
    reward_var = parameters.reward_var
    if sums.squares.sum() > 0:  # else nothing says how large it is
        fitted = (
            sums.squares
            - 2 * offsets * sums.paid
            + offsets**2 * sums.plays
            - 2 * np.vecdot(sums.products - offsets[:, None] * sums.means, reads)
            + np.einsum("ki,kij,kj->k", reads, sums.moments, reads)
        )
        reward_var = np.asarray(max(float(fitted.sum()) / float(sums.plays.sum()), least_var(sums)))
    initial_mean = sums.start_means.mean(axis=0)
    apart = sums.start_means - initial_mean
    initial_cov = (sums.start_covs + apart.T @ apart) / len(apart)
    return Parameters(
        transition, process_cov, reward_var, initial_mean, initial_cov, reads, offsets
    )


def _transition(parameters: Parameters, sums: Sums, options: Options) -> np.ndarray:
    """Γ of the wanted structure, on the way from the current one to the best if need be."""
    if sums.transitions == 0:
        return parameters.transition
    if options.structure == "free":
        best = sums.across @ np.linalg.pinv(sums.before, hermitian=True)
    else:  # Q is diagonal: each state's own regression, or all of them weighed together
        numerators, denominators = np.diag(sums.across), np.diag(sums.before)
        if options.structure == "diagonal":
            best = np.diag(numerators / np.where(denominators > 0, denominators, 1.0))
        else:
            noise = np.diag(parameters.process_cov)
            weights = 1 / np.where(noise > 0, noise, np.inf)
            if not weights.any():
                weights = np.ones_like(noise)
            best = np.eye(len(noise)) * ((weights @ numerators) / (weights @ denominators))
    if options.stable:
        # The expected likelihood is concave in Γ: any part of the way is uphill.
        share, current = 1.0, parameters.transition
        while np.abs(np.linalg.eigvals(best)).max() >= 1 and share > 1e-6:
            share /= 2
            best = current + (best - current) / 2
        if np.abs(np.linalg.eigvals(best)).max() >= 1:
            best = current
    return np.asarray(best)


def _process_cov(transition: np.ndarray, sums: Sums, options: Options) -> np.ndarray:
    moved = transition @ sums.across.T
    Q = (sums.after - moved - moved.T + transition @ sums.before @ transition.T) / sums.transitions
    Q = 0.5 * (Q + Q.T)
    if options.structure != "free":
        return np.asarray(np.diag(np.maximum(np.diag(Q), 0)))
    values, vectors = np.linalg.eigh(Q)  # below zero by rounding alone
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def _reads(parameters: Parameters, sums: Sums, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Each arm's regression of its rewards on the smoothed state; arms never played keep theirs."""
    reads, offsets = parameters.reads.copy(), parameters.offsets.copy()
    for arm in np.flatnonzero(sums.plays) if options.reads or options.offsets else []:
        plays, mean = sums.plays[arm], sums.means[arm]
        if options.reads and options.offsets:
            moment = np.block([[sums.moments[arm], mean[:, None]], [mean[None, :], plays]])
            found = (
                np.linalg.pinv(moment, hermitian=True) @ np.r_[sums.products[arm], sums.paid[arm]]
            )
            reads[arm], offsets[arm] = found[:-1], found[-1]
        elif options.reads:
            rest = sums.products[arm] - offsets[arm] * mean
            reads[arm] = np.linalg.pinv(sums.moments[arm], hermitian=True) @ rest
        else:
            offsets[arm] = (sums.paid[arm] - reads[arm] @ mean) / plays
    return reads, offsets
