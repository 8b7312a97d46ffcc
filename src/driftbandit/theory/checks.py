"""What the theory asks of its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS
from driftbandit.policies.optimistic import Bonus

__all__ = ["bonuses", "check_no_offsets", "check_stationary", "error_cov"]


def check_stationary(model: LGDS, argument: str = "model", remedy: str = "") -> None:
    """Refuse a model whose state never settles."""
    if not isinstance(model, LGDS):
        raise errors.InvalidInput(argument, f"has type {type(model).__name__}", "give an LGDS")
    if not model.is_stable:
        raise errors.InvalidInput(
            argument,
            f"has spectral radius {model.spectral_radius:.6g}, so there is no stationary state",
            remedy or "this needs a transition with spectral radius below 1",
        )


def check_no_offsets(model: LGDS, remedy: str) -> None:
    """Refuse known constants other than zero, where a formula is printed for a mean of zero."""
    kept = np.flatnonzero(model.constants & (model.start_mean() != 0))
    if kept.size:
        number = int(kept[0])
        raise errors.InvalidInput(
            "model",
            f"state {number} is the constant {model.start_mean()[number]:g}, and the printed "
            "formula is for a mean of zero",
            remedy,
        )


def error_cov(cov: Any, model: LGDS, argument: str = "cov") -> np.ndarray:
    """Return an error covariance P of a filter: semidefinite, and at most Z."""
    P = errors.covariance(cov, argument, size=model.n_states)
    Z = model.stationary_cov()
    excess = -float(np.linalg.eigvalsh(Z - P)[0])
    if excess > 1e-9 * np.abs(Z).max():
        raise errors.InvalidInput(
            argument,
            f"exceeds the stationary covariance by {excess:g} in some direction",
            "give the error covariance of a filter that has settled",
        )
    return P


def bonuses(bonus: Bonus, cov: np.ndarray, model: LGDS, arms: np.ndarray) -> np.ndarray:
    """u(a | P) of every arm, one finite number each."""
    u = np.asarray(bonus(cov, model, arms))
    if u.shape != (len(arms),) or not np.isfinite(u).all():
        raise errors.InvalidInput(
            "bonus", f"gives {u!r} for {len(arms)} arms", "give one finite number for each arm"
        )
    return u
