"""Periods of seasons: what the quick test finds."""

import numpy as np
import pytest

from advised_logs import log
from driftbandit.identify import as_log
from driftbandit.identify.structured.fitting import fit_structure
from driftbandit.identify.structured.periods import candidates, season_warning, shown_periods

ROUNDS = np.arange(600)


def noise(seed):
    return np.random.default_rng(seed).standard_normal(600)


@pytest.mark.parametrize("period", [3, 7, 12, 18, 24, 48, 52])
def test_a_wave_is_found_with_its_period(period):
    wave = 0.7 * np.sin(2 * np.pi * ROUNDS / period)
    assert candidates(wave + noise(1), ROUNDS, ROUNDS % 3) == (period,)


def test_a_year_of_days_is_found_and_not_one_of_its_neighbors():
    days = np.arange(2000)
    wave = np.sin(2 * np.pi * days / 365) + np.random.default_rng(3).standard_normal(2000)
    assert candidates(wave, days, days % 2) == (365,)


def test_errors_that_resemble_each_other_are_no_season():
    """As those of a model that is not quite right: all long waves explain something."""
    found = []
    for seed in range(40):
        slow, path = np.random.default_rng([seed, 9]).standard_normal((2, 600))
        for t in range(1, 600):
            path[t] += 0.8 * path[t - 1]
        found.append(candidates(path + slow, ROUNDS, ROUNDS % 2))
    assert sum(map(bool, found)) <= 10


def test_a_shock_to_all_arms_of_a_round_counts_once():
    """Else 40 arms that share their noise would show a season by chance."""
    rounds = np.repeat(np.arange(100), 40)
    found = [
        candidates(
            np.random.default_rng(seed).standard_normal(100)[rounds],
            rounds,
            np.tile(np.arange(40), 100),
        )
        for seed in range(40)
    ]
    assert sum(map(bool, found)) <= 6


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


@pytest.mark.parametrize("spreads", [(0.1, 1.0, 5.0), (1.0, 1.0, 20.0)])
def test_unequal_noise_is_no_season(spreads):
    """At most 5% false alarms, as with equal noise."""
    scale = np.array(spreads)[ROUNDS % 3]
    found = [candidates(scale * noise(300 + seed), ROUNDS, ROUNDS % 3) for seed in range(200)]
    assert sum(map(bool, found)) <= 20


def test_a_season_of_the_quiet_arms_is_found_beside_a_noisy_one():
    wave = np.sin(2 * np.pi * ROUNDS / 7)
    scale = np.array([1.0, 1.0, 20.0])[ROUNDS % 3]
    assert candidates(wave + scale * noise(5), ROUNDS, ROUNDS % 3) == (7,)


def test_a_season_must_repeat_four_times():
    short = np.arange(27)
    assert candidates(np.sin(2 * np.pi * short / 7), short, short % 2) == ()


def test_the_periods_of_a_log_are_found_in_its_prediction_errors():
    columns = log(season=0.6, drift=0.05)  # opposite signs: the mean over arms has no season
    columns["reward"][::10] = np.nan
    assert shown_periods(as_log(columns)) == (7,)
    assert shown_periods(as_log(log(drift=0.05))) == ()


def test_a_season_that_the_model_lacks_is_warned_of():
    """Also if rounds are counted, and have no calendar; but unequal noise is no season."""
    weekly = as_log(log(season=0.6))
    warned = season_warning(fit_structure(weekly, "constant(arm)", starts=1), weekly)
    assert "no season, and what it leaves unexplained repeats every 7 rounds" in warned
    assert "Try --season 7" in warned
    with_season = fit_structure(weekly, "constant(arm) + season(7, arm)", starts=1)
    assert season_warning(with_season, weekly) == ""
    columns = log()
    columns["reward"] *= np.where(np.array(columns["arm"]) == "left", 20, 1)
    unequal = as_log(columns)
    assert season_warning(fit_structure(unequal, "constant(arm)", starts=1), unequal) == ""
