"""`simulate`: checks what came in, stacks it, compiles once, plays blocks in parallel."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS, checked_arms, factor
from driftbandit.policies import Policy, Problem, available, make
from driftbandit.simulation import blocks, draws, programs
from driftbandit.simulation.result import Result, Timing

__all__ = ["simulate"]

System = tuple[LGDS, np.ndarray]
Progress = Callable[[float], None]

RUNS_IN_FLIGHT = {"cpu": 512, "gpu": 65_536}
"""Most runs per block: on a CPU what stays in cache, on a GPU what keeps it busy."""
SMALLEST_SHARE = {"cpu": 128, "gpu": 65_536}
"""A small study is cut into eight blocks of at least this many runs, for the cores to share. The
cut depends on the study alone, not on the number of workers, and so do the last bits of results."""
BYTES_IN_FLIGHT = {"cpu": 256e6, "gpu": 8e9}
"""Memory per block."""


def simulate(
    model: LGDS | Sequence[System],
    arms: Any = None,
    policies: Iterable[str | Policy] | None = None,
    rounds: int = 1000,
    runs: int = 10,
    seed: int = 0,
    *,
    warmup: int = 0,
    stream: str = "",
    first_system: int = 0,
    device: str | None = None,
    dtype: Any = np.float64,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Play policies on drifting systems and measure their dynamic regret (P4).

    All policies meet the same state paths and the same noise on the same arm, so comparisons are
    paired. Memory is bounded by blocks, whatever the size of the study.

    Args:
        model: one LGDS (with ``arms``), or a sequence of (LGDS, arms), as `families.sample` gives.
        arms: k × d, with a single LGDS.
        policies: names such as "idea" or "kalman_ucb(width=2)", or `Policy` objects of your own;
            None: every registered one.
        rounds: n, rounds per run.
        runs: independent runs per system.
        seed: whole number ≥ 0; the same seed gives the same numbers.
        warmup: rounds the state moves before the first one is played; matters only with an
            ``initial_cov``, since a state without one starts stationary.
        stream: a name that sets this study's random numbers apart from others with its seed.
        first_system: number of the first system, for a study that is played in pieces.
        device: "cpu" or "gpu"; None: what JAX prefers.
        dtype: float64, or float32 by choice.
        workers: blocks played at once on a CPU; None: one per core.
        progress: called with the share of the work done, between 0 and 1.

    Returns:
        `Result`; ``result.regret["idea"]`` has shape (runs,), or (systems, runs) for a sequence.

    Example:
        >>> from driftbandit import families
        >>> model, arms = families.sample("gaussian", states=2, arms=3)[0]
        >>> result = simulate(model, arms, policies=["idea", "random"], rounds=50, runs=8)
        >>> bool(result.regret["idea"].mean() < result.regret["random"].mean())
        True
    """
    systems = _checked_systems(model, arms, warmup)
    chosen = _labelled(_checked_policies(policies))
    rounds = errors.whole_number(rounds, "rounds", low=1)
    runs = errors.whole_number(runs, "runs", low=1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    first_system = errors.whole_number(first_system, "first_system", low=0)
    if not isinstance(stream, str):
        raise errors.InvalidInput("stream", f"is {stream!r}", "give a text")
    if progress is not None and not callable(progress):
        raise errors.InvalidInput("progress", f"is {progress!r}", "give a function of one number")
    if workers is not None:
        workers = errors.whole_number(workers, "workers", low=1)
    dtype = _checked_dtype(dtype)
    target = _device(device)
    for index, (lgds, _) in enumerate(systems):
        _check_horizon(lgds, rounds, index)

    states, k = systems[0][0].states, len(systems[0][1])
    plan = blocks.plan(
        len(systems),
        runs,
        rounds,
        states,
        k,
        most=_most_runs(len(systems) * runs, target.platform),
        memory=BYTES_IN_FLIGHT[target.platform],
    )
    clock = time.perf_counter()
    players = {label: _prepared(policy, systems, rounds) for label, policy in chosen.items()}
    job = _Job(
        plan,
        _environment(systems),
        players,
        blocks.checkpoints(rounds),
        rounds,
        {role: draws.role_key(seed, stream, role) for role in _roles(players)},
        first_system,
        np.dtype(dtype),
        target,
    )
    prepare_time, clock = time.perf_counter() - clock, time.perf_counter()
    compiled = _compile(job)
    compile_time, clock = time.perf_counter() - clock, time.perf_counter()
    curves = _play(job, compiled, workers, progress)
    timing = Timing(prepare_time, compile_time, time.perf_counter() - clock, str(target))

    if isinstance(model, LGDS):
        curves = {label: curve[0] for label, curve in curves.items()}
    regret = {label: curve[..., -1] for label, curve in curves.items()}
    return Result(regret, curves, job.checkpoints, rounds, seed, timing)


# Checking what came in.


def _checked_systems(model: Any, arms: Any, warmup: int) -> list[System]:
    warmup = errors.whole_number(warmup, "warmup", low=0)
    if isinstance(model, LGDS):
        if arms is None:
            raise errors.InvalidInput("arms", "is missing", "give a k × d array of arms")
        pairs = [(model, arms)]
    else:
        if arms is not None:
            raise errors.InvalidInput(
                "arms", "was given beside a sequence of systems", "put arms into the pairs"
            )
        try:
            pairs = list(model)
        except TypeError:
            raise errors.InvalidInput(
                "model",
                f"has type {type(model).__name__}",
                "give an LGDS or a sequence of (LGDS, arms)",
            ) from None
        if not pairs:
            raise errors.InvalidInput("model", "is an empty sequence", "give at least one system")
    systems: list[System] = []
    for index, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], LGDS):
            raise errors.InvalidInput(
                f"model[{index}]", f"has type {type(pair).__name__}", "give pairs of (LGDS, arms)"
            )
        lgds, rows = pair
        rows = checked_arms(rows, lgds, "arms" if len(pairs) == 1 else f"arms of system {index}")
        if systems and rows.shape != systems[0][1].shape:
            raise errors.InvalidInput(
                f"arms of system {index}",
                f"have shape {rows.shape}, those of system 0 {systems[0][1].shape}",
                "simulate systems of one shape together",
            )
        if warmup and lgds.initial_cov is not None:
            # Letting N(0, Σ0) move for w rounds gives N(0, Z(w)) exactly: no need to play it.
            moved = lgds.state_cov(warmup)
            if not np.abs(moved).max() < errors.LARGEST:
                raise errors.InvalidInput(
                    "warmup", f"is {warmup}, by when the state outgrows any number", "wait less"
                )
            lgds = dataclasses.replace(lgds, initial_cov=moved)
        lgds.start_cov()
        systems.append((lgds, rows))
    return systems


def _checked_policies(policies: Any) -> list[Policy]:
    if policies is None:
        policies = available()
    if isinstance(policies, str | Policy):
        policies = [policies]
    if not isinstance(policies, Iterable):
        raise errors.InvalidInput("policies", f"is {policies!r}", "give a list of names")
    return [make(policy) for policy in policies]


def _labelled(policies: list[Policy]) -> dict[str, Policy]:
    """Names as labels; with parameters where a name stands twice."""
    if not policies:
        raise errors.InvalidInput("policies", "is empty", "name at least one policy")
    names = [policy.name for policy in policies]
    labels: dict[str, Policy] = {}
    for policy in policies:
        label = policy.name
        if names.count(label) > 1:
            given = [f"{k}={v:g}" for k, v in policy.parameters.items() if v is not None]
            label = f"{label}({', '.join(given)})" if given else label
        if label in labels:
            raise errors.InvalidInput("policies", f"{label!r} stands twice", "name each once")
        labels[label] = policy
    return labels


def _checked_dtype(dtype: Any) -> Any:
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise errors.InvalidInput("dtype", f"is {dtype!r}", "give float64 or float32")
    return kind


def _device(name: str | None) -> Any:
    if name is None:
        return jax.devices()[0]
    name = errors.closest(name, "device", RUNS_IN_FLIGHT)
    try:
        return jax.devices(name)[0]
    except RuntimeError:
        raise errors.InvalidInput(
            "device", f"JAX finds no {name!r} here", "use cpu, or install driftbandit[gpu]"
        ) from None


def _check_horizon(model: LGDS, rounds: int, index: int) -> None:
    if model.is_stable:
        return
    if not np.abs(model.state_cov(rounds)).max() < errors.LARGEST:
        raise errors.InvalidInput(
            "rounds",
            f"is {rounds}, by when the state of system {index} (spectral radius "
            f"{model.spectral_radius:g}) exceeds what a number can hold",
            "play fewer rounds",
        )


def _most_runs(total: int, platform: str) -> int:
    return min(RUNS_IN_FLIGHT[platform], max(SMALLEST_SHARE[platform], -(-total // 8)))


# Turning systems and policies into stacked arrays.


class _Player(NamedTuple):
    role: str
    """Name of the policy's random stream."""
    rule: programs.Rule
    problem: Problem
    """Leaves with a leading systems axis."""
    state: Any
    """Leaves with a leading systems axis."""


class _Job(NamedTuple):
    plan: blocks.Plan
    environment: programs.Environment
    players: dict[str, _Player]
    checkpoints: np.ndarray
    rounds: int
    roles: dict[str, draws.Key]
    first_system: int
    dtype: Any
    device: Any

    def marks(self, first: int) -> np.ndarray:
        """Checkpoints × span: whether each round of the span that starts at ``first`` counts."""
        rounds = first + np.arange(self.plan.span)
        return (rounds < self.checkpoints[:, None]).astype(self.dtype)


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def _environment(systems: list[System]) -> programs.Environment:
    return _stack(
        [
            programs.Environment(lgds, arms, factor(lgds.process_cov), factor(lgds.start_cov()))
            for lgds, arms in systems
        ]
    )


def _prepared(policy: Policy, systems: list[System], rounds: int) -> _Player:
    prepared = [policy.prepare(lgds, arms, rounds) for lgds, arms in systems]
    problem = [
        Problem(lgds, arms, dict(constants))
        for (lgds, arms), (constants, _) in zip(systems, prepared, strict=True)
    ]
    states = [state for _, state in prepared]
    role = f"policy:{policy.name}"
    return _Player(role, programs.Rule.of(policy), _stack(problem), _stack(states))


def _roles(players: dict[str, _Player]) -> set[str]:
    return {draws.START, draws.PROCESS, draws.REWARD, *(p.role for p in players.values())}


# Compiling and playing.


class _Block(NamedTuple):
    """The arrays of one block on its device."""

    keys: dict[str, draws.Key]
    z: Any
    environment: programs.Environment
    problems: dict[str, Problem]
    states: dict[str, Any]


def _on_device(job: _Job, block: blocks.Block) -> _Block:
    runs = block.runs.size

    def pick(leaf: np.ndarray) -> Any:
        leaf = leaf[block.systems]
        return leaf.astype(job.dtype) if leaf.dtype.kind == "f" else leaf

    def per_run(leaf: np.ndarray) -> Any:
        leaf = pick(leaf)
        return np.broadcast_to(leaf[:, None], (leaf.shape[0], runs, *leaf.shape[1:]))

    def put(tree: Any) -> Any:
        return jax.device_put(tree, job.device)

    numbers = put((block.systems + job.first_system, block.runs))
    keys = {role: programs.run_keys(put(key), *numbers) for role, key in job.roles.items()}
    environment = put(jax.tree.map(pick, job.environment))
    return _Block(
        keys,
        programs.start(keys[draws.START], environment),
        environment,
        {label: put(jax.tree.map(pick, p.problem)) for label, p in job.players.items()},
        {label: put(jax.tree.map(per_run, p.state)) for label, p in job.players.items()},
    )


_compiled: dict[Any, Any] = {}
_compiled_lock = threading.Lock()


def _shape_key(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def _arguments(
    block: _Block, role: str, label: str, first: Any, values: Any, marks: Any
) -> tuple[Any, ...]:
    """What a policy's program takes."""
    return (
        block.keys[draws.REWARD],
        block.keys[role],
        block.states[label],
        first,
        values,
        block.problems[label],
        block.environment.model.reward_std,
        marks,
    )


def _compile(job: _Job) -> dict[str, Any]:
    """Compile what is not compiled yet, several programs at a time; "" is the environment."""
    with programs.numerics(job.dtype):
        block = _on_device(job, next(job.plan.blocks()))
        first = jax.device_put(np.uint32(0), job.device)
        marks = jax.device_put(job.marks(0), job.device)
        program = programs.environment_program(job.plan.span)
        arguments = (block.keys[draws.PROCESS], block.z, first, block.environment)
        _, values = jax.eval_shape(program, *arguments)
    wanted: dict[str, tuple[Any, tuple[Any, ...]]] = {"": (program, arguments)}
    for label, player in job.players.items():
        wanted[label] = (
            programs.policy_program(player.rule, job.plan.span),
            _arguments(block, player.role, label, first, values, marks),
        )

    def build(item: tuple[str, tuple[Any, tuple[Any, ...]]]) -> tuple[str, Any]:
        label, (program, arguments) = item
        key = (program, _shape_key(arguments), job.device)
        with _compiled_lock:
            found = _compiled.get(key)
        if found is None:
            with programs.numerics(job.dtype), jax.default_device(job.device):
                found = program.lower(*arguments).compile()
            with _compiled_lock:
                _compiled[key] = found
        return label, found

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(pool.map(build, wanted.items()))


def _play(
    job: _Job, compiled: dict[str, Any], workers: int | None, progress: Progress | None
) -> dict[str, np.ndarray]:
    plan = job.plan
    shape = (plan.systems, plan.runs, len(job.checkpoints))
    curves = {label: np.empty(shape) for label in job.players}
    all_blocks = list(plan.blocks())
    spans = range(0, job.rounds, plan.span)
    steps = len(all_blocks) * len(spans) * len(job.players)
    done, lock = 0, threading.Lock()

    def step_done() -> None:
        nonlocal done
        with lock:
            done += 1
            if progress is not None:
                progress(done / steps)

    def play(block: blocks.Block) -> None:
        with programs.numerics(job.dtype):
            here = _on_device(job, block)
            z = here.z
            totals: dict[str, Any] = dict.fromkeys(job.players, 0.0)
            for first in spans:
                now = jax.device_put(np.uint32(first), job.device)
                marks = jax.device_put(job.marks(first), job.device)
                z, values = compiled[""](here.keys[draws.PROCESS], z, now, here.environment)
                for label, player in job.players.items():
                    here.states[label], regret = compiled[label](
                        *_arguments(here, player.role, label, now, values, marks)
                    )
                    totals[label] = totals[label] + regret
                    if job.device.platform == "cpu":
                        jax.block_until_ready(regret)
                    step_done()
            s, r = block.kept
            for label, total in totals.items():
                part = np.moveaxis(np.asarray(total), 0, -1)[:s, :r]
                where = np.s_[block.systems[0] : block.systems[0] + s, block.runs[0] :][:2]
                curves[label][where][:, :r] = part

    if job.device.platform != "cpu":
        workers = 1  # a GPU is kept busy by one stream of work
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for _ in pool.map(play, all_blocks):
            pass
    return curves
