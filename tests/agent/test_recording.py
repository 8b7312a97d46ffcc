"""Decisions that a copy made, several rewards at once, and what a decision was chosen from."""

import dataclasses

import numpy as np
import pytest

from driftbandit import LGDS, Agent, Decision, InvalidInput, System, families
from driftbandit.errors import Conflict
from driftbandit.policies import optimistic

POLICIES = ("idea", "thompson", "kode", "ucb", "rexp3", "discounted_linucb", "lookahead")


def made(policy="idea", **options):
    model, arms = families.sample("gaussian", n_states=3, n_arms=5, seed=4)[0]
    return Agent(model, arms, policy, names=list("abcde"), **options)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_copy_that_records_the_decisions_is_the_same(policy):
    agent, copy = made(policy, window=6), made(policy, window=6)
    rng = np.random.default_rng(0)
    for round_ in range(60):
        decision = agent.ask(round=round_ + round_ // 20)
        copy.record(decision)
        if round_ % 3:
            for told in (decision.id, max(0, decision.id - int(rng.integers(0, 8)))):
                reward = float(rng.standard_normal())
                try:
                    outcome = agent.tell(told, reward)
                except Conflict:
                    continue
                assert copy.tell(told, reward) == outcome
        if round_ % 20 == 19:
            copy = Agent.from_json(copy.to_json())
    assert copy.to_json() == agent.to_json()
    assert copy.ask() == agent.ask()


def test_batches_subsets_and_other_arms_are_recorded():
    agent, copy = made(), made()
    for decision in agent.ask_many(3):
        copy.record(decision)
    copy.record(agent.ask(["b", "d"]), arms=["b", "d"])
    assert [one.arm for one in copy.explain()] == ["b", "d"] == [o.arm for o in agent.explain()]
    features = {"x": [1.0, 0.0, 0.5], "y": [0.2, 0.1, 0.4]}
    decision = agent.ask(features)
    copy.record(decision, features=features[decision.arm])
    assert copy.explain() is None
    for one in (agent, copy):
        one.tell_many([(4, 0.5), (3, -1.0), (0, 0.2)])
    assert copy.to_json() == agent.to_json()


def test_contexts_are_recorded():
    system = System(
        LGDS(np.diag([0.9, 1.0]), np.diag([0.1, 0.0]), 0.5, np.eye(2)),
        np.array([[1.0, 0.0], [0.5, 0.0]]),
        ("old", "new"),
        {"x_price": np.array([[0.0, 1.0], [0.0, 1.0]])},
    )
    agent, copy = Agent(system), Agent(system)
    context = {"x_price": {"old": 1.0, "new": 3.0}}
    copy.record(agent.ask(context=context), context=context)
    for one in (agent, copy):
        one.tell(0, 1.5)
    assert copy.to_json() == agent.to_json()
    with pytest.raises(InvalidInput, match="context"):
        copy.record(agent.ask(context=context))


def test_what_cannot_be_recorded_changes_nothing():
    agent = made()
    first = agent.ask()
    before = agent.to_json()
    for wrong in (first, first._replace(id=5), 1, Decision(1, "z", 1, None, None, None)):
        with pytest.raises(InvalidInput):
            agent.record(wrong)
    with pytest.raises(InvalidInput, match="round"):
        agent.record(first._replace(id=1, round=-1))
    with pytest.raises(InvalidInput, match="features"):
        agent.record(first._replace(id=1), features=[1.0])
    assert agent.to_json() == before


def test_many_rewards_are_learned_as_one_by_one():
    agent, other = made(), made()
    for one in (agent, other):
        one.ask_many(3)
        one.ask()
    rewards = [(3, 0.5), (1, None), (0, True), (3, 0.5), (2, -0.1)]
    outcomes = ["learned", "missing", "learned", "duplicate", "learned"]
    assert agent.tell_many(rewards) == outcomes == [other.tell(*pair) for pair in rewards]
    assert agent.to_json() == other.to_json()
    assert agent.open_decisions == [1]
    assert agent.in_window() == 4
    assert agent.in_window(101) == 1  # the window is 100 rounds
    assert agent.in_window(102) == 0
    assert agent.tell_many([]) == []


@pytest.mark.parametrize(
    ("rewards", "argument"),
    [
        ([(0, 1.0), (9, 1.0)], "rewards[1] decision"),
        ([(0, 1.0), (0, 2.0)], "rewards[1] reward"),
        ([(0, 1.0), (1, float("nan"))], "rewards[1] reward"),
        ([(0, 1.0), 5], "rewards[1]"),
        ([(0, 1.0, 2.0)], "rewards[0]"),
    ],
)
def test_if_one_reward_is_wrong_none_is_learned(rewards, argument):
    agent = made()
    agent.ask_many(2)
    before = agent.to_json()
    with pytest.raises(InvalidInput) as caught:
        agent.tell_many(rewards)
    assert caught.value.argument == argument
    assert agent.to_json() == before


def test_if_the_policy_cannot_take_one_reward_none_is_learned():
    picky = optimistic("picky", lambda cov, model, arms: 0.0 * arms[:, 0])

    def update(state, problem, arm, reward):
        if reward == 13:
            raise ValueError("thirteen")
        return picky.agent.observe(state, problem, arm, reward)

    abilities = picky.agent._replace(observe=update)
    policy = dataclasses.replace(picky, agent=abilities)
    agent, plain = made(policy), made(policy)
    for one in (agent, plain):
        one.ask_many(4)
    before = agent.to_json()
    with pytest.raises(ValueError, match="thirteen"):
        agent.tell_many([(2, 1.0), (0, 2.0), (1, 13.0)])
    assert agent.to_json() == before
    for one in (agent, plain):
        one.tell_many([(3, 1.0), (0, 2.0)])
    assert agent.to_json() == plain.to_json()


def test_scores_of_a_later_round():
    agent, waits = made(window=5), made(window=5)
    for one in (agent, waits):
        one.tell(one.ask(), 1.0)
    waits.advance(7)
    assert agent.scores(round=8) == waits.scores()
    assert agent.scores() == agent.scores(round=1) != waits.scores()
    assert agent.round == 1
    with pytest.raises(InvalidInput, match="already"):
        agent.scores(round=-1)


def test_explain_shows_what_the_decision_was_chosen_from():
    agent = made()
    assert agent.explain() is None
    expected = agent.scores()
    decision = agent.ask()
    agent.tell(decision, 2.0)  # later news change nothing
    assert agent.explain() == expected
    best = max(agent.explain(), key=lambda score: score.mean + score.bonus)
    assert best.arm == decision.arm
    assert Agent.from_json(agent.to_json()).explain() is None


def test_a_new_model_starts_in_the_round_that_is_said():
    """A season's phase depends on it, even if the rewards since then were dropped."""
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])  # a season of four rounds
    season = LGDS(turn, 1e-8 * np.eye(2), 0.1, 1e-8 * np.eye(2), [1.0, 0.0])
    level = LGDS(np.eye(2), 0.1 * np.eye(2), 0.5, np.eye(2))
    agent = Agent(level, [[1.0, 0.0]], window=2, memory=3)
    for round_ in range(21):
        agent.tell(agent.ask(), [1.0, 0.0, -1.0, 0.0][round_ % 4])
    copy = Agent.from_json(agent.to_json())
    agent.replace_model(season, start=0)
    means = []
    for _ in range(4):
        means.append(round(agent.ask().mean, 3))
    assert means == [0.0, -1.0, 0.0, 1.0]  # rounds 21 to 24
    copy.replace_model(season, start=17)  # the season is now a round late, and older plays are gone
    assert abs(copy.ask().mean) < 1.0
    assert copy.to_json() != agent.to_json()
    assert Agent.from_json(copy.to_json()).ask() == copy.ask()
    with pytest.raises(InvalidInput, match="start: the first round is 99"):
        copy.replace_model(season, start=99)
