"""Coordinates of a state whose read-outs are learned.

What arms read and what the state does are then learned up to a change of basis: z ↦ Tz, c ↦ T⁻ᵀc
pays the same. Predictions and Kalman-UCB do not care; IDEA, whose bonus is the length of a step of
the state, and OFUL, whose ridge is a length, do.
"""

from __future__ import annotations

import numpy as np

from driftbandit.identify import em

__all__ = ["measured"]

SILENT = 1e-9
"""A direction that arms read this much less than the best one keeps its own length."""


def measured(parameters: em.Parameters, structure: em.Structure = "free") -> em.Parameters:
    """The same system with its states measured by what the arms read of them.

        z ↦ (CᵀC)^½ z,   so that ‖z‖² = Σ_a ⟨c_a, z⟩²

    Where states do not move each other, they are not mixed: each is measured by itself.

    Args:
        parameters: as EM left them.
        structure: of Γ.
    """
    if structure == "free":
        values, vectors = np.linalg.eigh(parameters.reads.T @ parameters.reads)
    else:
        values, vectors = (parameters.reads**2).sum(axis=0), np.eye(parameters.reads.shape[1])
    sizes = np.sqrt(np.where(values > SILENT * values.max(), values, 1.0))
    T, inverse = (vectors * sizes) @ vectors.T, (vectors / sizes) @ vectors.T
    process_cov, initial_cov = (
        T @ cov @ T for cov in (parameters.process_cov, parameters.initial_cov)
    )
    return parameters._replace(
        transition=T @ parameters.transition @ inverse,
        process_cov=(process_cov + process_cov.T) / 2,
        initial_mean=T @ parameters.initial_mean,
        initial_cov=(initial_cov + initial_cov.T) / 2,
        reads=parameters.reads @ inverse,
    )
