"""Methods that learn nothing: constant, cosine and random step sizes."""

# ruff: noqa: D102  (`play.Method` documents the methods)
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from testbed.problems import EPOCHS, Array


def cosine(epoch: int, epochs: int = EPOCHS) -> float:
    """The share of the peak: 1 in the first epoch, 0 after the last (Loshchilov, Hutter 2017)."""
    return 0.5 * (1 + np.cos(np.pi * epoch / epochs))


class Schedule:
    """Step sizes known before the training: peaks (seeds × members) times a share per epoch."""

    def __init__(self, peaks: Array, share: Callable[[int], float] = lambda epoch: 1.0) -> None:
        self.peaks, self.share, self.members = peaks, share, peaks.shape[1]

    def rates(self, epoch: int) -> Array:
        return self.peaks * self.share(epoch)

    def learn(self, epoch: int, before: Array, after: Array) -> None:
        return None


class RandomEachEpoch:
    """A step size of the grid, drawn anew every epoch."""

    members = 1

    def __init__(self, grid: Array, seeds: list[int]) -> None:
        self.grid, self.rngs = grid, [np.random.default_rng([40, seed]) for seed in seeds]

    def rates(self, epoch: int) -> Array:
        return np.array([[rng.choice(self.grid)] for rng in self.rngs])

    def learn(self, epoch: int, before: Array, after: Array) -> None:
        return None


def drawn(grid: Array, seeds: list[int], members: int) -> Array:
    """Step sizes from the grid's range, uniform in the logarithm; seeds × members."""
    low, high = np.log(grid[[0, -1]])
    shares = [np.random.default_rng([41, seed]).random(members) for seed in seeds]
    return np.exp(low + (high - low) * np.stack(shares))
