"""Advice: its numbers are the library's."""

import dataclasses
import json
import math

import numpy as np
import pytest

import driftbandit as db
from advised_systems import EYE, SIZE, WALK, WALK_ARMS, strict
from driftbandit import LGDS, steady_state, theory
from driftbandit.advice import facts, finding
from driftbandit.advice.facts import PLAYED, SystemFacts
from driftbandit.advice.from_system import STAGES
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.simulation import Options

OFFSETS = LGDS(
    np.diag([0.9, 0.5, 1.0]),
    np.diag([0.2, 0.5, 0.0]),
    0.5,
    np.diag([0.2 / 0.19, 0.5 / 0.75, 0.0]),
    [0.0, 0.0, 1.0],
)
"""Two states, and a constant that arms read with offsets of their own, as `fit` gives it."""
OFFSET_ARMS = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.5], [0.7, 0.7, -9.0]])


def test_P3_the_system_is_the_models(advice, system):
    model, arms = system
    radius = model.spectral_radius
    reached = model.is_controllable()
    assert advice["system"] == SystemFacts(
        3, len(arms), model.reward_std, radius, True, reached, True
    )


def test_P14_arms_are_the_librarys(advice, system):
    model, arms = system
    Z = model.stationary_cov()
    for row, arm in zip(advice["arms"], arms, strict=True):
        trace = np.trace(steady_state.prediction_cov(model, arm))
        gramian = model.observability_gramian([arm] * 3)
        assert row.detectable
        assert row.error_trace == pytest.approx(trace)
        assert row.removed_share == pytest.approx(1 - trace / np.trace(Z))
        assert row.gramian_condition == pytest.approx(np.linalg.cond(gramian))
        assert row.gramian_rank == 3
        assert row.reward_spread == pytest.approx(math.sqrt(arm @ Z @ arm))
    assert sum(row.best_share for row in advice["arms"]) == pytest.approx(1)


def test_shares_of_the_best_are_those_of_symmetric_arms():
    found = db.advise(LGDS(0.5 * EYE, EYE, 1.0), EYE, **SIZE)
    assert [arm.best_share for arm in found["arms"]] == pytest.approx([1 / 3] * 3, abs=0.02)


def test_P11_the_lower_bound_is_the_librarys(advice, unsettled, system):
    settled = facts.lower_bound(*system, rounds=500)  # long enough to forget the start
    assert (settled.value, settled.error) == theory.finite_lower_bound(*system)
    assert settled.rounds is None
    rounds = advice["simulation"].rounds  # not long enough
    assert advice["lower_bound"].rounds == rounds
    exact = theory.finite_lower_bound(*system, rounds=rounds)
    assert advice["lower_bound"].value == pytest.approx(
        exact.value, abs=advice["lower_bound"].error + exact.error
    )
    exact = theory.finite_lower_bound(WALK, WALK_ARMS, rounds=100)
    assert unsettled["lower_bound"].rounds == 100
    assert unsettled["lower_bound"].value == pytest.approx(
        exact.value, abs=unsettled["lower_bound"].error + exact.error
    )


def test_P17_the_intervals_are_the_librarys(advice, system):
    for name, policy in {"idea": idea, "kode": kode, "kalman_ucb": kalman_ucb}.items():
        printed = theory.metric_interval(*system, policy.bonus)
        squared = theory.metric_interval(*system, policy.bonus, squared=True)
        assert advice["metric"].printed[name] == pytest.approx(printed)
        assert advice["metric"].squared[name] == pytest.approx(squared)
    ends = {name: advice["metric"].printed[name][1] for name in ("idea", "kalman_ucb")}
    assert advice["metric"].winner == min(ends, key=ends.get)


def test_the_simulation_is_the_librarys(advice, system):
    policies = [*PLAYED, "random"]
    result = db.simulate(*system, policies, **SIZE, options=Options(checkpoints=1))
    assert {row.name for row in advice["simulation"].policies} == set(policies)
    for row in advice["simulation"].policies:
        assert row.value == pytest.approx(result.regret[row.name].mean() / 100)
        assert row.low <= row.value <= row.high
    best = advice["simulation"].best.name
    assert best == min(PLAYED, key=lambda name: result.regret[name].mean())
    for name, row in result.compare(best).items():
        (found,) = (gap for gap in advice["simulation"].differences if gap.name == name)
        assert found.value * 100 == pytest.approx(row.mean_difference)
        assert found.low * 100 == pytest.approx(row.mean_low)
    gap = result.compare("idea")["kalman_ucb"]
    assert advice["simulation"].rivals.value * 100 == pytest.approx(gap.mean_difference)


def test_the_policies_of_your_choice(system):
    found = db.advise(*system, **SIZE, policies=["Lookahead", "kalman_ucb(width=2)", "random"])
    names = [row.name for row in found["simulation"].policies]
    assert sorted(names[:2]) == ["kalman_ucb(width=2)", "lookahead"]
    assert names[2] == "random"
    assert found.recommendation.choice == names[0]
    result = db.simulate(
        *system, ["lookahead", "kalman_ucb(width=2)"], **SIZE, options=Options(checkpoints=1)
    )
    for row in found["simulation"].policies[:2]:
        assert row.value == pytest.approx(result.regret[row.name].mean() / 100)
    assert found["simulation"].rivals is None
    assert found.recommendation.agreement is None
    assert "did not play both" in found.recommendation.reasons[-1]
    assert "Kalman-UCB(width=2)" in str(found)


def test_who_plays_by_default_knows_the_model():
    assert list(facts.players(None, 3)) == list(PLAYED)
    for name in (*PLAYED, "oful", "whittle"):
        assert list(facts.players([name], 3)) == [name]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["kalman_oracle"], "kalman_oracle sees the rewards of all arms"),
        (["idea", "IDEA"], "'idea' is named twice"),
        (["random"], "names no policy"),
        (["idae"], "did you mean 'idea'"),
    ],
)
def test_policies_that_cannot_be_advised(names, words):
    with pytest.raises(db.InvalidInput, match=words):
        facts.players(names, 3)


def test_equal_input_gives_equal_advice(advice, system):
    assert db.advise(*system, **SIZE).to_dict() == advice.to_dict()
    assert db.advise(*system, **SIZE, seed=1)["simulation"] != advice["simulation"]


@pytest.mark.parametrize(
    ("states", "arms", "radius"),
    [(1, 1, 0.9), (10, 10, 0.9), (30, 40, 0.99), (500, 3, 0.5), (2, 9000, 1.0), (3, 3, 1e30)],
)
def test_sizes_stay_within_limits(states, arms, radius):
    runs, rounds = facts.sizes(states, arms, radius)
    assert 32 <= runs <= 1024
    assert (200 <= rounds <= 500) if radius <= 1 else rounds == 10


def test_progress_tells_every_stage(system):
    told = []
    db.advise(*system, **SIZE, progress=lambda stage, share: told.append((stage, share)))
    for stage in STAGES:
        shares = [share for name, share in told if name == stage]
        assert shares[0] == 0
        assert shares[-1] == 1
        assert shares == sorted(shares)


def test_time_that_is_up_during_the_simulation(system, monkeypatch):
    """The findings that are ready are kept, and the time that is spent is told."""
    clock, told = [0.0], {}

    def progress(stage, share):
        told[stage] = share
        clock[0] = 100.0 * (stage == "simulation" or clock[0] > 0)

    monkeypatch.setattr(finding.time, "monotonic", lambda: clock[0])
    found = db.advise(*system, **SIZE, policies=["idea"], budget=50, progress=progress)
    assert found.findings[-1].verdict == "not asked: time was up"
    assert len([each for each in found.findings if each.verdict.startswith("not asked")]) == 1
    assert found["lower_bound"].value > 0
    assert (found["simulation"], found.recommendation.kind) == (None, "open")
    assert "time was up" in found.recommendation.headline
    assert told["time"] == 1
    strict(json.dumps(found.to_dict(), allow_nan=False))


def test_a_state_that_never_settles(unsettled):
    assert not unsettled["system"].stable
    assert [arm.detectable for arm in unsettled["arms"]] == [True, False, True]
    assert unsettled["arms"][1].error_trace is None
    assert unsettled["arms"][0].removed_share is None
    assert (unsettled["arms"][1].gramian_condition, unsettled["arms"][1].gramian_rank) == (None, 1)
    assert unsettled["metric"].printed is None
    assert "ρ(Γ) = 1 is not below 1" in unsettled["metric"].reason
    assert unsettled.recommendation.agreement is None
    assert not any("φ" in one for one in unsettled.recommendation.reasons)
    assert unsettled.recommendation.warnings == ()  # a random walk is nothing to worry about
    strict(json.dumps(unsettled.to_dict(), allow_nan=False))


def test_offsets_get_a_full_page():
    found = db.advise(OFFSETS, OFFSET_ARMS, **SIZE)
    assert (found["system"].stable, found["system"].constants) == (True, 1)
    assert found["system"].spectral_radius == pytest.approx(0.9)
    assert found["system"].noise_reaches_all
    assert [arm.mean_reward for arm in found["arms"]] == [1.0, 1.5, -9.0]
    gap = math.sqrt(0.2 / 0.19 + 0.5 / 0.75)
    first = 0.5 * math.erfc(0.5 / gap / math.sqrt(2))  # P(N(−½, gap²) > 0)
    assert [arm.best_share for arm in found["arms"]] == pytest.approx(
        [first, 1 - first, 0], abs=0.02
    )
    assert [arm.gramian_rank for arm in found["arms"]] == [1, 1, 2]
    assert found["arms"][2].gramian_condition > 1
    assert found["arms"][0].removed_share > 0.2
    exact = theory.finite_lower_bound(OFFSETS, OFFSET_ARMS, rounds=100)
    assert found["lower_bound"].value == pytest.approx(
        exact.value, abs=found["lower_bound"].error + exact.error
    )
    assert found["simulation"].best.value > found["lower_bound"].value
    assert found["metric"].reason == ""
    (warning,) = found.recommendation.warnings
    assert "Never the best arm in the draws: arm 2." in warning
    _, system, table, *_ = found.report("offsets", terminal=True).blocks
    assert "3 states (1 known constant), 3 arms" in system.text
    assert "stable, ρ(Γ) = 0.9 without it" in system.text
    assert table.columns[2:4] == ["mean", "reward s.d."]
    assert [row[2].text for row in table.rows] == ["1.00", "1.50", "-9.00"]
    assert [row[-1].text for row in table.rows[:2]] == ["rank 1 of 2"] * 2
    settled = dataclasses.replace(OFFSETS, initial_cov=None)
    known = facts.lower_bound(settled, OFFSET_ARMS, rounds=500)
    assert (known.value, known.error) == theory.finite_lower_bound(settled, OFFSET_ARMS)


def test_independent_arms_are_compared_with_the_least_possible_regret():
    equal = LGDS(0.8 * np.eye(3), 0.36 * np.eye(3), reward_std=1.0)
    found = facts.lower_bound(equal, np.eye(3), rounds=500)
    assert (found.value, found.error) == theory.least_regret(equal, np.eye(3))
    assert not found.full_information
    assert found.rounds is None
    assert found.value > theory.finite_lower_bound(equal, np.eye(3)).value

    decays = np.array([0.5, 0.6, 0.7])  # of three kinds: too many to wait for
    unlike = LGDS(np.diag(decays), np.diag(1 - decays**2), reward_std=1.0)
    found = facts.lower_bound(unlike, np.eye(3), rounds=500)
    assert (found.value, found.error) == theory.finite_lower_bound(unlike, np.eye(3))
    assert found.full_information


def test_a_start_from_a_mean_has_a_lower_bound():
    walk = dataclasses.replace(WALK, initial_mean=[1.0, 2.0, 3.0])
    found = facts.lower_bound(walk, np.array(WALK_ARMS), 50)
    assert (found.rounds, found.reason) == (50, "")
    assert found.value > 0


def test_a_single_arm_leaves_nothing_to_decide():
    found = db.advise(LGDS([[0.5]], [[1.0]], 1.0), [[2.0]])
    assert found["simulation"] is None
    assert found["metric"].reason == "there is a single arm"
    assert found["lower_bound"].value == 0
    assert found.recommendation.choice is None
    assert found.recommendation.headline.startswith("Nothing to decide: there is only one arm")


def test_arms_that_are_all_alike_leave_nothing_to_decide():
    found = db.advise(LGDS(0.5 * EYE, EYE, 1.0), [[1, 2, 3]] * 3)
    assert found["simulation"] is None
    assert [arm.same_as for arm in found["arms"]] == [None, 0, 0]
    assert "all arms are the same" in found.recommendation.headline


def test_no_noise_repeats_and_arms_that_are_never_best():
    arms = [[1.0, 0, 0], [1.0, 0, 0], [0.5, 0, 0]]
    model = LGDS(np.diag([0.9, 0.5, 0.0]), np.diag([1.0, 0.0, 0.0]), 0.0)
    found = db.advise(model, [*arms[:2], [-1.0, 0, 0]], **SIZE)
    said = " ".join(found.recommendation.warnings)
    assert "σ = 0" in said
    assert not found["system"].noise_reaches_all
    assert "Duplicates: arm 1, of arm 0." in said
    assert [arm.best_share for arm in found["arms"]] == pytest.approx([0.5] * 3, abs=0.02)
    among = db.advise(model, [arms[0], [-1.0, 0, 0], arms[2]], **SIZE)
    assert "Never the best arm in the draws: arm 2." in among.recommendation.warnings[-1]


def test_a_state_without_variance_costs_nothing():
    found = db.advise(LGDS(0.5 * EYE, 0 * EYE, 1.0), EYE, **SIZE)
    assert found.recommendation.headline.startswith("Any policy will do")
    assert all(arm.removed_share is None for arm in found["arms"])
    assert not [text for text in found.recommendation.warnings if "Never" in text]


def test_a_state_that_forgets_leaves_nothing_to_learn():
    found = db.advise(LGDS(0 * EYE, EYE, 1.0), EYE, **SIZE)
    assert found.recommendation.headline.startswith("It hardly matters")
    assert "attains it, as far as 128 runs show" in " ".join(found.recommendation.reasons)


def test_metric_and_simulation_can_disagree():
    """A slow state behind much noise: φ favors IDEA, but Kalman-UCB wins."""
    model = LGDS(0.997 * EYE, (1 - 0.997**2) * EYE, 3.0)
    played = ["idea", "kalman_ucb"]
    found = db.advise(model, EYE, runs=1024, rounds=500, policies=played)
    assert found["metric"].winner == found["metric"].squared_winner == "idea"
    assert found["simulation"].rivals.high < 0
    assert found.recommendation.agreement == "disagree"
    assert "Metric and simulation disagree: φ favors IDEA" in found.recommendation.reasons[-1]
    assert "Trust the simulation" in found.recommendation.reasons[-1]


def test_the_metric_is_left_out_where_it_takes_too_long():
    model, arms = db.families.sample("gaussian", n_states=30, n_arms=30)[0]
    found = facts.metric(model, arms)
    assert found.printed is None
    assert "too long for 30 arms in 30 states; db.theory.metric_interval" in found.reason


def test_the_lower_bound_of_a_long_stretch_is_left_out():
    found = facts.lower_bound(WALK, np.array(WALK_ARMS), 10**6)
    assert found.value is None
    assert "too long for 1000000 rounds; db.theory.finite_lower_bound" in found.reason


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"runs": 0}, "runs: is 0"),
        ({"runs": 10**9}, "runs: is 1000000000"),
        ({"arms": [[0, 0, 0]]}, "arms: .*zero vector"),
        ({"rounds": 1.5}, "rounds: 1.5 is not a whole number"),
        ({"seed": -1}, "seed: is -1"),
        ({"arms": [[1, 2]]}, "arms: has shape"),
        ({"model": LGDS(EYE, EYE, 1.0)}, "give initial_cov"),
        ({"model": "plant.json"}, "model: has type str"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(wrong, message):
    told = []
    given = {"model": WALK, "arms": WALK_ARMS, **SIZE, "progress": told.append} | wrong
    with pytest.raises(db.InvalidInput, match=message):
        db.advise(given.pop("model"), given.pop("arms"), **given)
    assert told == []


def test_which_arm_is_best_is_averaged_over_a_season():
    turn = 2 * math.pi / 12
    season = [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
    start = {"initial_mean": [1.0, 0.0], "initial_cov": 0.01 * np.eye(2)}
    model = LGDS(season, 1e-6 * np.eye(2), 0.1, **start)
    assert not model.is_stable
    found = db.advise(model, [[1.0, 0.0], [-1.0, 0.0]], runs=8, rounds=240, policies=["idea"])
    assert [arm.best_share for arm in found["arms"]] == pytest.approx([0.5, 0.5], abs=0.15)


def test_a_single_policy_has_no_rival():
    model, arms = db.families.sample("gaussian", n_states=2, n_arms=3)[0]
    found = db.advise(model, arms, runs=16, rounds=50, policies=["idea"])
    assert found.recommendation.headline == "Play IDEA."
    assert "No other was compared." in found.recommendation.reasons[0]
