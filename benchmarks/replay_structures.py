"""What a season or a shared factor is worth on two public data sets.

    python benchmarks/replay_structures.py          # needs pip install '.[bench]'

holidays: every arm has a yearly season. weather: all arms move together, and each has a daily one.
The same policies play with the default fit and with a structure, written down before the run. All
learn from the training half and play the test half; the differences are paired by rounds, with
block-bootstrap intervals. Stores benchmarks/results/replay_structures.json.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import driftbandit as db
from driftbandit import statistics
from driftbandit.replays import load

STRUCTURES = {
    "holidays": "level(arm) + season(365.25, arm)",
    "weather": "level(arm) + level(shared) + season(24) + season(24, arm, harmonics=2)",
}
KALMAN = ("idea", "kode", "kalman_ucb")
RIVALS = ("oful", "discounted_linucb", "ucb", "discounted_ucb", "sliding_window_ucb")
RESULTS = Path(__file__).parent / "results" / "replay_structures.json"


def measure(name: str) -> dict:
    """One data set with both models."""
    table, played, found = load(name), {}, {}
    for model, structure in (("default fit", None), ("structure", STRUCTURES[name])):
        clock = time.perf_counter()
        result = db.replay(table, [*KALMAN, *RIVALS], runs=5, seed=0, structure=structure)
        played[model] = result
        found[model] = {
            "summary": result.fit.summary(),
            "seconds": time.perf_counter() - clock,
            "predictability": result.predictability._asdict(),
            "rows": {row.label: [row.mean, row.low, row.high, row.arm] for row in result.rows()},
            "baseline": result.baseline,
        }
    old, new = played["default fit"], played["structure"]
    gains = {
        label: new.played[label].earned - old.played[label].earned for label in (*KALMAN, *RIVALS)
    }
    gains["full_information"] = (
        new.references["full_information"].earned - old.references["full_information"].earned
    )
    found["structure minus default"] = {
        label: [float(series.mean()), *statistics.block_interval(series, seed=0)[1:3]]
        for label, series in gains.items()
    }
    return {"unit": table.unit, "components": STRUCTURES[name], **found}


def main() -> None:
    """Run both data sets, print and store."""
    found = {}
    for name in STRUCTURES:
        found[name] = measure(name)
        print(json.dumps(found[name], indent=1), flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
