"""What is said and drawn of a replay, and its intervals."""

import json

import numpy as np
import pytest

from driftbandit.replays import replay, report
from driftbandit.statistics import block_interval


def test_where_nothing_drifts():
    rewards = np.random.default_rng(0).normal([0, 3], size=(240, 2))
    result = replay(rewards, ["ucb"], starts=1, iterations=10, runs=1)
    model = json.loads(json.dumps(result.to_document(), allow_nan=False))["model"]
    assert (model["summary"], model["drift"]["verdict"]) == ("constant(arm).", "no")
    assert {"constant(arm)", "level(arm)"} < set(model["selection"])
    words = report.explanation(result)[0]
    assert words.startswith("A model without drift, learned from 120 rounds")


def test_lines_far_below_leave_the_figure(result):
    lines = report.gains(result)
    assert set(lines) == {*result.played, *report.SHOWN}
    down = -100 * np.ones(5)
    assert report._range([np.arange(5.0), down]) == (-0.4 * 4, 4)
    assert report._range([np.array([0.0, -3.0, 2.0]), down]) == (-3, 2)
    assert report._range([down]) == (-100, 0)
    assert report._range([np.array([0.0, 5.0, -100.0])]) == (-100, 5)


def test_intervals_are_paired(result):
    rows = {row.label: row for row in result.rows()}
    base = result.references["training_leader"].earned
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
