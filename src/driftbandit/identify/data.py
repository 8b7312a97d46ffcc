"""A log as arrays, a model's parameters, and the units of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array
from driftbandit.io.logs import Log
from driftbandit.model import LGDS

LARGEST_GRID = 10**8  # rows × sequences × states² that are smoothed at once
SPARSE = 2  # with more rounds than this per played round, unplayed rounds get no row
SHORT = 64  # up to this many unplayed rounds always get rows
FAR = 100.0  # arms' means farther apart, in standard deviations: offsets' spread is not learned
ROUNDING = 1e-13  # differences below this share of the rewards' size are rounding errors
LARGEST_REWARD = 1e30  # and one over the smallest: their fourth powers must not overflow
LEAST = 1e-6  # scale, as a share of their size, of rewards that equal their arms' means


class Data(NamedTuple):
    """S sequences, padded to n rows; each row is a round with at most m plays."""

    arms: Array  # which arm was played, S × n × m
    rewards: Array  # what it paid, S × n × m; zero where nothing was observed
    seen: Array  # 1 where a reward was observed, else 0, S × n × m
    lengths: Array  # rows of each sequence, S
    gaps: Array | None = None  # index into ``gap_lengths`` of the gap after a row, S × n
    gap_lengths: Array | None = None  # distinct numbers of rounds between rows, u; the first is 1
    # Both are None if all gaps are 1.


class Parameters(NamedTuple):
    """What is estimated."""

    transition: Array  # Γ, d × d
    process_cov: Array  # Q, d × d
    reward_var: Array  # σ²
    initial_mean: Array  # E z(0), d
    initial_cov: Array  # Cov z(0), d × d
    reads: Array  # c_a, k × d: how each arm reads the state
    offsets: Array  # o_a, k: each arm's reward when the state is zero


def times(data: Data) -> np.ndarray:
    """The round of every row, counted from its sequence's first, S × n."""
    if data.gaps is None or data.gap_lengths is None:
        return np.broadcast_to(np.arange(data.seen.shape[1]), data.seen.shape[:2])
    passed = np.asarray(data.gap_lengths)[np.asarray(data.gaps)]
    return np.asarray(np.cumsum(passed, axis=1) - passed)


def data_of(log: Log, n_states: int = 1) -> Data:
    """The log as arrays: sequences × rows × plays, from each sequence's first round to its last.

    Every round is a row; if most rounds are not played, only played rounds are rows, with gaps
    between them. A log that is too large for memory with so many states is refused.
    """
    spans = [int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences]
    rounds = [np.unique(one.rounds, return_inverse=True) for one in log.sequences]
    rows = [len(played) for played, _ in rounds]
    dense = sum(spans) <= SPARSE * sum(rows) + SHORT and max(spans) <= SPARSE * max(rows) + SHORT
    lengths = np.array(spans if dense else rows)
    plays = max(int(np.bincount(place).max()) for _, place in rounds)
    shape = (len(log.sequences), padded(int(lengths.max())), plays)
    if np.prod([float(size) for size in shape]) * n_states**2 > LARGEST_GRID:
        problem = f"has {lengths.max()} rounds in {shape[0]} sequences, up to {plays} plays in a"
        raise errors.InvalidInput("log", f"{problem} round", "fit a part of it")
    data = Data(np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape), lengths)
    for s, (one, (_, place)) in enumerate(zip(log.sequences, rounds, strict=True)):
        row = one.rounds - one.rounds[0] if dense else place
        slot = np.arange(len(row)) - np.searchsorted(row, row)
        there = ~np.isnan(one.rewards)
        data.arms[s, row, slot] = one.arms
        data.rewards[s, row, slot] = np.where(there, one.rewards, 0.0)
        data.seen[s, row, slot] = there
    if not data.seen.any():
        raise errors.InvalidInput("log", "holds no reward", "give at least one")
    return data if dense else _with_gaps(data, [played for played, _ in rounds])


def _with_gaps(data: Data, rounds: list[np.ndarray]) -> Data:
    passed = np.ones(data.seen.shape[:2], np.int64)
    for s, played in enumerate(rounds):
        passed[s, : len(played) - 1] = np.diff(played)
    others = np.unique(passed[passed > 1])
    lengths = np.ones(padded(len(others) + 1), np.int64)
    lengths[1 : len(others) + 1] = others
    gaps = np.where(passed == 1, 0, np.searchsorted(others, passed) + 1)
    return data._replace(gaps=gaps, gap_lengths=lengths)


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


class Units(NamedTuple):
    """Rewards are centered and scaled before learning: their zero and unit do not matter."""

    centers: np.ndarray  # the mean of each arm, k; zero without offsets
    scale: float  # standard deviation around them; of all rewards, if no arm has two

    @staticmethod
    def of(data: Data, n_arms: int, offsets: bool) -> Units:
        """The units of a log."""
        seen = data.seen > 0
        played, rewards = data.arms[seen], data.rewards[seen]
        size = float(np.abs(rewards).max())
        if not offsets:
            return Units(np.zeros(n_arms), _spread(rewards) or 1.0)
        counts = np.maximum(np.bincount(played, minlength=n_arms), 1)
        middle = float(rewards.mean())
        centers = middle + np.bincount(played, rewards - middle, n_arms) / counts
        # What rounding left, which is large where other arms pay much more.
        centers += np.bincount(played, rewards - centers[played], n_arms) / counts
        if counts.max() == 1:  # each is its arm's mean, which says nothing of noise
            return Units(centers, _spread(rewards - middle) or size or 1.0)
        return Units(centers, _spread(_apart(rewards, centers[played])) or LEAST * size or 1.0)

    def between(self) -> tuple[np.ndarray, float | None]:
        """Arms' means in these units, k, and their spread if it is too large to be learned."""
        apart = (self.centers - self.centers.mean()) / self.scale
        return (apart, None) if np.abs(apart).max() <= FAR else (np.zeros_like(apart), FAR)

    def offset_var(self) -> float:
        """The prior variance of an arm's offset, in these units."""
        return 1.0 + float(self.between()[0].var())

    def standard(self, data: Data) -> Data:
        """The data in these units."""
        rewards = _apart(data.rewards, self.centers[data.arms]) / self.scale
        return data._replace(rewards=np.where(data.seen > 0, rewards, 0.0))

    def model(self, model: LGDS) -> LGDS:
        """A model of the raw rewards, in these units."""
        return LGDS(
            model.transition,
            model.process_cov / self.scale**2,
            model.reward_std / self.scale,
            model.start_cov() / self.scale**2,
            np.where(model.constants, model.start_mean(), model.start_mean() / self.scale),
        )

    def raw(self, parameters: Parameters) -> Parameters:
        """Parameters of the raw rewards, from those in these units."""
        square = self.scale**2
        return parameters._replace(
            process_cov=parameters.process_cov * square,
            reward_var=parameters.reward_var * square,
            initial_mean=parameters.initial_mean * self.scale,
            initial_cov=parameters.initial_cov * square,
            offsets=self.centers + parameters.offsets * self.scale,
        )


def _apart(rewards: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """How far rewards are from their centers; zero where that is a rounding error."""
    apart, size = rewards - centers, np.maximum(np.abs(rewards), np.abs(centers))
    return np.asarray(np.where(np.abs(apart) <= ROUNDING * size, 0.0, apart))


def _spread(values: np.ndarray) -> float:
    """The root of the mean square, which does not overflow."""
    largest = float(np.abs(values).max())
    return largest * float(np.sqrt(((values / largest) ** 2).mean())) if largest > 0 else 0.0


def no_arm_varies(arms: np.ndarray, rewards: np.ndarray) -> bool:
    """Whether no arm has two rewards that differ by more than rounding.

    Example:
        >>> no_arm_varies(np.array([0, 1, 0]), np.array([0.3, 2.0, 0.1 + 0.2]))
        True
    """
    order = np.lexsort((rewards, arms))
    arms, rewards = arms[order], rewards[order]
    return not _apart(rewards[1:], rewards[:-1])[arms[1:] == arms[:-1]].any()
