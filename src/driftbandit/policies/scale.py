"""Reward scale and drift of a model, from which the policies without a filter are tuned."""

from __future__ import annotations

import math

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array
from driftbandit.model import LGDS

__all__ = ["reward_drift", "reward_scale"]


def reward_scale(model: LGDS, arms: Array, rounds: int) -> float:
    """R = √(max_a aᵀZa + σ²): the largest root mean square a reward has (P18).

    Z is the stationary covariance, or E z zᵀ by ``rounds`` when ρ(Γ) ≥ 1.
    """
    moment = model.settled_moment(rounds)
    variance = float(np.einsum("kd,de,ke->k", arms, moment, arms).max() + model.reward_std**2)
    if not math.isfinite(variance):
        raise errors.InvalidInput(
            "rounds",
            f"is {rounds}, by when a state with spectral radius {model.spectral_radius:g} "
            "exceeds the largest number",
            "play fewer rounds",
        )
    return math.sqrt(max(variance, 0.0))


def reward_drift(model: LGDS, arms: Array, rounds: int) -> float:
    """max_a √(aᵀDa), D = (Γ − I) Z (Γ − I)ᵀ + Q: how far the fastest arm's mean moves in a round.

    Root mean square, with the Z of `reward_scale`.
    """
    change = model.transition - np.eye(model.n_states)
    drift = change @ model.settled_moment(rounds) @ change.T + model.process_cov
    return math.sqrt(max(float(np.einsum("kd,de,ke->k", arms, drift, arms).max()), 0.0))
