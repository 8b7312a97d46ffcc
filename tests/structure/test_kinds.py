"""Every kind of component equals statsmodels' in likelihood and smoothed components."""

import numpy as np
import pytest

import naive
from driftbandit.kalman import Belief
from driftbandit.structure import Layout
from driftbandit.structure.kinds import ar_weights
from unobserved_components import CASES, DampedTrend, by_statsmodels, series


def by_conditioning(text, values, rewards, x):
    """The log-likelihood, and the smoothed states of all rounds."""
    layout = Layout(text, ["a0"])
    system = layout.system(values)
    names = ("x_a", "x_b")[: x.shape[1]]
    reads = [
        system.arms_in(dict(zip(names, row, strict=True)))[0] if len(row) else system.arms[0]
        for row in x
    ]
    seen = ~np.isnan(rewards)
    played, given = np.array(reads) * seen[:, None], np.where(seen, rewards, 0.0)
    # A row of zeros reads nothing: its reward is noise of a known density.
    noise = -0.5 * np.log(2 * np.pi * system.model.reward_std**2) * (~seen).sum()
    model = system.model
    start = model.start_mean(), model.start_cov(), model.transition, model.process_cov
    log = *start, model.reward_std, played, given
    return layout, naive.log_likelihood(*log) - noise, Belief(*naive.smooth(*log))


def shown(layout, states):
    """Means and standard deviations of all components; of a regression, of its weights."""
    reads = []
    for one, places in zip(layout.structure.components, layout.parts.values(), strict=True):
        for place in places if one.features else [places]:
            row = np.zeros(layout.n_states)
            row[place] = layout.matrices(layout.theta_of({})).reads[0, place]
            reads.append(row)
    reads = np.array(reads)
    variances = np.einsum("cd,tde,ce->ct", reads, states.cov, reads)
    return reads @ states.mean.T, np.sqrt(np.maximum(variances, 0.0))


@pytest.mark.parametrize("name", CASES)
def test_a_sum_of_components_equals_statsmodels(name):
    case = CASES[name]
    rewards, x, _ = series(case.options.get("exog", 0))
    oracle = by_statsmodels(case, rewards, x)
    layout, found, states = by_conditioning(case.text, case.values, rewards, x)
    means, stds = shown(layout, states)
    assert found == pytest.approx(oracle.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(means, oracle.means, rtol=0, atol=1e-6)
    # A standard deviation of zero is the root of a rounding error.
    np.testing.assert_allclose(stds**2, oracle.stds**2, rtol=0, atol=1e-8)
    np.testing.assert_allclose(stds[stds > 1e-3], oracle.stds[stds > 1e-3], rtol=0, atol=1e-6)


@pytest.mark.parametrize("text", ["trend(arm, damping=0.8)", "trend(arm, damping=free)"])
def test_a_damped_trend_equals_one_written_for_statsmodels(text):
    rewards, x, _ = series()
    values = {f"{text}.drift": 0.4, f"{text}.slope_drift": 0.1, "noise": 0.7}
    values |= {f"{text}.damping": 0.8} if "free" in text else {}
    _, found, states = by_conditioning(text, values, rewards, x)
    oracle = DampedTrend(rewards, 0.8, 0.4, 0.1, 0.7, (3.0, 0.3)).smooth([])
    assert found == pytest.approx(oracle.llf, abs=1e-6)
    np.testing.assert_allclose(states.mean.T, oracle.smoothed_state, atol=1e-6)
    np.testing.assert_allclose(states.cov, np.moveaxis(oracle.smoothed_state_cov, 2, 0), atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 5, 20])
def test_an_autoregression_is_stationary_from_the_first_round(order):
    rng = np.random.default_rng(order)
    partial = rng.uniform(-0.9, 0.9, order)
    values = {f"ar({order}).partial{j + 1}": value for j, value in enumerate(partial)}
    model = Layout(f"ar({order})", [0]).system(values).model
    after = model.transition @ model.initial_cov @ model.transition.T + model.process_cov
    scale = model.initial_cov.max()
    np.testing.assert_allclose(after / scale, model.initial_cov / scale, rtol=0, atol=1e-9)
    assert np.abs(np.linalg.eigvals(model.transition)).max() < 1


def test_weights_have_the_given_partial_autocorrelations():
    from statsmodels.tsa.arima_process import ArmaProcess

    partial = [0.5, -0.7, 0.3, 0.9]
    process = ArmaProcess.from_coeffs(ar_weights(partial))
    np.testing.assert_allclose(process.pacf(5), [1.0, *partial], atol=1e-8)


def test_noise_is_drawn_anew_in_every_round():
    model = Layout("noise(shared)", [0, 1]).system({"noise(shared).size": 0.3}).model
    assert model.transition.tolist() == [[0.0]]
    assert model.process_cov == pytest.approx(0.09)
    assert model.initial_cov == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("period", "waves"), [(2, 1), (1.5, 1), (3, 1), (7, 3), (12, 6), (13, 6), (168, 6), (7.5, 3)]
)
def test_the_default_number_of_waves_is_exact_up_to_a_period_of_12(period, waves):
    assert Layout(f"season({period})", [0]).structure.components[0].waves == waves
    states = Layout(f"season({period})", [0]).n_states
    assert states == 2 * waves - (2 * waves == period)


def test_a_whole_season_repeats_exactly():
    model = Layout("season(7, unchanging)", [0]).system().model
    np.testing.assert_allclose(np.linalg.matrix_power(model.transition, 7), np.eye(6), atol=1e-12)
