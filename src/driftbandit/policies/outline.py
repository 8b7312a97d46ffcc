"""What a bonus is made of, so that the best of many arms is found without scoring all of them.

    u(a) = ‖M Fᵀa‖ / √(‖Fᵀa‖² + σ²)      or, not divided,      u(a) = ‖M Fᵀa‖

With F Fᵀ = P, IDEA has M = Γ F; Kalman-UCB has M = w I and does not divide. KODE has no bonus, and
its scores are as fast as any outline.

A policy's scores stay its `bonus`. The outline says the same in a form whose rounding errors are
known beforehand: with it `Agent` looks at all arms in single precision, and then scores those
alone that can be the best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Outline"]


class Outline(NamedTuple):
    """A bonus u as a ratio of lengths."""

    factor: np.ndarray
    """F, d × r."""
    stretch: np.ndarray
    """M, with r columns."""
    noise: float | None
    """σ; None: not divided."""
    size: float
    """At least ‖M‖; of M = Γ F the product ‖Γ‖ ‖F‖ (Frobenius), which measures the rounding errors
    of a bonus that multiplies by one after the other."""
