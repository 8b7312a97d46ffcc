"""`driftbandit replay`: what it says and what it refuses."""

import json
import subprocess
import sys

import numpy as np
from typer.testing import CliRunner

from driftbandit.cli.app import app
from driftbandit.replays import replay
from logged_plays import logged
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


def write_log(path, log):
    rows = zip(log.times, log.arms, log.rewards, log.chances, strict=True)
    lines = [f"{t},arm{arm},{float(reward)!r},{float(p)!r}" for t, arm, reward, p in rows]
    path.write_text("\n".join(["round,arm,reward,propensity", *lines]))
    return str(path)


def test_the_command_on_a_log(tmp_path):
    path = write_log(tmp_path / "log.csv", logged(drifting(seed=1), "adaptive"))
    plot = tmp_path / "plot.png"
    small = ["--policies", "idea, sliding_window_ucb", "--states", "1", "--runs", "2"]
    small += ["--chance-column", "propensity"]
    done = CliRunner().invoke(app, ["replay", path, *small, "--plot", str(plot)])
    assert done.exit_code == 0, done.output
    words = " ".join(done.output.split())
    assert "n eff." in words
    assert "test rewards" in words
    assert " test rounds" not in words
    assert "Doubly robust estimates" in words
    assert "Chances: from the log." in words
    assert "! The log seldom plays what these policies name. Effective rounds: idea" in words
    assert max(map(len, done.output.splitlines()[:-1])) <= 80
    assert "…" not in done.output
    assert plot.read_bytes().startswith(b"\x89PNG")
    done = CliRunner().invoke(app, ["replay", path, *small, "--method", "rejection", "--json"])
    document = json.loads(done.stdout)
    assert (document["method"], document["chances"]) == ("rejection", "logged")
    assert document["feedback"] == 0.3 / 4
    done = CliRunner().invoke(app, ["replay", path, *small, "--method", "rejection"])
    words = " ".join(done.stdout.split())
    assert "it sees 7.5% of the rewards. By itself it would see all of them, so its row is" in words
    assert "if one is as high as a policy, that does not speak for the arm." in words
    assert "Rows whose difference may be zero count as equal" in words
    rows = {row["label"]: row for row in document["rows"]}
    assert {"idea", "logging", "always arm0", "random"} < rows.keys()
    assert rows["logging"]["low"] == rows["logging"]["mean"]


def test_a_log_without_chances_needs_a_word(tmp_path):
    path = write(tmp_path / "log.csv", logged_rewards())
    small = ["replay", path, "--policies", "ucb", "--states", "1"]
    done = CliRunner().invoke(app, small)
    assert "is a log without chances; add a column chance" in str(done.exception)
    done = CliRunner().invoke(app, [*small, "--chances", "estimated", "--method", "ips"])
    assert done.exit_code == 0, done.output
    assert "! Chances are the frequencies of the arms" in done.output


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
