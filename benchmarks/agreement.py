"""Fraction of runs that agree across block shapes, instruction sets and devices.

    python benchmarks/agreement.py                # block shapes and instruction sets
    python benchmarks/agreement.py --gpu          # also the GPU

5 families × 200 systems × 10 runs × 300 rounds, d = k = 10, every registered policy.
Two runs agree if their regret is equal at every checkpoint, to 1e-9; a single different decision
changes it by far more. Each setting runs in its own process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import driftbandit as db
from driftbandit.simulation import Options

RESULTS = Path(__file__).parent / "results" / "agreement.json"
TOLERANCE = 1e-9
REFERENCE = "default"
ISA = {"AVX2": "--xla_cpu_max_isa=AVX2", "SSE4_2": "--xla_cpu_max_isa=SSE4_2"}
SHAPES = ("one run", "half of the systems")


def play(setting: str, systems: int, path: Path) -> None:
    """Run one setting and store the regret curves by family and policy."""
    device = "gpu" if setting == "GPU" else "cpu"
    runs = 1 if setting == "one run" else 10
    curves = {}
    for family in db.families.FAMILIES:
        drawn = list(db.families.sample(family, systems=systems))
        if setting == "half of the systems":
            drawn = drawn[: systems // 2]
        for policy in db.policies.available():
            options = Options(checkpoints=8, stream=family)
            study = drawn, None, [policy], 300, runs
            result = db.simulate(*study, device=device, engine="xla", options=options)
            curves[f"{family}/{policy}"] = result.curves[policy]
    np.savez(path, **curves)


def agree(reference: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which runs agree, systems × runs, for the runs that both have."""
    part = reference[: other.shape[0], : other.shape[1]]
    return (np.abs(part - other) <= TOLERANCE * np.abs(part).max(axis=-1, keepdims=True)).all(-1)


def shares(reference: dict, other: dict) -> dict[str, dict[str, int]]:
    """By policy: number of runs, of runs that agree, and of bit-identical runs."""
    found = {}
    for policy in db.policies.available():
        count = {"runs": 0, "agree": 0, "same bits": 0}
        for family in db.families.FAMILIES:
            mine, theirs = (curves[f"{family}/{policy}"] for curves in (reference, other))
            part = mine[: theirs.shape[0], : theirs.shape[1]]
            count["runs"] += theirs.shape[0] * theirs.shape[1]
            count["agree"] += int(agree(mine, theirs).sum())
            count["same bits"] += int((part == theirs).all(-1).sum())
        found[policy] = count
    return found


def main() -> None:
    """Run all settings, print the table and store the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gpu", action="store_true", help="also run on the GPU")
    parser.add_argument("--systems", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel processes")
    parser.add_argument("--play", help="run only this setting (used internally)")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where to store the numbers")
    options = parser.parse_args()
    if options.play:
        play(options.play, options.systems, options.json)
        return
    settings = [REFERENCE, *SHAPES, *ISA, *(["GPU"] if options.gpu else [])]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:

        def played(setting: str) -> dict:
            path = Path(folder) / f"{setting.replace(' ', '_')}.npz"
            command = [sys.executable, __file__, "--play", setting, "--json", str(path)]
            command += ["--systems", str(options.systems)]
            flags = {"XLA_FLAGS": ISA[setting]} if setting in ISA else {}
            subprocess.run(command, check=True, env=os.environ | flags)
            print(f"done: {setting}", flush=True)
            with np.load(path) as stored:
                return dict(stored)

        curves = dict(zip(settings, pool.map(played, settings), strict=True))
    table = {name: shares(curves[REFERENCE], curves[name]) for name in settings[1:]}
    print(f"{'policy':24}" + "".join(f"{name:>22}" for name in table))
    for policy in db.policies.available():
        cells = (table[name][policy] for name in table)
        print(f"{policy:24}" + "".join(f"{c['agree'] / c['runs']:>22.3%}" for c in cells))
    options.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
