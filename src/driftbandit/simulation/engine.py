"""`simulate`: stacks systems and policies, compiles once, plays blocks in parallel."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandit import errors
from driftbandit.machine import cores
from driftbandit.model import LGDS
from driftbandit.policies import Policy
from driftbandit.result import Result, Timing
from driftbandit.simulation import blocks, checks, draws, programs, stacking
from driftbandit.simulation.checks import Pair
from driftbandit.system import System

__all__ = ["simulate"]

Progress = Callable[[float], None]


LIMITS = {"cpu": blocks.Limits(64, 256e6), "gpu": blocks.Limits(16_384, 8e9)}
"""On a CPU what stays in cache, on a GPU what keeps it busy."""


def simulate(
    model: LGDS | System | Sequence[Pair | System],
    arms: Any = None,
    policies: Iterable[str | Policy] | None = None,
    rounds: int = 1000,
    runs: int = 10,
    seed: int = 0,
    *,
    believed: Sequence[Pair | System] | None = None,
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
        believed: what the policies take the systems to be, one (LGDS, arms) for each, where that
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
        >>> model, arms = families.sample("gaussian", states=2, arms=3)[0]
        >>> result = simulate(model, arms, policies=["idea", "random"], rounds=50, runs=8)
        >>> bool(result.regret["idea"].mean() < result.regret["random"].mean())
        True
    """
    systems, sphere = checks.checked_systems(model, arms, warmup)
    learned = checks.checked_beliefs(believed, systems, warmup, sphere)
    chosen = checks.checked_policies(policies, sphere, len(systems[0][1]))
    regret = checks.checked_regret(regret, sphere)
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
    if believed is not None:
        checks.check_range(learned, rounds, dtype, "believed")

    clock = time.perf_counter()
    players = {
        label: stacking.prepared(
            policy, systems if policy.sees_all_rewards else learned, rounds, sphere
        )
        for label, policy in chosen.items()
    }
    roles = {draws.START, draws.PROCESS, draws.REWARD, *(p.role for p in players.values())}
    job = _Job(
        _plan(systems, runs, rounds, target),
        _resident(stacking.environment(systems), dtype, target),
        {label: _sized(player, dtype, target) for label, player in players.items()},
        blocks.checkpoints(rounds, checkpoints),
        rounds,
        {role: draws.role_key(seed, stream, role) for role in roles},
        programs.Game(regret, common_noise, sphere, target.platform != "cpu"),
        first_system,
        dtype,
        target,
    )
    prepare_time = time.perf_counter() - clock
    compiled, compile_time = _compile(job)
    clock = time.perf_counter()
    curves = _play(job, compiled, workers, progress)
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


# Turning systems and policies into stacked arrays.


class _Job(NamedTuple):
    plan: blocks.Plan
    environment: programs.Environment
    players: dict[str, _Sized]
    checkpoints: np.ndarray
    rounds: int
    roles: dict[str, draws.Key]
    game: programs.Game
    first_system: int
    dtype: Any
    device: Any

    def parts(self, label: str) -> list[slice]:
        """The lanes of a block that a policy plays together: all, unless it remembers a lot."""
        size = min(self.plan.lanes, self.players[label].lanes)
        return [slice(begin, begin + size) for begin in range(0, self.plan.lanes, size)]


class _Sized(NamedTuple):
    """A player, and how many lanes of it fit into memory."""

    player: stacking.Player
    lanes: int


def _limits(device: Any) -> blocks.Limits:
    return LIMITS["cpu" if device.platform == "cpu" else "gpu"]


def _resident(tree: Any, dtype: np.dtype, device: Any) -> Any:
    """The arrays on the device, in the precision of the study, for all of its blocks."""

    def cast(leaf: np.ndarray) -> np.ndarray:
        return leaf.astype(dtype) if leaf.dtype.kind == "f" else leaf

    with programs.numerics(dtype):
        return jax.device_put(jax.tree.map(cast, tree), device)


def _sized(player: stacking.Player, dtype: np.dtype, device: Any) -> _Sized:
    held = sum(leaf[0].size for leaf in jax.tree.leaves((player.problem, player.state)))
    there = player._replace(
        problem=_resident(player.problem, dtype, device),
        state=_resident(player.state, dtype, device),
    )
    return _Sized(there, blocks.lanes(_limits(device), 3 * held + player.workspace))


def _plan(systems: list[Pair], runs: int, rounds: int, device: Any) -> blocks.Plan:
    arms, states = systems[0][1].shape
    return blocks.plan(
        len(systems),
        runs,
        rounds,
        per_round=4 * arms + 2 * states,
        at_rest=6 * states * states + 4 * arms * states,
        limits=_limits(device),
    )


# Compiling and playing.


class _Block(NamedTuple):
    """The arrays of one block on its device."""

    keys: dict[str, draws.Key]
    z: Any
    environment: programs.Environment
    seats: dict[str, list[_Seat]]


class _Seat:
    """A policy at some of a block's lanes: what it is handed every span, and where it stands."""

    def __init__(self, lanes: slice, keys: Any, problem: Any, noise_std: Any, state: Any) -> None:
        self.lanes, self.keys, self.problem, self.noise_std = lanes, keys, problem, noise_std
        self.state = state
        self.regret = noise_std * 0

    def arguments(self, first: Any, count: Any, values: Any) -> tuple[Any, ...]:
        """What the policy's program takes."""
        whole = values.shape[1] == len(self.regret)
        return (
            *self.keys,
            self.state,
            self.regret,
            first,
            count,
            values if whole else values[:, self.lanes],
            self.problem,
            self.noise_std,
        )

    def play(self, program: Any, first: Any, count: Any, values: Any) -> Any:
        """Play a span, to the end; returns the regret after each of its rounds."""
        self.state, self.regret, path = program(*self.arguments(first, count, values))
        return jax.block_until_ready(path)


def _on_device(job: _Job, block: blocks.Block) -> _Block:
    def put(tree: Any) -> Any:
        return jax.device_put(tree, job.device)

    def seat(sized: _Sized, lanes: slice) -> _Seat:
        player = sized.player
        roles = (draws.REWARD, player.role)
        return _Seat(
            lanes,
            [draws.Key(*(word[lanes] for word in keys[role])) for role in roles],
            programs.of_lanes(player.problem, systems[lanes]),
            environment.model.reward_std[lanes],
            programs.of_lanes(player.state, systems[lanes]),
        )

    systems, numbers, runs = put((block.systems, block.systems + job.first_system, block.runs))
    keys = {role: programs.lane_keys(put(key), numbers, runs) for role, key in job.roles.items()}
    environment = programs.of_lanes(job.environment, systems)
    return _Block(
        keys,
        programs.start(keys[draws.START], environment),
        environment,
        {
            label: [seat(sized, lanes) for lanes in job.parts(label) if lanes.start < block.kept]
            for label, sized in job.players.items()
        },
    )


_compiled: collections.OrderedDict[Any, Any] = collections.OrderedDict()
_compile_lock = threading.Lock()
MOST_COMPILED = 128
"""Programs kept; the one unused for longest goes first."""


def _shape_key(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def _compile(job: _Job) -> tuple[dict[str, Any], float]:
    """The programs, "" being the environment's, and the seconds it took to compile them.

    One call at a time: simulations that start together in threads wait for the first one's
    programs instead of compiling their own.
    """
    with _compile_lock:
        clock = time.perf_counter()
        return _compile_missing(job), time.perf_counter() - clock


def _compile_missing(job: _Job) -> dict[str, Any]:
    """Compile what is not compiled yet, several programs at a time."""
    with programs.numerics(job.dtype):
        block = _on_device(job, next(job.plan.blocks()))
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
    found = {key: _compiled[key] for key in keys.values() if key in _compiled}
    missing = {key: label for label, key in keys.items() if key not in found}

    def build(label: str) -> Any:
        program, arguments = wanted[label]
        with programs.numerics(job.dtype), jax.default_device(job.device):
            return program.lower(*arguments).compile()

    with ThreadPoolExecutor(cores()) as pool:
        found |= zip(missing, pool.map(build, missing.values()), strict=True)
    for key in keys.values():
        _compiled[key] = found[key]
        _compiled.move_to_end(key)
    while len(_compiled) > MOST_COMPILED:
        _compiled.popitem(last=False)
    return {label: found[key] for label, key in keys.items()}


_factorizing = threading.Lock()
"""On the sphere matrices are factorized. JAX spreads that over the very threads that programs run
on, and waits for them there: two programs at a time on two cores wait for ever."""


def _play(
    job: _Job, compiled: dict[str, Any], workers: int, progress: Progress | None
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
            here = _on_device(job, block)
            z = here.z
            for first in spans:
                count = min(plan.span, job.rounds - first)
                now, length = jax.device_put((np.uint32(first), np.int32(count)), job.device)
                z, values = compiled[""](here.keys[draws.PROCESS], z, now, here.environment)
                marked = (job.checkpoints > first) & (job.checkpoints <= first + count)
                rows = job.checkpoints[marked] - 1 - first
                for label, seats in here.seats.items():
                    for seat in seats:
                        if stop.is_set():
                            return
                        path = seat.play(compiled[label], now, length, values)
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
    shared = job.device.platform == "cpu" and not job.game.sphere
    with _factorizing if job.game.sphere else contextlib.nullcontext():
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
