"""What `advise` says of simulated logs whose drift and seasons are known.

    python benchmarks/advise_log.py --json benchmarks/results/advise_log.json

Drift: three arms, 240 rounds, one arm a round drawn uniformly, noise 0.3; each level is a random
walk. Seasons: four arms, 1150 hours of which an eighth is missing, noise 2.5; levels return to
their means (0.98 per hour), and a daily pattern moves rewards by 10: a sine, or a narrow peak. All
arms share it, or each has it at another hour of the day, or there is none.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np

from driftbandit.advice import log_facts
from driftbandit.identify import Log, Sequence, compare
from driftbandit.identify.findings import drift_of

ROUNDS, ARMS, NOISE = 240, 3, 0.3
STEPS = (0.0, 0.02, 0.05)
DAY, HOURS = 24, 1150
TRUTHS = ("shared sine", "shared peak", "own sine", "own peak", "none")


def drifting(drift: float, seed: int) -> Log:
    """A log whose levels take steps of that standard deviation."""
    rng = np.random.default_rng(seed)
    levels = np.linspace(0.0, 0.3, ARMS) + drift * rng.standard_normal((ROUNDS, ARMS)).cumsum(0)
    paid = levels + NOISE * rng.standard_normal((ROUNDS, ARMS))
    arms = rng.integers(ARMS, size=ROUNDS)
    return Log((Sequence(np.arange(ROUNDS), arms, paid[np.arange(ROUNDS), arms]),), ("a", "b", "c"))


def seasonal(truth: str, seed: int) -> Log:
    """A log of hours with gaps and missing rewards, and one of `TRUTHS` as its daily pattern."""
    rng = np.random.default_rng([seed, 7])
    hours, k = np.arange(HOURS), 4
    steps, level = 0.6 * rng.standard_normal((HOURS, k)), 3 * rng.standard_normal(k)
    paid = np.empty((HOURS, k))
    for hour in hours:
        level = 0.98 * level + steps[hour]
        paid[hour] = np.array([21, 20, 20.5, 19.5]) + level
    shift = rng.uniform(0, DAY, k)
    paid += 2.5 * rng.standard_normal((HOURS, k))
    angles = 2 * np.pi * (hours[:, None] + (shift if truth.startswith("own") else 0 * shift)) / DAY
    if truth.endswith("sine"):
        paid += 5 * np.sin(angles)
    if truth.endswith("peak"):
        paid += 10 * np.exp(4 * (np.cos(angles) - 1))
    kept, arms = rng.random(HOURS) > 1 / 8, rng.integers(k, size=HOURS)
    rewards = paid[hours, arms]
    rewards[rng.random(HOURS) < 0.03] = np.nan
    plays = Sequence(hours[kept], arms[kept], rewards[kept])
    return Log((plays,), ("display", "email", "search", "social"))


def drift_said(log: Log) -> str:
    """The verdict on drift."""
    return drift_of(compare(log)).verdict


def season_said(log: Log) -> str:
    """What is said of the season: "none", "own", "shared" or "cannot tell"; and of the period."""
    found = compare(log)
    periods = {one.period for one in found.chosen.components if one.kind == "season"}  # type: ignore[attr-defined]
    if DAY not in periods:
        return "none" if not periods else "another period"
    own = log_facts.own_pattern(found, DAY).verdict
    return {"yes": "own", "no": "shared"}.get(own, own)


def main() -> None:
    """Print the verdicts, and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=60, help="for each size of the drift")
    parser.add_argument("--seasonal", type=int, default=6, help="for each kind of season")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, dict[str, dict[str, int]]] = {"drift": {}, "seasons": {}}
    for drift in STEPS:
        logs = (drifting(drift, seed) for seed in range(100, 100 + given.logs))
        found["drift"][f"{drift:g}"] = Counter(map(drift_said, logs))
    began = time.process_time()
    for truth in TRUTHS:
        logs = (seasonal(truth, seed) for seed in range(given.seasonal))
        found["seasons"][truth] = Counter(map(season_said, logs))
    each = (time.process_time() - began) / max(given.seasonal * len(TRUTHS), 1)
    for part, rows in found.items():
        for name, counts in rows.items():
            print(f"{part}, {name}: " + ", ".join(f"{k} {n}" for k, n in sorted(counts.items())))
    print(f"CPU time to compare the structures of a log with a season: {each:.0f} s")
    if given.json is not None:
        stored = found | {"CPU seconds per seasonal log": round(each, 1)}
        given.json.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
