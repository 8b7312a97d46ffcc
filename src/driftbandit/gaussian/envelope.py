"""The upper envelope of k lines m_b + s_b ω, and what it gains at a standard normal ω (P7).

Seen from one round, which arm is best in a later one depends on one number: the surprise ω in this
round's reward. Every arm's prediction is a line in it, and the best one's their upper envelope.
It bends at points x; where its slope grows by δ there, its mean gains δ E(ω − |x|)⁺ over the line
that leads at ω = 0. Line b leads from low_b to high_b, so that, telescoped,

    E max_b (m_b + s_b ω) − max_b m_b = Σ_b s_b (ψ(low_b) − ψ(high_b)),   ψ(x) = E(ω − |x|)⁺,

over the lines that lead somewhere; ψ makes a small gain keep its digits. Few lines are compared
pair by pair, k² comparisons without a branch; of many, the envelope is walked along, bend by bend.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.polynomial import chebyshev

from driftbandit.arrays import Array, decay, namespace, repeat

__all__ = ["excess", "gain", "reign"]

FEW = 32
"""Up to so many lines are compared pair by pair."""


def reign(offsets: Array, slopes: Array) -> tuple[Array, Array]:
    """Where each line is the highest: from ``low`` to ``high``; nowhere if low ≥ high.

    Line b leads line c from their crossing (m_b − m_c)/(s_c − s_b) on if it is the steeper one,
    up to there if the flatter one. Of equal lines the first leads.

    Args:
        offsets: m, shape (…, k).
        slopes: s, shape (…, k).

    Returns:
        low and high, of the broadcast shape.

    Example:
        >>> low, high = reign(np.array([0.0, 1.0, -5.0]), np.array([-1.0, 0.0, 1.0]))
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
            # Of parallel lines: −∞ if b is beaten, ∞ if not.
            crossing = xp.where(ahead == 0, tied, ahead) / steeper
        lows.append(xp.max(xp.where(steeper < 0, crossing, -math.inf), axis=-1))
        highs.append(xp.min(xp.where(steeper >= 0, crossing, math.inf), axis=-1))
    return functools.reduce(xp.maximum, lows), functools.reduce(xp.minimum, highs)


def gain(offsets: Array, slopes: Array) -> Array:
    """E max_b (m_b + s_b ω) − max_b m_b ≥ 0, exactly (P7).

    Args:
        offsets: m, shape (…, k).
        slopes: s, shape (…, k).

    Returns:
        Shape (…).

    Example:
        >>> float(gain(np.zeros(2), np.array([1.0, -1.0])).round(9))  # E|ω| = √(2/π)
        0.797884561
    """
    xp = namespace(slopes)
    ahead = offsets == xp.max(offsets, axis=-1, keepdims=True)  # the line that leads at zero
    slopes = slopes - xp.max(xp.where(ahead, slopes, -math.inf), axis=-1, keepdims=True)
    if slopes.shape[-1] > FEW:
        return _walked(offsets, slopes)
    low, high = reign(offsets, slopes)
    return xp.sum(xp.where(low < high, slopes * (excess(low) - excess(high)), 0.0), axis=-1)


def _walked(offsets: Array, slopes: Array) -> Array:
    """The same from the far left, bend by bend: k comparisons for each."""
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


FARTHEST = 38.0
"""Where ψ is the smallest number there is."""
MIDDLE = 5.0
DEGREE = 22


def excess(x: Array) -> Array:
    """ψ(x) = E(ω − |x|)⁺ = φ(x) − |x| Φ(−|x|), to 10⁻¹⁴ of itself (10⁻¹² under JAX).

    As φ(x) p(t) / (|x| + 5)², t = (|x| − 5)/(|x| + 5), p a polynomial: the difference would lose
    its digits in the tail, and Φ costs several times as much.

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
    """Of p, lowest first: interpolates ψ(x)/φ(x) = ∫ u exp(−x u − u²/2) du over u > 0.

    With u = eˢ the integrand decays on both sides, and the trapezoidal rule is exact to rounding.
    """
    t = np.cos(math.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    x = MIDDLE * (1 + t) / (1 - t)
    step = 1 / 80
    u = np.exp(step * np.arange(-3600, 341))
    ratio = step * np.sum(u * u * np.exp(-x[:, None] * u - u * u / 2), axis=1)
    fitted = chebyshev.chebfit(t, ratio * (x + MIDDLE) ** 2 / math.sqrt(2 * math.pi), DEGREE)
    return [float(c) for c in chebyshev.cheb2poly(fitted)]
