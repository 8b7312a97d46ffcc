"""Lower bounds on regret: what is left when the state is known as well as it can be.

A policy plays well by what it knows, ẑ; the best arm follows the state itself, z. Both have the
mean m = E z, and Cov ẑ = Z − P. So a round costs at least E max ⟨a, N(m, Z)⟩ − E max ⟨a, N(m, Z −
P′)⟩, where P′ is below the error covariance of any policy: on the sphere with the whole state seen
(Theorem 2, P8), on a finite set with all rewards seen, which is the Kalman Oracle (Theorem 3, P11):
less knowledge is a mean over more, and a mean lowers what is convex. In the paper m = 0; here known
constants (offsets) keep it up, and a start decays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy

from driftbandit import errors, steady_state
from driftbandit.gaussian import lines, quasi_random
from driftbandit.gaussian.normal import expected_norm, unit_length
from driftbandit.model import LGDS, checked_arms, same_cov
from driftbandit.system import takes_system
from driftbandit.theory import checks

__all__ = ["Bound", "finite_lower_bound", "printed_finite_lower_bound", "sphere_lower_bound"]

FIRST, LAST = 8, 15
"""Points per scramble are doubled from 2^FIRST to at most 2^LAST."""
WORK = 1 << 31
"""Scores (points × arms × rounds) beyond which points are not doubled any more."""
BLOCK = 1 << 20
"""Scores held at once."""
STILL = 1e-12
"""Rounds whose means and covariances differ by less share one average."""
BENDS = 8
"""Scores that one costs where arms have offsets: the bends of an envelope."""
MOST_ROUNDS = 10**6
FIRST_STRETCH = "give rounds= for the mean over a first stretch"


class Bound(NamedTuple):
    """A regret per round, and how exactly it is known."""

    value: float
    error: float
    """Half-width of an interval that holds the truth in 99 % of cases; rounding, if exact."""


def sphere_lower_bound(model: LGDS, error_cov: Any = None, rounds: int | None = None) -> Bound:
    """Regret per round of any policy whose arms are the unit sphere (Theorem 2, P8).

        E ‖N(m, Z)‖ − E ‖N(m, Z − P′)‖,   P′ ⪯ P(t|t−1) for all t,   m = E z

    By default P′ is the steady error covariance when every state is seen, each with noise σ: one
    unit arm tells less, since a aᵀ ⪯ I. Both means are one-dimensional integrals, exact to
    rounding.

    Args:
        model: Γ, Q, σ; ρ(Γ) < 1 unless ``rounds`` is given.
        error_cov: a P′ of your own, d × d, at most Z. That no filter does better is for you to
            know: a P′ that is too large gives a number that is no bound.
        rounds: n; the mean over rounds 0 … n−1 from the model's own start, with P′(t) from there.
            None: a state that has settled.

    Returns:
        `Bound`.

    Example:
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> round(sphere_lower_bound(model).value, 6)
        0.885932
    """
    if rounds is None:
        checks.check_stationary(model, remedy=FIRST_STRETCH)
    if error_cov is not None and rounds is not None:
        raise errors.InvalidInput("error_cov", "was given beside rounds", "give one of the two")
    if error_cov is not None:
        P = checks.error_cov(error_cov, model, "error_cov")
        laws = [_Law(model.stationary_mean(), model.stationary_cov(), P, 1)]
    else:
        laws = list(_laws(model, np.eye(model.n_states), rounds))
    value = error = 0.0
    for mean, Z, P, weight in laws:
        if not _outgrown(Z, P):
            length = expected_norm(mean, Z)
            value += weight * (length - expected_norm(mean, Z - P))
            error += weight * 1e-14 * length
    total = sum(law.weight for law in laws)
    return Bound(max(value / total, 0.0), error / total)


@takes_system
def finite_lower_bound(
    model: LGDS, arms: Any, rounds: int | None = None, accuracy: float = 1e-3
) -> Bound:
    """Regret per round of any policy on these arms: the Kalman Oracle's own (Theorem 3, P11).

        E max_a ⟨a, N(m, Z)⟩ − E max_a ⟨a, N(m, Z − P_A)⟩,   m = E z

    Exact, where the printed Theorem 3 (`printed_finite_lower_bound`) is not. The difference is
    averaged over quasi-random points, both laws read off the same ones. Along a line through the
    mean the highest score is an envelope of lines, whose mean is known (for m = 0 it is half the
    range of scores, times the mean length of a point): only directions, up to sign, are sampled.

    Args:
        model: Γ, Q, σ; ρ(Γ) < 1 unless ``rounds`` is given.
        arms: k × d.
        rounds: n; the mean over rounds 0 … n−1 from the model's own start, for a filter that sees
            all rewards from there: a bound for runs of that length. None: a state that has
            settled.
        accuracy: wanted ``error``, as a share of the value; points are doubled until it is
            reached, or 2¹⁵ for each of 16 scrambles are used. `Bound.error` says what was reached.

    Returns:
        `Bound`.

    Example:
        >>> model = LGDS([[0.5]], [[0.75]], reward_std=1e-9)  # the state's variance is 1
        >>> bound = finite_lower_bound(model, [[1.0], [-1.0]])  # all is known but the last shock
        >>> round(bound.value, 6) == round(math.sqrt(2 / math.pi) * (1 - 0.5), 6)
        True
    """
    rows = checked_arms(arms, model)
    if rounds is None:
        checks.check_stationary(model, remedy=FIRST_STRETCH)
    accuracy = errors.number(accuracy, "accuracy", low=0, strict=True)
    # Only differences between arms count, and these span r ≤ min(k − 1, d) directions.
    moving = model.without_offsets(rows)
    left, sizes, right = np.linalg.svd(moving - moving[0], full_matrices=False)
    kept = sizes > 1e-13 * sizes[0]
    places, seen = left[:, kept] * sizes[kept], right[kept]
    if not kept.any():  # all arms are equal, or differ by what is known
        return Bound(0.0, 0.0)
    games, total = [], 0
    for mean, Z, P, weight in _laws(model, rows, rounds):
        total += weight
        full, error = seen @ Z @ seen.T, seen @ P @ seen.T
        if not _outgrown(full, error):
            games.append(_Game(rows @ mean, *_coupled(full, full - error), weight))
    if not games:
        return Bound(0.0, 0.0)
    r = len(seen)
    level = all(np.ptp(game.offsets) == 0 for game in games)
    mean_gaps = _mean_gaps if level else _mean_gaps_of_rounds
    points = quasi_random.sources(r if level else r + 1)
    each = len(rows) * (len(games) if level else BENDS)
    most = min(WORK // (each * len(points)), 1 << LAST)
    sums, count, size = np.zeros(len(points)), 0, 1 << FIRST
    while True:
        for scramble, source in enumerate(points):
            sums[scramble] += mean_gaps(source.random(size), places, games) * size / total
        count += size
        means = unit_length(r) * sums / count
        value = float(means.mean())
        error = float(quasi_random.half_width(means))
        if error <= accuracy * value or 2 * count > most:
            break
        size = count
    scale = sum(
        weight * (np.linalg.norm(places @ full, axis=1).max() + np.ptp(offsets))
        for offsets, full, _, weight in games
    )
    return Bound(max(value, 0.0), error + 1e-14 * float(scale) / total)


@takes_system
def printed_finite_lower_bound(model: LGDS, arms: Any) -> float:
    """Theorem 3's number per round, as printed: **not a bound** in general (P11).

        Σ_i Σ_j √( 2 (a_j − a_i)ᵀ Z (a_j − a_i) / (tr(Ψ_i|j)^(2k−2) |Σ̃_i|j|) )

    Σ̃_i|j is the covariance of A_i ẑ given A_j z for the Kalman Oracle's ẑ, and tr Ψ_i|j =
    tr Σ̃⁻¹ + tr(Πᵀ Σ̃⁻¹ Π) with Π = A_i Z̃ A_jᵀ (A_j Z A_jᵀ)⁻¹ A_j, Z̃ = Z − P_A. With state and
    noise c times as large (Q c², σ c) it is c^k times as large and every regret c times, so that
    a large enough c makes it exceed the regret of the best policy; with arms c times as large
    instead, the same rewards give another number. `finite_lower_bound` is exact.

    Args:
        model: Γ, Q, σ with ρ(Γ) < 1 and a mean of zero.
        arms: k × d with k − 1 ≤ d, no two differences of arms in line: else A_j Z A_jᵀ has no
            inverse and the formula no value.

    Example:
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> printed = printed_finite_lower_bound(model, np.eye(2))
        >>> finite_lower_bound(model, np.eye(2)).value < printed  # the Oracle beats it
        True
    """
    rows = checked_arms(arms, model)
    checks.check_stationary(model)
    checks.check_no_offsets(model, "finite_lower_bound knows offsets")
    k = len(rows)
    Z = model.stationary_cov()
    predicted = Z - steady_state.oracle_cov(model, rows)
    rank = np.linalg.matrix_rank(rows - rows[0])
    if rank < k - 1:
        raise errors.InvalidInput(
            "arms",
            f"differ in {rank} directions, and there are {k} ({model.n_states} states)",
            "the printed formula needs k − 1 of them; finite_lower_bound does not",
        )
    A = [np.delete(rows[i] - rows, i, axis=0) for i in range(k)]
    logs = []
    for i in range(k):
        for j in range(k):
            if i == j:
                continue  # a_j − a_i = 0
            try:
                regression = np.linalg.solve(A[j] @ Z @ A[j].T, A[j] @ predicted @ A[i].T).T
                given = A[i] @ predicted @ A[i].T - regression @ A[j] @ predicted @ A[i].T
                inverse = np.linalg.inv(np.linalg.cholesky(0.5 * (given + given.T)))
            except np.linalg.LinAlgError:
                raise errors.InvalidInput(
                    "arms",
                    f"Σ̃ of arms {i} and {j} has no inverse ({k} arms in {model.n_states} states)",
                    "the printed formula needs it; finite_lower_bound does not",
                ) from None
            trace = np.sum(inverse**2) + np.sum((inverse @ regression @ A[j]) ** 2)
            gap = (rows[j] - rows[i]) @ Z @ (rows[j] - rows[i])
            half_log_det = -np.log(np.diag(inverse)).sum()
            logs.append(0.5 * np.log(2 * gap) - (k - 1) * np.log(trace) - half_log_det)
    size = float(scipy.special.logsumexp(logs)) if logs else -math.inf
    return math.exp(size) if size < 700 else math.inf


class _Law(NamedTuple):
    """What is known when the rewards of some arms are, for so many rounds."""

    mean: np.ndarray
    """m."""
    cov: np.ndarray
    """Z."""
    error: np.ndarray
    """P."""
    weight: int


def _laws(model: LGDS, seen: np.ndarray, rounds: int | None) -> Iterator[_Law]:
    """Of a settled state, or round by round, when the rewards of ``seen`` are known."""
    if rounds is None:
        P = steady_state.oracle_cov(model, seen)
        yield _Law(model.stationary_mean(), model.stationary_cov(), P, 1)
        return
    rounds = errors.whole_number(rounds, "rounds", low=1, high=MOST_ROUNDS)
    ends = model.state_mean(rounds), model.state_cov(rounds)
    if not all(np.isfinite(part).all() for part in ends):
        raise errors.InvalidInput(
            "rounds", f"is {rounds}", "the state outgrows the largest number by then; give fewer"
        )
    mean, Z, first = model.start_mean(), model.start_cov(), None
    largest = np.abs(mean)
    for P in itertools.islice(steady_state.oracle_path(model, seen), rounds):
        if first is not None and _same(first, _Law(mean, Z, P, 1), largest):
            first = first._replace(weight=first.weight + 1)
        else:
            if first is not None:
                yield first
            first = _Law(mean, Z, P, 1)
        mean = model.transition @ mean
        largest = np.maximum(largest, np.abs(mean))
        Z = model.transition @ Z @ model.transition.T + model.process_cov
    if first is not None:
        yield first


def _same(law: _Law, later: _Law, largest: np.ndarray) -> bool:
    """Whether nothing has moved; means, by a share of the largest that each state has had."""
    still = np.abs(later.mean - law.mean) <= STILL * largest
    covs = (later.cov, law.cov), (later.error, law.error)
    return bool(still.all()) and all(same_cov(*pair, STILL) for pair in covs)


def _outgrown(Z: np.ndarray, P: np.ndarray) -> bool:
    """Whether the error is so small beside the state that the gap drowns in rounding.

    Such rounds, of a state that grows without end, count as zero, which keeps the bound one.
    """
    return bool(np.linalg.eigvalsh(P)[-1] < 1e-18 * np.linalg.eigvalsh(Z)[-1])


def _coupled(full: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors of two covariances that keep the same normal point's images close together.

    Both are symmetric roots times the same rotation, the one that puts the first coordinates,
    where quasi-random points are most even, along the widest directions.
    """
    values, vectors = np.linalg.eigh(full)
    order = np.argsort(-values)
    values, vectors = np.maximum(values[order], 0), vectors[:, order]
    roots, axes = np.linalg.eigh(known)
    root = (axes * np.sqrt(np.maximum(roots, 0))) @ axes.T
    return vectors * np.sqrt(values), root @ vectors


class _Game(NamedTuple):
    """The arms' scores under one law, but for their places among the directions that count."""

    offsets: np.ndarray
    """⟨a, m⟩, k numbers."""
    full: np.ndarray
    """What makes the state of a unit normal point, r × r."""
    known: np.ndarray
    """What makes the prediction of it, r × r."""
    weight: int


def _directions(cube: np.ndarray) -> np.ndarray:
    normal = quasi_random.normal(cube)
    lengths = np.linalg.norm(normal, axis=1, keepdims=True)
    return np.asarray(normal / np.where(lengths > 0, lengths, 1.0))


def _mean_gaps(cube: np.ndarray, places: np.ndarray, games: list[_Game]) -> float:
    """The mean of max ⟨a, z⟩ − max ⟨a, ẑ⟩ over points of the unit cube, as unit vectors and signs.

    In units of the points' mean length, summed over rounds. Without offsets the mean of max over
    both signs is half the range from the lowest to the highest score.
    """
    directions = _directions(cube)
    size = max(1, BLOCK // len(places))
    total = 0.0
    for _, full, known, weight in games:
        for first in range(0, len(directions), size):
            block = directions[first : first + size]
            total += (
                weight
                * 0.5
                * float(
                    np.ptp(block @ (places @ full).T, axis=1).sum()
                    - np.ptp(block @ (places @ known).T, axis=1).sum()
                )
            )
    return total / len(directions)


def _mean_gaps_of_rounds(cube: np.ndarray, places: np.ndarray, games: list[_Game]) -> float:
    """`_mean_gaps` where arms have offsets; a point's first coordinate is its round."""
    k, r = places.shape
    ends = np.cumsum([game.weight for game in games])
    which = np.searchsorted(ends, cube[:, 0] * ends[-1], side="right").clip(max=len(games) - 1)
    directions = _directions(cube[:, 1:])
    offsets, full, known = (np.stack([game[part] for game in games]) for part in range(3))
    size = max(1, BLOCK // max(k, r * r))
    total = 0.0
    for first in range(0, len(cube), size):
        block, game = directions[first : first + size, :, None], which[first : first + size]
        for root, sign in ((full, 1), (known, -1)):
            slopes = (root[game] @ block)[:, :, 0] @ places.T
            total += sign * float(lines.radial_gain(offsets[game], slopes, r).sum())
    return total / len(cube) * int(ends[-1]) / unit_length(r)
