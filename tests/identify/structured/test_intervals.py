"""Intervals: profile ends found by brute force, standard errors by numerical derivatives."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from driftbandit.identify.structured.fitting import fit_structure, hessian, minimized
from driftbandit.identify.structured.intervals import WEAK, Likelihood, estimates
from known_structures import log_of

LEVEL = 1.959963984540054
MEMORY = "constant(arm, start=100) + level(arm, memory=free)"


def walks(rounds=160, drift=0.3, noise=0.5, seed=0, loads=(1.0, 1.0)):
    """Two arms that follow random walks, and one walk that both read."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(2, size=rounds)
    own = drift * np.cumsum(rng.standard_normal((rounds, 2)), axis=0)
    shared = np.cumsum(rng.standard_normal(rounds)) * 0.4
    rewards = own[np.arange(rounds), arms] + np.array(loads)[arms] * shared
    return log_of(np.arange(rounds), arms, rewards + noise * rng.standard_normal(rounds))


@pytest.fixture(scope="module", params=[0.0, 1.0], ids=["likelihood", "with a prior"])
def walking(request):
    return fit_structure(walks(), "level(arm) + level(shared)", prior=request.param, starts=2)


def least_loss(problem, place, value, begin):
    """The least loss with one number of θ held, by a search without gradients."""
    others = [i for i in range(len(begin)) if i != place]

    def loss(rest):
        theta = begin.copy()
        theta[others], theta[place] = rest, value
        return problem.loss(theta)[0]

    options = {"xatol": 1e-6, "fatol": 1e-8, "maxiter": 400}
    return scipy.optimize.minimize(loss, begin[others], method="Nelder-Mead", options=options).fun


def likelihood_of(found, place):
    """What the interval of θ_place is made of."""
    return Likelihood(*found.problem._replace(flat=place, prior=max(found.problem.prior, WEAK)))


def test_profile_ends_lower_the_likelihood_by_one_point_nine_two(walking):
    scale = walking.problem.described.units.scale
    rows = {row.name: row for row in estimates(walking)}
    for place, free in enumerate(walking.layout.free):
        row = rows[free.name]
        assert row.is_profile
        assert row.is_drift == free.parameter.drift
        assert row.low < row.value < row.high
        assert row.value == pytest.approx(scale * math.exp(walking.theta[place]))
        problem = likelihood_of(walking, place)
        least = minimized(problem, walking.theta).loss
        for end in (row.low, row.high):
            rise = least_loss(problem, place, math.log(end / scale), walking.theta) - least
            assert math.sqrt(2 * rise) == pytest.approx(LEVEL, rel=0.015)


@pytest.mark.parametrize(
    ("text", "drift"),
    [
        ("level(arm)", 0.0),
        ("level(arm)", 0.3),
        ("constant(arm) + level(arm, memory=free)", 0.3),
    ],
)
def test_the_prior_of_a_fit_moves_estimates_and_not_profile_intervals(text, drift):
    logged = walks(drift=drift, seed=3, loads=(0.0, 0.0))
    one, other = (estimates(fit_structure(logged, text, prior=prior)) for prior in (0.0, 3.0))
    for row, same in zip(one, other, strict=True):
        assert row.low == pytest.approx(same.low, rel=0.02)
        assert row.high == pytest.approx(same.high, rel=0.02)
        assert math.isnan(row.prior_median)
        assert same.prior_low < same.prior_median < same.prior_high
    assert one[0].value != pytest.approx(other[0].value, rel=0.02)


def test_the_prior_is_given_in_the_parameter_s_unit(walking):
    scale = walking.problem.described.units.scale
    row = estimates(walking)[0]
    if not walking.problem.prior:
        assert math.isnan(row.prior_median)
        return
    assert row.prior_median == pytest.approx(0.1 * scale)
    assert row.prior_high == pytest.approx(0.1 * scale * math.exp(1.5 * LEVEL))
    assert row.prior_low == pytest.approx(0.1 * scale * math.exp(-1.5 * LEVEL))


def constants(arms, noise, rounds=200, seed=0):
    """Arms that never move."""
    rng = np.random.default_rng(seed)
    played = rng.permuted(np.arange(rounds) % arms)
    means = rng.standard_normal(arms)
    return log_of(np.arange(rounds), played, means[played] + noise * rng.standard_normal(rounds))


@pytest.mark.parametrize(("arms", "within"), [(2, 0.006), (3, 0.003), (10, 0.002)])
def test_the_size_of_few_constants_is_covered(arms, within):
    # Hardly any noise: Σ (m − mean m)² / size² has χ² with arms − 1 degrees of freedom.
    found = fit_structure(constants(arms, 1e-4), "constant(arm)", starts=1)
    row, data = estimates(found)[0], found.problem.described
    seen = slice(data.n_rows)
    means = [data.rows.rewards[seen][data.rows.arms[seen] == arm].mean() for arm in range(arms)]
    total = float(np.sum((np.array(means) - np.mean(means)) ** 2))
    chi2 = scipy.stats.chi2(arms - 1)
    covered = chi2.cdf(total / row.low**2) - chi2.cdf(total / row.high**2)
    assert covered == pytest.approx(0.95, abs=within)


def test_constants_have_the_likelihood_integrated_over_the_mean():
    found = fit_structure(constants(3, 1.0), "constant(arm)", starts=1)
    data = found.problem.described
    mean = fit_structure(constants(3, 1.0), "constant(arm) + constant(shared, start=1e3)", starts=1)
    problem, wide = Likelihood(*found.problem), Likelihood(*mean.problem)
    assert problem.integrates
    assert data.units.scale == mean.problem.described.units.scale
    wide = mean.problem  # a shared constant with a wide start is integrated over
    shifts = [found.theta + np.array(by) for by in ([0, 0], [0.5, 0.1], [-1, 0.2])]
    weak = [
        problem.prior * 0.5 * np.sum(((t - problem.centers) / problem.spreads) ** 2) for t in shifts
    ]
    full = [wide.prior * 0.5 * np.sum(((t - wide.centers) / wide.spreads) ** 2) for t in shifts]
    apart = [
        problem.loss(t)[0] - a - (wide.loss(t)[0] - b)
        for t, a, b in zip(shifts, weak, full, strict=True)
    ]
    assert np.ptp(apart) < 1e-4
    theta, steps = shifts[1], 1e-5 * np.eye(2)
    slope = [(problem.loss(theta + s)[0] - problem.loss(theta - s)[0]) / 2e-5 for s in steps]
    np.testing.assert_allclose(problem.loss(theta)[1], slope, rtol=1e-5)


def test_one_arm_says_nothing_about_how_far_arms_are_apart():
    row, noise = estimates(fit_structure(constants(1, 1.0), "constant(arm)", starts=1))
    assert (row.low, row.high) == (0.0, math.inf)
    assert 0.8 < noise.low < 1 < noise.high < 1.3


def test_a_memory_longer_than_the_log_is_open_above():
    rng = np.random.default_rng(3)
    path = 20 + np.cumsum(0.2 * rng.standard_normal(80))
    found = fit_structure(log_of(np.arange(80), np.zeros(80, int), path), MEMORY, starts=1)
    row = estimates(found)[1]
    assert row.name.endswith("memory")
    assert 1 < row.low < 80
    assert math.isinf(row.high)


@pytest.mark.parametrize("text", ["trend(arm, damping=free)", "constant(arm) + ar(2)"])
def test_every_kind_of_parameter_stays_in_its_range(text):
    ranges = {"size": (0, math.inf), "share": (0, 1), "correlation": (-1, 1)}
    found = fit_structure(walks(rounds=60, loads=(0.0, 0.0)), text, starts=1)
    for row, free in zip(estimates(found), found.layout.free, strict=True):
        low, high = ranges[free.parameter.kind]
        assert low <= row.low < row.high <= high
        assert low < row.value < high
        place, scale = found.layout.free.index(free), found.problem.described.units.scale
        error = math.sqrt(found.covariance[place, place])
        near = found.layout.value(place, found.theta[place] + 1e-6, scale)
        assert row.std_error == pytest.approx(error * (near - row.value) / 1e-6, rel=1e-4)
        assert row.unit == free.parameter.unit


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_an_interval_begins_at_zero_if_nothing_drifts(prior):
    rng = np.random.default_rng(1)
    arms = rng.integers(2, size=160)
    log = log_of(np.arange(160), arms, 5.0 * arms + rng.standard_normal(160))
    found = fit_structure(log, "level(arm) + level(shared)", prior=prior, starts=2)
    rows = {row.name: row for row in estimates(found)}
    for name in ("level(arm).drift", "level(shared).drift"):
        assert rows[name].low == 0.0
        assert 0 < rows[name].high < 0.5
    assert rows["noise"].low < 1 < rows["noise"].high


def numerical_hessian(problem, theta, step=1e-3):
    """Second differences of the loss itself."""
    n, steps = len(theta), step * np.eye(len(theta))
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            values = [
                problem.loss(theta + a * steps[i] + b * steps[j])[0] * a * b for a, b in signs
            ]
            found[i, j] = sum(values) / (4 * step**2)
    return found


@pytest.fixture(scope="module")
def own_and_loaded():
    text = "level(arm, own) + level(shared, loadings=free)"
    return fit_structure(walks(loads=(1.0, -0.5)), text, starts=2)


def test_own_parameters_and_loadings_by_the_delta_method(own_and_loaded):
    found = own_and_loaded
    layout, scale = found.layout, found.problem.described.units.scale
    second = numerical_hessian(found.problem, found.theta)
    np.testing.assert_allclose(hessian(found.problem, found.theta), second, rtol=1e-3, atol=1e-2)
    cov = np.linalg.inv(second)
    names = [free.name for free in layout.free]
    rows = {row.name: row for row in estimates(found)}

    def std_error(function):
        steps = 1e-5 * np.eye(len(found.theta))
        slope = [(function(found.theta + s) - function(found.theta - s)) / 2e-5 for s in steps]
        return math.sqrt(np.array(slope) @ cov @ np.array(slope))

    shared = "level(shared, loadings=free)"
    for arm, label in enumerate(layout.names):
        process = lambda theta, arm=arm: math.sqrt(  # noqa: E731
            layout.model(theta, units=found.problem.described.units).process_cov[arm, arm]
        )
        row = rows[f"level(arm, own).drift[{label}]"]
        assert row.value == pytest.approx(process(found.theta))
        assert row.std_error == pytest.approx(std_error(process), rel=1e-2)
        assert row.high / row.value == pytest.approx(
            math.exp(LEVEL * row.std_error / row.value), rel=1e-6
        )
        load = lambda theta, arm=arm: layout.matrices(theta).reads[arm, 2]  # noqa: E731
        row = rows[f"{shared}.loading[{label}]"]
        assert row.value == pytest.approx(load(found.theta))
        assert row.std_error == pytest.approx(std_error(load), rel=1e-2)
        assert row.high - row.low == pytest.approx(2 * LEVEL * row.std_error)
    loads = [rows[f"{shared}.loading[{label}]"].value for label in layout.names]
    assert np.mean(np.square(loads)) == pytest.approx(1.0)
    assert loads[0] * loads[1] < 0
    noise = rows["noise"]
    place = names.index("noise")
    assert noise.value == pytest.approx(scale * math.exp(found.theta[place]))
    assert noise.std_error == pytest.approx(noise.value * math.sqrt(cov[place, place]), rel=1e-2)
