"""What is shown of a fit, and its one-step predictions."""

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from statsmodels.tsa.statespace.sarimax import SARIMAX

from driftbandit.identify import Selection, fit, one_step, read_arms, read_log
from driftbandit.identify.report import report
from driftbandit.identify.selection import Candidate
from driftbandit.report import figures, terminal
from random_logs import drifting

EXAMPLES = Path(__file__).parents[2] / "examples"
LOG, ARMS = EXAMPLES / "plant_log.csv", EXAMPLES / "plant_arms.csv"


@pytest.fixture(scope="module")
def found():
    arms = read_arms(ARMS)
    return fit(read_log(LOG, arms.names), arms, starts=1, iterations=12)


def test_the_choice_of_states_is_shown(found):
    tried = (Candidate("free", 1), Candidate("free", 2), Candidate("free", 3))
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
    assert ["one", "shared", "factor", "-1.6000", "-0.4717", "0.2000"] in rows
    assert ["2", "shared", "states", "-1.1283", "0.0000", "0.0000", "chosen"] in rows
    assert ["3", "shared", "states", "-", "-", "-"] in rows
    assert chosen.summary() in " ".join(screen.getvalue().split())
    assert "<svg" in figures.svg(made.blocks[-1].draw())


def test_a_short_log_is_predicted_as_well_as_by_an_ar_for_each_arm():
    """100 rewards of four arms: shared states lost 0.2 per reward."""
    log = drifting(200, memory=0.97, noise=0.5)
    seen = one_step(fit({name: column[:100] for name, column in log.items()}), log)
    ours = -0.5 * (np.log(2 * np.pi * seen.stds**2) + seen.surprises**2)[100:].mean()
    theirs = 0.0
    for arm in range(4):
        rewards = np.where(log["arm"] == arm, log["reward"], np.nan)
        options = {"order": (1, 0, 0), "measurement_error": True}
        ones = np.ones((200, 1))
        model = SARIMAX(rewards[:100], ones[:100], **options)
        params = model.fit(disp=0, maxiter=50, warn_convergence=False).params
        theirs += SARIMAX(rewards, ones, **options).smooth(params).llf_obs[100:].sum() / 100
    assert ours > theirs - 0.02
