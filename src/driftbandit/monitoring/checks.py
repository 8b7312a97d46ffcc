"""Tests of surprises u that are independent and standard normal under the true model.

Pure functions of arrays, each with its exact or stated null distribution.
"""

from __future__ import annotations

import numpy as np
import scipy

from driftbandit import errors

FAR = 3.0  # robust standard deviations from which a surprise counts as far out
DISPERSION = 1.29  # variance over mean of how many do


def mean_square_band(rewards: int, chance: float) -> tuple[float, float]:
    """Where the mean of u² lies, except with that chance: Σ u² has χ²(n) (the NIS test).

    Example:
        >>> low, high = mean_square_band(200, 0.05)
        >>> round(low, 3), round(high, 3)
        (0.814, 1.205)
    """
    ends = scipy.special.chdtri(rewards, [1 - chance / 2, chance / 2])
    return float(ends[0] / rewards), float(ends[1] / rewards)


def mean_square_p_value(u: np.ndarray) -> float:
    """Two-sided p-value of the mean of u²."""
    total = float(u @ u)
    upper = float(scipy.special.chdtrc(len(u), total))
    return min(1.0, 2 * min(upper, float(scipy.special.chdtr(len(u), total))))


def lagged_pairs(groups: np.ndarray, lag: int) -> tuple[np.ndarray, np.ndarray]:
    """Places (i, j) of values of one group with ``lag`` − 1 of their group between them.

    Args:
        groups: n labels, such as the arm of each reward.
        lag: ≥ 1.

    Example:
        >>> [places.tolist() for places in lagged_pairs(np.array([0, 1, 0, 1, 0]), 1)]
        [[0, 2, 1], [2, 4, 3]]
    """
    order = np.argsort(groups, kind="stable")
    first, second = order[:-lag], order[lag:]
    same = groups[first] == groups[second]
    return first[same], second[same]


def autocorrelations(
    u: np.ndarray, lags: int, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Autocorrelations within groups, r = Σ u(i) u(j) / Σ u², and their standard deviations.

    No mean is subtracted: under the true model it is zero. There, u/‖u‖ is uniform on the sphere,
    E u(i)² u(j)² / ‖u‖⁴ = 1 / (n (n + 2)), and products of different pairs are uncorrelated, so
    that Var r = m / (n (n + 2)) exactly, with m the number of pairs. This holds whatever the
    variance of u, so that a wrong scale does not look like correlation.

    Args:
        u, lags: n surprises in order of time; how many lags, 1 … lags.
        groups: n labels; only pairs of one group count. None: all are one group.

    Returns:
        ``lags`` numbers each; both are zero for a lag without pairs.
    """
    n = len(u)
    groups = np.zeros(n, np.int64) if groups is None else groups
    found, spread = np.zeros(lags), np.zeros(lags)
    square = float(u @ u)
    for lag in range(1, min(lags, n - 1) + 1):
        first, second = lagged_pairs(groups, lag)
        if len(first) and square > 0:
            found[lag - 1] = u[first] @ u[second] / square
            spread[lag - 1] = np.sqrt(len(first) / (n * (n + 2)))
    return found, spread


def ljung_box(found: np.ndarray, spread: np.ndarray) -> tuple[float, float]:
    """Ljung and Box's Q = Σ r²/Var r of `autocorrelations`, and its p-value from χ²(lags).

    Example:
        >>> u = np.array([1.0, -1.0] * 10)
        >>> round(ljung_box(*autocorrelations(u, 1))[0], 6)  # n (n + 2) / (n − 1) · 0.95²
        20.9
    """
    there = spread > 0
    statistic = float(np.sum((found[there] / spread[there]) ** 2))
    lags = int(np.count_nonzero(there))
    return statistic, float(scipy.special.chdtrc(lags, statistic)) if lags else 1.0


def far_out(u: np.ndarray) -> int:
    """How many surprises are farther out than three robust standard deviations.

    The standard deviation is median |u| / 0.6745: outliers do not move it, and a wrong scale alone
    puts nothing far out.
    """
    size = np.abs(u)
    return int(np.count_nonzero(size > FAR * np.median(size) / scipy.special.ndtri(0.75)))


def far_out_p_value(count: int, rewards: int) -> float:
    """The chance that so many surprises or more are far out under the true model.

    The count is close to negative binomial, with mean n p + 0.16 and variance 1.29 n p, where
    p = P(|u| > 3) = 0.0027. The scale comes from the same surprises: to first order the count is
    Σ 1{|u| > 3} − c (½ − 1{|u| ≤ median}) / 0.429 with c = 6 φ(3) = 0.0266, whose variance is
    1.29 n p; to second order the error of the scale adds 0.16 to the mean.

    Example:
        >>> round(far_out_p_value(3, 1000), 2), far_out_p_value(20, 1000) < 1e-5
        (0.52, True)
    """
    mean = rewards * 2 * float(scipy.special.ndtr(-FAR)) + 0.16
    size = mean / (DISPERSION - 1)
    return float(scipy.special.betainc(count, size, mean / (size + mean))) if count else 1.0


def round_sums(u: np.ndarray, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ u / √m of the m surprises of every round: standard normal, too, and one per round.

    Args:
        u, rounds: n each, rewards of one round next to each other.

    Returns:
        One number per round, and the place of its first reward.

    Example:
        >>> round_sums(np.array([3.0, 1.0, 1.0]), np.array([4, 7, 7]))
        (array([3.        , 1.41421356]), array([0, 1]))
    """
    if len(u) != len(rounds):
        problem = f"has {len(u)} numbers for {len(rounds)} rounds"
        raise errors.InvalidInput("u", problem, "give one of each per reward")
    starts = np.flatnonzero(np.append(True, rounds[1:] != rounds[:-1]))
    counts = np.diff(np.append(starts, len(u)))
    return np.add.reduceat(u, starts) / np.sqrt(counts), starts


def most_far_out(rewards: int, chance: float) -> int:
    """The largest count whose `far_out_p_value` is above ``chance``."""
    count = int(rewards * 2 * scipy.special.ndtr(-FAR))  # more likely than not
    while far_out_p_value(count + 1, rewards) > chance:
        count += 1
    return count


def ljung_box_limit(spread: np.ndarray, chance: float) -> float:
    """What Q exceeds with that chance."""
    return float(scipy.special.chdtri(max(int(np.count_nonzero(spread)), 1), chance))
