"""`driftbandit advise LOG.csv`: its page, its JSON, and what it refuses."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import driftbandit as db
from advised_logs import few_structures, log
from advised_systems import strict
from browser import assert_readable, open_page, set_width
from driftbandit.cli.app import app
from driftbandit.io.log_reader import read_log
from terminals import fails

OPTIONS = ["--runs", "50", "--policies", "idea, ucb"]


@pytest.fixture(scope="module", autouse=True)
def _few_structures():
    with few_structures():
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "clicks [red]<b>.parquet"
    columns = log(drift=0.15, arms=("<i>left</i>", "right"), seed=5)
    columns["day"] = columns.pop("round")
    pa.parquet.write_table(pa.table(columns), path)
    return path


def run(*arguments):
    result = CliRunner().invoke(app, ["advise", *map(str, arguments)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_terminal_page_ends_with_commands(path, tmp_path):
    page = tmp_path / "advice.html"
    output = run(path, *OPTIONS, "--round-column", "day", "--html", page)
    assert output.startswith("Advice on clicks [red]<b>.parquet")
    lines = output.splitlines()
    assert max(len(line) for line in lines if not line.startswith(("next: ", "Page"))) <= 80
    assert any(line.startswith("next: driftbandit ") for line in lines)
    assert "--round-column day" in output
    with open_page(page) as driver:
        for width in (1200, 375):
            set_width(driver, width)
            assert_readable(driver)
        assert driver.title == "Advice on clicks [red]<b>.parquet"
        assert "<i>left</i>" in driver.find_element("tag name", "body").text
        assert len(driver.find_elements("css selector", ".picture img")) == 2


def test_json_is_strict_and_holds_the_advice(path):
    document = strict(run(path, *OPTIONS, "--round-column", "day", "--json"))
    read = read_log(path, columns={"round": "day"})
    advice = db.advise(read, runs=50, policies=["idea", "ucb"])
    assert document.pop("driftbandit") == db.__version__
    assert document.pop("name") == "clicks [red]<b>.parquet"
    commands = document["recommendation"].pop("commands")
    assert all("--round-column day" in line for line in commands if "clicks" in line)
    expected = json.loads(json.dumps(advice.to_dict()))
    expected["recommendation"].pop("commands")
    assert document == expected


BAD = {
    "tiny": (["tiny.csv"], "log: has 1 rewards; advice needs at least 40"),
    "family": (["tiny.csv", "--family", "cauchy"], "--family: was given together with tiny.csv"),
    "states": (["tiny.csv", "--states", "3"], "--states: was given together with tiny.csv"),
    "season": (["good.toml", "--season", "7"], "--season: was given together with good.toml"),
    "column": (["good.toml", "--arm-column", "a"], "--arm-column: was given together with"),
    "no model": (["--every", "1h"], "--every: was given together with a system"),
    "missing": (["absent.csv.gz"], "absent.csv.gz: cannot be read"),
    "columns": (["tiny.csv", "--reward-column", "paid"], "paid"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_input_is_one_line_and_exit_code_2(name, tmp_path, monkeypatch, capsys):
    arguments, message = BAD[name]
    (tmp_path / "tiny.csv").write_text("round,arm,reward\n0,a,1\n")
    text = "transition = [[0.5]]\nprocess_cov = [[1]]\nreward_std = 1\narms = [[1], [2]]\n"
    (tmp_path / "good.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert message in fails(monkeypatch, capsys, "advise", *arguments)
