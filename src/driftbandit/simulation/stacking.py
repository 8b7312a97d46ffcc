"""Systems and policies as stacked arrays, with a leading systems axis."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandit.model import factor
from driftbandit.policies import Policy, Problem
from driftbandit.simulation import programs
from driftbandit.simulation.checks import System

__all__ = ["Player", "environment", "prepared"]


class Player(NamedTuple):
    """A policy, prepared for every system."""

    role: str
    """Name of the policy's random stream."""
    rule: programs.Rule
    problem: Problem
    """Leaves with a leading systems axis."""
    state: Any
    """Leaves with a leading systems axis."""


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def environment(systems: list[System]) -> programs.Environment:
    """The true systems."""
    return _stack(
        [
            programs.Environment(
                lgds,
                arms,
                factor(lgds.process_cov),
                factor(lgds.start_cov()),
                lgds.start_mean(),
            )
            for lgds, arms in systems
        ]
    )


def prepared(policy: Policy, systems: list[System], rounds: int) -> Player:
    """The policy as it starts on every system."""
    if policy.prepare_all is not None:
        each = policy.prepare_all(systems, rounds)
    else:
        each = [policy.prepare(lgds, arms, rounds) for lgds, arms in systems]
    problem = [
        Problem(lgds, arms, dict(constants))
        for (lgds, arms), (constants, _) in zip(systems, each, strict=True)
    ]
    states = [state for _, state in each]
    role = f"policy:{policy.name}"
    return Player(role, programs.Rule.of(policy), _stack(problem), _stack(states))
