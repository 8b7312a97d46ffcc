"""A column is declared in two places: `log_columns.COLUMNS`, and the fields of `Sequence`."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from driftbandit.cli import options
from driftbandit.identify import Log, as_log, read_log
from driftbandit.io import log_columns, log_reader
from driftbandit.io.logs import Sequence
from log_files import refused

NAN = float("nan")
ROWS = {
    "sequence": ["p", "q", "p", "q"],
    "round": [0, 0, 1, 2],
    "arm": ["b", "a", "b", "b"],
    "reward": [0.1, 0.2, 0.3, 0.4],
    "weight": [1, "", "2.5", 4],
}


@dataclasses.dataclass(frozen=True, eq=False)
class Weighed(Sequence):
    """A sequence with one more field."""

    weights: np.ndarray | None = None


@pytest.fixture
def declared(monkeypatch):
    """The two declarations of a column ``weight``."""
    remedy = "give a weight above 0, or leave it empty"
    column = log_columns.Column(
        "How much a row counts.",
        "weights",
        remedy=remedy,
        wrong=lambda values: ~((values > 0) & (values <= 1e6) | np.isnan(values)),
        outside=("is out of range", remedy),
    )
    monkeypatch.setitem(log_columns.COLUMNS, "weight", column)
    monkeypatch.setattr(log_reader, "Sequence", Weighed)


def test_a_new_column_is_read_and_kept(declared, tmp_path):
    path = tmp_path / "log.csv"
    pd.DataFrame(ROWS).rename(columns={"weight": "w"}).to_csv(path, index=False)
    for log in (read_log(ROWS), read_log(path, columns={"weight": "w"})):
        assert log.notes == ()
        np.testing.assert_array_equal(log.sequences[0].weights, [1, 2.5])
        np.testing.assert_array_equal(log.sequences[1].weights, [NAN, 4])
        kept = log.only(np.array([False, True, True, True]))
        np.testing.assert_array_equal(kept.sequences[0].weights, [2.5])
        moved = as_log(log, ("c", "b", "a"))
        np.testing.assert_array_equal(moved.sequences[0].weights, [1, 2.5])
        assert moved.sequences[0].arms.tolist() == [1, 1]
    assert log.source == (str(path), "--weight-column", "w")
    without = {name: column for name, column in ROWS.items() if name != "weight"}
    assert read_log(without).sequences[0].weights is None


def test_a_new_column_is_checked(declared):
    refused(
        lambda: read_log(ROWS | {"weight": [1, 2, -1, 0]}),
        "log row 3: weight -1 is out of range, as in 1 more row; give a weight above 0",
    )
    refused(lambda: read_log(ROWS | {"weight": ["x"] * 4}), "log row 1: weight 'x' is not a number")
    refused(lambda: read_log(ROWS, columns={"weight": "w"}), "log: has no column 'w'")
    made = Weighed([0, 1], [0, 1], [1, 2], weights=[1, None])
    np.testing.assert_array_equal(Log((made,), ("a", "b")).sequences[0].weights, [1, NAN])
    refused(lambda: Weighed([0], [0], [1], weights=[0]), "sequence row 1: weight 0 is out of range")
    refused(lambda: Weighed([0], [0], [1], weights=[1, 2]), "sequence: column 'weights' has 2 rows")


def test_a_new_column_is_an_option_of_every_command_that_reads_a_log(declared):
    import typer

    seen = []
    app = typer.Typer()

    @app.command()
    @options.reads_log
    def command(path: str, reading: options.Reading = options.AS_IT_IS) -> None:
        seen.append(reading)

    result = CliRunner().invoke(app, ["log.csv", "--weight-column", "w", "--every", "1h"])
    assert result.exit_code == 0, result.output
    assert seen == [options.Reading({"weight": "w"}, "1h", None)]
    assert seen[0].options == {"weight_column": "w", "every": "1h"}
