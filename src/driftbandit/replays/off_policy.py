"""Replay of logs that show one reward per decision: `evaluate`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from driftbandit.policies import Policy
from driftbandit.replays import learning, naming, support
from driftbandit.replays.decisions import Decisions
from driftbandit.replays.estimates import Shown, earned, shares
from driftbandit.replays.result import ALWAYS, LEADER, LOGGING, Played
from driftbandit.system import Name, label

METHODS = ("ips", "dr", "rejection")
REFERENCES = (LEADER, "random", LOGGING)  # besides every single arm


def evaluate(policies: Mapping[str, Policy], task: learning.Task[Decisions]) -> learning.Outcome:
    """Estimate what policies, by label, would have earned."""
    log, k = task.data, len(task.data.names)
    filtered = shown = shown_by(task)
    if task.method == "ips":
        shown = shown._replace(predicted=np.full_like(shown.predicted, task.center))
    played, named = {}, {}
    for who, policy in policies.items():
        runs = naming.choices(policy, task)
        q = named[who] = shares(runs, k)
        means = np.array([earned(shares(run[None], k), shown).mean() for run in runs])
        played[who] = _estimated(q, shown)._replace(means=means, shares=q.mean(axis=0))
    fixed = {LEADER: learning.best_arm(log.wide[: task.first])}
    fixed |= {always(name): arm for arm, name in enumerate(log.names)}
    references = {}
    for who, arm in fixed.items():
        q = np.broadcast_to(np.eye(k)[arm], filtered.predicted.shape)
        references[who] = _estimated(q, shown)._replace(arm=log.names[arm])
    references["random"] = _estimated(np.full_like(filtered.predicted, 1 / k), shown)
    references[LOGGING] = Played.known(shown.rewards)
    notes = tuple(support.doubts(named, shown, log))
    return learning.Outcome(played, references, filtered.predicted, shown, notes)


def shown_by(task: learning.Task[Decisions]) -> Shown:
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
