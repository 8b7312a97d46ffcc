"""Where the error covariance settles: P_a when one arm is played forever, P_A when all are seen.

    P = Γ P Γᵀ + Q − Γ P Cᵀ (C P Cᵀ + σ² I)⁻¹ C P Γᵀ,   C the arms that are seen (P9)

SciPy solves this well where it can. Where it refuses (σ = 0, singular Q, modes on the unit
circle) the recursion itself is followed instead, by doubling: k doublings are 2^k rounds, so even
the 1/t convergence of a marginal mode ends. Where σ = 0 leaves that open too, the limit of small
σ is taken.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.linalg

from driftbandit import errors
from driftbandit.model import LGDS, checked_arms

__all__ = ["detectable", "oracle_cov", "oracle_gain", "prediction_cov"]

TOLERANCE = 1e-9
"""A solution must reproduce itself under one more round to this share of its largest entry."""
UNIT_CIRCLE = 1e-9
"""Eigenvalues with modulus above 1 − this must be seen."""


def detectable(model: LGDS, arms: Any) -> np.ndarray:
    """Whether (Γ, aᵀ) is detectable, arm by arm: every mode with |λ| ≥ 1 shows in ⟨a, z⟩ (P3).

    Args:
        model: Γ.
        arms: k × d.

    Returns:
        k booleans.

    Example:
        >>> model = LGDS([[1.0, 0.0], [0.0, 0.5]], np.eye(2), 1.0, initial_cov=np.eye(2))
        >>> detectable(model, [[1.0, 0.0], [0.0, 1.0]]).tolist()
        [True, False]
    """
    return np.array([_sees_growth(model, arm[None]) for arm in checked_arms(arms, model)])


def _sees_growth(model: LGDS, seen: np.ndarray) -> bool:
    # Popov–Belevitch–Hautus: [λI − Γ; C] keeps full column rank for every λ with |λ| ≥ 1.
    rows = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    for value in np.linalg.eigvals(model.transition):
        if abs(value) < 1 - UNIT_CIRCLE:
            continue
        pencil = np.vstack([value * np.eye(model.states) - model.transition, rows])
        singular = np.linalg.svd(pencil, compute_uv=False)
        if singular[-1] <= 1e-9 * singular[0]:
            return False
    return True


def prediction_cov(model: LGDS, arm: Any) -> np.ndarray:
    """P_a = g(P_a, a): the error covariance when ``arm`` alone is played forever (P9, P14).

    Raises:
        NotDetectable: the arm does not show a mode that does not die out by itself.

    Example:
        >>> model = LGDS([[1.0]], [[1.0]], reward_std=1.0, initial_cov=[[1.0]])
        >>> float(prediction_cov(model, [1.0])[0, 0].round(6))  # the golden ratio
        1.618034
    """
    arm = errors.matrix(arm, "arm", shape=(model.states,))
    return _settle(model, checked_arms(arm[None], model, "arm"), "arm")[0]


def oracle_cov(model: LGDS, arms: Any) -> np.ndarray:
    """P_A: the error covariance when the rewards of all ``arms`` are seen every round (P9)."""
    return _settle(model, _distilled(checked_arms(arms, model))[1], "arms")[0]


def oracle_gain(model: LGDS, arms: Any) -> np.ndarray:
    """K = P_A Cᵀ (C P_A Cᵀ + σ² I)⁻¹, d × k, the Kalman Oracle's steady gain (P9).

    The rewards of k > d arms say no more than d combinations of them, whose noises are still
    independent; these are folded in one by one: no k × k matrix, and what repeats something
    known already (σ = 0) gets weight zero.
    """
    weights, seen = _distilled(checked_arms(arms, model))
    return _settle(model, seen, "arms")[1] @ weights


def _distilled(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most d combinations W X of the k rewards X that hold all they say, and the arms W C."""
    if len(arms) <= arms.shape[1]:
        return np.eye(len(arms)), arms
    weights, seen = np.linalg.qr(arms)
    size = np.linalg.norm(seen, axis=1)
    kept = size > 1e-13 * size.max()
    return weights.T[kept], seen[kept]


def _fold(cov: np.ndarray, model: LGDS, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fold one reward of every arm in: the covariance after it, and the d × k gain."""
    gain = np.zeros((model.states, len(seen)))
    floor = 1e-12 * np.einsum("kd,de,ke->k", seen, cov, seen)  # below: rounding, not news
    for i, arm in enumerate(seen):
        cross = cov @ arm
        variance = arm @ cross + model.reward_std**2
        if variance <= floor[i]:
            continue
        weight = cross / variance
        gain -= np.outer(weight, arm @ gain)
        gain[:, i] += weight
        cov = cov - np.outer(weight, cross)
        cov = 0.5 * (cov + cov.T)
    return cov, gain


def _settle(model: LGDS, seen: np.ndarray, argument: str) -> tuple[np.ndarray, np.ndarray]:
    """The steady covariance and the gain that keeps it."""
    if not _sees_growth(model, seen):
        raise errors.NotDetectable(
            f"{argument}: a mode of the transition that does not die out (spectral radius "
            f"{model.spectral_radius:.6g}) never shows in the rewards, so the error grows "
            "forever; play an arm, or a set of arms, that reads it"
        )
    limit = _nearly_noiseless(model, seen)
    for system, solve in (
        (model, _by_scipy),
        (model, _by_doubling),
        (limit, _by_scipy),
        (limit, _by_doubling),
        (model, _by_recursion),
        (limit, _by_recursion),
    ):
        cov = solve(system, seen)
        gain = None if cov is None else _steady_gain(cov, system, seen)
        if cov is not None and gain is not None:
            return cov, gain
    raise errors.NotDetectable(f"{argument}: the Riccati recursion did not settle")


def _nearly_noiseless(model: LGDS, seen: np.ndarray) -> LGDS:
    """σ = 0 read as the limit of small σ.

    Without any noise a singular covariance leaves the gain open where nothing is in doubt, and
    the one at hand may let a first error grow; the limit's gain does not.
    """
    size = np.einsum("kd,de,ke->k", seen, model.process_cov, seen).max() ** 0.5
    size = size or np.linalg.norm(seen, axis=1).max()
    return dataclasses.replace(model, reward_std=max(float(model.reward_std), 1e-6 * size))


def _by_scipy(model: LGDS, seen: np.ndarray) -> np.ndarray | None:
    noise = model.reward_std**2 * np.eye(len(seen))
    try:
        cov = scipy.linalg.solve_discrete_are(model.transition.T, seen.T, model.process_cov, noise)
    except (np.linalg.LinAlgError, ValueError):
        return None
    return np.asarray(0.5 * (cov + cov.T))


def _by_doubling(model: LGDS, seen: np.ndarray) -> np.ndarray | None:
    """Structure-preserving doubling (Anderson 1978): after k steps, P as 2^k rounds leave it."""
    if model.reward_std == 0:
        return None
    identity = np.eye(model.states)
    A, G, H = model.transition.T, seen.T @ seen / model.reward_std**2, model.process_cov
    for _ in range(64):
        W = np.linalg.solve(identity + G @ H, np.hstack([A, G]))
        V1, V2 = W[:, : model.states], W[:, model.states :]
        step = A.T @ H @ V1
        H = H + 0.5 * (step + step.T)
        G = G + A @ V2 @ A.T
        G = 0.5 * (G + G.T)
        A = A @ V1
        if not np.isfinite(H).all():
            return None
        if np.abs(step).max() <= np.finfo(float).eps * np.abs(H).max():
            break
    values, vectors = np.linalg.eigh(H)
    cov = (vectors * np.maximum(values, 0)) @ vectors.T
    for _ in range(50):  # what a marginal mode's rounding left in the others dies out
        cov = _one_round(cov, model, seen)
    return cov


def _by_recursion(model: LGDS, seen: np.ndarray) -> np.ndarray | None:
    """Follow the recursion itself, from more doubt than there can be."""
    cov = model.process_cov + np.eye(model.states) * max(np.trace(model.process_cov), 1.0)
    for _ in range(20_000):
        before, cov = cov, _one_round(cov, model, seen)
        if not np.isfinite(cov).all():
            return None
        if np.abs(cov - before).max() <= 1e-13 * np.abs(cov).max():
            break
    return cov


def _one_round(cov: np.ndarray, model: LGDS, seen: np.ndarray) -> np.ndarray:
    after = model.transition @ _fold(cov, model, seen)[0] @ model.transition.T
    return 0.5 * (after + after.T) + model.process_cov


def _steady_gain(cov: np.ndarray, model: LGDS, seen: np.ndarray) -> np.ndarray | None:
    """The gain of ``cov``, if ``cov`` reproduces itself, is semidefinite and its error stays put.

    The last part matters where Q leaves a growing mode alone: P = 0 there solves the equation
    too, but no filter that starts with any doubt ends there.
    """
    if not np.isfinite(cov).all():
        return None
    scale = max(float(np.abs(cov).max()), np.finfo(float).tiny)
    if np.linalg.eigvalsh(cov)[0] < -TOLERANCE * scale:
        return None
    G = model.transition
    folded, gain = _fold(cov, model, seen)
    # What the products below lose to rounding, which a Γ far from normal makes large.
    rounding = 100 * np.finfo(float).eps * (np.abs(G) @ np.abs(cov) @ np.abs(G).T).max()
    error = np.abs(G @ folded @ G.T + model.process_cov - cov).max()
    growth = np.abs(np.linalg.eigvals(G - G @ gain @ seen)).max()
    return gain if error <= TOLERANCE * scale + rounding and growth <= 1 + 1e-6 else None
