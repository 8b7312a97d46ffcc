"""Formats of numbers and lists, the same in every table, sentence and figure."""

from __future__ import annotations

import math
from collections.abc import Sequence

NONE = "–"  # shown where there is no number


def short(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, without an exponent if its size allows.

    Example:
        >>> short(0.012345), short(1234.5), short(0), short(1.5e9), short(-2.0), short(None)
        ('0.0123', '1,234', '0', '1.50e+09', '-2.00', '–')
    """
    if value is None:
        return NONE
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded value
    if not -4 <= size < 7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - size)}f}"


def multiple(value: float | None, decimals: int = 2) -> str:
    """A ratio: so many decimals below ten, three digits above.

    Example:
        >>> multiple(0.98765, 3), multiple(1.0), multiple(12.345), multiple(1234.5), multiple(None)
        ('0.988', '1.00', '12.3', '1,234', '–')
    """
    if value is None:
        return NONE
    if abs(value) < 10:
        return f"{value:.{decimals}f}"
    return f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"


def percent(share: float, digits: int = 2) -> str:
    """A share in percent, with so many significant digits.

    Example:
        >>> percent(0.0312), percent(0.25), percent(12.5)
        ('3.1%', '25%', '1,250%')
    """
    return f"{short(100 * share, digits)}%"


def plus_minus(value: float, error: float) -> str:
    """A number and its error, both to two digits of the error.

    Example:
        >>> plus_minus(0.16502, 0.00158), plus_minus(6566.0, 70.2), plus_minus(2.0, float("nan"))
        ('0.1650 ± 0.0016', '6,566 ± 70', '2.00')
    """
    if not 0 < error < math.inf:
        return short(value)
    if not 1e-4 <= abs(value) < 1e7 or error < 1e-7:
        return f"{short(value, 4)} ± {short(error, 2)}"
    decimals = max(0, 1 - int(f"{error:.1e}".partition("e")[2]))
    return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"


def estimate(value: float, low: float, high: float, *, signed: bool = False) -> tuple[str, str]:
    """A value and its interval, both to two digits of the interval's width.

    Sizes below 10 have at least two decimals, those below 100 one.

    Example:
        >>> estimate(0.00123, 0.0011, 0.0015), estimate(1234.5, 1200.0, 1300.0, signed=True)
        (('0.00123', '0.00110 to 0.00150'), ('+1,234', '1,200 to 1,300'))
        >>> estimate(2.0, float("nan"), float("nan"))
        ('2', '–')
    """
    form, width, size = ".3g", high - low, max(abs(low), abs(high))
    if 0 < width < math.inf and 1e-4 < size < 1e7:
        least = 2 if size < 10 else 1 if size < 100 else 0
        form = f",.{min(max(1 - math.floor(math.log10(width)), least), 6)}f"
    ends = NONE if math.isnan(low) else f"{low:{form}} to {high:{form}}"
    return (NONE if math.isnan(value) else f"{value:{'+' * signed}{form}}"), ends


def listed(words: Sequence[str], last: str = "and") -> str:
    """Words as a sentence lists them.

    Example:
        >>> listed(["one"]), listed(["one", "two"]), listed(["one", "two", "three"], "or")
        ('one', 'one and two', 'one, two or three')
    """
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
