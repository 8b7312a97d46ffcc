"""Learn an agent's model while it decides: on a snapshot of its log, swapped in when done."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Any

from driftbandit.agent import refitting
from driftbandit.agent.ledger import Entry, refolded
from driftbandit.policies import Problem

if TYPE_CHECKING:
    from driftbandit.agent.core import Core

__all__ = ["RefitTask", "run", "run_scheduled", "start"]

FEW = 100
"""Most rewards to filter while the agent is locked; more are filtered before."""

log = logging.getLogger("driftbandit")


class RefitTask:
    """A refit that is under way: a snapshot of the log, and what was settled since.

    Args:
        agent: the agent; the caller holds its lock.
    """

    def __init__(self, agent: Core) -> None:
        self.entries = list(agent._log)
        """The log to learn from."""
        self.base = self.entries[0].round
        """The round of the new model's prior: a fit counts rounds from the log's first."""
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


def start(agent: Core) -> RefitTask:
    """Start a refit from the present log, and drop one under way. The caller holds the lock."""
    agent._learning = RefitTask(agent)
    return agent._learning


def run_scheduled(agent: Core) -> bool:
    """Run a refit that is due; return whether it is done already. The caller holds the lock."""
    assert agent.refit_options is not None
    task = start(agent)
    if not agent.refit_options.background:
        _run_without_error(agent, task)
        return True
    # Not a daemon: an interpreter that exits while JAX computes may crash, so it waits instead.
    threading.Thread(
        target=_run_without_error, args=(agent, task), name="driftbandit refit", daemon=False
    ).start()
    return False


def _run_without_error(agent: Core, task: RefitTask) -> None:
    with contextlib.suppress(Exception):  # whatever it is, decisions go on with the present model
        run(agent, task, scheduled=True)


def run(agent: Core, task: RefitTask, *, scheduled: bool = False) -> None:
    """Learn the model, filter the log under it, and swap it in unless the task was dropped.

    If it fails and was ``scheduled``, the agent says why, unless the task was dropped meanwhile.
    """
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
                    _swap(agent, problem, state, round_, task.base)
                    return
            state, round_ = refolded(policy, problem, state, round_, more)
    except Exception as error:
        with agent._lock:
            if scheduled and agent._learning is task:
                agent.refit_failure = str(error) or type(error).__name__
                log.warning("the model could not be learned anew: %s", error)
        raise
    finally:
        with agent._lock:
            if agent._learning is task:
                agent._learning = None
                agent._until_refit = options.pause(len(task.entries)) - task.counted
        task.done.set()


def _swap(agent: Core, problem: Problem, state: Any, round: int, base: int) -> None:
    """Go on with the learned model, unless its state is not finite at the agent's round."""
    backup = agent._backup()
    try:
        agent._base = base
        agent._change(problem, state, round)
        agent._check_reach(agent.round)
        agent._ledger.at(agent.round)  # a policy that cannot take the rewards fails here
    except BaseException:
        agent._restore(backup)
        raise
