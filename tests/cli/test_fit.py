"""`driftbandit fit`: what it says, what it writes, and that bad input leaves all as it was."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli.app import app
from driftbandit.identify import fit, read_arms, read_log
from driftbandit.io import model_file
from terminals import fails

EXAMPLES = Path(__file__).parents[2] / "examples"
LOG, ARMS = EXAMPLES / "plant_log.csv", EXAMPLES / "plant_arms.csv"
SMALL = ["--starts", "1", "--iterations", "12"]


def run(*arguments):
    result = CliRunner().invoke(app, ["fit", *map(str, arguments)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def found():
    arms = read_arms(ARMS)
    return fit(read_log(LOG, arms.names), arms, starts=1, iterations=12)


def test_the_model_file_is_the_fit(found, tmp_path):
    out, plot = tmp_path / "model.json", tmp_path / "fit.png"
    out.write_text("older")
    output = run(LOG, "--arms", ARMS, *SMALL, "--out", out, "--plot", plot).output
    system = db.load_model(out)
    assert model_file.to_document(system) == model_file.to_document(found.system)
    assert system.names == found.names == ("left", "right", "both")
    assert json.loads(out.read_text())["names"] == ["left", "right", "both"]
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert sorted(tmp_path.iterdir()) == [plot, out]
    assert output.startswith("Model learned from plant_log.csv")
    assert "545, from 600 plays" in output
    assert "! The search for the maximum did not converge" in output
    assert f"next: driftbandit advise {out}" in output
    table = output[: output.index("Model saved")]
    assert max(map(len, table.splitlines())) <= 80
    assert db.Agent(system.model, system.arms).ask().arm in (0, 1, 2)


def test_json_equals_the_library(found):
    result = run(LOG, "--arms", ARMS, *SMALL, "--json")
    document = json.loads(result.stdout)
    assert document["model"] == model_file.to_document(found.system)
    assert document["structure"] == "constant(arm) + factors(2)"
    assert document["reward_std"] == found.model.reward_std
    assert document["log_likelihood_per_reward"] * 545 == pytest.approx(found.log_likelihood)
    assert 0.5 < document["predictable_share"] < 0.8
    assert (document["rewards"], document["rows"], document["sequences"]) == (545, 600, 3)
    assert document["warnings"] == list(found.warnings)
    assert document["comparison"] is None


GOOD = "round,arm,reward\n0,left,1\n1,right,2\n"
LEFT = "arm,x\nleft,1\nright,1\n"
BAD = {
    "unknown arm": (
        GOOD + "2,letf,1\n",
        LEFT,
        "log.csv line 4: arm 'letf' is unknown; did you mean",
    ),
    "text for a reward": (GOOD + "2,left,good\n", None, "line 4: reward 'good' is not a number"),
    "text for a round": (GOOD + "noon,left,1\n", None, "line 4: round 'noon' is not a whole num"),
    "infinite reward": (GOOD + "2,left,inf\n", None, "log.csv line 4: reward 'inf' is not a num"),
    "huge reward": (GOOD + "2,left,1e999\n", None, "log.csv line 4: reward '1e999' is too large"),
    "time runs backwards": (GOOD + "0,left,1\n", None, "line 4: round 0 comes after round 1"),
    "the first of two": (GOOD + "2,left,x\n3,,1\n", None, "log.csv line 4: reward 'x'"),
    "no row": ("round,arm,reward\n", None, "log.csv: holds no rows"),
    "no line": ("", None, "log.csv"),
    "no reward": ("round,arm,reward\n0,left,\n", None, "log: has no reward"),
    "missing column": ("round,arm\n0,left\n", None, "log.csv: has no column 'reward'"),
    "misspelled column": (GOOD.replace("arm", "amr"), None, "'arm'; did you mean 'amr'? it has"),
    "no such log": (None, None, "log.csv: cannot be read (No such file"),
    "arm twice": (GOOD, LEFT + "left,2\n", "arms.csv line 4: arm 'left' is in line 2 too"),
    "text for a feature": (GOOD, "arm,x\nleft,wide\n", "arms.csv line 2: feature 'x' 'wide'"),
    "no features": (GOOD, "arm\nleft\n", "arms.csv: has no features"),
    "structure": (GOOD, None, "structure: unknown name 'diag'", "--structure", "diag"),
    "states": (GOOD, None, "states: is 3; give one of 1..2", "--states", "3"),
    "states beside arms": (GOOD, LEFT, "states: is 2; the arms have 1", "--states", "2"),
    "starts": (GOOD, None, "starts: is 0", "--starts", "0"),
    "plot": (GOOD, None, "--plot: is fit.doc; end it in .png, .svg or .pdf", "--plot", "fit.doc"),
    "toml": (GOOD, None, "--out: is model.toml; end it in .json", "--out", "model.toml"),
    "no folder": (GOOD, None, "--out: no/such is not a folder", "--out", "no/such/model.json"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(name, tmp_path, monkeypatch, capsys):
    log, arms, words, *options = BAD[name]
    monkeypatch.chdir(tmp_path)
    before = {"log.csv": log, "arms.csv": arms, "model.json": "older"}
    before = {path: text for path, text in before.items() if text is not None}
    for path, text in before.items():
        Path(path).write_text(text)
    given = [] if arms is None else ["--arms", "arms.csv"]
    line = ["fit", "log.csv", *given, "--out", "model.json", *options]
    assert words in fails(monkeypatch, capsys, *line)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_help_shows_a_log():
    output = CliRunner().invoke(app, ["fit", "--help"]).output
    assert "sequence,round,arm,reward" in output
    assert "driftbandit fit examples/plant_log.csv" in output


@pytest.mark.parametrize(
    ("step", "options", "line"),
    [
        ("1h", ["--states", "1"], "--season 24   # a daily pattern?"),
        ("1D", ["--zone", "UTC", "--states", "1"], "--zone UTC --season 7   # a weekly pattern?"),
        ("1h", ["--structure", "level(arm)"], None),
        ("15min", [], None),
        (None, [], None),
    ],
)
def test_a_log_with_hours_or_days_is_asked_for_seasons(tmp_path, step, options, line):
    times = range(40) if step is None else pd.date_range("2024-01-01", periods=40, freq=step)
    rewards = np.random.default_rng(0).standard_normal(40)
    log = tmp_path / "log.csv"
    pd.DataFrame({"round": times, "arm": ["a", "b"] * 20, "reward": rewards}).to_csv(log)
    output = run(log, *SMALL, *options).output
    if line is None:
        assert "--season" not in output
    else:
        assert f"next: driftbandit fit {log} {line}" in output
    assert "no seasons" not in output  # the log has none
    if step is not None:
        assert "· Rounds are " in output  # a fact, not a warning


def test_a_log_with_a_season_is_warned_of_at_the_top(tmp_path):
    log, hours = tmp_path / "log.csv", np.arange(200)
    rewards = 3 * np.sin(2 * np.pi * hours / 24) + np.random.default_rng(0).standard_normal(200)
    times = pd.date_range("2024-01-01", periods=200, freq="1h")
    pd.DataFrame({"round": times, "arm": ["a", "b"] * 100, "reward": rewards}).to_csv(log)
    output = run(log, *SMALL, "--states", "1").output
    warned = output.index("! The log has a daily pattern, which repeats every 24 rounds")
    assert warned < output.index("rewards  ")
    assert "Leave --states out to fit a model with a season" in " ".join(output.split())
    assert output.splitlines()[-1].endswith("--season 24   # a daily pattern?")
