"""Add an arm, remove one, or replace the model, and keep the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.agent.arm_names import ArmNames
from driftbandit.agent.choosing import by_columns
from driftbandit.agent.ledger import Entry, refolded
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies import Problem
from driftbandit.sphere import offer as sphere
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
    agent.policy.check_count(len(names))
    model, arms = agent.problem.model, agent.problem.arms
    if features is not None:
        row = errors.matrix(features, "features", shape=(model.states,))
        checked_arms(row[None], model, "features")
        _rebuilt(agent, model, np.vstack([arms, row]), names, lambda entry: entry)
        return
    larger, row = with_level(model, arms, max(agent.rounds, agent.round - agent._base))
    more = np.zeros(larger.states - model.states)
    variances = np.diag(larger.start_cov())[model.states :].tolist()

    def padded(entry: Entry) -> Entry:
        if entry.row is not None:
            entry.row = np.append(entry.row, more)
        return entry

    def unknown(belief: Belief) -> Belief:
        return Belief(np.append(belief.mean, more), _and(belief.cov, variances))

    rows = np.vstack([np.pad(arms, ((0, 0), (0, len(more)))), row])
    _rebuilt(agent, larger, rows, names, padded, unknown)


def remove_arm(agent: Core, name: Name) -> None:
    """See `Agent.remove_arm`. The caller holds the lock."""
    _check_list(agent, "removed")
    gone = agent._names.row(name)
    if not agent.policy.reads_features:
        problem = f"cannot be removed: {agent.policy.name} keeps a score for each of its arms"
        raise errors.InvalidInput("arm", problem, "leave it out of ask(arms=[…])")
    if len(agent._names) == 1:
        raise errors.InvalidInput("arm", "is the last one", "add another first")
    features, label = agent.problem.arms[gone].copy(), agent._names[gone]

    def renumbered(entry: Entry) -> Entry:
        if entry.row is None:
            if entry.arm == gone:
                entry.arm, entry.row = label, features
            elif entry.arm > gone:
                entry.arm -= 1
        return entry

    left = [other for other in agent._names.all if other != label]
    rows = np.delete(agent.problem.arms, gone, axis=0)
    _rebuilt(agent, agent.problem.model, rows, ArmNames(left, len(left)), renumbered)


def replace_model(agent: Core, system: LGDS | System) -> None:
    """See `Agent.replace_model`. The caller holds the lock."""
    if isinstance(system, System):
        model, arms, names = system.model, system.arms, ArmNames(system.names, len(system.arms))
        if agent.on_sphere:
            problem = "has arms, and the agent plays on the sphere"
            raise errors.InvalidInput("system", problem, "give its model alone")
        lost = [name for name in agent._names.all if name not in names]
        if lost or (agent.policy.sees_all_rewards and tuple(names.all) != tuple(agent._names.all)):
            problem = f"has no arm {lost[0]!r}" if lost else "has other arms"
            raise errors.InvalidInput("system", problem, "keep the agent's arms, by their names")
    else:
        model, names = system, agent._names
        if agent.on_sphere:
            arms = sphere.coordinates(model)
            names = ArmNames(None, len(arms))
        else:
            arms = checked_arms(agent.features, model)
    entries = [*agent._log, *agent._ledger]
    if any(entry.row is not None and len(entry.row) != model.states for entry in entries):
        problem = f"has {model.states} states, and arms were played by their features, of another"
        raise errors.InvalidInput(
            "model", problem, f"give one of {agent.problem.model.states} states"
        )

    def renamed(entry: Entry) -> Entry:
        if entry.row is None:
            entry.arm = names.row(agent._names[entry.arm])
        return entry

    agent.policy.check_count(len(names))
    _rebuilt(agent, model, arms, names, renamed, afresh=True)
    if agent.refit_options is not None:  # a refit that was due would replace it at once
        agent._until_refit = agent.refit_options.pause(len(agent._log))


def _check_list(agent: Core, what: str) -> None:
    reason = None
    if agent.on_sphere:
        reason = "the agent plays on the sphere"
    elif agent.policy.sees_all_rewards:
        reason = f"{agent.policy.name} sees the rewards of all arms"
    elif agent.refit_options is not None and agent.refit_options.offsets:
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
) -> None:
    """Change the agent's model, arms and names, and the rows of the plays it keeps.

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
        agent.features = arms
        agent._change(problem, state, round_)
        agent._check_reach(agent.round)
        ledger.at(agent.round)
    except BaseException:
        agent._restore(kept)
        raise
