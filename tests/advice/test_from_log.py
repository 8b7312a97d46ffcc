"""Advice from logs of every kind. All have the same size, so that programs are compiled once."""

import dataclasses
import json

import numpy as np
import pytest

import driftbandit as db
from advised_logs import few_structures, log
from advised_systems import strict
from driftbandit.advice import Advice, finding, log_facts, log_findings
from driftbandit.advice.finding import Number, Recommendation
from driftbandit.identify import as_log
from driftbandit.policies import make
from driftbandit.report import as_json, html
from refusals import Case, assert_refused, each
from terminals import shown

FEW = {"policies": ["idea", "ucb"], "runs": 50}
NAMES = ("<script>alert(1)</script>", "`[red]$x$")


@pytest.fixture(scope="module", autouse=True)
def _few_structures():
    with few_structures():
        yield


@pytest.fixture(scope="module")
def drifting():
    return db.advise(log(drift=0.15, arms=NAMES, seed=5), **FEW)


@pytest.fixture(scope="module")
def still():
    return db.advise(log(), **FEW)


def sections(advice):
    made = advice.report("name", terminal=True)
    return [heading.text for heading, _ in made.sections], shown(made, 80)


QUESTIONS = [
    "1. What the log holds",
    "2. Is there drift?",
    "3. Is it predictable?",
    "4. What would policies have earned?",
    "5. What do you lose by a fixed choice?",
    "Recommendation",
]


def test_drift_is_found_and_its_speed_covers_the_truth(drifting):
    assert isinstance(drifting, Advice)
    assert drifting["drift"].verdict == "yes"
    assert drifting["speed"].rounds == 10
    assert drifting["speed"].low < 0.15 * np.sqrt(10) < drifting["speed"].high
    assert drifting["predictability"].low > 0
    headings, text = sections(drifting)
    assert headings == QUESTIONS
    assert "Yes: what arms pay drifts (p = 0.005)." in text
    assert max(map(len, text.splitlines())) <= 80
    assert str(drifting).startswith(drifting.recommendation.headline)


def test_a_log_without_drift_says_no(still):
    assert (still["drift"].verdict, still["season"].verdict) == ("no", "no")
    assert still["structure"] == "constant(arm)"
    assert still.recommendation.kind == "fixed arm"  # the log is random: the better arm earns more
    text = " ".join(sections(still)[1].split())
    assert "No: what arms pay does not drift" in text
    assert "No season was found." in text


def test_the_replay_is_that_of_replay(still):
    settings = {"structure": "level(arm)", "train": 0.4, "seed": 0, "baseline": "training_leader"}
    played = db.replay(log(), ["idea", "ucb"], **settings)
    for row in played.rows(confidence=0.975):
        mine = still["replayed"].row(row.label)
        assert (mine.mean, mine.low, mine.high) == (row.mean, row.low, row.high)
        if row.label != "training_leader":
            assert mine.over_fixed[:3] == (row.difference, row.difference_low, row.difference_high)


def test_equal_policies_are_called_equal_and_reach_is_preferred():
    columns = log(drift=0.15, arms=NAMES, seed=5)
    advice = db.advise(columns, policies=["kalman_ucb", "reach", "random"], runs=50)
    done = advice["replayed"]
    assert set(done.equal) == {"reach", "kalman_ucb"}
    assert done.best == "reach"
    text = " ".join(sections(advice)[1].split())
    said = "Kalman-UCB cannot be told apart from Reach: the difference is within the uncertainty"
    assert f"{said}, so they count as equal, and Reach is preferred." in text
    assert 'policy="reach"' in advice.recommendation.commands[-1]


CAUTIOUS = dataclasses.replace(make("kalman_ucb", width=6.0), name="reach")  # explores too much


@pytest.mark.parametrize(
    ("seed", "reach", "best"),
    [(5, "reach", "reach"), (8, "reach", "reach"), (28, CAUTIOUS, "kalman_ucb")],
)
def test_a_higher_policy_is_preferred_only_if_it_is_clearly_better(seed, reach, best):
    """With seeds 5 and 8 the difference is within the uncertainty."""
    columns, structure = log(drift=0.15, seed=seed), "level(arm)"
    result = db.replay(columns, ["kalman_ucb", reach], structure=structure, train=0.4)
    found = log_facts.replayed(result, 0.975)
    assert found.row("reach").mean < found.row("kalman_ucb").mean
    assert found.best == best


def test_a_log_with_chances_of_one_is_asked_for_random_decisions():
    columns = log(drift=0.15, arms=NAMES, seed=5)
    columns["chance"] = np.ones(240)
    advice = db.advise(columns, **FEW)
    assert advice.recommendation.kind == "collect"
    words = " ".join(advice.recommendation.reasons)
    assert "There is no interval for IDEA: in " in words
    assert "Draw 10% of the decisions at random" in words
    done = advice["replayed"]
    assert (done.best, done.equal) == ("idea", ())
    assert not any(row.trusted for row in done.rows if row.label != "logging")
    text = " ".join(sections(advice)[1].split())
    assert "Too few rewards to compare policies: in " in text
    assert "The log does not show enough to compare IDEA with always playing" in text
    assert "in hindsight" not in text
    assert html.page(advice.report("name")).count("<img") == 1  # no figure of policies


def test_differences_that_the_log_does_not_show_are_none(drifting):
    (row,) = [row for row in drifting.replay.rows() if row.label == "ucb"]
    worse = row._replace(verdict="worse", difference_low=-0.2, difference_high=-0.1)
    same = worse._replace(label="same", difference_high=-0.2 + 1e-14)
    first = row._replace(label="first", verdict="", difference_low=np.nan, difference_high=np.nan)
    level = [each.label for each in (first, worse, same) if log_facts._is_level(each)]
    assert level == ["first", "same"]


def test_counts_are_called_what_they_count(drifting):
    text = " ".join(sections(drifting)[1].split())
    assert "by the 144 rewards after the first 96 rewards" in text
    everything = db.advise(log(drift=0.15, arms=NAMES, seed=5, full=True), **FEW)
    assert "by the 144 rounds after the first 96 rounds" in " ".join(
        sections(everything)[1].split()
    )


def policies_said(done, structure):
    return " ".join(shown(list(log_findings.on_policies(done, structure).blocks), 80).split())


def test_another_model_in_the_test_is_explained(drifting):
    done = drifting["replayed"]
    why = "This model is not the best one of part 2, which was chosen with the whole log"
    assert why in policies_said(done, "constant(arm)")
    assert why not in policies_said(done, done.structure)


def test_a_difference_that_is_always_zero_is_explained(drifting):
    done = drifting["replayed"]
    zero = Number(0.0, 0.0, 0.0, "no difference seen")
    rows = [row._replace(over_fixed=zero) if row.label == "ucb" else row for row in done.rows]
    text = policies_said(done._replace(rows=tuple(rows)), done.structure)
    assert "≈ exactly 0" in text
    assert "exactly 0: both choose the same arm in every round." in text
    assert "(0 to 0)" not in text


def test_without_chances_only_the_model_speaks():
    advice = db.advise(log(drift=0.15, arms=NAMES, seed=5, chances=False), **FEW)
    assert advice["replayed"] is None
    assert advice["forecast"].rounds == 120
    assert advice.recommendation.kind in ("keep", "collect")
    text = " ".join(sections(advice)[1].split())
    assert "This log cannot tell: it has no column chance." in text
    assert "This is what the model says, not what the log proves." in text


def test_chances_may_be_assumed(still):
    advice = db.advise(log(chances=False), **FEW, chances="uniform")
    assert advice["replayed"].rows == still["replayed"].rows
    (line,) = advice.recommendation.commands  # not the command that was just run
    assert line.startswith("driftbandit fit ")
    assert "With the chances that you gave" in " ".join(sections(advice)[1].split())


def test_names_with_markup_are_escaped(drifting):
    page = html.page(drifting.report("<b>name</b>"))
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<b>name</b>" not in page


def test_json_is_strict_complete_and_stable(drifting):
    document = strict(as_json(drifting.report("name")))
    again = db.advise(as_log(log(drift=0.15, arms=NAMES, seed=5)), **FEW)
    assert document == {"name": "name"} | json.loads(json.dumps(again.to_dict()))
    assert set(document) == {
        "name", "findings", "contents", "drift", "season", "speed", "seasons", "structure",
        "structures", "predictability", "replayed", "forecast", "recommendation", "model",
    }  # fmt: skip
    assert document["drift"] == drifting["drift"]._asdict()
    drift = document["findings"][1]
    assert (drift["question"], drift["verdict"]) == ("Is there drift?", "yes")
    assert [number["unit"] for number in drift["numbers"]][1:] == ["reward in 10 rounds", "reward"]


@pytest.mark.nightly
def test_one_arm_leaves_nothing_to_decide():
    advice = db.advise(log(arms=("only",), rounds=90), seasons=[])
    assert advice.recommendation.kind == "nothing"
    assert (advice["replayed"], advice["forecast"]) == (None, None)
    assert sections(advice)[0] == QUESTIONS


def test_a_long_log_is_shortened(still, monkeypatch):
    monkeypatch.setattr("driftbandit.identify.structured.selection.MOST_ROWS", 240)
    columns = {key: [*value[:60], *value] for key, value in log().items()}
    columns["round"] = [*range(300)]
    advice = db.advise(columns, **FEW)
    assert advice["contents"].rows == 240
    assert advice.recommendation.warnings[0] == "The last 240 of 300 rows are used."
    assert advice["replayed"].rows == still["replayed"].rows


def test_progress_is_told():
    stages = {}
    db.advise(log(), **FEW, progress=lambda stage, share, *_: stages.update({stage: share}))
    assert list(stages) == ["structures", "training part", "fit", "play", "forecast"]
    assert set(stages.values()) == {1}


def test_the_fixed_policy_of_the_forecast_plays_its_arm():
    system = db.families.sample("gaussian", n_states=3, n_arms=3, seed=4)[0]
    result = db.simulate(*system, policies=[log_facts.fixed_policy(1), "random"], rounds=20, runs=4)
    agent = db.Agent(*system, policy=log_facts.fixed_policy(1))
    for _ in range(3):
        decision = agent.ask()
        assert decision.arm == 1
        agent.tell(decision, -5.0)
    assert (result.regret["fixed"] >= 0).all()


def test_a_fixed_arm_is_the_best_on_average():
    found = db.System(db.LGDS([[0.0, 1.0], [1.0, 0.0]], np.zeros((2, 2)), 0.1,
                              initial_cov=np.zeros((2, 2)), initial_mean=[3.0, 0.0]),
                      [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])  # fmt: skip
    assert log_facts.best_fixed(found, 1) == 0  # 3, 0 and 1.8
    assert log_facts.best_fixed(found, 2) == 2  # 1.5, 1.5 and 1.8


SMALL = log(rounds=30)
GOOD = log(rounds=90)
REFUSED = [
    Case("tiny", lambda: db.advise(SMALL), "log", "has 30 rewards; advice needs at least 40"),
    Case("no file", lambda: db.advise("absent.csv"), "absent.csv", "cannot be read"),
    Case("type", lambda: db.advise(7), "log", "has type int"),
    Case("policy", lambda: db.advise(GOOD, policies=["idee"]), "policy", "did you mean 'idea'"),
    Case("chances", lambda: db.advise(GOOD, chances="uniform"), "chances", "has a column"),
    Case("runs", lambda: db.advise(GOOD, runs=2), "runs", "is 2"),
    Case("rounds", lambda: db.advise(GOOD, rounds=0), "rounds", "is 0"),
    Case("seasons", lambda: db.advise(GOOD, seasons=7), "seasons", "is 7"),
    Case("season", lambda: db.advise(GOOD, seasons=[0.5]), "season: period", "0.5"),
    Case("column", lambda: db.advise({"round": [1], "arm": [1]}), "log", "reward"),
]


@each(REFUSED)
def test_refused(case):
    assert_refused(case)


def test_options_of_logs_are_refused_with_a_system():
    model, arms = db.families.sample("gaussian", n_states=3, n_arms=3)[0]
    with pytest.raises(db.InvalidInput, match="seasons: was given with a system"):
        db.advise(model, arms, seasons=[7])


def test_reasons_may_be_none(still):
    bare = dataclasses.replace(still, recommendation=Recommendation("keep", "Keep."))
    assert "Keep." in sections(bare)[1]


@pytest.mark.parametrize("drift", [0.0, 0.15])
def test_few_rewards_get_no_flat_assertions(drift):
    """Nothing is said of policies, whose numbers would rest on a dozen rewards."""
    advice = db.advise(log(rounds=60, drift=drift), **FEW)
    assert [each.verdict for each in advice.findings[2:]] == ["cannot tell"] * 3
    assert (advice["predictability"], advice["replayed"], advice["forecast"]) == (None, None, None)
    assert advice.recommendation.kind == "collect"
    text = " ".join(sections(advice)[1].split())
    assert "Too few to compare: the log has 60 rewards, and this takes 80" in text
    for flat in ("would have earned about", "Forecast", "in hindsight", "Yes: 3", "count as equal"):
        assert flat not in text
    fitted = db.fit(as_log(log(rounds=60, drift=drift)))
    assert fitted.drift == advice["drift"]


def test_a_replay_that_shows_too_little_prints_no_means():
    text = " ".join(sections(db.advise(log(rounds=90, drift=0.15), **FEW))[1].split())
    assert "Too few rewards to compare policies: " in text
    for flat in ("would have earned about", "Reward per round, by", "Nobody knew"):
        assert flat not in text


def test_arms_that_always_pay_the_same():
    columns = log()
    columns["reward"] = np.where(np.array(columns["arm"]) == "left", 1.0, 2.0)
    advice = db.advise(columns, **FEW)
    assert advice.recommendation.kind == "fixed arm"
    assert advice.recommendation.headline == "Always play right."
    text = " ".join(sections(advice)[1].split())
    assert "Every arm has always paid the same." in text
    assert "e-0" not in text  # sizes of rounding errors
    assert advice["forecast"] is None
    same = db.advise(columns | {"reward": np.ones(240)}, **FEW).recommendation
    assert (same.kind, same.headline) == (
        "nothing",
        "Nothing to decide: every arm has paid 1.00, every time.",
    )


def test_one_arm_is_not_compared_with_others():
    advice = db.advise(log(arms=("only",), rounds=90, drift=0.1), seasons=[], **FEW)
    assert advice.recommendation.kind == "nothing"
    text = sections(advice)[1]
    for word in ("common to all arms", "share it", "Forecast", "smallest chance"):
        assert word not in text


def test_without_time_nothing_is_asked():
    told = {}
    advice = db.advise(
        log(), **FEW, budget=0, progress=lambda name, share: told.update({name: share})
    )
    assert advice.findings[0].verdict == "chances"
    assert [each.verdict for each in advice.findings[1:]] == ["not asked: time was up"] * 4
    assert advice["drift"].verdict == "cannot tell"
    assert advice.recommendation.kind == "open"
    assert told["time"] == 1
    text = sections(advice)[1]
    assert text.count("Not asked: time was up.") == 4
    strict(as_json(advice.report("name")))


def test_what_is_ready_is_kept_when_time_is_up(monkeypatch):
    seen = []
    monkeypatch.setattr(finding.time, "monotonic", lambda: 100.0 * (len(seen) > 2))
    advice = db.advise(log(), **FEW, budget=50, ready=seen.append)
    assert [each.verdict for each in advice.findings] == [
        "chances", "no", "no", "not asked: time was up", "not asked: time was up",
    ]  # fmt: skip
    assert list(advice.findings[:3]) == seen
    assert advice.recommendation.kind == "open"
    with pytest.raises(db.InvalidInput, match="budget: is -1"):
        db.advise(log(), budget=-1)


def test_a_season_that_the_model_lacks_is_warned_of():
    advice = db.advise(log(season=0.6), seasons=[], **FEW)
    assert any("repeats every 7 rounds" in text for text in advice.recommendation.warnings)
