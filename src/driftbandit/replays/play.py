"""`replay`: learn the model from the first part of real data, play the rest with every policy."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.agent import Agent
from driftbandit.io.logs import Log
from driftbandit.policies import REGISTRY, Policy, available, make
from driftbandit.policies import chosen as labeled
from driftbandit.replays import baselines, learning, off_policy
from driftbandit.replays.data import Table, read, table_of
from driftbandit.replays.datasets import DATASETS, is_path, load
from driftbandit.replays.decisions import CHANCES, Decisions, decisions_of, has_chances
from driftbandit.replays.learning import Outcome, Progress, Settings
from driftbandit.replays.result import LEADER, Played, Replay

POLICIES = tuple(name for name, entry in REGISTRY.items() if entry.quick)  # by default
# The reference strategies of a table of all arms.
FIXED = ("best_arm", LEADER, "full_information", "per_round_best", "random")
FULL = (*FIXED, *baselines.BASELINES)


def replay(
    data: Any,
    policies: Any = None,
    *,
    features: Any = None,
    train: float = 0.5,
    n_states: int | None = None,
    warm: bool = True,
    runs: int = 10,
    seed: int = 0,
    baseline: str | None = None,
    method: str | None = None,
    chances: str | None = None,
    structure: Any = None,
    starts: int = 3,
    iterations: int = 200,
    progress: Progress | None = None,
) -> Replay:
    """Learn the model from the first part of the data, then play the rest with every policy.

    If the data shows all arms ("full"), a policy sees only the reward of the arm it chooses, and
    every choice counts. If it is a log of one reward per decision, what a policy would have earned
    is estimated, without bias, from the chances with which the log drew its arms:

    - "dr", doubly robust, and "ips", inverse propensity scoring: the policy learns from all rewards
      of the log and names an arm before each one. "dr" is more precise if the model predicts.
    - "rejection": the policy learns only where its own choice is the logged arm (Li et al. 2011),
      so it sees a small share of the rewards. The estimate is doubly robust.

    All policies have the same information: the model learned from the training part, which gives
    the Kalman policies their filter and the others the scale of the rewards, and the rewards they
    saw while playing the training part (``warm``). Policies play rewards minus the mean training
    reward, because some assume rewards around zero; results show rewards as they are.

    If the data shows all arms, the table also has what people try first; see `replays.baselines`:
    "last_value", "epsilon_greedy" with forgetting, and "seasonal_mean". They see all rewards of the
    training part, on which their parameters are chosen, then only those of the arms they play.
    A policy of the same name takes their place.

    Args:
        data: "french" or "flights", or anything `as_table` takes: a `Log`, a path, a T × k table.
        policies: names or `Policy` objects; None: `POLICIES`, the quick ones; "all": every policy
            that can be replayed.
        features: k × d, the known features of each arm; None: they are learned.
        train: share of the rounds with data, or of the decisions of a log, from the start, that
            form the training part.
        n_states: of the model; None: as `identify.fit` chooses.
        warm: whether policies play the training part first; False: they start in the test part.
        runs: runs of each policy, which are averaged. Each has its own random numbers and starts
            in a later round of the first half of the training part, because the luck of the first
            choices lasts long. A policy without random numbers needs one run if not ``warm``, or
            if it learns from all rewards of a log.
        seed: of the fit, the policies and the intervals.
        baseline: the policy or reference strategy to compare with; None: "training_leader", which
            always plays the best arm of the training part; with a log that cannot tell what that
            arm earns, "logging", what the log earned.
        method: "full", "dr", "ips" or "rejection"; None: "dr" for a log that has chances, or for
            which ``chances`` are given, and "full" for data that shows all arms.
        chances: of a log without a column ``chance``: "uniform", all arms had the same one, or
            "estimated", as often as each arm was played.
        structure: components such as "level(arm) + season(7)", or the form of Γ, as in
            `identify.fit`; ``starts`` and ``iterations`` as well.
        progress: called with "fit" or "play", the share of it that is done, and the total number
            of rounds to play.

    Returns:
        `Replay`; ``print`` shows its table.

    Example:
        >>> t, rng = np.arange(200)[:, None], np.random.default_rng(0)
        >>> waves = np.sin(0.2 * t + np.array([0.0, 2.0, 4.0])) + 0.2 * rng.normal(size=(200, 3))
        >>> result = replay(waves, ["kode", "ucb"], n_states=2, starts=1, iterations=30)
        >>> result.mean("kode") > result.mean("ucb") + 0.5
        True
    """
    runs = errors.whole_number(runs, "runs", low=1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**62)
    how = n_states, bool(warm), runs, seed, structure, starts, iterations, progress
    settings = Settings(train, *how)
    found, features = read(_loaded(data), None, features)
    method = _method(method, found, chances)
    rows: Table | Decisions
    references: tuple[str, ...] = FULL
    part = False
    if method == "full":
        rows = found if isinstance(found, Table) else table_of(found)
        if features is not None:
            rows = dataclasses.replace(rows, features=features)
        offered = np.isfinite(rows.rewards).sum(axis=1)
        part = bool(((offered > 0) & (offered < len(rows.names))).any())
    else:
        rows = decisions_of(found, chances, features)
        references = (*off_policy.REFERENCES, *map(off_policy.always, rows.names))
    first = rows.split(train)
    chosen, notes = _playable(policies, part=part)
    if baseline is not None:
        baseline = errors.closest(baseline, "baseline", [*chosen, *references])
    if isinstance(rows, Table):
        done = _play_table(rows, first, chosen, settings)
    else:
        done = off_policy.play_log(rows, first, chosen, settings, method, chances, baseline)
    explained = learning.predictability(done.predicted, done.rewards, done.means)
    ends = *done.fit.warnings, *learning.doubts(explained)
    return Replay(
        title=rows.title,
        unit=rows.unit,
        names=rows.names,
        method=method,
        train_rounds=first,
        test_rounds=len(rows) - first,
        first_round=int(rows.times[first]),
        rounds=done.rounds,
        played=done.played,
        references=done.references,
        predictability=explained,
        fit=done.fit,
        warm=settings.warm,
        seed=seed,
        compared=baseline,
        notes=(*rows.notes, *notes, *done.notes, *ends),
        shown=done.shown,
        chances=None if method == "full" else chances or "logged",
        feedback=done.feedback,
    )


def _play_table(table: Table, first: int, chosen: dict[str, Policy], settings: Settings) -> Outcome:
    """Play a table that shows the rewards of all arms."""
    games = [
        (label, policy, number, len(table) - begin)
        for label, policy in chosen.items()
        for number, begin in enumerate(learning.begins(first, settings.warm, settings.runs))
        if number == 0 or settings.warm or policy.noise is not None
    ]
    meter = learning.Meter(settings.progress, sum(length for *_, length in games))
    center = float(np.nanmean(table.rewards[:first]))
    log = table.log(0, first, center)
    model, arms, fit = learning.learned(log, table.features, center, settings, meter)
    centered = table.rewards - center
    meter.say("play", 0.0)
    choices: dict[str, list[np.ndarray]] = {}
    for label, policy, number, length in games:
        waits = table.waits[-length:]
        horizon = int(waits[1:].sum()) + 1
        agent = Agent(model, arms, policy, rounds=horizon, seed=settings.seed + number, window=0)
        named = np.empty(length, np.int64)
        for t, arm in enumerate(_choices(agent, centered[-length:], waits)):
            named[t] = arm
            meter.tick()
        choices.setdefault(label, []).append(named[first - len(table) :])
    meter.say("play", 1.0)
    before, rewards = table.rewards[:first], table.rewards[first:]
    rounds = np.flatnonzero(np.isfinite(rewards).any(axis=1))
    rewards = rewards[rounds]
    begin = fit.start_system.model, fit.start_system.arms
    predicted = learning.predictions(*begin, centered, table.waits)[first:][rounds] + center
    references = dict(_references(table, before, rewards, predicted))
    return Outcome(
        fit=fit,
        rounds=table.times[first:][rounds],
        played={who: _averaged(np.array(own)[:, rounds], rewards) for who, own in choices.items()},
        references=references | _baselines(table, first, settings, choices),
        predicted=predicted,
        rewards=rewards,
        means=learning.training_means(before, center),
    )


def _method(method: Any, data: Log | Table, chances: Any) -> str:
    """The method asked for, or the one that fits the data."""
    if chances is not None:
        errors.closest(chances, "chances", CHANCES)
    if (
        method is not None
        and errors.closest(method, "method", ("full", *off_policy.METHODS)) != "full"
    ):
        return str(method)
    if method is None and (chances is not None or has_chances(data)):
        return "dr"
    logged = (data if isinstance(data, Table) else table_of(data)).logged
    if method == "full" and (logged or chances is not None):
        problem = "is 'full'" + ", and the data is a log of one arm per round" * logged
        problem += ", which needs no chances" * (not logged)
        remedy = f"give one of {', '.join(off_policy.METHODS)}"
        raise errors.InvalidInput("method", problem, remedy)
    return "dr" if logged else "full"


def _loaded(data: Any) -> Any:
    """The data set of that name; anything else as it is."""
    if not isinstance(data, str) or is_path(data):
        return data
    if data not in DATASETS:
        remedy = f"give the path of a CSV or Parquet file, or one of {', '.join(DATASETS)}"
        problem = f"{errors.printable(data)!r} is neither a file nor a data set"
        raise errors.InvalidInput("data", problem, remedy)
    return load(data)


def _playable(policies: Any, *, part: bool) -> tuple[dict[str, Policy], list[str]]:
    """The policies to play, and notes on those left out if some rounds offer a part of the arms."""
    given = POLICIES if policies is None else policies
    if policies == "all":
        given = [name for name in available() if not make(name).full_information]
    chosen = labeled(given)
    if chosen.pop("random", None) is not None and not chosen:
        remedy = "name another policy; random is always in the table"
        raise errors.InvalidInput("policies", "is random alone", remedy)
    notes = []
    for label, policy in list(chosen.items()):
        if label in (*FIXED, *off_policy.REFERENCES):
            problem = f"{label!r} is the name of a reference strategy"
            raise errors.InvalidInput("policies", problem, "give the policy another name")
        if policy.full_information:
            problem = f"{label} sees all rewards, which no player does"
            remedy = "leave it out; full_information is always in the table"
            raise errors.InvalidInput("policies", problem, remedy)
        if part and policy.scores is None and not policy.agent.reads_features:
            if policies is not None and policies != "all":
                problem = f"{label} cannot choose from a part of the arms, which some rounds offer"
                raise errors.InvalidInput("policies", problem, "leave it out")
            del chosen[label]
            notes.append(f"{label} is left out: it cannot choose from a part of the arms.")
    return chosen, notes


def _choices(agent: Agent, rewards: np.ndarray, waits: np.ndarray) -> Iterator[int]:
    """The arm of each row, −1 where none is offered; the agent learns on the way."""
    for t, row in enumerate(rewards):
        if t and waits[t] > 1:
            agent.advance(int(waits[t]) - 1)  # the previous decision already advanced one round
        offered = np.flatnonzero(np.isfinite(row))
        if not offered.size:
            agent.advance()
            yield -1
            continue
        decision = agent.ask(None if len(offered) == len(row) else offered)
        agent.tell(decision, row[decision.arm])
        yield decision.arm


def _averaged(choices: np.ndarray, rewards: np.ndarray) -> Played:
    """A policy's choices, runs × rounds, and what they paid."""
    paid = rewards[np.arange(len(rewards)), choices]
    shares = np.bincount(choices.ravel(), minlength=rewards.shape[1]) / choices.size
    return Played(paid.mean(axis=0), np.ones(len(rewards)), paid.mean(axis=1), shares)


# Reference strategies


def _references(
    table: Table, before: np.ndarray, rewards: np.ndarray, predicted: np.ndarray
) -> Iterator[tuple[str, Played]]:
    before = before[np.isfinite(before).any(axis=1)]
    fixed = {"best_arm": learning.best_arm(rewards), LEADER: learning.best_arm(before)}
    every = np.ones(len(rewards))
    seen = np.isfinite(rewards)
    for name, arm in fixed.items():
        yield name, Played(learning.fixed_arm(rewards, arm), every, arm=table.names[arm])
    best = np.where(seen, predicted, -np.inf).argmax(axis=1)
    yield "full_information", Played(rewards[np.arange(len(rewards)), best], every)
    yield "per_round_best", Played(np.nanmax(rewards, axis=1), every)
    yield "random", Played(np.nanmean(rewards, axis=1), every)


def _baselines(
    table: Table, first: int, settings: Settings, played: Collection[str]
) -> dict[str, Played]:
    """What people try first, unless a policy of that name was played."""
    before, after = (
        baselines.Part(table.rewards[rows], table.times[rows])
        for rows in (np.s_[:first], np.s_[first:])
    )
    done = baselines.outcomes(before, after, runs=settings.runs, seed=settings.seed)
    return {
        name: Played(earned, np.ones(len(earned)), setting=setting)
        for name, (earned, setting) in done.items()
        if name not in played
    }
