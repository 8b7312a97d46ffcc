"""The stored format of an agent: JSON text, and back.

    {"driftbandit_agent": 3, "checksum": …, "agent": {…}}

The checksum covers the agent's part and detects damage to the file; every field is checked
nevertheless. Format 2, which had no names, can be read, too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.actions import SPHERE
from driftbandit.agent.choosing import by_columns
from driftbandit.agent.first_rewards import learned_size
from driftbandit.agent.history import History
from driftbandit.agent.ledger import Entry, Ledger, leaves, observed
from driftbandit.agent.refitting import Refit
from driftbandit.agent.watch import Watch
from driftbandit.io import model_file
from driftbandit.io.times import Clock
from driftbandit.kalman import is_belief
from driftbandit.monitoring import charts
from driftbandit.monitoring.findings import Change
from driftbandit.policies import Policy, make
from driftbandit.system import LAST_ROUND, Name, System, checked_names

FORMAT = 3  # version of the stored format
READ = (2, FORMAT)  # versions that can be read
FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""What damaged numbers can cause; all of it is refused as `InvalidInput`."""
REMEDY = "give what Agent.to_json or Agent.save wrote"
SETTINGS = ("rounds", "seed", "window", "memory", "screen", "compiled", "on_alarm")
"""An agent's arguments that never change and are stored as they are."""
ABSENT: dict[str, Any] = dict.fromkeys(("start", "clock", "watch", "guess", "on_alarm"))
ABSENT |= {"removed": [], "compiled": False}
"""What is absent in older files, or where an agent has none."""


def text_of(history: History, settings: Mapping[str, Any], refit: Refit | None) -> str:
    """The whole agent as text; ``settings`` are its arguments that never change."""
    ledger, problem = history.ledger, history.problem
    ledger.refresh()  # drops late rewards that the policy cannot take
    if not all(map(errors.finite, leaves(ledger.state))):
        wrong = "has outgrown the largest number and could not be read back"
        raise errors.InvalidInput("state", wrong, "replace the model; no file was changed")
    inside = {
        "policy": history.policy.name,
        "parameters": dict(history.policy.parameters),
        **settings,
        "sphere": history.actions == SPHERE,
        "model": model_file.to_document(problem.model, problem.arms, contexts=history.contexts),
        "names": None if history.names.plain else list(history.names.all),
        "removed": list(history.removed),
        "features": None if history.features is problem.arms else history.features.tolist(),
        "round": history.round,
        "now": history.now,
        "base": history.base,
        "decided": history.decided,
        "settled": {"round": ledger.round, "state": _as_json(ledger.state)},
        "open": [_entry_as_json(entry) for entry in ledger],
        "refit": None if refit is None else dataclasses.asdict(refit),
        "log": [_entry_as_json(entry) for entry in history.log],
        "complete": history.complete,
        "until_refit": history.until_refit if refit else 0,  # one in progress begins again
        "learned": history.has_model,
        "guess": history.silent,
        "refit_failure": history.refit_failure,
        "watch": None if history.watch is None else _watch_as_json(history.watch),
    }
    if history.start is not None:
        inside["start"] = history.start
    if history.clock is not None:
        inside["clock"] = history.clock.to_document()
    try:  # parameters may hold arrays and NumPy numbers
        text = json.dumps(inside, default=_as_json, allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "give the policy's parameters as finite numbers, lists or strings"
        raise errors.InvalidInput("agent", f"cannot be written as JSON ({error})", remedy) from None
    return f'{{"driftbandit_agent": {FORMAT}, "checksum": "{checksum(text)}", "agent": {text}}}'


def checksum(text: str) -> str:
    """The checksum of an agent's part."""
    return hashlib.sha256(text.encode()).hexdigest()


def _as_json(state: Any) -> Any:
    """A state, which may be nested, as dictionaries and lists."""
    if state is None or isinstance(state, float):
        return state
    if hasattr(state, "_asdict"):
        return {name: _as_json(value) for name, value in state._asdict().items()}
    return np.asarray(state).tolist()


def _entry_as_json(entry: Entry) -> list[Any]:
    fields = [entry.id, entry.round, entry.arm, _as_json(entry.row), _as_json(entry.reward)]
    return [*fields, True] if entry.removed else fields


def _watch_as_json(watch: Watch) -> dict[str, Any]:
    state = {} if watch.charts is None else watch.charts.state
    return {
        "surprises": [list(surprise) for surprise in watch.surprises],
        "charts": [[*owner, *chart] for owner, chart in state.items()],
        "alarms": [list(alarm) for alarm in watch.alarms],
        "refit_since": watch.refit_since,
    }


def file_text(path: str | Path) -> str:
    """The text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        name = errors.printable(str(path))
        raise errors.InvalidInput(name, f"cannot be read ({reason})", REMEDY) from None


def checked_path(path: Any) -> Path:
    """The name of a file to write."""
    with contextlib.suppress(TypeError):
        if "\0" not in str(Path(path)):
            return Path(path)
    shown = errors.printable(str(path))[:60]
    raise errors.InvalidInput("path", f"is {shown}", "give a file's name")


@contextlib.contextmanager
def reading(source: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into an `InvalidInput` that names the source."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except errors.InvalidInput as error:
        raise error.of(errors.printable(source)) from None
    except FAULTS as error:
        missing = f"lacks {error}" if isinstance(error, KeyError) else ""
        wrong = missing or f"cannot be read: {errors.printable(str(error)[:200])}"
        raise errors.InvalidInput("text", wrong, REMEDY).of(errors.printable(source)) from None


def document(text: str) -> Mapping[str, Any]:
    """The agent's part of the text, in the present format, with its model as a `System`."""
    try:
        whole = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise errors.InvalidInput("text", f"is not JSON ({error})", REMEDY) from None
    if not isinstance(whole, dict) or "driftbandit_agent" not in whole:
        raise errors.InvalidInput("text", "is not a stored agent", REMEDY)
    version = whole["driftbandit_agent"]
    if type(version) is not int or version not in READ:
        problem = f"has format {version!r}"
        raise errors.InvalidInput("text", problem, f"this version reads format {FORMAT}")
    inside = whole.get("agent")
    if not isinstance(inside, dict) or checksum(json.dumps(inside)) != whole.get("checksum"):
        raise errors.InvalidInput("text", "is damaged: its checksum does not match", REMEDY)
    inside = _upgraded(inside) if version == 2 else inside
    return {**ABSENT, **inside, "model": model_file.from_document(inside["model"])}


def _upgraded(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document of format 2, with defaults for the fields it lacks."""
    new: dict[str, Any] = {"names": None, "memory": 1000, "base": 0, "screen": True}
    new |= {"sphere": False, **stored}  # the oldest had neither screens nor the sphere
    kept = isinstance(stored.get("open"), list) and len(stored["open"]) == stored.get("decided")
    new["complete"] = kept  # settled plays were not kept
    if isinstance(stored.get("refit"), dict):
        new["refit"] = {"background": False, **stored["refit"]}
    return new


def arguments(stored: Mapping[str, Any], policy: str | Policy | None) -> dict[str, Any]:
    """The arguments with which the stored agent is made, before `restore` fills it."""
    system, refit = stored["model"], stored["refit"]
    if refit is not None:
        refit = Refit(**{"check": False, **refit})  # older files did not check new models
    arms = system.arms
    if stored["features"] is not None:
        if refit is None or not refit.by_arm:
            raise errors.InvalidInput("features", "are there, without offsets", REMEDY)
        arms = errors.matrix(stored["features"], "features", shape=(len(arms), None))
    if errors.boolean(stored["sphere"], "sphere"):
        arms = SPHERE.word
    names = stored["names"]
    made = {"model": None if refit else system.model, "arms": arms, "names": names}
    if system.contexts:
        made = {"model": System(system.model, system.arms, names, system.contexts)}
    settings = {name: stored[name] for name in SETTINGS}
    return {**settings, **made, "policy": _policy(stored, policy), "refit": refit}


def _policy(stored: Mapping[str, Any], own: str | Policy | None) -> Policy:
    policy = make(stored["policy"], **stored["parameters"]) if own is None else make(own)
    parameters = json.loads(json.dumps(dict(policy.parameters), default=_as_json))
    if (policy.name, parameters) != (stored["policy"], stored["parameters"]):
        wrong = f"is {policy.label}, stored was {stored['policy']} with {stored['parameters']}"
        raise errors.InvalidInput("policy", wrong, "give the stored one")
    return policy


def restore(history: History, stored: Mapping[str, Any]) -> None:
    """Fill a new agent's history with what was stored."""
    system = stored["model"]
    history.problem, fresh = history.prepared(system.model, by_columns(system.arms))
    if stored["features"] is None:
        history.features = history.problem.arms
    state = _state(stored["settled"]["state"], fresh, "state")
    if is_belief(state) and (np.diag(state.cov) < 0).any():
        raise errors.InvalidInput("state.cov", "has a negative diagonal", REMEDY)
    if history.watch is not None:
        history.watch.restart(system.model)
        if stored["watch"] is not None:
            _restore_watch(history.watch, stored["watch"])
    history.has_model = errors.boolean(stored["learned"], "learned")
    history.complete = errors.boolean(stored["complete"], "complete")
    history.refit_failure = stored["refit_failure"]
    if not isinstance(history.refit_failure, str | None):
        raise errors.InvalidInput("refit_failure", f"is {history.refit_failure!r:.60}", REMEDY)
    history.until_refit = errors.whole_number(stored["until_refit"], "until_refit", low=-LAST_ROUND)
    for field in ("round", "now", "base"):
        setattr(history, field, _whole(stored[field], field))
    history.decided = _whole(stored["decided"], "decided", low=0)
    history.start = None if stored["start"] is None else _whole(stored["start"])
    if stored["clock"] is not None:
        history.clock = Clock.from_document(stored["clock"])
    removed = _list(stored["removed"], "removed")
    history.removed = checked_names(removed, len(removed), "removed")
    open_ = [_entry(history, row) for row in stored["open"]]
    history.log.extend(_entry(history, row) for row in stored["log"])
    round_ = _whole(stored["settled"]["round"])
    history.ledger = Ledger(history.policy, history.problem, state, round_, open_)
    history.silent = None
    if stored["guess"] is not None:
        history.silent = [_whole(round_, "guess") for round_ in _list(stored["guess"], "guess")]
        plays = itertools.chain(history.log, history.ledger)
        history.size = learned_size(plays, history.problem.arms)
    _check_order(history)
    _check_works(history)


def _restore_watch(watch: Watch, stored: Mapping[str, Any]) -> None:
    """Take back what `_watch_as_json` gave."""
    watch.surprises.extend(
        (_whole(round_), _name(arm), errors.number(value, "surprise"))
        for round_, arm, value in stored["surprises"]
    )
    for arm, kind, since, alarm, label in stored["alarms"]:
        errors.closest(kind, "alarm", charts.KINDS)
        if label != "":
            raise errors.InvalidInput("alarm", f"has the sequence {label!r:.60}", REMEDY)
        owner = None if arm is None else _name(arm)
        watch.alarms.append(Change(owner, kind, _whole(since), _whole(alarm)))
    since = stored["refit_since"]
    watch.refit_since = None if since is None else _whole(since)
    for arm, kind, height, since, rewards, squares in stored["charts"]:
        if watch.charts is None:
            raise errors.InvalidInput("charts", "are there, without on_alarm", REMEDY)
        errors.closest(kind, "chart", charts.KINDS)
        height, squares = (errors.number(size, "chart", low=0) for size in (height, squares))
        count = errors.whole_number(rewards, "chart", low=1)
        chart = charts.Chart(height, _whole(since), count, squares)
        watch.charts.state[None if arm is None else _name(arm), kind] = chart


def _check_order(history: History) -> None:
    """Refuse rounds or decision numbers that are out of order."""
    if not history.now <= history.round <= history.now + 1:
        problem = f"is {history.round}, but the agent is at round {history.now}"
        raise errors.InvalidInput("round", problem, REMEDY)
    log, ledger = history.log, history.ledger
    rounds = [history.base, *(entry.round for entry in log), ledger.round]
    rounds += [*(entry.round for entry in ledger), history.now]
    start = history.base if history.start is None else history.start
    for early, late in itertools.pairwise([start, *rounds]):
        if late < early:
            raise errors.InvalidInput("rounds", f"run backwards, from {early} to {late}", REMEDY)
    if history.silent and history.silent != sorted(history.silent):
        raise errors.InvalidInput("guess", "is out of order", REMEDY)
    ids = [entry.id for entry in ledger if entry.id is not None]
    if any(late <= early for early, late in itertools.pairwise([*ids, history.decided])):
        raise errors.InvalidInput("id", "comes twice, or was never given out", REMEDY)
    if any(entry.reward is None for entry in log):
        raise errors.InvalidInput("log", "holds a play without reward", REMEDY)


def _check_works(history: History) -> None:
    """Refuse a state that is not finite at the agent's round, or that cannot take a reward."""
    state = history.ledger.at(history.now)
    if not all(np.isfinite(leaf).all() for leaf in leaves(state)):
        raise errors.InvalidInput("state", "is not finite in the agent's round", REMEDY)
    policy, problem = history.policy, history.problem
    reward: Any = np.zeros(len(problem.arms)) if policy.full_information else 0.0
    row = None if history.actions.listed else problem.arms[0]
    observed(policy, problem, state, Entry(None, 0, 0, row, reward))


def _whole(value: Any, field: str = "round", low: int = -LAST_ROUND) -> int:
    return errors.whole_number(value, field, low=low, high=LAST_ROUND + 1)


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise errors.InvalidInput(field, f"is {value!r:.60}", REMEDY)
    return value


def _name(arm: Any) -> Name:
    if isinstance(arm, bool) or not isinstance(arm, int | str):
        raise errors.InvalidInput("arm", f"is {arm!r:.60}", REMEDY)
    return arm


def _entry(history: History, stored: Any) -> Entry:
    if len(_list(stored, "decision")) < 5 or stored[5:] not in ([], [True]):
        raise errors.InvalidInput("decision", f"is {stored!r:.60}", REMEDY)
    id_, round_, arm, row, reward, *removed = stored
    if id_ is not None:
        _whole(id_, "id", low=0)
    if row is not None:
        row = errors.matrix(row, "row", shape=(history.problem.arms.shape[1],))
        _name(arm)
    elif history.actions.listed and not removed:
        errors.whole_number(arm, "arm", low=0, high=len(history.problem.arms) - 1)
    else:
        raise errors.InvalidInput("row", "is missing", REMEDY)
    return Entry(id_, _whole(round_), arm, row, history.checked_reward(reward), bool(removed))


def _state(stored: Any, fresh: Any, name: str) -> Any:
    """The stored numbers with the fresh state's types, shapes and dtypes."""
    if hasattr(fresh, "_asdict"):
        if not isinstance(stored, dict):
            raise errors.InvalidInput("text", f"its {name} is {stored!r}", REMEDY)
        fields = fresh._asdict().items()
        return type(fresh)(
            **{field: _state(stored[field], value, f"{name}.{field}") for field, value in fields}
        )
    fresh = np.asarray(fresh)
    if not fresh.size:  # `random` knows nothing
        return fresh
    numbers = errors.matrix(stored, name, shape=fresh.shape)
    values = numbers.astype(fresh.dtype)
    if (values != numbers).any():
        raise errors.InvalidInput(name, "is not whole, or too large", REMEDY)
    return values
