"""What nobody has to learn: fixed arms, chance, hindsight, and a filter that sees every arm."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftbandit import kalman
from driftbandit.model import LGDS
from driftbandit.system import Name

__all__ = ["Predictability", "Yardstick", "fixed", "leader", "one_step", "predictability"]


class Yardstick(NamedTuple):
    """A way to play that needs no learning."""

    earned: np.ndarray
    """Per round; where the log does not say what it would have earned, zero."""
    counted: np.ndarray
    """Per round: 1 where that is known, else 0."""
    arm: Name | None = None
    """Which arm it plays, where it is always the same; None: it changes."""


class Predictability(NamedTuple):
    """How much of the test part a filter foresees that is told every known reward, as R².

    1 − Σ (X − X̂)² / Σ (X − X̄)², X̂ the prediction one round ahead, X̄ the arm's training mean:
    1 is all, 0 is nothing, and below 0 the means alone had been better.
    """

    rewards: float
    """Of the rewards."""
    differences: float | None
    """Of their differences from the mean over the round's arms, which a choice depends on; None
    for logs, which do not show them."""


def leader(rewards: np.ndarray) -> int:
    """The arm that pays most, where its absence is filled up with the mean of those on offer."""
    counts = np.isfinite(rewards).sum(axis=0)
    if (np.isfinite(rewards).sum(axis=1) >= 2).any():
        totals = [fixed(rewards, arm).sum() for arm in range(rewards.shape[1])]
        return int(np.argmax(np.where(counts > 0, totals, -math.inf)))
    sums = np.nansum(rewards, axis=0)
    return int(np.argmax(np.where(counts > 0, sums / np.maximum(counts, 1), -math.inf)))


def fixed(rewards: np.ndarray, arm: int) -> np.ndarray:
    """What one arm pays; the mean of those on offer where it is not. Every round offers one."""
    own = rewards[:, arm]
    return np.where(np.isfinite(own), own, np.nanmean(rewards, axis=1))


def one_step(model: LGDS, arms: np.ndarray, rewards: np.ndarray, waits: np.ndarray) -> np.ndarray:
    """Predictions of all arms, one round ahead, by a filter that is told every known reward.

    Args:
        model: Γ, Q, σ.
        arms: k × d.
        rewards: T × k, NaN where none is known.
        waits: T, how many rounds each row lies after the one before it.

    Returns:
        T × k.
    """
    belief = kalman.prior(model)
    predicted = np.empty_like(rewards)
    for t, row in enumerate(rewards):
        if t:
            belief = kalman.advance(belief, model, int(waits[t]))
        predicted[t] = arms @ belief.mean
        for arm in np.flatnonzero(np.isfinite(row)):
            belief = kalman.observe(belief, model, arms[arm], row[arm])
    return predicted


def predictability(
    predicted: np.ndarray, rewards: np.ndarray, means: np.ndarray, logged: bool
) -> Predictability:
    """R² of the predictions, beside the arms' training means.

    Args:
        predicted: T × k.
        rewards: T × k, NaN where none is known.
        means: k.
        logged: whether a round shows one arm alone.
    """
    seen = np.isfinite(rewards)
    error, spread = (np.where(seen, rewards - guess, 0.0) for guess in (predicted, means))
    if logged:
        return Predictability(_share(error, spread), None)
    several = seen.sum(axis=1) >= 2
    apart = [
        np.where(seen, part - part.sum(axis=1, keepdims=True) / _count(seen), 0.0)[several]
        for part in (error, spread)
    ]
    return Predictability(_share(error, spread), _share(*apart))


def _count(seen: np.ndarray) -> np.ndarray:
    return np.maximum(seen.sum(axis=1, keepdims=True), 1)


def _share(error: np.ndarray, spread: np.ndarray) -> float:
    whole = float((spread**2).sum())
    return 1 - float((error**2).sum()) / whole if whole > 0 else math.nan
