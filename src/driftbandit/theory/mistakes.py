"""How often a policy plays arm i while arm j is best (Lemma 4, P16)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy

from driftbandit import errors
from driftbandit.gaussian import lines, quasi_random
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies.optimistic import Bonus
from driftbandit.system import takes_system
from driftbandit.theory import checks

FIRST, LAST, MOST = 7, 14, 17
"""Points per scramble are doubled from 2^FIRST to 2^LAST, and to 2^MOST if needed."""
GOOD, FAIR = 1e-3, 5e-3
"""Default accuracy: the target, and the error that is accepted after 2^LAST points."""
NEAR = 8  # an error above this many times the wanted accuracy after 2^LAST points ends the search
MAX_ARMS = 16  # the time grows as k³; beyond this it takes more than minutes
BLOCK = 1 << 18  # pairs of arms in one block
EFFECTIVE = 500  # effective sample size from which the error estimate is trusted
ALIGNED = 1e-9  # remainders of unit rows below this are rounding
REACH = 8.0  # standard deviations beyond which a normal number never lies: the chance is 10⁻¹⁵
RANK = 1e-13  # singular values below this share of the largest count as zero


class Mistakes(NamedTuple):
    """How often each arm is played while each is best (P16); see `wrong_action_probability`.

    Example:
        >>> from driftbandit.policies import kode
        >>> model = LGDS([[0.5]], [[0.75]], reward_std=1.0)  # the state's variance is 1
        >>> found = wrong_action_probability(model, [[1.0], [-1.0]], kode.bonus, [[0.5]])
        >>> wrong = found.probability.sum(axis=0) - np.diag(found.probability)
        >>> wrong.round(2).tolist(), bool((found.error < 0.005).all())  # by the best arm
        ([0.25, 0.25], True)
    """

    probability: np.ndarray  # k × k: row i the played arm, column j the best one
    error: np.ndarray  # half-width of the 99% intervals, the largest of each column: k numbers


@takes_system
def wrong_action_probability(
    model: LGDS, arms: Any, bonus: Bonus, cov: Any, accuracy: float | None = None
) -> Mistakes:
    """P(a_i is played | a_j is best) for a = argmax ⟨a, ẑ⟩ + u(a | P), Cov ẑ = Z − P (P16).

        P( A_i ẑ + Δu_i > 0, A_j z > 0 ) / P( A_j z > 0 )

    Both ẑ and z have the stationary mean, which is zero without offsets. Quasi-random states are
    drawn inside the cone in which arm j is best, coordinate by coordinate, each weighted by its
    probability (Genz 1992), so that rarely best arms are as accurate as others. Given the state, ẑ
    is normal; its widest direction is integrated exactly. Columns sum to one by construction.

    Args:
        model, arms, bonus: Γ, Q, σ with ρ(Γ) < 1; k × d, 2 ≤ k ≤ 16; u, as ``policies.idea.bonus``.
        cov: P, the policy's error covariance, d × d; at most Z.
        accuracy: half-width of every entry's 99% interval; an error is raised if it cannot be
            reached. None: aims at 10⁻³; ``error`` tells what was reached.

    Returns:
        The probabilities, k × k, and their errors. Row i is the played arm, column j the best one;
        the first of equal arms counts as best. A column is NaN with error 0 if arm j is never best
        (up to 8 standard deviations), and NaN with an infinite error if it is best too rarely to
        say anything.

    Example:
        >>> from driftbandit.policies import kode
        >>> model = LGDS([[0.5]], [[0.75]], reward_std=1.0)  # the state's variance is 1
        >>> arms = [[1.0], [-1.0]]
        >>> wrong_action_probability(model, arms, kode.bonus, [[0.5]]).probability.round(2).tolist()
        [[0.75, 0.25], [0.25, 0.75]]
    """
    rows = checked_arms(arms, model)
    if not 2 <= len(rows) <= MAX_ARMS:
        raise errors.InvalidInput("arms", f"has {len(rows)} rows", f"give 2 to {MAX_ARMS}")
    checks.check_stationary(model)
    P = checks.error_cov(cov, model)
    if accuracy is not None:
        accuracy = errors.number(accuracy, "accuracy", low=0, strict=True)
    u = checks.bonuses(bonus, P, model, rows)
    scores = _scores(model, rows, P)
    first = [int((rows == row).all(axis=1).argmax()) for row in rows]
    scores, u = _Scores(*(part[first] for part in scores)), u[first]  # equal arms tie exactly
    found = Mistakes(np.empty((len(rows), len(rows))), np.empty(len(rows)))
    for best in range(len(rows)):
        found.probability[:, best], error = _column(scores, u, best, accuracy)
        found.error[best] = error
        if accuracy is not None and error > accuracy:
            reached = f"{error:.3g} was reached" if error < math.inf else "no estimate was possible"
            problem = f"is {accuracy:g}, but {reached} for arm {best} of {len(rows)}"
            remedy = "give a larger value, or leave out arms that are rarely best"
            raise errors.InvalidInput("accuracy", problem, remedy)
    return found


class _Scores(NamedTuple):
    """The arms' true and predicted scores: m + C y and m + H y + B ε, with y, ε unit normal."""

    offsets: np.ndarray  # m, k numbers
    true: np.ndarray  # C, k × q
    known: np.ndarray  # H, k × q: the part of the truth that is predicted
    blur: np.ndarray  # B, k × e: the rest, widest direction first


def _scores(model: LGDS, rows: np.ndarray, P: np.ndarray) -> _Scores:
    """Scores minus the first arm's, since only differences count."""
    # With z = F w, w unit normal, ŵ = F⁺ẑ: Cov ŵ = Cov(ŵ, w) = G = I − F⁺ P F⁺ᵀ, so ŵ given w is
    # N(G w, G − G²). Arms read w in q directions, D = U S Vᵀ; the same holds for y = Vᵀw and
    # ŷ = Vᵀŵ with VᵀGV.
    Z = model.stationary_cov()
    offsets = (rows - rows[0]) @ model.stationary_mean()
    size = np.sqrt(np.diag(Z))  # scaled, so that the units of the states do not matter
    unit = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(Z / np.outer(unit, unit))
    kept = values > RANK * values[-1]
    root = unit[:, None] * vectors[:, kept] * np.sqrt(values[kept])
    inverse = (vectors[:, kept] / np.sqrt(values[kept])).T / unit
    left, sizes, right = np.linalg.svd((rows - rows[0]) @ root, full_matrices=False)
    seen = sizes > RANK * sizes.max(initial=0.0)
    true, axes = left[:, seen] * sizes[seen], right[seen]
    share = axes @ (np.eye(len(inverse)) - inverse @ P @ inverse.T) @ axes.T
    values, vectors = np.linalg.eigh(0.5 * (share + share.T))
    values = np.clip(values, 0.0, 1.0)
    known = (vectors * values) @ vectors.T
    blur = true @ (vectors * np.sqrt(values * (1 - values)))
    left, sizes, _ = np.linalg.svd(blur, full_matrices=False)
    wide = sizes > RANK * max(np.linalg.norm(true), np.finfo(float).tiny)
    return _Scores(offsets, true, true @ known, left[:, wide] * sizes[wide])


def _column(
    scores: _Scores, u: np.ndarray, best: int, accuracy: float | None
) -> tuple[np.ndarray, float]:
    """P(play i | ``best`` is best) for every i, and the largest half-width."""
    k = len(scores.true)
    leads, ahead = scores.true[best] - scores.true, scores.offsets[best] - scores.offsets
    lengths = np.linalg.norm(leads, axis=1)
    alike = lengths <= RANK * lengths.max()
    never = alike & ((ahead < 0) | ((ahead == 0) & (np.arange(k) < best)))
    normals, ahead = leads[~alike] / lengths[~alike, None], ahead[~alike] / lengths[~alike]
    if never.any() or not _has_inside(normals, ahead):
        return np.full(k, np.nan), 0.0
    cone, turn = _triangular(normals, ahead)
    known = scores.known @ turn
    inside, e = cone.shape[1], max(scores.blur.shape[1] - 1, 0)
    sources = quasi_random.sources(inside + e)
    chances, weights = np.zeros((len(sources), k)), np.zeros(len(sources))
    squares, count, size = 0.0, 0, 1 << FIRST
    while True:
        for scramble, source in enumerate(sources):
            for cube in np.array_split(source.random(size), -(-size * k * k // BLOCK)):
                weight, state = _in_cone(cube[:, :inside], cone, ahead)
                predicted = state @ known.T + scores.offsets + u
                chance = _played(scores.blur, predicted, quasi_random.normal(cube[:, inside:]))
                weights[scramble] += weight.sum()
                squares += float(weight @ weight)
                chances[scramble] += weight @ chance
        count += size
        total = weights.sum()
        mean, error = np.full(k, np.nan), math.inf
        if total**2 >= EFFECTIVE * squares > 0:  # otherwise a few points dominate
            mean = chances.sum(axis=0) / total
            # The error of a ratio: each scramble's residual, in units of the denominator.
            left = (chances - weights[:, None] * mean) / weights.mean()
            error = float(quasi_random.half_width(left).max())
        if _enough(error, count, accuracy):
            return mean, error
        size = count


def _enough(error: float, count: int, accuracy: float | None) -> bool:
    """Whether the error is small enough, or more points would not help."""
    if accuracy is None:
        content = error <= (GOOD if count < 1 << LAST else FAIR)
    else:
        content = error <= accuracy or (count >= 1 << LAST and error > NEAR * accuracy)
    return content or count >= 1 << MOST


def _has_inside(cone: np.ndarray, ahead: np.ndarray) -> bool:
    """Whether some x within ±`REACH` has L x + c > 0; if not, the arm is never the only best."""
    from scipy.optimize import linprog  # slow to load

    m, q = cone.shape
    found = linprog(
        np.r_[np.zeros(q), -1.0],
        A_ub=np.hstack([-cone, np.ones((m, 1))]),
        b_ub=ahead / REACH,
        bounds=[(-1, 1)] * q + [(0, 1)],
    )
    return found.fun is not None and bool(-found.fun > ALIGNED)


def _played(blur: np.ndarray, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """The chance that each arm is played, points × k; the first direction of ε is integrated."""
    if not blur.shape[1]:
        return np.asarray(lines.probabilities(scores, np.zeros_like(scores)))
    scores = scores + rest @ blur[:, 1:].T
    return np.asarray(lines.probabilities(scores, np.broadcast_to(blur[:, 0], scores.shape)))


def _triangular(unit: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and an orthogonal U with L = M U lower triangular, except for the order of its rows."""
    # M y + c > 0, with unit rows, becomes L x + c > 0 with y = U x. Next comes the axis of the row
    # that is least likely to hold if the earlier coordinates have their means, so that the tightest
    # constraints come first (Gibson, Glasbey and Elston 1994).
    rest, shift, chosen = unit, ahead, []
    for _ in range(unit.shape[1]):
        size = np.linalg.norm(rest, axis=1)
        free = size > ALIGNED
        if not free.any():
            break
        bound = np.where(free, -shift / np.where(free, size, 1.0), -np.inf)
        row = int(np.argmax(bound))
        axis = rest[row] / size[row]
        along = rest @ axis
        tail = max(float(scipy.special.ndtr(-bound[row])), 1e-300)
        shift = shift + along * (math.exp(-(bound[row] ** 2) / 2) / math.sqrt(2 * math.pi) / tail)
        rest = rest - np.outer(along, axis)
        chosen.append(row)
    turn = np.linalg.qr(unit[chosen].T, mode="complete")[0]
    return unit @ turn, turn


def _in_cone(
    cube: np.ndarray, cone: np.ndarray, ahead: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points x with L x + c > 0 and their weights, the products of the coordinates' chances."""
    last = [int(np.flatnonzero(np.abs(row) > ALIGNED)[-1]) for row in cone]
    points, weight = np.zeros_like(cube), np.ones(len(cube))
    for column in range(cone.shape[1]):
        low, high = np.full(len(cube), -np.inf), np.full(len(cube), np.inf)
        for i in np.flatnonzero(np.equal(last, column)):
            row = cone[i]
            edge = -(points @ row + ahead[i]) / row[column]
            if row[column] > 0:
                low = np.maximum(low, edge)
            else:
                high = np.minimum(high, edge)
        # Above zero a chance is a difference of numbers near one, so mirror it.
        flip = np.where(low > 0, -1.0, 1.0)
        left, right = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
        below, above = scipy.special.ndtr(left), scipy.special.ndtr(right)
        chance = np.maximum(above - below, 0.0)
        place = np.clip(below + cube[:, column] * chance, 1e-300, 1 - 2.0**-53)
        points[:, column] = flip * scipy.special.ndtri(place)
        weight = weight * chance
    return weight, points
