"""`driftbandit replay`: what it says and what it refuses."""

import json
import subprocess
import sys

import numpy as np
from typer.testing import CliRunner

from driftbandit.cli.app import app
from driftbandit.replays import replay
from reward_tables import drifting, logged_rewards


def write(path, rewards):
    lines = ["round,arm,reward"]
    for t, arm in np.argwhere(np.isfinite(rewards)):
        lines.append(f"{t},arm{arm},{float(rewards[t, arm])!r}")
    path.write_text("\n".join(lines))
    return str(path)


def test_the_command(tmp_path):
    path = write(tmp_path / "data.csv", drifting(seed=5))
    plot = tmp_path / "plot.svg"
    small = ["--policies", "kode, ucb", "--states", "1", "--runs", "2", "--baseline", "random"]
    done = CliRunner().invoke(app, ["replay", path, *small, "--plot", str(plot)])
    assert done.exit_code == 0, done.output
    assert "Replay of data.csv\nReward per round, over 40 test rounds" in done.output
    assert "the best arm of the training part" in " ".join(done.output.split())
    assert max(map(len, done.output.splitlines()[:-1])) <= 80
    assert "…" not in done.output
    assert "<svg" in plot.read_text()
    done = CliRunner().invoke(app, ["replay", path, *small, "--json"])
    document = json.loads(done.stdout)
    result = replay(path, ["kode", "ucb"], n_states=1, runs=2, baseline="random")
    assert document["rows"] == json.loads(json.dumps(result.to_document()))["rows"]
    assert document["baseline"] == "random"
    assert document["data"] == "data.csv"


def test_the_command_on_a_log(tmp_path):
    path = write(tmp_path / "log.csv", logged_rewards())
    plot = tmp_path / "plot.png"
    small = ["--policies", "idea, ucb", "--states", "1", "--runs", "2", "--plot", str(plot)]
    done = CliRunner().invoke(app, ["replay", path, *small])
    assert done.exit_code == 0, done.output
    assert "matched" in done.output
    assert "…" not in done.output
    assert "! Each round shows one arm" in done.output
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_wrong_input_is_one_line_and_exit_code_2(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("round,arm,reward\n0,a,1\n1,b,zwei\n")
    done = subprocess.run(
        [sys.executable, "-c", "from driftbandit.cli import main; main()", "replay", str(path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "line 3: reward 'zwei' is not a number" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
