"""A job as steps for `lanes`: where the runs start, how their states move, what policies do.

A step is ``step(own, state, round, stream) -> state, results``; ``own`` is (run, shared, system):
numbers of the run, numbers that all runs share, and the arrays of the run's system.

    START    numbers of system and run       →  z(0) and the key of every random stream
    MOVE     key, z(t)                       →  z(t + 1); the arms' values in round t
    policy   keys, state, the arms' values   →  state; the regret so far
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandit.arrays import Array
from driftbandit.lanes import Unsupported
from driftbandit.policies import Problem
from driftbandit.simulation import blame, draws, programs
from driftbandit.simulation.jobs import Job

START, MOVE = "", " "  # the environment's parts; policies go by their labels
NUMBERS = ("system", "run")  # what START knows of a run; the others take keys


class Part(NamedTuple):
    """One step, and the arrays it starts from."""

    rule: Any  # equal rules share one program
    step: Callable[..., Any]
    run: tuple[str, ...]  # the random streams whose keys it takes, or `NUMBERS`
    shared: Any  # arrays that all runs share
    system: Any  # arrays of every system, along the first axis
    state: Any  # likewise
    stream: Any  # what one round of one run brings

    def arguments(self) -> tuple[Any, Any, Any]:
        """What `lanes` takes: the arrays of one run."""
        word = np.uint32(0)
        run = tuple(word if name in NUMBERS else draws.Key(word, word) for name in self.run)
        system, state = jax.tree.map(lambda leaf: np.asarray(leaf)[0], (self.system, self.state))
        return (run, self.shared, system), state, self.stream


def _start(own: Any, state: Any, round_: Array, stream: Any) -> Any:
    numbers, roles, environment = own
    keys = tuple(draws.run_key(role, *numbers) for role in roles)
    return (programs.start(keys[0], environment), keys), ()


def _move(own: Any, z: Array, round_: Array, stream: Any) -> Any:
    (key,), _, environment = own
    return programs.move(key, environment, z, round_), environment.arms @ z


def _policy(label: str, rule: programs.Rule, game: programs.Game) -> Callable[..., Any]:
    play = programs.policy_round(rule, game)

    def step(own: Any, now: Any, round_: Array, values: Array) -> Any:
        keys, _, system = own
        with blame.blaming(label):
            state, lost = play(programs.Lanes(*keys, *system), now[0], round_, values)
        return (state, now[1] + lost), now[1] + lost

    return step


def parts(job: Job) -> dict[str, Part]:
    """What is played: the environment, and every policy."""
    environment, z = job.environment, job.environment.start_mean
    count, noise_std = len(z), environment.model.reward_std
    roles = roles_of(job)
    shared = tuple(draws.Key(*map(np.asarray, job.roles[role])) for role in roles)
    words = np.zeros(count, np.uint32)
    keys = tuple(draws.Key(words, words) for _ in roles)
    start = Part(("start", len(roles)), _start, NUMBERS, shared, environment, (z, keys), ())
    found = {START: start, MOVE: Part("move", _move, (draws.PROCESS,), (), environment, z, ())}
    values = np.zeros(environment.arms.shape[1], job.dtype)
    for label, player in job.players.items():
        model, arms = player.known
        system = Problem(model, arms, player.constants), noise_std
        state = player.state, np.zeros(count, job.dtype)
        rule, streams = (player.rule, job.game), (draws.REWARD, player.role)
        found[label] = Part(rule, _policy(label, *rule), streams, (), system, state, values)
    return found


def sorted_out(job: Job, found: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The programs among what was found, and why policies have none: they need START and MOVE."""
    refused = {label: str(p) for label, p in found.items() if isinstance(p, Unsupported)}
    for label in (START, MOVE):
        if label in refused:
            return {}, dict.fromkeys(job.players, refused[label])
    return {label: p for label, p in found.items() if label not in refused}, refused


def roles_of(job: Job) -> list[str]:
    """The random streams in the order of START's keys: its own is the first."""
    return [draws.START, *sorted(job.roles.keys() - {draws.START})]
