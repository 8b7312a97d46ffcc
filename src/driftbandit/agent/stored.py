"""An agent as JSON text, and back.

    {"driftbandit_agent": 3, "checksum": …, "agent": {…}}

The checksum is of the agent's own part, so that a damaged file is noticed, whatever was damaged.
Every field is checked all the same. Format 2, which had no names, is read too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.actions import SPHERE
from driftbandit.agent.choosing import by_columns
from driftbandit.agent.core import LAST_ROUND
from driftbandit.agent.ledger import Entry, Ledger, fold
from driftbandit.agent.refitting import Refit
from driftbandit.io import model_file
from driftbandit.io.atomic import write_whole
from driftbandit.kalman import Belief
from driftbandit.policies import Policy, Problem, make
from driftbandit.system import checked_names

if TYPE_CHECKING:
    from driftbandit.agent.agent import Agent

__all__ = ["FORMAT", "read", "revived", "save", "text_of", "written"]

FORMAT = 3
"""Version of the stored state."""
OLDER = (2,)
"""Versions that are read, too."""
REMEDY = "give what Agent.to_json or Agent.save wrote"


def written(agent: Agent) -> str:
    """The whole agent as text; an agent that could not be read back is refused."""
    ledger, options = agent._ledger, agent.refit_options
    ledger.refresh()  # late rewards that the policy cannot take are not stored
    inside = {
        "policy": agent.policy.name,
        "parameters": dict(agent.policy.parameters),
        "rounds": agent.rounds,
        "seed": agent.seed,
        "window": agent.window,
        "memory": agent.memory,
        "screen": agent.screen,
        "sphere": agent.actions == SPHERE,
        "model": model_file.to_document(agent.problem.model, agent.problem.arms),
        "names": None if agent._names.plain else list(agent._names.all),
        "removed": list(agent._removed),
        "features": None if agent.features is agent.problem.arms else agent.features.tolist(),
        "round": agent.round,
        "now": agent._now,
        "base": agent._base,
        "decided": agent._decided,
        "settled": {"round": ledger.round, "state": _plain(_checked_size(ledger.state))},
        "open": [_row(entry) for entry in ledger],
        "refit": None if options is None else dataclasses.asdict(options),
        "log": [_row(entry) for entry in agent._log],
        "complete": agent._complete,
        "until_refit": agent._until_refit,  # of a refit under way: it is due, and begins again
        "learned": agent._learned,
        "refit_failure": agent.refit_failure,
    }
    try:  # arrays and NumPy numbers may be among parameters
        text = json.dumps(inside, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "give the policy's parameters as finite numbers, lists or texts"
        raise errors.InvalidInput("agent", f"cannot be written as JSON ({error})", remedy) from None
    return f'{{"driftbandit_agent": {FORMAT}, "checksum": "{_checksum(text)}", "agent": {text}}}'


def _checked_size(state: Any) -> Any:
    """A state whose numbers can be read again."""
    for leaf in _leaves(state):
        if leaf.size and not np.abs(leaf).max() <= errors.LARGEST:
            problem = "has outgrown the largest number and could not be read back"
            raise errors.InvalidInput("state", problem, "replace the model; no file was changed")
    return state


def _leaves(state: Any) -> list[np.ndarray]:
    if hasattr(state, "_fields"):
        return [leaf for value in state for leaf in _leaves(value)]
    return [] if state is None else [np.asarray(state)]


def save(agent: Agent, path: str | Path) -> None:
    """Write the agent to a file, which is replaced whole, by what can be read again."""
    name = errors.printable(str(path))
    try:
        target = Path(path)
        if "\0" in str(target):
            raise TypeError
    except TypeError:
        raise errors.InvalidInput("path", f"is {name[:60]}", "give a file's name") from None
    with agent._saving:
        write_whole(target, agent.to_json().encode())


def revived(cls: Any, text: str, policy: Policy) -> Any:
    """The agent that was pickled or copied."""
    return read(cls, text, policy)


def read(cls: Any, text: str, policy: str | Policy | None, source: str = "text") -> Any:
    """The agent that was written, an instance of ``cls``.

    Args:
        cls: `Agent`, or a class of yours that is one.
        text: what `written` gave.
        policy: the policy itself, where it is none of the registry.
        source: where the text is from, for messages.
    """
    try:
        return _restored(cls, *_inside(text), policy)
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


def _inside(text: str) -> tuple[int, Mapping[str, Any]]:
    try:
        whole = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise errors.InvalidInput("text", f"is not JSON ({error})", REMEDY) from None
    if not isinstance(whole, dict) or "driftbandit_agent" not in whole:
        raise errors.InvalidInput("text", "is not a stored agent", REMEDY)
    version = whole["driftbandit_agent"]
    if type(version) is not int or version not in (FORMAT, *OLDER):
        problem = f"has format {version!r}"
        raise errors.InvalidInput("text", problem, f"this version reads format {FORMAT}")
    inside = whole.get("agent")
    if not isinstance(inside, dict) or _checksum(json.dumps(inside)) != whole.get("checksum"):
        raise errors.InvalidInput("text", "is damaged: its checksum is another", REMEDY)
    return version, inside


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _restored(cls: Any, version: int, stored: Mapping[str, Any], policy: Any) -> Any:
    if version == 2:
        stored = _upgraded(stored)
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return _agent(cls, stored, policy)
    except errors.InvalidInput:
        raise
    except KeyError as error:
        raise errors.InvalidInput("text", f"lacks {error}", REMEDY) from None
    except (
        ArithmeticError,
        AttributeError,
        IndexError,
        MemoryError,
        TypeError,
        ValueError,
    ) as error:
        problem = f"cannot be read: {errors.printable(str(error)[:200])}"
        raise errors.InvalidInput("text", problem, REMEDY) from None


def _upgraded(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """What format 2 did not say."""
    new: dict[str, Any] = {"names": None, "memory": 1000, "base": 0, "screen": True}
    new |= {"sphere": False, **stored}  # older ones said nothing of screens and spheres
    kept = isinstance(stored.get("open"), list) and len(stored["open"]) == stored.get("decided")
    new["complete"] = kept  # what was settled was not kept
    if isinstance(stored.get("refit"), dict):
        new["refit"] = {"background": False, **stored["refit"]}
    return new


def _agent(cls: Any, stored: Mapping[str, Any], policy: str | Policy | None) -> Agent:
    system = model_file.from_document(stored["model"])
    model, arms = system.model, system.arms
    options = None if stored["refit"] is None else Refit(**stored["refit"])
    features = arms
    if stored["features"] is not None:
        if options is None or not options.offsets:
            raise errors.InvalidInput("features", "are there, without offsets", REMEDY)
        features = errors.matrix(stored["features"], "features", shape=(len(arms), None))
    sphere = _boolean(stored, "sphere")
    agent: Agent = cls(
        None if options else model,
        SPHERE.word if sphere else features if options else arms,
        _policy(stored, policy),
        names=stored["names"],
        rounds=stored["rounds"],
        seed=stored["seed"],
        window=stored["window"],
        refit=options,
        screen=stored["screen"],
        memory=stored["memory"],
    )
    constants, fresh = agent.policy.prepare(model, arms, agent.rounds)
    problem = Problem(model, by_columns(arms), constants)
    if stored["features"] is None:
        agent.features = problem.arms
    state = _state(stored["settled"]["state"], fresh, "state")
    if isinstance(state, Belief) and (np.diag(state.cov) < 0).any():
        raise errors.InvalidInput("state.cov", "has a negative diagonal", REMEDY)
    agent._ledger = Ledger(agent.policy, problem, state, 0)
    agent._change(problem, state, _whole(stored["settled"], "round"))
    agent._learned, agent._complete = _boolean(stored, "learned"), _boolean(stored, "complete")
    agent.refit_failure = stored["refit_failure"]
    if not isinstance(agent.refit_failure, str | None):
        raise errors.InvalidInput("refit_failure", f"is {agent.refit_failure!r:.60}", REMEDY)
    agent._until_refit = errors.whole_number(
        stored["until_refit"], "until_refit", low=-LAST_ROUND, high=None
    )
    agent.round, agent._now = _whole(stored, "round"), _whole(stored, "now")
    agent._base, agent._decided = _whole(stored, "base"), _whole(stored, "decided", low=0)
    removed = stored.get("removed", [])  # absent in files of older versions
    if not isinstance(removed, list):
        raise errors.InvalidInput("removed", f"is {removed!r:.60}", REMEDY)
    agent._removed = checked_names(removed, len(removed), "removed")
    open_ = [_entry(agent, row) for row in stored["open"]]
    log = [_entry(agent, row) for row in stored["log"]]
    _check_time(agent, open_, log)
    agent._ledger.reopen(open_)
    agent._log.extend(log)
    _check_works(agent)
    return agent


def _check_time(agent: Agent, open_: list[Entry], log: list[Entry]) -> None:
    """Refuse rounds or decision numbers that are out of order."""
    if not agent._now <= agent.round <= agent._now + 1:
        problem = f"is {agent.round}, and time has come to round {agent._now}"
        raise errors.InvalidInput("round", problem, REMEDY)
    rounds = [agent._base, *(entry.round for entry in log), agent._ledger.round]
    rounds += [*(entry.round for entry in open_), agent._now]
    for early, late in itertools.pairwise(rounds):
        if late < early:
            raise errors.InvalidInput("rounds", f"run backwards, from {early} to {late}", REMEDY)
    ids = [entry.id for entry in open_ if entry.id is not None]
    if any(late <= early for early, late in itertools.pairwise([*ids, agent._decided])):
        raise errors.InvalidInput("id", "comes twice, or was never given out", REMEDY)
    if any(entry.reward is None for entry in log):
        raise errors.InvalidInput("log", "holds a play without reward", REMEDY)


def _check_works(agent: Agent) -> None:
    """Refuse a state that is not finite at the agent's round, or that cannot take a reward."""
    state = agent._ledger.at(agent._now)
    if not all(np.isfinite(leaf).all() for leaf in _leaves(state)):
        raise errors.InvalidInput("state", "is not finite in the agent's round", REMEDY)
    reward: Any = np.zeros(len(agent.problem.arms)) if agent.policy.full_information else 0.0
    row = None if agent.actions.listed else agent.problem.arms[0]
    fold(agent.policy, agent.problem, state, Entry(None, 0, 0, row, reward))


def _whole(stored: Mapping[str, Any], field: str, low: int = -LAST_ROUND) -> int:
    return errors.whole_number(stored[field], field, low=low, high=LAST_ROUND + 1)


def _boolean(stored: Mapping[str, Any], field: str) -> bool:
    if not isinstance(stored[field], bool):
        raise errors.InvalidInput(field, f"is {stored[field]!r:.60}", "give true or false")
    return bool(stored[field])


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
    reward = entry.reward if isinstance(entry.reward, float) else _plain(entry.reward)
    fields = [entry.id, entry.round, entry.arm, row, reward]
    return [*fields, True] if entry.removed else fields


def _entry(agent: Agent, stored: Any) -> Entry:
    removed = isinstance(stored, list) and len(stored) == 6 and stored[5] is True
    if not isinstance(stored, list) or len(stored) != 5 + removed:
        raise errors.InvalidInput("decision", f"is {stored!r:.60}", REMEDY)
    id_, round_, arm, row, reward = stored[:5]
    if id_ is not None:
        errors.whole_number(id_, "id", low=0, high=LAST_ROUND)
    errors.whole_number(round_, "round", low=-LAST_ROUND, high=LAST_ROUND)
    if row is None:
        if not agent.actions.listed:
            raise errors.InvalidInput("row", "is missing, and the arms are the sphere", REMEDY)
        errors.whole_number(arm, "arm", low=0, high=len(agent.problem.arms) - 1)
    else:
        if isinstance(arm, bool) or not isinstance(arm, int | str):
            raise errors.InvalidInput("arm", f"is {arm!r:.60}", REMEDY)
        row = errors.matrix(row, "row", shape=(agent.problem.arms.shape[1],))
    if reward is not None:
        reward = agent._checked_reward(reward)
    entry = Entry(id_, round_, arm, row, reward)
    entry.removed = removed and row is not None
    return entry


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
    if not fresh.size:  # `random` knows nothing
        return fresh
    values = errors.matrix(stored, name, shape=fresh.shape)
    if fresh.dtype.kind in "iu":
        limits = np.iinfo(fresh.dtype)
        inside = (values >= limits.min) & (values <= limits.max)
        if not (inside & (values == np.rint(values))).all():
            raise errors.InvalidInput(name, "is not whole, or too large", REMEDY)
    return values.astype(fresh.dtype)
