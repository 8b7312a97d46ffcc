"""`driftbandit advise`: its page, its JSON, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

import driftbandit as db
from advised_systems import SIZE, strict
from browser import assert_readable, open_page, set_width
from driftbandit.cli.advise import _chosen
from driftbandit.cli.app import app
from driftbandit.io import model_file
from terminals import fails

OPTIONS = ["--runs", "128", "--rounds", "100", "--policies", "IDEA, kalman_ucb"]
"""Few policies, so that little is compiled."""


@pytest.fixture(scope="module")
def system():
    return db.families.sample("gaussian", n_states=3, n_arms=3, seed=4)[0]


@pytest.fixture(scope="module")
def advice(system):
    return db.advise(*system, **SIZE, policies=["idea", "kalman_ucb"])


@pytest.fixture(scope="module")
def model(system, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "pl[red]ant <b>`x`.json"
    path.write_text(json.dumps(model_file.to_document(*system)))
    return path


def run(*arguments):
    result = CliRunner().invoke(app, ["advise", *map(str, arguments)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_terminal_page_is_whole_and_fits_80_columns(model, advice):
    output = run(model, *OPTIONS)
    assert output.startswith("Advice on pl[red]ant <b>`x`.json")
    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output
    for heading, _ in advice.report("name", terminal=True).sections[1:]:
        assert heading.text in output
    shown = " ".join(output.split())
    for sentence in (advice.recommendation.headline, *advice.recommendation.reasons):
        assert " ".join(sentence.split()) in shown


def test_json_is_strict_and_holds_the_advice(model, advice):
    document = strict(run(model, *OPTIONS, "--json"))
    assert document.pop("driftbandit") == db.__version__
    assert document.pop("name") == "pl[red]ant <b>`x`.json"
    assert document == json.loads(json.dumps(advice.to_dict()))


def test_a_random_system_is_the_familys(advice):
    size = ["--family", "gaussian", "--states", "3", "--arms", "3"]
    document = strict(run(*size, *OPTIONS, "--seed", "4", "--json"))
    assert document["name"] == "gaussian, seed 4"
    assert document["arms"] == json.loads(json.dumps(advice.to_dict()["arms"]))
    unit = strict(run(*size, *OPTIONS, "--seed", "4", "--json", "--unit-arms"))
    assert unit["arms"] != document["arms"]


def test_html_reads_well_in_a_browser(model, advice, tmp_path):
    path = tmp_path / "advice.html"
    output = run(model, *OPTIONS, "--html", path)
    assert "Page saved to" in output
    assert list(tmp_path.iterdir()) == [path]
    with open_page(path) as driver:
        for width in (1200, 375):
            set_width(driver, width)
            assert_readable(driver)
        assert driver.title == "Advice on pl[red]ant <b>`x`.json"
        text = driver.find_element("tag name", "body").text
        assert advice.recommendation.headline in text
        assert len(driver.find_elements("css selector", ".picture img")) == 2


def test_the_command_takes_policies(advice):
    """As they are named in `OPTIONS`; by default those that know the model play."""
    names = [row.name for row in advice["simulation"].policies]
    assert sorted(names) == ["idea", "kalman_ucb", "random"]
    assert _chosen("") is None


def test_help_teaches():
    output = run("--help")
    for word in ("Examples", "--family", "--html", "TOML", "recommendation"):
        assert word in output


BAD = {
    "nothing": ([], "MODEL: is missing; give a model file, or --family"),
    "both": (["plant.json", "--family", "cauchy"], "--family: was given together with plant.json"),
    "file and size": (
        ["plant.json", "--states", "3"],
        "--states: was given together with",
    ),
    "family": (["--family", "gausian"], "did you mean 'gaussian'?"),
    "size": (["--family", "cauchy", "--states", "0"], "states: is 0"),
    "too large": (["--family", "cauchy", "--states", "99999"], "99999 states and 10 arms make"),
    "absent": (["absent.toml"], "model file: cannot read absent.toml (No such file"),
    "folder": (["."], "model file: cannot read . (Is a directory)"),
    "not JSON": (["bad.json"], "model file: bad.json is not JSON"),
    "a log": (["bad.json"], "if it is a log, run driftbandit fit on it first"),
    "unstable": (["grows.toml"], "transition: has spectral radius 2, so there is no stationary"),
    "runs": (["good.toml", "--runs", "0"], "runs: is 0"),
    "suffix": (["good.toml", "--html", "page.pdf"], "--html: is page.pdf; end it in .html"),
    "no folder": (["good.toml", "--html", "no/page.html"], "--html: no is not a folder"),
    "a folder": (["good.toml", "--html", "folder.html"], "--html: cannot write folder.html"),
    "bad, with page": (["bad.json", "--html", "page.html"], "bad.json is not JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_input_is_one_line_and_exit_code_2(name, tmp_path, monkeypatch, capsys):
    arguments, message = BAD[name]
    one = "process_cov = [[1]]\nreward_std = 1\narms = [[1], [2]]\n"
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "good.toml").write_text("transition = [[0.5]]\n" + one)
    (tmp_path / "grows.toml").write_text("transition = [[2]]\n" + one)
    (tmp_path / "folder.html").mkdir()
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    assert message in fails(monkeypatch, capsys, "advise", *arguments)
    assert sorted(tmp_path.iterdir()) == before
