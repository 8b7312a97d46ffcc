"""What Python values look like on the wire, both ways; NumPy's numbers and arrays are welcome."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Set, ValuesView
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.agent.choosing import Decision, Score
from driftbandit.agent.refitting import Refit
from driftbandit.io.model_file import to_document
from driftbandit.service.client.retries import Damaged
from driftbandit.system import LAST_ROUND, Name, System, checked_names


def question(arms: Any, round: int | None, context: Any) -> dict[str, Any]:
    """The body of a question for a decision."""
    body = {} if arms is None else offer(arms)
    if context is not None:
        body["context"] = context_of(context)
    if round is not None:
        body["round"] = errors.whole_number(round, "round", low=-LAST_ROUND, high=LAST_ROUND)
    return body


def offer(arms: Any) -> dict[str, Any]:
    """The arms on offer: names, rows of features, or features by name.

    Example:
        >>> offer(np.array([2, 0])), offer([[1, 0.5]]), offer({"new": [1, 0.5]})
        ({'arms': [2, 0]}, {'features': [[1.0, 0.5]]}, {'arms': ['new'], 'features': [[1.0, 0.5]]})
    """
    if isinstance(arms, Set | ValuesView | Iterator):
        raise errors.InvalidInput("arms", f"is a {type(arms).__name__}", "give a list")
    remedy = "give names of arms, rows of features, or a mapping from names to features"
    if isinstance(arms, Mapping) and arms:
        names = checked_names(arms, len(arms), "arms")
        rows = errors.matrix(list(arms.values()), "arms", shape=(None, None))
        return {"arms": list(names), "features": rows.tolist()}
    try:
        given = np.asarray(arms)
    except ValueError:  # ragged
        given = np.empty((), object)
    if given.ndim == 2:
        return {"features": errors.matrix(arms, "arms", shape=(None, None)).tolist()}
    if given.ndim != 1 or given.dtype.kind not in "iuUO" or isinstance(arms, Mapping):
        raise errors.InvalidInput("arms", f"is {shown(arms)}", remedy)
    return {"arms": [name_of(name, "arms") for name in arms]}


def name_of(name: Any, argument: str = "arm") -> Name:
    """The name of an arm as JSON writes it."""
    try:
        (found,) = checked_names([name], 1)
    except errors.InvalidInput:
        problem, remedy = (
            f"{shown(name)} cannot be the name of an arm",
            "give a text or a whole number",
        )
        raise errors.InvalidInput(argument, problem, remedy) from None
    return found


def context_of(context: Any) -> dict[str, Any]:
    """The features of a decision; JSON turns whole numbers that name arms into texts."""
    if not isinstance(context, Mapping):
        remedy = "give a mapping from each feature's name to its value"
        raise errors.InvalidInput("context", f"is {shown(context)}", remedy)
    found: dict[str, Any] = {}
    for feature, value in context.items():
        argument = f"context {shown(feature)}"
        if isinstance(value, Mapping):
            labels = checked_names(value, len(value), argument)
            numbers = [errors.number(x, argument) for x in value.values()]
            found[str(feature)] = dict(zip(map(str, labels), numbers, strict=True))
        elif isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0:
            found[str(feature)] = errors.matrix(value, argument, shape=(None,)).tolist()
        else:
            found[str(feature)] = errors.number(value, argument)
    return found


def told(decision: Decision | int, reward: Any) -> dict[str, Any]:
    """The reward of a decision; a `Decision` shows its arm and round, an id does not."""
    id_: Any = decision.id if isinstance(decision, Decision) else decision
    if isinstance(id_, bool) or not isinstance(id_, int | np.integer):
        remedy = "tell what ask returned, or its id"
        raise errors.InvalidInput("decision", f"is {shown(decision)}", remedy)
    if isinstance(reward, bool | np.bool):
        reward = bool(reward)
    elif reward is not None:
        reward = errors.number(reward, "reward")
    body = {"decision": int(id_), "reward": reward}
    if isinstance(decision, Decision):
        body |= {"arm": name_of(decision.arm), "round": int(decision.round)}
    return body


def told_pair(pair: Any) -> dict[str, Any]:
    """The reward of one pair of (decision, reward)."""
    # A Decision is a tuple, too: a list of decisions without rewards is an easy mistake.
    if isinstance(pair, Decision | str) or not isinstance(pair, Iterable):
        pair = (pair,)
    pair = tuple(pair)
    if len(pair) != 2:
        raise errors.InvalidInput("rewards", f"holds {shown(pair)}", "give (decision, reward)")
    return told(*pair)


def settings_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a new experiment."""
    return {name: plain(value, name) for name, value in settings.items()}


def plain(value: Any, argument: str) -> Any:
    """A setting as JSON values; a `Refit` as its fields, of which the service runs all outside."""
    if isinstance(value, Refit):
        value = dataclasses.asdict(value)
        value.pop("background")
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(one, argument) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, argument) for one in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return errors.number(value, argument)
    remedy = "give texts, numbers, lists and mappings of them"
    raise errors.InvalidInput(argument, f"holds {shown(value)}", remedy)


def system_of(system: Any, argument: str = "system") -> dict[str, Any]:
    """A model file's document."""
    if not isinstance(system, System):
        remedy = "give a System, which is a model with its arms: System(model, arms, names)"
        raise errors.InvalidInput(argument, f"has type {type(system).__name__}", remedy)
    return to_document(system)


def decision_of(document: Mapping[str, Any]) -> Decision:
    """A decision, as an agent would return it."""
    return Decision(
        document["decision"],
        document["arm"],
        document["round"],
        *(_float(document[field]) for field in ("mean", "bonus", "uncertainty")),
    )


def score_of(document: Mapping[str, Any]) -> Score:
    """The score of one arm in the state document."""
    numbers = (_float(document[field]) for field in ("mean", "bonus", "uncertainty"))
    return Score(document["arm"], *numbers)


def json_of(content: bytes) -> Any:
    """The JSON of an answer; `Damaged` if it is cut off."""
    try:
        return json.loads(content)
    except ValueError:  # also of bytes that are no text
        raise Damaged(f"its answer of {len(content)} bytes is not whole") from None


def shown(value: Any) -> str:
    """A value in an error message: on one line, cut short."""
    return errors.printable(" ".join(repr(value).split())[:60])


def _float(number: Any) -> float | None:
    return None if number is None else float(number)
