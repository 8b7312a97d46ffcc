"""Checks of the theory's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS
from driftbandit.policies.optimistic import Bonus


def check_stationary(
    model: LGDS,
    argument: str = "model",
    remedy: str = "this needs a transition with spectral radius below 1",
) -> None:
    """Refuse a model without a stationary state."""
    if not isinstance(model, LGDS):
        raise errors.InvalidInput(argument, f"has type {type(model).__name__}", "give an LGDS")
    model.check_stable(argument, remedy)


def check_no_offsets(model: LGDS, remedy: str) -> None:
    """Refuse non-zero constants: the printed formulas assume a mean of zero."""
    mean = model.start_mean()
    for state in np.flatnonzero(model.constants & (mean != 0)):
        constant = f"state {state} is the constant {mean[state]:g}"
        problem = f"{constant}, and the printed formula is for a mean of zero"
        raise errors.InvalidInput("model", problem, remedy)


def error_cov(cov: Any, model: LGDS, argument: str = "cov") -> np.ndarray:
    """A filter's error covariance P: positive semidefinite and at most Z."""
    P = errors.covariance(cov, argument, size=model.n_states)
    Z = model.stationary_cov()
    excess = -float(np.linalg.eigvalsh(Z - P)[0])
    if excess > 1e-9 * np.abs(Z).max():
        problem = f"exceeds the stationary covariance by {excess:g} in some direction"
        remedy = "give the error covariance of a filter in its steady state"
        raise errors.InvalidInput(argument, problem, remedy)
    return P


def bonuses(bonus: Bonus, cov: np.ndarray, model: LGDS, arms: np.ndarray) -> np.ndarray:
    """u(a | P) of every arm, one finite number each."""
    u = np.asarray(bonus(cov, model, arms))
    if u.shape != (len(arms),) or not np.isfinite(u).all():
        problem = f"gives {u!r} for {len(arms)} arms"
        raise errors.InvalidInput("bonus", problem, "give one finite number for each arm")
    return u
