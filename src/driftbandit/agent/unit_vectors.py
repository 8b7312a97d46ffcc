"""Choosing any unit vector: agents whose arms are the sphere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.actions import SPHERE
from driftbandit.kalman import Belief
from driftbandit.policies import Policy, Problem

__all__ = ["check", "choose"]

Figures = tuple[float | None, float | None, float | None]


def check(policy: Policy, model: Any, refit: Any, names: Any) -> None:
    """Refuse what an agent on the sphere cannot do."""
    policy.check_plays(SPHERE, 0)
    if model is None or refit is not None:
        name, problem = ("model", "is None") if model is None else ("refit", f"is {refit!r}")
        remedy = "give a model and no refit: models are learned with a list of arms"
        raise errors.InvalidInput(name, f"{problem}, and the arms are the sphere", remedy)
    if names is not None:
        problem = "were given, and the arms are the sphere"
        raise errors.InvalidInput("names", problem, "leave them out")


def choose(policy: Policy, problem: Problem, state: Any, noise: Any) -> tuple[np.ndarray, Figures]:
    """The vector to play, which cannot be written to, with expected reward and uncertainty."""
    vector = np.array(SPHERE.choose(policy)(state, problem, noise), np.float64)
    try:
        vector = SPHERE.checked_vector(vector, problem.model.n_states)
    except errors.InvalidInput:
        name, remedy = f"arm of policy {policy.name!r}", "give d numbers of length one"
        shown = f"is {' '.join(repr(vector).split())}"
        raise errors.InvalidInput(name, shown, remedy) from None
    if not isinstance(state, Belief):
        return vector, (None, None, None)
    uncertainty = math.sqrt(max(float(vector @ state.cov @ vector), 0.0))
    return vector, (float(vector @ state.mean), None, uncertainty)
