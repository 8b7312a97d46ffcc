"""The rules of the recommendation: facts → what to do."""

import math
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit import statistics
from driftbandit.advice.finding import Number
from driftbandit.advice.from_log import commands, recommend
from driftbandit.advice.log_facts import ArmCount, Contents, Earned, Forecast, Replayed
from driftbandit.replays.result import LEADER


def gain(low, high):
    verdict = statistics.verdict(-high, -low, 100)
    return Number((low + high) / 2, low, high, verdict)


UP, DOWN, OPEN, SAME = gain(0.1, 0.3), gain(-0.3, -0.1), gain(-0.1, 0.2), gain(0.0, 0.0)
SHORT = Number(0.2, 0.1, 0.3, statistics.TOO_FEW)


def facts(
    moves="yes",
    evidence="chances",
    arms=("left", "middle", "right"),
    over_fixed=UP,
    over_log=UP,
    fixed_over_log=DOWN,
    effective=200.0,
    forecast=UP,
    least_chance=0.3,
    rare=(),
    rounds=0,
    untested="",
):
    """What `recommend` takes; nothing was replayed if ``over_fixed`` is None."""
    shares = dict.fromkeys(arms, 0.5) | dict.fromkeys(rare, 0.01)
    counts = tuple(ArmCount(name, 100, share, 1.0) for name, share in shares.items())
    held = Contents(300, 300, rounds, rounds, 1, counts, evidence, least_chance, (), ())
    row = Earned(
        "idea", "policy", None, 1.0, 0.9, 1.1, effective, True, "", 0.0, over_fixed, over_log
    )
    leader = row._replace(label=LEADER, arm="left", over_fixed=None, over_log=fixed_over_log)
    done = Replayed("dr", 100, 200, "level(arm)", 0.95, "left", (row, leader), "idea", ())
    ahead = forecast and Forecast("idea", 100, 200, "left", forecast, forecast)
    return held, moves, None if over_fixed is None else done, ahead, untested


FULL = {"evidence": "full", "over_log": None, "fixed_over_log": None, "least_chance": None}
NONE = {"evidence": "none", "over_fixed": None, "least_chance": None}

TABLE = {
    "one arm": (NONE | {"arms": ["only"]}, "nothing", "one arm"),
    "both gains are clear": ({}, "agent", "IDEA"),
    "gain over the log only, the arm is bad": ({"over_fixed": OPEN}, "agent", "IDEA"),
    "the arm alone is enough": (
        {"over_fixed": OPEN, "fixed_over_log": UP},
        "fixed arm",
        "Always play left",
    ),
    "the arm is the best choice": (
        {"over_fixed": DOWN, "fixed_over_log": UP},
        "fixed arm",
        "Always play left",
    ),
    "the log is as good": ({"over_log": OPEN, "forecast": OPEN}, "keep", "no clear gain"),
    "the log is better": (
        {"over_log": DOWN, "over_fixed": DOWN, "forecast": UP},
        "keep",
        "Keep the present",
    ),
    "likely, not proven": (
        {"over_log": OPEN, "over_fixed": OPEN, "fixed_over_log": OPEN},
        "collect",
        "more data",
    ),
    "nothing drifts": (
        {"moves": "no", "over_log": SAME, "over_fixed": SAME, "fixed_over_log": SAME},
        "keep",
        "nothing drifts",
    ),
    "seldom played": ({"effective": 20.0}, "collect", "seldom"),
    "too short": ({"over_fixed": SHORT}, "collect", "too short"),
    "all arms shown": (FULL, "agent", "IDEA"),
    "all arms shown, no gain": (
        FULL | {"over_fixed": OPEN, "forecast": OPEN},
        "fixed arm",
        "Always play left",
    ),
    "all arms shown, a loss": (FULL | {"over_fixed": DOWN}, "fixed arm", "Always play left"),
    "no chances": (NONE, "collect", "cannot prove"),
    "no chances, no drift": (NONE | {"moves": "no"}, "keep", "nothing drifts"),
    "no chances, no forecast gain": (NONE | {"forecast": OPEN}, "keep", "fixed choice"),
    "no chances, unsure": (
        NONE | {"moves": "cannot tell", "forecast": OPEN},
        "collect",
        "cannot be told",
    ),
    "features": (
        {"over_fixed": None, "forecast": None, "untested": "The model uses x_price."},
        "collect",
        "cannot prove",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_facts_become_a_recommendation(name):
    known, kind, words = TABLE[name]
    found = recommend(*facts(**known))
    assert found.kind == kind
    assert words in found.headline


def test_what_to_collect_depends_on_the_log():
    randomize = "Draw 10% of the decisions at random"
    said = " ".join(recommend(*facts(**NONE, rare=("b", "c"))).reasons)
    assert randomize in said
    assert "Play these arms more often: b, c." in said
    few = {"effective": 20.0, "rounds": 400}
    said = " ".join(recommend(*facts(**few)).reasons)
    assert randomize not in said
    assert "grow to 1,200 rounds" in said  # 60 effective rounds where 20 are in 400
    assert randomize in " ".join(recommend(*facts(**few, least_chance=0.03)).reasons)


numbers = st.floats(-1, 1)
gains = st.tuples(numbers, numbers).map(lambda ends: gain(min(ends), max(ends)))
maybe = st.none() | gains


@given(
    moves=st.sampled_from(["yes", "no", "cannot tell"]),
    evidence=st.sampled_from(["full", "chances", "none"]),
    over_fixed=maybe,
    over_log=maybe,
    fixed_over_log=maybe,
    effective=st.floats(0, 500),
    forecast=maybe,
)
def test_an_agent_needs_a_gain_that_excludes_zero(**known):
    found = recommend(*facts(**known))
    if found.kind != "agent":
        return
    proven = [known["over_fixed"], known["over_log"]]
    present = known["over_log"] if known["over_log"] is not None else known["over_fixed"]
    assert present.low > 0
    assert any(one is not None and one.low > 0 for one in proven)
    assert known["evidence"] != "chances" or known["effective"] >= 50


def test_commands_can_be_pasted():
    source = shlex.join(["my log's.csv", "--every", "1 h"])
    given = "agent", source, "level(arm)", "idea", "chances"
    found = commands(*given)
    assert [shlex.split(line)[:3] for line in found[:3]] == [
        ["driftbandit", "replay", "my log's.csv"],
        ["driftbandit", "fit", "my log's.csv"],
        ["driftbandit", "advise", "model.json"],
    ]
    assert shlex.split(found[1])[3:] == [
        "--every", "1 h", "--structure", "level(arm)", "--out", "model.json",
    ]  # fmt: skip
    compile(shlex.split(found[3])[2], "command", "exec")
    kinds = {kind: commands(kind, *given[1:]) for kind in ("collect", "keep", "fixed arm")}
    assert kinds["keep"] == kinds["fixed arm"] == kinds["collect"] == (found[1],)
    assumed = commands("collect", None, "level(arm)", "idea", "none")
    line, condition = assumed[0].split("   # ")
    assert line == "driftbandit advise LOG.csv --chances uniform"
    assert condition == "only if arms were drawn uniformly"
    assert shlex.split(assumed[0], comments=True) == shlex.split(line)
    assert "uniform" not in " ".join(commands("collect", None, "a", "b", "none", several=True))
    for kind in ("agent", "collect"):  # fit has no such option
        for line in commands(kind, None, "a", "b", "chances", chances="uniform"):
            wants = line.startswith(("driftbandit replay", "driftbandit advise LOG"))
            assert line.count("--chances uniform") == wants


def test_gains_are_written_with_their_interval():
    assert gain(0.1, 0.3).text == "+0.20 (0.10 to 0.30)"
    assert SAME.text == "exactly 0"
    assert Number(math.nan, math.nan, math.nan, statistics.TOO_FEW).text == "too few to tell"
