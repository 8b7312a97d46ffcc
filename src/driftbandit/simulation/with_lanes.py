"""Play a job on a CPU with programs that `lanes` compiles: vector lanes are runs.

Runs are played in pieces of a few vectors, span by span of rounds, so that what one program writes
is still in cache when the next one reads it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from driftbandit.lanes import Unsupported
from driftbandit.simulation import jobs, programs
from driftbandit.simulation.jobs import Job
from driftbandit.simulation.parts import MOVE, START, Part, parts, roles_of, sorted_out
from driftbandit.simulation.work import Kept, Progress, Work

if TYPE_CHECKING:
    from driftbandit.lanes.program import Program

SPAN = 64  # rounds per call
MOST_VECTORS = 32  # of a piece
MEMORY = 64e6  # bytes of a piece, if it has more than one vector
MOST_MEMORY = 256e6  # bytes of one vector of runs of one policy; above, XLA plays

_kept = Kept()
_compiling = threading.Lock()


def compiled(job: Job) -> tuple[dict[str, Program], dict[str, str]]:
    """The programs of a job, and for policies that cannot be compiled the reason."""
    try:
        from driftbandit.lanes import machine_code, program
    except ImportError:
        return {}, dict.fromkeys(job.players, "llvmlite is not installed (extra: fast)")

    one_system = job.plan.systems == 1

    def found(part: Part) -> Program | Unsupported:
        arguments = part.arguments()
        held = _numbers([part]) * machine_code.here().vector_bytes
        if held > MOST_MEMORY:
            return Unsupported(f"a vector of its runs holds {held / 1e9:.1f} GB")
        key = part.rule, jobs.shapes(arguments), one_system
        if key not in _kept:
            kinds = zip(arguments[0], (False, True, one_system), strict=True)
            shared = [is_so for tree, is_so in kinds for _ in jax.tree.leaves(tree)]
            try:
                with programs.numerics(job.dtype):
                    _kept[key] = program.compiled(part.step, *arguments, shared=shared)
            except Unsupported as problem:
                _kept[key] = problem
        return _kept[key]

    with _compiling:
        return sorted_out(job, {label: found(part) for label, part in parts(job).items()})


class Seat(NamedTuple):
    """A part on the runs of one piece: arrays in lanes."""

    own: list[np.ndarray]
    state: list[np.ndarray]


def play(
    job: Job, ready: dict[str, Program], workers: int, progress: Progress | None
) -> dict[str, np.ndarray]:
    """The regret of every policy: systems × runs × checkpoints."""
    from driftbandit.lanes.program import aligned, in_lanes

    lanes, total = ready[MOVE].lanes, job.plan.systems * job.plan.runs
    every, roles = parts(job), roles_of(job)
    size = lanes * _vectors(every, total, lanes, workers)
    pieces = [(first, min(size, total - first)) for first in range(0, total, size)]
    spans = range(0, job.rounds, SPAN)
    work = Work(job, len(pieces) * len(spans) * len(job.players), progress)

    def seated(first: int, kept: int) -> dict[str, Seat]:
        """The parts at the start of a piece; spare lanes repeat the last run."""
        runs = np.minimum(first + np.arange(-(-kept // lanes) * lanes), total - 1)
        systems = runs // job.plan.runs
        laid: dict[int, np.ndarray] = {}

        def lay(leaf: Any) -> np.ndarray:
            if job.plan.systems == 1:
                return np.ascontiguousarray(leaf[0])
            if id(leaf) not in laid:  # parts share most arrays
                laid[id(leaf)] = in_lanes(leaf[systems], lanes)
            return laid[id(leaf)]

        def seat(label: str, of_run: list[np.ndarray]) -> Seat:
            part = every[label]
            own = of_run + [np.asarray(word) for word in jax.tree.leaves(part.shared)]
            used = ready[label].used[len(own) :]
            leaves = zip(jax.tree.leaves(part.system), used, strict=True)
            own += [lay(leaf) if is_used else own[0] for leaf, is_used in leaves]
            states = (leaf[systems] for leaf in jax.tree.leaves(part.state))
            return Seat(own, [in_lanes(leaf, lanes) for leaf in states])

        numbers = systems + job.first_system, runs % job.plan.runs
        start = seat(START, [in_lanes(n.astype(np.uint32), lanes) for n in numbers])
        ready[START].on(*start)(1, 0)
        z, *words = start.state
        keys = {role: words[2 * place : 2 * place + 2] for place, role in enumerate(roles)}
        seats = {
            label: seat(label, [word for role in part.run for word in keys[role]])
            for label, part in every.items()
            if label != START
        }
        return seats | {MOVE: seats[MOVE]._replace(state=[z])}

    def one(first: int, kept: int) -> None:
        seats, blocks = seated(first, kept), -(-kept // lanes)
        path = np.empty((0, 0))
        for begin in spans:
            count = min(SPAN, job.rounds - begin)
            if path.shape[1] != count:  # new memory costs time, and only the last span is shorter
                shape = blocks, count, job.environment.arms.shape[1], lanes
                values, path = aligned(shape, job.dtype), aligned((*shape[:2], lanes), job.dtype)
                move = ready[MOVE].on(*seats[MOVE], [values])
                rules = {
                    label: ready[label].on(*seats[label], [values], [path]) for label in job.players
                }
            move(count, begin)
            inside, rows = work.marked(begin, count)
            for label, rule in rules.items():
                if work.stopped:
                    return
                rule(count, begin)
                if rows.size:
                    regret = np.moveaxis(path[:, rows], 1, 0).reshape(rows.size, -1)
                    work.keep(label, first, inside, regret[:, :kept])
                work.step_done()

    return work.run(one, pieces, workers)


def _numbers(every: Iterable[Part]) -> int:
    """How many numbers a run has in these parts."""
    leaves = jax.tree.leaves([(part.system, part.state) for part in every])
    return sum(math.prod(leaf.shape[1:]) for leaf in leaves)


def _vectors(every: dict[str, Part], total: int, lanes: int, workers: int) -> int:
    """How many vectors of runs a piece has: few enough for the memory, and for all workers."""
    size = 8 * _numbers(every.values()) * lanes
    share = -(-total // (2 * workers * lanes))
    return max(1, min(MOST_VECTORS, share, int(MEMORY / size)))
