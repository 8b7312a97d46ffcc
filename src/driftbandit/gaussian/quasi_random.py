"""Averages over scrambled Sobol' points, with a measured error.

16 independent scrambles give an average each, and their spread gives the error (Owen 1997). The
scrambles are numbered, so that equal input gives equal output.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

SCRAMBLES = 16
STANDARD_ERRORS = 4.1
"""Half-width of the stated interval, which covers the truth in 99.9% of cases if the number of
points is fixed in advance, and in about 99% if points are added until the error is small."""


def sources(dimension: int) -> list[Any]:
    """One stream of points in the unit cube per scramble; ``random(n)`` gives the next n."""
    from scipy.stats.qmc import Sobol  # takes half a second to load

    streams = (np.random.default_rng(number) for number in range(SCRAMBLES))
    return [Sobol(dimension, scramble=True, rng=stream) for stream in streams]


def normal(cube: np.ndarray) -> np.ndarray:
    """Map points of the unit cube to standard normal points."""
    tiny = 2.0**-53
    return np.asarray(scipy.special.ndtri(np.clip(cube, tiny, 1 - tiny)))


def half_width(means: np.ndarray) -> np.ndarray:
    """The error of the overall mean, from the scrambles' means on the first axis."""
    return np.asarray(STANDARD_ERRORS * means.std(axis=0, ddof=1) / math.sqrt(len(means)))
