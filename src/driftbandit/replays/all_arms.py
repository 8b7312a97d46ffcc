"""Replay of tables that show the rewards of all arms: `play`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from driftbandit.agent import Agent
from driftbandit.policies import Policy
from driftbandit.replays import baselines
from driftbandit.replays.data import Table
from driftbandit.replays.result import LEADER, Played
from driftbandit.replays.tasks import Outcome, Task, begins, best_arm, fixed_arm

# A policy may have the name of a baseline; it takes its place.
REFERENCES = ("best_arm", LEADER, "full_information", "per_round_best", "random")


def play(policies: Mapping[str, Policy], task: Task[Table]) -> Outcome:
    """Play a table with policies, by label, which see only the rewards of the arms they play."""
    table, first, counts = task.data, task.first, task.counts
    predicted, rewards = task.predicted, table.rewards[counts]
    played = {}
    for label, policy in policies.items():
        starts = begins(policy, "full", first, task.warm, task.runs)
        runs = [choices(policy, task, begin, number) for number, begin in enumerate(starts)]
        named = np.array(runs)
        paid = _paid(rewards, named)
        shares = np.bincount(named.ravel(), minlength=len(table.names)) / named.size
        played[label] = Played.known(paid.mean(axis=0), means=paid.mean(axis=1), shares=shares)
    fixed = {"best_arm": rewards, LEADER: table.rewards[:first][table.counts[:first]]}
    references = {}
    for name, shown in fixed.items():
        arm = best_arm(shown)
        references[name] = Played.known(fixed_arm(rewards, arm), arm=table.names[arm])
    highest = np.where(np.isfinite(rewards), predicted, -np.inf).argmax(axis=1)
    references["full_information"] = Played.known(_paid(rewards, highest))
    references["per_round_best"] = Played.known(np.nanmax(rewards, axis=1))
    references["random"] = Played.known(np.nanmean(rewards, axis=1))
    parts = (np.s_[:first], np.s_[first:])
    before, after = (baselines.Part(table.rewards[rows], table.times[rows]) for rows in parts)
    for name, (players, setting) in baselines.players(before, task.runs, task.seed).items():
        if name not in policies:
            runs = [baselines.choices(player, after)[counts[first:]] for player in players]
            earned = _paid(rewards, np.array(runs)).mean(axis=0)
            references[name] = Played.known(earned, setting=setting)
    return Outcome(played, references, predicted)


def choices(policy: Policy, task: Task[Table], begin: int, run: int) -> np.ndarray:
    """The arms of the rows that count, if the policy learns from row ``begin`` on."""
    rewards, waits = task.data.rewards[begin:] - task.center, task.data.waits[begin:]
    horizon, seed = int(waits[1:].sum()) + 1, task.seed + run
    agent = Agent(task.model, task.arms, policy, rounds=horizon, seed=seed, window=0)
    arms = np.full(len(rewards), -1)
    for t, row in enumerate(rewards):
        if t and waits[t] > 1:
            agent.advance(int(waits[t]) - 1)  # the previous decision already advanced one round
        offered = np.flatnonzero(np.isfinite(row))
        if offered.size:
            decision = agent.ask(None if len(offered) == len(row) else offered)
            agent.tell(decision, row[decision.arm])
            arms[t] = decision.arm
        else:
            agent.advance()
        task.tick()
    return arms[task.counts[begin:]]


def _paid(rewards: np.ndarray, choices: np.ndarray) -> np.ndarray:
    """What arms paid: rewards are n × k, choices n, or runs × n."""
    return rewards[np.arange(len(rewards)), choices]
