"""What is shown of a fit."""

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from driftbandit.identify import Selection, fit, read_arms, read_log
from driftbandit.identify.report import report
from driftbandit.identify.selection import Candidate
from driftbandit.report import figures, terminal

EXAMPLES = Path(__file__).parents[2] / "examples"
LOG, ARMS = EXAMPLES / "plant_log.csv", EXAMPLES / "plant_arms.csv"


@pytest.fixture(scope="module")
def found():
    arms = read_arms(ARMS)
    return fit(read_log(LOG, arms.names), arms, starts=1, iterations=12)


def test_the_choice_of_states_is_shown(found):
    tried = (Candidate("constant", 0), Candidate("free", 2), Candidate("free", 3))
    choice = Selection(tried[1], tried, (-1.6, -1.1283, -np.inf), (0.2, 0.0, np.inf))
    chosen = dataclasses.replace(found, selection=choice)
    made = report(chosen, read_log(LOG, found.names), "log.csv")
    summary = made.data
    last = {"model": "3 shared states", "states": 3, "score": None, "error": None}
    assert summary["selection"]["candidates"][2] == last
    assert summary["selection"]["chosen"] == "2 shared states"
    assert summary["summary"] == chosen.summary()
    screen = io.StringIO()
    terminal.show(made, Console(file=screen, width=80))
    rows = [line.split() for line in screen.getvalue().splitlines()]
    assert ["no", "drift", "-1.6000", "-0.4717", "0.2000"] in rows
    assert ["2", "shared", "states", "-1.1283", "0.0000", "0.0000", "chosen"] in rows
    assert ["3", "shared", "states", "-", "-", "-"] in rows
    assert chosen.summary() in " ".join(screen.getvalue().split())
    assert "<svg" in figures.svg(made.blocks[-1].draw())
