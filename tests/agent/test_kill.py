"""Agents that are killed while they save themselves, as processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import killed_agent
from driftbandit import Agent

SCRIPT = Path(killed_agent.__file__)


@pytest.mark.parametrize("times", [250, pytest.param(1000, marks=pytest.mark.nightly)])
def test_killed_while_saving(tmp_path, times):
    """Every time the file is the last one saved or the one being saved, with all of its bytes.

    A killed process cannot clear away what it had half-written beside the file; nobody reads it.
    """
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(times)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # forks want no threads
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    counts = json.loads((tmp_path / "summary.json").read_text())
    assert counts["saving"] >= times / 2  # the others were killed between two saves
    assert counts["old"] > 0
    assert counts["left"] >= counts["torn"] > 0
    assert Agent.load(tmp_path / "agent.json").round == counts["rounds"]
