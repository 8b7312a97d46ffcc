"""Adding a policy, a family or a command takes what the page on the architecture promises.

Each test does it in a copy of the sources and runs the copy in a process of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parent.parent / "src"
SIZE = ["--systems", "2", "--runs", "1", "--rounds", "20", "--families"]


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, and a function that runs its commands there."""
    shutil.copytree(SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def run(*words):
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, "-m", "driftbandit", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return tmp_path / "src" / "driftbandit", run


def add_line(path, after, line):
    """Insert one line after the only line that starts with ``after``."""
    lines = path.read_text(encoding="utf-8").splitlines()
    (place,) = (n for n, text in enumerate(lines) if text.startswith(after))
    lines.insert(place + 1, line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


POLICY = '''"""Plays the arm whose reward is the most uncertain."""

from driftbandit.policies.base import Policy
from driftbandit.policies.kalman_ucb import bonus
from driftbandit.policies.optimistic import optimistic


def policy() -> Policy:
    """It has no parameters."""
    return optimistic("curious", lambda cov, model, arms: 100 * bonus(cov, model, arms))
'''


def test_a_policy_is_one_file_and_one_line(copied):
    package, run = copied
    (package / "policies" / "curious.py").write_text(POLICY, encoding="utf-8")
    line = '    "curious": Entry("curious.policy", "Curious", filters=True),'
    add_line(package / "policies" / "__init__.py", "REGISTRY", line)

    shape = ["--family", "gaussian", "--states", "2", "--arms", "3"]
    table = run("simulate", *shape, "--rounds", "20", "--runs", "2", "--policies", "Curious, ucb")
    assert "curious" in table

    rng = np.random.default_rng(0)
    rows = [f"{t},{arm},{rng.normal():.3f}" for t in range(60) for arm in "ab"]
    log = package.parent.parent / "log.csv"
    log.write_text("\n".join(["round,arm,reward", *rows]), encoding="utf-8")
    played = json.loads(run("replay", "log.csv", "--states", "1", "--runs", "1", "--json"))
    assert "curious" in {row["label"] for row in played["rows"]}  # it plays by default

    words = ["reproduce", "leaderboard", "--memories", "10", "--policies", "curious, random"]
    board = json.loads(run(*words, *SIZE, "gaussian", "--out", "board", "--json"))
    assert "curious" in {row["policy"] for row in board["leaderboard"]["rows"]}
    for name in ("report.html", "leaderboard.md"):
        text = (package.parent.parent / "board" / name).read_text(encoding="utf-8")
        assert "Curious" in text, name


def test_a_family_is_one_entry(copied):
    package, run = copied
    line = '    "laplace": lambda rng, shape: rng.laplace(size=shape),'
    add_line(package / "families.py", "FAMILIES", line)
    shape = ["--family", "laplace", "--states", "2", "--arms", "3"]
    assert "laplace" in run("simulate", *shape, "--rounds", "20", "--policies", "kode, random")

    for target in ("table2", "figure1"):  # one study: the figure plays nothing again
        made = json.loads(run("reproduce", target, *SIZE, "laplace", "--out", "paper", "--json"))
        assert "laplace" in json.dumps(made[target])
        page = (package.parent.parent / "paper" / "report.html").read_text(encoding="utf-8")
        assert "laplace" in page.lower()
        assert "not published" in page
    words = ["reproduce", "leaderboard", "--memories", "10", "--policies", "kode"]
    assert "laplace" in run(*words, *SIZE, "laplace", "--out", "board", "--json")


COMMAND = '''"""`driftbandit radius`: how fast the state of a model file forgets."""

from pathlib import Path
from typing import Annotated

import typer

import driftbandit as db
from driftbandit.cli import options
from driftbandit.report import Report, Text

EXAMPLES = "**Example**: driftbandit radius examples/plant.json"


def command(
    model: Annotated[Path, typer.Argument(help="Model file.")], as_json: options.Json = False
) -> None:
    """Print the spectral radius of a model."""
    radius = db.load_model(model).model.spectral_radius
    text = Text(f"The spectral radius is {radius:.3f}.")
    options.show(Report("Radius", "", [text], {"radius": radius}), as_json)
'''


def test_a_command_is_one_file_and_one_line(copied):
    package, run = copied
    (package / "cli" / "radius.py").write_text(COMMAND, encoding="utf-8")
    app = package / "cli" / "app.py"
    before = app.read_text(encoding="utf-8")
    after = before.replace("COMMANDS = (", 'COMMANDS = ("radius", ')
    assert len(before.splitlines()) == len(after.splitlines())
    app.write_text(after, encoding="utf-8")
    assert "radius" in run("--help")
    plant = str(SOURCE.parent / "examples" / "plant.json")
    assert "The spectral radius is 0." in run("radius", plant)
    assert 0 < json.loads(run("radius", plant, "--json"))["radius"] < 1
