"""What the leaderboard plays: families of systems, drawn by name, memory and number.

A family is a function that draws a system from random numbers and a memory in rounds: a state that
keeps a share ρ of itself remembers 1/(1 − ρ) rounds. Some also return what policies wrongly take
the system to be. The same numbers draw a system of every memory. Where nothing else is said there
are ten arms with variance 1 and noise σ = 1. A function's docstring is what the page says of it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from driftbandit import errors, families, studies, theory
from driftbandit.model import LGDS
from driftbandit.system import System

ARMS = 10
MEMORIES = {"2": 2.0, "10": 10.0, "100": 100.0, "1000": 1000.0, "forever": math.inf}
MEMORIES |= {"mixed": 1000.0}  # the longest one of a system
"""In rounds, by name."""
FINITE = ("2", "10", "100", "1000")
WORK = 1000  # d²k of a round of ordinary size; larger systems play fewer runs

Drawn = System | tuple[System, System]  # the truth, and what policies assume if that differs
Draw = Callable[[np.random.Generator, float], Drawn]


def autoregressive(
    memories: Any, noise: float = 1.0, arms: Any = None, variances: Any = 1.0
) -> System:
    """States that forget, each with its memory; each arm reads its own, or a mix of all."""
    decays = 1 - 1 / np.asarray(memories, float)
    start = np.diag(variances * np.ones(len(decays)))
    model = LGDS(np.diag(decays), (1 - decays**2) * start, noise, initial_cov=start)
    return System(model, np.eye(len(decays)) if arms is None else arms)


def _spread(low: float, high: float) -> np.ndarray:
    """Five values, each of two arms: the least possible regret takes seconds per value."""
    return np.geomspace(low, high, ARMS // 2).repeat(2)


def equal_arms(rng: np.random.Generator, memory: float) -> Drawn:
    """Each arm reads a state of its own, and all are alike; σ is 0.3, 1 or 3"""
    return autoregressive([memory] * ARMS, rng.choice((0.3, 1.0, 3.0)))


def random_walks(rng: np.random.Generator, memory: float) -> Drawn:
    """States without memory loss that start at N(0, 1) and take steps of 0.01 σ or 0.1 σ"""
    eye = np.eye(ARMS)
    return System(LGDS(eye, rng.choice((1e-4, 1e-2)) * eye, 1.0, initial_cov=eye), eye)


def unequal_variance(rng: np.random.Generator, memory: float) -> Drawn:
    """Independent arms with variances of 0.2 to 5 and little noise, σ = 0.3"""
    return autoregressive([memory] * ARMS, 0.3, variances=_spread(0.2, 5))


def unequal_noise(rng: np.random.Generator, memory: float) -> Drawn:
    """A system has one σ for all arms, so that independent arms are scaled by ⅓ to 3 instead: with
    σ = 3, the noise is 1 to 9 times an arm's own standard deviation
    """
    return autoregressive([memory] * ARMS, 3.0, np.diag(_spread(1 / 3, 3)))


def mixed_memories(rng: np.random.Generator, memory: float) -> Drawn:
    """Independent arms with memories of 2 to 1000 rounds in one system"""
    return autoregressive(_spread(2, memory))


def common_factor(
    rng: np.random.Generator, memory: float, shares: Sequence[float] = (0.3, 0.6, 0.9)
) -> System:
    """A factor that moves all arms alike has 30%, 60% or 90% of their variance"""
    share = rng.choice(shares)
    own = math.sqrt(1 - share) * np.eye(ARMS)
    loadings = np.hstack([np.full((ARMS, 1), math.sqrt(share)), own])
    return autoregressive([memory] * (ARMS + 1), 1.0, loadings)


def shared_states(rng: np.random.Generator, memory: float) -> Drawn:
    """All arms read the same three states, each in its own mix"""
    return autoregressive([memory] * 3, 1.0, rng.standard_normal((ARMS, 3)))


def drift_times_4(rng: np.random.Generator, memory: float, factor: float = 4.0) -> Drawn:
    """Equal arms; policies take the drift 1 − ρ to be four times as large as it is"""
    return autoregressive([memory] * ARMS), autoregressive([memory / factor] * ARMS)


def drift_by_4(rng: np.random.Generator, memory: float) -> Drawn:
    """Equal arms; policies take the drift 1 − ρ to be a quarter of what it is"""
    return drift_times_4(rng, memory, 0.25)


def noise_times_2(rng: np.random.Generator, memory: float, factor: float = 2.0) -> Drawn:
    """Equal arms; policies take σ to be twice as large as it is"""
    return autoregressive([memory] * ARMS), autoregressive([memory] * ARMS, factor)


def noise_by_2(rng: np.random.Generator, memory: float) -> Drawn:
    """Equal arms; policies take σ to be half of what it is"""
    return noise_times_2(rng, memory, 0.5)


def no_common_factor(rng: np.random.Generator, memory: float) -> Drawn:
    """Half of each arm's variance is a common factor; policies take all of it to be its own"""
    truth = common_factor(rng, memory, [0.5])
    return truth, System(truth.model, np.eye(ARMS, ARMS + 1, 1))


def no_season(rng: np.random.Generator, memory: float) -> Drawn:
    """Equal arms and a season of 24 rounds, different for each arm, which policies miss"""
    own = autoregressive([memory] * ARMS).model
    turn = 2 * math.pi / 24
    wave = [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]
    start = np.diag([1.0] * ARMS + [0.5] * 2)
    moves = block_diag(own.transition, wave), block_diag(own.process_cov, np.zeros((2, 2)))
    model = LGDS(moves[0], moves[1], 1.0, initial_cov=start)
    season = np.hstack([np.zeros((ARMS, ARMS)), rng.standard_normal((ARMS, 2))])
    return System(model, np.eye(ARMS, ARMS + 2) + season), System(model, np.eye(ARMS, ARMS + 2))


def _random(family: str = "", **size: Any) -> Draw:
    """Draws from one of the paper's families, or from any of them."""

    def draw(rng: np.random.Generator, memory: float) -> Drawn:
        name = family or str(rng.choice(list(families.FAMILIES)))
        seed = int(rng.integers(2**62))
        return System(*families.sample(name, seed=seed, radius=1 - 1 / memory, **size)[0])

    what = "The paper's random systems (P20), ten states and ten arms; ρ(Γ) = 1 − 1/memory"
    other = (
        "Random systems of all five families, with one thing changed; the noise is σ × 0.1 or × 10"
    )
    draw.__doc__ = what if family else other
    return draw


class Problem(NamedTuple):
    """A family of systems."""

    kind: str  # of which the picture has a panel
    draw: Draw
    memories: tuple[str, ...] = (*FINITE, "forever")
    independent: bool = False  # whether policies believe that arms are


_SIZES: dict[str, dict[str, Any]] = {
    "2_states": {"n_states": 2},
    "30_states": {"n_states": 30},
    "100_arms": {"n_arms": 100},
    "little_noise": {"noise_scale": 0.1},
    "much_noise": {"noise_scale": 10.0},
}
PROBLEMS = {
    "equal_arms": Problem("independent arms", equal_arms, independent=True),
    "random_walks": Problem("independent arms", random_walks, ("forever",)),
    "unequal_variance": Problem("unequal arms", unequal_variance, independent=True),
    "unequal_noise": Problem("unequal arms", unequal_noise, independent=True),
    "mixed_memories": Problem("unequal arms", mixed_memories, ("mixed",), independent=True),
    "common_factor": Problem("common factors", common_factor),
    "shared_states": Problem("common factors", shared_states),
    **{name: Problem("random systems", _random(name), FINITE) for name in families.FAMILIES},
    **{
        name: Problem("other sizes and noise", _random(**size), ("10", "100"))
        for name, size in _SIZES.items()
    },
    "drift_times_4": Problem("wrong models", drift_times_4, FINITE[1:], independent=True),
    "drift_by_4": Problem("wrong models", drift_by_4, FINITE, independent=True),
    "noise_times_2": Problem("wrong models", noise_times_2, FINITE, independent=True),
    "noise_by_2": Problem("wrong models", noise_by_2, FINITE, independent=True),
    "no_common_factor": Problem("wrong models", no_common_factor, independent=True),
    "no_season": Problem("wrong models", no_season),
}
"""By name, in the order of tables. A new family is one entry."""


@dataclasses.dataclass(frozen=True)
class Cell(studies.Cell):
    """Systems of one family and memory."""

    memory: str = "10"

    FAMILIES = PROBLEMS
    SOURCES = ("leaderboard/problems.py", "theory/independence.py")

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.closest(self.memory, "memory", PROBLEMS[self.family].memories)

    @property
    def label(self) -> str:
        """A short name, also used in file names: "equal_arms.memory-10"."""
        return f"{self.family}.memory-{self.memory}"

    def systems(
        self, numbers: range, n_states: int, n_arms: int, seed: int
    ) -> tuple[list[System], list[System] | None]:
        """The true systems with these numbers, and what learners assume (None: the truth)."""
        draw, place = PROBLEMS[self.family].draw, zlib.crc32(self.family.encode())
        rngs = [np.random.default_rng([seed, place, number]) for number in numbers]
        drawn = [draw(rng, MEMORIES[self.memory]) for rng in rngs]
        pairs = [one if isinstance(one, tuple) else (one, None) for one in drawn]
        assumed = [other for _, other in pairs if other is not None]
        return [system for system, _ in pairs], assumed or None

    def runs_and_rounds(
        self, runs: int, rounds: int, n_states: int, n_arms: int
    ) -> tuple[int, int]:
        """Eight memories, but not less than an eighth of all rounds; more runs if they are short.

        Of states that never forget, a quarter of all rounds.
        """
        memory = MEMORIES[self.memory]
        here = rounds // 4 if math.isinf(memory) else max(8 * int(memory), rounds // 8)
        here = max(1, min(here, rounds))
        size = max(n_states**2 * n_arms, WORK)
        return max(1, runs * rounds * WORK // (here * size)), here

    def least_regret(self, systems: Sequence[Any], rounds: int) -> list[float] | None:
        """Of independent arms that forget and are known, if the study plays eight memories."""
        problem = PROBLEMS[self.family]
        known = problem.independent and problem.kind != "wrong models" and self.memory != "forever"
        if not known or rounds < 8 * MEMORIES["1000"]:
            return None
        bound = functools.cache(lambda noise: theory.least_regret(systems[noises.index(noise)]))
        noises = [system.model.reward_std for system in systems]  # all else is alike
        return [bound(noise).value for noise in noises]
