"""How the policies' regret depends on the memory of the state: ten independent arms.

    python benchmarks/memory.py [--runs 64]

Each arm reads a state of its own, an AR(1) process with variance 1 and autocorrelation ρ; σ = 1.
Regret per round over 20 memories 1/(1 − ρ), at least 2000 rounds; runs are paired: all policies see
the same states and noise. Prints a table and stores benchmarks/results/memory.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import driftbandit as db

ARMS = 10
MEMORIES = (0.5, 0.9, 0.97, 0.99, 0.997, 0.999)
POLICIES = ("idea", "lookahead", "information_directed", "kalman_ucb", "kode", "thompson")


def figures(values, ours):
    """Mean and standard error per round, and the ratio to IDEA's with its standard error."""
    runs, ratio = len(values), values.mean() / ours.mean()
    error = np.std(values - ratio * ours, ddof=1) / np.sqrt(runs) / ours.mean()
    own = np.std(values, ddof=1) / np.sqrt(runs)
    return [round(float(number), 4) for number in (values.mean(), own, ratio, error)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=64)
    given = parser.parse_args()
    table = []
    for rho in MEMORIES:
        rounds = max(2000, round(20 / (1 - rho)))
        eye = np.eye(ARMS)
        system = db.System(db.LGDS(rho * eye, (1 - rho**2) * eye, 1.0), eye)
        result = db.simulate(system, policies=list(POLICIES), rounds=rounds, runs=given.runs)
        ours = result.regret["idea"] / rounds
        row = {"rho": rho, "rounds": rounds}
        row |= {name: figures(result.regret[name] / rounds, ours) for name in POLICIES}
        table.append(row)
        print(json.dumps(row), flush=True)
    path = Path(__file__).parent / "results" / "memory.json"
    path.write_text(json.dumps({"runs": given.runs, "arms": ARMS, "table": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
