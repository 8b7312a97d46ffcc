"""`driftbandit simulate`: its table, its JSON, its plot, and what it refuses."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli import simulate
from driftbandit.cli.app import app
from driftbandit.cli.simulate import _chosen
from driftbandit.io import model_file
from driftbandit.simulation import Options
from terminals import fails, result

SMALL = ["--systems", "2", "--runs", "2", "--rounds", "40", "--states", "3", "--arms", "4"]
FEW = ["--policies", "idea, kalman_ucb(width=2), kalman_oracle"]


def run(*arguments):
    result = CliRunner().invoke(app, ["simulate", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_equals_the_library():
    document = json.loads(run("--family", "cauchy", *SMALL, *FEW, "--seed", "3", "--json"))
    systems = db.families.sample("cauchy", 2, 3, 4, seed=3)
    policies = ["idea", "kalman_ucb(width=2)", "kalman_oracle"]
    result = db.simulate(
        systems, None, policies, rounds=40, runs=2, seed=3, options=Options(stream="cauchy")
    )
    shown = document["studies"]["cauchy"]["policies"]
    for name, row in result.summary().items():
        assert shown[name]["mean"] == row["mean"]
    assert shown["idea"]["normalized_median"] == np.median(result.normalized()["idea"])
    assert document["seed"] == 3


def test_who_plays_where_nobody_is_named():
    """Every policy that can play any arms, whether asked for by all or not."""
    assert list(db.policies.chosen()) == list(db.policies.default())
    for text in ("default", "all"):
        assert list(_chosen(text, sphere=False)) == list(db.policies.default())


def test_table_of_one_family():
    output = run("--family", "gaussian", *SMALL, *FEW)
    assert "gaussian: regret after 40 rounds" in output
    assert "kalman_ucb" in output
    assert "excess over Oracle" in output


def test_table_of_all_families_fits_80_columns():
    output = run("--family", "all", *SMALL, *FEW)
    for family in db.families.FAMILIES:
        assert family in output
    assert max(map(len, output.splitlines())) <= 80


def test_compare_shows_one_table_per_study():
    output = run("--family", "all", *SMALL, *FEW, "--compare", "idea")
    for family in db.families.FAMILIES:
        assert f"{family}: run by run against the baseline, idea" in output
    assert "in units of the Oracle's" in output
    assert output.count("Positive: the policy is worse") == 1
    assert max(map(len, output.splitlines())) <= 80


def test_compare_gives_a_verdict():
    many = ["--systems", "8", "--runs", "3", "--rounds", "60", "--states", "3", "--arms", "4"]
    policies = ["--policies", "random, idea, kalman_ucb(width=2)"]
    output = run(*many, *policies, "--compare", "best")
    assert "against the baseline, idea" in output
    compared = output.split("run by run")[1]
    row = next(line for line in compared.splitlines() if line.startswith("random"))
    assert row.split()[1] == "worse"
    assert "bootstrap over 8 systems" in " ".join(output.split())
    assert "in units of" not in output  # no Oracle played


def test_compare_one_run_of_one_system(tmp_path):
    path = tmp_path / "plant.json"
    path.write_text(json.dumps(model_file.to_document(*db.families.sample("uniform", 1, 3, 4)[0])))
    output = run("--model", str(path), "--runs", "1", "--rounds", "20", *FEW, "--compare", "idea")
    assert "too few to tell" in output
    assert "nan" not in output.split("run by run")[1]


def test_a_model_with_contexts_is_for_python(tmp_path, monkeypatch, capsys):
    """Whatever policies play: the command line has no option for the features of rounds."""
    model = db.LGDS([[0.5]], [[1.0]], 1.0)
    path = tmp_path / "priced.json"
    db.save_model(db.System(model, [[1.0]], contexts={"x_price": [[1.0]]}), path)
    assert "--model: has contexts (x_price)" in fails(
        monkeypatch, capsys, "simulate", "--model", path
    )


def test_comparison_in_json_equals_the_library():
    document = json.loads(
        run("--family", "cauchy", *SMALL, *FEW, "--json", "--compare", "kalman_ucb(width=2)")
    )
    comparison = document["studies"]["cauchy"]["comparison"]
    systems = db.families.sample("cauchy", 2, 3, 4)
    policies = ["idea", "kalman_ucb(width=2)", "kalman_oracle"]
    result = db.simulate(
        systems, None, policies, rounds=40, runs=2, options=Options(stream="cauchy")
    )
    assert comparison["baseline"] == "kalman_ucb(width=2)"
    assert comparison["unit"] == "regret of kalman_oracle"
    for name, row in result.compare("kalman_ucb").items():
        shown = comparison["policies"][name]
        assert shown.pop("verdict") == row.verdict
        assert shown == row._asdict()


def test_model_file_and_plot(tmp_path):
    model, arms = db.families.sample("uniform", n_states=3, n_arms=4)[0]
    path = tmp_path / "plant.json"
    path.write_text(json.dumps(model_file.to_document(model, arms)))
    plot = tmp_path / "plot.svg"
    output = run("--model", str(path), "--runs", "3", "--rounds", "40", *FEW, "--plot", str(plot))
    assert "plant.json: regret after 40 rounds" in output
    assert "<svg" in plot.read_text()


def test_plot_of_all_families(tmp_path):
    plot = tmp_path / "plot.png"
    run("--family", "all", *SMALL, "--policies", "idea", "--plot", str(plot), "--float32")
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--family", "gausian"], "did you mean 'gaussian'"),
        (["--policies", "idae"], "did you mean 'idea'"),
        (["--rounds", "0"], "rounds: is 0"),
        (["--model", "absent.json"], "cannot read absent.json"),
        (["--compare", "idae"], "--compare: unknown name 'idae'; did you mean 'idea'? valid: best"),
        (
            ["--compare", "kode", "--policies", "idea, ucb"],
            "--compare: kode is not among --policies; valid: idea, ucb, best",
        ),
        (["--compare", "best", "--policies", "idea"], "nothing to compare idea with"),
        (["--plot", "figure.doc"], "--plot: is figure.doc"),
        (["--plot", "no/such/folder.png"], "is not a folder"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert words in fails(monkeypatch, capsys, "simulate", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_model_file_is_played_often_enough_to_rank_policies():
    assert simulate.default_runs(2, 3, 1000) == 256
    assert simulate.default_runs(60, 60, 1000) == 32


def test_the_baseline_is_read_by_its_title_too():
    assert simulate._baseline("IDEA", ["idea", "ucb"]) == "idea"
    chosen = ["kalman_ucb(width=2)", "kalman_ucb(width=4)", "ucb"]
    assert simulate._baseline("Kalman-UCB(width=4)", chosen) == "kalman_ucb(width=4)"
    assert simulate._baseline("best", chosen) == "best"
    assert simulate._baseline("kalman_ucb", chosen[1:]) == "kalman_ucb(width=4)"  # the only one


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


def test_the_least_possible_regret(tmp_path, monkeypatch):
    from driftbandit.theory import independence

    monkeypatch.setattr(independence, "FINE", 60)
    monkeypatch.setattr(independence, "SCALES", (14, 20))
    model = db.LGDS(0.5 * np.eye(2), np.eye(2), 1.0)
    path = tmp_path / "own.json"
    model_file.save_model(db.System(model, np.eye(2), ["a", "b"]), path)
    few = ["--policies", "idea, whittle", "--rounds", "200", "--runs", "16", "--least-regret"]
    output = " ".join(run("--model", str(path), *few).split())
    least = db.theory.least_regret(model, np.eye(2)).value
    assert f"own.json: no policy has less regret per round than {least:.4g} in the long" in output
    assert "has at most" in output
    document = json.loads(run("--model", str(path), *few, "--json"))
    assert document["studies"]["own.json"]["least_regret_per_round"] == least


def test_the_least_possible_regret_needs_independent_arms(tmp_path, monkeypatch, capsys):
    error = fails(monkeypatch, capsys, "simulate", "--least-regret", *SMALL)
    assert "--least-regret: was given without --model" in error
    path = tmp_path / "shared.json"
    model_file.save_model(db.System(db.LGDS([[0.5]], [[1.0]], 1.0), [[1.0], [2.0]]), path)
    error = fails(monkeypatch, capsys, "simulate", "--model", path, "--least-regret")
    assert "arms: rows 0 and 1 both read state 0" in error
