"""A short paired simulation: how much to play, and what came out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandit import statistics
from driftbandit.advice.parts import POLICIES, Difference, Played, Simulation
from driftbandit.arrays import Array
from driftbandit.model import LGDS
from driftbandit.policies import idea, kalman_ucb, optimistic
from driftbandit.result import Result
from driftbandit.statistics import Paired

__all__ = ["play", "sizes", "summarized"]

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


def sizes(states: int, arms: int, spectral_radius: float) -> tuple[int, int]:
    """How many runs and rounds to play, from the size alone: the same on every machine.

    A round takes about as long as d (d + k/3) + 15 steps (measured from d = 2 to 100).

    Args:
        states: d.
        arms: k.
        spectral_radius: ρ(Γ); above 1, rounds end when the state has grown a millionfold.

    Example:
        >>> sizes(10, 10, 0.9), sizes(2, 3, 0.9), sizes(100, 50, 0.9)
        ((256, 500), (1024, 500), (32, 200))
        >>> sizes(2, 3, 2.0)
        (1024, 19)
    """
    plays = BUDGET / (states * (states + arms / 3) + 15)
    rounds = 500 if plays >= 500 * 2 * FEWEST_RUNS else 200
    if spectral_radius > 1:
        rounds = min(rounds, max(10, int(math.log(GROWTH) / math.log(spectral_radius))))
    runs = int(min(max(plays / rounds, FEWEST_RUNS), MOST_RUNS))
    return runs - runs % FEWEST_RUNS, rounds


def play(
    model: LGDS,
    arms: np.ndarray,
    runs: int,
    rounds: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Play `POLICIES` and random choice on the same states and noise, as `simulate` does by name.

    On the CPU wherever there is a GPU too, so that a near tie falls the same way everywhere.
    """
    from driftbandit.simulation import simulate  # loads JAX

    result = simulate(
        model,
        arms,
        [*(optimistic(name, _bonus, **WEIGHTS[name]) for name in POLICIES), "random"],
        rounds=rounds,
        runs=runs,
        seed=seed,
        device="cpu",
        checkpoints=1,
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
    order = [*sorted(POLICIES, key=lambda name: means[name]), "random"]
    played = []
    for name in order:
        own = statistics.paired(result.regret[name], np.zeros_like(result.regret[name]), seed=seed)
        low, high = own.mean_low / rounds, own.mean_high / rounds
        played.append(Played(name, means[name] / rounds, low, high))
    found = result.compare(order[0], seed=seed)
    rivals = result.compare("idea", seed=seed)["kalman_ucb"]
    return Simulation(
        runs=len(result.regret[order[0]]),
        rounds=rounds,
        seed=seed,
        policies=tuple(played),
        differences=tuple(_difference(name, order[0], found[name], rounds) for name in order[1:]),
        rivals=_difference("kalman_ucb", "idea", rivals, rounds),
    )


def _difference(policy: str, baseline: str, row: Paired, rounds: int) -> Difference:
    ends = (row.mean_difference / rounds, row.mean_low / rounds, row.mean_high / rounds)
    return Difference(policy, baseline, *ends, row.mean_verdict)  # regret is paid in the mean
