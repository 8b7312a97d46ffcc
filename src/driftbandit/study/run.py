"""Run a study: play what is missing, store it, give all of it back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftbandit.result import Result, Timing
from driftbandit.study.chunks import Columns
from driftbandit.study.engines import Engine, local
from driftbandit.study.specification import Chunk, Specification
from driftbandit.study.store import Store, logged_seconds

__all__ = ["Outcome", "run"]

Progress = Callable[[str, float, float], None]
"""Told a cell's label, the share of it that is done, and the share that was done before."""


class Outcome(NamedTuple):
    """A finished study."""

    specification: Specification
    columns: Mapping[str, Columns]
    """By cell."""
    seconds: Mapping[str, float]
    """Spent on preparing, compiling and playing, over all sessions and workers."""
    versions: Mapping[str, list[str]]
    """Of each package, every version that chunks were computed with."""

    def results(self) -> dict[str, Result]:
        """The regrets of every cell, as `simulate` would give them: systems × runs."""
        specification = self.specification
        shape = (specification.systems, specification.runs)
        timing = Timing(**self.seconds, device=specification.platform)
        found = {}
        for label, columns in self.columns.items():
            regret = {
                name: values.reshape(shape)
                for name, values in columns.items()
                if name not in ("system", "run")
            }
            curves = {name: values[..., None] for name, values in regret.items()}
            last = np.array([specification.rounds])
            rounds, seed = specification.rounds, specification.seed
            found[label] = Result(regret, curves, last, rounds, seed, timing)
        return found


def run(
    specification: Specification,
    folder: Path,
    engine: Engine | None = None,
    *,
    resume: bool = True,
    progress: Progress | None = None,
) -> Outcome:
    """Play what ``folder`` does not hold yet of a study, and return the whole.

    Args:
        specification: what to play.
        folder: where studies are stored, each in a folder of its own.
        engine: `local` threads by default, or `on_ray`.
        resume: keep the chunks that are stored and whole; False: play all of them again.
        progress: told how far each cell is.

    Example:
        >>> import tempfile
        >>> from driftbandit.study import Cell
        >>> small = Specification((Cell("gaussian"),), ("random",), 2, runs=2, rounds=5, n_states=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run(small, folder).results()["gaussian"].regret["random"].shape
        (2, 2)
    """
    store = Store(folder, specification)
    wanted = store.missing() if resume else list(specification.chunks())
    meter = _Meter(specification, wanted, progress)
    play = engine or local()
    stream = play(specification, wanted, lambda c: resume and store.find(c) is not None, meter)
    # Closed at once, wherever an interrupt comes: an engine left open would play on.
    with contextlib.closing(stream):
        for done in stream:
            store.put(done.chunk, done.content, done.timing, replace=not resume)
    columns, manifest = store.gather()
    versions: dict[str, set[str]] = {}
    for chunk in manifest["chunks"].values():
        for package, version in chunk["versions"].items():
            versions.setdefault(package, set()).add(version)
    return Outcome(
        specification,
        columns,
        logged_seconds(store.folder),
        {package: sorted(found) for package, found in versions.items()},
    )


class _Meter:
    """Adds up the shares of chunks, which threads report, to shares of cells."""

    def __init__(
        self, specification: Specification, wanted: list[Chunk], progress: Progress | None
    ) -> None:
        self._progress = progress
        self._systems = specification.systems
        self._lock = threading.Lock()
        # Counted in systems, whose sums are exact: the last share is 1, not nearly.
        self._before = {cell.label: self._systems for cell in specification.cells}
        for chunk in wanted:
            self._before[chunk.cell.label] -= chunk.systems
        self._done: dict[str, dict[str, float]] = {label: {} for label in self._before}
        for label, before in self._before.items():
            if progress is not None:
                progress(label, before / self._systems, before / self._systems)

    def __call__(self, chunk: Chunk, share: float) -> None:
        if self._progress is None:
            return
        label = chunk.cell.label
        with self._lock:
            self._done[label][chunk.name] = share * chunk.systems
            before = self._before[label]
            done = min(before + sum(self._done[label].values()), self._systems)
            self._progress(label, done / self._systems, before / self._systems)
