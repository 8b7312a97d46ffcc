"""The metric φ: how far a policy's predictions of the arms are from the Kalman Oracle's (P17).

    φ(i, j | P) = ‖μ_i‖ + tr(Σ_ij + Σ̂_ij) − 2 tr((Σ̂_ij^½ Σ_ij Σ̂_ij^½)^½)

Σ_ij is the covariance of (A_i ẑ, A_j z): by how much arm i is predicted to beat the other arms,
and by how much arm j beats them. The oracle's ẑ has covariance Z − P_A; the policy's, in Σ̂_ij, has
Z − P and the mean μ_i, the lead u(a_i) − u(a_b) that the bonus gives arm i. So φ compares two
normal distributions. The paper prints ‖μ_i‖; with ‖μ_i‖² it is the squared 2-Wasserstein distance
(``squared=True``). Smaller is better.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, steady_state
from driftbandit.machine import cores
from driftbandit.model import LGDS, checked_arms, factor
from driftbandit.policies.optimistic import Bonus
from driftbandit.system import System, pair, takes_system
from driftbandit.theory import checks


class Intervals(NamedTuple):
    """The lowest and the highest φ of n systems (P17), each n × 2; see `metric_intervals`.

    Example:
        >>> from driftbandit import families
        >>> from driftbandit.policies import idea
        >>> systems = families.sample("gaussian", systems=4, n_states=3, n_arms=3)
        >>> found = metric_intervals(systems, {"idea": idea.bonus})["idea"]
        >>> found.printed.shape, found.squared.shape
        ((4, 2), (4, 2))
        >>> low, high = found.squared[2]  # of the third system
        >>> bool(0 <= low <= high)
        True
    """

    printed: np.ndarray  # with ‖μ_i‖, as in the paper
    squared: np.ndarray  # with ‖μ_i‖²: the squared 2-Wasserstein distance


@takes_system
def metric(model: LGDS, arms: Any, bonus: Bonus, cov: Any, squared: bool = False) -> np.ndarray:
    """φ(i, j | P) of every pair of arms (P17).

    Args:
        model, arms, bonus: Γ, Q, σ with ρ(Γ) < 1; k × d, k ≥ 2; u, as ``policies.idea.bonus``.
        cov: P, the policy's error covariance, d × d; at most Z.
        squared: ‖μ_i‖² instead of the printed ‖μ_i‖.

    Returns:
        k × k, NaN on the diagonal.

    Example:
        >>> from driftbandit.policies import kode
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> oracle = steady_state.oracle_cov(model, np.eye(2))
        >>> metric(model, np.eye(2), kode.bonus, oracle).round(9) + 0.0  # the oracle's own
        array([[nan,  0.],
               [ 0., nan]])
    """
    rows = _checked(model, arms)
    P = checks.error_cov(cov, model)
    lead = _leads(bonus, P[None], model, rows)[0]
    return np.asarray(_distances(P[None], model, rows)[0] + (lead**2 if squared else lead)[:, None])


@takes_system
def metric_interval(
    model: LGDS, arms: Any, bonus: Bonus, squared: bool = False
) -> tuple[float, float]:
    """The least and the greatest φ(i, j | P_a) over i ≠ j and a, P_a = g(P_a, a) (P17).

    Args:
        model, arms, bonus, squared: as in `metric`.

    Returns:
        The least and the greatest φ.

    Example:
        >>> from driftbandit.policies import idea
        >>> model = LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> low, high = metric_interval(model, [[1.0, 0.0], [0.0, 1.0]], idea.bonus)
        >>> round(low, 6), round(high, 6)
        (0.086731, 0.086731)
    """
    low, high = _extremes((model, _checked(model, arms)), [bonus])[0, int(squared)].tolist()
    return low, high


def metric_intervals(
    systems: Sequence[tuple[LGDS, Any] | System],
    bonuses: Mapping[str, Bonus],
    progress: Callable[[float], None] | None = None,
    workers: int | None = None,
) -> dict[str, Intervals]:
    """`metric_interval` of many systems and bonuses, in both forms (P17).

    The traces, which take nearly all the time, do not depend on the bonus and are computed once.

    Args:
        systems, bonuses: n pairs (model, arms), or Systems; name and u of each policy.
        progress: called with the finished share, from 0 to 1.
        workers: threads; None: one per core.

    Returns:
        The intervals of all systems, by the policy's name.

    Example:
        >>> from driftbandit import families
        >>> from driftbandit.policies import idea, kode
        >>> systems = families.sample("gaussian", systems=4, n_states=3, n_arms=3)
        >>> found = metric_intervals(systems, {"idea": idea.bonus, "kode": kode.bonus})
        >>> bool((found["kode"].printed <= found["idea"].printed).all())
        True
    """
    if not len(systems):
        raise errors.InvalidInput("systems", "is empty", "give at least one (model, arms)")
    checked = [
        (model, _checked(model, arms, f" of system {i}"))
        for i, (model, arms) in enumerate(map(pair, systems))
    ]
    found = np.empty((len(checked), len(bonuses), 2, 2))
    pool = ThreadPoolExecutor(workers or cores())  # LAPACK releases Python's lock
    try:
        tasks = pool.map(functools.partial(_extremes, bonuses=tuple(bonuses.values())), checked)
        for i, extremes in enumerate(tasks):
            found[i] = extremes
            if progress is not None:
                progress((i + 1) / len(checked))
    finally:  # after Ctrl-C, too
        pool.shutdown(cancel_futures=True)
    return {name: Intervals(found[:, b, 0], found[:, b, 1]) for b, name in enumerate(bonuses)}


def _checked(model: LGDS, arms: Any, place: str = "") -> np.ndarray:
    rows = checked_arms(arms, model, f"arms{place}")
    if len(rows) < 2:
        raise errors.InvalidInput(f"arms{place}", "is a single arm", "give two or more to compare")
    checks.check_stationary(model, f"model{place}")
    return rows


def _extremes(system: tuple[LGDS, np.ndarray], bonuses: Sequence[Bonus]) -> np.ndarray:
    """Least and greatest φ over i ≠ j and a: bonuses × (printed, squared) × (least, greatest)."""
    model, arms = system
    covs = steady_state.prediction_covs(model, arms)
    distances = _distances(covs, model, arms)
    least, greatest = np.nanmin(distances, axis=2), np.nanmax(distances, axis=2)
    found = []
    for bonus in bonuses:
        lead = _leads(bonus, covs, model, arms)
        found.append([((form + least).min(), (form + greatest).max()) for form in (lead, lead**2)])
    return np.array(found)


def _leads(bonus: Bonus, covs: np.ndarray, model: LGDS, arms: np.ndarray) -> np.ndarray:
    """‖μ_i(P)‖ for n covariances P, n × k."""
    u = np.array([checks.bonuses(bonus, cov, model, arms) for cov in covs])
    return np.asarray(np.linalg.norm(u[:, :, None] - u[:, None, :], axis=2))


def _distances(covs: np.ndarray, model: LGDS, arms: np.ndarray) -> np.ndarray:
    """φ without ‖μ‖ for n covariances P, n × k × k, NaN where i = j."""
    # With Σ = G Gᵀ and Σ̂ = Ĝ Ĝᵀ the last trace is the sum of the singular values of Gᵀ Ĝ, which
    # depends on the 2 (k − 1) rows of G only through M_i = A_iᵀ A_i:
    #     G = [A_i F, 0; A_j F, A_j E],   F Fᵀ = Z − P_A,   E Eᵀ = P_A
    #     Gᵀ Ĝ = [F, 0]ᵀ M_i [F̂, 0] + [F, E]ᵀ M_j [F̂, Ê]
    # Only differences of arms count, in at most k − 1 directions. In the coordinates R z, where QR
    # are the arms minus the first one, matrices are small and M_i is near the identity.
    offsets, seen = np.linalg.qr(arms[1:] - arms[0])
    offsets = np.vstack([np.zeros(len(seen)), offsets])
    A = offsets[:, None] - offsets  # A_i, and a row of zeros
    M = A.swapaxes(1, 2) @ A
    Z, oracle = model.stationary_cov(), steady_state.oracle_cov(model, arms)
    Z, oracle, covs = (seen @ cov @ seen.T for cov in (Z, oracle, covs))
    oracle_predicted, oracle_state = _factors(Z, oracle)

    i, j = np.nonzero(~np.eye(len(arms), dtype=bool))
    distances = np.full((len(covs), len(arms), len(arms)), np.nan)
    for cov, distance in zip(covs, distances, strict=True):
        predicted, state = _factors(Z, cov)
        spread_i = _traces(M, oracle_predicted) + _traces(M, predicted)
        spread_j = _traces(M, oracle_state) + _traces(M, state)
        products = (oracle_predicted.T @ M @ predicted)[i] + (oracle_state.T @ M @ state)[j]
        # Roots of a Gram matrix's eigenvalues would take two thirds of the time but lose half of
        # the digits, and φ may be 10⁻⁵ of its traces.
        common = np.linalg.svd(products, compute_uv=False).sum(axis=1)
        distance[i, j] = spread_i[i] + spread_j[j] - 2 * common
    return distances


def _factors(Z: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[F, 0] and [F, E], F Fᵀ = Z − P and E Eᵀ = P: ẑ and z from the same unit normal numbers."""
    F, E = factor(Z - P), factor(P)
    return np.hstack([F, np.zeros_like(F)]), np.hstack([F, E])


def _traces(M: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """tr(Bᵀ M_i B) of a factor B, for every arm i."""
    return np.asarray(((M @ factors) * factors).sum(axis=(-1, -2)))
