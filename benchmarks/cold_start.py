"""An agent that knows only the arms, compared with baselines that need no model.

    python benchmarks/cold_start.py [--systems 20]

All five families, d = k = 10, raw arms. These policies see the same states and noise: IDEA with a
model learned online (`Refit`), SW-UCB and D-LinUCB (which are given the true scale of the rewards,
as in `simulate`), IDEA with the true model, and random play. Regret per round in rounds 500 to
2000; differences are paired by system. Prints a table and stores
benchmarks/results/cold_start.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np

import driftbandit as db
from driftbandit.model import factor

ROUNDS, FIRST = 2000, 500
RIVALS = (
    "sliding_window_ucb",
    "discounted_linucb",
    "discounted_linucb(gamma=0.98)",
    "random",
)
LEARNS, KNOWS = "learns its model", "knows the model"


def path_of(model, arms, rng):
    """Expected and observed rewards of every arm in every round."""
    z = factor(model.stationary_cov()) @ rng.standard_normal(model.n_states)
    root = factor(model.process_cov)
    expected = np.empty((ROUNDS, len(arms)))
    for t in range(ROUNDS):
        expected[t] = arms @ z
        z = model.transition @ z + root @ rng.standard_normal(model.n_states)
    return expected, expected + model.reward_std * rng.standard_normal(expected.shape)


def one(task):
    """Mean regret per round of every policy on one system."""
    family, number, options = task
    model, arms = db.families.sample(family, n_states=10, n_arms=10, seed=99, first=number)[0]
    expected, rewards = path_of(model, arms, np.random.default_rng([99, number]))
    agents = {
        LEARNS: db.Agent(
            None, arms, "idea", rounds=ROUNDS, window=0, refit=db.Refit(background=False, **options)
        ),
        KNOWS: db.Agent(model, arms, "idea", rounds=ROUNDS, window=0),
    } | {name: db.Agent(model, arms, name, rounds=ROUNDS, window=0) for name in RIVALS}
    row, clock = {"family": family, "system": number}, time.perf_counter()
    for name, agent in agents.items():
        played = np.empty(ROUNDS, int)
        for t in range(ROUNDS):
            decision = agent.ask()
            agent.tell(decision, rewards[t, decision.arm])
            played[t] = decision.arm
        lost = expected.max(axis=1) - expected[np.arange(ROUNDS), played]
        row[name] = float(lost[FIRST:].mean())
        row[f"{name}, first rounds"] = float(lost[:FIRST].mean())
        if name == LEARNS:
            row["seconds"] = time.perf_counter() - clock
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--systems", type=int, default=20, help="per family")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--refit", type=json.loads, default={}, help="arguments of Refit, as JSON")
    given = parser.parse_args()
    tasks = [
        (family, number, given.refit)
        for number in range(given.systems)
        for family in db.families.FAMILIES
    ]
    clock, rows = time.perf_counter(), []
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for row in pool.imap_unordered(one, tasks):
            rows.append(row)
            left = (time.perf_counter() - clock) / len(rows) * (len(tasks) - len(rows))
            print(f"\r{len(rows)}/{len(tasks)} systems, {left / 60:.1f} min left ", end="")
    print()
    table = {}
    for family in db.families.FAMILIES:
        here = sorted((row for row in rows if row["family"] == family), key=lambda r: r["system"])
        table[family] = summary(here)
        print(family)
        for name, figures in table[family].items():
            print(f"  {name:20}", "  ".join(f"{key} {value}" for key, value in figures.items()))
    print("learning agent, median seconds:", np.median([row["seconds"] for row in rows]))
    path = Path(__file__).parent / "results" / "cold_start.json"
    about = {"systems": given.systems, "rounds": [FIRST, ROUNDS], "refit": given.refit}
    path.write_text(json.dumps(about | {"table": table, "rows": rows}, indent=1) + "\n")


def summary(rows):
    """Mean regret relative to random play, and the paired difference from the learning agent."""
    unit = np.array([row["random"] for row in rows])
    ours = np.array([row[LEARNS] for row in rows]) / unit
    found = {}
    for name in (LEARNS, KNOWS, *RIVALS):
        values = np.array([row[name] for row in rows]) / unit
        apart = values - ours
        # Bootstrap over systems for the mean paired difference.
        rng = np.random.default_rng(0)
        means = apart[rng.integers(len(apart), size=(10_000, len(apart)))].mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        found[name] = {
            "of random": round(float(values.mean()), 4),
            "more than learning": [round(float(x), 4) for x in (apart.mean(), low, high)],
            "lost to learning": f"{int((apart > 0).sum())}/{len(apart)}",
        }
    return found


if __name__ == "__main__":
    main()
