"""A log as the arrays that expectation maximization works on."""

from __future__ import annotations

import numpy as np

from driftbandit import errors
from driftbandit.identify.quantities import Data
from driftbandit.io.logs import Log, Sequence

__all__ = ["LARGEST_GRID", "data_of", "roomy"]

LARGEST_GRID = 10**8
"""Rows × sequences × states² that are smoothed at once."""
SPARSE = 2
"""Rounds per row with plays from which on unseen rounds have no row of their own."""
SHORT = 64
"""Unseen rounds that are not worth leaving out."""


def data_of(log: Log, n_states: int = 1) -> Data:
    """The log as arrays: sequences × rows × plays, from each sequence's first round to its last.

    Every round is a row; where most rounds have no play, those that have one, and the rounds
    between them are counted.

    Args:
        log: of any sequences.
        n_states: d, to refuse what would not fit into memory.
    """
    spans = [int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences]
    rounds = [np.unique(one.rounds, return_inverse=True) for one in log.sequences]
    rows = [len(times) for times, _ in rounds]
    dense = sum(spans) <= SPARSE * sum(rows) + SHORT and max(spans) <= SPARSE * max(rows) + SHORT
    lengths = np.array(spans if dense else rows)
    plays = max(int(np.bincount(place).max()) for _, place in rounds)
    shape = (len(log.sequences), roomy(int(lengths.max())), plays)
    if np.prod([float(size) for size in shape]) * n_states**2 > LARGEST_GRID:
        raise errors.InvalidInput(
            "log",
            f"has {lengths.max()} rounds in {shape[0]} sequences, up to {plays} plays in a round",
            "fit a part of it",
        )
    data = Data(np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape), lengths)
    for s, (one, (_, place)) in enumerate(zip(log.sequences, rounds, strict=True)):
        _fill(data, s, one, one.rounds - one.rounds[0] if dense else place)
    if not data.seen.any():
        raise errors.InvalidInput("log", "holds no reward", "give at least one")
    return data if dense else _with_gaps(data, [times for times, _ in rounds])


def _fill(data: Data, number: int, one: Sequence, place: np.ndarray) -> None:
    """Write a sequence's plays into its rows."""
    first = np.searchsorted(place, place)  # where the plays of a round begin
    slot = np.arange(len(place)) - first
    there = ~np.isnan(one.rewards)
    data.arms[number, place, slot] = one.arms
    data.rewards[number, place, slot] = np.where(there, one.rewards, 0.0)
    data.seen[number, place, slot] = there


def _with_gaps(data: Data, rounds: list[np.ndarray]) -> Data:
    passed = np.ones(data.seen.shape[:2], np.int64)
    for s, times in enumerate(rounds):
        passed[s, : len(times) - 1] = np.diff(times)
    others = np.unique(passed[passed > 1])
    waits = np.ones(roomy(len(others) + 1), np.int64)  # what is left over says one round again
    waits[1 : len(others) + 1] = others
    gaps = np.where(passed == 1, 0, np.searchsorted(others, passed) + 1)
    return data._replace(gaps=gaps, waits=waits)


def roomy(size: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, …: logs of about one length share a compiled program.

    Example:
        >>> [roomy(size) for size in (1, 3, 5, 7, 100)]
        [1, 3, 6, 8, 128]
    """
    whole = 1 << (size - 1).bit_length()
    return whole * 3 // 4 if size <= whole * 3 // 4 else whole
