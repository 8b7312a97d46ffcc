"""P1–P3: the system, its arms and its structure."""

import numpy as np
import pytest

import naive
from driftbandit import LGDS, InvalidInput, steady_state
from driftbandit.model import checked_arms, factor, unit_rows
from systems import assert_close, random_system

SIZES = [1, 2, 4, 10]
CHAIN = [[0.5, 1.0], [0.0, 0.5]]  # z2 drives z1, never the other way


@pytest.mark.parametrize("d", SIZES)
def test_P3_stationary_cov_solves_its_equation(d):
    model, _ = random_system(1, d)
    Z = model.stationary_cov()
    assert_close(Z, naive.stationary_cov(model.transition, model.process_cov), 1e-12)
    assert_close(Z, model.transition @ Z @ model.transition.T + model.process_cov, 1e-12)
    assert (Z == Z.T).all()


@pytest.mark.parametrize("radius", [1.0, 1.05])
def test_P3_no_stationary_cov_without_stability(radius):
    model = LGDS(np.diag([radius, 0.5]), np.eye(2), 1.0, initial_cov=np.eye(2))
    assert not model.is_stable
    with pytest.raises(InvalidInput, match=r"^transition: has spectral radius 1"):
        model.stationary_cov()


@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 64, 1000])
@pytest.mark.parametrize("radius", [0.0, 0.5, 0.9, 1.0, 1.05])
def test_P3_state_cov_follows_the_recursion(radius, rounds):
    model, _ = random_system(2, d=4, radius=radius, noise_rank=2, initial=True)
    expected = naive.state_cov(model.transition, model.process_cov, model.initial_cov, rounds)
    assert_close(model.state_cov(rounds), expected, 1e-11)


@pytest.mark.parametrize("rounds", [0, 1, 7, 1000])
def test_P3_stationary_start_stays_put(rounds):
    model, _ = random_system(3, d=4)
    Z = model.stationary_cov()
    assert_close(model.state_cov(rounds), Z, 0)
    started = LGDS(model.transition, model.process_cov, 1.0, initial_cov=Z)
    assert_close(started.state_cov(rounds), Z, 1e-12)


def test_P3_state_cov_warns_of_no_overflow_while_finite():
    growing = LGDS([[2.0]], [[16.0]], 1.0, initial_cov=[[1.0]])
    expected = naive.state_cov(growing.transition, growing.process_cov, growing.initial_cov, 300)
    assert_close(growing.state_cov(300), expected, 1e-12)


def test_P1_start_cov_is_the_given_or_the_stationary_one():
    given, _ = random_system(4, d=3, initial=True)
    free, _ = random_system(4, d=3)
    assert_close(given.start_cov(), given.initial_cov, 0)
    assert_close(free.start_cov(), naive.stationary_cov(free.transition, free.process_cov), 1e-12)


def test_P3_settled_cov_is_stationary_or_the_horizons():
    stable, _ = random_system(5, d=3, initial=True)
    growing, _ = random_system(5, d=3, radius=1.05, initial=True)
    assert_close(stable.settled_cov(20), stable.stationary_cov(), 0)
    assert_close(growing.settled_cov(20), growing.state_cov(20), 0)


@pytest.mark.parametrize("d", SIZES)
def test_P1_spectral_radius_and_states(d):
    model, _ = random_system(6, d, radius=0.7)
    assert model.n_states == d
    assert model.spectral_radius == pytest.approx(0.7, rel=1e-12)
    assert model.is_stable


@pytest.mark.parametrize(
    ("transition", "process_cov", "expected"),
    [
        (np.diag([0.9, 0.5]), np.eye(2), True),
        (CHAIN, np.diag([0.0, 1.0]), True),
        (CHAIN, np.diag([1.0, 0.0]), False),
        (np.diag([0.9, 0.5]), np.ones((2, 2)), True),  # one noise, two speeds
        (np.diag([0.9, 0.9]), np.ones((2, 2)), False),  # one noise, one speed
        (np.eye(4, k=1) + 0.1 * np.eye(4), np.diag([0.0, 0.0, 0.0, 1.0]), True),
        (np.eye(4, k=1) + 0.1 * np.eye(4), np.diag([0.0, 0.0, 1.0, 0.0]), False),
        (np.diag([0.9, 0.5]), np.zeros((2, 2)), False),
        (np.zeros((2, 2)), np.eye(2), True),
    ],
)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_P3_is_controllable(transition, process_cov, expected, scale):
    model = LGDS(transition, scale * np.asarray(process_cov), 1.0)
    assert model.is_controllable() is expected


@pytest.mark.parametrize("d", [2, 3])
def test_P3_a_nilpotent_chain_is_controllable(d):
    last = np.diag([0.0] * (d - 1) + [1.0])  # Γ carries it to every state: [Q^½, ΓQ^½, …] = I
    assert LGDS(np.eye(d, k=1), last, 1.0).is_controllable()


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("n", [1, 2, 12])
def test_P3_observability_gramian(d, n):
    model, played = random_system(7, d, k=n, radius=1.02, initial=True)
    gramian = model.observability_gramian(played)
    assert_close(gramian, naive.observability_gramian(model.transition, played), 1e-12)


def test_P3_observability_gramian_counts_from_zero():
    model = LGDS([[2.0]], [[1.0]], 1.0, initial_cov=[[1.0]])
    assert model.observability_gramian([[3.0]]).tolist() == [[9.0]]
    assert model.observability_gramian([[3.0], [1.0]]).tolist() == [[9.0 + 4.0 * 1.0]]


@pytest.mark.parametrize("name", ["transition", "process_cov", "initial_cov"])
def test_P1_the_model_keeps_its_own_read_only_copies(name):
    given = {"transition": CHAIN, "process_cov": np.eye(2), "initial_cov": np.eye(2)}
    given = {key: np.array(value) for key, value in given.items()}
    before = given[name].copy()
    model = LGDS(reward_std=1.0, **given)
    given[name][:] = 7.0
    kept = getattr(model, name)
    assert (kept == before).all()
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 7.0


def test_P3_the_cached_stationary_cov_is_read_only():
    model, _ = random_system(8, d=2)
    with pytest.raises(ValueError, match="read-only"):
        model.stationary_cov()[0, 0] = 7.0


def test_P2_checked_arms_are_a_read_only_copy():
    model, arms = random_system(9, d=3)
    before = arms.copy()
    kept = checked_arms(arms, model)
    arms[:] = 7.0
    assert (kept == before).all()
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 7.0


@pytest.mark.parametrize("d", SIZES)
def test_P2_unit_rows_have_length_one_and_keep_their_direction(d):
    _, arms = random_system(10, d, k=5)
    unit = unit_rows(arms)
    lengths = np.linalg.norm(arms, axis=1)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(lengths[:, None] * unit, arms, rtol=1e-15)


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_P1_factor_of_singular_covariances_too(rank):
    root = np.random.default_rng(11).standard_normal((5, rank))
    cov = root @ root.T
    F = factor(cov)
    assert_close(F @ F.T, cov, 1e-14)


def test_stationary_cov_in_any_units():
    """A state that is reached late, or measured in tiny units, is not left out of the sum."""
    chain = [[0, 0, 0], [1e-9, 0, 0], [0, 1e9, 0.5]]
    model = LGDS(chain, np.diag([1.0, 0, 0]), 0.1)
    assert model.stationary_cov()[2, 2] == pytest.approx(4 / 3, rel=1e-12)
    slow = LGDS([[0, 0], [1e-8, 0.999999]], np.diag([1.0, 0]), 0.1)
    expected = 1e-16 / (1 - 0.999999**2)
    assert slow.stationary_cov()[1, 1] == pytest.approx(expected, rel=1e-9)
    # One arm that reads the first state alone: what is left of it feeds the second's doubt.
    left = 1e-16 * 0.01 / 1.01 / (1 - 0.999999**2)
    found = steady_state.prediction_cov(slow, [1.0, 0.0])[1, 1]
    assert found == pytest.approx(left, rel=1e-6)


def test_P3_a_state_that_starts_from_a_mean():
    model = LGDS(
        [[0.5, 1.0], [0.0, 1.0]], np.diag([1.0, 0.0]), 1.0, np.diag([1.0, 0.0]), [2.0, 1.0]
    )
    assert model.start_mean().tolist() == [2.0, 1.0]
    assert model.state_mean(0).tolist() == [2.0, 1.0]
    assert model.state_mean(2).tolist() == [2.0, 1.0]  # the second state pushes the first
    moment = model.settled_moment(3)
    mean = model.state_mean(3)
    np.testing.assert_allclose(moment, model.settled_cov(3) + np.outer(mean, mean))
    assert model.settled_cov(3)[0, 0] == pytest.approx(4 / 3)  # beside a known constant
    assert not LGDS([[0.5]], [[1.0]], 1.0).start_mean().any()
