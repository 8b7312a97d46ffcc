"""The general form of a Kalman policy: a = argmax ⟨a, ẑ⟩ + u(a | P) (P12).

A Kalman policy *is* its bonus u, a pure function ``bonus(cov, model, arms) -> (k,)``. The same
function serves the policy, the bounds, the metric and the schedule.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from driftbandit import kalman
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
        >>> greedy = optimistic("greedy", lambda cov, model, arms: 0 * arms[:, 0])
        >>> greedy.name
        'greedy'
    """
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
        return arms @ belief.mean, self.bonus(belief.cov, model, arms, **parameters)


def _mean_and_ratio(
    length_ratio: Callable[..., LengthRatio], belief: Belief, problem: Problem
) -> tuple[Array, LengthRatio]:
    return belief.mean, length_ratio(belief.cov, problem.model, **problem.constants)


def arm_variances(cov: Array, arms: Array) -> tuple[Array, Array]:
    """The rows (P a)ᵀ, k × d, and aᵀPa ≥ 0, k numbers."""
    xp = namespace(cov)
    cross = times(arms, cov)
    return cross, xp.maximum(dots(cross, arms), xp.zeros((), dtype=cov.dtype))
