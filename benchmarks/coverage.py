"""How often 95% intervals of a structure's parameters contain the truth.

    nice python benchmarks/coverage.py [--runs 200] [--quick] [--kind NAME] [--fresh]

Logs of twelve kinds are simulated from known parameters: 400 rounds of random play, unless the
table says otherwise. In each log the states and the noise are new. `fit` learns the structure from
the log with its default prior, and `estimates` gives the intervals. Prints, for every parameter, in
what share of the logs the interval contains the truth, ± its standard error over the logs
(binomial, where a log has one interval); in what shares the truth is below and above; how many
intervals are open above; and the median interval.

Stores benchmarks/results/coverage.json after every kind. A later run goes on with the kinds that
have fewer logs than wanted. --quick: 20 logs of 200 rounds each, which are not stored.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.identify import as_log, estimates, fit
from driftbandit.model import factor
from driftbandit.structure import Layout

RESULTS = Path(__file__).parent / "results" / "coverage.json"
ROUNDS = 400


class Kind(NamedTuple):
    """Logs that are simulated with the same parameters."""

    structure: str
    values: dict[str, float]  # of the parameters; of copies: how far from the common one
    arms: int = 5
    rows: int = ROUNDS
    full: bool = False  # whether all arms are seen in every round


OWN = {f"noise(arm, own).size[arm {i}]": math.log(x) for i, x in enumerate((0.5, 0.7, 1, 1.5, 2))}
MEMORY, SHARED = "level(arm, memory=free)", "level(arm) + level(shared)"
TWO_LEVELS = {"level(arm).drift": 0.1, "level(shared).drift": 0.2, "noise": 1.0}
AR = {"ar(2).drift": 1.0, "ar(2).partial1": 0.6, "ar(2).partial2": 0.3, "noise": 1.0}
SEASON = {"level(arm).drift": 0.1, "season(7).size": 0.5, "season(7).change": 0.03, "noise": 1.0}


def remembering(rounds: float) -> Kind:
    """Levels with that memory and a stationary standard deviation of 1."""
    drift = math.sqrt(-math.expm1(-2 / rounds))
    name = MEMORY
    return Kind(name, {f"{name}.drift": drift, f"{name}.memory": rounds, "noise": 0.5})


KINDS = {
    "small drift": Kind("level(arm)", {"level(arm).drift": 0.05, "noise": 1.0}),
    "large drift": Kind("level(arm)", {"level(arm).drift": 0.5, "noise": 1.0}),
    "memory 20": remembering(20),
    "memory 200": remembering(200),
    "memory 2000": remembering(2000),
    "3 constants": Kind("constant(arm)", {"constant(arm).size": 1.0, "noise": 1.0}, arms=3),
    "10 constants": Kind("constant(arm)", {"constant(arm).size": 1.0, "noise": 1.0}, arms=10),
    "season": Kind("level(arm) + season(7)", SEASON),
    "autoregression": Kind("ar(2)", AR, arms=3),
    "shared level": Kind(SHARED, TWO_LEVELS),
    "shared level, full table": Kind(SHARED, TWO_LEVELS, rows=100, full=True),
    "unequal noise": Kind(
        "level(arm) + noise(arm, own)",
        {"level(arm).drift": 0.1, "noise(arm, own).size": 1.0, "noise": 0.3} | OWN,
    ),
}


def simulated(kind: Kind, layout: Layout, rng: np.random.Generator, rounds: int) -> Any:
    """A log of random play, or of all arms."""
    system = layout.system(kind.values)
    model, root = system.model, factor(system.model.process_cov)
    z = model.start_mean() + factor(model.start_cov()) @ rng.standard_normal(model.n_states)
    rows = []
    for t in range(rounds):
        for arm in range(kind.arms) if kind.full else [rng.integers(kind.arms)]:
            reward = system.arms[arm] @ z + model.reward_std * rng.standard_normal()
            rows.append((t, layout.names[arm], float(reward)))
        z = model.transition @ z + root @ rng.standard_normal(model.n_states)
    columns = zip(*rows, strict=True)
    return as_log(dict(zip(("round", "arm", "reward"), columns, strict=True)), layout.names)


def truths(kind: Kind, layout: Layout) -> dict[str, float]:
    """The true value of everything that `estimates` gives."""
    found = {}
    for free in layout.free:
        value = kind.values[free.name]
        if free.copy is not None:
            value = kind.values[free.name.partition("[")[0]] * math.exp(value)
        found[free.name] = value
    return found


def logs(kind: Kind, runs: int, rounds: int) -> tuple[list[dict[str, Any]], float]:
    """Each parameter's coverage, and the seconds of a log."""
    layout = Layout(kind.structure, [f"arm {i}" for i in range(kind.arms)])
    known, seen, number = truths(kind, layout), {}, list(KINDS.values()).index(kind)
    clock = time.perf_counter()
    for run in range(runs):
        log = simulated(kind, layout, np.random.default_rng([number, run]), rounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = estimates(fit(log, structure=kind.structure))
        for row in rows:
            ends = row.value, row.low, row.high, known[row.name]
            seen.setdefault(row.name.partition("[")[0], []).append(ends)
    seconds = (time.perf_counter() - clock) / runs
    return [summary(name, np.array(ends), runs) for name, ends in seen.items()], seconds


def summary(name: str, ends: np.ndarray, runs: int) -> dict[str, Any]:
    """What the intervals of a parameter did."""
    value, low, high, truth = ends.T
    below, above = float((truth < low).mean()), float((truth > high).mean())
    covered = ((low <= truth) & (truth <= high)).reshape(runs, -1).mean(axis=1)  # of every log
    middle = [float(np.quantile(x, 0.5, method="lower")) for x in (value, low, high)]
    return {
        "parameter": name,
        "truth": float(truth[0]) if np.ptp(truth) == 0 else None,
        "intervals": len(ends),
        "covered": float(covered.mean()),
        "error": float(covered.std()) / math.sqrt(runs),
        "truth below": below,
        "truth above": above,
        "open above": float(np.isinf(high).mean()),
        "median": [x if math.isfinite(x) else None for x in middle],
    }


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="logs of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this one")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="also measure what is stored")
    given = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    runs = 20 if given.quick else given.runs
    for name in given.kind or KINDS:
        kind, known = KINDS[name], stored.get(name, {})
        if given.quick:
            known = {}
        if given.fresh or known.get("runs", 0) < runs:
            rounds = kind.rows // 2 if given.quick else kind.rows
            rows, seconds = logs(kind, runs, rounds)
            known = {"structure": kind.structure, "arms": kind.arms, "rounds": rounds}
            known |= {"runs": runs, "seconds": seconds, "parameters": rows}
            if not given.quick:
                stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
                stored = {
                    n: (stored | {name: known})[n] for n in KINDS if n in stored | {name: known}
                }
                RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
        print(f"{name}: {known['runs']} logs, {known['seconds']:.2f} s each", flush=True)
        for row in known["parameters"]:
            low, high = row["median"][1:]
            print(
                f"  {row['parameter']:34} {row['covered']:6.1%} ± {row['error']:.1%}"
                f"  below {row['truth below']:5.1%}  above {row['truth above']:5.1%}"
                f"  open {row['open above']:4.0%}  {low:.3g} to"
                f" {math.inf if high is None else high:.3g}, truth {row['truth'] or math.nan:.3g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
