"""A system: model, arms and the arms' names."""

import dataclasses
import pickle

import numpy as np
import pytest

import driftbandit as db
from driftbandit.system import checked_names

MODEL = db.LGDS([[0.5]], [[1.0]], 1.0)


def test_names_default_to_row_numbers():
    system = db.System(MODEL, [[1.0], [2.0]])
    assert system.names == (0, 1)
    assert system.index(1) == 1


def test_names_may_be_texts_or_whole_numbers():
    assert db.System(MODEL, [[1.0], [2.0]], ["b", "a"]).index("a") == 1
    assert db.System(MODEL, [[1.0], [2.0]], np.array([7, 5])).names == (7, 5)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "has 1 entries for 2 arms"),
        (["a", "a"], "has 'a' twice"),
        ([1, "1"], "has '1' twice"),
        (["a", True], r"entry \[1\] is True"),
        (["a", " "], r"entry \[1\] is ' '"),
        ("ab", "is 'ab'"),
    ],
)
def test_bad_names_are_refused(names, message):
    with pytest.raises(db.InvalidInput, match=message):
        checked_names(names, 2)


def test_an_unknown_name_is_refused():
    with pytest.raises(db.InvalidInput, match="'c' is not the name of an arm; valid: a, b"):
        db.System(MODEL, [[1.0], [2.0]], ["a", "b"]).index("c")


def test_the_first_round_is_kept_and_compared():
    system = db.System(MODEL, [[1.0]], first_round=np.int64(899))
    assert (system.first_round, type(system.first_round)) == (899, int)
    assert pickle.loads(pickle.dumps(system)) == system != db.System(MODEL, [[1.0]])
    assert repr(system) == "System(1 states, 1 arms: 0; from round 899)"
    assert dataclasses.replace(system, first_round=None) == db.System(MODEL, [[1.0]])


@pytest.mark.parametrize("wrong", ["7", 1.5, True, 2**53 + 1])
def test_a_first_round_is_a_whole_number(wrong):
    with pytest.raises(db.InvalidInput, match=r"^first_round: "):
        db.System(MODEL, [[1.0]], first_round=wrong)
