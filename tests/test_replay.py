"""Policies on real data: tables, yardsticks, both kinds of replay, intervals, the command."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit import InvalidInput
from driftbandit.cli.app import app
from driftbandit.cli.replay import _words
from driftbandit.identify import Arms, Log, Sequence, learning
from driftbandit.policies import make
from driftbandit.replays import Table, as_table, datasets, pictures, replay, yardsticks
from driftbandit.replays.offset_units import measured
from driftbandit.replays.play import POLICIES
from driftbandit.statistics import block_interval

NAN = float("nan")
FAST = {"n_states": 1, "starts": 1, "iterations": 20, "runs": 2}


def drifting(rounds=80, seed=0, gaps=0.0):
    """Rewards of four arms that read three slow states; few lengths, so that little compiles."""
    rng = np.random.default_rng(seed)
    state, reads = np.zeros(3), rng.normal(size=(4, 3))
    rewards = np.empty((rounds, 4))
    for t in range(rounds):
        state = 0.97 * state + 0.25 * rng.normal(size=3)
        rewards[t] = reads @ state + 0.3 * rng.normal(size=4) + 5
    rewards[rng.random((rounds, 4)) < gaps] = NAN
    return rewards


@pytest.fixture(scope="module")
def result():
    return db.replay(
        drifting(600), ["idea", "kalman_ucb", "ucb", "rexp3"], **FAST | {"n_states": 3}
    )


@pytest.fixture(scope="module")
def logged():
    rewards = drifting(seed=1)
    shown = np.random.default_rng(2).integers(4, size=80)
    rewards[np.arange(4) != shown[:, None]] = NAN
    rewards[17] = NAN  # a round whose reward got lost
    return rewards


# Tables


def test_table_of_a_log():
    log = Log((Sequence([3, 3, 5, 5, 5], [0, 1, 1, 0, 1], [1.0, 2.0, 3.0, NAN, 5.0]),), ("a", "b"))
    table = as_table(log)
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.rewards, [[1, 2], [NAN, 4]])
    assert table.times.tolist() == [0, 2]
    assert not table.logged
    assert as_table(table) is table


def test_tables_from_everything_else(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("round,arm,reward\n0,x,1\n1,y,2\n2,x,\n3,y,4\n")
    table = as_table(str(path))
    assert table.logged
    np.testing.assert_array_equal(table.rewards, [[1, NAN], [NAN, 2], [NAN, 4]])
    assert table.times.tolist() == [0, 1, 3]
    arms = tmp_path / "arms.csv"
    arms.write_text("arm,size\ny,2\nx,1\n")
    table = as_table(str(path), features=str(arms))
    assert table.names == ("y", "x")
    assert table.features.tolist() == [[2.0], [1.0]]
    assert table.rewards[0].tolist() == [NAN, 1] or np.isnan(table.rewards[0, 0])
    wide = as_table({"a": [1, 2], "b": [3, None]}, features=Arms(("b", "a"), [[1.0], [2.0]]))
    np.testing.assert_array_equal(wide.rewards, [[3, 1], [NAN, 2]])
    assert as_table([[1, 2], [3, 4]]).names == (0, 1)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("nothing", "'nothing' is neither a file nor a data set"),
        ("no/such.csv", "cannot be read"),
        ({"round": [0], "arm": ["a"]}, "has no column 'reward'"),
        ([[1.0], [2.0]], "holds one arm"),
        ([1.0, 2.0], r"has shape \(2,\)"),
        ([[1.0, float("inf")]] * 4, "round 0 of arm 1 is inf"),
        ([["a", "b"]] * 4, "is not a table of numbers"),
        (7, "has type int"),
        ([[1.0, 2.0]] + [[1.0, NAN]] * 3, "several arms in 1 rounds of 4"),
        ({"sequence": ["a", "b"], "round": [0, 0], "arm": "xy", "reward": [1, 2]}, "arm"),
        (
            {"sequence": ["a", "b"], "round": [0, 0], "arm": ["x", "y"], "reward": [1, 2]},
            "holds 2 sequences",
        ),
        ({"round": [0, 10**9], "arm": ["a", "b"], "reward": [1, 2]}, "leaves 1 of 2 rounds"),
        ([[1.0, 2.0]] * 3, "train: leaves 1 of 3 rounds"),
    ],
)
def test_bad_data_is_named(data, words):
    with pytest.raises(InvalidInput, match=words):
        replay(data)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"train": 1.0}, "train: is 1"),
        ({"runs": 0}, "runs: is 0"),
        ({"policies": ["idae"]}, "did you mean 'idea'"),
        ({"policies": ["kalman_oracle"]}, "sees all rewards"),
        ({"policies": ["random"]}, "random alone"),
        ({"policies": ["rexp3"]}, "rexp3 cannot choose from a part"),
        ({"baseline": "ubc"}, "did you mean 'ucb'"),
        ({"features": np.eye(3)}, "features"),
    ],
)
def test_wrong_options_are_named_before_any_work(options, words):
    data = [[1.0, 2.0], [NAN, 1.0]] * 10
    with pytest.raises(InvalidInput, match=words):
        replay(data, **options, progress=lambda *_: pytest.fail("began"))


# Playing


@pytest.mark.parametrize("logged", [False, True])
def test_empty_rounds_cost_nothing_and_change_nothing(logged):
    """A table with empty rows, and the same as a log whose rounds leave them out."""
    wide = drifting(seed=5, gaps=0.1)
    wide[[20, 21, 22, 55, 56]] = NAN
    if logged:
        kept = np.random.default_rng(0).integers(wide.shape[1], size=len(wide))
        wide[np.arange(wide.shape[1]) != kept[:, None]] = NAN
    rounds, arms = np.nonzero(np.isfinite(wide))
    first = int(np.isfinite(wide[:40]).any(axis=1).sum())
    rows = int(np.isfinite(wide).any(axis=1).sum())
    names = ["idea", "ucb", "discounted_ucb", "sliding_window_ucb", "oful", "discounted_linucb"]
    both = [
        replay(data, names, **FAST | {"runs": 1, "train": share})
        for data, share in (
            (wide, 0.5),
            ({"round": rounds, "arm": arms, "reward": wide[rounds, arms]}, (first + 0.5) / rows),
        )
    ]
    assert both[0].rounds.tolist() == both[1].rounds.tolist()
    assert both[1].train_rounds == first
    for name in names:
        np.testing.assert_array_equal(*(one.played[name].earned for one in both))
    shares = [one.predictability.rewards for one in both]
    assert shares[0] == pytest.approx(shares[1], rel=1e-9)


def test_all_policies_can_be_replayed_and_the_registry_says_which_filter():
    """Lookahead, rollout, thompson and IDS filter as well: none is "the best without a filter"."""
    log = {"round": range(60), "arm": [0, 1, 2] * 20, "reward": [1.0, 2.0, 3.0] * 20}
    result = replay(log, "all", **FAST | {"runs": 1})
    assert set(result.played) == set(db.policies.available()) - {"kalman_oracle", "random"}
    wide = np.random.default_rng(0).normal([0.0, 1.0], size=(40, 2))
    result = replay(wide, ["lookahead", "thompson", "ucb"], **FAST)
    assert result.baseline == "ucb"
    assert replay(wide, ["lookahead", "thompson"], **FAST).baseline == "random"


def test_unix_seconds_as_rounds():
    """Three hundred rewards over years of seconds: every policy plays them."""
    rng = np.random.default_rng(1)
    log = {
        "round": 1_500_000_000 + np.cumsum(rng.integers(1, 10**6, size=300)),
        "arm": rng.integers(3, size=300),
        "reward": rng.normal(size=300),
    }
    result = replay(log, n_states=1, starts=1, iterations=10, runs=2)
    assert set(result.played) == set(POLICIES)
    assert len(result.rounds) == 150
    assert result.rounds[-1] == log["round"][-1] - log["round"][0]


def test_rewards_add_up_by_an_independent_loop():
    """Asks policies themselves, without an agent; some rounds offer a part, one offers nothing."""
    rewards = drifting(seed=3, gaps=0.15)
    rewards[70] = NAN
    result = replay(rewards, ["kode", "ucb"], **FAST | {"runs": 4})
    center = np.nanmean(rewards[:40])
    model, arms = measured(result.fit.model, result.fit.arms)
    for name in ("kode", "ucb"):
        policy, totals = make(name), np.zeros(80)
        for begin in (0, 5, 10, 15):  # runs start all over the training part's first half
            constants, state = policy.prepare(model, arms, 80 - begin)
            problem = db.policies.Problem(model, arms, constants)
            for t in range(begin, 80):
                offered = np.isfinite(rewards[t])
                if not offered.any():
                    advance = policy.agent.advance
                    state = state if advance is None else advance(state, problem, 1)
                    continue
                scores = sum(policy.scores(state, problem))
                arm = int(np.argmax(np.where(offered, scores, -np.inf)))
                totals[t] += rewards[t, arm] / 4
                state = policy.update(state, problem, arm, rewards[t, arm] - center)
        played = result.played[name]
        assert result.rounds.tolist() == [t for t in range(40, 80) if t != 70]
        np.testing.assert_allclose(played.earned, totals[result.rounds], rtol=1e-9)
        assert result.cumulative(name)[-1] == pytest.approx(totals[40:].sum())
        assert played.means.mean() == pytest.approx(result.mean(name))
        assert played.shares.sum() == pytest.approx(1)


def test_rejection_equals_a_literal_loop(logged):
    result = replay(logged, ["idea", "rexp3"], **FAST)
    assert result.logged
    assert "uniformly" in result.notes[0]
    center = np.nanmean(logged[:40])
    model, arms = measured(result.fit.model, result.fit.arms)
    for name in ("idea", "rexp3"):
        matched = np.zeros((2, 40))
        for run, begin in enumerate((0, 10)):
            agent = db.Agent(model, arms, name, rounds=80 - begin, seed=run)
            for t in range(begin, 80):
                if t == 17:
                    agent.advance()
                    continue
                decision = agent.ask()
                shown = int(np.flatnonzero(np.isfinite(logged[t]))[0])
                if decision.arm == shown:
                    agent.tell(decision, logged[t, shown] - center)
                    matched[run, t - 40] = t >= 40
        paid = np.nansum(logged[40:], axis=1)
        np.testing.assert_allclose(result.played[name].earned, (matched * paid).mean(axis=0))
        np.testing.assert_allclose(result.played[name].counted, matched.mean(axis=0))
        assert result.mean(name) == pytest.approx((matched * paid).sum() / matched.sum())
    rows = {row.label: row for row in result.rows()}
    assert result.baseline == "logging"
    assert rows["logging"].mean == pytest.approx(np.nanmean(logged[40:]))
    assert rows["logging"].verdict == ""
    assert rows["idea"].counted < 25
    assert rows["idea"].difference == pytest.approx(rows["idea"].mean - rows["logging"].mean)
    arm = int(rows["best_arm"].arm)
    assert rows["best_arm"].mean == pytest.approx(np.nanmax(np.nanmean(logged[40:], axis=0)))
    assert rows["best_arm"].counted == np.isfinite(logged[40:, arm]).sum()
    with pytest.raises(InvalidInput, match="compare with logging"):
        replay(logged, ["idea"], baseline="ucb")


def test_idea_beats_ucb_where_rewards_drift(result):
    rows = {row.label: row for row in result.rows()}
    assert result.baseline in ("ucb", "rexp3")
    assert rows["idea"].verdict == "better"
    assert rows["idea"].mean > rows["best_arm"].mean > rows["random"].mean
    assert rows["per_round_best"].mean >= rows["full_information"].mean > rows["idea"].mean - 0.1
    assert result.predictability.rewards > 0.5
    assert result.predictability.differences > 0.5
    assert not any("predict" in note for note in result.notes)
    assert str(result).splitlines()[1].startswith("per_round_best")


def test_cold_policies_start_in_the_test_part():
    result = replay(drifting(), ["ucb"], warm=False, **FAST)
    assert result.played["ucb"].means.shape == (1,)
    model, arms = measured(result.fit.model, result.fit.arms)
    agent = db.Agent(model, arms, "ucb", rounds=40)
    assert result.played["ucb"].earned[0] == drifting()[40, agent.ask().arm]


def test_an_arm_that_comes_after_the_training_part():
    rewards = drifting()
    rewards[:40, 3] = NAN
    result = replay(rewards, ["idea"], **FAST)
    assert "No reward was seen of 1 arms: 3." in " ".join(result.notes)
    assert np.isfinite(result.mean("idea"))


def test_policies_that_need_all_arms_are_left_out():
    result = replay(drifting(gaps=0.1), **FAST)
    assert "rexp3" not in result.played
    assert any(note.startswith("rexp3 is left out") for note in result.notes)


def test_a_model_that_foresees_nothing_is_said():
    """An arm that pays more in the test part than ever before: the model says less than means."""
    rng = np.random.default_rng(0)
    rewards = np.cumsum(rng.standard_normal((40, 3)), axis=0)
    rewards = np.vstack([rewards, rewards[-1] * (-1.0) ** np.arange(40)[:, None]])
    result = replay(rewards, ["idea"], **FAST)
    assert result.predictability.rewards < 0
    share = f"explains {100 * result.predictability.rewards:.1f} % of the rewards' variance"
    said = [note for note in result.notes if "no better than each arm's training mean" in note]
    assert len(said) == 1
    assert share in said[0]


# Yardsticks, intervals


def test_yardsticks_by_hand():
    rewards = np.array([[1.0, 3.0, 2.0, -2.0], [NAN, 1.0, 4.0, NAN]])
    assert yardsticks.fixed(rewards, 0).tolist() == [1.0, 2.5]
    assert [yardsticks.leader(rewards), yardsticks.leader(rewards[:1])] == [2, 1]
    assert yardsticks.leader(np.array([[1.0, NAN], [NAN, 3.0], [NAN, -2.0]])) == 0
    result = replay(Table(np.tile(rewards, (40, 1)), tuple("abcd")), ["kode"], **FAST)
    assert result.mean("random") == pytest.approx((1 + 2.5) / 2)
    assert result.mean("per_round_best") == pytest.approx((3 + 4) / 2)
    assert result.mean("best_arm") == pytest.approx((2 + 4) / 2)
    assert result.yardsticks["training_leader"].arm == "c"


def test_predictability_is_what_it_says():
    rng = np.random.default_rng(0)
    rewards, predicted = rng.normal(size=(2, 50, 3))
    means = np.array([0.1, 0.2, 0.3])
    found = yardsticks.predictability(predicted, rewards, means, logged=False)
    whole = ((rewards - means) ** 2).sum()
    assert found.rewards == pytest.approx(1 - ((rewards - predicted) ** 2).sum() / whole)

    def apart(table):
        return table - table.mean(axis=1, keepdims=True)

    ratio = (apart(rewards - predicted) ** 2).sum() / (apart(rewards - means) ** 2).sum()
    assert found.differences == pytest.approx(1 - ratio)
    assert yardsticks.predictability(rewards, rewards, means, logged=True) == (1.0, None)


def test_intervals_are_paired(result):
    rows = {row.label: row for row in result.rows()}
    base = result.played[result.baseline].earned
    for label in ("idea", "kalman_ucb"):
        row, earned = rows[label], result.played[label].earned
        found = block_interval(earned - base)
        ends = (row.difference_low, row.difference_high)
        assert ends == pytest.approx((found.low, found.high))
        assert row.difference == pytest.approx(found.mean)
        assert (row.low, row.high) == pytest.approx(block_interval(earned)[1:3])
    idea, ucb = rows["idea"], rows["kalman_ucb"]
    assert idea.low < ucb.high  # means overlap although differences are clear
    assert rows["rexp3"].spread > 0


def test_the_constant_is_measured_by_the_offsets():
    constant = db.LGDS(np.eye(1), np.zeros((1, 1)), 1.0, np.zeros((1, 1)), [1.0])
    found, rows = measured(constant, np.array([[3.0], [-4.0]]))
    assert found.start_mean().tolist() == [5.0]
    np.testing.assert_allclose(rows.ravel(), [0.6, -0.8])


# Data sets


def test_french_is_read():
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=5) for name in ("MktRF", "RF", *datasets.INDUSTRIES)}
    table = datasets.french_table(columns)
    assert table.names[0] == "NoDur"
    beyond = 100 * (columns["NoDur"] - columns["MktRF"] - columns["RF"])
    np.testing.assert_allclose(table.rewards[:, 0], beyond)
    with pytest.raises(InvalidInput, match="has no column 'RF'"):
        datasets.french_table({"MktRF": [0.1]})


def test_flights_are_read():
    rows = [  # month, day, hour, carrier, delay
        *((1, day, hour, "AA", 10.0) for day in (1, 2) for hour in range(6, 22)),
        *((1, day, hour, "UA", -5.0) for day in (1, 2) for hour in range(6, 22)),
        (1, 1, 6, "AA", 200.0),  # 60 at most
        (1, 1, 7, "AA", NAN),  # canceled: 60
        (1, 1, 5, "AA", 50.0),  # night
        (1, 2, 8, "HA", 0.0),  # flies too seldom
    ]
    month, day, hour, carrier, delay = zip(*rows, strict=True)
    columns = {"month": month, "day": day, "hour": hour, "carrier": carrier, "dep_delay": delay}
    table = datasets.flights_table(columns | {"year": [2013] * len(rows)})
    assert table.names == ("AA", "UA")
    assert table.rewards.shape == (32, 2)
    assert table.rewards[:3].tolist() == [[-35.0, 0.0], [-35.0, 0.0], [-10.0, 0.0]]


def test_a_package_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(datasets.importlib.util, "find_spec", lambda name: None)
    for name in datasets.DATASETS:
        with pytest.raises(InvalidInput, match=r"pip install 'driftbandit\[data\]'"):
            replay(name)
    with pytest.raises(InvalidInput, match="did you mean 'flights'"):
        datasets.load("fligths")


# The command


def write(path, rewards):
    lines = ["round,arm,reward"]
    for t, arm in np.argwhere(np.isfinite(rewards)):
        lines.append(f"{t},arm{arm},{float(rewards[t, arm])!r}")
    path.write_text("\n".join(lines))
    return str(path)


def test_the_command(tmp_path):
    path = write(tmp_path / "data.csv", drifting(seed=5))
    plot = tmp_path / "plot.svg"
    small = ["--policies", "kode, ucb", "--states", "1", "--runs", "2", "--baseline", "random"]
    done = CliRunner().invoke(app, ["replay", path, *small, "--plot", str(plot)])
    assert done.exit_code == 0, done.output
    assert "data.csv: reward per round, over 40 test rounds" in done.output
    assert "the best arm of the training part" in " ".join(done.output.split())
    assert max(map(len, done.output.splitlines()[:-1])) <= 80
    assert "…" not in done.output
    assert "<svg" in plot.read_text()
    done = CliRunner().invoke(app, ["replay", path, *small, "--json"])
    document = json.loads(done.stdout)
    result = replay(path, ["kode", "ucb"], n_states=1, runs=2, baseline="random")
    assert document["rows"] == json.loads(json.dumps(result.to_document()))["rows"]
    assert document["baseline"] == "random"
    assert document["data"] == "data.csv"


def test_where_nothing_drifts(monkeypatch):
    """Only models without shared states are tried: those take seconds to compile."""
    tried = learning.candidates(2, None, True)[:2]
    monkeypatch.setattr(learning, "candidates", lambda *_: tried)
    rewards = np.random.default_rng(0).normal([0, 3], size=(240, 2))
    result = replay(rewards, ["ucb"], starts=1, iterations=10, runs=1)
    model = json.loads(json.dumps(result.to_document(), allow_nan=False))["model"]
    assert (model["states"], model["spectral_radius"]) == (0, 0.0)
    assert list(model["selection"]) == ["no drift", "each arm by itself, all alike"]
    assert _words(result)[0].startswith("A model without drift, learned from 120 rounds")


def test_the_command_on_a_log(tmp_path, logged):
    path = write(tmp_path / "log.csv", logged)
    plot = tmp_path / "plot.png"
    small = ["--policies", "idea, ucb", "--states", "1", "--runs", "2", "--plot", str(plot)]
    done = CliRunner().invoke(app, ["replay", path, *small])
    assert done.exit_code == 0, done.output
    assert "matched" in done.output
    assert "…" not in done.output
    assert "! One arm per round" in done.output
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_wrong_input_is_one_line_and_exit_code_2(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("round,arm,reward\n0,a,1\n1,b,zwei\n")
    done = subprocess.run(
        [sys.executable, "-c", "from driftbandit.cli import main; main()", "replay", str(path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "line 3: reward 'zwei' is not a number" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_lines_far_below_leave_the_figure(result):
    lines = pictures.gains(result)
    assert set(lines) == {*result.played, *pictures.SHOWN}
    down = -100 * np.ones(5)
    assert pictures._range([np.arange(5.0), down]) == (-0.4 * 4, 4)
    assert pictures._range([np.array([0.0, -3.0, 2.0]), down]) == (-3, 2)
    assert pictures._range([down]) == (-100, 0)
