"""Policies on real data: both kinds of replay and reference strategies."""

import dataclasses

import numpy as np
import pytest

import driftbandit as db
from driftbandit import InvalidInput
from driftbandit.policies import make
from driftbandit.replays import Table, replay, tasks
from driftbandit.replays.play import POLICIES
from reward_tables import FAST, NAN, drifting


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
    share = (first + 0.5) / rows
    how = FAST | {"runs": 1, "chances": "uniform" if logged else None}
    both = [
        replay(data, names, **how | {"train": train})
        for data, train in (
            (wide, share if logged else 0.5),
            ({"round": rounds, "arm": arms, "reward": wide[rounds, arms]}, share),
        )
    ]
    assert both[0].rounds.tolist() == both[1].rounds.tolist()
    assert both[1].train_rounds == first
    for name in names:
        np.testing.assert_array_equal(*(one.played[name].earned for one in both))
    shares = [one.predictability.rewards for one in both]
    assert shares[0] == pytest.approx(shares[1], rel=1e-9)


def test_all_policies_can_be_replayed():
    log = {"round": range(60), "arm": [0, 1, 2] * 20, "reward": [1.0, 2.0, 3.0] * 20}
    result = replay(log, "all", chances="uniform", **FAST | {"runs": 1})
    assert set(result.played) == set(db.policies.available()) - {"kalman_oracle", "random"}


@pytest.mark.parametrize("names", [["lookahead", "thompson", "ucb"], ["lookahead"], ["ucb"]])
def test_the_default_comparison_is_with_the_best_arm_of_the_training_part(names):
    """Whatever plays: the best policy is no excuse for not trying what needs no policy."""
    wide = np.random.default_rng(0).normal([0.0, 1.0], size=(40, 2))
    result = replay(wide, names, **FAST)
    assert (result.compared, result.baseline) == (None, "training_leader")
    assert result.references["training_leader"].arm == 1
    assert "minus training_leader" in str(result)
    rows = {row.label: row for row in result.rows()}
    assert rows["training_leader"].verdict == ""
    apart = result.mean(names[0]) - wide[20:, 1].mean()
    assert rows[names[0]].difference == pytest.approx(apart)
    assert replay(wide, names, baseline=names[0], **FAST).baseline == names[0]


def test_better_than_ucb_is_not_better_than_the_best_arm_of_the_training_part():
    """One arm always pays more by far: nothing is to be gained by playing."""
    rng = np.random.default_rng(0)
    wide = np.where(np.arange(4) == 2, 1.0, 0.0) + 0.5 * rng.normal(size=(400, 4))
    names = ["idea", "rexp3"]
    default = {row.label: row for row in replay(wide, names, **FAST).rows()}
    before = {row.label: row for row in replay(wide, names, baseline="rexp3", **FAST).rows()}
    assert before["idea"].verdict == "better"
    assert default["idea"].verdict != "better"


def test_unix_seconds_as_rounds():
    """Three hundred rewards over years of seconds: every policy plays them."""
    rng = np.random.default_rng(1)
    log = {
        "round": 1_500_000_000 + np.cumsum(rng.integers(1, 10**6, size=300)),
        "arm": rng.integers(3, size=300),
        "reward": rng.normal(size=300),
    }
    result = replay(log, n_states=1, starts=1, iterations=10, runs=2, chances="uniform")
    assert set(result.played) == set(POLICIES)
    assert len(result.rounds) == 150
    assert result.rounds[-1] == log["round"][-1] - log["round"][0]


def test_rewards_add_up_by_an_independent_loop():
    """Asks policies themselves, without an agent; some rounds offer a part, one offers nothing."""
    rewards = drifting(seed=3, gaps=0.15)
    rewards[70] = NAN
    result = replay(rewards, ["kode", "ucb"], **FAST | {"runs": 4})
    center = np.nanmean(rewards[:40])
    model, arms = result.fit.start_system.model, result.fit.arms
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


def test_idea_beats_ucb_where_rewards_drift(result):
    rows = {row.label: row for row in result.rows()}
    ucb = {row.label: row for row in dataclasses.replace(result, compared="ucb").rows()}
    assert result.baseline == "training_leader"
    assert rows["idea"].verdict == ucb["idea"].verdict == "better"
    assert rows["idea"].mean > rows["best_arm"].mean > rows["random"].mean
    assert rows["per_round_best"].mean >= rows["full_information"].mean > rows["idea"].mean - 0.1
    assert result.predictability.rewards > 0.5
    assert result.predictability.differences > 0.5
    assert not any("predict" in note for note in result.notes)
    assert str(result).splitlines()[1].startswith("per_round_best")


def test_cold_policies_start_in_the_test_part():
    result = replay(drifting(), ["ucb"], warm=False, **FAST)
    assert result.played["ucb"].means.shape == (1,)
    model, arms = result.fit.start_system.model, result.fit.arms
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
    share = f"explains {100 * result.predictability.rewards:.1f}% of the rewards' variance"
    said = [note for note in result.notes if "no better than each arm's training mean" in note]
    assert len(said) == 1
    assert share in said[0]


def test_reference_strategies_by_hand():
    rewards = np.array([[1.0, 3.0, 2.0, -2.0], [NAN, 1.0, 4.0, NAN]])
    assert tasks.fixed_arm(rewards, 0).tolist() == [1.0, 2.5]
    assert [tasks.best_arm(rewards), tasks.best_arm(rewards[:1])] == [2, 1]
    assert tasks.best_arm(np.array([[1.0, NAN], [NAN, 3.0], [NAN, -2.0]])) == 0
    result = replay(Table(np.tile(rewards, (40, 1)), tuple("abcd")), ["kode"], **FAST)
    assert result.mean("random") == pytest.approx((1 + 2.5) / 2)
    assert result.mean("per_round_best") == pytest.approx((3 + 4) / 2)
    assert result.mean("best_arm") == pytest.approx((2 + 4) / 2)
    assert result.references["training_leader"].arm == "c"
