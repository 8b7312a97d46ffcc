"""How well a candidate predicts the later rewards of a log: their log-densities.

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

from driftbandit.identify import shared_states
from driftbandit.identify.predictions import one_step
from driftbandit.identify.structured.candidates import Factors
from driftbandit.identify.structured.fitting import Problem, best_of_starts, minimized
from driftbandit.identify.structured.rows import rows_of
from driftbandit.io.logs import Log
from driftbandit.structure import Layout

CUTS = (0.5, 0.625, 0.75, 0.875, 1.0)
ITERATIONS = 60  # of EM where models are only compared


def of_components(
    log: Log, layout: Layout, prior: float, report: Callable[[float], None]
) -> np.ndarray:
    """Log-densities of the rewards after the first cut, in the order of the log."""
    problem = Problem(layout, rows_of(log, layout), prior)
    data = problem.described
    seen = data.rows.seen[: data.n_rows] > 0
    place = places(data.sequences)
    logs, theta = np.full(data.n_rows, np.nan), None
    for cut, until in itertools.pairwise(CUTS):
        early = problem.for_search(log, place < cut)
        end = best_of_starts(early, 2) if theta is None else minimized(early, theta)
        theta = end.theta
        means, variances = problem.predicted(theta)
        rewards = data.rows.rewards[: data.n_rows] + data.center
        each = -0.5 * (np.log(2 * math.pi * variances) + (rewards - means) ** 2 / variances)
        now = seen & (place >= cut) & (place < until)
        logs[now] = each[now]
        report((until - CUTS[0]) / (CUTS[-1] - CUTS[0]))
    return logs[seen & (place >= CUTS[0])]


def of_factors(log: Log, factors: Factors) -> np.ndarray:
    """Log-densities of the rewards after the first cut, in the order of the log.

    Args:
        log: of k ≥ `Factors.n_states` arms.
        factors: how many states.
    """
    lengths = [len(sequence) for sequence in log.sequences]
    place = places(np.repeat(np.arange(len(lengths)), lengths))
    seen = ~np.isnan(np.concatenate([sequence.rewards for sequence in log.sequences]))
    logs = np.full(len(seen), np.nan)
    for cut, until in itertools.pairwise(CUTS):
        early = log.only(place < cut)
        ahead = one_step(shared_states.learn(early, factors.n_states, ITERATIONS), log)
        each = -0.5 * (np.log(2 * math.pi * ahead.stds**2) + ahead.surprises**2)
        now = (place >= cut) & (place < until)
        logs[seen & now] = each[now[seen]]
    return logs[seen & (place >= CUTS[0])]


def places(sequences: np.ndarray) -> np.ndarray:
    """How far each row is in its sequence, from 0 to 1."""
    counts = np.bincount(sequences)
    first = np.cumsum(counts) - counts
    return np.asarray((np.arange(len(sequences)) - first[sequences]) / counts[sequences])
