"""The report of a structure, in the library and on the command line."""

import dataclasses
import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli.app import app
from driftbandit.cli.fit import _structure
from driftbandit.identify import read_log
from driftbandit.identify.structured.comparison import Comparison
from driftbandit.identify.structured.intervals import Estimate
from driftbandit.identify.structured.report import draw, interval_text, report
from driftbandit.io import model_file
from driftbandit.structure import parse
from terminals import shown

TEXT = "level(group, own) + season(7, harmonics=1)"
GROUPS = {"left": "x", "right": "y", "both": "x"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    lines = ["round,arm,reward"]
    for t in range(90):
        arm = ("left", "right", "both")[rng.integers(3)]
        reward = 5 + np.sin(2 * np.pi * t / 7) + 0.3 * rng.standard_normal()
        lines.append(f"{t},{arm},{reward:.6f}")
    path = tmp_path_factory.mktemp("structured")
    (path / "log.csv").write_text("\n".join(lines) + "\n")
    pairs = [f"{arm},{group}" for arm, group in GROUPS.items()]
    (path / "groups.csv").write_text("\n".join(["arm,group", *pairs]) + "\n")
    return path


@pytest.fixture(scope="module")
def found(folder):
    log = folder / "log.csv"
    return db.fit(log, structure=TEXT, groups=GROUPS, starts=1)


def run(*arguments):
    result = CliRunner().invoke(app, ["fit", *map(str, arguments)], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    return result


def test_the_command_line_gives_what_the_library_gives(folder, found):
    out, groups = folder / "model.json", folder / "groups.csv"
    given = ["--structure", TEXT, "--groups", groups, "--starts", "1", "--out", out, "--json"]
    document = json.loads(run(folder / "log.csv", *given).stdout)
    assert document["structure"] == TEXT
    assert document["state_names"] == list(found.layout.states)
    assert document["model"] == model_file.to_document(found.system)
    assert db.load_model(out) == found.system
    names = [row["name"] for row in document["parameters"]]
    assert names == [
        "level(group, own).drift[x]",
        "level(group, own).drift[y]",
        "season(7, harmonics=1).size",
        "season(7, harmonics=1).change",
        "noise",
    ]
    assert document["comparison"] is None
    assert document["log_likelihood_per_reward"] * 90 == pytest.approx(found.log_likelihood)


def test_the_report_shows_parameters_and_a_panel_for_each_component(folder, found):
    log = read_log(folder / "log.csv")
    made = report(found, log, "log.csv")
    text = shown(made, 100)
    assert "level(group, own).drift[x]" in text
    assert "95% interval" in text
    assert "90, from 90 plays" in text
    assert "prior" in text
    row = made.data["parameters"][-1]  # noise; its prior has a median of 0.7 spreads of the rewards
    spread = np.std(np.concatenate([one.rewards for one in log.sequences]))
    assert row["prior_median"] == pytest.approx(0.7 * spread)
    assert f"{row['prior_median']:.2f}, " in text
    assert "may exclude the estimate" in " ".join(text.split())
    figure = draw(found, log, db.identify.one_step(found, log), "title")
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["title", "level(group, own)", "season(7, harmonics=1)"]


def test_open_intervals_are_words_in_text_and_null_in_json(tmp_path):
    rng = np.random.default_rng(0)
    arms = rng.integers(3, size=150)
    rewards = arms + rng.standard_normal(150)
    lines = [
        f"{t},{arm},{reward}" for t, (arm, reward) in enumerate(zip(arms, rewards, strict=True))
    ]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["round,arm,reward", *lines]) + "\n")
    given = path, "--structure", "constant(arm) + level(arm, memory=free)", "--starts", "1"
    text = run(*given).stdout
    lines = [line for line in text.splitlines() if line.startswith("level(arm, memory=free).")]
    drift, memory = lines
    assert " below " in drift
    assert "any value" in memory
    assert "30, 1.6 to 567" in memory

    def refuse(constant):
        raise AssertionError(constant)

    document = json.loads(run(*given, "--json").stdout, parse_constant=refuse)
    row = document["parameters"][2]
    assert (row["low"], row["high"], row["is_profile"]) == (0.0, None, True)
    assert row["prior_median"] == pytest.approx(30)


def test_intervals_in_words():
    row = Estimate("name", 3.0, 1.0, 2.0, 4.0, "unit")
    shown = {(2.0, 4.0): "2 to 4", (0.0, 4.0): "below 4", (2.0, math.inf): "above 2"}
    shown |= {(0.0, math.inf): "any value", (-1.0, 1.0): "-1 to 1", (math.nan, math.nan): "–"}
    for (low, high), text in shown.items():
        assert interval_text(row._replace(low=low, high=high)) == text


def test_a_comparison_is_shown_with_what_was_chosen(folder, found):
    structures = parse("constant(arm)"), found.structure
    each = np.full(45, -1.5), np.full(45, -1.25)
    comparison = Comparison(structures, (-1.5, -1.25), (0.1, 0.0), 45, each)
    compared = dataclasses.replace(found, comparison=comparison)
    log = read_log(folder / "log.csv")
    text = shown(report(compared, log, "log.csv"), 100)
    assert "Structures, by prediction of 45 later rewards" in text
    (line, _) = [line for line in text.splitlines() if "chosen" in line]
    assert TEXT in line
    assert "-1.2500" in line
    (other,) = [line for line in text.splitlines() if "constant(arm)" in line]
    assert "-0.2500" in other
    near = comparison._replace(errors=(0.3, 0.0), sizes=((2, 2), (5, 4)))  # the simpler one
    text = shown(report(dataclasses.replace(found, comparison=near), log, "log.csv"), 100)
    (line, _) = [line for line in text.splitlines() if "chosen" in line]
    assert "constant(arm)" in line
    assert "-0.2500 ± 0.3000" in line


def test_what_the_command_line_compares():
    assert _structure(None, select=True) == "auto"
    assert _structure(["level"], select=True) == ["level"]
    assert _structure(["level"], select=False) == "level"
    assert _structure(None, select=False) is None
