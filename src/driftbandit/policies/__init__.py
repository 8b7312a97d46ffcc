"""Every policy, by name: one short file each, one list of them.

``available()`` names them, ``make("kalman_ucb", width=2)`` or ``make("kalman_ucb(width=2)")``
builds one, and ``driftbandit.policies.idea.bonus`` is a Kalman policy's bonus itself. Your own
policy needs no entry here: `simulate` and `Agent` take `Policy` objects beside names.
"""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any, NamedTuple

from driftbandit import errors
from driftbandit.policies import (
    discounted_linucb,
    discounted_ucb,
    idea,
    information_directed,
    kalman_oracle,
    kalman_ucb,
    kode,
    lookahead,
    oful,
    random,
    restarted_linucb,
    rexp3,
    rollout,
    sliding_window_linucb,
    sliding_window_ucb,
    thompson,
    ucb,
    weighted_linucb,
)
from driftbandit.policies.base import Noise, Policy, Problem
from driftbandit.policies.optimistic import optimistic
from driftbandit.policies.outline import Outline

__all__ = [
    "REGISTRY",
    "TITLES",
    "Entry",
    "Noise",
    "Outline",
    "Policy",
    "Problem",
    "available",
    "default",
    "filters",
    "make",
    "optimistic",
    "title",
]


class Entry(NamedTuple):
    """What is said of a policy in one place; every other list of policies is made from these."""

    module: ModuleType
    """Its ``policy`` function builds it."""
    title: str
    """As the papers write it."""
    filters: bool
    """Whether it knows the model and runs a Kalman filter."""
    default: bool = True
    """Whether it plays where none are named."""
    quick: bool = True
    """Whether `replay`, which plays round by round, plays it where none are named."""


REGISTRY: dict[str, Entry] = {
    "lookahead": Entry(lookahead, "Lookahead", filters=True, quick=False),
    "idea": Entry(idea, "IDEA", filters=True),
    "kode": Entry(kode, "KODE", filters=True),
    "kalman_ucb": Entry(kalman_ucb, "Kalman-UCB", filters=True),
    "rollout": Entry(rollout, "Rollout", filters=True, default=False, quick=False),  # slowest
    "thompson": Entry(thompson, "Thompson", filters=True, quick=False),
    "information_directed": Entry(information_directed, "IDS", filters=True, quick=False),
    "kalman_oracle": Entry(kalman_oracle, "Kalman Oracle", filters=True, quick=False),
    "ucb": Entry(ucb, "UCB", filters=False),
    "sliding_window_ucb": Entry(sliding_window_ucb, "SW-UCB", filters=False),
    "discounted_ucb": Entry(discounted_ucb, "D-UCB", filters=False),
    "rexp3": Entry(rexp3, "Rexp3", filters=False),
    "oful": Entry(oful, "OFUL", filters=False),
    "discounted_linucb": Entry(discounted_linucb, "D-LinUCB", filters=False),
    "sliding_window_linucb": Entry(sliding_window_linucb, "SW-LinUCB", filters=False, quick=False),
    "weighted_linucb": Entry(weighted_linucb, "LB-WeightUCB", filters=False, quick=False),
    "restarted_linucb": Entry(restarted_linucb, "RestartUCB", filters=False, quick=False),
    "random": Entry(random, "Random", filters=False, quick=False),
}
"""In the order of tables."""

TITLES = {name: entry.title for name, entry in REGISTRY.items()}
"""Policies as the papers write them."""

_SUGGESTED = {
    "linucb": "oful",
    "lin_ucb": "oful",
    "ts": "thompson",
    "thompson_sampling": "thompson",
    "greedy": "kode",
    "exp3": "rexp3",
}
"""Names that are used elsewhere for something that is here, and what it is called here."""


def available() -> tuple[str, ...]:
    """Names of all registered policies, in the order of tables."""
    return tuple(REGISTRY)


def default() -> tuple[str, ...]:
    """Names of the policies that play by default: all but rollout, the slowest by far.

    Example:
        >>> set(available()) - set(default())
        {'rollout'}
    """
    return tuple(name for name, entry in REGISTRY.items() if entry.default)


def filters(label: str) -> bool:
    """Whether a registered policy, with or without parameters, runs a Kalman filter.

    Example:
        >>> filters("kalman_ucb(width=2)"), filters("ucb"), filters("yours")
        (True, False, False)
    """
    entry = REGISTRY.get(label.partition("(")[0])
    return entry is not None and entry.filters


def title(label: str) -> str:
    """A policy as the papers write it, with its parameters if it has any.

    Example:
        >>> title("idea"), title("kalman_ucb(width=2)"), title("yours")
        ('IDEA', 'Kalman-UCB(width=2)', 'yours')
    """
    name, bracket, parameters = label.partition("(")
    return TITLES.get(name, name) + bracket + parameters


def make(policy: str | Policy, **parameters: Any) -> Policy:
    """Build a policy from its name, from text like ``kalman_ucb(width=2)``, or pass one through.

    Names are read as in `available` or as in `TITLES`, in capitals or not: ``kalman_ucb``,
    ``Kalman-UCB`` and ``KALMAN UCB`` are one policy.

    Example:
        >>> make("kalman_ucb(width=2)").parameters
        {'width': 2.0}
    """
    if isinstance(policy, Policy):
        for key in parameters:
            raise errors.InvalidInput(key, "was given beside a made Policy", "give a name instead")
        return policy
    if not isinstance(policy, str):
        raise errors.InvalidInput("policy", f"is {policy!r}", "give a name or a Policy")
    match = re.fullmatch(r"\s*(\w[\w -]*?)\s*(?:\((.*)\))?\s*", policy, re.ASCII)
    if match is None:
        raise errors.InvalidInput(
            "policy", f"cannot read {policy!r}", "write a name, or name(parameter=number, …)"
        )
    name = _known(match[1])
    for part in filter(str.strip, (match[2] or "").split(",")):
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise errors.InvalidInput(
                "policy", f"cannot read {part.strip()!r} in {policy!r}", "write parameter=number"
            )
        if key in parameters:
            raise errors.InvalidInput("policy", f"{key!r} is twice in {policy!r}", "give it once")
        parameters[key] = _number(text, f"{name}({key}=…)")
    build = REGISTRY[name].module.policy
    valid = list(inspect.signature(build).parameters)
    for key in parameters:
        errors.closest(key, f"{name}({key}=…)", valid)
    made: Policy = build(**parameters)
    return made


def _plain(name: str) -> str:
    return re.sub("[ -]+", "_", name.lower())


def _known(text: str) -> str:
    """The registered name of what a user wrote."""
    titles = {_plain(text): name for name, text in TITLES.items()}
    plain = _plain(text)
    if plain in REGISTRY or plain in titles:
        return titles.get(plain, plain)
    raise errors.unknown(text, "policy", sorted(REGISTRY), _SUGGESTED.get(plain, plain))


def _number(text: str, argument: str) -> float | int:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        raise errors.InvalidInput(argument, f"{text!r} is not a number", "give a number") from None
