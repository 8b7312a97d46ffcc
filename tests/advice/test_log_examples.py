"""Advice from the example log, and from one with features: many structures to compile."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import driftbandit as db
from advised_logs import log
from driftbandit.identify import read_log
from terminals import shown

pytestmark = pytest.mark.nightly


def test_the_example():
    advice = db.advise(read_log(Path(__file__).parents[2] / "examples" / "shop_log.csv"))
    assert (advice["drift"].verdict, advice["season"].verdict) == ("yes", "yes")
    assert [one.period for one in advice["seasons"]] == [7]
    assert advice.recommendation.kind == "agent"
    assert advice["replayed"].row(advice["replayed"].best).over_log.low > 0
    assert shlex.split(advice.recommendation.commands[1])[:2] == ["driftbandit", "fit"]


def test_features_are_used_by_the_model_and_not_replayed():
    columns = log()
    price = np.random.default_rng(1).standard_normal(240)
    columns |= {"x_price": price, "reward": columns["reward"] + price}
    advice = db.advise(columns, seasons=[])
    assert "regression(x_price" in advice["structure"]
    assert advice["predictability"].share > 0.8
    assert advice["replayed"] is None
    assert "Policies were not replayed: the model uses x_price" in shown(
        advice.report("name", terminal=True), 200
    )
    assert "Recommendation" in shown(advice.report("name", terminal=True), 80)
