"""Logs as decisions: rounds, chances, and what is refused."""

import numpy as np
import pytest

from driftbandit import InvalidInput
from driftbandit.identify import Log, Sequence
from driftbandit.replays import Table
from driftbandit.replays.decisions import decisions_of, has_chances
from reward_tables import NAN


def log(rounds, arms, rewards, chances=None):
    return Log((Sequence(rounds, arms, rewards, chances=chances),), ("a", "b", "c"))


def test_each_row_is_a_decision():
    rows = log([3, 3, 5, 9], [0, 1, 1, 2], [1.0, 2.0, NAN, 4.0], [0.5, 0.25, 0.5, NAN])
    found = decisions_of(rows)
    assert found.times.tolist() == [0, 0, 6]
    assert found.waits.tolist() == [0, 0, 6]
    assert found.arms.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.chances, [0.5, 0.25, NAN])
    np.testing.assert_array_equal(found.wide, [[1, NAN, NAN], [NAN, 2, NAN], [NAN, NAN, 4]])
    assert "1 of 4 rows have no reward" in found.notes[0]
    assert found.log(2, 1.0).sequences[0].rewards.tolist() == [0.0, 1.0]


def test_chances_that_are_assumed():
    rows = log(range(4), [0, 1, 1, 1], [1.0, 2.0, 3.0, 4.0])
    assert not has_chances(rows)
    assert decisions_of(rows, "uniform").chances.tolist() == [1 / 3] * 4
    assert decisions_of(rows, "estimated").chances.tolist() == [0.25, 0.75, 0.75, 0.75]
    table = Table([[1.0, NAN], [NAN, NAN], [NAN, 3.0]], times=np.array([0, 1, 5]))
    found = decisions_of(table, "uniform")
    assert (found.times.tolist(), found.arms.tolist()) == ([0, 5], [0, 1])


def test_the_test_part_begins_with_a_round():
    rows = log([0, 0, 1, 1, 1, 2, 2, 2], [0] * 8, [1.0] * 8, [0.5] * 8)
    assert decisions_of(rows).split(0.5) == 2
    assert decisions_of(rows).split(0.7) == 5
    with pytest.raises(
        InvalidInput, match="train: leaves 0 of 8 rows with a reward in the training part"
    ):
        decisions_of(rows).split(0.1)


@pytest.mark.parametrize(
    ("data", "chances", "words"),
    [
        (log([0, 1], [0, 1], [1.0, 2.0]), None, "data: is a log without chances; add a column"),
        (log([0, 1], [0, 1], [1.0, 2.0], [NAN, NAN]), None, "without chances"),
        (log([0, 1], [0, 1], [NAN, NAN], [0.5, 0.5]), None, "data: holds no reward"),
        (log([0, 1], [0, 1], [1.0, 2.0]), "unifrom", "did you mean 'uniform'"),
        (log([0, 1], [0, 1], [1.0, 2.0], [0.5, 0.5]), "uniform", "has a column of chances"),
        (Log((Sequence([0], [0], [1.0]),), ("a",)), "uniform", "holds one arm"),
        (Log((Sequence([0], [0], [1.0]),) * 2, ("a", "b")), "uniform", "holds 2 sequences"),
        (Table([[1.0, 2.0]] * 3), "uniform", "method: shows several arms in a round"),
    ],
)
def test_what_is_refused(data, chances, words):
    with pytest.raises(InvalidInput, match=words):
        decisions_of(data, chances)
