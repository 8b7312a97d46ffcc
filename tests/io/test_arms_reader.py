"""Arms files: what is read, and how what is wrong with them is said."""

import gzip

import pandas as pd
import pytest

import driftbandit as db
from driftbandit.identify import read_arms
from log_files import (
    CALLED,
    put,
    put_parquet,
    refused,
    write_clicks,
)


def test_arms_are_read():
    text = "x0,arm,size of it\n1,left,-2.5\n0,3.0,1e-3\n"
    for path in (
        put("arms.csv", text),
        put("arms.csv.gz", gzip.compress(text.encode())),
        put_parquet("arms.parquet", {"x0": [1, 0], "arm": ["left", "3"], "s": [-2.5, 1e-3]}),
    ):
        arms = read_arms(path)
        assert arms.names == ("left", "3")
        assert arms.features.tolist() == [[1, -2.5], [0, 1e-3]]
        assert not arms.features.flags.writeable


FINITE = "give a finite number"
ARMS = {
    "twice": ("arm,x\na,1\n\nb,1\na,2", " line 5: arm 'a' is in line 2 too; give each arm one"),
    "twice by number": ("arm,x\n3,1\n3.0,1", " line 3: arm 3 is in line 2 too"),
    "zero": ("arm,x,y\na,1,0\nb,0,-0.0", " line 3: all features of arm 'b' are zero; an arm needs"),
    "text": ("arm,x,y\na,1,one", f" line 2: feature 'y' 'one' is not a number; {FINITE}"),
    "empty": ("arm,x,y\na,,1", f" line 2: feature 'x' is missing; {FINITE}"),
    "nan": ("arm,x\na,nan", f" line 2: feature 'x' 'nan' is not a number; {FINITE}"),
    "inf": ("arm,x\na,inf", " line 2: feature 'x' 'inf' is not a number"),
    "large": ("arm,x\na,1e200", " line 2: feature 'x' '1e200' is too large; 1e+150 is the most"),
    "no label": ("arm,x\n,1", " line 2: arm is missing"),
    "first": ("arm,x\na,1\nb,bad\na,1", " line 3: feature 'x' 'bad'"),
    "ragged": ("arm,x\na,1\nb", " line 3: has 1 field, the header 2"),
    "no arm": ("arms,x\na,1", ": has no column 'arm'; give arm"),
    "no features": ("arm\na", ": has no features; give a column of numbers"),
    "no name": (",arm,x\n0,a,1", ": column 1 has no name; name it, or leave it out"),
    "two columns": ("arm,x,x\na,1,1", ": has two columns 'x'; give each once"),
    "header": ("arm,x\n", ": holds no rows; give at least one"),
    "nothing": ("", ": is empty; begin with a line of column names"),
    "latin-1": (b"arm,x\n\xe9,1", " line 2: arm '\\udce9' is not UTF-8 text"),
}


@pytest.mark.parametrize("case", ARMS)
def test_what_is_wrong_with_an_arms_file_is_said(case):
    content, start = ARMS[case]
    refused(lambda: read_arms(put("arms.csv", content)), f"arms.csv{start}")


def test_bad_rows_of_arms_in_parquet():
    bad = put_parquet("arms.parquet", {"arm": ["a", "b"], "x": [1.0, None]})
    refused(lambda: read_arms(bad), "arms.parquet row 2: feature 'x' is missing")
    twice = put_parquet("arms.parquet", {"arm": [1, 1], "x": [1.0, 2.0]})
    refused(lambda: read_arms(twice), "arms.parquet row 2: arm 1 is in row 1 too")


def test_an_arms_file_may_say_arm_or_what_the_log_says():
    write_clicks()
    named = read_arms("arms.csv", columns=CALLED)
    assert named.names == ("old", "new")
    pd.DataFrame({"arm": ["old"], "size": [1.0]}).to_csv("ours.csv", index=False)
    assert read_arms("ours.csv", columns=CALLED).names == ("old",)
    with pytest.raises(db.InvalidInput, match="has no column 'arm'"):
        read_arms("arms.csv")
