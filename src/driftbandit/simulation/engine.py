"""`simulate`: stacks systems and policies, compiles once, plays blocks in parallel."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from driftbandit import errors
from driftbandit.machine import cores
from driftbandit.model import LGDS
from driftbandit.policies import Policy
from driftbandit.result import Result, Timing
from driftbandit.simulation import blocks, checks, draws, jobs, programs, stacking
from driftbandit.simulation.checks import Pair
from driftbandit.simulation.compiling import compiled
from driftbandit.system import System

__all__ = ["simulate"]

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
    regret: str = "mean",
    common_noise: bool = False,
    warmup: int = 0,
    stream: str = "",
    first_system: int = 0,
    device: str | None = None,
    dtype: Any = np.float64,
    checkpoints: int = 40,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Play policies on drifting systems and measure their dynamic regret (P4).

    All policies meet the same state paths and the same noise on the same arm, so comparisons are
    paired. What is in flight is bounded by blocks, whatever the size of the study; what is kept
    is one number per policy, system, run and checkpoint.

    Args:
        model: a `System`; one LGDS (with ``arms``); or a sequence of (LGDS, arms), as
            `families.sample` gives, or of Systems.
        arms: k × d, with a single LGDS; or "sphere", here or in the pairs: every unit vector.
        policies: names such as "idea" or "kalman_ucb(width=2)", or `Policy` objects of your own;
            None: every registered one that can play these arms, but rollout, which is slow.
        rounds: n, rounds per run.
        runs: independent runs per system.
        seed: whole number ≥ 0; the same seed gives the same numbers.
        assumed: what the policies take the systems to be, one (LGDS, arms) for each, where that
            differs from the truth; who sees all rewards, as the Kalman Oracle, knows the truth.
        regret: against what a round is held. "mean": ⟨a* − a, z⟩, free of noise; "noisy": the
            same arms' rewards with their noise, equal in the mean; "hindsight": the highest
            reward that was drawn, noise included, which no policy can foresee; not on the sphere.
        common_noise: one noise for all arms of a round, instead of one each.
        warmup: rounds the state moves before the first one is played; matters only with an
            ``initial_cov`` or ``initial_mean``, since a state without starts stationary.
        stream: a name that sets this study's random numbers apart from others with its seed.
        first_system: number of the first system, for a study that is played in pieces.
        device: "cpu" or "gpu"; None: what JAX prefers.
        dtype: float64, or float32 by choice.
        checkpoints: about how many log-spaced rounds the curves keep; 1: the total alone.
        workers: blocks played at once on a CPU; None: one per core.
        progress: called with the share of the work done, between 0 and 1, from a worker's
            thread, one call at a time.

    Returns:
        `Result`; ``result.regret["idea"]`` has shape (runs,), or (systems, runs) for a sequence.

    Example:
        >>> from driftbandit import families
        >>> model, arms = families.sample("gaussian", n_states=2, n_arms=3)[0]
        >>> result = simulate(model, arms, policies=["idea", "random"], rounds=50, runs=8)
        >>> bool(result.regret["idea"].mean() < result.regret["random"].mean())
        True
    """
    systems, actions = checks.checked_systems(model, arms, warmup)
    learned = checks.checked_beliefs(assumed, systems, warmup, actions)
    chosen = checks.checked_policies(policies, actions, len(systems[0][1]))
    regret = checks.checked_regret(regret, actions)
    rounds = errors.whole_number(rounds, "rounds", low=1, high=2**32 - 1)
    runs = errors.whole_number(runs, "runs", low=1, high=2**32 - 1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    first_system = errors.whole_number(first_system, "first_system", low=0, high=2**31)
    checkpoints = errors.whole_number(checkpoints, "checkpoints", low=1)
    if not isinstance(common_noise, bool):
        raise errors.InvalidInput("common_noise", f"is {common_noise!r}", "give True or False")
    if not isinstance(stream, str):
        raise errors.InvalidInput("stream", f"is {stream!r}", "give a text")
    if progress is not None and not callable(progress):
        raise errors.InvalidInput("progress", f"is {progress!r}", "give a function of one number")
    workers = errors.whole_number(cores() if workers is None else workers, "workers", low=1)
    dtype = checks.checked_dtype(dtype)
    target = checks.checked_device(device)
    checks.check_range(systems, rounds, dtype)
    if assumed is not None:
        checks.check_range(learned, rounds, dtype, "assumed")

    clock = time.perf_counter()
    players = {
        label: stacking.prepared(
            policy, systems if policy.full_information else learned, rounds, actions
        )
        for label, policy in chosen.items()
    }
    truth = jobs.resident(stacking.known(systems), dtype, target)
    belief = jobs.resident(stacking.known(learned), dtype, target) if assumed is not None else truth
    told = {True: truth, False: belief}
    roles = {draws.START, draws.PROCESS, draws.REWARD, *(p.role for p in players.values())}
    job = jobs.Job(
        jobs.plan(systems, runs, rounds, target),
        jobs.resident(stacking.environment(systems), dtype, target),
        {
            label: jobs.sized(player, told[chosen[label].full_information], dtype, target)
            for label, player in players.items()
        },
        blocks.checkpoints(rounds, checkpoints),
        rounds,
        {role: draws.role_key(seed, stream, role) for role in roles},
        programs.Game(regret, common_noise, actions, target.platform != "cpu"),
        first_system,
        dtype,
        target,
    )
    prepare_time = time.perf_counter() - clock
    ready, compile_time = compiled(job)
    clock = time.perf_counter()
    curves = _play(job, ready, workers, progress)
    timing = Timing(prepare_time, compile_time, time.perf_counter() - clock, str(target))

    for label, curve in curves.items():
        if not np.isfinite(curve).all():
            raise errors.InvalidInput(
                "dtype", f"{dtype.name} overflowed while {label!r} played", "use float64"
            )
    if isinstance(model, LGDS | System):
        curves = {label: curve[0] for label, curve in curves.items()}
    totals = {label: curve[..., -1] for label, curve in curves.items()}
    return Result(totals, curves, job.checkpoints, rounds, seed, timing)


_alone = threading.Lock()
"""Held by simulations whose action set does not let programs run at once."""


def _play(
    job: jobs.Job, ready: dict[str, Any], workers: int, progress: Progress | None
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

    def play(number: int, block: blocks.Block) -> None:
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
        """Rows of a path: on a CPU it is read where it lies, from a GPU only these are fetched."""
        path = np.asarray(path) if job.device.platform == "cpu" else path
        return np.asarray(path[rows])

    # A GPU is kept busy by one stream of work.
    shared = job.device.platform == "cpu" and job.game.actions.threads
    with contextlib.nullcontext() if job.game.actions.threads else _alone:
        pool = ThreadPoolExecutor(workers if shared else 1)
        try:
            for finished in [pool.submit(play, *numbered) for numbered in enumerate(all_blocks)]:
                finished.result()
        except BaseException:  # Ctrl-C too: let the workers leave at their next step
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    shape = (plan.systems, plan.runs, len(job.checkpoints))
    return {label: curve.reshape(shape) for label, curve in curves.items()}
