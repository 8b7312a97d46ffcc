"""What a policy would have earned in the rounds of a log that shows one reward per round.

In round t the log drew arm a with chance p(a), given all that had happened, and paid x = X(a). A
policy names arms with shares q (1 for a single arm), chosen before the round. With m(a), a
prediction of X(a) from earlier rounds,

    Y = Σ_a q(a) m(a) + q(a)/p(a) (x − m(a))          a: the arm that the log drew

has the expectation Σ q(a) X(a), whatever m is: averaged over the draw, the second part is
Σ q(a) (X(a) − m(a)). So the errors of Y are martingale differences, and the mean of Y is unbiased
for what the named arms would have paid in these very rounds. If m is a constant this is inverse
propensity scoring, if it is the prediction of a model it is doubly robust. Dudík, Langford and Li
(2011); Bibaut et al. (2021) for logs whose draws depend on past rewards.

With e(a) = X(a) − m(a), the variance of the error of one round is

    Σ_a q(a)² e(a)²/p(a) − (Σ_a q(a) e(a))²

The first sum is estimated without bias by q(a)² e(a)²/p(a)² of the arm that was drawn. The second
is e(a)² if the policy names a single arm, with the unbiased estimate e(a)²/p(a) if that arm was
drawn. Otherwise it contains products of rewards that are never seen together; it is left out, and
the variance is too large rather than too small, as in Neyman (1923). This concerns rounds in which
the runs of a policy disagree, and differences of two policies in rounds in which they do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special


class Shown(NamedTuple):
    """What a log shows of n rounds, and the predictions m of all k arms."""

    arms: np.ndarray  # n arms that were played
    rewards: np.ndarray  # n
    chances: np.ndarray  # n, of the arms that were played
    predicted: np.ndarray  # n × k

    @property
    def residuals(self) -> np.ndarray:
        """The errors of the predictions, x − m(a) of the arms that were played."""
        return np.asarray(self.rewards - self.of_played(self.predicted))

    def of_played(self, values: np.ndarray) -> np.ndarray:
        """From n × k values, those of the arms that were played."""
        return np.asarray(values[np.arange(len(self.arms)), self.arms])


def shares(choices: np.ndarray, n_arms: int) -> np.ndarray:
    """q: the share of runs (runs × n choices) that name each arm, n × k.

    Example:
        >>> shares(np.array([[0, 1], [0, 0]]), 2).tolist()
        [[1.0, 0.0], [0.5, 0.5]]
    """
    return np.stack([(choices == arm).mean(axis=0) for arm in range(n_arms)], axis=1)


def earned(named: np.ndarray, shown: Shown) -> np.ndarray:
    """Y of every round, for the shares q of the arms (n × k).

    Example:
        >>> log = Shown(np.array([0]), np.array([5.0]), np.array([0.5]), np.array([[3.0, 1.0]]))
        >>> earned(np.array([[1.0, 0.0]]), log), earned(np.array([[0.0, 1.0]]), log)
        (array([7.]), array([1.]))
    """
    counted = shown.of_played(named)
    estimated = np.vecdot(named, shown.predicted) + counted / shown.chances * shown.residuals
    # m + (x − m) is not x to the last digit, and a difference of 1e-17 has a sign.
    return np.where((counted == 1) & (shown.chances == 1), shown.rewards, estimated)


def variances(counted: np.ndarray, shown: Shown, other: np.ndarray | None = None) -> np.ndarray:
    """Estimated variance of each round's error, of Y or of the difference of two policies' Y.

    Args:
        counted: q(a) of the arm that was played, n shares.
        shown: the log.
        other: the same of the policy whose Y is subtracted; None: nothing uncertain is subtracted.
    """
    return leverages(counted, shown, other) * shown.residuals**2


def leverages(counted: np.ndarray, shown: Shown, other: np.ndarray | None = None) -> np.ndarray:
    """How often the squared error of each round counts in the variance; as in `variances`.

    Zero where nothing is uncertain: the named arm was not played, or it had chance 1.
    """
    if other is not None:
        return np.asarray(((counted - other) / shown.chances) ** 2)
    return np.asarray((counted**2 - (counted == 1) * shown.chances) / shown.chances**2)


def interval(mean: float, variances: np.ndarray, confidence: float) -> tuple[float, float]:
    """The ends of mean ± t √(Σ v) / n, by the central limit theorem for martingales.

    The variance is estimated, too: often a few rounds of small chance carry most of it. Each v is
    one round's estimate, so v² is at least as large as its variance, on average, and Σ v has at
    most the relative variance Σ v² / (Σ v)². A χ² with ν degrees of freedom has 2/ν, so t is the
    quantile of Student's distribution with ν = 2 (Σ v)² / Σ v² (Satterthwaite 1946). Neither this
    nor the kurtosis in it needs bounds of the rewards. Empirical Bernstein bounds (Maurer and
    Pontil 2009; Waudby-Smith and Ramdas 2024) do, and are 39% wider or more.

    Example:
        >>> [round(end, 3) for end in interval(0.0, np.ones(4), 0.95)]  # ν = 8
        [-1.153, 1.153]
    """
    freedom = max(2 * effective_size(variances), 1.0)
    quantile = special.stdtrit(freedom, (1 + confidence) / 2)
    reach = float(quantile) * math.sqrt(variances.sum()) / len(variances)
    return mean - reach, mean + reach


def tolerance(gain: float, pulls: np.ndarray) -> float:
    """Γ: by which factor the odds of the logged chances may be wrong until a gain is gone.

    Say every chance p is wrong because the log also looked at something that moves the rewards, and
    the odds p/(1 − p) are off by a factor between 1/Γ and Γ, in each round another one (the
    marginal sensitivity model, Tan 2006). Then the weight 1/p is really 1 + λ (1/p − 1) with λ in
    [1/Γ, Γ]. With g = q(a) (1/p − 1) (x − m(a)), a round's Y is too large by (1 − λ) g, so n times
    the gain, G = n · ``gain``, is in the worst case

        G − (1 − 1/Γ) P − (Γ − 1) N,     P = Σ max(g, 0),   N = Σ max(−g, 0),

    which is zero for N Γ² − R Γ − P = 0 with R = G − P + N. Zhao, Small and Bhattacharya (2019).

    Args:
        gain: per round, above zero: the end of an interval that is closer to zero. The interval's
            length is taken as it is.
        pulls: g of each round; of a difference, that of one policy minus that of the other.

    Example:
        >>> tolerance(0.5, np.array([3.0, -1.0]))  # 1 − 3 + 1 = −1, and Γ² + Γ = 3
        1.3027756377319946
        >>> tolerance(1.0, np.array([0.0, 0.0]))  # nothing depends on chances
        inf
    """
    up, down = float(pulls[pulls > 0].sum()), -float(pulls[pulls < 0].sum())
    rest = len(pulls) * gain - up + down
    root = math.hypot(rest, 2 * math.sqrt(up * down))
    if rest < 0:
        return 2 * up / (root - rest)
    return (rest + root) / (2 * down) if down > 0 else math.inf


def effective(counted: np.ndarray, shown: Shown) -> float:
    """Effective sample size of the weights u = q(a)/p(a).

    Example:
        >>> chances = np.array([0.5, 0.5, 0.5, 0.1])
        >>> log = Shown(np.zeros(4, int), np.zeros(4), chances, np.zeros((4, 1)))
        >>> effective(np.array([1, 0, 1, 0]), log), effective(np.array([1, 0, 1, 1]), log)
        (2.0, 1.8148148148148149)
    """
    return effective_size(counted / shown.chances)


def effective_size(weights: np.ndarray) -> float:
    """(Σ u)² / Σ u², Kish (1965): how many equal weights have the same relative variance."""
    whole = float(weights.sum())
    return whole**2 / float(weights @ weights) if whole > 0 else 0.0


def kurtosis(values: np.ndarray, center: float | None = None) -> float:
    """Fourth moment n Σ d⁴ / (Σ d²)² of the deviations d from ``center``; None: from the median.

    It is 3 for normal values, and 1/q if a share q of the values differs from all others. So n
    divided by it is the number of values that carry the variance. Infinite if all are equal.

    Example:
        >>> kurtosis(np.array([0.0] * 95 + [1.0] * 5)), kurtosis(np.ones(9))
        (20.0, inf)
    """
    if not len(values):
        return math.inf
    apart = np.abs(values - (np.median(values) if center is None else center))
    largest = float(apart.max())
    if largest == 0:
        return math.inf
    squares = (apart / largest) ** 2
    return len(values) / effective_size(squares)
