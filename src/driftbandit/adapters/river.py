"""The Kalman policies for river's bandits (P12): argmax ⟨a, ẑ⟩ + u(a | P) of the offered arms.

    policy = KalmanPolicy(model, {"red": [1.0, 0.0], "blue": [0.0, 1.0]})
    arm_id = policy.pull(["red", "blue"])
    policy.update(arm_id, reward)

Every `update` advances one round; `advance` lets rounds pass without a reward.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.kalman import is_belief
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies import PREFERRED, Policy, Problem, make, optimistic
from driftbandit.policies.optimistic import Bonus

with errors.needing(__name__):
    from river import bandit

__all__ = ["KalmanPolicy"]

ROUNDS = 1000  # for which a policy prepares, as those of an `Agent` by default


class KalmanPolicy(bandit.base.Policy):
    """Pulls argmax ⟨a, ẑ⟩ + u(a | P) of the offered arms and filters the reward (P12).

    `ranking` and the printed table are river's own: arms by ``reward_obj``, by default their mean
    reward. `predictions` says what each arm is expected to pay now.

    Args:
        model: the system that drives the rewards.
        arms: the feature vector, d numbers, of every arm id; a k × d array has the ids 0 … k−1.
        policy: "reach", "idea", "kalman_ucb(width=2)", a Kalman `Policy` of your own, or its bonus
            function ``bonus(cov, model, arms) -> (k,)``, which gets the offered arms.
        reward_obj: river's statistic of each arm's rewards; it does not affect the choice.
        burn_in: how often river pulls each arm first.

    Example:
        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
        >>> policy = KalmanPolicy(model, {"slow": [1.0, 0.0], "fast": [0.0, 1.0]})
        >>> policy.pull(["slow", "fast"])
        'slow'
        >>> policy.update("slow", -2.0)
        >>> policy.pull(["slow", "fast"])
        'fast'
        >>> round(policy.predictions["slow"], 3)
        -1.797
    """

    def __init__(
        self,
        model: LGDS,
        arms: Mapping[bandit.base.ArmID, Any] | Any,
        policy: str | Policy | Bonus = PREFERRED,
        reward_obj: bandit.base.RewardObj | None = None,
        burn_in: int = 0,
    ) -> None:
        burn_in = errors.whole_number(burn_in, "burn_in", low=0)
        super().__init__(reward_obj=reward_obj, burn_in=burn_in)
        self.model, self.arms, self.policy = model, arms, policy
        named = isinstance(arms, Mapping)
        features = checked_arms(list(arms.values()) if named else arms, model)
        ids = tuple(arms) if named else tuple(range(len(features)))
        self._place: dict[bandit.base.ArmID, int] = {arm_id: row for row, arm_id in enumerate(ids)}
        self._rule = rule = _rule(policy)
        constants, belief = rule.prepare(model, features, ROUNDS)
        if not is_belief(belief) or rule.noise is not None or rule.full_information:
            problem = f"is {rule.name!r}, which is not of the form ⟨a, ẑ⟩ + u(a | P)"
            remedy = "give idea, kode, kalman_ucb or a bonus function"
            raise errors.InvalidInput("policy", problem, remedy)
        self._problem = Problem(model, features, constants)
        self._offered: tuple[tuple[bandit.base.ArmID, ...], Problem] = (ids, self._problem)
        self.belief: Any = belief  # ẑ(t|t−1), P(t|t−1), and what else the policy keeps

    @property
    def predictions(self) -> dict[bandit.base.ArmID, float]:
        """⟨a, ẑ⟩ of every arm: its expected reward now.

        Example:
            >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
            >>> policy = KalmanPolicy(model, {"up": [1.0], "down": [-1.0]})
            >>> policy.update("up", 1.0)
            >>> {arm: round(mean, 6) for arm, mean in policy.predictions.items()}
            {'up': 0.25, 'down': -0.25}
        """
        means = self._problem.arms @ self.belief.mean
        return {arm_id: float(means[row]) for arm_id, row in self._place.items()}

    def update(self, arm_id: bandit.base.ArmID, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn the reward of an arm, pulled or not, and advance one round (P5).

        Args:
            arm_id: of the arm.
            *reward_args: the reward, one number.
            **reward_kwargs: passed to ``reward_obj``.

        Example:
            >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
            >>> policy = KalmanPolicy(model, {"up": [1.0], "down": [-1.0]})
            >>> policy.update("down", 1.0)
            >>> policy.pull(["up", "down"])
            'down'
        """
        row = self._row(arm_id)
        if len(reward_args) != 1:
            raise errors.InvalidInput("reward", f"is {reward_args!r}", "give one number")
        reward = reward_args[0]
        if isinstance(reward, bool | np.bool):  # river's logs of clicks
            reward = float(reward)
        reward = errors.number(reward, "reward")
        super().update(arm_id, reward, **reward_kwargs)  # type: ignore[no-untyped-call]
        self.belief = self._rule.update(self.belief, self._problem, row, reward)

    def advance(self, rounds: int = 1) -> None:
        """Let rounds pass without a reward: ẑ ↦ Γẑ, P ↦ ΓPΓᵀ + Q, by repeated squaring.

        Args:
            rounds: how many, 0 or more.

        Example:
            >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
            >>> policy = KalmanPolicy(model, {"up": [1.0], "down": [-1.0]})
            >>> policy.update("up", 8.0)
            >>> policy.advance(rounds=2)
            >>> round(policy.predictions["up"], 6)  # it was 2
            0.5
        """
        rounds = errors.whole_number(rounds, "rounds", low=0)
        if rounds == 0:
            return
        advance = self._rule.agent.advance
        belief = self.belief if advance is None else advance(self.belief, self._problem, rounds)
        if not (np.isfinite(belief.mean).all() and np.isfinite(belief.cov).all()):
            problem = f"is {rounds:.6g}, after which the state exceeds what float64 can hold"
            raise errors.InvalidInput("rounds", problem, "give fewer rounds")
        self.belief = belief

    def _pull(self, arm_ids: Any) -> bandit.base.ArmID:
        ids = tuple(arm_ids)
        if not ids:
            raise errors.InvalidInput("arm_ids", "is empty", "offer at least one arm")
        if ids != self._offered[0]:
            rows = [self._row(arm_id) for arm_id in ids]
            self._offered = ids, self._problem._replace(arms=self._problem.arms[rows])
        return ids[int(self._rule.choose(self.belief, self._offered[1], None))]

    def _row(self, arm_id: Any) -> int:
        try:
            return self._place[arm_id]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, list(self._place)[:10]))
            more = ", …" if len(self._place) > 10 else ""
            problem = f"is {arm_id!r}, which is not one of the arms"
            raise errors.InvalidInput("arm_id", problem, f"valid: {known}{more}") from None

    def __repr__(self) -> str:
        """River's table of the arms, which needs at least one update."""
        if self._rewards:
            return str(super().__repr__())  # type: ignore[no-untyped-call]
        return f"KalmanPolicy({self._rule.label}, {len(self._place)} arms, no rewards yet)"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the policy object, whose functions cannot be pickled; its name is stored."""
        return {name: value for name, value in self.__dict__.items() if name != "_rule"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the policy object again."""
        self.__dict__.update(state)
        self._rule = _rule(self.policy)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        model = LGDS(np.diag([0.9, 0.5]), np.eye(2), reward_std=0.1)
        for policy in ("idea", "kode", "kalman_ucb(width=2)"):
            yield {"model": model, "arms": {"a": [1.0, 0.0], "b": [0.6, 0.8]}, "policy": policy}


def _rule(policy: str | Policy | Bonus) -> Policy:
    if callable(policy):
        return optimistic(getattr(policy, "__name__", "bonus"), policy)
    return make(policy)
