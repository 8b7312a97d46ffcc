"""Figure 1 of hand-made studies (P22)."""

import json

from driftbandit.paper import figure1, table2
from driftbandit.report import figures, storable
from published_table import outcome


def test_an_oracle_without_regret_makes_a_document_that_json_can_hold():
    """An excess is infinite where the Oracle has no regret and the policy has some."""
    worse = [[1.0, 2.0], [2.0, 3.0]]
    regret = {"kalman_oracle": [[0.0, 0.0], [0.0, 2.0]], "idea": worse, "kalman_ucb": worse}
    for target in (table2, figure1):
        stored = storable(target.document(outcome(regret)))
        json.dumps(stored, allow_nan=False)
        assert figures.svg(target.figure(stored))
        assert target.blocks(stored)


def test_figure_1_without_a_dot_above_zero():
    """A system or two, a few rounds: IDEA may beat the Oracle by luck."""
    values = {"idea": [-0.1], "kalman_ucb": [0.2]}
    assert figure1.figure({"families": {"gaussian": values}}).axes


def test_figure_1_where_the_oracle_has_no_regret():
    """A state that never moves, as Bernoulli's with Q = 0: everybody is as good as the Oracle."""
    still = [[0.0, 0.0], [1.0, 2.0]]
    regret = {"kalman_oracle": still, "idea": still, "kalman_ucb": still}
    found = figure1.document(outcome(regret))["families"]["bernoulli"]
    assert found["idea"] == found["kalman_ucb"] == [0, 0]
