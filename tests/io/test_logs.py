"""Sequences, logs and arms that are made by hand."""

import numpy as np
import pytest

from driftbandit.identify import Arms, Log, Sequence
from log_files import (
    refused,
)

NAN, INF = float("nan"), float("inf")


ONE = Sequence([0, 2], [0, 1], [1, None])


@pytest.mark.parametrize(
    ("make", "start"),
    [
        (lambda: Sequence([], [], []), "sequence: has 0 rounds, 0 arms and 0 rewards"),
        (lambda: Sequence([0], [0], [1, 2]), "sequence: has 1 rounds, 1 arms and 2 rewards"),
        (lambda: Sequence([1, 0], [0, 0], [1, 2]), "rounds: decrease"),
        (lambda: Sequence(np.array([-1]), [0], [1]), "rounds: decrease"),
        (lambda: Sequence([0.5], [0], [1]), "sequence row 1: round 0.5 is not a whole number"),
        (lambda: Sequence([0], ["x"], [1]), "sequence row 1: arm 'x' is not a whole number"),
        (lambda: Sequence([0], np.array([-1]), [1]), "arms: is -1"),
        (lambda: Sequence([0], [0], ["x"]), "sequence row 1: reward 'x' is not a number"),
        (lambda: Sequence([0], [0], np.array([INF])), "rewards: hold one that is too large"),
        (lambda: Sequence([0], [0], [1], label=3), "label: 3 is not text"),
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
