"""Intervals of a replay."""

import pytest

from driftbandit.statistics import block_interval


def test_intervals_are_paired(result):
    rows = {row.label: row for row in result.rows()}
    base = result.played[result.baseline].earned
    for label in ("idea", "kalman_ucb"):
        row, earned = rows[label], result.played[label].earned
        found = block_interval(earned - base)
        ends = (row.difference_low, row.difference_high)
        assert ends == pytest.approx((found.low, found.high))
        assert row.difference == pytest.approx(found.mean)
        assert (row.low, row.high) == pytest.approx(block_interval(earned)[1:3])
    idea, ucb = rows["idea"], rows["kalman_ucb"]
    assert idea.low < ucb.high  # means overlap although differences are clear
    assert rows["rexp3"].spread > 0
