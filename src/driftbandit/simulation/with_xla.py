"""Play a job with programs that XLA compiles, on a CPU or a GPU."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from driftbandit.machine import cores
from driftbandit.simulation import blame, draws, jobs, programs
from driftbandit.simulation.jobs import Job
from driftbandit.simulation.work import Kept, Progress, Work

_alone = threading.Lock()  # held if the action set does not allow programs to run at once


def play(
    job: Job, ready: dict[str, Any], workers: int, progress: Progress | None
) -> dict[str, np.ndarray]:
    """The regret of every policy: systems × runs × checkpoints."""
    plan = job.plan
    blocks = list(enumerate(plan.blocks()))
    spans = range(0, job.rounds, plan.span)
    work = Work(job, len(blocks) * len(spans) * len(job.players), progress)

    def one(number: int, block: jobs.Block) -> None:
        with programs.numerics(job.dtype):
            here = jobs.seated(job, block)
            z = here.z
            for first in spans:
                count = min(plan.span, job.rounds - first)
                now, length = jax.device_put((np.uint32(first), np.int32(count)), job.device)
                features = jax.device_put(job.features_from(first), job.device)
                z, values = ready[""](here.keys[draws.PROCESS], z, now, here.environment, features)
                inside, rows = work.marked(first, count)
                for label, seats in here.seats.items():
                    for seat in seats:
                        if work.stopped:
                            return
                        path = seat.play(ready[label], now, length, values, features)
                        lanes = range(block.kept)[seat.lanes]
                        if rows.size and lanes:
                            begin = number * plan.lanes + lanes.start
                            work.keep(label, begin, inside, taken(path, rows)[:, : len(lanes)])
                    work.step_done()

    def taken(path: Any, rows: np.ndarray) -> np.ndarray:
        """Rows of a path: on a CPU it is read in place, from a GPU only these are fetched."""
        path = np.asarray(path) if job.device.platform == "cpu" else path
        return np.asarray(path[rows])

    # One stream of work keeps a GPU busy.
    shared = job.device.platform == "cpu" and job.game.actions.threads
    with contextlib.nullcontext() if job.game.actions.threads else _alone:
        return work.run(one, blocks, workers if shared else 1)


kept_programs = Kept()
"""Compiled programs by shape, shared by all simulations of the process."""
_compiling = threading.Lock()


def compiled(job: Job) -> dict[str, Any]:
    """The programs ("": the environment's).

    One call at a time, so that simulations that start together share programs.
    """
    with _compiling:
        return _compile(job)


def _compile(job: Job) -> dict[str, Any]:
    """Compile what is not compiled yet, several programs at a time."""
    with programs.numerics(job.dtype):
        block = jobs.seated(job, next(job.plan.blocks()))
        first, count = jax.device_put((np.uint32(0), np.int32(0)), job.device)
        features = jax.device_put(job.features_from(0), job.device)
        program = programs.environment_program(job.plan.span)
        key = block.keys[draws.PROCESS]
        arguments: tuple[Any, ...] = (key, block.z, first, block.environment, features)
        values = jax.eval_shape(program, *arguments)[1]
        wanted: dict[str, tuple[Any, tuple[Any, ...]]] = {"": (program, arguments)}
        for label, player in job.players.items():
            seat = block.seats[label][0]
            shape = (values.shape[0], len(seat.regret), *values.shape[2:])
            part = jax.ShapeDtypeStruct(shape, values.dtype)
            program = programs.policy_program(player.rule, job.game, job.plan.span)
            wanted[label] = (program, seat.arguments(first, count, part, features))

    keys = {
        label: (program, jobs.shapes(arguments), job.device)
        for label, (program, arguments) in wanted.items()
    }
    found = {key: kept_programs[key] for key in keys.values() if key in kept_programs}
    missing = {key: label for label, key in keys.items() if key not in found}

    def build(label: str) -> Any:
        program, arguments = wanted[label]
        settings = programs.numerics(job.dtype)
        with settings, jax.default_device(job.device), blame.blaming(label):
            return program.lower(*arguments).compile()

    with ThreadPoolExecutor(cores()) as pool:
        found |= zip(missing, pool.map(build, missing.values()), strict=True)
    kept_programs.update(found)
    return {label: found[key] for label, key in keys.items()}
