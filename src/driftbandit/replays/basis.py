"""Coordinates of a learned state.

Where what the arms read of the state is learned too, the state's coordinates are whatever EM ended
with: z ↦ Tz, a ↦ T⁻ᵀa pays the same. Predictions and Kalman-UCB do not care; IDEA, whose bonus is
the length of a step of the state, and OFUL, whose ridge is a length, do.
"""

from __future__ import annotations

import numpy as np

from driftbandit.model import LGDS

__all__ = ["measured"]

SILENT = 1e-9
"""A direction that arms read this much less than the best one keeps its own length."""


def measured(model: LGDS, arms: np.ndarray, moving: int) -> tuple[LGDS, np.ndarray]:
    """The same system with its states measured by what the arms read of them.

        z ↦ (CᵀC)^½ z,   so that ‖z‖² = Σ_a ⟨a, z⟩²

    With one state for each arm, C = I, nothing changes. A constant state is measured by itself:
    else the arm with the largest offset had by far the longest row, and OFUL the largest hopes of
    it, even where the offset is a loss.

    Args:
        model: Γ, Q, σ, Σ0.
        arms: k × d.
        moving: how many states move, the first ones; those behind them are constants.

    Returns:
        The model and its arms.
    """
    values, vectors = np.linalg.eigh(arms[:, :moving].T @ arms[:, :moving])
    sizes = np.sqrt(np.where(values > SILENT * values.max(initial=0.0), values, 1.0))
    constant = np.linalg.norm(arms, axis=0)
    constant[constant == 0] = 1.0
    T, inverse = np.diag(constant), np.diag(1 / constant)
    T[:moving, :moving] = (vectors * sizes) @ vectors.T
    inverse[:moving, :moving] = (vectors / sizes) @ vectors.T
    turned = LGDS(
        T @ model.transition @ inverse,
        _even(T @ model.process_cov @ T.T),
        model.reward_std,
        None if model.initial_cov is None else _even(T @ model.initial_cov @ T.T),
        None if model.initial_mean is None else T @ model.initial_mean,
    )
    return turned, arms @ inverse


def _even(cov: np.ndarray) -> np.ndarray:
    return (cov + cov.T) / 2
