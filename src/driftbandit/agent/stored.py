"""An agent as JSON text, and back.

    {"driftbandit_agent": 2, "checksum": …, "agent": {…}}

The checksum is of the agent's own part, so that a damaged file is noticed, whatever was damaged.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors, model_file
from driftbandit.agent.choosing import by_columns
from driftbandit.agent.ledger import Entry, Ledger
from driftbandit.agent.refitting import Refit
from driftbandit.policies import Policy, Problem, make
from driftbandit.sphere.offer import SPHERE

if TYPE_CHECKING:
    from driftbandit.agent.agent import Agent

__all__ = ["FORMAT", "read", "text_of", "written"]

FORMAT = 2
"""Version of the stored state."""
REMEDY = "give what Agent.to_json or Agent.save wrote"


def written(agent: Agent) -> str:
    """The whole agent."""
    ledger, options = agent._ledger, agent.refit_options
    inside = {
        "policy": agent.policy.name,
        "parameters": dict(agent.policy.parameters),
        "rounds": agent.rounds,
        "seed": agent.seed,
        "window": agent.window,
        "screen": agent.screen,
        "sphere": agent.on_sphere,
        "model": model_file.to_document(agent.problem.model, agent.problem.arms),
        "features": None if agent.features is agent.problem.arms else agent.features.tolist(),
        "round": agent.round,
        "now": agent._now,
        "decided": agent._decided,
        "settled": {"round": ledger.round, "state": _plain(ledger.state)},
        "open": [_row(entry) for entry in ledger],
        "refit": None if options is None else dataclasses.asdict(options),
        "log": [_row(entry) for entry in agent._log],
        "until_refit": agent._until_refit,
        "learned": agent._learned,
        "refit_failure": agent.refit_failure,
    }
    text = json.dumps(inside, default=_plain)  # arrays and NumPy numbers among parameters
    return f'{{"driftbandit_agent": {FORMAT}, "checksum": "{_checksum(text)}", "agent": {text}}}'


def read(cls: Any, text: str, policy: str | Policy | None, source: str = "text") -> Any:
    """The agent that was written, an instance of ``cls``.

    Args:
        cls: `Agent`, or a class of yours that is one.
        text: what `written` gave.
        policy: the policy itself, where it is none of the registry.
        source: where the text is from, for messages.
    """
    try:
        return _restored(cls, _inside(text), policy)
    except errors.InvalidInput as error:
        raise error.of(errors.printable(source)) from None


def text_of(path: str | Path) -> str:
    """The text of a file."""
    name = errors.printable(str(path))
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise errors.InvalidInput(name, f"cannot be read ({reason})", REMEDY) from None


def _inside(text: str) -> Mapping[str, Any]:
    try:
        whole = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise errors.InvalidInput("text", f"is not JSON ({error})", REMEDY) from None
    if not isinstance(whole, dict) or "driftbandit_agent" not in whole:
        raise errors.InvalidInput("text", "is not a stored agent", REMEDY)
    version = whole["driftbandit_agent"]
    if version != FORMAT:
        problem = f"has format {version!r}"
        raise errors.InvalidInput("text", problem, f"this version reads format {FORMAT}")
    inside = whole.get("agent")
    if not isinstance(inside, dict) or _checksum(json.dumps(inside)) != whole.get("checksum"):
        raise errors.InvalidInput("text", "is damaged: its checksum is another", REMEDY)
    return inside


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _restored(cls: Any, stored: Mapping[str, Any], policy: str | Policy | None) -> Any:
    try:
        system = model_file.from_document(stored["model"])
        model, arms = system.model, system.arms
        options = stored["refit"] and Refit(**stored["refit"])
        features = arms if stored["features"] is None else np.array(stored["features"])
        sphere = stored.get("sphere", False)  # not said before there was a sphere
        agent = cls(
            None if options else model,
            SPHERE if sphere else features if options else arms,
            _policy(stored, policy),
            rounds=stored["rounds"],
            seed=stored["seed"],
            window=stored["window"],
            refit=options,
        )
        constants, fresh = agent.policy.prepare(model, arms, agent.rounds)
        agent.problem = Problem(model, by_columns(arms), constants)
        if stored["features"] is None:
            agent.features = agent.problem.arms
        state = _state(stored["settled"]["state"], fresh, "state")
        round_ = errors.whole_number(stored["settled"]["round"], "round", low=0)
        agent._ledger = Ledger(agent.policy, agent.problem, state, round_)
        agent._ledger.reopen([_entry(agent, row) for row in stored["open"]])
        agent._log.extend(_entry(agent, row) for row in stored["log"])
        for field in ("round", "now", "decided"):
            number = errors.whole_number(stored[field], field, low=0)
            setattr(agent, field if field == "round" else f"_{field}", number)
        agent._until_refit, agent._learned = stored["until_refit"], stored["learned"]
        agent.refit_failure = stored["refit_failure"]
        agent.screen = stored.get("screen", True)  # agents stored before there were screens
    except (KeyError, TypeError, IndexError) as error:
        what = "lacks" if isinstance(error, KeyError) else "cannot be read:"
        raise errors.InvalidInput("text", f"{what} {error}", REMEDY) from None
    return agent


def _policy(stored: Mapping[str, Any], given: str | Policy | None) -> Policy:
    if given is None:
        given = make(stored["policy"], **stored["parameters"])
    policy = make(given)
    own = json.loads(json.dumps(dict(policy.parameters), default=_plain))
    if (policy.name, own) != (stored["policy"], stored["parameters"]):
        raise errors.InvalidInput(
            "policy",
            f"is {policy.label}, stored was {stored['policy']} with {stored['parameters']}",
            "give the stored one",
        )
    return policy


def _row(entry: Entry) -> list[Any]:
    row = None if entry.row is None else entry.row.tolist()
    return [entry.id, entry.round, entry.arm, row, _plain(entry.reward)]


def _entry(agent: Agent, stored: list[Any]) -> Entry:
    id_, round_, arm, row, reward = (stored[place] for place in range(5))
    if row is None:
        errors.whole_number(arm, "arm", low=0, high=len(agent.problem.arms) - 1)
    else:
        row = errors.matrix(row, "row", shape=(agent.problem.arms.shape[1],))
    if reward is not None:
        reward = agent._checked_reward(reward)
    return Entry(id_, round_, arm, row, reward)


def _plain(state: Any) -> Any:
    """A state, which may hold states, as dictionaries and lists."""
    if state is None:
        return None
    if hasattr(state, "_asdict"):
        return {name: _plain(value) for name, value in state._asdict().items()}
    return np.asarray(state).tolist()


def _state(stored: Any, fresh: Any, name: str) -> Any:
    """The stored numbers with the fresh state's types, shapes and dtypes."""
    if hasattr(fresh, "_asdict"):
        if not isinstance(stored, dict):
            raise errors.InvalidInput("text", f"its {name} is {stored!r}", REMEDY)
        return type(fresh)(
            **{
                field: _state(stored[field], value, f"{name}.{field}")
                for field, value in fresh._asdict().items()
            }
        )
    fresh = np.asarray(fresh)
    return errors.matrix(stored, name, shape=fresh.shape).astype(fresh.dtype)
