"""`simulate`: stacks systems and policies, and has one of the engines play them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit import policies as registry
from driftbandit.machine import cores
from driftbandit.model import LGDS
from driftbandit.policies import Policy
from driftbandit.result import ENGINES, Result, Timing
from driftbandit.simulation import (
    blame,
    checks,
    draws,
    jobs,
    programs,
    with_kernels,
    with_lanes,
    with_xla,
)
from driftbandit.simulation.checks import Options
from driftbandit.simulation.features import checked_features, rows_of_rounds
from driftbandit.simulation.jobs import Job, Pair
from driftbandit.simulation.work import Progress
from driftbandit.system import System


def simulate(
    model: LGDS | System | Sequence[Pair | System],
    arms: Any = None,
    policies: Iterable[str | Policy] | None = None,
    rounds: int = 1000,
    runs: int = 10,
    seed: int = 0,
    *,
    contexts: Any = None,
    assumed: Sequence[Pair | System] | None = None,
    device: str | None = None,
    dtype: Any = np.float64,
    engine: str = "auto",
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
            None: those of `policies.available` that can play these arms.
        rounds: n, rounds per run.
        runs: independent runs per system.
        seed: whole number ≥ 0; the same seed gives the same numbers.
        contexts: the features of every round, if the systems have contexts: rounds × J, the same
            for all arms; or rounds × k × J. Every policy knows those of a round before it chooses.
        assumed: one (LGDS, arms) per system: what the policies assume, if that differs from the
            truth. Policies with full information know the truth.
        device: "cpu" or "gpu"; None: what JAX prefers.
        dtype: float64 or float32.
        engine: "lanes", which compiles rounds so that vector lanes are runs, and is several times
            faster; "xla"; or "auto": lanes where it can, XLA elsewhere, as with contexts.
            ``result.timing.engine`` says which played.
        options: what studies need: definition of regret, random streams, warm-up, curves, threads.
        progress: called with the share of the work done, 0 to 1, from a worker's thread, one call
            at a time.

    Returns:
        `Result`: ``result.regret["idea"]`` has shape (runs,), or (systems, runs) for a sequence.

    Example:
        >>> from driftbandit import families
        >>> model, arms = families.sample("gaussian", n_states=2, n_arms=3)[0]
        >>> result = simulate(model, arms, policies=["idea", "random"], rounds=50, runs=8)
        >>> result.best(), result.regret["idea"].shape
        ('idea', (8,))
    """
    options = checks.checked_options(options)
    systems, actions, read_outs = checks.checked_systems(model, arms, options.warmup)
    learned, assumed_outs = checks.checked_assumed(
        assumed, systems, options.warmup, actions, read_outs
    )
    n_arms = len(systems[0][1])
    chosen = registry.chosen(policies, actions, n_arms, contexts=read_outs is not None)
    actions.check_regret(options.regret)
    errors.closest(engine, "engine", ENGINES)
    rounds = errors.whole_number(rounds, "rounds", low=1, high=2**32 - 1)
    runs = errors.whole_number(runs, "runs", low=1, high=2**32 - 1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    if progress is not None and not callable(progress):
        raise errors.InvalidInput("progress", f"is {progress!r}", "give a function of one number")
    dtype = checks.checked_dtype(dtype)
    target = checks.checked_device(device)
    features = checked_features(contexts, read_outs, rounds, n_arms)
    true_rows = rows_of_rounds(systems, read_outs, features)
    checks.check_range(true_rows, rounds, dtype)
    assumed_rows = true_rows
    if assumed is not None:
        assumed_rows = rows_of_rounds(learned, assumed_outs, features)
        checks.check_range(assumed_rows, rounds, dtype, "assumed")

    clock = time.perf_counter()
    true_outs = read_outs and jobs.in_precision(read_outs.matrices, dtype)
    truth = true_rows, jobs.in_precision(jobs.known(systems), dtype), true_outs
    belief = truth
    if assumed is not None:
        their_outs = assumed_outs and jobs.in_precision(assumed_outs.matrices, dtype)
        belief = assumed_rows, jobs.in_precision(jobs.known(learned), dtype), their_outs
    players = {}
    for label, policy in chosen.items():
        rows, known, outs = truth if policy.full_information else belief
        player = jobs.prepared(policy, rows, rounds, actions)
        players[label] = jobs.sized(player, known, dtype, target, outs)
    roles = {draws.START, draws.PROCESS, draws.REWARD, *(p.role for p in players.values())}
    job = Job(
        jobs.plan_for(systems, runs, rounds, target, len(read_outs.names) if read_outs else 0),
        jobs.in_precision(jobs.environment(systems, true_outs), dtype),
        players,
        jobs.checkpoints(rounds, options.checkpoints),
        rounds,
        {role: draws.role_key(seed, options.stream, role) for role in roles},
        programs.Game(options.regret, options.common_noise, actions, target.platform != "cpu"),
        options.first_system,
        dtype,
        target,
        features,
    )
    prepare_time = time.perf_counter() - clock
    curves, timing = _played(job, engine, options.workers or cores(), progress)
    timing = timing._replace(prepare=prepare_time)

    for label, curve in curves.items():
        blame.check_regret(label, curve, job.checkpoints, n_arms, dtype)
    if isinstance(model, LGDS | System):
        curves = {label: curve[0] for label, curve in curves.items()}
    totals = {label: curve[..., -1] for label, curve in curves.items()}
    return Result(totals, curves, job.checkpoints, rounds, seed, timing)


def _played(
    job: Job, engine: str, workers: int, progress: Progress | None
) -> tuple[dict[str, np.ndarray], Timing]:
    """Every policy's curves, played by the engine that was asked for or is faster."""
    clock = time.perf_counter()
    lanes: Any = with_lanes if job.device.platform == "cpu" else with_kernels
    ready, refused = {}, dict.fromkeys(job.players, "it does not read contexts")
    if engine != "xla" and job.features is None:
        ready, refused = lanes.compiled(job)
    if engine == "lanes" and refused:
        label, reason = next(iter(refused.items()))
        raise errors.InvalidInput("engine", f"cannot play {label!r}: {reason}", 'give "auto"')
    ours = job._replace(players={n: p for n, p in job.players.items() if n not in refused})
    others = job._replace(players={n: p for n, p in job.players.items() if n in refused})
    others = jobs.resident(others) if others.players else others
    compiled = with_xla.compiled(others) if others.players else {}
    compile_time, clock = time.perf_counter() - clock, time.perf_counter()
    share = len(ours.players) / len(job.players)

    def partly(start: float, part: float) -> Progress | None:
        return progress and (lambda done: progress(start + part * done))

    curves: dict[str, np.ndarray] = {}
    if ours.players:
        curves |= lanes.play(ours, ready, workers, partly(0, share))
    if others.players:
        curves |= with_xla.play(others, compiled, workers, partly(share, 1 - share))
    played = ["lanes"] * bool(ours.players) + ["xla"] * bool(others.players)
    name = f"lanes, xla for {', '.join(refused)}" if len(played) > 1 else played[0]
    timing = Timing(0, compile_time, time.perf_counter() - clock, str(job.device), name)
    return {label: curves[label] for label in job.players}, timing
