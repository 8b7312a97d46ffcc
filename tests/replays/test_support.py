"""Warnings when a log cannot tell, and the tests behind them."""

import numpy as np
import pytest
from scipy import stats

from driftbandit.replays import support
from driftbandit.replays.estimates import Shown
from logged_plays import logged
from reward_tables import NAN, drifting


def said(log, **named):
    shown = Shown(log.arms, log.rewards, log.chances, np.zeros((len(log), len(log.names))))
    rows = {who: (shown.of_played(q), support.unsupported(q, shown)) for who, q in named.items()}
    return list(support.doubts(rows, shown, log))


def always(arm, log):
    return np.eye(len(log.names))[np.full(len(log), arm)]


@pytest.mark.parametrize("kind", ["uniform", "uneven", "adaptive"])
def test_a_good_log_is_not_doubted(kind):
    log = logged(drifting(800, seed=2), kind)
    assert said(log, best=always(3, log)) == []


def test_few_and_heavy_rounds():
    log = logged(drifting(80), "uniform")
    [words] = said(log, ucb=always(0, log))
    plays = (log.arms == 0).sum()
    assert f"Effective rounds: ucb {plays}." in words
    log = logged(drifting(800), "uniform")
    log.chances[np.flatnonzero(log.arms == 0)[0]] = 1e-3
    words = said(log, ucb=always(0, log))
    assert any("Its share of all weights: ucb" in line for line in words)
    assert not any("Its share" in line for line in said(log, ucb=always(1, log)))


def test_rare_plays_that_are_missing():
    """Named half of the time, an arm of chance 0.05 is never seen in these rounds."""
    log = logged(drifting(800), "uniform")
    log.arms[:400], log.chances[:400] = 0, 0.95
    named = always(0, log)
    named[400:] = np.eye(4)[(log.arms[400:] + 1) % 4]  # always another one than the log plays
    words = " ".join(said(log, unlucky=named, zero=always(0, log)))
    assert "Sum of weights, as a share of the rounds: unlucky 53%." in words


def test_arms_without_a_chance():
    log = logged(drifting(800), "uniform")
    log.arms[400:] = 0
    log.chances[400:] = 1.0
    words = " ".join(said(log, one=always(1, log), zero=always(0, log)))
    assert "where it never plays the arm they name. Share of such rounds: one 50%." in words
    log = logged(drifting(800), "uniform")
    log.arms[log.arms == 2] = 1
    words = " ".join(said(log, two=always(2, log)))
    assert "Share of such rounds: two 100%." in words


def test_unknown_chances_are_counted():
    log = logged(drifting(800), "uniform")
    log.chances[::8] = NAN
    known = np.isfinite(log.chances)
    shown = Shown(log.arms[known], log.rewards[known], log.chances[known], np.zeros((700, 4)))
    words = list(support.doubts({}, shown, log))
    assert words == [
        "100 of 800 decisions have no chance: policies learn from them, but they do not count."
    ]


def test_wrong_chances_are_found():
    log = logged(drifting(800), "uneven")
    log.chances[:] = 0.25
    [words] = said(log)
    assert words.startswith("The chances do not fit the log: arm ")
    worst = np.abs(np.bincount(log.arms) - 200).argmax()
    assert f"arm {worst} was played {(log.arms == worst).sum()} times in 800 rounds" in words
    assert "about 200 times would fit" in words
    log = logged(drifting(800), "uniform")
    log.chances[:] = 1.0  # impossible: several arms were played
    assert any("do not fit" in line for line in said(log))


def test_calibration_is_pearsons_test_if_chances_do_not_change():
    p = np.array([0.5, 0.3, 0.2])
    arms = np.random.default_rng(1).choice(3, p=p, size=500)
    scores = support.calibration(arms, p[arms], 3)
    plays = np.bincount(arms)
    for arm in range(3):
        counts = np.array([plays[arm], 500 - plays[arm]])
        expected = 500 * np.array([p[arm], 1 - p[arm]])
        assert scores[arm] ** 2 == pytest.approx(stats.chisquare(counts, expected).statistic)
    assert support.calibration(np.array([0, 0]), np.ones(2), 2).tolist() == [0.0, 0.0]


def test_calibration_and_dependence_seldom_raise_false_alarms():
    """Standard deviations of the scores under honest chances are about one, even for rare arms."""
    scores, follows = [], []
    for seed in range(150):
        rewards = drifting(200, seed)
        adaptive = logged(rewards, "adaptive", seed)
        scores.append(support.calibration(adaptive.arms, adaptive.chances, 4))
        uneven = logged(rewards, "uneven", seed)
        noisy = rewards + np.random.default_rng(seed).normal(size=rewards.shape)
        follows.append(support.dependence(Shown(uneven.arms, None, None, noisy)))
    assert 0.8 < np.std(scores) < 1.1
    assert abs(np.mean(follows)) < 0.25
    assert 0.85 < np.std(follows) < 1.15


def test_play_that_follows_rewards_is_found():
    rewards = drifting(800, seed=2)
    for kind, count in (("adaptive", 2), ("uneven", 1)):
        log = logged(rewards - 5, kind)
        past = np.vstack([np.zeros(4), rewards[:-1] - 5])
        words = list(support.about_estimated(Shown(log.arms, log.rewards, log.chances, past)))
        assert len(words) == count
        assert words[0].startswith("Chances are the frequencies of the arms")
    assert "Play depends on past rewards: arms were chosen more often" in words[-1] or count == 1
