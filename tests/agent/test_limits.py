"""States and bonuses that are no numbers, and rounds that end."""

import numpy as np
import pytest

from driftbandit import LGDS, Agent, InvalidInput, families, policies

MODEL, ARMS = families.sample("gaussian", n_states=2, n_arms=3, seed=3)[0]


UNSEEN = LGDS(np.diag([1.05, 0.5]), np.eye(2), 1.0, np.eye(2))
"""Whose first state explodes, and no arm reads it."""


SECOND = [[0.0, 1.0], [0.0, -2.0]]


def test_a_state_that_nobody_sees_outgrows_all_numbers(tmp_path):
    """One clear error before anything changes; what was decided so far is good, and stays so."""
    agent = Agent(UNSEEN, SECOND, window=3)
    path = tmp_path / "agent.json"
    for _ in range(8000):
        try:
            decision = agent.ask()
        except InvalidInput:
            break
        assert np.isfinite([decision.mean, decision.bonus, decision.uncertainty]).all()
        agent.tell(decision, 0.5)
    reached = agent.round
    assert 3000 < reached < 8000
    agent.save(path)
    back = Agent.load(path)
    for one in (agent, back):
        with pytest.raises(InvalidInput, match=f"round: is {reached}, by when"):
            one.ask()
        assert one.round == reached
        assert one.ask(round=reached - 1).round == reached - 1  # another decision in the last round
        one.replace_model(LGDS(np.diag([0.9, 0.5]), np.eye(2), 1.0))
        assert one.ask().round == reached
    assert back.to_json() == agent.to_json()


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.advance(10**6),
        lambda a: a.tell_play(0, 1.0, round=10**6),
        lambda a: a.tell_log([(3, 0, 1.0), (10**6, 0, 1.0)]),
        lambda a: a.ask_many(2, round=10**6),
    ],
)
def test_time_that_cannot_pass(change):
    agent = Agent(UNSEEN, SECOND)
    agent.tell(agent.ask(), 1.0)
    before = agent.to_json()
    with pytest.raises(InvalidInput, match=r"round: is 10000.., by when the state has outgrown"):
        change(agent)
    assert agent.to_json() == before
    agent.advance(10)
    assert agent.ask().round == 11


def test_rounds_end(tmp_path):
    """Where they could no longer be told apart; what was saved is still good."""
    agent = Agent(MODEL, ARMS)
    agent.ask(round=2**53)
    with pytest.raises(InvalidInput, match=f"round: is {2**53 + 1}"):
        agent.ask()
    with pytest.raises(InvalidInput, match="round: is"):
        agent.tell_play(0, 1.0)
    agent.save(tmp_path / "agent.json")
    assert Agent.load(tmp_path / "agent.json").to_json() == agent.to_json()


def test_a_bonus_that_is_no_number_is_refused():
    own = policies.optimistic("own", lambda cov, model, arms: arms[:, 0] * np.nan)
    agent = Agent(MODEL, ARMS, own)
    with pytest.raises(InvalidInput, match=r"policy 'own': gives arm 0 .* the bonus nan"):
        agent.ask()
    assert agent.round == 0


def test_one_bonus_that_is_no_number_is_refused():
    """Whichever arm it is of: comparisons with it are false, and must not choose another arm."""
    last = np.arange(len(ARMS)) == len(ARMS) - 1
    own = policies.optimistic("own", lambda cov, model, arms: np.where(last, np.nan, 0.0))
    with pytest.raises(InvalidInput, match=r"policy 'own': gives arm .* the bonus nan"):
        Agent(MODEL, ARMS, own).ask()
