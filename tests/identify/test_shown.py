"""How fits and what belongs to them are shown: one short line, the same every time."""

import re

import numpy as np
import pytest

import driftbandit as db
from driftbandit.identify import one_step

RNG = np.random.default_rng(0)
WAVES = np.sin(0.3 * np.arange(60)[:, None] + [0, 2]) + 0.1 * RNG.standard_normal((60, 2))
LOG = {
    "round": range(100),
    "arm": np.array(list("ab"))[RNG.integers(2, size=100)],
    "reward": RNG.standard_normal(100),
}


def fitted(**options):
    return db.fit(LOG, starts=1, **options)


SHOWN = {
    "level": (
        lambda: fitted(structure="level(arm)"),
        "Fit(level(arm), 2 arms: 'a', 'b'; log-likelihood #)",
    ),
    "factors": (
        lambda: fitted(n_states=1),
        "Fit(constant(arm) + factors(1), 2 arms: 'a', 'b'; log-likelihood -147)",
    ),
    "system": (
        lambda: fitted(structure="level(arm)").system,
        "System(2 states, 2 arms: 'a', 'b'; from round 100)",
    ),
    "layout": (
        lambda: fitted(structure="level(arm) + season(4)").layout,
        "Layout(level(arm) + season(4): 5 states, 2 arms: 'a', 'b')",
    ),
    "comparison": (
        lambda: fitted(structure=["level(arm)", "constant(arm)"]).comparison,
        "Comparison(constant(arm), of 2 structures)",
    ),
    "predictions": (
        lambda: one_step(fitted(structure="constant(arm)"), LOG),
        "OneStep(100 rewards; log-likelihood # per reward)",
    ),
    "replay": (
        lambda: db.replay(WAVES, ["ucb", "kode"], n_states=1, starts=1, runs=1),
        "Replay(2 arms, 30 test rounds: ucb, kode)",
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_result_is_shown_in_one_line(name):
    made, expected = SHOWN[name]
    assert re.sub(r"-\d+\.\d+", "#", repr(made())) == expected
