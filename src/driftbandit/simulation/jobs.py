"""A simulation's job: what is played in which shape, and where its arrays lie on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandit.policies import Problem
from driftbandit.simulation import blocks, draws, programs, stacking
from driftbandit.simulation.checks import Pair

__all__ = ["LIMITS", "Job", "Seat", "Seating", "Sized", "plan", "resident", "seated", "sized"]

LIMITS = {"cpu": blocks.Limits(64, 256e6), "gpu": blocks.Limits(16_384, 8e9)}
"""On a CPU what stays in cache, on a GPU what keeps it busy."""
SHARE = 8
"""A policy's own numbers take at most one part in so many of the memory: many play together."""


class Job(NamedTuple):
    """All that a simulation needs besides its compiled programs."""

    plan: blocks.Plan
    environment: programs.Environment
    players: dict[str, Sized]
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


class Sized(NamedTuple):
    """A player on the device, what it is told of the systems, and how many lanes of it fit."""

    player: stacking.Player
    known: Any
    """Models and arms, with a leading systems axis; the same object for all who are told so."""
    lanes: int


def limits_of(device: Any) -> blocks.Limits:
    return LIMITS["cpu" if device.platform == "cpu" else "gpu"]


def resident(tree: Any, dtype: np.dtype, device: Any) -> Any:
    """The arrays on the device, in the precision of the study, for all of its blocks."""

    def cast(leaf: np.ndarray) -> np.ndarray:
        return leaf.astype(dtype) if leaf.dtype.kind == "f" else leaf

    with programs.numerics(dtype):
        return jax.device_put(jax.tree.map(cast, tree), device)


def sized(player: stacking.Player, known: Any, dtype: np.dtype, device: Any) -> Sized:
    """Put a player onto the device, and count how many lanes of it fit into its share."""
    held = sum(leaf[0].size for leaf in jax.tree.leaves((player.constants, player.state)))
    there = player._replace(
        constants=resident(player.constants, dtype, device),
        state=resident(player.state, dtype, device),
    )
    limits = limits_of(device)
    share = limits._replace(memory=limits.memory / SHARE)
    return Sized(there, known, blocks.lanes(share, 3 * held + player.scratch_size))


def plan(systems: list[Pair], runs: int, rounds: int, device: Any) -> blocks.Plan:
    """The shape of blocks on this device."""
    arms, states = systems[0][1].shape
    return blocks.plan(
        len(systems),
        runs,
        rounds,
        per_round=4 * arms + 2 * states,
        at_rest=6 * states * states + 4 * arms * states,
        limits=limits_of(device),
    )


class Seating(NamedTuple):
    """The arrays of one block on its device."""

    keys: dict[str, draws.Key]
    z: Any
    environment: programs.Environment
    seats: dict[str, list[Seat]]


class Seat:
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


def seated(job: Job, block: blocks.Block) -> Seating:
    """All policies at the start of a block."""

    def put(tree: Any) -> Any:
        return jax.device_put(tree, job.device)

    told: dict[Any, Any] = {}

    def known(sized: Sized, lanes: slice) -> Any:
        """What a policy is told, gathered once for all who are told the same."""
        key = id(sized.known), lanes.start, lanes.stop
        if key not in told:
            told[key] = programs.of_lanes(sized.known, systems[lanes])
        return told[key]

    def seat(sized: Sized, lanes: slice) -> Seat:
        player = sized.player
        roles = (draws.REWARD, player.role)
        model, arms = known(sized, lanes)
        return Seat(
            lanes,
            [draws.Key(*(word[lanes] for word in keys[role])) for role in roles],
            Problem(model, arms, programs.of_lanes(player.constants, systems[lanes])),
            environment.model.reward_std[lanes],
            programs.of_lanes(player.state, systems[lanes]),
        )

    systems, numbers, runs = put((block.systems, block.systems + job.first_system, block.runs))
    keys = {role: programs.lane_keys(put(key), numbers, runs) for role, key in job.roles.items()}
    environment = programs.of_lanes(job.environment, systems)
    return Seating(
        keys,
        programs.start(keys[draws.START], environment),
        environment,
        {
            label: [seat(sized, lanes) for lanes in job.parts(label) if lanes.start < block.kept]
            for label, sized in job.players.items()
        },
    )
