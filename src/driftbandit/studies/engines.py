"""Run a study: compute the missing chunks on an engine, store them, and return all of it.

An engine is this process (`local`) or a Ray cluster (`on_ray`); both give the same numbers.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.machine import cores
from driftbandit.result import Result, Timing
from driftbandit.studies.specification import Chunk, Columns, Specification, compute
from driftbandit.studies.store import Store, encode, logged_seconds

ENGINES = ("local", "ray")
"""What the command line calls `local` and `on_ray`."""

Report = Callable[[Chunk, float], None]  # called with the finished share of a chunk
Progress = Callable[[str, float, float], None]
"""Called with a cell's label, its finished share, and the share that was stored before."""


class Done(NamedTuple):
    """A computed chunk: the content of its Parquet file, and the time it took."""

    chunk: Chunk
    content: bytes
    timing: Timing


IsStored = Callable[[Chunk], bool]
Engine = Callable[[Specification, list[Chunk], IsStored, Report], Generator[Done, None, None]]
"""A function that yields each of the wanted chunks as soon as it is done, in any order.

Skips those that another process has stored in the meantime. Closing the generator stops the work.
`run` shows one.
"""


def play(specification: Specification, chunk: Chunk, report: Report | None = None) -> Done:
    """Compute one chunk on one core."""
    progress = None if report is None else lambda share: report(chunk, share)
    columns, timing = compute(specification, chunk, progress)
    return Done(chunk, encode(specification, chunk, columns), timing)


class _Stopped(Exception):
    pass


def local(workers: int | None = None) -> Engine:
    """Threads of this process.

    Args:
        workers: how many; None: one per core, or two that share a GPU.

    Returns:
        An engine for `run` and `reproduce`.

    Example:
        >>> import tempfile
        >>> from driftbandit.studies import Cell
        >>> shape = {"n_states": 2, "n_arms": 2, "measure": "metric"}
        >>> study = Specification((Cell("gaussian"),), ("idea",), systems=4, chunk=2, **shape)
        >>> news = []
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = run(study, folder, local(workers=2), progress=lambda *one: news.append(one))
        >>> news[0], news[-1]  # the cell, its finished share, and what was stored before
        (('gaussian', 0.0, 0.0), ('gaussian', 1.0, 0.0))
    """
    if workers is not None:
        workers = errors.whole_number(workers, "workers", low=1)

    def engine(
        specification: Specification, wanted: list[Chunk], is_stored: IsStored, report: Report
    ) -> Generator[Done]:
        stop = threading.Event()
        # While one chunk is on the GPU another is prepared; more would only share Python's lock.
        count = workers or (2 if specification.platform == "gpu" else cores())

        def stoppable(chunk: Chunk, share: float) -> None:
            if stop.is_set():
                raise _Stopped
            report(chunk, share)

        def task(chunk: Chunk) -> Done | None:
            if stop.is_set():
                return None
            if is_stored(chunk):
                report(chunk, 1.0)
                return None
            return play(specification, chunk, stoppable)

        pool = ThreadPoolExecutor(count)
        try:
            pending = {pool.submit(task, chunk) for chunk in wanted}
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (done for future in finished if (done := future.result()) is not None)
        finally:  # on Ctrl-C and errors too: running chunks stop at their next step
            stop.set()
            pool.shutdown(cancel_futures=True)

    return engine


def on_ray(address: str | None = None) -> Engine:
    """A Ray cluster.

    Chunks come back as bytes and are stored here, so the nodes need no shared folder.

    Args:
        address: of a running cluster, as "10.0.0.1:6379"; None: start one on this machine.

    Returns:
        An engine for `run` and `reproduce`.

    Example:
        >>> outcome = run(study, "results", on_ray("10.0.0.1:6379"))  # doctest: +SKIP
        >>> on_ray("127.0.0.1:1")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: address: '127.0.0.1:1' does not answer (...); start Ray ...
    """
    with errors.needing("engine 'ray'"):
        import ray
    _check_reachable(address)

    def engine(
        specification: Specification, wanted: list[Chunk], is_stored: IsStored, report: Report
    ) -> Generator[Done]:
        started_here = not ray.is_initialized()
        if started_here:
            try:
                ray.init(address=address, log_to_driver=False, include_dashboard=False)
            except (ConnectionError, ValueError) as error:
                raise _unreachable(address, error) from None
        pending: dict[Any, Chunk] = {}
        try:
            remote = ray.remote(play)
            if specification.platform == "gpu":
                if not ray.cluster_resources().get("GPU"):
                    raise errors.InvalidInput("device", "the cluster has no GPU", "use cpu")
                remote = remote.options(num_gpus=1)
            todo = iter(wanted)
            # A few more tasks than cores: no core waits, and a killed driver wastes little.
            room = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
            while True:
                while len(pending) < room and (chunk := next(todo, None)) is not None:
                    if is_stored(chunk):
                        report(chunk, 1.0)
                    else:
                        pending[remote.remote(specification, chunk)] = chunk
                if not pending:
                    return
                [finished], _ = ray.wait(list(pending), num_returns=1)
                report(pending.pop(finished), 1.0)
                try:
                    yield ray.get(finished)
                except ray.exceptions.RayTaskError as error:
                    raise (error.cause or error) from None
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)
            if started_here:
                ray.shutdown()

    return engine


def _check_reachable(address: str | None) -> None:
    """Refuse a HOST:PORT that does not answer: Ray itself would try for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if "//" in host or not (colon and port.isdigit()):
        return  # "auto", "local", ray://…: Ray answers at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from None


def _unreachable(address: str | None, error: Exception) -> errors.InvalidInput:
    problem = f"{address!r} does not answer ({error})"
    return errors.InvalidInput("address", problem, "start Ray there first")


class Outcome(NamedTuple):
    """A finished study: its columns by cell, its cost, and the versions of all packages used.

    Example:
        >>> import tempfile
        >>> from driftbandit.studies import Cell
        >>> small = Specification((Cell("gaussian"),), ("random",), 2, runs=2, rounds=5, n_states=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     outcome = run(small, folder)
        >>> list(outcome.columns["gaussian"]), outcome.columns["gaussian"]["system"].tolist()
        (['system', 'run', 'random'], [0, 0, 1, 1])
        >>> outcome.results()["gaussian"].regret["random"].shape  # systems × runs
        (2, 2)
        >>> list(outcome.seconds), len(outcome.versions["numpy"])
        (['prepare', 'compile', 'play'], 1)
    """

    specification: Specification
    columns: Mapping[str, Columns]
    seconds: Mapping[str, float]
    """Spent on preparing, compiling and playing, over all sessions and workers."""
    versions: Mapping[str, list[str]]

    def results(self) -> dict[str, Result]:
        """The regrets of every cell as `simulate` would return them: systems × runs."""
        study = self.specification
        prepare, compile_, play = (self.seconds[step] for step in ("prepare", "compile", "play"))
        timing = Timing(prepare, compile_, play, study.platform)
        found = {}
        for cell in study.cells:
            columns = self.columns[cell.label]
            runs, rounds = study.runs_and_rounds(cell)
            names = [name for name in columns if name not in ("system", "run")]
            regret = {name: columns[name].reshape(study.systems, runs) for name in names}
            curves = {name: values[..., None] for name, values in regret.items()}
            curve = curves, np.array([rounds]), rounds
            found[cell.label] = Result(regret, *curve, study.seed, timing)
        return found


def run(
    specification: Specification,
    folder: Path,
    engine: Engine | None = None,
    *,
    resume: bool = True,
    progress: Progress | None = None,
) -> Outcome:
    """Compute the chunks of a study that ``folder`` does not hold yet, and return all of it.

    Args:
        specification, engine: what to compute, and where: `local` threads by default.
        folder: where studies are stored, each in a folder of its own.
        resume: keep the stored chunks that are intact; False: compute all of them again.
        progress: called with the finished share of each cell.

    Returns:
        The numbers of all cells, and what they cost.

    Example:
        >>> import tempfile
        >>> from driftbandit.studies import Cell
        >>> small = Specification((Cell("gaussian"),), ("random",), 2, runs=2, rounds=5, n_states=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run(small, folder).results()["gaussian"].regret["random"].shape
        (2, 2)

        An engine of your own, and a second run, which finds everything stored:

        >>> def one_by_one(specification, wanted, is_stored, report):
        ...     for chunk in wanted:
        ...         print("computing", chunk.name)
        ...         yield play(specification, chunk, report)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first, second = (run(small, folder, one_by_one) for _ in range(2))
        computing gaussian-000000
    """
    store = Store(folder, specification)
    wanted = store.missing() if resume else list(specification.chunks())
    report = _cell_shares(specification, wanted, progress)
    start = engine or local()
    stream = start(specification, wanted, lambda c: resume and store.find(c) is not None, report)
    # Closed at once, even on an interrupt: an engine left open would go on computing.
    with contextlib.closing(stream):
        for done in stream:
            store.put(done.chunk, done.content, done.timing, replace=not resume)
    columns, manifest = store.gather()
    versions: dict[str, set[str]] = {}
    for chunk in manifest["chunks"].values():
        for package, version in chunk["versions"].items():
            versions.setdefault(package, set()).add(version)
    found = {package: sorted(each) for package, each in versions.items()}
    return Outcome(specification, columns, logged_seconds(store.folder), found)


def _cell_shares(
    specification: Specification, wanted: list[Chunk], progress: Progress | None
) -> Report:
    """Turn the shares of chunks, which threads report, into shares of cells."""
    if progress is None:
        return lambda chunk, share: None
    # Counted in systems, whose sums are exact, so that the last share is exactly 1.
    total, lock = specification.systems, threading.Lock()
    before = {cell.label: total for cell in specification.cells}
    for chunk in wanted:
        before[chunk.cell.label] -= chunk.systems
    done: dict[str, dict[str, float]] = {label: {} for label in before}
    for label, stored in before.items():
        progress(label, stored / total, stored / total)

    def report(chunk: Chunk, share: float) -> None:
        label = chunk.cell.label
        with lock:
            done[label][chunk.name] = share * chunk.systems
            now = min(before[label] + sum(done[label].values()), total)
            progress(label, now / total, before[label] / total)

    return report
