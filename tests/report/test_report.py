"""Blocks of a report."""

import re

import pytest

from driftbandit.errors import InvalidInput
from driftbandit.report import Heading, Report, Table, storable


@pytest.mark.parametrize(
    ("text", "anchor"),
    [("What φ predicts", "what-predicts"), ("2 arms", "section-2-arms"), ("φ", "section")],
)
def test_a_heading_makes_its_own_anchor(text, anchor):
    assert Heading(text).id == anchor


def test_numbers_that_json_does_not_have():
    assert storable({"a": (1, float("inf")), "b": [{"c": float("nan")}, "text", None]}) == {
        "a": [1, None],
        "b": [{"c": None}, "text", None],
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Table("Regret", ["a", "b"], [[1, 2], [3]]), "row 1 of 'Regret' has 1 entries"),
        (lambda: Heading("", id="two words"), "'two words' is not an anchor"),
        (lambda: Report("", "", [Heading("A")] * 2), "2 headings have the id 'a'"),
    ],
)
def test_wrong_input_is_named(wrong, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        wrong()
