"""The least possible regret on independent arms, and how much more the Whittle index has.

    python benchmarks/least_regret.py [--runs 64]

k arms; each reads a state of its own, an AR(1) process with variance 1 and autocorrelation ρ; the
noise of a reward has standard deviation σ. For every (ρ, σ, k): the proven lower bound on regret
per round (`theory.least_regret`), and the Kalman Oracle's regret, which sees all rewards. Where
both are equal, the bound does not count what it costs to see only one reward. For k = 10: regret
per round of `whittle` in runs of 20/(1 − ρ) rounds and at least 2000, with its standard error.
Prints a table and stores benchmarks/results/least_regret.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import driftbandit as db
from driftbandit.priced_arm import steady_scale
from driftbandit.simulation import Options
from driftbandit.theory.independence import expected_max, least_regret

DECAYS = (0.5, 0.9, 0.97, 0.99, 0.997, 0.999)
NOISES = (0.3, 1.0, 3.0, 6.0)
ARMS = (2, 5, 10, 30)
PLAYED = 10  # arms of the simulations


def system_of(decay: float, noise: float, arms: int) -> db.System:
    """Arms of variance one."""
    eye = np.eye(arms)
    return db.System(db.LGDS(decay * eye, (1 - decay**2) * eye, noise), eye)


def whittle_regret(system: db.System, decay: float, runs: int) -> dict[str, float]:
    """Mean regret per round and its standard error."""
    rounds = max(2000, round(20 / (1 - decay)))
    options = Options(checkpoints=1)
    result = db.simulate(system, policies=["whittle"], rounds=rounds, runs=runs, options=options)
    found = result.regret["whittle"] / rounds
    error = float(found.std(ddof=1) / np.sqrt(runs))
    prepare = round(result.timing.prepare, 2)
    return {"whittle": float(found.mean()), "± s.e.": error, "table seconds": prepare}


def main() -> None:
    """Compute, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    rows = []
    for decay in DECAYS:
        for noise in NOISES:
            for arms in ARMS:
                system = system_of(decay, noise, arms)
                start = time.perf_counter()
                ones, zeros = np.ones(arms), np.zeros(arms)
                oracle = expected_max(zeros, ones * (1 - steady_scale(decay, noise)))
                least = least_regret(system).value
                row = {"rho": decay, "sigma": noise, "arms": arms, "least": least, "oracle": oracle}
                row["seconds"] = round(time.perf_counter() - start, 2)
                if arms == PLAYED:
                    row |= whittle_regret(system, decay, given.runs)
                    row["above, %"] = 100 * (row["whittle"] / least - 1)
                rows.append({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()})
                print(json.dumps(rows[-1]), flush=True)
    path = given.json / "least_regret.json" if given.json.is_dir() else given.json
    path.write_text(json.dumps({"runs": given.runs, "table": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
