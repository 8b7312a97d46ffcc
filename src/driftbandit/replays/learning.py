"""What every replay does first: learn the model from the training part, and predict with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, kalman
from driftbandit.contexts import read_rows
from driftbandit.identify.fitting import fit
from driftbandit.identify.structured.fitting import Fit
from driftbandit.io.logs import Log
from driftbandit.model import LGDS
from driftbandit.replays.estimates import Shown
from driftbandit.replays.result import Played, Predictability

REPORTED = 256  # rounds between two reports of progress

Progress = Callable[[str, float, int], None]


class Settings(NamedTuple):
    """The options of `replay` that are the same for every kind of data."""

    train: float
    n_states: int | None
    warm: bool
    runs: int
    seed: int
    structure: Any
    starts: int
    iterations: int
    progress: Progress | None


class Outcome(NamedTuple):
    """What was played, from which `replay` makes its result; n rounds count."""

    fit: Fit
    rounds: np.ndarray  # n
    played: Mapping[str, Played]
    references: Mapping[str, Played]
    predicted: np.ndarray  # by a filter that sees every reward, n × k
    rewards: np.ndarray  # n × k; NaN where they are not known
    means: np.ndarray  # of each arm in the training part
    notes: tuple[str, ...] = ()
    shown: Shown | None = None  # of a log
    feedback: float | None = None  # by rejection


class Learned(NamedTuple):
    """The model of rewards minus their mean in the training part."""

    model: LGDS  # what policies play: the fit before the log
    rows: np.ndarray  # its arms, k × d; if contexts change them, those of each decision, n × k × d
    fit: Fit


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


def begins(first: int, warm: bool, runs: int) -> list[int]:
    """The row with which each run of a policy begins, if rewards count from ``first`` on.

    Each begins in a later row of the first half of the training part: the luck of the first choices
    lasts long.

    Example:
        >>> begins(100, True, 2), begins(100, False, 2)
        ([0, 25], [100, 100])
    """
    return [run * first // (2 * runs) if warm else first for run in range(runs)]


def learned(
    log: Log,
    features: np.ndarray | None,
    center: float,
    settings: Settings,
    meter: Meter,
    contexts: np.ndarray | None = None,
) -> Learned:
    """Fit the training part, whose rewards are given minus ``center``.

    ``contexts`` are the features of all decisions, n × J, named as those of the log.
    """
    meter.say("fit", 0.0)
    found = fit(
        log,
        features,
        settings.n_states,
        structure=settings.structure,
        starts=settings.starts,
        iterations=settings.iterations,
        progress=lambda share: meter.say("fit", share),
    )
    start = found.start_system
    model, rows = start.model, start.arms
    if start.contexts:
        if contexts is None:
            problem = f"needs {', '.join(start.contexts)}, which this replay does not have"
            raise errors.InvalidInput("structure", problem, "leave the regression out")
        used = contexts[:, [log.feature_names.index(name) for name in start.contexts]]
        values = np.repeat(used[:, None], len(rows), axis=1)
        rows = read_rows(rows, list(start.contexts.values()), values)
    meter.say("fit", 1.0)
    return Learned(model, rows, found)


def predictions(
    model: LGDS, arms: np.ndarray, rewards: np.ndarray, waits: np.ndarray
) -> np.ndarray:
    """One-step predictions of all arms, T × k, by a filter that sees every known reward.

    ``arms`` are k × d, or T × k × d if contexts change them.
    """
    belief = kalman.prior(model)
    predicted = np.empty_like(rewards)
    for t, row in enumerate(rewards):
        if t:
            belief = kalman.advance(belief, model, int(waits[t]))
        rows = arms if arms.ndim == 2 else arms[t]
        predicted[t] = rows @ belief.mean
        for arm in np.flatnonzero(np.isfinite(row)):
            belief = kalman.observe(belief, model, rows[arm], row[arm])
    return predicted


def best_arm(rewards: np.ndarray) -> int:
    """The arm that pays most; where it is not offered, the mean of the offered arms counts."""
    counts = np.isfinite(rewards).sum(axis=0)
    if (np.isfinite(rewards).sum(axis=1) >= 2).any():
        scores = np.array([fixed_arm(rewards, arm).sum() for arm in range(rewards.shape[1])])
    else:
        scores = np.nansum(rewards, axis=0) / np.maximum(counts, 1)
    return int(np.argmax(np.where(counts > 0, scores, -math.inf)))


def fixed_arm(rewards: np.ndarray, arm: int) -> np.ndarray:
    """What one arm pays; where it is not offered, the mean of those that are."""
    own = rewards[:, arm]
    return np.where(np.isfinite(own), own, np.nanmean(rewards, axis=1))


def training_means(rewards: np.ndarray, center: float) -> np.ndarray:
    """The mean reward of each arm (T × k rewards); the overall mean if it has none."""
    counts = np.isfinite(rewards).sum(axis=0)
    return np.where(counts > 0, np.nansum(rewards, axis=0) / np.maximum(counts, 1), center)


def predictability(predicted: np.ndarray, rewards: np.ndarray, means: np.ndarray) -> Predictability:
    """R² of the predictions (T × k), relative to the arms' training means (k)."""
    seen = np.isfinite(rewards)
    error, spread = (np.where(seen, rewards - guess, 0.0) for guess in (predicted, means))
    several = seen.sum(axis=1) >= 2
    if not several.any():
        return Predictability(_r_squared(error, spread), None)
    count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    centered = [part - part.sum(axis=1, keepdims=True) / count for part in (error, spread)]
    apart = [np.where(seen, part, 0.0)[several] for part in centered]
    return Predictability(_r_squared(error, spread), _r_squared(*apart))


def _r_squared(error: np.ndarray, spread: np.ndarray) -> float:
    whole = float((spread**2).sum())
    return 1 - float((error**2).sum()) / whole if whole > 0 else math.nan


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
