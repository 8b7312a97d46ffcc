"""Who plays a study's chunks: threads of this process, or a Ray cluster, to the same numbers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, Protocol

from driftbandit import errors
from driftbandit.machine import cores
from driftbandit.result import Timing
from driftbandit.study import chunks
from driftbandit.study.specification import Chunk, Specification
from driftbandit.study.store import encode

__all__ = ["ENGINES", "Done", "Engine", "local", "on_ray"]

ENGINES = ("local", "ray")

Report = Callable[[Chunk, float], None]
"""Told the share of a chunk that is done."""


class Done(NamedTuple):
    """A chunk that was played."""

    chunk: Chunk
    content: bytes
    """Of its Parquet file."""
    timing: Timing


class Engine(Protocol):
    """Plays chunks in any order; gives each when it is done."""

    def __call__(
        self,
        specification: Specification,
        wanted: list[Chunk],
        is_stored: Callable[[Chunk], bool],
        report: Report,
    ) -> Generator[Done]:
        """Play ``wanted``, but what ``is_stored`` by then: another process may share the folder.

        Closing the generator ends the play.
        """


def play(specification: Specification, chunk: Chunk, report: Report | None = None) -> Done:
    """Play one chunk on one core."""
    progress = None if report is None else lambda share: report(chunk, share)
    columns, timing = chunks.compute(specification, chunk, progress)
    return Done(chunk, encode(specification, chunk, columns), timing)


def local(workers: int | None = None) -> Engine:
    """Threads of this process, one chunk each; None: one per core, or two that share a GPU."""
    if workers is not None:
        workers = errors.whole_number(workers, "workers", low=1)

    def engine(
        specification: Specification,
        wanted: list[Chunk],
        is_stored: Callable[[Chunk], bool],
        report: Report,
    ) -> Generator[Done]:
        stop = threading.Event()
        # While one chunk is on the GPU another is prepared; more would only share Python's lock.
        count = workers or (2 if specification.platform == "gpu" else cores())

        def task(chunk: Chunk) -> Done | None:
            if stop.is_set():
                return None
            if is_stored(chunk):
                report(chunk, 1.0)
                return None
            return play(specification, chunk, _stoppable(report, stop))

        pool = ThreadPoolExecutor(count)
        try:
            pending = {pool.submit(task, chunk) for chunk in wanted}
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (done for future in finished if (done := future.result()) is not None)
        finally:  # Ctrl-C and errors too: chunks in flight stop at their next step
            stop.set()
            pool.shutdown(cancel_futures=True)

    return engine


class _Stopped(Exception):
    pass


def _stoppable(report: Report, stop: threading.Event) -> Report:
    def checked(chunk: Chunk, share: float) -> None:
        if stop.is_set():
            raise _Stopped
        report(chunk, share)

    return checked


def on_ray(address: str | None = None) -> Engine:
    """A Ray cluster: ``address`` of a running one, or None to start one on this machine.

    Chunks come back as bytes and are stored here, so the nodes need no folder in common.
    """
    with errors.needing("engine 'ray'"):
        import ray
    _check_reachable(address)

    def engine(
        specification: Specification,
        wanted: list[Chunk],
        is_stored: Callable[[Chunk], bool],
        report: Report,
    ) -> Generator[Done]:
        started_here = not ray.is_initialized()
        if started_here:
            try:
                ray.init(address=address, log_to_driver=False, include_dashboard=False)
            except (ConnectionError, ValueError) as error:
                raise errors.InvalidInput(
                    "address", f"{address!r} does not answer ({error})", "start Ray there first"
                ) from None
        pending: dict[Any, Chunk] = {}
        try:
            remote = ray.remote(play)
            if specification.platform == "gpu":
                if not ray.cluster_resources().get("GPU"):
                    raise errors.InvalidInput(
                        "device", "is 'gpu', and the cluster has none", "use cpu"
                    )
                remote = remote.options(num_gpus=1)
            todo = iter(wanted)
            # A few more than there are cores: none waits, and a killed driver wastes little.
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
    """Refuse HOST:PORT where nobody listens: Ray itself would try for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if "//" in host or not (colon and port.isdigit()):
        return  # "auto", "local", ray://…: Ray answers at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise errors.InvalidInput(
            "address", f"{address!r} does not answer ({error})", "start Ray there first"
        ) from None
