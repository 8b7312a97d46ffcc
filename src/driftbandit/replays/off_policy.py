"""Replay of logs that show one reward per decision: `play_log`, and `evaluate` for one model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from driftbandit.model import LGDS
from driftbandit.policies import Policy
from driftbandit.replays import learning, naming, support
from driftbandit.replays.decisions import Decisions
from driftbandit.replays.estimates import Shown, earned, shares
from driftbandit.replays.result import ALWAYS, LEADER, LOGGING, Played
from driftbandit.system import Name, label

METHODS = ("ips", "dr", "rejection")
REFERENCES = (LEADER, "random", LOGGING)  # besides every single arm


class Task(NamedTuple):
    """A log, the decision from which on rewards count, and how policies play it."""

    decisions: Decisions
    first: int
    model: LGDS  # of rewards minus ``center``
    arms: np.ndarray  # k × d; if contexts change them, those of each decision, n × k × d
    center: float  # mean of the training rewards
    method: str = "dr"  # as in `replay`, like all that follow
    warm: bool = True
    runs: int = 10
    seed: int = 0
    tick: Callable[[], None] = lambda: None  # called after every decision of every run

    @property
    def filtered(self) -> Shown:
        """The decisions that count, with the predictions of a filter that sees the whole log."""
        log = self.decisions
        wide = log.wide(self.center)
        predicted = self.center + learning.predictions(self.model, self.arms, wide, log.waits)
        rows = np.flatnonzero(self.counts)
        return Shown(*(part[rows] for part in (log.arms, log.rewards, log.chances, predicted)))

    @property
    def counts(self) -> np.ndarray:
        """Which decisions count: those of the test part whose chance is known."""
        test = np.arange(len(self.decisions)) >= self.first
        return np.asarray(test & np.isfinite(self.decisions.chances))


def _passes(method: str, runs: int) -> int:
    """How often a policy goes over the log: if it follows, all runs see the same rewards."""
    return runs if method == "rejection" else 1


def choices(policy: Policy, task: Task) -> np.ndarray:
    """The arms that a policy names in the decisions that count, runs × n."""
    log, found = task.decisions, []
    centered = dataclasses.replace(log, rewards=log.rewards - task.center)
    for run, begin in enumerate(
        learning.begins(task.first, task.warm, _passes(task.method, task.runs))
    ):
        part, first = centered.since(begin), task.first - begin
        arms = task.arms if task.arms.ndim == 2 else task.arms[begin:]
        who = naming.player(policy, task.model, arms, part)
        least = naming.least_chance(log) if task.method == "rejection" else None
        runs = 1 if policy.noise is None or least is not None else task.runs
        found.append(naming.named(who, part, first, runs, task.seed + run, task.tick, least))
    return np.concatenate(found)[:, task.counts[task.first :]]


class Evaluated(NamedTuple):
    """Policies and reference strategies on the decisions that count."""

    played: Mapping[str, Played]
    references: Mapping[str, Played]
    shown: Shown  # with the predictions m of the method
    filtered: Shown  # with the predictions of the filter
    notes: tuple[str, ...]


def evaluate(policies: Mapping[str, Policy], task: Task) -> Evaluated:
    """Estimate what policies, by label, would have earned."""
    log = task.decisions
    shown = filtered = task.filtered
    if task.method == "ips":
        shown = shown._replace(predicted=np.full_like(shown.predicted, task.center))
    k, played, named = len(log.names), {}, {}
    for who, policy in policies.items():
        chosen = choices(policy, task)
        q = named[who] = shares(chosen, k)
        means = np.array([earned(shares(run[None], k), shown).mean() for run in chosen])
        lost = support.unsupported(q, shown)
        played[who] = Played(earned(q, shown), shown.of_played(q), means, q.mean(axis=0), lost)
    references = dict(_references(shown, task))
    notes = tuple(support.doubts(named, shown, log))
    return Evaluated(played, references, shown, filtered, notes)


def always(arm: Name) -> str:
    """The name of the reference strategy that always plays an arm.

    Example:
        >>> always("left"), always(7)
        ('always left', 'always 7')
    """
    return ALWAYS + label(arm)


def _references(shown: Shown, task: Task) -> Iterator[tuple[str, Played]]:
    n, k = shown.predicted.shape
    names = task.decisions.names
    leader = learning.best_arm(task.decisions.wide()[: task.first])
    fixed = {LEADER: leader} | {always(name): arm for arm, name in enumerate(names)}
    for who, arm in fixed.items():
        q = np.zeros((n, k))
        q[:, arm] = 1
        yield who, _reference(q, shown, names[arm])
    yield "random", _reference(np.full((n, k), 1 / k), shown)
    yield LOGGING, Played(shown.rewards, np.ones(n))


def _reference(named: np.ndarray, shown: Shown, arm: Name | None = None) -> Played:
    lost = support.unsupported(named, shown)
    return Played(earned(named, shown), shown.of_played(named), unsupported=lost, arm=arm)


def play_log(
    decisions: Decisions,
    first: int,
    policies: Mapping[str, Policy],
    settings: learning.Settings,
    method: str,
    chances: str | None,
    baseline: str | None,
) -> learning.Outcome:
    """Learn the model from the decisions before ``first``, then evaluate policies on the rest.

    The other arguments are as in `replay`, checked; policies are by label.
    """
    center = float(decisions.rewards[:first].mean())
    starts = learning.begins(first, settings.warm, _passes(method, settings.runs))
    length = sum(len(decisions) - begin for begin in starts)
    meter = learning.Meter(settings.progress, len(policies) * length)
    data = decisions.log(first, center), decisions.features, center, settings, meter
    model, arms, fit = learning.learned(*data, decisions.contexts)
    notes: list[str] = []
    if arms.ndim == 3:
        policies, notes = naming.online(policies, baseline)
    how = method, settings.warm, settings.runs, settings.seed, meter.tick
    task = Task(decisions, first, model, arms, center, *how)
    meter.say("play", 0.0)
    done = evaluate(policies, task)
    meter.say("play", 1.0)
    said = support.about_estimated(done.filtered) if chances == "estimated" else ()
    return learning.Outcome(
        fit=fit,
        rounds=decisions.times[task.counts],
        played=done.played,
        references=done.references,
        predicted=done.filtered.predicted,
        rewards=decisions.wide()[task.counts],
        means=learning.training_means(decisions.wide()[:first], center),
        notes=(*notes, *said, *done.notes),
        shown=done.shown,
        feedback=naming.least_chance(decisions) if method == "rejection" else None,
    )
