"""Systems and policies as stacked arrays, with a leading systems axis."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from driftbandit.actions import ActionSet
from driftbandit.model import factor
from driftbandit.policies import Policy
from driftbandit.simulation import programs
from driftbandit.simulation.checks import Pair

__all__ = ["Player", "environment", "known", "prepared"]


class Player(NamedTuple):
    """A policy, prepared for every system."""

    role: str
    """Name of the policy's random stream."""
    rule: programs.Rule
    constants: Any
    """Leaves with a leading systems axis."""
    state: Any
    """Leaves with a leading systems axis."""
    scratch_size: int
    """Numbers a run holds while it chooses."""


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def environment(systems: list[Pair]) -> programs.Environment:
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


def known(systems: list[Pair]) -> Any:
    """What all policies are told of the systems: models and arms."""
    return _stack([(lgds, arms) for lgds, arms in systems])


def prepared(policy: Policy, systems: list[Pair], rounds: int, actions: ActionSet) -> Player:
    """The policy as it starts on every system."""
    if policy.batch.prepare_all is not None:
        each = policy.batch.prepare_all(systems, rounds)
    else:
        each = [policy.prepare(lgds, arms, rounds) for lgds, arms in systems]
    constants = [dict(found) for found, _ in each]
    starts = [state for _, state in each]
    role = f"policy:{policy.name}"
    arms, states = systems[0][1].shape
    scratch_size = actions.scratch_size(policy, states, arms)
    rule = programs.Rule.of(policy, actions)
    return Player(role, rule, _stack(constants), _stack(starts), scratch_size)
