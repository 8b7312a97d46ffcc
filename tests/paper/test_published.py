"""The published numbers, against a copy made by hand (P21, P24)."""

from driftbandit.paper import figure3, table2
from published_table import CHANGES, COLUMNS, TABLE


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
