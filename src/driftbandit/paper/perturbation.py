"""Wrong models for learners (P24): Γ, Q or the arms transformed by T = I + ν Ξ, ‖Ξ‖_F = 1.

    Γ̃ = T⁻¹ Γ T,   C̃ = T⁻¹ C T,   Q̃ = T⁻¹ Q T

Γ̃ keeps Γ's eigenvalues, so it stays stable. T⁻¹QT is not symmetric, so it is not a covariance; its
symmetric part is projected onto the positive semidefinite matrices. "process_cov_congruent" is
T⁻¹QT⁻ᵀ, which is a covariance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from driftbandit import errors, families
from driftbandit.model import LGDS

TARGETS = ("transition", "arms", "process_cov", "process_cov_congruent")
"""What learners may have wrong; the last is T⁻¹QT⁻ᵀ instead of the projected T⁻¹QT."""

System = tuple[LGDS, np.ndarray]


def similarity(family: str, seed: int, number: int, n_states: int, strength: float) -> np.ndarray:
    """T = I + ν Ξ of one system; Ξ is the same for every ν and for everything it perturbs."""
    family = errors.closest(family, "family", families.FAMILIES)
    place = list(families.FAMILIES).index(family)
    # The spawn key keeps this stream apart from those that systems are drawn from.
    key = np.random.SeedSequence([seed, place, number], spawn_key=(24,))
    xi = np.random.Generator(np.random.Philox(key)).standard_normal((n_states, n_states))
    return np.eye(n_states) + strength / np.linalg.norm(xi) * xi


def perturb(
    systems: Sequence[System], target: str, similarities: Sequence[np.ndarray]
) -> list[System]:
    """What learners assume if ``target`` is transformed by T and the rest is right.

    ``similarities`` holds one T for each system.

    Example:
        >>> systems = families.sample("gaussian", 1)
        >>> T = similarity("gaussian", 0, 0, 10, strength=1.0)
        >>> [(model, _)] = perturb(systems, "transition", [T])
        >>> round(model.spectral_radius, 6)
        0.9
    """
    target = errors.closest(target, "target", TARGETS)
    assumed = []
    for (model, arms), T in zip(systems, similarities, strict=True):
        if target == "transition":
            model = dataclasses.replace(model, transition=np.linalg.solve(T, model.transition @ T))
        elif target != "arms":
            cov = _process_cov(model.process_cov, T, target == "process_cov_congruent")
            model = dataclasses.replace(model, process_cov=cov)
        else:
            if arms.shape[0] != arms.shape[1]:
                problem = f"have shape {arms.shape}, but T⁻¹CT needs as many arms as states"
                remedy = "perturb the transition or the process_cov instead"
                raise errors.InvalidInput("arms", problem, remedy)
            arms = np.linalg.solve(T, arms @ T)
        assumed.append((model, arms))
    return assumed


def _process_cov(cov: np.ndarray, T: np.ndarray, congruent: bool) -> np.ndarray:
    half = np.linalg.solve(T, cov)
    if congruent:
        moved = np.linalg.solve(T, half.T)
        return np.asarray(0.5 * (moved + moved.T))
    moved = half @ T
    values, vectors = np.linalg.eigh(0.5 * (moved + moved.T))
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)
