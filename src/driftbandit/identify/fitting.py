"""`fit`: from a log of decisions to a model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.identify import assembly, em, independent_arms
from driftbandit.identify.data import Data, Parameters, Units, check_size, data_of, times
from driftbandit.identify.facts import fit_repr
from driftbandit.identify.restarts import Progress, Share, Task, best_run
from driftbandit.identify.selection import Candidate, Selection, choose
from driftbandit.identify.smoothing import log_densities
from driftbandit.identify.structured.fitting import StructuredFit
from driftbandit.identify.structured.selection import fit_components
from driftbandit.io.log_reader import as_log, log_and_features
from driftbandit.io.logs import Log
from driftbandit.model import LGDS, factor
from driftbandit.structure import parse
from driftbandit.system import Name, System

UNSEEN = 1e-6  # a direction that shows this much less in rewards than the best is not identified
NOTHING = "The model predicts rewards no better than each arm's mean."
UNLEARNED = "the model is EM's starting point, not learned from the log."


@dataclasses.dataclass(frozen=True, repr=False)
class Fit:
    """A model learned from a log.

    With offsets the model's last state is a constant 1, which each arm reads with its own offset.
    If `fit` chose the model, one state per arm precedes it: the error of the arm's offset, so that
    an agent that starts from the model keeps learning the offsets.

    Example:
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 80))
        >>> rewards = [2.0, 2.0, 3.0, 3.0] * 20 + np.cumsum(0.3 * drift) + 0.2 * noise
        >>> log = {"round": range(80), "arm": ["a", "a", "b", "b"] * 20, "reward": rewards}
        >>> found = fit(log, n_states=1, starts=1)
        >>> found.summary(), found.n_states, found.converged, found.warnings
        ('All arms share one drifting factor (1 state).', 1, True, ())
        >>> 0.9 < found.spectral_radius < 1  # it drifts slowly
        True

        `simulate`, `advise` and `Agent` take the system; so does `save_model`:

        >>> from driftbandit import Agent
        >>> Agent(found.system).ask().arm, found.start_system.names
        ('b', ('a', 'b'))
    """

    model: LGDS
    arms: np.ndarray  # one row each: read-outs of what drifts, of the offsets' errors, the offset
    names: tuple[Name, ...]  # the arms' names in the log
    log_likelihoods: np.ndarray  # plus log-prior, along the best EM run; never falls
    log_likelihood: float  # of the log alone, at the end
    converged: bool  # whether the last gain was below the tolerance
    parameters: Parameters  # of the d states that drift, if any, and the offsets
    warnings: tuple[str, ...]  # how the log was read, and what it cannot tell
    kind: Candidate  # the kind of model, chosen or given
    selection: Selection | None = None  # None: kind was given, or the log is too short to choose

    @property
    def n_states(self) -> int:
        """How many states drift."""
        return len(self.parameters.transition)

    @property
    def spectral_radius(self) -> float:
        """ρ(Γ) of the states that drift; zero if none does."""
        values = np.linalg.eigvals(self.parameters.transition)
        return float(np.abs(values).max(initial=0.0))

    def __repr__(self) -> str:
        return fit_repr(self, self.kind.label)

    def summary(self) -> str:
        """The model in one sentence, and which others came close."""
        if self.selection is None:
            return self.kind.sentence
        labels = "; ".join(one.label for one in self.selection.close)
        close = f"Close: {labels}." if labels else "No other model came close."
        return f"{self.kind.sentence} {close}"

    @property
    def system(self) -> System:
        """Model, arms and names, as `simulate`, `advise` and `save_model` take them."""
        return System(self.model, self.arms, self.names)

    @property
    def start_system(self) -> System:
        """The same as ``system``, which has seen no reward yet.

        A fit with components (`StructuredFit`) has two: one that starts where the log ends, and
        this one. Here, `Agent.tell_log` brings an agent to the log's end.
        """
        return self.system


def fit(
    log: Any,
    arms: Any = None,
    n_states: int | None = None,
    *,
    structure: Any = None,
    groups: Mapping[Name, Any] | None = None,
    periods: Sequence[float] | None = None,
    stable: bool = True,
    offsets: bool = True,
    starts: int = 3,
    iterations: int = 200,
    tolerance: float = 1e-5,
    prior: float | None = None,
    seed: int = 0,
    start: LGDS | None = None,
    columns: Mapping[str, str] | None = None,
    every: str | None = None,
    zone: str | None = None,
    progress: Callable[[Share], None] | None = None,
) -> Fit | StructuredFit:
    """Learn what drifts, how noisy rewards are and the arms' offsets from a log.

    Without features, a number of states or a structure, the model is chosen by how well it predicts
    held-out rewards (`selection`): no drift; each arm drifts on its own (`independent_arms`); arms
    share 1, 2, 3, 5, … states, learned by expectation maximization (`em`).

    Args:
        log: a path (CSV or Parquet), a table, a mapping of columns, or a `Log`.
        arms: k × d features of arms that the log numbers: row i belongs to arm i or, if the k arms
            have other numbers, to the i-th by size; or `Arms`, as `read_arms` gives. None:
            read-outs are estimated too or, with as many states as arms, each arm has a state of
            its own.
        n_states: d; None: the number of features or, without arms, what predicts best.
        structure: what rewards are made of, as "level(arm) + season(7)" or a `Structure`, learned
            by maximum likelihood (`structured`); several of them, or "auto", of which the one that
            predicts best is taken. Or the form of Γ: "free"; "diagonal" or "scalar", which come
            with a diagonal Q. None: what predicts best, or "free" if features or states are given.
        groups: the group of each arm by name, for components such as level(group).
        periods: of the seasons that "auto" tries; None: of 7, 12, 24, 52 and 168, those that a
            quick test finds, at most two.
        stable: keep ρ(Γ) below 1.
        offsets: whether each arm pays an offset of its own, as real rewards do.
        starts: EM restarts; the most likely fit is kept.
        iterations: most iterations of an EM run; with fewer than 3 the starting point is returned.
        tolerance: EM stops when two steps and an extrapolation gain less than this per reward.
        prior: its strength in pseudo-rounds, which keep a free Γ from fitting the noise of a short
            log (`em.Prior`); None: d² / 5; 0: maximum likelihood. With components: how strong the
            prior of their parameters is; None: 1.
        seed: of the restarts.
        start: a model from an earlier fit, from which the first EM run starts.
        columns: the log's own column names, as {"round": "day"}; see `read_log`.
        every: the length of a round if the log has times, as "15 minutes"; see `read_log`.
        zone: whose clocks the rounds count if the log has times, as "Europe/Berlin".
        progress: called with the share of the work done, 0 to 1, a `Share`.

    Returns:
        `Fit`; `StructuredFit`, if ``structure`` has components.

    Example:
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 100))
        >>> rewards = 5 + np.cumsum(0.3 * drift) + 0.5 * noise
        >>> log = {"round": range(100), "arm": ["a"] * 100, "reward": rewards}
        >>> found = fit(log)
        >>> found.summary()
        'The arm drifts (1 state). No other model came close.'
        >>> round(float(found.model.reward_std), 1), len(found.selection.candidates)
        (0.5, 2)
    """
    if structure is not None and structure not in em.STRUCTURES:
        for name, value in (("arms", arms), ("n_states", n_states), ("start", start)):
            if value is not None:
                said = "was given together with components"
                raise errors.InvalidInput(name, said, "give only one of the two")
        if not isinstance(structure, list | tuple) and structure != "auto":
            structure = parse(structure, (*em.STRUCTURES, "auto"))
        read = as_log(log, columns=columns, every=every, zone=zone)
        return fit_components(read, structure, groups, periods, prior, starts, Progress(progress))
    for name, value in (("groups", groups), ("periods", periods)):
        if value is not None:
            remedy = 'give structure="auto" or components'
            raise errors.InvalidInput(name, "was given without components", remedy)
    starts = errors.whole_number(starts, "starts", low=1)
    iterations = errors.whole_number(iterations, "iterations", low=1)
    tolerance = errors.number(tolerance, "tolerance", low=0)
    rng = np.random.default_rng(errors.whole_number(seed, "seed", low=0))
    prior = None if prior is None else errors.number(prior, "prior", low=0)
    read, features, n_states = _read(log, arms, n_states, columns, every, zone)
    raw, k = data_of(read, n_states or 1), len(read.names)
    if start is not None and features is None and (n_states or 1) < k:
        raise errors.InvalidInput("start", "has no read-outs", "give arms, or leave it out")
    check_size(raw.rewards, "rewards")
    units = Units.of(raw, k, bool(offsets))
    data = units.standard(raw)
    still = not data.rewards.any()  # every reward is its arm's mean
    if still:
        iterations = 1  # there is nothing to learn
    options = em.Options(structure or "free", bool(stable), False, bool(offsets))
    task = Task(data, k, features, options, prior, rng, (iterations, tolerance), units)
    work, choice = Progress(progress), None
    kind = Candidate(options.structure, n_states or 1)
    automatic = n_states is None and structure is None
    undecided = n_states is None and (structure is None or k > 1)
    if undecided:
        choice = choose(task, structure, work, starts * iterations)
        default = Candidate("alike", k) if structure is None else kind
        kind = choice.chosen if choice else default
    doubt = None
    if kind.own:
        run, end, doubt = independent_arms.fitted(task, kind.own, work)
        parameters, ahead = units.raw(run[0]), end
        begin = parameters.initial_mean, parameters.initial_cov
    else:

        def reports(number: int) -> Callable[[float], None]:
            return work.part((1 - work.share) / (starts - number), iterations)

        first = None if start is None else units.model(start)
        run = best_run(task, kind.n_states, reports, starts, first)
        parameters = run[0]
        options = options._replace(reads=features is None and kind.n_states < k)
        ahead = end = float(em.e_step(parameters, data).log_likelihood)
        if data.seen.shape[2] > 1:  # plays of one round must not predict each other
            ahead = float(log_densities(parameters, data)[data.seen > 0].sum())
        if automatic and offsets:
            doubt = assembly.offset_cov(parameters, data, units.offset_var())
        parameters = units.raw(parameters)
        if options.reads:
            parameters = assembly.scaled_by_reads(parameters, options.structure)
        begin = assembly.start_distribution(parameters, len(data.lengths))
    _, path, converged = run
    doubt = None if doubt is None else doubt * units.scale**2
    span = float(times(data).max()) + 1
    model, rows = assembly.assembled(parameters, begin, options.offsets, doubt, span)
    guessed = undecided and choice is None
    warnings = warnings_of(parameters, raw, read, converged, kind, guessed, ahead, options, still)
    shift = -float(data.seen.sum()) * float(np.log(units.scale))
    likelihoods = np.array(path) + shift, end + shift
    return Fit(
        model, rows, read.names, *likelihoods, converged, parameters, tuple(warnings), kind, choice
    )


def _read(
    log: Any, arms: Any, n_states: int | None, columns: Any, every: Any, zone: Any
) -> tuple[Log, np.ndarray | None, int | None]:
    """The log, and the arms' features and the number of states if they are given."""
    read, features = log_and_features(log, arms, columns, every, zone)
    if n_states is not None:
        high = len(read.names) if features is None else None
        n_states = errors.whole_number(n_states, "n_states", low=1, high=high)
    if features is None:
        return read, None, n_states
    d = features.shape[1]
    if n_states not in (None, d):
        remedy = f"the arms have {d} features: give {d}"
        raise errors.InvalidInput("n_states", f"is {n_states}", remedy)
    return read, features, d


def warnings_of(
    parameters: Parameters,
    data: Data,
    log: Log,
    converged: bool,
    kind: Candidate,
    guessed: bool,
    ahead: float,
    options: em.Options,
    still: bool = False,
) -> list[str]:
    """How the log was read, and what it does not show.

    ``guessed``: the log was too short to choose the kind of model; ``ahead``: log-density of the
    standardized rewards, each given the rounds before its own; ``still``: all of them are zero.
    """
    found = [*log.notes, *log.unused_features]
    shared = not kind.own
    if guessed and not shared:
        found.append("Too few rewards to compare models: each arm is assumed to drift on its own.")
    elif guessed:
        found.append("Too few rewards to choose the number of states: there is one.")
    if not data.rewards.any():
        found.append(f"All rewards are zero: {UNLEARNED}")
    elif still and shared:
        found.append(f"No arm has two different rewards: {UNLEARNED}")
    elif not converged and shared:
        found.append("The likelihood was still rising: give more iterations.")
    elif kind.kind == "constant":
        found.append(f"{NOTHING} No drift shows in this log.")
    elif shared and options.offsets and not guessed:
        rewards = float(data.seen.sum())
        without = -0.5 * rewards * (math.log(2 * math.pi) + 1)
        if ahead - without < _freedom(parameters, options):
            found.append(f"{NOTHING} Fewer states or a simpler structure may.")
    played = np.bincount(data.arms[data.seen > 0], minlength=len(log.names)) > 0
    if not played.all():
        silent = [str(log.names[i]) for i in np.flatnonzero(~played)[:5]]
        found.append(f"No reward was seen of {(~played).sum()} arms: {', '.join(silent)}.")
    hidden = _hidden_directions(parameters, played) if shared else 0
    if hidden:
        found.append(
            f"The rewards hardly show {hidden} of {len(parameters.transition)} directions of the "
            f"state: there {UNLEARNED}"
        )
    return found


def _freedom(parameters: Parameters, options: em.Options) -> int:
    """Number of free parameters of the drift: their expected gain by chance (Akaike 1974)."""
    k, d = parameters.reads.shape
    moves = {"free": d * d + d * (d + 1) // 2, "diagonal": 2 * d, "scalar": 1 + d}
    return moves[options.structure] + (k * d if options.reads else 0)


def _hidden_directions(parameters: Parameters, played: np.ndarray) -> int:
    """How many directions of the state hardly show in the rewards of the played arms."""
    # The observability Gramian of d rounds that play all of them, in units of the state's spread.
    d = len(parameters.transition)
    blocks = [parameters.reads[played]]
    while len(blocks) < d:
        blocks.append(blocks[-1] @ parameters.transition)
    root = factor(parameters.process_cov + parameters.initial_cov)
    values = np.linalg.svd(np.vstack(blocks) @ root, compute_uv=False)
    return int((values**2 < UNSEEN * values[0] ** 2).sum()) + max(0, d - len(values))
