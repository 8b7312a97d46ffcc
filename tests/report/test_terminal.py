"""Reports in a terminal: whole at any width."""

import dataclasses
import re
import types

import pytest

import driftbandit as db
from driftbandit.advice import Advice, facts, from_system
from driftbandit.advice.finding import Number, Recommendation
from driftbandit.replays.report import report as replayed
from driftbandit.report import Cell, Facts, Figure, Heading, Points, Report, Table
from driftbandit.report import Text as TextBlock
from driftbandit.simulation.report import report as simulated
from driftbandit.structure import parse
from terminals import LABELS, result, shown

WIDTHS = [60, 80, 120]


def whole(text, width, words):
    """Every word stands unbroken in a line, nothing is cut, and no line is too long."""
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for word in words:
        assert word in text, f"{word!r} is missing from\n{text}"


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
    whole(text, width, [LABELS[0], *LABELS[2:], "better", "worse", "95% interval", "wins, %"])
    few = shown(simulated({"plant.json": result(2, 1)}, idea), width).split("run by run")[1]
    whole(few, width, [LABELS[0], *LABELS[2:], "too few to tell"])


def advice():
    names = ["kalman_ucb", "information_directed", "lookahead", "idea"]
    gaps = [
        Number(0.0123, -0.00123, 0.0321, "no difference seen", name)
        for name in [*names[1:], "random"]
    ]
    rows = [Number(0.165, 0.163, 0.167, "", name) for name in [*names, "random"]]
    played = facts.Simulation(64, 200, 0, tuple(rows), tuple(gaps), None)
    arms = tuple(
        facts.Arm(place, True, 0.944, 0.587, 364.0, 2, 1.07, 0.31, None) for place in range(3)
    )
    ends = dict.fromkeys(facts.BONUSES, (0.1, 0.9))
    bound = facts.LowerBound(0.09, 0.001, None, "")
    findings = [
        from_system.on_arms(facts.SystemFacts(2, 3, 1.0, 0.9, True, True, True), arms),
        from_system.on_bound(bound),
        from_system.on_metric(facts.Metric(ends, ends, "idea", "idea", ""), False),
        from_system.on_simulation(played, bound),
    ]
    return Advice(findings, Recommendation("policy", "Play Kalman-UCB.", ["Why not?"]))


@pytest.mark.parametrize("width", WIDTHS)
def test_advise(width):
    text = shown(advice().report("plant.json", terminal=True), width)
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
    effective: float = 12345.0
    trusted: bool = True
    reason: str = ""
    tolerance: float = 2.4686


class Replays:
    unit, rounds, baseline, logged = "clicks", range(1000), "discounted_linucb", True
    train_rounds, warm, notes, references = 500, True, [], {}
    method, chances, feedback = "rejection", "logged", 0.05
    predictability = types.SimpleNamespace(rewards=0.1, differences=None)
    fit = types.SimpleNamespace(n_states=2, structure=parse("level(arm)"))

    def to_document(self):
        return {}

    def rows(self):
        return [Replayed(label) for label in LABELS]


@pytest.mark.parametrize("width", WIDTHS)
def test_replay(width):
    text = shown(replayed(Replays(), "clicks.csv"), width)
    whole(text, width, [*LABELS, "▲", "discounted_linucb", "n eff.", "12,345"])


def test_names_wider_than_the_terminal_are_wrapped():
    name = "sliding_window_linucb(window=1000000, ridge=0.123456789, delta=0.001)"
    text = shown([Table("title", ["policy", "verdict", "number"], [[name, "worse", "1.23"]])], 40)
    whole(text, 40, ["worse", "1.23"])
    letters = re.sub(r"\s", "", text.replace("worse", "").replace("1.23", ""))
    assert name.replace(" ", "") in letters


def test_long_names_are_wrapped_before_a_table_is_split():
    name = "constant(arm) + level(arm, memory=free) + season(24, arm, harmonics=2)"
    rows = [[name, "-2.5199", "-0.0009 ± 0.0083", "chosen"], ["b", "1", "2", ""]]
    text = shown([Table("", ["structure", "score", "difference", ""], rows)], 80)
    assert text.count("structure") == 1
    whole(text, 80, ["-2.5199", "-0.0009 ± 0.0083", "chosen", "memory=free)", "harmonics=2)"])


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
