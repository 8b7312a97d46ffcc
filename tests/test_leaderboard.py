"""The leaderboard: what it plays, how it ranks, what it writes."""

import dataclasses
import json
import math
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import driftbandit as db
from browser import assert_readable, console_problems, open_page, set_width
from driftbandit import leaderboard, paper, report, study
from driftbandit.cli.app import app
from driftbandit.families import FAMILIES
from driftbandit.leaderboard import ranking, settings
from driftbandit.leaderboard.markdown import markdown
from driftbandit.leaderboard.page import command, page
from driftbandit.paper import table2
from driftbandit.policies import TITLES
from driftbandit.result import ORACLE
from driftbandit.simulation import Options
from driftbandit.study import Cell, Outcome, chunks

ROOT = Path(__file__).parent.parent
NAMES = [setting.name for setting in settings.SETTINGS]
BY_NAME = {setting.name: setting for setting in settings.SETTINGS}
SIZE = paper.Size(systems=7, runs=2, rounds=20)
SMALL = ["--systems", "7", "--runs", "2", "--rounds", "20"]
PLAYED = ("base", "noise10", "wrong_arms")
"""Of one shape: what is compiled once serves all."""
ASKED = [
    *SMALL,
    *("--settings", ",".join(PLAYED)),
    *("--policies", "kalman_ucb(width=2)"),
    *("--families", "gaussian,bernoulli"),
]
PLAYERS = ("idea", "kalman_ucb(width=2)", "random", ORACLE)


# What is played.


def options(**changes):
    return dataclasses.replace(paper.Options(SIZE), **changes)


def test_everybody_plays_every_setting_of_every_family():
    specification = settings.specification(options())
    assert sorted(specification.policies) == sorted(db.policies.available())
    found = [(cell.family, settings.setting_of(cell).name) for cell in specification.cells]
    assert found == [(family, name) for family in FAMILIES for name in NAMES]
    for cell in specification.cells:
        setting = settings.setting_of(cell)
        out = {name for name, absence in settings.SITS_OUT.items() if setting.name in absence[0]}
        assert set(cell.absent) == out


def test_the_base_is_table_iis():
    """P20, P21: the same cells, so the same systems, states and noise."""
    mine = settings.specification(options(settings=("base",)))
    assert mine.cells == table2.specification(options()).cells


SHAPES = {"k100": (100, 10), "k1000": (1000, 10), "d2": (10, 2), "d30": (10, 30)}


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_changes_one_thing(name):
    """P20, P24: all else is the base's, system by system."""
    specification = settings.specification(options(settings=("base", name), families=("cauchy",)))
    by_setting = {settings.setting_of(cell).name: cell for cell in specification.cells}
    base, changed = (
        chunks._systems(specification, study.Chunk(by_setting[key], 2, 2)) for key in ("base", name)
    )
    assert base[1] is None
    for place, ((model, arms), (other, others)) in enumerate(zip(base[0], changed[0], strict=True)):
        assert others.shape == SHAPES.get(name, (10, 10))
        radius = np.abs(np.linalg.eigvals(other.transition)).max()
        assert radius == pytest.approx(0.99 if name == "rho0.99" else 0.9)
        if name not in ("d2", "d30"):
            factor = {"noise0.1": 0.1, "noise10": 10.0}.get(name, 1.0)
            assert other.reward_std == factor * model.reward_std
            assert np.array_equal(other.process_cov, model.process_cov)
            np.testing.assert_allclose(other.transition / radius, model.transition / 0.9)
        if name not in SHAPES:
            assert np.array_equal(others, arms)
        if not name.startswith("wrong_"):
            assert changed[1] is None
            continue
        wrong, wrong_arms = changed[1][place]
        differ = {
            part
            for part in ("transition", "process_cov", "reward_std")
            if not np.array_equal(getattr(wrong, part), getattr(model, part))
        }
        differ |= set() if np.array_equal(wrong_arms, arms) else {"arms"}
        assert differ == {name.removeprefix("wrong_")}


def test_a_first_look_leaves_out_a_thousand_arms():
    assert set(NAMES) - set(leaderboard.QUICK) == {"k1000"}


def test_the_yardsticks_always_play():
    assert settings.specification(options(policies=("kalman_ucb(width=2)",))).policies == PLAYERS


def test_a_policy_sits_out_with_all_its_parameters(monkeypatch):
    monkeypatch.setitem(settings.SITS_OUT, "kalman_ucb", settings.Absence(("k1000",), "a reason"))
    asked = options(policies=("kode", "kalman_ucb(width=2)"), settings=("base", "k1000"))
    cells = settings.specification(asked).cells
    assert {cell.absent for cell in cells if cell.n_arms is None} == {()}
    assert {cell.absent for cell in cells if cell.n_arms == 1000} == {("kalman_ucb(width=2)",)}
    assert all(settings.setting_of(cell) for cell in cells)


def test_who_sits_out_is_registered_and_says_why():
    for policy, absence in settings.SITS_OUT.items():
        assert policy in db.policies.available()
        assert set(absence.settings) < set(NAMES)
        assert len(absence.reason) > 20


def test_a_cell_of_another_study_is_refused():
    with pytest.raises(db.InvalidInput, match=r"gaussian\.d-3 is of no setting"):
        settings.setting_of(Cell("gaussian", n_states=3))


# Log ratios.

REGRETS = st.lists(
    st.tuples(*[st.just(0.0) | st.floats(1e-9, 1e9)] * 3), min_size=1, max_size=8
).map(lambda rows: np.array(rows).T)


@given(regrets=REGRETS, scale=st.sampled_from([0.25, 4.0]))
def test_log_ratios_are_bounded_and_antisymmetric(regrets, scale):
    mine, base, ceiling = regrets
    logs = ranking.log_ratios(mine, base, ceiling)
    assert np.abs(logs).max() <= math.log(1000) * (1 + 1e-12)
    np.testing.assert_allclose(ranking.log_ratios(base, mine, ceiling), -logs, atol=1e-12)
    np.testing.assert_allclose(ranking.log_ratios(*(scale * regrets)), logs, atol=1e-12)
    for log, a, b, c in zip(logs, mine, base, ceiling, strict=True):
        if min(a, b) >= 1.001e-3 * max(a, b, c) > 0:
            assert log == pytest.approx(math.log(a / b), abs=1e-12)
        if a == b:
            assert log == 0
        assert (a > b) >= (log > 0)


def test_regrets_of_zero():
    """Counted as a thousandth of the highest of the three; nothing at all is a tie."""
    rows = [(0, 1, 9), (1, 0, 9), (0, 0, 9), (0, 0, 0), (1, 0, 0), (0.002, 1, 1)]
    expected = [9e-3, 1 / 9e-3, 1, 1, 1000, 0.002]
    assert np.exp(ranking.log_ratios(*np.array(rows, float).T)) == pytest.approx(expected)


# Numbers, against plain loops.


def outcome(regret, names=PLAYED, families=("gaussian", "cauchy"), absent=()):
    """A finished leaderboard of these regrets: {(family, setting): {policy: systems × runs}}."""
    first = next(iter(regret.values()))
    shape = np.shape(first["idea"])
    cells = tuple(
        Cell(family, absent=absent if name == names[-1] else (), **BY_NAME[name].changes)
        for family in families
        for name in names
    )
    specification = study.Specification(cells, tuple(first), shape[0], shape[1], 5)
    columns = {
        cell.label: {
            policy: np.ravel(values).astype(float)
            for policy, values in regret[cell.family, settings.setting_of(cell).name].items()
        }
        for cell in cells
    }
    return Outcome(specification, columns, {"prepare": 0.0, "compile": 0.0, "play": 0.0}, {})


def drawn(systems=7, runs=2, seed=0, names=PLAYED, families=("gaussian", "cauchy"), **factors):
    """Regrets around each policy's factor."""
    rng = np.random.default_rng(seed)
    factors = {"idea": 1.0, "kode": 1.1, "random": 4.0, ORACLE: 0.5} | factors
    found = {}
    for key in [(family, name) for family in families for name in names]:
        size = np.exp(rng.normal(size=(systems, 1)))
        found[key] = {
            policy: factor * size * np.exp(0.3 * rng.normal(size=(systems, runs)))
            for policy, factor in factors.items()
        }
    return found


def resamples(families, systems):
    """Which systems each draw of a family holds, as the module counts them."""
    found = {}
    for family in families:
        rng = np.random.default_rng([0, list(FAMILIES).index(family)])
        counts = rng.multinomial(systems, [1 / systems] * systems, 2000)
        found[family] = [np.repeat(np.arange(systems), row) for row in counts]
    return found


def ends(values):
    values = sorted(values)
    return [values[50], values[-51]]  # 2.5 % of 2000 beyond each


def test_every_number_by_a_plain_loop():
    regret = drawn()
    document = ranking.document(outcome(regret))
    chosen = resamples(("gaussian", "cauchy"), 7)
    means = {key: {p: v.mean(axis=1) for p, v in found.items()} for key, found in regret.items()}
    assert [(r["family"], r["setting"], r["policy"]) for r in document["rows"]] == [
        (*key, policy) for key in regret for policy in regret[key]
    ]
    for row in document["rows"]:
        key = row["family"], row["setting"]
        mine, base = means[key][row["policy"]], means[key]["idea"]
        draws = chosen[row["family"]]
        value = math.prod(mine / base) ** (1 / 7)
        low, high = ends([math.prod((mine / base)[draw]) ** (1 / 7) for draw in draws])
        assert row["geometric"] == pytest.approx([value, low, high], rel=1e-5)
        ratios = ends([sum(mine[draw]) / sum(base[draw]) for draw in draws])
        assert row["ratio"] == pytest.approx([sum(mine) / sum(base), *ratios], rel=1e-5)
        assert row["regret"] == pytest.approx(regret[key][row["policy"]].mean(), rel=1e-5)
        verdict = "better" if high < 1 else "worse" if low > 1 else "no difference seen"
        assert row["verdict"] == ("" if row["policy"] == "idea" else verdict)
        assert row["floored"] == 0
        rivals = ["idea", "kode", "random"]
        levels = {p: math.prod(means[key][p] / base) for p in rivals}
        ordered = sorted(rivals, key=levels.get)
        if row["policy"] == ORACLE:
            assert (row["rank"], row["lowest"], row["level"]) == (None, False, False)
            continue
        assert row["rank"] == 1 + ordered.index(row["policy"])
        assert row["lowest"] == (row["policy"] == ordered[0])
        behind = mine / means[key][ordered[0]]
        clearly = ends([math.prod(behind[draw]) for draw in draws])[0] > 1
        assert row["level"] == (not clearly)
    # Pooled: the systems of a family are drawn once for all of its settings.
    for row in document["overall"]:
        policy = row["policy"]
        logs = {
            family: np.mean(
                [np.log(means[family, s][policy] / means[family, s]["idea"]) for s in PLAYED],
                axis=0,
            )
            for family in ("gaussian", "cauchy")
        }
        values = [
            math.exp(sum(logs[family][chosen[family][n]].mean() for family in logs) / 2)
            for n in range(2000)
        ]
        value = math.exp(sum(found.mean() for found in logs.values()) / 2)
        assert row["geometric"] == pytest.approx([value, *ends(values)], rel=1e-5)
        mine = [r for r in document["rows"] if r["policy"] == policy]
        assert row["cells"] == len(mine) == 6
        assert row["better"] == sum(r["verdict"] == "better" for r in mine)
        assert row["worse"] == sum(r["verdict"] == "worse" for r in mine)
        assert (row["lowest"], row["level"]) == tuple(
            sum(r[key] for r in mine) for key in ("lowest", "level")
        )
        if policy != ORACLE:
            assert row["rank"] == pytest.approx(np.mean([r["rank"] for r in mine]), rel=1e-5)
    places = [row["geometric"][0] for row in document["overall"]]
    assert places == sorted(places)
    cells = {(r["family"], r["setting"], r["policy"]): r["geometric"][0] for r in document["rows"]}
    for row in document["by_setting"]:
        both = [cells[family, row["setting"], row["policy"]] for family in ("gaussian", "cauchy")]
        assert row["geometric"][0] == pytest.approx(math.sqrt(math.prod(both)), rel=1e-5)
    for row in document["by_family"]:
        all_of_it = [cells[row["family"], setting, row["policy"]] for setting in PLAYED]
        assert row["geometric"][0] == pytest.approx(math.prod(all_of_it) ** (1 / 3), rel=1e-5)


def test_one_system_does_not_decide_a_geometric_mean():
    """A thousand times IDEA's regret on one system of 40, nine tenths of it on the others."""
    regret = drawn(systems=40, names=("base",), families=("cauchy",))
    [found] = regret.values()
    found["kode"] = 0.9 * found["idea"]
    found["kode"][3] *= 1000
    rows = ranking.document(outcome(regret, ("base",), ("cauchy",)))["rows"]
    row = next(row for row in rows if row["policy"] == "kode")
    assert row["ratio"][0] > 2
    assert row["geometric"][0] == pytest.approx(0.9 * 1000 ** (1 / 40), rel=1e-5)
    assert row["geometric"][2] / row["geometric"][1] < row["ratio"][2] / row["ratio"][1]


def test_intervals_hold_what_they_promise():
    """Of 200 leaderboards with a true factor of 1.1, about 95 % have it in their interval."""
    held = []
    for seed in range(200):
        rng = np.random.default_rng([7, seed])
        base = np.exp(2 * rng.normal(size=30))
        logs = math.log(1.1) + 0.4 * rng.normal(size=30)
        means = {"idea": base, "kode": base * np.exp(logs), "random": 9 * base}
        board = ranking._Board({("gaussian", "base"): means}, seed)
        _, low, high = board.geometric("kode", [("gaussian", "base")])
        held.append(low < 1.1 < high)
    # With 30 systems the bootstrap itself covers 93 %; three standard errors are 5 %.
    assert 0.88 < np.mean(held) < 0.98


def test_few_systems_decide_nothing():
    for systems, verdicts in ((5, {"", "too few to tell"}), (6, {"", "better", "worse"})):
        regret = drawn(systems=systems, kode=1e-2, **{ORACLE: 1e-3})
        rows = ranking.document(outcome(regret))["rows"]
        assert {row["verdict"] for row in rows} == verdicts
        assert all(row["level"] for row in rows if systems == 5 and row["policy"] != ORACLE)


def test_equal_regrets_share_their_rank():
    regret = drawn(names=("base",))
    for found in regret.values():
        found["kode"] = found["idea"]
    rows = ranking.document(outcome(regret, ("base",)))["rows"]
    ranks = {row["policy"]: row["rank"] for row in rows}
    assert (ranks["idea"], ranks["kode"], ranks["random"]) == (1.5, 1.5, 3)


def test_who_sits_out_is_compared_where_it_plays(monkeypatch):
    """Its mean is over the cells it plays; the page says where it does not, and why."""
    absence = settings.Absence(("wrong_arms",), "it would take a day")
    monkeypatch.setitem(settings.SITS_OUT, "kode", absence)
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
    assert "- KODE sits out arms wrong: it would take a day" in text
    [line] = [line for line in text.splitlines() if line.startswith("| KODE")][1:2]
    assert line.endswith("| – |")
    assert leaderboard.TARGET.figure(document).axes


def whole(document, systems=7):
    """As `paper.reproduce` completes it."""
    about = {"systems": systems, "runs": 2, "rounds": 20, "seed": 0, "measure": "regret"}
    about |= {"dtype": "float64", "platform": "cpu", "families": ["gaussian", "cauchy"]}
    about |= {"reading": "plain", "study": "0" * 16}
    return paper.target.storable(
        {"target": "leaderboard", "settings": about, "versions": {"numpy": ["2"]}, **document}
    )


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
    assert "So few systems decide nothing" in " ".join(page(document).split())
    assert leaderboard.TARGET.figure(document).axes


# Played, written, and played no more.


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

    monkeypatch.setattr(chunks, "compute", refuse)
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
                yield study.engines.play(specification, chunk)

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


# The command.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["leaderboard", "--settings", "k10"], "--settings: unknown name 'k10'; did you mean"),
        (["leaderboard", "--settings", ","], "--settings: ',' names none"),
        (["leaderboard", "--policies", "kod"], "policy: unknown name 'kod'; did you mean 'kode'"),
        (["table2", "--settings", "base"], "--settings: was given with table2; leave it out"),
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
    assert "leaderboard, which is not the paper's" in " ".join(output.replace("│", " ").split())


# Markdown.


def test_blocks_as_markdown():
    blocks = [
        report.Paragraph("word " * 40),
        report.Points(["one " * 40, "two"]),
        report.Facts({"seed": "0"}),
        report.Picture("below", "what it shows", "<svg/>"),
        report.Table(
            "above",
            ["a", "b"],
            [["x|y", report.Cell("1", note="(0–2)", tone="good")], ["z", report.Cell("")]],
        ),
    ]
    lines = markdown("Title", blocks, "picture.png").splitlines()
    assert lines[0] == "# Title"
    assert max(map(len, lines)) <= 100
    assert lines.count("- two") == 1
    assert "- seed: 0" in lines
    assert "![what it shows](picture.png)" in lines
    assert lines[-4:] == ["| a | b |", "|---|---:|", r"| x\|y | **1** (0–2) |", "| z |  |"]


# The page in the documentation.


def test_the_documentations_page_is_written_from_its_numbers():
    """By `page`, never by hand: copy leaderboard.md and .png of one run, and keep its numbers."""
    kept = json.loads((ROOT / "benchmarks/results/leaderboard.json").read_text())
    assert (ROOT / "docs/leaderboard.md").read_text() == page(kept)
