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
from driftbandit import LGDS, Agent, families, kalman
from driftbandit.agent import Refit, refitting
from driftbandit.policies import available, make, optimistic

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


def assert_same(state, other):
    """Bit for bit."""
    assert type(state) is type(other)
    for value, expected in zip(state, other, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)


@pytest.mark.parametrize("horizon", [ROUNDS, 1000])
@pytest.mark.parametrize("system", SYSTEMS)
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
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
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


def told_by(agent, rounds, rewards, rng):
    """Ask in these rounds and tell each reward within the window, at random or, without, at once.

    rewards[i] is decision i's, or all arms'; None: it never comes. What an agent learns must not
    depend on who it is told by, so it may change hands on the way.
    """
    waiting = []
    for number, now in enumerate(rounds):
        early = [one for one in waiting if one.round + agent.window >= now and rng.random() < 0.7]
        due = [one for one in waiting if one not in early]
        for one in rng.sample(due, len(due)):
            assert agent.tell(one, rewards[one.id]) == "learned"
        waiting = early
        if rng.random() < 0.1:
            agent = Agent.from_json(agent.to_json(), agent.policy)
        decision = agent.ask(round=now)
        if rewards[number] is not None:
            waiting.append(decision)
    for one in rng.sample(waiting, len(waiting)):
        assert agent.tell(one, rewards[one.id]) == "learned"
    return agent


class AtOnce(random.Random):
    """Leaves nothing to chance: nobody waits, and everything is in order."""

    def random(self):
        return 1.0

    def sample(self, population, k):
        return list(population)


def scripted(name, arms):
    """The policy, but for its choices: these are given."""
    script = iter(arms)
    return dataclasses.replace(make(name), choose=lambda state, problem, noise: next(script))


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


TRUTH = LGDS([[0.95, 0.0], [0.0, 0.6]], [[0.2, 0.0], [0.0, 1.0]], reward_std=0.3)
THREE = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
# Few and far between: whatever is learned from a longer log is compiled anew.
LEARNS = Refit(background=False, after=120, growth=1.5, iterations=60)


def environment(seed, rounds):
    """What each of three arms pays in each round."""
    rng = np.random.default_rng(seed)
    z, rows = rng.standard_normal(2), []
    for _ in range(rounds):
        rows.append(THREE @ z + 0.3 * rng.standard_normal(3))
        z = TRUTH.transition @ z + np.sqrt(np.diag(TRUTH.process_cov)) * rng.standard_normal(2)
    return np.array(rows)


def learned(agent, rewards):
    for row in rewards:
        decision = agent.ask()
        agent.tell(decision, row[decision.arm])
    return agent


@pytest.fixture(scope="module")
def unknown():
    """An agent that began without a model; as it was after 200 of 320 rounds, and at the end."""
    rewards = environment(11, 320)
    agent = learned(Agent(None, THREE, window=10, refit=LEARNS), rewards[:200])
    return agent.to_json(), learned(agent, rewards[200:]).to_json(), rewards


def test_an_agent_learns_its_model(unknown):
    """Likelier than the random walk it began with, of rewards it never saw."""
    _, end, _ = unknown
    found = Agent.from_json(end).model
    fresh = environment(2, 300)
    rng = np.random.default_rng(0)
    chosen = rng.integers(3, size=300)
    played, paid = THREE[chosen], fresh[np.arange(300), chosen]
    began, knows, true = (
        kalman.log_likelihood(model, played, paid) / 300
        for model in (Agent(None, THREE).model, found, TRUTH)
    )
    assert began + 0.2 < knows < true + 0.05
    assert knows > true - 0.1


def test_stored_between_two_refits(unknown):
    """The schedule goes on, and so does the climb from the model that was learned."""
    middle, end, rewards = unknown
    agent = Agent.from_json(middle)
    assert 0 < agent._history.until_refit < LEARNS.after * LEARNS.growth
    model = agent.model
    assert learned(agent, rewards[200:]).to_json() == end
    assert np.abs(agent.model.transition - model.transition).max() > 1e-6


def test_refit_in_any_order():
    """Model and state, bit for bit; the log is of settled rewards alone."""
    rng = random.Random(4)
    played = [rng.randrange(3) for _ in range(80)]
    table = environment(5, 80)
    rewards = [
        None if t % 9 == 0 else row[arm]
        for t, (row, arm) in enumerate(zip(table, played, strict=True))
    ]
    ends = [
        told_by(
            Agent(
                None,
                THREE,
                scripted("idea", played),
                window=10,
                refit=Refit(background=False, after=30, iterations=5),
            ),
            range(80),
            rewards,
            chance,
        )
        for chance in (AtOnce(), rng)
    ]
    assert ends[0].to_json() == ends[1].to_json()
    assert_same(ends[0].state, ends[1].state)
    np.testing.assert_array_equal(ends[0].model.transition, ends[1].model.transition)
    assert ends[0]._history.has_model
    assert [entry.round for entry in ends[0]._history.log] == [t for t in range(69) if t % 9]


def test_refit_with_offsets():
    """By hand, of rewards about 5, 6 and 7: the arms read that, and their features stay."""
    rewards = 0.3 * environment(6, 45) + [5.0, 6.0, 7.0]
    agent = Agent(None, THREE, window=0, refit=Refit(background=False, offsets=True, iterations=20))
    for t, row in enumerate(rewards):
        decision = agent.ask(arms=[t % 3])
        agent.tell(decision, row[decision.arm])
    agent.refit()
    assert agent._history.until_refit == 200
    assert agent.model.n_states == 3
    assert agent.problem.arms.shape == (3, 3)
    np.testing.assert_allclose(agent.problem.arms[:, 2], [5, 6, 7], atol=1)
    np.testing.assert_array_equal(agent._history.features, THREE)
    other = Agent.from_json(agent.to_json())
    assert other.to_json() == agent.to_json()
    decision = agent.ask()
    assert other.ask() == decision
    assert 4 < decision.mean < 9
    assert agent.ask(arms=[0, 1]).arm in (0, 1)


def test_a_refit_needs_rewards():
    """Two that are settled."""
    agent = Agent(None, THREE, window=0, refit=Refit())
    for reward in (1.0, 2.0):
        agent.tell(agent.ask(), reward)
    before = agent.to_json()
    with pytest.raises(ValueError, match="log: has 1 settled rewards"):
        agent.refit()
    assert agent.to_json() == before


def test_when_an_agent_learns(monkeypatch):
    """After 20 settled rewards, then by half as many as it knows; it knows 50, the newest."""
    logs = []

    def learned(entries, arms, options, start, seed):
        logs.append([entry.round for entry in entries])
        return TRUTH, arms

    monkeypatch.setattr(refitting, "learned", learned)
    agent = Agent(None, THREE, window=3, refit=Refit(background=False, after=20, memory=50))
    sizes = []
    for t in range(240):
        agent.tell(agent.ask(), None if t % 4 == 0 else 0.1)
        if t == 150:
            agent = Agent.from_json(agent.to_json())
        sizes.append(len(agent.to_json()))
    assert [len(log) for log in logs] == [20, 40, 50, 50, 50, 50, 50]
    known = [t for t in range(240) if t % 4]
    for log, count in zip(logs, [20, 40, 60, 85, 110, 135, 160], strict=True):
        assert log == known[:count][-50:]
    assert len(agent._history.log) == 50
    assert max(sizes[80:]) < 1.1 * min(sizes[80:])
