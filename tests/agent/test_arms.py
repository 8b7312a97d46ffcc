"""Arms by name: in decisions, offers, plays, files; and several of them in one round."""

import copy
import dataclasses
import enum
import json
import pickle

import numpy as np
import pytest

from driftbandit import (
    LGDS,
    Agent,
    InvalidInput,
    System,
    families,
    kalman,
    policies,
    save_model,
)

MODEL, ARMS = families.sample("gaussian", n_states=3, n_arms=4, seed=3)[0]
NAMES = ("left", "right", "both", 7)
SYSTEM = System(MODEL, ARMS, NAMES)


def rewards(rounds, seed=0):
    return 2 * np.random.default_rng(seed).standard_normal((rounds, 4))


def test_a_system_in_place_of_model_and_arms():
    """The same decisions, by name; what is learned is the same to the bit."""
    plain, named = Agent(MODEL, ARMS, "idea"), Agent(SYSTEM, policy="idea")
    given = Agent(MODEL, ARMS, "idea", names=NAMES)
    assert named.names == NAMES
    for row in rewards(60):
        one, two, three = plain.ask(), named.ask(), given.ask()
        assert two == three == one._replace(arm=NAMES[one.arm])
        for agent in (plain, named, given):
            agent.tell(two.id, row[one.arm])
    np.testing.assert_array_equal(plain.state.mean, named.state.mean)
    np.testing.assert_array_equal(plain.state.cov, given.state.cov)


@pytest.mark.parametrize("name", policies.available())
def test_names_are_stored(name, tmp_path):
    agent = Agent(SYSTEM, policy=name)
    agent.save(tmp_path / "agent.json")
    other = Agent.load(tmp_path / "agent.json")
    assert other.names == NAMES
    assert other.to_json() == agent.to_json()
    decision = agent.ask()
    assert other.ask() == decision
    assert decision.arm in NAMES
    reward = [1.0] * 4 if agent.policy.full_information else 1.0
    assert other.tell(decision, reward) == "learned"


def test_parts_are_offered_by_name():
    agent = Agent(SYSTEM)
    assert agent.ask(arms=["both"]).arm == "both"
    assert agent.ask(arms=[7]).arm == 7
    assert agent.ask(arms=np.array(["left", "right"])).arm in ("left", "right")
    assert agent.ask(arms=("left", 7)).arm in ("left", 7)
    decision = agent.ask(arms=["right"])
    with pytest.raises(InvalidInput, match="is arm right in round 4, not Decision"):
        agent.tell(decision._replace(arm="left"), 1.0)
    assert agent.tell(decision, 1.0) == "learned"


def test_whole_numbers_that_are_names_are_never_row_numbers():
    agent = Agent(System(MODEL, ARMS, [3, 2, 1, 0]))
    decision = agent.ask(arms=[3])
    assert (decision.arm, agent._history.ledger.find(decision.id).arm) == (3, 0)
    assert agent.ask(arms=np.array([0])).arm == 0
    np.testing.assert_array_equal(agent._history.ledger._open[-1].arm, 3)
    with pytest.raises(InvalidInput, match="arms: 4 is not the name of an arm; valid: 3, 2, 1, 0"):
        agent.ask(arms=[4])
    agent = Agent(System(MODEL, ARMS, [10, 20, 30, 40]))
    with pytest.raises(InvalidInput, match="0 is not the name of an arm"):
        agent.tell_play(0, 1.0)
    assert agent.tell_play(np.int64(20), 1.0) == "learned"


def test_new_arms_by_name():
    """Features for this one question; the decision says whose they are."""
    agent = Agent(SYSTEM)
    offer = {"x": [9.0, 9.0, 9.0], "y": [0.1, 0.0, 0.0]}
    decision = agent.ask(arms=offer)
    assert decision.arm == "x"
    other = Agent.from_json(agent.to_json())
    for one in (agent, other):
        assert one.tell(decision, 2.0) == "learned"
    belief = kalman.observe(kalman.prior(MODEL), MODEL, np.full(3, 9.0), 2.0)
    np.testing.assert_array_equal(other.state.mean, kalman.advance(belief, MODEL).mean)
    assert agent.ask(arms=list(offer.values())).arm in (0, 1)


WRONG = [
    (lambda: Agent(SYSTEM, ARMS), "arms: were given together with a System"),
    (lambda: Agent(SYSTEM, names=NAMES), "names: were given together with a System"),
    (lambda: Agent(MODEL), "arms: is missing; give a k × d array, or a System"),
    (lambda: Agent(None), "arms: is missing"),
    (lambda: Agent("fit"), "model: has type str; give an LGDS, or a System, such as fit.system"),
    (lambda: Agent(SYSTEM).replace_model("fit"), "model: has type str; .* such as fit.system"),
    (lambda: save_model("fit", "x.json"), "system: has type str; give a System, such as fit.sys"),
    (lambda: Agent(MODEL, ARMS, names=["a", "b"]), "names: has 2 entries for 4 arms"),
    (lambda: Agent(MODEL, ARMS, names=["a", "b", "a", "c"]), "names: has 'a' twice"),
    (lambda: Agent(MODEL, "sphere", names=["a"]), "names: were given, and the agent"),
    (lambda: Agent(SYSTEM).ask(arms=["up"]), "arms: 'up' is not the name of an arm; valid: 'left'"),
    (lambda: Agent(SYSTEM).ask(arms=[0]), "arms: 0 is not the name of an arm"),
    (lambda: Agent(SYSTEM).ask(arms=[True]), "arms: is .True.; give a list of names"),
    (lambda: Agent(SYSTEM).ask(arms="left"), "arms: is 'left'; give a list of names"),
    (lambda: Agent(SYSTEM).ask(arms=[]), "arms: is empty; valid: 'left'"),
    (lambda: Agent(SYSTEM).ask(arms={}), "arms: is empty"),
    (lambda: Agent(MODEL, ARMS).ask(arms=[]), "arms: is empty"),
    (lambda: Agent(SYSTEM).ask(arms=[[1.0], [1.0, 2.0]]), "arms: is .*give a list of names"),
    (lambda: Agent(SYSTEM).ask(arms={"left"}), "arms: is .'left'.; give a list of names"),
    (
        lambda: Agent(SYSTEM).ask(arms={"left": 1}.keys()),
        r"arms: is dict_keys\(.*; give a list of names",
    ),
    (lambda: Agent(SYSTEM).ask(round=0.5), "round: 0.5 is not a whole number; give a whole number"),
    (lambda: Agent(SYSTEM).tell({"id": 0}, 1.0), "decision: .*; tell what ask returned, or its id"),
    (lambda: Agent(SYSTEM).tell_play([1], 1.0, features=[1.0, 0, 0]), r"arm: entry .0. is .1."),
    (
        lambda: Agent(SYSTEM).tell_play("x", 1.0, features=[1.0, 0]),
        r"features: has shape .2,.; give shape .3,.",
    ),
    (
        lambda: Agent(SYSTEM, policy="ucb").tell_play("x", 1.0, features=[1.0, 0, 0]),
        "features: are new, and ucb keeps",
    ),
    (
        lambda: Agent(MODEL, "sphere").tell_play([1.0, 0, 0], 1.0, features=[1.0, 0, 0]),
        "features: were given, and the agent plays on the sphere",
    ),
    (lambda: Agent(SYSTEM).ask(arms={1.5: [1, 0, 0]}), "arms: entry .0. is 1.5"),
    (lambda: Agent(SYSTEM).ask_many(5), "count: is 5, and 4 different arms are on offer"),
    (lambda: Agent(SYSTEM).ask_many(2, [7, 7]), "count: is 2, and 1 different"),
    (lambda: Agent(SYSTEM).ask_many(0), "count: is 0"),
    (lambda: Agent(SYSTEM).ask_many(2, distinct=1), "distinct: is 1"),
    (lambda: Agent(SYSTEM, policy="rexp3").ask_many(2), "policy: rexp3 always chooses"),
    (
        lambda: Agent(SYSTEM, policy="kalman_oracle").ask_many(2),
        "policy: kalman_oracle always chooses",
    ),
    (lambda: Agent(MODEL, "sphere").ask_many(2), "ask_many: needs a list of arms"),
    (lambda: Agent(MODEL, "sphere").scores(), "scores: needs a list of arms"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_refused(call, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


class Color(enum.IntEnum):
    RED = 3
    BLUE = 5


class Side(enum.StrEnum):
    LEFT = "left"
    RIGHT = "right"


@pytest.mark.parametrize("kind", [Color, Side])
def test_enumerations_are_names(kind):
    system = System(MODEL, ARMS[:2], list(kind))
    assert [type(name) for name in system.names] in ([int] * 2, [str] * 2)
    agent = Agent(system)
    last = list(kind)[1]
    decision = agent.ask(arms=[last])
    assert decision.arm == last.value
    assert type(decision.arm) is type(last.value)
    assert agent.tell_play(last, 1.0) == agent.tell_play(last.value, 1.0) == "learned"
    assert Agent.from_json(agent.to_json()).names == tuple(one.value for one in kind)
    plain = Agent(MODEL, ARMS)
    assert plain.tell_play(Color.RED, 1.0) == "learned"
    with pytest.raises(InvalidInput, match="True is not the name of an arm"):
        plain.tell_play(True, 1.0)


# Several decisions in one round.


@pytest.mark.parametrize(
    "name", [n for n in policies.available() if n not in ("rexp3", "kalman_oracle")]
)
def test_several_decisions_are_different_arms(name):
    agent = Agent(SYSTEM, policy=name, seed=4)
    for row in rewards(8):
        decision = agent.ask()
        agent.tell(decision, row[NAMES.index(decision.arm)])
    state, single = agent.state, copy.deepcopy(agent).ask()
    found = agent.ask_many(3)
    assert found[0] == single
    assert [one.id for one in found] == [8, 9, 10]
    assert {one.round for one in found} == {8}
    assert len({one.arm for one in found}) == 3
    assert agent.round == 9
    for value, expected in zip(
        agent._history.ledger.at(8), state, strict=True
    ):  # nothing was learned
        np.testing.assert_array_equal(value, expected, strict=True)
    for one in found:
        assert agent.tell(one, 0.5) == "learned"
    assert {one.arm for one in agent.ask_many(4)} == set(NAMES)
    assert len(agent.ask_many(2, ["left", 7])) == 2


def test_what_is_pending_is_accounted_for():
    """P12: the mean stays, the covariance is that after the earlier ones' rewards."""
    agent = Agent(MODEL, ARMS, "idea")
    for row in rewards(10, seed=1):
        decision = agent.ask()
        agent.tell(decision, row[decision.arm])
    belief = agent.state
    left = list(range(4))
    for one in agent.ask_many(3):
        scores = ARMS @ belief.mean + policies.idea.bonus(belief.cov, MODEL, ARMS)
        assert one.arm == max(left, key=scores.__getitem__)
        row = ARMS[one.arm]
        assert one.mean == pytest.approx(row @ belief.mean)
        assert one.mean + one.bonus == pytest.approx(scores[one.arm])
        assert one.uncertainty == pytest.approx(np.sqrt(row @ belief.cov @ row))
        belief = kalman.observe(belief, MODEL, row, row @ belief.mean)
        left.remove(one.arm)


def test_five_decisions_spread_where_five_questions_do_not():
    model = LGDS(0.9 * np.eye(5), np.eye(5), 0.1)
    agent = Agent(model, np.eye(5) + 0.2)
    assert len({agent.ask(round=0).arm for _ in range(5)}) == 1
    assert len({one.arm for one in agent.ask_many(5, round=0)}) == 5
    two = Agent(model, np.eye(5)[:2], "idea")
    assert [one.arm for one in two.ask_many(4, distinct=False)] == [0, 1, 0, 1]


def test_several_of_given_features():
    agent = Agent(MODEL, ARMS)
    rows = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]
    assert sorted(one.arm for one in agent.ask_many(3, rows)) == [0, 1, 2]
    named = agent.ask_many(2, dict(zip("abc", rows, strict=True)))
    assert len({one.arm for one in named}) == 2
    assert {one.arm for one in named} < set("abc")
    assert [agent.tell(one, 1.0) for one in named] == ["learned"] * 2


# Scores and what JSON knows.


@pytest.mark.parametrize("name", policies.available())
def test_all_scores(name):
    agent = Agent(SYSTEM, policy=name)
    if name == "kalman_oracle":
        agent.tell(agent.ask(), [1.0, 2.0, 3.0, 4.0])
    else:
        for arm in NAMES:
            agent.tell(agent.ask(arms=None if name == "rexp3" else [arm]), 1.0)
    before = agent.to_json()
    table = agent.scores()
    assert agent.to_json() == before
    assert [one.arm for one in table] == list(NAMES)
    json.dumps([one.to_dict() for one in table], allow_nan=False)
    decision = agent.ask()
    mine = table[NAMES.index(decision.arm)]
    for field in ("mean", "bonus", "uncertainty"):
        value = getattr(decision, field)
        assert getattr(mine, field) == (None if value is None else pytest.approx(value))
    if agent.policy.scores is not None:
        assert mine.mean + mine.bonus == max(one.mean + one.bonus for one in table)
        part = agent.scores(["both", "left"]) if name != "kalman_oracle" else []
        assert [one.arm for one in part] == ["both", "left"][: len(part)]


@pytest.mark.parametrize("name", policies.available())
def test_decisions_are_json(name):
    decision = Agent(SYSTEM, policy=name).ask()
    found = json.loads(json.dumps(decision._asdict(), allow_nan=False))
    assert found == decision.to_dict()
    assert list(found) == ["id", "arm", "round", "mean", "bonus", "uncertainty"]
    if name == "ucb":
        assert (decision.bonus, found["bonus"]) == (float("inf"), None)


def test_vectors_are_json():
    decision = Agent(MODEL, "sphere").ask()
    assert json.loads(json.dumps(decision.to_dict()))["arm"] == decision.arm.tolist()


# Objects.


def test_repr():
    agent = Agent(SYSTEM, policy="kalman_ucb(width=2)")
    agent.tell(agent.ask(), 1.0)
    agent.ask()
    assert repr(agent) == "Agent(kalman_ucb(width=2), 4 arms, round 2, 1 open)"
    assert repr(Agent(MODEL, "sphere")) == "Agent(reach, the sphere, round 0, 0 open)"


@pytest.mark.parametrize(
    "twin_of", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]
)
@pytest.mark.parametrize("name", policies.available())
def test_agents_are_copied_and_travel(name, twin_of):
    agent = Agent(SYSTEM, policy=name, seed=5, window=3)
    for row in rewards(10):
        reward = row if agent.policy.full_information else row[0]
        agent.tell(agent.ask(), reward)
    waiting = agent.ask()
    twin = twin_of(agent)
    assert type(twin) is Agent
    assert twin.to_json() == agent.to_json()
    assert twin.ask() == agent.ask()
    reward = [1.0] * 4 if agent.policy.full_information else 1.0
    assert twin.tell(waiting, reward) == "learned"
    assert agent.to_json() != twin.to_json()  # apart


def test_a_system_that_traveled_cannot_be_written_to():
    for twin in (copy.deepcopy(SYSTEM), pickle.loads(pickle.dumps(SYSTEM)), copy.copy(SYSTEM)):
        assert twin == SYSTEM
        assert not twin.arms.flags.writeable


def by_first(cov, model, arms):
    return arms[:, 0]


def test_a_policy_of_ones_own_is_copied():
    agent = Agent(SYSTEM, policy=policies.optimistic("first", by_first))
    assert copy.deepcopy(agent).ask() == agent.ask()


def test_a_registered_policy_with_another_preparation_is_copied():
    """Equal in all but ``prepare``: the copy must prepare as it does."""
    plain = policies.make("thompson")

    def prepare(model, arms, rounds):
        constants, belief = plain.prepare(model, arms, rounds)
        return constants, belief._replace(mean=belief.mean + 1.0)

    agent = Agent(SYSTEM, policy=dataclasses.replace(plain, prepare=prepare))
    twin = copy.deepcopy(agent)
    twin.replace_model(MODEL)
    np.testing.assert_array_equal(twin.state.mean, agent.state.mean)


def test_an_unknown_arm_gets_the_closest_name():
    agent = Agent(SYSTEM)
    with pytest.raises(InvalidInput, match=r"arm: 'lef' is not the name of an arm; did you mean"):
        agent.tell_play("lef", 1.0)
    with pytest.raises(InvalidInput, match=r"valid: 'left', .*\(add_arm adds a new one\)$"):
        agent.ask(arms=["tiktok"])


def test_an_unknown_arm_is_not_added_by_removing_it():
    agent = Agent(LGDS([[0.5]], [[1.0]], 1.0), [[1.0], [2.0]], names=["left", "right"])
    with pytest.raises(InvalidInput, match=r"'lift' is not .*'left'\? valid: 'left', 'right'$"):
        agent.remove_arm("lift")
    with pytest.raises(InvalidInput, match=r"'right' \(add_arm adds a new one\)$"):
        agent.ask(arms=["lift"])
