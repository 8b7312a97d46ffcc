"""The settings of an experiment: checked, completed, and what they make."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.agent import Agent, Refit
from driftbandit.agent.agent import sized_by_rewards
from driftbandit.agent.first_rewards import random_walk
from driftbandit.agent.ledger import size_of
from driftbandit.agent.refitting import OF_NAMES
from driftbandit.io import model_file
from driftbandit.policies import PREFERRED
from driftbandit.system import LAST_ROUND, System

DEFAULTS: dict[str, Any] = {
    "policy": PREFERRED,
    "seed": 0,
    "window": None,  # see `default_window`
    "time": "rounds",
    "rounds": 1000,
    "memory": 1000,
    "refit": None,
    "on_alarm": None,
}
WINDOW, WINDOW_BY_CLOCK = 1000, 100  # rounds; those by the clock may hold many decisions each
WINDOW_MEMORY = 2**26  # bytes for which the default window is shortened, to no less than the second
SHORTEST = 1e-3  # seconds of a round
LARGEST_STATE = 2**21  # bytes: a decision takes longer with more, and keeps up to two states
LATEST = LAST_ROUND // 2  # a round that a request may give: as many are left for what follows
LONGEST_NAME = 200  # characters
LARGEST_NAME = 2**53  # JSON readers may round larger numbers
COLUMNS = ("round", "arm", "reward")  # of the log


def checked(given: Mapping[str, Any], most_arms: int) -> dict[str, Any]:
    """Complete settings, always with a system; wrong ones are refused.

    ``given`` has a ``system``; or ``arms``, a mapping from names to features, and ``refit``; or
    ``names``, and perhaps a ``structure``. Without a system, the experiment starts with a random
    walk.

    Example:
        >>> checked({"names": ["a", "b"]}, most_arms=10)["refit"]["structure"]
        'level(arm)'
        >>> found = checked({"structure": "level(arm)", "names": ["a", "b"]}, most_arms=10)
        >>> found["system"]["names"], found["refit"]["structure"], found["refit"]["after"]
        (['a', 'b'], 'level(arm)', 20)
    """
    settings = DEFAULTS | {key: given[key] for key in DEFAULTS if given.get(key) is not None}
    given = _structured(given)
    sources = [key for key in ("system", "arms", "structure") if given.get(key) is not None]
    if len(sources) != 1:
        problem = f"was given together with {sources[1]}" if sources else "is missing"
        remedy = "give a model file; or names, perhaps a structure, or arms, to learn the model"
        raise errors.InvalidInput("system", problem, remedy)
    options = _refit(given)
    check_states(_n_states(given, sources[0]), sources[0])  # before any matrix is made
    if sources == ["system"]:
        settings["system"] = dict(given["system"])
        rows: Any = np.zeros((1, 1))
    else:
        assert options is not None
        names = tuple(given.get("names") or given["arms"])
        rows = np.eye(len(names))
        if sources == ["arms"]:
            rows = errors.matrix(list(given["arms"].values()), "arms", shape=(None, None))
        system = System(random_walk(rows, options.scale or 1.0), rows, names)
        settings["system"] = model_file.to_document(system)
    if options is not None:
        options = options.for_agent(rows, has_model=sources == ["system"])
        settings["refit"] = dataclasses.asdict(options)
        del settings["refit"]["background"]  # a worker process learns the model
        settings["memory"] = max(settings["memory"], options.memory)
    time = settings["time"]
    if time != "rounds":
        errors.number(time["seconds"], "time.seconds", low=SHORTEST)
        # Rounds by the clock count from 0, so the model's first round is the experiment's.
        for field in ("first_round", "clock"):
            settings["system"].pop(field, None)
    own_window = settings["window"] is not None
    agent = agent_of(settings if own_window else settings | {"window": WINDOW_BY_CLOCK})
    check_round(agent.round, "first_round")
    if not own_window:
        settings["window"] = default_window(agent, time)
    n_arms = len(agent.names)
    if n_arms > most_arms:
        raise errors.InvalidInput("arms", f"are {n_arms}", f"{most_arms} are the most here")
    _check_names(agent)
    if (size := size_of(agent.state)) > LARGEST_STATE:
        problem = f"{settings['policy']} keeps {size:,} bytes for every decision"
        raise errors.InvalidInput("policy", problem, f"{LARGEST_STATE:,} are the most here")
    if options is not None and agent.policy.full_information:
        problem = f"was given, and {agent.policy.name}, which sees all rewards, learns no model"
        raise errors.InvalidInput("refit", problem, "leave it out, or choose another policy")
    return settings


def check_round(round: int, argument: str) -> None:
    """Refuse a round after which few could follow: rounds cannot be taken back."""
    if round > LATEST:
        raise errors.InvalidInput(argument, f"is {round}", f"give at most {LATEST} (2**52)")


def check_states(n_states: int, argument: str) -> None:
    """Refuse a model with too many states: time and memory grow with their square."""
    most = math.isqrt(LARGEST_STATE // 8)
    if n_states > most:
        raise errors.InvalidInput(argument, f"has {n_states} states", f"{most} are the most here")


def default_window(agent: Agent, time: Any) -> int:
    """How many rounds late a reward may come, unless the experiment says so.

    Rewards of a busy site come many decisions late. The window costs memory, two states for each
    decision, and time only for rewards that do come late. So it is shorter for large models.

    Example:
        >>> for n_arms in (4, 64, 100, 300):
        ...     names = list(map(str, range(n_arms)))
        ...     print(n_arms, checked({"names": names}, most_arms=1000)["window"])
        4 1000
        64 1000
        100 415
        300 100
        >>> checked({"names": ["a", "b"], "time": {"seconds": 60}}, most_arms=1000)["window"]
        100
    """
    if time != "rounds":
        return WINDOW_BY_CLOCK
    return min(WINDOW, max(WINDOW_BY_CLOCK, WINDOW_MEMORY // (2 * max(1, size_of(agent.state)))))


def context_of(given: Mapping[str, Any] | None, agent: Agent) -> dict[str, Any] | None:
    """A context with the arms' own names: in JSON, an arm called 7 can only be called "7"."""
    if given is None:
        return None
    names = {str(name): name for name in agent.names}
    return {
        feature: {names.get(arm, arm): number for arm, number in value.items()}
        if isinstance(value, Mapping)
        else value
        for feature, value in given.items()
    }


def _n_states(given: Mapping[str, Any], source: str) -> int:
    """How many states the model will have, as far as can be seen without making it."""
    if source == "structure":
        return len(given["names"])
    if source == "arms":
        return max((len(row) for row in given["arms"].values()), default=0)
    rows = given["system"].get("transition")
    return len(rows) if isinstance(rows, list) else 0


def _check_names(agent: Agent) -> None:
    """Refuse names that a request could not repeat, and features that the log has no column for."""
    for name in agent.names:
        if len(name) > LONGEST_NAME if isinstance(name, str) else abs(name) > LARGEST_NAME:
            remedy = f"give at most {LONGEST_NAME} characters, or a number within ±2**53"
            raise errors.InvalidInput("model file names", f"has {str(name)[:40]}…", remedy)
    for feature in agent.contexts:
        if feature in COLUMNS:
            problem = f"has {feature}, which the log has a column for"
            raise errors.InvalidInput("model file contexts", problem, f"call it x_{feature}")


def _structured(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Names alone get the default structure, or the one that refits are to have."""
    if given.get("names") is None or given.get("structure") is not None:
        return given
    for other in ("system", "arms"):
        if given.get(other) is not None:
            problem = f"was given together with {other}, which names its arms"
            raise errors.InvalidInput("names", problem, "leave one of them out")
    structure = (given.get("refit") or {}).get("structure")
    return {**given, "structure": OF_NAMES if structure in (None, "free") else structure}


def _refit(given: Mapping[str, Any]) -> Refit | None:
    options = given.get("refit")
    structure, names = given.get("structure"), given.get("names")
    if structure is not None:
        if not names:
            raise errors.InvalidInput("names", "is missing", "name the arms of the structure")
        options = {**(options or {}), "structure": structure}
    elif options is None and given.get("arms") is not None:
        options = {}
    if options is None:
        return None
    if given.get("on_alarm") == "refit":
        raise errors.InvalidInput("on_alarm", "is 'refit'", "give widen, or leave it out")
    system = given.get("system")
    if isinstance(system, Mapping) and system.get("contexts"):
        problem = "was given, and a model with contexts cannot be learned here"
        raise errors.InvalidInput("refit", problem, "leave it out, and replace the model")
    return Refit(**options)


def refit_of(settings: Mapping[str, Any]) -> Refit | None:
    """When and how the experiment learns its model."""
    if settings["refit"] is None:
        return None
    return Refit(**{"check": False, **settings["refit"]})  # older ones did not check new models


def agent_of(settings: Mapping[str, Any]) -> Agent:
    """A new agent. It has no `Refit`: workers learn models, and events bring them."""
    system = model_file.from_document(settings["system"])
    names = ("policy", "seed", "window", "rounds", "memory", "on_alarm")
    agent = Agent(system, **{name: settings[name] for name in names})
    if settings["refit"] is not None and settings["refit"]["scale"] is None:
        return sized_by_rewards(agent)
    return agent


def features_of(settings: Mapping[str, Any]) -> np.ndarray:
    """The features of the arms that the experiment began with."""
    return model_file.from_document(settings["system"]).arms
