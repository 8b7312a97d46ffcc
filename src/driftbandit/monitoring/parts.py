"""Which part of the state is off: smoothed disturbances of groups of states.

For a part with states S, r_S of `disturbances` serves as well as (Q r)_S, and it also exists where
Q is zero. Two figures tell whether the part is off:

- **speed**. With W = Q_SS, or the identity if that is zero, D = Σ_t r_Sᵀ W r_S − tr(W N_SS) is
  twice the slope of the log-likelihood in the scale of W (Koopman and Shephard 1992): positive if
  the part moves more than the model says. Its mean is zero under the model. Its standard deviation
  is that over simulated rewards with the same plays: r is linear in the surprises, so that
  independent normal ones go through the same pass. Its distribution is close to that of a scaled
  χ² with this mean and variance.
- **jump**. The largest r_Sᵀ N_SS⁺ r_S over rounds, each χ² with as many degrees of freedom as N_SS
  has rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy

from driftbandit import errors
from driftbandit.io.logs import Log
from driftbandit.monitoring.disturbances import TINY, Disturbances, Jumps, disturbances
from driftbandit.monitoring.surprises import reads_of, steps

DRAWS = 256  # simulated logs behind a standard deviation: it is known to 4%


class PartHealth(NamedTuple):
    """What the smoothed disturbances say about a part of the state.

    `Health.parts` has one for each of the ``parts`` that `monitor` was given.

    Example:
        The first of two states jumps in round 50.

        >>> from driftbandit import LGDS, System, monitor
        >>> model = LGDS(np.diag([0.95, 0.95]), 0.01 * np.eye(2), reward_std=0.5)
        >>> system, arms = System(model, np.eye(2)), [0, 1] * 50
        >>> rewards = [5.0 if arm == 0 and t > 49 else 0.0 for t, arm in enumerate(arms)]
        >>> log = {"round": range(100), "arm": arms, "reward": rewards}
        >>> health = monitor(system, log, parts={"left": [0], "right": [1]})
        >>> [(part.name, part.jump > 5) for part in health.parts]
        [('left', True), ('right', False)]
        >>> health.parts[0].jump_round, health.parts[0].jump_p_value < 0.001
        (50, True)
    """

    name: str
    speed: float  # mean 0, variance 1 under the model; positive: it moves more than the model says
    speed_p_value: float  # two-sided
    jump: float  # the largest standardized disturbance, √(r_Sᵀ N_SS⁺ r_S)
    jump_p_value: float  # over all rounds
    jump_round: int  # the round into which the part moved so far
    jump_sequence: int


def checked_parts(parts: Any, n_states: int) -> dict[str, np.ndarray]:
    """Names and the numbers of their states."""
    if parts is None:
        return {}
    remedy = f"give a mapping from names to lists of states, 0..{n_states - 1}"
    if not isinstance(parts, Mapping) or not parts:
        raise errors.InvalidInput("parts", f"is {parts!r:.60}", remedy)
    found = {}
    for name, states in parts.items():
        if not isinstance(name, str) or not name.strip():
            raise errors.InvalidInput("parts", f"has the name {name!r:.60}", remedy)
        argument = f"parts[{errors.printable(name[:30])!r}]"
        if not isinstance(states, list | tuple | range | np.ndarray) or len(states) == 0:
            raise errors.InvalidInput(argument, f"is {states!r:.60}", remedy)
        numbers = [
            errors.whole_number(state, argument, low=0, high=n_states - 1) for state in states
        ]
        if len(set(numbers)) < len(numbers):
            raise errors.InvalidInput(argument, f"is {states!r:.60}", "give each state once")
        found[name] = np.array(numbers)
    return found


def smoothed(
    system: Any, log: Log, parts: Mapping[str, np.ndarray]
) -> tuple[Jumps, tuple[PartHealth, ...]]:
    """The largest jump of every arm, and the health of every part.

    Args:
        system, log: as in `surprises.surprises_of`.
        parts: names and the numbers of their states, as `checked_parts` returns them.
    """
    model, rng = system.model, np.random.default_rng(0)
    jumps, found = Jumps(system.arms, model.process_cov), {name: Sums() for name in parts}
    start = getattr(system, "first_round", None)
    for number, one in enumerate(log.sequences):
        filtered = list(steps(model, reads_of(system, log, one), one, start))
        draws = rng.standard_normal((len(filtered), DRAWS if parts else 0))
        for block in disturbances(model.transition, filtered, one.rounds, draws):
            jumps.add(block, number)
            for name, states in parts.items():
                found[name].add(block, states, model.process_cov, number)
    return jumps, tuple(sums.health(name) for name, sums in found.items())


class Sums:
    """Adds up the figures of one part over sequences."""

    def __init__(self) -> None:
        self.mean, self.excess, self.simulated, self.moves = 0.0, 0.0, np.zeros(DRAWS), 0
        self.jump, self.chance, self.place = 0.0, 1.0, (0, 0)

    def add(self, block: Disturbances, states: np.ndarray, cov: np.ndarray, sequence: int) -> None:
        """Take in a block of a sequence; ``cov`` is Q."""
        r, N = block.r[:, states], block.N[:, states[:, None], states]
        weight = cov[np.ix_(states, states)]
        if not weight.any():
            weight = np.eye(len(states))
        mean = float(np.einsum("ij,tij->", weight, N))
        self.mean += mean
        self.excess += float(np.einsum("ti,ij,tj->", r, weight, r)) - mean
        drawn = block.simulated[:, states]
        self.simulated += np.einsum("tim,ij,tjm->m", drawn, weight, drawn, optimize=True) - mean
        self.moves += len(r)
        sizes, vectors = np.linalg.eigh(N)
        there = sizes > TINY * max(float(sizes.max()), np.finfo(float).tiny)
        along = np.einsum("tij,ti->tj", vectors, r)
        squares = np.where(there, along**2 / np.where(there, sizes, 1.0), 0.0).sum(axis=1)
        chances = scipy.special.chdtrc(np.maximum(there.sum(axis=1), 1), squares)
        best = int(chances.argmin())
        if chances[best] < self.chance:
            self.jump, self.chance = math.sqrt(squares[best]), float(chances[best])
            self.place = int(block.rounds[best]), sequence

    def health(self, name: str) -> PartHealth:
        """What they amount to."""
        variance, speed, p_value = float((self.simulated**2).mean()), 0.0, 1.0
        if variance > 0:
            speed = self.excess / math.sqrt(variance)
            shape, size = self.mean**2 / variance, (self.mean + self.excess) * self.mean / variance
            tails = scipy.special.gammainc(shape, size), scipy.special.gammaincc(shape, size)
            p_value = min(1.0, 2 * float(min(tails)))
        chance = min(1.0, self.moves * self.chance)
        return PartHealth(name, speed, p_value, self.jump, chance, *self.place)
