"""The leaderboard's page, of regrets that are drawn and of regrets that are played."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from browser import assert_readable, console_problems, open_page, set_width
from driftbandit import leaderboard, paper, studies
from driftbandit.cli.app import app
from driftbandit.leaderboard import ranking
from driftbandit.leaderboard.problems import Cell
from driftbandit.leaderboard.report import command, figure
from driftbandit.policies import TITLES
from driftbandit.result import ORACLE
from driftbandit.simulation import Options
from leaderboards import drawn, options, outcome, page, whole

ROOT = Path(__file__).parents[2]
POLICIES = "kalman_ucb(width=2), random"
ASKED = [
    *("--systems", "7", "--runs", "2", "--rounds", "20"),
    *("--memories", "10,100", "--policies", POLICIES),
    *("--families", "gaussian,drift_times_4,equal_arms"),
]
PLAYERS = ("reach", "kalman_ucb(width=2)", "random", ORACLE)


def test_who_does_not_play_everywhere_has_no_number_there():
    regret = drawn(idea=0.9)
    del regret["gaussian", "10"]["idea"]
    document = whole(ranking.document(outcome(regret)))
    text = page(document)
    assert "Reach has the lowest regret over all 5 cells" in " ".join(text.split())
    by_memory, by_kind = [line for line in text.splitlines() if line.startswith("| IDEA")][:2]
    assert by_memory.split(" | ")[1] == "–"
    assert by_memory.split(" | ")[3] == "– |"
    assert by_kind.split(" | ")[2] == "–"
    assert figure(document).axes


def test_the_least_possible_regret():
    regret = drawn(least_regret=0.8)
    for key, found in regret.items():
        if key[0] == "equal_arms":
            found["reach"] = 1.25 * found["least_regret"]
        else:
            del found["least_regret"]
    text = page(whole(ranking.document(outcome(regret))))
    words = "low where memory is long: 25% (25–25) at memory 10, 25% (25–25) at memory 100."
    assert words in " ".join(text.split())
    lines = [line for line in text.splitlines() if line.startswith("| equal arms")]
    assert [line.endswith("| 25% (25–25) |") for line in lines] == [True, True]


def test_nobody_has_any_regret():
    """A state that stands still: all tie, and JSON can hold it."""
    regret = {key: {p: 0 * v for p, v in found.items()} for key, found in drawn().items()}
    document = whole(ranking.document(outcome(regret)))
    json.dumps(document, allow_nan=False)
    assert {tuple(row["over_best"]) for row in document["rows"]} == {(1, 1, 1)}
    assert page(document)


def test_one_system_makes_a_page_without_intervals():
    document = whole(ranking.document(outcome(drawn(systems=1))), systems=1)
    json.dumps(document, allow_nan=False)
    assert document["rows"][1]["over_best"][1:] == [None, None]
    assert "These are too few systems" in " ".join(page(document).split())
    assert figure(document).axes


def test_the_picture_shows_the_numbers():
    """A line of each policy in each panel, and one for the best policy without a model."""
    document = whole(ranking.document(outcome(drawn(ucb=3.0))))
    panels = {axis.get_title(): axis for axis in figure(document).axes}
    assert list(panels)[:4] == ["all systems", *document["kinds"]]
    for kind, axis in zip(["all", *document["kinds"]], panels.values(), strict=False):
        lines = {tuple(np.round(line.get_ydata(), 4)) for line in axis.lines}
        for policy in ("reach", "idea", "ucb"):
            rows = [
                row["over_best"][0]
                for row in document["rows"]
                if (row["family"], row["kind"], row["policy"]) == ("all", kind, policy)
                and row["memory"] != "all"
            ]
            assert tuple(np.round(rows, 4)) in lines


def run(*arguments):
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("leaderboard")


@pytest.fixture(scope="module")
def printed(out):
    return run("leaderboard", *ASKED, "--out", str(out)).stdout


@pytest.fixture(scope="module")
def document(printed, out):
    return json.loads((out / "leaderboard.json").read_text())


def test_the_numbers_are_those_of_simulate(document):
    assert document["settings"]["families"] == ["equal_arms", "gaussian", "drift_times_4"]
    for family in document["settings"]["families"]:
        for memory in ("10", "100"):
            systems, assumed = Cell(family, memory=memory).systems(range(7), 10, 10, 0)
            result = db.simulate(
                systems,
                policies=PLAYERS,
                rounds=20,
                runs=2,
                assumed=assumed,
                options=Options(stream=family, checkpoints=1),
            )
            logs = {p: np.log(r.mean(axis=1)).mean() for p, r in result.regret.items()}
            best = min(value for name, value in logs.items() if name != ORACLE)
            for row in document["rows"]:
                if (row["family"], row["memory"]) == (family, memory):
                    expected = np.exp(logs[row["policy"]] - best)
                    assert row["over_best"][0] == pytest.approx(expected, rel=1e-4)


def test_files(document, out):
    names = {path.name for path in out.iterdir()}
    endings = {f"leaderboard.{ending}" for ending in ("json", "md", "png", "svg")}
    assert names == endings | {"report.html", "studies"}
    assert (out / "leaderboard.md").read_text() == page(document)
    html = (out / "report.html").read_text()
    assert '<section id="leaderboard">' in html
    assert "the paper, reproduced" not in html  # nothing of the paper is here
    assert "7 systems × 2 runs × 20 rounds" in html


def test_the_terminal_shows_who_wins(printed):
    lines = printed.splitlines()
    assert max(map(len, lines[: lines.index(next(x for x in lines if "s here" in x))])) <= 100
    for policy in ("reach", "kalman_ucb", "random", ORACLE):
        assert sum(line.startswith(TITLES[policy]) for line in lines) >= 2


def test_the_pages_command_plays_the_same_study(document, out, monkeypatch):
    """Nothing is played again, and every file comes out in the same bytes."""

    def refuse(*_):
        raise AssertionError("played again")

    monkeypatch.setattr(studies.engines, "compute", refuse)
    words = shlex.split(command(document))
    assert words[:3] == ["driftbandit", "reproduce", "leaderboard"]
    files = [out / f"leaderboard.{ending}" for ending in ("json", "md", "png", "svg")]
    before = {path: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    stdout = run(*words[2:], "--json", "--out", str(out)).stdout
    assert json.loads(stdout)["leaderboard"] == document
    assert {path: path.read_bytes() for path in files} == before


def test_an_interrupted_leaderboard_goes_on(document, out, tmp_path):
    asked = options(
        families=("equal_arms", "gaussian", "drift_times_4"),
        memories=("10", "100"),
        policies=("kalman_ucb(width=2)", "random"),
    )
    begun = []

    def engine(stop_after):
        def plays(specification, wanted, is_stored, report):
            for place, chunk in enumerate(wanted):
                if place == stop_after:
                    raise KeyboardInterrupt
                begun.append(chunk.name)
                yield studies.engines.play(specification, chunk)

        return plays

    with pytest.raises(KeyboardInterrupt):
        paper.reproduce(leaderboard.TARGET, asked, tmp_path, engine(2))
    made = paper.reproduce(leaderboard.TARGET, asked, tmp_path, engine(99))
    assert len(begun) == len(set(begun)) == 6
    assert json.loads(json.dumps(made.document)) == document


def test_the_report_reads_well(document, out):
    with open_page(out / "report.html") as driver:
        for width in (1200, 375):
            set_width(driver, width)
            assert_readable(driver)
        assert console_problems(driver) == []


def test_the_documentations_page_is_written_from_its_numbers():
    """By `page`, never by hand: copy leaderboard.md and .png of one run, and keep its numbers."""
    kept = json.loads((ROOT / "benchmarks/results/leaderboard.json").read_text())
    assert (ROOT / "docs/understand/leaderboard.md").read_text() == page(kept)
