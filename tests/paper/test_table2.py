"""Table II of hand-made studies (P21), and the published numbers (P21, P24)."""

import dataclasses
import json

import numpy as np
import pytest

import driftbandit as db
from driftbandit import paper
from driftbandit.paper import figure1, figure3, table2
from driftbandit.paper.readings import Cell, Reading
from driftbandit.report import Points, Table, figures, storable
from published_table import CHANGES, COLUMNS, SIZE, TABLE, outcome


def test_a_policy_of_your_own_is_listed_last():
    regret = {"kalman_oracle": [[1.0, 2.0]], "zebra": [[3.0, 3.0]], "ucb": [[2.0, 2.0]]}
    study = outcome({name: values for name, values in regret.items() if name != "zebra"})
    columns = {name: np.ravel(values) for name, values in regret.items()}
    rows = table2.document(study._replace(columns=dict.fromkeys(COLUMNS, columns)))["rows"]
    assert [row["policy"] for row in rows] == ["ucb", "zebra"] * 5
    assert table2.figure({"rows": rows}).axes[0].get_yticklabels()[1].get_text() == "zebra"


@pytest.fixture
def new_family(monkeypatch):
    """Add a family that the paper does not have."""
    monkeypatch.setitem(db.families.FAMILIES, "laplace", lambda rng, shape: rng.laplace(size=shape))
    return "laplace"


def test_a_family_that_the_paper_does_not_have(new_family):
    """Nothing breaks, and no published value is invented."""
    assert paper.Options(SIZE).families == (*COLUMNS, new_family)
    rng = np.random.default_rng(0)
    regret = {policy: rng.uniform(1, 2, (8, 2)) for policy in table2.POLICIES}
    study = outcome(regret)
    cells = (*study.specification.cells, Cell(new_family))
    columns = {**study.columns, new_family: study.columns["gaussian"]}
    specification = dataclasses.replace(study.specification, cells=cells)
    study = study._replace(specification=specification, columns=columns)
    for target, published_items in ((table2, 35), (figure1, 5)):
        stored = storable(target.document(study))
        assert f" of {published_items} " in target.summary(stored).sentence
        blocks = target.blocks(stored)
        [points] = [block.items for block in blocks if isinstance(block, Points)]
        assert points[-1].startswith(f"{new_family}: ")
        assert points[-1].rstrip(".").endswith("not published")
        assert figures.svg(target.figure(stored))
    stored = storable(table2.document(study))
    [table] = [block for block in table2.blocks(stored) if isinstance(block, Table)]
    assert {row[-1].note for row in table.cells} == {"–"}
    assert {row[-1].tone for row in table.cells} == {""}
    only = {"rows": [row for row in stored["rows"] if row["family"] == new_family]}
    assert table2.summary(only).verdict == "not published"
    assert table2.blocks(only)
    assert figures.svg(table2.figure(only))


def test_P21_medians_over_runs_or_over_systems():
    """Four runs of two systems, worked out by hand."""
    regret = {"kalman_oracle": [[1, 3], [10, 10]], "idea": [[2, 12], [10, 15]]}
    # Runs: 1, 3, 0, 0.5. Systems: (7 − 2)/2 = 2.5, (12.5 − 10)/10 = 0.25.
    rows = table2.document(outcome(regret))["rows"]
    assert [row["family"] for row in rows] == COLUMNS
    for row, known in zip(rows, TABLE["idea"], strict=True):
        assert (row["median"], row["runs"]) == (0.75, 4)
        assert row["iqr"] == pytest.approx(1.5 - 0.375)
        assert (row["published_median"], row["published_iqr"]) == known
    for row in table2.document(outcome(regret, Reading(medians="systems")))["rows"]:
        assert (row["median"], row["runs"]) == (1.375, 4)
        assert row["iqr"] == pytest.approx((2.5 - 0.25) / 2)


@pytest.mark.parametrize(
    ("median", "known", "verdict"),
    [
        (1.0, 1.0, True),
        (1.25, 1.0, True),
        (0.75, 1.0, True),
        (1.26, 1.0, False),
        (0.74, 1.0, False),
        (0.13, 0.11, True),
        (0.15, 0.11, False),
        (0.06, 0.08, True),
        (0.04, 0.08, False),
        (0.25, 0.2, True),
        (0.26, 0.2, False),
        (1.0, None, None),
    ],
)
def test_what_counts_as_met(median, known, verdict):
    """Within 25% of the published median, or 0.03 where that is below 0.2."""
    assert table2.agrees({"median": median, "published_median": known}) is verdict


def test_the_distance_to_the_published_medians():
    """The mean of |log(mine / theirs)|; rows without a published value do not count.

    A printed 1.00 may be anything from 0.995 to 1.005.
    """
    rows = [
        {"median": 2.0, "published_median": 1.0},
        {"median": 0.5, "published_median": 1.0},
        {"median": 3.0, "published_median": 3.0},
        {"median": 99.0, "published_median": None},
    ]
    expected = (np.log(2 / 1.005) + np.log(0.995 / 0.5)) / 3
    assert table2.distance(rows) == pytest.approx(expected)
    assert table2.distance(rows[2:]) == 0
    below = [{"median": -0.5, "published_median": 1.0}]  # better than the Oracle, by luck
    assert table2.distance(below) == pytest.approx(np.log(995))


def test_the_order_of_the_groups():
    """Every filter below every other policy; the order within a group does not matter."""
    medians = {"kode": 1.2, "idea": 1.1, "kalman_ucb": 1.5}
    medians |= {"ucb": 1.6, "oful": 4.0, "random": 3.0, "rexp3": 2.0, "sliding_window_ucb": 0.5}

    def rows(**changes):
        found = {**medians, **changes}
        return [{"policy": policy, "median": median} for policy, median in found.items()]

    assert table2.groups_in_order(rows())
    assert table2.groups_in_order(rows(idea=1.55))
    assert not table2.groups_in_order(rows(kalman_ucb=1.6))
    assert not table2.groups_in_order(rows(oful=1.3))
    assert table2.groups_in_order(rows(sliding_window_ucb=9.0))


def test_one_run_makes_a_document_that_json_can_hold():
    regret = {"kalman_oracle": [[1.0]], "idea": [[2.0]]}
    stored = storable(table2.document(outcome(regret)))
    json.dumps(stored, allow_nan=False)
    assert stored["rows"][0]["median_low"] is None
    assert figures.svg(table2.figure(stored))


def test_P21_published_values():
    """P21, P24: all 35 pairs of the table, and the six percentages of Figure 3's text."""
    for policy, pairs in TABLE.items():
        for family, pair in zip(COLUMNS, pairs, strict=True):
            assert table2.PUBLISHED[family][policy] == pair, (family, policy)
    assert list(table2.PUBLISHED) == COLUMNS
    assert all(set(cells) == set(TABLE) for cells in table2.PUBLISHED.values())
    flat = {(w, p): change for w, row in figure3.PUBLISHED.items() for p, change in row.items()}
    assert flat == CHANGES


def test_P21_all_published_medians_agree_with_themselves():
    for family, cells in table2.PUBLISHED.items():
        rows = [
            {"policy": p, "median": cell.median, "published_median": cell.median}
            for p, cell in cells.items()
        ]
        assert all(table2.agrees(row) for row in rows), family
        assert table2.distance(rows) == 0
        assert table2.groups_in_order(rows)
