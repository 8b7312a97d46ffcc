"""Speed of learning a model from logs, compared with pykalman.

    python benchmarks/identify.py                   # 200 sequences of 500 rounds, d = 4
    python benchmarks/identify.py --sequences 20

One EM iteration over all sequences. Ours smooths them together; pykalman can only smooth them one
after another. Its M-step is left out, which favors it, because its EM accepts only one sequence.
The script checks that both give the same likelihood.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import pykalman

import driftbandit as db
from driftbandit.identify import em

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from random_logs import played, start
from systems import random_system


def main() -> None:
    """Time one iteration of each and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--states", type=int, default=4)
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    d = options.states
    model, arms = random_system(1, d, k=8)
    data = played(model, arms, options.sequences, options.rounds, missing=0.0)
    parameters = start(arms)
    begin = time.perf_counter()
    em.e_step(parameters, data)
    first = time.perf_counter() - begin
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        sums = em.e_step(parameters, data)
        em.m_step(parameters, sums, em.Options())
        times.append(time.perf_counter() - begin)
    ours = min(times)
    theirs, total = 0.0, 0.0
    for chosen, rewards in zip(data.arms, data.rewards, strict=True):
        rival = pykalman.KalmanFilter(
            0.5 * np.eye(d),
            arms[chosen[:, 0]][:, None],
            np.eye(d),
            np.eye(1),
            initial_state_mean=np.zeros(d),
            initial_state_covariance=np.eye(d),
        )
        begin = time.perf_counter()
        rival.smooth(rewards)
        theirs += time.perf_counter() - begin
        total += rival.loglikelihood(rewards)
    same = abs(total - float(sums.log_likelihood)) / abs(total)
    figures = {
        "sequences": options.sequences,
        "rounds": options.rounds,
        "states": d,
        "ours ms/iteration": ours * 1e3,
        "compile s": first - ours,
        "pykalman s/iteration": theirs,
        "times faster": theirs / ours,
        "likelihoods differ by": same,
    }
    print(f"{platform.machine()}, driftbandit {db.__version__}, pykalman {pykalman.__version__}")
    for name, value in figures.items():
        print(f"  {name}: {value:.4g}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
