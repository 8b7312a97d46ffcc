"""Surprises: how far each reward is from its prediction, in standard deviations.

    u = (x − ⟨a, ẑ⟩) / √(aᵀPa + σ²)

ẑ and P are the filter's after all rewards before this one: those of earlier rounds and, within a
round, those of earlier rows. So under the true model the u are independent and standard normal even
where a round has several rewards, and whatever rule chose the arms from the past. Predictions that
ignore the round's other rewards (`identify.one_step`) lack this: their errors share the error of ẑ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, kalman
from driftbandit.io.logs import Log, Sequence
from driftbandit.model import LGDS

KNOWN = 1e-12  # below this share of its variance in the first round, a reward is known in advance


class Surprises(NamedTuple):
    """The surprises of a log, sequence after sequence in order of time, n each."""

    values: np.ndarray
    arms: np.ndarray  # arm numbers
    rounds: np.ndarray
    sequences: np.ndarray  # numbers of sequences


class Step(NamedTuple):
    """The filter at one reward."""

    row: int  # of the sequence
    read: np.ndarray  # a
    cross: np.ndarray  # P a
    error: float  # x − ⟨a, ẑ⟩
    variance: float  # aᵀPa + σ²; zero if the reward is known in advance


def reads_of(system: Any, log: Log, sequence: Sequence) -> np.ndarray:
    """How each row's reward reads the state, n × d; context features may change it."""
    reads = np.asarray(system.arms)[sequence.arms]
    for name, read_out in getattr(system, "contexts", {}).items():
        if name not in log.feature_names:
            problem = f"has no column {name}, which the model reads"
            raise errors.InvalidInput("log", problem, "give the features of every row")
        values = np.asarray(sequence.features)[:, log.feature_names.index(name)]
        reads = reads + values[:, None] * read_out[sequence.arms]
    return reads


def steps(
    model: LGDS, reads: np.ndarray, sequence: Sequence, first_round: int | None = None
) -> Iterator[Step]:
    """The filter along a sequence, at each reward that was observed; ``reads`` as in `reads_of`.

    The model's initial state is that of ``first_round``, at or before the sequence's first one, up
    to which it moves on. None: it is that of the sequence's first round, as for `identify.fit`.
    """
    belief, now = kalman.prior(model), int(sequence.rounds[0])
    if first_round is not None and first_round < now:
        belief = kalman.advance(belief, model, now - first_round)
    first = np.vecdot(reads @ (belief.cov + model.process_cov), reads) + model.reward_std**2
    least = KNOWN * first
    rows = zip(sequence.rounds.tolist(), sequence.rewards.tolist(), strict=True)
    for row, (round_, reward) in enumerate(rows):
        if round_ > now:
            belief, now = kalman.advance(belief, model, round_ - now), round_
        if np.isnan(reward):
            continue
        read = reads[row]
        cross = belief.cov @ read
        variance = float(read @ cross) + float(model.reward_std) ** 2
        error = reward - float(read @ belief.mean)
        yield Step(row, read, cross, error, variance if variance > least[row] else 0.0)
        belief = kalman.observe(belief, model, read, reward)


def surprises_of(system: Any, log: Log) -> Surprises:
    """The surprises of all rewards that were observed and not known in advance.

    Args:
        system: what has a model, arms and names: a `System`, or a `Fit`.
        log: of the same arms, in the system's rounds (`log_of_system`).

    Example:
        >>> from driftbandit.system import System
        >>> system = System(LGDS([[0.5]], [[3.0]], 0.0), [[1.0]])
        >>> surprises_of(system, Log((Sequence([0, 0, 1], [0, 0, 0], [2.0, 2.0, 4.0]),), (0,)))[0]
        array([1.        , 1.73205081])
    """
    columns: list[tuple[float, int, int, int]] = []
    start = getattr(system, "first_round", None)
    for number, one in enumerate(log.sequences):
        for step in steps(system.model, reads_of(system, log, one), one, start):
            if step.variance > 0:
                arm, round_ = int(one.arms[step.row]), int(one.rounds[step.row])
                columns.append((step.error / step.variance**0.5, arm, round_, number))
    values, arms, rounds, sequences = zip(*columns, strict=True) if columns else ([], [], [], [])
    whole = (np.array(column, np.int64) for column in (arms, rounds, sequences))
    return Surprises(np.array(values, np.float64), *whole)
