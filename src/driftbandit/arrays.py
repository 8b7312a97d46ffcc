"""The array library behind an array: NumPy for single decisions, JAX for studies.

Layer 1 is written for one system and one run against the Python array API, without in-place
writes. This module alone asks which library is at work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

__all__ = ["Array", "namespace", "normal_cdf", "put"]

Array = Any
"""A NumPy or JAX array (or a JAX tracer)."""


def namespace(array: Array) -> Any:
    """Return the array API module (numpy or jax.numpy) that ``array`` belongs to."""
    return array.__array_namespace__()


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
