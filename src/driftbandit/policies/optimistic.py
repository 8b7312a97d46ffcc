"""The general form of a Kalman policy: a = argmax ⟨a, ẑ⟩ + u(a | P) (P12).

A Kalman policy *is* its bonus u, a pure function ``bonus(cov, model, arms) -> (k,)``. The same
function serves the policy, the bounds, the metric and the schedule.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from driftbandit import errors, kalman
from driftbandit.arrays import Array, dots, namespace, times
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.policies.base import (
    ActionAbilities,
    AgentAbilities,
    BatchAbilities,
    LengthRatio,
    Policy,
    Prepared,
    Problem,
    Systems,
    highest,
    kind_of,
)

Bonus = Callable[..., Array]  # ``bonus(cov, model, arms, **parameters) -> (k,)``
NO_CONSTANTS: Mapping[str, Any] = {}


def filtering(
    name: str,
    choose: Callable[[Belief, Problem, Array], Array],
    constants: Callable[..., Mapping[str, Any]] | Mapping[str, Any] = NO_CONSTANTS,
    **fields: Any,
) -> Policy:
    """A policy whose state is the Kalman belief: it filters the reward of the arm it played (P5).

    Args:
        name: for tables and logs.
        choose: ``choose(belief, problem, noise) -> arm index``.
        constants: what ``choose`` finds in ``problem.constants``; or a function that computes it,
            ``constants(model, arms, rounds)``. With a function that looks at the arms, the policy
            cannot play contexts; with one that does not, set ``ActionAbilities.contexts``.
        **fields: other fields of `Policy`.

    Example:
        It plays the arm with the highest expected reward after noise of its own.

        >>> from driftbandit import Agent
        >>> from driftbandit.arrays import first_highest
        >>> from driftbandit.policies import Noise
        >>> def choose(belief, problem, noise):
        ...     expected = problem.arms @ belief.mean
        ...     return first_highest(expected + problem.constants["width"] * noise)
        >>> shaken = filtering("shaken", choose, {"width": 0.1}, noise=Noise("normal", "arms"))
        >>> model = LGDS(np.eye(2) / 2, np.eye(2), reward_std=1.0)
        >>> agent = Agent(model, np.eye(2), policy=shaken)
        >>> agent.tell(agent.ask(), reward=0.5)
        'learned'
        >>> agent.policy.name, agent.policy.agent.reads_features
        ('shaken', True)
    """
    prepare = functools.partial(_prepare, constants)
    if not callable(constants):
        together = functools.partial(_prepare_stack, constants)
        fields["batch"] = fields.get("batch", BatchAbilities())._replace(prepare_stack=together)
        fields["actions"] = fields.get("actions", ActionAbilities())._replace(contexts="online")
    return Policy(name, prepare, choose, _update, agent=_ABILITIES, **fields)


def _prepare(constants: Any, model: LGDS, arms: Array, rounds: int) -> Prepared:
    found = constants(model, arms, rounds) if callable(constants) else constants
    return found, kalman.prior(model)


def _prepare_stack(constants: Mapping[str, Any], systems: Systems, rounds: int) -> Prepared:
    each = {name: np.stack([value] * len(systems)) for name, value in constants.items()}
    return each, kalman.priors([model for model, _ in systems])


def _update(belief: Belief, problem: Problem, arm: Array, reward: Array) -> Belief:
    return kalman.step(belief, problem.model, problem.arms[arm], reward)


def _observe(belief: Belief, problem: Problem, arm: Array, reward: Array) -> Belief:
    return kalman.observe(belief, problem.model, problem.arms[arm], reward)


def _advance(belief: Belief, problem: Problem, rounds: int) -> Belief:
    return kalman.advance(belief, problem.model, rounds)


_ABILITIES = AgentAbilities(reads_features=True, observe=_observe, advance=_advance)


def optimistic(
    name: str,
    bonus: Bonus,
    *,
    on_sphere: Callable[[Belief, Problem, Array], Array] | None = None,
    length_ratio: Callable[..., LengthRatio] | None = None,
    **parameters: float,
) -> Policy:
    """Make the Kalman policy that plays argmax ⟨a, ẑ⟩ + u(a | P) and filters its reward (P12).

    Args:
        name: for tables and logs.
        bonus: u, ``bonus(cov, model, arms, **parameters) -> (k,)``.
        on_sphere: ``on_sphere(belief, problem, noise)``, the unit vector that maximizes the same;
            None: the policy plays only lists of arms.
        length_ratio: ``length_ratio(cov, model, **parameters) -> LengthRatio``, which lets `Agent`
            screen very many arms; None: it scores every arm.
        **parameters: passed to ``bonus`` every round.

    Example:
        >>> def bonus(cov, model, arms, width):
        ...     return width * namespace(cov).sqrt(dots(arms @ cov, arms))
        >>> cautious = optimistic("cautious", bonus, width=-1.0)
        >>> cautious.label
        'cautious(width=-1)'
        >>> from driftbandit import Agent
        >>> model = LGDS(np.eye(2) / 2, np.diag([1.0, 4.0]), reward_std=1.0)
        >>> Agent(model, np.eye(2), policy=cautious).ask().arm  # the less uncertain one
        0
    """
    _check_call(name, bonus, parameters)
    ratio = length_ratio and functools.partial(_mean_and_ratio, length_ratio)
    return filtering(
        name,
        highest(_Scores(bonus)),
        parameters,
        parameters=parameters,
        actions=ActionAbilities(length_ratio=ratio, on_sphere=on_sphere),
    )


@dataclasses.dataclass(frozen=True)  # equal for the same bonus, so it compiles once
class _Scores:
    bonus: Bonus

    def __call__(self, belief: Belief, problem: Problem) -> tuple[Array, Array]:
        model, arms, parameters = problem
        bonuses = self.bonus(belief.cov, model, arms, **parameters)
        if getattr(bonuses, "shape", None) != arms.shape[:1]:
            remedy = f"return one number per arm, shape {arms.shape[:1]}"
            raise errors.InvalidInput("bonus", f"returns {kind_of(bonuses)}", remedy)
        return arms @ belief.mean, bonuses


def _check_call(name: str, bonus: Any, parameters: Mapping[str, Any]) -> None:
    """Refuse a bonus that cannot be called with what it will get."""
    if not callable(bonus):
        problem = f"is {kind_of(bonus)}"
        raise errors.InvalidInput("bonus", problem, "give a function of cov, model and arms")
    try:
        inspect.signature(bonus).bind(None, None, None, **parameters)
    except TypeError as error:
        given = "".join(f", {key}" for key in parameters)
        problem = f"cannot be called with cov, model, arms{given}: {error}"
        remedy = f"give its parameters to optimistic({name!r}, bonus, parameter=number)"
        if [*inspect.signature(bonus).parameters][:3] != ["cov", "model", "arms"]:
            remedy = f"write def bonus(cov, model, arms{given})"
        raise errors.InvalidInput(f"policy {name!r} bonus", problem, remedy) from error
    except ValueError:  # a function without a signature, such as NumPy's own
        return


def _mean_and_ratio(
    length_ratio: Callable[..., LengthRatio], belief: Belief, problem: Problem
) -> tuple[Array, LengthRatio]:
    return belief.mean, length_ratio(belief.cov, problem.model, **problem.constants)


def arm_variances(cov: Array, arms: Array) -> tuple[Array, Array]:
    """The rows (P a)ᵀ, k × d, and aᵀPa ≥ 0, k numbers."""
    xp = namespace(cov)
    cross = times(arms, cov)
    return cross, xp.maximum(dots(cross, arms), xp.zeros((), dtype=cov.dtype))
