"""The rules of the recommendation, and the page."""

import math
import re

import numpy as np
import pytest

import driftbandit as db
from driftbandit import LGDS
from driftbandit.advice import facts, from_system
from driftbandit.advice.facts import (
    Arm,
    LowerBound,
    Metric,
    Simulation,
    SystemFacts,
)
from driftbandit.advice.finding import Advice, Number
from driftbandit.advice.from_system import recommend
from driftbandit.report.html import page
from driftbandit.result import Result, Timing


def simulation(gaps, regret=1.0, rivals="worse", low=0.99):
    """Three policies and random choice; each gap is a mean, an interval and a verdict."""
    names = ["idea", "kode", "kalman_ucb", "random"]
    gaps = [Number(*gap, name) for name, gap in zip(names[1:], gaps, strict=True)]
    means = [regret, *(regret + gap.value for gap in gaps)]
    rows = [
        Number(mean, low * mean, mean, "", name) for name, mean in zip(names, means, strict=True)
    ]
    between = Number(0.1, 0.05, 0.15, rivals, "kalman_ucb")
    return Simulation(64, 200, 0, tuple(rows), tuple(gaps), between)


WORSE = (0.1, 0.05, 0.15, "worse")
MUCH = (2.0, 1.9, 2.1, "worse")
LEVEL = (0.01, -0.01, 0.03, "no difference seen")
WIDE = (0.1, -0.1, 0.3, "no difference seen")
SAME = (0.0, 0.0, 0.0, "no difference seen")
FEW = (0.1, math.nan, math.nan, "too few to tell")
NORMAL = SystemFacts(2, 3, 1.0, 0.9, True, True, True)
ARM = Arm(0, True, 1.0, 0.5, 3.0, 2, 1.0, 0.3, None)
ARMS = [ARM, ARM._replace(name=1)]
BOUND = LowerBound(0.5, 0.001, None, "")
ENDS = {"idea": (0.1, 0.9), "kode": (0.1, 0.5), "kalman_ucb": (0.1, 1.0)}
FAVORS_IDEA = Metric(ENDS, ENDS, "idea", "idea", "")


def said(system=NORMAL, arms=ARMS, bound=BOUND, metric=FAVORS_IDEA, simulated=None):
    return recommend(system, arms, bound, metric, simulated)


@pytest.mark.parametrize(
    ("simulated", "headline", "reason"),
    [
        (simulation([WORSE, WORSE, MUCH]), "Play IDEA.", "KODE loses 10% more and Kalman-UCB"),
        (simulation([WORSE, MUCH, MUCH]), "Play IDEA.", "Kalman-UCB loses 3.0 times as much"),
        (
            simulation([LEVEL, WORSE, MUCH]),
            "Play IDEA. KODE is as good.",
            "lowest and loses 1.00 per round, and KODE differs from that by at most 3.0% (95%",
        ),
        (
            simulation([LEVEL, LEVEL, MUCH]),
            "Any of IDEA, KODE and Kalman-UCB will do. Play IDEA.",
            "and KODE and Kalman-UCB differ from that by at most 3.0% (95% interval).",
        ),
        (
            simulation([LEVEL, WIDE, MUCH]),
            "64 runs cannot tell IDEA, KODE and Kalman-UCB apart. Play IDEA.",
            "by at most 30% (95% interval).",
        ),
        (
            simulation([SAME, SAME, MUCH]),
            "Any of IDEA, KODE and Kalman-UCB will do. Play IDEA.",
            "and KODE and Kalman-UCB exactly the same.",
        ),
        (
            simulation([LEVEL, LEVEL, LEVEL]),
            "It hardly matters: no policy clearly beats random choice. IDEA came out lowest.",
            "random choice differs from that by at most 0.0300",
        ),
        (
            simulation([FEW, FEW, FEW]),
            "Too few runs to tell. IDEA came out lowest.",
            "Give more than 64 runs.",
        ),
        (
            simulation([SAME, SAME, SAME], regret=0.0),
            "Any policy will do, IDEA among them: none has any regret.",
            "",
        ),
        (simulation([WORSE, WORSE, MUCH], regret=0.0), "Play IDEA.", "KODE loses 0.100 more"),
        (
            simulation([LEVEL, WORSE, MUCH], regret=0.0),
            "Play IDEA. KODE is as good.",
            "most 0.0300 (95% interval).",
        ),
    ],
)
def test_the_simulation_decides(simulated, headline, reason):
    found = said(simulated=simulated)
    assert found.choice == "idea"
    assert found.headline.startswith(headline)
    assert reason in " ".join(found.reasons)


@pytest.mark.parametrize(
    ("bound", "sentence"),
    [
        (
            BOUND,
            "IDEA loses 2.00 times the lower bound on regret, which is 0.500 per round once the",
        ),
        (
            LowerBound(0.8, 0.001, None, "", full_information=False),
            "IDEA is at most 25% above the least possible regret, which is at least 0.800 per",
        ),
        (
            LowerBound(0.995, 0.001, 500, ""),
            "The lower bound on regret is 0.995 per round over the first 500 rounds; IDEA attains",
        ),
        (LowerBound(1e-9, 1e-8, None, ""), "The lower bound on regret is close to zero."),
        (
            LowerBound(0.1, 0.2, None, ""),
            "is smaller than the error of its computation.",
        ),
        (LowerBound(1.1, 0.01, None, ""), "IDEA lost less in these runs by chance."),
        (LowerBound(None, None, None, "lost"), "The lower bound on regret is not known: lost."),
    ],
)
def test_the_lower_bound_is_put_beside_the_best(bound, sentence):
    found = said(bound=bound, simulated=simulation([WORSE, WORSE, MUCH]))
    assert sentence in " ".join(found.reasons)
    assert "Random choice loses 3.00." in " ".join(found.reasons)


@pytest.mark.parametrize(
    ("metric", "rivals", "agreement", "sentence"),
    [
        (FAVORS_IDEA, "worse", "agree", "φ favors IDEA over Kalman-UCB by 10%, and the simulati"),
        (FAVORS_IDEA, "better", "disagree", "but in the simulation Kalman-UCB loses less. Trust"),
        (FAVORS_IDEA, "no difference seen", "cannot tell", "cannot tell these two apart"),
        (FAVORS_IDEA, "too few to tell", "cannot tell", "cannot tell these two apart"),
        (Metric(ENDS, ENDS, "kalman_ucb", "kalman_ucb", ""), "better", "agree", "agrees"),
        (Metric(ENDS, ENDS, "kalman_ucb", "idea", ""), "worse", "disagree", "its squared form doe"),
        (Metric(ENDS, ENDS, None, None, ""), "worse", None, "is the same for IDEA and Kalman-UCB"),
        (Metric(None, None, None, None, "odd"), "worse", None, "Random choice loses 3.00."),
    ],
)
def test_metric_and_simulation_are_compared(metric, rivals, agreement, sentence):
    found = said(metric=metric, simulated=simulation([WORSE, WORSE, MUCH], rivals=rivals))
    assert found.agreement == agreement
    assert sentence in found.reasons[-1]


def test_too_few_runs_claim_nothing_about_the_lower_bound():
    few = simulation([FEW, FEW, FEW], low=math.nan)
    sentence = "The lower bound on regret is 0.500 per round once the state has settled. Random"
    assert sentence in " ".join(said(simulated=few).reasons)


def test_nothing_to_decide():
    assert said(arms=[ARM]).headline.startswith("Nothing to decide: there is only one arm")
    assert "all arms are the same" in said().headline


@pytest.mark.parametrize(
    ("system", "arm", "warning"),
    [
        ({"stable": False, "spectral_radius": 1.25}, {}, "(ρ(Γ) = 1.25). Is this intended? All n"),
        ({}, {"error_trace": None}, "The steady-state error of arm 0 was not found."),
        ({"reward_std": 0.0}, {}, "σ = 0"),
        ({}, {"same_as": 1}, "Duplicates: arm 0, of arm 1."),
        ({}, {"best_share": 0.0}, "Never the best arm in the draws: arm 0."),
    ],
)
def test_every_warning(system, arm, warning):
    arms = [ARM._replace(**arm), ARMS[1]]
    system = NORMAL._replace(**system)
    (found,) = said(system, arms, simulated=simulation([WORSE, WORSE, MUCH])).warnings
    assert warning in found


@pytest.mark.parametrize(
    ("system", "arm"),
    [
        ({"stable": False, "spectral_radius": 1.0}, {}),  # levels that wander, seasons
        ({"stable": False, "spectral_radius": 1 + 1e-15}, {"detectable": False}),
        ({"noise_reaches_all": False}, {}),  # constants
    ],
)
def test_ordinary_models_are_not_warned_of(system, arm):
    arms = [ARM._replace(**arm), ARMS[1]]
    system = NORMAL._replace(**system)
    assert said(system, arms, simulated=simulation([WORSE, WORSE, MUCH])).warnings == ()


def test_an_arm_that_hides_what_grows_is_warned_of():
    arms = [ARM._replace(detectable=False), ARMS[1]]
    system = NORMAL._replace(stable=False, spectral_radius=1.25)
    _, hides = said(system, arms, simulated=simulation([WORSE, WORSE, MUCH])).warnings
    assert "Rewards of arm 0 do not show all of what grows: play other arms" in hides


def renamed(simulated, names):
    """The same simulation of other policies."""
    rows = zip(simulated.policies, names, strict=True)
    gaps = zip(simulated.differences, names[1:], strict=True)
    return simulated._replace(
        policies=tuple(row._replace(name=name) for row, name in rows),
        differences=tuple(gap._replace(name=name) for gap, name in gaps),
    )


KALMAN_FIRST = ["kalman_ucb", "reach", "thompson", "random"]


@pytest.mark.parametrize(
    ("gaps", "names", "choice", "headline"),
    [
        ([LEVEL, WORSE, MUCH], KALMAN_FIRST, "reach", "Play Reach. Kalman-UCB is as good."),
        ([WORSE, LEVEL, MUCH], KALMAN_FIRST, "kalman_ucb", "Play Kalman-UCB. Thompson is as good."),
        ([LEVEL, LEVEL, MUCH], KALMAN_FIRST, "reach", "Any of Kalman-UCB, Reach and Thompson will"),
        ([LEVEL, LEVEL, LEVEL], KALMAN_FIRST, "reach", "It hardly matters: no policy clearly bea"),
        ([LEVEL, WORSE, MUCH], ["kode", "lookahead", "thompson", "random"], "kode", "Play KODE. L"),
    ],
)
def test_of_equal_policies_reach_is_preferred(gaps, names, choice, headline):
    found = said(simulated=renamed(simulation(gaps), names))
    assert found.choice == choice
    assert found.headline.startswith(headline)
    is_said = "Of equal policies, Reach is preferred." in " ".join(found.reasons)
    assert is_said == (choice == "reach" and gaps[2] == MUCH)
    if choice == "reach":  # what is said of the lower bound is said of the same policy
        assert "Reach loses 2.02 times the lower bound" in " ".join(found.reasons)


def test_many_arms_are_counted_not_listed():
    arms = [ARM._replace(name=n, best_share=0.0) for n in range(100)]
    (warning,) = said(arms=arms, simulated=simulation([WORSE, WORSE, MUCH])).warnings
    assert "arms 0, 1, 2, 3 and 96 more" in warning


def test_one_run_has_no_intervals_and_says_so(advice):
    regret = {name: np.array([1.0]) for name in ("idea", "kode", "kalman_ucb", "random")}
    timing = Timing(0.0, 0.0, 0.0, "cpu")
    once = facts.summarized(Result(regret, {}, np.array([5]), 5, 0, timing))
    found = said(simulated=once)
    assert found.headline.startswith("Too few runs to tell.")
    last = from_system.on_simulation(once, BOUND)
    changed = Advice([*advice.findings[:-1], last], found)
    assert changed.to_dict()["simulation"]["policies"][0]["low"] is None
    assert "nan" not in re.sub(r"base64,[\w+/=]*", "", page(changed.report("once")))


def test_html_without_metric_or_simulation(unsettled):
    alone = db.advise(LGDS([[0.5]], [[1.0]], 1.0), [[2.0]])
    assert "Nothing to decide" in page(alone.report("one"))
    assert page(unsettled.report("walk")).count("<img") == 1


def test_many_arms_are_cut_to_the_most_telling(advice):
    arms = [ARM._replace(name=n, best_share=n / 100) for n in range(100)]
    many = Advice([from_system.on_arms(NORMAL, arms)], advice.recommendation)
    _, _, table, left, *_ = many.report("many", terminal=True).blocks
    assert [row[0].text for row in table.rows] == [str(n) for n in range(99, 79, -1)]
    assert left.text.startswith("80 more arms are left out")
