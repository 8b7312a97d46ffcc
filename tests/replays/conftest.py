"""Replays that several files look at."""

import pytest

import driftbandit as db
from reward_tables import FAST, drifting


@pytest.fixture(scope="session")
def result():
    return db.replay(
        drifting(600), ["idea", "kalman_ucb", "ucb", "rexp3"], **FAST | {"n_states": 3}
    )
