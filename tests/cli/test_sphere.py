"""The command line on the sphere."""

import json

import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli.app import app
from driftbandit.simulation import Options


def test_the_command_line_plays_the_sphere():
    def run(*arguments):
        return CliRunner().invoke(app, ["simulate", "--sphere", "--states", "2", *arguments])

    few = ("--systems", "1", "--runs", "2", "--rounds", "5", "--policies", "kode", "--json")
    shown = json.loads(run(*few).stdout)["studies"]["gaussian"]["policies"]
    model = db.families.sample("gaussian", 1, 2)[0][0]
    result = db.simulate(
        [(model, "sphere")], None, ["kode"], rounds=5, runs=2, options=Options(stream="gaussian")
    )
    assert shown["kode"]["mean"] == pytest.approx(result.regret["kode"].mean(), rel=1e-12)
    assert "was given together with --sphere" in str(run("--arms", "3").exception)
