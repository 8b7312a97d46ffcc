"""A test of Figure 2's claim: does the metric predict which of Kalman-UCB and IDEA is better?

    python benchmarks/prediction.py --device gpu --json benchmarks/results/prediction.json
    python benchmarks/prediction.py --systems 100 --truth 200     # small, on a CPU

For every random system of each family (d = k = 10) there are two kinds of forecast: the policy
whose φ interval has the lower upper end (printed and squared form), and the policy with the lower
mean regret in a simulation of the size that `advise` runs (256 runs × 500 rounds). The ground truth
is a longer simulation with other random numbers (1000 runs × 1000 rounds). It is clear if the mean
difference exceeds three standard errors; on other systems a forecast is a coin flip.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import driftbandit as db
from driftbandit import theory
from driftbandit.advice.facts import sizes
from driftbandit.simulation import Options

POLICIES = ["idea", "kalman_ucb"]
BONUSES = {"idea": db.policies.idea.bonus, "kalman_ucb": db.policies.kalman_ucb.bonus}


def lead(systems: Any, runs: int, rounds: int, seed: int, options: Any) -> np.ndarray:
    """Regret of Kalman-UCB minus regret of IDEA, systems × runs."""
    played = db.simulate(
        systems,
        policies=POLICIES,
        rounds=rounds,
        runs=runs,
        seed=seed,
        device=options.device,
        options=Options(checkpoints=1),
    )
    return played.regret["kalman_ucb"] - played.regret["idea"]


def measure(family: str, options: Any) -> dict[str, float]:
    """Fractions of correct forecasts."""
    systems = db.families.sample(family, systems=options.systems, seed=options.seed)
    intervals = theory.metric_intervals(systems, BONUSES)
    forecasts = {
        form: getattr(intervals["idea"], form)[:, 1] < getattr(intervals["kalman_ucb"], form)[:, 1]
        for form in ("printed", "squared")
    }
    runs, rounds = sizes(10, 10, 0.9)
    quick = lead(systems, runs, rounds, 1, options)
    forecasts["simulation"] = quick.mean(axis=1) > 0
    differences = lead(systems, options.truth, 1000, 2, options)
    mean = differences.mean(axis=1)
    error = differences.std(axis=1, ddof=1) / np.sqrt(options.truth)
    idea_wins, clear = mean > 0, np.abs(mean) > 3 * error
    found = {"idea wins": float(idea_wins.mean()), "clear": float(clear.mean())}
    for name, forecast in forecasts.items():
        found[name] = float(np.mean(forecast == idea_wins))
        found[f"{name}, clear"] = float(np.mean((forecast == idea_wins)[clear]))
    ucb = clear & ~idea_wins
    found["clear for kalman_ucb"] = int(ucb.sum())
    for name, forecast in forecasts.items():
        found[f"{name}, of these"] = int(np.sum(~forecast[ucb]))
    return found


def main() -> None:
    """Measure every family and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", type=int, default=1000, help="number per family")
    parser.add_argument("--truth", type=int, default=1000, help="runs of the longer simulation")
    parser.add_argument("--seed", type=int, default=0, help="seed of the systems")
    parser.add_argument("--device", help="cpu or gpu")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    figures = {}
    for family in db.families.FAMILIES:
        begin = time.perf_counter()
        figures[family] = found = measure(family, options)
        shown = ", ".join(
            f"{name} {100 * found[name]:.1f}% ({100 * found[f'{name}, clear']:.1f}% of clear)"
            for name in ("printed", "squared", "simulation")
        )
        print(
            f"{family:<12} IDEA wins {100 * found['idea wins']:.1f}% of systems, "
            f"{100 * found['clear']:.1f}% clear; correct: {shown}; clear for Kalman-UCB: "
            f"{found['clear for kalman_ucb']}, detected by printed {found['printed, of these']}, "
            f"squared {found['squared, of these']}, simulation {found['simulation, of these']}"
            f"  [{time.perf_counter() - begin:.0f} s]",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
