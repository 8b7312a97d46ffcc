"""`replay`: learn the model from the first part of real data, play the rest with every policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit import policies as registry
from driftbandit.agent import Agent
from driftbandit.identify.fitting import Fit, fit
from driftbandit.policies import Policy, available, make
from driftbandit.replays import yardsticks
from driftbandit.replays.datasets import DATASETS, load
from driftbandit.replays.offset_units import measured
from driftbandit.replays.result import Played, Replay
from driftbandit.replays.table import Table, as_table
from driftbandit.replays.yardsticks import Predictability, Yardstick

__all__ = ["POLICIES", "replay"]

POLICIES = tuple(name for name, entry in registry.REGISTRY.items() if entry.replayed)
"""Played by default; what random play earns is known without playing it."""
FULL = ("best_arm", "training_leader", "full_information", "per_round_best", "random")
LOGGED = ("best_arm", "training_leader", "logging")
"""The yardsticks of a table of all arms, and of a log."""
REPORTED = 256
"""Rounds between two reports of progress."""

Progress = Callable[[str, float, int], None]


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
    structure: Any = None,
    starts: int = 3,
    iterations: int = 200,
    columns: Mapping[str, str] | None = None,
    step: str | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Learn the model from the first part of the data, then play the rest with every policy.

    Policies see the reward of the arm they choose and no other. Where the data shows all arms,
    every choice is paid. Where it is a log of one arm per round, a choice counts only if it is the
    logged one (Li et al. 2011); that is fair if the log chose its arms uniformly at random.

    All policies know the same: the model that was learned from the training part, which gives the
    Kalman policies their filter and the others the scale of the rewards, and what they themselves
    saw when they played the training part (``warm``). Rewards are played less the mean of all
    training rewards, since some policies take rewards to lie around zero, and shown as they are.

    Args:
        data: "french" or "flights", or anything `as_table` takes: a path, a log, a T × k table.
        policies: names or `Policy` objects; None: `POLICIES`, nine quick ones; "all": every
            policy that can be replayed.
        features: k × d, what is known of each arm; None: what arms read is learned too.
        train: share of the rounds with data that is the training part, the first ones.
        n_states: of the model; None: as `identify.fit` chooses.
        warm: whether policies play the training part first; False: they start in the test part.
        runs: runs of each policy, which are averaged: with random numbers of their own, and
            each from a later round of the training part's first half on, since the luck of the
            first choices stays with a policy for long. Without either, one run tells all.
        seed: of the fit, the policies and the intervals.
        baseline: whom to compare with, a policy or a yardstick; None: the best policy without a
            Kalman filter.
        structure: of Γ, as in `identify.fit`; ``starts`` and ``iterations`` as well.
        columns: what a log calls its columns, as {"round": "day"}; see `read_log`.
        step: how long a round is, if a log has times, as "15 minutes"; see `read_log`.
        progress: called with "fit" or "play", the share of it that is done, and how many rounds
            are played in all.

    Returns:
        `Replay`; ``print`` shows its table.

    Example:
        >>> t, rng = np.arange(200)[:, None], np.random.default_rng(0)
        >>> waves = np.sin(0.2 * t + np.array([0.0, 2.0, 4.0])) + 0.2 * rng.normal(size=(200, 3))
        >>> result = replay(waves, ["kode", "ucb"], n_states=2, starts=1, iterations=30)
        >>> result.mean("kode") > result.mean("ucb") + 0.5
        True
    """
    table = as_table(_loaded(data), features=features, columns=columns, step=step)
    first = table.split(train)
    runs = errors.whole_number(runs, "runs", low=1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**62)
    chosen, notes = _playable(policies, table)
    notes[:0] = table.notes
    baseline = _baseline(baseline, chosen, table)
    lives = [
        (label, policy, number)
        for label, policy in chosen.items()
        for number in range(runs if warm or policy.noise is not None else 1)
    ]
    begins = [number * first // (2 * runs) if warm else first for number in range(runs)]
    rounds = [len(table) - begins[number] for _, _, number in lives]
    if table.logged:
        notes.append(
            "One arm per round is known: the figures are fair if the log chose its arms uniformly "
            "at random, and not else."
        )

    def moved(stage: str, share: float) -> None:
        if progress is not None:
            progress(stage, share, sum(rounds))

    moved("fit", 0.0)
    center = float(np.nanmean(table.rewards[:first]))
    found = fit(
        table.log(0, first, center),
        table.features,
        n_states,
        structure=structure,
        starts=starts,
        iterations=iterations,
        seed=seed,
        progress=lambda share: moved("fit", share),
    )
    model, rows = found.model, found.arms
    if table.features is None:
        model, rows = measured(model, rows)
    moved("fit", 1.0)
    centered = table.rewards - center
    moved("play", 0.0)
    arms: dict[str, list[np.ndarray]] = {}
    done = 0
    for (label, policy, number), length in zip(lives, rounds, strict=True):
        waits = table.waits[-length:]
        horizon = int(waits[1:].sum()) + 1
        agent = Agent(model, rows, policy, rounds=horizon, seed=seed + number, window=0)
        played = np.empty(length, np.int64)
        for t, arm in enumerate(_choices(agent, centered[-length:], waits, table.logged)):
            played[t] = arm
            done += 1
            if done % REPORTED == 0:
                moved("play", done / sum(rounds))
        arms.setdefault(label, []).append(played[first - len(table) :])
    moved("play", 1.0)
    return _result(table, first, found, arms, (centered, center), notes, warm, seed, baseline)


def _loaded(data: Any) -> Any:
    """A data set by its name."""
    if not isinstance(data, str) or os.sep in data or Path(data).suffix or Path(data).exists():
        return data
    if data not in DATASETS:
        remedy = f"give the path of a CSV or Parquet file, or one of {', '.join(DATASETS)}"
        problem = f"{errors.printable(data)!r} is neither a file nor a data set"
        raise errors.InvalidInput("data", problem, remedy)
    return load(data)


def _playable(policies: Any, table: Table) -> tuple[dict[str, Policy], list[str]]:
    """The policies to play, and who is left out why."""
    given = policies
    if policies == "all":
        given = [name for name in available() if not make(name).full_information]
    chosen = registry.chosen(POLICIES if policies is None else given)
    notes: list[str] = []
    if chosen.pop("random", None) is not None and not chosen:
        raise errors.InvalidInput("policies", "is random alone", "name another: its row is there")
    offered = np.isfinite(table.rewards).sum(axis=1)
    part = not table.logged and bool(((offered > 0) & (offered < len(table.names))).any())
    for label, policy in list(chosen.items()):
        if label in (*FULL, *LOGGED):
            problem = f"{label!r} is the name of a yardstick"
            raise errors.InvalidInput("policies", problem, "name the policy otherwise")
        if policy.full_information:
            problem = f"{label} sees all rewards, which no player does"
            remedy = "leave it out: the row full_information is there"
            raise errors.InvalidInput("policies", problem, remedy)
        if part and policy.scores is None and not policy.agent.reads_features:
            if policies is not None and policies != "all":
                problem = f"{label} cannot choose from a part of the arms, which some rounds offer"
                raise errors.InvalidInput("policies", problem, "leave it out")
            del chosen[label]
            notes.append(f"{label} is left out: it cannot choose from a part of the arms.")
    return chosen, notes


def _baseline(name: Any, chosen: dict[str, Policy], table: Table) -> str | None:
    """The label to compare with, before any work is done."""
    if name is None:
        return None
    if table.logged and name != "logging":
        problem = f"is {name!r}, and the data is a log of one arm per round"
        raise errors.InvalidInput("baseline", problem, "compare with logging, or leave it out")
    return errors.closest(name, "baseline", [*chosen, *(LOGGED if table.logged else FULL)])


def _choices(agent: Agent, rewards: np.ndarray, waits: np.ndarray, logged: bool) -> Iterator[int]:
    """The arm of each row, −1 where none is on offer; the agent learns on the way."""
    for t, row in enumerate(rewards):
        if t and waits[t] > 1:
            agent.advance(int(waits[t]) - 1)  # the decision before passed one round by itself
        offered = np.flatnonzero(np.isfinite(row))
        if not offered.size:
            agent.advance()
            yield -1
            continue
        decision = agent.ask(None if logged or len(offered) == len(row) else offered)
        reward = row[decision.arm]
        if np.isfinite(reward):  # else another arm was logged, and nothing is learned
            agent.tell(decision, reward)
        yield decision.arm


def _result(
    table: Table,
    first: int,
    found: Fit,
    arms: dict[str, list[np.ndarray]],
    centered: tuple[np.ndarray, float],
    notes: list[str],
    warm: bool,
    seed: int,
    baseline: str | None,
) -> Replay:
    rewards = table.rewards[first:]
    rounds = np.flatnonzero(np.isfinite(rewards).any(axis=1))
    rewards = rewards[rounds]
    k = len(table.names)
    played = {}
    for label, runs in arms.items():
        choices = np.array(runs)[:, rounds]
        paid = rewards[np.arange(len(rounds)), choices]  # seeds × rounds
        seen = np.isfinite(paid)
        shares = np.bincount(choices.ravel(), minlength=k) / choices.size
        paid = np.where(seen, paid, 0.0)
        with np.errstate(invalid="ignore"):  # a run without a match
            means = paid.sum(axis=1) / seen.sum(axis=1)
        played[label] = Played(paid.mean(axis=0), seen.mean(axis=0), means, shares)
    predicted = (
        yardsticks.one_step(found.model, found.arms, centered[0], table.waits)[first:] + centered[1]
    )
    before = table.rewards[:first]
    counts = np.isfinite(before).sum(axis=0)
    means = np.where(counts > 0, np.nansum(before, axis=0) / np.maximum(counts, 1), centered[1])
    explained = yardsticks.predictability(predicted[rounds], rewards, means, table.logged)
    rows = dict(_yardsticks(table, first, rewards, predicted[rounds]))
    return Replay(
        title=table.title,
        unit=table.unit,
        names=table.names,
        logged=table.logged,
        train_rounds=first,
        test_rounds=len(table) - first,
        first_round=int(table.times[first]),
        rounds=table.times[first:][rounds],
        played=played,
        yardsticks=rows,
        predictability=explained,
        fit=found,
        warm=bool(warm),
        seed=seed,
        compared=baseline,
        notes=(*notes, *found.warnings, *_predicts_nothing(explained)),
    )


def _predicts_nothing(explained: Predictability) -> Iterator[str]:
    """What to say of a model that foresees nothing of the test part."""
    if explained.rewards <= 0:
        yield (
            f"The model predicts the test part no better than each arm's training mean: it "
            f"explains {100 * explained.rewards:.1f} % of the rewards' variance. Its policies "
            "cannot be expected to earn more than a fixed arm."
        )
    elif explained.differences is not None and explained.differences <= 0:
        yield (
            f"The model does not predict which arm pays more in the test part: it explains "
            f"{100 * explained.differences:.1f} % of the differences between arms."
        )


def _yardsticks(
    table: Table, first: int, rewards: np.ndarray, predicted: np.ndarray
) -> Iterator[tuple[str, Yardstick]]:
    before = table.rewards[:first]
    before = before[np.isfinite(before).any(axis=1)]
    fixed = {"best_arm": yardsticks.leader(rewards), "training_leader": yardsticks.leader(before)}
    every = np.ones(len(rewards))
    seen = np.isfinite(rewards)
    if table.logged:
        for name, arm in fixed.items():
            earned = np.where(seen[:, arm], rewards[:, arm], 0.0)
            yield name, Yardstick(earned, seen[:, arm].astype(float), table.names[arm])
        yield "logging", Yardstick(np.nansum(rewards, axis=1), every)
        return
    for name, arm in fixed.items():
        yield name, Yardstick(yardsticks.fixed(rewards, arm), every, table.names[arm])
    best = np.where(seen, predicted, -np.inf).argmax(axis=1)
    yield "full_information", Yardstick(rewards[np.arange(len(rewards)), best], every)
    yield "per_round_best", Yardstick(np.nanmax(rewards, axis=1), every)
    yield "random", Yardstick(np.nanmean(rewards, axis=1), every)
