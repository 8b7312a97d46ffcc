"""Replay of logs that show one reward per decision: `evaluate`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from driftbandit.policies import Policy
from driftbandit.replays import naming, support, tasks
from driftbandit.replays.decisions import Decisions
from driftbandit.replays.estimates import Shown, earned, shares
from driftbandit.replays.result import ALWAYS, LEADER, LOGGING, Played
from driftbandit.system import Name, label

METHODS = ("ips", "dr", "rejection")
REFERENCES = (LEADER, "random", LOGGING)  # besides every single arm


def evaluate(policies: Mapping[str, Policy], task: tasks.Task[Decisions]) -> tasks.Outcome:
    """Estimate what policies, by label, would have earned."""
    log, k = task.data, len(task.data.names)
    filtered = shown = shown_by(task)
    if task.method == "ips":
        shown = shown._replace(predicted=np.full_like(shown.predicted, task.center))
    played = {}
    for who, policy in policies.items():
        runs = naming.choices(policy, task)
        q = shares(runs, k)
        means = np.array([earned(shares(run[None], k), shown).mean() for run in runs])
        played[who] = _estimated(q, shown)._replace(means=means, shares=q.mean(axis=0))
    single = {}
    for arm, name in enumerate(log.names):
        q = np.broadcast_to(np.eye(k)[arm], filtered.predicted.shape)
        single[always(name)] = _estimated(q, shown)._replace(arm=name)
    leader = log.names[tasks.best_arm(log.wide[: task.first])]
    references = {LEADER: single[always(leader)], **single}
    references["random"] = _estimated(np.full_like(filtered.predicted, 1 / k), shown)
    references[LOGGING] = Played.known(shown.rewards)
    rows = {who: (own.counted, own.unsupported) for who, own in played.items()}
    notes = tuple(support.doubts(rows, shown, log))
    feedback = naming.least_chance(log) if task.method == "rejection" else None
    return tasks.Outcome(played, references, filtered.predicted, shown, notes, feedback)


def shown_by(task: tasks.Task[Decisions]) -> Shown:
    """The decisions that count, with the predictions of a filter that sees the whole log."""
    log, counts = task.data, task.counts
    return Shown(log.arms[counts], log.rewards[counts], log.chances[counts], task.predicted)


def always(arm: Name) -> str:
    """The name of the reference strategy that always plays an arm.

    Example:
        >>> always("left"), always(7)
        ('always left', 'always 7')
    """
    return ALWAYS + label(arm)


def _estimated(named: np.ndarray, shown: Shown) -> Played:
    """What arms named with these shares, n × k, would have earned."""
    lost = support.unsupported(named, shown)
    return Played(earned(named, shown), shown.of_played(named), unsupported=lost)
