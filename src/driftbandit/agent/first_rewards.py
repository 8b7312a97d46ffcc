"""The random walk that an agent without a model starts from, and its size from the first rewards.

The size depends on the rewards that are known and on the order of their rounds, never on when they
came. So an agent's state does not depend on it either.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS, checked_arms

if TYPE_CHECKING:
    from driftbandit.agent.ledger import Entry

COUNTS = (1, 4, 16, 64)  # first rewards after which the size is learned anew
LARGE = 30  # states of a model that takes time to prepare for a policy: it is done half as often
MOST_SETTLED = 1000  # plays, with or without a reward, after which the size stays as it is
# The walk is wider than rewards vary, so that all arms are played: a model that is learned from
# the plays of a single arm does not know how much the others drift.
WIDE = 2.0
EXTREME = 1e70  # rewards that are larger, or all smaller than 1 / EXTREME, have no size


class Size(NamedTuple):
    """How large rewards are: their mean, and how far they are from it."""

    mean: float
    scale: float


def random_walk(arms: Any, scale: float = 1.0, mean: float = 0.0) -> LGDS:
    """The model to start from when nothing is known: a random walk, observed with noise.

    Γ = I,   Σ0 = s² I,   Q = Σ0 / 50,   σ² = scale² / 2,   s² = scale² / (2 mean ‖a‖²)

    ``mean``: what each arm is expected to pay at first; the arms must read a state of their own.
    """
    rows = errors.matrix(arms, "arms", shape=(None, None))
    identity = np.eye(rows.shape[1])
    checked_arms(rows, LGDS(identity, identity, 1.0, identity))  # none is zero
    size = scale**2 / 2 / max(float((rows**2).sum(axis=1).mean()), np.finfo(float).tiny)
    begin = None
    if mean:
        reads = rows.sum(axis=0)  # of the one arm that reads a state; zero: it was removed
        begin = mean / np.where(reads == 0, 1.0, reads)
    return LGDS(identity, size / 50 * identity, scale / np.sqrt(2), size * identity, begin)


def reads_own_states(arms: np.ndarray) -> bool:
    """Whether each arm reads a state that no other arm reads, and no further one."""
    read = arms != 0
    return bool(read.sum(axis=0).max() <= 1 and (read.sum(axis=1) == 1).all())


def size_of(rewards: Sequence[float], *, centered: bool) -> Size | None:
    """The mean and the spread of the first rewards; None: they are zero.

    The spread includes the mean's square as if it were one more reward's deviation. A single reward
    says nothing of how much others differ from it, and clicks may all be missing at first.

        scale² = (Σ (x − x̄)² + mean x²) / (n + 1)

    Not ``centered``: the mean stays at zero, and scale² = mean x².

    Example:
        >>> size_of([1000.0, 1000.0, 1000.0], centered=True)
        Size(mean=1000.0, scale=500.0)
        >>> size_of([4.0, 0.0, 0.0, 0.0], centered=True).mean
        1.0
        >>> size_of([3.0, -4.0, 0.0, 0.0], centered=False)
        Size(mean=0.0, scale=2.5)
        >>> size_of([0.0], centered=True) is None
        True
    """
    largest = max(abs(reward) for reward in rewards)
    if not 1 / EXTREME < largest < EXTREME:
        return None
    values = np.asarray(rewards) / largest  # their squares do not overflow
    mean, square = float(values.mean()), float((values**2).mean())
    if not centered:
        return Size(0.0, largest * math.sqrt(square))
    deviations = float(((values - mean) ** 2).sum())
    return Size(largest * mean, largest * math.sqrt((deviations + square) / (len(values) + 1)))


def learned_size(plays: Iterable[Entry], arms: np.ndarray) -> Size | None:
    """The size of the earliest 1, 4, 16 or 64 rewards of the plays, which are in order."""
    known = (entry.reward for entry in plays if entry.reward is not None)
    rewards = list(itertools.islice(known, COUNTS[-1]))
    counts = COUNTS[1::2] if arms.shape[1] > LARGE else COUNTS
    count = max((count for count in counts if count <= len(rewards)), default=0)
    return size_of(rewards[:count], centered=reads_own_states(arms)) if count else None


def walk_of(arms: np.ndarray, size: Size | None) -> LGDS:
    """The random walk of that size; None: of rewards about as large as one."""
    return random_walk(arms) if size is None else random_walk(arms, WIDE * size.scale, size.mean)
