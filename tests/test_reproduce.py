"""The paper's table and figures, reproduced (P21–P24): numbers, files, report and command."""

import dataclasses
import json
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from html import unescape

import jax
import matplotlib.image
import numpy as np
import pytest
from selenium.webdriver.common.by import By
from typer.testing import CliRunner

import driftbandit as db
from browser import assert_readable, console_problems, open_page, set_width
from driftbandit import cli, paper, theory
from driftbandit.cli.app import app
from driftbandit.paper import figure1, figure3, readings, table2
from driftbandit.paper.figure3 import TARGETS as PERTURBED
from driftbandit.paper.perturbation import similarity
from driftbandit.paper.readings import PLAIN, Cell, Reading
from driftbandit.policies import TITLES, idea, kalman_ucb
from driftbandit.report import Points, Table, figures, storable
from driftbandit.simulation import Options
from driftbandit.studies import Outcome, Specification, Summary, engines

SIZE = paper.Size(systems=4, runs=2, rounds=20)
SMALL = ["--systems", "4", "--runs", "2", "--rounds", "20"]
"""One size for all: what is compiled once serves the library and the command."""
FAMILIES = ("gaussian", "exponential")
SEED = 1
NAMES = ["table2", "figure1", "figure2", "figure3"]
PATIENT = ("idea", "kode", "kalman_ucb")

# Copied by hand from the paper's Table II: median and IQR of Gaussian, Cauchy, Uniform, Bernoulli,
# Exponential.
TABLE = {
    "idea": [(1.37, 0.86), (1.82, 8.25), (0.84, 0.43), (0.11, 0.08), (0.08, 0.07)],
    "kode": [(1.41, 0.88), (1.84, 8.33), (0.88, 0.45), (0.11, 0.09), (0.08, 0.07)],
    "kalman_ucb": [(1.52, 0.95), (2.40, 12.44), (0.90, 0.45), (0.44, 0.22), (0.57, 0.26)],
    "oful": [(3.94, 2.99), (7.78, 25.95), (1.79, 1.16), (2.66, 1.40), (3.30, 1.70)],
    "random": [(3.95, 2.99), (7.86, 25.82), (1.82, 1.14), (2.90, 1.51), (3.34, 1.73)],
    "rexp3": [(3.95, 2.98), (7.85, 25.87), (1.82, 1.14), (2.87, 1.51), (3.32, 1.73)],
    "ucb": [(3.84, 3.10), (7.73, 25.47), (1.72, 1.18), (2.71, 1.46), (3.16, 1.70)],
}
COLUMNS = ["gaussian", "cauchy", "uniform", "bernoulli", "exponential"]
CHANGES = {
    ("transition", "kode"): 0.09,
    ("transition", "idea"): 0.18,
    ("transition", "kalman_ucb"): 0.23,
    ("arms", "kode"): 0.47,
    ("arms", "idea"): 0.48,
    ("arms", "kalman_ucb"): 0.40,
}
"""By hand from the paper's text: growth of the median at ν = 10."""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduced")


@pytest.fixture(scope="module")
def options():
    return paper.Options(SIZE, SEED, families=FAMILIES)


@pytest.fixture(scope="module")
def made(out, options):
    """All four, and the report."""
    found = {n: paper.reproduce(target, options, out) for n, target in paper.TARGETS.items()}
    paper.write_report(paper.TARGETS, out)
    return found


@pytest.fixture(scope="module")
def documents(made, out):
    """What the files hold."""
    return {name: json.loads((out / f"{name}.json").read_text()) for name in made}


@pytest.fixture(scope="module")
def by_hand(made):
    """Table II's runs, straight from the engine."""
    return {family: played(family) for family in FAMILIES}


def played(family, assumed=None, policies=table2.POLICIES):
    return db.simulate(
        db.families.sample(family, SIZE.systems, seed=SEED),
        policies=policies,
        assumed=assumed,
        rounds=SIZE.rounds,
        runs=SIZE.runs,
        seed=SEED,
        options=Options(stream=family, checkpoints=1),
    )


def excess(result, policy):
    """(R − R_oracle)/R_oracle run by run."""
    oracle = result.regret["kalman_oracle"]
    return (result.regret[policy] - oracle) / oracle


# Files.


def test_the_targets_are_the_papers():
    """P21, P22, P23, P24, at the paper's size by default."""
    assert list(paper.TARGETS) == NAMES
    assert [paper.TARGETS[name].title for name in NAMES] == [
        "Table II",
        "Figure 1",
        "Figure 2",
        "Figure 3",
    ]
    for name in ("table2", "figure1", "figure3"):
        assert paper.TARGETS[name].full == (1000, 10, 1000)
    assert paper.TARGETS["figure2"].full.systems == 1000


@pytest.mark.parametrize("name", NAMES)
def test_every_target_writes_its_files(name, made, documents, out):
    assert {path.name for path in made[name].files} == {
        f"{name}.{e}" for e in ("json", "png", "svg")
    }
    document = documents[name]
    assert document["target"] == name
    assert document == json.loads(json.dumps(made[name].document))
    settings = document["settings"]
    played = [1, 1] if name == "figure2" else [2, 20]  # the metric plays nothing
    assert [settings[key] for key in ("systems", "seed", "runs", "rounds")] == [4, 1, *played]
    assert settings["families"] == list(FAMILIES)
    assert settings["reading"] == "plain"
    assert (out / "studies" / settings["study"] / "manifest.json").exists()
    assert document["versions"]["driftbandit"] == [db.__version__]


@pytest.mark.parametrize("name", NAMES)
def test_json_is_what_every_reader_takes(name, made, out):
    """No NaN and no Infinity, which JSON does not have."""

    def refuse(word):
        raise AssertionError(word)

    json.loads((out / f"{name}.json").read_text(), parse_constant=refuse)


@pytest.mark.parametrize("name", NAMES)
def test_pictures_open(name, made, out):
    pixels = matplotlib.image.imread(out / f"{name}.png")
    height, width = pixels.shape[:2]
    assert min(height, width) > 300
    assert np.ptp(pixels[..., :3]) > 0.5
    drawing = ElementTree.parse(out / f"{name}.svg").getroot()
    assert drawing.tag.endswith("svg")
    _, _, wide, high = map(float, drawing.get("viewBox").split())
    assert wide / high == pytest.approx(width / height, rel=0.02)
    assert len(list(drawing.iter())) > 100


def test_the_report_has_a_section_for_each(made, out):
    html = (out / "report.html").read_text()
    found = re.findall(r'<section id="(\w+)">', html)
    assert found == ["about", *NAMES, "settings"]
    assert html.count("<img ") == len(NAMES)
    assert html.count("<table ") == len(NAMES) + 2  # Figure 3 has two, the summary one
    assert "4 systems × 2 runs × 20 rounds" in html


def test_the_report_starts_with_a_verdict_on_each(made, out):
    html = (out / "report.html").read_text()
    top = html[html.index('<section id="about">') : html.index('<section id="table2">')]
    top = unescape(top)
    for name, target in paper.TARGETS.items():
        short = target.summary(made[name].document)
        assert re.search(r"reproduced?: \d+ of \d+$", short.verdict)
        row = top[top.index(target.title) :]
        row = row[: row.index("</tr>")]
        assert row.index(short.verdict) < row.index(short.sentence)
    assert "of 6 published growths of the median regret" in top


def test_a_verdict_counts_what_came_out():
    assert Summary.counted(0, 6, "medians") == (
        "did not reproduce: 0 of 6",
        "0 of 6 medians.",
        "bad",
    )
    assert Summary.counted(2, 6, "medians").verdict == "partly reproduced: 2 of 6"
    assert Summary.counted(6, 6, "medians")[::2] == ("reproduced: 6 of 6", "good")


def test_a_report_of_one_target(made, out, tmp_path):
    for ending in ("json", "svg"):
        shutil.copy(out / f"figure1.{ending}", tmp_path)
    html = paper.write_report(paper.TARGETS, tmp_path).read_text()
    assert re.findall(r'<section id="(\w+)">', html) == ["about", "figure1", "settings"]


@pytest.mark.parametrize("text", ["{", "", "3", "[]", "{}", '{"rows": []}', "\xff"])
def test_what_cannot_be_read_is_named_and_leaves_the_rest(text, made, out, tmp_path):
    """Another version's file, or a damaged one, costs its own section alone."""
    (tmp_path / "table2.json").write_text(text, encoding="latin-1")
    shutil.copy(out / "figure1.json", tmp_path)
    html = paper.write_report(paper.TARGETS, tmp_path).read_text()
    assert "<code>table2.json</code> could not be read" in html
    assert html.count("data:image/svg+xml") == 1


def test_again_plays_nothing_and_writes_the_same_bytes(made, options, out, monkeypatch):
    """A finished study answers from its folder, whoever asks."""

    def refuse(*_):
        raise AssertionError("played again")

    monkeypatch.setattr(engines, "compute", refuse)
    files = [path for part in made.values() for path in part.files]
    files.append(out / "report.html")
    before = {path: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    for target in paper.TARGETS.values():
        paper.reproduce(target, options, out)
    paper.write_report(paper.TARGETS, out)
    for path in files:
        assert path.read_bytes() == before[path], path.name


def test_another_seed_or_reading_is_another_study(options):
    specification = paper.TARGETS["table2"].specification
    others = [
        options,
        paper.Options(SIZE, SEED + 1, families=FAMILIES),
        paper.Options(SIZE, SEED, FAMILIES, reading=Reading(arms="unit")),
        paper.Options(SIZE, SEED, families=FAMILIES, dtype="float32"),
    ]
    assert len({specification(other).identity for other in others}) == len(others)


# Numbers.


def test_P21_published_values():
    """P21, P24: all 35 pairs of the table, and the six percentages of Figure 3's text."""
    for policy, pairs in TABLE.items():
        for family, pair in zip(COLUMNS, pairs, strict=True):
            assert table2.PUBLISHED[family][policy] == pair, (family, policy)
    assert list(table2.PUBLISHED) == COLUMNS
    assert all(set(cells) == set(TABLE) for cells in table2.PUBLISHED.values())
    flat = {(w, p): change for w, row in figure3.PUBLISHED.items() for p, change in row.items()}
    assert flat == CHANGES


def test_P21_rows_of_table_ii(documents):
    """P21: the keys others read, and the published values beside every policy that has them."""
    rows = documents["table2"]["rows"]
    asked = {"family", "policy", "median", "iqr", "runs", "published_median", "published_iqr"}
    assert all(asked <= set(row) for row in rows)
    learners = {*TABLE, "sliding_window_ucb"}  # described, not in the printed table
    cells = [(row["family"], row["policy"]) for row in rows]
    assert len(set(cells)) == len(cells)
    assert set(cells) == {(family, policy) for family in FAMILIES for policy in learners}
    for row in rows:
        known = (None, None)
        if row["policy"] in TABLE:
            known = TABLE[row["policy"]][COLUMNS.index(row["family"])]
        assert (row["published_median"], row["published_iqr"]) == known


def test_P21_medians_of_table_ii(documents, by_hand):
    """P21: median and IQR over all runs of the excess, recomputed from `simulate`."""
    for row in documents["table2"]["rows"]:
        values = np.sort(excess(by_hand[row["family"]], row["policy"]).ravel())
        assert row["runs"] == values.size == 8
        assert row["median"] == pytest.approx((values[3] + values[4]) / 2, rel=1e-12)
        low = 0.25 * values[1] + 0.75 * values[2]
        high = 0.75 * values[5] + 0.25 * values[6]
        assert row["iqr"] == pytest.approx(high - low, rel=1e-12)
        assert row["quartiles"] == pytest.approx([low, high], rel=1e-12)
        assert row["median_low"] <= row["median"] <= row["median_high"]


def test_P22_figure_1_is_drawn_from_table_iis_runs(documents, by_hand):
    """P22: per system, means of runs; per run, the paired differences."""
    settings = [documents[name]["settings"]["study"] for name in ("table2", "figure1")]
    assert settings[0] == settings[1]
    assert list(documents["figure1"]["families"]) == list(FAMILIES)
    for family, found in documents["figure1"]["families"].items():
        regret = by_hand[family].regret
        oracle = regret["kalman_oracle"].mean(axis=1)
        for policy in ("idea", "kalman_ucb"):
            expected = (regret[policy].mean(axis=1) - oracle) / oracle
            assert found[policy] == pytest.approx(expected.tolist(), rel=1e-9)
        mine, theirs = (excess(by_hand[family], p) for p in ("idea", "kalman_ucb"))
        assert found["median_difference"] == pytest.approx(np.median(mine - theirs), rel=1e-9)
        wins = np.mean((mine < theirs) + 0.5 * (mine == theirs))
        assert found["win_rate"] == pytest.approx(wins)
        won = [a < b for a, b in zip(found["idea"], found["kalman_ucb"], strict=True)]
        assert found["systems_won"] == sum(won) / SIZE.systems
        assert found["low"] <= found["median_difference"] <= found["high"]


def test_P22_figure_1_shows_the_diagonal(documents):
    """P22: log axes of one range, one dot per system, Kalman-UCB's upward, a dashed diagonal."""
    drawing = figure1.figure(documents["figure1"])
    for axis, family in zip(drawing.axes, FAMILIES, strict=False):
        assert axis.get_title() == family
        assert axis.get_xscale() == axis.get_yscale() == "log"
        assert axis.get_xlim() == axis.get_ylim()
        found = documents["figure1"]["families"][family]
        dots = 100 * np.transpose([found["idea"], found["kalman_ucb"]])
        np.testing.assert_allclose(axis.collections[0].get_offsets(), dots)
        [line] = axis.get_lines()
        assert line.get_linestyle() == "--"
        assert np.array_equal(*line.get_data())


def test_P23_figure_2_holds_the_metrics_intervals(documents):
    """P17, P23: of a system what `theory.metric_interval` says of it, printed and squared."""
    bonuses = {"idea": idea.bonus, "kalman_ucb": kalman_ucb.bonus}
    for family, found in documents["figure2"]["families"].items():
        intervals = found["intervals"]
        assert len(intervals) == 8
        for number, (model, arms) in enumerate(db.families.sample(family, 2, seed=SEED)):
            for policy, bonus in bonuses.items():
                for form, squared in (("printed", False), ("squared", True)):
                    interval = theory.metric_interval(model, arms, bonus, squared)
                    ends = [intervals[f"{policy}.{form}.{end}"][number] for end in ("low", "high")]
                    assert ends == pytest.approx(interval, rel=1e-9)
                    assert 0 <= ends[0] <= ends[1]
        for end, share in found["idea_lower"].items():
            pairs = zip(intervals[f"idea.{end}"], intervals[f"kalman_ucb.{end}"], strict=True)
            assert share == sum(mine < theirs for mine, theirs in pairs) / SIZE.systems
    assert list(documents["figure2"]["families"]) == list(FAMILIES)


@pytest.fixture(scope="module")
def perturbed(by_hand):
    """The excess of every cell of Figure 3 at ν = 10 and 0.1, with T⁻¹·T made by hand."""
    found = {}
    for family in FAMILIES:
        for target in PERTURBED:
            for strength in (0.1, 10.0):
                assumed = []
                systems = db.families.sample(family, SIZE.systems, seed=SEED)
                for number, (model, arms) in enumerate(systems):
                    T = similarity(family, SEED, number, 10, strength)
                    inverse = np.linalg.inv(T)
                    G, Q = model.transition, model.process_cov
                    if target == "transition":
                        G = inverse @ G @ T
                    elif target == "arms":
                        arms = inverse @ arms @ T
                    else:
                        Q = inverse @ Q @ T
                        values, vectors = np.linalg.eigh((Q + Q.T) / 2)
                        Q = vectors @ np.diag(values.clip(0)) @ vectors.T
                    assumed.append((db.LGDS(G, Q, model.reward_std), arms))
                result = played(family, assumed, [*PATIENT, "kalman_oracle"])
                for policy in PATIENT:
                    found[family, target, strength, policy] = excess(result, policy).ravel()
    return found


def test_P24_figure_3_recomputed(documents, by_hand, perturbed):
    """P24: quantiles, and the growth of the median over the unperturbed one, pooled and not."""
    rows = documents["figure3"]["rows"]
    cells = {(r["family"], r["perturbed"], r["strength"], r["policy"]): r for r in rows}
    assert len(cells) == len(rows) == 3 * 3 * 3 * 3
    assert documents["figure3"]["quantiles"] == [0.05, 0.25, 0.5, 0.75, 0.95]
    for family in (*FAMILIES, "all families"):
        members = FAMILIES if family == "all families" else (family,)
        for target in PERTURBED:
            for strength in (0.1, 10.0):
                for policy in PATIENT:
                    row = cells[family, target, strength, policy]
                    values = [perturbed[f, target, strength, policy] for f in members]
                    before = np.median([excess(by_hand[f], policy).ravel() for f in members])
                    after = np.quantile(values, documents["figure3"]["quantiles"])
                    assert row["quantiles"] == pytest.approx(after.tolist(), rel=1e-8)
                    assert row["unperturbed_median"] == pytest.approx(before, rel=1e-12)
                    assert row["change"] == pytest.approx(after[2] / before - 1, rel=1e-6)
                    known = CHANGES.get((target, policy)) if strength == 10 else None
                    assert row["published_change"] == known


def test_P24_figure_3_has_three_rows_and_columns(documents):
    """P24: Γ, arms and Q downward, ν = 0.1, 1 and 10 across, three boxes in each."""
    drawing = figure3.figure(documents["figure3"])
    assert len(drawing.axes) == 9
    assert [a.get_title() for a in drawing.axes[:3]] == ["ν = 0.1", "ν = 1", "ν = 10"]
    labels = [axis.get_ylabel() for axis in drawing.axes[::3]]
    assert labels == ["Γ perturbed", "arms perturbed", "Q perturbed"]
    assert all(len(axis.patches) == 3 for axis in drawing.axes)


# Documents of hand-made studies.


def outcome(regret, reading=PLAIN):
    """A finished study in which every family has these regrets, systems × runs by policy."""
    shape = np.shape(next(iter(regret.values())))
    cells = tuple(Cell(family, reading=reading) for family in COLUMNS)
    study = Specification(cells, tuple(regret), shape[0], shape[1], 5)
    columns = {policy: np.ravel(values).astype(float) for policy, values in regret.items()}
    seconds = {"prepare": 0.0, "compile": 0.0, "play": 0.0}
    return Outcome(study, dict.fromkeys(COLUMNS, columns), seconds, {})


def test_a_policy_of_your_own_is_listed_last():
    regret = {"kalman_oracle": [[1.0, 2.0]], "zebra": [[3.0, 3.0]], "ucb": [[2.0, 2.0]]}
    study = outcome({name: values for name, values in regret.items() if name != "zebra"})
    columns = {name: np.ravel(values) for name, values in regret.items()}
    rows = table2.document(study._replace(columns=dict.fromkeys(COLUMNS, columns)))["rows"]
    assert [row["policy"] for row in rows] == ["ucb", "zebra"] * 5
    assert table2.figure({"rows": rows}).axes[0].get_yticklabels()[1].get_text() == "zebra"


@pytest.fixture
def new_family(monkeypatch):
    """Add a family that the paper does not have."""
    monkeypatch.setitem(db.families.FAMILIES, "laplace", lambda rng, shape: rng.laplace(size=shape))
    return "laplace"


def test_a_family_that_the_paper_does_not_have(new_family):
    """Nothing breaks, and no published value is invented."""
    assert paper.Options(SIZE).families == (*COLUMNS, new_family)
    rng = np.random.default_rng(0)
    regret = {policy: rng.uniform(1, 2, (8, 2)) for policy in table2.POLICIES}
    study = outcome(regret)
    cells = (*study.specification.cells, Cell(new_family))
    columns = {**study.columns, new_family: study.columns["gaussian"]}
    specification = dataclasses.replace(study.specification, cells=cells)
    study = study._replace(specification=specification, columns=columns)
    for target, published_items in ((table2, 35), (figure1, 5)):
        stored = storable(target.document(study))
        assert f" of {published_items} " in target.summary(stored).sentence
        blocks = target.blocks(stored)
        [points] = [block.items for block in blocks if isinstance(block, Points)]
        assert points[-1].startswith(f"{new_family}: ")
        assert points[-1].rstrip(".").endswith("not published")
        assert figures.svg(target.figure(stored))
    stored = storable(table2.document(study))
    [table] = [block for block in table2.blocks(stored) if isinstance(block, Table)]
    assert {row[-1].note for row in table.cells} == {"–"}
    assert {row[-1].tone for row in table.cells} == {""}
    only = {"rows": [row for row in stored["rows"] if row["family"] == new_family]}
    assert table2.summary(only).verdict == "not published"
    assert table2.blocks(only)
    assert figures.svg(table2.figure(only))


def test_a_new_family_from_the_command(new_family, tmp_path):
    small = ["--systems", "2", "--runs", "1", "--rounds", "1", "--families", new_family]
    result = run("figure2", *small, "--out", str(tmp_path))
    assert new_family in result.stdout
    assert "not published" in (tmp_path / "report.html").read_text()


def test_P21_medians_over_runs_or_over_systems():
    """Four runs of two systems, worked out by hand."""
    regret = {"kalman_oracle": [[1, 3], [10, 10]], "idea": [[2, 12], [10, 15]]}
    # Runs: 1, 3, 0, 0.5. Systems: (7 − 2)/2 = 2.5, (12.5 − 10)/10 = 0.25.
    rows = table2.document(outcome(regret))["rows"]
    assert [row["family"] for row in rows] == COLUMNS
    for row, known in zip(rows, TABLE["idea"], strict=True):
        assert (row["median"], row["runs"]) == (0.75, 4)
        assert row["iqr"] == pytest.approx(1.5 - 0.375)
        assert (row["published_median"], row["published_iqr"]) == known
    for row in table2.document(outcome(regret, Reading(medians="systems")))["rows"]:
        assert (row["median"], row["runs"]) == (1.375, 4)
        assert row["iqr"] == pytest.approx((2.5 - 0.25) / 2)


@pytest.mark.parametrize(
    ("median", "known", "verdict"),
    [
        (1.0, 1.0, True),
        (1.25, 1.0, True),
        (0.75, 1.0, True),
        (1.26, 1.0, False),
        (0.74, 1.0, False),
        (0.13, 0.11, True),
        (0.15, 0.11, False),
        (0.06, 0.08, True),
        (0.04, 0.08, False),
        (0.25, 0.2, True),
        (0.26, 0.2, False),
        (1.0, None, None),
    ],
)
def test_what_counts_as_met(median, known, verdict):
    """Within 25 % of the published median, or 0.03 where that is below 0.2."""
    assert table2.agrees({"median": median, "published_median": known}) is verdict


def test_the_distance_to_the_published_medians():
    """The mean of |log(mine / theirs)|; rows without a published value do not count.

    A printed 1.00 may be anything from 0.995 to 1.005.
    """
    rows = [
        {"median": 2.0, "published_median": 1.0},
        {"median": 0.5, "published_median": 1.0},
        {"median": 3.0, "published_median": 3.0},
        {"median": 99.0, "published_median": None},
    ]
    expected = (np.log(2 / 1.005) + np.log(0.995 / 0.5)) / 3
    assert table2.distance(rows) == pytest.approx(expected)
    assert table2.distance(rows[2:]) == 0
    below = [{"median": -0.5, "published_median": 1.0}]  # better than the Oracle, by luck
    assert table2.distance(below) == pytest.approx(np.log(995))


def test_the_order_of_the_groups():
    """Every filter below every other policy; the order within a group does not matter."""
    medians = {"kode": 1.2, "idea": 1.1, "kalman_ucb": 1.5}
    medians |= {"ucb": 1.6, "oful": 4.0, "random": 3.0, "rexp3": 2.0, "sliding_window_ucb": 0.5}

    def rows(**changes):
        found = {**medians, **changes}
        return [{"policy": policy, "median": median} for policy, median in found.items()]

    assert table2.groups_in_order(rows())
    assert table2.groups_in_order(rows(idea=1.55))
    assert not table2.groups_in_order(rows(kalman_ucb=1.6))
    assert not table2.groups_in_order(rows(oful=1.3))
    assert table2.groups_in_order(rows(sliding_window_ucb=9.0))


def test_P21_all_published_medians_agree_with_themselves():
    for family, cells in table2.PUBLISHED.items():
        rows = [
            {"policy": p, "median": cell.median, "published_median": cell.median}
            for p, cell in cells.items()
        ]
        assert all(table2.agrees(row) for row in rows), family
        assert table2.distance(rows) == 0
        assert table2.groups_in_order(rows)


def test_one_run_makes_a_document_that_json_can_hold():
    regret = {"kalman_oracle": [[1.0]], "idea": [[2.0]]}
    stored = storable(table2.document(outcome(regret)))
    json.dumps(stored, allow_nan=False)
    assert stored["rows"][0]["median_low"] is None
    assert figures.svg(table2.figure(stored))


def test_an_oracle_without_regret_makes_a_document_that_json_can_hold():
    """An excess is infinite where the Oracle has no regret and the policy has some."""
    worse = [[1.0, 2.0], [2.0, 3.0]]
    regret = {"kalman_oracle": [[0.0, 0.0], [0.0, 2.0]], "idea": worse, "kalman_ucb": worse}
    for target in (table2, figure1):
        stored = storable(target.document(outcome(regret)))
        json.dumps(stored, allow_nan=False)
        assert figures.svg(target.figure(stored))
        assert target.blocks(stored)


def test_figure_1_without_a_dot_above_zero():
    """A system or two, a few rounds: IDEA may beat the Oracle by luck."""
    values = {"idea": [-0.1], "kalman_ucb": [0.2]}
    assert figure1.figure({"families": {"gaussian": values}}).axes


def test_figure_1_where_the_oracle_has_no_regret():
    """A state that never moves, as Bernoulli's with Q = 0: everybody is as good as the Oracle."""
    still = [[0.0, 0.0], [1.0, 2.0]]
    regret = {"kalman_oracle": still, "idea": still, "kalman_ucb": still}
    found = figure1.document(outcome(regret))["families"]["bernoulli"]
    assert found["idea"] == found["kalman_ucb"] == [0, 0]


# The report in a browser.


def test_the_report_reads_well_and_sorts(made, out):
    with open_page(out / "report.html") as driver:
        for width in (1200, 375):
            set_width(driver, width)
            assert_readable(driver)
            images = driver.find_elements(By.CSS_SELECTOR, "section .picture img")
            assert len(images) == len(NAMES)
            assert all(image.is_displayed() and image.size["height"] > 100 for image in images)
            hints = driver.find_elements(By.CSS_SELECTOR, ".picture .hint")
            wide = [image.size["width"] > width for image in images]
            assert [hint.is_displayed() for hint in hints] == wide
            assert any(wide) == (width < 600)
        set_width(driver, 1200)
        tables = driver.find_elements(By.CSS_SELECTOR, "section table")
        assert len(tables) == len(NAMES) + 2
        for table in tables[1:]:  # the summary's verdicts are words
            names = shown(table, 1)
            buttons = table.find_elements(By.CSS_SELECTOR, "thead button")
            assert len(buttons) == len(table.find_elements(By.CSS_SELECTOR, "thead th"))
            buttons[0].click()
            assert shown(table, 1) == sorted(names, key=str.casefold)
            buttons[1].click()
            values = [number(text) for text in shown(table, 2)]
            assert values == sorted(values)
            buttons[1].click()
            values = [number(text) for text in shown(table, 2)]
            assert values == sorted(values, reverse=True)
        assert console_problems(driver) == []


def shown(table, place):
    cells = table.find_elements(By.CSS_SELECTOR, f"tbody tr > :nth-child({place}) > span")
    return [cell.text for cell in cells]


def number(text):
    """What a cell's text starts with: "1.37 (0.86)", "+18 %"."""
    return float(re.match(r"[+-]?[\d.]+", text)[0])


# The command.


def run(*arguments):
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    """Where the command writes; `made` has compiled what it plays."""
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
    """Ask for it as the program does; check how it leaves; give its one line."""

    def ask(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["driftbandit", "reproduce", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert left.value.code == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        [line] = shown.err.strip().splitlines()
        assert line.startswith("error ")
        return line

    return ask


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
