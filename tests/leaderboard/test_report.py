"""The leaderboard's page, of regrets that are drawn and of regrets that are played."""

import json
import math
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import driftbandit as db
from browser import assert_readable, console_problems, open_page, set_width
from driftbandit import leaderboard, paper, studies
from driftbandit.cli.app import app
from driftbandit.leaderboard import ranking
from driftbandit.leaderboard.report import command, figure
from driftbandit.policies import TITLES
from driftbandit.result import ORACLE
from driftbandit.simulation import Options
from leaderboards import PLAYED, drawn, options, outcome, page, whole

ROOT = Path(__file__).parents[2]
SMALL = ["--systems", "7", "--runs", "2", "--rounds", "20"]
ASKED = [
    *SMALL,
    *("--settings", ",".join(PLAYED)),
    *("--policies", "kalman_ucb(width=2)"),
    *("--families", "gaussian,bernoulli"),
]
PLAYERS = ("idea", "kalman_ucb(width=2)", "random", ORACLE)


def test_who_sits_out_is_compared_where_it_plays(monkeypatch):
    """Its mean is over the cells it plays; the page says where it does not, and why."""
    absence = ranking.Absence(("wrong_arms",), "it would take a day")
    monkeypatch.setitem(ranking.SITS_OUT, "kode", absence)
    regret = drawn()
    for (_, setting), found in regret.items():
        if setting == "wrong_arms":
            del found["kode"]
    document = whole(ranking.document(outcome(regret, absent=("kode",))))
    overall = {row["policy"]: row for row in document["overall"]}
    assert (overall["kode"]["cells"], overall["idea"]["cells"]) == (4, 6)
    cells = [row["geometric"][0] for row in document["rows"] if row["policy"] == "kode"]
    assert overall["kode"]["geometric"][0] == pytest.approx(math.prod(cells) ** 0.25, rel=1e-5)
    assert document["sits_out"] == {"kode": [["wrong_arms"], "it would take a day"]}
    text = page(document)
    assert "- KODE does not play arms wrong: it would take a day" in text
    [line] = [line for line in text.splitlines() if line.startswith("| KODE")][1:2]
    assert line.endswith("| – |")
    assert figure(document).axes


def test_nobody_has_any_regret():
    """A state that stands still: all tie, and JSON can hold it."""
    regret = {key: {p: 0 * v for p, v in found.items()} for key, found in drawn().items()}
    document = whole(ranking.document(outcome(regret)))
    json.dumps(document, allow_nan=False)
    assert {tuple(row["geometric"]) for row in document["rows"]} == {(1, 1, 1)}
    assert {tuple(row["ratio"]) for row in document["rows"]} == {(1, 1, 1)}
    assert page(document)


def test_one_system_makes_a_page_without_intervals():
    document = whole(ranking.document(outcome(drawn(systems=1))), systems=1)
    json.dumps(document, allow_nan=False)
    assert document["rows"][1]["geometric"][1:] == [None, None]
    assert "These are too few systems" in " ".join(page(document).split())
    assert figure(document).axes


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
    assert document["settings"]["families"] == ["gaussian", "bernoulli"]
    for row in document["rows"]:
        if row["setting"] == "wrong_arms":
            continue
        scale = 10.0 if row["setting"] == "noise10" else 1.0
        result = db.simulate(
            db.families.sample(row["family"], 7, noise_scale=scale),
            policies=PLAYERS,
            rounds=20,
            runs=2,
            options=Options(stream=row["family"], checkpoints=1),
        )
        assert row["regret"] == pytest.approx(result.regret[row["policy"]].mean(), rel=1e-5)


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
    for policy in ("idea", "kalman_ucb", "random", ORACLE):
        assert sum(line.startswith(TITLES[policy]) for line in lines) == 3
    assert "★" in printed


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
        families=("gaussian", "bernoulli"), settings=PLAYED, policies=("kalman_ucb(width=2)",)
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
