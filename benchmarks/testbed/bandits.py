"""Step sizes chosen by a driftbandit `Agent`: arms are the grid, rewards the fall of the log loss.

With several members, one agent decides for all of them and learns from all of them.
"""

# ruff: noqa: D102  (`play.Method` documents the methods)
from __future__ import annotations

import dataclasses

import numpy as np

import driftbandit as db
from testbed.population import MEMBERS, exploited
from testbed.problems import EPOCHS, Array


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the filter assumes of rewards: alike for neighboring rates, fading over time.

    reward of rate i in interval t = z_i(t) + noise, z(t+1) = γ z(t) + ξ, γ = e^(−1/memory),
    stationary covariance shared² 11ᵀ + own² exp(−(i − j)² / 2 length²).
    """

    policy: str = "idea"
    hold: int = 1  # epochs between decisions
    shared: float = 0.3
    own: float = 0.3
    length: float = 2.0  # in steps of the grid
    memory: float = 30.0  # in intervals
    noise: float = 0.1
    clip: float = 1.0  # largest reward, in absolute value

    def model(self, arms: int) -> db.LGDS:
        place = np.arange(arms)
        cov = self.own**2 * np.exp(-0.5 * ((place[:, None] - place) / self.length) ** 2)
        cov = cov + self.shared**2 + 1e-9 * np.eye(arms)
        kept = np.exp(-1 / self.memory)
        return db.LGDS(kept * np.eye(arms), (1 - kept**2) * cov, self.noise, cov)


class Bandit:
    """One agent per seed, which sets the step sizes of all members of that seed.

    With a ``period``, the worst quarter copies the best quarter's weights so often, as in PBT.
    """

    def __init__(
        self,
        grid: Array,
        seeds: list[int],
        settings: Settings,
        members: int = 1,
        period: int | None = None,
    ) -> None:
        self.grid, self.members, self.settings, self.period = grid, members, settings, period
        model, arms = settings.model(len(grid)), np.eye(len(grid))
        rounds = EPOCHS // settings.hold
        self.agents = [
            db.Agent(model, arms, settings.policy, rounds=rounds, seed=seed, window=0)
            for seed in seeds
        ]
        self.rngs = [np.random.default_rng([43, seed]) for seed in seeds]
        self.asked: list[list[db.Decision]] = []

    def rates(self, epoch: int) -> Array:
        if epoch % self.settings.hold == 0:
            many = self.members
            self.asked = [
                [agent.ask()] if many == 1 else agent.ask_many(many, distinct=False)
                for agent in self.agents
            ]
        return np.array([[self.grid[one.arm] for one in row] for row in self.asked])

    def learn(self, epoch: int, before: Array, after: Array) -> Array | None:
        if epoch % self.settings.hold == 0:
            self.first = before
        if (epoch + 1) % self.settings.hold == 0:
            rewards = np.clip(self.first - after, -self.settings.clip, self.settings.clip)
            for agent, decisions, row in zip(self.agents, self.asked, rewards, strict=True):
                agent.tell_many(zip(decisions, row.tolist(), strict=True))
        if self.period is None or (epoch + 1) % self.period:
            return None
        return exploited(after, self.rngs)


def shared(grid: Array, seeds: list[int], settings: Settings, period: int | None = None) -> Bandit:
    """One filter for a population."""
    return Bandit(grid, seeds, settings, MEMBERS, period)
