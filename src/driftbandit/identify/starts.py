"""Where climbs start: guesses, and moments of the log.

Rewards τ rounds apart are correlated through the state alone,

    Λ_τ[a, b] = E (x_a(t+τ) − o_a)(x_b(t) − o_b) = c_aᵀ Γ^τ Z c_b,   τ ≥ 1,

so that the rows of C = (c_a) span the columns of Λ_1, Λ_2, …, and C⁺Λ_(τ+1) = Γ C⁺Λ_τ. Means over
the pairs of plays that the log holds give C where it is not known, up to the basis of the state,
and Γ by least squares. They are rough, but they know what turns and what changes its sign; from
guesses EM seldom finds that.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from driftbandit import errors
from driftbandit.identify import em
from driftbandit.model import LGDS

__all__ = ["beginning", "of_model"]

LAGS = 5
SMALL = 0.05
"""Directions of the moments below this share of the largest are taken for noise."""
MOST_ARMS = 500
"""For which moments are taken: their number grows with the square."""
RADIUS = 0.98
"""Largest ρ(Γ) to start from."""


def beginning(
    data: em.Data,
    reads: np.ndarray,
    options: em.Options,
    rng: np.random.Generator,
    number: int,
    moments: bool = False,
) -> em.Parameters:
    """Half of the rewards' variance is noise, half is the state.

    Args:
        data: S sequences.
        reads: k × d, what arms read; where that is estimated, the shape alone counts.
        options: what will be estimated.
        rng: draws what is guessed.
        number: of the start; the first turns nothing.
        moments: whether it follows the log's moments instead.
    """
    k, d = reads.shape
    if options.reads:
        reads = _scaled(rng.standard_normal((k, d)))
    seen = data.seen > 0
    offsets = np.zeros(k)
    if options.offsets:
        counts = np.bincount(data.arms[seen], minlength=k)
        sums = np.bincount(data.arms[seen], data.rewards[seen], minlength=k)
        offsets = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / counts.sum())
    left = data.rewards[seen] - offsets[data.arms[seen]]
    least = 2 * em.LEAST * float((data.rewards[seen] ** 2).mean())  # rewards may all be the same
    variance = max(float(left @ left) / len(left), least) or 1.0
    memory = (0.9, 0.5, 0.99)[number % 3] ** (1 / _step(data))
    transition = memory * np.eye(d)
    if number and options.structure == "free":
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        transition = memory * (0.5 * np.eye(d) + 0.5 * turn)
    read = np.ones(d) if options.reads else np.sqrt((reads**2).mean(axis=0))
    units = 1 / np.where(read > 0, read, read.max() or 1.0)  # each state in its feature's own
    transition = units[:, None] * transition / units
    cov = variance / 2 / d * np.diag(units**2)
    found = em.Parameters(
        transition,
        (1 - memory**2) * cov,
        np.asarray(variance / 2),
        np.zeros(d),
        cov,
        reads,
        offsets,
    )
    return _from_moments(found, data, options) if moments else found


def of_model(model: LGDS, begin: em.Parameters, options: em.Options) -> em.Parameters:
    """The numbers of an earlier fit; its constant state, if it has one, is begun anew."""
    d = len(begin.transition)
    if model.n_states not in (d, d + 1) or not model.constants[d:].all():
        problem = f"has {model.n_states} states"
        raise errors.InvalidInput("start", problem, f"give a model of {d}, as fit returned it")
    transition = model.transition[:d, :d]
    radius = float(np.abs(np.linalg.eigvals(transition)).max())
    if options.stable and radius >= 1:  # no step towards the best leads back from there
        transition = transition * (RADIUS / radius)
    return begin._replace(
        transition=transition,
        process_cov=model.process_cov[:d, :d],
        reward_var=np.asarray(max(model.reward_std**2, em.LEAST * float(begin.reward_var))),
        initial_mean=model.start_mean()[:d],
        initial_cov=model.start_cov()[:d, :d],
    )


def _from_moments(begin: em.Parameters, data: em.Data, options: em.Options) -> em.Parameters:
    """A start whose Γ, and what arms read if that is estimated, follow the log's moments.

    Args:
        begin: another start: its noise, offsets and share of the state in the rewards stay.
        data: S sequences.
        options: what will be estimated.
    """
    if len(begin.reads) > MOST_ARMS:
        return begin
    moments = _moments(data, begin.offsets)
    if not moments.any():
        return begin
    reads, transition = _found(moments, begin, options)
    radius = float(np.abs(np.linalg.eigvals(transition)).max())
    largest = RADIUS ** (1 / _step(data))
    transition = transition * min(1.0, largest / max(radius, largest))
    noise = begin.initial_cov / np.trace(begin.initial_cov)
    spread = LGDS(transition, noise, 1.0).stationary_cov()
    if options.structure != "free":
        spread = np.diag(np.diag(spread))
    shown = float(np.einsum("ki,ij,kj->k", reads, spread, reads).mean())
    size = float(begin.reward_var) / max(shown, np.finfo(float).tiny)
    return begin._replace(transition=transition, process_cov=size * noise, reads=reads)


def _scaled(reads: np.ndarray) -> np.ndarray:
    """The basis is free, its scale is not: of one size in all starts, climbs can be compared."""
    k, d = reads.shape
    return np.asarray(reads * np.sqrt(k * d / max((reads**2).sum(), np.finfo(float).tiny)))


def _step(data: em.Data) -> float:
    """The usual number of rounds from a row to the next."""
    if data.gaps is None or data.waits is None:
        return 1.0
    has_next = np.arange(1, data.seen.shape[1] + 1) < data.lengths[:, None]
    passed = data.waits[data.gaps[has_next]]
    return float(np.median(passed)) if len(passed) else 1.0


def _moments(data: em.Data, offsets: np.ndarray) -> np.ndarray:
    """Λ_1, Λ_2, …: k × k each, zero where the log holds no such pair of plays."""
    k, (S, n, _) = len(offsets), data.seen.shape
    left = (data.rewards - offsets[data.arms]) * data.seen
    # Sums over an arm's plays in a row: the work does not grow with the square of their number.
    plays = np.nonzero(data.seen > 0)
    where = plays[0] * n + plays[1], data.arms[plays]
    sums, counts = (
        scipy.sparse.coo_array((part[plays], where), (S * n, k)).tocsr()
        for part in (left, data.seen)
    )
    times, rows = em.times(data), np.arange(S * n).reshape(S, n)
    found = np.zeros((LAGS, k, k))
    for lag in range(1, LAGS + 1):
        pairs = np.zeros((k, k))
        for apart in range(1, min(lag, n - 1) + 1):  # rows, some of them with rounds between
            before = rows[:, :-apart][times[:, apart:] - times[:, :-apart] == lag]
            pairs += (counts[before + apart].T @ counts[before]).toarray()
            found[lag - 1] += (sums[before + apart].T @ sums[before]).toarray()
        found[lag - 1] /= np.maximum(pairs, 1)
    return found


def _found(
    moments: np.ndarray, begin: em.Parameters, options: em.Options
) -> tuple[np.ndarray, np.ndarray]:
    """C, which is ``reads`` unless it is estimated, and Γ."""
    reads, d = begin.reads, begin.reads.shape[1]
    if options.reads:
        reads = np.linalg.svd(np.hstack(list(moments)), full_matrices=False)[0][:, :d]
        seen = np.abs(moments).sum(axis=(0, 2)) > 0
        reads = _scaled(np.where(seen[:, None], reads, reads.mean(axis=0)))
    shown = np.linalg.pinv(reads) @ moments
    held = np.asarray(moments.any(axis=(1, 2)))  # a lag without a pair of plays says nothing
    lags = np.flatnonzero(held[:-1] & held[1:])
    if not lags.size:  # Γ = 0 would be a fixed point of EM
        return reads, begin.transition
    before, after = (np.hstack(list(shown[lags + i])) for i in (0, 1))
    transition = after @ np.linalg.pinv(before, rcond=SMALL)
    if options.structure == "free":
        return reads, transition
    if options.structure == "scalar":
        return reads, np.eye(d) * np.trace(transition) / d
    values, vectors = np.linalg.eig(transition)
    if options.reads and np.isreal(values).all():  # in the basis in which it is diagonal
        return _scaled(reads @ vectors.real), np.diag(values.real)
    return reads, np.diag(np.diag(transition))
