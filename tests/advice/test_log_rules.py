"""The rules of the recommendation: facts → what to do."""

import math
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit import statistics
from driftbandit.advice.finding import Number
from driftbandit.advice.log_rules import Known, commands, recommend


def gain(low, high):
    verdict = statistics.verdict(-high, -low, 100)
    return Number((low + high) / 2, low, high, verdict)


UP, DOWN, OPEN, SAME = gain(0.1, 0.3), gain(-0.3, -0.1), gain(-0.1, 0.2), gain(0.0, 0.0)
SHORT = Number(0.2, 0.1, 0.3, statistics.TOO_FEW)
LOG = Known(3, "yes", "chances", "idea", "left", UP, UP, DOWN, 200.0, UP, randomized=True)
FULL = LOG._replace(evidence="full", over_log=None, fixed_over_log=None)
NONE = Known(3, "yes", "none", "idea", forecast=UP)

TABLE = {
    "one arm": (NONE._replace(n_arms=1), "nothing", "one arm"),
    "both gains are clear": (LOG, "agent", "IDEA"),
    "gain over the log only, the arm is bad": (LOG._replace(over_fixed=OPEN), "agent", "IDEA"),
    "the arm alone is enough": (
        LOG._replace(over_fixed=OPEN, fixed_over_log=UP),
        "fixed arm",
        "Always play left",
    ),
    "the arm is the best choice": (
        LOG._replace(over_fixed=DOWN, fixed_over_log=UP),
        "fixed arm",
        "Always play left",
    ),
    "the log is as good": (LOG._replace(over_log=OPEN, forecast=OPEN), "keep", "no clear gain"),
    "the log is better": (
        LOG._replace(over_log=DOWN, over_fixed=DOWN, forecast=UP),
        "keep",
        "Keep the present",
    ),
    "likely, not proven": (
        LOG._replace(over_log=OPEN, over_fixed=OPEN, fixed_over_log=OPEN),
        "collect",
        "more data",
    ),
    "nothing drifts": (
        LOG._replace(moves="no", over_log=SAME, over_fixed=SAME, fixed_over_log=SAME),
        "keep",
        "nothing drifts",
    ),
    "seldom played": (LOG._replace(effective=20.0), "collect", "seldom"),
    "too short": (LOG._replace(over_fixed=SHORT), "collect", "too short"),
    "all arms shown": (FULL, "agent", "IDEA"),
    "all arms shown, no gain": (
        FULL._replace(over_fixed=OPEN, forecast=OPEN),
        "fixed arm",
        "Always play left",
    ),
    "all arms shown, a loss": (FULL._replace(over_fixed=DOWN), "fixed arm", "Always play left"),
    "no chances": (NONE, "collect", "cannot prove"),
    "no chances, no drift": (NONE._replace(moves="no"), "keep", "nothing drifts"),
    "no chances, no forecast gain": (NONE._replace(forecast=OPEN), "keep", "fixed choice"),
    "no chances, unsure": (
        NONE._replace(moves="cannot tell", forecast=OPEN),
        "collect",
        "cannot be told",
    ),
    "features": (
        Known(3, "yes", "chances", "idea", untested="The model uses x_price."),
        "collect",
        "cannot prove",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_facts_become_a_recommendation(name):
    facts, kind, words = TABLE[name]
    found = recommend(facts)
    assert found.kind == kind
    assert words in found.headline


def test_what_to_collect_depends_on_the_log():
    randomize = "Draw 10% of the decisions at random"
    said = " ".join(recommend(NONE._replace(rare=("b", "c"))).reasons)
    assert randomize in said
    assert "Play these arms more often: b, c." in said
    few = LOG._replace(effective=20.0, rounds=400)
    said = " ".join(recommend(few).reasons)
    assert randomize not in said
    assert "grow to 1,200 rounds" in said  # 60 effective rounds where 20 are in 400
    assert randomize in " ".join(recommend(few._replace(randomized=False)).reasons)


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
def test_an_agent_needs_a_gain_that_excludes_zero(**facts):
    found = recommend(Known(3, policy="idea", fixed="left", **facts))
    if found.kind != "agent":
        return
    proven = [facts["over_fixed"], facts["over_log"]]
    present = facts["over_log"] if facts["over_log"] is not None else facts["over_fixed"]
    assert present.low > 0
    assert any(one is not None and one.low > 0 for one in proven)
    assert facts["evidence"] != "chances" or facts["effective"] >= 50


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
