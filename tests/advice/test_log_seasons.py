"""Seasons of a model: how large they are, and whether arms share them."""

import numpy as np
import pytest

from advised_logs import log
from driftbandit.advice.log_facts import own_pattern, seasons
from driftbandit.identify import Comparison, as_log, compare
from driftbandit.identify.findings import UNKNOWN
from driftbandit.identify.structured.fitting import fit_structure


def test_the_size_of_a_season_is_its_swing():
    text = "constant(arm) + season(7, arm, harmonics=1)"
    found = fit_structure(as_log(log(season=0.6, noise=0.1)), text, starts=1)
    (one,) = seasons(found, Comparison((), (), (), 0))  # nothing was compared
    swing = np.ptp(0.6 * np.sin(2 * np.pi * np.arange(7) / 7))
    assert (one.period, one.differs) == (7, True)
    assert one.swing == pytest.approx(swing, rel=0.1)


OWN = ["constant(arm)", "constant(arm) + season(7)", "constant(arm) + season(7, arm)"]


def shared(seed=0):
    """The same weekly pattern for both arms."""
    columns = log(rounds=600, seed=seed)
    waves = 0.6 * np.sin(2 * np.pi * columns["round"] / 7)
    return columns | {"reward": columns["reward"] + waves}


def test_arms_that_share_a_season_are_told_from_those_that_do_not():
    both = compare(as_log(shared()), OWN)
    assert str(both.chosen) == OWN[1]
    found = own_pattern(both, 7)
    assert found.verdict == "no"
    assert (found.best_with, found.best_without) == (OWN[2], OWN[1])
    each = compare(as_log(log(season=0.6)), OWN)
    assert str(each.chosen) == OWN[2]
    assert own_pattern(each, 7).verdict == "yes"
    assert own_pattern(each, 24) == UNKNOWN._replace(verdict="no")  # nothing was tried
    (one,) = seasons(fit_structure(as_log(shared()), both.chosen, starts=1), both)
    assert (one.period, one.differs, one.own) == (7, False, found)
