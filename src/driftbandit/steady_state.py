"""The steady error covariance: P_a if one arm is played forever, P_A if all rewards are observed.

    P = Γ P Γᵀ + Q − Γ P Cᵀ (C P Cᵀ + σ² I)⁻¹ C P Γᵀ,   C the observed arms (P9)

`riccati` solves it. P and the gain are zero in the rows of known constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from driftbandit import errors, riccati
from driftbandit.model import LGDS, arm_stack, checked_arms

__all__ = ["detectable", "oracle_cov", "oracle_gain", "oracle_gains", "oracle_path"]
__all__ += ["prediction_cov", "prediction_covs"]


def detectable(model: LGDS, arms: Any) -> np.ndarray:
    """Whether (Γ, aᵀ) is detectable for each arm: every mode with |λ| ≥ 1 shows in ⟨a, z⟩ (P3).

    Args:
        model, arms: Γ, Q, σ; k × d.

    Returns:
        k truth values.

    Example:
        >>> model = LGDS([[1.0, 0.0], [0.0, 0.5]], np.eye(2), 1.0, initial_cov=np.eye(2))
        >>> detectable(model, [[1.0, 0.0], [0.0, 1.0]]).tolist()
        [True, False]
    """
    rows = model.without_offsets(checked_arms(arms, model))
    return np.array([riccati.detects(model, arm[None]) for arm in rows])


def prediction_cov(model: LGDS, arm: Any) -> np.ndarray:
    """P_a = g(P_a, a): the error covariance if ``arm`` is played forever (P9, P14).

    Args:
        model, arm: Γ, Q, σ; a, d numbers.

    Returns:
        P_a, d × d.

    Raises:
        NotDetectable: the arm does not show some mode that does not decay.

    Example:
        >>> model = LGDS([[1.0]], [[1.0]], reward_std=1.0, initial_cov=[[1.0]])
        >>> float(prediction_cov(model, [1.0])[0, 0].round(6))  # the golden ratio
        1.618034
    """
    arm = errors.matrix(arm, "arm", shape=(model.n_states,))
    rows = model.without_offsets(checked_arms(arm[None], model, "arm"))
    return riccati.settled([model], rows[None], ["arm"])[0][0]


def prediction_covs(model: LGDS, arms: Any) -> np.ndarray:
    """P_a of every arm, k × d × d (P9, P14); each must be detectable.

    Example:
        >>> prediction_covs(LGDS([[0.5]], [[1.0]], reward_std=0.0), [[1.0], [2.0]]).ravel().tolist()
        [1.0, 1.0]
    """
    rows = model.without_offsets(checked_arms(arms, model))
    names = [f"arms: row {i}" for i in range(len(rows))]
    return riccati.settled([model] * len(rows), rows[:, None], names)[0]


def oracle_cov(model: LGDS, arms: Any) -> np.ndarray:
    """P_A: the error covariance if the rewards of all ``arms`` are observed every round (P9).

    Args:
        model, arms: Γ, Q, σ; k × d.

    Returns:
        P_A, d × d.

    Raises:
        NotDetectable: no arm shows some mode that does not decay.

    Example:
        >>> model = LGDS([[1.0]], [[1.0]], reward_std=1.0, initial_cov=[[1.0]])
        >>> float(oracle_cov(model, [[1.0]])[0, 0].round(6))  # as `prediction_cov`: it is one arm
        1.618034
        >>> float(oracle_cov(model, [[1.0], [1.0]])[0, 0].round(6))  # (1 + √3) / 2: half the noise
        1.366025
    """
    _, seen = _distilled(model.without_offsets(checked_arms(arms, model))[None])
    return riccati.settled([model], seen, ["arms"])[0][0]


def oracle_path(model: LGDS, arms: Any) -> Iterator[np.ndarray]:
    """P(t|t−1) of rounds t = 0, 1, …, without end, if all rewards are observed (P9).

    P(0) is Σ0 or the stationary Z. A filter that sees fewer rewards has a larger P in every round.

    Example:
        >>> import itertools
        >>> model = LGDS([[1.0]], [[1.0]], reward_std=1.0, initial_cov=[[0.0]])
        >>> [float(P[0, 0]) for P in itertools.islice(oracle_path(model, [[1.0]]), 3)]
        [0.0, 1.0, 1.5]
    """
    _, seen = _distilled(model.without_offsets(checked_arms(arms, model))[None])
    stack = riccati.Stack.of([model], seen)
    moving = np.ix_(~model.constants, ~model.constants)
    covs = model.start_cov()[moving][None]
    while True:
        whole = np.zeros_like(model.transition)
        whole[moving] = covs[0]
        yield whole
        covs = riccati.next_round(covs, stack)


def oracle_gain(model: LGDS, arms: Any) -> np.ndarray:
    """K = P_A Cᵀ (C P_A Cᵀ + σ² I)⁻¹, d × k, the Kalman Oracle's steady gain (P9).

    The rewards of k > d arms hold no more information than d combinations of them with independent
    noise. Those are folded in one by one, without a k × k matrix; with σ = 0, a combination that
    repeats what is already known gets weight zero.

    Args:
        model, arms: Γ, Q, σ; k × d.

    Raises:
        NotDetectable: as in `oracle_cov`.

    Example:
        >>> model = LGDS([[1.0]], [[1.0]], reward_std=1.0, initial_cov=[[1.0]])
        >>> oracle_gain(model, [[1.0], [1.0]]).round(6).tolist()  # equal arms, equal weights
        [[0.366025, 0.366025]]
    """
    return _gains([model], checked_arms(arms, model)[None], ["arms"])[0]


def oracle_gains(systems: Sequence[tuple[LGDS, Any]]) -> np.ndarray:
    """The `oracle_gain` of n systems with the same d and k, n × d × k (P9).

    Example:
        >>> model = LGDS([[0.5]], [[1.0]], reward_std=0.0)
        >>> oracle_gains([(model, [[1.0]]), (model, [[2.0]])]).ravel().tolist()
        [1.0, 0.5]
    """
    if not len(systems):
        raise errors.InvalidInput("systems", "is empty", "give at least one (model, arms)")
    names = [f"arms of system {i}" for i in range(len(systems))] if len(systems) > 1 else ["arms"]
    arms = arm_stack(systems)
    if arms is None:
        pairs = zip(systems, names, strict=True)
        each = [checked_arms(rows, model, name) for (model, rows), name in pairs]
        for name, rows in zip(names, each, strict=True):
            if rows.shape != each[0].shape:
                remedy = f"give shape {each[0].shape}, as system 0 has"
                raise errors.InvalidInput(name, f"has shape {rows.shape}", remedy)
        arms = np.stack(each)
    return _gains([model for model, _ in systems], arms, names)


def _gains(models: Sequence[LGDS], arms: np.ndarray, names: Sequence[str]) -> np.ndarray:
    constants = riccati.constants_of(models)
    weights, seen = _distilled(np.where(constants[:, None], 0.0, arms))
    return riccati.settled(models, seen, names)[1] @ weights


def _distilled(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W and W C, so that at most d combinations W X of the k rewards X hold all information."""
    # Combinations without information are kept as zero rows, so that all systems have equally many.
    _, k, d = arms.shape
    if k <= d:
        return np.eye(k), arms
    weights, seen = np.linalg.qr(arms)
    size = np.abs(seen).max(axis=2, keepdims=True)
    told = size > 1e-13 * size.max(axis=1, keepdims=True)
    return weights.swapaxes(-1, -2), np.where(told, seen, 0)
