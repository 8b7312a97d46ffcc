"""Every policy, by name: one short file each, one list of them.

``available()`` names them, ``make("kalman_ucb", width=2)`` or ``make("kalman_ucb(width=2)")``
builds one, and ``driftbandit.policies.idea.bonus`` is a Kalman policy's bonus itself. Your own
policy needs no entry here: `simulate` and `Agent` take `Policy` objects beside names.
"""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

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
    "TITLES",
    "Noise",
    "Outline",
    "Policy",
    "Problem",
    "available",
    "default",
    "make",
    "optimistic",
]

_MODULES: dict[str, ModuleType] = {
    "lookahead": lookahead,
    "idea": idea,
    "kode": kode,
    "kalman_ucb": kalman_ucb,
    "rollout": rollout,
    "thompson": thompson,
    "information_directed": information_directed,
    "kalman_oracle": kalman_oracle,
    "ucb": ucb,
    "sliding_window_ucb": sliding_window_ucb,
    "discounted_ucb": discounted_ucb,
    "rexp3": rexp3,
    "oful": oful,
    "discounted_linucb": discounted_linucb,
    "sliding_window_linucb": sliding_window_linucb,
    "weighted_linucb": weighted_linucb,
    "restarted_linucb": restarted_linucb,
    "random": random,
}

TITLES = {
    "idea": "IDEA",
    "kode": "KODE",
    "kalman_ucb": "Kalman-UCB",
    "kalman_oracle": "Kalman Oracle",
    "oful": "OFUL",
    "random": "Random",
    "rexp3": "Rexp3",
    "sliding_window_ucb": "SW-UCB",
    "ucb": "UCB",
    "discounted_ucb": "D-UCB",
    "discounted_linucb": "D-LinUCB",
    "sliding_window_linucb": "SW-LinUCB",
    "weighted_linucb": "LB-WeightUCB",
    "restarted_linucb": "RestartUCB",
    "lookahead": "Lookahead",
    "rollout": "Rollout",
    "thompson": "Thompson",
    "information_directed": "IDS",
}
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
    return tuple(_MODULES)


def default() -> tuple[str, ...]:
    """Those played where none are named: all but rollout, which takes longer than all together.

    Example:
        >>> set(available()) - set(default())
        {'rollout'}
    """
    return tuple(name for name in _MODULES if name != "rollout")


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
    build = _MODULES[name].policy
    valid = list(inspect.signature(build).parameters)
    for key in parameters:
        errors.closest(key, f"{name}({key}=…)", valid)
    made: Policy = build(**parameters)
    return made


def _plain(name: str) -> str:
    return re.sub("[ -]+", "_", name.lower())


def _known(text: str) -> str:
    """The registered name of what a user wrote."""
    titles = {_plain(title): name for name, title in TITLES.items()}
    plain = _plain(text)
    if plain in _MODULES or plain in titles:
        return titles.get(plain, plain)
    raise errors.unknown(text, "policy", sorted(_MODULES), _SUGGESTED.get(plain, plain))


def _number(text: str, argument: str) -> float | int:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        raise errors.InvalidInput(argument, f"{text!r} is not a number", "give a number") from None
