"""The online engine: the same decisions as the textbook, stored and brought back bit for bit."""

import dataclasses
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from driftbandit import LGDS, Agent, Decision, InvalidInput, NotDetectable, families
from driftbandit.agent import Refit
from driftbandit.errors import Conflict
from driftbandit.policies import available, make, optimistic
from late_rewards import AtOnce, assert_same, scripted, told_by
from refusals import EYE, HALF_SEEN, INF, NAN, STABLE, UNSTABLE, Case, assert_refused, each, lgds

STATES, ARMS, ROUNDS = 3, 4, 200


TUNED = {
    "kalman_ucb": {"width": 2.5},
    "ucb": {"delta": 0.01},
    "sliding_window_ucb": {"window": 17, "delta": 0.3},
    "discounted_ucb": {"gamma": 0.8, "xi": 0.05},
    "rexp3": {"batch": 23, "gamma": 0.4},
    "oful": {"delta": 0.02, "ridge": 0.5, "bound": 2.0},
    "discounted_linucb": {"delta": 0.5, "gamma": 0.9, "ridge": 0.1, "bound": 0.01},
}


POLICIES = [(name, {}) for name in available()] + list(TUNED.items())


IDS = [name + ("-tuned" if parameters else "") for name, parameters in POLICIES]


def drawn(family, seed=3):
    return families.sample(family, n_states=STATES, n_arms=ARMS, seed=seed)[0]


STATIONARY, ARMS_OF_STATIONARY = drawn("gaussian")


STARTED, ARMS_OF_STARTED = drawn("uniform")


STARTED = dataclasses.replace(STARTED, initial_cov=np.diag([4.0, 0.0, 1.0]))


SYSTEMS = {
    "stationary": (STATIONARY, ARMS_OF_STATIONARY),
    "started": (STARTED, ARMS_OF_STARTED),
}


def reward_table(seed, rounds=ROUNDS):
    return 3 * np.random.default_rng(seed).standard_normal((rounds, ARMS))


def paid(agent, rewards, arm):
    """What the agent is told: the played arm's reward, or all of them."""
    return rewards if agent.policy.full_information else rewards[arm]


def go_on(agent, rewards):
    """Play one round per row; the arms played and the uniform numbers they were chosen with."""
    arms, noises = [], []
    for row in rewards:
        noise = agent._noise(ARMS)
        noises.append(0.0 if noise is None else noise)
        decision = agent.ask()
        arms.append(decision.arm)
        agent.tell(decision, paid(agent, row, decision.arm))
    return arms, np.array(noises)


@pytest.mark.parametrize(
    ("system", "horizon"),
    [
        ("stationary", ROUNDS),
        ("started", 1000),
        pytest.param("stationary", 1000, marks=pytest.mark.nightly),
        pytest.param("started", ROUNDS, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize(("name", "parameters"), POLICIES, ids=IDS)
def test_decisions_are_the_textbook_s(name, parameters, system, horizon):
    """P9, P12-P15, P18, P19: every decision of 200 rounds."""
    model, arms = SYSTEMS[system]
    rewards = reward_table(seed=11)
    agent = Agent(model, arms, make(name, **parameters), rounds=horizon, seed=5)
    played, noises = go_on(agent, rewards)
    expected = naive.play(
        name,
        model.transition,
        model.process_cov,
        float(model.reward_std),
        model.initial_cov,
        arms,
        rewards,
        noises,
        rounds=horizon,
        **parameters,
    )
    assert played == expected
    assert len(set(played)) > 1, "a constant choice would show nothing"
    assert agent.round == ROUNDS


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("name", "parameters"), POLICIES, ids=IDS)
def test_stored_and_brought_back(name, parameters, system):
    model, arms = SYSTEMS[system]
    rewards = reward_table(seed=12, rounds=50)
    agent = Agent(model, arms, make(name, **parameters), rounds=50, seed=2**63 - 1)
    go_on(agent, rewards[:20])
    other = Agent.from_json(agent.to_json())
    assert other.to_json() == agent.to_json()
    assert_same(agent.state, other.state)
    there, here = go_on(other, rewards[20:]), go_on(agent, rewards[20:])
    assert there[0] == here[0]
    np.testing.assert_array_equal(there[1], here[1])
    assert other.round == 50
    assert other.to_json() == agent.to_json()


@pytest.mark.parametrize("name", available())
def test_stored_between_ask_and_tell(name):
    """Decisions that were open can be told to the restored agent, in another order too."""
    agent = Agent(STATIONARY, ARMS_OF_STATIONARY, name)
    rewards = reward_table(seed=13, rounds=10)
    go_on(agent, rewards[:7])
    first, second = agent.ask(), agent.ask()
    other = Agent.from_json(agent.to_json())
    for decision in (first, second):
        assert agent.tell(decision, paid(agent, rewards[7], decision.arm)) == "learned"
    for decision in (second, first):
        assert other.tell(decision, paid(agent, rewards[7], decision.arm)) == "learned"
    assert other.to_json() == agent.to_json()
    assert other.ask() == agent.ask()


@pytest.mark.parametrize("name", available())
def test_asking_is_deciding(name):
    """Two decisions for two rounds; what no reward came for leaves no more than a prediction."""
    agent = Agent(STATIONARY, ARMS_OF_STATIONARY, name)
    go_on(agent, reward_table(seed=14, rounds=10))
    before, quiet = agent.state, Agent.from_json(agent.to_json())
    decisions = agent.ask(), agent.ask(), agent.ask(round=11), agent.ask(round=14)
    assert [one.id for one in decisions] == [10, 11, 12, 13]
    assert [one.round for one in decisions] == [10, 11, 11, 14]
    assert agent.round == 15
    quiet.advance(5)
    for value, expected in zip(agent.state, quiet.state, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    if agent.policy.agent.advance is None:
        assert_same(agent.state, before)


def test_who_has_a_filter_says_what_it_expects():
    """A policy without a score, too: thompson draws, and knows mean and spread all the same."""
    agent = Agent(STATIONARY, ARMS_OF_STATIONARY, "thompson")
    go_on(agent, reward_table(seed=14, rounds=10))
    mean, cov = agent.state
    decision = agent.ask()
    row = np.asarray(ARMS_OF_STATIONARY)[decision.arm]
    assert decision.mean == pytest.approx(row @ mean)
    assert decision.uncertainty == pytest.approx(np.sqrt(row @ cov @ row))
    assert decision.bonus is None


@pytest.mark.parametrize("name", ["random", "rexp3"])
def test_seeds(name):
    rewards = reward_table(seed=15)
    plays = [
        go_on(Agent(STATIONARY, ARMS_OF_STATIONARY, name, seed=seed), rewards)[0]
        for seed in (0, 0, 1)
    ]
    assert plays[0] == plays[1]
    assert plays[0] != plays[2]
    assert set(plays[0]) == set(range(ARMS))


def test_jax_stays_out():
    program = """
import sys
import driftbandit
model, arms = driftbandit.families.sample("gaussian", n_states=3, n_arms=4)[0]
for name in driftbandit.policies.available():
    agent = driftbandit.Agent(model, arms, name)
    for _ in range(3):
        reward = [1.0] * 4 if agent.policy.full_information else 1.0
        agent.tell(agent.ask(), reward)
    driftbandit.Agent.from_json(agent.to_json()).ask()
agent = driftbandit.Agent(driftbandit.System(model, arms, list("abcd")))
agent.tell_log({"arm": ["a", "b", "a"], "reward": [1.0, None, 2.0]})
agent.add_arm("e")
agent.replace_model(agent.model)
agent.ask_many(3, round=agent.round - 1)
heavy = {"jax", "jaxlib", "pyarrow"}
print(agent.round, [name for name in sys.modules if name.partition(".")[0] in heavy])
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    )
    assert run.stdout.strip() == "3 []"


def away_from_zero(cov, model, arms, weight):
    """A bonus of no use: weight times the arm's first coordinate."""
    return weight * arms[:, 0]


def test_own_policy():
    """P12: a bonus of one's own, stored with its parameters and brought back with the policy."""
    own = optimistic("away from zero", away_from_zero, weight=0.7)
    model, arms = SYSTEMS["stationary"]
    rewards = reward_table(seed=16, rounds=50)
    agent = Agent(model, arms, own)
    played, _ = go_on(agent, rewards[:20])

    mean, cov = np.zeros(STATES), naive.stationary_cov(model.transition, model.process_cov)
    for t, arm in enumerate(played):
        assert arm == np.argmax(arms @ mean + 0.7 * arms[:, 0])
        mean, cov = naive.kalman_step(
            mean,
            cov,
            model.transition,
            model.process_cov,
            model.reward_std,
            arms[arm],
            rewards[t, arm],
        )

    other = Agent.from_json(agent.to_json(), policy=own)
    assert other.policy is own
    assert other.problem.constants == {"weight": 0.7}
    assert go_on(other, rewards[20:])[0] == go_on(agent, rewards[20:])[0]
    assert other.to_json() == agent.to_json()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    rewards=st.lists(
        st.lists(st.floats(-1e6, 1e6), min_size=ARMS, max_size=ARMS), min_size=1, max_size=25
    ),
    reward_std=st.sampled_from([0.0, 1e-3, 1.0]),
    seed=st.integers(0, 2**63 - 1),
)
@pytest.mark.parametrize("name", available())
def test_any_finite_rewards_keep_decisions_legal(name, rewards, reward_std, seed):
    """Also without reward noise, where four arms on three states contradict each other (P1)."""
    model = dataclasses.replace(STATIONARY, reward_std=reward_std)
    agent = Agent(model, ARMS_OF_STATIONARY, name, rounds=25, seed=seed)
    for t, row in enumerate(np.array(rewards)):
        decision = agent.ask()
        assert decision.id == t
        assert type(decision.arm) is int
        assert 0 <= decision.arm < ARMS
        agent.tell(decision, paid(agent, row, decision.arm))
        assert all(np.isfinite(value).all() for value in agent.state)


@pytest.mark.parametrize("process_var", [0.0, 1.0])
@pytest.mark.parametrize("name", available())
def test_one_arm(name, process_var):
    """Nothing to choose, one round to go, no noise and even nothing to learn (P1, σ = 0)."""
    agent = Agent(LGDS([[0.5]], [[process_var]], 0.0), [[2.0]], name, rounds=1)
    arms, _ = go_on(agent, np.array([[1.0], [-1.0], [0.0]]))
    assert arms == [0, 0, 0]
    assert all(np.isfinite(value).all() for value in agent.state)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), window=st.integers(0, 12))
@pytest.mark.parametrize("name", available())
def test_the_order_of_rewards_does_not_matter(name, seed, window):
    """Whatever was late by how much: the same agent, bit for bit, that decides the same."""
    rng = random.Random(seed)
    rounds = [rng.randint(0, 2)]
    while len(rounds) < 40:
        rounds.append(rounds[-1] + rng.choice([0, 1, 1, 1, 2, 5]))
    played = [rng.randrange(ARMS) for _ in rounds]
    table = reward_table(seed, len(rounds))
    rewards = [None if rng.random() < 0.1 else row for row in table]
    if name != "kalman_oracle":
        rewards = [
            None if row is None else row[arm] for row, arm in zip(rewards, played, strict=True)
        ]
    agents = [
        told_by(
            Agent(STATIONARY, ARMS_OF_STATIONARY, scripted(name, played), window=window, seed=7),
            rounds,
            rewards,
            chance,
        )
        for chance in (AtOnce(), rng)
    ]
    assert agents[0].to_json() == agents[1].to_json()
    assert_same(agents[0].state, agents[1].state)
    first, second = (Agent.from_json(agent.to_json(), name) for agent in agents)
    for row in table[:5]:
        decision = first.ask()
        assert second.ask() == decision
        for agent in (first, second):
            agent.tell(decision, paid(agent, row, decision.arm))


def test_several_decisions_in_a_round():
    """P5: one prediction for all of them, and every reward corrects it."""
    model, arms = SYSTEMS["stationary"]
    agent = Agent(model, arms)
    now = np.eye(STATES), np.zeros((STATES, STATES))
    mean, cov = np.zeros(STATES), naive.stationary_cov(model.transition, model.process_cov)
    for reward in (1.0, -2.0, 0.5):
        decision = agent.ask(round=0)
        score = arms @ mean + naive.bonus_idea(cov, model.transition, None, model.reward_std, arms)
        assert decision.arm == np.argmax(score)
        agent.tell(decision, reward)
        mean, cov = naive.kalman_step(mean, cov, *now, model.reward_std, arms[decision.arm], reward)
    np.testing.assert_allclose(agent.state.mean, model.transition @ mean, rtol=1e-9)


def test_more_arms_than_a_block():
    """Scored in parts: the first of the highest, wherever the parts begin."""
    rng = np.random.default_rng(3)
    arms = rng.standard_normal((10_000, STATES))
    arms[9_999] = arms[4_200] = 10 * arms[4_096]
    agent = Agent(STATIONARY, arms)
    for reward in (3.0, -1.0, 2.0):
        decision = agent.ask()
        state = agent._history.ledger.at(decision.round)
        scores = sum(agent.policy.scores(state, agent.problem))
        assert decision.arm == int(scores.argmax())
        assert decision.arm != 9_999
        np.testing.assert_allclose(decision.mean + decision.bonus, scores.max(), rtol=1e-12)
        some = rng.choice(10_000, 5_000, replace=False)
        again = agent.ask(arms=some, round=decision.round)
        np.testing.assert_allclose(again.mean + again.bonus, scores[some].max(), rtol=1e-12)
        assert again.arm in some
        agent.tell(decision, reward)


def told(reward, policy="idea"):
    agent = Agent(STABLE, EYE, policy)
    agent.tell(agent.ask(), reward)


def told_wrong(decision):
    agent = Agent(STABLE, EYE, "idea")
    agent.ask()
    agent.tell(decision, 1.0)


def told_twice(first, second, policy="idea", arms=EYE):
    agent = Agent(LGDS(0.5 * np.eye(len(arms)), np.eye(len(arms)), 1.0), arms, policy)
    decision = agent.ask()
    agent.tell(decision, first)
    agent.tell(decision, second)


def decided(number, arm, round=0):
    return Decision(number, arm, round, None, None, None)


def asked(arms=None, round=None, policy="idea", refit=None):
    """Ask an agent that has come to round 7."""
    agent = Agent(STABLE, EYE, policy, refit=refit)
    agent.advance(7)
    return agent.ask(arms, round=round)


def test_a_refused_reward_leaves_the_decision_open():
    agent = Agent(STABLE, EYE)
    decision, before = agent.ask(), agent.to_json()
    with pytest.raises(InvalidInput, match="reward"):
        agent.tell(decision, NAN)
    assert agent.to_json() == before
    assert agent.tell(decision, 1.0) == "learned"
    told = agent.to_json()
    with pytest.raises(InvalidInput, match="reward"):
        agent.tell(decision, 2.0)
    assert agent.tell(decision, 1.0) == "duplicate"
    assert agent.to_json() == told


@pytest.mark.parametrize("wrong", [{"arms": [9]}, {"arms": [[1.0]]}, {"round": 1}, {"round": 2.5}])
def test_a_refused_question_changes_nothing(wrong):
    agent = Agent(STABLE, EYE, window=1)
    for _ in range(3):
        agent.tell(agent.ask(), 1.0)
    before = agent.to_json()
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        agent.ask(**{"round": 99} | wrong)
    assert agent.to_json() == before


CASES = [
    Case("arms too wide", lambda: Agent(STABLE, np.ones((4, 3))), "arms", "(4, 3)"),
    Case("arms 1-D", lambda: Agent(STABLE, [1.0, 1.0]), "arms", "(2,)"),
    Case("arms empty", lambda: Agent(STABLE, np.zeros((0, 2))), "arms", "(0, 2)"),
    Case("arms zero row", lambda: Agent(STABLE, [[1, 1], [0, 0]]), "arms", "row 1"),
    Case("arms NaN", lambda: Agent(STABLE, [[1, 0], [0, NAN]]), "arms", "[1, 1] is nan"),
    Case("arms inf", lambda: Agent(STABLE, [[-INF, 0]]), "arms", "[0, 0] is -inf"),
    Case("arms ragged", lambda: Agent(STABLE, [[1, 0], [1]]), "arms", "[[1, 0], [1]]"),
    Case("arms text", lambda: Agent(STABLE, "all"), "arms", "'all'"),
    Case("agent model dict", lambda: Agent({"a": 1}, EYE), "model", "dict"),
    Case("agent rounds 0", lambda: Agent(STABLE, EYE, rounds=0), "rounds", "is 0"),
    Case("agent seed -1", lambda: Agent(STABLE, EYE, seed=-1), "seed", "-1"),
    Case("agent policy", lambda: Agent(STABLE, EYE, "kod"), "policy", "did you mean 'kode'?"),
    Case("agent unstable", lambda: Agent(lgds(2 * EYE), EYE), "transition", "spectral radius 2"),
    Case(
        "agent oracle blind",
        lambda: Agent(HALF_SEEN, [[0.0, 1.0]], "kalman_oracle"),
        "arms",
        "spectral radius 2",
        NotDetectable,
    ),
    Case("agent window -1", lambda: Agent(STABLE, EYE, window=-1), "window", "-1"),
    Case("agent window None", lambda: Agent(STABLE, EYE, window=None), "window", "None"),
    Case("agent no model, no arms", lambda: Agent(None, None), "arms", "is missing"),
    Case("agent no model, zero arm", lambda: Agent(None, [[0.0]]), "arms", "row 0"),
    Case("tell unknown", lambda: told_wrong(decided(7, 0)), "decision", "7 was never made"),
    Case("tell other arm", lambda: told_wrong(decided(0, 1)), "decision", "arm=1", Conflict),
    Case("tell other round", lambda: told_wrong(decided(0, 0, 3)), "decision", "round=3", Conflict),
    Case(
        "tell text",
        lambda: told_wrong("0"),
        "decision",
        "is '0'; ids are whole numbers: give 0",
    ),
    Case("tell unknown number", lambda: told_wrong(1), "decision", "1 was never made"),
    Case("tell -1", lambda: told_wrong(-1), "decision", "-1 was never made"),
    Case("tell True", lambda: told_wrong(True), "decision", "True"),
    Case("tell 0.0", lambda: told_wrong(0.0), "decision", "0.0"),
    Case("tell tuple", lambda: told_wrong((0, 0)), "decision", "(0, 0)"),
    Case("tell None", lambda: told_wrong(None), "decision", "None"),
    Case(
        "tell unasked",
        lambda: Agent(STABLE, EYE).tell(decided(3, 0), 1.0),
        "decision",
        "3 was never made: no decision was made yet",
    ),
    Case(
        "conflicting",
        lambda: told_twice(1.5, 2.5),
        "reward",
        "is 2.5, but decision 0 was told",
        Conflict,
    ),
    Case("conflicting None", lambda: told_twice(1.5, None), "reward", "is None", Conflict),
    Case(
        "conflicting rows",
        lambda: told_twice(np.ones(30), np.zeros(30), "kalman_oracle", np.eye(30)),
        "reward",
        "decision 0",
        Conflict,
    ),
    Case("duplicate NaN", lambda: told_twice(1.0, NAN), "reward", "nan"),
    Case(
        "ask round 6", lambda: asked(round=6), "round", "is 6, but the agent is already at round 7"
    ),
    Case("ask round -1", lambda: asked(round=-1), "round", "-1"),
    Case("ask round 7.0", lambda: asked(round=7.0), "round", "7.0"),
    Case("ask round True", lambda: asked(round=True), "round", "True"),
    Case(
        "ask arm 2",
        lambda: asked([0, 2]),
        "arms",
        "2 is not the name of an arm; give indices of 0..1",
    ),
    Case("ask arm -1", lambda: asked([0, -1]), "arms", "-1 is not the name of an arm"),
    Case("ask no arms", lambda: asked([]), "arms", "is empty"),
    Case("ask no indices", lambda: asked(np.array([], int)), "arms", "is empty"),
    Case("ask no features", lambda: asked(np.zeros((0, 2))), "arms", "(0, 2)"),
    Case("ask floats", lambda: asked([0.0, 1.0]), "arms", "[0.0, 1.0]"),
    Case("ask mask", lambda: asked([True, False]), "arms", "[True, False]"),
    Case("ask text", lambda: asked("all"), "arms", "'all'"),
    Case("ask number", lambda: asked(1), "arms", "is 1"),
    Case("ask ragged", lambda: asked([[1.0, 2.0], [3.0]]), "arms", "[[1.0, 2.0], [3.0]]"),
    Case("ask long floats", lambda: asked(np.arange(99.0)), "arms", "array"),
    Case("ask wide features", lambda: asked(np.ones((4, 3))), "arms", "(4, 3)"),
    Case("ask NaN features", lambda: asked([[1.0, NAN]]), "arms", "[0, 1] is nan"),
    Case("ask zero features", lambda: asked([[1.0, 0.0], [0.0, 0.0]]), "arms", "row 1"),
    Case("ask text features", lambda: asked([["a", "b"]]), "arms", "'a'"),
    Case("ask 3-D", lambda: asked(np.ones((2, 2, 2))), "arms", "array"),
    Case("ask features of ucb", lambda: asked(EYE, policy="ucb"), "arms", "ucb keeps a score"),
    Case("ask features of rexp3", lambda: asked(EYE, policy="rexp3"), "arms", "rexp3"),
    Case(
        "ask a part of rexp3",
        lambda: asked([0], policy="rexp3"),
        "arms",
        "rexp3 always chooses among",
    ),
    Case("ask a part, oracle", lambda: asked([0], policy="kalman_oracle"), "arms", "kalman_oracle"),
    Case(
        "ask features beside offsets",
        lambda: asked(EYE, refit=Refit(offsets=True)),
        "arms",
        "are new",
    ),
    Case("advance -1", lambda: Agent(STABLE, EYE).advance(-1), "rounds", "-1"),
    Case("advance 0.5", lambda: Agent(STABLE, EYE).advance(0.5), "rounds", "0.5"),
    Case("reward NaN", lambda: told(NAN), "reward", "nan"),
    Case("reward -inf", lambda: told(-INF), "reward", "-inf"),
    Case("reward text", lambda: told("1.5"), "reward", "'1.5'"),
    Case("reward row", lambda: told([1.0, 2.0]), "reward", "[1.0, 2.0]"),
    Case("oracle one reward", lambda: told(1.0, "kalman_oracle"), "reward", "()"),
    Case("oracle long row", lambda: told([1, 2, 3], "kalman_oracle"), "reward", "(3,)"),
    Case("oracle NaN", lambda: told([1, NAN], "kalman_oracle"), "reward", "[1] is nan"),
    Case(
        "agent unstable 5000 rounds",
        lambda: Agent(UNSTABLE, EYE, "ucb", rounds=5000),
        "rounds",
        "5000",
    ),
    Case("reward 10**400", lambda: told(10**400), "reward", "1000"),
    Case(
        "tell None unasked",
        lambda: Agent(STABLE, EYE).tell(None, 1.0),
        "decision",
        "None",
    ),
    Case(
        "batch beyond int32",
        lambda: Agent(STABLE, EYE, "rexp3(batch=3000000000)"),
        "batch",
        "3000000000",
    ),
]


@each(CASES)
def test_bad_arguments_are_refused(case):
    assert_refused(case)
