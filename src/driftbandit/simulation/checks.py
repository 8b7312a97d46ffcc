"""What `simulate` checks before any work: systems, policies, precision, device."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from driftbandit import errors
from driftbandit.actions import FINITE, ActionSet, action_set
from driftbandit.model import LGDS
from driftbandit.policies import Policy, default, make
from driftbandit.system import System, pair

__all__ = [
    "Pair",
    "check_range",
    "checked_beliefs",
    "checked_device",
    "checked_dtype",
    "checked_policies",
    "checked_regret",
    "checked_systems",
]

Pair = tuple[LGDS, np.ndarray]
"""A model and its arms."""

REGRETS = ("mean", "noisy", "hindsight")
"""Definitions of per-round regret; see `simulate`."""

LARGEST = {"float64": errors.LARGEST, "float32": 1e30}
"""Largest variance each precision may meet: products of two must still be numbers."""


def checked_systems(model: Any, arms: Any, warmup: int) -> tuple[list[Pair], ActionSet]:
    """Every system with its rows, all of one shape, started after ``warmup`` rounds; their set."""
    warmup = errors.whole_number(warmup, "warmup", low=0)
    systems, actions = _checked_pairs(_pairs(model, arms), "model")
    return [(_warmed_up(lgds, warmup), rows) for lgds, rows in systems], actions


def _checked_pairs(pairs: list[Any], argument: str) -> tuple[list[Pair], ActionSet]:
    systems: list[Pair] = []
    found: set[ActionSet] = set()
    actions: ActionSet = FINITE
    for index, one in enumerate(map(pair, pairs)):
        if not isinstance(one, tuple | list) or len(one) != 2 or not isinstance(one[0], LGDS):
            raise errors.InvalidInput(
                f"{argument}[{index}]",
                f"has type {type(one).__name__}",
                "give Systems or pairs of (LGDS, arms)",
            )
        lgds, rows = one
        name = "arms" if len(pairs) == 1 else f"arms of system {index}"
        actions = action_set(rows, name)
        rows = actions.rows(rows, lgds, name)
        found.add(actions)
        if systems and rows.shape != systems[0][1].shape:
            raise errors.InvalidInput(
                f"arms of system {index}",
                f"have shape {rows.shape}, those of system 0 {systems[0][1].shape}",
                "simulate systems of one shape together",
            )
        lgds.start_cov()  # says so if there is none
        systems.append((lgds, rows))
        if len(found) > 1:
            problem = "are a list in some systems and the sphere in others"
            raise errors.InvalidInput("arms", problem, "simulate the two apart")
    return systems, actions


def _warmed_up(lgds: LGDS, warmup: int) -> LGDS:
    """The system ``warmup`` rounds later: the law of z(0) moves on, with no need to play it."""
    if not warmup or (lgds.initial_cov is None and lgds.initial_mean is None):
        return lgds
    mean = None if lgds.initial_mean is None else lgds.state_mean(warmup)
    moved = None if lgds.initial_cov is None else lgds.state_cov(warmup)
    sizes = [np.abs(part).max() for part in (mean, moved) if part is not None]
    if not max(sizes) < errors.LARGEST:
        raise errors.InvalidInput(
            "warmup", f"is {warmup}, by when the state outgrows any number", "wait less"
        )
    return dataclasses.replace(lgds, initial_cov=moved, initial_mean=mean)


def _pairs(model: Any, arms: Any) -> list[Any]:
    if isinstance(model, System):
        return [pair(model, arms)]
    if isinstance(model, LGDS):
        if arms is None:
            remedy = 'give a k × d array of arms, or "sphere"'
            raise errors.InvalidInput("arms", "is missing", remedy)
        return [(model, arms)]
    if arms is not None:
        raise errors.InvalidInput(
            "arms", "was given beside a sequence of systems", "put arms into the pairs"
        )
    if not isinstance(model, Iterable):
        raise errors.InvalidInput(
            "model",
            f"has type {type(model).__name__}",
            "give a System, an LGDS with arms, or a sequence of (LGDS, arms)",
        )
    pairs = list(model)
    if not pairs:
        raise errors.InvalidInput("model", "is an empty sequence", "give at least one system")
    return pairs


def checked_beliefs(
    assumed: Any, systems: list[Pair], warmup: int, actions: ActionSet = FINITE
) -> list[Pair]:
    """What the learners take each system to be: the truth, or a system of the same shape."""
    if assumed is None:
        return systems
    try:
        return _assumed(assumed, systems, warmup, actions)
    except errors.InvalidInput as error:
        raise error.of("assumed") from None


def _assumed(assumed: Any, systems: list[Pair], warmup: int, actions: ActionSet) -> list[Pair]:
    if not isinstance(assumed, Iterable) or isinstance(assumed, str | dict):
        raise errors.InvalidInput(
            "assumed", f"has type {type(assumed).__name__}", "give a sequence of (LGDS, arms)"
        )
    pairs = list(assumed)
    if len(pairs) != len(systems):
        raise errors.InvalidInput(
            "assumed", f"has {len(pairs)} systems for {len(systems)}", "give one for each"
        )
    learned, theirs = _checked_pairs(pairs, "assumed")
    if theirs != actions:
        problem = f"has {theirs.title} for arms, the systems {actions.title}"
        raise errors.InvalidInput("assumed", problem, f"assume {actions.title} too")
    if learned[0][1].shape != systems[0][1].shape:
        raise errors.InvalidInput(
            "assumed",
            f"has arms of shape {learned[0][1].shape}, the systems {systems[0][1].shape}",
            "assume as many states and arms as there are",
        )
    return [(_warmed_up(lgds, warmup), rows) for lgds, rows in learned]


def checked_policies(
    policies: Any, actions: ActionSet = FINITE, n_arms: int = 1
) -> dict[str, Policy]:
    """Policies by label: their name, with parameters where a name occurs twice.

    None: those that play by default and can play these arms.
    """
    if policies is None:
        policies = default(actions, n_arms)
    if isinstance(policies, str | Policy):
        policies = [policies]
    if not isinstance(policies, Iterable):
        raise errors.InvalidInput("policies", f"is {policies!r}", "give a list of names")
    made = [make(policy) for policy in policies]
    if not made:
        raise errors.InvalidInput("policies", "is empty", "name at least one policy")
    for policy in made:
        policy.check_plays(actions, n_arms, "policies")
    names = [policy.name for policy in made]
    labels: dict[str, Policy] = {}
    for policy in made:
        label = policy.label if names.count(policy.name) > 1 else policy.name
        if label in labels:
            raise errors.InvalidInput("policies", f"{label!r} stands twice", "name each once")
        labels[label] = policy
    return labels


def checked_regret(regret: Any, actions: ActionSet) -> str:
    """How per-round regret is defined."""
    regret = errors.closest(regret, "regret", REGRETS)
    actions.check_regret(regret)
    return regret


def checked_dtype(dtype: Any) -> np.dtype:
    """float64 or float32."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.name not in LARGEST:
        raise errors.InvalidInput("dtype", f"is {dtype!r}", "give float64 or float32")
    return kind


def checked_device(name: str | None) -> Any:
    """The JAX device of that name, or the one JAX prefers."""
    if name is None:
        return jax.devices()[0]
    name = errors.closest(name, "device", ("cpu", "gpu"))
    try:
        return jax.devices(name)[0]
    except RuntimeError:
        raise errors.InvalidInput(
            "device", f"JAX finds no {name!r} here", "use cpu, or install driftbandit[gpu]"
        ) from None


def check_range(systems: list[Pair], rounds: int, dtype: np.dtype, argument: str = "model") -> None:
    """Refuse systems whose variances outgrow what the precision can hold within ``rounds``."""
    limit = LARGEST[dtype.name]
    for index, (lgds, arms) in enumerate(systems):
        cov = lgds.settled_moment(rounds)
        if not lgds.is_stable and not np.abs(cov).max() < limit:
            raise errors.InvalidInput(
                "rounds",
                f"is {rounds}, by when the state of system {index} (spectral radius "
                f"{lgds.spectral_radius:g}) exceeds what {dtype.name} can hold",
                "play fewer rounds",
            )
        largest = max(
            np.abs(cov).max(),
            np.abs(lgds.start_cov()).max(),
            np.abs(lgds.start_mean()).max() ** 2,
            np.einsum("kd,de,ke->k", arms, cov, arms).max(),
            float(lgds.reward_std) ** 2,
        )
        if not largest < limit:
            raise errors.InvalidInput(
                argument if len(systems) == 1 else f"{argument}[{index}]",
                f"has variances up to {largest:.3g}, more than {dtype.name} can work with",
                f"rescale states or arms to stay below {limit:g}",
            )
