"""`fit`: from a log of decisions to a model, by EM from several starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from driftbandit import errors
from driftbandit.identify import em
from driftbandit.identify.climb import climb
from driftbandit.identify.log import Arms, Log
from driftbandit.identify.readers import as_log
from driftbandit.model import LGDS, factor

__all__ = ["Fit", "data_of", "fit"]

LARGEST_GRID = 10**8
"""Rounds × sequences × states² that are smoothed at once."""
HIDDEN = 1e-6
"""A direction that shows this much less in the rewards than the best one is not identified."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """A model learned from a log.

    With offsets the model has one state more, the last: a constant 1, which each arm reads with
    its own offset.
    """

    model: LGDS
    arms: np.ndarray
    """k × d, or k × (d + 1) with offsets."""
    names: tuple[str, ...]
    """What the log calls the arms."""
    log_likelihoods: np.ndarray
    """Of the log along the climb from the best start; it never falls."""
    converged: bool
    """Whether the last gain was below the tolerance."""
    parameters: em.Parameters
    """As EM left them: the estimated start of a sequence among them."""
    warnings: tuple[str, ...]
    """What the log cannot tell."""


def fit(
    log: Any,
    arms: Any = None,
    states: int | None = None,
    *,
    structure: em.Structure = "free",
    stable: bool = True,
    offsets: bool = True,
    starts: int = 3,
    iterations: int = 200,
    tolerance: float = 1e-5,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Fit:
    """Learn Γ, Q, σ, the start and the arms' offsets from a log by expectation maximization.

    Args:
        log: a path (CSV or Parquet), a table, a mapping of columns, or a `Log`.
        arms: k × d features, in the order of the log's arm names where these are numbers; or
            `Arms`, as `read_arms` gives. None: what the arms read is estimated too, or, with as
            many states as arms, each arm has a state of its own.
        states: d; None: the number of features, or without arms as many as there are arms.
        structure: of Γ: "free"; "diagonal" or "scalar", which come with a diagonal Q.
        stable: keep ρ(Γ) below 1.
        offsets: whether arms pay an offset of their own, as real rewards do.
        starts: how many starts to climb from; the likeliest end is kept.
        iterations: at most so many for each.
        tolerance: stop when an iteration gains less than this per reward.
        seed: of the starts.
        progress: called with the share of the iterations done, 0 to 1.

    Returns:
        `Fit`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> rewards = np.cumsum(rng.standard_normal(300)) * 0.1 + 5
        >>> log = {"round": range(300), "arm": ["a"] * 300, "reward": rewards}
        >>> found = fit(log, iterations=20, starts=1)
        >>> bool((np.diff(found.log_likelihoods) > -1e-6).all()), found.arms.shape
        (True, (1, 2))
    """
    structure = _name(structure)
    starts = errors.whole_number(starts, "starts", low=1)
    iterations = errors.whole_number(iterations, "iterations", low=1)
    tolerance = errors.number(tolerance, "tolerance", low=0)
    rng = np.random.default_rng(errors.whole_number(seed, "seed", low=0))
    read, reads, estimated = _read(log, arms, states, rng)
    data = data_of(read, reads.shape[1])
    options = em.Options(structure, bool(stable), estimated, bool(offsets))
    best: tuple[em.Parameters, list[float], bool] | None = None
    for number in range(starts):

        def moved(share: float, number: int = number) -> None:
            if progress is not None:
                progress((number + share) / starts)

        start = _start(data, reads, options, rng, number)
        found = climb(start, data, options, iterations, tolerance, moved)
        if best is None or found[1][-1] > best[1][-1]:
            best = found
    assert best is not None
    parameters, likelihoods, converged = best
    model, rows = _assembled(parameters, options, len(data.lengths))
    return Fit(
        model,
        rows,
        read.names,
        np.array(likelihoods),
        converged,
        parameters,
        tuple(_warnings(parameters, data, read, converged)),
    )


def _name(structure: Any) -> em.Structure:
    found = errors.closest(structure, "structure", em.STRUCTURES)
    return next(name for name in get_args(em.Structure) if name == found)


def _read(
    log: Any, arms: Any, states: int | None, rng: np.random.Generator
) -> tuple[Log, np.ndarray, bool]:
    """The log, the read-outs to start from, and whether these are estimated."""
    if isinstance(arms, Arms):
        read, reads = as_log(log, arms.names), arms.features
    elif arms is not None:
        reads = errors.matrix(arms, "arms", shape=(None, None))
        read = as_log(log, log.names if isinstance(log, Log) else _numbered(len(reads)))
        if len(read.names) != len(reads):
            problem = f"has {len(reads)} rows for the log's {len(read.names)} arms"
            raise errors.InvalidInput("arms", problem, "give one row of features for each arm")
    else:
        read = as_log(log)
        k = len(read.names)
        d = k if states is None else errors.whole_number(states, "states", low=1, high=k)
        if d == k:
            return read, np.eye(k), False
        return read, rng.standard_normal((k, d)), True
    d = reads.shape[1]
    if states is not None and errors.whole_number(states, "states", low=1) != d:
        raise errors.InvalidInput("states", f"is {states}", f"the arms have {d} features: give {d}")
    return read, reads, False


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(count))


def data_of(log: Log, states: int = 1) -> em.Data:
    """The log as arrays: sequences × rounds × plays, from each sequence's first round to its last.

    Args:
        log: of any sequences.
        states: d, to refuse what would not fit into memory.
    """
    lengths = np.array([int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences])
    plays = max(int(np.unique(one.rounds, return_counts=True)[1].max()) for one in log.sequences)
    shape = (len(log.sequences), int(lengths.max()), plays)
    if np.prod([float(size) for size in shape]) * states**2 > LARGEST_GRID:
        raise errors.InvalidInput(
            "log",
            f"spans {shape[1]} rounds in {shape[0]} sequences, up to {plays} plays in a round",
            "number rounds without large gaps, or fit a part of it",
        )
    arms, rewards, seen = np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape)
    for s, one in enumerate(log.sequences):
        place = one.rounds - one.rounds[0]
        first = np.searchsorted(place, place)  # where the plays of a round begin
        slot = np.arange(len(place)) - first
        there = ~np.isnan(one.rewards)
        arms[s, place, slot] = one.arms
        rewards[s, place, slot] = np.where(there, one.rewards, 0.0)
        seen[s, place, slot] = there
    if not seen.any():
        raise errors.InvalidInput("log", "holds no reward", "give at least one")
    return em.Data(arms, rewards, seen, lengths)


def _start(
    data: em.Data, reads: np.ndarray, options: em.Options, rng: np.random.Generator, number: int
) -> em.Parameters:
    """Half of the rewards' variance is noise, half is the state; the first start turns nothing."""
    k, d = reads.shape
    seen = data.seen > 0
    offsets = np.zeros(k)
    if options.offsets:
        counts = np.bincount(data.arms[seen], minlength=k)
        sums = np.bincount(data.arms[seen], data.rewards[seen], minlength=k)
        offsets = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / counts.sum())
    left = data.rewards[seen] - offsets[data.arms[seen]]
    variance = max(float(left @ left) / len(left), np.finfo(float).tiny)
    memory = (0.9, 0.5, 0.99)[number % 3]
    transition = memory * np.eye(d)
    if number and options.structure == "free":
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        transition = memory * (0.5 * np.eye(d) + 0.5 * turn)
    size = variance / 2 / max(float((reads**2).sum(axis=1).mean()), np.finfo(float).tiny)
    return em.Parameters(
        transition,
        (1 - memory**2) * size * np.eye(d),
        np.asarray(variance / 2),
        np.zeros(d),
        size * np.eye(d),
        reads,
        offsets,
    )


def _assembled(
    parameters: em.Parameters, options: em.Options, sequences: int
) -> tuple[LGDS, np.ndarray]:
    """The model: a new run starts as the log's did if these were many, else as one that settled."""
    d = len(parameters.transition)
    std = np.sqrt(parameters.reward_var)
    moving = LGDS(parameters.transition, parameters.process_cov, std, parameters.initial_cov)
    mean, cov = parameters.initial_mean, parameters.initial_cov
    if moving.is_stable and sequences < 2 * d:
        mean, cov = np.zeros(d), LGDS(moving.transition, moving.process_cov, std).stationary_cov()
    if not options.offsets:
        start = mean if mean.any() else None
        return LGDS(moving.transition, moving.process_cov, std, cov, start), parameters.reads
    model = LGDS(
        _with_constant(moving.transition, 1.0),
        _with_constant(moving.process_cov, 0.0),
        std,
        _with_constant(cov, 0.0),
        np.append(mean, 1.0),
    )
    return model, np.column_stack([parameters.reads, parameters.offsets])


def _with_constant(matrix: np.ndarray, corner: float) -> np.ndarray:
    d = len(matrix)
    whole = np.zeros((d + 1, d + 1))
    whole[:d, :d], whole[d, d] = matrix, corner
    return whole


def _warnings(parameters: em.Parameters, data: em.Data, log: Log, converged: bool) -> list[str]:
    said = []
    if not converged:
        said.append("The likelihood was still rising: give more iterations.")
    played = np.bincount(data.arms[data.seen > 0], minlength=len(log.names)) > 0
    if not played.all():
        silent = [log.names[i] for i in np.flatnonzero(~played)[:5]]
        said.append(f"No reward was seen of {(~played).sum()} arms: {', '.join(silent)}.")
    hidden = _hidden_directions(parameters, played)
    if hidden:
        said.append(
            f"The rewards hardly show {hidden} of {len(parameters.transition)} directions of the "
            "state: what was found of them is the start's, not the log's."
        )
    return said


def _hidden_directions(parameters: em.Parameters, played: np.ndarray) -> int:
    """How many directions of the state hardly show in the rewards of the played arms.

    The observability Gramian of d rounds in which all of them are seen, in units of the state's
    own spread.
    """
    d = len(parameters.transition)
    rows, blocks = parameters.reads[played], []
    for _ in range(d):
        blocks.append(rows)
        rows = rows @ parameters.transition
    root = factor(parameters.process_cov + parameters.initial_cov)
    values = np.linalg.svd(np.vstack(blocks) @ root, compute_uv=False)
    return int((values**2 < HIDDEN * values[0] ** 2).sum()) + max(0, d - len(values))
