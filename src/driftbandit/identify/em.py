"""Expectation maximization (EM) for a linear Gaussian system read through known, changing arms.

The E-step smooths all sequences (`smoothing`). The M-step has closed forms; a structure of Γ is
estimated block by block (Meng and Rubin 1993), and the likelihood still never falls.

EM is slow where the noise is small compared to the state. So after two of its steps, θ → θ₁ → θ₂,
the path is extrapolated (SQUAREM, Varadhan and Roland 2008): with r = θ₁ − θ and v = θ₂ − θ₁ − r,

    θ′ = θ + 2 s r + s² v,   s = ‖r‖ / ‖v‖,

in unbounded coordinates: roots of the covariances and the logarithm of σ². An extrapolation is kept
only if it is more likely than θ₂.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import jax
import numpy as np

from driftbandit.arrays import Array
from driftbandit.identify.data import Data, Parameters
from driftbandit.identify.smoothing import Sums, bits_of, smoothed

Structure = Literal["free", "diagonal", "scalar"]
STRUCTURES: tuple[Structure, ...] = get_args(Structure)
MEMORIES = 5.0  # a gap counts for at most this many memories −1/log ρ(Γ) of the state
LEAST = 1e-12  # least reward variance, as a share of the rewards' own
LONGEST = 1e4  # most EM steps that an extrapolation stands for


class Prior(NamedTuple):
    """Pseudo-rounds of a state with covariance S and no memory, added to the log's.

    They add to the log-likelihood, up to a constant, their expected contribution

        −½ λ (log det Q + tr Q⁻¹ (S + Γ S Γᵀ))

    which shrinks Γ toward zero and Q toward S; a long log outweighs them.
    """

    rounds: float  # λ, how many
    cov: Array  # S, d × d

    def added(self, sums: Sums) -> Sums:
        """The sums plus those of the pseudo-rounds."""
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
    """What is estimated, and in which form."""

    structure: Structure = "free"  # of Γ; a diagonal or scalar Γ comes with a diagonal Q
    stable: bool = False  # keep ρ(Γ) below 1
    reads: bool = False  # estimate the read-outs
    offsets: bool = False  # estimate the offsets
    prior: Prior | None = None  # None: the log alone


def e_step(parameters: Parameters, data: Data, whole: bool = False) -> Sums:
    """Smooth every sequence with the given parameters, and sum up what the M-step needs.

    Most rounds of a gap much longer than the state's memory carry no information, and counting them
    all would slow EM down. So a gap counts for at most `MEMORIES` memories, which changes neither
    the slopes of the likelihood nor the point where EM converges. ``whole`` counts all rounds of
    all gaps, so that the likelihood cannot fall.
    """
    arrays = (data.arms, data.rewards, data.seen, data.lengths, data.gaps)
    with jax.enable_x64(True):
        found, moved = smoothed(parameters, arrays, bits_of(data))
    sums = Sums(*map(np.asarray, found))
    squares, slopes, noises, count = map(np.asarray, moved)
    lengths = np.ones(1) if data.gap_lengths is None else np.asarray(data.gap_lengths, float)
    rounds = count * lengths
    weights = np.ones_like(lengths)
    if not whole and len(lengths) > 1:
        radius = radius_of(parameters.transition)
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


def radius_of(transition: np.ndarray) -> float:
    """ρ(Γ), the largest absolute eigenvalue."""
    return float(np.abs(np.linalg.eigvals(transition)).max())


def objective(parameters: Parameters, sums: Sums, options: Options) -> float:
    """What every iteration raises: the log-likelihood, plus the prior's part if there is one."""
    prior = 0.0 if options.prior is None else options.prior.log_density(parameters)
    return float(sums.log_likelihood) + prior


def _least_var(sums: Sums) -> float:
    """The lower limit of σ²."""
    return LEAST * float(sums.squares.sum()) / max(float(sums.plays.sum()), 1.0)


def m_step(parameters: Parameters, sums: Sums, options: Options) -> Parameters:
    """The parameters that maximize, or at least raise, the likelihood of the smoothed states.

        Γ = S₁₀ S₀₀⁻¹,   Q = (S₁₁ − Γ S₁₀ᵀ − S₁₀ Γᵀ + Γ S₀₀ Γᵀ) / N
        σ² = mean of (x − o − ⟨c, ẑ⟩)² + cᵀ V c over all rewards

    ``parameters`` are those of the E-step; what is not estimated is kept.
    """
    if options.prior is not None:
        sums = options.prior.added(sums)
    transition, process_cov = parameters.transition, parameters.process_cov
    if sums.transitions > 0:
        transition = _transition(parameters, sums, options)
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
        fitted_var = float(fitted.sum()) / float(sums.plays.sum())
        reward_var = np.asarray(max(fitted_var, _least_var(sums)))
    mean = sums.start_means.mean(axis=0)
    apart = sums.start_means - mean
    cov = (sums.start_covs + apart.T @ apart) / len(apart)
    return Parameters(transition, process_cov, reward_var, mean, cov, reads, offsets)


def _transition(parameters: Parameters, sums: Sums, options: Options) -> np.ndarray:
    """The best Γ of this structure or, to keep it stable, a point on the way to it."""
    if options.structure == "free":
        best = sums.across @ np.linalg.pinv(sums.before, hermitian=True)
    else:  # Q is diagonal: a regression for each state, or one weighted regression for all
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
        while radius_of(best) >= 1 and share > 1e-6:
            share /= 2
            best = current + (best - current) / 2
        if radius_of(best) >= 1:
            best = current
    return np.asarray(best)


def _process_cov(transition: np.ndarray, sums: Sums, options: Options) -> np.ndarray:
    moved = transition @ sums.across.T
    Q = (sums.after - moved - moved.T + transition @ sums.before @ transition.T) / sums.transitions
    Q = 0.5 * (Q + Q.T)
    if options.structure != "free":
        return np.asarray(np.diag(np.maximum(np.diag(Q), 0)))
    values, vectors = np.linalg.eigh(Q)  # negative by rounding alone
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def _reads(parameters: Parameters, sums: Sums, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Each arm's regression of its rewards on the smoothed state; unplayed arms keep theirs."""
    reads, offsets = parameters.reads.copy(), parameters.offsets.copy()
    for arm in np.flatnonzero(sums.plays) if options.reads or options.offsets else []:
        plays, mean = sums.plays[arm], sums.means[arm]
        if options.reads and options.offsets:
            moment = np.block([[sums.moments[arm], mean[:, None]], [mean[None, :], plays]])
            product = np.r_[sums.products[arm], sums.paid[arm]]
            found = np.linalg.pinv(moment, hermitian=True) @ product
            reads[arm], offsets[arm] = found[:-1], found[-1]
        elif options.reads:
            rest = sums.products[arm] - offsets[arm] * mean
            reads[arm] = np.linalg.pinv(sums.moments[arm], hermitian=True) @ rest
        else:
            offsets[arm] = (sums.paid[arm] - reads[arm] @ mean) / plays
    return reads, offsets


# The iteration

Run = tuple[Parameters, list[float], bool]
"""The parameters, the objective along the way, and whether EM converged."""


def run(
    parameters: Parameters,
    data: Data,
    options: Options,
    iterations: int,
    tolerance: float,
    report: Callable[[float], None],
) -> Run:
    """Run EM until two steps and an extrapolation gain less than the tolerance per reward.

    The data is smoothed ``iterations`` times at most; ``report`` is called with the share done.
    """
    least = tolerance * float(data.seen.sum())
    sums = e_step(parameters, data)
    path = [objective(parameters, sums, options)]
    done = 1
    while done + 2 <= iterations:
        begin = path[-1]
        first, sums_first, height = _step(parameters, sums, data, options, begin)
        second, sums, higher = _step(first, sums_first, data, options, height)
        path += [height, higher]
        done += 2
        jump = _extrapolated(parameters, first, second, options, _least_var(sums))
        parameters = second
        if jump is not None and done < iterations:
            sums_jump = e_step(jump, data)
            done += 1
            if (higher := objective(jump, sums_jump, options)) > path[-1]:
                parameters, sums = jump, sums_jump
                path.append(higher)
        report(min(done / iterations, 1.0))
        if path[-1] - begin <= least:
            return parameters, path, True
    return parameters, path, False


def _step(
    parameters: Parameters, sums: Sums, data: Data, options: Options, height: float
) -> tuple[Parameters, Sums, float]:
    """One step of EM, its sums and objective; gaps are counted in full if it would fall."""
    for whole in (False, True):
        after = m_step(parameters, sums, options)
        found = e_step(after, data)
        higher = objective(after, found, options)
        if data.gap_lengths is None or higher >= height:
            break
        if not whole:
            sums = e_step(parameters, data, whole=True)
    return after, found, higher


def _extrapolated(
    start: Parameters, first: Parameters, second: Parameters, options: Options, least: float
) -> Parameters | None:
    """The extrapolation θ′; None if the path stands still or θ′ is not allowed."""
    begin, middle, end = map(_unbounded, (start, first, second))
    r = middle - begin
    v = end - middle - r
    bend, length = float(np.linalg.norm(v)), float(np.linalg.norm(r))
    if not 0 < bend < np.inf or length <= bend:
        return None
    s = min(length / bend, LONGEST)
    ends = np.cumsum([np.size(part) for part in start])
    parts = np.split(begin + 2 * s * r + s**2 * v, ends[:-1])
    free = Parameters(*(x.reshape(np.shape(like)) for x, like in zip(parts, start, strict=True)))
    with np.errstate(over="ignore"):
        found = free._replace(
            process_cov=free.process_cov @ free.process_cov.T,
            initial_cov=free.initial_cov @ free.initial_cov.T,
            reward_var=np.maximum(np.exp(free.reward_var), least),
        )
    if not all(np.isfinite(part).all() for part in found):
        return None
    return None if options.stable and radius_of(found.transition) >= 1 else found


def _unbounded(parameters: Parameters) -> np.ndarray:
    """Roots of the covariances, log σ² and the rest as they are, in one vector."""
    found = parameters._replace(
        process_cov=_root(parameters.process_cov),
        initial_cov=_root(parameters.initial_cov),
        reward_var=np.log(parameters.reward_var),
    )
    return np.concatenate([np.ravel(part) for part in found])


def _root(cov: np.ndarray) -> np.ndarray:
    """The symmetric root, which changes smoothly with its square."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
