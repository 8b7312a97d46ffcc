"""Scores equal a naive loop; the true structure is chosen where it shows."""

import math
import zlib

import numpy as np
import pytest

import driftbandit as db
from driftbandit.identify import compare
from driftbandit.identify.structured import comparison, fitting, scores, selection
from driftbandit.identify.structured.fitting import (
    Fit,
    Problem,
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
        _, means, variances, _ = naive_filter(Fit(layout, whole, theta, 0.0, True, ()), log)
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


def test_a_long_log_is_searched_within_bounds(monkeypatch):
    monkeypatch.setattr(fitting, "SEARCH_ROWS", 60)
    monkeypatch.setattr(fitting, "SEARCH_SIZE", 0)
    log = weekly(rounds=400, sequences=2)
    sizes = {}

    def searched(problem, start, **options):
        rows = int((problem.described.rows.seen > 0).sum())
        sizes.setdefault(str(problem.layout.structure), []).append(rows)
        return minimized(problem, start, **options)

    monkeypatch.setattr(fitting, "minimized", searched)
    structures = ["constant(arm)", "constant(arm) + season(7)"]
    found = compare(log, structures)
    assert sizes["constant(arm) + season(7)"] == [60] * 5  # arms share the season
    assert min(sizes["constant(arm)"][2:]) > 400  # cheap, so nothing is left out
    whole = [naive_scores(log, one).mean() for one in structures]
    np.testing.assert_allclose(found.scores, whole, atol=0.05)
    assert (found.scored, str(found.chosen)) == (len(naive_scores(log, structures[0])), TRIED[2])


def test_shares_of_the_work_never_fall():
    shares = []
    compare(weekly(), report=shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.1
    assert shares[-1] < 1
    compare(weekly(), TRIED[:1], report=shares.append)
    assert shares[-1] == 1


def test_fit_keeps_the_best_of_several():
    found = db.fit(weekly(), structure=TRIED[1:], starts=1)
    assert str(found.structure) == TRIED[2]
    assert found.comparison.structures[0] == Layout(TRIED[1], ["a"]).structure
    assert "season(7)" in found.summary()


def scored(monkeypatch, scores, noise=1e-9):
    """Let structures have these scores; ``noise``: of the differences between rewards."""

    def densities(log, layout, prior, report):
        rng = np.random.default_rng(zlib.crc32(str(layout.structure).encode()))
        ripple = rng.standard_normal(400)
        return scores.get(str(layout.structure), -3.0) + noise * (ripple - ripple.mean())

    monkeypatch.setattr(selection, "densities", densities)


def test_components_are_added_as_long_as_they_help(monkeypatch):
    scores = {
        "constant(arm)": -2.0,
        "level(arm)": -1.5,
        "level(arm) + season(7, harmonics=2)": -1.2,
        "level(arm) + level(shared)": -1.3,
        "level(arm) + season(7, harmonics=2) + level(shared)": -1.2 + comparison.SLACK / 2,
    }
    scored(monkeypatch, scores)
    found = compare(weekly(rounds=60))
    tried = [str(one) for one in found.structures]
    assert tried[:5] == [one for one in selection.BASES if "loadings" not in one]  # of two arms
    assert tried[5:9] == [
        "level(arm) + level(shared)",
        "level(arm) + noise(arm, own)",
        "level(arm) + season(7, harmonics=2)",
        "level(arm) + season(7, arm, harmonics=2)",
    ]
    assert "level(arm) + season(7, harmonics=2) + level(shared)" in tried
    assert "level(arm) + season(7)" in tried
    assert not any(tried.count(one) > 1 for one in tried)
    assert not any("season(24" in one for one in tried)  # 60 rounds have no four of them
    three = [one for one in tried if one.count("+") == 2]
    assert all(one.startswith("level(arm) + season(7, harmonics=2) + ") for one in three)
    assert max(one.count("+") for one in tried) == 2
    assert str(found.chosen) == "level(arm) + season(7, harmonics=2)"


def test_shared_and_own_seasons_are_tried_with_the_same_waves(monkeypatch):
    scored(monkeypatch, {"level(arm)": -1.5, "level(arm) + season(24, harmonics=2)": -1.2})
    found = [str(one) for one in compare(weekly(), periods=[24]).structures]
    assert found[7:9] == [
        "level(arm) + season(24, harmonics=2)",
        "level(arm) + season(24, arm, harmonics=2)",
    ]
    assert "level(arm) + season(24)" in found  # all waves, once there is a season


def test_an_own_season_is_joined_by_all_waves_of_a_shared_one(monkeypatch):
    own = "level(arm) + season(24, arm, harmonics=2)"
    scored(monkeypatch, {"level(arm)": -1.5, own: -1.2})
    found = compare(weekly(), periods=[24])
    assert str(found.chosen) == own
    assert f"{own} + season(24)" in map(str, found.structures)


def test_the_simplest_within_one_standard_error_is_chosen(monkeypatch):
    simple, large = "level(arm) + season(7)", "level(arm) + season(7, arm)"
    scores = {simple: -1.0, large: -0.99}
    scored(monkeypatch, scores, noise=0.5)
    close = compare(weekly(), [large, simple])
    assert close.errors[1] > 0.01
    assert (str(close.chosen), close.chosen_place) == (simple, 1)
    scored(monkeypatch, scores | {large: -0.5}, noise=0.5)
    assert str(compare(weekly(), [large, simple]).chosen) == large
    joined = compare(weekly(), [simple]).joined(compare(weekly(), [large]))
    assert joined.sizes == ((8, 4), (14, 4))
    assert joined.part([0]).structures == joined.structures[:1]


def test_all_digits_of_a_period_are_kept():
    found = selection._extras(weekly(), [365.2425])
    assert "season(365.2425, harmonics=2)" in map(str, found)


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
    assert found == ["regression(x_a, x_b)", "regression(x_a, x_b, arm)"]  # one arm


def test_places_count_within_each_sequence():
    found = scores.places(np.array([0, 0, 0, 0, 1, 1]))
    assert found.tolist() == [0, 0.25, 0.5, 0.75, 0, 0.5]
