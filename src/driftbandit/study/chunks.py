"""One chunk of a study: from its specification to the columns that are stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from driftbandit import policies
from driftbandit.result import Timing
from driftbandit.study import perturbation, readings
from driftbandit.study.specification import Chunk, Specification
from driftbandit.theory import metric_intervals

__all__ = ["Columns", "compute"]

Columns = dict[str, np.ndarray]
"""Columns of equal length by name; ``system`` and ``run`` number the rows."""

Progress = Callable[[float], None]


def compute(
    specification: Specification, chunk: Chunk, progress: Progress | None = None
) -> tuple[Columns, Timing]:
    """The chunk's numbers, a pure function of (specification, chunk), and the time they took.

    On one core: an engine plays several chunks at once.
    """
    measured = _metric if specification.measure == "metric" else _regret
    return measured(specification, chunk, progress)


def _systems(specification: Specification, chunk: Chunk) -> tuple[Sequence[Any], list[Any] | None]:
    """The true systems, and what the learners take them to be (None: the truth)."""
    cell, seed = chunk.cell, specification.seed
    states, arms = specification.shape(cell)
    systems = readings.sample(
        cell.reading,
        cell.family,
        chunk.systems,
        n_states=states,
        n_arms=arms,
        seed=seed,
        first=chunk.first,
        radius=cell.radius,
        noise_scale=cell.noise_scale,
    )
    assumed = readings.beliefs(cell.reading, systems)
    if cell.perturbed:
        numbers = range(chunk.first, chunk.first + chunk.systems)
        similarities = [
            perturbation.similarity(cell.family, seed, number, states, cell.strength)
            for number in numbers
        ]
        assumed = perturbation.perturb(assumed or systems, cell.perturbed, similarities)
    return systems, assumed


def _regret(
    specification: Specification, chunk: Chunk, progress: Progress | None
) -> tuple[Columns, Timing]:
    """Every policy's regret, one row per run."""
    from driftbandit.simulation import Options, simulate  # loads JAX

    systems, assumed = _systems(specification, chunk)
    reading = chunk.cell.reading
    result = simulate(
        systems,
        policies=specification.players(chunk.cell),
        rounds=specification.rounds,
        runs=specification.runs,
        seed=specification.seed,
        assumed=assumed,
        device=specification.platform,
        dtype=specification.dtype,
        options=Options(
            regret=reading.regret,
            common_noise=reading.noise == "common",
            stream=chunk.cell.family,  # all cells of a family see the same noise: they are paired
            first_system=chunk.first,
            checkpoints=1,
            workers=1,
        ),
        progress=progress,
    )
    columns = _numbers(chunk, specification.runs)
    return columns | {p: regret.ravel() for p, regret in result.regret.items()}, result.timing


def _metric(
    specification: Specification, chunk: Chunk, progress: Progress | None
) -> tuple[Columns, Timing]:
    """Both ends of every policy's interval of φ, printed and squared, one row per system."""
    begin = time.perf_counter()
    systems, assumed = _systems(specification, chunk)
    bonuses = {name: getattr(policies, name).bonus for name in specification.players(chunk.cell)}
    intervals = metric_intervals(assumed or systems, bonuses, progress, workers=1)
    columns = _numbers(chunk, 1)
    for name, found in intervals.items():
        for form in ("printed", "squared"):
            for end, values in zip(("low", "high"), getattr(found, form).T, strict=True):
                columns[f"{name}.{form}.{end}"] = values
    return columns, Timing(0.0, 0.0, time.perf_counter() - begin, "cpu")


def _numbers(chunk: Chunk, runs: int) -> Columns:
    return {
        "system": np.repeat(np.arange(chunk.first, chunk.first + chunk.systems), runs),
        "run": np.tile(np.arange(runs), chunk.systems),
    }
