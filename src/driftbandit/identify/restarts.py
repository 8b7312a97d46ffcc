"""EM restarts: starting points, from guesses and from moments of the log, and the best run.

Rewards τ rounds apart are correlated through the state alone,

    Λ_τ[a, b] = E (x_a(t+τ) − o_a)(x_b(t) − o_b) = c_aᵀ Γ^τ Z c_b,   τ ≥ 1,

so that the rows of C = (c_a) span the columns of Λ_1, Λ_2, …, and C⁺Λ_(τ+1) = Γ C⁺Λ_τ. Averages
over pairs of plays estimate Λ_τ; they give C, if it is unknown, up to a change of basis, and then Γ
by least squares. They are noisy, but show rotations and sign changes, which EM seldom finds from a
guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse

from driftbandit import errors
from driftbandit.identify import em
from driftbandit.identify.data import Data, Parameters, Units, times
from driftbandit.model import LGDS

LAGS = 5
SMALL = 0.05  # directions of the moments below this share of the largest count as noise
MOST_ARMS = 500  # beyond it no moments are taken: their number grows with the square
RADIUS = 0.98  # largest ρ(Γ) of a starting point


class Share(float):
    """The share of a fit's work that is done, with the EM ``iterations`` so far.

    `fit` calls its ``progress`` with it.

    Example:
        >>> def show(share):
        ...     print(f"{share:.0%} done, {share.iterations} EM iterations")
        >>> report = Progress(show).part(share=0.5, iterations=20)  # as fit does
        >>> report(0.5)
        25% done, 10 EM iterations
    """

    iterations: int


class Progress:
    """Adds up the parts of a fit's work and reports to the caller."""

    def __init__(self, report: Callable[[Share], None] | None) -> None:
        self._report = report
        self._iterations = 0
        self.share = 0.0  # of the work that has been handed out

    def part(self, share: float, iterations: int) -> Callable[[float], None]:
        """The callback of the next part, which is ``share`` of all work."""
        begin, done = self.share, self._iterations
        self.share += share

        def report(part: float) -> None:
            self._iterations = done + round(part * iterations)
            if self._report is not None:
                now = Share(begin + part * share)
                now.iterations = self._iterations
                self._report(now)

        return report


class Task(NamedTuple):
    """What to learn, and from what."""

    data: Data  # in ``units``
    n_arms: int  # k
    features: np.ndarray | None  # k × d; None: estimate read-outs, or one state per arm
    options: em.Options
    prior: float | None  # as `fit` takes it
    rng: np.random.Generator  # draws the starting points
    limits: tuple[int, float]  # iterations and tolerance of an EM run
    units: Units


def best_run(
    task: Task,
    n_states: int,
    reports: Callable[[int], Callable[[float], None]],
    restarts: int = 1,
    start: LGDS | None = None,
) -> em.Run:
    """The most likely of several EM runs; ``reports`` gives each run's progress callback."""
    reads = np.eye(task.n_arms, n_states) if task.features is None else task.features
    k, d = reads.shape
    options = task.options._replace(reads=task.features is None and d < k)
    by_moments = 0 if task.features is None else 1  # EM seldom finds read-outs from a guess
    rounds = d**2 / 5 if task.prior is None else task.prior
    runs: list[em.Run] = []
    for number in range(restarts):
        begin = starting_point(task.data, reads, options, task.rng, number, number == by_moments)
        if options.structure == "free" and rounds > 0:
            options = options._replace(prior=em.Prior(rounds, begin.initial_cov / 2))
        if start is not None and number == 0:
            begin = _from_model(start, begin, options)
        runs.append(em.run(begin, task.data, options, *task.limits, reports(number)))
    return max(runs, key=lambda run: run[1][-1])


def starting_point(
    data: Data,
    reads: np.ndarray,
    options: em.Options,
    rng: np.random.Generator,
    number: int,
    moments: bool = False,
) -> Parameters:
    """A guess, in which half of the rewards' variance is noise; or one from the log's moments.

    If read-outs are estimated, only the shape of ``reads`` counts.
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
    # Each state in the units of its feature.
    units = 1 / np.where(read > 0, read, read.max() or 1.0)
    transition = units[:, None] * transition / units
    cov = variance / 2 / d * np.diag(units**2)
    noise, reward_var = (1 - memory**2) * cov, np.asarray(variance / 2)
    found = Parameters(transition, noise, reward_var, np.zeros(d), cov, reads, offsets)
    return _from_moments(found, data, options) if moments else found


def _from_model(model: LGDS, begin: Parameters, options: em.Options) -> Parameters:
    """The dynamics of an earlier fit; offsets start anew."""
    d = len(begin.transition)
    if model.n_states not in (d, d + 1) or not model.constants[d:].all():
        problem = f"has {model.n_states} states"
        raise errors.InvalidInput("start", problem, f"give a model of {d}, as fit returned it")
    transition = model.transition[:d, :d]
    radius = em.radius_of(transition)
    if options.stable and radius >= 1:  # EM would not return from there
        transition = transition * (RADIUS / radius)
    return begin._replace(
        transition=transition,
        process_cov=model.process_cov[:d, :d],
        reward_var=np.asarray(max(model.reward_std**2, em.LEAST * float(begin.reward_var))),
        initial_mean=model.start_mean()[:d],
        initial_cov=model.start_cov()[:d, :d],
    )


def _from_moments(begin: Parameters, data: Data, options: em.Options) -> Parameters:
    """``begin`` with Γ, and read-outs if they are estimated, from the log's moments."""
    if len(begin.reads) > MOST_ARMS:
        return begin
    moments = moments_of(data, begin.offsets)
    if not moments.any():
        return begin
    reads, transition = _reads_and_transition(moments, begin, options)
    largest = RADIUS ** (1 / _step(data))
    transition = transition * min(1.0, largest / max(em.radius_of(transition), largest))
    noise = begin.initial_cov / np.trace(begin.initial_cov)
    spread = LGDS(transition, noise, 1.0).stationary_cov()
    if options.structure != "free":
        spread = np.diag(np.diag(spread))
    shown = float(np.einsum("ki,ij,kj->k", reads, spread, reads).mean())
    size = float(begin.reward_var) / max(shown, np.finfo(float).tiny)
    return begin._replace(transition=transition, process_cov=size * noise, reads=reads)


def _scaled(reads: np.ndarray) -> np.ndarray:
    """Read-outs of one size in all restarts, so that their priors can be compared."""
    k, d = reads.shape
    return np.asarray(reads * np.sqrt(k * d / max((reads**2).sum(), np.finfo(float).tiny)))


def _step(data: Data) -> float:
    """The median number of rounds from a row to the next."""
    if data.gaps is None or data.gap_lengths is None:
        return 1.0
    has_next = np.arange(1, data.seen.shape[1] + 1) < data.lengths[:, None]
    passed = data.gap_lengths[data.gaps[has_next]]
    return float(np.median(passed)) if len(passed) else 1.0


def moments_of(data: Data, offsets: np.ndarray) -> np.ndarray:
    """Λ_1, Λ_2, …: k × k each, zero where the log holds no such pair of plays."""
    k, (S, n, _) = len(offsets), data.seen.shape
    left = (data.rewards - offsets[data.arms]) * data.seen
    # First sum an arm's plays in a row: the work must not grow with the square of their number.
    plays = np.nonzero(data.seen > 0)
    where = plays[0] * n + plays[1], data.arms[plays]
    tables = [((part[plays], where), (S * n, k)) for part in (left, data.seen)]
    sums, counts = (scipy.sparse.coo_array(*table).tocsr() for table in tables)
    when, rows = times(data), np.arange(S * n).reshape(S, n)
    found = np.zeros((LAGS, k, k))
    for lag in range(1, LAGS + 1):
        pairs = np.zeros((k, k))
        for apart in range(1, min(lag, n - 1) + 1):  # rows; there may be gaps
            before = rows[:, :-apart][when[:, apart:] - when[:, :-apart] == lag]
            pairs += (counts[before + apart].T @ counts[before]).toarray()
            found[lag - 1] += (sums[before + apart].T @ sums[before]).toarray()
        found[lag - 1] /= np.maximum(pairs, 1)
    return found


def _reads_and_transition(
    moments: np.ndarray, begin: Parameters, options: em.Options
) -> tuple[np.ndarray, np.ndarray]:
    """C, estimated or as it is, and Γ."""
    reads, d = begin.reads, begin.reads.shape[1]
    if options.reads:
        reads = np.linalg.svd(np.hstack(list(moments)), full_matrices=False)[0][:, :d]
        seen = np.abs(moments).sum(axis=(0, 2)) > 0
        reads = _scaled(np.where(seen[:, None], reads, reads.mean(axis=0)))
    shown = np.linalg.pinv(reads) @ moments
    held = np.asarray(moments.any(axis=(1, 2)))  # some lags may have no pairs of plays
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
    if options.reads and np.isreal(values).all():  # in the basis where Γ is diagonal
        return _scaled(reads @ vectors.real), np.diag(values.real)
    return reads, np.diag(np.diag(transition))
