"""How a study is cut: blocks of runs that fit a memory budget, spans of rounds within them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

__all__ = ["Block", "Plan", "checkpoints", "plan"]

SPAN = 64
"""Rounds per compiled call: long enough to hide the call, short enough to stay in cache."""


class Block(NamedTuple):
    """Which systems and runs are played together; ``kept`` of each are real, the rest padding."""

    systems: np.ndarray
    runs: np.ndarray
    kept: tuple[int, int]


class Plan(NamedTuple):
    """The shape that every block has, so that one compiled program serves all."""

    systems: int
    runs: int
    block_systems: int
    block_runs: int
    span: int

    def blocks(self) -> Iterator[Block]:
        """Every block, in order; a last, smaller one is filled up by repeating its last member."""
        for s in range(0, self.systems, self.block_systems):
            for r in range(0, self.runs, self.block_runs):
                systems = np.arange(s, s + self.block_systems)
                runs = np.arange(r, r + self.block_runs)
                kept = min(self.systems - s, systems.size), min(self.runs - r, runs.size)
                yield Block(
                    np.minimum(systems, self.systems - 1), np.minimum(runs, self.runs - 1), kept
                )


def plan(
    systems: int, runs: int, rounds: int, states: int, arms: int, *, most: int, memory: float
) -> Plan:
    """Choose block sizes so that at most ``most`` runs, and ``memory`` bytes, are in flight.

    A run holds, per round of a span, the gaps, rewards and noise of k arms and the shocks of d
    states, and besides a covariance and the arms' covariances a few times over.
    """
    span = min(SPAN, rounds)
    numbers = span * (4 * arms + 2 * states) + 6 * states * states + 4 * arms * states
    fits = int(max(1, min(most, memory / (8 * numbers))))
    block_runs = min(runs, fits)
    pieces = -(-runs // block_runs)
    block_runs = -(-runs // pieces)  # even pieces: no block mostly padding
    block_systems = max(1, min(systems, fits // block_runs))
    pieces = -(-systems // block_systems)
    block_systems = -(-systems // pieces)
    return Plan(systems, runs, block_systems, block_runs, span)


def checkpoints(rounds: int, count: int = 40) -> np.ndarray:
    """About ``count`` log-spaced round numbers from 1 to ``rounds``, both included, each once."""
    return np.unique(np.geomspace(1, rounds, count).round().astype(int))
