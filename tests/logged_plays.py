"""Logs of one reward per round, drawn from known rewards of all arms."""

import numpy as np

from driftbandit.replays.decisions import Decisions


def logged(rewards, kind, seed=0):
    """Arms drawn uniformly, with uneven chances, or by a greedy rule that follows past rewards."""
    rng = np.random.default_rng([seed, 1])  # not the numbers that the rewards were drawn with
    n, k = rewards.shape
    arms, chances, level = np.empty(n, np.int64), np.empty(n), np.zeros(k)
    for t in range(n):
        p = np.full(k, 1 / k)
        if kind == "uneven":
            p = np.arange(1, k + 1) / (k * (k + 1) / 2)
        elif kind == "adaptive":
            p = np.full(k, 0.3 / k)
            p[level.argmax()] += 0.7
        arms[t] = arm = rng.choice(k, p=p)
        chances[t] = p[arm]
        level[arm] += 0.2 * (rewards[t, arm] - level[arm])
    paid = rewards[np.arange(n), arms]
    return Decisions(np.arange(n), arms, paid, chances, tuple(range(k)))


def columns(log):
    """The same as the columns of a file."""
    return {"round": log.times, "arm": log.arms, "reward": log.rewards, "chance": log.chances}
