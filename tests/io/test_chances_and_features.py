"""The columns chance and x_… of a log: what is read, and how what is wrong with them is said."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
from driftbandit.identify import as_log, read_log
from driftbandit.io import tables
from driftbandit.io.log_reader import log_and_features
from driftbandit.replays import as_table
from log_files import csv_text, put, put_parquet, refused

NAN, INF = float("nan"), float("inf")
PLAIN = {"round": [0, 1, 1], "arm": ["a", "b", "a"], "reward": [1.5, None, 2.5]}


def same(log, other):
    """Whether two logs hold the same, to the last bit."""
    assert (log.names, log.feature_names) == (other.names, other.feature_names)
    for one, two in zip(log.sequences, other.sequences, strict=True):
        assert one.label == two.label
        for field in ("rounds", "arms", "rewards", "chances", "features"):
            mine, others = getattr(one, field), getattr(two, field)
            assert (mine is None) == (others is None)
            if mine is not None:
                np.testing.assert_array_equal(mine, others)
                assert not mine.flags.writeable
    return True


def test_they_are_none_if_the_log_has_no_such_columns():
    log = as_log(PLAIN)
    assert log.feature_names == ()
    assert log.sequences[0].chances is log.sequences[0].features is None


CHANCES = st.none() | st.floats(0, 1, exclude_min=True)
NUMBERS = st.floats(-1e150, 1e150) | st.integers(-9, 9)
ROWS = st.integers(0, 3).flatmap(
    lambda n: st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.integers(0, 2),
            st.integers(0, 3),
            st.none() | NUMBERS,
            CHANCES,
        ).flatmap(lambda row: st.tuples(st.just(row), st.tuples(*[NUMBERS] * n))),
        min_size=1,
        max_size=12,
    )
)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.data())
def test_what_is_written_is_read(rows, data):
    plays = sorted((row for row, _ in rows), key=lambda row: row[1])
    context = [features for _, features in rows]
    names = data.draw(st.permutations(["x_b", "x_a", "x_ c"]))[: len(context[0])]
    columns = dict(
        zip(("sequence", "round", "arm", "reward", "chance"), zip(*plays, strict=True), strict=True)
    )
    columns |= dict(zip(names, zip(*context, strict=True), strict=True))
    columns |= {"note": ["…"] * len(plays)}
    order = data.draw(st.permutations(list(columns)))
    columns = {name: list(columns[name]) for name in order}
    log = as_log(columns)
    assert log.feature_names == tuple(name for name in order if name in names)
    assert log.notes[0] == "Ignored columns: note."
    labels = list(dict.fromkeys(columns["sequence"]))
    for label, one in zip(labels, log.sequences, strict=True):
        mine = [i for i, of in enumerate(columns["sequence"]) if of == label]
        chances = [NAN if columns["chance"][i] is None else columns["chance"][i] for i in mine]
        np.testing.assert_array_equal(one.chances, chances)
        for j, name in enumerate(log.feature_names):
            assert one.features[:, j].tolist() == [columns[name][i] for i in mine]
        assert (one.features is None) == (not names)
    text = csv_text(columns)
    assert same(log, read_log(put("log.csv", text)))
    assert same(log, read_log(put("log.csv.gz", gzip.compress(text.encode()))))
    typed = {n: [None if v is None else float(v) for v in columns[n]] for n in [*names, "reward"]}
    assert same(log, read_log(put_parquet("log.parquet", columns | typed)))
    assert same(log, as_log(pd.DataFrame(columns)))


def test_yes_and_no_are_features(monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_CELLS", 5)  # one row in a block
    given = {"x_holiday": [True, False, True], "x_": ["1", " 2.5 ", "-3e2"]}
    log = as_log(PLAIN | given | {"chance": ["0.5", "", "1"]})
    assert log.sequences[0].features.tolist() == [[1, 1], [0, 2.5], [1, -300]]
    np.testing.assert_array_equal(log.sequences[0].chances, [0.5, NAN, 1])


def test_they_may_have_other_names_and_other_uses():
    renamed = {"round": [0, 1], "arm": ["a", "b"], "x_gain": [1, 2], "p": [0.5, 0.25]}
    log = read_log(renamed, columns={"reward": "x_gain", "chance": "p"})
    assert (log.feature_names, log.notes) == ((), ())
    assert log.sequences[0].chances.tolist() == [0.5, 0.25]
    assert log.sequences[0].rewards.tolist() == [1, 2]
    log = read_log(
        {"round": [0, 1], "chance": ["a", "b"], "reward": [1, 2]}, columns={"arm": "chance"}
    )
    assert log.names == ("a", "b")
    assert log.sequences[0].chances is None
    log = as_log(PLAIN | {"X_big": [1, 2, 3], "xy": [1, 2, 3]})  # these do not start with x_
    assert log.notes == ("Ignored columns: X_big, xy.",)


def test_they_stay_with_their_rows():
    rows = {"round": [0, 1, 2, 3], "arm": [2, 0, 2, 0], "reward": [1, 2, 3, 4]}
    rows |= {"sequence": ["p", "q", "p", "q"], "chance": [0.1, 0.2, 0.3, 0.4]}
    log, _ = log_and_features(rows | {"x_t": [5, 6, 7, 8]}, np.eye(3))
    assert (log.names, log.feature_names) == ((0, 1, 2), ("x_t",))
    assert [one.chances.tolist() for one in log.sequences] == [[0.1, 0.3], [0.2, 0.4]]
    assert [one.features.tolist() for one in log.sequences] == [[[5], [7]], [[6], [8]]]


def test_methods_that_do_not_use_features_say_so():
    rng = np.random.default_rng(0)
    rows = {"round": range(40), "arm": [0, 1] * 20, "reward": rng.normal(size=40)}
    rows |= {"x_a": range(40), "x_b": range(40)}
    note = "The features x_a, x_b are not used."
    (said,) = (x for x in db.fit(rows, n_states=1, starts=1, iterations=2).warnings if "x_a" in x)
    assert said == "The features x_a, x_b are not used: add regression(…)."
    assert as_table(rows).notes == (note,)
    assert as_log(rows).unused_features == (note,)
    assert as_log(PLAIN).unused_features == ()


CHANCE = "give a probability above 0 and at most 1, or leave it empty"
FINITE = "give a finite number"
WRONG = {
    "chance 0": (
        {"chance": [0.5, 0.0, 1]},
        f"row 2: chance 0.0 is out of range; {CHANCE}",
    ),
    "chance -0.5": ({"chance": [-0.5, 0, 1]}, "row 1: chance -0.5 is out of range"),
    "chance 1.01": ({"chance": [0.5, 1, 1.01]}, "row 3: chance 1.01 is out of range"),
    "chance 50": (
        {"chance": np.array([50, 30, 20])},
        "row 1: chance 50 is out of range",
    ),
    "chance 5%": ({"chance": ["0.5", "5%", 1]}, f"row 2: chance '5%' is not a number; {CHANCE}"),
    "chance tiny": ({"chance": ["1e-999", 1, 1]}, "row 1: chance '1e-999' is out of range"),
    "chance inf": ({"chance": [INF, 1, 1]}, f"row 1: chance inf is not a finite number; {CHANCE}"),
    "chance text": ({"chance": ["?", 1, 1]}, "row 1: chance '?' is not a number"),
    "chance False": ({"chance": [False, 1, 1]}, "row 1: chance False is not a number"),
    "chance list": ({"chance": [[1], [1], [1]]}, "row 1: chance [1] is not a number"),
    "feature None": ({"x_a": [1, None, 2]}, f"row 2: feature 'x_a' is missing; {FINITE}"),
    "feature empty": ({"x_a": ["1", "2", " "]}, f"row 3: feature 'x_a' is missing; {FINITE}"),
    "feature NaN": ({"x_a": np.array([1, 2, NAN])}, "row 3: feature 'x_a' is missing"),
    "feature inf": ({"x_a": [1, -INF, 2]}, "row 2: feature 'x_a' -inf is not a finite number"),
    "feature text": ({"x_a": ["hot", 1, 2]}, "row 1: feature 'x_a' 'hot' is not a number"),
    "feature large": (
        {"x_a": [1e200, 1, 2]},
        "row 1: feature 'x_a' 1e+200 is too large; 1e+150 is",
    ),
    "feature date": (
        {"x_a": np.array(["2024-01-31"] * 3, "M8[D]")},
        "row 1: feature 'x_a' datetime",
    ),
    "second": ({"x_a": [1, 2, 3], "x_b": [1, "", 3]}, "row 2: feature 'x_b' is missing"),
    "the first row": ({"x_a": [1, 2, ""], "x_b": [1, "", 3]}, "row 2: feature 'x_b' is missing"),
    "the first column": (
        {"x_a": ["", 2, 3], "chance": [2, 1, 1]},
        "row 1: chance 2 is out of range",
    ),
    "before rounds": ({"x_a": ["", 2, 3], "round": [5, 1, 1]}, "row 1: feature 'x_a' is missing"),
    "escape": ({"x_\x1b": ["", 2, 3]}, "row 1: feature 'x_\\x1b' is missing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_first_bad_row_and_its_column_are_named(case):
    change, start = WRONG[case]
    refused(lambda: as_log(PLAIN | change), f"log {start}")
    try:
        path = put_parquet("log.parquet", PLAIN | change)
    except (pa.ArrowException, TypeError):
        return  # Arrow holds no such column
    refused(lambda: read_log(path), f"log.parquet {start}")


def test_the_line_of_a_file_is_named():
    text = "round,arm,reward,chance,x_heat\n0,a,1,0.5,20\n\n1,b,1,1.5,\n"
    refused(lambda: read_log(put("log.csv", text)), "log.csv line 4: chance '1.5' is out of range")
    text = text.replace("1.5", "")
    refused(lambda: read_log(put("log.csv", text)), "log.csv line 4: feature 'x_heat' is missing")


def test_what_is_wrong_with_their_names_is_said():
    twice = "round,arm,reward,x_a,x_a\n0,a,1,1,1\n"
    refused(lambda: read_log(put("l.csv", twice)), "l.csv: has two columns 'x_a'; give each once")
    twice = "round,arm,reward,chance,chance\n0,a,1,1,1\n"
    refused(
        lambda: read_log(put("l.csv", twice)), "l.csv: has two columns 'chance'; give each once"
    )
    lacking = "log: has no column 'p'; it has round, arm, reward; say --chance-column NAME (in"
    refused(lambda: read_log(PLAIN, columns={"chance": "p"}), lacking)
    refused(lambda: as_log(PLAIN | {"x_a": [1, 2]}), "log: column 'x_a' has 2 rows, 'reward' has 3")
    refused(
        lambda: as_log(PLAIN | {"x_a": 7}), "log: column 'x_a' is 7; give a list or a 1-D array"
    )


def test_features_count_toward_the_size_of_a_table(monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 5)
    assert as_log(PLAIN | {"x_a": [1, 2, 3]}).rows == 3
    refused(lambda: as_log(PLAIN | {"x_a": [1, 2, 3], "x_b": [1, 2, 3]}), "log: is too long")
