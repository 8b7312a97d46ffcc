"""Extra regret from a learned model: IDEA on models fitted to logs of random play.

    python benchmarks/recovery.py [--systems 10]

For d = 2, 4, 10 and all five families: systems with as many arms as states, and logs of uniformly
random play. `identify.fit` runs from one start, without offsets (these systems have none), with its
default prior and, for the short log, also without it. Then IDEA plays with the fitted model and
with the true one, on the same states and noise. Prints medians over all systems and stores
benchmarks/results/recovery.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np

import driftbandit as db
from driftbandit.identify import Log, Sequence, fit
from driftbandit.model import factor
from driftbandit.simulation import Options

KINDS = {  # sequences, rounds, prior
    "20 x 500": (20, 500, None),
    "1 x 1000": (1, 1000, None),
    "1 x 1000, likelihood alone": (1, 1000, 0),
}
STATES = (2, 4, 10)
ROUNDS, RUNS = 500, 64


def random_play(model, arms, sequences, rounds, rng):
    """A log of uniformly random play."""
    z = factor(model.stationary_cov()) @ rng.standard_normal((model.n_states, sequences))
    root = factor(model.process_cov)
    played = rng.integers(len(arms), size=(sequences, rounds))
    rewards = np.empty((sequences, rounds))
    for t in range(rounds):
        rewards[:, t] = np.einsum("sd,ds->s", arms[played[:, t]], z)
        z = model.transition @ z + root @ rng.standard_normal(z.shape)
    rewards += model.reward_std * rng.standard_normal(rewards.shape)
    ones = [Sequence(np.arange(rounds), a, x) for a, x in zip(played, rewards, strict=True)]
    return Log(tuple(ones), tuple(str(i) for i in range(len(arms))))


def mean_regret(system, seed, assumed=None):
    options = {"policies": ["idea"], "rounds": ROUNDS, "runs": RUNS, "seed": seed}
    options["options"] = Options(workers=1)
    result = db.simulate([system], assumed=None if assumed is None else [assumed], **options)
    return float(result.regret["idea"].mean())


def one(task):
    """Excess regret on one system, with a model learned from each kind of log."""
    family, states, number = task
    skipped = 0
    while True:  # skip the few Bernoulli systems in which one arm is always best
        place = number + 1000 * skipped
        system = db.families.sample(family, n_states=states, n_arms=states, seed=77, first=place)[0]
        known = mean_regret(system, number)
        if known > 1e-6:
            break
        skipped += 1
    row = {"family": family, "states": states, "system": place, "known": known}
    for kind, (sequences, rounds, prior) in KINDS.items():
        rng = np.random.default_rng([states, sequences, place])
        log = random_play(*system, sequences, rounds, rng)
        clock = time.perf_counter()
        found = fit(log, system[1], offsets=False, starts=1, prior=prior)
        row[f"{kind}, seconds"] = time.perf_counter() - clock
        row[kind] = mean_regret(system, number, (found.model, found.arms)) / known - 1
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--systems", type=int, default=10, help="per family and d")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    tasks = [
        (family, states, number)
        for states in STATES
        for family in db.families.FAMILIES
        for number in range(given.systems)
    ]
    clock, rows = time.perf_counter(), []
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for row in pool.imap_unordered(one, tasks):
            rows.append(row)
            left = (time.perf_counter() - clock) / len(rows) * (len(tasks) - len(rows))
            print(f"\r{len(rows)}/{len(tasks)} systems, {left / 60:.1f} min left ", end="")
    print()
    table = {}
    for states in STATES:
        for kind in KINDS:
            here = [row for row in rows if row["states"] == states]
            excess = np.array([row[kind] for row in here])
            low, middle, high = np.quantile(excess, (0.25, 0.5, 0.75))
            seconds = float(np.median([row[f"{kind}, seconds"] for row in here]))
            families = {
                family: float(np.median([row[kind] for row in here if row["family"] == family]))
                for family in db.families.FAMILIES
            }
            table[f"d = {states}, {kind}"] = {
                "median": float(middle),
                "quartiles": [float(low), float(high)],
                "median by family": families,
                "seconds": seconds,
            }
            print(
                f"d = {states:2}, {kind:28} {100 * middle:6.1f}%  "
                f"({100 * low:.1f} to {100 * high:.1f}%)  fit {seconds:.1f} s"
            )
    path = Path(__file__).parent / "results" / "recovery.json"
    about = {"systems": len(rows), "rounds": ROUNDS, "runs": RUNS, "table": table}
    path.write_text(json.dumps(about | {"rows": sorted(rows, key=str)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
