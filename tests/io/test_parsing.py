"""Labels and numbers in the columns of a log."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import driftbandit as db
from driftbandit.identify import as_log, read_log
from log_files import plain, put_parquet


def test_numbers_and_texts_are_one_label():
    arms = ["3", 3, 3.0, "3.0", " 3 ", np.int64(3), np.float32(3), Decimal(3), "03", 0.5, "-0.0", 0]
    columns = {"sequence": [1, 1.0, "1"] * 4, "round": range(12), "arm": arms, "reward": [1] * 12}
    log = as_log(columns)
    assert log.names == ("0", "0.5", "03", "3")  # one is no whole number: all are texts
    assert [one.label for one in log.sequences] == ["1"]
    assert log.sequences[0].arms.tolist() == [3] * 8 + [2, 1, 0, 0]
    assert as_log(columns, [3, "03", 0.5, 0]).names == ("3", "03", "0.5", "0")


def test_rounds_are_read_exactly():
    rounds = ["0", "1.0", " 2 ", "1e+05", "9007199254740991", str(2**53)]
    log = as_log({"round": rounds, "arm": [1] * 6, "reward": [0] * 6})
    assert log.sequences[0].rounds.tolist() == [0, 1, 2, 100_000, 2**53 - 1, 2**53]


def test_integers_with_gaps_and_decimals_in_parquet():
    table = {
        "round": pa.array([1, 2], pa.uint64()),
        "arm": pa.array([7, 8], pa.decimal128(5, 1)),
        "reward": pa.array([None, 2], pa.int8()),
    }
    log = read_log(put_parquet("log.parquet", table))
    assert plain(log) == ((7, 8), [("", [1, 2], [0, 1], [None, 2.0])])


def test_yes_and_no_are_rewards(tmp_path):
    columns = {"round": [0, 1, 2], "arm": [0, 1, 0]}
    path = tmp_path / "log.csv"
    path.write_text("round,arm,reward\n0,0,true\n1,1,FALSE\n2,0,\n")
    given = [
        [True, False, None],
        np.array([True, False, None], object),
        pa.array([True, False, None]),
    ]
    frame = pd.DataFrame(columns | {"reward": pd.array([True, False, None], "boolean")})
    for data in (path, frame, *(columns | {"reward": rewards} for rewards in given)):
        np.testing.assert_array_equal(as_log(data).sequences[0].rewards, [1, 0, np.nan])
    rewards = as_log(columns | {"reward": np.array([True, False, True])}).sequences[0].rewards
    assert rewards.tolist() == [1, 0, 1]
    for field in ("round", "arm"):
        with pytest.raises(db.InvalidInput, match=f"row 1: {field} True is not a"):
            as_log(columns | {"reward": [1, 2, 3], field: [True, False, True]})


def test_a_date_is_no_reward():
    columns = {"round": [0], "arm": ["x"], "reward": np.array(["2024-01-31"], "M8[D]")}
    with pytest.raises(db.InvalidInput, match=r"row 1: reward datetime\.date.* is not a number"):
        as_log(columns)
