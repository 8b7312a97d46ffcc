"""How a study is cut: blocks of lanes, each of which plays one run, and spans of rounds.

Compilers round differently for different shapes, and a run's numbers must not depend on how many
others are played. So every block of a program has the same number of lanes in every study: it
depends on the device, the system's shape and, for a policy with a long memory, on the policy.
Spare lanes repeat the last run, and their results are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

SPAN = 128
"""Rounds per compiled call: long enough to hide the call, short enough to stay in cache."""
LEAST_LANES = 2
"""A single lane would be compiled to other products."""


class Limits(NamedTuple):
    """How much is played at once."""

    lanes: int
    """Runs per block, a power of two."""
    memory: float
    """Bytes per block."""


class Block(NamedTuple):
    """System and run of each lane; the first ``kept`` lanes are real, the rest are spare."""

    systems: np.ndarray
    runs: np.ndarray
    kept: int


class Plan(NamedTuple):
    """The shape of all blocks, so that one compiled program serves them all."""

    systems: int
    runs: int
    lanes: int
    span: int

    def blocks(self) -> Iterator[Block]:
        """Every block, in order: systems one after the other, each with all of its runs."""
        total = self.systems * self.runs
        for first in range(0, total, self.lanes):
            pairs = np.minimum(np.arange(first, first + self.lanes), total - 1)
            kept = min(self.lanes, total - first)
            yield Block(pairs // self.runs, pairs % self.runs, kept)


def lanes(limits: Limits, at_rest: int) -> int:
    """The most lanes, a power of two, for which ``at_rest`` numbers each fit into the memory."""
    count = limits.lanes
    while count > LEAST_LANES and 8 * count * at_rest > limits.memory:
        count //= 2
    return count


def plan(
    systems: int, runs: int, rounds: int, *, per_round: int, at_rest: int, limits: Limits
) -> Plan:
    """Fewer lanes (down to eight), then shorter spans, until a block fits into the memory.

    Args:
        systems: how many systems.
        runs: runs of each.
        rounds: rounds of each run.
        per_round: numbers that a lane holds for every round of a span.
        at_rest: other numbers that it holds.
        limits: of the device.
    """
    span = min(SPAN, 1 << (rounds - 1).bit_length())  # few sizes, so that studies share programs
    count = lanes(limits, at_rest)

    def too_much() -> bool:
        return 8 * count * (span * per_round + at_rest) > limits.memory

    while too_much() and count > 8:
        count //= 2
    while too_much() and span > 1:
        span //= 2
    while too_much() and count > LEAST_LANES:
        count //= 2
    return Plan(systems, runs, count, span)


def checkpoints(rounds: int, count: int = 40) -> np.ndarray:
    """About ``count`` log-spaced round numbers up to ``rounds``, which is the last, each once."""
    if count == 1:
        return np.array([rounds])
    return np.unique(np.geomspace(1, rounds, count).round().astype(int))
