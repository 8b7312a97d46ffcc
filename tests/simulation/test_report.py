"""The figure that compares policies."""

import numpy as np

import driftbandit as db
from driftbandit.result import Timing

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
