"""Contexts: features that are known before a round's decision and change how arms read the state.

    arms(x) = A + Σ_j x_j B_j

A and all B_j are k × d and fixed. The feature x_j is one number for all arms, or one for each arm,
such as its price. A coefficient of a regression is then a state, constant or drifting, and B_j has
a one where an arm reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array
from driftbandit.model import LGDS, checked_arms

Contexts = Mapping[str, np.ndarray]  # B_j, k × d, by the feature's name, in the order of features
NO_CONTEXTS: Contexts = MappingProxyType({})
REMEDY = "give a mapping from each feature's name to a k × d array"


def checked(arms: Any, contexts: Any, model: LGDS) -> tuple[np.ndarray, Contexts]:
    """A and the B_j, read-only; an arm of zeros needs a context that changes it.

    Args:
        arms: A, k × d.
        contexts: B_j, k × d, by the feature's name; None: there are none.
        model: what the arms read.

    Example:
        >>> model = LGDS(np.eye(2) / 2, np.eye(2), reward_std=1.0)
        >>> arms, contexts = checked([[1, 0], [0, 0]], {"price": [[0, 0], [0, 1]]}, model)
        >>> arms.shape, list(contexts), contexts["price"].flags.writeable
        ((2, 2), ['price'], False)
    """
    if contexts is None or (isinstance(contexts, Mapping) and not contexts):
        return checked_arms(arms, model), NO_CONTEXTS
    if not isinstance(contexts, Mapping):
        raise errors.InvalidInput("contexts", f"is {_shown(contexts)}", REMEDY)
    if not isinstance(model, LGDS):
        raise errors.InvalidInput("model", f"has type {type(model).__name__}", "give an LGDS")
    rows = errors.matrix(arms, "arms", shape=(None, model.n_states))
    found: dict[str, np.ndarray] = {}
    for name, read_out in contexts.items():
        if not isinstance(name, str) or not name.strip():
            raise errors.InvalidInput("contexts", f"has a feature named {_shown(name)}", REMEDY)
        found[str(name)] = errors.matrix(read_out, argument_of(name, "contexts"), shape=rows.shape)
    zero = np.flatnonzero(~np.any([rows, *found.values()], axis=(0, 2)))
    if zero.size:
        problem = f"row {int(zero[0])} is the zero vector, and no context changes it"
        raise errors.InvalidInput("arms", problem, "an arm needs at least one non-zero entry")
    for array in (rows, *found.values()):
        array.setflags(write=False)
    return rows, MappingProxyType(found)


def read_rows(arms: Array, read_outs: Sequence[Array] | Array, values: Array) -> Array:
    """arms(x) = A + Σ_j x_j B_j.

    Args:
        arms, read_outs: A, k × d; the J matrices B_j.
        values: x, k × J; or of many rounds, n × k × J.

    Example:
        >>> read_rows(np.eye(2), [np.ones((2, 2))], np.array([[10.0], [20.0]])).tolist()
        [[11.0, 10.0], [20.0, 21.0]]
    """
    for place, read_out in enumerate(read_outs):
        arms = arms + values[..., place, None] * read_out
    return arms


def arms_in(
    arms: np.ndarray, contexts: Contexts, context: Any, names: Sequence[str | int]
) -> np.ndarray:
    """The rows of all arms in a context: see `System.arms_in`.

    Args:
        arms, contexts: A, k × d; B_j, k × d, by the feature's name.
        context: the value of every feature: one number for all arms, a list of k, or a mapping
            from each arm's name.
        names: of the arms.

    Returns:
        A + Σ_j x_j B_j, k × d.

    Example:
        >>> slopes = {"price": np.array([[0.0, 1.0], [0.0, 1.0]])}
        >>> context = {"price": {"left": 3.0, "right": 5.0}}
        >>> arms_in(np.array([[1.0, 0.0], [2.0, 0.0]]), slopes, context, ("left", "right")).tolist()
        [[1.0, 3.0], [2.0, 5.0]]
    """
    remedy = f"give a mapping with {', '.join(contexts)}"
    if context is None:
        raise errors.InvalidInput("context", "is missing", remedy)
    if not isinstance(context, Mapping):
        raise errors.InvalidInput("context", f"is {_shown(context)}", remedy)
    for name in context:  # before what is missing: a misspelled name is both
        errors.closest(name, "context", contexts)
    missing = [name for name in contexts if name not in context]
    if missing:
        raise errors.InvalidInput("context", f"lacks {', '.join(missing)}", remedy)
    values = np.empty((len(arms), len(contexts)))
    for place, name in enumerate(contexts):
        values[:, place] = _of_arms(context[name], argument_of(name), names)
    rows: np.ndarray = read_rows(arms, list(contexts.values()), values)
    if not errors.finite(rows):
        problem = "makes an arm larger than the largest allowed size"
        raise errors.InvalidInput("context", problem, f"stay below {errors.LARGEST:g}")
    return rows


def argument_of(feature: str, owner: str = "context") -> str:
    """What errors call a feature: its name on one line, cut short.

    Example:
        >>> argument_of("price"), argument_of("price", "contexts")
        ('context price', 'contexts price')
    """
    return f"{owner} {errors.printable(feature if len(feature) <= 40 else feature[:39] + '…')}"


def _shown(value: Any) -> str:
    return errors.printable(" ".join(repr(value).split())[:60])


def _of_arms(value: Any, argument: str, names: Sequence[str | int]) -> Any:
    """One feature: a number for all arms, or k numbers, in the order of arms."""
    if not isinstance(value, Mapping):
        if isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0:
            return errors.matrix(value, argument, shape=(len(names),))
        return errors.number(value, argument)
    remedy, known = "give one number, or one for each arm", set(names)
    strange = [name for name in value if name not in known or isinstance(name, bool)]
    if strange:
        remedy = errors.suggestion(strange[0], names) + remedy
        problem = f"{_shown(strange[0])} is not the name of an arm"
        raise errors.InvalidInput(argument, problem, remedy)
    missing = [name for name in names if name not in value]
    if missing:
        raise errors.InvalidInput(argument, f"lacks arm {missing[0]!r}", remedy)
    return [errors.number(value[name], f"{argument} of arm {name!r}") for name in names]
