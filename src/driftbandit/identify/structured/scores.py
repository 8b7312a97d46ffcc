"""How well a structure predicts the later rewards of a log: their log-densities.

    log p(reward | the rounds before; parameters from the rounds before a cut)

The parameters are learned from the first half of every sequence and score the next eighth; then
from the first 5/8, and so on, as they would have been learned at that time; if arms share states
and the log is long, from the last rewards before the cut (`Problem.for_search`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from driftbandit.identify.structured.fitting import ITERATIONS, Problem, search
from driftbandit.identify.structured.rows import rows_of
from driftbandit.io.logs import Log
from driftbandit.structure import Layout

FEW = 80  # iterations of a search for loadings where structures are only compared
CUTS = (0.5, 0.625, 0.75, 0.875, 1.0)


def densities(
    log: Log, layout: Layout, prior: float, report: Callable[[float], None]
) -> np.ndarray:
    """Log-densities of the rewards after the first cut, in the order of the log."""
    problem = Problem(layout, rows_of(log, layout), prior)
    data = problem.described
    seen = data.rows.seen[: data.n_rows] > 0
    place = places(data.sequences)
    most = FEW if layout.learns_reads else ITERATIONS
    logs, theta = np.full(data.n_rows, np.nan), None
    for cut, until in itertools.pairwise(CUTS):
        starts = 2 if theta is None else 1
        theta = search(problem, log, starts, place < cut, theta, iterations=most).theta
        means, variances = problem.predicted(theta)
        rewards = data.rows.rewards[: data.n_rows] + data.center
        each = -0.5 * (np.log(2 * math.pi * variances) + (rewards - means) ** 2 / variances)
        now = seen & (place >= cut) & (place < until)
        logs[now] = each[now]
        report((until - CUTS[0]) / (CUTS[-1] - CUTS[0]))
    return logs[seen & (place >= CUTS[0])]


def places(sequences: np.ndarray) -> np.ndarray:
    """How far each row is in its sequence, from 0 to 1."""
    counts = np.bincount(sequences)
    first = np.cumsum(counts) - counts
    return np.asarray((np.arange(len(sequences)) - first[sequences]) / counts[sequences])
