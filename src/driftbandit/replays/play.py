"""`replay`: learn the model from the first part of real data, play the rest with every policy."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors, kalman
from driftbandit.agent import Agent
from driftbandit.identify.fitting import fit
from driftbandit.model import LGDS
from driftbandit.policies import REGISTRY, Policy, make
from driftbandit.policies import chosen as labeled
from driftbandit.replays.data import Table, as_table
from driftbandit.replays.datasets import DATASETS, load
from driftbandit.replays.report import Played, Predictability, Reference, Replay

POLICIES = tuple(name for name, entry in REGISTRY.items() if entry.quick)  # by default
# The reference strategies of a table of all arms, and of a log.
FULL = ("best_arm", "training_leader", "full_information", "per_round_best", "random")
LOGGED = ("best_arm", "training_leader", "logging")
REPORTED = 256  # rounds between two reports of progress

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
    every: str | None = None,
    zone: str | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Learn the model from the first part of the data, then play the rest with every policy.

    A policy sees only the reward of the arm it chooses. If the data shows all arms, every choice
    counts. If it is a log of one arm per round, a choice counts only when it is the logged arm
    (Li et al. 2011), which is unbiased if the log chose its arms uniformly at random.

    All policies have the same information: the model learned from the training part, which gives
    the Kalman policies their filter and the others the scale of the rewards, and the rewards they
    saw while playing the training part (``warm``). Policies play rewards minus the mean training
    reward, because some assume rewards around zero; results show rewards as they are.

    Args:
        data: the name of a data set (`DATASETS`), or anything `as_table` takes: a path, a log, a
            T × k table.
        policies: names or `Policy` objects; None: `POLICIES`, the quick ones; "all": every policy
            that can be replayed.
        features: k × d, the known features of each arm; None: they are learned.
        train: share of the rounds with data, from the start, that form the training part.
        n_states: of the model; None: as `identify.fit` chooses.
        warm: whether policies play the training part first; False: they start in the test part.
        runs: runs of each policy, which are averaged. Each has its own random numbers and starts
            in a later round of the first half of the training part, because the luck of the first
            choices lasts long. A policy without random numbers needs one run if not ``warm``.
        seed: of the fit, the policies and the intervals.
        baseline: the policy or reference strategy to compare with; None: the best policy without
            a Kalman filter.
        structure: of Γ, as in `identify.fit`; ``starts`` and ``iterations`` as well.
        columns: the column names of a log, as {"round": "day"}; see `read_log`.
        every: length of a round, as "15 minutes", if a log has times; see `read_log`.
        zone: whose clocks the rounds count, as "Europe/Berlin", if a log has times.
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
    table = as_table(_loaded(data), features=features, columns=columns, every=every, zone=zone)
    first = table.split(train)
    runs = errors.whole_number(runs, "runs", low=1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**62)
    chosen, notes = _playable(policies, table)
    baseline = _baseline(baseline, chosen, table)
    games = [
        (label, policy, number, len(table) - (number * first // (2 * runs) if warm else first))
        for label, policy in chosen.items()
        for number in range(runs if warm or policy.noise is not None else 1)
    ]
    total = sum(length for *_, length in games)

    def report(stage: str, share: float) -> None:
        if progress is not None:
            progress(stage, share, total)

    report("fit", 0.0)
    center = float(np.nanmean(table.rewards[:first]))
    found = fit(
        table.log(0, first, center),
        table.features,
        n_states,
        structure=structure,
        starts=starts,
        iterations=iterations,
        seed=seed,
        progress=lambda share: report("fit", share),
    )
    model, rows = found.model, found.arms
    if table.features is None:
        model, rows = scale_offsets(model, rows)
    report("fit", 1.0)
    centered = table.rewards - center
    report("play", 0.0)
    arms: dict[str, list[np.ndarray]] = {}
    done = 0
    for label, policy, number, length in games:
        waits = table.waits[-length:]
        horizon = int(waits[1:].sum()) + 1
        agent = Agent(model, rows, policy, rounds=horizon, seed=seed + number, window=0)
        choices = np.empty(length, np.int64)
        for t, arm in enumerate(_choices(agent, centered[-length:], waits, table.logged)):
            choices[t] = arm
            done += 1
            if done % REPORTED == 0:
                report("play", done / total)
        arms.setdefault(label, []).append(choices[first - len(table) :])
    report("play", 1.0)

    before, rewards = table.rewards[:first], table.rewards[first:]
    rounds = np.flatnonzero(np.isfinite(rewards).any(axis=1))
    rewards = rewards[rounds]
    predicted = predictions(found.model, found.arms, centered, table.waits)[first:][rounds] + center
    counts = np.isfinite(before).sum(axis=0)
    means = np.where(counts > 0, np.nansum(before, axis=0) / np.maximum(counts, 1), center)
    explained = predictability(predicted, rewards, means, table.logged)
    return Replay(
        title=table.title,
        unit=table.unit,
        names=table.names,
        logged=table.logged,
        train_rounds=first,
        test_rounds=len(table) - first,
        first_round=int(table.times[first]),
        rounds=table.times[first:][rounds],
        played={label: _averaged(np.array(own)[:, rounds], rewards) for label, own in arms.items()},
        references=dict(_references(table, before, rewards, predicted)),
        predictability=explained,
        fit=found,
        warm=bool(warm),
        seed=seed,
        compared=baseline,
        notes=(*table.notes, *notes, *found.warnings, *_doubts(explained)),
    )


def _loaded(data: Any) -> Any:
    """The data set of that name; anything else as it is."""
    if not isinstance(data, str) or os.sep in data or Path(data).suffix or Path(data).exists():
        return data
    if data not in DATASETS:
        remedy = f"give the path of a CSV or Parquet file, or one of {', '.join(DATASETS)}"
        problem = f"{errors.printable(data)!r} is neither a file nor a data set"
        raise errors.InvalidInput("data", problem, remedy)
    return load(data)


def _playable(policies: Any, table: Table) -> tuple[dict[str, Policy], list[str]]:
    """The policies to play, and notes on policies that are left out and on logs."""
    given = POLICIES if policies is None else policies
    if policies == "all":
        given = [name for name in REGISTRY if not make(name).full_information]
    chosen = labeled(given)
    if chosen.pop("random", None) is not None and not chosen:
        remedy = "name another policy; random is always in the table"
        raise errors.InvalidInput("policies", "is random alone", remedy)
    offered = np.isfinite(table.rewards).sum(axis=1)
    part = not table.logged and bool(((offered > 0) & (offered < len(table.names))).any())
    notes = []
    for label, policy in list(chosen.items()):
        if label in (*FULL, *LOGGED):
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
    if table.logged:
        notes.append(
            "Each round shows one arm: the means are unbiased only if the log chose its arms "
            "uniformly at random."
        )
    return chosen, notes


def _baseline(name: Any, chosen: dict[str, Policy], table: Table) -> str | None:
    """The label to compare with, checked before any work is done."""
    if name is None:
        return None
    if table.logged and name != "logging":
        problem = f"is {name!r}, but the data is a log of one arm per round"
        raise errors.InvalidInput("baseline", problem, "compare with logging, or leave it out")
    return errors.closest(name, "baseline", [*chosen, *(LOGGED if table.logged else FULL)])


def _choices(agent: Agent, rewards: np.ndarray, waits: np.ndarray, logged: bool) -> Iterator[int]:
    """The arm of each row, −1 where none is offered; the agent learns on the way."""
    for t, row in enumerate(rewards):
        if t and waits[t] > 1:
            agent.advance(int(waits[t]) - 1)  # the previous decision already advanced one round
        offered = np.flatnonzero(np.isfinite(row))
        if not offered.size:
            agent.advance()
            yield -1
            continue
        decision = agent.ask(None if logged or len(offered) == len(row) else offered)
        reward = row[decision.arm]
        if np.isfinite(reward):  # otherwise another arm was logged, and nothing is learned
            agent.tell(decision, reward)
        yield decision.arm


def _averaged(choices: np.ndarray, rewards: np.ndarray) -> Played:
    """A policy's choices, runs × rounds, and what they paid."""
    paid = rewards[np.arange(len(rewards)), choices]
    seen = np.isfinite(paid)
    paid = np.where(seen, paid, 0.0)
    shares = np.bincount(choices.ravel(), minlength=rewards.shape[1]) / choices.size
    with np.errstate(invalid="ignore"):  # a run in which no round counts
        means = paid.sum(axis=1) / seen.sum(axis=1)
    return Played(paid.mean(axis=0), seen.mean(axis=0), means, shares)


def _doubts(explained: Predictability) -> Iterator[str]:
    """A warning if the model predicts nothing in the test part."""
    if explained.rewards <= 0:
        yield (
            f"The model predicts the test part no better than each arm's training mean: it "
            f"explains {100 * explained.rewards:.1f} % of the rewards' variance. Do not expect "
            "its policies to earn more than a fixed arm."
        )
    elif explained.differences is not None and explained.differences <= 0:
        share = f"{100 * explained.differences:.1f} % of the variance of differences between arms"
        said = "The model does not predict which arm pays more in the test part"
        yield f"{said}: it explains {share}."


def scale_offsets(model: LGDS, arms: np.ndarray) -> tuple[LGDS, np.ndarray]:
    """The same system with its constant state, the last one, scaled by the offsets it pays.

        1 ↦ ‖o‖,   o ↦ o / ‖o‖

    The constant and the offsets are learned up to a factor. Kalman policies do not depend on it,
    but OFUL and D-LinUCB do, because their ridge is a length: without this scaling the arm with
    the largest offset has the longest row and the widest interval, even if the offset is a loss.
    `identify.fit` scales the moving states the same way. Offsets are the last column of ``arms``.
    """
    size = float(np.linalg.norm(arms[:, -1])) or 1.0
    units = np.append(np.ones(model.n_states - 1), size)
    transition = units[:, None] * model.transition / units
    start = units * model.start_mean()
    scaled = LGDS(transition, model.process_cov, model.reward_std, model.initial_cov, start)
    return scaled, arms / units


# Reference strategies


def _references(
    table: Table, before: np.ndarray, rewards: np.ndarray, predicted: np.ndarray
) -> Iterator[tuple[str, Reference]]:
    before = before[np.isfinite(before).any(axis=1)]
    fixed = {"best_arm": best_arm(rewards), "training_leader": best_arm(before)}
    every = np.ones(len(rewards))
    seen = np.isfinite(rewards)
    if table.logged:
        for name, arm in fixed.items():
            earned = np.where(seen[:, arm], rewards[:, arm], 0.0)
            yield name, Reference(earned, seen[:, arm].astype(float), table.names[arm])
        yield "logging", Reference(np.nansum(rewards, axis=1), every)
        return
    for name, arm in fixed.items():
        yield name, Reference(fixed_arm(rewards, arm), every, table.names[arm])
    best = np.where(seen, predicted, -np.inf).argmax(axis=1)
    yield "full_information", Reference(rewards[np.arange(len(rewards)), best], every)
    yield "per_round_best", Reference(np.nanmax(rewards, axis=1), every)
    yield "random", Reference(np.nanmean(rewards, axis=1), every)


def best_arm(rewards: np.ndarray) -> int:
    """The arm that pays most; where it is not offered, the mean of the offered arms counts."""
    counts = np.isfinite(rewards).sum(axis=0)
    if (np.isfinite(rewards).sum(axis=1) >= 2).any():
        scores = np.array([fixed_arm(rewards, arm).sum() for arm in range(rewards.shape[1])])
    else:
        scores = np.nansum(rewards, axis=0) / np.maximum(counts, 1)
    return int(np.argmax(np.where(counts > 0, scores, -math.inf)))


def fixed_arm(rewards: np.ndarray, arm: int) -> np.ndarray:
    """What one arm pays; where it is not offered, the mean of those that are."""
    own = rewards[:, arm]
    return np.where(np.isfinite(own), own, np.nanmean(rewards, axis=1))


def predictions(
    model: LGDS, arms: np.ndarray, rewards: np.ndarray, waits: np.ndarray
) -> np.ndarray:
    """One-step predictions of all arms, T × k, by a filter that sees every known reward."""
    belief = kalman.prior(model)
    predicted = np.empty_like(rewards)
    for t, row in enumerate(rewards):
        if t:
            belief = kalman.advance(belief, model, int(waits[t]))
        predicted[t] = arms @ belief.mean
        for arm in np.flatnonzero(np.isfinite(row)):
            belief = kalman.observe(belief, model, arms[arm], row[arm])
    return predicted


def predictability(
    predicted: np.ndarray, rewards: np.ndarray, means: np.ndarray, logged: bool
) -> Predictability:
    """R² of the predictions (T × k), relative to the arms' training means (k)."""
    seen = np.isfinite(rewards)
    error, spread = (np.where(seen, rewards - guess, 0.0) for guess in (predicted, means))
    if logged:
        return Predictability(_r_squared(error, spread), None)
    count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    several = seen.sum(axis=1) >= 2
    centered = [part - part.sum(axis=1, keepdims=True) / count for part in (error, spread)]
    apart = [np.where(seen, part, 0.0)[several] for part in centered]
    return Predictability(_r_squared(error, spread), _r_squared(*apart))


def _r_squared(error: np.ndarray, spread: np.ndarray) -> float:
    whole = float((spread**2).sum())
    return 1 - float((error**2).sum()) / whole if whole > 0 else math.nan
