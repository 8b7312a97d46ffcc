"""What is said and drawn of a simulation."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit.result import Result, Timing
from driftbandit.simulation.report import report as simulated
from terminals import shown

TIMING = Timing(0.1, 0.2, 0.3, "cpu")


def test_the_comparison_says_what_is_better_in_the_order_of_the_table():
    from driftbandit.simulation.report import figure as drawn

    names = ("ucb", "random", "idea", "kalman_oracle")
    results = {}
    for place, family in enumerate(("gaussian", "cauchy")):
        base = np.random.default_rng(place).uniform(1, 2, (3, 4))
        factors = {"ucb": 3.0, "random": 9.0, "idea": 1.2, "kalman_oracle": 1.0}
        regret = {name: base * factors[name] for name in names}
        results[family] = db.Result(regret, {}, np.array([9]), 9, 0, TIMING)
    figure = drawn(results)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["idea", "ucb", "random"]
    assert "lower is better" in figure.get_suptitle()


@pytest.mark.parametrize(
    ("factors", "runs", "words"),
    [
        ((1.0, 2.0), 20, "idea is lowest, kode second. The difference is clear"),
        ((1.0, 1.0001), 20, "20 runs do not tell them apart"),
        ((1.0, 2.0), 4, "4 runs cannot tell them apart: give more --runs."),
        ((1.0, 1.0), 20, "Their regret is the same in all 20 runs."),
    ],
)
def test_whether_the_first_two_are_told_apart_is_said(factors, runs, words):
    draw = np.random.default_rng(1)
    noise = 0.0 if factors[0] == factors[1] else 0.1
    regret = {
        name: factor * (100 + noise * 50 * draw.standard_normal(runs))
        for name, factor in zip(("idea", "kode"), factors, strict=True)
    }
    curves = {name: values[:, None] for name, values in regret.items()}
    found = Result(regret, curves, np.array([9]), 9, 0, TIMING)
    assert words in " ".join(shown(simulated({"plant.json": found}), 80).split())
