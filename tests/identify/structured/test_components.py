"""Smoothed components equal statsmodels' and those of a dense smoother."""

import numpy as np
import pytest

from driftbandit.identify.structured import components as module
from driftbandit.identify.structured.components import components
from known_structures import known, log_of
from unobserved_components import CASES, by_statsmodels, series

COMPILED = ["local level", "random walk", "even period", "everything"]


@pytest.mark.parametrize("name", COMPILED)
def test_components_and_likelihood_equal_statsmodels(name):
    case = CASES[name]
    rewards, x, log = series(case.options.get("exog", 0))
    oracle, found = by_statsmodels(case, rewards, x), known(case.text, log, case.values)
    paths, rows = components(found), log.sequences[0].rounds
    likelihood = found.problem.log_likelihood(found.theta)
    assert likelihood == pytest.approx(oracle.log_likelihood, abs=1e-6)
    assert all(path.rounds.tolist() == rows.tolist() for path in paths)
    means, stds = np.array([p.mean for p in paths]), np.array([p.std for p in paths])
    np.testing.assert_allclose(means, oracle.means[:, rows], rtol=0, atol=1e-6)
    np.testing.assert_allclose(stds**2, oracle.stds[:, rows] ** 2, rtol=0, atol=1e-8)
    there = stds > 1e-3
    np.testing.assert_allclose(stds[there], oracle.stds[:, rows][there], rtol=0, atol=1e-6)


def test_the_end_of_a_long_log_is_smoothed_as_in_the_whole(monkeypatch):
    case = CASES["even period"]
    _, _, log = series()
    found = known(case.text, log, case.values)
    whole = components(found)
    monkeypatch.setattr(module, "MOST_NUMBERS", 20 * found.n_states**2)
    padding = len(found.problem.described.rows.seen) - log.rows
    for part, path in zip(components(found), whole, strict=True):
        assert len(part.mean) == 20 - padding
        np.testing.assert_allclose(part.mean, path.mean[-len(part.mean) :], atol=1e-9)
        np.testing.assert_allclose(part.std, path.std[-len(part.std) :], atol=1e-9)


def test_a_path_has_one_point_a_round_and_holds_the_mean():
    rounds = [np.array([0, 0, 1, 3]), np.array([0, 2, 2])]
    arms = [np.array([0, 1, 0, 1]), np.array([1, 0, 1])]
    rewards = [np.array([10.0, 20, 10, 20]), np.array([20.0, 10, 20])]
    log = log_of(rounds, arms, rewards, names=("left", "right"))
    found = known("constant(arm)", log, {"constant(arm).size": 50.0, "noise": 1e-3}, center=15.0)
    left, right = components(found)
    assert (left.label, right.label) == ("left", "right")
    assert left.rounds.tolist() == [0, 1, 3, 0, 2]
    assert left.sequences.tolist() == [0, 0, 0, 1, 1]
    np.testing.assert_allclose(left.mean, 10.0, atol=1e-5)
    np.testing.assert_allclose(right.mean, 20.0, atol=1e-5)


def test_a_factor_is_shown_itself_and_weights_by_feature():
    log = log_of(
        np.arange(6),
        np.arange(6) % 2,
        np.array([1.0, 2, 1, 2, 1, 2]),
        np.ones((6, 2)),
        feature_names=("x_b", "x_a"),
    )
    text = "level(shared, loadings=[2, 0.5], start=1) + regression(x_b, x_a, arm)"
    paths = components(known(text, log, {}))
    labels = [path.label for path in paths]
    assert labels[0] == ""
    assert sorted(labels[1:]) == ["a0 x_a", "a0 x_b", "a1 x_a", "a1 x_b"]
