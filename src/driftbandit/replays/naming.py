"""Which arms a policy names in the rounds of a log, and what it learns from.

Either it learns from every reward of the log, whoever chose the arm. Or, by rejection, only where
its own choice is the logged arm (Li et al. 2011). If the log drew that arm with chance p, the round
is accepted with probability p_min/p, so that every choice gets its reward with the same chance
p_min. Without this thinning the policy would mostly see what the log preferred.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.agent.ledger import advanced
from driftbandit.policies import Policy, Problem
from driftbandit.replays.decisions import Decisions
from driftbandit.replays.tasks import Task, begins


def online(
    policies: Mapping[str, Policy], baseline: str | None
) -> tuple[dict[str, Policy], list[str]]:
    """The policies, by label, that can play arms that contexts change; notes on the others."""
    able = {who: own for who, own in policies.items() if own.actions.contexts == "online"}
    unable = [who for who in policies if who not in able]
    said = f"{', '.join(unable)} cannot play arms that contexts change"
    if baseline in unable or not able:
        argument = "baseline" if able else "policies"
        raise errors.InvalidInput(argument, said, "name others, or leave the regression out")
    return able, [f"Left out: {said}."] if unable else []


def choices(policy: Policy, task: Task[Decisions]) -> np.ndarray:
    """The arms that a policy names in the decisions that count, runs × n.

    If it learns from every reward, runs differ in random numbers alone, and go over the log once.
    """
    starts = begins(policy, task.method, task.first, task.warm, task.runs)
    passes = [_one_pass(policy, task, begin, run) for run, begin in enumerate(starts)]
    return np.concatenate(passes)[:, task.counts[task.first :]]


def _one_pass(policy: Policy, task: Task[Decisions], begin: int, number: int) -> np.ndarray:
    """The arms named from decision ``task.first`` on; the policy begins with an earlier one."""
    log, rejects = task.data, task.method == "rejection"
    rng = np.random.default_rng(task.seed + number)
    runs = 1 if policy.noise is None or rejects else task.runs
    named = np.empty((runs, len(log) - task.first), np.int64)
    accepted = np.ones(len(log) - begin, bool)
    if rejects:  # a comparison with NaN is false: a decision of unknown chance is never accepted
        accepted = rng.random(len(accepted)) * log.chances[begin:] < least_chance(log)
    changing = task.arms.ndim == 3
    arms = task.arms[begin] if changing else task.arms
    span = int(log.times[-1] - log.times[begin]) + 1
    rows = arms[:, None] if changing else arms  # as `simulate` gives them
    constants, state = policy.prepare(task.model, rows, max(span, len(accepted)))
    problem = Problem(task.model, arms, constants)
    observe = policy.agent.observe or policy.update
    columns = log.waits, log.arms, log.rewards - task.center
    plays = zip(*(column[begin:].tolist() for column in columns), accepted, strict=True)
    for t, (wait, arm, reward, learns) in enumerate(plays, start=begin):
        if t > begin:
            state = advanced(policy, problem, state, wait)
        if changing:
            problem = problem._replace(arms=task.arms[t])
        if t >= task.first or rejects:
            chosen = [_chosen(policy, state, problem, rng) for _ in range(runs)]
            learns = learns and (chosen[0] == arm or not rejects)
            if t >= task.first:
                named[:, t - task.first] = chosen
        if learns:
            state = observe(state, problem, arm, reward)
        task.tick()
    return named


def _chosen(policy: Policy, state: Any, problem: Problem, rng: np.random.Generator) -> int:
    """The arm that a policy names."""
    drawn = None
    if (noise := policy.noise) is not None:
        draw = rng.random if noise.distribution == "uniform" else rng.standard_normal
        drawn = draw(noise.shape(*reversed(problem.arms.shape)))
    place, last = int(policy.choose(state, problem, drawn)), len(problem.arms) - 1
    return errors.whole_number(place, f"arm of policy {policy.name!r}", low=0, high=last)


def least_chance(decisions: Decisions) -> float:
    """p_min: the smallest chance in the log."""
    return float(np.nanmin(decisions.chances))
