"""Add an arm, remove one, or replace the model, and keep the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.agent.arm_names import ArmNames
from driftbandit.agent.choosing import by_columns
from driftbandit.agent.core import check_model
from driftbandit.agent.ledger import Entry, refolded
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies import Problem
from driftbandit.system import Name, System

if TYPE_CHECKING:
    from driftbandit.agent.core import Core

__all__ = ["add_arm", "remove_arm", "replace_model", "with_level"]


LASTING = 100.0
"""Memory of what a new arm pays in the long run, in horizons: longer than anybody looks.

It is finite so that a stable model stays stable.
"""
LONGEST = 1e9
"""Most rounds of it: 1 − 1/m must still be below 1 by more than rounding."""


def with_level(model: LGDS, arms: np.ndarray, rounds: float = 1000.0) -> tuple[LGDS, np.ndarray]:
    """Add states: what a new arm pays in the long run, and how that drifts from round to round.

        ρ = Σ aᵀΓZa / Σ aᵀZa,   v = mean aᵀZa,   q = v (1 − ρ²)

    The new arm drifts as the other arms' rewards do on average: ρ is their common autocorrelation
    from one round to the next, v their mean stationary variance. An unstable model has no Z: Σ0
    takes its place, ρ is at most 1, and q = mean aᵀQa.

    The new arm's offset (what it reads of known constants) is the mean of the others'. How far the
    offsets of arms are apart is how far it may miss: if they differ, one more state lasts, with
    their variance; of a single arm, with its offset's square.

    Args:
        model: Γ, Q, σ.
        arms: k × d.
        rounds: the horizon, or how long the agent has played if that is longer.

    Returns:
        The model with one or two more states, and the new arm's features.

    Example:
        >>> model, row = with_level(LGDS([[0.5]], [[3.0]], 1.0), np.array([[1.0], [3.0]]))
        >>> model.transition.tolist(), model.process_cov.tolist(), row.tolist()
        ([[0.5, 0.0], [0.0, 0.5]], [[3.0, 0.0], [0.0, 15.0]], [0.0, 1.0])
    """
    moving = model.without_offsets(arms)
    cov = model.stationary_cov() if model.is_stable else model.start_cov()
    variance = float(np.vecdot(moving @ cov, moving).mean())
    offsets = arms @ np.where(model.constants, model.start_mean(), 0.0)
    spread = float(offsets.var(ddof=1) if len(offsets) > 1 else offsets[0] ** 2)
    levels = []  # (from one round to the next, noise, variance) of each
    if variance > 0:
        share = float(np.vecdot(moving @ model.transition @ cov, moving).mean()) / variance
        noise = variance * max(1 - share**2, 0.0)
        if not model.is_stable:
            share = min(share, 1.0)
            noise = float(np.vecdot(moving @ model.process_cov, moving).mean())
        levels.append((share, noise, variance))
    if spread > 0:
        keep = float(np.exp(-1 / min(LASTING * rounds, LONGEST)))
        levels.append((keep, (1 - keep**2) * spread, spread))
    if not levels:
        problem = "is None, and no arm's reward drifts, so that there is no drift to copy"
        raise errors.InvalidInput("features", problem, "give d numbers")
    shares, noises, variances = zip(*levels, strict=True)
    none = np.zeros(len(levels))
    extended = LGDS(
        _and(model.transition, shares),
        _and(model.process_cov, noises),
        model.reward_std,
        None if model.initial_cov is None else _and(model.initial_cov, variances),
        None if model.initial_mean is None else np.append(model.initial_mean, none),
    )
    read = np.where(model.constants, arms.mean(axis=0), 0.0)
    return extended, np.append(read, none + 1.0)


def _and(matrix: np.ndarray, last: Sequence[float]) -> np.ndarray:
    """The matrix with more rows and columns, zero but for the diagonal."""
    larger = np.pad(matrix, (0, len(last)))
    own = np.arange(len(matrix), len(larger))
    larger[own, own] = last
    return larger


def add_arm(agent: Core, name: Name, features: Any) -> None:
    """See `Agent.add_arm`. The caller holds the lock."""
    _check_list(agent, "added")
    names = ArmNames([*agent._names.all, name], len(agent._names) + 1)
    agent.policy.check_plays(agent.actions, len(names))
    model, arms = agent.problem.model, agent.problem.arms
    removed = tuple(gone for gone in agent._removed if str(gone) != str(name))
    if features is not None:
        row = errors.matrix(features, "features", shape=(model.n_states,))
        checked_arms(row[None], model, "features")
        rows = np.vstack([arms, row])
        _rebuilt(agent, model, rows, names, lambda entry: entry, removed=removed)
        return
    larger, row = with_level(model, arms, max(agent.rounds, agent.round - agent._base))
    more = np.zeros(larger.n_states - model.n_states)
    variances = np.diag(larger.start_cov())[model.n_states :].tolist()

    def padded(entry: Entry) -> Entry:
        if entry.row is not None:
            entry.row = np.append(entry.row, more)
        return entry

    def unknown(belief: Belief) -> Belief:
        return Belief(np.append(belief.mean, more), _and(belief.cov, variances))

    rows = np.vstack([np.pad(arms, ((0, 0), (0, len(more)))), row])
    _rebuilt(agent, larger, rows, names, padded, unknown, removed=removed)


def remove_arm(agent: Core, name: Name) -> None:
    """See `Agent.remove_arm`. The caller holds the lock."""
    _check_list(agent, "removed")
    gone = agent._names.row(name)
    if not agent.policy.agent.reads_features:
        problem = f"cannot be removed: {agent.policy.name} keeps a score for each of its arms"
        raise errors.InvalidInput("arm", problem, "leave it out of ask(arms=[…])")
    if len(agent._names) == 1:
        raise errors.InvalidInput("arm", "is the last one", "add another first")
    features, label = agent.problem.arms[gone].copy(), agent._names[gone]

    def renumbered(entry: Entry) -> Entry:
        if entry.row is None:
            if entry.arm == gone:
                entry.arm, entry.row, entry.removed = label, features, True
            elif entry.arm > gone:
                entry.arm -= 1
        return entry

    left = [other for other in agent._names.all if other != label]
    rows = np.delete(agent.problem.arms, gone, axis=0)
    gone_by = (*agent._removed, label)
    model, names = agent.problem.model, ArmNames(left, len(left))
    _rebuilt(agent, model, rows, names, renumbered, removed=gone_by)


def replace_model(agent: Core, system: LGDS | System) -> None:
    """See `Agent.replace_model`. The caller holds the lock."""
    if isinstance(system, System):
        _replace_system(agent, system)
    else:
        check_model(system)
        names = agent._names
        if not agent.actions.listed:
            arms = agent.actions.rows(None, system)
            names = ArmNames(None, len(arms))
        else:
            arms = checked_arms(agent.features, system)
        _check_rows(agent, system, lambda entry: entry.row is not None)
        _rebuilt(agent, system, arms, names, lambda entry: entry, afresh=True)
    if agent.refit_options is not None:  # a refit that was due would replace it at once
        agent._until_refit = agent.refit_options.pause(len(agent._log))


def _replace_system(agent: Core, system: System) -> None:
    """Go on with the system's arms but for those that were removed, by name."""
    every = ArmNames(system.names, len(system.arms))
    agent.actions.check_listed("system", "has arms", "give its model alone")
    lost = [name for name in agent._names.all if name not in every]
    others = len(every) > len(agent._names) and agent._fixed
    if agent.policy.full_information:
        others = tuple(every.all) != tuple(agent._names.all)
    if lost or others:
        problem = f"has no arm {lost[0]!r}" if lost else "has other arms"
        raise errors.InvalidInput("system", problem, "keep the agent's arms, by their names")
    names, arms = every, system.arms
    if agent._removed:
        left = [row for row, name in enumerate(every.all) if name not in agent._removed]
        names, arms = ArmNames([every[row] for row in left], len(left)), arms[left]
    agent.policy.check_plays(agent.actions, len(names))

    def foreign(entry: Entry) -> bool:
        return entry.row is not None and not (entry.removed and entry.arm in every)

    _check_rows(agent, system.model, foreign)
    rows = every.rows(agent._names.all)
    if any(map(foreign, [*agent._log, *agent._ledger])) and not np.array_equal(
        system.arms[rows], agent.problem.arms
    ):  # learned states may be any others, in which those features say something else
        problem = "has other features, and arms that it does not have were played by theirs"
        remedy = "keep the agent's features, or make a new agent and tell it the log"
        raise errors.InvalidInput("system", problem, remedy)

    def renamed(entry: Entry) -> Entry:
        if entry.row is None:
            entry.arm = names.row(agent._names[entry.arm])
        elif not foreign(entry):
            entry.row = system.arms[every.row(entry.arm)]
            if entry.arm in names:  # it was added again
                entry.arm, entry.row, entry.removed = names.row(entry.arm), None, False
        return entry

    features = _features(agent, system, rows) if agent._fixed else None
    _rebuilt(agent, system.model, arms, names, renamed, afresh=True, features=features)


def _check_rows(agent: Core, model: LGDS, counts: Callable[[Entry], bool]) -> None:
    """Refuse a model of another size than the features that were played."""
    for entry in [*agent._log, *agent._ledger]:
        if counts(entry) and len(entry.row) != model.n_states:
            raise errors.InvalidInput(
                "model",
                f"has {model.n_states} states, and arms were played by their features, of another",
                f"give one of {agent.problem.model.n_states} states",
            )


def _features(agent: Core, system: System, rows: np.ndarray) -> np.ndarray:
    """The agent's features in the system's order, beside which offsets are learned."""
    features = np.empty_like(agent.features)
    features[rows] = agent.features
    d = features.shape[1]
    offsets = system.model.constants[d:]
    if not (np.array_equal(system.arms[:, :d], features) and len(offsets) <= 1 and offsets.all()):
        problem = "has other features, and what arms pay beside the agent's is learned"
        remedy = f"give arms of the agent's {d} features, and perhaps one of offsets"
        raise errors.InvalidInput("system", problem, remedy)
    return features


def _check_list(agent: Core, what: str) -> None:
    reason = None
    if not agent.actions.listed:
        reason = "the agent plays on the sphere"
    elif agent.policy.full_information:
        reason = f"{agent.policy.name} sees the rewards of all arms"
    elif agent._fixed:
        reason = "what arms pay beside their features is learned"
    if reason is not None:
        problem = f"cannot be {what}: {reason}"
        raise errors.InvalidInput("arm", problem, "make a new agent")


def _rebuilt(
    agent: Core,
    model: LGDS,
    arms: np.ndarray,
    names: ArmNames,
    moved: Callable[[Entry], Entry],
    extended: Callable[[Belief], Belief] = lambda belief: belief,
    *,
    afresh: bool = False,
    features: np.ndarray | None = None,
    removed: tuple[Name, ...] | None = None,
) -> None:
    """Change the agent's model, arms and names, and the rows of the plays it keeps.

    ``features``: the arms without their offsets; None: the arms. ``removed``: names that are no
    longer offered; None: as before.

    A Kalman filter's belief does not depend on the list of arms, so it stays unless the model is
    replaced (``afresh``). Any other state is computed again from the plays that the agent keeps.
    """
    arms = by_columns(checked_arms(arms, model))
    constants, fresh = agent.policy.prepare(model, arms, agent.rounds)
    problem = Problem(model, arms, constants)
    kept, ledger = agent._backup(), agent._ledger
    try:
        agent._learning = None  # what is being learned is of other arms, or no longer wanted
        entries = [moved(entry.copy()) for entry in agent._log]
        agent._log.clear()
        agent._log.extend(entries)
        for entry in ledger:
            moved(entry)
        state, round_ = ledger.state, ledger.round
        if isinstance(state, Belief) and not afresh:
            state = extended(state)
        else:
            state, round_ = refolded(agent.policy, problem, fresh, agent._first_round(), entries)
        agent._names = names
        agent.features = arms if features is None else features
        agent._removed = agent._removed if removed is None else removed
        agent._change(problem, state, round_)
        agent._check_reach(agent.round)
        ledger.at(agent.round)
    except BaseException:
        agent._restore(kept)
        raise
