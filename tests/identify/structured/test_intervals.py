"""Intervals: profile ends found by brute force, standard errors by numerical derivatives."""

import math

import numpy as np
import pytest
import scipy.optimize

from driftbandit.identify.structured import intervals
from driftbandit.identify.structured.fitting import fit_structure, hessian, minimized
from driftbandit.identify.structured.intervals import estimates
from driftbandit.structure.base import Parameter
from driftbandit.structure.parameters import original
from known_structures import log_of

LEVEL = 1.959963984540054


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


def test_profile_ends_lower_the_likelihood_by_one_point_nine_two(walking):
    scale = walking.problem.described.units.scale
    rows = {row.name: row for row in estimates(walking)}
    for place, free in enumerate(walking.layout.free):
        row = rows[free.name]
        assert row.is_drift == free.parameter.drift
        assert row.low < row.value < row.high
        assert row.value == pytest.approx(scale * math.exp(walking.theta[place]))
        if not row.is_drift:
            continue
        problem = walking.problem._replace(flat=place)  # its own prior does not count
        least = minimized(problem, walking.theta).loss
        for end in (row.low, row.high):
            rise = least_loss(problem, place, math.log(end / scale), walking.theta) - least
            # √(2 rise) is found to 2%.
            assert math.sqrt(2 * rise) == pytest.approx(LEVEL, rel=intervals.NEAR * 1.05)


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


@pytest.mark.parametrize("kind", ["size", "time", "share", "correlation"])
def test_every_kind_of_parameter_stays_in_its_range(kind):
    parameter = Parameter("name", kind, 0.5, 1.0, unit="unit")
    for middle in (-3.0, 0.4, 3.0):
        ends = middle - LEVEL * 0.7, middle, middle + LEVEL * 0.7, 0.7
        row = intervals._estimate("name", kind, ends, 1.0, parameter, False)
        assert row.low < row.value < row.high
        assert row.high < (1 if kind in ("share", "correlation") else math.inf)
        assert row.low > (-1 if kind == "correlation" else 0)
        value, near = (original(np.float64(middle + step), kind, np) for step in (0.0, 1e-6))
        assert row.std_error == pytest.approx(0.7 * (near - value) / 1e-6, rel=1e-4)
        assert (row.unit, row.is_drift) == ("unit", False)
