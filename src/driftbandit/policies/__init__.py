"""Every policy, by name: one registry line each.

``available()`` names them, ``make("kalman_ucb", width=2)`` or ``make("kalman_ucb(width=2)")``
builds one, and ``driftbandit.policies.idea.bonus`` is a Kalman policy's bonus itself. Your own
policy needs no entry here: `simulate` and `Agent` take `Policy` objects, too.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from driftbandit import errors
from driftbandit.actions import FINITE, ActionSet
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.policies.base import (
    ActionAbilities,
    AgentAbilities,
    BatchAbilities,
    LengthRatio,
    Noise,
    Policy,
    Problem,
    highest,
)
from driftbandit.policies.optimistic import filtering, optimistic

__all__ = [
    "PREFERRED",
    "REGISTRY",
    "TITLES",
    "ActionAbilities",
    "AgentAbilities",
    "BatchAbilities",
    "Entry",
]
__all__ += ["LengthRatio", "Noise", "Policy", "Problem", "available", "check_contexts", "chosen"]
__all__ += [
    "default",
    "filtering",
    "filters",
    "highest",
    "idea",
    "kalman_ucb",
    "kode",
    "label_among",
    "make",
    "optimistic",
    "short_label",
    "title",
]


@dataclass(frozen=True)
class Entry:
    """What is known about a policy; every other list of policies is derived from these entries.

    Example:
        >>> entry = REGISTRY["kalman_ucb"]
        >>> entry.title, entry.filters, entry.quick
        ('Kalman-UCB', True, True)
        >>> entry.policy.label, entry.build(width=3).label
        ('kalman_ucb(width=1)', 'kalman_ucb(width=3)')
        >>> entry.bonus is kalman_ucb.bonus, REGISTRY["ucb"].bonus
        (True, None)
        >>> REGISTRY["lookahead"].max_arms, entry.max_arms, entry.sphere
        (2000, None, True)
    """

    function: str  # the function in this folder that builds it, such as "idea.policy"
    title: str  # its name in papers
    filters: bool  # whether it knows the model and runs a Kalman filter
    quick: bool = True  # whether `replay`, which plays round by round, plays it by default
    independent: bool = False  # whether it plays only independent arms

    @property
    def build(self) -> Callable[..., Policy]:
        """The function itself; its arguments are the tuning parameters."""
        module, _, name = self.function.partition(".")
        function: Callable[..., Policy]
        function = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        return function

    @functools.cached_property
    def policy(self) -> Policy:
        """The policy with its default parameters."""
        return self.build()

    @property
    def sphere(self) -> bool:
        """Whether it plays the unit sphere."""
        return self.policy.actions.on_sphere is not None

    @property
    def max_arms(self) -> int | None:
        """The longest list of arms it plays; None: any."""
        return self.policy.actions.max_arms

    @property
    def bonus(self) -> Callable[..., Any] | None:
        """u(a | P), ``bonus(cov, model, arms)``; None: the policy is not argmax ⟨a, ẑ⟩ + u."""
        return getattr(self.policy.scores, "bonus", None)


REGISTRY: dict[str, Entry] = {
    "reach": Entry("reach.policy", "Reach", filters=True),
    "lookahead": Entry("lookahead.policy", "Lookahead", filters=True, quick=False),
    "idea": Entry("idea.policy", "IDEA", filters=True),
    "kode": Entry("kode.policy", "KODE", filters=True),
    "kalman_ucb": Entry("kalman_ucb.policy", "Kalman-UCB", filters=True),
    "thompson": Entry("thompson.policy", "Thompson", filters=True, quick=False),
    "information_directed": Entry("information_directed.policy", "IDS", filters=True, quick=False),
    "kalman_oracle": Entry("kalman_oracle.policy", "Kalman Oracle", filters=True, quick=False),
    "ucb": Entry("ucb.ucb", "UCB", filters=False),
    "sliding_window_ucb": Entry("ucb.sliding_window_ucb", "SW-UCB", filters=False),
    "discounted_ucb": Entry("ucb.discounted_ucb", "D-UCB", filters=False),
    "rexp3": Entry("rexp3.policy", "Rexp3", filters=False),
    "oful": Entry("linear.oful", "OFUL", filters=False),
    "discounted_linucb": Entry("linear.discounted_linucb", "D-LinUCB", filters=False),
    "sliding_window_linucb": Entry(
        "linear.sliding_window_linucb", "SW-LinUCB", filters=False, quick=False
    ),
    "weighted_linucb": Entry("linear.weighted_linucb", "LB-WeightUCB", filters=False, quick=False),
    "restarted_linucb": Entry("linear.restarted_linucb", "RestartUCB", filters=False, quick=False),
    "random": Entry("random.policy", "Random", filters=False, quick=False),
    "whittle": Entry("whittle.policy", "Whittle", filters=True, quick=False, independent=True),
}
"""In the order of tables, and of colors in figures."""

TITLES = {name: entry.title for name, entry in REGISTRY.items()}
"""Each policy's name in papers."""

PREFERRED = "reach"
"""What plays where nobody names a policy, and what advice chooses among equally good policies."""

_DEPRECATED = {"rollout": Entry("rollout.policy", "Rollout", filters=True, quick=False)}
"""Policies that no list shows; `make` builds them and warns: use `PREFERRED`."""

_SUGGESTED = {"linucb": "oful", "lin_ucb": "oful", "greedy": "kode", "exp3": "rexp3"}
_SUGGESTED |= {"ts": "thompson", "thompson_sampling": "thompson"}
"""Names used elsewhere, and what the policy is called here."""


def available(independent: bool = False) -> tuple[str, ...]:
    """Names of the registered policies, in the order of tables.

    Args:
        independent: also those that play only independent arms, each with a state of its own.

    Example:
        >>> available()[:4], set(available(independent=True)) - set(available())
        (('reach', 'lookahead', 'idea', 'kode'), {'whittle'})
    """
    return tuple(name for name, entry in REGISTRY.items() if independent or not entry.independent)


def default(
    actions: ActionSet | None = None, n_arms: int = 1, contexts: bool = False
) -> tuple[str, ...]:
    """Names of the policies that are compared by default: those `available` that can play the arms.

    A single policy that nobody names is `PREFERRED`.

    Args:
        actions: only those that can play this action set; None: all.
        n_arms: its number of arms.
        contexts: only those that can play arms that contexts change.

    Example:
        >>> default() == available(), set(default()) - set(default(contexts=True))
        (True, {'rexp3'})
    """
    names = list(available())
    if actions is not None:
        names = [n for n in names if not actions.refusal(REGISTRY[n].policy, n_arms, "policy")]
    if contexts:
        names = [name for name in names if REGISTRY[name].policy.actions.contexts]
    return tuple(names)


def check_contexts(policy: Policy, argument: str = "policy", *, online: bool = True) -> None:
    """Refuse a policy that cannot play arms that contexts change.

    Args:
        policy: the policy.
        argument: what the message calls it.
        online: whether contexts are known one round at a time, not all in advance.

    Example:
        >>> check_contexts(make("idea"))
        >>> check_contexts(make("rexp3"))
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: policy: rexp3 cannot play arms that contexts change; ...
    """
    able = ("online",) if online else ("online", "in advance")
    if policy.actions.contexts in able:
        return
    reason = "cannot play arms that contexts change"
    if policy.actions.contexts is not None:
        reason += ", unless it knows all contexts in advance"
    names = [name for name, one in REGISTRY.items() if one.policy.actions.contexts in able]
    raise errors.InvalidInput(argument, f"{policy.name} {reason}", f"valid: {', '.join(names)}")


def filters(label: str) -> bool:
    """Whether a registered policy, with or without parameters, runs a Kalman filter.

    Args:
        label: the policy's name, with parameters or without; False for one that is unknown.

    Example:
        >>> filters("kalman_ucb(width=2)"), filters("ucb"), filters("yours")
        (True, False, False)
    """
    entry = _entries().get(label.partition("(")[0])
    return entry is not None and entry.filters


def title(label: str) -> str:
    """A policy as the papers write it, with its parameters if it has any.

    Args:
        label: the policy's name, with parameters or without; an unknown one is returned as it is.

    Example:
        >>> title("idea"), title("kalman_ucb(width=2)"), title("yours")
        ('IDEA', 'Kalman-UCB(width=2)', 'yours')
    """
    name, bracket, parameters = label.partition("(")
    entry = _entries().get(name)
    return (entry.title if entry else name) + bracket + parameters


def make(policy: str | Policy, **parameters: Any) -> Policy:
    """Build a policy from its name, from text like ``kalman_ucb(width=2)``, or pass one through.

    A name may be written as in `available` or as in `TITLES`, in any case: ``kalman_ucb``,
    ``Kalman-UCB`` and ``KALMAN UCB`` are one policy.

    Args:
        policy: the name, the text or the `Policy`.
        **parameters: tuning parameters by name, instead of those in the text.

    Raises:
        InvalidInput: the name or a parameter is unknown; the message suggests the closest one.

    Example:
        >>> make("kalman_ucb(width=2)").parameters
        {'width': 2.0}
        >>> make("Kalman-UCB", width=2) == make("kalman_ucb(width=2)")
        True
    """
    if isinstance(policy, Policy):
        for key in parameters:
            problem = "was given together with a Policy object"
            raise errors.InvalidInput(key, problem, "give a name instead")
        return policy
    if not isinstance(policy, str):
        raise errors.InvalidInput("policy", f"is {policy!r}", "give a name or a Policy")
    match = re.fullmatch(r"\s*(\w[\w -]*?)\s*(?:\((.*)\))?\s*", policy, re.ASCII)
    if match is None:
        remedy = "write a name, or name(parameter=number, …)"
        raise errors.InvalidInput("policy", f"cannot read {policy!r}", remedy)
    name = _known(match[1])
    for part in filter(str.strip, (match[2] or "").split(",")):
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals:
            problem = f"cannot read {part.strip()!r} in {policy!r}"
            raise errors.InvalidInput("policy", problem, "write parameter=number")
        if key in parameters:
            raise errors.InvalidInput("policy", f"{key!r} is twice in {policy!r}", "give it once")
        parameters[key] = _number(text, f"{name}({key}=…)")
    made = _made(name, **parameters)
    if name in _DEPRECATED:
        better = f"use {PREFERRED}, which is faster and has about the same regret or less"
        warnings.warn(f"{name} is deprecated; {better}", FutureWarning, stacklevel=1)  # shown once
    return made


def _made(name: str, /, **parameters: Any) -> Policy:
    """The policy with this name, without a warning: a copy needs none."""
    entry = _entries()[name]
    if not parameters:
        return entry.policy
    valid = list(inspect.signature(entry.build).parameters)
    for key in parameters:
        errors.closest(key, f"{name}({key}=…)", valid)
    return entry.build(**parameters)


def chosen(
    policies: Any = None, actions: ActionSet = FINITE, n_arms: int = 1, contexts: bool = False
) -> dict[str, Policy]:
    """Policies by label: their name, with the parameters that are not the default ones.

    One's own policy has no defaults: its label is its name, with all parameters if it occurs twice.

    Args:
        policies: a name, a `Policy`, or several of them; None: `default` for these arms.
        actions: what they must be able to play, with ``n_arms`` arms.
        contexts: whether contexts, all of them known in advance, change the arms.

    Example:
        >>> list(chosen(["idea", "kalman_ucb", "kalman_ucb(width=2)"]))
        ['idea', 'kalman_ucb', 'kalman_ucb(width=2)']
    """
    if policies is None:
        policies = default(actions, n_arms, contexts)
    if isinstance(policies, str | Policy):
        policies = [policies]
    if not isinstance(policies, Iterable):
        raise errors.InvalidInput("policies", f"is {policies!r}", "give a list of names")
    made = [make(policy) for policy in policies]
    if not made:
        raise errors.InvalidInput("policies", "is empty", "name at least one policy")
    for policy in made:
        if not policy.name.strip():
            raise errors.InvalidInput("policies", f"has one named {policy.name!r}", "name it")
        policy.check_plays(actions, n_arms, "policies")
        if contexts:
            check_contexts(policy, "policies", online=False)
    names = [policy.name for policy in made]
    labels: dict[str, Policy] = {}
    for policy in made:
        alone = _defaults(policy) is None and names.count(policy.name) == 1
        label = policy.name if alone else short_label(policy)
        if label in labels:
            problem = f"{policy.label!r} is named twice"
            raise errors.InvalidInput("policies", problem, "name each once")
        labels[label] = policy
    return labels


def short_label(policy: Policy) -> str:
    """A policy's name, with the parameters that are not the default ones.

    Args:
        policy: the policy; one of your own has no defaults, so that all parameters are shown.

    Example:
        >>> short_label(make("discounted_ucb")), short_label(make("discounted_ucb", gamma=0.9))
        ('discounted_ucb', 'discounted_ucb(gamma=0.9)')
        >>> make("discounted_ucb", gamma=0.9).label  # all of them
        'discounted_ucb(gamma=0.9, xi=0.6)'
    """
    usual = _defaults(policy)
    if usual is None:
        return policy.label
    changed = {key: value for key, value in policy.parameters.items() if value != usual[key]}
    return replace(policy, parameters=changed).label


def _defaults(policy: Policy) -> Mapping[str, Any] | None:
    """The parameters of the registered policy; None: it is one's own, even if it has its name."""
    entry = _entries().get(policy.name)
    if entry is None or entry.policy.parameters.keys() != policy.parameters.keys():
        return None
    return entry.policy.parameters


def label_among(labels: Iterable[str], policy: Policy, *, any_parameters: bool = False) -> str:
    """The label under which a policy plays; its own one, if none of the labels is right.

    Args:
        labels: those of `chosen`, or all parameters in parentheses.
        policy: the policy.
        any_parameters: whether the only label with its name is right, whatever the parameters.

    Example:
        >>> labels = ["idea", "kalman_ucb(width=2)", "ucb(delta=0.1)"]
        >>> label_among(labels, make("kalman_ucb", width=2)), label_among(labels, make("ucb"))
        ('kalman_ucb(width=2)', 'ucb(delta=0.1)')
        >>> label_among(labels, make("kalman_ucb"))
        'kalman_ucb'
        >>> label_among(labels, make("kalman_ucb"), any_parameters=True)
        'kalman_ucb(width=2)'
    """
    labels, own = list(labels), short_label(policy)
    if own in labels:
        return own
    alike = [label for label in labels if label.partition("(")[0] == policy.name]
    for label in alike:
        with contextlib.suppress(errors.InvalidInput):  # one's own cannot be made from its name
            if make(label) == policy:
                return label
    if len(alike) == 1 and (any_parameters or _defaults(policy) is None):
        return alike[0]
    return own


def plain(name: str) -> str:
    """The name in lower case with underscores: two names are one policy if this is the same."""
    return re.sub("[ -]+", "_", name.lower())


def _entries() -> dict[str, Entry]:
    """Every policy that `make` builds."""
    return REGISTRY | _DEPRECATED


def _known(text: str) -> str:
    """The registered name of what a user wrote."""
    titles = {plain(entry.title): name for name, entry in _entries().items()}
    given = plain(text)
    if given in _entries() or given in titles:
        return titles.get(given, given)
    raise errors.unknown(text, "policy", sorted(REGISTRY), _SUGGESTED.get(given, given))


def _number(text: str, argument: str) -> float | int:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        raise errors.InvalidInput(argument, f"{text!r} is not a number", "give a number") from None


def _pickled(policy: Policy) -> tuple[Any, ...]:
    """By name if it is in the registry; otherwise by its functions, which must have names."""
    if _defaults(policy) is not None:
        made = functools.partial(_made, policy.name, **policy.parameters)
        with contextlib.suppress(errors.InvalidInput):
            if made() == policy:
                return made, ()
    return Policy, policy.values()


copyreg.pickle(Policy, _pickled)
