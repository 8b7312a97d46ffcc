"""Rows of a replay that a log cannot tell: verdicts and coverage with and without the rule.

    python benchmarks/replay_support.py --json benchmarks/results/replay_support.json

Rewards of all arms are simulated, so what every arm would have paid in the rounds of a log is
known. Each log is replayed with `db.replay`. The rows ``always X`` are looked at twice: as they
are, and with the interval and the verdict that the normal formula gives every row, whatever the log
shows of it. An interval misses if what the arm would have paid in these rounds is outside; a
verdict is wrong if it has the wrong sign.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

import driftbandit as db
from driftbandit import statistics
from driftbandit.replays import Replay, estimates
from driftbandit.replays.result import LOGGING

FAST = {"n_states": 1, "starts": 1, "iterations": 20, "runs": 1}
Draw = Callable[[np.random.Generator, int, int], np.ndarray]  # rewards of all arms, rounds × arms


class Setting(NamedTuple):
    """Logs of one kind."""

    title: str
    rewards: Draw
    play: str  # "greedy", "turns", "uniform", "uneven" or "mostly"
    arms: int
    rounds: int
    logs: int


def waves(rng: np.random.Generator, rounds: int, arms: int) -> np.ndarray:
    """Levels that drift with speeds of their own, and noise."""
    decay, state = rng.uniform(0.9, 0.995, arms), rng.normal(size=arms)
    means, offsets = np.empty((rounds, arms)), 0.3 * rng.normal(size=arms)
    for t in range(rounds):
        means[t] = offsets + state
        state = decay * state + np.sqrt(1 - decay**2) * rng.normal(size=arms)
    return means + 0.5 * rng.normal(size=(rounds, arms))


def clicks(share: float) -> Draw:
    """One with that chance, else zero."""
    return lambda rng, rounds, arms: (rng.random((rounds, arms)) < share).astype(float)


def several(rng: np.random.Generator, rounds: int, arms: int) -> np.ndarray:
    """Clicks of arms whose shares differ, from 0.2% to 32%."""
    return (rng.random((rounds, arms)) < 10 ** rng.uniform(-2.7, -0.5, arms)).astype(float)


def seasonal(rng: np.random.Generator, rounds: int, arms: int) -> np.ndarray:
    """Clicks whose share swings between 0 and 8%, each arm at its own time."""
    turns = np.arange(rounds)[:, None] / 500 + rng.random(arms)
    return (rng.random((rounds, arms)) < 0.04 * (1 + np.sin(2 * np.pi * turns))).astype(float)


def amounts(rng: np.random.Generator, rounds: int, arms: int) -> np.ndarray:
    """Nothing in 90% of the rounds, else an amount with a long tail."""
    return (rng.random((rounds, arms)) < 0.1) * rng.gamma(0.5, size=(rounds, arms))


def glitches(rng: np.random.Generator, rounds: int, arms: int) -> np.ndarray:
    """Normal rewards, of which one in a hundred has ten times the spread."""
    scale = np.where(rng.random((rounds, arms)) < 0.01, 10.0, 1.0)
    return scale * rng.normal(size=(rounds, arms))


def ratings(rng: np.random.Generator, rounds: int, arms: int) -> np.ndarray:
    """From one to five, most of them five."""
    return rng.choice(5, size=(rounds, arms), p=[0.03, 0.04, 0.08, 0.25, 0.6]) + 1.0


SETTINGS = (
    # Settings of the faults, and of logs that can tell.
    Setting("waves, chances of 1, the arm that pays", waves, "greedy", 3, 1200, 6),
    Setting("waves, chances of 1, one arm after the other", waves, "turns", 4, 1200, 6),
    Setting("clicks 0.5%, uniform", clicks(0.005), "uniform", 34, 10_000, 12),
    Setting("clicks 0.5%, uniform, a long log", clicks(0.005), "uniform", 34, 80_000, 12),
    Setting("waves, uniform", waves, "uniform", 4, 4000, 75),
    Setting("clicks 5%, uniform", clicks(0.05), "uniform", 5, 4000, 60),
    Setting("clicks 30%, uniform", clicks(0.3), "uniform", 5, 4000, 60),
    Setting("clicks 0.2% to 32%, uneven", several, "uneven", 8, 6000, 40),
    Setting("clicks 99%, uniform", clicks(0.99), "uniform", 6, 6000, 50),
    # Kinds of logs on which the rule was compared with no other.
    Setting("clicks 0 to 8%, mostly one arm", seasonal, "mostly", 5, 10_000, 60),
    Setting("amounts, uniform", amounts, "uniform", 5, 6000, 60),
    Setting("glitches, uneven", glitches, "uneven", 5, 6000, 60),
    Setting("ratings, mostly one arm", ratings, "mostly", 4, 6000, 75),
    Setting("waves, uneven", waves, "uneven", 6, 6000, 50),
)


def plays(kind: str, rewards: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The arms of a log, and their chances."""
    rounds, k = rewards.shape
    level, arms, chances = np.zeros(k), np.empty(rounds, np.int64), np.empty(rounds)
    uneven = np.arange(1, k + 1) ** 1.5
    for t in range(rounds):
        if kind in ("greedy", "turns"):
            arm = int(level.argmax()) if kind == "greedy" and t >= k else t % k
            p = np.eye(k)[arm]
        else:
            p = np.full(k, 1 / k) if kind == "uniform" else uneven / uneven.sum()
            if kind == "mostly":  # in 50 rounds one arm, then the next
                p = np.full(k, 0.2 / k)
                p[t // 50 % k] += 0.8
            arm = int(rng.choice(k, p=p))
        arms[t], chances[t] = arm, p[arm]
        level[arm] += 0.1 * (rewards[t, arm] - level[arm])
    return arms, chances


def one_log(task: tuple[int, int]) -> np.ndarray:
    """For every arm: trusted, misses before and after, verdict before and after, and if wrong."""
    number, seed = task
    setting = SETTINGS[number]
    rng = np.random.default_rng([number, seed])
    rewards = setting.rewards(rng, setting.rounds, setting.arms)
    arms, chances = plays(setting.play, rewards, rng)
    paid = rewards[np.arange(len(arms)), arms]
    log = {"round": np.arange(len(arms)), "arm": arms, "reward": paid, "chance": chances}
    result = db.replay(log, ["ucb"], seed=seed, **FAST)
    truth, known = rewards[result.rounds].mean(axis=0), result.mean(LOGGING)
    rows = []
    for row in result.rows():
        if not row.label.startswith("always"):
            continue
        true = truth[int(str(row.arm))]
        low, high, verdict = normal(result, row.label)
        outcome = [float(row.trusted), missed(low, high, true), missed(row.low, row.high, true)]
        for said in (verdict, row.verdict):
            clear = said in (statistics.BETTER, statistics.WORSE)
            outcome += [
                float(clear),
                float(clear and (said == statistics.BETTER) != (true > known)),
            ]
        rows.append(outcome)
    return np.array(rows)


def normal(result: Replay, label: str) -> tuple[float, float, str]:
    """The interval and the verdict that the normal formula gives any row that was ever played."""
    row, shown = result.references[label], result.shown
    assert shown is not None
    if not row.counted.any():
        return np.nan, np.nan, statistics.TOO_FEW
    spread = estimates.variances(row.counted, shown)
    ends = estimates.interval(float(row.earned.mean()), spread, 0.95)
    low, high = (end - result.mean(LOGGING) for end in ends)
    size = estimates.effective(row.counted, shown)
    return *ends, statistics.verdict(-high, -low, size)


def missed(low: float, high: float, true: float) -> float:
    """Whether the truth is outside, up to rounding; NaN if there is no interval."""
    slack = 1e-9 * max(1.0, abs(true))
    return np.nan if np.isnan(low) else float(not low - slack <= true <= high + slack)


def summary(rows: np.ndarray) -> dict[str, float]:
    """Counts over all rows of a setting."""
    before, after = rows[:, 1], rows[:, 2]
    names = ["verdicts_before", "wrong_before", "verdicts", "wrong"]
    counts = dict(zip(names, rows[:, 3:].sum(axis=0).tolist(), strict=True))
    return {
        "rows": len(rows),
        "trusted": int(rows[:, 0].sum()),
        "missed_before": float(np.nanmean(before)),
        "missed": float(np.nanmean(after)) if np.isfinite(after).any() else np.nan,
    } | {name: int(count) for name, count in counts.items()}


def main() -> None:
    """Replay all logs and print the counts of every setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--logs", type=int, default=10**6, help="at most, of each setting")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    begin, found = time.perf_counter(), {}
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for number, setting in enumerate(SETTINGS):
            tasks = [(number, seed) for seed in range(min(setting.logs, options.logs))]
            rows = np.concatenate(pool.map(one_log, tasks, chunksize=2))
            found[setting.title] = figures = summary(rows)
            seconds = time.perf_counter() - begin
            print(f"{setting.title:46}", figures, f"{seconds:.0f} s", flush=True)
    if options.json:
        stored = {
            "python": platform.python_version(),
            "packages": {name: metadata.version(name) for name in ("driftbandit", "numpy")},
            "settings": {
                setting.title: {
                    "arms": setting.arms,
                    "rounds": setting.rounds,
                    "logs": setting.logs,
                }
                for setting in SETTINGS
            },
            "cases": {
                title: {key: None if value != value else value for key, value in figures.items()}
                for title, figures in found.items()
            },
        }
        options.json.write_text(json.dumps(stored, indent=2) + "\n")


if __name__ == "__main__":
    main()
