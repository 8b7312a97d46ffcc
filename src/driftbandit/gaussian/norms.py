"""The mean length of a normal vector, by one smooth integral."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

STEP = 0.25  # of the trapezoidal rule, whose error is about exp(−π²/STEP) = 7·10⁻¹⁸ of the result
REACH = 76.0  # beyond ±REACH the integrand is below exp(−REACH/2) = 3·10⁻¹⁷ of its peak
NODES = np.arange(-REACH, REACH + STEP, STEP)


def unit_length(dimension: int) -> float:
    """E ‖N(0, I)‖ = √2 Γ((r + 1)/2) / Γ(r/2) in r dimensions.

    Example:
        >>> round(unit_length(1) ** 2, 12) == round(2 / math.pi, 12)
        True
    """
    ratio = math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2)
    return math.sqrt(2) * math.exp(ratio)


def expected_length(squares: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """E √(Σ_i (μ_i + √λ_i ω_i)²), the ω_i independent standard normal.

    For any Y ≥ 0, E √Y = (2√π)⁻¹ ∫ (1 − E e^(−sY)) s^(−3/2) ds over s > 0, and here

        E e^(−sY) = Π_i (1 + 2 λ_i s)^(−½) exp(−s μ_i² / (1 + 2 λ_i s)).

    With s = eˣ the integrand decays on both sides and is analytic for |Im x| < π/2, so that the
    trapezoidal rule is exact to rounding. Gauss–Hermite quadrature of the length is not, because
    the length has a kink where the vector vanishes.

    Args:
        squares, variances: μ_i² and λ_i ≥ 0, of shape (…, r); the result has shape (…).

    Example:
        >>> float(expected_length(np.array([0.0]), np.array([1.0])).round(12))  # √(2/π)
        0.797884560803
    """
    scale = np.sum(squares + variances, axis=-1)
    safe = np.where(scale > 0, scale, 1.0)[..., None]
    s = np.exp(NODES)
    exponent = np.zeros(1)
    for square, variance in zip(
        np.moveaxis(squares / safe, -1, 0), np.moveaxis(variances / safe, -1, 0), strict=True
    ):
        blur = 2 * variance[..., None] * s
        exponent = exponent + 0.5 * np.log1p(blur) + square[..., None] * s / (1 + blur)
    values = -np.expm1(-exponent) * np.exp(-NODES / 2)
    return np.sqrt(scale) * (STEP / (2 * math.sqrt(math.pi))) * values.sum(axis=-1)


def expected_norm(mean: Any, cov: Any) -> float:
    """E ‖N(mean, cov)‖, to rounding.

    Example:
        >>> round(expected_norm(np.zeros(2), np.eye(2)) ** 2, 12) == round(math.pi / 2, 12)
        True
    """
    values, vectors = np.linalg.eigh(cov)
    return float(expected_length((vectors.T @ mean) ** 2, np.maximum(values, 0)))
