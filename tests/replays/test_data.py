"""Tables of rewards: from logs and files."""

import numpy as np
import pytest

from driftbandit import InvalidInput
from driftbandit.identify import Arms, Log, Sequence
from driftbandit.replays import as_table, replay
from reward_tables import NAN


def test_table_of_a_log():
    log = Log((Sequence([3, 3, 5, 5, 5], [0, 1, 1, 0, 1], [1.0, 2.0, 3.0, NAN, 5.0]),), ("a", "b"))
    table = as_table(log)
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.rewards, [[1, 2], [NAN, 4]])
    assert table.times.tolist() == [0, 2]
    assert not table.logged
    assert as_table(table) is table


def test_tables_from_everything_else(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("round,arm,reward\n0,x,1\n1,y,2\n2,x,\n3,y,4\n")
    table = as_table(str(path))
    assert table.logged
    np.testing.assert_array_equal(table.rewards, [[1, NAN], [NAN, 2], [NAN, 4]])
    assert table.times.tolist() == [0, 1, 3]
    arms = tmp_path / "arms.csv"
    arms.write_text("arm,size\ny,2\nx,1\n")
    table = as_table(str(path), features=str(arms))
    assert table.names == ("y", "x")
    assert table.features.tolist() == [[2.0], [1.0]]
    assert table.rewards[0].tolist() == [NAN, 1] or np.isnan(table.rewards[0, 0])
    wide = as_table({"a": [1, 2], "b": [3, None]}, features=Arms(("b", "a"), [[1.0], [2.0]]))
    np.testing.assert_array_equal(wide.rewards, [[3, 1], [NAN, 2]])
    assert as_table([[1, 2], [3, 4]]).names == (0, 1)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("nothing", "'nothing' is neither a file nor a data set"),
        ("no/such.csv", "cannot be read"),
        ({"round": [0], "arm": ["a"]}, "has no column 'reward'"),
        ([[1.0], [2.0]], "holds one arm"),
        ([1.0, 2.0], r"has shape \(2,\)"),
        ([[1.0, float("inf")]] * 4, "round 0 of arm 1 is inf"),
        ([["a", "b"]] * 4, "is not a table of numbers"),
        (7, "has type int"),
        ([[1.0, 2.0]] + [[1.0, NAN]] * 3, "several arms in 1 rounds of 4"),
        ({"sequence": ["a", "b"], "round": [0, 0], "arm": "xy", "reward": [1, 2]}, "arm"),
        (
            {"sequence": ["a", "b"], "round": [0, 0], "arm": ["x", "y"], "reward": [1, 2]},
            "holds 2 sequences",
        ),
        ({"round": [0, 10**9], "arm": ["a", "b"], "reward": [1, 2]}, "is a log without chances"),
        ([[1.0, 2.0]] * 3, "train: leaves 1 of 3 rows"),
    ],
)
def test_bad_data_is_named(data, words):
    with pytest.raises(InvalidInput, match=words):
        replay(data)
