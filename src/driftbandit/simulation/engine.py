"""`simulate`: stacks systems and policies, compiles once, plays blocks in parallel."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from driftbandit import errors
from driftbandit import policies as registry
from driftbandit.machine import cores
from driftbandit.model import LGDS
from driftbandit.policies import Policy
from driftbandit.result import Result, Timing
from driftbandit.simulation import checks, draws, jobs, programs
from driftbandit.simulation.checks import Options
from driftbandit.simulation.jobs import Job, Pair
from driftbandit.system import System

Progress = Callable[[float], None]


def simulate(
    model: LGDS | System | Sequence[Pair | System],
    arms: Any = None,
    policies: Iterable[str | Policy] | None = None,
    rounds: int = 1000,
    runs: int = 10,
    seed: int = 0,
    *,
    assumed: Sequence[Pair | System] | None = None,
    device: str | None = None,
    dtype: Any = np.float64,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Result:
    """Play policies on drifting systems and measure their dynamic regret (P4).

    All policies see the same state paths and the same noise on the same arm, so comparisons are
    paired. Memory is bounded by blocks, whatever the size of the study; one number per policy,
    system, run and checkpoint is kept.

    Args:
        model: a `System`; one LGDS (with ``arms``); or a sequence of (LGDS, arms), as
            `families.sample` returns, or of Systems.
        arms: k × d, with a single LGDS; or "sphere", here or in the pairs: every unit vector.
        policies: names such as "idea" or "kalman_ucb(width=2)", or `Policy` objects of your own;
            None: every registered policy that can play these arms, except rollout, which is slow.
        rounds: n, rounds per run.
        runs: independent runs per system.
        seed: whole number ≥ 0; the same seed gives the same numbers.
        assumed: one (LGDS, arms) per system: what the policies assume, if that differs from the
            truth. Policies with full information know the truth.
        device: "cpu" or "gpu"; None: what JAX prefers.
        dtype: float64 or float32.
        options: what studies need: definition of regret, random streams, warm-up, curves, threads.
        progress: called with the share of the work done, 0 to 1, from a worker's thread, one call
            at a time.

    Returns:
        `Result`: ``result.regret["idea"]`` has shape (runs,), or (systems, runs) for a sequence.

    Example:
        >>> from driftbandit import families
        >>> model, arms = families.sample("gaussian", n_states=2, n_arms=3)[0]
        >>> result = simulate(model, arms, policies=["idea", "random"], rounds=50, runs=8)
        >>> bool(result.regret["idea"].mean() < result.regret["random"].mean())
        True
    """
    options = checks.checked_options(options)
    systems, actions = checks.checked_systems(model, arms, options.warmup)
    learned = checks.checked_assumed(assumed, systems, options.warmup, actions)
    chosen = registry.chosen(policies, actions, len(systems[0][1]))
    actions.check_regret(options.regret)
    rounds = errors.whole_number(rounds, "rounds", low=1, high=2**32 - 1)
    runs = errors.whole_number(runs, "runs", low=1, high=2**32 - 1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    if progress is not None and not callable(progress):
        raise errors.InvalidInput("progress", f"is {progress!r}", "give a function of one number")
    dtype = checks.checked_dtype(dtype)
    target = checks.checked_device(device)
    checks.check_range(systems, rounds, dtype)
    if assumed is not None:
        checks.check_range(learned, rounds, dtype, "assumed")

    clock = time.perf_counter()
    truth = jobs.resident(jobs.known(systems), dtype, target)
    belief = truth if assumed is None else jobs.resident(jobs.known(learned), dtype, target)
    players = {}
    for label, policy in chosen.items():
        theirs, known = (systems, truth) if policy.full_information else (learned, belief)
        player = jobs.prepared(policy, theirs, rounds, actions)
        players[label] = jobs.sized(player, known, dtype, target)
    roles = {draws.START, draws.PROCESS, draws.REWARD, *(p.role for p in players.values())}
    job = Job(
        jobs.plan_for(systems, runs, rounds, target),
        jobs.resident(jobs.environment(systems), dtype, target),
        players,
        jobs.checkpoints(rounds, options.checkpoints),
        rounds,
        {role: draws.role_key(seed, options.stream, role) for role in roles},
        programs.Game(options.regret, options.common_noise, actions, target.platform != "cpu"),
        options.first_system,
        dtype,
        target,
    )
    prepare_time = time.perf_counter() - clock
    ready, compile_time = compiled(job)
    clock = time.perf_counter()
    curves = _play(job, ready, options.workers or cores(), progress)
    timing = Timing(prepare_time, compile_time, time.perf_counter() - clock, str(target))

    for label, curve in curves.items():
        if not np.isfinite(curve).all():
            problem = f"{dtype.name} overflowed while {label!r} played"
            raise errors.InvalidInput("dtype", problem, "use float64")
    if isinstance(model, LGDS | System):
        curves = {label: curve[0] for label, curve in curves.items()}
    totals = {label: curve[..., -1] for label, curve in curves.items()}
    return Result(totals, curves, job.checkpoints, rounds, seed, timing)


_alone = threading.Lock()  # held if the action set does not allow programs to run at once


def _play(
    job: Job, ready: dict[str, Any], workers: int, progress: Progress | None
) -> dict[str, np.ndarray]:
    plan = job.plan
    total = plan.systems * plan.runs
    curves = {label: np.empty((total, len(job.checkpoints))) for label in job.players}
    all_blocks = list(plan.blocks())
    spans = range(0, job.rounds, plan.span)
    steps = len(all_blocks) * len(spans) * len(job.players)
    done, lock, stop = 0, threading.Lock(), threading.Event()

    def step_done() -> None:
        nonlocal done
        with lock:
            done += 1
            if progress is not None:
                progress(done / steps)

    def play(number: int, block: jobs.Block) -> None:
        with programs.numerics(job.dtype):
            here = jobs.seated(job, block)
            z = here.z
            for first in spans:
                count = min(plan.span, job.rounds - first)
                now, length = jax.device_put((np.uint32(first), np.int32(count)), job.device)
                z, values = ready[""](here.keys[draws.PROCESS], z, now, here.environment)
                marked = (job.checkpoints > first) & (job.checkpoints <= first + count)
                rows = job.checkpoints[marked] - 1 - first
                for label, seats in here.seats.items():
                    for seat in seats:
                        if stop.is_set():
                            return
                        path = seat.play(ready[label], now, length, values)
                        lanes = range(block.kept)[seat.lanes]
                        if rows.size and lanes:
                            begin = number * plan.lanes + lanes.start
                            curve = curves[label][begin : begin + len(lanes)]
                            curve[:, marked] = taken(path, rows)[:, : len(lanes)].T
                    step_done()

    def taken(path: Any, rows: np.ndarray) -> np.ndarray:
        """Rows of a path: on a CPU it is read in place, from a GPU only these are fetched."""
        path = np.asarray(path) if job.device.platform == "cpu" else path
        return np.asarray(path[rows])

    # One stream of work keeps a GPU busy.
    shared = job.device.platform == "cpu" and job.game.actions.threads
    with contextlib.nullcontext() if job.game.actions.threads else _alone:
        pool = ThreadPoolExecutor(workers if shared else 1)
        try:
            for finished in [pool.submit(play, *numbered) for numbered in enumerate(all_blocks)]:
                finished.result()
        except BaseException:  # Ctrl-C too: workers stop at their next step
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    shape = (plan.systems, plan.runs, len(job.checkpoints))
    return {label: curve.reshape(shape) for label, curve in curves.items()}


kept_programs: collections.OrderedDict[Any, Any] = collections.OrderedDict()
"""Compiled programs by shape, shared by all simulations of the process."""
MOST = 128  # programs kept; the least recently used one is dropped first
_compiling = threading.Lock()


def compiled(job: Job) -> tuple[dict[str, Any], float]:
    """The programs ("": the environment's), and the seconds it took to compile them.

    One call at a time, so that simulations that start together share programs.
    """
    with _compiling:
        clock = time.perf_counter()
        return _compile(job), time.perf_counter() - clock


def _compile(job: Job) -> dict[str, Any]:
    """Compile what is not compiled yet, several programs at a time."""
    with programs.numerics(job.dtype):
        block = jobs.seated(job, next(job.plan.blocks()))
        first, count = jax.device_put((np.uint32(0), np.int32(0)), job.device)
        program = programs.environment_program(job.plan.span)
        arguments: tuple[Any, ...] = (block.keys[draws.PROCESS], block.z, first, block.environment)
        values = jax.eval_shape(program, *arguments)[1]
        wanted: dict[str, tuple[Any, tuple[Any, ...]]] = {"": (program, arguments)}
        for label, player in job.players.items():
            seat = block.seats[label][0]
            shape = (values.shape[0], len(seat.regret), *values.shape[2:])
            part = jax.ShapeDtypeStruct(shape, values.dtype)
            program = programs.policy_program(player.rule, job.game, job.plan.span)
            wanted[label] = (program, seat.arguments(first, count, part))

    keys = {
        label: (program, _shapes(arguments), job.device)
        for label, (program, arguments) in wanted.items()
    }
    found = {key: kept_programs[key] for key in keys.values() if key in kept_programs}
    missing = {key: label for label, key in keys.items() if key not in found}

    def build(label: str) -> Any:
        program, arguments = wanted[label]
        with programs.numerics(job.dtype), jax.default_device(job.device):
            return program.lower(*arguments).compile()

    with ThreadPoolExecutor(cores()) as pool:
        found |= zip(missing, pool.map(build, missing.values()), strict=True)
    for key in keys.values():
        kept_programs[key] = found[key]
        kept_programs.move_to_end(key)
    while len(kept_programs) > MOST:
        kept_programs.popitem(last=False)
    return {label: found[key] for label, key in keys.items()}


def _shapes(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)
