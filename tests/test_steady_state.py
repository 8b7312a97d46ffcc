"""P9: where the error covariance settles, and the Kalman Oracle's gain."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg

import naive
from driftbandit import (
    LGDS,
    InvalidInput,
    NotDetectable,
    families,
    policies,
    steady_state,
    theory,
)
from driftbandit.steady_state import (
    detectable,
    oracle_cov,
    oracle_gain,
    oracle_gains,
    prediction_cov,
    prediction_covs,
)
from refusals import EYE, HALF_SEEN, STABLE, Case, assert_refused, each
from systems import assert_close, random_system, with_constants

SYSTEMS = [(seed, d) for d in (1, 2, 4, 10) for seed in (0, 1, 2)]


on_random_systems = pytest.mark.parametrize(
    ("seed", "d"),
    [pytest.param(seed, d, marks=pytest.mark.nightly if seed == 2 else ()) for seed, d in SYSTEMS],
)


def one_round(P, model, arms):
    """P after the rewards of all `arms` were seen and one round passed."""
    P = P - naive.oracle_gain(P, arms, model.reward_std) @ arms @ P
    return model.transition @ P @ model.transition.T + model.process_cov


def kept_by(K, P, model, arms):
    """P after one round with any gain K: Joseph's form, which inverts nothing."""
    rest = np.eye(len(P)) - K @ arms
    P = rest @ P @ rest.T + model.reward_std**2 * K @ K.T
    return model.transition @ P @ model.transition.T + model.process_cov


def settled(model, arms, rounds=400):
    """The recursion's end; 400 rounds suffice where its rate ρ(Γ − ΓKC)² is below 0.92."""
    return naive.riccati_fixed_point(
        model.transition, model.process_cov, model.reward_std, np.asarray(arms), rounds
    )


def growth(model, arms):
    """By how much the oracle's error grows a round: ρ(Γ − Γ K C)."""
    closed = model.transition - model.transition @ oracle_gain(model, arms) @ arms
    return np.abs(np.linalg.eigvals(closed)).max()


def started(transition, process_cov, reward_std):
    """A model that need not be stable."""
    return LGDS(transition, process_cov, reward_std, initial_cov=np.eye(len(transition)))


@pytest.fixture(params=["scipy", "scipy refuses"])
def solver(request, monkeypatch):
    """Once as it is, once without SciPy: by the ways that are left where SciPy gives up."""

    def refuse(*_):
        raise np.linalg.LinAlgError

    if request.param == "scipy refuses":
        monkeypatch.setattr(scipy.linalg, "solve_discrete_are", refuse)


# Well-conditioned systems, by three independent ways.


@on_random_systems
def test_P9_agrees_with_scipy(seed, d):
    model, arms = random_system(seed, d)
    for C, P in [(arms, oracle_cov(model, arms)), (arms[:1], prediction_cov(model, arms[0]))]:
        noise = model.reward_std**2 * np.eye(len(C))
        expected = scipy.linalg.solve_discrete_are(
            model.transition.T, C.T, model.process_cov, noise
        )
        assert_close(P, expected, 1e-8)
        assert_close(P, one_round(P, model, C), 1e-8)


@on_random_systems
def test_P9_agrees_with_the_recursion(seed, d, solver):
    model, arms = random_system(seed, d)
    assert_close(oracle_cov(model, arms), settled(model, arms), 1e-8)
    assert_close(prediction_cov(model, arms[0]), settled(model, arms[:1]), 1e-8)


@on_random_systems
def test_P9_oracle_gain(seed, d):
    model, arms = random_system(seed, d)
    expected = naive.oracle_gain(oracle_cov(model, arms), arms, model.reward_std)
    assert_close(oracle_gain(model, arms), expected, 1e-8)
    assert growth(model, arms) < 1


@on_random_systems
def test_P9_more_arms_leave_less_doubt(seed, d):
    model, arms = random_system(seed, d)
    P_a, P_A, Z = prediction_cov(model, arms[0]), oracle_cov(model, arms), model.stationary_cov()
    for less, more in [(P_A, P_a), (P_a, Z), (model.process_cov, P_A)]:
        assert np.linalg.eigvalsh(more - less)[0] >= -1e-12 * np.linalg.norm(more, 2)


# σ = 0, singular Q.


@pytest.mark.parametrize("noise_rank", [None, 2])
@pytest.mark.parametrize("k", [4, 6])
def test_P9_without_noise_enough_arms_leave_the_last_shock(k, noise_rank):
    """σ = 0 and k ≥ d: the state is read off, so P_A = Q and K C = I where there is doubt."""
    model, arms = random_system(1, d=4, k=k, reward_std=0.0, noise_rank=noise_rank)
    P = oracle_cov(model, arms)
    assert_close(P, model.process_cov, 1e-9)
    assert_close(oracle_gain(model, arms) @ arms @ P, P, 1e-9)
    assert growth(model, arms) < 1


@on_random_systems
def test_P9_without_noise_few_arms(seed, d):
    """σ = 0, full Q, one arm: C P Cᵀ stays regular, so the textbook recursion holds."""
    model, arms = random_system(seed, d, k=1, reward_std=0.0)
    assert_close(prediction_cov(model, arms[0]), settled(model, arms), 1e-8)
    assert_close(
        oracle_gain(model, arms), naive.oracle_gain(oracle_cov(model, arms), arms, 0), 1e-8
    )
    assert growth(model, arms) < 1


def test_P9_without_noise_and_with_singular_Q():
    """z1 is read exactly and driven by z2 alone, so z2 is known two rounds late: by hand."""
    a, b, c, q = 0.5, 2.0, 0.8, 3.0
    model = LGDS([[a, b], [0.0, c]], np.diag([0.0, q]), reward_std=0.0)
    expected = q * np.array([[b**2, b * c], [b * c, 1 + c**2]])
    assert_close(prediction_cov(model, [1.0, 0.0]), expected, 1e-8)
    assert growth(model, np.array([[1.0, 0.0]])) < 1


@on_random_systems
def test_P9_with_noise_and_singular_Q(seed, d):
    model, arms = random_system(seed, d, noise_rank=1)
    assert_close(oracle_cov(model, arms), settled(model, arms), 1e-8)
    assert_close(prediction_cov(model, arms[0]), settled(model, arms[:1]), 1e-8)


@pytest.mark.parametrize("reward_std", [0.0, 1.0])
def test_P9_no_process_noise_leaves_no_doubt(reward_std):
    model = LGDS(np.diag([0.9, 0.5]), np.zeros((2, 2)), reward_std)
    assert np.abs(oracle_cov(model, np.eye(2))).max() < 1e-300


# Modes that do not die out.


@pytest.mark.parametrize("q", [1e-6, 1.0, 100.0])
@pytest.mark.parametrize("reward_std", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("gamma", [0.9, 1.0, 1.05])
def test_P9_scalar_solution(gamma, reward_std, q, solver):
    """The positive root of P² + (σ² − γ²σ² − q) P − q σ² = 0: stable, marginal, unstable."""
    model = started([[gamma]], [[q]], reward_std)
    half = (q - (1 - gamma**2) * reward_std**2) / 2
    expected = half + math.sqrt(half**2 + q * reward_std**2)
    assert_close(prediction_cov(model, [1.0]), [[expected]], 1e-8)
    assert growth(model, np.eye(1)) < 1


@pytest.mark.parametrize(
    "transition",
    [
        [[1.0, 1.0], [0.0, 1.0]],  # a trend: double eigenvalue 1
        [[0.0, -1.0], [1.0, 0.0]],  # a cycle: eigenvalues ±i
        [[1.05, 0.3], [0.0, 0.5]],
    ],
)
@pytest.mark.parametrize("reward_std", [0.0, 1.0])
def test_P9_marginal_and_unstable_modes_excited(transition, reward_std, solver):
    model, arm = started(transition, np.diag([0.5, 1.0]), reward_std), np.array([[1.0, 0.0]])
    P = prediction_cov(model, arm[0])
    assert_close(P, settled(model, arm), 1e-8)
    assert_close(oracle_cov(model, arm), P, 1e-12)
    assert growth(model, arm) < 1


@pytest.mark.parametrize("arm", [[1.0, 1.0], [1.0, 0.1]])
def test_P9_marginal_mode_not_excited_is_learned_in_the_end(arm, solver):
    """Constant z1: its doubt dies like 1/t, and what is left is z2's alone."""
    model = started(np.diag([1.0, 0.5]), np.diag([0.0, 1.0]), reward_std=1.0)
    alone = prediction_cov(LGDS([[0.5]], [[1.0]], reward_std=1.0), arm[1:])[0, 0]
    assert_close(prediction_cov(model, arm), np.diag([0.0, alone]), 1e-8)


def test_P9_marginal_mode_not_excited_without_noise():
    model = started(np.diag([1.0, 0.5]), np.diag([0.0, 1.0]), reward_std=0.0)
    assert_close(prediction_cov(model, [1.0, 1.0]), np.diag([0.0, 1.0]), 1e-8)


@pytest.mark.parametrize("gamma", [1.05, -1.3])
def test_P9_unstable_mode_not_excited_keeps_its_doubt(gamma, solver):
    """P = 0 solves the equation too, but the solution that is reached is σ² (γ² − 1)."""
    model = started([[gamma]], [[0.0]], reward_std=2.0)
    assert_close(prediction_cov(model, [1.0]), [[4.0 * (gamma**2 - 1)]], 1e-8)
    assert growth(model, np.eye(1)) == pytest.approx(1 / abs(gamma), rel=1e-8)


@pytest.mark.parametrize("reward_std", [0.0, 1.0])
def test_P9_unstable_mode_not_excited_beside_one_that_is(reward_std, solver):
    model = started(np.diag([1.05, 0.5]), np.diag([0.0, 1.0]), reward_std)
    arm = np.array([[1.0, 1.0]])
    P = prediction_cov(model, arm[0])
    assert P[0, 0] > 0.1
    assert_close(P, settled(model, arm), 1e-8)
    assert growth(model, arm) < 1


def test_P9_unstable_mode_without_any_noise():
    """The limit of σ² (γ² − 1) for small σ: P = 0, with the gain that keeps an error small."""
    model = started([[1.05]], [[0.0]], reward_std=0.0)
    assert np.abs(prediction_cov(model, [1.0])).max() < 1e-10
    assert growth(model, np.eye(1)) < 1


@pytest.mark.parametrize("radius", [1.0, 1.05])
@pytest.mark.parametrize("reward_std", [0.0, 1.0])
def test_P9_undetectable_is_refused_by_name(radius, reward_std):
    model = started(np.diag([radius, 0.5]), np.eye(2), reward_std)
    blind = [0.0, 1.0]
    with pytest.raises(NotDetectable, match=r"^arm: a mode of the transition that does not decay"):
        prediction_cov(model, blind)
    for function in (oracle_cov, oracle_gain):
        with pytest.raises(NotDetectable, match=r"^arms: a mode of the transition that does not"):
            function(model, [blind, blind])


# Detectability (P3).


@pytest.mark.parametrize(
    ("transition", "arms", "expected"),
    [
        (np.diag([1.05, 0.5]), [[1.0, 0.0], [0.0, 1.0], [1e-3, 1.0]], [True, False, True]),
        (np.diag([0.99, 0.5]), [[1.0, 0.0], [0.0, 1.0]], [True, True]),
        ([[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [True, False]),  # a trend
        ([[0.0, -1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [True, True]),  # a cycle
        (np.diag([1.05, 1.05]), [[1.0, 0.0], [1.0, 1.0]], [False, False]),  # one reading, two modes
        (np.diag([1.05, -1.05]), [[1.0, 0.0], [1.0, 1.0]], [False, True]),
    ],
)
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_P3_detectable_arm_by_arm(transition, arms, expected, length):
    model = started(transition, np.eye(2), 1.0)
    assert detectable(model, length * np.array(arms)).tolist() == expected


def test_P9_arms_may_detect_together_what_none_detects_alone():
    model = started(np.diag([1.05, 1.05]), np.eye(2), 1.0)
    assert not detectable(model, np.eye(2)).any()
    alone = prediction_cov(started([[1.05]], [[1.0]], 1.0), [1.0])[0, 0]
    assert_close(oracle_cov(model, np.eye(2)), alone * np.eye(2), 1e-8)


@pytest.mark.parametrize("reads", list(itertools.product([0.0, 1.0], repeat=3))[1:])
def test_P3_detectable_agrees_with_prediction_cov(reads):
    """Modes 0.5, 1 and 1.1 in a rotated basis; the arm reads some of them."""
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    model = started(basis @ np.diag([0.5, 1.0, 1.1]) @ basis.T, np.eye(3), 1.0)
    arm = basis @ reads
    expected = reads[1:] == (1.0, 1.0)
    assert detectable(model, [arm]).tolist() == [expected]
    if expected:
        assert_close(prediction_cov(model, arm), settled(model, arm[None]), 1e-8)
    else:
        with pytest.raises(NotDetectable):
            prediction_cov(model, arm)


# The Bernoulli family of Table I: σ = 0, singular Q and repeated arms all at once.


def test_P9_on_the_bernoulli_family():
    systems = families.sample("bernoulli", systems=100)
    assert sum(model.reward_std == 0 for model, _ in systems) > 30
    assert sum(np.linalg.matrix_rank(model.process_cov) < 10 for model, _ in systems) > 10
    for model, arms in systems:
        P, K = oracle_cov(model, arms), oracle_gain(model, arms)
        assert np.linalg.eigvalsh(P)[0] >= -1e-9 * np.linalg.norm(P, 2)
        assert_close(kept_by(K, P, model, arms), P, 1e-8)
        # K (C P Cᵀ + σ² I) = P Cᵀ, the equation of the best gain, without its inverse.
        inner = arms @ P @ arms.T + model.reward_std**2 * np.eye(len(arms))
        assert_close(K @ inner, P @ arms.T, 1e-8)
        assert growth(model, arms) < 1


@pytest.mark.parametrize("reward_std", [0.0, 0.5])
def test_P9_many_arms_say_no_more_than_d_combinations(reward_std):
    """k ≫ d: the same P_A and gain as with the k × k inverse, without building it."""
    model, arms = random_system(3, d=4, k=40, reward_std=reward_std)
    cov = oracle_cov(model, arms)
    told = naive.oracle_gain(cov, arms, reward_std)
    assert_close(oracle_gain(model, arms) @ arms, told @ arms, 1e-8)
    many = np.random.default_rng(0).standard_normal((100_000, 4))
    assert np.isfinite(oracle_gain(model, many)).all()


# Many systems at once: a member's numbers are its own.


def mixed_systems(d, k):
    """50 systems of one shape: every family, σ = 0, singular Q, modes that do not die out."""
    systems = [
        system
        for family in families.FAMILIES
        for system in families.sample(family, systems=8, n_states=d, n_arms=k)
    ]
    for seed in range(5):
        systems.append(random_system(seed, d, k, reward_std=0.0, noise_rank=1))
        model, arms = random_system(seed, d, k)
        systems.append((started(model.transition / 0.9, model.process_cov, 1.0), arms))
    return systems


@pytest.mark.parametrize(("d", "k"), [(10, 10), (7, 3), (3, 8), (1, 1)])
def test_P9_a_system_does_not_depend_on_its_stack(d, k):
    systems = mixed_systems(d, k)
    together = oracle_gains(systems)
    assert together.shape == (50, d, k)
    order = np.random.default_rng(0).permutation(50)
    np.testing.assert_array_equal(oracle_gains([systems[i] for i in order]), together[order])
    for i in range(0, 48, 3):
        np.testing.assert_array_equal(oracle_gains(systems[i : i + 3]), together[i : i + 3])
    for (model, arms), gain in zip(systems, together, strict=True):
        np.testing.assert_array_equal(oracle_gains([(model, arms)])[0], gain)
        np.testing.assert_array_equal(oracle_gain(model, np.asfortranarray(arms)), gain)


@pytest.mark.parametrize("d", [3, 10])
def test_P9_a_system_does_not_depend_on_how_stacks_are_cut(d, monkeypatch):
    systems = mixed_systems(d, d)
    together = oracle_gains(systems)
    monkeypatch.setattr("driftbandit.riccati.STACK", 7 * d * d)
    np.testing.assert_array_equal(oracle_gains(systems), together)


@pytest.mark.parametrize(("d", "k"), [(7, 3), (4, 6), (1, 2)])
def test_P14_prediction_covs_are_those_of_each_arm(d, k):
    for model, arms in mixed_systems(d, k):
        if detectable(model, arms).all():
            each = np.stack([prediction_cov(model, arm) for arm in arms])
            np.testing.assert_array_equal(prediction_covs(model, arms), each)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_P9_accuracy_on_the_families(family):
    """Against SciPy. Where C P Cᵀ + σ² I is near singular, the gain is open to both of them."""
    systems = [s for s in families.sample(family, systems=60) if s[0].reward_std > 0]
    for (model, arms), gain in zip(systems, oracle_gains(systems), strict=True):
        noise = model.reward_std**2 * np.eye(10)
        P = scipy.linalg.solve_discrete_are(model.transition.T, arms.T, model.process_cov, noise)
        assert_close(oracle_cov(model, arms), P, 1e-10)
        inner = arms @ P @ arms.T + noise
        if np.linalg.cond(inner) < 1e10:
            assert_close(gain, np.linalg.solve(inner, arms @ P).T, 1e-5)
            assert_close(gain @ inner, P @ arms.T, 1e-9)


@pytest.mark.parametrize("radius", [0.9, 0.999])
@pytest.mark.parametrize("reward_std", [1e-6, 1e-3, 1.0])
def test_P14_small_noise_costs_no_digits(radius, reward_std):
    """P reproduces itself to rounding, by Joseph's form, which inverts nothing."""
    for seed in range(10):
        model, arms = random_system(seed, d=3, k=1, radius=radius, reward_std=reward_std)
        P, K = prediction_cov(model, arms[0]), oracle_gain(model, arms)
        assert_close(kept_by(K, P, model, arms), P, 1e-13)


def test_P9_one_hopeless_system_does_not_spoil_the_others(monkeypatch):
    """A singular matrix inside one member's doubling leaves the others' alone."""
    systems = list(families.sample("gaussian", systems=4, n_states=3, n_arms=3))
    expected = oracle_gains(systems)
    solve = np.linalg.solve

    def picky(matrices, sides):
        if len(matrices) > 1:
            raise np.linalg.LinAlgError
        return solve(matrices, sides)

    monkeypatch.setattr(np.linalg, "solve", picky)
    np.testing.assert_array_equal(oracle_gains(systems), expected)
    monkeypatch.setattr(np.linalg, "solve", lambda *_: picky([0, 0], None))
    for gain, want in zip(oracle_gains(systems), expected, strict=True):
        assert_close(gain, want, 1e-9)  # by SciPy


def test_P9_what_is_wrong_with_a_stack_is_said_by_name():
    good, other = random_system(0, 2), random_system(0, 3)
    with pytest.raises(InvalidInput, match=r"^systems: is empty"):
        oracle_gains([])
    with pytest.raises(InvalidInput, match=r"^arms of system 1: has shape \(4, 3\)"):
        oracle_gains([good, other])
    with pytest.raises(InvalidInput, match=r"^arms of system 1: row 0 is the zero vector"):
        oracle_gains([good, (good[0], [[0.0, 0.0]])])
    with pytest.raises(InvalidInput, match=r"^arms: the variance of the rewards overflows"):
        oracle_gains([(LGDS([[0.5]], [[1e150]], 0.0), [[1e150]])])
    blind = (started(np.diag([1.05, 0.5]), np.eye(2), 1.0), [[0.0, 1.0], [0.0, 2.0]])
    with pytest.raises(NotDetectable, match=r"^arms of system 1: a mode of the transition"):
        oracle_gains([(good[0], good[1][:2]), blind])
    with pytest.raises(NotDetectable, match=r"^arms: row 1: a mode of the transition"):
        prediction_covs(blind[0], [[1.0, 0.0], [0.0, 1.0]])


def test_P9_the_oracle_prepares_many_systems_as_it_prepares_one():
    oracle = policies.make("kalman_oracle")
    systems = mixed_systems(4, 5)
    constants, state = oracle.batch.prepare_stack(systems, 100)
    for (model, arms), gain, mean in zip(systems, constants["gain"], state.mean, strict=True):
        alone, start = oracle.prepare(model, arms, 100)
        np.testing.assert_array_equal(gain, alone["gain"])
        np.testing.assert_array_equal(mean, start.mean)


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


CASES = [
    Case("detectable arms", lambda: detectable(STABLE, [[1.0]]), "arms", "(1, 1)"),
    Case("arm length", lambda: prediction_cov(STABLE, [1.0]), "arm", "(1,)"),
    Case("arm matrix", lambda: prediction_cov(STABLE, EYE), "arm", "(2, 2)"),
    Case("arm zero", lambda: prediction_cov(STABLE, [0, 0]), "arm", "zero vector"),
    Case(
        "arm blind",
        lambda: prediction_cov(HALF_SEEN, [0.0, 1.0]),
        "arm",
        "spectral radius 2",
        NotDetectable,
    ),
    Case(
        "arms blind",
        lambda: oracle_cov(HALF_SEEN, [[0.0, 1.0], [0.0, 2.0]]),
        "arms",
        "spectral radius 2",
        NotDetectable,
    ),
]


@each(CASES)
def test_bad_arguments_are_refused(case):
    assert_refused(case)
