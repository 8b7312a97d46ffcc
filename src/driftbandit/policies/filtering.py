"""Policies whose state is the Kalman belief: they differ in how they choose alone (P5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driftbandit import kalman
from driftbandit.arrays import Array
from driftbandit.kalman import Belief
from driftbandit.policies.base import Policy, Problem

__all__ = ["filtering"]


def filtering(
    name: str,
    prepare: Callable[..., Any],
    choose: Callable[[Belief, Problem, Array], Array],
    **fields: Any,
) -> Policy:
    """A policy that filters the reward of the arm it played.

    Args:
        name: how tables and logs call it.
        prepare: ``prepare(model, arms, rounds) -> (constants, belief)``.
        choose: ``choose(belief, problem, noise) -> arm index``.
        **fields: others of `Policy`.
    """
    return Policy(
        name,
        prepare,
        choose,
        _update,
        reads_features=True,
        observe=_observe,
        advance=_advance,
        **fields,
    )


def _update(belief: Belief, problem: Problem, arm: Array, reward: Array) -> Belief:
    return kalman.step(belief, problem.model, problem.arms[arm], reward)


def _observe(belief: Belief, problem: Problem, arm: Array, reward: Array) -> Belief:
    return kalman.observe(belief, problem.model, problem.arms[arm], reward)


def _advance(belief: Belief, problem: Problem, rounds: int) -> Belief:
    return kalman.advance(belief, problem.model, rounds)
