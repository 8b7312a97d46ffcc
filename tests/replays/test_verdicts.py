"""Rows of which a log shows too little have neither an interval nor a verdict."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit.model import LGDS
from driftbandit.replays import estimates, off_policy, replay, report, support
from driftbandit.replays.decisions import Decisions
from driftbandit.replays.result import LEADER, LOGGING
from driftbandit.replays.tasks import Task
from driftbandit.report import html
from driftbandit.statistics import BETTER, NO_DIFFERENCE, TOO_FEW, WORSE
from logged_plays import columns, logged
from reward_tables import FAST, drifting


def played(arms, rewards, chances):
    """The columns of a log that plays these arms."""
    rounds = np.arange(len(arms))
    return {"round": rounds, "arm": arms, "reward": rewards[rounds, arms], "chance": chances}


def without_verdict(row):
    """Whether a row says that nothing is known, in all its fields."""
    ends = row.low, row.high, row.difference_low, row.difference_high
    return all(map(math.isnan, ends)) and row.verdict == TOO_FEW and not row.trusted and row.reason


def rows_of(result):
    return {row.label: row for row in result.rows()}


@pytest.fixture(scope="module")
def uniform():
    log = columns(logged(drifting(1200, seed=3), "uniform"))
    return replay(log, ["idea", "ucb"], baseline=LOGGING, **FAST)


@pytest.mark.parametrize("rule", ["the arm that pays", "one after the other", "all in turn"])
def test_chances_of_one_tell_nothing_of_other_choices(rule):
    """Before, most of these rows had intervals of no width, and many verdicts were wrong."""
    rewards, level, arms = drifting(600, seed=4), np.zeros(4), np.empty(600, np.int64)
    for t in range(600):
        greedy = t % 4 if t < 4 else int(level.argmax())
        arms[t] = {"the arm that pays": greedy, "all in turn": t % 4}.get(rule, t // 150)
        level[arms[t]] += 0.2 * (rewards[t, arms[t]] - level[arms[t]])
    log = played(arms, rewards, np.ones(600))
    result = replay(log, ["idea", "ucb"], baseline=LOGGING, **FAST)
    for row in result.rows():
        same = result.unsupported(row.label) == 0  # what the log itself does, or an arm it kept to
        assert same or without_verdict(row), row
        if same and row.label != LOGGING:
            assert (row.difference, row.verdict) == (0, NO_DIFFERENCE)
    assert any(result.unsupported(label) > 0 for label in result.references)


def test_an_arm_that_the_log_always_plays_earns_what_the_log_earns():
    """Not 1e-17 less, which once was "worse"."""
    rewards = drifting(400, seed=4) - 5
    arms = (np.arange(400) < 9).astype(int)  # in the test part always arm 0
    rows = rows_of(replay(played(arms, rewards, np.ones(400)), ["ucb"], **FAST))
    row = rows["always 0"]
    assert (row.low, row.high, row.verdict) == (row.mean, row.mean, NO_DIFFERENCE)
    assert row.mean == rows[LOGGING].mean


@pytest.mark.parametrize("chance", [1 - 1e-12, 0.9999])
def test_chances_near_one_tell_as_little(chance):
    """The log plays arm 0 in 80% of the rounds; in the others it has next to no chance."""
    rewards = drifting(1500, seed=5)
    arms = np.where(np.arange(1500) % 5 == 4, 1, 0)
    rows = rows_of(replay(played(arms, rewards, np.full(1500, chance)), ["ucb"], **FAST))
    assert without_verdict(rows["always 0"])
    assert "rare plays are missing" in rows["always 0"].reason


def test_a_single_round_without_a_chance_does_no_harm():
    """One of 2000: its arm would have to be far off to move the mean. Twenty may move it."""
    log = columns(logged(drifting(4000, seed=3), "uniform"))
    log["chance"][3500] = 1.0
    result = replay(log, ["ucb"], **FAST)
    assert sum(result.unsupported(label) > 0 for label in result.references) >= 4
    assert all(row.trusted for row in result.rows())
    log["chance"][3500:3520] = 1.0
    rows = rows_of(replay(log, ["ucb"], **FAST))
    assert all(without_verdict(rows[f"always {arm}"]) for arm in range(4))


@pytest.mark.parametrize("seed", range(3))
def test_rare_clicks_have_intervals_only_if_there_are_enough(seed):
    """34 arms of 0.5%: without the rule about half of the intervals miss what the arm would pay."""
    rng = np.random.default_rng(seed)
    rewards = (rng.random((6000, 34)) < 0.005).astype(float)
    arms = rng.integers(34, size=6000)
    result = replay(played(arms, rewards, np.full(6000, 1 / 34)), ["ucb"], **FAST)
    truth = rewards[3000:].mean(axis=0)
    rows = [row for row in result.rows() if row.label.startswith("always")]
    assert len(rows) == 34
    for row in rows:
        assert without_verdict(row) or row.low <= truth[row.arm] <= row.high, row
    seldom = [row for row in rows if rewards[3000:][arms[3000:] == row.arm, row.arm].sum() < 5]
    assert seldom
    assert all(map(without_verdict, seldom))


def test_clicks_and_failures_count_alike():
    """Ten of a hundred plays, or ninety: the rarer outcome counts. Weights are all equal."""
    for share in (0.1, 0.9):
        rewards = np.tile(np.arange(10) < 10 * share, 200).astype(float)
        log = logged(np.stack([rewards, rewards], axis=1), "uniform")
        result = replay(columns(log), ["ucb"], **FAST)
        plays = log.rewards[1000:][log.arms[1000:] == 0]
        rarer = min((plays == 0).sum(), (plays == 1).sum())
        row = result.references["always 0"]
        leverages = estimates.leverages(row.counted, result.shown)
        carried = support.outcomes(leverages, result.shown)
        assert carried == pytest.approx(rarer, rel=0.15)  # the log's share may be the smaller one
        assert rows_of(result)["always 0"].trusted


def test_an_outcome_that_large_weights_have_not_shown_is_missed():
    """Clicks of 5%, none of them in the few rounds that carry the variance."""
    rng = np.random.default_rng(1)
    often = np.arange(2000) % 2 == 0  # arm 0 has chance 0.95, else 0.05
    arms = np.where(rng.random(2000) < np.where(often, 0.95, 0.05), 0, 1)
    chances = np.where((arms == 0) == often, 0.95, 0.05)
    rewards = (rng.random(2000) < 0.05) * often.astype(float)
    log = {"round": np.arange(2000), "arm": arms, "reward": rewards, "chance": chances}
    row = rows_of(replay(log, ["ucb"], **FAST))["always 0"]
    assert row.effective > support.FEWEST
    assert without_verdict(row)
    assert "rare or very large rewards decide" in row.reason


def test_good_logs_keep_every_verdict(uniform):
    rows = rows_of(uniform)
    assert {"idea", "ucb", "training_leader", "random", "always 3"} < rows.keys()
    assert all(row.trusted and not row.reason for row in rows.values())
    assert {row.verdict for row in rows.values()} >= {BETTER, WORSE}


def test_logs_compare_with_the_best_arm_of_training_if_they_show_it(uniform):
    """Else with what the log earned, which is known."""
    default = dataclasses.replace(uniform, compared=None)
    assert default.baseline == LEADER
    rows = rows_of(default)
    assert rows[LEADER].verdict == ""
    apart = uniform.mean("random") - uniform.mean(LEADER)
    assert rows["random"].difference == pytest.approx(apart)
    rewards = drifting(600, seed=4)
    arms = (np.arange(600) >= 300).astype(int)  # in the test part always arm 1
    other = replay(played(arms, rewards, np.full(600, 0.5)), ["ucb"], **FAST)
    assert other.references[LEADER].arm == 0
    assert other.baseline == LOGGING


def test_an_unknown_baseline_leaves_no_verdict():
    log = logged(drifting(1200, seed=3), "uniform")
    log.arms[600:][log.arms[600:] == 1] = 2  # arm 1 is never played in the test part
    result = replay(columns(log), ["ucb"], baseline="always 1", **FAST)
    rows = rows_of(result)
    assert not rows["always 1"].trusted
    for label, row in rows.items():
        assert row.verdict == ("" if label == "always 1" else TOO_FEW)
        assert math.isnan(row.difference_low)
    assert rows["always 0"].trusted
    assert rows["always 0"].reason.startswith("always 1: in 100% of the rounds")


def test_two_that_hardly_ever_differ_have_no_verdict(uniform):
    """Both are known, but what they differ in is three rounds."""
    base = uniform.played["idea"]
    counted, earned = base.counted.copy(), base.earned.copy()
    places = np.flatnonzero(counted == 1)[:3]
    counted[places], earned[places] = 0, earned[places] - 5.0
    close = dataclasses.replace(
        uniform,
        played={"idea": base, "close": base._replace(earned=earned, counted=counted)},
        compared="idea",
    )
    row = rows_of(close)["close"]
    assert (row.trusted, row.verdict, row.reason) == (True, TOO_FEW, support.ALIKE)
    same = dataclasses.replace(close, played={"idea": base, "close": base})
    assert rows_of(same)["close"].verdict == NO_DIFFERENCE


def test_full_data_has_verdicts_only_from_enough_rounds(result):
    """Two policies that differ in four of 300 rounds, by one click each."""
    rounds = len(result.rounds)
    clicks = np.tile([0.0, 1.0], rounds // 2)
    base = result.played["ucb"]._replace(earned=clicks)

    def verdict(count):
        more = clicks.copy()
        more[:: rounds // count] += 1
        played = {"ucb": base, "more": base._replace(earned=more)}
        found = dataclasses.replace(result, played=played, compared="ucb")
        return rows_of(found)["more"].verdict

    assert [verdict(count) for count in (4, 30)] == [TOO_FEW, BETTER]
    seldom = result.played["ucb"]._replace(earned=(np.arange(rounds) < 2).astype(float))
    row = rows_of(dataclasses.replace(result, played={"ucb": seldom}))["ucb"]
    assert (math.isnan(row.low), row.trusted) == (True, False)
    assert "2.0 effective rounds" in row.reason
    steps = result.played["ucb"]._replace(earned=np.repeat(np.arange(3.0), 20))
    short = dataclasses.replace(result, played={"ucb": steps}, references={}, compared="ucb")
    row = rows_of(short)["ucb"]
    assert (math.isnan(row.low), row.trusted) == (True, False)
    assert "blocks of rounds that depend on each other" in row.reason


MODEL = LGDS(0.9 * np.eye(2), 0.2 * np.eye(2), 0.5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["chance 1", "never played"]), st.booleans())
def test_no_support_no_verdict(uniform, seed, why, clicks):
    """Whatever the rewards, and however the other arms are played."""
    rng = np.random.default_rng(seed)
    n, k = 300, 3
    rewards = rng.normal(size=n) if not clicks else (rng.random(n) < 0.3).astype(float)
    arms = rng.integers(2, size=n)
    chances = np.ones(n) if why == "chance 1" else rng.choice([0.2, 0.5, 1.0], size=n)
    log = Decisions(np.arange(n), arms, rewards, chances, ("a", "b", "c"))
    reads = np.vstack([np.eye(2), rng.normal(size=2)])
    done = off_policy.evaluate({}, Task(log, n // 2, MODEL, reads, 0.0))
    result = dataclasses.replace(
        uniform, played={}, references=done.references, shown=done.shown, rounds=np.arange(n // 2)
    )
    rows = rows_of(result)
    assert result.unsupported("always c") == 1
    for label, row in rows.items():
        if result.unsupported(label) > 0.05 or (why == "chance 1" and label != LOGGING):
            assert without_verdict(row), row
    assert k == len(rows) - 3


def test_reports_documents_and_figures_show_no_interval(uniform):
    log = columns(logged(drifting(1200, seed=3), "uniform"))
    log["chance"] = np.ones(1200)
    result = replay(log, ["idea", "ucb"], **FAST)
    made = report.report(result)
    cells = {row[0].text: [cell.text for cell in row[1:]] for row in made.blocks[0].rows}
    for label, (mark, _mean, ends, _difference, apart, _size, factor) in cells.items():
        if label != LOGGING:
            assert (mark, ends, apart, factor) == ("?", TOO_FEW, TOO_FEW, "")
    assert any(text.startswith(f"{TOO_FEW}: there is no interval") for text in said(result))
    assert not any(text.startswith(f"{TOO_FEW}:") for text in said(uniform))
    document = json.loads(json.dumps(made.data, allow_nan=False))
    for row in document["rows"]:
        if row["label"] != LOGGING:
            assert (row["low"], row["difference_high"], row["trusted"]) == (None, None, False)
            assert row["reason"].startswith("in ")
            assert (row["verdict"], row["tolerance"]) == (TOO_FEW, None)
    assert report.gains(result) == {}
    assert set(report.gains(uniform)) == {"idea", "ucb", "training_leader"}
    assert TOO_FEW in html.page(made)  # draws the empty figure
    assert TOO_FEW in str(result)
    assert "nan" not in str(result)


def test_chances_that_are_wrong_by_the_tolerance_undo_a_verdict(uniform):
    """The worst chances within this factor move the end of the interval to zero."""
    rows = rows_of(uniform)
    log = uniform.shown
    odds = 1 / log.chances - 1
    for label in ("idea", "always 3"):
        row, own = rows[label], uniform._row(label)
        sign = 1 if row.verdict == BETTER else -1
        errors = sign * own.counted * log.residuals
        factor = np.where(errors > 0, 1 / row.tolerance, row.tolerance)
        moved = sign * (own.earned + own.counted * (factor - 1) * odds * log.residuals).mean()
        reach = row.high - row.mean
        assert moved - sign * log.rewards.mean() == pytest.approx(reach)
    for row in rows.values():
        assert math.isnan(row.tolerance) == (row.verdict in ("", NO_DIFFERENCE, TOO_FEW))
        assert math.isnan(row.tolerance) or row.tolerance > 1
    shown = {row[0].text: row[-1].text for row in report.report(uniform).blocks[0].rows}
    assert shown["always 3"] == f"{rows['always 3'].tolerance:.2f}"
    assert shown[LOGGING] == ""


def said(result):
    return report.explanation(result)


def test_of_many_arms_those_are_shown_that_are_known():
    """Twelve arms; four of them are played too seldom, and one was lucky."""
    rng = np.random.default_rng(0)
    p = np.array([0.12] * 8 + [0.01] * 4)
    arms = rng.choice(12, p=p, size=3000)
    rewards = rng.normal(size=(3000, 12)) + 9.0 * (np.arange(12) == 11)
    result = replay(played(arms, rewards, p[arms]), ["ucb"], **FAST)
    assert rows_of(result)["always 11"].mean > 5
    shown = [row[0].text for row in report.report(result).blocks[0].rows]
    assert {f"always {arm}" for arm in range(8)} == {x for x in shown if x.startswith("always")}
