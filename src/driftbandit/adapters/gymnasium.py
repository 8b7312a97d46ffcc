"""The LGDS bandit as a Gymnasium environment (P1, P4): one decision per step.

    env = gymnasium.make("driftbandit/LGDSBandit-v0", model=model, arms=arms)

Importing this module registers the name. Every step draws the same random numbers whatever is
played, so players that start from the same seed see the same states and the same noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import errors, kalman
from driftbandit.model import LGDS, factor
from driftbandit.system import System, checked_system

with errors.needing(__name__):
    import gymnasium

__all__ = ["ID", "LGDSBandit"]

ID = "driftbandit/LGDSBandit-v0"
"""The name for ``gymnasium.make``."""
HIGHEST = float(np.finfo(np.float32).max)
"""Largest reward in an observation; `check_env` warns about infinite bounds."""


class LGDSBandit(gymnasium.Env[np.ndarray, Any]):
    """Play arm a, get X = ⟨a, z⟩ + η, then the state moves: z⁺ = Γz + ξ.

    An action is the index of an arm. An observation is k + 2 numbers: the last arm, one-hot; the
    last reward; the share of the rounds already played. All are zero before the first round.
    An episode never terminates; it is truncated after ``rounds``. Each step's ``info`` holds

    - ``mean``: ⟨a, z⟩, the reward without its noise;
    - ``best_arm``: the index of a*, the arm with the highest mean;
    - ``regret``: ⟨a* − a, z⟩ of this step;
    - ``total_regret``: the sum so far, R_n at the end.

    Args:
        model: a `System`, or the model that drives the rewards.
        arms: k × d, if ``model`` is not a `System`; an action is the index of a row.
        rounds: steps of an episode.
        render_mode: "ansi" makes `render` return one line of text; None renders nothing.

    Example:
        >>> env = LGDSBandit(LGDS([[0.5]], [[3.0]], reward_std=0.0), [[1.0], [-1.0]], rounds=2)
        >>> observation, _ = env.reset(seed=0, options={"state": [2.0]})
        >>> observation, reward, terminated, truncated, info = env.step(1)
        >>> observation.tolist(), reward, info["best_arm"], info["regret"]
        ([0.0, 1.0, -2.0, 0.5], -2.0, 0, 4.0)

        The same by its registered name, with text:

        >>> system = System(LGDS([[0.5]], [[3.0]], reward_std=0.0), [[1.0], [-1.0]])
        >>> env = gymnasium.make(ID, model=system, rounds=10, render_mode="ansi")
        >>> _ = env.reset(seed=0, options={"state": [2.0]})
        >>> _ = env.step(0)
        >>> env.render()
        'round 1 of 10: arm 0 paid 2, best was arm 0, regret 0, 0 in all'
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        model: LGDS | System,
        arms: Any = None,
        rounds: int = 1000,
        render_mode: str | None = None,
    ) -> None:
        system = checked_system(model, arms)
        self.model, self.arms, self.names = system.model, system.arms, system.names
        self.rounds = errors.whole_number(rounds, "rounds", low=1)
        self.render_mode = render_mode
        if render_mode is not None:
            errors.closest(render_mode, "render_mode", self.metadata["render_modes"])
        self._start = kalman.prior(self.model)
        self._start_root = factor(self._start.cov)
        self._process_root = factor(self.model.process_cov)
        self._check_range()
        k = len(self.arms)
        self.action_space = gymnasium.spaces.Discrete(k)
        self.observation_space = gymnasium.spaces.Box(
            np.array([0.0] * k + [-HIGHEST, 0.0], np.float32),
            np.array([1.0] * k + [HIGHEST, 1.0], np.float32),
        )
        self.state = np.zeros(self.model.n_states)  # z, hidden from the player
        self.total_regret = 0.0
        self._round = self.rounds  # `reset` comes first
        self._line = "not started"

    def _check_range(self) -> None:
        model, rounds = self.model, self.rounds
        if not model.is_stable and not np.abs(model.settled_moment(rounds)).max() < errors.LARGEST:
            grown = f"exceeds what float64 can hold (spectral radius {model.spectral_radius:g})"
            problem = f"is {rounds}, after which the state {grown}"
            raise errors.InvalidInput("rounds", problem, "play fewer rounds")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode: z is drawn from N(0, Σ0) or from the stationary distribution (P1).

        Args:
            seed: of all random numbers; None: go on with the present ones.
            options: ``{"state": z}`` starts from that state instead.

        Returns:
            The first observation, all zero, and an empty dictionary.

        Example:
            >>> env = LGDSBandit(LGDS([[0.5]], [[3.0]], reward_std=0.0), [[1.0], [-1.0]])
            >>> env.reset(seed=1)[0].tolist(), env.state.shape
            ([0.0, 0.0, 0.0, 0.0], (1,))
        """
        super().reset(seed=seed)
        for name in options or {}:
            errors.closest(name, "options", ["state"])
        draw = self.np_random.standard_normal(self.model.n_states)
        state = self._start.mean + self._start_root @ draw
        if options and options.get("state") is not None:
            state = errors.matrix(options["state"], "options['state']", shape=(len(state),))
        self.state, self.total_regret, self._round = state, 0.0, 0
        self._line = f"round 0 of {self.rounds}"
        return self._observation(None, 0.0), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play one round (P4).

        Args:
            action: the index of the arm.

        Returns:
            Observation, reward X, False (never terminated), whether this was the last round, info.

        Example:
            >>> env = LGDSBandit(LGDS([[0.5]], [[3.0]], reward_std=0.0), [[1.0], [-1.0]], rounds=1)
            >>> _ = env.reset(options={"state": [2.0]})
            >>> _, reward, _, truncated, info = env.step(0)
            >>> reward, truncated, info["mean"], info["total_regret"]
            (2.0, True, 2.0, 0.0)
        """
        if self._round >= self.rounds:
            raise gymnasium.error.ResetNeeded("no episode is running: call reset() before step()")
        if isinstance(action, np.ndarray) and action.ndim == 0:  # as in Stable-Baselines3
            action = action[()]
        arm = errors.whole_number(action, "action", low=0, high=len(self.arms) - 1)
        means = self.arms @ self.state
        best = int(means.argmax())
        regret = float(means[best] - means[arm])
        noise = self.np_random.standard_normal(1 + self.model.n_states)
        reward = float(means[arm] + self.model.reward_std * noise[0])
        self.state = self.model.transition @ self.state + self._process_root @ noise[1:]
        self.total_regret += regret
        self._round += 1
        self._line = (
            f"round {self._round} of {self.rounds}: arm {arm} paid {reward:.4g}, best was arm "
            f"{best}, regret {regret:.4g}, {self.total_regret:.4g} in all"
        )
        info = {"mean": float(means[arm]), "best_arm": best, "regret": regret}
        info["total_regret"] = self.total_regret
        return self._observation(arm, reward), reward, False, self._round == self.rounds, info

    def render(self) -> str | None:
        """The last round in one line, if ``render_mode`` is "ansi"; otherwise None."""
        return self._line if self.render_mode == "ansi" else None

    def _observation(self, arm: int | None, reward: float) -> np.ndarray:
        seen = np.zeros(len(self.arms) + 2, np.float32)
        if arm is not None:
            seen[arm] = 1
        seen[-2:] = np.clip(reward, -HIGHEST, HIGHEST), self._round / self.rounds
        return seen


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=f"{__name__}:LGDSBandit")
