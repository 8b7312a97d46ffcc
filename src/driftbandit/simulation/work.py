"""Pieces of a simulation that are played at once: their threads, progress, results and end."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from driftbandit.simulation.jobs import Job

Progress = Callable[[float], None]


class Kept(collections.OrderedDict[Any, Any]):
    """What a process has compiled: the last `MOST` programs, or why there is none."""

    MOST = 128

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self.MOST:
            self.popitem(last=False)


class Work:
    """The curves of a job, filled piece by piece.

    Args:
        job: what is played.
        steps: how many times `step_done` will be called in all.
        progress: called with the share of the work done, one call at a time; or None.
    """

    def __init__(self, job: Job, steps: int, progress: Progress | None) -> None:
        self.job, self._steps, self._progress = job, steps, progress
        self._done, self._lock, self._stop = 0, threading.Lock(), threading.Event()
        total = job.plan.systems * job.plan.runs
        self._curves = {label: np.empty((total, len(job.checkpoints))) for label in job.players}

    def run(
        self, play: Callable[..., None], pieces: Sequence[tuple[Any, ...]], workers: int
    ) -> Any:
        """Call ``play(*piece)`` for every piece in so many threads; return the curves."""
        pool = ThreadPoolExecutor(workers)
        try:
            for finished in [pool.submit(play, *piece) for piece in pieces]:
                finished.result()
        except BaseException:  # Ctrl-C too: workers stop at their next step
            self._stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        shape = (self.job.plan.systems, self.job.plan.runs, len(self.job.checkpoints))
        return {label: curve.reshape(shape) for label, curve in self._curves.items()}

    @property
    def stopped(self) -> bool:
        """Whether another piece failed, or the user gave up."""
        return self._stop.is_set()

    def step_done(self) -> None:
        """One more step is done."""
        with self._lock:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done / self._steps)

    def marked(self, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Which checkpoints lie in rounds first + 1 … first + count, and their places there."""
        inside = (self.job.checkpoints > first) & (self.job.checkpoints <= first + count)
        return inside, self.job.checkpoints[inside] - 1 - first

    def keep(self, label: str, begin: int, inside: np.ndarray, regret: np.ndarray) -> None:
        """Keep the regret, checkpoints × runs, of the runs from number ``begin`` on."""
        self._curves[label][begin : begin + regret.shape[1], inside] = regret.T
