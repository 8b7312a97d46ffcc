"""The verdict: false alarms, what is seen, bad input, words, the report and its figure."""

import json
import re

import numpy as np
import pytest

from driftbandit import LGDS, fit, monitor
from driftbandit.io.log_reader import as_log
from driftbandit.monitoring import words
from driftbandit.monitoring.findings import Change
from driftbandit.monitoring.health import health_of
from driftbandit.monitoring.surprises import Surprises
from driftbandit.report import as_json, html, markdown
from monitored import MODEL, NAMES, SYSTEM, played
from refusals import Case, assert_refused, each

TESTS = ["mean square", "rounds", "arms", "outliers", "changes", "jumps"]


def drawn(rng, n, arms=6):
    return Surprises(
        rng.standard_normal(n), rng.integers(arms, size=n), np.arange(n), np.zeros(n, np.int64)
    )


@pytest.mark.parametrize(("n", "most"), [(60, 0.1), (400, 0.1)])
def test_false_alarms_are_as_rare_as_the_level_says(n, most):
    """At 10%, of 600 draws 60 are expected; 4 standard errors are 29. The bound may be loose."""
    rng = np.random.default_rng(7)
    false = sum(not health_of(drawn(rng, n), tuple("abcdef"), most).holds for _ in range(600))
    assert 15 < false < 90


def test_a_true_model_holds():
    """One and two rewards a round: at most one of 40 logs at a level of 1%."""
    found = [monitor(SYSTEM, played(seed, 150, plays=1 + seed % 2)) for seed in range(40)]
    assert list(found[0].tests) == TESTS
    assert sum(not health.holds for health in found) <= 2
    assert found[0].summary() == str(found[0]) == "The model holds."
    assert repr(found[0]) == "Health(holds=True, rewards=150, off=())"


def test_faster_drift():
    health = monitor(SYSTEM, played(1, speed=6.0))
    assert not health.holds
    test = health.tests["mean square"]
    assert test.value > test.high
    said = health.summary()
    assert said.startswith("Surprises are larger than the model says: their mean square is")
    assert "rewards drift faster than the model says" in said
    assert health.correlations["arms"][0][0] > 0


def test_slower_drift():
    said = monitor(SYSTEM, played(1, speed=0.02)).summary()
    assert said.startswith("Surprises are smaller than the model says")


def test_heavy_tails():
    health = monitor(SYSTEM, played(2, 1000, tails=True))
    assert not health.tests["outliers"].holds
    assert re.search(r"There are outliers: \d+ of 1,000 surprises", health.summary())


def test_a_season_of_all_arms():
    health = monitor(SYSTEM, played(3, season=1.5))
    assert not health.tests["rounds"].holds
    assert "Surprises of successive rounds are correlated" in health.summary()


@pytest.mark.parametrize("jump", [6.0, -6.0])
def test_a_jump_names_the_arm_and_the_round(jump):
    health = monitor(SYSTEM, played(4, jump=jump))
    assert health.off == ("a",)
    by_kind = {change.kind: change for change in health.changes if change.arm == "a"}
    assert abs(by_kind["jump"].since - 200) <= 4
    assert "Arm a jumped farther than the model allows in round" in health.summary()
    (off,) = [arm for arm in health.arms if arm.change is not None]
    assert off.name == "a"
    assert off.rewards == sum(arm == "a" for arm in played(4, jump=jump)["arm"])


def test_a_lasting_shift_names_its_arm_side_and_round():
    rng = np.random.default_rng(8)
    found = drawn(rng, 600, 4)
    values = found.values + 1.5 * ((found.arms == 2) & (found.rounds >= 300))
    health = health_of(found._replace(values=values), NAMES)
    change = health.arms[2].change
    assert (change.arm, change.kind) == ("c", "higher")
    assert 270 <= change.since <= 330 < change.alarm
    assert f"Arm c pays more than predicted since round {change.since}." in health.summary()
    down = health_of(found._replace(values=-values), NAMES)
    assert "Arm c pays less than predicted since round" in down.summary()


def test_sequences_are_told_apart():
    columns = played(4, jump=6.0)
    two = {name: list(values) * 2 for name, values in columns.items()}
    health = monitor(SYSTEM, two | {"sequence": ["x"] * 400 + ["y"] * 400})
    assert health.changes[0].sequence in ("x", "y")
    assert f"of sequence {health.changes[0].sequence}." in health.summary()
    assert len(health.surprises.values) == 800


def test_one_arm_has_no_second_autocorrelation():
    found = drawn(np.random.default_rng(1), 100, 1)
    assert "arms" not in health_of(found, ("a",)).tests


def test_many_arms_are_counted():
    rng = np.random.default_rng(9)
    found = drawn(rng, 900, 6)
    said = health_of(found._replace(values=found.values + 2.0), tuple("abcdef")).summary()
    assert said.count("pays more") == words.MOST_ARMS
    assert "2 more arms are off." in said


def test_all_arms_together():
    assert words.change_sentence(Change(None, "lower", 3, 9)) == (
        "The average arm pays less than predicted since round 3."
    )


def test_a_fit_is_monitored_on_a_log_of_its_own():
    log = played(5, 200)
    found = fit(log, n_states=1, starts=1, iterations=3)
    assert monitor(found, as_log(played(6, 100), found.names)).tests.keys() == set(TESTS)


def test_report_and_figure():
    health = monitor(SYSTEM, played(4, jump=6.0), parts={"a": [0], "others": [1, 2, 3]})
    report = health.report("today")
    data = json.loads(as_json(report))
    assert data["holds"] is False
    assert data["summary"] == report.subtitle == health.summary()
    assert [test["name"] for test in data["tests"]] == TESTS
    assert data["arms"][0]["off"] is True
    assert [part["name"] for part in data["parts"]] == ["a", "others"]
    page = html.page(report)
    assert "Does the model hold on today?" in page
    assert "surprises of 400 rewards" in page
    assert "autocorrelation within arms" in markdown.text(report, pictures={"health": "h.svg"})
    figure = report.blocks[-1].draw()
    assert [len(axis.get_title()) > 0 for axis in figure.axes] == [True] * 4


CASES = [
    Case("a model without arms", lambda: monitor(MODEL, played(1, 30)), "system", "LGDS"),
    Case("no system", lambda: monitor(None, played(1, 30)), "system", "NoneType"),
    Case("no log", lambda: monitor(SYSTEM, 3), "log", "int"),
    Case("too short", lambda: monitor(SYSTEM, played(1, 19)), "log", "19"),
    Case("no reward", lambda: monitor(SYSTEM, played(1, 30) | {"reward": [None] * 30}), "log", "0"),
    Case("other arms", lambda: monitor(SYSTEM, played(1, 30) | {"arm": ["z"] * 30}), "log", "'z'"),
    Case("level 0", lambda: monitor(SYSTEM, played(1, 30), level=0.0), "level", "0"),
    Case("level 1", lambda: monitor(SYSTEM, played(1, 30), level=1), "level", "1"),
    Case("level text", lambda: monitor(SYSTEM, played(1, 30), level="1%"), "level", "1%"),
]


@each(CASES)
def test_bad_input(case):
    assert_refused(case)


def test_models_with_everything_known_have_nothing_to_say():
    still = LGDS(np.eye(4), np.zeros((4, 4)), 0.0, np.eye(4))
    case = Case(
        "", lambda: monitor(type(SYSTEM)(still, np.eye(4), NAMES), played(1)), "log", "4 re"
    )
    assert_refused(case)
