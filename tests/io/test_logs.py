"""Sequences, logs and arms that are made by hand."""

import dataclasses

import numpy as np
import pytest

from driftbandit.identify import Arms, Log, Sequence
from log_files import refused

NAN, INF = float("nan"), float("inf")


AB = ("a", "b")
ONE = Sequence([0, 2], [0, 1], [1, None])
RICH = Sequence([0, 2], [0, 1], [1, 2], chances=[0.5, None], features=[[1, 2], [3, True]])


@pytest.mark.parametrize(
    ("make", "start"),
    [
        (lambda: Sequence([], [], []), "sequence: holds no rows; give at least one"),
        (lambda: Sequence([0], [0], [1, 2]), "sequence: column 'rewards' has 2 rows, 'arms' has 1"),
        (lambda: Sequence([1, 0], [0, 0], [1, 2]), "rounds: decrease"),
        (lambda: Sequence(np.array([-1]), [0], [1]), "sequence row 1: round -1 is negative"),
        (lambda: Sequence([0.5], [0], [1]), "sequence row 1: round 0.5 is not a whole number"),
        (lambda: Sequence([0], ["x"], [1]), "sequence row 1: arm 'x' is not a whole number"),
        (lambda: Sequence([0], np.array([-1]), [1]), "sequence row 1: arm -1 is neg"),
        (lambda: Sequence([0], [0], ["x"]), "sequence row 1: reward 'x' is not a number"),
        (lambda: Sequence([0], [0], np.array([INF])), "sequence row 1: reward inf is not a finite"),
        (lambda: Sequence([0], [0], [1], label=3), "label: 3 is not text"),
        (lambda: Sequence([0], [0], [1], chances=[0.5, 0.5]), "sequence: column 'chances' has 2"),
        (
            lambda: Sequence([0, 1], [0, 0], [1, 1], chances=[0.5, 0.0]),
            "sequence row 2: chance 0.0",
        ),
        (lambda: Sequence([0], [0], [1], chances=np.array([1.5])), "sequence row 1: chance 1.5 is"),
        (lambda: Sequence([0], [0], [1], chances=["x"]), "sequence row 1: chance 'x' is not a"),
        (lambda: Sequence([0], [0], [1], chances=0.5), "sequence: column 'chances' is 0.5"),
        (lambda: Sequence([0], [0], [1], features=[[NAN]]), "features: entry [0, 0] is nan"),
        (lambda: Sequence([0], [0], [1], features=[1.0]), "features: has shape (1,); give shape"),
        (lambda: Sequence([0], [0], [1], features=[[1], [2]]), "features: has shape (2, 1)"),
        (lambda: Sequence([0], [0], [1], features=[[]]), "features: is empty"),
        (lambda: Log((ONE,), AB, (), ("x_a",)), "feature_names: are 1, and sequence 0 has 0"),
        (lambda: Log((RICH,), AB), "feature_names: are 0, and sequence 0 has 2 features"),
        (lambda: Log((RICH, ONE), AB, (), ("x_a", "x_b")), "feature_names: are 2, and sequence 1"),
        (lambda: Log((RICH,), AB, (), ("x_a", "b")), "feature_names: hold 'b'; give a tuple of"),
        (lambda: Log((RICH,), AB, (), ("x_a", "x_a")), "feature_names: hold 'x_a' twice"),
        (lambda: Log((RICH,), AB, (), "x_a"), "feature_names: are 1, and sequence 0 has 2"),
        (lambda: Log((RICH,), AB, (), 3), "feature_names: hold 3; give a tuple of different texts"),
        (lambda: Log((), ("a",)), "sequences: () is not a tuple of sequences"),
        (lambda: Log(ONE, ("a",)), "sequences: Sequence("),
        (lambda: Log((ONE,), ("a",)), "names: hold 1, and a sequence plays arm 1"),
        (lambda: Arms(("a",), [[0.0]]), "features: row 0 is the zero vector"),
        (lambda: Arms(("a",), [[1.0], [2.0]]), "features: has shape (2, 1)"),
        (lambda: Arms(("a", "a"), [[1.0], [2.0]]), "names: hold 'a' twice"),
    ],
)
def test_what_is_made_by_hand_is_checked(make, start):
    refused(make, start)


def test_a_sequence_keeps_its_own_numbers():
    rewards = np.array([1.0, NAN])
    one = Sequence(np.array([0, 2]), [0, 1], rewards)
    rewards[0] = 5
    assert one.rewards[0] == 1
    assert (len(one), one.rewards_seen, Log([one], ["a", "b"]).rows) == (2, 1, 2)


def test_a_sequence_keeps_chances_and_features():
    assert RICH.features.tolist() == [[1, 2], [3, 1]]
    np.testing.assert_array_equal(RICH.chances, [0.5, NAN])
    assert not RICH.chances.flags.writeable
    assert not RICH.features.flags.writeable
    features = np.ones((2, 1))
    one = dataclasses.replace(RICH, features=features)
    features[0] = 5
    assert one.features.tolist() == [[1], [1]]
    np.testing.assert_array_equal(one.chances, RICH.chances)
    log = dataclasses.replace(Log((RICH,), AB, (), ["x_a", "x_b"]), names=("c", "d"))
    assert log.feature_names == ("x_a", "x_b")
    assert ONE.chances is ONE.features is None
