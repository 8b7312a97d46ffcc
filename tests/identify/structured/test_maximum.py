"""The fitted likelihood is not below statsmodels' own maximum."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("structures", ROOT / "benchmarks/structures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LONG = pytest.mark.nightly  # benchmarks/structures.py has all series


@pytest.mark.parametrize(
    "name",
    [
        "Nile, level",
        pytest.param("copper, trend", marks=LONG),
        pytest.param("US unemployment, ar(2)", marks=LONG),
    ],
)
def test_the_maximum_is_not_below_statsmodels(benchmark, name, monkeypatch):
    monkeypatch.setattr(benchmark, "METHODS", ("lbfgs",))
    monkeypatch.setattr(benchmark, "FACTORS", (1.0,))
    case = benchmark.CASES[name]
    values = case.values()
    found, other = benchmark.ours(case, values, starts=3), benchmark.theirs(case, values)
    assert found >= other - TOLERANCE
    kept = json.loads((ROOT / "benchmarks/results/structures.json").read_text())[name]
    assert found == pytest.approx(kept["driftbandit"], abs=TOLERANCE)
    assert other <= kept["statsmodels"] + TOLERANCE


def test_the_stored_results_cover_all_series_and_none_is_lower(benchmark):
    kept = json.loads((ROOT / "benchmarks/results/structures.json").read_text())
    assert list(kept) == list(benchmark.CASES)
    assert len(kept) >= 10
    assert all(one["difference"] >= -TOLERANCE for one in kept.values())
