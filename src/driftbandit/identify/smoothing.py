"""Filtering and smoothing of all sequences at once: what EM and predictions share.

    z(t+1) = Γ z(t) + ξ,   x = o_a + ⟨c_a, z(t)⟩ + η     for every play of arm a in round t

A filter runs forward and a smoother backward (Durbin and Koopman, Time Series Analysis by State
Space Methods, 4.4 to 4.7). They divide by innovation variances only, so covariances may be
singular. Rewards of one round are folded in one by one; a gap between rounds is one step. They are
separate from `kalman` because they are compiled for padded sequences with gaps and several plays a
round, and do not round P up; a test holds the two equal.

A gap of g rounds costs log g, by repeated squaring:

    z(t+g) = F z(t) + ξ,   F = Γ^g,   Cov ξ = Σ_(s<g) Γ^s Q (Γ^s)ᵀ

What EM adds up over the rounds of a gap are slopes of the likelihood (Fisher's identity): each
step's density is tilted by exp(−½ zᵀAz), and steps are composed with A, Γ and Q kept as variables,
so that by the chain rule, at A = 0,

    ∂ℓ/∂A = −½ S₀₀,   ∂ℓ/∂Γ = Q⁻¹(S₁₀ − Γ S₀₀),   ∂ℓ/∂Q = ½ Q⁻¹(R − gQ)Q⁻¹,

where R = S₁₁ − Γ S₁₀ᵀ − S₁₀ Γᵀ + Γ S₀₀ Γᵀ. Solved for the sums, nothing is divided by Q.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.arrays import Array
from driftbandit.identify.data import Data, Parameters

UNROLLED = 4  # plays of a round that are compiled one by one; more would compile for minutes


class Sums(NamedTuple):
    """Sums over smoothed states, which the M-step needs."""

    log_likelihood: Array
    transitions: Array  # number of transitions
    before: Array  # S₀₀ = Σ E z(t) z(t)ᵀ over rounds that have a next one, d × d
    after: Array  # S₁₁ = Σ E z(t+1) z(t+1)ᵀ, d × d
    across: Array  # S₁₀ = Σ E z(t+1) z(t)ᵀ, d × d
    start_means: Array  # E z(0) of every sequence, S × d
    start_covs: Array  # Cov z(0), summed over sequences, d × d
    plays: Array  # rewards observed of each arm, k
    paid: Array  # Σ x of each arm, k
    squares: Array  # Σ x² of each arm, k
    means: Array  # Σ E z over an arm's rewards, k × d
    moments: Array  # Σ E z zᵀ over an arm's rewards, k × d × d
    products: Array  # Σ x E z over an arm's rewards, k × d


# Gaps


class Stretch(NamedTuple):
    """The distribution of z(t+g) given z(t), tilted to first order in A."""

    transition: Any  # F, d × d
    process_cov: Any  # Cov ξ, d × d
    tilt: Any  # J of exp(−½ zᵀJz), d × d: zero at A = 0
    size: Any  # logarithm of the factor in front


def bits_of(data: Data) -> np.ndarray | None:
    """Binary digits of the gap lengths, the lowest first, u × b; None: all gaps are one round."""
    if data.gap_lengths is None:
        return None
    count = max(int(data.gap_lengths.max()).bit_length(), 1)
    return ((data.gap_lengths[:, None] >> np.arange(count)) & 1).astype(np.float64)


def _after(one: Stretch, two: Stretch) -> Stretch:
    """Stretch ``one`` followed by ``two``."""
    F, Q, J, size = one
    shift = Q @ two.tilt
    moved = two.transition @ Q
    return Stretch(
        two.transition @ (F - shift @ F),
        moved @ two.transition.T + two.process_cov - moved @ two.tilt @ moved.T,
        J + F.T @ two.tilt @ F,
        size + two.size - 0.5 * jnp.trace(shift),
    )


def _long(transition: Any, process_cov: Any, tilt: Any, bits: Any) -> Stretch:
    """A stretch of as many rounds as the bits say."""
    d = transition.shape[0]
    zero = jnp.zeros((d, d))

    def double(carry: Any, bit: Any) -> Any:
        whole, power = carry
        longer = _after(whole, power)
        whole = Stretch(*(jnp.where(bit > 0, b, a) for a, b in zip(whole, longer, strict=True)))
        return (whole, _after(power, power)), None

    one = Stretch(transition, process_cov, tilt, jnp.zeros(()))
    nothing = Stretch(jnp.eye(d), zero, zero, jnp.zeros(()))
    return jax.lax.scan(double, (nothing, one), bits)[0][0]


def gap_transitions(transition: Any, process_cov: Any, bits: Any) -> tuple[Any, Any]:
    """F and Cov ξ of every gap length, u × d × d each."""
    tilt = jnp.zeros_like(transition)
    each = jax.vmap(lambda row: _long(transition, process_cov, tilt, row))(bits)
    return each.transition, each.process_cov


def _gap_sums(p: Parameters, bits: Any, X: Any, Y: Any, M: Any, count: Any) -> tuple[Any, Any, Any]:
    """S₀₀, S₁₀ − Γ S₀₀ and R − gQ over all rounds of the gaps of every length, u × d × d each."""
    # From X = Σ E z zᵀ, Y = Σ E z ρᵀ and M = Σ (Cov ξ)⁻¹ − E ρρᵀ, where ρ = (Cov ξ)⁻¹ ξ, over the
    # beginnings of the gaps of every length.

    def pulled(row: Any, X: Any, Y: Any, M: Any, count: Any) -> Any:
        def stretch(Γ: Any, Q: Any, A: Any) -> Stretch:
            return _long(Γ, Q, A, row)

        _, pull = jax.vjp(stretch, p.transition, p.process_cov, jnp.zeros_like(p.transition))
        slope, noise, tilt = pull(Stretch(Y.T, -0.5 * M, -0.5 * X, count))
        square = -(tilt + tilt.T)
        return square, p.process_cov @ slope, p.process_cov @ (noise + noise.T) @ p.process_cov

    return jax.vmap(pulled)(bits, X, Y, M, count)


# Forward


def _steps(p: Parameters, arms: Any, gaps: Any, bits: Any) -> tuple[Any, Any, Any]:
    """F and Cov ξ of every gap length, and which gap follows each row."""
    if bits is None:
        return p.transition[None], p.process_cov[None], jnp.zeros(arms.shape[:2], int)
    return *gap_transitions(p.transition, p.process_cov, bits), gaps


def _filtered(p: Parameters, F: Any, Q: Any, rows: Any, keep: Callable[..., Any]) -> Any:
    """Filter one sequence: the last belief and the log-likelihood, and what ``keep`` keeps.

    ``keep`` is called with a row's mean and covariance before any reward, its arms, and each play's
    read-out, gain, scaled innovation and inverse innovation variance.
    """

    def row(carry: Any, now: Any) -> Any:
        arm, reward, mask, gap = now

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
        unroll = min(len(arm), UNROLLED)
        (mean, cov, total), folded = jax.lax.scan(fold, carry, plays, unroll=unroll)
        mean, cov = F[gap] @ mean, F[gap] @ cov @ F[gap].T + Q[gap]
        return (mean, 0.5 * (cov + cov.T), total), keep(*carry[:2], arm, folded)

    return jax.lax.scan(row, (p.initial_mean, p.initial_cov, jnp.zeros(())), rows)


def predicted(parameters: Parameters, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means and variances of rewards given earlier rounds, S × n × m; last Cov z, S × d × d."""
    arrays = (data.arms, data.rewards, data.seen, data.gaps)
    with jax.enable_x64(True):
        means, variances, covs = map(np.asarray, _predicted(parameters, arrays, bits_of(data)))
    return means, variances, covs


@jax.jit
def _predicted(p: Parameters, data: Any, bits: Any) -> Any:
    *arrays, gaps = data
    F, Q, gaps = _steps(p, arrays[0], gaps, bits)

    def keep(mean: Any, cov: Any, arm: Any, _: Any) -> Any:
        reads = p.reads[arm]
        return p.offsets[arm] + reads @ mean, ((reads @ cov) * reads).sum(axis=1) + p.reward_var

    (_, covs, _), kept = jax.vmap(lambda *rows: _filtered(p, F, Q, rows, keep))(*arrays, gaps)
    return *kept, covs


def log_densities(parameters: Parameters, data: Data, extra_var: Any = 0.0) -> np.ndarray:
    """Log-densities of rewards given earlier rounds, S × n × m; ``extra_var`` (k) adds variance."""
    means, variances, _ = predicted(parameters, data)
    variances = variances + np.broadcast_to(extra_var, len(parameters.reads))[data.arms]
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = (data.rewards - means) ** 2 / variances
        return np.asarray(-0.5 * (np.log(2 * math.pi * variances) + squares))


# Backward


@jax.jit
def smoothed(p: Parameters, data: Any, bits: Any) -> Any:
    """`Sums`, except over transitions; and by gap length S₀₀, S₁₀ − Γ S₀₀, R − gQ and the count."""
    *arrays, gaps = data
    F, Q, gaps = _steps(p, arrays[0], gaps, bits)
    each, moved = jax.vmap(lambda *rows: _sequence(p, F, Q, *rows))(*arrays, gaps)
    X, Y, M, count = (part.sum(axis=0) for part in moved)
    if bits is None:
        turned = p.process_cov @ Y.swapaxes(1, 2)
        moved = (X, turned, -p.process_cov @ M @ p.process_cov, count)
    else:
        moved = (*_gap_sums(p, bits, X, Y, M, count), count)
    start_means = each.start_means
    found = Sums(*(part.sum(axis=0) for part in each))
    return found._replace(start_means=start_means), moved


def _sequence(
    p: Parameters, F: Any, Q: Any, arms: Any, rewards: Any, seen: Any, length: Any, gaps: Any
) -> Any:
    d, k, u = p.transition.shape[0], p.reads.shape[0], F.shape[0]
    n, m = arms.shape

    def keep(mean: Any, cov: Any, _: Any, folded: Any) -> Any:
        return mean, cov, *folded

    (_, _, log_likelihood), path = _filtered(p, F, Q, (arms, rewards, seen, gaps), keep)

    def backward(carry: Any, now: Any) -> Any:
        r, N, _, _, sums, moved = carry
        mean, P, reads, gains, scaled, weights, arm, reward, mask, gap, present, has_next = now
        # After the round: r, N as seen from before the next one, through Γ.
        r_after, N_after = F[gap].T @ r, F[gap].T @ N @ F[gap]

        def unfold(after: Any, play: Any) -> Any:
            r, N, fold = after
            read, gain, scale, weight = play
            keep = jnp.eye(d) - jnp.outer(gain, read)
            r = read * scale + keep.T @ r
            N = jnp.outer(read, read) * weight + keep.T @ N @ keep
            return (r, N, fold @ keep), None

        after, plays = (r_after, N_after, jnp.eye(d)), (reads, gains, scaled, weights)
        last, _ = jax.lax.scan(unfold, after, plays, reverse=True, unroll=min(m, UNROLLED))
        r_after, N_after, fold = last
        smooth = mean + P @ r_after
        cov = P - P @ N_after @ P
        cov = 0.5 * (cov + cov.T)
        moment = cov + jnp.outer(smooth, smooth)
        step = has_next.astype(P.dtype)
        X, Y, M, count = moved
        moved = (
            X.at[gap].add(step * moment),
            Y.at[gap].add(step * (jnp.outer(smooth, r) - fold @ P @ F[gap].T @ N)),
            M.at[gap].add(step * (N - jnp.outer(r, r))),
            count.at[gap].add(step),
        )
        plays, paid, squares, means, moments, products = sums
        sums = (
            plays.at[arm].add(mask),
            paid.at[arm].add(mask * reward),
            squares.at[arm].add(mask * reward**2),
            means.at[arm].add(mask[:, None] * smooth),
            moments.at[arm].add(mask[:, None, None] * moment),
            products.at[arm].add((mask * reward)[:, None] * smooth),
        )
        # Padding after a sequence's end carries no information.
        r, N = jnp.where(present, r_after, 0.0), jnp.where(present, N_after, 0.0)
        return (r, N, smooth, cov, sums, moved), None

    zero, one = jnp.zeros((d, d)), jnp.zeros(k)
    sums = (one, one, one, jnp.zeros((k, d)), jnp.zeros((k, d, d)), jnp.zeros((k, d)))
    begun = jnp.zeros((u, d, d))
    last = (jnp.zeros(d), zero, jnp.zeros(d), zero, sums, (begun, begun, begun, jnp.zeros(u)))
    here = jnp.arange(n)
    rows = (*path, arms, rewards, seen, gaps, here < length, here + 1 < length)
    (_, _, start_mean, start_cov, sums, moved), _ = jax.lax.scan(backward, last, rows, reverse=True)
    transitions = (jnp.zeros(()), zero, zero, zero)  # `em.e_step` makes them from ``moved``
    return Sums(log_likelihood, *transitions, start_mean, start_cov, *sums), moved
