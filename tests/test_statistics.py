"""Paired comparisons: against a textbook loop, against SciPy, and by their coverage."""

import tracemalloc

import numpy as np
import pytest
import scipy.signal
import scipy.stats

import driftbandit as db
from driftbandit.statistics import (
    Paired,
    block_interval,
    block_length,
    block_means,
    median_interval,
    median_intervals,
    paired,
)
from refusals import INF, NAN, Case, assert_refused, each


def textbook(first, second, confidence, resamples, seed):
    """The bootstrap as one writes it down: draw systems, pool their runs, take the statistic."""
    difference = np.atleast_2d(np.asarray(first) - second)
    if len(difference) == 1:
        difference = difference.T
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(resamples):
        values = difference[rng.integers(len(difference), size=len(difference))]
        wins = (values < 0).mean() + (values == 0).mean() / 2
        draws.append((np.median(values), wins, values.mean()))
    outside = int(resamples * (1 - confidence) / 2)
    low, high = np.sort(draws, axis=0)[[outside, -1 - outside]]
    whole = np.median(difference), (difference < 0).mean(), difference.mean()
    return np.stack([whole, low, high], axis=1).ravel()


@pytest.mark.parametrize("shape", [(2,), (25,), (30,), (1, 25), (4, 1), (7, 3), (12, 10), (300, 2)])
def test_equals_the_textbook_loop(shape):
    rng = np.random.default_rng(3)
    first, second = rng.standard_cauchy((2, *shape))
    result = paired(first, second, confidence=0.9, resamples=400, seed=5)
    expected = textbook(first, second, 0.9, 400, 5)
    np.testing.assert_allclose(result[:9], expected, rtol=1e-12, atol=1e-14)
    independent = shape[0] if shape[0] > 1 else shape[1]
    assert result[9:] == (first.size, independent, 0.9, "")
    assert median_interval(first - second, confidence=0.9, resamples=400, seed=5) == result[1:3]


def test_only_the_middle_is_looked_at_and_that_is_enough():
    """Large enough that the search for the median leaves most values out, alike ones too."""
    for shape in [(20_000,), (2_000, 3)]:
        values = np.random.default_rng(0).standard_exponential(shape)
        if len(shape) == 2:
            values += 5 * np.arange(len(values))[:, None] / len(values)
        low, high = median_interval(values, resamples=200, seed=1)
        expected = textbook(values, 0 * values, 0.95, 200, 1)
        assert (low, high) == (expected[1], expected[2])


def test_intervals_of_several_are_those_of_each():
    several = np.random.default_rng(4).standard_cauchy((3, 40, 5))
    several[1, :9] = INF
    together = median_intervals([*several], confidence=0.9, resamples=300, seed=2)
    assert together == [
        median_interval(values, confidence=0.9, resamples=300, seed=2) for values in several
    ]


@pytest.mark.parametrize(("statistic", "place"), [(np.median, 0), (np.mean, 6)])
def test_agrees_with_scipy(statistic, place):
    first, second = np.random.default_rng(7).standard_exponential((2, 301))
    ours = paired(first, second, resamples=20_000)
    theirs = scipy.stats.bootstrap(
        (first - second,), statistic, n_resamples=20_000, method="percentile", rng=1
    ).confidence_interval
    width = theirs.high - theirs.low
    np.testing.assert_allclose(ours[place + 1 : place + 3], theirs, rtol=0, atol=0.03 * width)


def coverage(shape, between, clustered=True):
    """Share of 300 data sets whose three intervals hold the truth: 0, one half, 0."""
    rng = np.random.default_rng(11)
    held = []
    for _ in range(300):
        values = rng.normal(size=shape)
        if len(shape) == 2:
            values += between * rng.normal(size=(len(values), 1))
        values = values if clustered else values.ravel()
        row = paired(values, np.zeros_like(values), resamples=500)
        held.append(
            (
                row.low <= 0 <= row.high,
                row.win_low <= 0.5 <= row.win_high,
                row.mean_low <= 0 <= row.mean_high,
            )
        )
    return np.mean(held, axis=0)


def test_coverage_of_independent_runs():
    held = coverage((60,), 0)
    assert ((held >= 0.90) & (held <= 0.99)).all(), held


def test_coverage_of_alike_runs_needs_systems():
    """Runs of one system are alike: drawing systems covers, drawing runs fails badly."""
    held = coverage((40, 10), between=2)
    assert ((held >= 0.90) & (held <= 0.99)).all(), held
    naive = coverage((40, 10), between=2, clustered=False)
    assert (naive < 0.7).all(), naive


def test_exchanging_the_two_mirrors_the_result():
    first, second = np.random.default_rng(2).standard_cauchy((2, 15, 4))
    one, other = paired(first, second), paired(second, first)
    assert (one.median_difference, one.low, one.high) == (
        -other.median_difference,
        -other.high,
        -other.low,
    )
    np.testing.assert_allclose(one[3:6], np.subtract(1, [other[3], other[5], other[4]]))
    np.testing.assert_allclose(one[6:9], np.negative([other[6], other[8], other[7]]))


def test_seeds():
    first, second = np.random.default_rng(2).normal(size=(2, 40))
    assert paired(first, second) == paired(first, second, seed=0)
    other = paired(first, second, seed=1)
    assert paired(first, second).mean_low != other.mean_low
    assert paired(first, second).mean_difference == other.mean_difference


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_one_run_has_no_interval(shape):
    row = paired(np.full(shape, 3.0), np.full(shape, 1.0))
    assert (row.median_difference, row.win_rate, row.mean_difference) == (2, 0, 2)
    assert np.isnan([row.low, row.high, row.win_low, row.win_high, *row[7:9]]).all()
    assert row.verdict == "too few to tell"
    assert np.isnan(median_interval(np.full(shape, 3.0))).all()


def test_equal_infinities_are_ties():
    row = paired([INF, -INF, 2.0, 2.0], [INF, -INF, 2.0, 2.0])
    assert row[:9] == (0, 0, 0, 0.5, 0.5, 0.5, 0, 0, 0)


def test_infinite_differences_count():
    """A few leave the median finite; systems that were not drawn do not make a mean infinite."""
    first, second = np.zeros((40, 3)), np.ones((40, 3))
    first[0, 0] = INF
    row = paired(first, second)
    assert (row.median_difference, row.low, row.high) == (-1, -1, -1)
    assert row.win_rate == pytest.approx(119 / 120)
    assert (row.mean_difference, row.mean_low, row.mean_high) == (INF, -1, INF)
    half = paired([INF] * 20, [0.0] * 20)
    assert half[:9] == (INF, INF, INF, 0, 0, 0, INF, INF, INF)


def test_infinities_of_both_signs_have_no_mean():
    row = paired([INF, 0.0] * 10, [0.0, INF] * 10)
    assert row.win_rate == 0.5
    assert np.isnan([row.mean_difference, row.mean_low, row.mean_high]).all()
    assert np.isnan([row.median_difference, row.low, row.high]).all()  # as many on either side


def test_a_large_study_takes_little_memory():
    first, second = np.random.default_rng(0).normal(size=(2, 1000, 10))
    tracemalloc.start()
    paired(first, second)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize(
    ("low", "high", "independent", "verdict"),
    [
        (0.1, 0.2, 6, "worse"),
        (-0.2, -0.1, 6, "better"),
        (-0.1, 0.2, 6, "no difference seen"),
        (0.0, 0.2, 6, "no difference seen"),
        (NAN, NAN, 6, "no difference seen"),
        (0.1, 0.2, 5, "too few to tell"),
    ],
)
def test_verdict(low, high, independent, verdict):
    row = Paired(0.1, low, high, *[0.5] * 6, runs=20, independent=independent, confidence=0.95)
    assert row.verdict == verdict


# Result.compare


def test_blocks_of_one_are_the_ordinary_bootstrap():
    values = np.random.default_rng(0).exponential(size=80)
    found = block_interval(values, block=1, seed=3)
    usual = paired(values, np.zeros(80), seed=3)
    assert found[:3] == pytest.approx((usual.mean_difference, usual.mean_low, usual.mean_high))


@pytest.mark.parametrize(("n", "block"), [(10, 3), (12, 4), (7, 7), (5, 1)])
def test_blocks_equal_a_literal_loop(n, block):
    values = np.random.default_rng(1).normal(size=(n, 2))
    rng, blocks = np.random.default_rng(4), -(-n // block)
    expected = []
    for starts in rng.integers(n, size=(50, blocks)):
        rounds = [(start + i) % n for start in starts for i in range(block)][:n]
        expected.append(values[rounds].mean(axis=0))
    np.testing.assert_allclose(block_means(values, block, resamples=50, seed=4), expected)


def test_blocks_cover_a_series_with_memory():
    """95% intervals of AR(1) with φ = 0.6: blocks hold what single rounds do not."""
    hits = {None: 0, 1: 0}
    noise = np.random.default_rng(2).normal(size=(300, 450))
    series = scipy.signal.lfilter([1.0], [1.0, -0.6], noise, axis=1)[:, 50:]
    for values in series:
        for block in hits:
            found = block_interval(values, block=block, resamples=300)
            hits[block] += found.low < 0 < found.high
    assert 0.88 < hits[None] / 300 < 0.98
    assert hits[1] / 300 < 0.75


def test_block_length_follows_the_memory():
    noise = np.random.default_rng(0).normal(size=5000)
    lengths = [
        block_length(scipy.signal.lfilter([1.0], [1.0, -phi], noise)) for phi in (0, 0.3, 0.6, 0.9)
    ]
    assert lengths == sorted(lengths)
    # For AR(1), G/D is known: b = (6 φ² n / (1 − φ²)²)^⅓ by Politis and White.
    for phi, length in zip((0.3, 0.6, 0.9), lengths[1:], strict=True):
        assert length == pytest.approx((6 * phi**2 * 5000 / (1 - phi**2) ** 2) ** (1 / 3), rel=0.35)
    assert [block_length([1.0] * 50), block_length([1.0, 2.0])] == [1, 1]
    assert block_length(noise[:100].cumsum()) <= 30


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ([1.0, INF], {}, "not finite"),
        ([], {}, "shape"),
        ([1.0, 2.0], {"block": 3}, "block: is 3"),
        ([1.0, 2.0], {"confidence": 1}, "confidence"),
    ],
)
def test_wrong_series_are_named(values, options, words):
    with pytest.raises(db.InvalidInput, match=words):
        block_interval(values, **options)


CASES = [
    Case("first text", lambda: paired("ab", "ab"), "first", "shape ()"),
    Case("first number", lambda: paired(1.0, 2.0), "first", "shape ()"),
    Case("first empty", lambda: paired([], []), "first", "(0,)"),
    Case("first 3-D", lambda: paired(np.ones((2, 2, 2)), 1), "first", "(2, 2, 2)"),
    Case("first ragged", lambda: paired([[1, 2], [3]], [1]), "first", "several lengths"),
    Case("first complex", lambda: paired([1j], [1]), "first", "complex128"),
    Case("second None", lambda: paired([1], [None]), "second", "object"),
    Case("second NaN", lambda: paired([[1, 2]], [[1, NAN]]), "second", "[0, 1] is nan"),
    Case("second shorter", lambda: paired([1, 2], [1]), "second", "(1,), first has (2,)"),
    Case("values NaN", lambda: median_interval([1, NAN]), "values", "[1] is nan"),
    Case("confidence 1", lambda: paired([1], [2], confidence=1), "confidence", "is 1"),
    Case("confidence 95", lambda: median_interval([1], confidence=95), "confidence", "is 95"),
    Case("resamples 0", lambda: paired([1], [2], resamples=0), "resamples", "is 0"),
    Case("resamples 1e3", lambda: paired([1], [2], resamples=1e3), "resamples", "1000.0"),
    Case("bootstrap seed -1", lambda: paired([1], [2], seed=-1), "seed", "-1"),
]


@each(CASES)
def test_bad_samples_are_refused(case):
    assert_refused(case)


def test_a_pair_on_one_line():
    """A few large differences decide the mean; half of the runs are ties, so the median is 0."""
    first = np.zeros((20, 4))
    first[:, :2] = 10.0, -0.1
    assert str(paired(first, np.zeros_like(first))) == (
        "no difference seen by the median, worse by the mean: median +0 (+0 to +0), "
        "mean +2.48 (+2.48 to +2.48), wins 50% (50 to 50)"
    )
    clear = paired(np.ones(20), np.zeros(20))._replace(unit="apples")
    assert str(clear) == (
        "worse: median +1 (+1 to +1), mean +1 (+1 to +1), wins 0% (0 to 0); unit: apples"
    )
    assert str(paired([2.0], [1.0])) == "too few to tell: median +1, mean +1, wins 0%"
