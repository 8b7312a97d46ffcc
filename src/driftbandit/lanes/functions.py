"""log, log1p, exp and power built from IEEE operations, so that every machine gives the same bits.

Libraries differ in the last bits from CPU to GPU and from version to version. These are the
classic reductions (W. Cody and W. Waite; fdlibm's coefficients for log), with errors below
1 ulp (log), 2 ulp (exp) and 3 ulp (log1p) on normal double-precision numbers, and a relative error
below 2e-13 (power); `tests/lanes` measures them. Single precision is computed in double precision
and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["exp", "log", "log1p", "power"]

Value = Any
Writer = Any

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log 2 in two parts, the first with 33 bits: n·LN2_HIGH is exact for |n| < 2²⁰."""
SHIFT = 1.5 * 2.0**52
"""Added and taken away, it rounds to the nearest whole number."""
HALF_ROOT = 0x3FE6A09E00000000
"""The bits of about √½: mantissas are taken from [√½, √2)."""
LOG_SERIES = (
    *(1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01),
    *(2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01),
    6.666666666666735130e-01,
)
EXP_SERIES = tuple(1 / math.factorial(n) for n in range(13, -1, -1))
LARGEST, SMALLEST = 709.782712893384, -745.1332191019412
"""exp of more is infinite, of less is zero."""


class _Double:
    """The writer's operations on double-precision numbers, by short names."""

    def __init__(self, w: Writer) -> None:
        self.w = w

    def __getattr__(self, op: str) -> Callable[..., Value]:
        def write(*values: Value | float) -> Value:
            return self.w.apply(op, "float64", *map(self.number, values))

        return write

    def number(self, value: Value | float) -> Value:
        return self.w.constant(value, "float64") if isinstance(value, float) else value

    def series(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Horner's rule, each step rounded once."""
        y = self.number(coefficients[0])
        for c in coefficients[1:]:
            y = self.fma(y, x, c)
        return y

    def select(self, which: Value, yes: Value | float, no: Value | float) -> Value:
        return self.w.select(which, self.number(yes), self.number(no))

    def bits(self, op: str, x: Value, y: int) -> Value:
        return self.w.apply(op, "int64", x, self.w.constant(y, "int64"))


def _in_double(f: Callable[[_Double, Value], Value]) -> Callable[[Writer, str, Value], Value]:
    def write(w: Writer, dtype: str, x: Value) -> Value:
        if dtype == "float64":
            return f(_Double(w), x)
        return w.convert(f(_Double(w), w.convert(x, dtype, "float64")), "float64", dtype)

    write.__doc__ = f.__doc__
    return write


def _log(m: _Double, x: Value) -> Value:
    """log x = n log 2 + log(1 + u), and with s = u/(2 + u): log(1 + u) = 2 artanh s."""
    w = m.w
    tiny = m.lt(x, 2.0**-1022)
    x_ = m.select(tiny, m.mul(x, 2.0**54), x)
    bits = m.bits("add", w.bitcast(x_, "float64", "int64"), 0x3FF0000000000000 - HALF_ROOT)
    exponent = m.bits("sub", m.bits("shift_right_arithmetic", bits, 52), 1023)
    n = m.sub(w.bitcast(m.bits("add", exponent, 0x4338000000000000), "int64", "float64"), SHIFT)
    n = m.select(tiny, m.sub(n, 54.0), n)
    mantissa = m.bits("add", m.bits("and", bits, 0x000FFFFFFFFFFFFF), HALF_ROOT)
    u = m.sub(w.bitcast(mantissa, "int64", "float64"), 1.0)
    s, half = m.div(u, m.add(u, 2.0)), m.mul(m.mul(u, u), 0.5)
    z = m.mul(s, s)
    low = m.fma(s, m.fma(z, m.series(z, LOG_SERIES), half), m.mul(n, LN2_LOW))
    y = m.sub(m.mul(n, LN2_HIGH), m.sub(m.sub(half, low), u))
    y = m.select(m.eq(x, math.inf), math.inf, y)
    y = m.select(m.eq(x, 0.0), -math.inf, y)
    return m.select(m.ge(x, 0.0), y, math.nan)


def _log1p(m: _Double, x: Value) -> Value:
    """log(1 + x) = log(v) x / (v − 1) with v = 1 + x rounded: the rounding error cancels."""
    v = m.add(x, 1.0)
    y = m.div(m.mul(_log(m, v), x), m.sub(v, 1.0))
    y = m.select(m.eq(v, math.inf), math.inf, y)
    return m.select(m.eq(v, 1.0), x, y)


def _exp(m: _Double, x: Value) -> Value:
    """eˣ = 2ⁿ eʳ with x = n log 2 + r, |r| ≤ log(2)/2, and eʳ by its series."""
    w = m.w
    inside = m.select(m.gt(x, LARGEST), LARGEST, m.select(m.lt(x, SMALLEST), SMALLEST, x))
    shifted = m.fma(inside, 1 / math.log(2), SHIFT)
    n = m.sub(shifted, SHIFT)
    r = m.fma(m.neg(n), LN2_LOW, m.fma(m.neg(n), LN2_HIGH, inside))
    y = m.series(r, EXP_SERIES)
    exponent = m.bits("sub", w.bitcast(shifted, "float64", "int64"), 0x4338000000000000)
    half = m.bits("shift_right_arithmetic", exponent, 1)
    for part in (half, w.apply("sub", "int64", exponent, half)):  # 2ⁿ alone may overflow
        power = m.bits("shift_left", m.bits("add", part, 1023), 52)
        y = m.mul(y, w.bitcast(power, "int64", "float64"))
    y = m.select(m.gt(x, LARGEST), math.inf, y)
    y = m.select(m.lt(x, SMALLEST), 0.0, y)
    return m.select(m.eq(x, x), y, x)


def _power(m: _Double, x: Value, y: Value) -> Value:
    """xʸ = ±exp(y log|x|), with the values of C's pow at zero, one, infinity and below zero."""
    w = m.w
    size = m.abs(x)
    z = _exp(m, m.mul(y, _log(m, size)))
    z = m.select(m.eq(size, 1.0), 1.0, z)  # also for an infinite y
    whole = m.eq(m.floor(y), y)
    odd = w.apply("and", "bool", whole, m.ne(m.floor(m.mul(y, 0.5)), m.mul(y, 0.5)))
    minus = w.apply("lt", "int64", w.bitcast(x, "float64", "int64"), w.constant(0, "int64"))
    z = m.select(w.apply("and", "bool", minus, odd), m.neg(z), z)
    inside = w.apply("and", "bool", m.lt(x, 0.0), m.ne(x, -math.inf))
    z = m.select(w.apply("and", "bool", inside, m.ne(m.floor(y), y)), math.nan, z)
    return m.select(w.apply("or", "bool", m.eq(y, 0.0), m.eq(x, 1.0)), 1.0, z)


def power(w: Writer, dtypes: tuple[str, str], x: Value, y: Value) -> Value:
    """xʸ in the type of x; y may be whole."""
    x, y = (w.convert(value, kind, "float64") for value, kind in zip((x, y), dtypes, strict=True))
    return w.convert(_power(_Double(w), x, y), "float64", dtypes[0])


log, log1p, exp = _in_double(_log), _in_double(_log1p), _in_double(_exp)
