"""P14: exploration alone, its period, and what Lemma 3 says of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from driftbandit import LGDS, NotDetectable
from driftbandit.model import unit_rows
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.steady_state import prediction_cov
from driftbandit.theory import every_arm_is_left, exploration_schedule
from systems import assert_close, random_system

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
        if every_arm_is_left(model, arms, kalman_ucb.bonus):
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
    assert every_arm_is_left(model, arms, kalman_ucb.bonus)
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
    assert every_arm_is_left(model, arms, kalman_ucb.bonus)  # by a tie
    assert exploration_schedule(model, arms, kalman_ucb.bonus).cycle.tolist() == [0]


def test_P14_a_period_is_judged_in_any_units():
    """A small state that still grows by 0.2 % a round beside a large one that stands still."""
    model = LGDS(np.diag([0.0, 0.99]), np.diag([1e16, 1e-3]), 0.1, initial_cov=np.diag([1e16, 0.0]))
    found = exploration_schedule(model, [[1e-8, 0.0]], kode.bonus, rounds=100)
    assert found.period is None


def test_P14_an_error_beyond_any_number_is_said():
    model = LGDS(np.diag([1.5, 0.5]), np.eye(2), 1.0, initial_cov=np.eye(2))
    with pytest.raises(NotDetectable, match="the error overflows"):
        exploration_schedule(model, [[0.0, 1.0], [0.0, 2.0]], kalman_ucb.bonus)
