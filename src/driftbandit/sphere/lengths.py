"""E ‖m + v ω‖, ω ~ N(0, 1), with its derivatives, fast: what a vector is worth that will move.

Only three numbers matter: A = ‖m‖², B = ⟨m, v⟩, C = ‖v‖². With Y = A + 2Bω + Cω² and any c > 0,

    E √Y = √c + (2√π)⁻¹ ∫ (e^(−cs) − E e^(−sY)) s^(−3/2) ds,
    E e^(−sY) = g^(−½) exp(−sA + 2s²B²/g),   g = 1 + 2Cs.

With c = E Y = A + C the integrand decays like s^(3/2) to the left in log s and, where m and v are
in line and the length has a kink, like 1/s to the right. It is analytic for |Im log s| < π/2, so
that the trapezoidal rule needs about a hundred points for ten digits, whatever the three numbers.
`driftbandit.theory.normal.expected_length` has all digits and six times as many points.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.arrays import Array, namespace

__all__ = ["Length", "expected_length", "with_derivatives"]

STEP = 0.4
"""Of the trapezoidal rule in log s, whose error is about exp(−π²/STEP) = 2·10⁻¹¹."""
REACH = {8: (-16.0, 24.0), 4: (-10.0, 12.0)}
"""Ends of log s, by bytes of a number: what lies outside is below 4·10⁻¹¹, or 6·10⁻⁶ in single
precision, whose numbers could not hold the powers of s beyond."""


class Length(NamedTuple):
    """E √Y and its derivatives by B and C."""

    value: Array
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
def _rule(dtype: Any) -> _Rule:
    low, high = REACH[dtype.itemsize]
    log = np.arange(low, high + STEP / 2, STEP)
    s = np.exp(log)
    weights = STEP / (2 * math.sqrt(math.pi)) * np.exp(-log / 2)
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


def _shares(A: Array, B: Array, C: Array) -> _Shares:
    xp = namespace(C)
    rule = _rule(np.dtype(C.dtype))
    scale = xp.where(A + C > 0, A + C, xp.ones_like(C))
    a, b, c = A / scale, B / scale, C / scale
    t = rule.s / (1 + (2 * c)[..., None] * rule.s)
    exponent = rule.s * ((2 * b * b)[..., None] * t - a[..., None])
    return _Shares(rule, scale, b, t, rule.weights * xp.exp(exponent) * xp.sqrt(t / rule.s))


def _value(xp: Any, moves: Array, shares: _Shares) -> Array:
    inside = 1 + shares.rule.total - xp.sum(shares.mean, axis=-1)
    return xp.where(moves, xp.sqrt(shares.scale) * inside, xp.zeros_like(inside))


def expected_length(A: Array, B: Array, C: Array) -> Array:
    """E √(A + 2Bω + Cω²), right to 10⁻¹⁰ of itself (2·10⁻⁵ in single precision).

    Args:
        A: ‖m‖² ≥ 0, any shape.
        B: ⟨m, v⟩, B² ≤ AC, the same shape.
        C: ‖v‖² ≥ 0, the same shape.

    Returns:
        That shape.

    Example:
        >>> one, zero = np.ones(1), np.zeros(1)
        >>> expected_length(zero, zero, one).round(9).tolist()  # √(2/π)
        [0.797884561]
    """
    return _value(namespace(C), A + C > 0, _shares(A, B, C))


def with_derivatives(A: Array, B: Array, C: Array) -> Length:
    """`expected_length` and its first and second derivatives by B and C.

    Where m and v are in line to five digits the second ones are smoothed, as the kink is.

    Returns:
        `Length` of six arrays of the shape of A.
    """
    xp = namespace(C)
    shares = _shares(A, B, C)
    rule, scale, b, t, mean = shares
    # Σ mean sⁱ tʲ: all that the derivatives of exp(log mean) ask for.
    sums = []
    for _ in range(4):
        mean = mean * t
        sums.append(mean @ rule.powers)
    (t1, st1, _), (t2, st2, sst2), (_, st3, sst3), (_, _, sst4) = (
        (part[..., 0], part[..., 1], part[..., 2]) for part in sums
    )
    bb = b * b
    root = xp.sqrt(scale)
    return Length(
        _value(xp, A + C > 0, shares),
        -4 * b * st1 / root,
        (t1 + 4 * bb * st2 + rule.left) / root,
        -4 * (st1 + 4 * bb * sst2) / (root * scale),
        b * (12 * st2 + 16 * bb * sst3) / (root * scale),
        -(3 * t2 + 24 * bb * st3 + 16 * bb * bb * sst4) / (root * scale),
    )
