"""Programs, compiled once per shape and shared by all simulations of the process."""

from __future__ import annotations

import collections
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from driftbandit.machine import cores
from driftbandit.simulation import draws, programs
from driftbandit.simulation.jobs import Job, seated

__all__ = ["compiled"]

_kept: collections.OrderedDict[Any, Any] = collections.OrderedDict()
_lock = threading.Lock()
MOST = 128
"""Programs kept; the one unused for longest goes first."""


def _shape_key(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def compiled(job: Job) -> tuple[dict[str, Any], float]:
    """The programs, "" being the environment's, and the seconds it took to compile them.

    One call at a time: simulations that start together in threads wait for the first one's
    programs instead of compiling their own.
    """
    with _lock:
        clock = time.perf_counter()
        return _compile(job), time.perf_counter() - clock


def _compile(job: Job) -> dict[str, Any]:
    """Compile what is not compiled yet, several programs at a time."""
    with programs.numerics(job.dtype):
        block = seated(job, next(job.plan.blocks()))
        first, count = jax.device_put((np.uint32(0), np.int32(0)), job.device)
        program = programs.environment_program(job.plan.span)
        arguments: tuple[Any, ...] = (block.keys[draws.PROCESS], block.z, first, block.environment)
        values = jax.eval_shape(program, *arguments)[1]
        wanted: dict[str, tuple[Any, tuple[Any, ...]]] = {"": (program, arguments)}
        for label, sized in job.players.items():
            seat = block.seats[label][0]
            shape = (values.shape[0], len(seat.regret), *values.shape[2:])
            part = jax.ShapeDtypeStruct(shape, values.dtype)
            program = programs.policy_program(sized.player.rule, job.game, job.plan.span)
            wanted[label] = (program, seat.arguments(first, count, part))

    keys = {
        label: (program, _shape_key(arguments), job.device)
        for label, (program, arguments) in wanted.items()
    }
    found = {key: _kept[key] for key in keys.values() if key in _kept}
    missing = {key: label for label, key in keys.items() if key not in found}

    def build(label: str) -> Any:
        program, arguments = wanted[label]
        with programs.numerics(job.dtype), jax.default_device(job.device):
            return program.lower(*arguments).compile()

    with ThreadPoolExecutor(cores()) as pool:
        found |= zip(missing, pool.map(build, missing.values()), strict=True)
    for key in keys.values():
        _kept[key] = found[key]
        _kept.move_to_end(key)
    while len(_kept) > MOST:
        _kept.popitem(last=False)
    return {label: found[key] for label, key in keys.items()}
