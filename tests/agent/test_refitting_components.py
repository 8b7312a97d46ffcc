"""Agents that learn the parameters of components from their own log."""

import numpy as np
import pytest

import driftbandit as db

pytest.importorskip("jax")
ARMS, NAMES = 3, ("a", "b", "c")
WEEK = np.random.default_rng(7).standard_normal((ARMS, 7))
COMPONENTS = "level(arm) + season(7, arm)"


def lived(refit, rounds=260, stored_at=None, seed=3):
    """Regret after the first refits on arms with seasons, and the agent."""
    rng, levels, lost = np.random.default_rng(seed), np.array([1.0, 0.8, 0.6]), []
    agent = db.Agent(None, np.eye(ARMS), refit=refit, window=2, names=NAMES)
    for t in range(rounds):
        means = levels + WEEK[:, t % 7]
        decision = agent.ask()
        arm = NAMES.index(decision.arm)
        lost.append(means.max() - means[arm])
        agent.tell(decision, means[arm] + 0.3 * rng.standard_normal())
        levels = levels + 0.03 * rng.standard_normal(ARMS)
        if t == stored_at:
            agent = db.Agent.from_json(agent.to_json())
    return float(np.mean(lost[160:])), agent


@pytest.fixture(scope="module")
def seasonal():
    return lived(db.Refit(after=80, structure=COMPONENTS, background=False, check=False))


def test_an_agent_learns_the_seasons_of_its_arms(seasonal):
    lost, agent = seasonal
    assert agent.refit_failure is None
    assert agent.model.n_states == ARMS * (1 + 6)
    with_seasons = db.Refit(after=80, structure=COMPONENTS, background=False, check=False)
    plain = db.Refit(after=80, structure="level(arm)", background=False)
    total = lost + sum(lived(with_seasons, seed=seed)[0] for seed in (4, 5))
    assert total < 0.25 * sum(lived(plain, seed=seed)[0] for seed in (3, 4, 5))


def test_the_phase_of_a_season_survives_being_stored(seasonal):
    lost, agent = lived(
        db.Refit(after=80, structure=COMPONENTS, background=False, check=False), stored_at=200
    )
    assert lost == seasonal[0]
    assert agent.to_json() == seasonal[1].to_json()


def test_new_arms_are_refused(seasonal):
    with pytest.raises(db.InvalidInput, match="arms"):
        db.Agent.from_json(seasonal[1].to_json()).ask([[1.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("structure", "said"),
    [
        ("level(group)", "neither groups nor features"),
        ("level(arm) + regression(x_price)", "neither groups nor features"),
        ("diagnal", "did you mean 'diagonal'"),
        ("free + level(arm)", "unknown name 'free'"),
        ("", "is empty"),
    ],
)
def test_bad_structures_are_refused(structure, said):
    with pytest.raises(db.InvalidInput, match=said):
        db.Refit(structure=structure)
