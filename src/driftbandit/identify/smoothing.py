"""The E-step's two passes: filter forward, smooth backward, and add up (see `em`)."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from driftbandit.identify import waits
from driftbandit.identify.quantities import Parameters, Sums

__all__ = ["UNROLLED", "smoothed"]

UNROLLED = 4
"""Plays of a round that are compiled one by one; more would compile for minutes."""


@jax.jit
def smoothed(parameters: Parameters, data: Any, bits: Any) -> Any:
    """`Sums` but for the transitions, and what `em` makes those of.

    Args:
        parameters: the current ones.
        data: arms, rewards, seen, lengths and gaps, as `Data` has them.
        bits: of ``Data.waits``; None: every gap is one round.

    Returns:
        The sums; and of every length of gaps S₀₀, S₁₀ − Γ S₀₀, R − gQ and how many there are.
    """
    p, (*arrays, gaps) = parameters, data
    if bits is None:
        F, Q = p.transition[None], p.process_cov[None]
        gaps = jnp.zeros(arrays[0].shape[:2], int)
    else:
        F, Q = waits.steps(p.transition, p.process_cov, bits)
    each, moved = jax.vmap(lambda *rows: _sequence(p, F, Q, *rows))(*arrays, gaps)
    X, Y, M, count = (part.sum(axis=0) for part in moved)
    if bits is None:
        turned = p.process_cov @ Y.swapaxes(1, 2)
        moved = (X, turned, -p.process_cov @ M @ p.process_cov, count)
    else:
        moved = (*waits.sums(p.transition, p.process_cov, bits, X, Y, M, count), count)
    found = Sums(
        *(
            part if name == "start_means" else part.sum(axis=0)
            for name, part in zip(Sums._fields, each, strict=True)
        )
    )
    return found, moved


def _sequence(
    p: Parameters, F: Any, Q: Any, arms: Any, rewards: Any, seen: Any, length: Any, gaps: Any
) -> Any:
    d, k, u = p.transition.shape[0], p.reads.shape[0], F.shape[0]
    n, m = arms.shape
    there = jnp.arange(n) < length

    def forward(carry: Any, now: Any) -> Any:
        mean, cov, total = carry
        arm, reward, mask, gap = now
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
        mean, cov = F[gap] @ mean, F[gap] @ cov @ F[gap].T + Q[gap]
        return (mean, 0.5 * (cov + cov.T), total), (*start, *kept)

    carry = (p.initial_mean, p.initial_cov, jnp.zeros(()))
    (_, _, log_likelihood), path = jax.lax.scan(forward, carry, (arms, rewards, seen, gaps))

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

        after = (r_after, N_after, jnp.eye(d))
        folded = (reads, gains, scaled, weights)
        (r_after, N_after, fold), _ = jax.lax.scan(
            unfold, after, folded, reverse=True, unroll=min(m, UNROLLED)
        )
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
        plays = plays.at[arm].add(mask)
        paid = paid.at[arm].add(mask * reward)
        squares = squares.at[arm].add(mask * reward**2)
        means = means.at[arm].add(mask[:, None] * smooth)
        moments = moments.at[arm].add(mask[:, None, None] * moment)
        products = products.at[arm].add((mask * reward)[:, None] * smooth)
        sums = (plays, paid, squares, means, moments, products)
        # Rounds after a sequence's end tell nothing.
        r, N = jnp.where(present, r_after, 0.0), jnp.where(present, N_after, 0.0)
        return (r, N, smooth, cov, sums, moved), None

    zero, one = jnp.zeros((d, d)), jnp.zeros(k)
    sums = (one, one, one, jnp.zeros((k, d)), jnp.zeros((k, d, d)), jnp.zeros((k, d)))
    begun = jnp.zeros((u, d, d))
    last = (jnp.zeros(d), zero, jnp.zeros(d), zero, sums, (begun, begun, begun, jnp.zeros(u)))
    has_next = jnp.arange(1, n + 1) < length
    rows = (*path, arms, rewards, seen, gaps, there, has_next)
    (_, _, start_mean, start_cov, sums, moved), _ = jax.lax.scan(backward, last, rows, reverse=True)
    unmoved = (zero, zero, zero)  # `_with_moves` adds them up
    return Sums(log_likelihood, jnp.zeros(()), *unmoved, start_mean, start_cov, *sums), moved
