"""Tables as files and in memory: what can be read, and what is too long."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from driftbandit import InvalidInput
from driftbandit.identify import as_log, read_arms, read_log
from driftbandit.io import tables
from log_files import GOOD, csv_text, put, put_parquet, refused


def test_a_quoted_field_may_hold_anything():
    text = 'arm,round,reward\n"a\nb",0,1\n\n"say ""hi"", you",1,"2"\n'
    assert read_log(put("log.csv", text)).names == ("a\nb", 'say "hi", you')


@pytest.mark.parametrize("cells", [4, 12, 10**6])
def test_blocks_leave_no_trace(cells, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_CELLS", cells)
    monkeypatch.setattr(tables, "CSV_BLOCK_CELLS", cells)
    rng = np.random.default_rng(0)
    columns = {
        "sequence": rng.integers(0, 40, 200).tolist(),
        "round": np.sort(rng.integers(0, 99, 200)).tolist(),
        "arm": rng.integers(0, 5, 200).tolist(),
        "reward": rng.normal(size=200).tolist(),
    }
    expected = {}
    for sequence, *row in zip(*columns.values(), strict=True):
        expected.setdefault(str(sequence), []).append(row)
    for log in (read_log(put("log.csv", csv_text(columns))), as_log(pa.table(columns))):
        assert [one.label for one in log.sequences] == list(expected)
        for one in log.sequences:
            arms = [log.names[arm] for arm in one.arms]
            rows = zip(one.rounds.tolist(), arms, one.rewards.tolist(), strict=True)
            assert list(map(list, rows)) == expected[one.label]
    columns["round"][150] = 0
    late = columns["sequence"][150]
    for data, place in (
        (put("log.csv", csv_text(columns)), "log.csv line 152"),
        (columns, "log r"),
    ):
        with pytest.raises(InvalidInput, match=f"{place}.*: round 0 comes after .* '{late}'"):
            as_log(data)


def test_text_in_parquet_that_is_not_utf8():
    arms = pa.array([b"x", b"\xe9"]).view(pa.string())
    table = pa.table({"round": [0, 1], "arm": arms, "reward": [1, 2]})
    refused(lambda: as_log(table), "log row 2: arm '\\udce9' is not UTF-8 text")


NO_FILE = "(No such file or directory); give the path of a CSV or Parquet file"


@pytest.mark.parametrize(
    ("path", "start"),
    [
        ("none.csv", f"none.csv: cannot be read {NO_FILE}"),
        ("none.parquet", f"none.parquet: cannot be read {NO_FILE}"),
        ("two\nlines.csv", "'two\\nlines.csv': cannot be read (No such file"),
        ("a\0b.csv", "'a\\x00b.csv': cannot be read ("),  # the rest differs between Pythons
        ("", "'': cannot be read (No such file"),
        (".", ".: is a folder; give the path"),
        ("/dev/zero", "/dev/zero: is not a plain file; give the path"),
        ("log.txt", "log.txt: has an unknown file ending; name it .csv, .csv.gz or"),
        ("bad.parquet", "bad.parquet: cannot be read ("),
        ("cut.parquet", "cut.parquet: cannot be read ("),
        ("worn.parquet", "worn.parquet: cannot be read ("),
        ("empty.parquet", "empty.parquet: cannot be read ("),
        ("bad.csv.gz", "bad.csv.gz: cannot be read (Not a gzipped file"),
        ("cut.csv.gz", "cut.csv.gz: cannot be read (Compressed file ended"),
        ("huge.csv", "huge.csv: has 1,099,511,627,776 bytes; 4,294,967,296 bytes and"),
        ("huge.parquet", "huge.parquet: has 1,099,511,627,776 bytes"),
        ("zeros.csv", "zeros.csv line 1: is not CSV ("),
        ("line.csv", "line.csv line 3: is not CSV (field larger than field limit (131072))"),
    ],
)
@pytest.mark.parametrize("read", [read_log, read_arms])
def test_what_cannot_be_read_is_named(path, start, read):
    put("log.txt", csv_text(GOOD))
    put("bad.parquet", b"PAR1" + b"x" * 100)
    put("empty.parquet", b"")
    whole = Path(put_parquet("good.parquet", GOOD)).read_bytes()
    put("cut.parquet", whole[:-9])
    put("worn.parquet", whole[:8] + b"\xff" * 60 + whole[68:])
    put("bad.csv.gz", csv_text(GOOD))
    columns = "arm,round,reward" if read is read_log else "arm,x,y"
    put("cut.csv.gz", gzip.compress(f"{columns}\nx,1,1\n".encode())[:-9])
    put("line.csv", f"{columns}\nx,1,1\n{'y' * 200_000},1,1")
    for name in ("huge.csv", "huge.parquet", "zeros.csv"):
        with open(name, "wb") as file:
            file.truncate(2**24 if name == "zeros.csv" else 2**40)  # sparse
    refused(lambda: read(path), start)


@pytest.mark.parametrize("path", [None, 3, ["log.csv"]])
def test_what_is_no_path(path):
    refused(lambda: read_log(path), f"log: has type {type(path).__name__}; give a path, a mapping")
    refused(lambda: read_arms(path), f"arms: {path!r} is not a path; give the path of a CSV")


def test_more_rows_or_bytes_than_are_read(monkeypatch):
    put("log.csv", csv_text(GOOD)), put_parquet("log.parquet", GOOD)
    put("log.csv.gz", gzip.compress(csv_text(GOOD).encode() + b"a,9,up,1\n" * 999))
    monkeypatch.setattr(tables, "MOST_ROWS", 4)
    refused(lambda: read_log("log.csv"), "log.csv: is too long; 4,294,967,296 bytes and 100,")
    refused(lambda: read_log("log.parquet"), "log.parquet: has 5 rows; 4,294,967,296 bytes and")
    refused(lambda: as_log(GOOD), "log: is too long")
    put("arms.csv", "arm,x\n" + "".join(f"{i},1\n" for i in range(5)))
    refused(lambda: read_arms("arms.csv"), "arms.csv: is too long")
    monkeypatch.setattr(tables, "MOST_ROWS", 10**8)
    monkeypatch.setattr(tables, "MOST_BYTES", 4096)
    refused(lambda: read_log("log.csv.gz"), "log.csv.gz: cannot be read (unpacked it has more")
