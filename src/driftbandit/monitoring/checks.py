"""Tests of surprises u that are independent and standard normal under the true model.

Pure functions of arrays, each with its exact or stated null distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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


class Correlation(NamedTuple):
    """How surprises follow the earlier ones of their group; `correlation` computes it.

    Take u(j) given all that came before, the rule that chose the arm included. Under the true model
    it is normal with mean zero, and the row x(j) is known: the surprises before it in its group, or
    sums of them. So M = Σ x(j) u(j) is a martingale, and V = Σ x(j) x(j)ᵀ is what its variance adds
    up to on the way, whatever the rule. M is divided by this V, never by the number of pairs: a
    rule that repeats an arm after a large surprise makes few pairs with large products. As in a
    regression of u on x, the share of Σ u² that x explains,

        R² = Mᵀ V⁻¹ M / Σ u²,     has the distribution Beta(r/2, (n − r)/2),   r the rank of V.

    This is exact if x does not depend on u, and close if x is the past (`benchmarks/monitoring.py`
    measures it). A wrong scale of the surprises does not change R², so it does not look like
    correlation.
    """

    values: np.ndarray  # autocorrelations M(l) / Σ u² by lag; 0 for a lag without pairs
    spread: np.ndarray  # their standard deviations, √(V(l, l) / (n Σ u²))
    explained: float  # R²
    rank: int
    rewards: int  # n

    @property
    def p_value(self) -> float:
        """The chance of an R² as large or larger."""
        if self.rank == 0:
            return 1.0
        return float(scipy.special.betaincc(*self._shape, min(self.explained, 1.0)))

    def limit(self, chance: float) -> float:
        """What R² exceeds with that chance."""
        return float(scipy.special.betainccinv(*self._shape, chance)) if self.rank else 0.0

    @property
    def _shape(self) -> tuple[float, float]:
        return self.rank / 2, (self.rewards - self.rank) / 2


def earlier(u: np.ndarray, lags: int, groups: np.ndarray) -> np.ndarray:
    """x: of each surprise, the one of its group ``lag`` − 1 others before, n × lags; 0 if none.

    Args:
        u, lags: n surprises in order of time; how many lags, 1 … lags.
        groups: n labels, such as the arm of each reward.

    Example:
        >>> earlier(np.array([1.0, 2.0, 3.0, 4.0]), 2, np.array([0, 1, 0, 0])).tolist()
        [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [3.0, 1.0]]
    """
    order = np.argsort(groups, kind="stable")
    own, label = u[order], groups[order]
    before = np.zeros((len(u), lags))
    for lag in range(1, min(lags, len(u) - 1) + 1):
        same = label[lag:] == label[:-lag]
        before[order[lag:][same], lag - 1] = own[:-lag][same]
    return before


def correlation(
    u: np.ndarray, lags: int, groups: np.ndarray, sums: Sequence[int] = ()
) -> Correlation:
    """The `Correlation` of surprises within groups.

    Args:
        u, lags, groups: as in `earlier`.
        sums: the columns of x at which a sum of lags begins, as (0, 1, 4) for lag 1, lags 2 to 4
            and lags from 5 on: these are tested then. Drift that is too fast or too slow
            correlates all lags alike, which few sums show better than many lags. (): every lag.

    Example:
        >>> u = np.array([1.0, -1.0] * 10)
        >>> alternating = correlation(u, 1, np.zeros(20))
        >>> alternating.values.round(2), round(alternating.explained, 2), alternating.p_value < 0.01
        (array([-0.95]), 0.95, True)
    """
    n, square = len(u), float(u @ u)
    before = earlier(u, lags, groups)
    if square == 0:
        return Correlation(np.zeros(lags), np.zeros(lags), 0.0, 0, n)
    x = np.add.reduceat(before, sums, axis=1) if len(sums) else before
    weights, _, rank, _ = np.linalg.lstsq(x, u)
    spread = np.sqrt((before**2).sum(axis=0) / (n * square))
    explained = float((x @ weights) @ u) / square
    return Correlation(u @ before / square, spread, explained, int(rank), n)


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
