"""`driftbandit reproduce`: what it prints, writes and refuses."""

import functools
import json
import re
import sys

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit import leaderboard, paper, theory
from driftbandit.cli.app import app
from driftbandit.paper import readings, table2
from driftbandit.policies import TITLES, idea
from driftbandit.simulation import Options
from published_table import SMALL, TABLE, excess
from terminals import fails


@pytest.fixture
def new_family(monkeypatch):
    """Add a family that the paper does not have."""
    monkeypatch.setitem(db.families.FAMILIES, "laplace", lambda rng, shape: rng.laplace(size=shape))
    return "laplace"


def test_a_new_family_from_the_command(new_family, tmp_path):
    small = ["--systems", "2", "--runs", "1", "--rounds", "1", "--families", new_family]
    result = run("figure2", *small, "--out", str(tmp_path))
    assert new_family in result.stdout
    assert "not published" in (tmp_path / "report.html").read_text()


def run(*arguments):
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the command writes."""
    return tmp_path_factory.mktemp("command")


@pytest.fixture(scope="module")
def printed(folder):
    return run("table2", *SMALL, "--families", "gaussian", "--out", str(folder)).stdout


def test_the_command_prints_the_table(printed, folder):
    lines = printed.splitlines()
    for policy, pairs in TABLE.items():
        (median, iqr), name = pairs[0], TITLES[policy]
        place = next(n for n, line in enumerate(lines) if line.split()[:1] == [name])
        assert re.search(r"-?\d+\.\d\d \(\d+\.\d\d\)$", lines[place].rstrip())
        assert lines[place + 1].strip() == f"{median:.2f} ({iqr:.2f})"
    assert f"Report: {folder / 'report.html'}" in lines
    assert max(map(len, lines[: lines.index(next(x for x in lines if "s here" in x))])) <= 80
    assert {path.name for path in folder.iterdir()} >= {"report.html", "table2.json", "studies"}


def test_the_command_equals_the_library(printed, folder):
    document = json.loads((folder / "table2.json").read_text())
    assert document["settings"]["seed"] == 0
    options = Options(stream="gaussian", checkpoints=1)
    size = {"rounds": 20, "runs": 2, "options": options}
    systems = db.families.sample("gaussian", 4)
    result = db.simulate(systems, policies=table2.POLICIES, **size)
    for row in document["rows"]:
        expected = np.median(excess(result, row["policy"]))
        assert row["median"] == pytest.approx(expected, rel=1e-12)


def test_json_on_stdout_alone_and_a_reading_from_changes(printed, folder):
    """Unit arms: another study in the same folder."""
    small = [*SMALL, "--families", "gaussian", "--out", str(folder)]
    before = json.loads((folder / "table2.json").read_text())
    result = run("table2", *small, "--json", "--reading", "arms=unit")
    document = json.loads(result.stdout)
    assert list(document) == ["table2"]
    assert document["table2"] == json.loads((folder / "table2.json").read_text())
    assert "report.html" in result.stderr
    assert document["table2"]["settings"]["reading"] == "arms=unit"
    studies = {before["settings"]["study"], document["table2"]["settings"]["study"]}
    assert len(studies) == 2
    assert studies <= {path.name for path in (folder / "studies").iterdir()}
    unit = db.families.sample("gaussian", 4, unit_arms=True)
    options = Options(stream="gaussian", checkpoints=1)
    size = {"rounds": 20, "runs": 2, "options": options}
    by_hand = db.simulate(unit, policies=table2.POLICIES, **size)
    for row in document["table2"]["rows"]:
        expected = np.median(excess(by_hand, row["policy"]))
        assert row["median"] == pytest.approx(expected, rel=1e-12)


def test_the_closest_reading_by_name(tmp_path):
    """Of Figure 2, which plays nothing: with its interval and its σ = ‖r‖ the metric is another."""
    small = ["--systems", "2", "--runs", "1", "--rounds", "1", "--families", "uniform"]
    result = run("figure2", *small, "--json", "--reading", "closest", "--out", str(tmp_path))
    document = json.loads(result.stdout)["figure2"]
    settings = document["settings"]
    assert settings["reading"] == "interval=-0.5..0.5, noise=vector, regret=hindsight"
    assert [path.name for path in (tmp_path / "studies").iterdir()] == [settings["study"]]
    plain = paper.Options(paper.Size(2, 1, 1), families=("uniform",))
    assert settings["study"] != paper.TARGETS["figure2"].specification(plain).identity
    drawn = readings.sample(readings.NAMED["closest"], "uniform", 2, n_states=10, n_arms=10, seed=0)
    low, high = theory.metric_interval(*drawn[1], idea.bonus)
    intervals = document["families"]["uniform"]["intervals"]
    assert intervals["idea.printed.low"][1] == pytest.approx(low, rel=1e-9)
    assert intervals["idea.printed.high"][1] == pytest.approx(high, rel=1e-9)


BAD = [
    (["table3"], "target: unknown name 'table3'; did you mean 'table2'?"),
    (["table2", "--families", "gausian"], "--families: unknown name 'gausian'; did you mean"),
    (["table2", "--reading", "clos"], "reading: unknown name 'clos'; did you mean 'closest'?"),
    (["table2", "--reading", "arms=uni"], "reading.arms: unknown name 'uni'"),
    (["table2", "--engine", "rai"], "--engine: unknown name 'rai'; did you mean 'ray'?"),
    (["table2", "--device", "tpu"], "--device: unknown name 'tpu'"),
    (["figure1", "--systems", "0"], "--systems: is 0"),
    (["figure2", "--systems", "-3"], "--systems: is -3"),
    (["figure3", "--runs", "0"], "--runs: is 0"),
    (["all", "--rounds", "-1"], "--rounds: is -1"),
    (["all", "--seed", "-1"], "seed: is -1"),
    (["table2", "--workers", "0"], "workers: is 0"),
    (["table2", "--address", "auto"], "--address: was given without --engine ray"),
]


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Ask for it in a folder of its own, and give the one line that it leaves with."""
    monkeypatch.chdir(tmp_path)
    return functools.partial(fails, monkeypatch, capsys, "reproduce")


def test_a_full_disk_is_one_line(refused, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(sys.modules["driftbandit.studies.target"], "write_whole", full)
    line = refused("figure2", "--systems", "1", "--families", "gaussian")
    assert "figure2.json: No space left on device" in line


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=lambda value: str(value)[:40])
def test_wrong_input_is_one_line_and_writes_nothing(arguments, words, refused, tmp_path):
    target, *wrong = arguments
    assert words in refused(target, *SMALL, *wrong)  # small, in case it is played after all
    assert list(tmp_path.iterdir()) == []


def test_a_missing_gpu_is_noticed_before_anything_is_written(refused, tmp_path):
    if jax.default_backend() == "gpu":
        pytest.skip("JAX finds a GPU here, so none is missing")
    assert "JAX finds no 'gpu' here" in refused("table2", *SMALL, "--device", "gpu")
    assert list(tmp_path.iterdir()) == []


def test_no_family_at_all_is_named(refused):
    assert "--families" in refused("table2", *SMALL, "--families", ",")


def test_a_folder_that_cannot_be_made(refused, tmp_path):
    (tmp_path / "taken").write_text("a file")
    assert refused("figure2", *SMALL, "--out", "taken/reproduced").startswith("error out: ")


def test_help_teaches_reproduce():
    output = CliRunner().invoke(app, ["reproduce", "--help"]).output
    for word in ("Examples", "--reading", "--quick", "--engine", "--resume", "table2"):
        assert word in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["leaderboard", "--memories", "10000"], "--memories: unknown name '10000'; did you mean"),
        (["leaderboard", "--memories", ","], "--memories: ',' names none"),
        (["leaderboard", "--families", "gausian"], "--families: unknown name 'gausian'; did you"),
        (["leaderboard", "--reading", "unit"], "--reading: was given with leaderboard; leave it"),
        (["leaderboard", "--policies", "kod"], "policy: unknown name 'kod'; did you mean 'kode'"),
        (["table2", "--memories", "10"], "--memories: was given with table2; leave it out"),
        (["table2", "--families", "mixed_memories"], "--families: unknown name 'mixed_memories'"),
        (["all", "--policies", "kode"], "--policies: was given with all; leave it out"),
        (["leaderbord"], "target: unknown name 'leaderbord'; did you mean 'leaderboard'?"),
    ],
)
def test_wrong_input_writes_nothing(arguments, words, tmp_path):
    result = CliRunner().invoke(app, ["reproduce", *arguments, *SMALL, "--out", str(tmp_path)])
    assert str(result.exception).startswith(words)
    assert list(tmp_path.iterdir()) == []


def test_all_is_the_paper_alone():
    assert leaderboard.TARGET.name not in paper.TARGETS
    output = CliRunner().invoke(app, ["reproduce", "--help"]).output
    assert "Not in the paper: leaderboard" in " ".join(output.replace("│", " ").split())


def test_reproduce_says_that_it_resumes():
    output = " ".join(CliRunner().invoke(app, ["reproduce", "--help"]).output.split())
    assert "run it again to resume" in output
