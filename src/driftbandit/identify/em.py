"""Expectation maximization for a system that is read through known, changing arms.

    z(t+1) = Γ z(t) + ξ,   x = o_a + ⟨c_a, z(t)⟩ + η     for every play of arm a in round t

The E-step filters forward and smooths backward (Durbin and Koopman, Time Series Analysis by State
Space Methods, 4.4 to 4.7): it divides by innovation variances alone, so that singular covariances
need no care. Rewards of one round are folded in one by one; rounds without any are predicted only,
long stretches of them at once (`waits`). All sequences are smoothed at once. The M-step has closed
forms; where a structure is asked for, it climbs in blocks (Meng and Rubin 1993), and the
likelihood still never falls.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import jax
import numpy as np

from driftbandit.arrays import Array
from driftbandit.identify import waits
from driftbandit.identify.quantities import Data, Parameters, Sums, times
from driftbandit.identify.smoothing import UNROLLED, smoothed

__all__ = [
    "STRUCTURES",
    "UNROLLED",
    "Data",
    "Options",
    "Parameters",
    "Prior",
    "Sums",
    "e_step",
    "least_var",
    "m_step",
    "objective",
    "times",
]

Structure = Literal["free", "diagonal", "scalar"]
STRUCTURES: tuple[Structure, ...] = ("free", "diagonal", "scalar")
MEMORIES = 5.0
"""For how many memories −1/log ρ(Γ) of the state an unseen stretch counts at most."""
LEAST = 1e-12
"""Least reward variance, as a share of the rewards' own: below it nothing is left to explain."""


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


def e_step(parameters: Parameters, data: Data, whole: bool = False) -> Sums:
    """Smooth every sequence with the parameters as they are, and add up what matters.

    A stretch of unseen rounds that is longer than the state's memory tells nothing in most of
    them; counted in full, they would hold every step of EM back. They count for `MEMORIES` of
    it: the likelihood's slopes, and so where EM comes to rest, stay the same.

    Args:
        parameters: the current ones.
        data: S sequences.
        whole: count every unseen round in full, so that the likelihood cannot fall.

    Returns:
        `Sums`; ``log_likelihood`` is that of the given parameters.
    """
    bits = None if data.waits is None else waits.bits_of(data.waits)
    arrays = (data.arms, data.rewards, data.seen, data.lengths, data.gaps)
    with jax.enable_x64(True):
        found, moved = smoothed(parameters, arrays, bits)
    sums = Sums(*(np.asarray(part) for part in found))
    return _with_moves(sums, parameters, data, [np.asarray(part) for part in moved], whole)


def _with_moves(
    sums: Sums, parameters: Parameters, data: Data, moved: list[np.ndarray], whole: bool
) -> Sums:
    """The sums over transitions, from those of every length of unseen stretches."""
    squares, slopes, noises, count = moved
    lengths = np.ones(1) if data.waits is None else np.asarray(data.waits, float)
    rounds = count * lengths
    weights = np.ones_like(lengths)
    if not whole and len(lengths) > 1:
        radius = float(np.abs(np.linalg.eigvals(parameters.transition)).max())
        memory = MEMORIES / -math.log(radius) if 0 < radius < 1 else math.inf * (radius >= 1)
        weights = np.minimum(1.0, np.maximum(memory, 1.0) / lengths)
    transition, Q = parameters.transition, parameters.process_cov
    total = float(weights @ rounds)
    before = np.einsum("u,uij->ij", weights, squares)
    across = transition @ before + slopes.sum(axis=0)
    left = total * Q + noises.sum(axis=0)
    turned = transition @ across.T
    after = left + turned + turned.T - transition @ before @ transition.T
    return sums._replace(transitions=np.asarray(total), before=before, after=after, across=across)


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
