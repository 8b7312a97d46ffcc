"""Periods of seasons: what the quick test finds."""

import numpy as np
import pytest

from advised_logs import log
from driftbandit.identify import as_log
from driftbandit.identify.structured.periods import candidates, shown_periods

ROUNDS = np.arange(600)


def noise(seed):
    return np.random.default_rng(seed).standard_normal(600)


@pytest.mark.parametrize("period", [7, 12, 24, 52])
def test_a_wave_is_found_with_its_period(period):
    wave = 0.7 * np.sin(2 * np.pi * ROUNDS / period)
    assert candidates(wave + noise(1), ROUNDS, ROUNDS % 3) == (period,)


def test_seasons_that_differ_between_arms_are_found():
    arms = np.random.default_rng(2).integers(2, size=600)
    wave = np.where(arms == 0, 1, -1) * np.sin(2 * np.pi * ROUNDS / 7)  # cancels in the mean
    assert candidates(wave + noise(3), ROUNDS, arms) == (7,)


def test_two_seasons_are_found_the_clearer_first():
    waves = np.sin(2 * np.pi * ROUNDS / 24) + 2 * np.sin(2 * np.pi * ROUNDS / 7)
    assert candidates(waves + noise(4), ROUNDS, ROUNDS % 2) == (7, 24)


def test_noise_seldom_has_a_season():
    """At most 5% false alarms: more than 20 of 200 come once in 1000."""
    found = [candidates(noise(100 + seed), ROUNDS, ROUNDS % 2) for seed in range(200)]
    assert sum(map(bool, found)) <= 20


def test_a_season_must_repeat_four_times():
    short = np.arange(27)
    assert candidates(np.sin(2 * np.pi * short / 7), short, short % 2) == ()


def test_the_periods_of_a_log_are_found_in_its_prediction_errors():
    columns = log(season=0.6, drift=0.05)  # opposite signs: the mean over arms has no season
    columns["reward"][::10] = np.nan
    assert shown_periods(as_log(columns)) == (7,)
    assert shown_periods(as_log(log(drift=0.05))) == ()
