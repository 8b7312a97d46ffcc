"""Averages over quasi-random points, with an error that is measured.

Sobol' points, scrambled in 16 independent ways: each scramble gives an average of its own, and
their spread the error (Owen 1997). Scrambles are numbered, so that equal input gives equal output.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

__all__ = ["SCRAMBLES", "half_width", "normal", "sources"]

SCRAMBLES = 16
STANDARD_ERRORS = 4.1
"""Of a stated error: 99.9 % of intervals that wide hold the truth if the number of points is fixed
beforehand, about 99 % if points are added until the error is small enough."""


def sources(dimension: int) -> list[Any]:
    """One stream of points in the unit cube for each scramble: ``random(n)`` gives the next n."""
    from scipy.stats.qmc import Sobol  # half a second that `import driftbandit` need not take

    return [
        Sobol(dimension, scramble=True, rng=np.random.default_rng(number))
        for number in range(SCRAMBLES)
    ]


def normal(cube: np.ndarray) -> np.ndarray:
    """Points of the unit cube as standard normal ones."""
    tiny = 2.0**-53
    return np.asarray(scipy.special.ndtri(np.clip(cube, tiny, 1 - tiny)))


def half_width(means: np.ndarray) -> np.ndarray:
    """The error of the mean of the scrambles' means, given on the first axis."""
    return np.asarray(STANDARD_ERRORS * means.std(axis=0, ddof=1) / math.sqrt(len(means)))
