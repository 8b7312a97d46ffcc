"""The least possible regret on independent arms: a bound, and how close it is."""

import functools
import math

import numpy as np
import pytest
import scipy

import driftbandit as db
from driftbandit import priced_arm
from driftbandit.priced_arm import Grid, steady_scale
from driftbandit.theory import finite_lower_bound, independence, least_regret
from driftbandit.theory.independence import expected_max, most_gain


def alike(decay, noise, k=10):
    """Arms of variance one."""
    return db.LGDS(decay * np.eye(k), (1 - decay**2) * np.eye(k), noise), np.eye(k)


def small_grid(decay, noise, nodes=60, scales=16, **options):
    return Grid(decay, noise, np.linspace(-4, 5, nodes), scales, **options)


def test_the_mean_of_the_highest_of_independent_normals():
    assert expected_max(np.zeros(3), np.ones(3)) == pytest.approx(1.5 / math.sqrt(math.pi), 1e-12)
    two = expected_max(np.array([1.0, 0.5]), np.array([3.0, 4.0]))
    d = 0.5 / 5
    assert two == pytest.approx(
        1 * scipy.special.ndtr(d)
        + 0.5 * scipy.special.ndtr(-d)
        + 5 * math.exp(-d * d / 2) / math.sqrt(2 * math.pi),
        1e-12,
    )
    assert expected_max(np.array([0.0, 2.0]), np.array([1.0, 0.0])) == pytest.approx(
        2 + (math.exp(-2) / math.sqrt(2 * math.pi) - 2 * scipy.special.ndtr(-2)), 1e-9
    )


def test_one_arm_costs_nothing():
    assert least_regret(*alike(0.9, 1.0, k=1)).value == 0


@pytest.mark.parametrize(("decay", "noise"), [(0.9, 1.0), (0.99, 5.0)])
def test_a_price_nobody_pays_and_one_that_everybody_takes(decay, noise):
    assert 0 <= most_gain(small_grid(decay, noise, exact=True), 30.0)[0] < 1e-3
    assert 30 <= most_gain(small_grid(decay, noise, exact=True), -30.0)[0] < 30.03


def step_at(grid, solution, price, z, c):
    """T h(z, c) − h(z, c), with the mean over the noise by a fine sum."""
    b, after = grid.slope, priced_arm.played(c, grid.decay, grid.noise)

    def h(z, c):
        cell, share = grid.cells(grid.place(min(c, grid.scale[0])))
        beyond = np.maximum(z - grid.z[-1], 0)
        rows = [np.interp(z, grid.z, solution.value[j]) + b[j] * beyond for j in (cell, cell + 1)]
        return (1 - share) * rows[0] + share * rows[1]

    points = np.linspace(-9, 9, 20_001)
    weights = np.exp(-(points**2) / 2)
    kept, surprise, scale = after
    ahead = (h(kept * z + surprise * points, scale) * weights).sum() / weights.sum()
    return max(z * c - price + ahead, h(z, grid.decay * c)) - h(z, c)


@pytest.mark.parametrize(("decay", "noise"), [(0.9, 1.0), (0.97, 0.3), (0.99, 5.0)])
def test_the_proof_holds_at_random_beliefs(decay, noise):
    """T h − h ≤ g, at nodes, between them and beyond the last."""
    grid, price = small_grid(decay, noise, exact=True), 0.7
    most, solution = most_gain(grid, price)
    rng = np.random.default_rng(0)
    highest = steady_scale(decay, noise)
    beliefs = [(z, c) for z in grid.z[::9] for c in grid.scale[:-1:3]]
    beliefs += zip(rng.uniform(-7, 9, 300), highest * rng.uniform(0, 1, 300), strict=True)
    beliefs += zip(rng.uniform(-2, 3, 300), highest * rng.uniform(0.7, 1, 300), strict=True)
    steps = [step_at(grid, solution, price, *belief) for belief in beliefs]
    assert max(steps) <= most + 1e-6
    assert max(steps) >= solution.gain - 0.02  # and no higher than needed


def test_a_finer_grid_has_a_tighter_bound():
    sizes = [(40, 10), (60, 16), (90, 24)]
    found = [most_gain(small_grid(0.95, 1.0, *size, exact=True), 0.8)[0] for size in sizes]
    assert (np.diff(found) < 0).all()
    nearly = small_grid(0.95, 1.0, 90, 24).solve(0.8).gain
    assert nearly - 1e-4 < found[-1] < nearly + 2e-3


@pytest.fixture
def coarse(monkeypatch):
    """Faster, with a bound that is a little lower."""
    monkeypatch.setattr(independence, "FINE", 80)
    monkeypatch.setattr(independence, "SCALES", (14, 20))


@functools.cache
def bound(decay, noise, k):
    return least_regret(*alike(decay, noise, k)).value


@pytest.mark.parametrize(
    ("decay", "noise", "least"),
    [
        (0.9, 1.0, 0.874),
        pytest.param(0.99, 5.0, 0.829, marks=pytest.mark.nightly),
        (0.99, 1.0, 0.255),
    ],
)
def test_ten_arms(decay, noise, least):
    """Close to the regret of the best policies, 0.884, 0.869 and 0.382."""
    assert least < bound(decay, noise, 10) < least + 0.01


def test_it_is_at_least_the_regret_of_the_oracle(coarse):
    model, arms = alike(0.9, 1.0, k=2)
    oracle = finite_lower_bound(model, arms)
    assert least_regret(model, arms).value >= oracle.value - oracle.error
    assert bound(0.9, 1.0, 10) > 2 * finite_lower_bound(*alike(0.9, 1.0)).value


def test_units_order_and_offsets(coarse):
    """Regret scales with the arms; a permutation and a common offset change nothing."""
    base = least_regret(*alike(0.9, 1.0, 3)).value
    model = db.LGDS(
        np.diag([0.9, 0.9, 0.9, 1.0]),
        np.diag([4 * 0.19, 0.19, 0.19 / 4, 0.0]),
        3.0,
        initial_mean=[0, 0, 0, 5.0],
    )
    arms = np.array([[0, 3.0, 0, 1.0], [0, 0, -6.0, 1.0], [1.5, 0, 0, 1.0]])
    assert least_regret(model, arms).value == pytest.approx(3 * base, abs=1e-6)


def test_an_arm_far_below_the_others_changes_nothing(coarse):
    model = db.LGDS(np.diag([0.8, 0.8, 0.8, 1.0]), np.diag([0.36] * 3 + [0.0]), 1.0,
                    initial_mean=[0, 0, 0, 1.0])  # fmt: skip
    arms = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, -40.0]])
    two = least_regret(*alike(0.8, 1.0, 2)).value
    assert least_regret(model, arms).value == pytest.approx(two, abs=3e-3)


@pytest.mark.parametrize(
    ("model", "arms", "said"),
    [
        (db.LGDS(np.eye(2) / 2, np.eye(2), 1.0), [[1, 1], [0, 1]], "arms: row 0 reads 2 states"),
        (db.LGDS(np.eye(2) / 2, np.eye(2), 1.0), [[1, 0], [2, 0]], "rows 0 and 1 both read state"),
        (db.LGDS([[0.5, 0.1], [0, 0.5]], np.eye(2), 1.0), np.eye(2), "transition: has 0.1 in row"),
        (db.LGDS(np.eye(2) / 2, [[1, 0.2], [0.2, 1]], 1.0), np.eye(2), "process_cov: has 0.2"),
        (db.LGDS(-np.eye(2) / 2, np.eye(2), 1.0), np.eye(2), "transition: has -0.5 for the state"),
        (db.LGDS(np.eye(2), np.eye(2), 1.0, np.eye(2)), np.eye(2), "decay from 0 to"),
    ],
)
def test_coupled_arms_are_refused(model, arms, said):
    with pytest.raises(db.InvalidInput, match=said):
        least_regret(model, arms)


def test_a_state_that_is_not_read_may_be_coupled(coarse):
    model = db.LGDS([[0.5, 0, 0], [0, 0.5, 0], [0.3, 0.2, 0.4]], np.eye(3), 1.0)
    assert least_regret(model, [[1, 0, 0], [0, 1, 0]]).value > 0


def test_arms_without_noise_and_without_memory(coarse):
    found = least_regret(*alike(0.9, 0.0, 2)).value
    assert 0 < found < least_regret(*alike(0.9, 1.0, 2)).value
    assert independence.least_regret(*alike(0.0, 1.0, 3)).value == pytest.approx(
        expected_max(np.zeros(3), np.ones(3))
    )


def least_of_two(decay, noise, nodes=33, scales=9):
    """The least regret of two arms of variance one, by value iteration over both beliefs."""
    grid = Grid(decay, noise, np.linspace(-4, 4, nodes), scales)
    play, rest = grid.rules.play, grid.rules.rest
    pays = np.append(np.outer(grid.scale[:-1], grid.z), 0.0)
    value = np.zeros((len(pays), len(pays)))
    for _ in range(2000):
        first = pays[:, None] + play @ (rest @ value.T).T
        after = np.maximum(first, first.T)  # by symmetry
        gained = after - value
        value = after - after[-1, -1]
        if np.ptp(gained) < 1e-4:
            break
    return 1 / math.sqrt(math.pi) - gained.mean()


@pytest.mark.parametrize(("decay", "noise"), [(0.5, 0.3), (0.8, 1.0), (0.9, 3.0)])
def test_two_arms_by_dynamic_programming(decay, noise, coarse):
    """The bound is below the least regret, which for two arms is not close."""
    least = least_of_two(decay, noise)
    assert 0.7 * least < least_regret(*alike(decay, noise, 2)).value < least + 1e-3
