"""Who has a copy of a component, where its states are, and what its parameters are."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from driftbandit.structure import Layout
from driftbandit.structure.parameters import original, transformed
from random_structures import GROUPS, structures

NAMES = tuple(GROUPS)


def test_copies_of_each_scope():
    layout = Layout("level(arm) + level(group) + level(shared)", NAMES, GROUPS)
    assert layout.states == (
        "level(arm) a0",
        "level(arm) a1",
        "level(arm) a2",
        "level(group) even",
        "level(group) odd",
        "level(shared)",
    )
    arms, contexts = layout.arms(layout.theta_of({}))
    expected = [[1, 0, 0, 1, 0, 1], [0, 1, 0, 0, 1, 1], [0, 0, 1, 1, 0, 1]]
    assert arms.tolist() == expected
    assert contexts == {}
    assert {name: places.tolist() for name, places in layout.parts.items()} == {
        "level(arm)": [0, 1, 2],
        "level(group)": [3, 4],
        "level(shared)": [5],
    }


def test_numbers_and_texts_of_arms_are_the_same_in_groups():
    groups = {"1": "x", "2": "y", "other": "x"}  # as a file gives them
    assert Layout("level(group)", [1, 2], groups).states == ("level(group) x", "level(group) y")


def test_features_are_read_by_context():
    layout = Layout("level(arm) + regression(x_a, x_b, arm)", NAMES)
    system = layout.system()
    rows = system.arms_in({"x_a": 10.0, "x_b": [1.0, 2.0, 3.0]})
    expected = np.zeros((3, 9))
    for arm in range(3):
        expected[arm, [arm, 3 + 2 * arm, 4 + 2 * arm]] = 1, 10, arm + 1
    assert rows.tolist() == expected.tolist()


def test_loadings_have_a_mean_square_of_one_if_they_are_free():
    layout = Layout(
        "level(shared, loadings=free) + level(group, loadings=[1, 2, 3])", NAMES, GROUPS
    )
    names = [free.name for free in layout.free if free.arm is not None]
    assert names == [f"level(shared, loadings=free).loading[{name}]" for name in NAMES]
    theta = layout.theta_of(dict(zip(names, [3.0, -4.0, 0.0], strict=True)))
    reads = layout.arms(theta)[0]
    np.testing.assert_allclose(reads[:, 0], np.array([3, -4, 0]) * math.sqrt(3 / 25))
    np.testing.assert_allclose(reads[:, 1:], [[1, 0], [0, 2], [3, 0]])


def test_copies_of_their_own_multiply_the_common_value():
    layout = Layout("level(arm, own) + season(7, arm, own, size=2)", NAMES)
    own = "level(arm, own).drift"
    theta = layout.theta_of({own: 0.5, f"{own}[a1]": math.log(3), "noise": 0.1})
    process = np.diag(layout.model(theta).process_cov)
    np.testing.assert_allclose(np.sqrt(process[:3]), [0.5, 1.5, 0.5])
    changes = [free.name for free in layout.free if ".change[" in free.name]
    assert len(changes) == 3
    assert Layout("level(shared, own)", NAMES).system().model.n_states == 1


@pytest.mark.parametrize(
    ("text", "means", "wide"),
    [
        ("level(shared) + constant(arm)", [0, 5, 5, 5], [0.0]),
        ("level(arm) + level(shared)", [5, 5, 5, 0], [3.0, 3.0, 3.0, 0.0]),
        ("level(shared) + trend(shared)", [5, 0, 0], [3.0, 0.0, 0.3]),
        ("level(shared, loadings=[1, 2, 3])", [0], [3.0]),
        ("level(arm, memory=5)", [0, 0, 0], []),
        ("level(group, start=7) + level(shared)", [5, 5, 0], [7.0, 7.0, 0.0]),
    ],
)
def test_one_component_holds_the_mean_and_starts_wide(text, means, wide):
    model = Layout(text, NAMES, GROUPS).system(mean=5.0).model
    assert model.initial_mean.tolist() == means
    np.testing.assert_allclose(np.sqrt(np.diag(model.initial_cov))[: len(wide)], wide)


@pytest.mark.parametrize("kind", ["size", "time", "share", "correlation"])
def test_parameters_and_real_numbers(kind):
    for value in (0.01, 0.5, 0.99):
        assert original(transformed(value, kind), kind, np) == pytest.approx(value)


@settings(max_examples=40, deadline=None)
@given(structures(3))
def test_values_and_matrices_of_any_structure(structure):
    layout = Layout(structure, NAMES, GROUPS)
    theta = layout.theta_of({})
    values = {free.name: layout.value(i, theta[i]) for i, free in enumerate(layout.free)}
    np.testing.assert_allclose(layout.theta_of(values), theta, atol=1e-12)
    found = layout.matrices(theta)
    assert len(set(layout.states)) == layout.n_states
    system = layout.system()
    np.testing.assert_array_equal(layout.dense(found.transition), system.model.transition)
    assert found.reads.shape == (3, layout.n_states)
    persistent = layout.persistent[layout.block_of]
    turn = system.model.transition[np.ix_(persistent, persistent)]
    np.testing.assert_allclose(turn @ turn.T, np.eye(len(turn)), atol=1e-12)  # a rotation
    assert not system.model.process_cov[persistent].any()
