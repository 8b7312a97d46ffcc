"""P17: the metric φ and its interval, against the printed formula, closed forms and symmetries."""

import functools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from driftbandit import LGDS, InvalidInput, families
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.steady_state import oracle_cov, prediction_covs
from driftbandit.theory import metric, metric_interval, metric_intervals
from systems import assert_close, random_system

BONUSES = {"idea": idea.bonus, "kalman_ucb": kalman_ucb.bonus, "kode": kode.bonus}


checked = settings(deadline=None, derandomize=True, max_examples=40)


systems = st.builds(
    random_system,
    seed=st.integers(0, 10**6),
    d=st.integers(1, 5),
    k=st.integers(2, 6),
    radius=st.sampled_from([0.1, 0.9, 0.99]),
    reward_std=st.sampled_from([0.0, 0.1, 1.0]),
)


def traces(model, arms, P):
    """The largest tr(Σ̂_ij): what a distance of zero is a difference of."""
    Z, pairs = model.stationary_cov(), range(len(arms))
    covs = [naive.metric_covariance(arms, i, j, Z, P) for i in pairs for j in pairs if i != j]
    return max(np.trace(cov) for cov in covs)


def distances(model, arms, P):
    """φ without ‖μ‖, as KODE has it."""
    return metric(model, arms, kode.bonus, P)


# Against the formula as it is printed.


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    ("k", "d"),
    [(2, 5), (3, 3), (5, 2)]
    + [
        pytest.param(k, d, marks=pytest.mark.nightly)
        for k, d in [(2, 2), (2, 3), (3, 2), (3, 5), (5, 3), (5, 5)]
    ],
)
@pytest.mark.parametrize("family", families.FAMILIES)
def test_P17_agrees_with_the_printed_formula(family, k, d, squared):
    """To the square root of rounding, which is what the formula's roots of singular matrices keep.

    Σ is singular where k > d + 1 or Z − P is, and near singular in most families.
    """
    for model, arms in families.sample(family, systems=2, n_states=d, n_arms=k):
        Z, P_A, P_a = model.stationary_cov(), oracle_cov(model, arms), prediction_covs(model, arms)
        for bonus in BONUSES.values():
            for P in P_a:
                expected = naive.metric(arms, bonus(P, model, arms), Z, P_A, P, squared)
                error = metric(model, arms, bonus, P, squared) - expected
                assert np.isnan(np.diag(error)).all()
                assert np.nanmax(np.abs(error)) <= 1e-7 * traces(model, arms, P)
            u = [bonus(P, model, arms) for P in P_a]
            assert metric_interval(model, arms, bonus, squared) == pytest.approx(
                naive.metric_interval(arms, u, Z, P_A, P_a, squared),
                abs=1e-7 * max(traces(model, arms, P) for P in P_a),
            )


@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 2), (3, 3), (5, 3), (6, 4)])
def test_P17_agrees_with_the_printed_formula_where_it_is_regular(d, k):
    for seed in range(5):
        model, arms = random_system(seed, d, k)
        Z, P_A = model.stationary_cov(), oracle_cov(model, arms)
        for P in prediction_covs(model, arms):
            expected = naive.metric(arms, np.zeros(k), Z, P_A, P)
            error = np.nanmax(np.abs(distances(model, arms, P) - expected))
            assert error <= 1e-11 * traces(model, arms, P)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_P17_two_arms_in_closed_form(family):
    """k = 2: matrices of size 2, whose root's trace is √(tr Σ̂Σ + 2 √det Σ̂Σ)."""
    for model, arms in families.sample(family, systems=10, n_states=3, n_arms=2, unit_arms=True):
        Z, P_A = model.stationary_cov(), oracle_cov(model, arms)
        for P in prediction_covs(model, arms):
            for i, j in [(0, 1), (1, 0)]:
                S, T = (naive.metric_covariance(arms, i, j, Z, cov) for cov in (P_A, P))
                gap = arms[0] - arms[1]
                # det of [[x, -x], [-x, y]] is x (y - x), here without the subtraction
                det = math.prod((gap @ (Z - cov) @ gap) * (gap @ cov @ gap) for cov in (P_A, P))
                root = math.sqrt(np.trace(S @ T) + 2 * math.sqrt(max(det, 0.0)))
                expected = np.trace(S) + np.trace(T) - 2 * root
                error = abs(distances(model, arms, P)[i, j] - expected)
                assert error <= 1e-12 * (np.trace(S) + np.trace(T))


def test_P17_the_lead_is_the_bonus_less_the_others():
    model, arms = random_system(0, d=3, k=4)
    P = oracle_cov(model, arms)
    u = np.array([3.0, 0.0, 1.0, 0.0])
    phi = metric(model, arms, lambda cov, model, arms: u, P)
    squared = metric(model, arms, lambda cov, model, arms: u, P, squared=True)
    for i, length in enumerate([9 + 4 + 9, 9 + 1, 4 + 1 + 1, 9 + 1]):
        others = [j for j in range(4) if j != i]
        assert_close(phi[i, others], np.full(3, math.sqrt(length)), 1e-12)
        assert_close(squared[i, others], np.full(3, float(length)), 1e-12)


# What must hold for any system.


@checked
@given(systems)
def test_P17_no_distance_from_the_oracle_itself(system):
    model, arms = system
    P = oracle_cov(model, arms)
    assert np.nanmax(np.abs(distances(model, arms, P))) <= 1e-12 * traces(model, arms, P)


@checked
@given(systems, st.sampled_from(sorted(BONUSES)))
def test_P17_a_squared_distance_is_not_negative(system, name):
    model, arms = system
    for P in prediction_covs(model, arms):
        phi = metric(model, arms, BONUSES[name], P, squared=True)
        assert np.nanmin(phi) >= -1e-12 * traces(model, arms, P)
    low, high = metric_interval(model, arms, BONUSES[name], squared=True)
    assert low <= high


@checked
@given(systems, st.sampled_from(sorted(BONUSES)), st.booleans())
def test_P17_the_interval_is_that_of_the_metric(system, name, squared):
    model, arms = system
    phi = [metric(model, arms, BONUSES[name], P, squared) for P in prediction_covs(model, arms)]
    low, high = metric_interval(model, arms, BONUSES[name], squared)
    assert (low, high) == pytest.approx((np.nanmin(phi), np.nanmax(phi)), rel=1e-12)


@checked
@given(systems, st.sampled_from(sorted(BONUSES)), st.sampled_from([1e-3, 0.5, 30.0]))
def test_P17_scales_as_the_square_of_the_states(system, name, c):
    """States, shocks and noise times c: every length times c, the squared distance times c²."""
    model, arms = system
    scaled = LGDS(model.transition, c**2 * model.process_cov, c * model.reward_std)
    plain = metric_interval(model, arms, BONUSES[name], squared=True)
    size = max(traces(model, arms, P) for P in prediction_covs(model, arms))
    expected = pytest.approx(c**2 * np.array(plain), rel=1e-9, abs=1e-10 * c**2 * size)
    assert metric_interval(scaled, arms, BONUSES[name], squared=True) == expected


@checked
@given(systems, st.sampled_from(sorted(BONUSES)), st.integers(0, 100))
def test_P17_does_not_see_a_rotation_of_the_states(system, name, seed):
    model, arms = system
    d = model.n_states
    T = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    turned = LGDS(T @ model.transition @ T.T, T @ model.process_cov @ T.T, model.reward_std)
    plain = metric_interval(model, arms, BONUSES[name])
    size = max(traces(model, arms, P) for P in prediction_covs(model, arms))
    expected = pytest.approx(plain, rel=1e-9, abs=1e-9 * size)
    assert metric_interval(turned, arms @ T.T, BONUSES[name]) == expected


def test_P17_no_bonus_is_never_farther():
    """‖μ‖ ≥ 0 is all that a bonus adds."""
    found = metric_intervals(families.sample("gaussian", systems=5, n_states=4, n_arms=4), BONUSES)
    for name in ("idea", "kalman_ucb"):
        for form in ("printed", "squared"):
            assert (getattr(found["kode"], form) <= getattr(found[name], form)).all()


# Many systems at once.


def test_P17_a_system_does_not_depend_on_its_batch():
    batch = [*families.sample("bernoulli", systems=8), *families.sample("cauchy", systems=4)]
    together = metric_intervals(batch, BONUSES)
    assert sorted(together) == sorted(BONUSES)
    order = np.random.default_rng(0).permutation(len(batch))
    shuffled = metric_intervals([batch[i] for i in order], {"idea": idea.bonus})
    np.testing.assert_array_equal(shuffled["idea"].printed, together["idea"].printed[order])
    np.testing.assert_array_equal(shuffled["idea"].squared, together["idea"].squared[order])
    for i in (0, 9):
        alone = metric_interval(*batch[i], idea.bonus), metric_interval(*batch[i], idea.bonus, True)
        both = (together["idea"].printed[i], together["idea"].squared[i])
        np.testing.assert_array_equal(alone, both)


def test_P17_systems_of_a_batch_may_differ_in_shape():
    batch = [random_system(0, d=2, k=3), random_system(0, d=4, k=2)]
    found = metric_intervals(batch, {"idea": idea.bonus})["idea"]
    assert tuple(found.printed[1]) == metric_interval(*batch[1], idea.bonus)


def test_P17_progress_goes_from_the_first_share_to_one():
    shares = []
    batch = families.sample("gaussian", systems=4, n_states=2, n_arms=2)
    metric_intervals(batch, {"kode": kode.bonus}, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_P17_a_bonus_with_a_parameter():
    model, arms = random_system(0, d=3)
    wide = functools.partial(kalman_ucb.bonus, width=2.0)
    P = oracle_cov(model, arms)
    one, two = (metric(model, arms, bonus, P) for bonus in (kalman_ucb.bonus, wide))
    assert_close(two[0, 1:], 2 * one[0, 1:], 1e-9)


def test_P17_equal_arms_are_equal():
    """Repeated arms: no difference, no distance, no NaN."""
    model, _ = random_system(0, d=3)
    low, high = metric_interval(model, np.ones((3, 3)), idea.bonus)
    assert 0 <= low <= high < 1e-12


# What is refused.


def test_P17_needs_a_stationary_state():
    model = LGDS([[1.0]], [[1.0]], 1.0, initial_cov=[[1.0]])
    for function in (metric_interval, lambda *a: metric(*a, np.eye(1))):
        with pytest.raises(InvalidInput, match=r"^model: has spectral radius 1, so there is no"):
            function(model, [[1.0], [2.0]], idea.bonus)
    with pytest.raises(InvalidInput, match=r"^model of system 1: has spectral radius 1"):
        metric_intervals([random_system(0, 2), (model, [[1.0], [2.0]])], BONUSES)


def test_P17_needs_two_arms_and_a_bonus_for_each():
    model, arms = random_system(0, d=2)
    with pytest.raises(InvalidInput, match=r"^arms: is a single arm"):
        metric_interval(model, arms[:1], idea.bonus)
    for bonus in (lambda *_: np.zeros(3), lambda *_: 0.0, lambda *_: np.full(4, np.nan)):
        with pytest.raises(InvalidInput, match=r"^bonus: gives "):
            metric_interval(model, arms, bonus)
    with pytest.raises(InvalidInput, match=r"^systems: is empty"):
        metric_intervals([], BONUSES)


def test_P17_needs_a_covariance_below_the_stationary_one():
    model, arms = random_system(0, d=2)
    with pytest.raises(InvalidInput, match=r"^cov: exceeds the stationary covariance by"):
        metric(model, arms, idea.bonus, 2 * model.stationary_cov())
    with pytest.raises(InvalidInput, match=r"^cov: has shape"):
        metric(model, arms, idea.bonus, np.eye(3))


def test_P17_loads_no_jax():
    code = (
        "import sys, numpy as np, driftbandit.theory as theory, driftbandit as db;"
        "model, arms = db.families.sample('gaussian', n_states=2, n_arms=2)[0];"
        "theory.metric_interval(model, arms, db.policies.idea.bonus);"
        "assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
