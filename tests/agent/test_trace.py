"""Traces: what is recorded is what a textbook loop gives, and pictures show it."""

import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit.agent import trace_figures
from driftbandit.agent.tracing import trace
from driftbandit.model import factor
from driftbandit.policies import available, make
from refusals import INF, STABLE, UNSTABLE, Case, assert_refused, each
from systems import assert_close, random_system

MODEL, ARMS = random_system(5, d=3, k=4)
SYSTEM = db.System(MODEL, ARMS, ["north", "east", "south", "west"])
EYE = np.eye(2)
TWO = db.System(STABLE, EYE, ["left", "right"])
BONUS = {"idea": naive.bonus_idea, "kode": naive.bonus_kode, "kalman_ucb": naive.bonus_kalman_ucb}


def textbook(policy, found, model, arms, delay=0):
    """Means, standard deviations and bonuses, n × k, given what was played and what it paid."""
    system = (model.transition, model.process_cov, model.reward_std)
    rows = []
    for now in range(len(found)):
        mean, cov = np.zeros(model.n_states), naive.prior_cov(*system[:2], model.initial_cov)
        for then in range(now):
            if then + delay < now:
                arm, reward = arms[found.chosen[then]], found.rewards[then]
                mean, cov = naive.kalman_step(mean, cov, *system, arm, reward)
            else:
                mean, cov = system[0] @ mean, system[0] @ cov @ system[0].T + system[1]
        stds = [np.sqrt(a @ cov @ a) for a in arms]
        rows.append((arms @ mean, stds, BONUS[policy](cov, *system, arms)))
        assert found.chosen[now] == naive.highest(rows[-1][0], rows[-1][2])
    return np.array(rows).transpose(1, 0, 2)


@pytest.mark.parametrize("delay", [0, 1, 4])
@pytest.mark.parametrize("policy", list(BONUS))
def test_what_is_recorded_is_the_textbook(policy, delay):
    found = trace(SYSTEM, policy=policy, rounds=50, seed=2, delay=delay)
    means, stds, bonuses = textbook(policy, found, MODEL, ARMS, delay)
    assert_close(found.means, means, 1e-9)
    assert_close(found.uncertainties, stds, 1e-9)
    assert np.abs(found.bonuses - bonuses).max() < 1e-9
    assert len(found) == 50
    if delay == 0:
        paid = np.full((50, 4), np.nan)
        paid[np.arange(50), found.chosen] = found.rewards
        values = (MODEL.transition, MODEL.process_cov, MODEL.reward_std, MODEL.initial_cov)
        assert naive.play(policy, *values, ARMS, paid, None) == found.chosen.tolist()


def test_regret_is_the_best_arm_minus_the_played_one():
    found = trace(SYSTEM, policy="random", rounds=80)
    assert_close(found.expected, found.states @ ARMS.T, 1e-12)
    assert_close(found.regret, naive.regret_path(ARMS, found.states, found.chosen), 1e-12)
    assert (np.diff(found.regret, prepend=0) >= 0).all()
    assert found.best.tolist() == found.expected.argmax(axis=1).tolist()
    assert np.isnan(found.means).all()
    assert np.isnan(found.uncertainties).all()


def test_the_states_start_stationary_and_follow_the_model():
    runs = [trace(SYSTEM, rounds=2, seed=seed, policy="random") for seed in range(400)]
    first, second = np.array([run.states for run in runs]).transpose(1, 0, 2)
    Z = MODEL.stationary_cov()
    for states in (first, second):
        whitened = np.linalg.solve(np.linalg.cholesky(Z), states.T)
        assert np.abs(np.cov(whitened) - np.eye(3)).max() < 0.3
    moved = np.linalg.solve(factor(MODEL.process_cov), (second - first @ MODEL.transition.T).T)
    assert np.abs(np.cov(moved) - np.eye(3)).max() < 0.3
    noise = [(run.rewards - run.of_chosen(run.expected)) / MODEL.reward_std for run in runs]
    assert abs(np.std(noise) - 1) < 0.1


def test_the_world_depends_on_the_seed_alone():
    first, again = (trace(SYSTEM, rounds=30, seed=7) for _ in range(2))
    for field in ("states", "means", "bonuses", "uncertainties", "chosen", "rewards"):
        assert np.array_equal(getattr(first, field), getattr(again, field))
    other = trace(SYSTEM, policy="ucb", rounds=40, seed=7, delay=2)
    assert np.array_equal(other.states[:30], first.states)
    same = other.chosen[:30] == first.chosen
    assert same.any()
    assert np.array_equal(other.rewards[:30][same], first.rewards[same])
    assert not np.array_equal(trace(SYSTEM, rounds=30, seed=8).states, first.states)


@pytest.mark.parametrize("policy", available())
def test_every_policy_can_be_traced(policy):
    found = trace(SYSTEM, policy=policy, rounds=12, delay=1)
    assert (found.regret >= 0).all()
    assert found.label == policy
    assert trace(SYSTEM, policy=make(policy), rounds=12, delay=1).regret[-1] == found.regret[-1]


def test_the_policy_believes_in_what_is_assumed():
    slow = db.LGDS(0.99 * np.eye(3), MODEL.process_cov / 50, 1.0)
    found = trace(SYSTEM, policy="idea", rounds=30, assumed=slow)
    truth = trace(SYSTEM, policy="idea", rounds=30)
    assert np.array_equal(found.states, truth.states)
    assert_close(found.means, textbook("idea", found, slow, ARMS)[0], 1e-9)
    # A system has its own arms, in any order, and any number of states.
    level = db.LGDS(0.9 * np.eye(4), np.eye(4), 0.5)
    shuffled = db.System(level, np.eye(4), ["west", "north", "south", "east"])
    found = trace(SYSTEM, policy="idea", rounds=30, assumed=shuffled)
    order = [1, 3, 2, 0]
    assert_close(found.means, textbook("idea", found, level, np.eye(4)[order])[0], 1e-9)


def test_jumps_move_the_state_and_alarms_follow():
    calm = trace(TWO, rounds=60, seed=1)
    jumped = trace(TWO, rounds=60, seed=1, jumps={20: [8.0, -3.0]})
    moved = jumped.states - calm.states
    assert not moved[:20].any()
    assert_close(moved[20:23], np.outer([1, 0.5, 0.25], [8.0, -3.0]), 1e-12)
    walk = db.LGDS(np.eye(2), 0.01 * EYE, 0.5, initial_cov=EYE)
    found = trace(walk, EYE, rounds=200, jumps={100: [-9.0, -9.0]}, on_alarm="widen")
    assert min(alarm.since for alarm in found.agent.alarms) >= 99
    assert found.agent.round == 200


def test_a_table_has_one_row_per_round():
    table = trace(SYSTEM, rounds=25).to_dataframe()
    assert table["round"].tolist() == list(range(25))
    assert set(table["arm"]) | set(table["best"]) <= set(SYSTEM.names)
    assert np.allclose((table["best_expected"] - table["expected"]).cumsum(), table["regret"])
    assert trace(MODEL, ARMS, rounds=3).to_dataframe()["arm"].tolist()[0] in range(4)


def test_the_figure_marks_the_choices(tmp_path):
    found, other = (trace(SYSTEM, policy=name, rounds=40) for name in ("idea", "ucb"))
    figure = found.plot(tmp_path / "trace.png", against=other)
    upper, lower = figure.axes
    dots = [line.get_xdata() for line in upper.lines if line.get_linestyle() == "None"]
    assert [np.flatnonzero(found.chosen == row).tolist() for row in range(4)] == [
        list(rounds) for rounds in dots
    ]
    assert [text.get_text() for text in lower.get_legend().get_texts()] == ["IDEA", "UCB"]
    assert (tmp_path / "trace.png").stat().st_size > 1000
    late = trace(SYSTEM, rounds=40, delay=5)
    lower = found.plot(against={"5 rounds late": late}).axes[1]
    assert lower.get_legend().get_texts()[1].get_text() == "5 rounds late"
    lower = found.plot(arm="east").axes[1]
    assert np.array_equal(lower.lines[0].get_ydata(), found.expected[:, 1])


def test_many_arms_have_gray_lines():
    many = trace(*random_system(1, d=3, k=20), rounds=30)
    shown = [text.get_text() for text in many.plot().legends[0].get_texts()]
    assert len(shown) == trace_figures.MOST + 1
    assert shown[-1] == "others"


def test_traces_are_shown_in_one_line():
    assert repr(trace(TWO, policy="kalman_ucb(width=2)", rounds=5)) == (
        "Trace(kalman_ucb(width=2), 2 arms, 5 rounds)"
    )
    with pytest.raises(ValueError, match="read-only"):
        trace(TWO, rounds=5).states[0] = 0


FOUND = trace(TWO, rounds=5)
WITH_CONTEXT = db.System(STABLE, EYE, ["left", "right"], {"x_hour": EYE})
CASES = [
    Case("no arms", lambda: trace(STABLE), "arms", "is missing"),
    Case("two arms", lambda: trace(TWO, EYE), "arms", "with a System"),
    Case("no model", lambda: trace(None, EYE), "model", "NoneType"),
    Case("sphere", lambda: trace(STABLE, "sphere"), "arms", "sphere"),
    Case("contexts", lambda: trace(WITH_CONTEXT), "system", "x_hour"),
    Case("policy", lambda: trace(TWO, policy="ide"), "policy", "'ide'"),
    Case("rounds", lambda: trace(TWO, rounds=0), "rounds", "0"),
    Case("seed", lambda: trace(TWO, seed=-1), "seed", "-1"),
    Case("delay", lambda: trace(TWO, delay=1.5), "delay", "1.5"),
    Case("assumed", lambda: trace(TWO, assumed=3), "assumed", "int"),
    Case("assumed arms", lambda: trace(STABLE, EYE, assumed=TWO), "assumed arm", "0"),
    Case("assumed states", lambda: trace(TWO, assumed=db.LGDS([[0.5]], [[1]], 1)), "assumed", "2"),
    Case("assumed contexts", lambda: trace(TWO, assumed=WITH_CONTEXT), "assumed", "x_hour"),
    Case("jumps", lambda: trace(TWO, jumps=[1.0, 2.0]), "jumps", "list"),
    Case("jump late", lambda: trace(TWO, rounds=9, jumps={9: [1, 1]}), "jumps round", "9"),
    Case("jump size", lambda: trace(TWO, jumps={3: [1.0]}), "jumps[3]", "(1,)"),
    Case("jump infinite", lambda: trace(TWO, jumps={3: [1.0, INF]}), "jumps[3]", "inf"),
    Case("alarm", lambda: trace(TWO, on_alarm="widn"), "on_alarm", "'widn'"),
    Case("overflow", lambda: trace(UNSTABLE, EYE, rounds=2000), "rounds", "2000"),
    Case("arm", lambda: FOUND.plot(arm="up"), "arm", "'up'"),
    Case("no belief", lambda: trace(TWO, policy="ucb").plot(arm="left"), "arm", "ucb"),
    Case("against", lambda: FOUND.plot(against=[3]), "against", "has 3, which is not a trace"),
    Case("twice", lambda: FOUND.plot(against=[FOUND]), "against", "'Reach'"),
    Case(
        "another world",
        lambda: FOUND.plot(against={"b": trace(TWO, rounds=5, seed=1)}),
        "against",
        "not a trace of this world",
    ),
]


@each(CASES)
def test_wrong_arguments_are_refused(case):
    assert_refused(case)
