"""Commands on a log with columns of its own."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli.app import app
from driftbandit.identify import one_step
from driftbandit.replays import as_table
from log_files import CALLED, write_clicks


@pytest.fixture
def clicks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_clicks()


OPTIONS = ["--round-column", "day", "--arm-column", "variant", "--reward-column", "clicks"]
NOTES = ["Ignored columns: country.", "Rounds are days since 2024-01-01."]


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result


def test_fit_takes_them(clicks):
    fast = {"n_states": 1, "starts": 1, "iterations": 4}
    found = db.fit("clicks.csv", columns=CALLED, **fast)
    assert list(found.warnings[:2]) == NOTES
    plain = db.fit(clicks, **fast)
    np.testing.assert_array_equal(found.arms, plain.arms)
    assert found.names == ("new", "old")
    arguments = ["--states", 1, "--starts", 1, "--iterations", 4, "--json"]
    document = json.loads(run("fit", "clicks.csv", *OPTIONS, *arguments).stdout)
    assert document["warnings"][:2] == NOTES
    assert document["model"]["arms"] == plain.arms.tolist()
    weeks = json.loads(
        run("fit", "clicks.csv", *OPTIONS, *arguments, "--round-step", "week").stdout
    )
    assert weeks["warnings"][1] == "Rounds are steps of 7 days since 2024-01-01."
    known = json.loads(run("fit", "clicks.csv", "--arms", "arms.csv", *OPTIONS, *arguments).stdout)
    assert known["model"]["names"] == ["old", "new"]
    refusal = CliRunner().invoke(app, ["fit", "clicks.csv"]).exception
    assert "it has day, variant, clicks, country; say --round-column NAME" in str(refusal)


def test_replay_takes_them(clicks):
    options = {"n_states": 1, "starts": 1, "iterations": 4, "runs": 1}
    result = db.replay("clicks.csv", ["ucb"], columns=CALLED, chances="uniform", **options)
    plain = db.replay(clicks, ["ucb"], chances="uniform", **options)
    assert list(result.notes[:2]) == NOTES
    assert result.mean("ucb") == plain.mean("ucb")
    arguments = ["--states", 1, "--runs", 1, "--policies", "ucb", "--chances", "uniform", "--json"]
    document = json.loads(run("replay", "clicks.csv", *OPTIONS, *arguments).stdout)
    assert document["notes"][:2] == NOTES
    weeks = db.replay("clicks.csv", ["ucb"], columns=CALLED, step="week", **options)
    assert weeks.train_rounds + weeks.test_rounds == 9
    predicted = [one_step(plain.fit, "clicks.csv", CALLED, step).rewards for step in (None, "day")]
    np.testing.assert_array_equal(*predicted)
    frame = pd.read_csv("clicks.csv")
    np.testing.assert_array_equal(as_table(frame, columns=CALLED).rewards, as_table(clicks).rewards)
