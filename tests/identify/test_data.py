"""Logs as arrays."""

from driftbandit.identify import Log, Sequence
from driftbandit.identify.data import data_of


def test_rounds_become_a_grid():
    first = Sequence([3, 3, 6], [0, 1, 0], [1.0, 2.0, 3.0])
    second = Sequence([0, 1], [1, 1], [4.0, float("nan")])
    data = data_of(Log((first, second), ("a", "b")))
    assert data.seen.shape == (2, 4, 2)
    assert data.lengths.tolist() == [4, 2]
    assert data.seen.sum(axis=2).tolist() == [[2, 0, 0, 1], [1, 0, 0, 0]]
    assert data.rewards[0, 0].tolist() == [1.0, 2.0]
    assert data.arms[0, 0].tolist() == [0, 1]
