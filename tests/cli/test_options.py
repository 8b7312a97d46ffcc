"""Options that several commands share."""

import pytest

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import interrupt, options
from terminals import fails


def test_several_families():
    valid = list(db.families.FAMILIES)
    assert options.several("cauchy, Gaussian", "--family", valid) == ["cauchy", "gaussian"]
    assert options.several("all", "--family", valid) == valid
    for text, words in [("cauchy,gausian", "gaussian"), (",", "none"), ("cauchy,cauchy", "twice")]:
        with pytest.raises(errors.InvalidInput, match=words):
            options.several(text, "--family", valid)


def test_files_that_cannot_be_written_are_refused_before_the_work(tmp_path, monkeypatch, capsys):
    """Also where permissions say otherwise, as for root on a read-only disk."""
    (tmp_path / "x.svg").mkdir()
    asked = ["simulate", "--systems", "1", "--plot"]
    assert "x.svg, a folder" in fails(monkeypatch, capsys, *asked, tmp_path / "x.svg")
    assert "is not a folder" in fails(monkeypatch, capsys, *asked, tmp_path / "no" / "y.svg")

    def full(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.open", full)
    error = fails(monkeypatch, capsys, *asked, tmp_path / "y.svg")
    assert "y.svg (Read-only file system)" in error


def test_a_written_file_is_noticed(tmp_path):
    from driftbandit.io.atomic import write_whole

    path = tmp_path / "x.json"
    path.write_text("old")
    interrupt._reset()
    options.check_file("--out", path, ".json")
    interrupt.keeps("Nothing was written.")
    assert interrupt._line() == "Nothing was written."
    assert path.read_text() == "old"
    write_whole(path, b"new")
    assert interrupt._line() == f"{path} was written before that."
    interrupt._reset()
