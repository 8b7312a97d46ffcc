"""Logs in files and tables: what is read, and how what is wrong with them is said."""

import csv
import gzip
import re
import subprocess
import sys
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit.errors import InvalidInput
from driftbandit.identify import as_log, read_log
from driftbandit.io import parsing, tables
from log_files import (
    CALLED,
    GOOD,
    csv_text,
    plain,
    put,
    put_parquet,
    refused,
    write_clicks,
)

NAN, INF = float("nan"), float("inf")
HEADER = "sequence,round,arm,reward\n"
ROWS = [("b", [4, 4, 9], [2, 1, 0], [0.25, -1e-7, None]), ("a", [0, 3], [1, 2], [None, 3.0])]


def test_every_form_gives_the_same_log(tmp_path):
    text = csv_text(GOOD)
    dictionary = pa.table(GOOD).set_column(2, "arm", pa.array(GOOD["arm"]).dictionary_encode())
    logs = [
        read_log(put("log.csv", text)),
        read_log(tmp_path / put("LOG.CSV", csv_text(GOOD, "\r\n"))),
        read_log(put("bom.csv", "\ufeff" + text + "\n\n")),
        read_log(put("log.csv.gz", gzip.compress(text.encode()))),
        read_log(put_parquet("log.parquet", GOOD)),
        as_log("log.csv"),
        as_log(tmp_path / "log.parquet"),
        as_log(GOOD),
        as_log({name: np.array(column) for name, column in GOOD.items()}),
        as_log({name: pa.chunked_array([column]) for name, column in GOOD.items()}),
        as_log(GOOD | {"round": np.array(GOOD["round"], float)}),
        as_log(GOOD | {"reward": np.array([0.25, NAN, -1e-7, 3, NAN])}),
        as_log(GOOD | {"reward": ["0.25", "", " -1e-7 ", "3", " "]}),
        as_log(GOOD | {"reward": np.ma.masked_invalid([0.25, NAN, -1e-7, 3, NAN])}),
        as_log(pa.table(GOOD)),
        as_log(dictionary),
        as_log({name: GOOD[name] for name in ("reward", "arm", "round", "sequence")}),
    ]
    for log in logs:
        assert plain(log) == (("down", "left", "up"), ROWS)
        assert (log.rows, log.rewards_seen) == (5, 3)
        for one in log.sequences:
            assert (one.rounds.dtype, one.arms.dtype, one.rewards.dtype) == (int, int, float)
            assert not any(column.flags.writeable for column in (one.rounds, one.arms, one.rewards))
    assert repr(logs[0]) == "Log(sequences=2, rows=5, rewards_seen=3, arms=3)"
    assert as_log(logs[0]) is as_log(logs[0], ("down", "left", "up")) is logs[0]


@pytest.mark.parametrize(
    ("arms", "names", "codes"),
    [
        (["5", "10", "9", "5"], (5, 9, 10), [0, 2, 1, 0]),
        ([5, 10.0, "9.0", 5], (5, 9, 10), [0, 2, 1, 0]),
        ([-3, 0, -10, 0], (-10, -3, 0), [1, 2, 0, 2]),
        (["right", "both", "left", "both"], ("both", "left", "right"), [2, 0, 1, 0]),
        (["9", "10", "x", "x"], ("10", "9", "x"), [1, 0, 2, 2]),
        (["09", "10", "9", "9"], ("09", "10", "9"), [0, 1, 2, 2]),
        (["1" * 30, "2", "2", "2"], ("1" * 30, "2"), [0, 1, 1, 1]),
    ],
)
def test_arms_are_sorted_whole_numbers_by_size(arms, names, codes):
    columns = {"round": [0, 1, 2, 3], "arm": arms, "reward": [1, 2, 3, 4]}
    for log in (as_log(columns), read_log(put("log.csv", csv_text(columns)))):
        assert (log.names, log.sequences[0].arms.tolist()) == (names, codes)
        assert list(map(type, log.names)) == list(map(type, names))


def test_known_names_number_the_arms():
    log = as_log(GOOD, ["down", "never", "left", "up"])
    assert log.names == ("down", "never", "left", "up")
    assert [one.arms.tolist() for one in log.sequences] == [[3, 2, 0], [2, 3]]


def test_without_sequences_there_is_one():
    log = read_log(put("log.csv", "reward,arm,round\n1,x,0\n,x,7\n"))
    assert plain(log) == (("x",), [("", [0, 7], [0, 0], [1.0, None])])


LABELS = st.one_of(
    st.integers(-5, 20),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip),
)
REWARDS = st.none() | st.floats(-1e150, 1e150)
PLAYS = st.lists(st.tuples(LABELS, st.integers(0, 3), LABELS, REWARDS), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(PLAYS)
def test_what_is_written_is_read(plays):
    clock, rows = {}, []
    for sequence, step, arm, reward in plays:
        label = parsing.label_of(sequence)
        clock[label] = clock.get(label, 0) + step
        rows.append((sequence, clock[label], arm, reward))
    columns = dict(
        zip(("sequence", "round", "arm", "reward"), zip(*rows, strict=True), strict=True)
    )
    log = as_log(columns)
    assert [one.label for one in log.sequences] == list(clock)
    labels = {parsing.label_of(row[2]) for row in rows}
    whole = all(re.fullmatch("0|-?[1-9][0-9]*", label) for label in labels)
    assert log.names == tuple(sorted(map(int, labels) if whole else labels))
    seen = {label: [row for row in rows if parsing.label_of(row[0]) == label] for label in clock}
    for one in log.sequences:
        mine = seen[one.label]
        assert one.rounds.tolist() == [row[1] for row in mine]
        assert [str(log.names[arm]) for arm in one.arms] == [
            parsing.label_of(row[2]) for row in mine
        ]
        rewards = np.array([NAN if row[3] is None else row[3] for row in mine])
        assert np.array_equal(one.rewards, rewards, equal_nan=True)
    texts = columns | {name: [str(v) for v in columns[name]] for name in ("sequence", "arm")}
    text = csv_text(columns, quoting=csv.QUOTE_ALL)  # "\r" alone is not quoted unless told
    assert plain(read_log(put("log.csv", text))) == plain(log)
    assert plain(read_log(put_parquet("log.parquet", texts))) == plain(log)


REWARD = "give a finite number, or leave it empty"
ROUND = "give a whole number from 0 to 2^53"
CSV = {
    "reward text": ("a,0,x,1\na,1,x,abc", f"line 3: reward 'abc' is not a number; {REWARD}"),
    "two rewards": (
        "a,0,x,1\na,1,x,abc\na,2,x,?",
        f"line 3: reward 'abc' is not a number, as in 1 more row; {REWARD}",
    ),
    "reward nan": ("a,0,x,nan", f"line 2: reward 'nan' is not a number; {REWARD}"),
    "reward NA": ("a,0,x,NA", f"line 2: reward 'NA' is not a number; {REWARD}"),
    "reward inf": ("a,0,x,-inf", f"line 2: reward '-inf' is not a number; {REWARD}"),
    "reward yes": ("a,0,x,yes", "line 2: reward 'yes' is not a number"),
    "reward 1_0": ("a,0,x,1_0", "line 2: reward '1_0' is not a number"),
    "reward comma": ('a,0,x,"1,5"', "line 2: reward '1,5' is not a number"),
    "reward 1e151": ("a,0,x,1e151", "line 2: reward '1e151' is too large; 1e+150 is the most"),
    "reward 1e999": ("a,0,x,-1e999", "line 2: reward '-1e999' is too large; 1e+150 is the most"),
    "reward escape": ("a,0,x,\x1b[31m", "line 2: reward '\\x1b[31m' is not a number"),
    "reward long": ("a,0,x," + "9x" * 999, "line 2: reward '9x9x9x"),
    "round text": ("a,one,x,1", f"line 2: round 'one' is not a whole number; {ROUND}"),
    "round 2.5": ("a,2.5,x,1", f"line 2: round '2.5' is not a whole number; {ROUND}"),
    "round -1": ("a,0,x,1\na,-1,x,1", f"line 3: round '-1' is negative; {ROUND}"),
    "round 1_0": ("a,1_0,x,1", "line 2: round '1_0' is not a whole number"),
    "round nan": ("a,nan,x,1", "line 2: round 'nan' is not a whole number"),
    "round empty": ("a,,x,1", f"line 2: round is missing; {ROUND}"),
    "round 2^53+1": ("a,9007199254740993,x,1", "line 2: round '9007199254740993' is too large"),
    "round 1e999999999": ("a,1e999999999,x,1", "line 2: round '1e999999999' is too large"),
    "round 5000 digits": (f"a,{'1' * 5000},x,1", "line 2: round '1111"),
    "backwards": (
        "a,5,x,1\nb,1,x,1\na,3,x,1",
        "line 4: round 3 comes after round 5 of sequence 'a'; sort the rows of a sequence by",
    ),
    "first of two": ("a,0,x,1\na,1,x,bad\na,0,x,1", "line 3: reward 'bad'"),
    "backwards first": ("a,1,x,1\na,0,x,1\na,x,x,bad", "line 3: round 0 comes after round 1"),
    "before ragged": ("a,1,x,1\na,1,x,bad\na,1", "line 3: reward 'bad'"),
    "both in a row": ("a,x,y,z", "line 2: round 'x'"),
    "arm empty": ("a,0, ,1", "line 2: arm is missing; give text or a number"),
    "sequence empty": (
        ",0,x,1",
        "line 2: sequence is missing; give text or a number, or leave the",
    ),
    "ragged short": ("a,0,x,1\na,1,x", "line 3: has 3 fields, the header 4; give every line as"),
    "ragged long": ("a,0,x,1,", "line 2: has 5 fields, the header 4"),
    "one field": ("a,0,x,1\n \n", "line 3: has 1 field, the header 4"),
    "after newlines": ('a,0,"x\ny\nz",1\n\na,1,x,bad', "line 6: reward 'bad'"),
    "in newlines": ('a,0,x,1\na,1,"x\ny",bad', "line 3: reward 'bad'"),
    "crlf": ("a,0,x,1\r\na,1,x,bad\r\n", "line 3: reward 'bad'"),
    "open quote": ('a,0,x,1\na,1,"x,2\na,2,x,1', "line 3: is not CSV (unexpected end of data)"),
    "stray quote": ('a,0,"x"y,1', "line 2: is not CSV (',' expected after '\"'); check its quotes"),
    "latin-1 arm": (b"a,0,x,1\na,1,\xe9,1", "line 3: arm '\\udce9' is not UTF-8 text; save the"),
    "latin-1 reward": (b"a,0,x,bad\na,1,x,\xe9", "line 2: reward 'bad'"),
    "latin-1 sequence": (b"\xe9,0,x,1", "line 2: sequence '\\udce9' is not UTF-8 text"),
    "header only": ("", ": holds no rows; give at least one"),
}
HEADERS = {
    "empty": ("", ": is empty; begin with a line of column names"),
    "blank": ("\n\n", ": is empty; begin with a line of column names"),
    "BOM alone": ("\ufeff", ": is empty"),
    "unknown": (
        "round,arm,rewards\n0,x,1",
        ": has no column 'reward'; did you mean 'rewards'? it has round, arm, rewards; say "
        "--reward-column NAME (in Python, read_log(…, columns={'reward': NAME}))",
    ),
    "lacks": (
        "sequence,round\na,0",
        ": has no column 'arm', 'reward'; it has sequence, round; say --arm-column",
    ),
    "theirs": (
        "day,variant,clicks\n1,x,0",
        ": has no column 'round', 'arm', 'reward'; it has day, variant, clicks; say --round-column",
    ),
    "long": (",".join("x" * 99 + str(i) for i in range(99)) + "\n", ": has no column 'round'"),
    "twice": ("round,arm,arm,reward\n0,x,x,1", ": has two columns 'arm'; give each once"),
    "semicolons": (
        "round;arm;reward\n0;x;1",
        " line 1: has its columns separated by ';'; separate",
    ),
    "UTF-16": ("round,arm,reward\n0,x,1".encode("utf-16"), " line 1: is not UTF-8 text"),
    "zeros": (b"\0" * 100, ": has no column 'round', 'arm', 'reward'; it has '\\x00"),
    "open quote": ('"round', " line 1: is not CSV (unexpected end of data); check its quotes"),
}
ROWS_BAD = {
    "reward text": ({"reward": [1, "abc"]}, "2: reward 'abc' is not a number"),
    "reward inf": ({"reward": [1.0, INF]}, f"2: reward inf is not a finite number; {REWARD}"),
    "reward array": ({"reward": np.array([1e200, 1])}, "1: reward 1e+200 is too large"),
    "reward huge int": ({"reward": [10**400, 1]}, "1: reward 1000000"),
    "reward endless": ({"reward": [10**5000, 1]}, "1: reward of thousands of digits is too large"),
    "reward complex": ({"reward": [1j, 1]}, "1: reward 1j is not a number"),
    "reward list": ({"reward": [[1], [2]]}, "1: reward [1] is not a number"),
    "round NaN": ({"round": [0, NAN]}, "2: round is missing"),
    "round None": ({"round": [None, 1]}, "1: round is missing"),
    "round 0.5": ({"round": np.array([0, 0.5])}, "2: round 0.5 is not a whole number"),
    "round inf": ({"round": np.array([0, INF])}, "2: round inf is not a whole number"),
    "round -3": ({"round": np.array([-3, 0])}, "1: round -3 is negative"),
    "round True": ({"round": [False, True]}, "1: round False is not a whole number"),
    "round large": ({"round": np.array([1, 2**53 + 1])}, "2: round 9007199254740993 is too large"),
    "round uint64": ({"round": np.array([1, 2**64 - 1], np.uint64)}, "2: round 18446744073709551"),
    "round back": ({"round": [5, 2]}, "2: round 2 comes after round 5; sort"),
    "arm None": ({"arm": ["x", None]}, "2: arm is missing"),
    "arm True": ({"arm": [1, True]}, "2: arm True is not a label"),
    "arm list": ({"arm": ["x", ["y"]]}, "2: arm ['y'] is not a label"),
    "arm bytes": ({"arm": [b"x", b"y"]}, "1: arm b'x' is not a label"),
    "arm NaN": ({"arm": np.array([1, NAN])}, "2: arm is missing"),
    "arm inf": ({"arm": [1, INF]}, "2: arm inf is not a label"),
    "arm date": ({"arm": np.array(["2020-01-01"] * 2, "M8[D]")}, "1: arm datetime.date(2020"),
    "sequence None": ({"sequence": ["a", None]}, "2: sequence is missing"),
}
SHAPES = {
    "length": ({"arm": ["x"]}, "log: column 'arm' has 1 rows, 'round' has 2; make all columns"),
    "text": ({"arm": "xy"}, "log: column 'arm' is 'xy'; give a list or a 1-D array"),
    "number": ({"arm": 3}, "log: column 'arm' is 3; give a list or a 1-D array"),
    "2-D": ({"reward": np.ones((2, 2))}, "log: column 'reward' is array([[1., 1.], [1., 1.]])"),
}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("case", CSV)
def test_the_first_bad_line_is_named(case, ending):
    content, start = CSV[case]
    content = HEADER.encode() + (content.encode() if isinstance(content, str) else content)
    name = put("log" + ending, gzip.compress(content) if ending == ".csv.gz" else content)
    refused(lambda: read_log(name), f"{name}{'' if start[0] == ':' else ' '}{start}")


@pytest.mark.parametrize("case", HEADERS)
def test_what_is_wrong_with_a_header_is_said(case):
    content, start = HEADERS[case]
    refused(lambda: read_log(put("log.csv", content)), f"log.csv{start}")


@pytest.mark.parametrize("case", ROWS_BAD)
def test_the_first_bad_row_is_named(case):
    change, start = ROWS_BAD[case]
    columns = {"round": [0, 1], "arm": ["x", "y"], "reward": [1.0, 2.0]} | change
    refused(lambda: as_log(columns), f"log row {start}")
    try:
        table = pa.table(columns)
    except (pa.ArrowException, ValueError, OverflowError):
        return  # Arrow holds no such column
    if case not in ("arm date", "round large", "arm True"):  # Arrow makes something else of it
        refused(lambda: as_log(table), f"log row {start}")
        refused(lambda: as_log(put_parquet("log.parquet", columns)), f"log.parquet row {start}")


@pytest.mark.parametrize("case", SHAPES)
def test_columns_of_wrong_shape(case):
    change, start = SHAPES[case]
    refused(lambda: as_log({"round": [0, 1], "arm": ["x", "y"], "reward": [1, 2]} | change), start)


def test_tables_without_rows_or_columns():
    empty = {"round": [], "arm": [], "reward": []}
    refused(lambda: as_log(empty), "log: holds no rows")
    refused(lambda: as_log(pa.table(empty)), "log: holds no rows")
    refused(lambda: read_log(put_parquet("log.parquet", empty)), "log.parquet: holds no rows")
    refused(lambda: as_log({}), "log: has no column 'round', 'arm', 'reward'")
    twice = pa.table([[0], ["x"], ["y"], [1]], names=["round", "arm", "arm", "reward"])
    refused(lambda: as_log(twice), "log: has two columns 'arm'")
    for data in (None, 3, [1, 2], b"log.csv", pa.chunked_array([[1]])):
        refused(lambda data=data: as_log(data), f"log: has type {type(data).__name__}; give a p")


@pytest.mark.parametrize(
    ("names", "start"),
    [
        (
            ["lef", "right"],
            "log row 2: arm 'left' is unknown; did you mean 'lef'? known: lef, right",
        ),
        (["up"], "log row 2: arm 'left' is unknown; known: up"),
        (
            ["up", *range(99)],
            "log row 2: arm 'left' is unknown; known: up, 0, 1, 2, 3, 4, … (100 arms)",
        ),
        ([], "names: are none"),
        ("up", "names: 'up' is not a list of labels"),
        (3, "names: 3 is not a list of labels"),
        (["1", 1.0], "names: hold '1' twice"),
        (["up", None], "names: arm is missing"),
        (["up", True], "names: arm True is not a label"),
    ],
)
def test_arms_that_are_not_known(names, start):
    start = start.replace("row 2", "row 1") if names == ["lef", "right"] else start
    arms = ["left", "up"] if names == ["lef", "right"] else ["up", "left"]
    refused(lambda: as_log({"round": [0, 1], "arm": arms, "reward": [1, 2]}, names), start)


def test_a_log_with_other_names():
    refused(lambda: as_log(as_log(GOOD), ("up", "left")), "log: has the arms down, left, up, names")


def test_importing_loads_neither_arrow_nor_jax():
    put("log.csv", csv_text(GOOD))
    code = (
        "import sys, driftbandit.identify as log; log.read_log('log.csv')\n"
        "assert not {'jax', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rows_that_repeat_another_are_said():
    columns = {
        "round": [0, 0, 0, 1, 1],
        "arm": [0, 1, 0, 0, 0],
        "reward": [0.5, 0.5, 0.5, 0.5, 0.7],
    }
    note = "1 row repeats another one (same round, arm and reward)."
    assert as_log(columns).notes == (note,)
    assert as_log(columns | {"sequence": ["a", "a", "b", "a", "b"]}).notes == ()
    assert as_log(columns | {"reward": [1, 1, 1, 0, 0]}).notes == ()  # clicks are often alike
    assert as_log(columns | {"reward": [None] * 5}).notes == ()
    many = {name: values * 3 for name, values in columns.items()} | {"round": [0] * 15}
    assert as_log(many).notes == ("12 rows repeat another one (same round, arm and reward).",)


def test_reading_warns_of_nothing():
    write_clicks()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_log("clicks.csv", columns=CALLED).rows == 60


def test_bad_rewards_are_counted_in_the_whole_table(monkeypatch):
    monkeypatch.setattr(tables, "_rows_of_block", lambda places: 10)
    columns = {"round": range(50), "arm": ["a"] * 50, "reward": ["1"] * 5 + ["-"] * 45}
    with pytest.raises(InvalidInput, match="row 6: reward '-' is not a number, as in 44 more rows"):
        as_log(columns)
    columns |= {"x_heat": ["1"] * 50, "reward": ["1"] * 50}
    columns["x_heat"][7] = columns["x_heat"][30] = ""
    with pytest.raises(InvalidInput, match="row 8: feature 'x_heat' is missing, as in 1 more row;"):
        as_log(columns)
