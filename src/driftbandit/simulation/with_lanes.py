"""Play a job with programs that `lanes` compiles: vector lanes are runs, on a CPU.

Three kinds of program: where the state starts, how it moves, and one policy's rounds. Runs are
played in pieces of a few vectors, span by span of rounds, so that what one program writes is still
in cache when the next one reads it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from driftbandit.arrays import Array
from driftbandit.lanes import Unsupported
from driftbandit.policies import Problem
from driftbandit.simulation import draws, jobs, programs
from driftbandit.simulation.jobs import Job
from driftbandit.simulation.work import Progress, Work

if TYPE_CHECKING:
    from driftbandit.lanes.program import Program

START, MOVE = "", " "  # the environment's parts; policies go by their labels
SPAN = 64  # rounds per call
MOST_VECTORS = 32  # of a piece
MEMORY = 64e6  # bytes of a piece


class Part(NamedTuple):
    """One program, and the arrays it starts from; all but the keys have a systems axis."""

    rule: Any  # equal rules share one program
    step: Callable[..., Any]
    roles: tuple[str, ...]  # of its random streams
    system: Any
    state: Any

    def of_one(self) -> tuple[Any, Any]:
        """What the step takes for one run, besides the stream."""
        keys = tuple(draws.Key(np.uint32(0), np.uint32(0)) for _ in self.roles)
        system, state = jax.tree.map(lambda leaf: np.asarray(leaf)[0], (self.system, self.state))
        return (keys, system), state


def _start(own: Any, z: Array, round_: Array, stream: Any) -> Any:
    (key,), environment = own
    return programs.start(key, environment), ()


def _move(own: Any, z: Array, round_: Array, stream: Any) -> Any:
    (key,), environment = own
    return programs.move(key, environment, z, round_), environment.arms @ z


def _policy(rule: programs.Rule, game: programs.Game) -> Callable[..., Any]:
    play = programs.policy_round(rule, game)

    def step(own: Any, now: Any, round_: Array, values: Array) -> Any:
        keys, system = own
        state, lost = play(programs.Lanes(*keys, *system), now[0], round_, values)
        return (state, now[1] + lost), now[1] + lost

    return step


def parts(job: Job) -> dict[str, Part]:
    """What is played: the environment, and every policy."""
    z, reward_std = job.environment.start_mean, job.environment.model.reward_std
    found = {
        START: Part(_start, _start, (draws.START,), job.environment, z),
        MOVE: Part(_move, _move, (draws.PROCESS,), job.environment, z),
    }
    for label, player in job.players.items():
        rule = player.rule, job.game
        roles = draws.REWARD, player.role
        model, arms = player.known
        system = Problem(model, arms, player.constants), reward_std
        state = player.state, np.zeros_like(reward_std)
        found[label] = Part(rule, _policy(*rule), roles, system, state)
    return found


_kept: dict[Any, Program | Unsupported] = {}  # of this process; or why there is none
_compiling = threading.Lock()


def compiled(job: Job) -> tuple[dict[str, Program], dict[str, str]]:
    """The programs of a job, and for policies that cannot be compiled the reason."""
    try:
        from driftbandit.lanes import program
    except ImportError:
        return {}, dict.fromkeys(job.players, "llvmlite is not installed (extra: fast)")
    if job.device.platform != "cpu":
        return {}, dict.fromkeys(job.players, f"the device is {job.device}")
    values = np.zeros(job.environment.arms.shape[1], job.dtype)

    def found(label: str, part: Part) -> Program | Unsupported:
        arguments = *part.of_one(), () if label in (START, MOVE) else values
        key = part.rule, jobs.shapes(arguments)
        if key not in _kept:
            try:
                with programs.numerics(job.dtype):
                    _kept[key] = program.compiled(part.step, *arguments)
            except Unsupported as problem:
                _kept[key] = problem
        return _kept[key]

    with _compiling:
        ready = {label: found(label, part) for label, part in parts(job).items()}
    refused = {label: str(p) for label, p in ready.items() if isinstance(p, Unsupported)}
    return {n: p for n, p in ready.items() if not isinstance(p, Unsupported)}, refused


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
    every = parts(job)
    size = lanes * _vectors(every, total, lanes, workers)
    pieces = [(first, min(size, total - first)) for first in range(0, total, size)]
    spans = range(0, job.rounds, SPAN)
    work = Work(job, len(pieces) * len(spans) * len(job.players), progress)
    role_keys = {role: [np.asarray(w)[None] for w in key] for role, key in job.roles.items()}

    def seated(first: int, kept: int) -> dict[str, Seat]:
        """The parts at the start of a piece; spare lanes repeat the last run."""
        runs = np.minimum(first + np.arange(-(-kept // lanes) * lanes), total - 1)
        systems, numbers = runs // job.plan.runs, runs % job.plan.runs
        words = (systems + job.first_system).astype(np.uint32), numbers.astype(np.uint32)
        keys = {
            role: [in_lanes(word, lanes) for word in draws.threefry(draws.Key(*key), *words)]
            for role, key in role_keys.items()
        }
        laid: dict[int, np.ndarray] = {}

        def lay(leaf: Any) -> np.ndarray:
            if id(leaf) not in laid:  # parts share most arrays
                laid[id(leaf)] = in_lanes(np.asarray(leaf)[systems], lanes)
            return laid[id(leaf)]

        return {
            label: Seat(
                [word for role in part.roles for word in keys[role]]
                + [lay(leaf) for leaf in jax.tree.leaves(part.system)],
                [
                    in_lanes(np.asarray(leaf)[systems], lanes)
                    for leaf in jax.tree.leaves(part.state)
                ],
            )
            for label, part in every.items()
        }

    def one(first: int, kept: int) -> None:
        seats = seated(first, kept)
        blocks = -(-kept // lanes)
        scratch = {label: program.scratch() for label, program in ready.items()}
        z = seats[START].state
        ready[START].play(1, 0, seats[START].own, z, scratch=scratch[START])
        for begin in spans:
            count = min(SPAN, job.rounds - begin)
            shape = blocks, count, job.environment.arms.shape[1], lanes
            values, path = aligned(shape, job.dtype), aligned((*shape[:2], lanes), job.dtype)
            ready[MOVE].play(count, begin, seats[MOVE].own, z, [values], scratch=scratch[MOVE])
            inside, rows = work.marked(begin, count)
            for label in job.players:
                if work.stopped:
                    return
                seat = seats[label]
                arrays = seat.own, seat.state, [values], [path]
                ready[label].play(count, begin, *arrays, scratch=scratch[label])
                if rows.size:
                    regret = np.moveaxis(path[:, rows], 1, 0).reshape(rows.size, -1)
                    work.keep(label, first, inside, regret[:, :kept])
                work.step_done()

    return work.run(one, pieces, workers)


def _vectors(every: dict[str, Part], total: int, lanes: int, workers: int) -> int:
    """How many vectors of runs a piece has: few enough for the memory, and for all workers."""
    leaves = jax.tree.leaves([(part.system, part.state) for part in every.values()])
    size = 8 * sum(math.prod(leaf.shape[1:]) for leaf in leaves) * lanes
    share = -(-total // (2 * workers * lanes))
    return max(1, min(MOST_VECTORS, share, int(MEMORY / size)))
