"""The highest of k lines m_b + s_b ω, ω ~ N(0, 1): its mean, and each line's chance (P7).

Seen from this round, the best arm of a later round depends on one number: the innovation ω of this
round's reward. Every arm's prediction is a line in ω, and the best prediction their upper envelope.
Where the envelope bends at x and its slope grows by δ, its mean gains δ E(ω − |x|)⁺ over the line
that leads at ω = 0. Line b leads from low_b to high_b, so the sum telescopes to

    E max_b (m_b + s_b ω) − max_b m_b = Σ_b s_b (ψ(low_b) − ψ(high_b)),   ψ(x) = E(ω − |x|)⁺.

Up to `FEW` lines are compared in pairs; for more, the envelope is followed bend by bend.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy
from numpy.polynomial import chebyshev

from driftbandit.arrays import Array, decay, namespace, normal_cdf, repeat
from driftbandit.gaussian.norms import unit_length

FEW = 32  # up to this many lines are compared in pairs: k² comparisons without a branch


def leading_intervals(offsets: Array, slopes: Array) -> tuple[Array, Array]:
    """Where each line is the highest: between ``low`` and ``high``; nowhere if low ≥ high.

    Lines b and c cross at (m_b − m_c)/(s_c − s_b); the steeper one is higher beyond that. The
    first of equal lines leads.

    Args:
        offsets, slopes: m and s, of shape (…, k); low and high have the broadcast shape.

    Example:
        >>> low, high = leading_intervals(np.array([0.0, 1.0, -5.0]), np.array([-1.0, 0.0, 1.0]))
        >>> low.tolist(), high.tolist()
        ([-inf, -1.0, 6.0], [-1.0, 6.0, inf])
    """
    xp = namespace(slopes)
    k = slopes.shape[-1]
    order = xp.arange(k)
    tiny = xp.asarray(np.finfo(slopes.dtype).tiny, dtype=slopes.dtype)
    slopes = slopes + 0.0  # no −0, whose difference from 0 has a sign
    # JAX is fastest with one line c after the other, NumPy with all at once.
    groups = [slice(None)] if xp is np else [slice(c, c + 1) for c in range(k)]
    lows, highs = [], []
    for group in groups:
        ahead = offsets[..., :, None] - offsets[..., None, group]
        tied = xp.where(order[group] < order[:, None], -tiny, tiny)  # the first of equals is ahead
        steeper = slopes[..., None, group] - slopes[..., :, None]  # c less b
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            # For parallel lines: −∞ if b is lower, ∞ if not.
            crossing = xp.where(ahead == 0, tied, ahead) / steeper
        lows.append(xp.max(xp.where(steeper < 0, crossing, -math.inf), axis=-1))
        highs.append(xp.min(xp.where(steeper >= 0, crossing, math.inf), axis=-1))
    return functools.reduce(xp.maximum, lows), functools.reduce(xp.minimum, highs)


def probabilities(offsets: Array, slopes: Array) -> Array:
    """The chance that each line is the highest, P(low_b < ω < high_b); shape (…, k)."""
    xp = namespace(slopes)
    low, high = leading_intervals(offsets, slopes)
    # Above zero Φ(high) − Φ(low) is a difference of numbers near one, so mirror it.
    left, right = xp.where(low > 0, -high, low), xp.where(low > 0, -low, high)
    return xp.where(low < high, normal_cdf(right) - normal_cdf(left), 0.0)


def expected_highest(offsets: Array, slopes: Array) -> Array:
    """E max_b (m_b + s_b ω), exactly (P7); arguments as in `gain`."""
    return namespace(slopes).max(offsets, axis=-1) + gain(offsets, slopes)


def gain(offsets: Array, slopes: Array) -> Array:
    """E max_b (m_b + s_b ω) − max_b m_b ≥ 0, exactly (P7).

    Args:
        offsets, slopes: m and s, of shape (…, k); the result has shape (…).

    Example:
        >>> float(gain(np.zeros(2), np.array([1.0, -1.0])).round(9))  # E|ω| = √(2/π)
        0.797884561
    """
    xp = namespace(slopes)
    ahead = offsets == xp.max(offsets, axis=-1, keepdims=True)  # the line that leads at zero
    slopes = slopes - xp.max(xp.where(ahead, slopes, -math.inf), axis=-1, keepdims=True)
    if slopes.shape[-1] > FEW:
        return _gain_by_bends(offsets, slopes)
    low, high = leading_intervals(offsets, slopes)
    return xp.sum(xp.where(low < high, slopes * (excess(low) - excess(high)), 0.0), axis=-1)


def _gain_by_bends(offsets: Array, slopes: Array) -> Array:
    """`gain` along the envelope from the far left, with k comparisons for each bend."""
    xp = namespace(slopes)
    flattest = xp.min(slopes, axis=-1, keepdims=True)
    offset = xp.max(xp.where(slopes == flattest, offsets, -math.inf), axis=-1, keepdims=True)

    def bend(now: tuple[Array, ...]) -> tuple[Array, ...]:
        slope, offset, total, _ = now
        steeper = slopes - slope
        safe = xp.where(steeper > 0, steeper, xp.ones((), dtype=slopes.dtype))
        with np.errstate(over="ignore"):  # nearly parallel lines cross at infinity
            crossing = xp.where(steeper > 0, (offset - offsets) / safe, math.inf)
        x = xp.min(crossing, axis=-1, keepdims=True)
        turn = xp.max(xp.where(crossing <= x, steeper, 0.0), axis=-1, keepdims=True)
        after = (crossing <= x) & (steeper == turn)
        more = x < math.inf
        risen = xp.max(xp.where(after, offsets, -math.inf), axis=-1, keepdims=True)
        return (
            xp.where(more, slope + turn, slope),
            xp.where(more, risen, offset),
            total + xp.where(more, turn * excess(x), 0.0),
            xp.any(more),
        )

    start = (flattest, offset, xp.zeros_like(flattest), xp.asarray(True))
    return repeat(lambda now: now[3], bend, start)[2][..., 0]


def radial_gain(offsets: np.ndarray, slopes: np.ndarray, dimension: int) -> np.ndarray:
    """E max_b (m_b + s_b ρ) − max_b m_b, ρ the length of a unit normal vector with a random sign.

        E(ρ − x)⁺ = ½ (E|ρ| Q((r + 1)/2, x²/2) − x Q(r/2, x²/2)),   Q the incomplete gamma function

    replaces ψ(x). All terms are positive, so a small gain keeps its digits.

    Args:
        offsets, slopes, dimension: m and s, n × k; r, of the vector. The result has n values.

    Example:
        >>> gain = radial_gain(np.array([[0.0, -1.0]]), np.array([[0.0, 1.0]]), dimension=1)
        >>> float(gain[0].round(9))  # E(ω − 1)⁺ = φ(1) − (1 − Φ(1))
        0.083315471
    """
    found = np.zeros(len(slopes))
    flattest = slopes == slopes.min(axis=1, keepdims=True)
    leader = np.where(flattest, offsets, -np.inf).argmax(axis=1)
    going = np.arange(len(slopes))  # rows whose envelope bends again
    while going.size:
        steps = np.arange(len(going))
        steeper = slopes - slopes[steps, leader][:, None]
        ahead = offsets[steps, leader][:, None] - offsets
        with np.errstate(over="ignore"):  # nearly parallel lines cross at infinity
            crossing = np.where(steeper > 0, ahead / np.where(steeper > 0, steeper, 1.0), np.inf)
        leader = crossing.argmin(axis=1)
        bends, turns = crossing[steps, leader], steeper[steps, leader]
        more = bends < np.inf
        going, leader = going[more], leader[more]
        offsets, slopes = offsets[more], slopes[more]
        found[going] += turns[more] * _radial_excess(np.abs(bends[more]), dimension)
    return found


def _radial_excess(x: np.ndarray, dimension: int) -> np.ndarray:
    """E(ρ − x)⁺ for x ≥ 0."""
    x = np.minimum(x, 1e150)  # its square must not overflow
    mean = unit_length(dimension) * scipy.special.gammaincc((dimension + 1) / 2, x * x / 2)
    chance = scipy.special.gammaincc(dimension / 2, x * x / 2)
    return np.asarray(np.maximum(mean - x * chance, 0.0) / 2)


FARTHEST = 38.0  # ψ underflows beyond this
MIDDLE = 5.0
DEGREE = 22


def excess(x: Array) -> Array:
    """ψ(x) = E(ω − |x|)⁺ = φ(x) − |x| Φ(−|x|), to 10⁻¹⁴ of itself (10⁻¹² under JAX).

    Computed as φ(x) p(t) / (|x| + 5)², t = (|x| − 5)/(|x| + 5), with a polynomial p: the difference
    would lose its digits in the tail, and Φ costs several times as much.

    Example:
        >>> excess(np.array([0.0, -1.0])).round(9).tolist()  # 1/√(2π), φ(1) − Φ(−1)
        [0.39894228, 0.083315471]
    """
    xp = namespace(x)
    x = xp.minimum(xp.abs(x), FARTHEST)
    inverse = 1 / (x + MIDDLE)
    t = 1 - 2 * MIDDLE * inverse
    *lower, value = _coefficients()
    for coefficient in reversed(lower):
        value = value * t + coefficient
    return value * (inverse * inverse) * decay(0.5 * x * x)


@functools.cache
def _coefficients() -> list[float]:
    """Coefficients of p, lowest first: p interpolates ψ(x)/φ(x) = ∫ u exp(−x u − u²/2) du."""
    # Over u > 0. With u = eˢ the integrand decays on both sides, and the trapezoidal rule is exact.
    t = np.cos(math.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    x = MIDDLE * (1 + t) / (1 - t)
    step = 1 / 80
    u = np.exp(step * np.arange(-3600, 341))
    ratio = step * np.sum(u * u * np.exp(-x[:, None] * u - u * u / 2), axis=1)
    fitted = chebyshev.chebfit(t, ratio * (x + MIDDLE) ** 2 / math.sqrt(2 * math.pi), DEGREE)
    return [float(c) for c in chebyshev.cheb2poly(fitted)]
