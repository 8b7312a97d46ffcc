"""From learned parameters to a model: coordinates, a new run's start, offsets and their error."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from driftbandit.identify.data import Data, Parameters
from driftbandit.identify.em import Structure
from driftbandit.identify.smoothing import predicted
from driftbandit.model import LGDS

UNREAD = 1e-9  # a direction that arms read this much less than the best one is not scaled
# Memory of the offsets' errors, in lengths of the log. It is finite so that the model has a
# stationary distribution, yet so long that no log could show the forgetting.
LASTING = 100.0
LONGEST = 1e9  # longest such memory in rounds: 1 − 1/m must be below 1 by more than rounding
LEAST = 1e-12  # least variance of an offset's error, as a share of that before any reward
MOST_STATES = 64  # largest filter of states and offsets; beyond it offsets are taken to be known


def scaled_by_reads(parameters: Parameters, structure: Structure = "free") -> Parameters:
    """The same system with its states scaled by how arms read them.

        z ↦ (CᵀC)^½ z,   so that ‖z‖² = Σ_a ⟨c_a, z⟩²

    Learned read-outs are unique only up to a change of basis z ↦ Tz, c ↦ T⁻ᵀc. Predictions and
    Kalman-UCB do not depend on the basis; IDEA's bonus and OFUL's ridge do, because they are
    lengths. A diagonal Γ stays diagonal: each state is scaled separately.
    """
    if structure == "free":
        values, vectors = np.linalg.eigh(parameters.reads.T @ parameters.reads)
    else:
        values, vectors = (parameters.reads**2).sum(axis=0), np.eye(parameters.reads.shape[1])
    sizes = np.sqrt(np.where(values > UNREAD * values.max(), values, 1.0))
    T, inverse = (vectors * sizes) @ vectors.T, (vectors / sizes) @ vectors.T
    process_cov, initial_cov = T @ parameters.process_cov @ T, T @ parameters.initial_cov @ T
    return parameters._replace(
        transition=T @ parameters.transition @ inverse,
        process_cov=(process_cov + process_cov.T) / 2,
        initial_mean=T @ parameters.initial_mean,
        initial_cov=(initial_cov + initial_cov.T) / 2,
        reads=parameters.reads @ inverse,
    )


def start_distribution(parameters: Parameters, sequences: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a new run's start: the log's, shrunk toward the stationary ones.

    The starts of a few sequences can be fitted perfectly without predicting a new run's start, so
    d + 1 stationary sequences are added.
    """
    mean, cov = parameters.initial_mean, parameters.initial_cov
    settled = LGDS(parameters.transition, parameters.process_cov, 1.0)
    if not settled.is_stable:
        return mean, cov
    own = sequences / (sequences + len(mean) + 1)
    blend = own * cov + (1 - own) * (settled.stationary_cov() + own * np.outer(mean, mean))
    return own * mean, blend


def assembled(
    parameters: Parameters,
    start: tuple[np.ndarray, np.ndarray],
    offsets: bool,
    doubt: np.ndarray | None = None,
    span: float = 1.0,
) -> tuple[LGDS, np.ndarray]:
    """The model and its arms, from parameters of the raw rewards.

    With offsets the states are the d that drift; if offsets are uncertain, the error of each arm's
    offset; and a constant 1. ``start``: mean and covariance of the d states; ``doubt``: covariance
    of the offsets' errors, k × k, None if they are known; ``span``: rounds of the log.
    """
    std, (mean, cov) = np.sqrt(parameters.reward_var), start
    transition, noise, reads = parameters.transition, parameters.process_cov, parameters.reads
    if not offsets:
        return LGDS(transition, noise, std, cov, mean if mean.any() else None), reads
    if doubt is not None:
        k = len(reads)
        keep = float(np.exp(-1 / min(LASTING * max(span, 1.0), LONGEST)))
        transition = scipy.linalg.block_diag(transition, keep * np.eye(k))
        noise = scipy.linalg.block_diag(noise, (1 - keep**2) * doubt)
        cov = scipy.linalg.block_diag(cov, doubt)
        mean, reads = np.concatenate([mean, np.zeros(k)]), np.hstack([reads, np.eye(k)])
    transition = scipy.linalg.block_diag(transition, 1.0)
    noise, cov = scipy.linalg.block_diag(noise, 0.0), scipy.linalg.block_diag(cov, 0.0)
    model = LGDS(transition, noise, std, cov, np.append(mean, 1.0))
    return model, np.column_stack([reads, parameters.offsets])


def offset_cov(parameters: Parameters, data: Data, variance: float) -> np.ndarray | None:
    """Covariance of the offsets' errors, k × k, given the other parameters.

    Each sequence's filter has the offsets beside the state; the information of all sequences adds,

        C⁻¹ = V⁻¹ + Σ_s (C_s⁻¹ − V⁻¹),   V = variance · I, before any reward.

    None if the filter would be too large.
    """
    k, d = parameters.reads.shape
    if k + d > MOST_STATES:
        return None
    wide = Parameters(
        scipy.linalg.block_diag(parameters.transition, np.eye(k)),
        scipy.linalg.block_diag(parameters.process_cov, np.zeros((k, k))),
        parameters.reward_var,
        np.zeros(d + k),
        scipy.linalg.block_diag(parameters.initial_cov, variance * np.eye(k)),
        np.hstack([parameters.reads, np.eye(k)]),
        np.zeros(k),
    )
    before = np.eye(k) / variance
    learned = sum(_inverse(cov[d:, d:], variance) - before for cov in predicted(wide, data)[2])
    return _inverse(before + learned, 1 / variance)


def _inverse(matrix: np.ndarray, unit: float) -> np.ndarray:
    """The inverse of a symmetric matrix, whose eigenvalues are at least `LEAST` of the unit.

    Rewards with next to no noise leave offsets without an error that is larger than rounding.
    """
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return np.asarray((vectors / np.maximum(values, LEAST * unit)) @ vectors.T)
