"""Agents that know nothing but their arms' names, on clicks whose rates drift.

    python benchmarks/clicks.py [--runs 8]

Rates between 5 and 60%; each is a logistic function of an AR(1) process of its own, with a memory
of 30 to 1000 rounds, or does not drift. 3000 plays. Agents learn a model online (`Refit`): the
default, which is level(arm), or a free transition matrix, the default of version 0.2. Earned, as a
share of what is possible: 0 is random play, 1 the best arm of every round. All see the same rates
and clicks. Prints a table and stores benchmarks/results/clicks.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import driftbandit as db

ROUNDS = 3000
SETTINGS = [(30, 5), (100, 5), (300, 5), (1000, 5), (None, 5), (300, 10)]  # memory, arms
STRUCTURES = {"default": None, "free": "free"}


def rates_of(n_arms, memory, rng):
    """The rate of every arm in every round; ``memory`` None: constant."""
    keep = 1.0 if memory is None else np.exp(-1 / memory)
    z, rates = rng.standard_normal(n_arms), np.empty((ROUNDS, n_arms))
    for t in range(ROUNDS):
        rates[t] = 0.05 + 0.55 / (1 + np.exp(-1.5 * z))
        z = keep * z + np.sqrt(1 - keep**2) * rng.standard_normal(n_arms)
    return rates


def earned(structure, rates, clicked):
    """The mean rate of what an agent plays."""
    refit = db.Refit(structure=structure, background=False)
    agent = db.Agent(names=range(rates.shape[1]), refit=refit)
    total = 0.0
    for t, rate in enumerate(rates):
        decision = agent.ask()
        agent.tell(decision, clicked[t, decision.arm])
        total += rate[decision.arm]
    return total / len(rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=8, help="of each setting")
    given = parser.parse_args()
    table = []
    for memory, n_arms in SETTINGS:
        shares = {name: [] for name in STRUCTURES}
        for run in range(given.runs):
            rng = np.random.default_rng([run, memory or 0, n_arms])
            rates = rates_of(n_arms, memory, rng)
            clicked = rng.random(rates.shape) < rates
            low, high = rates.mean(), rates.max(axis=1).mean()
            for name, structure in STRUCTURES.items():
                share = (earned(structure, rates, clicked) - low) / (high - low)
                shares[name].append(float(share))
        row = {"memory": memory, "arms": n_arms}
        for name, values in shares.items():
            error = np.std(values, ddof=1) / np.sqrt(len(values))
            row[name] = [round(float(np.mean(values)), 3), round(float(error), 3)]
        table.append(row)
        print(json.dumps(row), flush=True)
    path = Path(__file__).parent / "results" / "clicks.json"
    path.write_text(
        json.dumps({"runs": given.runs, "rounds": ROUNDS, "table": table}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
