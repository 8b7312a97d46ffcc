"""Each test of surprises against its definition and against statsmodels."""

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.tsa.stattools import acf

from driftbandit import InvalidInput
from driftbandit.monitoring import checks


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("lags", [1, 5, 10])
def test_ljung_box_is_that_of_statsmodels(lags):
    u = normal(1, 200)
    u += 0.3 * np.roll(u, 1)
    u -= u.mean()  # which statsmodels subtracts
    found, spread = checks.autocorrelations(u, lags)
    np.testing.assert_allclose(found, acf(u, nlags=lags)[1:], rtol=1e-10)
    expected = acorr_ljungbox(u, lags=[lags])
    statistic, p_value = checks.ljung_box(found, spread)
    assert statistic == pytest.approx(float(expected["lb_stat"].iloc[0]))
    assert p_value == pytest.approx(float(expected["lb_pvalue"].iloc[0]))
    assert statistic > checks.ljung_box_limit(spread, 2 * p_value)
    assert statistic < checks.ljung_box_limit(spread, p_value / 2)


def test_pairs_are_of_one_group():
    groups = np.array([0, 1, 1, 0, 2, 1, 0])
    for lag in (1, 2, 3, 6):
        expected = {
            (i, j)
            for i in range(7)
            for j in range(i + 1, 7)
            if groups[i] == groups[j] and np.count_nonzero(groups[i:j] == groups[i]) == lag
        }
        first, second = checks.lagged_pairs(groups, lag)
        assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected


def test_the_variance_of_autocorrelations_is_exact():
    """In groups, and whatever the scale: 20,000 draws know a variance to 1%."""
    groups = np.array([0, 1, 0, 0, 1, 2, 0, 1, 2, 0, 0, 1])
    draws = 3.0 * normal(2, 20_000, len(groups))
    for lag in (1, 2):
        first, second = checks.lagged_pairs(groups, lag)
        ratios = (draws[:, first] * draws[:, second]).sum(axis=1) / (draws**2).sum(axis=1)
        _, spread = checks.autocorrelations(draws[0], 2, groups)
        assert ratios.std() == pytest.approx(spread[lag - 1], rel=0.03)
        assert abs(ratios.mean()) < 4 * spread[lag - 1] / np.sqrt(20_000)


def test_no_pairs_and_no_spread():
    found, spread = checks.autocorrelations(np.ones(3), 5, np.arange(3))
    assert not found.any()
    assert not spread.any()
    assert checks.ljung_box(found, spread) == (0.0, 1.0)
    assert not checks.autocorrelations(np.zeros(4), 2)[0].any()


def test_mean_square_is_chi_square():
    low, high = checks.mean_square_band(50, 0.1)
    assert low == pytest.approx(scipy.stats.chi2.ppf(0.05, 50) / 50)
    assert high == pytest.approx(scipy.stats.chi2.ppf(0.95, 50) / 50)
    for scale in (0.5, 1.0, 1.5):
        u = scale * normal(3, 50)
        p_value = checks.mean_square_p_value(u)
        total = float(u @ u)
        expected = 2 * min(scipy.stats.chi2.sf(total, 50), scipy.stats.chi2.cdf(total, 50))
        assert p_value == pytest.approx(min(1.0, expected))
        assert (p_value > 0.1) == (low < total / 50 < high)


@pytest.mark.parametrize("n", [100, 1000])
def test_outliers_have_their_distribution(n):
    """A count as rare as 2% comes in about 2% of 4000 draws; the scale does not matter."""
    draws = 7.0 * normal(4, 4000, n)
    counts = np.array([checks.far_out(u) for u in draws])
    for chance in (0.2, 0.02):
        most = checks.most_far_out(n, chance)
        assert checks.far_out_p_value(most + 1, n) <= chance < checks.far_out_p_value(most, n)
        share = (counts > most).mean()
        error = np.sqrt(chance / 4000)
        assert share < chance + 4 * error
        assert share > checks.far_out_p_value(most + 1, n) / 2 - 4 * error
    assert checks.far_out_p_value(0, n) == 1.0
    heavy = np.random.default_rng(5).standard_t(3, n)
    assert checks.far_out_p_value(checks.far_out(heavy), n) < 0.05


def test_round_sums():
    u = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    sums, starts = checks.round_sums(u, np.array([3, 3, 4, 6, 6, 6]))
    np.testing.assert_allclose(sums, [3 / np.sqrt(2), 3.0, 15 / np.sqrt(3)])
    assert starts.tolist() == [0, 2, 3]
    with pytest.raises(InvalidInput, match="u: has 6 numbers for 2 rounds"):
        checks.round_sums(u, np.arange(2))
