"""What an agent does when something goes wrong: nothing is lost, nothing is half done."""

import dataclasses
import logging
import os
import stat

import numpy as np
import pytest

from driftbandit import LGDS, Agent, InvalidInput, Refit, policies
from driftbandit.io.atomic import write_whole

MODEL = LGDS([[0.9, 0.1], [0.0, 0.8]], np.eye(2), 0.5)
OTHER = LGDS([[0.7, 0.0], [0.1, 0.6]], np.eye(2), 0.7)
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
        return plain.agent.observe(belief, problem, arm, reward)

    agent = Agent(
        MODEL,
        ARMS,
        dataclasses.replace(plain, name="picky", agent=plain.agent._replace(observe=picky)),
    )
    decision = agent.ask()
    state = agent.state
    for _ in range(2):
        with pytest.raises(RuntimeError, match="too much"):
            agent.tell(decision, 9.0)
    np.testing.assert_array_equal(agent.state.cov, state.cov)
    assert agent.tell(decision, 1.0) == "learned"
    assert (agent.state.cov != state.cov).any()


def test_a_late_reward_that_the_policy_rejects_is_not_kept():
    """Nor one that only the states after it make impossible: that is said once."""
    plain = policies.make("idea")

    def picky(belief, problem, arm, reward):
        if reward > 5:
            raise RuntimeError("too much")
        if belief.mean[0] > 2 and reward < 0:
            raise RuntimeError("too far")
        return plain.agent.observe(belief, problem, arm, reward)

    agent = Agent(
        MODEL,
        ARMS,
        dataclasses.replace(plain, name="picky", agent=plain.agent._replace(observe=picky)),
    )
    first, second, third = (agent.ask(arms=[0]) for _ in range(3))
    agent.tell(third, 1.0)
    state = agent.state
    with pytest.raises(RuntimeError, match="too much"):
        agent.tell(second, 9.0)
    np.testing.assert_array_equal(agent.state.cov, state.cov)
    agent.tell(second, -0.1)
    state = agent.state
    assert agent.tell(first, 4.9) == "learned"
    with pytest.raises(InvalidInput, match=r"reward: told late for decision 0 .*too far"):
        agent.ask()
    np.testing.assert_array_equal(agent.state.cov, state.cov)
    assert agent.tell(first, 0.1) == "learned"
    assert agent.ask().round == 3


def test_many_late_rewards_are_computed_once():
    """One fold each to try them, and one for all entries when the state is needed."""
    plain, folds = policies.make("idea"), []

    def counted(belief, problem, arm, reward):
        folds.append(reward)
        return plain.agent.observe(belief, problem, arm, reward)

    agent = Agent(
        MODEL,
        ARMS,
        dataclasses.replace(plain, name="counted", agent=plain.agent._replace(observe=counted)),
    )
    decisions = [agent.ask() for _ in range(50)]
    for decision in decisions:
        agent.tell(decision, 0.5)
    agent.ask()
    assert len(folds) == 100


def failing(plain="idea"):
    """A policy that fails when it is told to."""
    plain, troubles = policies.make(plain), []

    def scores(belief, problem):
        if troubles:
            raise RuntimeError(troubles.pop())
        return plain.scores(belief, problem)

    own = dataclasses.replace(
        plain,
        name="failing",
        choose=policies.highest(scores),
        actions=policies.ActionAbilities(),
    )
    return own, troubles


ASKS = [lambda a: a.ask(round=100), lambda a: a.ask_many(2, round=100)]


@pytest.mark.parametrize("ask", ASKS, ids=["one", "many"])
@pytest.mark.parametrize(
    "refit", [None, Refit(after=2, background=False, check=False)], ids=["not", "refit"]
)
def test_a_failed_ask_changes_nothing(ask, refit, monkeypatch):
    """Open decisions can still be told; a refit that came first is as if it had not been."""
    from driftbandit.agent import refitting

    monkeypatch.setattr(refitting, "learned", lambda entries, arms, *_: (OTHER, arms))
    own, troubles = failing()
    agent = Agent(MODEL, ARMS, own, window=5, refit=refit)
    agent.tell(agent.ask(), 1.0)
    agent.tell(agent.ask(), 1.0)
    waiting = agent.ask()
    before = agent.to_json()
    troubles.append("no score")
    with pytest.raises(RuntimeError, match="no score"):
        ask(agent)
    assert agent.to_json() == before
    assert agent.model is MODEL
    assert agent.tell(waiting, 1.0) == "learned"
    ask(agent)
    assert agent.model is (MODEL if refit is None else OTHER)


def test_time_begins_with_the_first_question():
    """As it does with a log: the doubt of a random walk does not grow from 1970 on."""
    walk, then = LGDS(np.eye(2), 0.01 * np.eye(2), 0.5, np.eye(2)), 1_700_000_000
    for first in (lambda a: a.ask(arms=[0], round=then), lambda a: a.ask_many(1, [0], round=then)):
        agent, other = Agent(walk, ARMS), Agent(walk, ARMS)
        first(agent)
        agent.tell(0, 1.0)
        other.tell_log([(then, 0, 1.0)])
        np.testing.assert_array_equal(agent.state.cov, other.state.cov)
        assert agent.ask(round=then).uncertainty < 2.0
        back = Agent.from_json(agent.to_json())
        for one in (agent, back):
            assert one.tell_play(1, 0.5, round=then - 3) == "learned"
            one.replace_model(MODEL)
        assert back.to_json() == agent.to_json()
    own, troubles = failing()
    agent = Agent(walk, ARMS, own)
    troubles.append("no score")
    with pytest.raises(RuntimeError, match="no score"):
        agent.ask(round=then)
    agent.tell(agent.ask(round=0), 1.0)
    assert agent._history.base == 0


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

    def noted(entries, arms, options, start):
        seen.append(start)
        return MODEL, arms

    monkeypatch.setattr(refitting, "learned", noted)
    for model in (MODEL, None):
        agent = Agent(model, ARMS, window=0, refit=Refit(background=False, after=3, check=False))
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


def test_only_plain_files_are_replaced(tmp_path):
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(OSError, match="Not a plain file") as caught:
            Agent(MODEL, ARMS).save(path)
        assert caught.value.filename == str(path)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(IsADirectoryError):
        write_whole(folder, b"")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "link", "pipe"]


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
