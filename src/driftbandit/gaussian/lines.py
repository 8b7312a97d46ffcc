"""The highest of k lines m_b + s_b ω: its mean, and the chance of each, by their envelope (P7)."""

from __future__ import annotations

import numpy as np
import scipy

from driftbandit.arrays import Array, namespace, normal_cdf
from driftbandit.gaussian.envelope import gain, reign
from driftbandit.gaussian.normal import unit_length

__all__ = ["expected_highest", "probabilities", "radial_gain"]


def probabilities(offsets: Array, slopes: Array) -> Array:
    """The chance that each line is the highest, P(low_b < ω < high_b); shape (…, k)."""
    xp = namespace(slopes)
    low, high = reign(offsets, slopes)
    return xp.where(low < high, _chance(low, high), 0.0)


def expected_highest(offsets: Array, slopes: Array) -> Array:
    """E max_b (m_b + s_b ω), exactly (P7).

    Of the envelope's mean over the line that leads at zero, see `envelope.gain`.

    Args:
        offsets: m, shape (…, k).
        slopes: s, shape (…, k).

    Returns:
        Shape (…).

    Example:
        >>> import numpy as np
        >>> float(expected_highest(np.zeros(2), np.array([1.0, -1.0])).round(9))  # E|ω| = √(2/π)
        0.797884561
    """
    return namespace(slopes).max(offsets, axis=-1) + gain(offsets, slopes)


def radial_gain(offsets: np.ndarray, slopes: np.ndarray, dimension: int) -> np.ndarray:
    """E max_b (m_b + s_b ρ) − max_b m_b, ρ a unit normal vector's length with either sign.

    The upper envelope bends at points x; where its slope grows by δ there, it gains δ E(ρ − |x|)⁺
    over the line that leads at zero. All terms are positive: a small gain keeps its digits.

        E(ρ − x)⁺ = ½ (E|ρ| Q((r + 1)/2, x²/2) − x Q(r/2, x²/2)),   Q the incomplete gamma function

    Args:
        offsets: m, n × k.
        slopes: s, n × k.
        dimension: r, of the vector.

    Returns:
        n values.

    Example:
        >>> gain = radial_gain(np.array([[0.0, -1.0]]), np.array([[0.0, 1.0]]), dimension=1)
        >>> float(gain[0].round(9))  # E(ω − 1)⁺ = φ(1) − (1 − Φ(1))
        0.083315471
    """
    found = np.zeros(len(slopes))
    flattest = slopes == slopes.min(axis=1, keepdims=True)
    leader = np.where(flattest, offsets, -np.inf).argmax(axis=1)
    going = np.arange(len(slopes))  # from the far left, bend by bend
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
        found[going] += turns[more] * _beyond(np.abs(bends[more]), dimension)
    return found


def _beyond(x: np.ndarray, dimension: int) -> np.ndarray:
    """E(ρ − x)⁺ for x ≥ 0."""
    x = np.minimum(x, 1e150)  # whose square is still a number
    mean = unit_length(dimension) * scipy.special.gammaincc((dimension + 1) / 2, x * x / 2)
    chance = scipy.special.gammaincc(dimension / 2, x * x / 2)
    return np.asarray(np.maximum(mean - x * chance, 0.0) / 2)


def _chance(low: Array, high: Array) -> Array:
    """P(low < ω < high)."""
    xp = namespace(low)
    # On the right of zero Φ(high) − Φ(low) would be a difference of ones: mirror it.
    left, right = xp.where(low > 0, -high, low), xp.where(low > 0, -low, high)
    return normal_cdf(right) - normal_cdf(left)
