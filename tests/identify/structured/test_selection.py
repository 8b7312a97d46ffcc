"""Scores equal a naive loop; the true structure is chosen where it shows."""

import math

import numpy as np
import pytest

import driftbandit as db
from driftbandit.identify import compare
from driftbandit.identify.structured import selection
from driftbandit.identify.structured.fitting import (
    Problem,
    StructuredFit,
    best_of_starts,
    minimized,
)
from driftbandit.identify.structured.rows import rows_of
from driftbandit.structure import Layout
from known_structures import log_of, naive_filter

TRIED = ["constant(arm)", "level(arm)", "constant(arm) + season(7)"]


def weekly(rounds=160, seed=0, sequences=1):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(sequences):
        now, arms = np.arange(rounds), rng.integers(2, size=rounds)
        rewards = 3.0 * arms + 2 * np.sin(2 * np.pi * now / 7) + 0.3 * rng.standard_normal(rounds)
        rewards[rng.random(rounds) < 0.1] = np.nan
        parts.append((now, arms, rewards))
    return log_of(*map(list, zip(*parts, strict=True)))


def naive_scores(log, structure):
    """Log-densities of later rewards: a cut after every eighth, parameters from before it."""
    layout = Layout(structure, log.names)
    whole = Problem(layout, rows_of(log, layout), 1.0)
    place = np.concatenate([np.arange(len(one)) / len(one) for one in log.sequences])
    rewards = np.concatenate([one.rewards for one in log.sequences])
    found, theta = np.full(len(rewards), math.nan), None
    for cut in (0.5, 0.625, 0.75, 0.875):
        rows = whole.described.rows
        seen = rows.seen.copy()
        seen[: len(place)][place >= cut] = 0.0
        early = whole._replace(described=whole.described._replace(rows=rows._replace(seen=seen)))
        end = best_of_starts(early, 2) if theta is None else minimized(early, theta)
        theta = end.theta
        _, means, variances, _ = naive_filter(
            StructuredFit(layout, whole, theta, 0.0, True, ()), log
        )
        for i in np.flatnonzero((place >= cut) & (place < cut + 0.125) & ~np.isnan(rewards)):
            error = (rewards[i] - means[i]) ** 2 / variances[i]
            found[i] = -0.5 * (math.log(2 * math.pi * variances[i]) + error)
    return found[~np.isnan(found)]


def test_scores_equal_a_naive_loop_and_the_truth_is_chosen():
    log = weekly()
    found = compare(log, TRIED)
    each = [naive_scores(log, one) for one in TRIED]
    np.testing.assert_allclose(found.scores, [one.mean() for one in each], rtol=1e-6)
    assert found.scored == len(each[0])
    assert str(found.chosen) == "constant(arm) + season(7)"
    best = max(each, key=np.mean)
    for error, one in zip(found.errors, each, strict=True):
        blocks = [block.mean() for block in np.array_split(best - one, 20)]
        assert error == pytest.approx(np.std(blocks, ddof=1) / math.sqrt(20), abs=1e-6)
    assert found.errors[2] == 0


def test_fit_keeps_the_best_of_several():
    found = db.fit(weekly(), structure=TRIED[1:], starts=1)
    assert str(found.structure) == TRIED[2]
    assert found.comparison.structures[0] == Layout(TRIED[1], ["a"]).structure
    assert "season(7)" in found.summary()


def test_components_are_added_as_long_as_they_help(monkeypatch):
    scores = {
        "constant(arm)": -2.0,
        "level(arm)": -1.5,
        "level(arm) + season(7)": -1.2,
        "level(arm) + level(shared)": -1.3,
        "level(arm) + season(7) + level(shared)": -1.2 + selection.SLACK / 2,
    }

    def densities(log, structure, groups, prior):
        return np.full(40, scores.get(str(structure), -3.0)) + 1e-9 * np.arange(40)

    monkeypatch.setattr(selection, "_densities", densities)
    found = compare(weekly(rounds=60))
    tried = [str(one) for one in found.structures]
    assert tried[:4] == list(selection.BASES)
    assert tried[4:7] == [
        "level(arm) + level(shared)",
        "level(arm) + season(7)",
        "level(arm) + season(7, arm, harmonics=2)",
    ]
    assert "level(arm) + season(7) + level(shared)" in tried
    assert not any(tried.count(one) > 1 for one in tried)
    assert not any("season(24)" in one for one in tried)  # 60 rounds have no four of them
    three = [one for one in tried if one.count("+") == 2]
    assert all(one.startswith("level(arm) + season(7) + ") for one in three)
    assert max(one.count("+") for one in tried) == 2


def test_all_digits_of_a_period_are_kept():
    found = selection._extras(weekly(), [365.2425])
    assert [str(one) for one in found][1] == "season(365.2425)"


def test_features_are_tried():
    rng = np.random.default_rng(0)
    log = log_of(
        np.arange(8),
        np.zeros(8, int),
        rng.standard_normal(8),
        rng.standard_normal((8, 2)),
        feature_names=("x_a", "x_b"),
    )
    found = [str(one) for one in selection._extras(log, [])]
    assert found == ["level(shared)", "regression(x_a, x_b)", "regression(x_a, x_b, arm)"]


def test_places_count_within_each_sequence():
    found = selection._places(np.array([0, 0, 0, 0, 1, 1]))
    assert found.tolist() == [0, 0.25, 0.5, 0.75, 0, 0.5]
