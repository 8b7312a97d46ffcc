"""Rewards of a log: how large they may be, and whether they vary at all."""

from __future__ import annotations

import numpy as np

from driftbandit import errors

ROUNDING = 1e-13  # differences below this share of the rewards' size are rounding errors
LARGEST_REWARD = 1e30  # and one over the smallest: their fourth powers must not overflow


def check_size(values: np.ndarray, what: str) -> None:
    """Refuse rewards or features whose squares are too large or too small to compute with."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > 0 and not 1 / LARGEST_REWARD <= largest <= LARGEST_REWARD:
        ends = f"{1 / LARGEST_REWARD:g} to {LARGEST_REWARD:g}"
        remedy = f"measure them in other units: sizes from {ends} are read"
        raise errors.InvalidInput("log", f"has {what} up to {largest:g}", remedy)


def padded(size: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, …: logs of similar length share a compiled program.

    Example:
        >>> [padded(size) for size in (1, 3, 5, 7, 100)]
        [1, 3, 6, 8, 128]
    """
    power = 1 << (size - 1).bit_length()
    return power * 3 // 4 if size <= power * 3 // 4 else power


def _apart(rewards: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """How far rewards are from their centers; zero where that is a rounding error."""
    apart, size = rewards - centers, np.maximum(np.abs(rewards), np.abs(centers))
    return np.asarray(np.where(np.abs(apart) <= ROUNDING * size, 0.0, apart))


def no_arm_varies(arms: np.ndarray, rewards: np.ndarray) -> bool:
    """Whether no arm has two rewards that differ by more than rounding.

    Example:
        >>> no_arm_varies(np.array([0, 1, 0]), np.array([0.3, 2.0, 0.1 + 0.2]))
        True
    """
    order = np.lexsort((rewards, arms))
    arms, rewards = arms[order], rewards[order]
    return not _apart(rewards[1:], rewards[:-1])[arms[1:] == arms[:-1]].any()
