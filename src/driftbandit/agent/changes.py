"""Adding an arm, removing one, or replacing the model, without losing the history."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import csgraph

from driftbandit import errors
from driftbandit.agent.arms import ArmNames
from driftbandit.agent.choosing import by_columns
from driftbandit.agent.history import History, whole_round
from driftbandit.agent.ledger import Entry
from driftbandit.contexts import checked
from driftbandit.kalman import Belief, is_belief
from driftbandit.model import LGDS, checked_arms
from driftbandit.system import Name, System

REMEDY = "make a new agent"
LASTING = 100.0  # time constant of a new arm's offset, in horizons; finite, to stay stable
LONGEST = 1e9  # its largest value in rounds: 1 − 1/m must be below 1 by more than rounding


def with_new_arm(model: LGDS, arms: np.ndarray, rounds: float = 1000.0) -> tuple[LGDS, np.ndarray]:
    """Add states for a new arm of which nothing is known.

    If each arm reads states of its own, and these are alike, the new arm gets states like theirs,
    as if it had been there from the start. Else it gets a level that drifts as the others do:

        ρ = Σ aᵀΓZa / Σ aᵀZa,   v = mean aᵀZa,   q = v (1 − ρ²)

    The new arm drifts as the other arms' rewards do on average: ρ is their common autocorrelation
    from one round to the next, v their mean stationary variance. An unstable model has no Z: Σ0
    takes its place, ρ is at most 1, and q = mean aᵀQa. The new level then starts at the mean of
    what the others pay at the start, and the variance of what they pay is added to its own.

    The new arm's offset (what it reads of known constants) is the mean of the others'. If their
    offsets differ, one more, lasting state has the offsets' variance; with a single arm, its
    squared offset.

    Args:
        model, arms: of the present arms, k × d.
        rounds: the horizon, or how long the agent has played if that is longer.

    Returns:
        The model with more states, and the new arm's features.

    Example:
        >>> model, row = with_new_arm(LGDS([[0.5]], [[3.0]], 1.0), np.array([[1.0], [3.0]]))
        >>> model.transition.tolist(), model.process_cov.tolist(), row.tolist()
        ([[0.5, 0.0], [0.0, 0.5]], [[3.0, 0.0], [0.0, 15.0]], [0.0, 1.0])
        >>> walks = LGDS(np.eye(2), 0.1 * np.eye(2), 1.0, np.eye(2), [5.0, 5.0])
        >>> model, row = with_new_arm(walks, np.eye(2))
        >>> model.start_mean().tolist(), row.tolist()
        ([5.0, 5.0, 5.0], [0.0, 0.0, 1.0])
    """
    own = _states_alike(model, arms)
    if own is not None:
        block = np.ix_(own, own)
        blocks = [model.transition[block], model.process_cov[block], model.start_cov()[block]]
        means, read = model.start_mean()[own], np.append(np.zeros(model.n_states), arms[0, own])
    else:
        levels, begin = _levels(model, arms, rounds)
        blocks = [np.diag(column) for column in zip(*levels, strict=True)]
        means, known = np.zeros(len(levels)), np.where(model.constants, arms.mean(axis=0), 0.0)
        means[0], read = begin, np.append(known, np.ones(len(levels)))
    extended = LGDS(
        block_diag(model.transition, blocks[0]),
        block_diag(model.process_cov, blocks[1]),
        model.reward_std,
        None if model.initial_cov is None else block_diag(model.initial_cov, blocks[2]),
        None if model.initial_mean is None else np.append(model.initial_mean, means),
    )
    return extended, read


def _levels(
    model: LGDS, arms: np.ndarray, rounds: float
) -> tuple[list[tuple[float, float, float]], float]:
    """Of each new state: ρ, q and variance at the start; and where the first one starts."""
    moving = model.without_offsets(arms)
    cov = model.stationary_cov() if model.is_stable else model.start_cov()
    variance = float(np.vecdot(moving @ cov, moving).mean())
    offsets = arms @ np.where(model.constants, model.start_mean(), 0.0)
    spread, begin = _spread(offsets), 0.0
    levels = []
    if variance > 0:
        share = float(np.vecdot(moving @ model.transition @ cov, moving).mean()) / variance
        noise = variance * max(1 - share**2, 0.0)
        if not model.is_stable:
            share = min(share, 1.0)
            noise = float(np.vecdot(moving @ model.process_cov, moving).mean())
            paid = moving @ model.start_mean()
            begin, variance = float(paid.mean()), variance + _spread(paid)
        levels.append((share, noise, variance))
    if spread > 0:
        keep = float(np.exp(-1 / min(LASTING * rounds, LONGEST)))
        levels.append((keep, (1 - keep**2) * spread, spread))
    if not levels:
        problem = "is None, and no arm's reward drifts, so there is no drift to copy"
        raise errors.InvalidInput("features", problem, "give d numbers")
    return levels, begin


def _states_alike(model: LGDS, arms: np.ndarray) -> np.ndarray | None:
    """The states of the first arm if every arm has states of its own of the same kind, else None.

    States that move or begin together belong together.
    """
    transition, process, begin = model.transition, model.process_cov, model.start_cov()
    _, groups = csgraph.connected_components(abs(transition) + abs(process) + abs(begin))
    own = [np.flatnonzero(np.isin(groups, groups[row != 0])) for row in arms]
    if len(np.unique(np.concatenate(own))) < sum(map(len, own)) or not begin[own[0], own[0]].all():
        return None  # shared, or known

    def kind(states: np.ndarray, row: np.ndarray) -> list[np.ndarray]:
        block = np.ix_(states, states)
        return [row[states], model.start_mean()[states]] + [
            matrix[block] for matrix in (transition, process, begin)
        ]

    first, *others = map(kind, own, arms)
    alike = all(all(map(np.array_equal, first, other)) for other in others)
    return own[0] if alike else None


def _spread(values: np.ndarray) -> float:
    """The variance between arms; of a single one, its square."""
    return float(values.var(ddof=1) if len(values) > 1 else values[0] ** 2)


def add_arm(history: History, name: Name, features: Any) -> None:
    """See `Agent.add_arm`. The caller holds the lock."""
    _check_list_can_change(history, "added")
    names = ArmNames([*history.names.all, name], len(history.names) + 1)
    history.policy.check_plays(history.actions, len(names))
    model, arms = history.problem.model, history.problem.arms
    again = next((gone for gone in history.removed if str(gone) == str(name)), name)
    if history.offsets and again != name:  # a model of all that were played has one of each name
        problem = f"is {name!r}, and {again!r} was removed"
        raise errors.InvalidInput("name", problem, f"add {again!r}, or choose another name")
    if history.offsets and features is not None:
        problem = "were given, and the agent learns components of each arm"
        raise errors.InvalidInput("features", problem, "leave them out")
    if features is None:
        rounds = max(history.horizon, history.round - history.base)
        larger, row = with_new_arm(model, arms, rounds)
    else:
        larger, row = model, errors.matrix(features, "features", shape=(model.n_states,))
        checked_arms(row[None], model, "features")
    n_old, n_more = model.n_states, larger.n_states - model.n_states

    def padded(entry: Entry) -> Entry:
        row = None if entry.row is None else np.append(entry.row, np.zeros(n_more))
        return dataclasses.replace(entry, row=row)

    def padded_belief(belief: Belief) -> Belief:
        mean = np.append(belief.mean, larger.start_mean()[n_old:])
        cov = block_diag(belief.cov, larger.start_cov()[n_old:, n_old:])
        return belief._replace(mean=mean, cov=cov)

    new = history.copy(padded)
    new.names = names
    new.removed = tuple(gone for gone in history.removed if gone != again)
    rows = np.vstack([np.pad(arms, ((0, 0), (0, n_more))), row])
    _rebuild(history, new, larger, rows, padded_belief if n_more else lambda belief: belief)


def remove_arm(history: History, name: Name) -> None:
    """See `Agent.remove_arm`. The caller holds the lock."""
    _check_list_can_change(history, "removed")
    gone = history.names.row(name, may_be_new=False)
    if not history.policy.agent.reads_features:
        problem = f"cannot be removed: {history.policy.name} keeps a score for each of its arms"
        raise errors.InvalidInput("arm", problem, "leave it out of ask(arms=[…])")
    if len(history.names) == 1:
        raise errors.InvalidInput("arm", "is the last one", "add another first")
    arms, label = history.problem.arms, history.names[gone]
    features = arms[gone].copy()

    def renumbered(entry: Entry) -> Entry:
        if entry.row is not None or entry.arm < gone:
            return dataclasses.replace(entry)
        if entry.arm == gone:
            return dataclasses.replace(entry, arm=label, row=features, removed=True)
        return dataclasses.replace(entry, arm=entry.arm - 1)

    new = history.copy(renumbered)
    left = [other for other in history.names.all if other != label]
    new.names, new.removed = ArmNames(left, len(left)), (*history.removed, label)
    rows = np.delete(arms, gone, axis=0)
    _rebuild(history, new, history.problem.model, rows, lambda belief: belief)


def replace_model(history: History, model: LGDS | System, start: int | None = None) -> None:
    """See `Agent.replace_model`. The caller holds the lock."""
    check_model(model)
    system = model if isinstance(model, System) and start is None else None
    first = start if system is None else system.first_round
    # A system's clock is the agent's only if both have the same rounds.
    clock = None if system is None or first is None else system.clock
    if first is not None:
        first, oldest = whole_round(first), next((e.round for e in history.ledger), history.now)
        if first > oldest:  # what the model contains would be filtered once more
            argument = "start" if system is None else "system"
            problem = f"the first round is {first}, and the agent goes on from round {oldest}"
            remedy = f"give start_system with a start of {oldest} or before, or make a new agent"
            raise errors.InvalidInput(argument, problem, remedy)
    if clock and history.clock and history.clock.rounds_until(clock, "system"):
        problem = f"counts rounds as {clock}, and the agent as {history.clock}"
        remedy = "learn it from a log with the same first time, or make a new agent"
        raise errors.InvalidInput("system", problem, remedy)
    kept = [entry for entry in history.log if first is None or entry.round >= first]
    kept += history.ledger
    if isinstance(model, System):
        _replace_system(history, model, kept, first, clock)
        return
    d = history.problem.model.n_states
    if model.n_states != d and any(entry.row is not None for entry in kept):
        problem = f"has {model.n_states} states, and arms were played by features of another size"
        raise errors.InvalidInput("model", problem, f"give one of {d} states")
    new = history.copy()
    new.start = None
    arms = history.features
    if not history.contexts:  # beside contexts, `_rebuild` checks the arms
        arms = history.actions.rows(arms, model)
    if len(arms) != len(new.names):  # the sphere's coordinate vectors
        new.names = ArmNames(None, len(arms))
    _rebuild(history, new, model, arms, start=first)


def check_model(model: Any) -> None:
    """Refuse what is no model, such as a fit instead of its system."""
    if not isinstance(model, LGDS | System):
        problem = f"has type {type(model).__name__}"
        raise errors.InvalidInput("model", problem, "give an LGDS, or a System, such as fit.system")


def _replace_system(
    history: History, system: System, kept: list[Entry], start: int | None, clock: Any
) -> None:
    """Go on with the system's arms, matched by name, except for those that were removed."""
    history.actions.check_listed("system", "has arms", "give its model alone")
    every, own = ArmNames(system.names, len(system.arms)), history.names
    lost = [name for name in own.all if name not in every]
    others = len(every) > len(own) and history.keeps_arms
    if history.policy.full_information:
        others = tuple(every.all) != tuple(own.all)
    if lost or others:
        problem = f"has no arm {lost[0]!r}" if lost else "has other arms"
        raise errors.InvalidInput("system", problem, "keep the agent's arms, by their names")
    if system.contexts.keys() != history.contexts.keys():
        theirs, ours = (", ".join(x) or "none" for x in (system.contexts, history.contexts))
        problem = f"has the contexts {theirs}, the agent {ours}"
        raise errors.InvalidInput("system", problem, "keep the agent's contexts")
    left = [name for name in every.all if name not in history.removed]
    names = ArmNames(left, len(left))
    history.policy.check_plays(history.actions, len(names))

    def is_foreign(entry: Entry) -> bool:
        return entry.row is not None and not (entry.removed and entry.arm in every)

    foreign = [entry for entry in kept if is_foreign(entry)]
    rows = every.rows(own.all)
    pairs = [(system.arms, history.problem.arms)]
    pairs += [(system.contexts[name], ours) for name, ours in history.contexts.items()]
    if foreign and not all(np.array_equal(theirs[rows], ours) for theirs, ours in pairs):
        # The new states may be in other coordinates, in which foreign features mean nothing.
        problem = "has other features, and some plays are kept by the agent's own"
        remedy = "keep the agent's features, or make a new agent and tell it the log"
        raise errors.InvalidInput("system", problem, remedy)

    def renamed(entry: Entry) -> Entry:
        if is_foreign(entry):
            return dataclasses.replace(entry)
        name = entry.name(own)
        if name in names:  # it may have been added again
            return dataclasses.replace(entry, arm=names.row(name), row=None, removed=False)
        return dataclasses.replace(entry, row=system.arms[every.row(name)])

    features = _reordered_features(history, system, rows) if history.keeps_arms else None
    new = history.copy(renamed)
    new.names, new.contexts, new.start = names, system.contexts, system.first_round
    new.clock = new.clock or clock
    _rebuild(history, new, system.model, system.arms[every.rows(left)], None, features, start)


def _reordered_features(history: History, system: System, rows: np.ndarray) -> np.ndarray:
    """The agent's features in the system's order, to which refits add offsets."""
    features = np.empty_like(history.features)
    features[rows] = history.features
    d = features.shape[1]
    offsets = system.model.constants[d:]
    if not (np.array_equal(system.arms[:, :d], features) and len(offsets) <= 1 and offsets.all()):
        problem = "has other features than the agent, which learns what belongs to its arms"
        remedy = f"give arms of the agent's {d} features, and perhaps one of offsets"
        raise errors.InvalidInput("system", problem, remedy)
    return features


def _check_list_can_change(history: History, what: str) -> None:
    reasons = {
        f"{history.policy.name} sees the rewards of all arms": history.policy.full_information,
        "the agent learns offsets or components for each arm": history.keeps_arms,
        "the agent's contexts are those of its arms": history.contexts,
    }
    history.actions.check_listed("arm", f"cannot be {what}: it needs a list of arms", REMEDY)
    for reason, holds in reasons.items():
        if holds:
            raise errors.InvalidInput("arm", f"cannot be {what}: {reason}", REMEDY)


def _rebuild(
    history: History,
    new: History,
    model: LGDS,
    arms: np.ndarray,
    keep_belief: Callable[[Belief], Belief] | None = None,
    features: np.ndarray | None = None,
    start: int | None = None,
) -> None:
    """Go on with a copy that has other plays and names, with another model or other arms.

    ``keep_belief`` carries over a Kalman filter's belief. Without it, and for other policies, the
    state is computed again from the plays. ``features``: the arms without offsets, if they differ.
    ``start``: the round of the model's initial state.
    """
    arms, new.contexts = checked(arms, new.contexts, model)
    problem, state = new.prepared(model, by_columns(arms))
    new.refit_task = None  # it is for other arms, or no longer wanted
    new.features = problem.arms if features is None else features
    silent, settled = new.silent, new.ledger
    if keep_belief is not None and is_belief(settled.state):
        state, round_ = keep_belief(settled.state), settled.round
    else:
        new.problem = problem
        if start is not None:
            new.forget(start)
        first = new.log[0].round if new.log and not new.complete else new.base
        state, round_ = new.replay(state, first if start is None else start, new.log)
    new.change_model(problem, state, round_)
    if keep_belief is not None and silent is not None:  # the first random walk, for other arms
        new.silent = silent
        new.resize(anew=True)
    history.adopt(new)
