"""Play a job on a GPU with kernels that `lanes` writes: threads are runs."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandit import program_cache
from driftbandit.lanes import Unsupported, gpu
from driftbandit.lanes.kernel import Kernel, kernel
from driftbandit.machine import cores
from driftbandit.simulation import jobs, programs
from driftbandit.simulation.jobs import Job
from driftbandit.simulation.parts import MOVE, START, Part, parts, roles_of, sorted_out
from driftbandit.simulation.work import Kept, Progress, Work

SPAN = 64  # rounds per launch
MOST_RUNS = 8 * 33_792  # of a piece: eight times what an H200 holds of IDEA's runs
MEMORY = 8e9  # bytes of a piece

_kept = Kept()
_compiling = threading.Lock()


class Program(NamedTuple):
    """A kernel, and its machine code on the device."""

    kernel: Kernel
    launch: gpu.Launchable


def compiled(job: Job) -> tuple[dict[str, Program], dict[str, str]]:
    """The programs of a job, and for policies that cannot be compiled the reason."""
    try:
        architecture = gpu.architecture()
    except Unsupported as problem:
        return {}, dict.fromkeys(job.players, str(problem))
    if job.device.id != 0:
        return {}, dict.fromkeys(job.players, f"the device is {job.device}, not the first")
    one_system = job.plan.systems == 1

    def build(part: Part) -> Program | Unsupported:
        try:
            settings: dict[str, Any] = {"symmetric": symmetric(part), "one_system": one_system}
            with programs.numerics(job.dtype):
                made = kernel(part.step, *part.arguments(), **settings)
            name = hashlib.sha256(f"{architecture}\n{made.text}".encode()).hexdigest()[:32]
            code = program_cache.kept(
                f"lanes-{name}.cubin", lambda: gpu.machine_code(made.text, architecture)
            )
        except Unsupported as problem:
            return problem
        return Program(made, gpu.Launchable(code))

    def fitting(part: Part, program: Program | Unsupported) -> Program | Unsupported:
        """The program, if the systems of this job fit into it."""
        try:
            if isinstance(program, Program):
                program.kernel.check(_by_number(part), job.plan.systems, job.plan.runs)
        except Unsupported as problem:
            return problem
        return program

    with _compiling, ThreadPoolExecutor(cores()) as pool:
        every = parts(job)
        keys = {
            label: (part.rule, jobs.shapes(part.arguments()), tuple(symmetric(part)), one_system)
            for label, part in every.items()
        }
        found = {key: _kept[key] for key in keys.values() if key in _kept}
        missing = {keys[label]: part for label, part in every.items() if keys[label] not in found}
        found |= zip(missing, pool.map(build, missing.values()), strict=True)
        _kept.update(found)
    return sorted_out(job, {n: fitting(part, found[keys[n]]) for n, part in every.items()})


def _by_number(part: Part) -> dict[int, np.ndarray]:
    """The arrays of a part's systems by the number of the kernel's input."""
    run, shared, _ = part.arguments()[0]
    first = len(jax.tree.leaves((run, shared)))
    return dict(enumerate(map(np.asarray, jax.tree.leaves(part.system)), first))


def symmetric(part: Part) -> list[bool]:
    """Which arrays of the systems, and which states, are exactly symmetric matrices."""

    def is_so(leaf: Any) -> bool:
        leaf = np.asarray(leaf)
        square = leaf.ndim == 3 and leaf.shape[1] == leaf.shape[2]
        return square and np.array_equal(leaf, np.swapaxes(leaf, 1, 2))

    return [is_so(leaf) for leaf in jax.tree.leaves((part.system, part.state))]


class Seat:
    """A part on the runs of one piece: arrays on the device."""

    def __init__(
        self, part: Part, program: Program, of_run: list[gpu.Buffer], systems: np.ndarray
    ) -> None:
        self.kernel, self._launch = program
        self._runs, first, last = len(systems), systems[0], systems[-1] + 1
        shared = jax.tree.leaves(part.shared)
        arrays = {n: leaf[first:last] for n, leaf in _by_number(part).items()}
        states = [np.asarray(leaf)[first:last] for leaf in jax.tree.leaves(part.state)]
        self.run = of_run
        self.begin = [gpu.uploaded(leaf) for leaf in states]
        self.state = [gpu.Buffer(leaf[0].nbytes * self._runs) for leaf in states]
        self.rest: list[Any] = []
        numbers = None
        if self.kernel.many:
            numbers = (systems - first).astype(np.int32)
            packed = self.kernel.systems_array(arrays, last - first)
            self.rest += [gpu.uploaded(packed), gpu.uploaded(numbers)]
        else:
            shared += [leaf[0] for leaf in arrays.values()]
        if self.kernel.same:
            self.rest.append(self.kernel.same_bytes(dict(enumerate(shared, len(of_run)))))
        self._shape = self.kernel.shape(self._runs, numbers)

    def play(self, rounds: int, first: int, begin: bool, *arrays: gpu.Buffer) -> None:
        """Start a span of rounds; ``begin``: with the states of the beginning."""
        blocks, threads, near = self._shape
        states = [x for pair in zip(self.state, self.begin, strict=True) for x in pair]
        numbers = self._runs, rounds, first, int(begin)
        self._launch(blocks, threads, [*numbers, *self.run, *states, *arrays, *self.rest], near)


def play(
    job: Job, ready: dict[str, Program], workers: int, progress: Progress | None
) -> dict[str, np.ndarray]:
    """The regret of every policy: systems × runs × checkpoints."""
    total, arms = job.plan.systems * job.plan.runs, job.environment.arms.shape[1]
    every, roles = parts(job), roles_of(job)
    width = np.dtype(job.dtype).itemsize
    states = jax.tree.leaves([part.state for part in every.values()])
    each = width * SPAN * (arms + 1) + sum(np.asarray(leaf)[0].nbytes for leaf in states)
    most = max(1, min(MOST_RUNS, int(min(MEMORY, gpu.free_bytes() / 2) / each)))
    size = -(-total // -(-total // most))  # pieces of about the same size
    pieces = [(first, min(size, total - first)) for first in range(0, total, size)]
    spans = range(0, job.rounds, SPAN)
    work = Work(job, len(pieces) * len(spans) * len(job.players), progress)

    def one(first: int, count: int) -> None:
        runs = first + np.arange(count)
        systems = runs // job.plan.runs
        numbers = systems + job.first_system, runs % job.plan.runs
        given = [gpu.uploaded(n.astype(np.uint32)) for n in numbers]
        start = Seat(every[START], ready[START], given, systems)
        start.play(1, 0, False)
        z, *words = start.state
        keys = {role: words[2 * place : 2 * place + 2] for place, role in enumerate(roles)}
        seats = {
            label: Seat(part, ready[label], [w for role in part.run for w in keys[role]], systems)
            for label, part in every.items()
            if label != START
        }
        seats[MOVE].state = [z]
        values, path = (gpu.Buffer(width * SPAN * n * count) for n in (arms, 1))
        for begin in spans:
            length = min(SPAN, job.rounds - begin)
            seats[MOVE].play(length, begin, False, values)
            inside, rows = work.marked(begin, length)
            for label in job.players:
                if work.stopped:
                    return
                seats[label].play(length, begin, begin == 0, values, path)
                if rows.size:
                    regret = [path.numbers(row * count, count, job.dtype) for row in rows]
                    work.keep(label, first, inside, np.stack(regret))
                work.step_done()
            gpu.wait()  # or Ctrl-C would have to wait for everything

    return work.run(one, pieces, 1)
