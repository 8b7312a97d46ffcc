"""Paired comparisons of policies, with bootstrap intervals.

Policies of one simulation see the same states and the same noise, so they are compared run by run.
Runs of one system are alike; systems are independent. Every interval is therefore a percentile
bootstrap that draws whole systems with all their runs, or runs if there is only one system. The
rounds of one history depend on each other: there, blocks of rounds are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors

__all__ = ["BETTER", "NO_DIFFERENCE", "TOO_FEW", "WORSE", "Interval", "Paired", "block_interval"]
__all__ += ["block_length", "block_means", "median_interval", "median_intervals", "paired"]
__all__ += ["verdict"]

STRETCHES = 16  # that the values near the median are divided into
BLOCK = 50_000
"""Counts processed together: few enough to stay in a core's cache, and times `STRETCHES` few enough
for BLAS to use one thread; more would wait for each other."""
BETTER, WORSE = "better", "worse"  # has less, or more, regret than the other policy
NO_DIFFERENCE, TOO_FEW = "no difference seen", "too few to tell"
"""The four verdicts on a difference; see `verdict`."""

Statistic = Callable[[np.ndarray], np.ndarray]
"""From how often each unit is in each resample (resamples × units) to one number per resample."""


class Paired(NamedTuple):
    """One policy against another, run by run; less is better, as with regret.

    `paired` and `Result.compare` return it.

    Example:
        >>> new, old = np.arange(40) - 3.0, np.arange(40) + np.tile([-4.0, 0.0, 0.0, 0.0], 10)
        >>> found = paired(new, old)
        >>> found.median_difference, (found.low, found.high), found.win_rate
        (-3.0, (-3.0, -3.0), 0.75)
        >>> found.verdict, found.mean_difference, found.mean_verdict
        ('better', -2.0, 'better')
        >>> print(found)
        better: median -3 (-3 to -3), mean -2 (-2.5 to -1.5), wins 75% (62 to 88)
    """

    median_difference: float  # median over all runs of first − second, and its interval
    low: float
    high: float
    win_rate: float  # share of runs in which first < second, and its interval; ties count half
    win_low: float
    win_high: float
    mean_difference: float  # mean over all runs of first − second, and its interval
    mean_low: float
    mean_high: float
    runs: int  # in all systems together
    independent: int  # what the bootstrap draws: systems, or the runs of one system
    confidence: float  # of all intervals
    unit: str = ""  # of the differences; empty: that of the rewards

    @property
    def verdict(self) -> str:
        """`WORSE`, `BETTER`, `NO_DIFFERENCE` or `TOO_FEW`, from the median."""
        return verdict(self.low, self.high, self.independent, self.confidence)

    @property
    def mean_verdict(self) -> str:
        """The same from the mean, which a few large differences can decide."""
        return verdict(self.mean_low, self.mean_high, self.independent, self.confidence)

    def __str__(self) -> str:
        """The verdict; median, mean and win rate with their intervals; on one line."""

        def interval(value: float, low: float, high: float) -> str:
            return f"{value:+.3g}" + ("" if np.isnan(low) else f" ({low:+.3g} to {high:+.3g})")

        share, least, most = (100 * s for s in (self.win_rate, self.win_low, self.win_high))
        found = self.verdict
        if found != self.mean_verdict:
            found = f"{found} by the median, {self.mean_verdict} by the mean"
        return (
            f"{found}: median {interval(self.median_difference, self.low, self.high)}, "
            f"mean {interval(self.mean_difference, self.mean_low, self.mean_high)}, "
            f"wins {share:.0f}%{'' if np.isnan(least) else f' ({least:.0f} to {most:.0f})'}"
            f"{self.unit and '; unit: ' + self.unit}"
        )


def verdict(low: float, high: float, independent: float, confidence: float = 0.95) -> str:
    """`WORSE` if an interval of a difference in regret is above zero, `BETTER` if it is below.

    Without any difference, n independent medians are all on one side of zero with probability
    2¹⁻ⁿ. If that exceeds 1 − confidence, no data can decide (`TOO_FEW`): 95% takes six.

    Args:
        low, high: the ends of the interval.
        independent: what it rests on: the number of systems, or of runs of one system.
        confidence: of the interval.

    Returns:
        `WORSE`, `BETTER`, `NO_DIFFERENCE` (zero is inside) or `TOO_FEW`.

    Example:
        >>> verdict(0.2, 0.9, 20), verdict(-0.1, 0.9, 20), verdict(0.2, 0.9, 5)
        ('worse', 'no difference seen', 'too few to tell')
    """
    if 2.0 ** (1 - independent) > 1 - confidence:
        return TOO_FEW
    return WORSE if low > 0 else BETTER if high < 0 else NO_DIFFERENCE


def paired(
    first: Any, second: Any, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Paired:
    """Compare two policies run by run, as in Table II (P21): median, mean and win rate.

    Equal values differ by zero, even infinite ones. An infinite difference counts like any other:
    it makes the mean infinite, or NaN if both signs occur. NaN itself is refused. As with every
    bootstrap, fewer than about ten systems give intervals that are too narrow, and a win rate of 0
    or 1 has an interval of no width. Time grows as values × resamples.

    Args:
        first, second: the regret of two policies in the same runs; (runs,) or (systems, runs).
        confidence: of the intervals, between 0 and 1; with a single run they are NaN.
        resamples, seed: of the bootstrap; the same seed gives the same intervals.

    Returns:
        `Paired`: differences are first − second, so negative ones speak for the first.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> luck = rng.normal(size=100)  # shared by both, so it cancels
        >>> result = paired(luck + 0.1, luck + 0.05 * rng.normal(size=100))
        >>> f"{result.median_difference:.2f} [{result.low:.2f}, {result.high:.2f}]", result.verdict
        ('0.10 [0.09, 0.11]', 'worse')
    """
    first, second = _checked(first, "first"), _checked(second, "second")
    if first.shape != second.shape:
        problem = f"has shape {second.shape}, first has {first.shape}"
        raise errors.InvalidInput("second", problem, "give the same runs")
    difference = np.zeros_like(first)
    np.subtract(first, second, out=difference, where=first != second)
    drawn = units(difference)
    wins = (1 - np.sign(drawn)) / 2
    statistics = (_median(drawn), _mean(wins), _mean(drawn))
    rows = _bootstrap(statistics, drawn.shape, confidence, resamples, seed)
    return Paired._make([*rows.ravel().tolist(), drawn.size, len(drawn), float(confidence), ""])


def median_interval(
    values: Any, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap interval of the median over all runs; draws systems if there are several.

    Args:
        values: (runs,) or (systems, runs); infinite ones count, NaN is refused.
        confidence, resamples, seed: as in `paired`; with a single run the ends are NaN.

    Returns:
        The two ends.

    Example:
        >>> median_interval([1, 2, 3, 4, 5, 6, 7, 8, 9])
        (2.0, 8.0)
    """
    options: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    return median_intervals([values], **options)[0]


def median_intervals(
    several: Sequence[Any], *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> list[tuple[float, float]]:
    """The `median_interval` of each array; all have one shape, so the resamples are drawn once.

    Args:
        several: arrays as `median_interval` takes one.
        confidence, resamples, seed: as in `paired`.

    Returns:
        The two ends for each array.

    Example:
        >>> regret = np.arange(1.0, 10.0)
        >>> median_intervals([regret, 10 * regret])
        [(2.0, 8.0), (20.0, 80.0)]
    """
    drawn = [units(_checked(values, "values")) for values in several]
    statistics = tuple(_median(values) for values in drawn)
    rows = _bootstrap(statistics, drawn[0].shape, confidence, resamples, seed)
    return [(low, high) for _, low, high in rows.tolist()]


def several_systems(values: np.ndarray) -> bool:
    """Whether the first axis is systems, and more than one."""
    return values.ndim == 2 and len(values) > 1


def units(values: np.ndarray) -> np.ndarray:
    """Independent units along the first axis: systems × runs, or the runs of one system × 1."""
    return values if several_systems(values) else values.reshape(-1, 1)


def _checked(values: Any, argument: str) -> np.ndarray:
    remedy = "give numbers of shape (runs,) or (systems, runs)"
    try:
        array = np.asarray(values)
    except ValueError:
        raise errors.InvalidInput(argument, "has rows of several lengths", remedy) from None
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2) or array.size == 0:
        problem = f"has shape {array.shape} and type {array.dtype}"
        raise errors.InvalidInput(argument, problem, remedy)
    array = array.astype(np.float64)
    if np.isnan(array).any():
        where = np.argwhere(np.isnan(array))[0].tolist()
        raise errors.InvalidInput(argument, f"entry {where} is nan", "leave that run out")
    return array


def _bootstrap(
    statistics: tuple[Statistic, ...],
    shape: tuple[int, ...],
    confidence: float,
    resamples: int,
    seed: int,
) -> np.ndarray:
    """Value, low and high of each statistic, one row each."""
    confidence = errors.number(confidence, "confidence", low=0, high=1, strict=True)
    resamples = errors.whole_number(resamples, "resamples", low=1)
    seed = errors.whole_number(seed, "seed", low=0)
    once = np.ones((1, shape[0]))
    value = np.array([statistic(once) for statistic in statistics])
    if shape[0] == 1:
        return np.hstack([value, np.full((len(value), 2), np.nan)])
    blocks = _counts(shape, resamples, seed)
    drawn = np.hstack([[statistic(counts) for statistic in statistics] for counts in blocks])
    ends = np.array([ends_of(row, confidence) for row in drawn])
    ends[np.isnan(drawn).any(axis=1)] = np.nan
    return np.hstack([value, ends])


def ends_of(drawn: np.ndarray, confidence: float) -> tuple[float, float]:
    """The percentile interval of drawn values, without interpolation, since some may be ∞."""
    drawn = np.sort(drawn)
    outside = int(len(drawn) * (1 - confidence) / 2)
    return float(drawn[outside]), float(drawn[-1 - outside])


def _counts(shape: tuple[int, ...], resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each unit is in each resample, a block of resamples at a time."""
    rng = np.random.default_rng(seed)
    independent = shape[0]
    rows = max(1, BLOCK // independent)
    for start in range(0, resamples, rows):
        rows = min(rows, resamples - start)
        drawn = rng.integers(independent, size=(rows, independent))
        drawn += independent * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * independent)
        yield counts.reshape(rows, independent).astype(float)  # products of floats are fast


def _median(values: np.ndarray) -> Statistic:
    """The median over all runs of a resample, from one sort of all values."""
    independent, alike = values.shape
    order = np.argsort(values, axis=None)
    ranked, owner = values.ravel()[order], order // alike
    middle = (values.size - 1) // 2, values.size // 2
    # By Hoeffding's inequality a running count strays farther than this from its place in the data
    # once in 10¹² resamples, so only places that near the middle are searched.
    reach = alike * math.isqrt(14 * independent) + 1
    start, end = max(0, middle[0] - reach), min(values.size, middle[1] + reach)
    # A product with ``before`` tells in which of a few stretches the median is; only there the
    # values are counted one by one.
    length = -(-(end - start) // STRETCHES)
    stretches = np.minimum(np.arange(start, end, length)[:, None] + np.arange(length), end - 1)
    firsts = stretches[:, 0].tolist()
    before = np.stack([np.bincount(owner[:i], minlength=independent) for i in firsts], axis=1)
    before = before.astype(float)

    def of(counts: np.ndarray) -> np.ndarray:
        running = counts @ before
        resample = np.arange(len(counts))

        def ranked_at(rank: int) -> np.ndarray:
            stretch = np.maximum((running <= rank).sum(axis=1) - 1, 0)
            places = stretches[stretch]
            inside = counts[resample[:, None], owner[places]].cumsum(axis=1)
            passed = (inside + running[resample, stretch][:, None] <= rank).sum(axis=1)
            return ranked[np.minimum(places[:, 0] + passed, end - 1)]

        low, high = map(ranked_at, middle)
        with np.errstate(invalid="ignore"):  # -∞ and ∞ have no middle
            return low / 2 + high / 2

    return of


def _mean(values: np.ndarray) -> Statistic:
    """The mean over all runs of a resample."""
    with np.errstate(invalid="ignore"):  # -∞ + ∞
        sums = values.sum(axis=1)
    endless = ~np.isfinite(sums)
    finite = np.where(endless, 0.0, sums)

    def of(counts: np.ndarray) -> np.ndarray:
        # 0 · ∞ has no value, but a unit that was not drawn adds nothing.
        with np.errstate(invalid="ignore"):
            rest = np.where(counts[:, endless] > 0, sums[endless], 0.0).sum(axis=1)
        return (counts @ finite + rest) / values.size

    return of


class Interval(NamedTuple):
    """The mean of a series and its interval, from a bootstrap of ``block`` neighbors at a time.

    Example:
        >>> earned = np.repeat([0.0, 1.0, 1.0, 0.0, 1.0], 20)  # rounds in a row are alike
        >>> found = block_interval(earned, block=20)
        >>> found.mean, found.low < 0.35, found.high > 0.85
        (0.6, True, True)
        >>> naive = block_interval(earned, block=1)  # as if rounds were independent
        >>> naive.high - naive.low < (found.high - found.low) / 2
        True
    """

    mean: float
    low: float
    high: float
    block: int


def block_length(values: Any) -> int:
    """How many neighbors to draw together: Politis and White (2004), corrected in 2009.

        b = (2 G² n / D)^⅓,   G = Σ λ(k/M) |k| R(k),   D = 4/3 (Σ λ(k/M) R(k))²

    R is the autocovariance, λ a flat-top window, M twice the lag from which on R is noise. The
    length is 1 for a series without memory, and at most min(3 √n, n/3).

    Args:
        values: n finite numbers in order of time.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> block_length(rng.normal(size=500)), block_length(rng.normal(size=500).cumsum())
        (1, 42)
    """
    series, n = _series(values)[:, 0], len(values)
    quiet = max(5, math.ceil(math.sqrt(math.log10(n))))
    lags = min(math.ceil(math.sqrt(n)) + quiet, n - 1)
    apart = series - series.mean()
    if n < 9 or not apart.any():
        return 1
    size = 2 ** math.ceil(math.log2(2 * n))
    spectrum = np.abs(np.fft.rfft(apart, size)) ** 2
    R = np.fft.irfft(spectrum, size)[: lags + 1] / n
    loud = np.abs(R[1:]) >= 2 * math.sqrt(math.log10(n) / n) * R[0]
    # The first lag followed by ``quiet`` small ones; else the last one that is not small.
    runs = np.convolve(loud, np.ones(quiet), "valid") if len(loud) >= quiet else np.ones(1)
    last = int(np.argmin(runs)) if not runs.all() else int(np.flatnonzero(loud)[-1]) + 1
    M = min(2 * max(last, 1), lags)
    k = np.arange(1, M + 1)
    weights = np.clip(2 * (1 - k / M), 0, 1)
    G = 2 * float(weights * k @ R[1 : M + 1])
    D = 4 / 3 * (R[0] + 2 * float(weights @ R[1 : M + 1])) ** 2
    most = math.ceil(min(3 * math.sqrt(n), n / 3))
    if 2 * G**2 * n >= D * most**3:
        return most
    return max(1, round((2 * G**2 * n / D) ** (1 / 3)))


def block_means(values: Any, block: int, *, resamples: int = 2000, seed: int = 0) -> np.ndarray:
    """Means of resamples made of blocks of neighbors; the last value's neighbor is the first.

    Args:
        values: n numbers in order of time, or n × c, whose columns stay together.
        block: how many neighbors are drawn together; 1 is the ordinary bootstrap.
        resamples, seed: as in `paired`.

    Returns:
        The mean of each resample, resamples × c.

    Example:
        >>> means = block_means(np.arange(100.0), block=10, resamples=500)
        >>> means.shape, bool(abs(means.mean() - 49.5) < 2)
        ((500, 1), True)
    """
    series = _series(values)
    n = len(series)
    block = errors.whole_number(block, "block", low=1, high=n)
    resamples = errors.whole_number(resamples, "resamples", low=1)
    rng = np.random.default_rng(errors.whole_number(seed, "seed", low=0))
    blocks = -(-n // block)
    rest = n - (blocks - 1) * block  # the last block is cut, so that n values are drawn
    sums = np.vstack([np.zeros(series.shape[1]), np.cumsum(np.vstack([series] * 2), axis=0)])
    whole, cut = (sums[length : length + n] - sums[:n] for length in (block, rest))
    means = np.empty((resamples, series.shape[1]))
    rows = max(1, BLOCK // (blocks * series.shape[1]))
    for start in range(0, resamples, rows):
        rows = min(rows, resamples - start)
        drawn = rng.integers(n, size=(rows, blocks))
        means[start : start + rows] = (whole[drawn[:, :-1]].sum(axis=1) + cut[drawn[:, -1]]) / n
    return means


def block_interval(
    values: Any,
    *,
    block: int | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Interval of the mean of a series whose neighbors depend on each other.

    A circular block bootstrap (Politis and Romano 1992). With a long memory the interval is too
    short: for 500 rounds of AR(1) with φ = 0.5, 95% intervals cover the mean in 93%.

    Args:
        values: n numbers in order of time.
        block: how many neighbors are drawn together; None: `block_length`.
        confidence, resamples, seed: as in `paired`; with a single round the ends are NaN.

    Returns:
        `Interval`: the mean, both ends and the block length.

    Example:
        >>> found = block_interval(np.random.default_rng(2).normal(size=400))
        >>> f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}] {found.block}"
        '-0.03 [-0.13, 0.07] 1'
    """
    series = _series(values)
    confidence = errors.number(confidence, "confidence", low=0, high=1, strict=True)
    block = block_length(series) if block is None else block
    means = block_means(series, block, resamples=resamples, seed=seed)[:, 0]
    ends = ends_of(means, confidence) if len(series) > 1 else (math.nan, math.nan)
    return Interval(float(series.mean()), *ends, int(block))


def _series(values: Any) -> np.ndarray:
    """Finite numbers, n × c."""
    series = _checked(values, "values")
    if not np.isfinite(series).all():
        raise errors.InvalidInput("values", "hold one that is not finite", "leave that round out")
    return series.reshape(len(series), -1)
