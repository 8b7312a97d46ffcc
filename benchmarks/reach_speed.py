"""What the default policy costs: `reach` against IDEA, in the same run.

    python benchmarks/reach_speed.py [--json FILE]

Lanes: CPU time per round and run of whole `simulate` calls at ten states and ten arms, and the
time of a first call, with compiling and without the program cache. Agents: ask + tell, with NumPy
and compiled. Large lists: ask among 10⁶ arms of ten numbers. Each figure is the best of a few.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ["DRIFTBANDIT_CACHE"] = "off"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import driftbandit as db
from driftbandit.simulation import Options

STORE = Path(__file__).parent / "results" / "reach_speed.json"
RUNS = {"idea": 2000, "reach": 1000, "lookahead": 100}
MANY = 10**6


def best(measured: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    """The least seconds of some calls."""
    found = []
    for _ in range(repeats):
        start = clock()
        measured()
        found.append(clock() - start)
    return min(found)


def lanes(policy: str, pair: list[tuple[db.LGDS, np.ndarray]]) -> dict[str, float]:
    """Seconds of a first call, and microseconds per round."""
    options = Options(checkpoints=1)

    def play(runs: int) -> db.Result:
        return db.simulate(pair, policies=[policy], rounds=1000, runs=runs, options=options)

    first = best(lambda: play(8), 1, time.perf_counter)
    seconds = best(lambda: play(RUNS[policy]), 5, time.process_time)
    return {"first call, s": first, "round, µs": seconds / RUNS[policy] / 1000 * 1e6}


def agent(policy: str, model: db.LGDS, arms: np.ndarray, compiled: bool) -> float:
    """Microseconds of ask + tell."""
    one = db.Agent(model, arms, policy=policy, compiled=compiled)

    def decide() -> None:
        for _ in range(200):
            one.tell(one.ask(), 1.0)

    decide()
    return best(decide, 7, time.process_time) / 200 * 1e6


def large(policy: str, model: db.LGDS) -> float:
    """Milliseconds of ask among very many arms."""
    arms = np.random.default_rng(1).standard_normal((MANY, model.n_states))
    one = db.Agent(model, arms, policy=policy)
    for _ in range(3):
        one.tell(one.ask(), 1.0)
    return best(one.ask, 5, time.process_time) * 1e3


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, default=STORE)
    given = parser.parse_args()
    pair = list(db.families.sample("gaussian", systems=1, seed=3))
    model, arms = pair[0]
    rows: dict[str, dict[str, float]] = {}
    for policy in ("idea", "reach", "lookahead"):
        rows[policy] = lanes(policy, pair)
        rows[policy]["agent, µs"] = agent(policy, model, arms, compiled=False)
        rows[policy]["compiled agent, µs"] = agent(policy, model, arms, compiled=True)
        if policy != "lookahead":
            rows[policy]["10⁶ arms, ms"] = large(policy, model)
    for what in rows["reach"]:
        base = rows["idea"][what]
        each = ", ".join(
            f"{policy} {row[what]:.3g} ({row[what] / base:.2f} ×)"
            for policy, row in rows.items()
            if what in row
        )
        print(f"{what:20} {each}", flush=True)
    given.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
