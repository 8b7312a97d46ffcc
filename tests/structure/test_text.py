"""Structures as text: what is written is read back, and read the same in other writings."""

import pytest
from hypothesis import given, settings

import driftbandit as db
from driftbandit.structure import ar, level, parse, regression, season, trend
from random_structures import structures


@settings(max_examples=150, deadline=None)
@given(structures(4))
def test_what_is_written_is_read_back(structure):
    assert parse(str(structure)) == structure
    assert hash(parse(str(structure))) == hash(structure)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("level", "level(arm)"),
        ("Level( arm )+SEASON(7)", "level(arm) + season(7)"),
        ("season(period=7, scope=shared)", "season(7)"),
        ("season(7.0)", "season(7)"),
        ("ar", "ar(1, arm)"),
        ("regression(x_b, x_a)", "regression(features=x_b, features=x_a, shared)"),
        ("level(shared,loadings=[1,-2.5,1e-3])", "level(shared, loadings=[1, -2.5, 0.001])"),
        ("level(arm, drift=.1,)", "level(arm, drift=0.1)"),
    ],
)
def test_other_writings_of_the_same(text, same):
    assert parse(text) == parse(same)


def test_functions_and_text_are_the_same():
    made = trend("shared", damping="free", smooth=True) + season(168, 4, "arm", own=True)
    made += regression("x_price", drifting=True, change=0.1) + ar(2, "group", partial2=-0.5)
    text = "trend(shared, damping=free, smooth) + season(168, harmonics=4, arm, own) + "
    text += "regression(x_price, drifting, change=0.1) + ar(2, group, partial2=-0.5)"
    assert parse(text) == made
    assert made.features == ("x_price",)
    assert isinstance(db.structure.level() + level("shared"), db.structure.Structure)


def test_numbers_keep_all_their_digits():
    for value in (1 / 3, 1e-300, 1e22, 0.1 + 0.2):
        structure = parse(level("arm", drift=value))
        assert parse(str(structure)).components[0].fixed == {"drift": value}
    assert str(season(365.2425)) == "season(365.2425)"
    assert str(season(7.0)) == "season(7)"


def test_long_text_is_read_in_no_time():
    blanks = "level(a" + 90_000 * " " + "=)"
    many = "level(arm" + 40_000 * ", " + ")"
    for text in (blanks, many):
        with pytest.raises(db.InvalidInput) as caught:
            parse(text)
        assert len(str(caught.value)) < 200
