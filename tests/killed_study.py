"""A study for tests to kill: `python killed_study.py OUT MEASURE [MEETING]`.

Writes OUT/summary.json at its end. With MEETING, a folder, two processes begin at once: each puts
a file there and waits for the other's.
"""

import json
import os
import sys
import time
from pathlib import Path

from driftbandit import studies
from driftbandit.io.atomic import write_whole

METRIC = studies.Specification(
    (studies.Cell("gaussian"), studies.Cell("bernoulli")),
    ("idea", "kalman_ucb"),
    systems=60,
    runs=1,
    n_states=3,
    n_arms=3,
    measure="metric",
    chunk=1,
)
REGRET = studies.Specification(
    (studies.Cell("gaussian"), studies.Cell("bernoulli")),
    ("random",),
    systems=15,
    runs=2,
    rounds=200,
    n_states=3,
    n_arms=3,
    chunk=1,
)
STUDIES = {"metric": METRIC, "regret": REGRET}


def slow_disk(seconds):
    """Leave files half-written for long enough that kills meet them there."""
    fsync = os.fsync

    def waiting(handle):
        time.sleep(seconds)
        fsync(handle)

    os.fsync = waiting


def main(out, measure, meeting=None):
    slow_disk(0.004)
    if meeting:
        Path(meeting, str(os.getpid())).touch()
        while len(os.listdir(meeting)) < 2:
            time.sleep(0.001)
    outcome = studies.run(STUDIES[measure], Path(out) / "studies", studies.local(2))
    summary = {
        cell: {name: [values.mean(), *values.tolist()] for name, values in columns.items()}
        for cell, columns in outcome.columns.items()
    }
    write_whole(Path(out) / "summary.json", json.dumps([summary, outcome.versions]).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
