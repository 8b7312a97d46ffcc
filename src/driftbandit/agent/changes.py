"""Adding an arm, removing one, or replacing the model, without losing the history."""

from __future__ import annotations

import copy
from collections import deque
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
from driftbandit.contexts import Contexts, checked
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
    for states, row in zip(own, arms, strict=True):
        if len(states) != len(own[0]):
            return None
        pairs = [(row[states], arms[0, own[0]])]
        pairs.append((model.start_mean()[states], model.start_mean()[own[0]]))
        for matrix in (transition, process, begin):
            pairs.append((matrix[np.ix_(states, states)], matrix[np.ix_(own[0], own[0])]))
        if not all(map(np.array_equal, *zip(*pairs, strict=True))):
            return None
    return own[0]


def _spread(values: np.ndarray) -> float:
    """The variance between arms; of a single one, its square."""
    return float(values.var(ddof=1) if len(values) > 1 else values[0] ** 2)


def add_arm(history: History, name: Name, features: Any) -> None:
    """See `Agent.add_arm`. The caller holds the lock."""
    _check_list_can_change(history, "added")
    names = ArmNames([*history.names.all, name], len(history.names) + 1)
    history.policy.check_plays(history.actions, len(names))
    model, arms = history.problem.model, history.problem.arms
    removed = tuple(gone for gone in history.removed if str(gone) != str(name))
    if history.offsets:  # a model of all arms that were played has one of each name
        for gone in history.removed:
            if str(gone) == str(name) and gone != name:
                problem = f"is {name!r}, and {gone!r} was removed"
                raise errors.InvalidInput("name", problem, f"add {gone!r}, or choose another name")
    if features is not None:
        if history.offsets:
            problem = "were given, and the agent learns components of each arm"
            raise errors.InvalidInput("features", problem, "leave them out")
        row = errors.matrix(features, "features", shape=(model.n_states,))
        checked_arms(row[None], model, "features")
        _rebuild(history, model, np.vstack([arms, row]), names, removed=removed)
        return
    larger, row = with_new_arm(model, arms, max(history.horizon, history.round - history.base))
    more = np.zeros(larger.n_states - model.n_states)
    means = larger.start_mean()[model.n_states :]
    begin = larger.start_cov()[model.n_states :, model.n_states :]

    def padded(entry: Entry) -> None:
        if entry.row is not None:
            entry.row = np.append(entry.row, more)

    def padded_belief(belief: Belief) -> Belief:
        mean, cov = np.append(belief.mean, means), block_diag(belief.cov, begin)
        return belief._replace(mean=mean, cov=cov)

    rows = np.vstack([np.pad(arms, ((0, 0), (0, len(more)))), row])
    _rebuild(history, larger, rows, names, padded, keep_belief=padded_belief, removed=removed)


def remove_arm(history: History, name: Name) -> None:
    """See `Agent.remove_arm`. The caller holds the lock."""
    _check_list_can_change(history, "removed")
    gone = history.names.row(name, may_be_new=False)
    if not history.policy.agent.reads_features:
        problem = f"cannot be removed: {history.policy.name} keeps a score for each of its arms"
        raise errors.InvalidInput("arm", problem, "leave it out of ask(arms=[…])")
    if len(history.names) == 1:
        raise errors.InvalidInput("arm", "is the last one", "add another first")
    features, label = history.problem.arms[gone].copy(), history.names[gone]

    def renumbered(entry: Entry) -> None:
        if entry.row is None:
            if entry.arm == gone:
                entry.arm, entry.row, entry.removed = label, features, True
            elif entry.arm > gone:
                entry.arm -= 1

    left = [other for other in history.names.all if other != label]
    rows = np.delete(history.problem.arms, gone, axis=0)
    removed = (*history.removed, label)
    names = ArmNames(left, len(left))
    _rebuild(history, history.problem.model, rows, names, renumbered, removed=removed)


def replace_model(history: History, model: LGDS | System, start: int | None = None) -> None:
    """See `Agent.replace_model`. The caller holds the lock."""
    if start is not None:
        start = whole_round(start)
        oldest = next((entry.round for entry in history.ledger), history.now)
        if start > oldest:
            problem = f"is {start}, after the decision in round {oldest}, which is open"
            raise errors.InvalidInput("start", problem, f"give {oldest} or an earlier round")
    if isinstance(model, System):
        clock = None  # that of a system is the agent's only if both have the same rounds
        if start is None and model.first_round is not None:
            if history.clock is not None and model.clock is not None:
                _check_clock(history.clock, model.clock)
            start, clock = _checked_first_round(history, model.first_round), model.clock
        _replace_system(history, model, start, clock)
        return
    check_model(model)
    arms, names = history.features, history.names
    if not history.contexts:  # beside contexts, `_rebuild` checks the arms
        arms = history.actions.rows(arms, model)
    if len(arms) != len(names):  # the sphere's coordinate vectors
        names = ArmNames(None, len(arms))
    played = [entry for entry in _kept(history, start) if entry.row is not None]
    _check_size_of_played(history, model, played)
    _rebuild(history, model, arms, names, keep_belief=None, start=start)


def _check_clock(own: Any, other: Any) -> None:
    """Refuse a system whose rounds are not the agent's."""
    if own.rounds_until(other, "system") != 0:
        problem = f"counts rounds as {other}, and the agent as {own}"
        remedy = "learn it from a log with the same first time, or make a new agent"
        raise errors.InvalidInput("system", problem, remedy)


def _checked_first_round(history: History, first: int) -> int:
    """Refuse a system that contains plays which the agent would filter once more."""
    oldest = next((entry.round for entry in history.ledger), None)
    if oldest is not None and oldest < first:
        where = f"and the agent's window begins with the play of round {oldest}"
    elif history.now < first:
        where = f"and the agent is in round {history.now}"
    else:
        return first
    remedy = "make a new agent of it, or give start_system, and its first round as start"
    raise errors.InvalidInput("system", f"starts in round {first}, {where}", remedy)


def check_model(model: Any) -> None:
    """Refuse what is no model, such as a fit instead of its system."""
    if not isinstance(model, LGDS | System):
        problem = f"has type {type(model).__name__}"
        raise errors.InvalidInput("model", problem, "give an LGDS, or a System, such as fit.system")


def _replace_system(history: History, system: System, start: int | None, clock: Any) -> None:
    """Go on with the system's arms, matched by name, except for those that were removed."""
    every = ArmNames(system.names, len(system.arms))
    history.actions.check_listed("system", "has arms", "give its model alone")
    lost = [name for name in history.names.all if name not in every]
    others = len(every) > len(history.names) and history.keeps_arms
    if history.policy.full_information:
        others = tuple(every.all) != tuple(history.names.all)
    if lost or others:
        problem = f"has no arm {lost[0]!r}" if lost else "has other arms"
        raise errors.InvalidInput("system", problem, "keep the agent's arms, by their names")
    if system.contexts.keys() != history.contexts.keys():
        theirs, ours = (", ".join(one) or "none" for one in (system.contexts, history.contexts))
        problem = f"has the contexts {theirs}, the agent {ours}"
        raise errors.InvalidInput("system", problem, "keep the agent's contexts")
    names, arms = every, system.arms
    if history.removed:
        left = [row for row, name in enumerate(every.all) if name not in history.removed]
        names, arms = ArmNames([every[row] for row in left], len(left)), arms[left]
    history.policy.check_plays(history.actions, len(names))

    def is_foreign(entry: Entry) -> bool:
        return entry.row is not None and not (entry.removed and entry.arm in every)

    foreign = [entry for entry in _kept(history, start) if is_foreign(entry)]
    _check_size_of_played(history, system.model, foreign)
    rows = every.rows(history.names.all)
    pairs = [(system.arms, history.problem.arms)]
    pairs += [(system.contexts[name], ours) for name, ours in history.contexts.items()]
    same = all(np.array_equal(theirs[rows], ours) for theirs, ours in pairs)
    if foreign and not same:
        # The new states may be in other coordinates, in which foreign features mean nothing.
        problem = "has other features, and arms that it does not have were played by theirs"
        if history.contexts:
            problem = "has other features, and plays are kept with those of their contexts"
        remedy = "keep the agent's features, or make a new agent and tell it the log"
        raise errors.InvalidInput("system", problem, remedy)
    old_names = history.names

    def renamed(entry: Entry) -> None:
        if entry.row is None:
            entry.arm = names.row(old_names[entry.arm])
        elif not is_foreign(entry):
            entry.row = system.arms[every.row(entry.arm)]
            if entry.arm in names:  # it was added again
                entry.arm, entry.row, entry.removed = names.row(entry.arm), None, False

    features = _reordered_features(history, system, rows) if history.keeps_arms else None
    given: dict[str, Any] = {"features": features, "contexts": system.contexts, "start": start}
    given["first_round"] = system.first_round
    given["clock"] = clock
    _rebuild(history, system.model, arms, names, renamed, keep_belief=None, **given)


def _kept(history: History, start: int | None) -> list[Entry]:
    """The plays that are filtered again under a model that starts in round ``start``."""
    return [entry for entry in history.log if start is None or entry.round >= start] + [
        *history.ledger
    ]


def _check_size_of_played(history: History, model: LGDS, played: list[Entry]) -> None:
    """Refuse a model that does not fit the features that were played."""
    for entry in played:
        assert entry.row is not None
        if len(entry.row) != model.n_states:
            wrong = f"has {model.n_states} states, and arms were played by features of another size"
            remedy = f"give one of {history.problem.model.n_states} states"
            raise errors.InvalidInput("model", wrong, remedy)


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
    history.actions.check_listed("arm", f"cannot be {what}: it needs a list of arms", REMEDY)
    reason = None
    if history.policy.full_information:
        reason = f"{history.policy.name} sees the rewards of all arms"
    elif history.keeps_arms:
        reason = "the agent learns offsets or components for each arm"
    elif history.contexts:
        reason = "the agent's contexts are those of its arms"
    if reason is not None:
        raise errors.InvalidInput("arm", f"cannot be {what}: {reason}", REMEDY)


def _unchanged(value: Any) -> Any:
    return value


def _rebuild(
    history: History,
    model: LGDS,
    arms: np.ndarray,
    names: ArmNames,
    update_entry: Callable[[Entry], None] = _unchanged,
    *,
    keep_belief: Callable[[Belief], Belief] | None = _unchanged,
    features: np.ndarray | None = None,
    removed: tuple[Name, ...] | None = None,
    contexts: Contexts | None = None,
    start: int | None = None,
    first_round: int | None = None,
    clock: Any = None,
) -> None:
    """Change the agent's model, arms and names, and adapt the plays it keeps (``update_entry``).

    ``keep_belief`` carries over a Kalman filter's belief. Without it, and for other policies, the
    state is computed again from the plays. ``features``: the arms without offsets, if they differ.
    ``contexts``: the B_j, if they change. ``start``: the round of the model's initial state;
    ``first_round``: that of a new system, which contains earlier ones; ``clock``: its
    own, if the agent has none.
    """
    arms, contexts = checked(arms, history.contexts if contexts is None else contexts, model)
    arms = by_columns(arms)
    problem, fresh = history.prepared(model, arms)
    new = history.copy()
    new.refit_task = None  # it is for other arms, or no longer wanted
    new.log = deque((copy.copy(entry) for entry in new.log), new.log.maxlen)
    for entry in [*new.log, *new.ledger]:
        update_entry(entry)
    state, round_ = new.ledger.state, new.ledger.round
    if is_belief(state) and keep_belief is not None:
        state = keep_belief(state)
    else:
        new.names, new.problem = names, problem
        if start is not None:
            new.forget(start)
        state, round_ = new.replay(fresh, new.first_round() if start is None else start, new.log)
    new.names, new.features = names, arms if features is None else features
    new.contexts = contexts
    if removed is not None:
        new.removed = removed
    if keep_belief is None:  # another model
        new.start = first_round
        new.clock = clock if new.clock is None else new.clock
    new.change_model(problem, state, round_)
    if keep_belief is not None and history.guess:  # the first random walk, for other arms
        new.guess, new.silent = True, history.silent.copy()
        new.resize(anew=True)
    history.adopt(new)
