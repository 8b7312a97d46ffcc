"""What commands show: whole at any width, also without a terminal, and never read as markup."""

import dataclasses
import importlib
import io
import json
import re
import shlex
import subprocess
import sys
import types

import numpy as np
import pytest
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

import driftbandit as db
from driftbandit import cli, errors
from driftbandit.advice import facts
from driftbandit.advice.report import report as advised
from driftbandit.cli import interrupt, options, progress, simulate
from driftbandit.cli.app import COMMANDS, app
from driftbandit.io import model_file
from driftbandit.replays.report import report as replayed
from driftbandit.report import Cell, Facts, Figure, Heading, Points, Report, Table
from driftbandit.report import Text as TextBlock
from driftbandit.report.terminal import show
from driftbandit.result import Result, Timing
from driftbandit.simulation.report import report as simulated

WIDTHS = [60, 80, 120]
LABELS = [
    "kalman_oracle",
    "idea",
    "sliding_window_linucb",
    "kalman_ucb(width=2)",
    "information_directed",
]


def terminal(width):
    return Console(width=width, force_terminal=False, file=io.StringIO(), highlight=False)


def shown(blocks, width):
    """What a terminal of that width shows of a report, or of blocks."""
    console = terminal(width)
    show(blocks, console)
    return console.file.getvalue()


def whole(text, width, words):
    """Every word stands unbroken in a line, nothing is cut, and no line is too long."""
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for word in words:
        assert word in text, f"{word!r} is missing from\n{text}"


def result(systems, runs, seed=0):
    draw = np.random.default_rng(seed)
    regret = {
        label: 1000 * (place + 1) * draw.uniform(0.9, 1.1, (systems, runs))
        for place, label in enumerate(LABELS)
    }
    curves = {label: values[..., None] for label, values in regret.items()}
    return Result(regret, curves, np.array([100]), 100, seed, Timing(0, 0, 1, "cpu"))


@pytest.mark.parametrize("width", WIDTHS)
def test_simulate_of_all_families(width):
    results = {name: result(8, 2) for name in db.families.FAMILIES}
    text = shown(simulated(results), width)
    whole(text, width, [*LABELS[2:], *results, "(Oracle's mean)"])


@pytest.mark.parametrize("width", WIDTHS)
def test_simulate_of_one_model_and_its_comparison(width):
    found = {"plant.json": result(8, 2)}
    whole(shown(simulated(found), width), width, [*LABELS, "median", "IQR"])
    idea = {"plant.json": "idea"}
    text = shown(simulated(found, idea), width).split("run by run")[1]
    whole(text, width, [LABELS[0], *LABELS[2:], "better", "worse", "95 % interval", "wins, %"])
    few = shown(simulated({"plant.json": result(2, 1)}, idea), width).split("run by run")[1]
    whole(few, width, [LABELS[0], *LABELS[2:], "too few to tell"])


def advice():
    names = ["kalman_ucb", "information_directed", "lookahead", "idea"]
    gaps = [
        facts.Difference(name, "kalman_ucb", 0.0123, -0.00123, 0.0321, "no difference seen")
        for name in [*names[1:], "random"]
    ]
    rows = [facts.PolicyRegret(name, 0.165, 0.163, 0.167) for name in [*names, "random"]]
    played = facts.Simulation(64, 200, 0, tuple(rows), tuple(gaps), None)
    arms = tuple(
        facts.Arm(place, True, 0.944, 0.587, 364.0, 2, 1.07, 0.31, None) for place in range(3)
    )
    ends = dict.fromkeys(facts.BONUSES, (0.1, 0.9))
    return facts.Advice(
        facts.SystemFacts(2, 3, 1.0, 0.9, True, True, True),
        arms,
        facts.LowerBound(0.09, 0.001, None, ""),
        facts.Metric(ends, ends, "idea", "idea", ""),
        played,
        facts.Recommendation("kalman_ucb", "Play Kalman-UCB.", ("Why not?",), None, ()),
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_advise(width):
    text = shown(advised(advice(), "plant.json", terminal=True), width)
    titles = ["Kalman-UCB", "IDS", "Lookahead", "IDEA", "Random"]
    whole(text, width, [*titles, "detectable", "no difference seen", "lowest", "verdict"])


@pytest.mark.parametrize("width", WIDTHS)
def test_reproduce_and_leaderboard(width):
    """Cells with notes below them, as Table II has, and many columns, as the leaderboard."""
    headings = ["policy", *db.families.FAMILIES, "excess, ν = 10", "published, ν = 10"]
    rows = [[title, *[Cell("1.48 (1.25)", note="12.4 (9.99)")] * 7] for title in ("IDEA", "KODE")]
    table = Table("A caption that is long enough to be wrapped " * 3, headings, rows)
    text = shown([table], width)
    whole(text, width, ["IDEA", "KODE", *db.families.FAMILIES, "1.48 (1.25)", "12.4 (9.99)"])


@dataclasses.dataclass
class Replayed:
    label: str
    kind: str = "policy"
    mean: float = 0.123456
    low: float = 0.1111
    high: float = 0.1222
    difference: float = 0.01234
    difference_low: float = 0.0111
    difference_high: float = 0.0135
    verdict: str = "better"
    counted: float = 12345.0


class Replays:
    unit, rounds, baseline, logged = "clicks", range(1000), "discounted_linucb", True
    train_rounds, warm, notes, references = 500, True, [], {}
    predictability = types.SimpleNamespace(rewards=0.1, differences=None)
    fit = types.SimpleNamespace(n_states=2)

    def to_document(self):
        return {}

    def rows(self):
        return [Replayed(label) for label in LABELS]


@pytest.mark.parametrize("width", WIDTHS)
def test_replay(width):
    text = shown(replayed(Replays(), "clicks.csv"), width)
    whole(text, width, [*LABELS, "▲", "discounted_linucb", "matched", "12,345"])


def test_names_wider_than_the_terminal_are_wrapped():
    name = "sliding_window_linucb(window=1000000, ridge=0.123456789, delta=0.001)"
    text = shown([Table("title", ["policy", "verdict", "number"], [[name, "worse", "1.23"]])], 40)
    whole(text, 40, ["worse", "1.23"])
    letters = re.sub(r"\s", "", text.replace("worse", "").replace("1.23", ""))
    assert name.replace(" ", "") in letters


def test_a_table_that_fits_stays_one():
    text = shown([Table("title", ["policy", "a", "b"], [["idea", "1", "2"]])], 60)
    assert text.splitlines()[0].strip() == "title"
    assert text.count("policy") == 1


def test_every_kind_of_block():
    blocks = [
        Heading("Found"),
        TextBlock("Run `it`."),
        Points(["one", "`two`"]),
        Points(["beware"], "bad"),
        Facts({"seed": "0"}),
        Table("", ["a", "b"], [["x", 1.5]], [["sum", 1.5]]),
        Figure("never", "drawn", lambda: 1 / 0),
    ]
    lines = [line.rstrip() for line in shown(Report("Title", "A subtitle", blocks), 60).split("\n")]
    start = ["Title", "A subtitle", "", "Found", "Run it.", "· one", "· two", "! beware", "seed  0"]
    assert lines[: len(start)] == start
    assert [line.split() for line in lines if line.startswith(("x", "sum"))] == [
        ["x", "1.5"],
        ["sum", "1.5"],
    ]


# Which of two is better.


@pytest.mark.parametrize(
    ("factors", "runs", "words"),
    [
        ((1.0, 2.0), 20, "idea is lowest, kode second. They are clearly apart"),
        ((1.0, 1.0001), 20, "20 runs do not tell them apart"),
        ((1.0, 2.0), 4, "4 runs cannot tell them apart: give more --runs."),
        ((1.0, 1.0), 20, "Their regret is the same in all 20 runs."),
    ],
)
def test_whether_the_first_two_are_told_apart_is_said(factors, runs, words):
    draw = np.random.default_rng(1)
    noise = 0.0 if factors[0] == factors[1] else 0.1
    regret = {
        name: factor * (100 + noise * 50 * draw.standard_normal(runs))
        for name, factor in zip(("idea", "kode"), factors, strict=True)
    }
    curves = {name: values[:, None] for name, values in regret.items()}
    found = Result(regret, curves, np.array([9]), 9, 0, Timing(0, 0, 1, "cpu"))
    assert words in " ".join(shown(simulated({"plant.json": found}), 80).split())


def test_a_model_file_is_played_often_enough_to_rank_policies():
    assert simulate.default_runs(2, 3, 1000) == 256
    assert simulate.default_runs(60, 60, 1000) == 32


# Progress.


def test_lines_without_a_terminal(monkeypatch):
    bars = progress._Lines(Console(stderr=True))
    done = progress.compiling(bars, 12)
    task = bars.add_task("gaussian", total=1.0, start=False, rate="")
    (line,) = bars.lines()
    assert re.fullmatch(r"compiling, 12 programs, 0:00 so far", line)
    done()
    assert bars.lines() == []  # not started yet
    bars.start_task(task)
    bars.update(task, completed=0.25, rate="1.5 M rounds/s")
    (line,) = bars.lines()
    assert line.startswith("gaussian, 25 %, 1.5 M rounds/s, 0:00 so far")
    bars.update(task, completed=1.0)
    assert bars.lines() == []


def test_lines_are_written_by_themselves(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST", 0.01)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with progress._Lines(Console(stderr=True)) as bars:
        bars.add_task("fit", total=1.0, rate="")
        seen = ""
        while "fit, 0 %" not in seen:
            seen += capsys.readouterr().err
    assert "Traceback" not in seen


def test_progress_says_how_it_is_compiled_and_then_played():
    bars = progress._Lines(Console(stderr=True))
    task = bars.add_task("gaussian", total=1.0, start=False, rate="")
    report = progress.reporter(bars, task, 1000, 5)
    assert [line.split(",")[0] for line in bars.lines()] == ["compiling"]
    report(0.5)
    assert [line.split(",")[0] for line in bars.lines()] == ["gaussian"]


# Names, options, files.


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("IDEA", "idea"),
        ("Idea", "idea"),
        ("Kalman-UCB", "kalman_ucb"),
        ("kalman-ucb", "kalman_ucb"),
        ("Kalman Oracle", "kalman_oracle"),
        ("D-LinUCB", "discounted_linucb"),
        ("SW-UCB(window=50)", "sliding_window_ucb"),
        ("IDS", "information_directed"),
    ],
)
def test_policies_are_read_by_their_titles_too(text, name):
    assert db.policies.make(text).name == name


def test_every_title_is_read():
    for name, title in db.policies.TITLES.items():
        assert db.policies.make(title).name == name


def test_linucb_is_called_oful_here():
    with pytest.raises(errors.InvalidInput, match="'linucb'; did you mean 'oful'"):
        db.policies.make("linucb")


def test_several_families():
    valid = list(db.families.FAMILIES)
    assert options.several("cauchy, Gaussian", "--family", valid) == ["cauchy", "gaussian"]
    assert options.several("all", "--family", valid) == valid
    for text, words in [("cauchy,gausian", "gaussian"), (",", "none"), ("cauchy,cauchy", "twice")]:
        with pytest.raises(errors.InvalidInput, match=words):
            options.several(text, "--family", valid)


def test_the_baseline_is_read_by_its_title_too():
    assert simulate._baseline("IDEA", ["idea", "ucb"]) == "idea"
    chosen = ["kalman_ucb(width=2)", "kalman_ucb(width=4)", "ucb"]
    assert simulate._baseline("Kalman-UCB(width=4)", chosen) == "kalman_ucb(width=4)"
    assert simulate._baseline("best", chosen) == "best"


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_short_help_everywhere(command):
    short, long = (CliRunner().invoke(app, [*command, option]) for option in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.output == long.output
    assert "-h" in short.output


@pytest.mark.parametrize("width", ["60", "80"])
@pytest.mark.parametrize("command", ["simulate", "advise", "replay"])
def test_help_names_every_policy_whole(command, width):
    output = CliRunner().invoke(app, [command, "-h"], env={"COLUMNS": width}).output
    listed = output.split("Policies")[-1].split("Examples")[0]
    assert [name for name in db.policies.available() if name not in listed] == []


@pytest.mark.parametrize("width", ["60", "80"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_cuts_no_word(command, width):
    output = CliRunner().invoke(app, [command, "-h"], env={"COLUMNS": width}).output
    assert re.findall(r"\w\w…", output) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_the_help_can_be_parsed(command):
    module = importlib.import_module(f"driftbandit.cli.{command}")
    lines = re.findall(r"^    driftbandit (.*)$", module.EXAMPLES, re.MULTILINE)
    assert lines
    for line in lines:
        name, *words = shlex.split(line.partition(" > ")[0])
        assert name == command
        get_command(app).commands[name].make_context(name, words)


def test_completion_is_offered():
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output


def test_python_m():
    done = subprocess.run(
        [sys.executable, "-m", "driftbandit", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"{db.__version__}\n")


def test_reproduce_says_that_it_resumes():
    output = " ".join(CliRunner().invoke(app, ["reproduce", "--help"]).output.split())
    assert "run it again to resume" in output


def test_file_names_are_no_markup(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "[red]x[/blue].json"
    folder, _, file = name.rpartition("/")
    (tmp_path / folder).mkdir()
    system = db.families.sample("uniform", 1, 2, 2)[0]
    (tmp_path / name).write_text(json.dumps(model_file.to_document(*system)))
    plot = f"{folder}/[bold].svg"
    monkeypatch.setattr(db, "simulate", lambda *_, **__: result(1, 2))
    words = ["simulate", "--model", name, "--policies", "ucb", "--runs", "2"]
    done = CliRunner().invoke(app, [*words, "--plot", plot], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert f"{file}: regret after 100 rounds" in done.output
    assert plot in done.output


def fails(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["driftbandit", *map(str, words)])
    monkeypatch.setenv("DRIFTBANDIT_CACHE", "off")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert len(error.splitlines()) == 1
    return error


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "--states", "100000"],
        ["simulate", "--systems", "1000000000"],
        ["simulate", "--runs", "4000000000"],
        ["simulate", "--arms", "1000000000"],
        ["reproduce", "table2", "--systems", "1000000000", "--runs", "1000"],
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_tried(words, monkeypatch, capsys):
    def never(*_, **__):
        raise AssertionError("drawn")

    monkeypatch.setattr(db.families, "sample", never)
    monkeypatch.setattr("driftbandit.paper.reproduce", never)
    assert "of memory, and" in fails(monkeypatch, capsys, *words)


def test_what_fits_is_not_refused(monkeypatch):
    monkeypatch.setattr(options, "available_memory", lambda: 1e9)
    options.check_memory("--runs", "ten", 0.9e9)
    with pytest.raises(errors.InvalidInput, match=r"ten need about 1\.8 GiB"):
        options.check_memory("--runs", "ten", 1.93273528e9)
    monkeypatch.setattr(options, "available_memory", lambda: None)
    options.check_memory("--runs", "ten", 1e30)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("Unable to allocate 75 GiB"), "out of memory: Unable to allocate 75 GiB"),
        (RuntimeError("RESOURCE_EXHAUSTED: no\nroom"), "out of memory on the device"),
        (OSError(28, "No space left on device", "a\nb"), "'a\\nb': No space left on device"),
    ],
)
def test_errors_from_anywhere_are_one_line(error, words, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(simulate, "_random", fail)
    assert words in fails(monkeypatch, capsys, "simulate", "--systems", "1")


def test_files_that_cannot_be_written_are_refused_before_the_work(tmp_path, monkeypatch, capsys):
    """Also where permissions say otherwise, as for root on a read-only disk."""
    (tmp_path / "x.svg").mkdir()
    asked = ["simulate", "--systems", "1", "--plot"]
    assert "x.svg, a folder" in fails(monkeypatch, capsys, *asked, tmp_path / "x.svg")
    assert "is not a folder" in fails(monkeypatch, capsys, *asked, tmp_path / "no" / "y.svg")

    def full(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.open", full)
    error = fails(monkeypatch, capsys, *asked, tmp_path / "y.svg")
    assert "y.svg (Read-only file system)" in error


def test_a_written_file_is_noticed(tmp_path):
    from driftbandit.io.atomic import write_whole

    path = tmp_path / "x.json"
    path.write_text("old")
    interrupt._reset()
    options.check_file("--out", path, ".json")
    interrupt.keeps("Nothing was written.")
    assert interrupt._line() == "Nothing was written."
    assert path.read_text() == "old"
    write_whole(path, b"new")
    assert interrupt._line() == f"{path} was written before that."
    interrupt._reset()
