"""P8, P11: what nobody can beat, on the sphere and on finite sets."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln

import naive
from driftbandit import LGDS, InvalidInput, families
from driftbandit.gaussian.norms import expected_length, expected_norm
from driftbandit.model import factor
from driftbandit.steady_state import oracle_cov, oracle_path
from driftbandit.theory import (
    finite_lower_bound,
    printed_finite_lower_bound,
    sphere_lower_bound,
)
from systems import assert_close, random_system

checked = settings(deadline=None, derandomize=True, max_examples=40)
stable = st.builds(
    random_system,
    seed=st.integers(0, 10**6),
    d=st.integers(1, 5),
    k=st.integers(1, 7),
    radius=st.sampled_from([0.1, 0.9, 0.99]),
    reward_std=st.sampled_from([0.0, 0.1, 1.0]),
)


# Mean lengths.


@pytest.mark.parametrize("d", [1, 2, 3, 10, 50])
def test_mean_length_of_a_unit_normal_vector(d):
    exact = math.sqrt(2) * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
    assert expected_norm(np.zeros(d), np.eye(d)) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("shift", [0.0, 0.1, 1.0, 5.0, 1e4])
@pytest.mark.parametrize("across", [0.0, 1e-3, 0.3, 1.0, 100.0])
def test_mean_length_with_a_kink(shift, across):
    """E √((ω + c)² + b²), whose integrand bends at −c as sharply as b is small."""

    def density(w):
        return math.hypot(w + shift, across) * math.exp(-(w**2) / 2) / math.sqrt(2 * math.pi)

    cuts = sorted({-13.0, 13.0, *(np.clip(-shift + across * np.arange(-8, 9), -13, 13))})
    exact = sum(
        quad(density, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in itertools.pairwise(cuts)
    )
    found = expected_length(np.array([shift**2, across**2]), np.array([1.0, 0.0]))
    assert found == pytest.approx(exact, rel=1e-11)


@checked
@given(stable, st.floats(1e-6, 1e6))
def test_mean_length_scales_and_does_not_depend_on_the_axes(system, scale):
    model, arms = system
    cov, mean = model.stationary_cov(), arms[0]
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal(cov.shape))[0]
    length = expected_norm(mean, cov)
    assert expected_norm(scale * mean, scale**2 * cov) == pytest.approx(scale * length, rel=1e-12)
    assert expected_norm(turn @ mean, turn @ cov @ turn.T) == pytest.approx(length, rel=1e-10)
    assert np.linalg.norm(mean) <= length * (1 + 1e-12)
    assert length <= math.sqrt(mean @ mean + np.trace(cov)) * (1 + 1e-12)


# The sphere.


def greedy_on_the_sphere(model, rounds, runs, rng):
    """Regret per round of a = ẑ/‖ẑ‖, each run with its own filter; rounds × runs."""
    d, Q = model.n_states, factor(model.process_cov)
    z = rng.standard_normal((runs, d)) @ factor(model.start_cov()).T
    mean, cov = np.zeros((runs, d)), np.broadcast_to(model.start_cov(), (runs, d, d))
    regret = np.empty((rounds, runs))
    for t in range(rounds):
        length = np.linalg.norm(mean, axis=1, keepdims=True)
        arm = np.where(length > 0, mean / np.where(length > 0, length, 1), np.eye(d)[0])
        regret[t] = np.linalg.norm(z, axis=1) - np.vecdot(arm, z)
        reward = np.vecdot(arm, z) + model.reward_std * rng.standard_normal(runs)
        cross = np.einsum("rij,rj->ri", cov, arm)
        variance = np.vecdot(arm, cross) + model.reward_std**2
        mean = mean + cross * ((reward - np.vecdot(arm, mean)) / variance)[:, None]
        cov = cov - cross[:, :, None] * cross[:, None, :] / variance[:, None, None]
        mean = mean @ model.transition.T
        cov = model.transition @ cov @ model.transition.T + model.process_cov
        z = z @ model.transition.T + rng.standard_normal((runs, d)) @ Q.T
    return regret


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("reward_std", [0.05, 1.0])
@pytest.mark.parametrize("initial", [False, True])
def test_P8_lies_below_a_greedy_policy_on_the_sphere(d, reward_std, initial):
    model, _ = random_system(7, d, reward_std=reward_std, initial=initial)
    regret = greedy_on_the_sphere(
        model, rounds=60, runs=2000 if d == 1 else 300, rng=np.random.default_rng(d)
    )
    means = regret.mean(axis=0)
    least = means.mean() - 4 * means.std(ddof=1) / math.sqrt(len(means))
    bound = sphere_lower_bound(model, rounds=60)
    if d == 1:  # the sign alone: nothing is left to explore, so greedy reaches it
        assert bound.value == pytest.approx(means.mean(), abs=means.mean() - least)
    else:
        assert 0 < bound.value < least
    if not initial:  # from a stationary start the error is never below where it settles
        assert sphere_lower_bound(model).value <= bound.value + 1e-12


@checked
@given(stable)
def test_P8_grows_with_the_error_that_must_remain(system):
    model, _ = system
    Z = model.stationary_cov()
    default = oracle_cov(model, np.eye(model.n_states))
    values = [sphere_lower_bound(model, share * default).value for share in (0, 0.5, 1)]
    rounding = 1e-11 * math.sqrt(np.trace(Z))
    assert values[0] <= rounding
    assert values[0] <= values[1] + rounding <= values[2] + 2 * rounding
    assert values[2] == pytest.approx(sphere_lower_bound(model).value, abs=rounding)
    full = sphere_lower_bound(model, Z).value  # nothing known: the regret of any fixed arm
    assert full == pytest.approx(expected_norm(np.zeros(model.n_states), Z), rel=1e-9)


# Finite sets.


def exact_plane(arms, cov):
    """E max ⟨a, N(0, cov)⟩ in the plane: √(π/2) times the mean of the highest score on a circle."""
    rows = arms @ factor(cov)
    angles = np.linspace(0, 2 * np.pi, 200_001)[:-1]
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return math.sqrt(math.pi / 2) * (rows @ circle).max(axis=0).mean()


@pytest.mark.parametrize("k", [2, 3, 6, 40])
def test_P11_in_the_plane(k):
    for seed in range(4):
        model, arms = random_system(seed, 2, k=k)
        Z, P = model.stationary_cov(), oracle_cov(model, arms)
        exact = exact_plane(arms, Z) - exact_plane(arms, Z - P)
        found = finite_lower_bound(model, arms)
        assert abs(found.value - exact) <= found.error + 1e-6 * exact
        assert found.error <= 1e-3 * found.value


@pytest.mark.parametrize(("k", "d"), [(2, 5), (6, 1), (6, 3)])
def test_P11_of_two_arms_or_one_state_is_exact(k, d):
    """One direction alone matters: E max − E max = (range of the read-outs) · √(2/π)/2 · Δσ."""
    model, arms = random_system(3, d, k=k)
    arms = arms if k == 2 else np.outer(np.arange(k) - 1.5, arms[0])
    gap = arms[np.argmax(arms @ arms[-1])] - arms[np.argmin(arms @ arms[-1])]
    Z, P = model.stationary_cov(), oracle_cov(model, arms)
    exact = (math.sqrt(gap @ Z @ gap) - math.sqrt(gap @ (Z - P) @ gap)) / math.sqrt(2 * math.pi)
    found = finite_lower_bound(model, arms)
    assert found.value == pytest.approx(exact, rel=1e-6)
    assert found.error <= 1e-6 * found.value


@checked
@given(stable, st.floats(1e-3, 1e3))
def test_P11_scales_with_the_rewards_and_is_never_negative(system, scale):
    model, arms = system
    found = finite_lower_bound(model, arms, accuracy=0.05)
    assert found.value >= 0
    larger = finite_lower_bound(model, scale * arms, accuracy=0.05)
    # σ does not grow with them: rewards are seen better, so that less is lost.
    assert larger.value <= scale * found.value + larger.error + scale * found.error or scale < 1
    louder = LGDS(model.transition, scale**2 * model.process_cov, scale * model.reward_std)
    assert finite_lower_bound(louder, arms, accuracy=0.05).value == pytest.approx(
        scale * found.value, rel=1e-6, abs=1e-9 * scale
    )


def test_P11_from_a_start_is_the_mean_over_its_rounds():
    for radius in (0.9, 1.05):
        model, arms = random_system(5, 2, k=4, radius=radius, initial=True)
        gaps = []
        for t, P in enumerate(itertools.islice(oracle_path(model, arms), 12)):
            Z = model.state_cov(t)
            gaps.append(exact_plane(arms, Z) - exact_plane(arms, Z - P))
        found = finite_lower_bound(model, arms, rounds=12)
        assert abs(found.value - np.mean(gaps)) <= found.error + 1e-6 * found.value


def test_P11_settles():
    """A long run from any start loses what a settled one does."""
    model, arms = random_system(5, 3, k=4, initial=True)
    settled = finite_lower_bound(model, arms)
    run = finite_lower_bound(model, arms, rounds=5000, accuracy=5e-3)
    assert run.value == pytest.approx(settled.value, rel=1e-2)


def test_P11_does_not_depend_on_the_units_of_the_states():
    """A state in units of 10⁸ beside one that moves slowly: same game, same bound."""
    model, arms = random_system(5, 2, k=4, radius=0.99, initial=True)
    units = np.array([1.0, 1e8])
    same = LGDS(
        model.transition * np.outer(units, 1 / units),
        model.process_cov * np.outer(units, units),
        model.reward_std,
        model.initial_cov * np.outer(units, units),
    )
    for rounds in (3, 100):
        expected = finite_lower_bound(model, arms, rounds=rounds, accuracy=1e-2)
        found = finite_lower_bound(same, arms / units, rounds=rounds, accuracy=1e-2)
        assert found.value == pytest.approx(expected.value, abs=found.error + expected.error)
    slow = LGDS(np.diag([0.0, 0.99]), np.diag([1.0, 0.02]), 0.1, initial_cov=np.diag([1.0, 0.0]))
    unit = LGDS(np.diag([0.0, 0.99]), np.diag([1e14, 0.02]), 0.1, initial_cov=np.diag([1e14, 0.0]))
    read = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    expected = finite_lower_bound(slow, read, rounds=150, accuracy=1e-2)
    found = finite_lower_bound(unit, read / [1e7, 1.0], rounds=150, accuracy=1e-2)
    assert found.value == pytest.approx(expected.value, abs=found.error + expected.error)


def test_P11_of_a_state_that_outgrows_its_error():
    """Once a doubling state dwarfs what is in doubt of it, nothing more is lost."""
    model = LGDS([[1.9, 0.1], [0.0, 0.7]], np.eye(2), 1.0, initial_cov=np.eye(2))
    arms = [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]]
    short, long = (finite_lower_bound(model, arms, rounds=n) for n in (100, 400))
    assert 0 < short.error < 0.01 * short.value
    assert 400 * long.value == pytest.approx(100 * short.value, rel=1e-3)
    sphere = sphere_lower_bound(model, rounds=400)
    assert 0 < sphere.error < 1e-3 * sphere.value


def test_P9_the_oracles_path_follows_the_textbook():
    model, arms = random_system(2, 3, k=5, initial=True)
    P = model.initial_cov
    for cov in itertools.islice(oracle_path(model, arms), 20):
        assert_close(cov, P, 1e-12)
        gain = naive.oracle_gain(P, arms, model.reward_std)
        P = model.transition @ (P - gain @ arms @ P) @ model.transition.T + model.process_cov


# Theorem 3 as printed.


@pytest.mark.parametrize(("k", "d"), [(2, 2), (3, 2), (3, 4), (5, 4), (5, 6)])
def test_P11_printed_is_what_is_printed(k, d):
    for seed in range(3):
        model, arms = random_system(seed, d, k=k)
        Z, P = model.stationary_cov(), oracle_cov(model, arms)
        expected = naive.printed_lower_bound(arms, Z, P)
        assert printed_finite_lower_bound(model, arms) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_P11_printed_grows_as_a_power_of_the_unit(k):
    """State and noise c times as large: c^k times the number. A regret grows c times."""
    model, arms = random_system(1, 5, k=k)
    louder = LGDS(model.transition, 9 * model.process_cov, 3 * model.reward_std)
    ratio = printed_finite_lower_bound(louder, arms) / printed_finite_lower_bound(model, arms)
    assert ratio == pytest.approx(3**k, rel=1e-9)


def test_P11_printed_fails_as_a_bound():
    """On some systems it exceeds the Kalman Oracle's regret, which is attained."""
    systems = families.sample("gaussian", systems=20, n_states=3, n_arms=3)
    fails = [
        printed_finite_lower_bound(*system) > finite_lower_bound(*system).value
        for system in systems
    ]
    assert 0 < sum(fails) < len(fails)


def test_P11_printed_needs_fewer_arms_than_states():
    model, arms = random_system(1, 3, k=6)
    with pytest.raises(InvalidInput, match="6 arms in 3 states differ in only 3 directions"):
        printed_finite_lower_bound(model, arms)
