"""How often `advise` says that a log drifts, on simulated logs with known drift.

    python benchmarks/advise_log.py --logs 60

Three arms, 240 rounds, one arm a round drawn uniformly, noise 0.3; each level is a random walk.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from driftbandit.advice import from_log, log_facts
from driftbandit.identify import Log, Sequence

ROUNDS, ARMS, NOISE = 240, 3, 0.3


def drawn(drift: float, seed: int) -> Log:
    """A log whose levels take steps of that standard deviation."""
    rng = np.random.default_rng(seed)
    levels = np.linspace(0.0, 0.3, ARMS) + drift * rng.standard_normal((ROUNDS, ARMS)).cumsum(0)
    paid = levels + NOISE * rng.standard_normal((ROUNDS, ARMS))
    arms = rng.integers(ARMS, size=ROUNDS)
    return Log((Sequence(np.arange(ROUNDS), arms, paid[np.arange(ROUNDS), arms]),), ("a", "b", "c"))


def main() -> None:
    """Print the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=60)
    logs = parser.parse_args().logs
    for drift in (0.0, 0.02, 0.05):
        counts: Counter[str] = Counter()
        for seed in range(100, 100 + logs):
            found = from_log.compared(drawn(drift, seed))
            counts[log_facts.answer(found, log_facts.drifts).verdict] += 1
        print(f"steps of {drift:g}: " + ", ".join(f"{k} {n}" for k, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
