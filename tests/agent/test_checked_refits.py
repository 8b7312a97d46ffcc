"""A new model replaces the present one only if it predicts later rewards at least as well."""

import logging

import numpy as np
import pytest

from driftbandit import LGDS, Agent, Refit, kalman
from driftbandit.agent import refitting
from driftbandit.agent.ledger import Entry
from driftbandit.agent.refitting import Present, Refused, log_densities, relearned

pytest.importorskip("jax")
TRUTH = LGDS([[0.9, 0.0], [0.0, 0.9]], 0.19 * np.eye(2), reward_std=0.3)
QUICK = {"background": False, "after": 60, "structure": "diagonal", "iterations": 10}


def lived(rewards, **options):
    agent = Agent(TRUTH, np.eye(2), window=0, refit=Refit(**QUICK, **options))
    for t, row in enumerate(rewards):
        agent.tell(agent.ask(arms=[t % 2]), row[t % 2])
    agent.advance()
    return agent


def table(rounds, seed=0):
    rng, z, rows = np.random.default_rng(seed), np.zeros(2), []
    for _ in range(rounds):
        rows.append(z + 0.3 * rng.standard_normal(2))
        z = 0.9 * z + np.sqrt(0.19) * rng.standard_normal(2)
    return np.array(rows)


def test_a_model_of_misleading_rewards_is_refused(caplog):
    """Rewards were stuck at first: a model of them would be sure of that, and the agent says so."""
    rewards = table(60)
    rewards[:48] = 0.001 * rewards[:48]
    with caplog.at_level(logging.INFO, "driftbandit"):
        agent = lived(rewards)
    assert agent.model is TRUTH
    assert agent.refit_failure.startswith("the present model stays: it predicted the last 12")
    assert agent.refit_failure in caplog.text
    assert agent._history.until_refit == 60
    agent.refit()  # by hand, too
    assert agent.model is TRUTH
    assert Agent.from_json(agent.to_json()).refit_failure == agent.refit_failure
    unchecked = lived(rewards, check=False)
    assert unchecked.refit_failure is None
    fresh, played = table(200, seed=1)[:, 0], np.tile([1.0, 0.0], (200, 1))
    worse, better = (kalman.log_likelihood(one.model, played, fresh) for one in (unchecked, agent))
    assert worse < better - 10


def test_a_model_that_predicts_better_is_taken():
    rewards = 20 * table(60)  # far larger than the model says
    agent = lived(rewards)
    assert agent.refit_failure is None
    assert agent.model is not TRUTH


def test_log_densities_are_those_of_the_filter():
    rewards, model = table(30)[:, 0], LGDS([[0.9]], [[0.19]], 0.3)
    plays = [(t + 5, np.ones(1), reward) for t, reward in enumerate(rewards)]
    assert log_densities(model, plays, 5).sum() == pytest.approx(
        kalman.log_likelihood(model, np.ones((30, 1)), rewards)
    )
    known = LGDS([[1.0]], [[0.0]], 0.0, [[0.0]])
    same = log_densities(known, [(0, np.ones(1), 0.0), (3, np.ones(1), 1.0)], 0)
    assert same.tolist() == [0.0, -np.inf]


def test_what_is_compared(monkeypatch):
    """The first 80% teach, by rounds: plays of one round are never on both sides."""
    entries = [Entry(None, t // 4, 0, None, float(t % 2)) for t in range(30)]
    plays = [(entry.round, np.ones(1), entry.reward) for entry in entries]
    good, bad, counts = LGDS([[0.0]], [[0.3]], 0.3), LGDS([[0.0]], [[1e-6]], 0.01), []

    def learned(entries, arms, options, start):
        counts.append(len(entries))
        return good, arms

    monkeypatch.setattr(refitting, "learned", learned)

    def relearn(present, known=30, entries=entries):
        counts.clear()
        told = [(t, row if place < known else None, x) for place, (t, row, x) in enumerate(plays)]
        made = None if present is None else Present(present, told, 0)
        relearned(entries, np.ones((1, 1)), Refit(), None, made)
        return counts

    assert relearn(None) == [30]
    assert relearn(bad) == [24, 30]
    monkeypatch.setattr(refitting, "learned", lambda entries, arms, *_: (bad, arms))
    with pytest.raises(Refused, match="the last 6 rewards better"):
        relearn(good)
    with pytest.raises(Refused, match="the last 4 rewards better"):  # others are of retired arms
        relearn(good, known=28)
    relearn(good, known=25)  # one reward says nothing
    relearn(good, entries=entries[:4])  # all in one round


def test_a_model_that_predicts_no_number_is_refused(monkeypatch):
    wild = LGDS(1e9 * np.eye(2), np.eye(2), 1.0, np.eye(2))
    monkeypatch.setattr(refitting, "learned", lambda entries, arms, *_: (wild, arms))
    agent = lived(table(60))
    assert agent.model is TRUTH
    assert agent.refit_failure is not None
