"""CUSUM charts against a loop, published run lengths and simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.monitoring import charts

VALUES = st.lists(st.floats(-5, 5), min_size=1, max_size=60)


def loop(steps):
    """The chart by its definition, and the place of its last zero."""
    height, zero, heights, zeros = 0.0, -1, [], []
    for place, step in enumerate(steps):
        height = max(0.0, height + step)
        zero = place if height == 0 else zero
        heights.append(height)
        zeros.append(zero)
    return heights, zeros


@given(VALUES)
def test_path_is_the_loop(values):
    steps = np.round(np.array(values), 2) * 4  # sums are exact, so that zeros are
    steps = np.round(steps)
    heights, zeros = charts.path(steps)
    expected, places = loop(steps)
    assert heights.tolist() == expected
    assert zeros.tolist() == places


@pytest.mark.parametrize(("height", "published"), [(4.0, 336), (5.0, 930)])
def test_run_lengths_are_the_published_ones(height, published):
    """Of one-sided charts with reference value 1/2: twice those of two sides, 168 and 465."""
    assert charts.run_length("higher", height) == pytest.approx(published, rel=0.005)
    assert charts.run_length("lower", height) == charts.run_length("higher", height)


@pytest.mark.parametrize("kind", charts.KINDS)
def test_limits_have_their_run_length(kind):
    """In a simulation of 3000 charts: the mean of 3000 run lengths is known to 2%."""
    rng = np.random.default_rng(1)
    limit = charts.limit(kind, 200.0)
    height, lengths, running = np.zeros(3000), np.zeros(3000), np.ones(3000, bool)
    while running.any():
        step = charts.increments(rng.standard_normal(3000))[kind]
        height = np.maximum(height + step, 0)
        lengths += running
        running &= height <= limit
    assert lengths.mean() == pytest.approx(200, rel=0.08)


def test_crossings_find_where_a_change_began():
    u = np.concatenate([np.tile([1.0, -1.0], 50), np.full(30, 2.0)])
    heights = charts.limits(1000, 0.01)
    (first, second) = charts.crossings(u, heights)
    assert (first.kind, second.kind) == ("higher", "larger")
    assert first.since == 100
    assert first.alarm == 100 + int(heights["higher"] / 1.5)
    assert [one.kind for one in charts.crossings(-u, heights)] == ["lower", "larger"]
    assert charts.crossings(0.1 * u[:100], heights)[0].kind == "smaller"
    lone = np.where(np.arange(100) == 60, 9.0, u[:100])
    assert ("peak", 60, 60) in charts.crossings(lone, heights)


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-4, 4)), max_size=80))
def test_charts_reward_by_reward_are_the_paths(plays):
    heights = dict.fromkeys(charts.KINDS, 1e9)
    online = charts.Charts(heights)
    for round_, (arm, u) in enumerate(plays):
        assert online.add(arm, u, round_) is None
    arms, values = np.array([a for a, _ in plays]), np.array([u for _, u in plays])
    for owner in (None, 0, 1, 2):
        mine = np.flatnonzero(arms == owner) if owner is not None else np.arange(len(plays))
        for kind, steps in charts.increments(values[mine]).items():
            found, (path, zeros) = online.state.get((owner, kind)), charts.path(steps)
            height = path[-1] if len(path) else 0.0
            assert (found.height if found else 0.0) == pytest.approx(height, abs=1e-9)
            if found and height > 1e-6:
                since = mine[zeros[-1] + 1 :]
                assert found.rewards == len(since)
                assert found.since == since[0]
                assert found.squares == pytest.approx(values[since] @ values[since])


def test_old_charts_are_dropped(monkeypatch):
    monkeypatch.setattr(charts, "MOST", 12)
    online = charts.Charts(dict.fromkeys(charts.KINDS, 1e9))
    for arm in range(100):
        online.add(arm, 2.0, arm)
    assert len(online.state) == 12
    assert (99, "higher") in online.state
    assert (50, "higher") not in online.state
