"""How well learned factors predict held-out rewards, and how long learning them takes.

    python benchmarks/identify.py [--label now] [--seeds 2] [--cases 12]

Random systems of d states that k arms read, with a free Γ of spectral radius 0.97 or a diagonal one
whose states keep 0.8 to 0.995; one arm a round or all of them; weights learned or known. The model
is learned from the first half of a log and predicts the second half, one step ahead. Figures of
several versions are stored side by side in benchmarks/results/identify.json: run an older version
with ``PYTHONPATH`` set to its sources and a label of its own. The label "em" is commit 8d4f5dc,
where expectation maximization learned the same models, and "factors" is commit bfc355c, which
learns them by gradients. Both ran on a busy machine of two cores, "factors" beside more other work:
the scores can be compared, the seconds hardly.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import driftbandit as db
from driftbandit.identify import fit, one_step

STORE = Path(__file__).parent / "results" / "identify.json"
SIZES = [(2, 5, 600, False), (3, 10, 1500, False), (5, 12, 200, True), (3, 30, 60, True)]
CASES = [
    (form, *size, known) for form in ("free", "diagonal") for size in SIZES for known in (0, 1)
]
"""Form of Γ; states, arms, rounds; whether all arms are seen, and whether weights are known."""


def system(form: str, d: int, k: int, seed: int) -> tuple[db.LGDS, np.ndarray]:
    """A random system with noise 1."""
    rng = np.random.default_rng(seed)
    if form == "free":
        transition = rng.standard_normal((d, d))
        transition *= 0.97 / np.abs(np.linalg.eigvals(transition)).max()
        root = 0.5 * rng.standard_normal((d, d))
        process_cov = root @ root.T
    else:
        transition = np.diag(rng.uniform(0.8, 0.995, d))
        process_cov = np.eye(d) - transition**2
    return db.LGDS(transition, process_cov, 1.0), rng.standard_normal((k, d))


def logged(model: db.LGDS, arms: np.ndarray, rounds: int, full: bool, seed: int) -> dict[str, Any]:
    """A log of random play, or of all arms; arm i pays i / 2 more."""
    rng, (k, d) = np.random.default_rng(seed + 100), arms.shape
    z = np.linalg.cholesky(model.stationary_cov() + 1e-9 * np.eye(d)) @ rng.standard_normal(d)
    root, rows = np.linalg.cholesky(model.process_cov + 1e-12 * np.eye(d)), []
    for t in range(rounds):
        for arm in range(k) if full else [int(rng.integers(k))]:
            rows.append((t, arm, arms[arm] @ z + rng.standard_normal() + arm / 2))
        z = model.transition @ z + root @ rng.standard_normal(d)
    return dict(
        zip(("round", "arm", "reward"), map(np.array, zip(*rows, strict=True)), strict=True)
    )


def scored(case: tuple[str, int, int, int, bool, int], seed: int) -> tuple[float, float]:
    """The mean log-density of the second half's rewards, and the seconds that learning took."""
    form, d, k, rounds, full, known = case
    model, arms = system(form, d, k, seed)
    log = logged(model, arms, 2 * rounds, full, seed)
    early = {name: column[log["round"] < rounds] for name, column in log.items()}
    begun = time.perf_counter()
    found = fit(early, arms, structure=form) if known else fit(early, n_states=d)
    seconds = time.perf_counter() - begun
    ahead = one_step(found, log)
    each = -0.5 * (np.log(2 * np.pi * ahead.stds**2) + ahead.surprises**2)
    return float(each[log["round"] >= rounds].mean()), seconds


def main() -> None:
    """Learn, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--label", default="now")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--cases", type=int, default=len(CASES), help="only the first so many")
    options = parser.parse_args()
    stored = json.loads(STORE.read_text()) if STORE.exists() else {}
    rows = []
    for case in CASES[: options.cases]:
        runs = [scored(case, seed) for seed in range(options.seeds)]
        keys = ("form", "states", "arms", "rounds", "all arms", "known weights")
        row: dict[str, Any] = dict(zip(keys, case, strict=True))
        row |= {"score": [round(score, 4) for score, _ in runs]}
        row |= {"seconds": [round(seconds, 1) for _, seconds in runs]}
        rows.append(row)
        print(json.dumps(row), flush=True)
        STORE.write_text(json.dumps(stored | {options.label: rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
