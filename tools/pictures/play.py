"""One run of a policy with everything that a picture shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import driftbandit as db
from driftbandit.kalman import Belief


class Play(NamedTuple):
    """A run of n rounds; `played` makes one."""

    states: np.ndarray  # z, n × d
    expected: np.ndarray  # ⟨a, z⟩, n × k
    choices: np.ndarray  # row of the arm, n
    rewards: np.ndarray  # X of that arm, n

    @property
    def regret(self) -> np.ndarray:
        """Cumulative dynamic regret, n."""
        rows = np.arange(len(self.choices))
        return np.cumsum(self.expected.max(axis=1) - self.expected[rows, self.choices])


def played(model: db.LGDS, arms: np.ndarray, policy: str, rounds: int, seed: int) -> Play:
    """Play a policy. The same seed gives every policy the same states and the same noise."""
    random = np.random.default_rng(seed)
    d, k = model.n_states, len(arms)
    root, noise = np.linalg.cholesky(model.process_cov), random.standard_normal((rounds, d))
    z = np.linalg.cholesky(model.start_cov()) @ random.standard_normal(d)
    reward_noise = model.reward_std * random.standard_normal((rounds, k))
    agent = db.Agent(model, arms, policy=policy, seed=seed)
    states, choices, rewards = np.empty((rounds, d)), np.empty(rounds, int), np.empty(rounds)
    for t in range(rounds):
        decision = agent.ask()
        states[t], choices[t] = z, decision.arm
        rewards[t] = arms[decision.arm] @ z + reward_noise[t, decision.arm]
        agent.tell(decision, rewards[t])
        z = model.transition @ z + root @ noise[t]
    return Play(states, states @ arms.T, choices, rewards)


def beliefs(model: db.LGDS, arms: np.ndarray, play: Play) -> list[tuple[Belief, Belief]]:
    """The belief before and after the reward of each round."""
    belief, found = db.kalman.prior(model), []
    for choice, reward in zip(play.choices, play.rewards, strict=True):
        after = db.kalman.observe(belief, model, arms[choice], reward)
        found.append((belief, after))
        belief = db.kalman.advance(after, model)
    return found


def circle(
    decay: float, period: float, process_var: float, reward_std: float, degrees: list[float]
) -> tuple[db.LGDS, np.ndarray]:
    """A state that turns around the origin, is pulled to it and is pushed at random; unit arms."""
    c, s = np.cos(2 * np.pi / period), np.sin(2 * np.pi / period)
    turn = np.array([[c, -s], [s, c]])
    angles = np.deg2rad(degrees)
    arms = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return db.LGDS(decay * turn, process_var * np.eye(2), reward_std), arms
