"""The page on rivals outside the library is the one that the stored results make."""

import importlib.util
import json
import math
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location(
    "exploration_page", ROOT / "benchmarks/exploration_page.py"
)
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
STORED = json.loads(made.RESULTS.read_text())


def problem(**ratios):
    rows = {
        name: {"regret": ratio, "ratio": ratio, "± s.e.": 0.01 * (name != "reach")}
        for name, ratio in {"reach": 1.0, **ratios}.items()
    }
    return {"rounds": 1000, "runs": 40, "systems": 1, "seed": 0, "policies": rows}


def test_the_page_shows_the_stored_results():
    """If this fails: `python benchmarks/exploration_page.py` writes it anew."""
    assert made.PAGE.read_text() == made.page(STORED)


def test_a_changed_number_is_noticed():
    changed = json.loads(json.dumps(STORED))
    row = changed["independent"]["ρ 0.99, σ 1, k 10"]["policies"]["centered_idea"]
    row["ratio"] *= 2
    assert made.page(changed) != made.page(STORED)


def test_only_stored_sections_are_on_the_page():
    text = made.page({"walks": {"step 1 σ": problem(idea=2.0)}})
    assert "## Random walks" in text
    assert "## Independent arms" not in text
    assert "| step 1 σ | **1** | 2.00 ± 0.01 |" in text
    assert "is the best policy" in text
    assert "Cauchy" not in text


def test_ratios_are_over_the_best_policy():
    found = made.over_best(made.ratios(problem(ar2=0.8, ucb=2.0, oful=1.6)))
    assert math.exp(found["reach"].log) == pytest.approx(1.25)
    assert found["reach"].error == pytest.approx(0.01 / 0.8)
    assert found["ar2"] == (0, 0)
    assert math.exp(found[made.BEST].log) == pytest.approx(2.0)
    both = made.mean([made.ratios(problem(idea=0.5)), made.ratios(problem(idea=2.0, kode=3.0))])
    assert set(both) == {"reach", "idea"}
    assert both["idea"].log == pytest.approx(0)


def test_losses_of_the_default_are_named():
    stored = {"families": {"cauchy, ρ 0.9": problem(lookahead=0.8, idea=0.9)}}
    text = made.losses_text(stored)
    assert "up to 25% more regret than Lookahead (± 1.6%; cauchy, ρ 0.9)" in text
    assert "| Random systems | cauchy, ρ 0.9 | Lookahead | 40 | 1.25 ± 0.02 |" in text
