"""Arms keep their names: log, fit, model file, advice, simulation, theory, replay."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit import policies, theory
from driftbandit.cli.app import app
from driftbandit.identify import Arms
from driftbandit.system import checked_system, pair, takes_system

PAYS = {5: 5.0, 10: -10.0, 9: 9.0}
WORDS = {"right": 3.0, "both": -4.0, "left": 1.0}
MODEL = db.LGDS(np.diag([0.9, 0.5]), np.eye(2), 0.5)
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
"""Two states and three arms everywhere: what is compiled once serves all."""
FAST = {"runs": 4, "rounds": 10, "policies": ["idea"]}
SYSTEM = db.System(MODEL, ARMS, ["left", "right", "both"])


def log_of(pays, rounds=90):
    """A log in which each arm pays its own constant and a little noise, as columns."""
    rng = np.random.default_rng(0)
    arms = list(pays)
    played = [arms[i] for i in (*range(len(arms)), *rng.integers(0, len(arms), rounds))]
    rewards = [pays[arm] + 0.1 * rng.standard_normal() for arm in played]
    return {"round": list(range(len(played))), "arm": played, "reward": rewards}


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("pays", "names"), [(PAYS, (5, 9, 10)), (WORDS, ("both", "left", "right"))]
)
def test_names_travel_from_the_log_to_the_advice(pays, names, tmp_path):
    columns = log_of(pays)
    log, model, page = (tmp_path / name for name in ("log.csv", "model.json", "page.html"))
    rows = zip(*columns.values(), strict=True)
    log.write_text("round,arm,reward\n" + "".join(f"{r},{a},{x}\n" for r, a, x in rows))
    fast = ["--states", 1, "--starts", 1, "--iterations", 5]
    shown = run("fit", log, *fast, "--out", model)
    assert ", ".join(map(str, names)) in shown
    assert json.loads(model.read_text())["names"] == list(names)
    system = db.load_model(model)
    assert system.names == names
    found = db.fit(columns, n_states=1, starts=1, iterations=5)
    assert found.system.names == names
    np.testing.assert_array_equal(found.system.arms, system.arms)

    small = ["--runs", 4, "--rounds", 10, "--policies", "idea, random"]
    advice = json.loads(run("advise", model, *small, "--json"))
    assert [arm["name"] for arm in advice["arms"]] == list(names)
    for arm in advice["arms"]:  # each name stands beside its own numbers
        assert arm["mean_reward"] == pytest.approx(pays[arm["name"]], abs=0.2)
    words = run("advise", model, *small, "--html", page)
    for name in names:
        assert any(line.split()[:1] == [str(name)] for line in words.splitlines()), words
        assert f">{name}<" in page.read_text()

    study = json.loads(run("simulate", "--model", model, *small, "--json"))["studies"]
    assert study["model.json"]["arms"] == list(names)
    assert f"arms: {', '.join(map(str, names))}" in run("simulate", "--model", model, *small)


def test_advice_calls_arms_by_name():
    arms = ARMS[[0, 1, 0]]
    advice = db.advise(db.System(MODEL, arms, ["left", "right", "again"]), **FAST)
    assert [arm.name for arm in advice["arms"]] == ["left", "right", "again"]
    assert [arm.same_as for arm in advice["arms"]] == [None, None, "left"]
    assert "Duplicates: arm again, of arm left." in str(advice)
    numbered = db.advise(MODEL, arms, **FAST)
    assert [arm.name for arm in numbered["arms"]] == [0, 1, 2]
    assert numbered["simulation"] == advice["simulation"]
    assert json.loads(json.dumps(advice.to_dict()))["arms"][2]["same_as"] == "left"


def test_a_name_cannot_drive_the_terminal_or_the_page():
    from driftbandit.report.html import page

    system = db.System(MODEL, ARMS, ["<b>bold</b>", "\x1b[31m", "[red]" + "x" * 50])
    advice = db.advise(system, **FAST)
    html = page(advice.report("name"))
    assert "&lt;b&gt;bold&lt;/b&gt;" in html
    assert "<b>bold" not in html
    for shown in (html, str(advice), str(advice.report("name", terminal=True).blocks)):
        assert "\x1b" not in shown
    assert "[red]xxxxxxxxxxxxxxxxxxxxxxxx…" in html


def test_simulate_takes_systems():
    options = {"policies": ["kode"], "rounds": 20, "runs": 3}
    plain = db.simulate(MODEL, ARMS, **options)
    named = db.simulate(SYSTEM, **options)
    assert named.regret["kode"].shape == (3,)
    np.testing.assert_array_equal(named.regret["kode"], plain.regret["kode"])
    several = db.simulate([SYSTEM, (MODEL, ARMS)], assumed=[SYSTEM, SYSTEM], **options)
    np.testing.assert_array_equal(several.regret["kode"][0], plain.regret["kode"])
    with pytest.raises(db.InvalidInput, match="arms: were given together with a System"):
        db.simulate(SYSTEM, ["idea"])


def test_theory_takes_a_system_in_place_of_model_and_arms():
    bonus, cov = policies.kalman_ucb.bonus, 0.5 * np.eye(2)
    belief = db.kalman.prior(MODEL)
    calls = {
        "finite_lower_bound": ((), (20,), {"accuracy": 0.05}),
        "printed_finite_lower_bound": ((), (), {}),
        "least_regret": ((), (), {}),
        "metric": ((), (bonus, cov), {"squared": True}),
        "metric_interval": ((), (bonus,), {}),
        "wrong_action_probability": ((), (bonus, cov), {"accuracy": 0.05}),
        "exploration_schedule": ((), (bonus,), {"rounds": 200}),
        "no_arm_is_explored_forever": ((), (bonus,), {}),
        "ucb_upper_bound": ((), (100,), {"delta": 0.1}),
        "path_upper_bound": ((), (bonus, np.ones((5, 2)), np.ones((5, 3))), {}),
        "two_step_value": ((belief,), (), {}),
        "sphere_two_step_value": ((belief,), (), {}),
        "two_step_upper_bound": ((belief,), (), {"bonus": bonus}),
        "round_upper_bound": ((belief, np.ones(2)), (bonus,), {}),
    }
    taking = {name for name in theory.__all__ if hasattr(getattr(theory, name), "__wrapped__")}
    assert taking == set(calls)
    for name, (before, after, options) in calls.items():
        function = getattr(theory, name)
        if name in ("printed_finite_lower_bound", "least_regret"):
            system, arms = db.System(MODEL, np.eye(2)), np.eye(2)
        else:
            system, arms = SYSTEM, ARMS
        plain = function(*before, MODEL, arms, *after, **options)
        for got in (
            function(*before, system, *after, **options),
            function(*before, system, *after, arms=None, **options),
        ):
            assert repr(got) == repr(plain), name
    pairs = theory.metric_intervals([SYSTEM], {"ucb": bonus})
    plain = theory.metric_intervals([(MODEL, ARMS)], {"ucb": bonus})
    np.testing.assert_array_equal(pairs["ucb"].printed, plain["ucb"].printed)


def test_a_system_is_unpacked_by_keyword_too():
    @takes_system
    def called(belief, model, arms, bonus=0):
        return belief, model, arms, bonus

    belief, model, arms, bonus = called(1, model=SYSTEM, bonus=2)
    assert (belief, model, bonus) == (1, MODEL, 2)
    assert arms is SYSTEM.arms
    assert called(1, MODEL, ARMS, 2)[3] == 2
    for wrong in (lambda: called(1, SYSTEM, arms=ARMS), lambda: pair(SYSTEM, ARMS)):
        with pytest.raises(db.InvalidInput, match="arms: were given together with a System"):
            wrong()
    assert checked_system(SYSTEM) is SYSTEM
    assert checked_system(MODEL, ARMS).names == (0, 1, 2)
    for given, said in (((MODEL,), "arms: is missing"), ((3, ARMS), "model: has type int")):
        with pytest.raises(db.InvalidInput, match=said):
            checked_system(*given)


def test_features_belong_to_numbered_arms():
    features = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    fast = {"starts": 1, "iterations": 3}
    columns = log_of(PAYS)
    by_size = db.fit(columns, features, **fast)
    assert by_size.names == (5, 9, 10)
    assert by_size.arms[:, :2].tolist() == features
    named = db.fit(columns, Arms((5, 9, 10), features), **fast)
    np.testing.assert_array_equal(named.arms, by_size.arms)
    turned = db.fit(columns, Arms((10, 5, 9), features), **fast)
    assert turned.names == (10, 5, 9)
    assert turned.arms[:, -1].argmin() == 0  # the arm that pays −10

    few = db.fit(log_of({2: 1.0, 0: 2.0}), features, **fast)
    assert few.names == (0, 1, 2)  # arm 1 was never played
    with pytest.raises(db.InvalidInput, match="the log calls an arm 'both'; say which row"):
        db.fit(log_of(WORDS), features)
    with pytest.raises(db.InvalidInput, match="has 3 rows for the log's 2 arms"):
        db.fit(log_of({7: 1.0, 8: 2.0}), features)


def test_replay_calls_arms_by_name():
    columns = log_of({10: 1.0, 9: 5.0})
    fast = {"n_states": 1, "starts": 1, "iterations": 3, "runs": 1}
    result = db.replay(columns, ["ucb"], chances="estimated", **fast)
    assert result.names == (9, 10)
    rows = {row.label: row for row in result.rows()}
    assert rows["training_leader"].arm == rows["always 9"].arm == 9
    assert rows["ucb"].arm is None
    document = json.loads(json.dumps(result.to_document()))
    assert document["arms"] == [9, 10]
    assert document["shares"]["ucb"].keys() == {"9", "10"}
    wide = db.replay(
        np.column_stack([np.arange(60.0) + 99, np.arange(60.0)]),
        ["ucb"],
        **fast,
    )
    best = wide.references["best_arm"]
    assert best.arm == 0  # a name that is false, and still a name
    from driftbandit.replays import report

    assert report.title(wide, "best_arm") == "best arm, in hindsight: 0"


def test_theory_takes_a_system_by_keyword():
    model = db.LGDS([[0.5]], [[1.0]], 1.0)
    system, belief = db.System(model, [[1.0], [2.0]], ["a", "b"]), db.kalman.prior(model)
    expected = db.theory.two_step_value(belief, model, system.arms)
    for found in (
        db.theory.two_step_value(belief, system),
        db.theory.two_step_value(belief, model=system),
        db.theory.two_step_value(belief=belief, model=system),
    ):
        np.testing.assert_array_equal(found, expected)
