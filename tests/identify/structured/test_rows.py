"""A log as one list of plays: moves, units and padding."""

import numpy as np
import pytest

from driftbandit.identify.structured.rows import rows_of
from driftbandit.structure import Layout
from known_structures import log_of
from random_structures import random_log


def test_moves_say_how_many_rounds_pass_and_where_sequences_begin():
    rounds = [np.array([3, 3, 4, 9]), np.array([2, 2]), np.array([2, 3])]
    log = log_of(rounds, [np.zeros(len(one), int) for one in rounds], [1.0 * one for one in rounds])
    data = rows_of(log, Layout("level(arm)", log.names))
    rows = data.rows
    assert rows.gaps[rows.moves[:8]].tolist() == [0, 0, 1, 5, -7, 0, 0, 1]
    assert rows.resets[rows.moves[:8]].tolist() == [0, 0, 0, 0, 1, 0, 1, 0]
    assert (rows.gaps[0], rows.resets[0]) == (0, 0)
    assert (rows.moves[[0, 1, 5]] == 0).all()
    assert rows.moves[6] != 0
    assert data.rounds.tolist() == [3, 3, 4, 9, 2, 2, 2, 3]
    assert data.sequences.tolist() == [0, 0, 0, 0, 1, 1, 2, 2]


def test_rewards_are_centered_only_if_a_component_holds_their_mean():
    log = random_log(0)
    rewards = np.concatenate([one.rewards for one in log.sequences])
    seen = ~np.isnan(rewards)
    held, free = (rows_of(log, Layout(text, log.names)) for text in ("level(arm)", "ar(1)"))
    np.testing.assert_allclose(held.centers, rewards[seen].mean())
    assert held.units.scale == pytest.approx(rewards[seen].std())
    assert not free.centers.any()
    assert free.units.scale == pytest.approx(np.sqrt((rewards[seen] ** 2).mean()))
    kept = held.rows.rewards[: log.rows][seen] + held.center[seen]
    np.testing.assert_allclose(kept, rewards[seen])
    assert held.rows.seen.sum() == seen.sum()


def test_features_come_in_the_order_of_the_structure():
    log = random_log(0)
    data = rows_of(log, Layout("level(arm) + regression(x_b)", log.names))
    x = np.concatenate([one.features for one in log.sequences])
    rewards = np.concatenate([one.rewards for one in log.sequences])
    np.testing.assert_array_equal(data.rows.features[: log.rows, 0], x[:, 1])
    typical = np.sqrt((x[~np.isnan(rewards), 1] ** 2).mean())
    np.testing.assert_allclose(data.units.features, [typical])
