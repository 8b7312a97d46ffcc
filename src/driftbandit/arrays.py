"""The array library behind an array: NumPy for single decisions, JAX for studies.

Layer 1 is written for one system and one run against the Python array API, without in-place
writes. This module alone asks which library is at work.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

__all__ = ["Array", "dots", "namespace", "normal_cdf", "or_infinite", "put", "times"]

Array = Any
"""A NumPy or JAX array (or a JAX tracer)."""


def namespace(array: Array) -> Any:
    """Return the array API module (numpy or jax.numpy) that ``array`` belongs to."""
    return array.__array_namespace__()


MANY = 256
"""Rows from which NumPy is faster along columns, each of which is one run through memory."""


def times(rows: Array, matrix: Array) -> Array:
    """The product rows @ matrix; of many rows it is held by columns."""
    if len(rows) > MANY and isinstance(rows, np.ndarray):
        return (matrix.T @ rows.T).T
    return rows @ matrix


def dots(rows: Array, others: Array) -> Array:
    """Σ_j x_ij y_ij for every row i; of one row each, a number."""
    if not isinstance(rows, np.ndarray):
        return namespace(rows).vecdot(rows, others)
    if rows.ndim == 2 and len(rows) > MANY:
        return np.einsum("jk,jk->k", rows.T, others.T)
    return np.vecdot(rows, others)


def or_infinite(values: Array, floor: Array) -> Array:
    """The values that are above zero, and infinity for the others; none is below ``floor`` ≥ 0.

    One line under JAX; NumPy is spared it where the floor is above zero, which is nearly always.
    """
    if isinstance(values, np.ndarray | np.floating) and floor > 0:
        return values
    return namespace(values).where(values > 0, values, math.inf)


def put(array: Array, index: Array, value: Array) -> Array:
    """Return a copy of a vector with ``value`` at ``index``; the array API has no scatter."""
    xp = namespace(array)
    return xp.where(xp.arange(array.shape[0]) == index, value, array)


def normal_cdf(x: Array) -> Array:
    """Φ(x), which the array API lacks."""
    if namespace(x) is np:
        return scipy.special.ndtr(x)
    from jax.scipy.special import ndtr  # loads JAX, which is there if x is its array

    return ndtr(x)
