"""Contexts of a system: features that change how its arms read the state."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
import naive
from context_cases import FEATURES, NAMES, context, features, shop
from driftbandit import theory
from driftbandit.contexts import read_rows
from refusals import EYE, INF, NAN, STABLE, Case, assert_refused, each

BY_PRICE = {"x_price": EYE}


def test_rows_are_those_of_the_textbook():
    system, x = shop(), features(5)
    expected = naive.rows_in_contexts(system.arms, list(system.contexts.values()), x)
    np.testing.assert_allclose([system.arms_in(context(one)) for one in x], expected, rtol=1e-15)
    stack = np.stack(list(system.contexts.values()))
    np.testing.assert_allclose(read_rows(system.arms, stack, x), expected, rtol=1e-15)


def test_a_feature_has_one_number_or_one_for_each_arm():
    system = shop()
    plain = system.arms_in({"x_price": 3, "x_rain": np.float64(-1)})
    by_place = system.arms_in({"x_rain": np.full(4, -1.0), "x_price": (3, 3, 3, 3)})
    by_name = system.arms_in({"x_price": dict.fromkeys(NAMES[::-1], 3.0), "x_rain": -1})
    np.testing.assert_array_equal(by_place, plain)
    np.testing.assert_array_equal(by_name, plain)
    one_arm = system.arms_in({"x_price": {"a": 0, "b": 5, "c": 0, "d": 0}, "x_rain": 0})
    np.testing.assert_array_equal(one_arm[[0, 2, 3]], system.arms[[0, 2, 3]])
    np.testing.assert_allclose(one_arm[1], system.arms[1] + 5 * system.contexts["x_price"][1])


@settings(deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4), st.floats(0, 1))
def test_rows_are_affine_in_the_context(values, share):
    """arms(s x + (1 − s) y) = s arms(x) + (1 − s) arms(y)."""
    system = shop()
    x, y = np.array(values[:2]), np.array(values[2:])
    mixed = system.arms_in(context(share * x + (1 - share) * y))
    parts = share * system.arms_in(context(x)) + (1 - share) * system.arms_in(context(y))
    np.testing.assert_allclose(mixed, parts, rtol=1e-9, atol=1e-9)


def test_contexts_keep_their_order_and_cannot_be_changed():
    system = shop()
    assert tuple(system.contexts) == FEATURES
    with pytest.raises(TypeError):
        system.contexts["x_price"] = np.zeros((4, 3))
    with pytest.raises(ValueError, match="read-only"):
        system.contexts["x_price"][0, 0] = 1.0


def test_equality_looks_at_contexts():
    system = shop()
    assert system == shop()
    assert system != shop(seed=2)
    other = {name: 2 * read_out for name, read_out in system.contexts.items()}
    assert system != db.System(system.model, system.arms, NAMES, other)
    swapped = dict(reversed(system.contexts.items()))
    assert system != db.System(system.model, system.arms, NAMES, swapped)
    plain = db.System(STABLE, EYE)
    assert plain == db.System(STABLE, EYE, contexts={})
    assert plain != db.System(STABLE, EYE, contexts=BY_PRICE)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_copies_are_equal(copied):
    assert copied(shop()) == shop()


def test_repr_names_the_features():
    assert repr(shop()).endswith("'d'; contexts: x_price, x_rain)")
    assert "contexts" not in repr(db.System(STABLE, EYE))


def test_an_arm_may_be_zero_beside_a_context():
    arms = [[1.0, 0.0], [0.0, 0.0]]
    assert not db.System(STABLE, arms, contexts=BY_PRICE).arms[1].any()


def of(contexts, arms=EYE):
    return lambda: db.System(STABLE, arms, contexts=contexts)


PRICED = db.System(STABLE, EYE, contexts=BY_PRICE)
CASES = [
    Case("list", of([EYE]), "contexts: is [array", "mapping"),
    Case("number for a name", of({3: EYE}), "contexts: has a feature named 3", "name"),
    Case("blank name", of({" ": EYE}), "contexts: has a feature named ' '", "name"),
    Case("too few arms", of({"x": EYE[:1]}), "contexts x: has shape (1, 2)", "(2, 2)"),
    Case("too many states", of({"x": np.ones((2, 3))}), "contexts x: has shape (2, 3)", "(2, 2)"),
    Case("texts", of({"x": [["a", "b"]] * 2}), "contexts x", "'a'"),
    Case("a gap", of({"x": [[NAN, 0], [0, 0]]}), "contexts x: entry [0, 0]", "nan"),
    Case("infinite", of({"x": [[INF, 0], [0, 0]]}), "contexts x: entry [0, 0]", "inf"),
    Case("too large", of({"x": 1e200 * EYE}), "contexts x", "1e+200"),
    Case("zero arm", of({"x": [[1, 0], [0, 0]]}, [[1, 0], [0, 0]]), "arms: row 1", "no context"),
    Case("arms", of(BY_PRICE, [[1.0]]), "arms: has shape (1, 1)", "2"),
    Case("model", lambda: db.System(None, EYE, contexts=BY_PRICE), "model", "NoneType"),
    Case(
        "none wanted", lambda: db.System(STABLE, EYE).arms_in({}), "context: was given", "use arms"
    ),
    Case("empty", lambda: PRICED.arms_in({}), "context: lacks x_price", "x_price"),
    Case("a list", lambda: PRICED.arms_in([1.0]), "context: is [1.0]", "x_price"),
    Case("theory", lambda: theory.metric(PRICED, None, EYE), "system: has contexts", "arms_in"),
]


@each(CASES)
def test_wrong_arguments_are_refused(case):
    assert_refused(case)
