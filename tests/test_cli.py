"""The command line as a person and as a program sees it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit import model_file
from driftbandit.cli.app import app

SMALL = ["--systems", "2", "--runs", "2", "--rounds", "40", "--states", "3", "--arms", "4"]
FEW = ["--policies", "idea, kalman_ucb(width=2), kalman_oracle"]


def run(*arguments):
    result = CliRunner().invoke(app, ["simulate", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_equals_the_library():
    document = json.loads(run("--family", "cauchy", *SMALL, *FEW, "--seed", "3", "--json"))
    systems = db.families.sample("cauchy", 2, 3, 4, seed=3)
    policies = ["idea", "kalman_ucb(width=2)", "kalman_oracle"]
    result = db.simulate(systems, None, policies, rounds=40, runs=2, seed=3, stream="cauchy")
    shown = document["studies"]["cauchy"]["policies"]
    for name, row in result.summary().items():
        assert shown[name]["mean"] == row["mean"]
    assert shown["idea"]["normalized_median"] == np.median(result.normalized()["idea"])
    assert document["seed"] == 3


def test_table_of_one_family():
    output = run("--family", "gaussian", *SMALL, *FEW)
    assert "gaussian: regret after 40 rounds" in output
    assert "kalman_ucb" in output
    assert "excess over Oracle" in output


def test_table_of_all_families_fits_80_columns():
    output = run("--family", "all", *SMALL, *FEW)
    for family in db.families.FAMILIES:
        assert family in output
    assert max(map(len, output.splitlines())) <= 80


def test_model_file_and_plot(tmp_path):
    model, arms = db.families.sample("uniform", states=3, arms=4)[0]
    path = tmp_path / "plant.json"
    path.write_text(json.dumps(model_file.to_document(model, arms)))
    plot = tmp_path / "plot.svg"
    output = run("--model", str(path), "--runs", "3", "--rounds", "40", *FEW, "--plot", str(plot))
    assert "plant.json: regret after 40 rounds" in output
    assert "<svg" in plot.read_text()


def test_plot_of_all_families(tmp_path):
    plot = tmp_path / "plot.png"
    run("--family", "all", *SMALL, *FEW, "--plot", str(plot), "--float32")
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--family", "gausian"], "did you mean 'gaussian'"),
        (["--policies", "idae"], "did you mean 'idea'"),
        (["--rounds", "0"], "rounds: is 0"),
        (["--model", "absent.json"], "cannot read absent.json"),
        (["--plot", "figure.doc"], "--plot: is figure.doc"),
        (["--plot", "no/such/folder.png"], "is no folder"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments, words, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from driftbandit.cli import main; main()", "simulate", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_help_teaches():
    for arguments in ([], ["--help"], ["simulate", "--help"]):
        output = CliRunner().invoke(app, arguments).output
        assert "simulate" in output
    assert "Examples" in output


def test_version():
    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == db.__version__
