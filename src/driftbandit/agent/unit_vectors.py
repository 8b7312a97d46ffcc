"""Choosing any unit vector: agents whose arms are the sphere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.policies import Noise, Policy
from driftbandit.sphere import offer

__all__ = ["check", "checked", "noise_of"]

LONGEST = 1e-6
"""By how much a vector's length may miss one."""


def check(policy: Policy, model: Any, refit: Any) -> None:
    """Refuse what an agent on the sphere cannot do."""
    offer.check_able(policy)
    if model is None or refit is not None:
        name, problem = ("model", "is None") if model is None else ("refit", f"is {refit!r}")
        remedy = "give a model and no refit: models are learned with a list of arms"
        raise errors.InvalidInput(name, f"{problem}, and the arms are the sphere", remedy)


def noise_of(policy: Policy) -> Noise | None:
    """The random numbers that the policy asks for."""
    return policy.sphere_noise or policy.noise


def checked(vector: Any, n_states: int) -> np.ndarray:
    """A unit vector that somebody else played, which cannot be written to."""
    row = errors.matrix(vector, "arm", shape=(n_states,))
    if not abs(row @ row - 1) <= 2 * LONGEST:
        problem = f"has length {math.sqrt(row @ row):.6g}"
        raise errors.InvalidInput("arm", problem, "give a vector of length one")
    row.setflags(write=False)
    return row
