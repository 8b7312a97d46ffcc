"""How often `fit` says that arms drift: on logs in which nothing drifts, and on logs that drift.

    python benchmarks/drift_verdicts.py [--logs 50] [--workers 2] [--advise 3] [--kinds clicks …]

Logs of random play, 400 rows unless said otherwise. Without drift: rewards with unequal noise,
clicks, counts (Poisson), heavy tails (Student's t with 3 degrees of freedom), skewed rewards
(lognormal), 80 rows, 20 arms with 800 rows, and a season of 7 rounds that all arms share. With
drift: a random walk for each arm, arms that return to their means with a memory of 50 rounds, one
shared factor with a weight for each arm, and drifting clicks. ``--advise`` asks `advise` about the
first so many logs of each kind as well, and counts where both say the same.

Prints a row for each kind as it is done, and stores benchmarks/results/drift_verdicts.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import driftbandit as db

STORE = Path(__file__).parent / "results" / "drift_verdicts.json"
ROWS, ARMS = 400, 4
Log = dict[str, np.ndarray]
Rng = np.random.Generator


def _log(rng: Rng, pays: Callable[[np.ndarray, np.ndarray], np.ndarray], rows: int, k: int) -> Log:
    """Random play: ``pays`` gives the rewards of rounds and arms."""
    rounds, arms = np.arange(rows), rng.integers(k, size=rows)
    return {"round": rounds, "arm": arms, "reward": pays(rounds, arms)}


def _around(rng: Rng, noise: Callable[[np.ndarray], np.ndarray], rows: int = ROWS, k: int = ARMS):
    means = 0.5 * rng.standard_normal(k)
    return _log(rng, lambda _, arms: means[arms] + noise(arms), rows, k)


def _clicks(rng: Rng, rates: np.ndarray) -> Log:
    """Clicks at rates per round and arm."""
    return _log(rng, lambda t, arms: (rng.random(ROWS) < rates[t, arms]) * 1.0, ROWS, ARMS)


def _paths(rng: Rng, memory: float, columns: int) -> np.ndarray:
    """Stationary AR(1) paths of variance 1; a memory of infinity: random walks of steps 0.1."""
    keep = np.exp(-1 / memory)
    step, z = np.sqrt(1 - keep**2) if keep < 1 else 0.1, rng.standard_normal(columns)
    paths = np.empty((ROWS, columns))
    for t in range(ROWS):
        paths[t] = z
        z = keep * z + step * rng.standard_normal(columns)
    return paths


def _moving(rng: Rng, paths: np.ndarray) -> Log:
    return _log(rng, lambda t, arms: paths[t, arms] + rng.standard_normal(ROWS), ROWS, ARMS)


def _seasonal(rng: Rng) -> Log:
    means = 0.5 * rng.standard_normal(ARMS)

    def pays(rounds: np.ndarray, arms: np.ndarray) -> np.ndarray:
        return means[arms] + np.sin(2 * np.pi * rounds / 7) + rng.standard_normal(ROWS)

    return _log(rng, pays, ROWS, ARMS)


STILL: dict[str, Callable[[Rng], Log]] = {
    "unequal noise": lambda r: _around(
        r, lambda arms: np.array([0.2, 1, 3, 1])[arms] * r.standard_normal(ROWS)
    ),
    "clicks": lambda r: _clicks(r, np.tile(r.uniform(0.05, 0.6, ARMS), (ROWS, 1))),
    "counts": lambda r: _around(r, lambda arms: r.poisson(1.0 + arms) - 1.0 - arms),
    "heavy tails": lambda r: _around(r, lambda arms: r.standard_t(3, ROWS)),
    "skewed": lambda r: _around(r, lambda arms: r.lognormal(0, 1, ROWS)),
    "80 rows": lambda r: _around(r, lambda arms: r.standard_normal(80), 80),
    "20 arms": lambda r: _around(r, lambda arms: r.standard_normal(800), 800, 20),
    "season only": _seasonal,
}
MOVING: dict[str, Callable[[Rng], Log]] = {
    "random walks": lambda r: _moving(r, _paths(r, np.inf, ARMS)),
    "memory 50": lambda r: _moving(r, _paths(r, 50, ARMS)),
    "one factor": lambda r: _moving(r, _paths(r, 50, 1) * r.standard_normal(ARMS)),
    "drifting clicks": lambda r: _clicks(
        r, 0.05 + 0.55 / (1 + np.exp(-1.5 * _paths(r, 100, ARMS)))
    ),
}


def verdict(task: tuple[str, int, bool]) -> tuple[str, str, str | None, float]:
    """What `fit` says of one log, and `advise` if it is asked; the seconds that `fit` took."""
    kind, number, asked = task
    log = (STILL | MOVING)[kind](np.random.default_rng([number, *kind.encode()]))
    begun = time.perf_counter()
    said = db.fit(log).drift.verdict
    took = time.perf_counter() - begun
    if not asked:
        return kind, said, None, took
    advice = db.advise(log, policies=["ucb"], runs=6)
    return kind, said, str(advice["drift"].verdict), took


def main() -> None:
    """Ask, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--logs", type=int, default=50, help="of each kind")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--advise", type=int, default=0, help="logs of each kind to ask it about")
    parser.add_argument("--kinds", nargs="*", default=[*STILL, *MOVING])
    parser.add_argument("--store", type=Path, default=STORE)
    options = parser.parse_args()
    table = []
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for kind in options.kinds:
            tasks = [(kind, n, n < options.advise) for n in range(options.logs)]
            rows = list(pool.imap_unordered(verdict, tasks))
            said = [row[1] for row in rows]
            asked = [row for row in rows if row[2] is not None]
            table.append(
                {
                    "kind": kind,
                    "logs": len(said),
                    "drifts": kind in MOVING,
                    **{word: said.count(word) for word in ("yes", "no", "cannot tell")},
                    "asked advise": len(asked),
                    "advise agrees": sum(row[1] == row[2] for row in asked),
                    "seconds": round(float(np.median([row[3] for row in rows])), 1),
                }
            )
            print(json.dumps(table[-1]), flush=True)
            options.store.write_text(json.dumps({"table": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
