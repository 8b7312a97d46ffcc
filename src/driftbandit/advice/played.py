"""A short paired simulation: how much to play, and what came out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from driftbandit import errors, policies, statistics
from driftbandit.actions import FINITE
from driftbandit.advice.parts import PLAYED, Difference, Played, Simulation
from driftbandit.arrays import Array
from driftbandit.model import LGDS
from driftbandit.policies import Policy, idea, kalman_ucb, optimistic
from driftbandit.result import Result
from driftbandit.statistics import Paired

__all__ = ["play", "players", "sizes", "summarized"]

RANDOM = "random"

BUDGET = 1.9e7
"""Work of one policy: 256 runs × 500 rounds of 10 arms in 10 states, a fifth of a second."""
FEWEST_RUNS, MOST_RUNS = 32, 1024
GROWTH = 1e6
"""An unstable state is followed until it has grown by this much."""

WEIGHTS: dict[str, dict[str, Any]] = {
    "idea": {"informed": 1.0, "width": 0.0},
    "kode": {"informed": 0.0, "width": 0.0},
    "kalman_ucb": {"informed": 0.0, "width": 1.0},
}


def sizes(n_states: int, n_arms: int, spectral_radius: float) -> tuple[int, int]:
    """How many runs and rounds to play, from the size alone: the same on every machine.

    A round takes about as long as d (d + k/3) + 15 steps (measured from d = 2 to 100).

    Args:
        n_states: d.
        n_arms: k.
        spectral_radius: ρ(Γ); above 1, rounds end when the state has grown a millionfold.

    Example:
        >>> sizes(10, 10, 0.9), sizes(2, 3, 0.9), sizes(100, 50, 0.9)
        ((256, 500), (1024, 500), (32, 200))
        >>> sizes(2, 3, 2.0)
        (1024, 19)
    """
    plays = BUDGET / (n_states * (n_states + n_arms / 3) + 15)
    rounds = 500 if plays >= 500 * 2 * FEWEST_RUNS else 200
    if spectral_radius > 1:
        rounds = min(rounds, max(10, int(math.log(GROWTH) / math.log(spectral_radius))))
    runs = int(min(max(plays / rounds, FEWEST_RUNS), MOST_RUNS))
    return runs - runs % FEWEST_RUNS, rounds


def players(names: Iterable[str] | None, n_arms: int) -> dict[str, Policy]:
    """The policies to play, by what to call them; random choice, a baseline, is not among them.

    Args:
        names: as `make` reads them; None: `PLAYED`, without those that cannot play so many arms.
        n_arms: k.
    """
    if isinstance(names, str):
        names = [names]
    made = [policies.make(name) for name in (PLAYED if names is None else names)]
    if names is None:
        made = [policy for policy in made if (policy.actions.max_arms or n_arms) >= n_arms]
    found: dict[str, Policy] = {}
    for policy in made:
        policy.check_plays(FINITE, n_arms)
        if policy.full_information:
            raise errors.InvalidInput(
                "policies", f"{policy.name} sees the rewards of all arms", "leave it out"
            )
        known = policy.name in policies.available()
        usual = known and policy.parameters == policies.make(policy.name).parameters
        label = policy.name if usual else policy.label
        if label in found:
            raise errors.InvalidInput("policies", f"{label!r} stands twice", "name each once")
        if label != RANDOM:
            found[label] = policy
    if not found:
        raise errors.InvalidInput("policies", "names no policy to advise", "name at least one")
    return found


def play(
    model: LGDS,
    arms: np.ndarray,
    chosen: Mapping[str, Policy],
    runs: int,
    rounds: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Play policies and random choice on the same states and noise, as `simulate` does by name.

    On the CPU wherever there is a GPU too, so that a near tie falls the same way everywhere.
    """
    from driftbandit.simulation import Options, simulate  # loads JAX

    shared = [
        optimistic(name, _bonus, **WEIGHTS[name])
        if name in WEIGHTS
        else dataclasses.replace(policy, name=name)
        for name, policy in chosen.items()
    ]
    result = simulate(
        model,
        arms,
        [*shared, RANDOM],
        rounds=rounds,
        runs=runs,
        seed=seed,
        device="cpu",
        options=Options(checkpoints=1),
        progress=progress,
    )
    return summarized(result)


def _bonus(cov: Array, model: LGDS, arms: Array, informed: float, width: float) -> Array:
    """IDEA's bonus, Kalman-UCB's, or none, by their weights: one function, so one program.

    Zero times a bonus adds exactly zero, and compiling, which takes most of the time, is done
    once instead of three times.
    """
    return informed * idea.bonus(cov, model, arms) + kalman_ucb.bonus(cov, model, arms, width)


def summarized(result: Result) -> Simulation:
    """Means, differences and their 95 % intervals, per round; runs are what is independent."""
    rounds, seed = result.rounds, result.seed
    means = {name: float(regret.mean()) for name, regret in result.regret.items()}
    rivals = [name for name in means if name != RANDOM]
    order = [*sorted(rivals, key=lambda name: means[name]), RANDOM]
    played = []
    for name in order:
        own = statistics.paired(result.regret[name], np.zeros_like(result.regret[name]), seed=seed)
        low, high = own.mean_low / rounds, own.mean_high / rounds
        played.append(Played(name, means[name] / rounds, low, high))
    found = result.compare(order[0], seed=seed)
    metric = None
    if {"idea", "kalman_ucb"} <= set(rivals):
        row = result.compare("idea", seed=seed)["kalman_ucb"]
        metric = _difference("kalman_ucb", "idea", row, rounds)
    return Simulation(
        runs=len(result.regret[order[0]]),
        rounds=rounds,
        seed=seed,
        policies=tuple(played),
        differences=tuple(_difference(name, order[0], found[name], rounds) for name in order[1:]),
        rivals=metric,
    )


def _difference(policy: str, baseline: str, row: Paired, rounds: int) -> Difference:
    ends = (row.mean_difference / rounds, row.mean_low / rounds, row.mean_high / rounds)
    return Difference(policy, baseline, *ends, row.mean_verdict)  # regret is paid in the mean
