"""What replays of tables and of logs share: the task, how a model predicts, and fixed arms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from driftbandit import kalman
from driftbandit.model import LGDS
from driftbandit.policies import Policy
from driftbandit.replays.data import Rows
from driftbandit.replays.estimates import Shown
from driftbandit.replays.result import Played, Predictability

REPORTED = 256  # rounds between two reports of progress

Progress = Callable[[str, float, int], None]
Data = TypeVar("Data", bound=Rows)


class Task(NamedTuple, Generic[Data]):
    """Data, the row from which on rewards count, and how policies play it."""

    data: Data
    first: int
    model: LGDS  # of rewards minus ``center``
    arms: np.ndarray  # k × d; if contexts change them, those of each decision, n × k × d
    center: float  # mean of the training rewards
    method: str = "dr"  # as in `replay`, like all that follow
    warm: bool = True
    runs: int = 10
    seed: int = 0
    tick: Callable[[], None] = lambda: None  # called after every round of every run

    @property
    def counts(self) -> np.ndarray:
        """Which rows count."""
        return self.data.counts & (np.arange(len(self.data)) >= self.first)

    @property
    def predicted(self) -> np.ndarray:
        """All arms in the rows that count, one step ahead, by a filter that sees every reward."""
        belief, rewards = kalman.prior(self.model), self.data.wide - self.center
        predicted = np.empty_like(rewards)
        for t, (row, wait) in enumerate(zip(rewards, self.data.waits.tolist(), strict=True)):
            if t:
                belief = kalman.advance(belief, self.model, wait)
            arms = self.arms if self.arms.ndim == 2 else self.arms[t]
            predicted[t] = arms @ belief.mean
            for arm in np.flatnonzero(np.isfinite(row)):
                belief = kalman.observe(belief, self.model, arms[arm], row[arm])
        return np.asarray(self.center + predicted[self.counts])


class Outcome(NamedTuple):
    """What policies and reference strategies earned, by label, in the rows that count."""

    played: Mapping[str, Played]
    references: Mapping[str, Played]
    predicted: np.ndarray  # as `Task.predicted` returns it
    shown: Shown | None = None  # of a log, with the predictions of the method
    notes: tuple[str, ...] = ()
    feedback: float | None = None  # chance that a policy sees a reward, if learning by rejection


class Meter:
    """Reports progress: the share of the fit, then of the rounds that are played."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def say(self, stage: str, share: float) -> None:
        """Report the share of a stage that is done."""
        if self.progress is not None:
            self.progress(stage, share, self.total)

    def tick(self) -> None:
        """Count one round that was played."""
        self.done += 1
        if self.done % REPORTED == 0:
            self.say("play", self.done / self.total)


def begins(policy: Policy, method: str, first: int, warm: bool, runs: int) -> list[int]:
    """The row with which each run of a policy begins, if rewards count from ``first`` on.

    Each begins in a later row of the first half of the training part: the luck of the first choices
    lasts long. Where nothing differs between runs, there is one.

    Example:
        >>> from driftbandit.policies import make
        >>> begins(make("ucb"), "full", 100, True, 2), begins(make("ucb"), "full", 100, False, 2)
        ([0, 25], [100])
    """
    differ = method == "rejection" or (method == "full" and (warm or policy.noise is not None))
    return [run * first // (2 * runs) if warm else first for run in range(runs if differ else 1)]


def best_arm(rewards: np.ndarray) -> int:
    """The arm that pays most; where it is not offered, the mean of the offered arms counts."""
    scores = training_means(rewards, -math.inf)
    if (np.isfinite(rewards).sum(axis=1) >= 2).any():
        totals = [fixed_arm(rewards, arm).sum() for arm in range(rewards.shape[1])]
        scores = np.where(np.isfinite(scores), totals, scores)
    return int(np.argmax(scores))


def fixed_arm(rewards: np.ndarray, arm: int) -> np.ndarray:
    """What one arm pays; where it is not offered, the mean of those that are."""
    own = rewards[:, arm]
    return np.where(np.isfinite(own), own, np.nanmean(rewards, axis=1))


def training_means(rewards: np.ndarray, center: float) -> np.ndarray:
    """The mean reward of each arm (T × k rewards); ``center`` if it has none."""
    counts = np.isfinite(rewards).sum(axis=0)
    return np.where(counts > 0, np.nansum(rewards, axis=0) / np.maximum(counts, 1), center)


def predictability(predicted: np.ndarray, rewards: np.ndarray, means: np.ndarray) -> Predictability:
    """R² of the predictions (T × k), relative to the arms' training means (k)."""
    errors = rewards - predicted, rewards - means
    several = np.isfinite(rewards).sum(axis=1) >= 2
    rows = [error[several] for error in errors]
    apart = [error - np.nanmean(error, axis=1, keepdims=True) for error in rows]
    return Predictability(_r_squared(*errors), _r_squared(*apart) if several.any() else None)


def _r_squared(error: np.ndarray, spread: np.ndarray) -> float:
    whole = float(np.nansum(spread**2))
    return 1 - float(np.nansum(error**2)) / whole if whole > 0 else math.nan


def doubts(explained: Predictability) -> Iterator[str]:
    """A warning if the model predicts nothing in the test part."""
    if explained.rewards <= 0:
        yield (
            f"The model predicts the test part no better than each arm's training mean: it "
            f"explains {100 * explained.rewards:.1f}% of the rewards' variance. Do not expect "
            "its policies to earn more than a fixed arm."
        )
    elif explained.differences is not None and explained.differences <= 0:
        share = f"{100 * explained.differences:.1f}% of the variance of differences between arms"
        said = "The model does not predict which arm pays more in the test part"
        yield f"{said}: it explains {share}."
