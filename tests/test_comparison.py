"""The comparison with other libraries: its stored results, its page and its worker."""

import importlib.util
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import driftbandit as db

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/understand/comparison.md").read_text()
STORED = json.loads((ROOT / "benchmarks/results/comparison.json").read_text())


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"benchmarks/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


comparison, worker, tables = map(loaded, ("comparison", "comparison_worker", "tables"))


def head_of_abilities():
    return next(line for line in PAGE.splitlines() if line.startswith("| | driftbandit |"))


def test_every_rival_has_a_version_and_the_page_shows_it():
    assert set(STORED["packages"]) == {"driftbandit", *comparison.RIVALS}
    columns = [cell.strip() for cell in head_of_abilities().split("|")]
    for name in comparison.RIVALS:
        assert f"{name} {STORED['packages'][name]['version']}" in columns
    assert "HyperController" in columns


def test_abilities_have_a_cell_for_every_package_and_a_note_for_every_number():
    width = head_of_abilities().count("|")
    lines = PAGE[PAGE.index(head_of_abilities()) :].split("\n\n")[0].splitlines()
    assert all(line.count("|") == width for line in lines)
    used = {int(number) for number in re.findall(r"\[(\d+)\]", "".join(lines))}
    notes = [int(number) for number in re.findall(r"^(\d+)\. ", PAGE, re.MULTILINE)]
    assert notes == list(range(1, len(notes) + 1))
    assert used == set(notes)


def test_the_page_names_what_was_measured():
    for task in ("decide", "filter"):
        assert {one["package"] for one in STORED[task].values()} <= set(STORED["packages"])
    deciding = {one["package"] for one in STORED["decide"].values()}
    assert deciding == set(STORED["packages"]) - {"dynamax", "statsmodels"}
    assert set(STORED["simulate"]) == set(comparison.SIMULATED)
    assert STORED["machine"]["processor"] in PAGE


def test_ratios_are_those_of_the_times():
    def check(found, time):
        base = next(one[time] for one in found if one["ratio"] == 1)
        for one in found:
            assert one["ratio"] == pytest.approx(one[time] / base)

    check(STORED["decide"].values(), "us")
    check(STORED["simulate"].values(), "us per round")
    check(STORED["filter"].values(), "seconds")
    for found in STORED["learn"].values():
        check(found.values(), "seconds")


def test_log_likelihoods_agree():
    values = [one["log-likelihood"] for one in STORED["filter"].values()]
    assert np.ptp(values) < 1e-6 * abs(values[0])


def test_best_rival_is_the_lowest_of_the_others():
    for found in STORED["regret"].values():
        best = tables.best_rival(found)
        others = [one for one in found.values() if one["package"] not in ("", "driftbandit")]
        assert best["regret"][0] == min(one["regret"][0] for one in others)
        assert tables.best_rival(found, "river")["package"] == "river"


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.0, "the same"),
        (2.0, "2 times slower"),
        (0.1, "10 times faster"),
        (131, "130 times slower"),
    ],
)
def test_a_ratio_in_words(ratio, said):
    assert tables._times(ratio) == said


def test_the_worker_decides():
    found = worker.decide("driftbandit", pairs=3, warm=1)
    assert set(found) == {
        one["policy"] for one in STORED["decide"].values() if one["package"] == "driftbandit"
    }
    assert min(found.values()) > 0


def test_the_worker_simulates_filters_and_learns(tmp_path):
    assert worker.simulate("driftbandit", runs=4, rounds=16)["seconds"] > 0
    np.savez(tmp_path / "filter.npz", **comparison.filtered_log(rounds=40, d=3))
    found = worker.filtering("driftbandit", str(tmp_path / "filter.npz"), repeats=1)
    values = [one["log-likelihood"] for one in found.values()]
    assert values[0] == pytest.approx(values[1], rel=1e-10)
    logs = comparison.learned_logs(rounds=40)
    np.savez(tmp_path / "learn.npz", **logs)
    fitted = worker.learning("driftbandit", str(tmp_path / "learn.npz"), "arms", repeats=1)
    learned = fitted["fit, EM"]["learned"]
    rows = logs["arms"][logs["played"]]
    assert math.isfinite(comparison.log_likelihood(learned, rows, logs["rewards"]))


def test_the_textbook_filter_agrees_with_the_library():
    log = comparison.filtered_log(rounds=30, d=3)
    model = db.LGDS(log["transition"], log["process_cov"], log["reward_std"])
    rows = log["arms"][log["played"]]
    learned = {key: log[key] for key in ("transition", "process_cov")}
    learned["reward_var"] = log["reward_std"] ** 2
    expected = db.kalman.log_likelihood(model, rows, log["rewards"])
    assert comparison.log_likelihood(learned, rows, log["rewards"]) == pytest.approx(expected)


@pytest.mark.parametrize("kind", comparison.WORLDS)
def test_the_worker_plays_the_tables(kind, tmp_path):
    table = comparison.world(kind, tables=1, rounds=60, logged=50)
    np.savez(tmp_path / "world.npz", **table)
    found = worker.regret("driftbandit", str(tmp_path / "world.npz"))
    assert {len(values) for values in found.values()} == {1}
    assert min(min(values) for values in found.values()) >= 0
    assert comparison.random_game(table, 50)[0] > 0


def test_the_worker_answers_and_reports_errors():
    process = comparison.Process("driftbandit", sys.executable)
    assert process.ask("versions", distribution="numpy")["version"] == db.__version__
    with pytest.raises(RuntimeError, match="driftbandit, decide: TypeError"):
        process.ask("decide")
    process.close()
    assert process.process.returncode == 0


def test_an_interval_is_students():
    mean, low, high = comparison.interval([1.0, 2.0, 3.0])
    assert mean == 2
    assert high - mean == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert mean - low == pytest.approx(high - mean)


def test_the_command_explains_itself():
    command = [sys.executable, str(ROOT / "benchmarks/comparison.py"), "--help"]
    assert "--environments" in subprocess.run(command, capture_output=True, text=True).stdout
