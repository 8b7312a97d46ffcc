"""A simulation's job: how it is cut into blocks, and its systems and policies as stacked arrays.

A block has lanes, each of which plays one run, span by span of rounds. Compilers round differently
for different shapes, and a run's numbers must not depend on how many others are played. So every
block of a program has the same number of lanes in every study: it depends on the device, the
system's shape and, for a policy with a long memory, on the policy. Spare lanes repeat the last run,
and their results are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandit import errors
from driftbandit.actions import FINITE, ActionSet
from driftbandit.model import LGDS, factor, start_moments
from driftbandit.policies import Policy, Problem
from driftbandit.policies.base import checked_prepared, kind_of
from driftbandit.simulation import draws, programs

Pair = tuple[LGDS, np.ndarray]  # a model and its arms
SPAN = 128  # rounds per compiled call: long enough to hide the call, short enough to stay in cache
LEAST_LANES = 2  # a single lane would be compiled to other products
SHARE = 8  # each policy's own numbers take at most 1/SHARE of the memory, since many play together


class Limits(NamedTuple):
    """How much is played at once on a device."""

    lanes: int  # runs per block, a power of two
    memory: float  # bytes per block


LIMITS = {"cpu": Limits(64, 256e6), "gpu": Limits(16_384, 8e9)}
"""On a CPU what stays in cache, on a GPU what keeps it busy."""


class Block(NamedTuple):
    """System and run of each lane; the first ``kept`` lanes are real, the rest are spare."""

    systems: np.ndarray
    runs: np.ndarray
    kept: int


class Plan(NamedTuple):
    """The shape of all blocks, so that one compiled program serves them all."""

    systems: int
    runs: int
    lanes: int
    span: int

    def blocks(self) -> Iterator[Block]:
        """Every block, in order: systems one after the other, each with all of its runs."""
        total = self.systems * self.runs
        for first in range(0, total, self.lanes):
            pairs = np.minimum(np.arange(first, first + self.lanes), total - 1)
            kept = min(self.lanes, total - first)
            yield Block(pairs // self.runs, pairs % self.runs, kept)


def most_lanes(limits: Limits, at_rest: int) -> int:
    """The most lanes, a power of two, for which ``at_rest`` numbers each fit into the memory."""
    count = limits.lanes
    while count > LEAST_LANES and 8 * count * at_rest > limits.memory:
        count //= 2
    return count


def plan(
    systems: int, runs: int, rounds: int, *, per_round: int, at_rest: int, limits: Limits
) -> Plan:
    """Fewer lanes (down to eight), then shorter spans, until a block fits into the memory.

    A lane holds ``per_round`` numbers for every round of a span, and ``at_rest`` others.
    """
    span = min(SPAN, 1 << (rounds - 1).bit_length())  # few sizes, so that studies share programs
    count = most_lanes(limits, at_rest)

    def too_much() -> bool:
        return 8 * count * (span * per_round + at_rest) > limits.memory

    while too_much() and count > 8:
        count //= 2
    while too_much() and span > 1:
        span //= 2
    while too_much() and count > LEAST_LANES:
        count //= 2
    return Plan(systems, runs, count, span)


def checkpoints(rounds: int, count: int = 40) -> np.ndarray:
    """About ``count`` log-spaced round numbers up to ``rounds``, which is the last, each once."""
    if count == 1:
        return np.array([rounds])
    return np.unique(np.geomspace(1, rounds, count).round().astype(int))


class Player(NamedTuple):
    """A policy, prepared for every system; leaves have a leading systems axis."""

    role: str  # name of the policy's random stream
    rule: programs.Rule
    constants: Any
    state: Any
    scratch_size: int  # numbers that a run holds while it chooses
    known: Any = None  # models and arms as it knows them; one object if players know the same
    contexts: Any = None  # the B_j as it knows them, systems × J × k × d
    lanes: int = 0  # how many of its runs fit into the memory at once


class Job(NamedTuple):
    """All that a simulation needs besides its compiled programs."""

    plan: Plan
    environment: programs.Environment
    players: dict[str, Player]
    checkpoints: np.ndarray
    rounds: int
    roles: dict[str, draws.Key]
    game: programs.Game
    first_system: int
    dtype: Any
    device: Any
    features: np.ndarray | None = None  # contexts x, rounds × k × J; None: there are none

    def features_from(self, first: int) -> np.ndarray | None:
        """The contexts of a span that begins with round ``first``; spare rounds repeat the last."""
        if self.features is None:
            return None
        rounds = np.minimum(first + np.arange(self.plan.span), self.rounds - 1)
        return self.features[rounds].astype(self.dtype)

    def parts(self, label: str) -> list[slice]:
        """The lanes of a block that a policy plays at a time: all, unless its memory is long."""
        size = min(self.plan.lanes, self.players[label].lanes)
        return [slice(begin, begin + size) for begin in range(0, self.plan.lanes, size)]


def shapes(tree: Any) -> Any:
    """Structure, shapes and types of a tree: equal if one program serves both."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def environment(systems: list[Pair], contexts: Any = None) -> programs.Environment:
    """The true systems, with their B_j if they have contexts."""
    models, arms = known(systems)
    means, covs = start_moments([lgds for lgds, _ in systems])
    factors = factor(models.process_cov), factor(covs)
    return programs.Environment(models, arms, *factors, means, contexts)


def known(systems: list[Pair]) -> Any:
    """What policies know of the systems: models and arms."""
    models = [lgds for lgds, _ in systems]
    fields = (np.stack([getattr(lgds, name) for lgds in models]) for name in programs.LEAVES)
    return programs.model_of(fields), np.stack([arms for _, arms in systems])


def prepared(
    policy: Policy, systems: list[Pair], rounds: int, actions: ActionSet = FINITE
) -> Player:
    """The policy as it starts on every system."""
    if policy.batch.prepare_stack is not None:
        constants, state = policy.batch.prepare_stack(systems, rounds)
    else:
        each = [checked_prepared(policy, lgds, arms, rounds) for lgds, arms in systems]
        first: Any = each[0][0]
        if not isinstance(first, Mapping):
            problem = f"returns constants that are {kind_of(first)}"
            raise errors.InvalidInput(f"policy {policy.name!r} prepare", problem, "give a dict")
        constants = _stack([dict(constants) for constants, _ in each])
        state = _stack([state for _, state in each])
    k, d = systems[0][1].shape[0], systems[0][1].shape[-1]
    return Player(
        f"policy:{policy.name}",
        programs.Rule.of(policy, actions),
        constants,
        state,
        actions.scratch_size(policy, d, k),
    )


def _limits_of(device: Any) -> Limits:
    return LIMITS["cpu" if device.platform == "cpu" else "gpu"]


def in_precision(tree: Any, dtype: np.dtype) -> Any:
    """The arrays in the precision of the study; whole numbers have the width of the real ones."""

    def converted(leaf: Any) -> Any:
        if leaf.dtype.kind in "iu" and leaf.dtype.itemsize > dtype.itemsize:  # as JAX does
            return leaf.astype(f"{leaf.dtype.kind}{dtype.itemsize}")
        return leaf.astype(dtype) if leaf.dtype.kind == "f" else leaf

    return jax.tree.map(converted, tree)


def sized(player: Player, known: Any, dtype: np.dtype, device: Any, contexts: Any = None) -> Player:
    """The player in its precision, with the number of its lanes that fit into the memory."""
    held = sum(leaf[0].size for leaf in jax.tree.leaves((player.constants, player.state)))
    limits = _limits_of(device)
    share = limits._replace(memory=limits.memory / SHARE)
    return player._replace(
        constants=in_precision(player.constants, dtype),
        state=in_precision(player.state, dtype),
        known=known,
        contexts=contexts,
        lanes=most_lanes(share, 3 * held + player.scratch_size),
    )


def resident(job: Job) -> Job:
    """The job with its arrays on the device, for all of its blocks."""
    if job.device.platform == "cpu":  # programs read NumPy's arrays as they are
        return job
    moved: dict[int, Any] = {}

    def put(tree: Any) -> Any:
        if id(tree) not in moved:  # what players share stays one object
            moved[id(tree)] = jax.device_put(tree, job.device)
        return moved[id(tree)]

    with programs.numerics(job.dtype):
        fields = ("constants", "state", "known", "contexts")
        players = {
            label: p._replace(**{field: put(getattr(p, field)) for field in fields})
            for label, p in job.players.items()
        }
        return job._replace(environment=put(job.environment), players=players)


def plan_for(systems: list[Pair], runs: int, rounds: int, device: Any, n_features: int = 0) -> Plan:
    """The shape of blocks on this device."""
    k, d = systems[0][1].shape
    sizes = {"per_round": 4 * k + 2 * d, "at_rest": 6 * d * d + (4 + 2 * n_features) * k * d}
    return plan(len(systems), runs, rounds, **sizes, limits=_limits_of(device))


class Seating(NamedTuple):
    """The arrays of one block on its device."""

    keys: dict[str, draws.Key]
    z: Any
    environment: programs.Environment
    seats: dict[str, list[Seat]]


class Seat:
    """A policy on some of a block's lanes, and its current state there."""

    def __init__(self, lanes: slice, inputs: programs.Lanes, state: Any) -> None:
        self.lanes, self.inputs, self.state = lanes, inputs, state
        self.regret = inputs.noise_std * 0

    def arguments(self, first: Any, count: Any, values: Any, features: Any) -> tuple[Any, ...]:
        """What the policy's program takes."""
        mine = values if values.shape[1] == len(self.regret) else values[:, self.lanes]
        return self.inputs, self.state, self.regret, first, count, mine, features

    def play(self, program: Any, *span: Any) -> Any:
        """Play a span (see `arguments`) to its end; returns the regret after each of its rounds."""
        self.state, self.regret, path = program(*self.arguments(*span))
        return jax.block_until_ready(path)


def seated(job: Job, block: Block) -> Seating:
    """All policies at the start of a block."""

    def put(tree: Any) -> Any:
        return jax.device_put(tree, job.device)

    told: dict[Any, Any] = {}

    def seat(player: Player, lanes: slice) -> Seat:
        key = id(player.known), lanes.start, lanes.stop
        if key not in told:  # gathered once for all players that know the same
            told[key] = programs.of_lanes((player.known, player.contexts), systems[lanes])
        (model, arms), contexts = told[key]
        problem = Problem(model, arms, programs.of_lanes(player.constants, systems[lanes]))
        reward_key, policy_key = (
            draws.Key(*(word[lanes] for word in keys[role])) for role in (draws.REWARD, player.role)
        )
        noise_std = environment.model.reward_std[lanes]
        inputs = programs.Lanes(reward_key, policy_key, problem, noise_std, contexts)
        return Seat(lanes, inputs, programs.of_lanes(player.state, systems[lanes]))

    systems, numbers, runs = put((block.systems, block.systems + job.first_system, block.runs))
    keys = {role: programs.lane_keys(put(key), numbers, runs) for role, key in job.roles.items()}
    environment = programs.of_lanes(job.environment, systems)
    seats = {
        label: [seat(player, lanes) for lanes in job.parts(label) if lanes.start < block.kept]
        for label, player in job.players.items()
    }
    z = programs.starts(keys[draws.START], environment)
    return Seating(keys, z, environment, seats)
