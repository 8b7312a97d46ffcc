"""The general form of a Kalman policy: a = argmax ⟨a, ẑ⟩ + u(a | P) (P12).

A Kalman policy *is* its bonus u, a pure function ``bonus(cov, model, arms) -> (k,)``. The same
function serves the policy, the bounds, the metric and the schedule.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from driftbandit import kalman
from driftbandit.arrays import Array, dots, namespace, times
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.policies.base import Policy, Problem, highest
from driftbandit.policies.filtering import filtering
from driftbandit.policies.outline import Outline

__all__ = ["Bonus", "arm_variances", "optimistic"]

Bonus = Callable[..., Array]
"""``bonus(cov, model, arms, **parameters) -> (k,)``"""


def optimistic(
    name: str,
    bonus: Bonus,
    *,
    on_sphere: Callable[[Belief, Problem, Array], Array] | None = None,
    outline: Callable[..., Outline] | None = None,
    **parameters: float,
) -> Policy:
    """Make the Kalman policy that plays argmax ⟨a, ẑ⟩ + u(a | P) and filters its reward (P12).

    Args:
        name: how tables and logs call it.
        bonus: u, ``bonus(cov, model, arms, **parameters) -> (k,)``.
        on_sphere: the unit vector that maximizes the same, ``on_sphere(belief, problem, noise)``;
            None: only lists of arms are played.
        outline: what ``bonus`` is made of, ``outline(cov, model, **parameters) -> Outline``, so
            that `Agent` need not score every one of very many arms; None: it does.
        **parameters: passed on to ``bonus`` every round.

    Example:
        >>> greedy = optimistic("greedy", lambda cov, model, arms: 0 * arms[:, 0])
        >>> greedy.name
        'greedy'
    """
    scores = _Scores(bonus)
    return filtering(
        name,
        functools.partial(_prepare, parameters),
        highest(scores),
        parameters=parameters,
        scores=scores,
        on_sphere=on_sphere,
        outline=outline and functools.partial(_outlined, outline),
    )


def _prepare(
    parameters: Mapping[str, float], model: LGDS, arms: Array, rounds: int
) -> tuple[Mapping[str, Any], Belief]:
    return parameters, kalman.prior(model)


@dataclasses.dataclass(frozen=True)  # equal for the same bonus, so that it compiles once
class _Scores:
    bonus: Bonus

    def __call__(self, belief: Belief, problem: Problem) -> tuple[Array, Array]:
        model, arms, parameters = problem
        return arms @ belief.mean, self.bonus(belief.cov, model, arms, **parameters)


def _outlined(
    outline: Callable[..., Outline], belief: Belief, problem: Problem
) -> tuple[Array, Outline]:
    return belief.mean, outline(belief.cov, problem.model, **problem.constants)


def arm_variances(cov: Array, arms: Array) -> tuple[Array, Array]:
    """Return the rows (P a)ᵀ, k × d, and aᵀPa, k, never below zero."""
    xp = namespace(cov)
    cross = times(arms, cov)
    return cross, xp.maximum(dots(cross, arms), xp.zeros((), dtype=cov.dtype))
