"""From what was learned to a model: a new run's start, the offsets and their doubt."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.identify import em, waits
from driftbandit.model import LGDS

__all__ = ["assembled", "offset_cov", "start_law"]

LASTING = 100.0
"""Memory of what is not known of the offsets, in lengths of the log.

It is finite so that the model has a stationary law, of the covariance that is left of them after
the log: an agent learns them, and forgets what it learned more slowly than any log could show.
"""
LONGEST = 1e9
"""Most rounds of it: 1 − 1/m must still be below 1 by more than rounding."""
MOST_STATES = 64
"""Of a filter that holds all arms' offsets; with more, offsets are taken to be known."""


def start_law(parameters: em.Parameters, sequences: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a new run's start: the log's, and d + 1 of runs that had settled.

    The starts of a few sequences can be matched as closely as one likes; that predicts no other.
    """
    mean, cov = parameters.initial_mean, parameters.initial_cov
    settled = LGDS(parameters.transition, parameters.process_cov, 1.0)
    if not settled.is_stable:
        return mean, cov
    own = sequences / (sequences + len(mean) + 1)
    blend = own * cov + (1 - own) * (settled.stationary_cov() + own * np.outer(mean, mean))
    return own * mean, blend


def assembled(
    parameters: em.Parameters,
    start: tuple[np.ndarray, np.ndarray],
    offsets: bool,
    doubt: np.ndarray | None = None,
    span: float = 1.0,
) -> tuple[LGDS, np.ndarray]:
    """The model, and what the arms read of it.

    With offsets its states are those that drift; if they are in doubt, one for each arm, which
    holds what its offset differs from the estimate by; and a known constant 1.

    Args:
        parameters: of the rewards as they are, d states.
        start: mean and covariance of the d states.
        offsets: whether arms have any.
        doubt: k × k, the covariance of the offsets' errors; None: they are known.
        span: of the log, in rounds.
    """
    std, (mean, cov) = np.sqrt(parameters.reward_var), start
    if not offsets:
        model = LGDS(
            parameters.transition, parameters.process_cov, std, cov, mean if mean.any() else None
        )
        return model, parameters.reads
    k = len(parameters.reads)
    transitions, noises, covs = [parameters.transition], [parameters.process_cov], [cov]
    means, reads = [mean], [parameters.reads]
    if doubt is not None:
        keep = float(np.exp(-1 / min(LASTING * max(span, 1.0), LONGEST)))
        transitions.append(keep * np.eye(k))
        noises.append((1 - keep**2) * doubt)
        covs.append(doubt)
        means.append(np.zeros(k))
        reads.append(np.eye(k))
    model = LGDS(
        _blocks([*transitions, np.eye(1)]),
        _blocks([*noises, np.zeros((1, 1))]),
        std,
        _blocks([*covs, np.zeros((1, 1))]),
        np.concatenate([*means, [1.0]]),
    )
    return model, np.column_stack([*reads, parameters.offsets])


def _blocks(parts: list[np.ndarray]) -> np.ndarray:
    """Matrices along the diagonal; some may have no rows."""
    size = sum(len(part) for part in parts)
    whole, place = np.zeros((size, size)), 0
    for part in parts:
        end = place + len(part)
        whole[place:end, place:end] = part
        place = end
    return whole


def offset_cov(parameters: em.Parameters, data: em.Data, variance: float) -> np.ndarray | None:
    """Covariance of the offsets' errors, k × k, the other parameters as they are.

    Each sequence's filter holds the offsets beside the state; what all sequences tell adds up,

        C⁻¹ = V⁻¹ + Σ_s (C_s⁻¹ − V⁻¹),   V = variance · I.

    Args:
        parameters: d states.
        data: S sequences.
        variance: of offsets before anything is seen.

    Returns:
        The covariance; None where the filter would be too large.
    """
    k, d = parameters.reads.shape
    if k + d > MOST_STATES:
        return None
    bits = None if data.waits is None else waits.bits_of(data.waits)
    with jax.enable_x64(True):
        covs = _offset_covs(parameters, variance, data.arms, data.seen, data.gaps, bits)
    before = np.eye(k) / variance
    told = sum(np.linalg.inv(np.asarray(cov)) - before for cov in covs)
    cov = np.linalg.inv(before + told)
    return np.asarray(0.5 * (cov + cov.T))


@jax.jit
def _offset_covs(
    p: em.Parameters, variance: Any, arms: Any, seen: Any, gaps: Any, bits: Any
) -> Any:
    k, d = p.reads.shape
    if bits is None:
        F, Q, gaps = p.transition[None], p.process_cov[None], jnp.zeros(arms.shape[:2], int)
    else:
        F, Q = waits.steps(p.transition, p.process_cov, bits)
    reads = jnp.hstack([p.reads, jnp.eye(k)])
    whole = jnp.zeros((len(F), k + d, k + d)).at[:, d:, d:].set(jnp.eye(k)).at[:, :d, :d].set(F)
    noise = jnp.zeros((len(F), k + d, k + d)).at[:, :d, :d].set(Q)
    start = variance * jnp.eye(k + d)
    start = start.at[:d, :d].set(p.initial_cov)

    def row(cov: Any, now: Any) -> Any:
        arm, mask, gap = now

        def fold(cov: Any, play: Any) -> Any:
            read, there = play
            cross = cov @ read
            spread = read @ cross + p.reward_var
            weight = jnp.where(spread > 0, there / spread, 0.0)
            return cov - jnp.outer(cross, cross) * weight, None

        cov, _ = jax.lax.scan(fold, cov, (reads[arm], mask))
        cov = whole[gap] @ cov @ whole[gap].T + noise[gap]
        return 0.5 * (cov + cov.T), None

    def sequence(arms: Any, seen: Any, gaps: Any) -> Any:
        return jax.lax.scan(row, start, (arms, seen, gaps))[0][d:, d:]

    return jax.vmap(sequence)(arms, seen, gaps)
