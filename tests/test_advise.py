"""Advice: its numbers are the library's, its rules are kept, and its page reads well."""

import dataclasses
import json
import math
import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from browser import assert_readable, open_page, set_width
from driftbandit import LGDS, cli, steady_state, theory
from driftbandit.advice import facts, page, played, words
from driftbandit.advice.parts import (
    PLAYED,
    Arm,
    Difference,
    Floor,
    Metric,
    Played,
    Simulation,
    System,
)
from driftbandit.cli.app import app
from driftbandit.io import model_file
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.result import Result, Timing
from driftbandit.simulation import Options

SIZE = {"runs": 128, "rounds": 100}
"""One shape everywhere, with three states and three arms: compiled once."""
OPTIONS = ["--runs", "128", "--rounds", "100"]
EYE = np.eye(3)
WALK = LGDS(np.diag([1.0, 0.5, 0.2]), 0.1 * EYE, 0.5, initial_cov=EYE)
WALK_ARMS = [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
OFFSETS = LGDS(
    np.diag([0.9, 0.5, 1.0]),
    np.diag([0.2, 0.5, 0.0]),
    0.5,
    np.diag([0.2 / 0.19, 0.5 / 0.75, 0.0]),
    [0.0, 0.0, 1.0],
)
"""Two states, and a constant that arms read with offsets of their own, as `fit` gives it."""
OFFSET_ARMS = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.5], [0.7, 0.7, -9.0]])


@pytest.fixture(scope="module")
def system():
    return db.families.sample("gaussian", n_states=3, n_arms=3, seed=4)[0]


@pytest.fixture(scope="module")
def advice(system):
    return db.advise(*system, **SIZE)


@pytest.fixture(scope="module")
def unsettled():
    return db.advise(WALK, WALK_ARMS, **SIZE)


def strict(text):
    def refuse(name):
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


# Numbers.


def test_P3_the_system_is_the_models(advice, system):
    model, arms = system
    radius = model.spectral_radius
    reached = model.is_controllable()
    assert advice.system == System(3, len(arms), model.reward_std, radius, True, reached, True)


def test_P14_arms_are_the_librarys(advice, system):
    model, arms = system
    Z = model.stationary_cov()
    for row, arm in zip(advice.arms, arms, strict=True):
        trace = np.trace(steady_state.prediction_cov(model, arm))
        gramian = model.observability_gramian([arm] * 3)
        assert row.detectable
        assert row.error_trace == pytest.approx(trace)
        assert row.removed_share == pytest.approx(1 - trace / np.trace(Z))
        assert row.gramian_condition == pytest.approx(np.linalg.cond(gramian))
        assert row.gramian_rank == 3
        assert row.reward_spread == pytest.approx(math.sqrt(arm @ Z @ arm))
    assert sum(row.best_share for row in advice.arms) == pytest.approx(1)


def test_shares_of_the_best_are_those_of_symmetric_arms():
    found = db.advise(LGDS(0.5 * EYE, EYE, 1.0), EYE, **SIZE)
    assert [arm.best_share for arm in found.arms] == pytest.approx([1 / 3] * 3, abs=0.02)


def test_P11_the_floor_is_the_librarys(advice, unsettled, system):
    settled = facts.floor(*system, rounds=500)  # long enough to forget the start
    assert (settled.value, settled.error) == theory.finite_lower_bound(*system)
    assert settled.rounds is None
    rounds = advice.simulation.rounds  # not long enough
    assert advice.floor.rounds == rounds
    exact = theory.finite_lower_bound(*system, rounds=rounds)
    assert advice.floor.value == pytest.approx(exact.value, abs=advice.floor.error + exact.error)
    exact = theory.finite_lower_bound(WALK, WALK_ARMS, rounds=100)
    assert unsettled.floor.rounds == 100
    assert unsettled.floor.value == pytest.approx(
        exact.value, abs=unsettled.floor.error + exact.error
    )


def test_P17_the_intervals_are_the_librarys(advice, system):
    for name, policy in {"idea": idea, "kode": kode, "kalman_ucb": kalman_ucb}.items():
        printed = theory.metric_interval(*system, policy.bonus)
        squared = theory.metric_interval(*system, policy.bonus, squared=True)
        assert advice.metric.printed[name] == pytest.approx(printed)
        assert advice.metric.squared[name] == pytest.approx(squared)
    ends = {name: advice.metric.printed[name][1] for name in ("idea", "kalman_ucb")}
    assert advice.metric.winner == min(ends, key=ends.get)


def test_the_simulation_is_the_librarys(advice, system):
    policies = [*PLAYED, "random"]
    result = db.simulate(*system, policies, **SIZE, options=Options(checkpoints=1))
    assert {row.policy for row in advice.simulation.policies} == set(policies)
    for row in advice.simulation.policies:
        assert row.regret == pytest.approx(result.regret[row.policy].mean() / 100)
        assert row.low <= row.regret <= row.high
    best = advice.simulation.best.policy
    assert best == min(PLAYED, key=lambda name: result.regret[name].mean())
    for name, row in result.compare(best).items():
        (found,) = (gap for gap in advice.simulation.differences if gap.policy == name)
        assert found.mean * 100 == pytest.approx(row.mean_difference)
        assert found.low * 100 == pytest.approx(row.mean_low)
    gap = result.compare("idea")["kalman_ucb"]
    assert advice.simulation.rivals.mean * 100 == pytest.approx(gap.mean_difference)


def test_the_policies_of_your_choice(system):
    found = db.advise(*system, **SIZE, policies=["Lookahead", "kalman_ucb(width=2)", "random"])
    names = [row.policy for row in found.simulation.policies]
    assert sorted(names[:2]) == ["kalman_ucb(width=2)", "lookahead"]
    assert names[2] == "random"
    assert found.recommendation.choice == names[0]
    result = db.simulate(
        *system, ["lookahead", "kalman_ucb(width=2)"], **SIZE, options=Options(checkpoints=1)
    )
    for row in found.simulation.policies[:2]:
        label = row.policy.partition("(")[0]
        assert row.regret == pytest.approx(result.regret[label].mean() / 100)
    assert found.simulation.rivals is None
    assert found.recommendation.agreement is None
    assert "did not play both" in found.recommendation.reasons[-1]
    assert "Kalman-UCB(width=2)" in str(found)


def test_who_plays_by_default_knows_the_model():
    assert list(played.players(None, 3)) == list(PLAYED)
    for name in (*PLAYED, "oful", "rollout"):
        assert list(played.players([name], 3)) == [name]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["kalman_oracle"], "kalman_oracle sees the rewards of all arms"),
        (["idea", "IDEA"], "'idea' stands twice"),
        (["random"], "names no policy"),
        (["idae"], "did you mean 'idea'"),
    ],
)
def test_policies_that_cannot_be_advised(names, words):
    with pytest.raises(db.InvalidInput, match=words):
        played.players(names, 3)


def test_equal_input_gives_equal_advice(advice, system):
    assert db.advise(*system, **SIZE) == advice
    assert db.advise(*system, **SIZE, seed=1).simulation != advice.simulation


@pytest.mark.parametrize(
    ("states", "arms", "radius"),
    [(1, 1, 0.9), (10, 10, 0.9), (30, 40, 0.99), (500, 3, 0.5), (2, 9000, 1.0), (3, 3, 1e30)],
)
def test_sizes_stay_within_limits(states, arms, radius):
    runs, rounds = played.sizes(states, arms, radius)
    assert 32 <= runs <= 1024
    assert (200 <= rounds <= 500) if radius <= 1 else rounds == 10


def test_progress_tells_every_stage(system):
    told = []
    db.advise(*system, **SIZE, progress=lambda stage, share: told.append((stage, share)))
    for stage in ("arms", "floor", "metric", "simulation"):
        shares = [share for name, share in told if name == stage]
        assert shares[0] == 0
        assert shares[-1] == 1
        assert shares == sorted(shares)


# Systems out of the ordinary.


def test_a_state_that_never_settles(unsettled):
    assert not unsettled.system.stable
    assert [arm.detectable for arm in unsettled.arms] == [True, False, True]
    assert unsettled.arms[1].error_trace is None
    assert unsettled.arms[0].removed_share is None
    assert (unsettled.arms[1].gramian_condition, unsettled.arms[1].gramian_rank) == (None, 1)
    assert unsettled.metric.printed is None
    assert "ρ(Γ) = 1 is not below 1" in unsettled.metric.reason
    assert unsettled.recommendation.agreement is None
    settled, arm = unsettled.recommendation.warnings[:2]
    assert "never settles" in settled
    assert "arm 1: while nothing else is played, the error grows" in arm
    strict(json.dumps(unsettled.to_document(), allow_nan=False))


def test_offsets_get_a_full_page():
    found = db.advise(OFFSETS, OFFSET_ARMS, **SIZE)
    assert (found.system.stable, found.system.constants) == (True, 1)
    assert found.system.spectral_radius == pytest.approx(0.9)
    assert found.system.noise_reaches_all
    assert [arm.mean_reward for arm in found.arms] == [1.0, 1.5, -9.0]
    gap = math.sqrt(0.2 / 0.19 + 0.5 / 0.75)
    first = 0.5 * math.erfc(0.5 / gap / math.sqrt(2))  # P(N(−½, gap²) > 0)
    assert [arm.best_share for arm in found.arms] == pytest.approx([first, 1 - first, 0], abs=0.02)
    assert [arm.gramian_rank for arm in found.arms] == [1, 1, 2]
    assert found.arms[2].gramian_condition > 1
    assert found.arms[0].removed_share > 0.2
    exact = theory.finite_lower_bound(OFFSETS, OFFSET_ARMS, rounds=100)
    assert found.floor.value == pytest.approx(exact.value, abs=found.floor.error + exact.error)
    assert found.simulation.best.regret > found.floor.value
    assert found.metric.reason == ""
    (warning,) = found.recommendation.warnings
    assert "Never the best in the draws: arm 2." in warning
    system, arms, *_ = page.sections(found, 20)
    assert "3 states (1 known constant), 3 arms" in system.blocks[0].text
    assert "stable, ρ(Γ) = 0.9 without it" in system.blocks[0].text
    table = arms.blocks[0]
    assert table.columns[2:4] == ["mean", "s.d."]
    assert [row[2].text for row in table.rows] == ["1.00", "1.50", "-9.00"]
    assert [row[-1].text for row in table.rows[:2]] == ["rank 1 of 2"] * 2
    settled = dataclasses.replace(OFFSETS, initial_cov=None)
    known = facts.floor(settled, OFFSET_ARMS, rounds=500)
    assert (known.value, known.error) == theory.finite_lower_bound(settled, OFFSET_ARMS)


def test_a_start_from_a_mean_has_a_floor():
    walk = dataclasses.replace(WALK, initial_mean=[1.0, 2.0, 3.0])
    found = facts.floor(walk, np.array(WALK_ARMS), 50)
    assert (found.rounds, found.reason) == (50, "")
    assert found.value > 0


def test_a_single_arm_leaves_nothing_to_decide():
    found = db.advise(LGDS([[0.5]], [[1.0]], 1.0), [[2.0]])
    assert found.simulation is None
    assert found.metric.reason == "there is a single arm"
    assert found.floor.value == 0
    assert found.recommendation.choice is None
    assert found.recommendation.headline.startswith("Nothing to decide: there is one arm alone")


def test_arms_that_are_all_alike_leave_nothing_to_decide():
    found = db.advise(LGDS(0.5 * EYE, EYE, 1.0), [[1, 2, 3]] * 3)
    assert found.simulation is None
    assert [arm.same_as for arm in found.arms] == [None, 0, 0]
    assert "all arms are the same" in found.recommendation.headline


def test_no_noise_repeats_and_arms_that_are_never_best():
    arms = [[1.0, 0, 0], [1.0, 0, 0], [0.5, 0, 0]]
    model = LGDS(np.diag([0.9, 0.5, 0.0]), np.diag([1.0, 0.0, 0.0]), 0.0)
    found = db.advise(model, [*arms[:2], [-1.0, 0, 0]], **SIZE)
    said = " ".join(found.recommendation.warnings)
    assert "σ = 0" in said
    assert "does not reach every direction" in said
    assert "Repeated: arm 1, of arm 0." in said
    assert [arm.best_share for arm in found.arms] == pytest.approx([0.5] * 3, abs=0.02)
    among = db.advise(model, [arms[0], [-1.0, 0, 0], arms[2]], **SIZE)
    assert "Never the best in the draws: arm 2." in among.recommendation.warnings[-1]


def test_a_state_without_variance_costs_nothing():
    found = db.advise(LGDS(0.5 * EYE, 0 * EYE, 1.0), EYE, **SIZE)
    assert found.recommendation.headline.startswith("Any policy will do")
    assert all(arm.removed_share is None for arm in found.arms)
    assert not [text for text in found.recommendation.warnings if "Never" in text]


def test_a_state_that_forgets_leaves_nothing_to_learn():
    found = db.advise(LGDS(0 * EYE, EYE, 1.0), EYE, **SIZE)
    assert found.recommendation.headline.startswith("It hardly matters")
    assert "is there, as far as 128 runs can tell" in " ".join(found.recommendation.reasons)


def test_metric_and_simulation_can_disagree():
    """A slow state behind much noise: φ favors IDEA, but Kalman-UCB wins."""
    model = LGDS(0.997 * EYE, (1 - 0.997**2) * EYE, 3.0)
    found = db.advise(model, EYE, runs=1024, rounds=500)
    assert found.metric.winner == found.metric.squared_winner == "idea"
    assert found.simulation.rivals.high < 0
    assert found.recommendation.agreement == "disagree"
    assert "Metric and simulation disagree: φ favors IDEA" in found.recommendation.reasons[-1]
    assert "Trust the simulation" in found.recommendation.reasons[-1]


def test_the_metric_is_left_out_where_it_takes_too_long():
    model, arms = db.families.sample("gaussian", n_states=30, n_arms=30)[0]
    found = facts.metric(model, arms)
    assert found.printed is None
    assert "too long for 30 arms in 30 states; db.theory.metric_interval" in found.reason


def test_the_floor_of_a_long_stretch_is_left_out():
    found = facts.floor(WALK, np.array(WALK_ARMS), 10**6)
    assert found.value is None
    assert "too long for 1000000 rounds; db.theory.finite_lower_bound" in found.reason


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"runs": 0}, "runs: is 0"),
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


# The rules of the recommendation.


def simulation(gaps, regret=1.0, rivals="worse", low=0.99):
    """Three policies and random choice; each gap is a mean, an interval and a verdict."""
    names = ["idea", "kode", "kalman_ucb", "random"]
    gaps = [Difference(name, "idea", *gap) for name, gap in zip(names[1:], gaps, strict=True)]
    means = [regret, *(regret + gap.mean for gap in gaps)]
    rows = [Played(name, mean, low * mean, mean) for name, mean in zip(names, means, strict=True)]
    between = Difference("kalman_ucb", "idea", 0.1, 0.05, 0.15, rivals)
    return Simulation(64, 200, 0, tuple(rows), tuple(gaps), between)


WORSE = (0.1, 0.05, 0.15, "worse")
MUCH = (2.0, 1.9, 2.1, "worse")
LEVEL = (0.01, -0.01, 0.03, "no difference seen")
WIDE = (0.1, -0.1, 0.3, "no difference seen")
SAME = (0.0, 0.0, 0.0, "no difference seen")
FEW = (0.1, math.nan, math.nan, "too few to tell")
NORMAL = System(2, 3, 1.0, 0.9, True, True, True)
ARM = Arm(0, True, 1.0, 0.5, 3.0, 2, 1.0, 0.3, None)
ARMS = [ARM, dataclasses.replace(ARM, name=1)]
FLOOR = Floor(0.5, 0.001, None, "")
ENDS = {"idea": (0.1, 0.9), "kode": (0.1, 0.5), "kalman_ucb": (0.1, 1.0)}
FAVORS_IDEA = Metric(ENDS, ENDS, "idea", "idea", "")


def said(system=NORMAL, arms=ARMS, floor=FLOOR, metric=FAVORS_IDEA, simulated=None):
    return words.recommend(system, arms, floor, metric, simulated)


@pytest.mark.parametrize(
    ("simulated", "headline", "reason"),
    [
        (simulation([WORSE, WORSE, MUCH]), "Play IDEA.", "KODE loses 10 % more and Kalman-UCB"),
        (simulation([WORSE, MUCH, MUCH]), "Play IDEA.", "Kalman-UCB loses 3.0 times as much"),
        (
            simulation([LEVEL, WORSE, MUCH]),
            "Play IDEA or KODE. IDEA came out lowest.",
            "and KODE differs from that by at most 3.0 % (95 % interval).",
        ),
        (
            simulation([LEVEL, LEVEL, MUCH]),
            "Any of IDEA, KODE and Kalman-UCB will do. IDEA came out lowest.",
            "and KODE and Kalman-UCB differ from that by at most 3.0 % (95 % interval).",
        ),
        (
            simulation([LEVEL, WIDE, MUCH]),
            "64 runs cannot tell IDEA, KODE and Kalman-UCB apart. IDEA came out lowest.",
            "by at most 30 % (95 % interval).",
        ),
        (
            simulation([SAME, SAME, MUCH]),
            "Any of IDEA, KODE and Kalman-UCB will do. IDEA came out lowest.",
            "exactly the same in all 64 runs",
        ),
        (
            simulation([LEVEL, LEVEL, LEVEL]),
            "It hardly matters: no policy clearly beats random choice. IDEA came out lowest.",
            "random choice differs from that by at most 0.0300",
        ),
        (
            simulation([FEW, FEW, FEW]),
            "Too few runs to tell. IDEA came out lowest.",
            "64 decide nothing: give more runs.",
        ),
        (
            simulation([SAME, SAME, SAME], regret=0.0),
            "Any policy will do, IDEA among them: none lost anything.",
            "",
        ),
        (simulation([WORSE, WORSE, MUCH], regret=0.0), "Play IDEA.", "KODE loses 0.100 more"),
        (
            simulation([LEVEL, WORSE, MUCH], regret=0.0),
            "Play IDEA or KODE.",
            "most 0.0300 (95 % interval).",
        ),
    ],
)
def test_the_simulation_decides(simulated, headline, reason):
    found = said(simulated=simulated)
    assert found.choice == "idea"
    assert found.headline.startswith(headline)
    assert reason in " ".join(found.reasons)


@pytest.mark.parametrize(
    ("floor", "sentence"),
    [
        (
            FLOOR,
            "IDEA loses 2.00 times the lower bound on regret, which is 0.500 per round once the",
        ),
        (
            Floor(0.995, 0.001, 500, ""),
            "The lower bound on regret is 0.995 per round over the first 500 rounds; IDEA is there",
        ),
        (Floor(1e-9, 1e-8, None, ""), "The lower bound on regret is close to zero."),
        (Floor(0.1, 0.2, None, ""), "The lower bound on regret is not known to any digit."),
        (Floor(1.1, 0.01, None, ""), "that IDEA lost less in these runs is luck."),
        (Floor(None, None, None, "lost"), "The lower bound on regret is not known: lost."),
    ],
)
def test_the_floor_is_put_beside_the_best(floor, sentence):
    found = said(floor=floor, simulated=simulation([WORSE, WORSE, MUCH]))
    assert sentence in " ".join(found.reasons)
    assert "Random choice loses 3.00." in " ".join(found.reasons)


@pytest.mark.parametrize(
    ("metric", "rivals", "agreement", "sentence"),
    [
        (FAVORS_IDEA, "worse", "agree", "φ favors IDEA over Kalman-UCB by 10 %, and the simulati"),
        (FAVORS_IDEA, "better", "disagree", "but played out Kalman-UCB loses less. Trust the sim"),
        (FAVORS_IDEA, "no difference seen", "cannot tell", "cannot tell these two apart"),
        (FAVORS_IDEA, "too few to tell", "cannot tell", "cannot tell these two apart"),
        (Metric(ENDS, ENDS, "kalman_ucb", "kalman_ucb", ""), "better", "agree", "agrees"),
        (Metric(ENDS, ENDS, "kalman_ucb", "idea", ""), "worse", "disagree", "its squared form doe"),
        (Metric(ENDS, ENDS, None, None, ""), "worse", None, "is the same for IDEA and Kalman-UCB"),
        (Metric(None, None, None, None, "odd"), "worse", None, "predicts nothing here: odd."),
    ],
)
def test_metric_and_simulation_are_compared(metric, rivals, agreement, sentence):
    found = said(metric=metric, simulated=simulation([WORSE, WORSE, MUCH], rivals=rivals))
    assert found.agreement == agreement
    assert sentence in found.reasons[-1]


def test_too_few_runs_claim_nothing_about_the_floor():
    few = simulation([FEW, FEW, FEW], low=math.nan)
    sentence = "The lower bound on regret is 0.500 per round once the state has settled. Random"
    assert sentence in " ".join(said(simulated=few).reasons)


def test_nothing_to_decide():
    assert said(arms=[ARM]).headline.startswith("Nothing to decide: there is one arm")
    assert "all arms are the same" in said().headline


@pytest.mark.parametrize(
    ("system", "arm", "warning"),
    [
        ({"stable": False, "spectral_radius": 1.25}, {}, "ρ(Γ) = 1.25 is not below 1. The numbers"),
        ({}, {"detectable": False}, "shows in the rewards of arm 0"),
        ({}, {"error_trace": None}, "The steady error of arm 0 was not found."),
        ({"noise_reaches_all": False}, {}, "does not reach every direction"),
        ({"reward_std": 0.0}, {}, "σ = 0"),
        ({}, {"same_as": 1}, "Repeated: arm 0, of arm 1."),
        ({}, {"best_share": 0.0}, "Never the best in the draws: arm 0."),
    ],
)
def test_every_warning(system, arm, warning):
    arms = [dataclasses.replace(ARM, **arm), ARMS[1]]
    system = dataclasses.replace(NORMAL, **system)
    (found,) = said(system, arms, simulated=simulation([WORSE, WORSE, MUCH])).warnings
    assert warning in found


def test_many_arms_are_counted_not_listed():
    arms = [dataclasses.replace(ARM, name=n, best_share=0.0) for n in range(100)]
    (warning,) = said(arms=arms, simulated=simulation([WORSE, WORSE, MUCH])).warnings
    assert "arms 0, 1, 2, 3 and 96 more" in warning


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (math.inf, "inf"), (0.00009996, "0.000100"), (9.996, "10.0"), (1e7, "1.00e+07")],
)
def test_numbers_are_shown_to_three_digits(value, shown):
    assert words.number(value) == shown


# The page.


@pytest.fixture(scope="module")
def model(system, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "pl[red]ant <b>`x`.json"
    path.write_text(json.dumps(model_file.to_document(*system)))
    return path


def run(*arguments):
    result = CliRunner().invoke(app, ["advise", *map(str, arguments)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_terminal_page_is_whole_and_fits_80_columns(model, advice):
    output = run(model, *OPTIONS)
    assert output.startswith("Advice for pl[red]ant <b>`x`.json")
    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output
    for section in page.sections(advice, 20)[1:]:
        assert section.title in output
    shown = " ".join(output.replace("│", " ").split())
    for sentence in (advice.recommendation.headline, *advice.recommendation.reasons):
        assert " ".join(sentence.split()) in shown


def test_json_is_strict_and_holds_the_advice(model, advice):
    document = strict(run(model, *OPTIONS, "--json"))
    assert document.pop("driftbandit") == db.__version__
    assert document.pop("system_name") == "pl[red]ant <b>`x`.json"
    assert document == json.loads(json.dumps(advice.to_document()))


def test_one_run_has_no_intervals_and_says_so(advice):
    regret = {name: np.array([1.0]) for name in ("idea", "kode", "kalman_ucb", "random")}
    timing = Timing(0.0, 0.0, 0.0, "cpu")
    once = played.summarized(Result(regret, {}, np.array([5]), 5, 0, timing))
    found = said(simulated=once)
    assert found.headline.startswith("Too few runs to tell.")
    changed = dataclasses.replace(advice, simulation=once, recommendation=found)
    assert changed.to_document()["simulation"]["policies"][0]["low"] is None
    assert "nan" not in re.sub(r"base64,[\w+/=]*", "", page.html(changed, "once", 0))


def test_a_random_system_is_the_familys(advice):
    size = ["--family", "gaussian", "--states", "3", "--arms", "3"]
    document = strict(run(*size, *OPTIONS, "--seed", "4", "--json"))
    assert document["system_name"] == "gaussian, seed 4"
    assert document["arms"] == json.loads(json.dumps(advice.to_document()["arms"]))
    unit = strict(run(*size, *OPTIONS, "--seed", "4", "--json", "--unit-arms"))
    assert unit["arms"] != document["arms"]


def test_html_reads_well_in_a_browser(model, advice, tmp_path):
    path = tmp_path / "advice.html"
    output = run(model, *OPTIONS, "--html", path)
    assert "Page saved to" in output
    assert list(tmp_path.iterdir()) == [path]
    with open_page(path) as driver:
        for width in (1200, 375):
            set_width(driver, width)
            assert_readable(driver)
        assert driver.title == "Advice for pl[red]ant <b>`x`.json"
        text = driver.find_element("tag name", "body").text
        assert advice.recommendation.headline in text
        assert len(driver.find_elements("css selector", ".picture img")) == 2


def test_html_without_metric_or_simulation(unsettled):
    alone = db.advise(LGDS([[0.5]], [[1.0]], 1.0), [[2.0]])
    assert "Nothing to decide" in page.html(alone, "one", 0)
    assert page.html(unsettled, "walk", 0).count("<img") == 1


def test_the_command_takes_policies(model):
    document = strict(run(model, *OPTIONS, "--json", "--policies", "IDEA, ucb"))
    names = [row["policy"] for row in document["simulation"]["policies"]]
    assert sorted(names) == ["idea", "random", "ucb"]


def test_many_arms_are_cut_to_the_most_telling(advice):
    arms = [dataclasses.replace(ARM, name=n, best_share=n / 100) for n in range(100)]
    many = dataclasses.replace(advice, arms=tuple(arms))
    table, left, _ = page.sections(many, 20)[1].blocks
    assert [row[0].text for row in table.rows] == [str(n) for n in range(99, 79, -1)]
    assert left.text.startswith("80 more arms are left out")


def test_help_teaches():
    output = run("--help")
    for word in ("Examples", "--family", "--html", "TOML", "recommendation"):
        assert word in output


BAD = {
    "nothing": ([], "MODEL: is missing; give a model file, or --family"),
    "both": (["plant.json", "--family", "cauchy"], "--family: was given beside plant.json"),
    "file and size": (["plant.json", "--states", "3"], "--states: was given beside plant.json"),
    "family": (["--family", "gausian"], "did you mean 'gaussian'?"),
    "size": (["--family", "cauchy", "--states", "0"], "states: is 0"),
    "too large": (["--family", "cauchy", "--states", "99999"], "99999 states and 10 arms make"),
    "absent": (["absent.toml"], "model file: cannot read absent.toml (No such file"),
    "folder": (["."], "model file: cannot read . (Is a directory)"),
    "not JSON": (["bad.json"], "model file: bad.json is not JSON"),
    "a log": (["bad.json"], "if it is a log, run driftbandit fit on it first"),
    "unstable": (["grows.toml"], "transition: has spectral radius 2, so there is no stationary"),
    "runs": (["good.toml", "--runs", "0"], "runs: is 0"),
    "suffix": (["good.toml", "--html", "page.pdf"], "--html: is page.pdf; end it in .html"),
    "no folder": (["good.toml", "--html", "no/page.html"], "--html: no is no folder"),
    "a folder": (["good.toml", "--html", "folder.html"], "--html: cannot write folder.html"),
    "bad, with page": (["bad.json", "--html", "page.html"], "bad.json is not JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_input_is_one_line_and_exit_code_2(name, tmp_path, monkeypatch, capsys):
    arguments, message = BAD[name]
    one = "process_cov = [[1]]\nreward_std = 1\narms = [[1], [2]]\n"
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "good.toml").write_text("transition = [[0.5]]\n" + one)
    (tmp_path / "grows.toml").write_text("transition = [[2]]\n" + one)
    (tmp_path / "folder.html").mkdir()
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["driftbandit", "advise", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.main()
    output = capsys.readouterr()
    assert left.value.code == 2
    assert output.out == ""
    assert message in output.err
    assert len(output.err.strip().splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before
