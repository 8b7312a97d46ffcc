"""Commands on a log with columns of its own."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli.app import app
from driftbandit.identify import one_step, read_log
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
    found = db.fit(read_log("clicks.csv", columns=CALLED), **fast)
    assert list(found.warnings[:2]) == NOTES
    plain = db.fit(clicks, **fast)
    np.testing.assert_array_equal(found.arms, plain.arms)
    assert found.names == ("new", "old")
    arguments = ["--states", 1, "--starts", 1, "--iterations", 4, "--json"]
    document = json.loads(run("fit", "clicks.csv", *OPTIONS, *arguments).stdout)
    assert document["warnings"][:2] == NOTES
    assert document["model"]["arms"] == plain.arms.tolist()
    weeks = json.loads(run("fit", "clicks.csv", *OPTIONS, *arguments, "--every", "1w").stdout)
    assert weeks["warnings"][1] == "Rounds are steps of 7 days since 2024-01-01."
    known = json.loads(run("fit", "clicks.csv", "--arms", "arms.csv", *OPTIONS, *arguments).stdout)
    assert known["model"]["names"] == ["old", "new"]
    refusal = CliRunner().invoke(app, ["fit", "clicks.csv"]).exception
    assert "it has day, variant, clicks, country; say --round-column NAME" in str(refusal)


def test_replay_takes_them(clicks):
    options = {"n_states": 1, "starts": 1, "iterations": 4, "runs": 1}
    read = read_log("clicks.csv", columns=CALLED)
    result = db.replay(read, ["ucb"], chances="uniform", **options)
    plain = db.replay(clicks, ["ucb"], chances="uniform", **options)
    assert list(result.notes[:2]) == NOTES
    assert result.mean("ucb") == plain.mean("ucb")
    arguments = ["--states", 1, "--runs", 1, "--policies", "ucb", "--chances", "uniform", "--json"]
    document = json.loads(run("replay", "clicks.csv", *OPTIONS, *arguments).stdout)
    assert document["notes"][:2] == NOTES
    by_week = read_log("clicks.csv", columns=CALLED, every="week")
    weeks = db.replay(by_week, ["ucb"], **options)
    assert weeks.train_rounds + weeks.test_rounds == 9
    by_day = read_log("clicks.csv", columns=CALLED, every="day")
    predicted = [one_step(plain.fit, log).rewards for log in (read, by_day)]
    np.testing.assert_array_equal(*predicted)
    frame = read_log(pd.read_csv("clicks.csv"), columns=CALLED)
    np.testing.assert_array_equal(as_table(frame).rewards, as_table(clicks).rewards)
    known = ["--arms", "arms.csv", *arguments[2:]]  # which calls the arm variant, too
    document = json.loads(run("replay", "clicks.csv", *OPTIONS, *known).stdout)
    assert document["arms"] == ["old", "new"]
    refusal = CliRunner().invoke(app, ["replay", "french", "--every", "1h"]).exception
    assert str(refusal) == "--every: was given together with french; give only one"


@pytest.fixture
def hours(tmp_path, monkeypatch):
    """Three days around a clock change, twice an hour, as a clock in Berlin shows them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    times = pd.date_range("2024-10-26", periods=146, freq="30min", tz="Europe/Berlin")
    rows = {"when": times.tz_localize(None), "arm": ["a", "b"] * 73}
    rows |= {"reward": rng.normal(size=146), "p": 0.5, "x_rain": 7.5}
    pd.DataFrame(rows).to_csv("hours.csv", index=False)


CLOCK = ["--round-column", "when", "--chance-column", "p", "--every", "1h", "--zone"]


def test_commands_count_the_clock_of_a_zone(hours):
    note = (
        "Rounds are hours since 2024-10-26 00:00:00 on the clock of Europe/Berlin. Clocks went "
        "back once (2024-10-27 03:00 to 02:00): times in between came twice and share rounds."
    )
    notes = [note, "The features x_rain are not used."]
    few = ["--states", 1, "--starts", 1, "--iterations", 2, "--json"]
    fitted = run("fit", "hours.csv", *CLOCK, "Europe/Berlin", *few)
    said = " ".join(json.loads(fitted.stdout)["warnings"])
    assert all(one.removesuffix(".") in said for one in notes)
    columns = {"round": "when", "chance": "p"}
    read = read_log("hours.csv", columns=columns, every="1h", zone="Europe/Berlin")
    assert read.sequences[0].rounds[-1] == 71
    assert read.sequences[0].chances.tolist() == [0.5] * 146
    few = ["--states", 1, "--runs", 1, "--policies", "ucb", "--json"]
    replayed = run("replay", "hours.csv", *CLOCK, "Europe/Berlin", *few)
    said = " ".join(json.loads(replayed.stdout)["notes"])
    assert all(one.removesuffix(".") in said for one in notes)


@pytest.mark.parametrize("command", ["fit", "replay"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*CLOCK, "Berlin"], "zone: 'Berlin' is not a time zone; did you mean Europe/Berlin? give"),
        ([*CLOCK[:-1], "--every", "soon"], "every: is 'soon'; give a number and a unit, as"),
        (
            ["--round-column", "when"],
            "hours.csv line 56: round 2024-10-27 02:00:00 comes after round 2024-10-27 02:30:00; "
            "sort the rows of a sequence by round, or give the --zone of a clock that was set back",
        ),
        ([*CLOCK[:2], "--chance-column", "q"], "hours.csv: has no column 'q'; it has when, arm,"),
        ([*CLOCK[:2], "--chance-column", "x_rain"], "hours.csv line 2: chance '7.5' is out of"),
    ],
)
def test_what_is_wrong_with_a_clock_or_a_column_is_said(hours, command, arguments, message):
    result = CliRunner().invoke(app, [command, "hours.csv", *arguments])
    assert str(result.exception).startswith(message)
