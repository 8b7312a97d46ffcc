"""E ‖m + v ω‖, ω ~ N(0, 1), with its derivatives, fast: what a vector is worth that will move.

Only three numbers matter: A = ‖m‖², B = ⟨m, v⟩, C = ‖v‖². With Y = A + 2Bω + Cω² and any c > 0,

    E √Y = √c + (2√π)⁻¹ ∫ (e^(−cs) − E e^(−sY)) s^(−3/2) ds,
    E e^(−sY) = g^(−½) exp(−sA + 2s²B²/g),   g = 1 + 2Cs.

With c = E Y = A + C the integrand decays like s^(3/2) to the left in log s and, where m and v are
in line and the length has a kink, like 1/s to the right. It is analytic for |Im log s| < π/2, so
that the trapezoidal rule needs about a hundred points for ten digits, whatever the three numbers.
`driftbandit.gaussian.norms.expected_length` has all digits and six times as many points.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.arrays import Array, namespace

__all__ = ["Derivatives", "derivatives", "expected_length"]

STEP, COARSE = 0.4, 0.8
"""Of the trapezoidal rule in log s, whose error is about exp(−π²/STEP): 2·10⁻¹¹, or 4·10⁻⁶."""
REACH, NEAR = (-16.0, 24.0), (-10.0, 12.0)
"""Ends of log s: what lies outside is below 4·10⁻¹¹, or 6·10⁻⁶. Numbers of single precision could
not hold the powers of s beyond the nearer ones."""


class Derivatives(NamedTuple):
    """Of E √Y, by B and C."""

    b: Array
    c: Array
    bb: Array
    bc: Array
    cc: Array


class _Rule(NamedTuple):
    s: np.ndarray
    powers: np.ndarray
    """1, s, s²: n × 3."""
    weights: np.ndarray
    """Of s^(−3/2) ds."""
    total: float
    """Σ weights e^(−s)."""
    left: float
    """½ − Σ weights s e^(−s): what the cut on the left takes from the derivative by C."""


@functools.lru_cache(maxsize=4)
def _rule(dtype: Any, coarse: bool) -> _Rule:
    step = COARSE if coarse else STEP
    low, high = NEAR if coarse or dtype.itemsize < 8 else REACH
    log = np.arange(low, high + step / 2, step)
    s = np.exp(log)
    weights = step / (2 * math.sqrt(math.pi)) * np.exp(-log / 2)
    faded = weights * np.exp(-s)
    powers = np.stack([np.ones_like(s), s, s * s], axis=-1)
    return _Rule(
        s.astype(dtype),
        powers.astype(dtype),
        weights.astype(dtype),
        float(faded.sum()),
        float(0.5 - faded @ s),
    )


class _Shares(NamedTuple):
    """A, B, C in units of A + C, and what the integrand is made of."""

    rule: _Rule
    scale: Array
    b: Array
    t: Array
    """s/g, shape (…, n)."""
    mean: Array
    """E e^(−sY) times weights, shape (…, n)."""


def _shares(A: Array, B: Array, C: Array, coarse: bool) -> _Shares:
    xp = namespace(C)
    rule = _rule(np.dtype(C.dtype), coarse)
    scale = A + C
    scale = xp.where(scale > 0, scale, 1.0)
    a, b, c = A / scale, B / scale, C / scale
    g = 1 + (2 * c)[..., None] * rule.s
    t = rule.s / g
    exponent = rule.s * ((2 * b * b)[..., None] * t - a[..., None])
    return _Shares(rule, scale, b, t, rule.weights * xp.exp(exponent) / xp.sqrt(g))


def expected_length(A: Array, B: Array, C: Array, coarse: bool = False) -> Array:
    """E √(A + 2Bω + Cω²), right to 10⁻¹⁰ of itself (2·10⁻⁵ in single precision).

    Args:
        A: ‖m‖² ≥ 0, of a shape that goes with C's.
        B: ⟨m, v⟩, B² ≤ AC, the same shape as C.
        C: ‖v‖² ≥ 0, any shape.
        coarse: right to 2·10⁻⁵, from a quarter of the points.

    Returns:
        C's shape.

    Example:
        >>> one, zero = np.ones(1), np.zeros(1)
        >>> expected_length(zero, zero, one).round(9).tolist()  # √(2/π)
        [0.797884561]
    """
    xp = namespace(C)
    shares = _shares(A, B, C, coarse)
    inside = 1 + shares.rule.total - xp.sum(shares.mean, axis=-1)
    return xp.where(A + C > 0, xp.sqrt(shares.scale) * inside, 0.0)


def derivatives(
    A: Array, B: Array, C: Array, weights: Array = 1.0, coarse: bool = False
) -> Derivatives:
    """The first and second derivatives of weights × `expected_length` by B and C.

    Those by B lose digits where C is more than e^24 times A (e^12 if coarse), and all second ones
    where m and v are in line to five digits: there the length has a kink, and the rule smooths it.

    Returns:
        `Derivatives` of five arrays of C's shape.
    """
    rule, scale, b, t, mean = _shares(A, B, C, coarse)
    # Σ mean sⁱ tʲ: all that the derivatives of exp(log mean) ask for.
    sums = []
    for _ in range(4):
        mean = mean * t
        sums.append(mean @ rule.powers)
    (t1, st1, _), (t2, st2, sst2), (_, st3, sst3), (_, _, sst4) = (
        (part[..., 0], part[..., 1], part[..., 2]) for part in sums
    )
    first = weights / namespace(C).sqrt(scale)
    second = first / scale
    b4 = 4 * b
    bb4 = b4 * b
    return Derivatives(
        -first * b4 * st1,
        first * (t1 + bb4 * st2 + rule.left),
        -4 * second * (st1 + bb4 * sst2),
        second * b4 * (3 * st2 + bb4 * sst3),
        -second * (3 * t2 + bb4 * (6 * st3 + bb4 * sst4)),
    )
