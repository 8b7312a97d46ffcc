"""What does not fit into memory is refused."""

import pytest

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import options
from terminals import fails


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "--states", "100000"],
        ["simulate", "--systems", "1000000000"],
        ["simulate", "--runs", "4000000000"],
        ["simulate", "--arms", "1000000000"],
        ["reproduce", "table2", "--systems", "1000000000", "--runs", "1000"],
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_tried(words, monkeypatch, capsys):
    def never(*_, **__):
        raise AssertionError("drawn")

    monkeypatch.setattr(db.families, "sample", never)
    monkeypatch.setattr("driftbandit.paper.reproduce", never)
    assert "of memory, and" in fails(monkeypatch, capsys, *words)


def test_what_fits_is_not_refused(monkeypatch):
    monkeypatch.setattr(options, "available_memory", lambda: 1e9)
    options.check_memory("--runs", "ten", 0.9e9)
    with pytest.raises(errors.InvalidInput, match=r"ten need about 1\.8 GiB"):
        options.check_memory("--runs", "ten", 1.93273528e9)
    monkeypatch.setattr(options, "available_memory", lambda: None)
    options.check_memory("--runs", "ten", 1e30)
