"""Arms that come and go, and models that are replaced."""

import dataclasses

import numpy as np
import pytest

from agent_histories import ARMS, MODEL, NAMES, SCORED, SYSTEM, WALK, asked, assert_same, history
from driftbandit import LGDS, Agent, InvalidInput, Refit, System
from driftbandit.agent import refitting
from driftbandit.agent.changes import with_new_arm
from driftbandit.structure import Layout

# Arms that come and go.


@pytest.mark.parametrize("name", ["idea", "lookahead", "thompson", "oful", "ucb"])
def test_a_new_arm_with_features(name):
    """As if it had been there from the start and had never been played."""
    agent = asked(Agent(SYSTEM, policy=name, window=10), *history())
    agent.add_arm("fifth", [0.3, 1.0, -0.5])
    rows = np.vstack([ARMS, [0.3, 1.0, -0.5]])
    other = asked(Agent(System(MODEL, rows, (*NAMES, "fifth")), policy=name, window=10), *history())
    assert agent.names == (*NAMES, "fifth")
    assert_same(agent, other)
    assert agent.to_json() == other.to_json()
    assert agent.ask() == other.ask()


def test_a_belief_outlives_its_log():
    """The Kalman filter's state does not depend on the list of arms."""
    agent = asked(Agent(SYSTEM, window=10, memory=3), *history())
    state = agent.state
    agent.add_arm("fifth", [0.3, 1.0, -0.5])
    np.testing.assert_array_equal(agent.state.cov, state.cov)
    agent.remove_arm("left")
    np.testing.assert_array_equal(agent.state.mean, state.mean)


@pytest.mark.parametrize("model", [MODEL, WALK], ids=["stationary", "walk"])
def test_a_new_arm_without_features(model):
    """A level of its own, of which nothing is known; all else is assumed as before."""
    agent = asked(Agent(System(model, ARMS, NAMES), window=10), *history())
    guest = agent.ask(arms=[[1.0, 0.0, 0.0]])
    before, scores = agent.state, agent.scores()
    agent.add_arm("new")
    assert agent.model.n_states == 4
    np.testing.assert_allclose(agent.state.mean[:3], before.mean, rtol=1e-12)
    np.testing.assert_allclose(agent.state.cov[:3, :3], before.cov, rtol=1e-12)
    assert not agent.state.cov[3, :3].any()
    for one, other in zip(scores, agent.scores()[:4], strict=True):
        assert one.mean == pytest.approx(other.mean)
        assert one.uncertainty == pytest.approx(other.uncertainty)
    spread = model.stationary_cov() if model.is_stable else model.initial_cov
    usual = np.sqrt(np.mean([a @ spread @ a for a in ARMS]))
    new = agent.scores()[4]
    assert (new.arm, new.mean) == ("new", 0.0)
    assert new.uncertainty >= usual * (1 - 1e-12)
    assert agent.tell(guest, 1.0) == "learned"
    decision = agent.ask(arms=["new"])
    agent.tell(decision, 3.0)
    assert agent.scores()[4].mean > 1.0
    back = Agent.from_json(agent.to_json())
    assert back.to_json() == agent.to_json()
    assert back.ask() == agent.ask()


@pytest.mark.parametrize(
    "structure",
    [
        "level(arm)",
        "constant(arm) + level(arm, memory=free) + season(4, arm)",
        "trend(arm) + ar(2)",
    ],
)
def test_a_new_arm_among_arms_that_are_alike(structure):
    """It has states like theirs, as if it had been there from the start."""
    assert not Refit(structure=structure).keeps_arms
    few, all_ = (Layout(structure, names).system() for names in (["a", "b"], ["a", "b", "c"]))
    model, row = with_new_arm(few.model, few.arms)
    arms = np.vstack([np.pad(few.arms, ((0, 0), (0, len(row) - few.arms.shape[1]))), row])
    assert model.n_states == all_.model.n_states
    for gap in range(4):
        ours, theirs = (
            rows @ np.linalg.matrix_power(one.transition, gap) @ cov @ rows.T
            for rows, one in ((arms, model), (all_.arms, all_.model))
            for cov in (one.start_cov() + one.process_cov,)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("structure", ["level(arm) + season(7)", "level(arm, own)", "free", None])
def test_which_arms_stay(structure):
    """Those that share a component or have parameters of their own; a matrix needs features."""
    assert Refit(structure=structure).keeps_arms is (structure not in ("free", None))
    assert Refit(structure="free", offsets=True).keeps_arms


def test_a_new_level_starts_among_the_others_where_nothing_is_stationary():
    """Levels that are known to be around 100: the new one is not around zero."""
    walk = LGDS(np.eye(2), 0.01 * np.eye(2), 1.0, 0.04 * np.eye(2), [99.0, 101.0])
    agent = Agent(System(walk, np.eye(2), ["a", "b"]))
    agent.add_arm("new")
    new = agent.scores()[2]
    assert new.mean == pytest.approx(100.0)
    assert new.uncertainty == pytest.approx(np.sqrt(0.04 + 2.0))
    assert Agent.from_json(agent.to_json()).scores() == agent.scores()


def test_the_new_level_drifts_as_the_others():
    """Of one state: the same state. Of two: in between. Offsets are read on average."""
    model, row = with_new_arm(LGDS([[0.8]], [[0.36]], 0.1), np.array([[2.0], [-2.0]]))
    np.testing.assert_allclose(model.transition, np.diag([0.8, 0.8]))
    np.testing.assert_allclose(model.stationary_cov()[1, 1], 4.0)
    model, row = with_new_arm(LGDS(np.diag([0.9, 0.5]), np.eye(2), 0.1), np.eye(2))
    assert 0.5 < model.transition[2, 2] < 0.9
    constant = LGDS(np.diag([0.5, 1.0]), np.diag([3.0, 0.0]), 1.0, initial_mean=[0.0, 1.0])
    model, row = with_new_arm(constant, np.array([[1.0, 5.0], [1.0, 7.0]]))
    assert row.tolist() == [0.0, 6.0, 1.0, 1.0]
    assert model.start_mean().tolist() == [0.0, 1.0, 0.0, 0.0]
    np.testing.assert_allclose(np.diag(model.start_cov()), [4.0, 0.0, 4.0, 2.0])
    assert model.is_stable
    assert model.transition[3, 3] > 0.9999  # what lasts
    model, row = with_new_arm(constant, np.array([[1.0, -5.0]]))
    np.testing.assert_allclose(np.diag(model.start_cov()), [4.0, 0.0, 4.0, 25.0])
    still = LGDS(np.eye(2), np.zeros((2, 2)), 1.0, initial_mean=[0.0, 1.0])
    model, row = with_new_arm(still, np.array([[1.0, 5.0], [1.0, 7.0]]))  # offsets, and no drift
    assert row.tolist() == [1.0, 6.0, 1.0]
    with pytest.raises(InvalidInput, match="features: is None, and no arm's reward drifts"):
        with_new_arm(LGDS([[0.5]], [[0.0]], 1.0), np.array([[1.0]]))


@pytest.mark.parametrize("name", ["idea", "thompson", "kalman_ucb"])
def test_a_new_arm_beside_arms_with_offsets_is_tried(name):
    """Arms that pay 0, 5 and 10 on average: another one may well pay 15, and is found out."""
    drift, still = 0.2 * np.eye(3), [0.0, 0.0, 0.0, 1.0]
    model = LGDS(np.diag([0.9, 0.9, 0.9, 1.0]), np.pad(drift, (0, 1)), 0.5, initial_mean=still)
    agent = Agent(System(model, np.column_stack([np.eye(3), [0, 5, 10]]), list("abc")), policy=name)
    pays = {"a": 0.0, "b": 5.0, "c": 10.0, "new": 15.0}
    rng, played = np.random.default_rng(0), []
    for t in range(160):
        if t == 40:
            agent.add_arm("new")
            assert agent.scores()[3].mean == pytest.approx(5.0)
            assert agent.scores()[3].uncertainty > 5.0
        decision = agent.ask()
        played.append(decision.arm)
        agent.tell(decision, pays[decision.arm] + rng.standard_normal())
    assert played[-20:] == ["new"] * 20
    assert Agent.from_json(agent.to_json()).to_json() == agent.to_json()


@pytest.mark.parametrize("name", ["idea", "oful", "thompson"])
def test_an_arm_that_is_removed(name):
    """What it taught stays, its open decisions can be told, and it is offered no more."""
    agent = asked(Agent(SYSTEM, policy=name, window=10), *history())
    state = agent.state
    waiting, last = agent.ask(arms=["right"]), agent.ask(arms=["none"])
    agent.remove_arm("right")
    assert agent.names == ("left", "both", "none")
    back = Agent.from_json(agent.to_json())
    for one in (agent, back):
        assert one.tell(waiting, 0.7) == "learned"
        assert one.tell(last, -0.7) == "learned"
    other = asked(Agent(SYSTEM, policy=name, window=10), *history())
    if name != "oful":  # whose ridge is the longest arm's
        asked(other, [50, 51], ["right", "none"], [0.7, -0.7])
        assert_same(agent, other)
    assert back.to_json() == agent.to_json()
    assert {agent.ask().arm for _ in range(20)} <= {"left", "both", "none"}
    with pytest.raises(InvalidInput, match="'right' is not the name of an arm"):
        agent.ask(arms=["right"])
    assert len(state) == len(agent.state)


def test_row_numbers_stay_names_when_an_arm_goes():
    agent = Agent(MODEL, ARMS)
    agent.remove_arm(1)
    assert agent.names == (0, 2, 3)
    decision = agent.ask(arms=[3])
    assert decision.arm == 3
    np.testing.assert_array_equal(agent.problem.arms[2], ARMS[3])
    agent.add_arm(1, ARMS[1])
    assert agent.names == (0, 2, 3, 1)
    assert agent.ask(arms=[1]).arm == 1


REFUSED = [
    (lambda: Agent(SYSTEM).add_arm("left", [1.0, 0, 0]), "names: has 'left' twice"),
    (lambda: Agent(SYSTEM).add_arm(None, [1.0, 0, 0]), "names: entry .4. is None"),
    (lambda: Agent(SYSTEM).add_arm("new", [1.0, 0]), r"features: has shape \(2,\)"),
    (lambda: Agent(SYSTEM).add_arm("new", [0.0, 0, 0]), "features: row 0 is the zero vector"),
    (
        lambda: Agent(MODEL, "sphere").add_arm("new"),
        "arm: cannot be added: it needs a list of arms, and",
    ),
    (lambda: Agent(SYSTEM, policy="kalman_oracle").add_arm("new"), "sees the rewards of all arms"),
    (
        lambda: Agent(SYSTEM, refit=Refit(offsets=True)).add_arm("new"),
        "learns offsets or components for each arm",
    ),
    (lambda: Agent(SYSTEM).remove_arm("up"), "arm: 'up' is not the name of an arm"),
    (lambda: Agent(SYSTEM, policy="ucb").remove_arm("left"), "ucb keeps a score for each"),
    (lambda: Agent(MODEL, ARMS[:1]).remove_arm(0), "arm: is the last one"),
    (lambda: Agent(SYSTEM).replace_model(3), "model: has type int"),
    (lambda: Agent(SYSTEM).replace_model(LGDS([[0.5]], [[1.0]], 1.0)), r"arms: has shape \(4, 3\)"),
    (lambda: Agent(SYSTEM).replace_model(System(MODEL, ARMS)), "system: has no arm 'left'"),
    (lambda: Agent(MODEL, "sphere").replace_model(SYSTEM), "system: has arms"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


# Another model.


@pytest.mark.parametrize("name", [*SCORED, "rexp3"])
def test_another_model_knows_the_same_history(name):
    """The agent that had the model from the start, bit for bit, while the log is whole."""
    other_model = dataclasses.replace(WALK, reward_std=1.5)
    plays = history()
    agent, other = (
        Agent(System(model, ARMS, NAMES), policy=name, window=10, seed=3)
        for model in (MODEL, other_model)
    )
    for one in (agent, other):
        one.tell_log(zip(*plays, strict=True))
    agent.replace_model(other_model)
    assert agent.model is other_model
    assert_same(agent, other)
    assert json_without_learned(agent) == json_without_learned(other)
    assert agent.ask() == other.ask()


def json_without_learned(agent):
    text = agent.to_json()
    return text[text.index('"agent": ') :]


def test_another_system_by_name():
    """Arms in another order, one more of them, and another number of states."""
    rng = np.random.default_rng(5)
    model = LGDS(0.7 * np.eye(5), np.eye(5), 0.3)
    rows = dict(zip(("new", *NAMES[::-1]), rng.standard_normal((5, 5)), strict=True))
    system = System(model, np.array(list(rows.values())), tuple(rows))
    agent = asked(Agent(SYSTEM, window=10), *history())
    waiting = agent.ask(arms=["right"])
    agent.replace_model(system)
    other = asked(Agent(system, window=10), *history())
    other.ask(arms=["right"])
    for one in (agent, other):
        assert one.tell(waiting, 2.0) == "learned"
    assert_same(agent, other)
    assert agent.names == system.names


SWAPPED = System(LGDS(0.9 * np.eye(2), np.eye(2), 0.5), [[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
"""The states of a fit come in any order."""


STRAIGHT = System(SWAPPED.model, np.eye(2), ["a", "b"])


@pytest.mark.parametrize("window", [3, 100])
def test_another_system_knows_what_a_removed_arm_paid(window):
    """It is read by its name, and it is not offered again."""
    agent, other = Agent(STRAIGHT, window=window), Agent(SWAPPED, window=window)
    for one in (agent, other):
        for _ in range(20):
            one.tell_play("b", 5.0)
    agent.remove_arm("b")
    agent = Agent.from_json(agent.to_json())
    agent.replace_model(SWAPPED)
    assert_same(agent, other)
    assert agent.names == ("a",)
    assert agent.scores()[0].mean == 0.0
    agent.add_arm("b", SWAPPED.arms[1])
    assert agent.scores()[1].mean > 4.0
    agent.replace_model(STRAIGHT)
    assert agent.names == ("a", "b")
    assert agent.scores()[1].mean > 4.0
    assert (
        agent._history.log[0].row is None
        if window == 3
        else agent._history.ledger._open[0].row is None
    )
    without = System(SWAPPED.model, [[0.0, 1.0]], ["a"])
    agent.remove_arm("b")
    with pytest.raises(InvalidInput, match="system: has other features, and some plays"):
        agent.replace_model(without)
    agent.replace_model(System(STRAIGHT.model, [[1.0, 0.0]], ["a"]))  # the same features
    assert agent.names == ("a",)


def test_features_are_not_read_as_other_states():
    agent = Agent(STRAIGHT)
    agent.tell_play("guest", 5.0, features=[0.0, 1.0])
    before = agent.to_json()
    with pytest.raises(InvalidInput, match="system: has other features"):
        agent.replace_model(SWAPPED)
    assert agent.to_json() == before
    agent.replace_model(System(SWAPPED.model, [[0.3, 1.0], *STRAIGHT.arms], ["c", "a", "b"]))
    assert agent.names == ("c", "a", "b")
    assert agent.scores()[2].mean > 1.0


def test_a_system_keeps_the_features_beside_which_offsets_are_learned(monkeypatch):
    seen = []

    def learned(entries, arms, options, start):
        seen.append(arms)
        return SWAPPED.model, arms

    monkeypatch.setattr(refitting, "learned", learned)
    offset = LGDS(np.diag([0.9, 0.8, 1]), np.diag([1.0, 1, 0]), 0.5, initial_mean=[0, 0, 1.0])
    agent = Agent(STRAIGHT, window=0, refit=Refit(offsets=True, background=False))
    for arm in ("a", "b", "a"):
        agent.tell_play(arm, 1.0)
    agent.replace_model(System(offset, [[0.0, 1.0, 7.0], [1.0, 0.0, 5.0]], ["b", "a"]))
    assert agent.names == ("b", "a")
    agent = Agent.from_json(agent.to_json())
    np.testing.assert_array_equal(agent._history.features, [[0.0, 1.0], [1.0, 0.0]])
    assert agent.scores()[0].mean > 2.0
    agent.refit()
    np.testing.assert_array_equal(seen, [[[0.0, 1.0], [1.0, 0.0]]])
    more = System(SWAPPED.model, [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["b", "a", "c"])
    for system, message in (
        (more, "has other arms"),
        (SWAPPED, "has other features than the agent"),
    ):
        with pytest.raises(InvalidInput, match=f"system: {message}"):
            agent.replace_model(system)


def test_a_bounded_history_is_what_is_kept():
    agent = asked(Agent(SYSTEM, window=10, memory=15), *history())
    agent.replace_model(WALK)
    other = Agent(System(WALK, ARMS, NAMES), window=10)
    other.tell_log(list(zip(*history(), strict=True))[-15 - 11 :])
    assert_same(agent, other)
    assert [entry.round for entry in agent._history.log] == list(range(24, 39))


def test_a_model_that_cannot_take_the_history_is_refused():
    """And the agent goes on with the one it has."""
    exploding = LGDS(1.5 * np.eye(3), np.eye(3), 1.0, np.eye(3))
    two = System(LGDS(0.5 * np.eye(2), np.eye(2), 1.0), np.ones((4, 2)), NAMES)
    agent = Agent(SYSTEM)
    agent.tell_play("guest", 1.0, features=[1.0, 0, 0])
    agent.advance(10_000)
    before, state = agent.to_json(), agent.state
    with pytest.raises(InvalidInput, match="round: is 10001, by when the state has outgrown"):
        agent.replace_model(exploding)
    with pytest.raises(InvalidInput, match="system: has other features, and some plays"):
        agent.replace_model(two)
    assert agent.to_json() == before
    np.testing.assert_array_equal(agent.state.cov, state.cov)
    assert agent.ask().round == 10_001
