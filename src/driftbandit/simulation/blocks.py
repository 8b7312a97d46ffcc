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
    systems: int,
    runs: int,
    rounds: int,
    *,
    per_round: int,
    at_rest: int,
    most: int,
    memory: float,
) -> Plan:
    """Choose block sizes so that at most ``most`` runs, and ``memory`` bytes, are in flight.

    A block never has fewer than two runs: a single one is compiled to other products, which round
    differently, and a run's numbers must not depend on the block it is played in.

    Args:
        systems: how many systems.
        runs: runs of each.
        rounds: rounds of each run.
        per_round: numbers a run holds for every round of a span.
        at_rest: numbers it holds besides.
        most: runs in flight.
        memory: bytes in flight.
    """
    span = int(max(1, min(SPAN, rounds, memory / (2 * 8 * 2 * per_round))))
    fits = int(max(2, min(most, memory / (8 * (span * per_round + at_rest)))))
    block_runs = max(2, _even(runs, fits))
    return Plan(systems, runs, _even(systems, fits // block_runs), block_runs, span)


def _even(total: int, most: int) -> int:
    """The size of the pieces when ``total`` is cut into as few as possible, as even as possible."""
    pieces = -(-total // max(1, most))
    return -(-total // pieces)


def checkpoints(rounds: int, count: int = 40) -> np.ndarray:
    """About ``count`` log-spaced round numbers up to ``rounds``, which is the last, each once."""
    if count == 1:
        return np.array([rounds])
    return np.unique(np.geomspace(1, rounds, count).round().astype(int))
