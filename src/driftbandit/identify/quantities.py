"""What expectation maximization works on: the log as arrays, parameters, sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit.arrays import Array

__all__ = ["Data", "Parameters", "Sums", "times"]


class Data(NamedTuple):
    """S sequences, padded to n rows, rounds with at most m plays each."""

    arms: Array
    """Which arm was played, S × n × m."""
    rewards: Array
    """What it paid, S × n × m; zero where nothing was seen."""
    seen: Array
    """1 where a reward was seen, else 0, S × n × m."""
    lengths: Array
    """Rows of each sequence, S."""
    gaps: Array | None = None
    """Which of ``waits`` passes from a row to the next, S × n; None: one round."""
    waits: Array | None = None
    """Different numbers of rounds between rows, u; the first is 1."""


def times(data: Data) -> np.ndarray:
    """The round of every row, counted from its sequence's first, S × n."""
    if data.gaps is None or data.waits is None:
        return np.broadcast_to(np.arange(data.seen.shape[1]), data.seen.shape[:2])
    passed = np.asarray(data.waits)[np.asarray(data.gaps)]
    return np.asarray(np.cumsum(passed, axis=1) - passed)


class Parameters(NamedTuple):
    """What is estimated."""

    transition: Array
    """Γ, d × d."""
    process_cov: Array
    """Q, d × d."""
    reward_var: Array
    """σ²."""
    initial_mean: Array
    """E z(0), d."""
    initial_cov: Array
    """Cov z(0), d × d."""
    reads: Array
    """c_a, k × d: what each arm reads of the state."""
    offsets: Array
    """o_a, k: what each arm pays where the state is zero."""


class Sums(NamedTuple):
    """What the M-step needs of the smoothed states."""

    log_likelihood: Array
    transitions: Array
    """How many."""
    before: Array
    """Σ E z(t) z(t)ᵀ over rounds that have a next one, d × d."""
    after: Array
    """Σ E z(t+1) z(t+1)ᵀ, d × d."""
    across: Array
    """Σ E z(t+1) z(t)ᵀ, d × d."""
    start_means: Array
    """E z(0) of every sequence, S × d."""
    start_covs: Array
    """Cov z(0), summed over sequences, d × d."""
    plays: Array
    """Rewards seen of each arm, k."""
    paid: Array
    """Σ x of each arm, k."""
    squares: Array
    """Σ x² of each arm, k."""
    means: Array
    """Σ E z over an arm's rewards, k × d."""
    moments: Array
    """Σ E z zᵀ over an arm's rewards, k × d × d."""
    products: Array
    """Σ x E z over an arm's rewards, k × d."""
