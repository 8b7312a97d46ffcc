"""The online engine: one policy, one decision at a time, on NumPy alone.

    decision = agent.ask()
    agent.tell(decision, reward)

The policies are the very ones `simulate` plays; no compile, no JAX, tens of microseconds.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Self

import numpy as np

from driftbandit import errors, model_file
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies import Policy, Problem, make
from driftbandit.policies.base import check_kinds

__all__ = ["Agent", "Decision"]

FORMAT = 1
"""Version of the stored state."""


class Decision(NamedTuple):
    """What to play now."""

    id: int
    """Number of the round, from 0."""
    arm: int
    """Index of the arm to play."""


class Agent:
    """Decides round by round and learns from each reward.

    Args:
        model: the system that drives the rewards.
        arms: k × d.
        policy: a name such as "idea" or "kalman_ucb(width=2)", or a `Policy` of your own.
        rounds: the horizon, for policies that tune themselves to it.
        seed: of the policy's own random numbers, for those that draw some.

    Example:
        >>> from driftbandit import LGDS, Agent
        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
        >>> agent = Agent(model, arms=[[1.0, 0.0], [0.0, 1.0]])
        >>> decision = agent.ask()
        >>> agent.tell(decision, reward=-2.0)
        >>> decision.arm, agent.ask().arm
        (0, 1)
    """

    def __init__(
        self,
        model: LGDS,
        arms: Any,
        policy: str | Policy = "idea",
        *,
        rounds: int = 1000,
        seed: int = 0,
    ) -> None:
        self.policy = make(policy)
        self.rounds = errors.whole_number(rounds, "rounds", low=1)
        self.seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
        arms = checked_arms(arms, model)
        constants, self.state = self.policy.prepare(model, arms, self.rounds)
        self.problem = Problem(model, arms, constants)
        self._last = len(arms) - 1
        self.round = 0
        """Rounds told so far; the number of the next one."""
        self._pending: Decision | None = None

    def ask(self) -> Decision:
        """Choose an arm for this round; asking again before `tell` gives the same decision."""
        if self._pending is None:
            arm = int(self.policy.choose(self.state, self.problem, self._noise()))
            errors.whole_number(arm, f"arm of policy {self.policy.name!r}", low=0, high=self._last)
            self._pending = Decision(self.round, arm)
        return self._pending

    def tell(self, decision: Decision, reward: Any) -> None:
        """Learn what the decision paid, and move on to the next round.

        Args:
            decision: what `ask` returned last.
            reward: a finite number; for the Kalman Oracle the rewards of all k arms.
        """
        if not isinstance(decision, Decision) or decision != self.ask():
            raise errors.InvalidInput(
                "decision",
                f"is {decision!r}, but the open one is {self._pending!r}",
                "tell each decision once, in the order of asking",
            )
        if self.policy.sees_all_rewards:
            reward = errors.matrix(reward, "reward", shape=(len(self.problem.arms),))
        else:
            reward = errors.number(reward, "reward")
        state = self.policy.update(self.state, self.problem, decision.arm, reward)
        if self.round == 0:
            check_kinds(self.state, state)
        self.state = state
        self.round += 1
        self._pending = None

    def _noise(self) -> Any:
        noise = self.policy.noise
        if noise is None:
            return None
        # Counter-based: what round t draws does not depend on what was drawn before it.
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 0, self.round]))
        arms, states = self.problem.arms.shape
        shape = noise.shape(states, arms)
        return np.asarray(
            rng.random(shape) if noise.law == "uniform" else rng.standard_normal(shape)
        )

    def to_json(self) -> str:
        """The whole agent as JSON text; `from_json` goes on where this one stands, bit for bit."""
        return json.dumps(
            {
                "driftbandit_agent": FORMAT,
                "policy": self.policy.name,
                "parameters": dict(self.policy.parameters),
                "rounds": self.rounds,
                "seed": self.seed,
                "round": self.round,
                "model": model_file.to_document(self.problem.model, self.problem.arms),
                "state": _plain(self.state),
            },
            default=_plain,  # arrays and NumPy numbers among a policy's parameters
        )

    @classmethod
    def from_json(cls, text: str, policy: str | Policy | None = None) -> Self:
        """Bring back an agent from `to_json`.

        Args:
            text: what `to_json` returned.
            policy: the `Policy` itself, where it is one of your own.
        """
        try:
            stored = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise errors.InvalidInput("text", f"is not JSON ({error})", _REMEDY) from None
        if not isinstance(stored, dict) or "driftbandit_agent" not in stored:
            raise errors.InvalidInput("text", "is not a stored agent", _REMEDY)
        if stored["driftbandit_agent"] != FORMAT:
            raise errors.InvalidInput(
                "text",
                f"has format {stored['driftbandit_agent']!r}",
                f"this version reads format {FORMAT}",
            )
        try:
            model, arms = model_file.from_document(stored["model"])
            if policy is None:
                parameters = _object(stored["parameters"], "parameters")
                policy = make(stored["policy"], **parameters)
            policy = make(policy)
            own = json.loads(json.dumps(dict(policy.parameters), default=_plain))
            if (policy.name, own) != (stored["policy"], stored["parameters"]):
                raise errors.InvalidInput(
                    "policy",
                    f"is {policy.label}, stored was {stored['policy']} with {stored['parameters']}",
                    "give the stored one",
                )
            agent = cls(model, arms, policy, rounds=stored["rounds"], seed=stored["seed"])
            agent.state = _restored(stored["state"], agent.state, "state")
            agent.round = errors.whole_number(stored["round"], "round", low=0)
        except KeyError as error:
            raise errors.InvalidInput("text", f"lacks {error}", _REMEDY) from None
        return agent


_REMEDY = "give what Agent.to_json returned"


def _object(value: Any, argument: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise errors.InvalidInput("text", f"its {argument} is {value!r}", _REMEDY)
    return value


def _plain(state: Any) -> Any:
    """A state, which may hold states, as dictionaries and lists."""
    if hasattr(state, "_asdict"):
        return {name: _plain(value) for name, value in state._asdict().items()}
    return np.asarray(state).tolist()


def _restored(stored: Any, fresh: Any, name: str) -> Any:
    """The stored numbers with the fresh state's types, shapes and dtypes."""
    if hasattr(fresh, "_asdict"):
        fields = _object(stored, name)
        return type(fresh)(
            **{
                field: _restored(fields[field], value, f"{name}.{field}")
                for field, value in fresh._asdict().items()
            }
        )
    fresh = np.asarray(fresh)
    return errors.matrix(stored, name, shape=fresh.shape).astype(fresh.dtype)
