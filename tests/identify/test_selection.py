"""Which model is chosen: what is left out, scored and tried."""

import numpy as np
import pytest

from driftbandit.identify import Log, Sequence, em, restarts, selection
from driftbandit.identify.data import Data, Units, data_of


def test_sequences_are_left_out_in_turn():
    lengths = np.array([9, 3, 8, 7, 6, 2])
    there = np.arange(9) < lengths[:, None]
    data = Data(
        np.zeros((6, 9, 2), int), np.ones((6, 9, 2)), np.repeat(there, 2).reshape(6, 9, 2), lengths
    )
    parts = selection.splits(data)
    assert [part.scored for part in parts] == [18, 16, 14, 12, 10]
    for part in parts:
        left_out = part.learned.lengths == 0
        assert (part.learned.lengths == np.where(left_out, 0, lengths)).all()
        assert not part.learned.seen[left_out].any()
        assert (part.learned.seen[~left_out] == data.seen[~left_out]).all()
    assert sum(part.scored for part in parts) == data.seen.sum()


def test_rewards_of_few_sequences_take_turns():
    """Each after the first fifth of its sequence is scored once, by a model without it."""
    seen = np.ones((2, 60, 1))
    seen[1, ::2] = 0
    data = Data(np.zeros(seen.shape, int), seen, seen, np.array([60, 60]))
    parts = selection.splits(data)
    left_out = [part.whole.seen - part.learned.seen for part in parts]
    total = np.sum(left_out, axis=0)
    assert (total[0, :12] == 0).all()
    assert (total[0, 12:] == 1).all()
    assert total[1].sum() == 24
    assert {part.scored for part in parts} == {14, 15}
    assert all(part.whole is data for part in parts)
    few = data._replace(seen=seen * (np.arange(60) < 30)[:, None])
    assert selection.splits(few) == []


def test_what_cannot_be_scored_is_not_chosen():
    gains = np.array([[-np.inf, -1.0], [-1.8, -1.8], [-1.6, -1.98]])
    tried = [selection.Candidate("free", d) for d in (1, 2, 3)]
    found = selection.chosen(tried, gains)
    assert found.n_states == 2
    assert found.scores == pytest.approx((-np.inf, -1.8, -1.79))
    assert found.errors == (np.inf, pytest.approx(0.19), 0.0)
    assert found.close == (tried[2],)


def test_sizes_that_can_only_lose_are_not_tried():
    """Three sizes, of which the last two are far behind the best: the fourth is left out."""
    data = Data(np.zeros((1, 9, 1), int), np.ones((1, 9, 1)), np.ones((1, 9, 1)), np.array([9]))
    part = selection.Split(data, data._replace(seen=data.seen * (np.arange(9) < 4)[:, None]))
    heights = {1: -1.0, 2: -2.0, 3: -2.0, 5: -1.0}
    tried = selection.candidates(5, "free")
    assert [one.n_states for one in tried] == [1, 2, 3, 5]
    found = selection.select(
        [part], tried, lambda split, one: np.full(split.whole.seen.shape, heights[one.n_states])
    )
    assert [one.n_states for one in found.candidates] == [1, 2, 3]
    assert found.chosen == tried[0]


def test_an_arm_that_is_played_once_is_not_predicted_by_its_own_reward():
    """What is said of an arm that was not learned from does not follow its reward."""
    told = []
    for last in (3.0, 8.0):
        rewards = np.r_[np.tile([1.0, 1.2, 2.0, 2.2], 5), last]
        one = Sequence(np.arange(21), np.r_[np.tile([0, 0, 1, 1], 5), 2], rewards)
        raw = data_of(Log((one,), ("a", "b", "once")))
        units = Units.of(raw, 3, True)
        data = units.standard(raw)
        learned = data._replace(seen=data.seen * (data.arms != 2))
        options = em.Options("free", True, True, True)
        rng = np.random.default_rng(0)
        task = restarts.Task(learned, 3, None, options, 0.0, rng, (5, 1e-4), units)
        begin = restarts.starting_point(learned, np.ones((3, 1)), options, rng, 0)
        parameters, doubt = selection.with_new_arms(begin, task)
        assert doubt[:2].tolist() == [0, 0]
        assert doubt[2] > 1
        assert parameters.reads[2] == 0
        told.append(units.raw(parameters).offsets)
    np.testing.assert_allclose(told, [[1.1, 2.1, 1.6]] * 2, atol=1e-9)
