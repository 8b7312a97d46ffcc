"""Learning the model from the agent's own log, while it decides or before it does.

A refit works on a snapshot of the log and is swapped in when it is done.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, kalman
from driftbandit.agent.choosing import by_columns
from driftbandit.agent.first_rewards import reads_own_states
from driftbandit.agent.history import History
from driftbandit.agent.ledger import Entry, replayed
from driftbandit.model import LGDS
from driftbandit.structure import parse
from driftbandit.system import LAST_ROUND

STRUCTURES = ("free", "diagonal", "scalar")  # of Γ; others are sums of components
OF_NAMES = "level(arm)"  # what is learned of arms without features
"""On drifting clicks, a mean and a memory, or a choice by held-out rewards, earned no more."""
FIRST = 200  # settled rewards before the first refit, if a matrix is learned
PER_ARM = 10  # and for each arm, if components are
SHARE = 0.8  # of a log, from which a model is learned that has to predict the rest
FEW = 100  # most rewards that are filtered while the agent is locked

Play = tuple[int, np.ndarray | None, float]
"""A round, what was read of the states of a model, and the reward. None: the model cannot tell."""

logger = logging.getLogger("driftbandit")


@dataclasses.dataclass(frozen=True)
class Refit:
    """When and how an agent learns its model from its own log.

    The log holds the settled rewards, those older than the agent's window, so what is learned does
    not depend on the order in which rewards came. The first refit follows after ``after`` settled
    rewards, the next whenever the log has grown by ``growth`` of itself, and by ``after`` at least.
    A new model replaces the present one only if it predicts later rewards at least as well.

    Args:
        after: settled rewards before the first refit. None: 200; or 10 for each arm, from 20 to
            200, if the agent starts without a model and learns components, which are few numbers.
        growth: relative growth of the log until the next refit.
        memory: how many settled rewards are kept, the newest.
        structure: of Γ: "free", "diagonal" or "scalar"; or components of arms, as
            "level(arm) + season(7)", whose parameters are learned. The features of the arms are
            then not used, and `Agent.ask` takes no new ones. Arms can be added and removed if each
            arm has its own copy of every component, and all copies have the same parameters. None:
            "level(arm)" for an agent without a model whose arms have nothing in common, else
            "free"; see `for_agent`.
        stable: not used; older agents have it.
        offsets: whether arms pay an offset of their own; `Agent.ask` then takes no new features,
            and arms can be neither added nor removed.
        iterations: most iterations of the search for a transition matrix.
        scale: rough spread of the rewards, for the initial random walk. None: its spread, and the
            mean from which it starts, are learned from the first rewards.
        background: learn in a thread; decisions go on with the old model until the new one is
            ready, since a service cannot wait the seconds that a fit takes. Which decision is the
            first under the new model then depends on timing. False: `Agent.ask` waits, so that the
            same rewards always give the same decisions, as experiments need.
        check: whether to learn a model from the first 80% of the log before, and to keep the
            present one if that predicts the other rewards better; `Agent.refit_failure` says so.

    Example:
        An agent without a model, which learns one from its first 200 rewards.

        >>> from driftbandit import Agent
        >>> plan = Refit(after=200, structure="diagonal")
        >>> agent = Agent(None, [[1.0, 0.0], [0.0, 1.0]], refit=plan)
        >>> agent.model.is_stable  # until then, a random walk
        False
        >>> plan.pause(200), plan.pause(2000)  # settled rewards until the next refit
        (200, 1000)
        >>> plan.by_arm, Refit(structure="level(arm) + season(7)").by_arm
        (False, True)
        >>> Refit(structure="level(arm) + season(7)").keeps_arms  # none can be added or removed
        True
        >>> Refit(structure="level(arm) + season(7, arm)").keeps_arms  # each has its own season
        False

        Names are enough: nothing is known of the arms, so each gets a level of its own.

        >>> Agent(names=["red", "blue"]).refit_options.structure
        'level(arm)'
    """

    after: int | None = None
    growth: float = 0.5
    memory: int = 5000
    structure: str | None = None
    stable: bool = True
    offsets: bool = False
    iterations: int = 100
    scale: float | None = None
    background: bool = True
    check: bool = True

    def __post_init__(self) -> None:
        if self.after is not None:
            errors.whole_number(self.after, "after", low=2, high=LAST_ROUND)
        errors.number(self.growth, "growth", low=0)
        errors.whole_number(self.memory, "memory", low=self.after or 2, high=LAST_ROUND)
        if self.structure is not None and self.structure not in STRUCTURES:
            structure = parse(self.structure, STRUCTURES)
            object.__setattr__(self, "structure", str(structure))  # as it is stored
            for component in structure.components:
                if component.scope == "group" or component.features:
                    problem = f"has {component}, and an agent's log has neither groups nor features"
                    raise errors.InvalidInput("structure", problem, "leave it out")
        errors.whole_number(self.iterations, "iterations", low=1)
        if self.scale is not None:
            errors.number(self.scale, "scale", low=0, strict=True)
        for field in ("stable", "offsets", "background", "check"):
            errors.boolean(getattr(self, field), field)

    def for_agent(self, arms: np.ndarray, *, has_model: bool) -> Refit:
        """The same, with a structure, a first refit and a scale if none was chosen.

        Without a model, and if each arm reads a state of its own, the features say nothing of the
        arms: "level(arm)" learns two numbers instead of a matrix. A model that was given, features
        that arms share, and offsets ask for a transition matrix.

        Args:
            arms: k × d.
            has_model: whether a model was given.

        Example:
            >>> Refit().for_agent(np.eye(3), has_model=False).structure
            'level(arm)'
            >>> Refit().for_agent(np.array([[1.0, 0.5], [0.0, 1.0]]), has_model=False).structure
            'free'
            >>> [Refit().for_agent(np.eye(k), has_model=False).after for k in (2, 5, 50)]
            [20, 50, 200]
        """
        by_level = reads_own_states(arms) and not (has_model or self.offsets)
        structure = self.structure or (OF_NAMES if by_level else "free")
        first = FIRST
        if not has_model and structure not in STRUCTURES:
            first = min(max(PER_ARM * len(arms), FIRST // 10), FIRST)
        after = self.after or min(first, self.memory)
        scale = self.scale or (1.0 if has_model else None)  # of a model nothing starts from it
        return dataclasses.replace(self, structure=structure, after=after, scale=scale)

    def pause(self, seen: int) -> int:
        """How many more settled rewards until the next refit, after one that used ``seen``.

        Args:
            seen: settled rewards that the last refit used; 0: there was none.

        Example:
            >>> Refit().pause(0), Refit(after=50).pause(1000)
            (200, 500)
        """
        return max(self.after or FIRST, int(self.growth * min(seen, self.memory)))

    @property
    def by_arm(self) -> bool:
        """Whether the model belongs to the agent's arms, so that others cannot be played."""
        return self.offsets or self.structure not in (None, *STRUCTURES)

    @property
    def keeps_arms(self) -> bool:
        """Whether arms can be neither added nor removed: not all of them have the same prior."""
        if self.offsets or not self.by_arm:
            return self.offsets
        components = parse(self.structure).components
        return any(component.scope != "arm" or component.own for component in components)


def learned(
    entries: Sequence[Entry], arms: np.ndarray, options: Refit, start: LGDS | None
) -> tuple[LGDS, np.ndarray]:
    """The most likely model of the entries, and the agent's arms as this model reads them.

    Args:
        entries: plays in order; a reward may be NaN.
        arms: k × d; components do not use their features.
        options: what to learn.
        start: the model to start from, unless components are learned; None: there is none.
    """
    from driftbandit.identify import fitting
    from driftbandit.io import logs  # JAX, and pyarrow

    if options.by_arm:
        rows, numbers = arms, np.array([entry.arm for entry in entries])
    else:
        played = [entry.features(arms) for entry in entries]
        rows, numbers = np.unique(played, axis=0, return_inverse=True)
    rounds = np.array([entry.round for entry in entries], np.int64)
    rewards = np.array([entry.reward for entry in entries])
    sequence = logs.Sequence(rounds - rounds[0], numbers.astype(np.int64), rewards)
    log = logs.Log((sequence,), tuple(str(row) for row in range(len(rows))))
    structure = options.structure or "free"
    how: dict[str, Any] = {"starts": 2}
    if structure in STRUCTURES:
        how = {"arms": rows, "offsets": options.offsets, "starts": 1, "start": start}
        how["iterations"] = options.iterations
    system = fitting.fit(log, structure=structure, **how).start_system
    return system.model, by_columns(system.arms) if options.by_arm else arms


class Refused(Exception):
    """The present model predicts better than the one that was learned, and stays."""


def log_densities(model: LGDS, plays: Iterable[Play], base: int) -> np.ndarray:
    """Of each reward, given those before it; NaN of a play that the model cannot tell.

    Args:
        model: Γ, Q, σ.
        plays: in order.
        base: the round in which the model starts.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
        >>> plays = [(0, np.ones(1), 1.0), (1, np.ones(1), 2.0), (2, None, 0.5)]
        >>> log_densities(model, plays, base=0).round(3)
        array([-2.021, -2.131,    nan])
    """
    belief, now, densities = kalman.prior(model), base, []
    for round_, row, reward in plays:
        if row is None:
            densities.append(math.nan)
            continue
        if round_ > now:
            belief, now = kalman.advance(belief, model, round_ - now), round_
        variance = float(kalman.spread(belief.cov, model, row).variance)
        square = (reward - float(row @ belief.mean)) ** 2
        if math.isinf(variance):  # it was known in advance
            densities.append(0.0 if square == 0 else -math.inf)
        else:
            densities.append(-0.5 * (math.log(2 * math.pi * variance) + square / variance))
        belief = kalman.observe(belief, model, row, reward)
    return np.array(densities)


class Present(NamedTuple):
    """The present model, the plays that are known, the newest last, and the round it starts in."""

    model: LGDS
    plays: Sequence[Play]
    base: int


def relearned(
    entries: Sequence[Entry],
    arms: np.ndarray,
    options: Refit,
    start: LGDS | None,
    present: Present | None,
) -> tuple[LGDS, np.ndarray]:
    """`learned`, unless the ``present`` model predicts better; None: that is not checked.

    A model is learned from the first 80% of the rewards, and both predict the others. Differences
    within one standard error do not count: all rewards teach more than most do.
    """
    told = [entry for entry in entries if not math.isnan(entry.reward)]
    cut = told[int(SHARE * len(told))].round
    first = [entry for entry in told if entry.round < cut]
    n_last = len(told) - len(first)
    if present is not None and min(len(first), n_last) >= 2:
        model, rows = learned(first, arms, options, start)
        plays = [(entry.round, entry.features(rows), entry.reward) for entry in told]
        with np.errstate(all="ignore"):
            new = log_densities(model, plays, told[0].round)[-n_last:]
            old = log_densities(*present)[-n_last:]
            new, old = new[~np.isnan(old)], old[~np.isnan(old)]
            _check_not_worse(new, old)
    return learned(entries, arms, options, start)


def _check_not_worse(new: np.ndarray, old: np.ndarray) -> None:
    """Refuse log-densities that are worse than the old ones, by more than a standard error."""
    n_rewards = len(old)
    if n_rewards < 2:
        return
    worse = (old - new).mean() > (new - old).std(ddof=1) / math.sqrt(n_rewards)
    if worse or (np.isfinite(old).all() and not np.isfinite(new).all()):
        figures = f"log-density per reward {old.mean():.3g}, not {new.mean():.3g}"
        said = f"the present model stays: it predicted the last {n_rewards} rewards better"
        raise Refused(f"{said} than a new one ({figures})")


class RefitTask:
    """One refit of an agent, from a snapshot of its log, made under the agent's lock.

    It replaces a refit in progress. ``since``: the round of a change. What was settled before is
    forgotten when the new model is swapped in, except for the newest `Refit.after` rewards.
    """

    def __init__(self, history: History, options: Refit, since: int | None = None) -> None:
        self.history, self.options = history, options
        self.entries, self.present = list(history.log), None
        if options.check:
            model, arms, _ = history.problem
            plays = [(entry.round, entry.features(arms), entry.reward) for entry in self.entries]
            self.present = Present(model, plays, history.base)
        if since is not None:  # but never from too few
            since = min(since, self.entries[-min(options.pause(0), len(self.entries))].round)
            self.entries = [entry for entry in self.entries if entry.round >= since]
        self.features = history.features
        # A model of components has states for every arm that was played, also for removed ones,
        # which follow the agent's own.
        removed = [entry.arm for entry in (*history.log, *history.ledger) if entry.removed]
        names = dict.fromkeys([*history.names.all, *removed] if options.by_arm else ())
        self.places = {name: place for place, name in enumerate(names)}
        self.start = history.problem.model if history.has_model else None
        self.done = threading.Event()
        self.until_refit = history.until_refit
        history.refit_task, history.since_refit = self, []

    def begin(self) -> None:
        """Run, in the background if so chosen; if it fails, `Agent.refit_failure` says why."""
        if self.options.background:
            # Not a daemon: an interpreter that exits while JAX computes may crash, so it waits.
            threading.Thread(target=self.run, args=(True,), name="driftbandit refit").start()
        else:
            self.run(scheduled=True)

    def run(self, scheduled: bool = False) -> None:
        """Learn the model, filter the log under it, and swap it in unless the task was replaced.

        If a ``scheduled`` refit fails, decisions go on with the present model.
        """
        history = self.history
        try:
            self._learn_and_swap()
        except Exception as error:
            refused = isinstance(error, Refused)
            if not (scheduled or refused):
                raise
            with history.lock:
                if history.refit_task is self:
                    history.refit_failure = str(error) or type(error).__name__
                    level = logging.INFO if refused else logging.WARNING
                    logger.log(level, "the model was not replaced: %s", error)
        finally:
            with history.lock:
                if history.refit_task is self:
                    history.refit_task = None
                    history.until_refit += self.options.pause(len(self.entries)) - self.until_refit
            self.done.set()

    def _learn_and_swap(self) -> None:
        history, policy = self.history, self.history.policy
        n_arms, rows = len(self.features), self.features
        if len(self.places) > n_arms:  # components do not use features, so any will do
            rows = np.vstack([rows, np.ones((len(self.places) - n_arms, rows.shape[1]))])
        entries = [self._reread(entry) for entry in self.entries]
        model, arms = relearned(entries, rows, self.options, self.start, self.present)
        own = arms if len(arms) == n_arms else by_columns(arms[:n_arms])
        problem, state = history.prepared(model, own)

        def reread(entry: Entry) -> Entry:
            return self._reread(entry, arms)

        base = round_ = self.entries[0].round  # a fit counts rounds from the log's first
        more = self.entries
        while True:
            state, round_ = replayed(policy, problem, state, round_, map(reread, more))
            with history.lock:
                if history.refit_task is not self:
                    return
                more, history.since_refit = history.since_refit, []
                if len(more) > FEW:
                    continue
                state, round_ = replayed(policy, problem, state, round_, map(reread, more))
                new = history.copy(reread)
                new.forget(base)
                new.start = None  # the new model knows only the agent's own log
                if new.watch is not None:
                    new.watch.restart(model)
                new.change_model(problem, state, round_)
                history.adopt(new)
                return

    def _reread(self, entry: Entry, arms: np.ndarray | None = None) -> Entry:
        """The play of a removed arm as one of the arms that are learned; others as they are.

        ``arms``: how the new model reads all of them. One that was not added again is played by its
        features.
        """
        if not (self.options.by_arm and entry.removed):
            return dataclasses.replace(entry)
        place = self.places[entry.arm]
        if arms is None or place < len(self.features):
            return dataclasses.replace(entry, arm=place, row=None, removed=False)
        return dataclasses.replace(entry, row=arms[place])
