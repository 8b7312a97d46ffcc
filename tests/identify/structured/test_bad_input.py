"""Bad structures and logs: one line that names the component, the option, the column or the row."""

import math
import re

import numpy as np
import pytest

import driftbandit as db
from driftbandit import InvalidInput
from driftbandit.identify import compare
from driftbandit.identify.structured.fitting import Problem
from driftbandit.structure import Layout, level, parse, regression, season
from known_structures import log_of
from refusals import Case, assert_refused, each
from terminals import fails

NAN = math.nan
ARMS = ["left", "right"]
LOG = {"round": range(6), "arm": ["left", "right"] * 3, "reward": [1.0, 2, 1, 3, 1, 2]}


def text(name, given, argument, value):
    return Case(name, lambda: parse(given), argument, value)


def laid_out(name, given, argument, value, groups=None, arms=ARMS):
    return Case(name, lambda: Layout(given, arms, groups), argument, value)


def fitted(name, argument, value, structure="level(arm)", **options):
    log = {**LOG, **options.pop("log", {})}
    return Case(name, lambda: db.fit(log, structure=structure, **options), argument, value)


TEXTS = [
    text("empty", "  ", "structure: is empty", "level(arm)"),
    text("a number", 7, "structure: has type int", "level(arm)"),
    text("bytes", b"level(arm)", "structure: has type bytes", "level(arm)"),
    text("None", None, "structure: has type NoneType", "level(arm)"),
    text("too long", "level(arm) + " * 10_000, "structure: has 130,000 characters", ""),
    text("unknown", "levle(arm)", "structure: unknown name 'levle'", "did you mean 'level'?"),
    text("unknown in another script", "niveau(arm) + 級(arm)", "structure: unknown", "niveau"),
    text("unreadable in another script", "level(arm) + 級", "structure: cannot be read at", "級"),
    text("an accent", "level(arm) + séason(7)", "structure: unknown name 'séason'", "'season'"),
    text("ends after +", "level(arm) + ", "structure: ends after a +", "season(7)"),
    text("begins with +", "+ level(arm)", "structure: cannot be read at '+ level(arm)'", ""),
    text("two +", "level(arm) ++ season(7)", "structure: cannot be read at '+ season(7)'", ""),
    text("no +", "level(arm) season(7)", "structure: has 'season(7)' after level(arm)", ""),
    text("a minus", "level(arm) - season(7)", "structure: has '- season(7)' after", ""),
    text("not closed", "level(arm", "structure: has '(arm' after level", ""),
    text("closed twice", "season(7))", "structure: has ')' after season(7)", ""),
    text("nested", "level((arm))", "structure: has '((arm))' after level", ""),
    text("a line break", "level(arm)\x1b[31m", "structure: has", "x1b"),
    text("twice", "level(arm) + level( arm )", "structure: has level(arm) twice", "once"),
    text("an unknown word", "level(arms)", "level: 'arms' is not one of its options", "shared"),
    text("a number without a name", "level(7)", "level: '7' is not one of its options", "arm"),
    text("an unknown option", "level(arm, speed=1)", "level: speed: is not one", "memory, drift"),
    text("an option of another", "season(7, smooth)", "season: 'smooth' is not", "unchanging"),
    text("a field", "level(arm, fixed=1)", "level: fixed: is not one of its options", "drift"),
    text("features of a level", "level(arm, features=x_a)", "level: features: is not", "drift"),
    text("an option twice", "level(arm, shared)", "level: scope: is given twice, as shared", ""),
    text("two commas", "level(arm,, own)", "level: options: cannot be read at", "commas"),
    text("no value", "level(arm, drift=)", "level: options: cannot be read at 'drift='", ""),
    text("no period", "season()", "season: period: is missing", "season(7)"),
    text("a short period", "season(1)", "season: period: is 1", "above 1"),
    text("a negative period", "season(-7)", "season: period: is -7", "above 1"),
    text(
        "a word for a period", "season(week)", "season: 'week' is not one of", "a number (period)"
    ),
    text("an endless period", "season(1e9)", "season: period: is 1e+09", "rounds"),
    text("negative harmonics", "season(7, harmonics=-1)", "season: harmonics: is -1", "1..3"),
    text("too many harmonics", "season(7, harmonics=4)", "season: harmonics: is 4", "1..3"),
    text("half a harmonic", "season(7, harmonics=1.5)", "season: harmonics: 1.5 is not", "1..3"),
    text("no order", "ar(0)", "ar: order: is 0", "1..20"),
    text("no stationary ar", "ar(1, partial1=1)", "ar: partial1: is 1", "between -1 and 1"),
    text("negative memory", "level(arm, memory=-1)", "level: memory: is -1", "≥ 0"),
    text("no memory", "level(arm, memory=0)", "level: memory: is 0", "above 0"),
    text("a word for a memory", "level(memory=long)", "level: memory: 'long' is not a real", ""),
    text("a negative drift", "level(arm, drift=-0.1)", "level: drift: is -0.1", "≥ 0"),
    text("not a number", "level(arm, drift=nan)", "level: drift: 'nan' is not a real number", ""),
    text("infinite", "level(arm, start=1e999)", "level: start: is inf", "finite"),
    text("damping above 1", "trend(damping=1.5)", "trend: damping: is 1.5", "between 0 and 1"),
    text("a start of noise", "noise(arm, start=1)", "noise: start: was given", "size"),
    text("loadings of arms", "level(arm, loadings=free)", "level: loadings: were given", "shared"),
    text("a word as loadings", "level(shared, loadings=fre)", "level: loadings: is 'fre'", "free"),
    text("no loadings", "level(shared, loadings=[])", "level: loadings: ''", "finite"),
    text("zero loadings", "level(shared, loadings=[0, 0])", "level: loadings: are all zero", ""),
    text("no feature", "regression(arm)", "regression: features: is missing", "x_price"),
    text("a feature twice", "regression(x_a, x_a)", "regression: features: hold x_a twice", ""),
    text("another column", "regression(price)", "regression: 'price' is not one of", "arm"),
    Case("NaN from Python", lambda: level(drift=NAN), "level: drift: is nan", "≥ 0"),
    Case("a period of NaN", lambda: season(NAN), "season: period: is nan", "finite"),
    Case("text for a period", lambda: season("7"), "season: period: '7' is not a real", ""),
    Case("an unknown scope", lambda: level("all"), "level: scope: is 'all'", "arm, group, shared"),
    Case("no text", lambda: level(own=1), "level: own: is 1", "True or False"),
    Case("a number as a feature", lambda: regression(5), "regression: features: hold 5", "x_"),
    Case("no features", lambda: regression([]), "regression: features: are none", "x_price"),
    Case("another's column", lambda: regression("price"), "regression: features: hold", "'price'"),
    Case("a comma", lambda: regression("x_a, b"), "regression: features: hold 'x_a, b'", "rename"),
    Case(
        "an array of wrong loadings",
        lambda: level("shared", loadings=np.array([1.0, NAN])),
        "level: loadings: is nan",
        "finite",
    ),
]
LAYOUTS = [
    laid_out(
        "an arm without a component",
        f"level(shared, loadings=[{', '.join(['0'] + ['1'] * (len(ARMS) - 1))}])",
        "structure: has nothing for arm",
        "constant(arm)",
    ),
    laid_out("too few loadings", "level(shared, loadings=[1])", "level: loadings: has 1", "2 arms"),
    laid_out("no groups", "season(7, group)", "season: scope: is group", "groups"),
    laid_out("a missing arm", "level(group)", "groups: lack the arm 'right'", "", {"left": 1}),
    laid_out("a list of groups", "level(group)", "groups: has type list", "mapping", ["x", "y"]),
    laid_out(
        "many states", "season(168, arm)", "structure: has 1200 states", "1000", arms=range(100)
    ),
    laid_out("no names", "level(arm)", "names: is None", "each arm", arms=None),
    laid_out("no arms", "level(arm)", "names: is []", "each arm", arms=[]),
    laid_out("text for names", "level(arm)", "names: is 'ab'", "each arm", arms="ab"),
    laid_out("a name twice", "level(arm)", "names: has '1' twice", "once", arms=[1, "1"]),
    Case(
        "an unknown value",
        lambda: Layout("level(arm)", ARMS).system({"level(arm).drft": 1.0}),
        "values: unknown name 'level(arm).drft'",
        "did you mean 'level(arm).drift'?",
    ),
    Case(
        "an impossible value",
        lambda: Layout("level(arm)", ARMS).system({"noise": -1.0}),
        "values: noise is -1",
        "possible",
    ),
]
FITS = [
    fitted("no column", "regression: features: needs x_price", "x_", "regression(x_price)"),
    fitted("all missing", "log: has no reward", "two", log={"reward": [NAN] * 6}),
    fitted("one reward", "log: has one reward", "two", log={"reward": [1.0] + [NAN] * 5}),
    fitted("huge rewards", "log: has rewards up to", "1e+140", log={"reward": [1e140] * 6}),
    fitted("tiny rewards", "log: has rewards up to", "1e-200", log={"reward": [1e-200] * 6}),
    fitted(
        "a huge feature",
        "log: has values of x_a up to 1e+100",
        "units",
        "level(arm) + regression(x_a)",
        log={"x_a": [1e100] * 6},
    ),
    fitted("prior", "prior: is nan", "≥ 0", prior=NAN),
    fitted("prior of a comparison", "prior: is -1", "≥ 0", ["level(arm)"], prior=-1),
    fitted("starts", "starts: is 0", "≥ 1", starts=0),
    fitted("a word for starts", "starts: 'many' is not a whole number", "", starts="many"),
    fitted("features too", "structure: was given together with factors", "", arms=np.eye(2)),
    fitted("states too", "structure: was given together with factors", "", n_states=1),
    fitted("no structure in a list", "structure: is an empty list", "", []),
    fitted("one of several", "structure: unknown name 'lvel'", "level", ["level(arm)", "lvel"]),
    fitted("too short to compare", "log: has 6 rewards to compare", "80", "auto"),
    fitted("periods beside a structure", "periods: was given", "auto", periods=[7]),
    fitted("a period", "season: period: is 0.5", "above 1", "auto", periods=[0.5]),
    fitted("a period of NaN", "season: period: is nan", "finite", "auto", periods=[NAN]),
    fitted("one period", "periods: is 7", "list", "auto", periods=7),
    fitted("a text as periods", "periods: is '7'", "list", "auto", periods="7"),
    Case(
        "groups alone", lambda: db.fit(LOG, groups={"left": 1}), "groups: was given", "components"
    ),
    Case(
        "periods beside structures",
        lambda: compare(log_of(np.arange(3), np.zeros(3, int), np.ones(3)), ["level"], periods=[7]),
        "periods: is [7]",
        "season",
    ),
]


@each(TEXTS)
def test_bad_text_and_options(case):
    assert_refused(case)


@each(LAYOUTS)
def test_structures_that_do_not_fit_the_arms(case):
    assert_refused(case)


@each(FITS)
def test_logs_and_options_that_cannot_be_fitted(case):
    assert_refused(case)


GROUPS = "arm,group\nleft,x\nright,y\n"
LINES = {
    "component": (["--structure", "level(arm) + saeson(7)"], "structure: unknown name 'saeson'"),
    "column": (["--structure", "regression(x_a)"], "regression: features: needs x_a"),
    "no groups": (["--structure", "level(group)"], "level: scope: is group, and no groups"),
    "several": (["--structure", "level", "--structure", "ar"], "--structure: was given 2 times"),
    "season": (["--states", "1", "--season", "7"], "--season: was given with a model"),
    "period": (["--select", "--season", "-7"], "season: period: is -7"),
    "too short": (["--select"], "log: has 3 rewards to compare structures"),
    "no file": (["--structure", "level(group)", "--groups", "no.csv"], "no.csv: cannot be read"),
    "no group column": (GROUPS.replace("group", "team"), "groups.csv: has no column 'group'"),
    "no arm column": (GROUPS.replace("arm", "amr"), "groups.csv: has no column 'arm'"),
    "two groups": (GROUPS + "left,y\n", "groups.csv line 4: arm 'left' is in group 'x' too"),
    "no group": (GROUPS + "both,\n", "groups.csv line 4: group is missing"),
    "no arm": (GROUPS + ",x\n", "groups.csv line 4: arm is missing"),
    "arm left out": ("arm,group\nleft,x\n", "groups: lack the arm 'right'"),
}


@pytest.mark.parametrize("name", LINES)
def test_the_command_line_says_it_in_one_line(name, tmp_path, monkeypatch, capsys):
    given, words = LINES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("round,arm,reward\n0,left,1\n1,right,2\n2,left,2\n")
    if isinstance(given, str):
        (tmp_path / "groups.csv").write_text(given)
        given = ["--structure", "level(group)", "--groups", "groups.csv"]
    assert words in fails(monkeypatch, capsys, "fit", "log.csv", *given)


FEATURE = {"x_a": np.arange(100.0), "x_b": np.full(100, 1e100)}
UNFIT = {
    "too short": (3, ["auto"], {}, "log: has 3 rewards to compare structures"),
    "a column": (100, ["level(arm)", "regression(x_c)"], {}, "regression: features: needs x_c"),
    "a huge column": (100, ["auto"], FEATURE, "log: has values of x_b up to 1e+100"),
    "no groups": (100, ["level(arm)", "level(group)"], {}, "level: scope: is group"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_cannot_be_compared_is_refused_before_any_fit(name, monkeypatch):
    rows, structures, features, words = UNFIT[name]
    log = {"round": range(rows), "arm": np.arange(rows) % 2, "reward": np.arange(rows) % 3.0}
    monkeypatch.setattr(Problem, "loss", lambda *_: pytest.fail("it is fitted"))
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}"):
        db.fit(log | features, structure="auto" if structures == ["auto"] else structures)


def test_there_are_many_cases():
    assert len(TEXTS) + len(LAYOUTS) + len(FITS) + len(LINES) > 100
    assert all(case.error is InvalidInput for case in (*TEXTS, *LAYOUTS, *FITS))
