"""Objects behave as people expect: short names, equality, copies, files, frames and pictures."""

import contextlib
import copy
import pickle

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

import driftbandit as db
from driftbandit.policies import available, idea, make, optimistic
from driftbandit.result import Timing

TIMING = Timing(0.1, 0.2, 0.3, "cpu")


def model(**changes):
    given = {
        "transition": [[0.5, 0.1], [0.0, 0.9]],
        "process_cov": np.eye(2),
        "reward_std": 0.5,
        "initial_cov": 2 * np.eye(2),
        "initial_mean": [1.0, 0.0],
    }
    return db.LGDS(**given | changes)


def result(shape=(3, 4), names=("idea", "ucb(delta=0.1)", "kalman_oracle"), rounds=50):
    rng = np.random.default_rng(0)
    curves = {name: rng.random((*shape, 5)).cumsum(-1) for name in names}
    regret = {
        name: curve[..., -1] * (1 + place) for place, (name, curve) in enumerate(curves.items())
    }
    return db.Result(regret, curves, np.array([1, 5, 10, 20, 50]), rounds, 7, TIMING)


# Models.


def test_models_are_equal_by_their_numbers():
    assert model() == model()
    assert hash(model()) == hash(model())
    assert len({model(), model(), model(reward_std=1.0)}) == 2
    for changes in (
        {"transition": [[0.5, 0.2], [0.0, 0.9]]},
        {"process_cov": 2 * np.eye(2)},
        {"reward_std": 0.6},
        {"initial_cov": None},
        {"initial_mean": None},
        {"initial_mean": [0.0, 1.0]},
    ):
        assert model(**changes) != model(), changes
    zero = model(transition=[[0.5, 0.1], [-0.0, 0.9]])
    assert zero == model()
    assert hash(zero) == hash(model())
    assert model() != "a model"
    assert db.System(model(), np.eye(2)) == db.System(model(), np.eye(2))


def test_a_model_is_shown_on_one_line():
    assert repr(model()) == "LGDS(2 states, spectral radius 0.9, σ 0.5)"
    assert repr(db.LGDS([[0.5]], [[1.0]], 1.0)) == "LGDS(1 state, spectral radius 0.5, σ 1)"
    assert len(repr(db.families.sample("gaussian", n_states=50)[0][0])) < 80


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_models_are_equal_and_cannot_be_written_to(copied):
    found = copied(model())
    assert found == model()
    assert not found.transition.flags.writeable
    assert not found.initial_cov.flags.writeable


def test_a_model_inside_a_compiled_program_can_be_shown():
    import jax

    import driftbandit.simulation  # noqa: F401  (makes an LGDS a JAX pytree)

    shown = []
    jax.make_jaxpr(lambda given: shown.append(repr(given)) or given.reward_std)(model())
    assert shown == ["LGDS(2 states)"]


# Policies.


def bonus(cov, model, arms, width=1.0):
    return width * arms[:, 0]


@pytest.mark.parametrize("name", available())
def test_policies_of_the_registry_travel_by_name(name):
    policy = make(name)
    for copied in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
        assert copied == policy == make(name)
        assert hash(copied) == hash(policy)
        assert (copied.choose, copied.update) == (policy.choose, policy.update)  # compiled once
    assert b"make" in pickle.dumps(policy)
    assert repr(policy) == f"Policy({policy.label})"


def test_parameters_travel_and_tell_policies_apart():
    policy = make("kalman_ucb(width=2)")
    assert repr(policy) == "Policy(kalman_ucb(width=2))"
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert policy != make("kalman_ucb(width=3)")
    assert make("ucb") != make("oful")
    assert make("ucb") != "ucb"
    assert make("information_directed(points=32)") != make("information_directed")


def test_own_policies_travel_by_their_functions():
    own = optimistic("mine", bonus, width=2.0)
    copied = pickle.loads(pickle.dumps(own))
    assert copied == own
    assert copied.choose == own.choose
    assert hash(copied.choose) == hash(own.choose)  # so that it compiles once
    named = optimistic("idea", bonus)  # only the name is the registry's
    assert named != make("idea")
    assert pickle.loads(pickle.dumps(named)) == named
    whole = {"on_sphere": idea.on_sphere, "length_ratio": idea.length_ratio}
    assert optimistic("idea", idea.bonus, **whole) == make("idea")
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(optimistic("mine", lambda cov, model, arms: arms[:, 0]))


def test_a_copied_policy_decides_the_same():
    system, arms = db.families.sample("gaussian", n_states=3, n_arms=4)[0]
    for policy in (make("lookahead"), optimistic("mine", bonus, width=2.0)):
        agents = [db.Agent(system, arms, each) for each in (policy, copy.deepcopy(policy))]
        decisions = [agent.ask() for agent in agents]
        assert decisions[0] == decisions[1]


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
    from driftbandit.io import result_file

    monkeypatch.setattr(result_file, "FORMAT", 2)
    result().save(tmp_path / "result.npz")
    monkeypatch.undo()
    with pytest.raises(db.InvalidInput, match="has format 2; this version reads format 1"):
        db.Result.load(tmp_path / "result.npz")


def test_a_frame_has_a_row_for_each_system_run_and_policy():
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
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(db.MissingExtra, match=r"^to_dataframe needs pandas; install pandas$"):
        result().to_dataframe()


def test_notebooks_get_an_escaped_table():
    html = result((4,), ("<b>&", "idea"))._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html
    assert html.count("<tr>") == 3
    assert "Lower is better" in html


@pytest.mark.parametrize("kind", ["boxes", "curves"])
@pytest.mark.parametrize("shape", [(3, 4), (4,)])
def test_plots(kind, shape, tmp_path):
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


def test_bad_plots_get_one_line(tmp_path):
    with pytest.raises(db.InvalidInput, match="kind: unknown name 'curve'; did you mean 'curves'"):
        result().plot(kind="curve")
    with pytest.raises(db.InvalidInput, match=r"path: is .*; end it in \.png"):
        result().plot(tmp_path / "a.txt")
    bare = db.Result({"idea": np.ones(3)}, {}, np.array([9]), 9, 0, TIMING)
    with pytest.raises(db.InvalidInput, match="curves: are none"):
        bare.plot(kind="curves")


def test_the_comparison_says_what_is_better_in_the_order_of_the_table(tmp_path, monkeypatch):
    from driftbandit import plots

    names = ("ucb", "random", "idea", "kalman_oracle")
    results = {}
    for place, family in enumerate(("gaussian", "cauchy")):
        base = np.random.default_rng(place).uniform(1, 2, (3, 4))
        factors = {"ucb": 3.0, "random": 9.0, "idea": 1.2, "kalman_oracle": 1.0}
        regret = {name: base * factors[name] for name in names}
        results[family] = db.Result(regret, {}, np.array([9]), 9, 0, TIMING)
    drawn = []
    monkeypatch.setattr(plots.Figure, "savefig", lambda self, *a, **k: drawn.append(self))
    plots.comparison(results, tmp_path / "a.png")
    (figure,) = drawn
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["idea", "ucb", "random"]
    assert "lower is better" in figure.get_suptitle()
