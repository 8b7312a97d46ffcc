"""The paper's table and figures, reproduced (P21–P24): numbers, files and report."""

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from html import unescape

import matplotlib.image
import numpy as np
import pytest
from selenium.webdriver.common.by import By

import driftbandit as db
from browser import assert_readable, console_problems, open_page, set_width
from driftbandit import paper, theory
from driftbandit.paper import figure1, figure3, table2
from driftbandit.paper.figure3 import TARGETS as PERTURBED
from driftbandit.paper.perturbation import similarity
from driftbandit.policies import idea, kalman_ucb
from driftbandit.simulation import Options
from driftbandit.studies import engines
from published_table import CHANGES, COLUMNS, FAMILIES, SEED, SIZE, TABLE, excess

NAMES = ["table2", "figure1", "figure2", "figure3"]
PATIENT = ("idea", "kode", "kalman_ucb")


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
    """What a cell's text starts with: "1.37 (0.86)", "+18%"."""
    return float(re.match(r"[+-]?[\d.]+", text)[0])
