"""Learning an agent's model while it decides: on a snapshot of its log, swapped in when done."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from driftbandit.agent import refitting
from driftbandit.agent.ledger import Entry, refolded
from driftbandit.policies import Problem

if TYPE_CHECKING:
    from driftbandit.agent.life import Life

__all__ = ["Learning", "begun", "learn", "scheduled"]

FEW = 100
"""Rewards that are folded in while everybody waits; more are folded in before."""

log = logging.getLogger("driftbandit")


class Learning:
    """A refit that has begun.

    Args:
        agent: whose lock is held.
    """

    def __init__(self, agent: Life) -> None:
        self.entries = list(agent._log)
        """The log to learn from."""
        self.base = agent._first_round()
        """Where the log begins."""
        self.features = agent.features
        self.start = agent.problem.model if agent._learned else None
        self.later: list[Entry] = []
        """What was settled since, and is not in the new state yet."""
        self.counted = 0
        """How many were settled since."""
        self.done = threading.Event()

    def settled(self, told: list[Entry]) -> None:
        """Note what was settled meanwhile."""
        self.later.extend(told)
        self.counted += len(told)


def begun(agent: Life) -> Learning:
    """A refit from the agent's log as it is now, whose lock is held; an older one is dropped."""
    agent._learning = Learning(agent)
    return agent._learning


def scheduled(agent: Life) -> bool:
    """Learn as the schedule says; whether that was done now. The agent's lock is held."""
    assert agent.refit_options is not None
    task = begun(agent)
    if not agent.refit_options.background:
        _without_error(agent, task)
        return True
    # Not a daemon: an interpreter that ends while JAX computes may crash. It waits instead.
    threading.Thread(
        target=_without_error, args=(agent, task), name="driftbandit refit", daemon=False
    ).start()
    return False


def _without_error(agent: Life, task: Learning) -> None:
    try:
        learn(agent, task)
    except Exception as error:  # whatever it is: decisions go on with the model there is
        with agent._lock:
            if agent._learning is None:  # neither dropped nor begun anew
                agent.refit_failure = str(error) or type(error).__name__
        log.warning("the model could not be learned anew: %s", error)


def learn(agent: Life, task: Learning) -> None:
    """Learn the model, fold the log in again, and change the agent, unless the task was dropped."""
    options, policy = agent.refit_options, agent.policy
    assert options is not None
    try:
        model, arms = refitting.learned(
            task.entries, task.features, options, task.start, agent.seed
        )
        constants, state = policy.prepare(model, arms, agent.rounds)
        problem = Problem(model, arms, constants)
        state, round_ = refolded(policy, problem, state, task.base, task.entries)
        while True:
            with agent._lock:
                more, task.later = task.later, []
                if agent._learning is not task:
                    return
                if len(more) <= FEW:
                    state, round_ = refolded(policy, problem, state, round_, more)
                    agent._change(problem, state, round_)
                    return
            state, round_ = refolded(policy, problem, state, round_, more)
    finally:
        with agent._lock:
            if agent._learning is task:
                agent._learning = None
                agent._until_refit = options.pause(len(task.entries)) - task.counted
        task.done.set()
