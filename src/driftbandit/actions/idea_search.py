"""IDEA's best unit vector: search a curve on which it lies, then improve it by Newton steps.

**The curve.** Let q(b) = bᵀDb / bᵀSb; u = √q. Of all unit vectors with q = ρ the best one has the
largest ⟨b, m⟩: it maximizes one quadratic form, (mᵀb)², subject to bᵀCb ≥ 0, C = D − ρS, bᵀb = 1.
Two quadratic forms map the unit sphere onto a convex set (Brickman 1961, On the field of values of
a matrix, Proc. AMS 12, 61–66), so there is no duality gap:

    max (mᵀb)² = min over y ≥ 0 of λ_max(m mᵀ + yC),   b ∝ (τI − C)⁻¹ m,   τ ≥ λ_max(C),

with τ the only root of Σ κ_i m_i² / (τ − κ_i)² = 0 (that is, bᵀCb = 0), κ_i the eigenvalues of C.
The search over the sphere becomes a search over ρ, from q(m) to the largest q. (In two dimensions
the sphere maps onto an ellipse only; but over the part of the filled ellipse in a half-plane, a
linear function attains its maximum on the rim.)

**Newton steps.** On the sphere the gradient of f = ⟨b, m⟩ + u is g = m + ∇u − μb, μ = ⟨b, m⟩, and
minus the Hessian on the tangent space is M = μI − H, where H is that of u. A step solves
(M + θI) δ = g. With θ = 0 it is Newton's; with θ above ‖M‖ it points uphill for any M. All θ are
tried, together with no step at all, so the score never decreases.

**An upper bound** by branch and bound along the curve. Every b has some q = ρ, and for every y ≥ 0

    ⟨b, m⟩² ≤ λ_max(m mᵀ + y(D − ρS)).

On an interval of ρ of width w, let y be linear between the multipliers of its ends. Then the matrix
is at most its chord plus ¼ w² max(y′, 0) S, and λ_max, being convex, is at most the chord of its
values at the ends plus as much of the largest S. Since √q is concave, the score is at most the
height of its tangent, a line, plus the root of another line: a maximum in closed form. Intervals
whose bound exceeds the best known score are halved until none does by more than asked. ρ < q(m)
need not be searched, since m itself beats all of it. NumPy only.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.actions.idea_objective import Frame, Idea, identity, normalized, rounding
from driftbandit.arrays import Array, dots, namespace

PARTS = 15  # each refinement divides the interval around a root by this number
TICKS = np.arange(1.0, PARTS) / PARTS
SMALLEST = 1e-18  # added to m, whose size is about one, so that m = 0 has a direction too
POINTS = 8
"""Points tried on the curve. With 8 to 24, all but one of 18 600 random cases gave one vector."""
KEPT = 2  # Newton steps start from so many best points of the curve, and their mirror images
TOGETHER, ALONE = 2, 12  # most Newton steps for all starts, and then for the best of them
DAMPINGS = (3e-14, 1e-5, 1e-2, 2.0)
"""θ in units of ‖M‖. The first keeps the equations regular; the next ones leave a curved ridge by
shorter steps; the last always points uphill."""
LEAST = 1e-36  # added to ‖M‖², which is about one, to divide by it safely
ROUNDINGS = 16
"""How far the Newton step may score below the others: near the top, scores are equal."""
STILL = 1e-4  # a Newton step shorter than this is the last: the next would be about its square
FIRST = 16  # intervals at the start of the upper bound
MOST = 50  # how often intervals are halved at most
LARGEST = 512  # most intervals at a time
MARGIN = 8  # error of an eigenvalue, in roundings of the largest, times d


class Curve(NamedTuple):
    """The curve of best vectors for each bonus √ρ."""

    frame: Frame
    form: Array  # D, d × d
    start: Array  # m scaled to length one, or another vector if m is zero; d numbers
    low: Array  # √q(m)
    high: Array  # the largest √q

    def levels(self, x: Array) -> Array:
        """√ρ at places x in [0, 1] along the curve, quadratic in x near the largest √ρ."""
        return self.low + (self.high - self.low) * (1 - x * x)

    def at(self, levels: Array) -> tuple[Array, Array]:
        """The best vectors b at levels √ρ, and the leading eigenvectors of C; n × d each."""
        found = self._solved(levels, refinements=2)  # τ − λ_max(C) to 15%: enough to start from
        rows = normalized((found.vectors @ found.shares[:, :, None])[:, :, 0])
        return rows, found.vectors[:, :, -1]

    def duals(self, levels: Array) -> Array:
        """The multipliers y at levels √ρ, n numbers, usually to ten digits; any y ≥ 0 is valid."""
        found = self._solved(levels, refinements=10)
        square = self.frame.mean @ self.frame.mean  # m = N(τI − C)b, y = N²τ
        return square * found.tau * dots(found.shares, found.shares) / found.size

    def _solved(self, levels: Array, refinements: int) -> _Solved:
        xp = namespace(self.form)
        C = self.form - (levels * levels)[:, None, None] * self.frame.diagonal
        kappa, vectors = xp.linalg.eigh(C)
        size = xp.maximum(kappa[:, -1:], -kappa[:, :1]) + SMALLEST**2
        kappa = kappa / size
        gaps = kappa[:, -1:] - kappa
        parts = _tilted(self.start @ vectors)
        offset = _root(kappa, parts, gaps, refinements)
        return _Solved(vectors, parts / (offset + gaps), (offset + kappa[:, -1:])[:, 0], size[:, 0])


class _Solved(NamedTuple):
    """b ∝ (τI − C)⁻¹ m at n levels, in the eigenvectors of C and in units of its size."""

    vectors: Array  # of C, n × d × d
    shares: Array  # m_i / (τ − κ_i), n × d
    tau: Array
    size: Array  # the largest |κ_i|, n


def curve(frame: Frame, form: Array) -> Curve:
    """The curve of the form D, d × d."""
    xp = namespace(form)
    root = xp.sqrt(frame.seen)
    values = xp.linalg.eigvalsh(form / root[:, None] / root)
    guess = frame.mean + xp.copysign(SMALLEST, frame.mean)
    start = guess / xp.sqrt(guess @ guess)
    low = (form @ start) @ start / ((start * start) @ frame.seen)
    low, high = (xp.sqrt(xp.maximum(end, 0.0)) for end in (low, values[-1]))
    return Curve(frame, form, start, low, xp.maximum(low, high))


def _tilted(parts: Array) -> Array:
    """The parts of m; the last one is kept off zero, where there is no root (the hard case)."""
    xp = namespace(parts)
    lead = parts[:, -1:]
    least = rounding(parts.dtype) ** 0.75  # m has length one
    lead = xp.copysign(xp.maximum(xp.abs(lead), least), lead)
    return xp.concat([parts[:, :-1], lead], axis=1)


def _root(kappa: Array, parts: Array, gaps: Array, refinements: int) -> Array:
    """The δ > 0 with Σ κ_i m_i² / (δ + gap_i)² = 0, above which the sum is negative; n × 1."""
    xp = namespace(kappa)
    weights = (kappa * parts * parts)[:, :, None]
    log: Any = math.log(rounding(kappa.dtype)) - 5
    width = 20.0 - log
    ticks: Any = TICKS.astype(kappa.dtype)
    for _ in range(refinements):
        tried = xp.exp(log + width * ticks)[..., None]
        inverse = 1 / (tried + gaps[:, None, :])  # n × ticks × d
        above = xp.sum((inverse * inverse) @ weights > 0, axis=1)
        width = width / PARTS
        log = log + width * above
    return xp.exp(log + width / 2)


def highest(objective: Idea) -> Array:
    """The unit vector b with the highest score, d numbers."""
    xp = namespace(objective.frame.mean)
    rows = climbed(objective, _starts(objective), TOGETHER)
    best = xp.argmax(_scores(objective, rows))
    return climbed(objective, rows[best][None, :], ALONE)[0]


def _starts(objective: Idea) -> Array:
    """The highest points of the curve, and their mirror images.

    Mirroring along C's leading eigenvector leaves q as it is. If m is nearly orthogonal to that
    eigenvector, there is a maximum on each side, and the curve may pass near only one of them.
    """
    xp = namespace(objective.form)
    along = curve(objective.frame, objective.form)
    rows, leads = along.at(along.levels(_places(objective.form.dtype)))
    top = xp.argsort(_scores(objective, rows))[-KEPT:]
    rows, leads = xp.take(rows, top, axis=0), xp.take(leads, top, axis=0)
    return xp.concat([rows, rows - 2 * dots(rows, leads)[:, None] * leads], axis=0)


def _scores(objective: Idea, rows: Array) -> Array:
    """The score of every row; NaN (after overflow or underflow) counts as −∞."""
    return namespace(rows).fmax(objective.scores(rows), -np.inf)


def climbed(objective: Any, rows: Array, rounds: int) -> Array:
    """Improve every row, n × d, by at most so many steps; ``objective`` is like `Idea`."""
    if isinstance(rows, np.ndarray):
        for _ in range(rounds):
            rows, steps = _climbed_once(objective, rows)
            if np.abs(steps).max() < STILL:
                break
        return rows
    from jax import lax  # loaded already: the rows are its arrays

    def moving(state: tuple[Any, Array, Array]) -> Any:
        return (state[0] < rounds) & (abs(state[2]).max() >= STILL)

    def moved(state: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        return (state[0] + 1, *_climbed_once(objective, state[1]))

    return lax.while_loop(moving, moved, (0, rows, rows))[1]


def _climbed_once(objective: Any, rows: Array) -> tuple[Array, Array]:
    """The rows after one step each, and the Newton steps that were tried."""
    xp = namespace(rows)
    n, d = rows.shape
    choices = len(DAMPINGS) + 1
    steps = _steps(objective, rows)
    tried = xp.concat([normalized(rows[:, None, :] + steps), rows[:, None, :]], axis=1)
    tried = xp.reshape(tried, (n * choices, d))
    scores = xp.reshape(_scores(objective, tried), (n, choices))
    best = xp.argmax(scores + _preferred(rows.dtype), axis=1)
    return tried[best + choices * np.arange(n)], steps[:, 0]


@functools.lru_cache(maxsize=8)
def _places(dtype: Any) -> np.ndarray:
    """Where on the curve to look: more densely at both ends, since ‖m‖ or u may be small."""
    t = (np.arange(POINTS) + 0.5) / POINTS
    return np.asarray(t**3 / (t**3 + (1 - t) ** 2), dtype)


@functools.lru_cache(maxsize=8)
def _preferred(dtype: Any) -> np.ndarray:
    """A few roundings for the Newton step, nothing for the other choices."""
    return np.array([ROUNDINGS * rounding(dtype)] + [0.0] * len(DAMPINGS), dtype)


@functools.lru_cache(maxsize=64)
def _dampings(n_states: int, dtype: Any) -> np.ndarray:
    """θI of every damping, none below a few roundings."""
    sizes = np.maximum(DAMPINGS, ROUNDINGS * rounding(dtype))
    return sizes.astype(dtype)[:, None, None] * identity(n_states, dtype)


def residuals(objective: Any, rows: Array) -> Array:
    """‖g‖ of every row: zero at a stationary point."""
    gradient, _, _ = _slopes(objective, rows)
    return namespace(rows).sqrt(dots(gradient, gradient))


def _slopes(objective: Any, rows: Array) -> tuple[Array, Array, Array]:
    """g, n × d, μ, n × 1, and H, n × d × d, of every row."""
    slope, hessian = objective.slopes(rows)
    height = (rows @ objective.frame.mean)[:, None]
    return slope + objective.frame.mean - height * rows, height, hessian


def _steps(objective: Any, rows: Array) -> Array:
    """The step of every damping, n × dampings × d."""
    n, d = rows.shape
    xp = namespace(rows)
    gradient, height, hessian = _slopes(objective, rows)
    M = height[:, :, None] * identity(d, rows.dtype) - hessian
    entries = xp.reshape(M, (n, d * d))
    size = xp.sqrt(dots(entries, entries) + LEAST)[:, None, None]
    damped = (M / size)[:, None] + _dampings(d, rows.dtype)
    return xp.linalg.solve(damped, (gradient[:, :, None] / size)[:, None])[..., 0]


def upper_bound(objective: Idea, score: float, accuracy: float) -> float:
    """An upper bound on the score, at most ``accuracy`` above the best if that is ``score``."""
    along = curve(objective.frame, objective.form)
    ends = np.linspace(0, 1, FIRST + 1)[::-1] ** 2  # x along the curve
    low, high = ends[:-1], ends[1:]  # √ρ rises as x falls
    bounds = np.full(FIRST, np.inf)
    settled, wanted = score, score + accuracy * abs(score)
    for _ in range(MOST):
        bounds = np.minimum(bounds, _over(along, along.levels(low), along.levels(high)))
        open_ = bounds > wanted
        settled = max(settled, float(bounds[~open_].max(initial=-np.inf)))
        low, high, bounds = low[open_], high[open_], bounds[open_]
        if not 0 < 2 * len(low) <= LARGEST:
            break
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        bounds = np.tile(bounds, 2)
    return max(settled, float(bounds.max(initial=-np.inf)))


def _over(along: Curve, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The bound over every interval of √ρ: y linear or, near a pole of y, constant."""
    duals = along.duals(np.concatenate([low, (low + high) / 2, high]))
    first, middle, last = np.maximum(duals, 0.0).reshape(3, -1)
    ends = np.stack([low, high]) ** 2
    linear = _over_linear(along.frame, along.form, ends, np.stack([first, last]))
    constant = _over_linear(along.frame, along.form, ends, np.stack([middle, middle]))
    return np.minimum(linear, constant)


def _over_linear(frame: Frame, form: np.ndarray, ends: np.ndarray, duals: np.ndarray) -> np.ndarray:
    """The bound over every interval; ``ends`` (of ρ) and ``duals`` (y there) are 2 × intervals."""
    C = form - ends[..., None, None] * frame.diagonal
    values = np.linalg.eigvalsh(np.outer(frame.mean, frame.mean) + duals[..., None, None] * C)
    margin = MARGIN * len(frame.mean) * np.finfo(float).eps
    lengths = np.maximum(values[..., -1], 0.0) + margin * np.abs(values).max(axis=-1)
    # Over t in [0, 1] from end to end: height + rise t + √(first − fall t).
    span = ends[1] - ends[0]
    bulge = np.maximum(duals[1] - duals[0], 0.0) * span * frame.seen[-1] / 4
    first, fall = lengths[0] + bulge, lengths[0] - lengths[1]
    value = np.sqrt(ends.mean(axis=0))
    slope = 0.5 / np.where(value > 0, value, 1.0)
    height, rise = value - slope * span / 2, slope * span
    with np.errstate(divide="ignore", invalid="ignore"):
        top = (first - (fall / (2 * rise)) ** 2) / fall
    top = np.clip(np.nan_to_num(top, nan=1.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    tried = np.stack([np.zeros_like(top), top, np.ones_like(top)])
    longest = np.sqrt(np.maximum(first - fall * tried, 0.0))
    return np.asarray((height + rise * tried + longest).max(axis=0))
