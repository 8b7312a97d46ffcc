"""Speed of the metric's intervals and of steady states, compared with direct computation.

    python benchmarks/metric.py               # d = k = 10, 200 systems of each family
    python benchmarks/metric.py --systems 50

Prints a table and, with --json FILE, stores it. The printed formula (`tests/naive.py`: loops over
pairs and SciPy's sqrtm) is timed for the covariance of one arm, one system and one bonus, and
multiplied by the number of arms. Ours is timed for the whole batch, both bonuses and both forms,
including the steady states. Steady states are compared with SciPy's solver, one system at a time.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.linalg

import driftbandit as db
from driftbandit import steady_state, theory

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import naive

BONUSES = {"idea": db.policies.idea.bonus, "kalman_ucb": db.policies.kalman_ucb.bonus}
REPEATS = 3


def best_seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def printed_seconds(model: db.LGDS, arms: np.ndarray) -> float:
    """Time of the printed formula for the interval of one system, extrapolated from one arm."""
    Z, oracle = model.stationary_cov(), steady_state.oracle_cov(model, arms)
    P = steady_state.prediction_cov(model, arms[0])
    u = BONUSES["idea"](P, model, arms)
    return best_seconds(lambda: naive.metric(arms, u, Z, oracle, P)) * len(arms)


def scipy_seconds(systems: list[tuple[db.LGDS, np.ndarray]]) -> float:
    """Time of SciPy for P_A and the gain, per system."""

    def gains() -> None:
        for model, arms in systems:
            noise = model.reward_std**2 * np.eye(len(arms))
            P = scipy.linalg.solve_discrete_are(
                model.transition.T, arms.T, model.process_cov, noise
            )
            np.linalg.solve(arms @ P @ arms.T + noise, arms @ P)

    return best_seconds(gains) / len(systems)


def measure(family: str, count: int) -> dict[str, float]:
    systems = db.families.sample(family, systems=count)
    noisy = [system for system in systems[:50] if system[0].reward_std > 0]  # SciPy needs σ > 0
    ours = best_seconds(lambda: theory.metric_intervals(systems, BONUSES)) / count
    printed = printed_seconds(*systems[0])
    fresh = [db.families.sample(family, systems=count) for _ in range(REPEATS)]  # nothing cached
    steady = best_seconds(lambda: steady_state.oracle_gains(fresh.pop())) / count
    rival = scipy_seconds(noisy)
    return {
        "metric ms/system": ours * 1e3,
        "metric times printed formula": printed / ours,
        "steady state ms/system": steady * 1e3,
        "steady state times SciPy": rival / steady,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", type=int, default=200, help="number per family")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # from sqrtm of singular matrices
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"d = k = 10, {options.systems} systems; IDEA and Kalman-UCB, both forms")
    figures = {}
    for family in db.families.FAMILIES:
        figures[family] = found = measure(family, options.systems)
        print(
            f"  {family:<12} metric {found['metric ms/system']:6.1f} ms/system, "
            f"{found['metric times printed formula']:6.0f} times the printed formula's speed;  "
            f"oracle's gain {found['steady state ms/system']:5.2f} ms/system, "
            f"{found['steady state times SciPy']:4.1f} times SciPy's"
        )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    else:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
