"""Each test of surprises against its definition and against statsmodels."""

import numpy as np
import pytest
import scipy.stats
from statsmodels.regression.linear_model import OLS

from driftbandit import InvalidInput
from driftbandit.monitoring import checks
from driftbandit.monitoring.health import SUMS


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("lags", [1, 5, 10])
def test_correlation_is_the_f_test_of_a_regression(lags):
    """The F-test of statsmodels that all weights are zero; no mean is subtracted."""
    u, groups = normal(1, 200), np.random.default_rng(2).integers(3, size=200)
    u += 0.2 * np.roll(u, 1)
    before = checks.earlier(u, lags, groups)
    own = checks.correlation(u, lags, groups)
    fit = OLS(u, before).fit()
    assert own.rank == lags
    assert own.explained == pytest.approx(fit.rsquared)
    assert own.p_value == pytest.approx(float(fit.f_pvalue))
    assert own.limit(own.p_value) == pytest.approx(own.explained)
    np.testing.assert_allclose(own.values, u @ before / (u @ u))
    scaled = checks.correlation(7 * u, lags, groups)
    assert scaled.p_value == pytest.approx(own.p_value)
    np.testing.assert_allclose(scaled.values / scaled.spread, own.values / own.spread)


def test_sums_of_lags_see_faster_drift_more_often_than_lags_do():
    """Surprises that follow their arm's level a little: what a filter with too small a Q leaves."""
    rng, seen = np.random.default_rng(3), []
    for _ in range(200):
        arms, level = rng.integers(4, size=200), np.zeros(4)
        u = np.empty(200)
        for t, arm in enumerate(arms):
            level = 0.98 * level + 0.1 * rng.standard_normal(4)
            u[t] = level[arm] + rng.standard_normal()
        p_values = [checks.correlation(u, 10, arms, sums).p_value for sums in (SUMS, ())]
        seen.append([p < 0.01 for p in p_values])
    few, many = np.mean(seen, axis=0)
    assert few > many + 0.1


def test_earlier_surprises_are_of_the_same_group():
    groups = np.array([0, 1, 1, 0, 2, 1, 0])
    u = np.arange(1.0, 8.0)
    before = checks.earlier(u, 6, groups)
    for j in range(7):
        own = u[:j][groups[:j] == groups[j]][::-1]
        assert before[j].tolist() == [*own, *[0.0] * (6 - len(own))]


RULES = {
    "any arm": lambda t, u, last: None,
    "again after a surprise": lambda t, u, last: last if abs(u) > 1.5 else None,
    "again after a good one": lambda t, u, last: last if u > 1 else None,
}


@pytest.mark.parametrize(("rounds", "arms"), [(60, 8), (50, 25)])
@pytest.mark.parametrize("rule", RULES)
def test_correlation_within_arms_keeps_its_level(rule, rounds, arms):
    """Few pairs per lag: 1500 logs; Ljung and Box's test with m/(n(n + 2)) failed 6 to 15%."""
    rng = np.random.default_rng(5)
    p_values = []
    for _ in range(1500):
        u, played = rng.standard_normal(rounds), rng.integers(arms, size=rounds)
        for t in range(1, rounds):
            again = RULES[rule](t, u[t - 1], played[t - 1])
            played[t] = played[t] if again is None else again
        p_values.append(checks.correlation(u, 10, played, SUMS).p_value)
    p_values = np.array(p_values)
    assert (p_values < 0.05).mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1500)
    assert (p_values < 0.00125).sum() <= 6  # 1.9 are expected; more than 6 come in 0.4%


def test_no_pairs_and_no_spread():
    for u in (np.ones(3), np.zeros(3)):
        own = checks.correlation(u, 5, np.arange(3))
        assert not own.values.any()
        assert not own.spread.any()
        assert (own.explained, own.p_value, own.limit(0.1)) == (0.0, 1.0, 0.0)
    assert checks.correlation(np.zeros(4), 2, np.zeros(4)).p_value == 1.0


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
