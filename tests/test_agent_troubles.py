"""What an agent does when something goes wrong: nothing is lost, nothing is half done."""

import dataclasses
import logging
import os
import stat

import numpy as np
import pytest

from driftbandit import LGDS, Agent, InvalidInput, Refit, policies
from driftbandit.files import write_whole

MODEL = LGDS([[0.9, 0.1], [0.0, 0.8]], np.eye(2), 0.5)
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])


def test_a_refit_that_fails_leaves_the_model(caplog):
    """Rewards beyond what can be learned from: the agent decides on and says why."""
    agent = Agent(MODEL, ARMS, window=0, refit=Refit(background=False, after=5))
    with caplog.at_level(logging.WARNING, "driftbandit"):
        for t in range(8):
            agent.tell(agent.ask(round=t), 1e31)
    assert agent.model is MODEL
    assert "has rewards up to" in agent.refit_failure
    assert agent.refit_failure in caplog.text
    assert Agent.from_json(agent.to_json()).refit_failure == agent.refit_failure
    with pytest.raises(InvalidInput, match="has rewards up to"):
        agent.refit()


def test_a_state_that_outgrows_all_numbers():
    agent = Agent(LGDS(2 * np.eye(2), np.eye(2), 1.0, np.eye(2)), ARMS)
    agent.tell(agent.ask(), 1.0)
    before = agent.to_json()
    with pytest.raises(InvalidInput, match="round: is 3000, by when the state has outgrown"):
        agent.ask(round=3000)
    assert agent.to_json() == before
    agent.ask(round=20)


def test_a_policy_that_fails_has_learned_nothing():
    plain = policies.make("idea")

    def picky(belief, problem, arm, reward):
        if reward > 5:
            raise RuntimeError("too much")
        return plain.observe(belief, problem, arm, reward)

    agent = Agent(MODEL, ARMS, dataclasses.replace(plain, name="picky", observe=picky))
    decision = agent.ask()
    state = agent.state
    for _ in range(2):
        with pytest.raises(RuntimeError, match="too much"):
            agent.tell(decision, 9.0)
    np.testing.assert_array_equal(agent.state.cov, state.cov)
    assert agent.tell(decision, 1.0) == "learned"
    assert (agent.state.cov != state.cov).any()


def test_nothing_passes_in_no_time():
    agent = Agent(MODEL, ARMS, window=0)
    decision = agent.ask()
    agent.advance(0)
    assert agent.tell(np.int64(decision.id), None) == "missing"
    assert agent.tell(decision, 0.5) == "learned"
    assert agent.ask(round=0).round == 0


def test_a_known_model_is_where_learning_starts(monkeypatch):
    from driftbandit.agent import refitting

    seen = []

    def noted(entries, arms, options, start, seed):
        seen.append(start)
        return MODEL, arms

    monkeypatch.setattr(refitting, "learned", noted)
    for model in (MODEL, None):
        agent = Agent(model, ARMS, window=0, refit=Refit(background=False, after=3))
        for _ in range(8):
            agent.tell(agent.ask(), 0.1)
    assert [one is None for one in seen] == [False, False, True, False]


def test_files_keep_their_permissions(tmp_path):
    path = tmp_path / "agent.json"
    old = os.umask(0o077)
    try:
        write_whole(path, b"one")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    write_whole(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    missing = tmp_path / "nowhere" / "agent.json"
    with pytest.raises(FileNotFoundError) as caught:
        Agent(MODEL, ARMS).save(missing)
    assert caught.value.filename == str(missing)


def test_saving_through_a_link_keeps_the_link(tmp_path):
    target, link = tmp_path / "data" / "agent.json", tmp_path / "agent.json"
    target.parent.mkdir()
    link.symlink_to(target)
    for reward in (1.0, 2.0):  # the target is made, then replaced
        agent = Agent(MODEL, ARMS)
        agent.tell(agent.ask(), reward)
        agent.save(link)
        assert link.is_symlink()
        assert target.read_text() == agent.to_json()
    assert [one.name for one in target.parent.iterdir()] == ["agent.json"]
