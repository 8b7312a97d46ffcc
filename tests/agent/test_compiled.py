"""Compiled agents against those on NumPy: the same decisions, the same numbers up to rounding."""

import copy
import dataclasses
import json
import random

import numpy as np
import pytest

from agent_histories import ARMS, MODEL, NAMES, SYSTEM, WALK
from driftbandit import LGDS, Agent, Refit, families, policies
from driftbandit.agent.compiled import MOST_WORK
from driftbandit.agent.stored import checksum
from late_rewards import assert_same

ALL = {"observe", "advance", "best"}
KALMAN = ("idea", "kode", "kalman_ucb", "lookahead", "reach")


def programs(agent):
    """Which functions are compiled."""
    found = agent.problem.constants.programs
    return {name for name, program in found._asdict().items() if program is not None}


def assert_near(agent, other):
    assert (agent.names, agent.round) == (other.names, other.round)
    for value, expected in zip(agent.state, other.state, strict=True):
        assert np.asarray(value).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def assert_same_decision(decision, other):
    assert (decision.id, decision.arm, decision.round) == (other.id, other.arm, other.round)
    for value, expected in zip(decision[3:], other[3:], strict=True):
        assert type(value) is type(expected)
        assert value is None or value == pytest.approx(expected, rel=1e-12, abs=1e-12)


def both(**options):
    return [Agent(SYSTEM, compiled=compiled, **options) for compiled in (True, False)]


@pytest.mark.parametrize("policy", policies.available())
def test_every_policy(policy):
    pair, rng = both(policy=policy, seed=5), np.random.default_rng(1)
    for _ in range(60):
        reward = rng.standard_normal(4 if pair[0].policy.full_information else None)
        decisions = [agent.ask() for agent in pair]
        assert_same_decision(*decisions)
        for agent, decision in zip(pair, decisions, strict=True):
            agent.tell(decision, reward)
        assert_near(*pair)


def test_what_is_compiled():
    for policy in KALMAN:
        assert programs(Agent(SYSTEM, policy=policy, compiled=True)) == ALL
    assert programs(Agent(SYSTEM, policy="discounted_linucb", compiled=True)) == {"observe", "best"}


def test_all_that_an_agent_can_do():
    pair = both(window=4)
    rng = np.random.default_rng(2)
    late = [agent.ask() for agent in pair]
    for step, rewards in enumerate(rng.standard_normal((40, 3))):
        new = dict(zip("de", rng.standard_normal((2, pair[0].model.n_states)), strict=True))
        asked = [agent.ask_many(3) if step % 2 else [agent.ask(new)] for agent in pair]
        for agent, decisions in zip(pair, asked, strict=True):
            for decision, reward in zip(decisions, rewards, strict=False):
                agent.tell(decision, reward)
            agent.ask(["right", "both"])
            if step == 3:
                agent.tell(late[pair.index(agent)], 0.7)
                agent.tell_play("right", -0.4, round=2)
            if step == 10:
                agent.advance(5)
                agent.add_arm("fifth", [0.3, 1.0, -0.5])
            if step == 15:
                agent.replace_model(WALK)
            if step == 20:
                agent.add_arm("sixth")  # one state more
            if step == 25:
                agent.remove_arm("left")
        for decision, other in zip(*asked, strict=True):
            assert_same_decision(decision, other)
        assert_near(*pair)
        assert programs(pair[0]) == ALL
    for score, other in zip(pair[0].scores(), pair[1].scores(), strict=True):
        assert score.arm == other.arm
        assert score[1:] == pytest.approx(other[1:], rel=1e-12)


@pytest.mark.parametrize("policy", ["idea", "thompson", "discounted_linucb"])
def test_rewards_in_any_order_bit_for_bit(policy):
    """Also if the agent is stored and brought back on the way."""
    rng = random.Random(0)
    at_once, late = (Agent(SYSTEM, policy=policy, window=8, compiled=True) for _ in range(2))
    for block in range(6):
        told = []
        for _ in range(8):
            arm, reward = rng.choice(NAMES), rng.gauss(0, 1)
            at_once.tell(at_once.ask([arm]), reward)
            told.append((late.ask([arm]), reward))
        for number, (decision, reward) in enumerate(rng.sample(told, 8)):
            late.tell(decision, reward)
            if number == block:
                late = Agent.from_json(late.to_json())
        assert_same(at_once.state, late.state)


def test_stored_and_brought_back(tmp_path):
    agent = Agent(SYSTEM, window=5, compiled=True)
    for reward in np.random.default_rng(3).standard_normal(20):
        agent.tell(agent.ask(), reward)
    agent.save(tmp_path / "agent.json")
    for other in (Agent.load(tmp_path / "agent.json"), copy.deepcopy(agent)):
        assert other.compiled
        assert_same(other.state, agent.state)
        assert other.to_json() == agent.to_json()
        assert other.ask() == copy.deepcopy(agent).ask()


def test_an_older_file_is_not_compiled():
    whole = json.loads(Agent(SYSTEM, compiled=True).to_json())
    del whole["agent"]["compiled"]
    whole["checksum"] = checksum(json.dumps(whole["agent"]))
    assert not Agent.from_json(json.dumps(whole)).compiled


def test_a_refit():
    options = Refit(after=30, iterations=5, background=False)
    pair = [Agent(MODEL, ARMS, window=3, refit=options, compiled=on) for on in (True, False)]
    for reward in np.random.default_rng(4).standard_normal(45):
        decisions = [agent.ask() for agent in pair]
        assert decisions[0].arm == decisions[1].arm
        for agent, decision in zip(pair, decisions, strict=True):
            agent.tell(decision, reward)
    assert pair[0].refit_failure is None
    assert not np.array_equal(pair[0].model.transition, MODEL.transition)
    assert programs(pair[0]) == ALL
    assert_near(*pair)


def test_what_jax_cannot_trace_stays_with_numpy():
    plain = policies.make("idea")

    def observe(state, problem, arm, reward):
        return plain.agent.observe(state, problem, arm, reward) if reward > 0 else state

    policy = dataclasses.replace(plain, agent=plain.agent._replace(observe=observe))
    pair = both(policy=policy)
    assert programs(pair[0]) == {"advance", "best"}
    for reward in (1.0, -1.0, 0.5):
        for agent in pair:
            agent.tell(agent.ask(), reward)
    assert_near(*pair)


def test_large_models_stay_with_numpy():
    d = 32
    assert d**3 > MOST_WORK
    model, arms = families.sample("gaussian", n_states=d, n_arms=2)[0]
    agent = Agent(model, arms, compiled=True)
    assert programs(agent) == set()
    agent.tell(agent.ask(), 0.5)


def test_the_sphere():
    model = LGDS([[0.9, 0.1], [0.0, 0.7]], np.eye(2), reward_std=0.5)
    pair = [Agent(model, "sphere", "kalman_ucb", compiled=on) for on in (True, False)]
    for reward in (1.0, -2.0, 0.3):
        first, second = (agent.ask() for agent in pair)
        np.testing.assert_allclose(first.arm, second.arm, rtol=1e-9, atol=1e-9)
        pair[0].tell(first, reward)
        pair[1].tell(second, reward)
    np.testing.assert_allclose(pair[0].state.cov, pair[1].state.cov, rtol=1e-9)
