"""Whether arms drift: one finding, which `fit` and `advise` give alike."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli.app import app

NAMES = np.array(["a", "b", "c"])
KINDS = {
    "clicks": lambda rng, levels: (rng.random(len(levels)) < 0.3).astype(float),
    "unequal noise": lambda rng, levels: (
        rng.standard_normal(len(levels)) * np.resize([0.2, 1.0, 3.0], len(levels))
    ),
    "drift": lambda rng, levels: levels + 0.5 * rng.standard_normal(len(levels)),
}


def log_of(kind, rounds=300):
    """Plays in turn; with unequal noise, each arm has its own."""
    rng = np.random.default_rng(7)
    arms = np.arange(rounds) % 3
    levels = np.cumsum(0.15 * rng.standard_normal((rounds, 3)), axis=0)[np.arange(rounds), arms]
    return {"round": np.arange(rounds), "arm": NAMES[arms], "reward": KINDS[kind](rng, levels)}


@pytest.mark.parametrize("kind", KINDS)
def test_fit_and_advise_say_the_same(kind, tmp_path):
    log = log_of(kind)
    rows = zip(log["round"], log["arm"], log["reward"], strict=True)
    path = tmp_path / "log.csv"
    path.write_text("round,arm,reward\n" + "".join(f"{t},{a},{float(x)}\n" for t, a, x in rows))
    said = {}
    for command in ("fit", "advise"):
        result = CliRunner().invoke(app, [command, str(path), "--json"])
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        said[command] = document["drift"]
    assert said["fit"] == said["advise"]
    assert said["fit"]["verdict"] in ({"yes"} if kind == "drift" else {"no", "cannot tell"})


def test_arms_that_differ_in_noise_alone_have_constant_means():
    found = db.fit(log_of("unequal noise"))
    assert str(found.structure) == "constant(arm) + noise(arm, own)"
    assert found.drift.verdict == "no"
