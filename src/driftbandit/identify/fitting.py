"""`fit`: from a log of decisions to a model, by EM from several starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np

from driftbandit import errors
from driftbandit.identify import em
from driftbandit.identify.basis import measured
from driftbandit.identify.climb import climb
from driftbandit.identify.log import Log
from driftbandit.identify.meter import Meter, Share
from driftbandit.identify.readers import log_and_features
from driftbandit.identify.selection import Selection, candidates, select, splits
from driftbandit.identify.starts import beginning, of_model
from driftbandit.model import LGDS, factor
from driftbandit.system import Name, System

__all__ = ["Fit", "data_of", "fit"]

LARGEST_REWARD = 1e30
"""The largest reward, and one over the least it may be: fourth powers must still be numbers."""
LARGEST_GRID = 10**8
"""Rounds × sequences × states² that are smoothed at once."""
MOST_ITERATIONS, LEAST_TOLERANCE = 60, 1e-4
"""Of the climbs that the number of states is chosen by: they are many, and only compared."""
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
    names: tuple[Name, ...]
    """What the log calls the arms."""
    log_likelihoods: np.ndarray
    """Of the log along the climb from the best start, with the prior's part; it never falls."""
    log_likelihood: float
    """Of the log alone, at the end."""
    converged: bool
    """Whether the last gain was below the tolerance."""
    parameters: em.Parameters
    """As EM left them: the estimated start of a sequence among them."""
    warnings: tuple[str, ...]
    """What the log cannot tell, and how it was read."""
    selection: Selection | None = None
    """How the number of states was chosen; None: it was given, or there was no choice."""

    @property
    def system(self) -> System:
        """Model, arms and names: what `simulate`, `advise` and `save_model` take."""
        return System(self.model, self.arms, self.names)


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
    prior: float | None = None,
    seed: int = 0,
    start: LGDS | None = None,
    columns: Mapping[str, str] | None = None,
    step: str | None = None,
    progress: Callable[[Share], None] | None = None,
) -> Fit:
    """Learn Γ, Q, σ, the start and the arms' offsets from a log by expectation maximization.

    Args:
        log: a path (CSV or Parquet), a table, a mapping of columns, or a `Log`.
        arms: k × d features of arms that the log numbers: row i is of arm i, or, if the numbers
            are others and there are k, of the i-th by size; or `Arms`, as `read_arms` gives. None:
            what the arms read is estimated too, or, with as many states as arms, each arm has a
            state of its own.
        states: d; None: the number of features, or without arms the number that best predicts
            rewards it was not learned from, see `selection.select`.
        structure: of Γ: "free"; "diagonal" or "scalar", which come with a diagonal Q.
        stable: keep ρ(Γ) below 1.
        offsets: whether arms pay an offset of their own, as real rewards do.
        starts: how many starts to climb from; the likeliest end is kept.
        iterations: how often the log is smoothed in each climb, at most; below 3 the start is
            what is found.
        tolerance: stop when two steps and a jump gain less than this per reward.
        prior: how many rounds of a state that forgets at once are imagined beside the log's, so
            that a free Γ does not follow the noise of a short log (`em.Prior`); None: d² / 5;
            0: plain maximum likelihood. Simple structures take none.
        seed: of the starts.
        start: a model to climb from in place of the first start, as an earlier fit gave it.
        columns: what the log calls its columns, as {"round": "day"}; see `read_log`.
        step: how long a round is, if the log has times, as "15 minutes"; see `read_log`.
        progress: called with the share of the work done, 0 to 1, a `Share`.

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
    if prior is not None:
        prior = errors.number(prior, "prior", low=0)
    read, features, states = _read(log, arms, states, columns, step)
    data, k = data_of(read, states or 1), len(read.names)
    if start is not None and features is None and (states or 1) < k:
        remedy = "give arms, or leave it out"
        raise errors.InvalidInput("start", "does not say what arms read", remedy)
    if not _has_size(data.rewards):
        iterations = 1  # there is nothing to climb
    options = em.Options(structure, bool(stable), False, bool(offsets))
    meter, chosen = Meter(progress), None
    if states is None and k > 1:
        limits = min(iterations, MOST_ITERATIONS), max(tolerance, LEAST_TOLERANCE)
        chosen = _chosen(data, k, options, prior, rng, limits, meter, starts * iterations)
    d = chosen.states if chosen else states or 1
    best = _learned(
        data,
        (k, d),
        features,
        options,
        prior,
        rng,
        (iterations, tolerance),
        lambda number: meter.climb((1 - meter.share) / (starts - number), iterations),
        starts,
        start,
    )
    parameters, likelihoods, converged = best
    if features is None and d < k:  # read-outs are estimated, in whatever basis
        parameters = measured(parameters, structure)
    model, rows = _assembled(parameters, options, len(data.lengths))
    return Fit(
        model,
        rows,
        read.names,
        np.array(likelihoods),
        float(em.e_step(parameters, data).log_likelihood),
        converged,
        parameters,
        tuple(_warnings(parameters, data, read, converged, guessed=not (states or chosen))),
        chosen,
    )


def _learned(
    data: em.Data,
    shape: tuple[int, int],
    features: np.ndarray | None,
    options: em.Options,
    prior: float | None,
    rng: np.random.Generator,
    limits: tuple[int, float],
    meter: Callable[[int], Callable[[float], None]],
    starts: int = 1,
    start: LGDS | None = None,
) -> tuple[em.Parameters, list[float], bool]:
    """The best of several climbs, as `climb` returns it.

    Args:
        data: S sequences.
        shape: k arms, d states.
        features: k × d; None: what arms read is estimated, or each has a state of its own.
        options: what else to estimate.
        prior: as `fit` takes it.
        rng: draws the starts.
        limits: iterations and tolerance of a climb.
        meter: what the climb of a number moves.
        starts: how many climbs.
        start: a model to climb from first.
    """
    k, d = shape
    reads = np.eye(k, d) if features is None else features
    options = options._replace(reads=features is None and d < k)
    by_moments = 0 if features is None else 1  # from guesses, read-outs are seldom found
    rounds = d**2 / 5 if prior is None else prior
    best: tuple[em.Parameters, list[float], bool] | None = None
    for number in range(starts):
        begin = beginning(data, reads, options, rng, number, moments=number == by_moments)
        if options.structure == "free" and rounds > 0:
            options = options._replace(prior=em.Prior(rounds, begin.initial_cov / 2))
        if start is not None and number == 0:
            begin = of_model(start, begin, options)
        found = climb(begin, data, options, *limits, meter(number))
        if best is None or found[1][-1] > best[1][-1]:
            best = found
    assert best is not None
    return best


def _name(structure: Any) -> em.Structure:
    found = errors.closest(structure, "structure", em.STRUCTURES)
    return next(name for name in get_args(em.Structure) if name == found)


def _read(
    log: Any, arms: Any, states: int | None, columns: Any, step: Any
) -> tuple[Log, np.ndarray | None, int | None]:
    """The log, the arms' features if they are given, and the number of states if it is."""
    read, features = log_and_features(log, arms, columns, step)
    if features is None:
        if states is not None:
            states = errors.whole_number(states, "states", low=1, high=len(read.names))
        return read, None, states
    d = features.shape[1]
    if states is not None and errors.whole_number(states, "states", low=1) != d:
        raise errors.InvalidInput("states", f"is {states}", f"the arms have {d} features: give {d}")
    return read, features, d


def _chosen(
    data: em.Data,
    arms: int,
    options: em.Options,
    prior: float | None,
    rng: np.random.Generator,
    limits: tuple[int, float],
    meter: Meter,
    later: int,
) -> Selection | None:
    """The number of states by cross-validation; None where the log is too short for it.

    Args:
        data: S sequences.
        arms: k.
        options: of the fit.
        prior: as `fit` takes it.
        rng: draws the starts.
        limits: iterations and tolerance of a climb.
        meter: of the fit.
        later: iterations that follow when the number is known.
    """
    parts = splits(data)
    if not parts:
        return None
    tried = [d for d in candidates(arms) if data.seen.size * d**2 <= LARGEST_GRID]
    work = limits[0] * len(parts) * sum(2 + d for d in tried) + later * (2 + tried[-1])

    def learn(part: em.Data, d: int) -> em.Parameters:
        moved = meter.climb(limits[0] * (2 + d) / work, limits[0])
        shape = (arms, d)
        found, _, _ = _learned(part, shape, None, options, prior, rng, limits, lambda _: moved)
        mean, cov = _start_law(found, int(np.count_nonzero(part.lengths)))
        return found._replace(initial_mean=mean, initial_cov=cov)

    return select(parts, tried, learn)


def _has_size(rewards: np.ndarray) -> bool:
    """Whether there is a reward but zero; those beyond what can be reckoned with are refused."""
    largest = float(np.abs(rewards).max())
    if largest > 0 and not 1 / LARGEST_REWARD <= largest <= LARGEST_REWARD:
        ends = f"{1 / LARGEST_REWARD:g} to {LARGEST_REWARD:g}"
        remedy = f"measure them in other units: sizes from {ends} are read"
        raise errors.InvalidInput("log", f"has rewards up to {largest:g}", remedy)
    return largest > 0


def data_of(log: Log, states: int = 1) -> em.Data:
    """The log as arrays: sequences × rounds × plays, from each sequence's first round to its last.

    Args:
        log: of any sequences.
        states: d, to refuse what would not fit into memory.
    """
    lengths = np.array([int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences])
    plays = max(int(np.unique(one.rounds, return_counts=True)[1].max()) for one in log.sequences)
    shape = (len(log.sequences), _roomy(int(lengths.max())), plays)
    if np.prod([float(size) for size in shape]) * states**2 > LARGEST_GRID:
        raise errors.InvalidInput(
            "log",
            f"spans {lengths.max()} rounds in {shape[0]} sequences, up to {plays} plays in a round",
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


def _roomy(rounds: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, …: logs of about one length share a compiled program."""
    whole = 1 << (rounds - 1).bit_length()
    return whole * 3 // 4 if rounds <= whole * 3 // 4 else whole


def _start_law(parameters: em.Parameters, sequences: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a new run's start: the log's, and d + 1 of runs that had settled.

    The starts of a few sequences can be matched as closely as one likes; that predicts no other.
    """
    mean, cov = parameters.initial_mean, parameters.initial_cov
    settled = LGDS(parameters.transition, parameters.process_cov, 1.0)
    if not settled.is_stable:
        return mean, cov
    own = sequences / (sequences + len(mean) + 1)
    blend = own * cov + (1 - own) * (settled.stationary_cov() + own * np.outer(mean, mean))
    return own * mean, blend


def _assembled(
    parameters: em.Parameters, options: em.Options, sequences: int
) -> tuple[LGDS, np.ndarray]:
    """The model, and what the arms read of it."""
    std = np.sqrt(parameters.reward_var)
    mean, cov = _start_law(parameters, sequences)
    moving = LGDS(parameters.transition, parameters.process_cov, std, cov)
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


def _warnings(
    parameters: em.Parameters, data: em.Data, log: Log, converged: bool, guessed: bool
) -> list[str]:
    said = list(log.notes)
    if guessed and len(log.names) > 1:
        said.append("Too few rewards to choose the number of states: there is one.")
    if not data.rewards.any():
        said.append("All rewards are zero: what was found is the start's, not the log's.")
    elif not converged:
        said.append("The likelihood was still rising: give more iterations.")
    played = np.bincount(data.arms[data.seen > 0], minlength=len(log.names)) > 0
    if not played.all():
        silent = [str(log.names[i]) for i in np.flatnonzero(~played)[:5]]
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
