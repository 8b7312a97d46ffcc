"""Bounds on regret: below that of any policy (P8, P11), above that of a Kalman policy (P12, P18).

A policy chooses by the prediction ẑ; the best arm follows the state z. Both have the mean m = E z,
and Cov ẑ = Z − P. So a round costs at least

    E max ⟨a, N(m, Z)⟩ − E max ⟨a, N(m, Z − P′)⟩,

where P′ is below the error covariance of any policy: with the whole state observed on the sphere
(Theorem 2), with all rewards observed on a finite set, which is the Kalman Oracle (Theorem 3). The
paper has m = 0; here known constants (offsets) add to m, and the mean of the start decays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy

from driftbandit import errors, kalman, steady_state
from driftbandit.arrays import Array, namespace
from driftbandit.gaussian import lines, quasi_random
from driftbandit.gaussian.norms import expected_norm, unit_length
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, checked_arms, same_cov
from driftbandit.policies.optimistic import Bonus
from driftbandit.system import takes_system
from driftbandit.theory import checks

FIRST, LAST = 8, 15  # points per scramble are doubled from 2^FIRST to at most 2^LAST
WORK = 1 << 31  # scores (points × arms × rounds) beyond which points are not doubled
BLOCK = 1 << 20  # scores held at once
STILL = 1e-12  # rounds whose means and covariances differ by less share one average
BENDS = 8  # cost of an envelope of lines, needed if arms have offsets, in scores
MAX_ROUNDS = 10**6
GIVE_ROUNDS = "give rounds= to average over the first rounds"
OVERFLOWS = "the state overflows by then; give fewer"


class Bound(NamedTuple):
    """A lower bound on the regret per round (P8, P11).

    ``error`` is half of a 99% interval, or the rounding error if the value is exact.

    Example:
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> bound = finite_lower_bound(model, [[1.0, 0.0], [0.0, 1.0]], accuracy=0.01)
        >>> round(bound.value, 2), bound.error <= 0.01 * bound.value
        (0.4, True)
        >>> sphere_lower_bound(model).error < 1e-12  # exact
        True
    """

    value: float
    error: float


class RegretBound(NamedTuple):
    """A round's regret and its upper bound (Theorem 4, P12); or those of n rounds, as arrays.

    Example:
        >>> from driftbandit.policies import kode
        >>> model, arms = LGDS([[0.5]], [[1.0]], reward_std=1.0), [[2.0], [-1.0]]
        >>> states, rewards = [[-2.0], [1.0]], [[-4.0, 2.0], [2.0, -1.0]]
        >>> found = path_upper_bound(model, arms, kode.bonus, states, rewards)
        >>> found.regret.tolist(), float(found.regret.sum())  # of each round, and R_2
        ([6.0, 3.0], 9.0)
        >>> bool((found.regret <= found.sharp).all() and (found.sharp <= found.bound).all())
        True
    """

    regret: Array  # ⟨a* − a, z⟩
    bound: Array  # u(a) − u(a*) + (‖a‖ + ‖a*‖) ‖e‖; for unit arms the paper's, with 2 ‖e‖
    sharp: Array  # u(a) − u(a*) + ⟨a* − a, e⟩, before lengths are taken


def sphere_lower_bound(model: LGDS, error_cov: Any = None, rounds: int | None = None) -> Bound:
    """Lower bound on the regret per round of any policy on the unit sphere (Theorem 2, P8).

        E ‖N(m, Z)‖ − E ‖N(m, Z − P′)‖,   P′ ⪯ P(t|t−1) for all t,   m = E z

    By default P′ is the steady error covariance if every state is observed with noise σ; one unit
    arm shows less, since a aᵀ ⪯ I. Both means are one-dimensional integrals, exact to rounding.

    Args:
        model: Γ, Q, σ; ρ(Γ) < 1 unless ``rounds`` is given.
        error_cov: another P′, d × d, at most Z. It must be below the error covariance of every
            filter; otherwise the result is not a bound.
        rounds: n; average over rounds 0 … n−1 from the model's start. None: a stationary state.

    Example:
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> round(sphere_lower_bound(model).value, 6)
        0.885932
    """
    if rounds is None:
        checks.check_stationary(model, remedy=GIVE_ROUNDS)
    if error_cov is not None:
        if rounds is not None:
            raise errors.InvalidInput("error_cov", "was given beside rounds", "give only one")
        P = checks.error_cov(error_cov, model, "error_cov")
        stretches = [_Stretch(model.stationary_mean(), model.stationary_cov(), P, 1)]
    else:
        stretches = list(_stretches(model, np.eye(model.n_states), rounds))
    value = error = 0.0
    for mean, Z, P, weight in stretches:
        if not _drowns(Z, P):
            length = expected_norm(mean, Z)
            value += weight * (length - expected_norm(mean, Z - P))
            error += weight * 1e-14 * length
    total = sum(stretch.weight for stretch in stretches)
    return Bound(max(value / total, 0.0), error / total)


@takes_system
def finite_lower_bound(
    model: LGDS, arms: Any, rounds: int | None = None, accuracy: float = 1e-3
) -> Bound:
    """Lower bound on the regret per round of any policy: the Kalman Oracle's (Theorem 3, P11).

        E max_a ⟨a, N(m, Z)⟩ − E max_a ⟨a, N(m, Z − P_A)⟩,   m = E z

    Exact, unlike the printed Theorem 3 (`printed_finite_lower_bound`). The difference is averaged
    over quasi-random points, the same for both terms. Along a line through the mean the highest
    score is an envelope of lines, whose mean is known (for m = 0, half the range of scores times
    the mean length of a point), so only directions are sampled.

    Args:
        model: Γ, Q, σ; ρ(Γ) < 1 unless ``rounds`` is given.
        arms: k × d.
        rounds: n; average over rounds 0 … n−1 from the model's start, for a filter that observes
            all rewards: a bound for runs of that length. None: a stationary state.
        accuracy: the wanted ``error`` as a share of the value. Points are doubled until it is
            reached, up to 2¹⁵ for each of 16 scrambles; `Bound.error` is what was reached.

    Example:
        >>> model = LGDS([[0.5]], [[0.75]], reward_std=1e-9)  # the state's variance is 1
        >>> bound = finite_lower_bound(model, [[1.0], [-1.0]])  # only the last shock is unknown
        >>> round(bound.value, 6) == round(math.sqrt(2 / math.pi) * (1 - 0.5), 6)
        True
    """
    rows = checked_arms(arms, model)
    if rounds is None:
        checks.check_stationary(model, remedy=GIVE_ROUNDS)
    accuracy = errors.number(accuracy, "accuracy", low=0, strict=True)
    # Only differences between arms count, and these span r ≤ min(k − 1, d) directions.
    moving = model.without_offsets(rows)
    left, sizes, right = np.linalg.svd(moving - moving[0], full_matrices=False)
    kept = sizes > 1e-13 * sizes[0]
    places, seen = left[:, kept] * sizes[kept], right[kept]
    if not kept.any():  # all arms are equal, or differ by known offsets
        return Bound(0.0, 0.0)
    scores, total = [], 0
    for mean, Z, P, weight in _stretches(model, rows, rounds):
        total += weight
        full, error = seen @ Z @ seen.T, seen @ P @ seen.T
        if not _drowns(full, error):
            scores.append(_Scores(rows @ mean, *_coupled(full, full - error), weight))
    if not scores:
        return Bound(0.0, 0.0)
    r = len(seen)
    level = all(np.ptp(score.offsets) == 0 for score in scores)
    mean_gaps = _mean_gaps if level else _mean_gaps_with_offsets
    points = quasi_random.sources(r if level else r + 1)
    each = len(rows) * (len(scores) if level else BENDS)
    most = min(WORK // (each * len(points)), 1 << LAST)
    sums, count, size = np.zeros(len(points)), 0, 1 << FIRST
    while True:
        for scramble, source in enumerate(points):
            sums[scramble] += mean_gaps(source.random(size), places, scores) * size / total
        count += size
        means = unit_length(r) * sums / count
        value = float(means.mean())
        error = float(quasi_random.half_width(means))
        if error <= accuracy * value or 2 * count > most:
            break
        size = count
    scale = sum(
        weight * (np.linalg.norm(places @ full, axis=1).max() + np.ptp(offsets))
        for offsets, full, _, weight in scores
    )
    return Bound(max(value, 0.0), error + 1e-14 * float(scale) / total)


@takes_system
def printed_finite_lower_bound(model: LGDS, arms: Any) -> float:
    """Theorem 3's number per round, as printed: **not a bound** in general (P11).

        Σ_i Σ_j √( 2 (a_j − a_i)ᵀ Z (a_j − a_i) / (tr(Ψ_i|j)^(2k−2) |Σ̃_i|j|) )

    Σ̃_i|j is the covariance of A_i ẑ given A_j z for the Kalman Oracle's ẑ, and tr Ψ_i|j =
    tr Σ̃⁻¹ + tr(Πᵀ Σ̃⁻¹ Π) with Π = A_i Z̃ A_jᵀ (A_j Z A_jᵀ)⁻¹ A_j, Z̃ = Z − P_A. If the state and
    the noise grow by a factor c (Q c², σ c), it grows by c^k and every regret by c. So a large c
    makes it exceed the regret of the best policy. `finite_lower_bound` is exact.

    Args:
        model: Γ, Q, σ with ρ(Γ) < 1 and a mean of zero.
        arms: k × d with k − 1 ≤ d, and no two differences of arms in line: otherwise A_j Z A_jᵀ is
            singular and the formula has no value.

    Example:
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> printed = printed_finite_lower_bound(model, np.eye(2))
        >>> finite_lower_bound(model, np.eye(2)).value < printed  # the Oracle beats it
        True
    """
    rows = checked_arms(arms, model)
    checks.check_stationary(model)
    checks.check_no_offsets(model, "use finite_lower_bound, which handles offsets")
    k = len(rows)
    Z = model.stationary_cov()
    predicted = Z - steady_state.oracle_cov(model, rows)
    rank = np.linalg.matrix_rank(rows - rows[0])
    if rank < k - 1:
        problem = f"{k} arms in {model.n_states} states differ in only {rank} directions"
        remedy = "the printed formula needs k − 1; finite_lower_bound does not"
        raise errors.InvalidInput("arms", problem, remedy)
    A = [np.delete(rows[i] - rows, i, axis=0) for i in range(k)]
    logs = []
    for i, j in itertools.permutations(range(k), 2):
        try:
            regression = np.linalg.solve(A[j] @ Z @ A[j].T, A[j] @ predicted @ A[i].T).T
            given = A[i] @ predicted @ A[i].T - regression @ A[j] @ predicted @ A[i].T
            inverse = np.linalg.inv(np.linalg.cholesky(0.5 * (given + given.T)))
        except np.linalg.LinAlgError:
            problem = f"Σ̃ of arms {i} and {j} is singular ({k} arms in {model.n_states} states)"
            remedy = "the printed formula needs its inverse; finite_lower_bound does not"
            raise errors.InvalidInput("arms", problem, remedy) from None
        trace = np.sum(inverse**2) + np.sum((inverse @ regression @ A[j]) ** 2)
        gap = (rows[j] - rows[i]) @ Z @ (rows[j] - rows[i])
        half_log_det = -np.log(np.diag(inverse)).sum()
        logs.append(0.5 * np.log(2 * gap) - (k - 1) * np.log(trace) - half_log_det)
    size = float(scipy.special.logsumexp(logs)) if logs else -math.inf
    return math.exp(size) if size < 700 else math.inf


@takes_system
def round_upper_bound(
    belief: Belief, state: Array, model: LGDS, arms: Array, bonus: Bonus
) -> RegretBound:
    """Regret of a = argmax ⟨a, ẑ⟩ + u(a | P) in one round, and its bound (Theorem 4, P12).

    With e = z − ẑ, a the played arm and a* the best one: ⟨a*, ẑ⟩ + u(a*) ≤ ⟨a, ẑ⟩ + u(a), so
    ⟨a* − a, z⟩ ≤ u(a) − u(a*) + ⟨a* − a, e⟩. This holds on every path, for any ẑ and P. Written
    against the array API, so that `jax.vmap` handles many paths.

    Args:
        belief, state: ẑ(t|t−1) and P(t|t−1); z(t), d numbers.
        model, arms, bonus: Γ, Q, σ; k × d, of any length; u, as ``policies.idea.bonus``.

    Example:
        >>> from driftbandit.policies import kode
        >>> model = LGDS([[0.5]], [[1.0]], reward_std=1.0)
        >>> arms = np.array([[1.0], [-1.0]])
        >>> start, state = kalman.prior(model), np.array([-2.0])
        >>> [float(v) for v in round_upper_bound(start, state, model, arms, kode.bonus)]
        [4.0, 4.0, 4.0]
    """
    xp, error = namespace(arms), state - belief.mean
    u, rewards = bonus(belief.cov, model, arms), arms @ state
    played, best = xp.argmax(arms @ belief.mean + u), xp.argmax(rewards)
    lengths = xp.sqrt(xp.vecdot(arms, arms))
    lead = u[played] - u[best]
    return RegretBound(
        rewards[best] - rewards[played],
        lead + (lengths[played] + lengths[best]) * xp.sqrt(error @ error),
        lead + (arms[best] - arms[played]) @ error,
    )


@takes_system
def path_upper_bound(
    model: LGDS, arms: Any, bonus: Bonus, states: Any, rewards: Any
) -> RegretBound:
    """Theorem 4 along one path: regret and bound of every round, whose sums are those of R_n (P12).

    Args:
        model, arms, bonus: Γ, Q, σ; k × d; u, as ``policies.idea.bonus``.
        states: z(0) … z(n−1), n × d.
        rewards: n × k, the reward of each arm in each round; only the played arm's is used.

    Example:
        >>> from driftbandit.policies import idea
        >>> model = LGDS([[0.5]], [[1.0]], reward_std=1.0)
        >>> found = path_upper_bound(model, [[1.0], [-1.0]], idea.bonus, [[-2.0], [1.0]], np.eye(2))
        >>> bool(found.regret.sum() <= found.sharp.sum() <= found.bound.sum())
        True
    """
    rows = checked_arms(arms, model)
    states = errors.matrix(states, "states", shape=(None, model.n_states))
    rewards = errors.matrix(rewards, "rewards", shape=(len(states), len(rows)))
    belief = kalman.prior(model)
    found = []
    for state, payoffs in zip(states, rewards, strict=True):
        found.append(round_upper_bound(belief, state, model, rows, bonus))
        played = int(np.argmax(rows @ belief.mean + bonus(belief.cov, model, rows)))
        belief = kalman.step(belief, model, rows[played], payoffs[played])
    return RegretBound(*(np.array(values) for values in zip(*found, strict=True)))


@takes_system
def ucb_upper_bound(model: LGDS, arms: Any, rounds: int, delta: float = 0.05) -> float:
    """Theorem 6's number for R_n of UCB and sliding-window UCB, as printed (P18).

        max_a √((3n² + n + 1) aᵀ Z a log(1/δ)),   with probability 1 − δ

    **Not a bound** in general: the proof bounds each round's ⟨a, z⟩ by √(2 aᵀZa log(1/δ)) with one
    δ for all rounds, and drops the 2, a square of 3 and the n of the Cauchy–Schwarz inequality.
    If the best arm is typically above √(3 aᵀZa log(1/δ)), as with many arms or a δ near one, nearly
    every run exceeds it. It grows like n, as the regret of any policy does here.

    Args:
        model, arms: Γ, Q, σ, without non-zero constants, which the proof does not cover; k × d.
        rounds, delta: n, and δ in (0, 1).

    Example:
        >>> model = LGDS([[0.5]], [[0.75]], reward_std=1.0)
        >>> round(ucb_upper_bound(model, [[1.0]], rounds=10, delta=math.exp(-1)) ** 2, 6)
        311.0
    """
    rows = checked_arms(arms, model)
    checks.check_no_offsets(model, "leave the constant out")
    n = errors.whole_number(rounds, "rounds", low=1)
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    cov = model.settled_cov(n)
    if not np.isfinite(cov).all():
        raise errors.InvalidInput("rounds", f"is {n}", OVERFLOWS)
    spread = float(np.vecdot(rows @ cov, rows).max())
    return math.sqrt((3 * n**2 + n + 1) * spread * math.log(1 / delta))


class _Stretch(NamedTuple):
    """``weight`` rounds with the same mean m, state covariance Z and error covariance P."""

    mean: np.ndarray
    cov: np.ndarray
    error: np.ndarray
    weight: int


def _stretches(model: LGDS, seen: np.ndarray, rounds: int | None) -> Iterator[_Stretch]:
    """The stationary state, or all rounds, if the rewards of ``seen`` are observed."""
    if rounds is None:
        P = steady_state.oracle_cov(model, seen)
        yield _Stretch(model.stationary_mean(), model.stationary_cov(), P, 1)
        return
    rounds = errors.whole_number(rounds, "rounds", low=1, high=MAX_ROUNDS)
    ends = model.state_mean(rounds), model.state_cov(rounds)
    if not all(np.isfinite(part).all() for part in ends):
        raise errors.InvalidInput("rounds", f"is {rounds}", OVERFLOWS)
    mean, Z = model.start_mean(), model.start_cov()
    first, largest = None, np.abs(mean)
    for P in itertools.islice(steady_state.oracle_path(model, seen), rounds):
        if first is not None and _same(first, _Stretch(mean, Z, P, 1), largest):
            first = first._replace(weight=first.weight + 1)
        else:
            if first is not None:
                yield first
            first = _Stretch(mean, Z, P, 1)
        mean = model.transition @ mean
        largest = np.maximum(largest, np.abs(mean))
        Z = model.transition @ Z @ model.transition.T + model.process_cov
    if first is not None:
        yield first


def _same(one: _Stretch, later: _Stretch, largest: np.ndarray) -> bool:
    """Whether nothing has changed; means relative to the largest that each state has had."""
    still = np.abs(later.mean - one.mean) <= STILL * largest
    covs = (later.cov, one.cov), (later.error, one.error)
    return bool(still.all()) and all(same_cov(*pair, STILL) for pair in covs)


def _drowns(Z: np.ndarray, P: np.ndarray) -> bool:
    """Whether P is lost in rounding beside a growing Z; as zero it keeps the bound valid."""
    return bool(np.linalg.eigvalsh(P)[-1] < 1e-18 * np.linalg.eigvalsh(Z)[-1])


def _coupled(full: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors of two covariances that map a normal point to two points close together."""
    # Both are symmetric roots times the same rotation, which puts the first coordinates, where
    # quasi-random points are most even, along the widest directions.
    values, vectors = np.linalg.eigh(full)
    order = np.argsort(-values)
    values, vectors = np.maximum(values[order], 0), vectors[:, order]
    roots, axes = np.linalg.eigh(known)
    root = (axes * np.sqrt(np.maximum(roots, 0))) @ axes.T
    return vectors * np.sqrt(values), root @ vectors


class _Scores(NamedTuple):
    """The distribution of the arms' scores in one stretch, in the directions that count."""

    offsets: np.ndarray  # ⟨a, m⟩, k numbers
    full: np.ndarray  # maps a unit normal point to the state, r × r
    known: np.ndarray  # maps the same point to the prediction, r × r
    weight: int


def _directions(cube: np.ndarray) -> np.ndarray:
    normal = quasi_random.normal(cube)
    lengths = np.linalg.norm(normal, axis=1, keepdims=True)
    return np.asarray(normal / np.where(lengths > 0, lengths, 1.0))


def _mean_gaps(cube: np.ndarray, places: np.ndarray, scores: list[_Scores]) -> float:
    """E(max ⟨a, z⟩ − max ⟨a, ẑ⟩), summed over rounds, in units of a point's mean length."""
    # Points are directions. The mean of the max over both signs is half the range of the scores.
    directions = _directions(cube)
    size = max(1, BLOCK // len(places))
    total = 0.0
    for _, full, known, weight in scores:
        for first in range(0, len(directions), size):
            block = directions[first : first + size]
            ranges = [np.ptp(block @ (places @ part).T, axis=1).sum() for part in (full, known)]
            total += weight * 0.5 * float(ranges[0] - ranges[1])
    return total / len(directions)


def _mean_gaps_with_offsets(cube: np.ndarray, places: np.ndarray, scores: list[_Scores]) -> float:
    """`_mean_gaps` if arms have offsets; a point's first coordinate selects its round."""
    k, r = places.shape
    ends = np.cumsum([score.weight for score in scores])
    which = np.searchsorted(ends, cube[:, 0] * ends[-1], side="right").clip(max=len(scores) - 1)
    directions = _directions(cube[:, 1:])
    offsets, full, known = (np.stack([score[part] for score in scores]) for part in range(3))
    size = max(1, BLOCK // max(k, r * r))
    total = 0.0
    for first in range(0, len(cube), size):
        block, chosen = directions[first : first + size, :, None], which[first : first + size]
        for root, sign in ((full, 1), (known, -1)):
            slopes = (root[chosen] @ block)[:, :, 0] @ places.T
            total += sign * float(lines.radial_gain(offsets[chosen], slopes, r).sum())
    return total / len(cube) * int(ends[-1]) / unit_length(r)
