"""`fit`: from a log of decisions to a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np

from driftbandit import errors
from driftbandit.identify import assembly, doubts, em, learning, prediction
from driftbandit.identify.coordinates import measured
from driftbandit.identify.grid import data_of
from driftbandit.identify.progress import Meter, Share
from driftbandit.identify.selection import Candidate, Selection
from driftbandit.identify.units import Units
from driftbandit.io.logs import Log
from driftbandit.io.logs import log_and_features
from driftbandit.model import LGDS
from driftbandit.system import Name, System

__all__ = ["Fit", "data_of", "fit"]

LARGEST_REWARD = 1e30
"""The largest reward, and one over the least it may be: fourth powers must still be numbers."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """A model learned from a log.

    With offsets the model's last state is a constant 1, which each arm reads with its own offset.
    Where `fit` chose the model, a state for each arm stands before it: by how much the offset may
    differ from what the log says, so that an agent that starts from the model goes on learning it.
    """

    model: LGDS
    arms: np.ndarray
    """k × d of the model: what drifts, what is not known of offsets, the offsets."""
    names: tuple[Name, ...]
    """What the log calls the arms."""
    log_likelihoods: np.ndarray
    """Of the log along the climb from the best start, with the prior's part; it never falls."""
    log_likelihood: float
    """Of the log alone, at the end."""
    converged: bool
    """Whether the last gain was below the tolerance."""
    parameters: em.Parameters
    """What drifts: d states and what arms read of them, which may be none; and the offsets."""
    warnings: tuple[str, ...]
    """What the log cannot tell, and how it was read."""
    kind: Candidate
    """What was learned: chosen, or asked for."""
    selection: Selection | None = None
    """How it was chosen; None: it was asked for, or the log is too short to choose."""

    @property
    def n_states(self) -> int:
        """How many states drift."""
        return len(self.parameters.transition)

    @property
    def spectral_radius(self) -> float:
        """ρ(Γ) of the states that drift; zero where none does."""
        values = np.linalg.eigvals(self.parameters.transition)
        return float(np.abs(values).max(initial=0.0))

    def summary(self) -> str:
        """What was found and what was close, in plain words."""
        said = self.kind.sentence
        if self.selection is not None:
            close = [one.label for one in self.selection.close]
            said += f" Close: {'; '.join(close)}." if close else " No other model came close."
        return said

    @property
    def system(self) -> System:
        """Model, arms and names: what `simulate`, `advise` and `save_model` take."""
        return System(self.model, self.arms, self.names)


def fit(
    log: Any,
    arms: Any = None,
    n_states: int | None = None,
    *,
    structure: em.Structure | None = None,
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
    """Learn what drifts, how noisy rewards are and the arms' offsets from a log.

    Where neither features, states nor a structure are given, the model is chosen by how well it
    predicts rewards that it was not learned from (`selection`): no drift; each arm drifts by
    itself (`own`); arms share 1, 2, 3, 5, … states. All others are learned by expectation
    maximization (`em`).

    Args:
        log: a path (CSV or Parquet), a table, a mapping of columns, or a `Log`.
        arms: k × d features of arms that the log numbers: row i is of arm i, or, if the numbers
            are others and there are k, of the i-th by size; or `Arms`, as `read_arms` gives. None:
            what the arms read is estimated too, or, with as many states as arms, each arm has a
            state of its own.
        n_states: d; None: the number of features, or without arms what predicts best.
        structure: of Γ: "free"; "diagonal" or "scalar", which come with a diagonal Q; None: what
            predicts best, or "free" where features or states are given.
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
        >>> found.summary()
        'The arm drifts (1 state). No other model came close.'
    """
    structure = None if structure is None else _name(structure)
    starts = errors.whole_number(starts, "starts", low=1)
    iterations = errors.whole_number(iterations, "iterations", low=1)
    tolerance = errors.number(tolerance, "tolerance", low=0)
    rng = np.random.default_rng(errors.whole_number(seed, "seed", low=0))
    if prior is not None:
        prior = errors.number(prior, "prior", low=0)
    read, features, n_states = _read(log, arms, n_states, columns, step)
    raw, k = data_of(read, n_states or 1), len(read.names)
    if start is not None and features is None and (n_states or 1) < k:
        remedy = "give arms, or leave it out"
        raise errors.InvalidInput("start", "does not say what arms read", remedy)
    _check_size(raw.rewards)
    units = Units.of(raw, k, bool(offsets))
    data = units.standard(raw)
    if not data.rewards.any():
        iterations = 1  # there is nothing to climb
    automatic = n_states is None and structure is None
    options = em.Options(structure or "free", bool(stable), False, bool(offsets))
    task = learning.Task(data, k, features, options, prior, rng, (iterations, tolerance), units)
    meter, choice = Meter(progress), None
    kind = Candidate(options.structure, n_states or 1)
    open_choice = n_states is None and (structure is None or k > 1)
    if open_choice:
        choice = learning.choose(task, structure, meter, starts * iterations)
        kind = Candidate("alike", k) if structure is None else kind
        kind = choice.chosen if choice else kind
    if kind.kind in em.STRUCTURES:
        found = learning.climbs(
            task,
            kind,
            task.limits,
            lambda number: meter.climb((1 - meter.share) / (starts - number), iterations),
            starts,
            None if start is None else units.model(start),
        )
        parameters, likelihoods, converged = found
        options = options._replace(reads=features is None and kind.n_states < k)
        end = float(em.e_step(parameters, data).log_likelihood)
        several = data.seen.shape[2] > 1  # plays in a round, which tell of each other
        ahead = prediction.log_density(parameters, data) if several else end
        doubt = None
        if automatic and offsets:
            doubt = assembly.offset_cov(parameters, data, units.offset_var())
        parameters = units.raw(parameters)
        if features is None and kind.n_states < k:  # read-outs are estimated, in whatever basis
            parameters = measured(parameters, options.structure)
        begin = assembly.start_law(parameters, len(data.lengths))
    else:
        parameters, likelihoods, converged, end, doubt = learning.by_itself(task, kind, meter)
        ahead = end
        parameters = units.raw(parameters)
        begin = parameters.initial_mean, parameters.initial_cov
    doubt = None if doubt is None else doubt * units.scale**2
    model, rows = assembly.assembled(
        parameters, begin, options.offsets, doubt, float(em.times(data).max()) + 1
    )
    guessed = open_choice and choice is None
    said = doubts.said(parameters, raw, read, converged, kind, guessed, ahead, options)
    shift = -float(data.seen.sum()) * float(np.log(units.scale))
    return Fit(
        model,
        rows,
        read.names,
        np.array(likelihoods) + shift,
        end + shift,
        converged,
        parameters,
        tuple(said),
        kind,
        choice,
    )


def _name(structure: Any) -> em.Structure:
    found = errors.closest(structure, "structure", em.STRUCTURES)
    return next(name for name in get_args(em.Structure) if name == found)


def _read(
    log: Any, arms: Any, n_states: int | None, columns: Any, step: Any
) -> tuple[Log, np.ndarray | None, int | None]:
    """The log, the arms' features if they are given, and the number of states if it is."""
    read, features = log_and_features(log, arms, columns, step)
    if features is None:
        if n_states is not None:
            n_states = errors.whole_number(n_states, "n_states", low=1, high=len(read.names))
        return read, None, n_states
    d = features.shape[1]
    if n_states is not None and errors.whole_number(n_states, "n_states", low=1) != d:
        raise errors.InvalidInput(
            "n_states", f"is {n_states}", f"the arms have {d} features: give {d}"
        )
    return read, features, d


def _check_size(rewards: np.ndarray) -> None:
    """Refuse rewards beyond what can be reckoned with."""
    largest = float(np.abs(rewards).max())
    if largest > 0 and not 1 / LARGEST_REWARD <= largest <= LARGEST_REWARD:
        ends = f"{1 / LARGEST_REWARD:g} to {LARGEST_REWARD:g}"
        remedy = f"measure them in other units: sizes from {ends} are read"
        raise errors.InvalidInput("log", f"has rewards up to {largest:g}", remedy)
