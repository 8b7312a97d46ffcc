"""Known constants: states that stand still, which arms read with offsets of their own."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

import driftbandit as db
from driftbandit import LGDS, InvalidInput, NotDetectable, steady_state, theory
from driftbandit.gaussian.lines import expected_highest, radial_gain
from driftbandit.model import factor
from driftbandit.policies import idea, kalman_ucb
from systems import assert_close, random_system


def with_constants(model, arms, seed=0, count=1, start=None):
    """The system beside ``count`` constants that arms read and that push the states, shuffled.

    Also where its own states are now. ``start`` is the mean its states begin with.
    """
    rng = np.random.default_rng([seed, count])
    d = model.n_states
    order = rng.permutation(d + count)
    transition = np.eye(d + count)
    transition[:d, :d], transition[:d, d:] = model.transition, rng.standard_normal((d, count))
    covs = [model.process_cov, model.initial_cov]
    covs = [None if cov is None else np.pad(cov, (0, count)) for cov in covs]
    mean = np.append(np.zeros(d) if start is None else start, rng.standard_normal(count))
    shuffled = [None if cov is None else cov[np.ix_(order, order)] for cov in covs]
    whole = LGDS(
        transition[np.ix_(order, order)], shuffled[0], model.reward_std, shuffled[1], mean[order]
    )
    rows = np.hstack([arms, rng.standard_normal((len(arms), count))])
    return whole, rows[:, order], np.argsort(order)[:d]


# The model.


@pytest.mark.parametrize(
    ("transition", "process_cov", "initial_cov", "expected"),
    [
        (np.diag([0.5, 1.0]), np.diag([1.0, 0.0]), None, [False, True]),
        ([[0.5, 2.0], [0.0, 1.0]], np.diag([1.0, 0.0]), np.diag([3.0, 0.0]), [False, True]),
        (np.diag([1.0, 1.0]), np.zeros((2, 2)), None, [True, True]),
        (np.diag([0.5, 1.0]), np.diag([1.0, 0.0]), np.eye(2), [False, False]),  # not known
        (np.diag([0.5, 1.0]), np.eye(2), None, [False, False]),  # moved by noise
        (np.diag([0.5, 1 - 1e-15]), np.diag([1.0, 0.0]), None, [False, False]),  # fades
        ([[0.5, 0.0], [1e-15, 1.0]], np.diag([1.0, 0.0]), None, [False, False]),  # is pushed
    ],
)
def test_what_a_known_constant_is(transition, process_cov, initial_cov, expected):
    model = LGDS(transition, process_cov, 1.0, initial_cov)
    assert model.constants.tolist() == expected
    if not any(expected):
        assert model.moving is model


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_P3_what_moves_settles_around_the_mean_that_constants_push_it_to(initial, count):
    base, arms = random_system(1, 3, radius=0.8, initial=initial)
    model, _, own = with_constants(base, arms, count=count, start=[1.0, -2.0, 3.0])
    assert model.is_stable
    assert model.spectral_radius == pytest.approx(0.8, rel=1e-12)
    Z, mean = model.stationary_cov(), model.stationary_mean()
    assert_close(Z[np.ix_(own, own)], base.stationary_cov(), 1e-12)
    assert not Z[model.constants].any()
    assert_close(model.transition @ Z @ model.transition.T + model.process_cov, Z, 1e-12)
    assert_close(model.state_mean(500), mean, 1e-12)
    assert (mean[model.constants] == model.initial_mean[model.constants]).all()
    assert model.is_controllable()
    assert_close(model.settled_moment(500), Z + np.outer(mean, mean), 1e-12)
    assert not base.stationary_mean().any()


def test_P3_constants_do_not_settle_what_grows():
    base, arms = random_system(1, 2, radius=1.05, initial=True)
    model, _, _ = with_constants(base, arms)
    assert not model.is_stable
    for settled in (model.stationary_cov, model.stationary_mean):
        with pytest.raises(InvalidInput, match=r"^transition: has spectral radius 1\.05, so there"):
            settled()
    reached = LGDS(np.diag([0.5, 0.5, 1.0]), np.diag([1.0, 0, 0]), 1.0)
    assert not reached.is_controllable()


# Steady states.


@pytest.mark.parametrize("reward_std", [0.0, 0.5])
@pytest.mark.parametrize("radius", [0.9, 1.05])
@pytest.mark.parametrize("k", [1, 8])
def test_P9_what_moves_is_all_that_is_in_doubt(k, radius, reward_std):
    base, arms = random_system(2, 3, k, radius, reward_std, initial=radius > 1)
    model, rows, own = with_constants(base, arms, count=2)
    P, K = steady_state.oracle_cov(model, rows), steady_state.oracle_gain(model, rows)
    assert not P[model.constants].any()
    assert not K[model.constants].any()
    assert_close(P[np.ix_(own, own)], steady_state.oracle_cov(base, arms), 1e-8)
    assert_close(K[own] @ arms, steady_state.oracle_gain(base, arms) @ arms, 1e-6)
    each = steady_state.prediction_covs(model, rows)
    assert_close(each[:, own[:, None], own], steady_state.prediction_covs(base, arms), 1e-8)
    paths = steady_state.oracle_path(model, rows), steady_state.oracle_path(base, arms)
    for whole, part in itertools.islice(zip(*paths, strict=False), 5):
        assert_close(whole[np.ix_(own, own)], part, 1e-8)
        assert not whole[model.constants].any()


def test_P9_systems_with_different_constants_are_solved_together():
    systems = []
    for seed, count in enumerate([0, 1, 2, 1, 0, 3]):
        base, arms = random_system(seed, 4 - count, k=5)
        systems.append(with_constants(base, arms, seed, count)[:2])
    still = LGDS(np.eye(4), np.zeros((4, 4)), 1.0, initial_mean=[1.0, 2.0, 3.0, 4.0])
    systems.append((still, systems[0][1]))
    together = steady_state.oracle_gains(systems)
    for (model, arms), gain in zip(systems, together, strict=True):
        np.testing.assert_array_equal(steady_state.oracle_gain(model, arms), gain)
    assert not together[-1].any()
    assert still.stationary_mean().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert theory.finite_lower_bound(still, np.eye(4)) == (0.0, 0.0)


def test_P3_a_constant_need_not_be_seen_but_what_grows_must():
    grows = LGDS(np.diag([1.05, 1.0]), np.diag([1.0, 0.0]), 1.0, np.diag([1.0, 0.0]), [0.0, 1.0])
    assert steady_state.detectable(grows, [[1.0, 0.0], [0.0, 1.0]]).tolist() == [True, False]
    with pytest.raises(NotDetectable, match=r"^arm: a mode of the transition"):
        steady_state.prediction_cov(grows, [0.0, 1.0])
    fades = LGDS(np.diag([0.5, 1.0]), np.diag([3.0, 0.0]), 1.0)
    assert steady_state.prediction_cov(fades, [0.0, 1.0]).tolist() == [[4.0, 0.0], [0.0, 0.0]]


# What nobody can beat.


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_the_gain_along_a_line_is_that_of_lengths_with_signs(dimension):
    rng = np.random.default_rng(dimension)
    offsets, slopes = rng.standard_normal((2, 3, 6))
    offsets[0, :2], slopes[1, :2] = 1.0, -3.0  # ties: of the highest, and of the flattest
    length = np.linalg.norm(rng.standard_normal((dimension, 50_000)), axis=0)[:, None]
    sides = [offsets[:, None] + sign * length * slopes[:, None] for sign in (1, -1)]
    best = np.mean([scores.max(axis=2) for scores in sides], axis=0)
    found = offsets.max(axis=1) + radial_gain(offsets, slopes, dimension)
    assert (np.abs(best.mean(axis=1) - found) < 4.5 * best.std(axis=1) / math.sqrt(50_000)).all()
    if dimension == 1:
        assert found == pytest.approx(expected_highest(offsets, slopes), rel=1e-12)


def plane(arms, mean, cov):
    """E max ⟨a, N(mean, cov)⟩, cov of rank 2: one direction exactly, the other by trapezoids."""
    values, vectors = np.linalg.eigh(cov)
    slopes = arms @ (vectors * np.sqrt(np.maximum(values, 0)))[:, -2:]
    nodes = np.linspace(-9, 9, 401)
    heights = expected_highest(arms @ mean + nodes[:, None] * slopes[:, 0], slopes[None, :, 1])
    return float(norm.pdf(nodes) @ heights * (nodes[1] - nodes[0]))


def test_P11_two_arms_with_offsets_are_exact():
    """E (b + s ω)⁺ = b Φ(b/s) + s φ(b/s), of the full spread and of what is known."""
    base, arms = random_system(3, 2, k=2)
    for scale in (0.1, 1.0, 30.0):
        model, rows, _ = with_constants(base, arms)
        rows = np.where(model.constants, scale * rows, rows)
        gap, lead = rows[0] - rows[1], (rows[0] - rows[1]) @ model.stationary_mean()
        Z, P = model.stationary_cov(), steady_state.oracle_cov(model, rows)
        full, known = (
            lead * norm.cdf(lead / s) + s * norm.pdf(lead / s)
            for s in (math.sqrt(gap @ cov @ gap) for cov in (Z, Z - P))
        )
        found = theory.finite_lower_bound(model, rows)
        assert found.value == pytest.approx(full - known, rel=1e-9, abs=found.error)
        assert found.error <= 1e-13 * abs(lead) + 1e-12


@pytest.mark.parametrize("k", [3, 20])
def test_P11_with_offsets_in_the_plane(k):
    for seed in range(3):
        model, rows, _ = with_constants(*random_system(seed, 2, k=k), seed)
        mean, Z = model.stationary_mean(), model.stationary_cov()
        exact = plane(rows, mean, Z) - plane(rows, mean, Z - steady_state.oracle_cov(model, rows))
        found = theory.finite_lower_bound(model, rows, accuracy=2e-3)
        assert abs(found.value - exact) <= found.error + 1e-9
        assert found.error <= 2e-3 * found.value


@pytest.mark.parametrize("radius", [0.9, 1.05])
@pytest.mark.parametrize("count", [0, 1])
def test_P11_from_a_start_with_a_mean(radius, count):
    """The mean over rounds t, each with its own mean Γ^t E z(0)."""
    base, arms = random_system(5, 2, k=4, radius=radius, initial=True)
    model, rows, _ = with_constants(base, arms, count=count, start=[2.0, -1.0])
    gaps = []
    for t, P in enumerate(itertools.islice(steady_state.oracle_path(model, rows), 12)):
        mean, Z = model.state_mean(t), model.state_cov(t)
        gaps.append(plane(rows, mean, Z) - plane(rows, mean, Z - P))
    found = theory.finite_lower_bound(model, rows, rounds=12, accuracy=5e-3)
    assert abs(found.value - np.mean(gaps)) <= found.error + 1e-9
    assert found.error <= 5e-3 * found.value


def test_P10_P11_the_oracle_with_offsets_loses_what_the_exact_bound_says():
    systems = []
    for seed, count in enumerate([1, 2] * 4):
        base, arms = random_system(seed, 4 - count, k=5, radius=0.8)
        systems.append(with_constants(base, arms, seed, count)[:2])
    result = db.simulate(systems, policies=["kode", "kalman_oracle"], rounds=300, runs=40)
    settled = int(np.searchsorted(result.checkpoints, 100))
    rounds = result.checkpoints[-1] - result.checkpoints[settled]
    curve = result.curves["kalman_oracle"]
    per_round = (curve[..., -1] - curve[..., settled]) / rounds
    bounds = np.array([theory.finite_lower_bound(*s, accuracy=1e-2) for s in systems])
    error = per_round.std(axis=1, ddof=1) / math.sqrt(40)
    off = (per_round.mean(axis=1) - bounds[:, 0]) / np.hypot(error, bounds[:, 1] / 4)
    assert (np.abs(off) < 4.5).all()
    assert abs(off.mean()) < 1.2  # 3.4 of its standard errors
    assert (np.median(result.normalized()["kode"], axis=1) > -0.05).all()


def test_P8_on_the_sphere_around_a_mean():
    model, _, _ = with_constants(*random_system(4, 2))
    mean, Z = model.stationary_mean(), model.stationary_cov()
    P = steady_state.oracle_cov(model, np.eye(3))
    points = np.random.default_rng(0).standard_normal((100_000, 6))
    known = mean + points[:, :3] @ factor(Z - P).T
    gaps = np.linalg.norm(known + points[:, 3:] @ factor(P).T, axis=1)
    gaps -= np.linalg.norm(known, axis=1)
    found = theory.sphere_lower_bound(model)
    assert abs(found.value - gaps.mean()) < 4 * gaps.std() / math.sqrt(len(gaps))
    assert theory.sphere_lower_bound(model, P) == pytest.approx(found)
    long = theory.sphere_lower_bound(model, rounds=500)
    assert long.value == pytest.approx(found.value, rel=5e-2)


# The rest of the theory.


def test_P14_P17_offsets_change_neither_metric_nor_exploration():
    base, arms = random_system(6, 3, k=4)
    model, rows, _ = with_constants(base, arms, count=2)
    for bonus in (idea.bonus, kalman_ucb.bonus):
        expected = theory.metric_interval(base, arms, bonus)
        assert theory.metric_interval(model, rows, bonus) == pytest.approx(expected, rel=1e-8)
        cycles = [
            theory.exploration_schedule(*system, bonus, rounds=300).cycle.tolist()
            for system in ((base, arms), (model, rows))
        ]
        assert cycles[0] == cycles[1] != []
        left = theory.every_arm_is_left(model, rows, bonus)
        assert left == theory.every_arm_is_left(base, arms, bonus)


def test_P16_wrong_actions_with_offsets():
    model, rows, _ = with_constants(*random_system(8, 2, k=3), seed=8)
    far = np.where(model.constants, -1e3 / model.stationary_mean(), rows[0])  # paid −1000
    rows = np.vstack([rows, far])
    P = steady_state.prediction_cov(model, rows[0])
    found = theory.wrong_action_probability(model, rows, idea.bonus, P, accuracy=1e-2).probability
    rng, n = np.random.default_rng(0), 100_000
    Z = model.stationary_cov()
    known = model.stationary_mean() + rng.standard_normal((n, 3)) @ factor(Z - P).T
    state = known + rng.standard_normal((n, 3)) @ factor(P).T
    u = idea.bonus(P, model, rows)
    played, best = (known @ rows.T + u).argmax(axis=1), (state @ rows.T).argmax(axis=1)
    counts = np.zeros((4, 4))
    np.add.at(counts, (played, best), 1)
    assert np.isnan(found[:, 3]).all()
    times = counts.sum(axis=0)[:3]
    assert (times > 1000).all()
    share = counts[:, :3] / times
    error = np.sqrt(share * (1 - share) / times)
    assert (np.abs(share - found[:, :3]) <= 4.5 * error + 1e-2).all()


def test_P11_P18_printed_formulas_are_for_a_mean_of_zero():
    model, rows, _ = with_constants(*random_system(6, 3, k=3))
    for refused in (
        lambda: theory.printed_finite_lower_bound(model, rows),
        lambda: theory.ucb_upper_bound(model, rows, 100),
    ):
        with pytest.raises(InvalidInput, match=r"^model: state \d is the constant .* mean of zero"):
            refused()
    zero = LGDS(model.transition, model.process_cov, model.reward_std)
    assert theory.ucb_upper_bound(zero, rows, 100) > 0
