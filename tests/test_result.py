"""Results: comparisons, summaries, equality, copies, files, frames and pictures."""

import contextlib
import copy
import dataclasses
import pickle
import sys

import numpy as np
import pytest

import driftbandit as db
from driftbandit import InvalidInput
from driftbandit.result import Result, Timing
from driftbandit.statistics import (
    paired,
)
from refusals import INF, Case, assert_refused, each

# Result.compare


def compared(**regret):
    regret = {name: np.asarray(values, float) for name, values in regret.items()}
    return Result(regret, {}, np.array([1]), 1, 0, Timing(0, 0, 0, "cpu"))


@pytest.fixture(scope="module")
def played():
    systems = db.families.sample("cauchy", 8, n_states=3, n_arms=4)
    return db.simulate(systems, None, ["idea", "random", "kalman_oracle"], rounds=60, runs=3)


def test_several_systems_are_compared_in_units_of_the_oracle(played):
    excess = played.normalized()
    row = played.compare("idea", seed=4)["random"]
    assert played.in_oracle_units
    plain = paired(excess["random"], excess["idea"], seed=4)
    np.testing.assert_allclose(row[:-1], plain[:-1], rtol=1e-9)
    assert (row.unit, plain.unit) == ("the Oracle's regret", "")
    assert set(played.compare("idea")) == {"random", "kalman_oracle"}
    assert row.independent == 8
    assert row.verdict == "worse"
    assert played.best() == "idea"


def test_one_system_or_no_oracle_are_compared_in_plain_regret(played):
    alone = dataclasses.replace(played, regret={name: r[0] for name, r in played.regret.items()})
    blind = dataclasses.replace(
        played, regret={k: r for k, r in played.regret.items() if k != "kalman_oracle"}
    )
    for some in (alone, blind):
        expected = paired(some.regret["random"], some.regret["idea"])
        assert some.compare("idea")["random"] == expected
        assert not some.in_oracle_units


def test_one_run_of_several_systems_is_in_units_of_the_oracle():
    some = compared(idea=[[2], [20]], random=[[3], [40]], kalman_oracle=[[1], [10]])
    assert some.compare("idea")["random"].median_difference == 1.5


def test_where_the_oracle_has_no_regret_the_sign_still_counts():
    """Both normalized regrets are infinite there; their difference is not lost."""
    oracle = [[0.0, 0.0], [1.0, 1.0]] * 4
    some = compared(idea=[[1, 1], [2, 2]] * 4, random=[[5, 1], [3, 3]] * 4, kalman_oracle=oracle)
    row = some.compare("idea")["random"]
    assert row.win_rate == 1 / 8  # a tie in every fourth run, a loss in the others
    assert row.median_difference == 1
    assert row.mean_difference == INF
    assert some.best() == "idea"


def test_best_of_one_system_is_plain():
    some = compared(idea=[1, 9], kode=[2, 2], kalman_oracle=[1, 1])
    assert some.best() == "kode"


TIMING = Timing(0.1, 0.2, 0.3, "cpu")


def result(shape=(3, 4), names=("idea", "ucb(delta=0.1)", "kalman_oracle"), rounds=50):
    rng = np.random.default_rng(0)
    curves = {name: rng.random((*shape, 5)).cumsum(-1) for name in names}
    regret = {
        name: curve[..., -1] * (1 + place) for place, (name, curve) in enumerate(curves.items())
    }
    return db.Result(regret, curves, np.array([1, 5, 10, 20, 50]), rounds, 7, TIMING)


# Results.


def test_a_result_is_shown_on_one_line():
    shown = "Result(3 systems × 4 runs × 50 rounds: idea, ucb(delta=0.1), kalman_oracle)"
    assert repr(result()) == shown
    assert repr(result((4,), ("idea",))) == "Result(4 runs × 50 rounds: idea)"
    assert repr(result((4,), "abcde")) == "Result(4 runs × 50 rounds: a, b, c, d, …)"


def test_results_are_equal_by_their_numbers():
    assert result() == result()
    slower = result()
    object.__setattr__(slower, "timing", Timing(9, 9, 9, "gpu"))
    assert slower == result()
    assert result(rounds=51) != result()
    assert result(names=("idea",)) != result()
    other = result()
    other.regret["idea"][0, 0] += 1e-9
    assert other != result()
    assert result() != 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_results_are_copied_whole(copied):
    found = copied(result())
    assert found == result()
    assert found.timing == TIMING


@pytest.mark.parametrize("shape", [(3, 4), (4,)])
def test_results_are_saved_to_the_bit(shape, tmp_path):
    given = result(shape)
    given.regret["idea"].flat[0] = np.inf
    given.regret["idea"].flat[1] = np.nan
    given.save(tmp_path / "result.npz")
    found = db.Result.load(str(tmp_path / "result.npz"))
    assert found == given
    assert found.timing == TIMING
    assert found.regret["idea"].shape == shape
    assert list(tmp_path.iterdir()) == [tmp_path / "result.npz"]


def test_bad_result_files_get_one_line(tmp_path):
    path = tmp_path / "result.npz"
    result().save(path)
    whole = path.read_bytes()

    def refusal(content):
        path.write_bytes(content)
        with pytest.raises(db.InvalidInput) as caught:
            db.Result.load(path)
        assert "\n" not in str(caught.value)
        return caught.value.problem

    broken = "is not a whole result file"
    assert refusal(b"") == refusal(b"no archive") == refusal(whole[: len(whole) // 2]) == broken
    for place in range(100, len(whole) - 1, 997):  # one bit
        content = bytearray(whole)
        content[place] ^= 16
        path.write_bytes(content)
        with contextlib.suppress(db.InvalidInput):
            assert db.Result.load(path) == result()  # a bit that zip itself does not read
    newer = whole.replace(b'"driftbandit_result": 1', b'"driftbandit_result": 2')
    assert refusal(newer) == broken  # its checksum is the old one
    with pytest.raises(db.InvalidInput, match="cannot be read"):
        db.Result.load(tmp_path / "none.npz")
    np.savez_compressed(path, header=np.zeros(9))
    with pytest.raises(db.InvalidInput, match="packed"):
        db.Result.load(path)
    np.savez(path, header=np.array([{}], dtype=object))
    with pytest.raises(db.InvalidInput, match=broken):  # pickle is never read
        db.Result.load(path)


def test_a_newer_format_is_named(tmp_path, monkeypatch):
    from driftbandit.io import atomic

    monkeypatch.setattr(atomic, "FORMAT", 2)
    result().save(tmp_path / "result.npz")
    monkeypatch.undo()
    with pytest.raises(db.InvalidInput, match="has format 2; this version reads format 1"):
        db.Result.load(tmp_path / "result.npz")


def test_a_frame_has_a_row_for_each_system_run_and_policy():
    pd = pytest.importorskip("pandas")
    given = result()
    frame = given.to_dataframe()
    assert list(frame.columns) == ["system", "run", "policy", "regret"]
    assert len(frame) == 3 * 4 * 3
    for (system, run, policy), row in frame.set_index(["system", "run", "policy"]).iterrows():
        assert row["regret"] == given.regret[policy][system, run]
    means = frame.groupby("policy")["regret"].mean()
    assert means["idea"] == pytest.approx(given.regret["idea"].mean())
    single = result((4,)).to_dataframe()
    assert set(single["system"]) == {0}
    assert isinstance(single, pd.DataFrame)


def test_a_frame_needs_pandas(monkeypatch):

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(db.MissingExtra, match=r"^to_dataframe needs pandas; install pandas$"):
        result().to_dataframe()


def test_the_printed_table_is_as_wide_as_its_longest_label():
    for name in ("idea", "a policy with a name of more than twenty characters"):
        lines = str(result((4,), (name, "kode"))).splitlines()
        assert len({len(line) for line in lines}) == 1
        assert len(lines[0]) == max(20, len(name)) + 48


@pytest.mark.parametrize("written", ["IDEA", "Idea", " idea ", db.policies.make("idea")])
def test_a_baseline_is_written_as_for_simulate(written):
    assert result().compare(written) == result().compare("idea")
    assert result().normalized("Kalman Oracle").keys() == result().normalized().keys()


def test_a_baseline_of_ones_own_or_with_parameters():
    names = ("My policy", "kalman_ucb(width=1)", "kalman_ucb(width=2)", "ucb")
    given = result((4,), names)
    assert "My policy" not in given.compare("my policy")
    assert "kalman_ucb(width=2)" not in given.compare("Kalman-UCB(width=2.0)")
    assert "kalman_ucb(width=1)" not in given.compare("Kalman-UCB")  # the default
    one = result((4,), ("ucb(delta=0.5)", "idea"))
    for written in ("ucb", "UCB(delta=0.5)", db.policies.make("ucb(delta=0.5)")):
        assert "ucb(delta=0.5)" not in one.compare(written)
    other = db.policies.make("ucb(delta=0.5)")
    for unknown in ("ucb(delta=0.5)", other, db.policies.make("kode"), "kode"):
        with pytest.raises(db.InvalidInput, match="baseline: unknown name"):
            given.compare(unknown)


def test_notebooks_get_an_escaped_table():
    html = result((4,), ("<b>&", "idea"))._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html
    assert html.count("<tr>") == 3
    assert "Lower is better" in html


@pytest.mark.parametrize("kind", ["boxes", "curves"])
@pytest.mark.parametrize("shape", [(3, 4), (4,)])
def test_plots(kind, shape, tmp_path):
    import matplotlib.image

    given = result(shape)
    figure = given.plot(tmp_path / "a.png", kind=kind)
    assert matplotlib.image.imread(tmp_path / "a.png").shape[2] == 4
    (axis,) = figure.axes
    assert "lower is better" in axis.get_title()
    order = sorted(given.regret, key=lambda name: given.regret[name].mean())
    if kind == "boxes":
        assert [label.get_text() for label in axis.get_yticklabels()] == order
    else:
        ends = {line.get_label(): line.get_ydata()[-1] for line in axis.lines}
        assert ends["idea"] == pytest.approx(np.median(given.curves["idea"][..., -1]))
        assert len(axis.collections) == 3  # bands
    assert given.plot().axes  # nothing is written


def colors(figure):
    """By label, of a figure with a legend or with named rows."""
    (axis,) = figure.axes
    if axis.get_legend() is not None:
        return {line.get_label(): line.get_color() for line in axis.lines}
    names = [label.get_text() for label in axis.get_yticklabels()]
    dots = [line for line in axis.lines if line.get_marker() == "o"]
    return {names[round(line.get_ydata()[0])]: line.get_color() for line in dots}


def test_colors_are_distinct_and_the_same_in_all_kinds():
    own = ["mine", "another, with a long name", "Zebra"]
    given = result((4,), (*own, *db.policies.available(), "kode(a=1)", "kode(a=2)"))
    boxes = colors(given.plot())
    assert len(set(boxes.values())) == len(boxes) == len(given.regret)
    assert colors(given.plot(kind="curves")) == boxes
    differences = colors(given.plot(kind="differences", baseline="idea"))
    assert differences == {
        name: color for name, color in boxes.items() if name not in ("idea", "kalman_oracle")
    }
    alone = colors(result((4,), ("idea", "ucb")).plot())
    assert alone == {name: boxes[name] for name in alone}


@pytest.mark.parametrize("kind", ["boxes", "curves", "differences"])
def test_long_names_fit_into_the_figure(kind):
    given = result(
        (4,), ("idea", "a policy with a name of more than sixty characters in this test")
    )
    figure = given.plot(kind=kind, baseline="idea" if kind == "differences" else None)
    figure.draw_without_rendering()
    (axis,) = figure.axes
    inside = figure.bbox.padded(2)
    titles = [axis.title, axis._left_title, axis._right_title]  # no public name for the last two
    for text in [*titles, axis.xaxis.label, *axis.get_yticklabels()]:
        if text.get_text():
            box = text.get_window_extent()
            assert inside.x0 <= box.x0 < box.x1 <= inside.x1, text
    assert axis.get_window_extent().width > 0.4 * 6.4 * figure.dpi


def test_differences_are_those_of_compare(played):
    figure = played.plot(kind="differences", baseline="IDEA")
    (axis,) = figure.axes
    row = played.compare("idea")["random"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["random"]  # no Oracle
    assert list(axis.lines[0].get_xdata()) == [row.low, row.high]
    assert list(axis.lines[1].get_xdata()) == [row.median_difference]
    assert axis.get_title("left") == "← less regret than IDEA"
    assert "in units of the Oracle's regret\nmedian and 95% interval over 24" in axis.get_xlabel()
    plain = result((4,)).plot(kind="differences", baseline="idea").axes[0]
    assert "Oracle" not in plain.get_xlabel()
    only = result((4,), ("idea", "kalman_oracle")).plot(kind="differences", baseline="idea")
    assert [label.get_text() for label in only.axes[0].get_yticklabels()] == ["kalman_oracle"]


@pytest.mark.parametrize("kind", ["boxes", "curves", "differences"])
def test_some_policies_are_drawn_in_their_colors(kind):
    given = result((4,), ("idea", "kode", "ucb", "mine", "another"))
    baseline = "idea" if kind == "differences" else None
    every = colors(given.plot(kind=kind, baseline=baseline))
    some = colors(given.plot(kind=kind, baseline=baseline, policies=["KODE", "mine"]))
    assert some == {name: every[name] for name in ("kode", "mine")}
    with pytest.raises(db.InvalidInput, match="policies: unknown name 'moss'"):
        given.plot(kind=kind, baseline=baseline, policies=["moss"])
    with pytest.raises(db.InvalidInput, match="policies: are none"):
        given.plot(kind=kind, baseline=baseline, policies=[])
    with pytest.raises(db.InvalidInput, match="policies: is 5; give a list of names"):
        given.plot(kind=kind, baseline=baseline, policies=5)
    for one in ("ucb", db.policies.make("ucb")):
        assert list(colors(given.plot(kind=kind, baseline=baseline, policies=one))) == ["ucb"]


def test_bad_plots_get_one_line(tmp_path):
    for given in ({"kind": "differences"}, {"baseline": "idea"}):
        with pytest.raises(db.InvalidInput, match=r'baseline: .*; give kind="differences" and a'):
            result().plot(**given)
    with pytest.raises(db.InvalidInput, match=r"baseline: .* idea played alone; simulate others"):
        result(names=("idea",)).plot(kind="differences", baseline="idea")
    with pytest.raises(db.InvalidInput, match="policies: have only the baseline; name one"):
        result().plot(kind="differences", baseline="idea", policies=["idea"])
    with pytest.raises(db.InvalidInput, match="kind: unknown name 'curve'; did you mean 'curves'"):
        result().plot(kind="curve")
    with pytest.raises(db.InvalidInput, match=r"path: is .*; end it in \.png"):
        result().plot(tmp_path / "a.txt")
    bare = db.Result({"idea": np.ones(3)}, {}, np.array([9]), 9, 0, TIMING)
    with pytest.raises(db.InvalidInput, match="curves: are none"):
        bare.plot(kind="curves")


def test_standard_errors_count_systems():
    """Runs of one system are alike; the mean's error comes from the spread between systems."""
    result = db.simulate(
        db.families.sample("exponential", 12, n_states=3, n_arms=4), None, ["kode"], 60, 30
    )
    means = result.regret["kode"].mean(axis=1)
    expected = means.std(ddof=1) / np.sqrt(12)
    assert result.summary()["kode"]["standard_error"] == pytest.approx(expected)


def compare(baseline="idea", **options):
    regret = {"idea": np.ones(3), "kode": np.zeros(3)}
    timing = Timing(0, 0, 0, "cpu")
    return db.Result(regret, {}, np.ones(1), 1, 0, timing).compare(baseline, **options)


def test_the_best_of_none():
    alone = db.Result({"kalman_oracle": np.ones(3)}, {}, np.ones(1), 1, 0, Timing(0, 0, 0, "cpu"))
    with pytest.raises(InvalidInput, match="policies: the Oracle played alone"):
        alone.best()


CASES = [
    Case("baseline koda", lambda: compare("koda"), "baseline", "did you mean 'kode'?"),
    Case("baseline number", lambda: compare(3), "baseline", "3"),
    Case("compare confidence", lambda: compare(confidence=0), "confidence", "is 0"),
    Case("compare seed", lambda: compare(seed=0.5), "seed", "0.5"),
]


@each(CASES)
def test_bad_comparisons_are_refused(case):
    assert_refused(case)
