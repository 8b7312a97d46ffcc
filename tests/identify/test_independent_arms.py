"""Arms that drift independently: against statsmodels and one big normal distribution."""

import numpy as np
import pytest
import scipy.optimize
from statsmodels.tsa.statespace.sarimax import SARIMAX

from driftbandit.identify import independent_arms as own
from driftbandit.identify.data import data_of
from driftbandit.io.logs import Log, Sequence
from random_logs import drifting


def plays(log, arms):
    one = Sequence(log["round"], log["arm"], log["reward"])
    return own.plays_of(data_of(Log((one,), tuple(map(str, range(arms))))), arms)


def test_an_arms_likelihood_is_statsmodels():
    """An AR(1) with noise and a constant of its own, missing in most rounds."""
    log = drifting(120, arms=3)
    given = plays(log, 3)
    theta = np.array([0.2, -15.0, np.log(0.4), np.log(12.0), np.log(0.8)])
    found = own.Learned("alike", theta, [], True)
    each, means, variances, _ = own.densities(found, given)
    keep = np.exp(-1 / 12)
    for arm in range(3):
        rewards = np.where(log["arm"] == arm, log["reward"], np.nan)
        model = SARIMAX(rewards, np.ones((120, 1)), order=(1, 0, 0), measurement_error=True)
        expected = model.loglike([0.2, keep, 0.4**2, 0.8**2 * (1 - keep**2)])
        assert each[arm].sum() == pytest.approx(expected, abs=1e-6)
    assert means == pytest.approx([0.2] * 3, abs=1e-9)
    assert (variances < 1e-12).all()


def test_offsets_are_integrated_out():
    """Against one big normal law of an arm's rewards."""
    log = drifting(60, arms=2, seed=1)
    given = plays(log, 2)
    theta = np.array([0.1, np.log(0.7), np.log(0.4), np.log(8.0), np.log(0.9), 0.2, -0.3, 0.1, 0.4])
    each, means, variances, _ = own.densities(own.Learned("apart", theta, [], True), given)
    for arm in range(2):
        there = log["arm"] == arm
        times, rewards = log["round"][there], log["reward"][there] - 0.1
        memory, drift = 8.0 * np.exp((0.2, -0.3)[arm]), 0.9 * np.exp((0.1, 0.4)[arm])
        apart = np.abs(times[:, None] - times)
        cov = drift**2 * np.exp(-apart / memory) + 0.49 + 0.16 * np.eye(len(times))
        half = np.linalg.solve(cov, rewards)
        log_det = np.linalg.slogdet(2 * np.pi * cov)[1]
        assert each[arm].sum() == pytest.approx(-0.5 * (log_det + rewards @ half), rel=1e-10)
        assert means[arm] == pytest.approx(0.1 + 0.49 * half.sum(), rel=1e-9)
        told = np.linalg.solve(cov, np.ones(len(times))).sum()
        assert variances[arm] == pytest.approx(0.49 - 0.49**2 * told, rel=1e-9)


def test_sequences_share_offsets_and_no_drift():
    log = drifting(80, arms=2)
    whole = plays(log, 2)
    ones = [
        Sequence(log["round"][part], log["arm"][part], log["reward"][part])
        for part in (slice(40), slice(40, 80))
    ]
    cut = own.plays_of(data_of(Log(tuple(ones), ("0", "1"))), 2)
    assert (cut.rewards == whole.rewards).all()
    assert np.isinf(cut.gaps).sum() == 4
    assert np.isinf(whole.gaps).sum() == 2
    later = own.plays_of(data_of(Log(tuple(ones), ("0", "1"))), 2, later=np.array([True, False]))
    assert later.rewards[0, 0] == log["reward"][40:][log["arm"][40:] == 0][0]


def test_a_line_search_without_a_gain_is_at_rest(monkeypatch):
    """SciPy calls that abnormal; more iterations would not help."""
    log = drifting(40, arms=1)
    ends = iter([1.0, 1e-9])

    def minimize(loss, begin, *, callback, **_):
        value, gain = loss(begin)[0], next(ends)
        for better in (value - 5, value - 5 - gain):
            callback(scipy.optimize.OptimizeResult(fun=better))
        return scipy.optimize.OptimizeResult(x=begin, status=2, success=False)

    monkeypatch.setattr(own.scipy.optimize, "minimize", minimize)
    assert not own.learn(plays(log, 1), "constant").converged
    assert own.learn(plays(log, 1), "constant").converged


def test_densities_are_of_the_rounds_before():
    """Of an arm that is played twice in a round, the first play tells nothing of the second."""
    rng = np.random.default_rng(5)
    rounds = np.repeat(np.arange(20), 2)
    rewards = np.repeat(np.cumsum(rng.standard_normal(20)), 2)
    log = Log((Sequence(rounds, np.zeros(40, int), rewards),), ("a",))
    plays = own.plays_of(data_of(log), 1)
    law = own.Learned("alike", np.array([0.0, 0.0, -1.0, 2.0, 1.0]), [0.0], True)
    each, _, _, total = own.densities(law, plays)
    both = each[0][plays.seen[0] > 0].reshape(20, 2)
    np.testing.assert_allclose(both[:, 0], both[:, 1], rtol=1e-12)  # the same reward twice
    assert total > both.sum() + 10  # the likelihood knows that the second is near the first
