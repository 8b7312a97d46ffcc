"""P7, P14, P15: two rounds ahead, and exploration alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
import naive
from driftbandit import LGDS, NotDetectable, theory
from driftbandit.kalman import Belief
from driftbandit.model import unit_rows
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.steady_state import prediction_cov
from driftbandit.theory import (
    exploration_schedule,
    no_arm_is_explored_forever,
    sphere_two_step_value,
    two_step_upper_bound,
    two_step_value,
)
from refusals import EYE, NAN, STABLE, Case, assert_refused, each
from systems import assert_close, random_system, with_constants

checked = settings(deadline=None, derandomize=True, max_examples=25)


systems = st.builds(
    random_system,
    seed=st.integers(0, 10**6),
    d=st.integers(1, 4),
    k=st.integers(1, 5),
    radius=st.sampled_from([0.5, 0.9]),
    reward_std=st.sampled_from([0.1, 1.0]),
)


@pytest.mark.parametrize("bonus", ["idea", "kalman_ucb"])
def test_P14_follows_the_textbook(bonus):
    ours = {"idea": idea.bonus, "kalman_ucb": kalman_ucb.bonus}[bonus]
    textbook = {"idea": naive.bonus_idea, "kalman_ucb": naive.bonus_kalman_ucb}[bonus]
    model, arms = random_system(3, 3, k=4)
    parts = model.transition, model.process_cov, model.reward_std
    found = exploration_schedule(model, arms, ours, rounds=300)
    P, played = model.start_cov(), []
    for _ in range(300):
        played.append(int(np.argmax(textbook(P, *parts, arms))))
        P = naive.riccati_step(P, *parts, arms[played[-1]])
    turns = -(-300 // found.period)
    whole = np.concatenate([found.opening, np.tile(found.cycle, turns)])[:300]
    assert whole.tolist() == played


@checked
@given(systems)
def test_P14_a_cycle_is_a_fixed_point_of_its_own_rounds(system):
    model, arms = system
    found = exploration_schedule(model, arms, kalman_ucb.bonus, rounds=1000)
    assert found.period == len(found.cycle) == len(found.covs)
    for cov, arm, after in zip(
        found.covs, found.cycle, np.roll(found.covs, -1, axis=0), strict=True
    ):
        assert arm == kalman_ucb.bonus(cov, model, arms).argmax()
        stepped = naive.riccati_step(
            cov, model.transition, model.process_cov, model.reward_std, arms[arm]
        )
        assert_close(stepped, after, 1e-8)
    halves = [p for p in range(1, found.period) if found.period % p == 0]
    for part in halves:  # the shortest one is given
        assert (np.roll(found.cycle, part) != found.cycle).any()
    if found.opening.size:  # and it begins as early as it can
        assert found.opening[-1] != found.cycle[-1]


def test_P14_one_arm_forever_settles_at_its_own_covariance():
    model, arms = random_system(1, 3, k=4)
    found = exploration_schedule(model, arms, kode.bonus, rounds=400)  # all equal: the first
    assert found.cycle.tolist() == [0]
    assert found.opening.size == 0
    assert_close(found.covs[0], prediction_cov(model, arms[0]), 1e-9)


def test_P14_lemma_3_where_no_arm_can_be_explored_forever():
    """The condition says that each arm is left again: cycles of one arm are ties at most."""
    held = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        model = LGDS(0.8 * np.eye(2) + 0.05 * rng.standard_normal((2, 2)), np.eye(2), 0.5)
        arms = unit_rows(rng.standard_normal((3, 2)))
        found = exploration_schedule(model, arms, kalman_ucb.bonus, rounds=300)
        if no_arm_is_explored_forever(model, arms, kalman_ucb.bonus):
            held += 1
            assert found.period > 1
        elif found.period == 1:
            P = prediction_cov(model, arms[found.cycle[0]])
            assert kalman_ucb.bonus(P, model, arms).argmax() == found.cycle[0]
    assert 5 < held < 25


def test_P14_lemma_3_does_not_reach_every_arm():
    """Two arms take turns and the third, short one is never explored, though it would be left."""
    model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=0.5)
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    assert no_arm_is_explored_forever(model, arms, kalman_ucb.bonus)
    found = exploration_schedule(model, arms, kalman_ucb.bonus)
    assert set(found.cycle.tolist()) == {0, 1}
    assert 2 not in found.opening


def test_P14_no_period_is_said_where_none_was_seen():
    model, arms = random_system(1, 3, k=4)
    found = exploration_schedule(model, arms, kalman_ucb.bonus, rounds=20)
    assert found.period is None
    assert len(found.opening) == 20
    assert found.covs.shape == (1, 3, 3)


def test_P14_opposite_arms_tie_and_one_is_explored_forever():
    model = LGDS([[0.9]], [[1.0]], reward_std=0.5)
    arms = [[1.0], [-1.0]]
    assert no_arm_is_explored_forever(model, arms, kalman_ucb.bonus)  # by a tie
    assert exploration_schedule(model, arms, kalman_ucb.bonus).cycle.tolist() == [0]


def test_P14_a_period_is_judged_in_any_units():
    """A small state that still grows by 0.2% a round beside a large one that stands still."""
    model = LGDS(np.diag([0.0, 0.99]), np.diag([1e16, 1e-3]), 0.1, initial_cov=np.diag([1e16, 0.0]))
    found = exploration_schedule(model, [[1e-8, 0.0]], kode.bonus, rounds=100)
    assert found.period is None


def test_P14_an_error_beyond_any_number_is_said():
    model = LGDS(np.diag([1.5, 0.5]), np.eye(2), 1.0, initial_cov=np.eye(2))
    with pytest.raises(NotDetectable, match="the covariance overflows"):
        exploration_schedule(model, [[0.0, 1.0], [0.0, 2.0]], kalman_ucb.bonus)


checked = settings(deadline=None, derandomize=True, max_examples=60)


def beliefs(seed, d, k, reward_std=0.5, scale=1.0):
    """A random (model, belief, arms)."""
    model, arms = random_system(seed, d, k=k, reward_std=reward_std)
    rng = np.random.default_rng([seed, d, k])
    root = rng.standard_normal((d, d))
    return model, Belief(scale * rng.standard_normal(d), root @ root.T), arms


# Finite sets.


@pytest.mark.parametrize("reward_std", [0.0, 0.5])
@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 1), (4, 3), (7, 2)])
def test_P7_finite_value_equals_brute_force(k, d, reward_std):
    for seed in range(3):
        model, belief, arms = beliefs(seed, d, k, reward_std)
        expected = naive.two_step_value(*belief, model.transition, reward_std, arms)
        assert two_step_value(belief, model, arms) == pytest.approx(expected, abs=1e-10, rel=1e-10)


def test_P7_is_the_same_under_jax_and_bend_by_bend(monkeypatch):
    import jax

    model, belief, arms = beliefs(1, 4, 9)
    expected = two_step_value(belief, model, arms)
    with jax.enable_x64(True):
        there = Belief(*(jax.numpy.asarray(part) for part in belief))
        found = jax.jit(lambda b, a: two_step_value(b, model, a))(there, jax.numpy.asarray(arms))
        assert np.asarray(found) == pytest.approx(expected, rel=1e-12)
        found = jax.jit(lambda b: two_step_value(b, model, arms))(there)  # arms of NumPy
        assert np.asarray(found) == pytest.approx(expected, rel=1e-12)
        monkeypatch.setattr("driftbandit.gaussian.lines.FEW", 0)
        found = jax.jit(lambda b: two_step_value(b, model, arms))(there)
        assert np.asarray(found) == pytest.approx(expected, rel=1e-12)
    assert two_step_value(belief, model, arms) == pytest.approx(expected, rel=1e-12)


@checked
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 6))
def test_P7_looking_is_worth_something(seed, d, k):
    """Two rounds are worth at least this arm and next round's best guess, at most the sphere's."""

    model, belief, arms = beliefs(seed, d, k)
    value = two_step_value(belief, model, arms)
    blind = arms @ belief.mean + (arms @ model.transition @ belief.mean).max()
    assert (value >= blind - 1e-10).all()
    unit = arms / np.linalg.norm(arms, axis=1, keepdims=True)
    on_sphere = sphere_two_step_value(belief, model, unit)
    assert (two_step_value(belief, model, unit) <= on_sphere + 1e-10).all()


def test_P7_no_noise_and_nothing_in_doubt():
    model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=0.0)
    belief = Belief(np.array([1.0, 2.0]), np.zeros((2, 2)))
    assert two_step_value(belief, model, np.eye(2)).tolist() == [2.0, 3.0]
    on_sphere = sphere_two_step_value(belief, model, np.eye(2))
    assert on_sphere == pytest.approx(np.array([1, 2]) + 0.5 * math.sqrt(5), rel=1e-14)


# The sphere.


@pytest.mark.parametrize("d", [2, 5, 10])
def test_P7_sphere_value_equals_gauss_hermite_where_the_length_is_smooth(d):
    for seed in range(5):
        model, belief, arms = beliefs(seed, d, 3, scale=30.0)
        found = sphere_two_step_value(belief, model, arms)
        for arm, value in zip(arms, found, strict=True):
            expected = naive.sphere_two_step_value(*belief, model.transition, model.reward_std, arm)
            assert value == pytest.approx(expected, rel=1e-7)


def test_P7_sphere_value_where_the_length_has_a_kink():
    """One state: E |Γẑ + v ω| is a folded normal's mean."""
    model = LGDS([[0.8]], [[1.0]], reward_std=0.6)
    belief = Belief(np.array([0.7]), np.array([[2.0]]))
    m, v = 0.56, 0.8 * 2 / math.sqrt(2.36)
    folded = v * math.sqrt(2 / math.pi) * math.exp(-(m**2) / (2 * v**2))
    folded += m * math.erf(m / (v * math.sqrt(2)))
    assert sphere_two_step_value(belief, model, [[1.0]]) == pytest.approx(0.7 + folded, rel=1e-13)


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_P15_theorem_5_holds(d):
    """100 (ẑ, P) × 25 unit arms for each d: 10⁴ in all."""
    for seed in range(100):
        scale = 10.0 ** np.random.default_rng(seed).uniform(-3, 3)
        model, belief, arms = beliefs(seed, d, 25, reward_std=0.3 * (seed % 3), scale=scale)
        arms = arms / np.linalg.norm(arms, axis=1, keepdims=True)
        value = sphere_two_step_value(belief, model, arms)
        bound = two_step_upper_bound(belief, model, arms)
        assert (value <= bound * (1 + 1e-12) + 1e-12 * scale).all()
        # Jensen: not below what the mean alone is worth.
        ahead = np.linalg.norm(model.transition @ belief.mean)
        assert (value >= arms @ belief.mean + ahead - 1e-12 * (1 + ahead)).all()
        # And tight to √(2/π) of the bonus where nothing is known yet.
        start = Belief(np.zeros(d), belief.cov)
        exact = math.sqrt(2 / math.pi) * idea.bonus(belief.cov, model, arms)
        assert sphere_two_step_value(start, model, arms) == pytest.approx(exact, rel=1e-12)


def test_P15_its_argmax_is_idea():
    model, belief, arms = beliefs(2, 4, 6)
    best = (arms @ belief.mean + idea.bonus(belief.cov, model, arms)).argmax()
    assert two_step_upper_bound(belief, model, arms).argmax() == best


@pytest.mark.parametrize("unit", [1e-120, 1e-60, 1e60])
def test_P15_in_any_units_of_the_rewards(unit):
    model, belief, arms = beliefs(2, 4, 6)
    scaled = LGDS(model.transition, unit**2 * model.process_cov, unit * model.reward_std)
    there = Belief(unit * belief.mean, unit**2 * belief.cov)
    for function in (two_step_upper_bound, sphere_two_step_value, two_step_value):
        expected = unit * function(belief, model, arms)
        assert function(there, scaled, arms) == pytest.approx(expected, rel=1e-12)


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
        left = theory.no_arm_is_explored_forever(model, rows, bonus)
        assert left == theory.no_arm_is_explored_forever(base, arms, bonus)


u = db.policies.idea.bonus


schedule, ahead = db.theory.exploration_schedule, db.theory.two_step_value


def bound(bonus):
    return db.theory.two_step_upper_bound(db.kalman.prior(STABLE), STABLE, EYE, bonus)


CASES = [
    Case("schedule bonus", lambda: schedule(STABLE, EYE, lambda *_: 1.0), "bonus", "1."),
    Case("schedule rounds", lambda: schedule(STABLE, EYE, u, rounds=2.5), "rounds", "2.5"),
    Case("schedule cov", lambda: schedule(STABLE, EYE, u, cov=[[1]]), "cov", "(1, 1)"),
    Case(
        "ahead mean", lambda: ahead(db.kalman.Belief([1], EYE), STABLE, EYE), "belief.mean", "(1,)"
    ),
    Case(
        "ahead cov", lambda: ahead(db.kalman.Belief([1, 1], -EYE), STABLE, EYE), "belief.cov", "-1"
    ),
    Case("bound bonus", lambda: bound(lambda *_: np.full(2, NAN)), "bonus", "nan"),
]


@each(CASES)
def test_bad_arguments_are_refused(case):
    assert_refused(case)
