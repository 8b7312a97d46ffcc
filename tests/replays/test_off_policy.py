"""Replay of logs: what it estimates, against the rewards of all arms, and what it refuses."""

import json

import numpy as np
import pytest

import driftbandit as db
from driftbandit import InvalidInput
from driftbandit.policies import make
from driftbandit.replays import estimates, naming, off_policy, replay, report
from driftbandit.replays.tasks import Task
from driftbandit.report import html
from logged_plays import columns, logged
from reward_tables import FAST, NAN, drifting, logged_rewards

MODEL = db.LGDS(0.97 * np.eye(4), 0.1 * np.eye(4), 0.5)


HALF = 1000  # decisions of each part: enough that intervals of these policies are shown


@pytest.fixture(scope="module")
def adaptive():
    return logged(drifting(2 * HALF, seed=1), "adaptive")


@pytest.fixture(scope="module")
def results(adaptive):
    chosen = ["idea", "ucb", "thompson"]
    how = FAST | {"runs": 3, "baseline": "logging"}
    log = columns(adaptive)
    return {method: replay(log, chosen, method=method, **how) for method in off_policy.METHODS}


def test_coverage_and_bias_on_small_logs():
    """The daily version of benchmarks/off_policy.py: a wrong model, three ways to draw arms."""
    errors, covered = {}, {}
    for seed in range(40):
        rewards = drifting(450, seed) - 5
        for kind in ("uniform", "uneven", "adaptive"):
            log = logged(rewards, kind, seed)
            task = Task(log, 50, MODEL, np.eye(4), 0.0, "dr")
            doubly = off_policy.shown_by(task)
            flat = np.full_like(doubly.predicted, log.rewards[:50].mean())
            q = estimates.shares(naming.choices(make("ucb"), task), 4)
            truth = np.vecdot(q, rewards[50:]).mean()
            for method, shown in (("dr", doubly), ("ips", doubly._replace(predicted=flat))):
                mean = estimates.earned(q, shown).mean()
                spread = estimates.variances(shown.of_played(q), shown)
                low, high = estimates.interval(mean, spread, 0.95)
                errors.setdefault((method, kind), []).append(mean - truth)
                covered.setdefault(method, []).append(low <= truth <= high)
    for case, own in errors.items():
        assert abs(np.mean(own)) < 2.5 * np.std(own, ddof=1) / np.sqrt(len(own)), case
    for method, inside in covered.items():  # 120 intervals: two standard errors are 4%
        assert 0.91 <= np.mean(inside) <= 0.99, method
    for kind in ("uniform", "uneven", "adaptive"):
        assert np.std(errors["dr", kind]) < np.std(errors["ips", kind])


def test_rows_are_the_estimates(results, adaptive):
    log = adaptive
    for method, result in results.items():
        assert result.method == method
        assert result.chances == "logged"
        fit = result.fit
        model, arms = fit.start_system.model, fit.arms
        center = log.rewards[:HALF].mean()
        task = Task(log, HALF, model, arms, center, method, True, 3, 0)
        q = estimates.shares(naming.choices(make("thompson"), task), 4)
        rows = {row.label: row for row in result.rows()}
        shown = result.shown
        np.testing.assert_array_equal(shown.arms, log.arms[HALF:])
        flat = np.unique(shown.predicted)
        assert (len(flat) == 1) == (method == "ips")
        mean = estimates.earned(q, shown).mean()
        ends = estimates.interval(mean, estimates.variances(shown.of_played(q), shown), 0.95)
        assert rows["thompson"][3:6] == pytest.approx((mean, *ends))
        assert rows["thompson"].difference == pytest.approx(mean - log.rewards[HALF:].mean())
        assert rows["thompson"].difference_low == pytest.approx(ends[0] - log.rewards[HALF:].mean())
        assert len(result.played["idea"].means) == (3 if method == "rejection" else 1)
        assert result.played["thompson"].means.mean() == pytest.approx(mean)
        known = rows["logging"]
        assert known.low == known.mean == known.high == pytest.approx(log.rewards[HALF:].mean())
        fixed = rows["always 2"]
        plays = log.arms[HALF:] == 2
        assert fixed.counted == plays.sum()
        weights = plays / log.chances[HALF:]
        assert fixed.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
        if method == "ips":
            terms = center + weights * (log.rewards[HALF:] - center)
            assert fixed.mean == pytest.approx(terms.mean())


def test_a_baseline_may_be_any_policy(results, adaptive):
    against = replay(columns(adaptive), ["idea", "ucb"], baseline="always 2", **FAST)
    rows = {row.label: row for row in against.rows()}
    shown = against.shown
    own, other = against.played["idea"].counted, against.references["always 2"].counted
    spread = estimates.variances(own, shown, other)
    apart = rows["idea"].difference
    ends = rows["idea"].difference_low, rows["idea"].difference_high
    assert ends == pytest.approx(estimates.interval(apart, spread, 0.95))
    assert rows["always 2"].verdict == ""
    assert rows["logging"].difference == pytest.approx(
        -rows["always 2"].mean + rows["logging"].mean
    )


def test_the_report_says_how_it_was_estimated(results):
    for method, words in (
        ("dr", "Doubly robust estimates"),
        ("ips", "Inverse propensity scores"),
        ("rejection", "it sees 7.5% of the rewards"),
    ):
        made = report.report(results[method], "log <b>")
        page = html.page(made)
        assert words in page
        assert "log &lt;b&gt;" in page
        document = json.loads(json.dumps(made.data, allow_nan=False))
        assert document["method"] == method
        assert document["feedback"] == (pytest.approx(0.075) if method == "rejection" else None)
    rows = made.blocks[0].rows
    assert [row[3].text for row in rows if row[0].text == "logging"] == ["known"]


def test_many_arms_leave_the_table():
    log = logged(np.tile(drifting(200, seed=1), 3), "uniform")
    result = replay(columns(log), ["ucb"], **FAST)
    shown = [row[0].text for row in report.report(result).blocks[0].rows]
    assert sum(label.startswith("always") for label in shown) == report.MOST_ARMS
    assert "4 more arms are left out." in " ".join(report.explanation(result))
    assert len(result.rows()) == 1 + 12 + 3


def test_a_policy_that_the_log_never_plays_has_no_value():
    log = logged(drifting(200, seed=1), "uniform")
    log.arms[100:][log.arms[100:] == 3] = 2
    result = replay(columns(log), ["ucb"], **FAST)
    row = next(row for row in result.rows() if row.label == "always 3")
    assert np.isnan([row.mean, row.low, row.high, row.difference]).all()
    assert row.verdict == "too few to tell"
    assert row.effective == 0


def test_unknown_chances_do_not_count():
    log = logged(drifting(200, seed=1), "uneven")
    log.chances[150:160] = NAN
    result = replay(columns(log), ["ucb"], **FAST)
    assert len(result.rounds) == 90
    assert result.mean("logging") == pytest.approx(
        np.delete(log.rewards[100:], range(50, 60)).mean()
    )
    assert any("10 of 200 decisions have no chance" in note for note in result.notes)


def test_decisions_of_one_round():
    """Several rows of a round are decisions one after the other; no time passes between them."""
    log = columns(logged(drifting(200, seed=1), "uneven"))
    log["round"] = np.arange(200) // 4
    result = replay(log, ["ucb", "idea"], **FAST)
    assert result.method == "dr"
    assert (result.train_rounds, result.test_rounds) == (100, 100)
    assert len(np.unique(result.rounds)) == 25


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (logged_rewards(), {}, "data: is a log without chances; add a column chance"),
        (logged_rewards(), {"method": "full"}, "method: is 'full', and the data is a log"),
        (logged_rewards(), {"method": "dr"}, "is a log without chances"),
        (logged_rewards(), {"method": "ipw"}, "method: unknown name 'ipw'; did you mean 'ips'"),
        (logged_rewards(), {"chances": "even"}, "chances: unknown name 'even'"),
        (drifting(), {"method": "dr", "chances": "uniform"}, "shows several arms in a round"),
        (drifting(), {"method": "full", "chances": "uniform"}, "which needs no chances"),
        (
            logged_rewards(),
            {"chances": "uniform", "baseline": "best_arm"},
            "baseline: unknown name",
        ),
        (
            logged_rewards(),
            {"chances": "uniform", "train": 0.01},
            "train: leaves 0 of 79 rows with a reward in the training part",
        ),
        (
            logged_rewards(),
            {"chances": "uniform", "policies": ["kalman_oracle"]},
            "sees all rewards",
        ),
    ],
)
def test_what_is_refused_before_any_work(data, options, words):
    with pytest.raises(InvalidInput, match=words):
        replay(data, **options, progress=lambda *_: pytest.fail("began"))


def test_policies_that_cannot_play_contexts_are_left_out():
    """Which arm is better depends on the price: the default policies that read it know."""
    rng = np.random.default_rng(0)
    price, played = rng.uniform(0.0, 2.0, size=200), rng.integers(2, size=200)
    sales = np.where(played == 0, 1.0 - price, price - 1.0) + 0.2 * rng.standard_normal(200)
    log = {"round": range(200), "arm": played, "reward": sales, "x_price": price}
    log["chance"] = [0.5] * 200
    structure = "constant(arm) + regression(x_price, arm)"
    found = db.replay(log, structure=structure, starts=1, runs=1)
    assert {"idea", "kode", "kalman_ucb"} <= found.played.keys()
    assert "ucb" not in found.played
    assert any(note.startswith("Left out: ucb") for note in found.notes)
    assert found.mean("idea") > 0.4  # the mean distance of prices from 1 is 0.5
    with pytest.raises(db.InvalidInput, match="policies: ucb, oful cannot play arms"):
        db.replay(log, ["ucb", "oful"], structure=structure, starts=1)
    with pytest.raises(db.InvalidInput, match="baseline: ucb cannot play arms"):
        db.replay(log, ["idea", "ucb"], baseline="ucb", structure=structure, starts=1)
