"""Learning one kind of model, and choosing among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from driftbandit.identify import assembly, em, own, prediction
from driftbandit.identify.acceleration import climb
from driftbandit.identify.grid import LARGEST_GRID
from driftbandit.identify.progress import Meter
from driftbandit.identify.selection import (
    Candidate,
    Selection,
    Split,
    candidates,
    select,
    splits,
)
from driftbandit.identify.starts import beginning, of_model
from driftbandit.identify.units import Units
from driftbandit.model import LGDS

__all__ = ["Task", "by_itself", "choose", "climbs"]

MOST_ITERATIONS, LEAST_TOLERANCE = 60, 1e-4
"""Of the climbs that the model is chosen by: they are many, and only compared."""
OWN_WORK = 20
"""What it costs to learn arms that drift by themselves, in iterations of EM."""

Climbed = tuple[em.Parameters, list[float], bool]


class Task(NamedTuple):
    """What is to be learned, and from what."""

    data: em.Data
    """In units of their own, as ``units`` made them."""
    n_arms: int
    """k."""
    features: np.ndarray | None
    """k × d; None: what arms read is estimated, or each has a state of its own."""
    options: em.Options
    prior: float | None
    """As `fit` takes it."""
    rng: np.random.Generator
    """Draws the starts."""
    limits: tuple[int, float]
    """Iterations and tolerance of a climb."""
    units: Units


def climbs(
    task: Task,
    kind: Candidate,
    limits: tuple[int, float],
    meter: Callable[[int], Callable[[float], None]],
    starts: int = 1,
    start: LGDS | None = None,
) -> Climbed:
    """The best of several climbs, as `climb` returns it.

    Args:
        task: what to learn from.
        kind: the structure of Γ, and d.
        limits: iterations and tolerance of a climb.
        meter: what the climb of a number moves.
        starts: how many climbs.
        start: a model to climb from first.
    """
    features, d = task.features, kind.n_states
    d = d if features is None else features.shape[1]
    reads = np.eye(task.n_arms, d) if features is None else features
    options = task.options._replace(reads=features is None and d < task.n_arms)
    by_moments = 0 if features is None else 1  # from guesses, read-outs are seldom found
    rounds = d**2 / 5 if task.prior is None else task.prior
    best: Climbed | None = None
    for number in range(starts):
        moments = number == by_moments
        begin = beginning(task.data, reads, options, task.rng, number, moments=moments)
        if options.structure == "free" and rounds > 0:
            options = options._replace(prior=em.Prior(rounds, begin.initial_cov / 2))
        if start is not None and number == 0:
            begin = of_model(start, begin, options)
        found = climb(begin, task.data, options, *limits, meter(number))
        if best is None or found[1][-1] > best[1][-1]:
            best = found
    assert best is not None
    return best


def choose(task: Task, structure: str | None, meter: Meter, later: int) -> Selection | None:
    """The model that predicts best; None where the log is too short to say.

    Args:
        task: what to learn from, without features.
        structure: of Γ, where it was asked for.
        meter: of the fit.
        later: iterations that follow when the model is known.
    """
    parts = splits(task.data)
    if not parts:
        return None
    tried = [
        one
        for one in candidates(task.n_arms, structure, task.options.offsets)
        if task.data.seen.size * one.n_states**2 <= LARGEST_GRID or one.kind in own.KINDS
    ]
    most = min(task.limits[0], MOST_ITERATIONS)
    limits = most, max(task.limits[1], LEAST_TOLERANCE)
    costs = {one: _cost(one, most) for one in tried}
    work = len(parts) * sum(costs.values()) + later * (2 + tried[-1].n_states)
    near: dict[int, own.Found] = {}
    unit = math.log(task.units.scale)  # densities are of rewards as the log has them

    def predict(part: Split, candidate: Candidate) -> np.ndarray:
        share = costs[candidate] / work
        learned = task._replace(data=part.learned)
        if candidate.kind in own.KINDS:
            moved = meter.climb(share, OWN_WORK)
            kept = near.get(id(part))
            logs, near[id(part)] = _own_densities(learned, task, candidate, part, kept)
            moved(1.0)
            return logs - unit
        moved = meter.climb(share, most)
        parameters, _, _ = climbs(learned, candidate, limits, lambda _: moved)
        start = assembly.start_law(parameters, int(np.count_nonzero(part.learned.lengths)))
        parameters = parameters._replace(initial_mean=start[0], initial_cov=start[1])
        parameters, doubt = _without_news(parameters, learned)
        means, variances = prediction.predicted(parameters, part.whole)
        variances = variances + doubt[part.whole.arms]
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = (part.whole.rewards - means) ** 2 / variances
            return np.asarray(-0.5 * (np.log(2 * math.pi * variances) + squares)) - unit

    return select(parts, tried, predict)


def _without_news(parameters: em.Parameters, learned: Task) -> tuple[em.Parameters, np.ndarray]:
    """Arms without a reward to learn from pay what the others do, more or less.

    Rewards are measured from the arms' means in the whole log: zero would tell what is scored.

    Returns:
        Parameters, and how far the arms' offsets may be off, squared, k.
    """
    new = np.bincount(learned.data.arms[learned.data.seen > 0], minlength=learned.n_arms) == 0
    if not learned.options.offsets or not new.any():
        return parameters, np.zeros(learned.n_arms)
    shifts, _ = learned.units.between()
    others = float((parameters.offsets + shifts)[~new].mean())
    parameters = parameters._replace(
        offsets=np.where(new, others - shifts, parameters.offsets),
        reads=np.where(new[:, None], 0.0, parameters.reads),  # nothing says what they read
    )
    return parameters, np.where(new, learned.units.offset_var(), 0.0)


def _cost(one: Candidate, iterations: int) -> float:
    return OWN_WORK if one.kind in own.KINDS else iterations * (2 + one.n_states)


# Arms that drift by themselves.


def _own_densities(
    learned: Task, task: Task, kind: Candidate, part: Split, near: own.Found | None
) -> tuple[np.ndarray, own.Found]:
    """Log-densities of a split's rewards, S × n × m, and what was learned."""
    size = int(np.bincount(task.data.arms[task.data.seen > 0]).max())
    shifts, spread = task.units.between()
    plays = own.plays_of(learned.data, task.n_arms, size)
    found = own.learn(_shifted(plays, shifts), kind.kind, task.options.offsets, spread, near)  # type: ignore[arg-type]
    whole = own.plays_of(part.whole, task.n_arms, size, part.learned.lengths == 0)
    each, *_ = own.densities(found, _shifted(whole, shifts), task.options.offsets)
    logs = np.zeros(part.whole.seen.size)
    there = whole.seen > 0
    logs[whole.places[there]] = each[there]
    return logs.reshape(part.whole.seen.shape), found


def _shifted(plays: own.Plays, shifts: np.ndarray) -> own.Plays:
    """Around one zero for all arms: what their means tell of each other is to be learned."""
    return plays._replace(rewards=plays.rewards + shifts[:, None] * plays.seen)


def by_itself(
    task: Task, kind: Candidate, meter: Meter
) -> tuple[em.Parameters, list[float], bool, float, np.ndarray | None]:
    """Arms that drift by themselves, learned from the whole log.

    Returns:
        Parameters, the climb, whether it came to rest, the log-likelihood at its end, and the
        covariance of the offsets' errors.
    """
    k, offsets = task.n_arms, task.options.offsets
    shifts, spread = task.units.between()
    plays = _shifted(own.plays_of(task.data, k), shifts)
    moved = meter.climb(1 - meter.share, OWN_WORK)
    near = own.learn(plays, "alike", offsets, spread) if kind.kind == "apart" else None
    found = own.learn(plays, kind.kind, offsets, spread, near)  # type: ignore[arg-type]
    moved(1.0)
    _, means, variances, end = own.densities(found, plays, offsets)
    law = own.law_of(found, k, offsets)
    keep, d = np.exp(-1 / law.memory), kind.n_states
    parameters = em.Parameters(
        np.diag(keep)[:d, :d],
        np.diag(-np.expm1(-2 / law.memory) * law.drift_var)[:d, :d],
        np.asarray(law.reward_var),
        np.zeros(d),
        np.diag(law.drift_var)[:d, :d],
        np.eye(k)[:, :d],
        means - shifts if offsets else np.zeros(k),
    )
    doubt = np.diag(variances) if offsets else None
    return parameters, found.path, found.converged, end, doubt
