"""Agents whose arms change with the context of each decision."""

import copy
import dataclasses
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import driftbandit as db
from context_cases import NAMES, context, drawn, features, shop, textbook
from refusals import INF, NAN, Case, assert_refused, each

ROUNDS = 60
X = features(ROUNDS)


def made(policy="idea", **settings):
    return db.Agent(shop(), policy=policy, **settings)


def at(t):
    return context(X[t])


def played(agent, rewards, rounds):
    """Ask and tell, round by round; the names of the arms."""
    arms = []
    for t in rounds:
        decision = agent.ask(context=at(t))
        arms.append(decision.arm)
        agent.tell(decision, rewards[t, NAMES.index(decision.arm)])
    return arms


@pytest.fixture(scope="module")
def run():
    """The arms that IDEA plays in one run, and the rewards of all arms."""
    arms, rewards, _ = textbook("idea", shop(), X, *drawn(shop(), ROUNDS))
    return [NAMES[arm] for arm in arms], rewards


def assert_same_belief(one, other):
    np.testing.assert_array_equal(one.state.mean, other.state.mean)
    np.testing.assert_array_equal(one.state.cov, other.state.cov)


@pytest.mark.parametrize("policy", ["idea", "kalman_ucb"])
@pytest.mark.parametrize("per_arm", [True, False])
def test_decisions_are_those_of_the_textbook(policy, per_arm):
    x = features(ROUNDS, per_arm)
    expected, rewards, _ = textbook(policy, shop(), x, *drawn(shop(), ROUNDS))
    agent = made(policy)
    for t in range(ROUNDS):
        decision = agent.ask(context=context(x[t]))
        assert decision.arm == NAMES[expected[t]]
        agent.tell(decision, rewards[t, expected[t]])


def test_a_decision_says_what_its_arm_promises_in_its_context(run):
    agent = made()
    played(agent, run[1], range(10))
    rows = shop().arms_in(at(10))
    belief, scores = agent.state, agent.scores(context=at(10))
    decision = agent.ask(context=at(10))
    row = rows[NAMES.index(decision.arm)]
    assert decision.mean == pytest.approx(row @ belief.mean)
    assert decision.uncertainty == pytest.approx(np.sqrt(row @ belief.cov @ row))
    means = [score.mean for score in scores]
    np.testing.assert_allclose(means, rows @ belief.mean)
    assert max(scores, key=lambda score: score.mean + score.bonus).arm == decision.arm


def test_late_rewards_in_any_order_give_the_same_belief(run):
    arms, rewards = run
    in_time, late = made(), made()
    played(in_time, rewards, range(1))  # rewards change decisions, so plays are told, not asked
    late.ask(context=at(0))
    plays = [late.ask(context=at(t), arms=[arms[t]]) for t in range(1, 30)]
    for t in range(1, 30):
        decision = in_time.ask(context=at(t), arms=[arms[t]])
        in_time.tell(decision, rewards[t, NAMES.index(arms[t])])
    for place in np.random.default_rng(0).permutation(29):
        t = place + 1
        assert late.tell(plays[place], rewards[t, NAMES.index(arms[t])]) == "learned"
    late.tell(0, rewards[0, NAMES.index(arms[0])])
    assert_same_belief(in_time, late)


def test_told_plays_are_learned_like_decisions(run):
    arms, rewards = run
    asked, told, from_log = made(), made(), made()
    played(asked, rewards, range(20))
    table = {"round": range(20), "arm": arms[:20], "reward": [], "x_price": [], "x_rain": []}
    for t in range(20):
        place = NAMES.index(arms[t])
        assert told.tell_play(arms[t], rewards[t, place], context=at(t)) == "learned"
        table["reward"].append(rewards[t, place])
        table["x_price"].append(X[t, place, 0])
        table["x_rain"].append(X[t, place, 1])
    assert from_log.tell_log(table) == {"learned": 20}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    from_rows, from_sequences = made(), made()
    from_rows.tell_log(iter(rows))
    columns = {name: np.array(table[name]) for name in table}
    sequence = SimpleNamespace(
        rounds=columns["round"],
        arms=[NAMES.index(arm) for arm in arms[:20]],
        rewards=columns["reward"],
        features=np.stack([columns["x_rain"], columns["x_price"]], axis=1),
    )
    named = {"names": NAMES, "feature_names": ("x_rain", "x_price")}
    from_sequences.tell_log(SimpleNamespace(sequences=[sequence], **named))
    for other in (told, from_log, from_rows, from_sequences):
        assert_same_belief(asked, other)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_a_stored_agent_goes_on_bit_for_bit(copied, run, tmp_path):
    arms, rewards = run
    agent = made(window=5)
    played(agent, rewards, range(20))
    waiting = agent.ask(context=at(20))
    agent.save(tmp_path / "agent.json")
    for again in (copied(agent), db.Agent.load(tmp_path / "agent.json")):
        assert again.names == NAMES
        assert again.tell(waiting.id, rewards[20, NAMES.index(waiting.arm)]) == "learned"
        assert played(again, rewards, range(21, ROUNDS)) == arms[21:]
        assert again.to_json() == db.Agent.from_json(again.to_json()).to_json()


def test_an_agent_without_names_is_stored_too():
    system = shop()
    agent = db.Agent(db.System(system.model, system.arms, None, system.contexts))
    decision = agent.ask(context=at(0))
    again = db.Agent.from_json(agent.to_json())
    assert again.tell(decision, 1.0) == "learned"
    assert again.names == (0, 1, 2, 3)


def test_a_new_model_filters_the_plays_again_in_their_contexts(run):
    """As if the new model had been the agent's from the start."""
    arms, rewards = run
    new = dataclasses.replace(shop().model, reward_std=2.0)
    for model in (new, dataclasses.replace(shop(), model=new)):
        agent, fresh = made(window=5), db.Agent(dataclasses.replace(shop(), model=new), window=5)
        for t in range(20):
            agent.tell_play(arms[t], rewards[t, NAMES.index(arms[t])], context=at(t))
            fresh.tell_play(arms[t], rewards[t, NAMES.index(arms[t])], context=at(t))
        agent.replace_model(model)
        assert_same_belief(agent, fresh)
        assert agent.ask(context=at(20)).arm == fresh.ask(context=at(20)).arm


def test_arms_may_come_in_another_order_in_a_new_system(run):
    system, order = shop(), [2, 0, 3, 1]
    read_outs = {name: read_out[order] for name, read_out in system.contexts.items()}
    names = [NAMES[place] for place in order]
    other = db.System(system.model, system.arms[order], names, read_outs)
    agent = made(window=5)
    played(agent, run[1], range(20))
    before = {score.arm: score.mean for score in agent.scores(context={"x_price": 1, "x_rain": 2})}
    agent.replace_model(other)
    after = {score.arm: score.mean for score in agent.scores(context={"x_price": 1, "x_rain": 2})}
    assert after == pytest.approx(before)


def test_other_read_outs_are_taken_only_before_the_first_play():
    other = dataclasses.replace(shop(), contexts=shop(seed=3).contexts)
    agent = made()
    agent.replace_model(other)
    assert agent.ask(context=at(0)) == db.Agent(other, policy="idea").ask(context=at(0))
    with pytest.raises(db.InvalidInput, match="some plays are kept by the agent's own"):
        agent.replace_model(shop())


def test_several_arms_in_one_context(run):
    agent = made()
    played(agent, run[1], range(5))
    decisions = agent.ask_many(4, context=at(5))
    assert sorted(decision.arm for decision in decisions) == list(NAMES)
    assert decisions[0].arm == db.Agent.from_json(agent.to_json()).ask(context=at(5), round=5).arm
    assert agent.ask_many(1, arms=["b", "b"], context=at(6))[0].arm == "b"


@pytest.mark.parametrize("policy", ["reach", "lookahead", "information_directed", "random"])
def test_some_arms_on_offer(policy, run):
    agent = made(policy)
    for t in range(20):
        decision = agent.ask(arms=["c", "d"], context=at(t))
        assert decision.arm in ("c", "d")
        agent.tell(decision, run[1][t, NAMES.index(decision.arm)])


@pytest.mark.parametrize("policy", ["lookahead", "idea", "reach"])
def test_some_arms_have_the_scores_that_they_have_among_all(policy, run):
    agent = made(policy)
    played(agent, run[1], range(5))
    every = {score.arm: score for score in agent.scores(context=at(5))}
    for score in agent.scores(arms=["d", "b"], context=at(5)):
        assert score[1:] == pytest.approx(every[score.arm][1:], rel=1e-12)


def test_a_compiled_agent_decides_the_same(run):
    for library in ("jax", "llvmlite"):
        pytest.importorskip(library)
    agent = made(compiled=True)
    assert played(agent, run[1], range(20)) == run[0][:20]


def test_an_agent_keeps_its_own_copy_of_the_rows():
    agent, x = made(), X[0].copy()
    first, second = agent.ask(context=context(x)), made().ask(context=context(x))
    x[:] = 0.0
    other = made()
    other.tell(other.ask(context=at(0)), 1.0)
    agent.tell(first, 1.0)
    assert first == second
    assert_same_belief(agent, other)


def played_one():
    agent = made()
    agent.tell(agent.ask(context=at(0)), 1.0)
    return agent


PLAIN = db.System(shop().model, np.ones((4, 3)), NAMES)
FULL = {"x_price": 1.0, "x_rain": 2.0}
ROW = [1.0, 0.0, 0.0]
LOG = {"round": [0], "arm": ["a"], "reward": [1.0], "x_price": [2.0]}
CASES = [
    Case("no context", lambda: made().ask(), "context: is missing", "x_price, x_rain"),
    Case("many, none", lambda: made().ask_many(2), "context: is missing", "x_price, x_rain"),
    Case("scores, none", lambda: made().scores(), "context: is missing", "x_price, x_rain"),
    Case("play, none", lambda: made().tell_play("a", 1.0), "context: is missing", "x_price"),
    Case("not wanted", lambda: db.Agent(PLAIN).ask(context=FULL), "context: was given", "System"),
    Case("a number", lambda: made().ask(context=3.0), "context: is 3.0", "mapping"),
    Case("unknown", lambda: made().ask(context=FULL | {"x_prise": 1}), "context", "'x_price'?"),
    Case(
        "lacks one", lambda: made().ask(context={"x_rain": 1.0}), "context: lacks x_price", "give"
    ),
    Case("a text", lambda: made().ask(context=FULL | {"x_rain": "wet"}), "context x_rain", "wet"),
    Case("true", lambda: made().ask(context=FULL | {"x_rain": True}), "context x_rain", "True"),
    Case("a gap", lambda: made().ask(context=FULL | {"x_rain": NAN}), "context x_rain", "nan"),
    Case(
        "infinite",
        lambda: made().ask(context=FULL | {"x_rain": [INF] * 4}),
        "context x_rain",
        "inf",
    ),
    Case(
        "three", lambda: made().ask(context=FULL | {"x_rain": [1, 2, 3]}), "context x_rain", "(3,)"
    ),
    Case(
        "no arm", lambda: made().ask(context=FULL | {"x_rain": {"z": 1}}), "context x_rain", "'z'"
    ),
    Case("an arm less", lambda: made().ask(context=FULL | {"x_rain": {"a": 1}}), "context", "'b'"),
    Case("huge", lambda: made().ask(context=FULL | {"x_rain": 1e150}), "context", "largest"),
    Case("new arms", lambda: made().ask([ROW], context=FULL), "arms: are new", "own arms"),
    Case(
        "new play",
        lambda: made().tell_play("z", 1.0, features=ROW, context=FULL),
        "features: are new",
        "contexts",
    ),
    Case("oful", lambda: made("oful"), "policy: oful", "valid: reach, lookahead"),
    Case("rexp3", lambda: made("rexp3"), "policy: rexp3", "valid: reach, lookahead"),
    Case("oracle", lambda: made("kalman_oracle"), "policy: kalman_oracle", "in advance"),
    Case("refit", lambda: made(refit=db.Refit()), "refit: was given", "replace_model"),
    Case("add", lambda: made().add_arm("z", ROW), "arm: cannot be added", "contexts"),
    Case("remove", lambda: made().remove_arm("a"), "arm: cannot be removed", "contexts"),
    Case(
        "lost contexts", lambda: made().replace_model(PLAIN), "system: has the contexts none", "x_"
    ),
    Case(
        "gained contexts",
        lambda: db.Agent(PLAIN).replace_model(shop()),
        "system: has the contexts x_price, x_rain",
        "none",
    ),
    Case("states", lambda: played_one().replace_model(shop(d=2).model), "model", "2 states"),
    Case("log", lambda: made().tell_log(LOG), "log: has no column 'x_rain'", "x_price, x_rain"),
    Case("log rows", lambda: made().tell_log([(0, "a", 1.0)]), "log: row 0", "x_price, x_rain"),
    Case(
        "log value",
        lambda: made().tell_log(LOG | {"x_rain": [None]}),
        "log row 0: context x_rain",
        "None",
    ),
]


@each(CASES)
def test_wrong_arguments_are_refused(case):
    assert_refused(case)


def test_a_refused_context_changes_nothing():
    agent = made()
    before = agent.to_json()
    with pytest.raises(db.InvalidInput):
        agent.ask(context={"x_rain": 1.0})
    with pytest.raises(db.InvalidInput):
        agent.tell_log(LOG)
    assert agent.to_json() == before
