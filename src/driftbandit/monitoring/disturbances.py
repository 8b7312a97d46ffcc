"""Smoothed disturbances (auxiliary residuals): how the state moved, in hindsight.

    z(t+1) = Γ z(t) + ξ(t),     E[ξ(t) | all rewards] = Q r(t),     Cov Q r(t) = Q N(t) Q

r and N come from one pass backwards over the log (Durbin and Koopman, Time Series Analysis by State
Space Methods, 4.5), r = 0 and N = 0 after the last reward:

    at a reward    r ← a e/s + Mᵀ r,   N ← a aᵀ/s + Mᵀ N M,   M = I − P a aᵀ/s
    at a round     r ← Γᵀ r,           N ← Γᵀ N Γ

Harvey and Koopman (1992) look for breaks in standardized Q r(t): what the filter follows quickly
leaves few surprises, but in hindsight the state moved too far at once. An arm reads
⟨a, ξ(t)⟩, whose standardized estimate aᵀQ r / √(aᵀQNQa) is standard normal under the true model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from driftbandit.monitoring.surprises import Step

NUMBERS = 2_000_000  # that a block holds, at most
TINY = 1e-10  # variances below this share of the largest one are rounding errors


class Disturbances(NamedTuple):
    """r and N before each of m moves of the state, the latest first."""

    r: np.ndarray  # m × d
    N: np.ndarray  # m × d × d
    simulated: np.ndarray  # r of simulated rewards, m × d × draws
    rounds: np.ndarray  # the round into which the state moves, m


def disturbances(
    transition: np.ndarray, filtered: list[Step], rounds: np.ndarray, draws: np.ndarray
) -> Iterator[Disturbances]:
    """The pass backwards over one sequence, in blocks of moves.

    Args:
        transition, filtered: Γ; the filter at every reward, in order of time.
        rounds: the round of every row of the sequence.
        draws: surprises of simulated logs, one row per reward; they go through the same pass.
    """
    d, size = len(transition), draws.shape[1]
    block = max(1, NUMBERS // (d * (d + size + 1)))
    r, N, simulated = np.zeros(d), np.zeros((d, d)), np.zeros((d, size))
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] = []
    for place in range(len(filtered) - 1, -1, -1):
        row, a, cross, error, variance = filtered[place]
        if variance > 0:
            left = np.eye(d) - np.outer(cross / variance, a)
            r = a * (error / variance) + left.T @ r
            N = np.outer(a, a) / variance + left.T @ N @ left
            simulated = np.outer(a, draws[place]) / math.sqrt(variance) + left.T @ simulated
        before = int(rounds[filtered[place - 1].row] if place else rounds[0])
        for now in range(int(rounds[row]), before, -1):
            kept.append((r, N, simulated, now))
            r, N = transition.T @ r, transition.T @ N @ transition
            simulated = transition.T @ simulated
            if len(kept) == block:
                yield _stacked(kept)
                kept = []
    if kept:
        yield _stacked(kept)


def _stacked(kept: list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]) -> Disturbances:
    return Disturbances(*(np.array(column) for column in zip(*kept, strict=True)))


class Jumps:
    """The largest standardized disturbance of every arm, over blocks and sequences."""

    def __init__(self, arms: np.ndarray, process_cov: np.ndarray) -> None:
        self.reads = arms @ process_cov  # k × d
        self.moves = 0
        self.sizes = np.zeros(len(arms))  # in standard deviations
        self.rounds = np.zeros(len(arms), np.int64)  # into which the arm moved
        self.sequences = np.zeros(len(arms), np.int64)

    def add(self, block: Disturbances, sequence: int) -> None:
        """Take in a block of a sequence."""
        variances = np.einsum("ki,tij,kj->tk", self.reads, block.N, self.reads, optimize=True)
        there = variances > TINY * max(float(variances.max()), np.finfo(float).tiny)
        sizes = np.abs(block.r @ self.reads.T) / np.sqrt(np.where(there, variances, math.inf))
        places = sizes.argmax(axis=0)
        largest = sizes[places, np.arange(len(self.sizes))]
        better = largest > self.sizes
        self.moves += len(block.r)
        self.sizes = np.where(better, largest, self.sizes)
        self.rounds = np.where(better, block.rounds[places], self.rounds)
        self.sequences = np.where(better, sequence, self.sequences)

    @property
    def tries(self) -> int:
        """How many standardized disturbances were looked at."""
        return self.moves * int(np.count_nonzero(self.reads.any(axis=1)))
