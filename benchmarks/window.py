"""What the window of an experiment costs: memory, snapshots, and time of late rewards.

    python benchmarks/window.py

For experiments of names alone (a level for each arm), in this process, without a store. The time is
that of a reward and the decision after it, which computes all beliefs since the reward's decision
again.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from driftbandit.service.experiment import Experiment
from driftbandit.service.settings import checked

ARMS, WINDOWS, LATE = (4, 10, 50), (100, 1000), (0, 10, 100, 500, 1000)
MANY = 10**6


def made(n_arms: int, window: int) -> Experiment:
    names = [f"arm {number}" for number in range(n_arms)]
    return Experiment.create("one", checked({"names": names, "window": window}, MANY), 0.0)


def play(experiment: Experiment, rewards: int, late: int) -> float:
    """Seconds for a decision, and a reward that comes ``late`` decisions later."""
    rng = np.random.default_rng(0)
    for _ in range(late):
        experiment.decide(0.0, most_open=MANY)
    begun = time.perf_counter()
    for decision in range(rewards):
        experiment.decide(0.0, most_open=MANY)
        told = {"decision": decision, "reward": float(rng.standard_normal())}
        experiment.reward(0.0, [told])
        experiment.new = []
    return (time.perf_counter() - begun) / rewards


def main() -> None:
    for n_arms in ARMS:
        for window in WINDOWS:
            tracemalloc.start()
            experiment = made(n_arms, window)
            play(experiment, window + 200, 0)
            memory = tracemalloc.get_traced_memory()[0] / 2**20
            tracemalloc.stop()
            size = sum(map(len, experiment.to_snapshot())) / 2**10
            times = [
                f"{late}: {1e3 * play(made(n_arms, window), 100, late):.2f} ms"
                for late in LATE
                if late <= window
            ]
            print(
                f"{n_arms} arms, window {window}: {memory:.1f} MiB, snapshot {size:.0f} KiB, "
                f"rewards so many decisions late: {', '.join(times)}"
            )


if __name__ == "__main__":
    main()
