"""States that arms share, or whose features are known: `Fit`, learned by `em`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from driftbandit import errors, kalman
from driftbandit.identify import assembly, em
from driftbandit.identify.data import Data, Parameters, Units, check_size, data_of, times
from driftbandit.identify.facts import fit_repr
from driftbandit.identify.findings import Answer, drift_of
from driftbandit.identify.restarts import Progress, Task, best_run
from driftbandit.identify.selection import Candidate, Selection, choose
from driftbandit.identify.smoothing import log_densities
from driftbandit.identify.structured.candidates import Factors
from driftbandit.identify.structured.comparison import Comparison
from driftbandit.io.logs import Log
from driftbandit.model import LGDS, factor
from driftbandit.system import Name, System

UNSEEN = 1e-6  # a direction that shows this much less in rewards than the best is not identified
NOTHING = "The model predicts rewards no better than each arm's mean."
UNLEARNED = "the model is EM's starting point, not learned from the log."
TOLERANCE = 1e-5  # EM stops when two steps and an extrapolation gain less than this per reward


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
        >>> from driftbandit.identify import fit
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
    comparison: Comparison | None = None  # if this predicted better than structures of components
    continued: System | None = None  # the system that starts where the log ends, if `fit` chose it

    @property
    def structure(self) -> Factors:
        """What rewards are made of.

        Example:
            >>> log = {"round": range(20), "arm": [0, 1] * 10, "reward": [1.0, 2.0, 1.5, 2.5] * 5}
            >>> from driftbandit.identify import fit
        >>> found = fit(log, n_states=1, starts=1)
            >>> str(found.structure), found.drift.verdict  # nothing was compared
            ('constant(arm) + factors(1)', 'cannot tell')
        """
        return Factors(self.n_states)

    @property
    def drift(self) -> Answer:
        """Whether arms drift, as `advise` says it.

        Example:
            >>> log = {"round": range(20), "arm": [0, 1] * 10, "reward": [1.0, 2.0, 1.5, 2.5] * 5}
            >>> from driftbandit.identify import fit
            >>> fit(log, n_states=1, starts=1).drift.verdict  # nothing was compared
            'cannot tell'
        """
        return drift_of(self.comparison)

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
        """Model, arms and names, as `simulate`, `advise` and `save_model` take them.

        If `fit` chose the model, it starts in the round after the log's last, and contains the log.
        """
        return self.start_system if self.continued is None else self.continued

    @property
    def start_system(self) -> System:
        """The same before any reward: `Agent.tell_log` brings an agent to the log's end."""
        return System(self.model, self.arms, self.names)


def learn(log: Log, n_states: int, iterations: int) -> Fit:
    """Learn so many states from one start, and the arms' weights on them and their means."""
    limits = iterations, TOLERANCE
    return of_states(
        log, None, n_states, "free", True, True, 1, limits, None, 0, None, Progress(None)
    )


def of_states(
    read: Log,
    features: np.ndarray | None,
    n_states: int | None,
    structure: em.Structure,
    stable: bool,
    offsets: bool,
    starts: int,
    limits: tuple[int, float],
    prior: float | None,
    seed: int,
    start: LGDS | None,
    work: Progress,
    doubtful: bool = False,
) -> Fit:
    """States that arms share, or whose features are known, by expectation maximization.

    ``doubtful``: the model has a state per arm for the error of its offset.
    """
    rng = np.random.default_rng(seed)
    prior = None if prior is None else errors.number(prior, "prior", low=0)
    raw, k = data_of(read, n_states or 1), len(read.names)
    if start is not None and features is None and (n_states or 1) < k:
        raise errors.InvalidInput("start", "has no read-outs", "give arms, or leave it out")
    check_size(raw.rewards, "rewards")
    units = Units.of(raw, k, bool(offsets))
    data = units.standard(raw)
    still = not data.rewards.any()  # every reward is its arm's mean
    if still:
        limits = 1, limits[1]  # there is nothing to learn
    options = em.Options(structure, bool(stable), False, bool(offsets))
    task = Task(data, k, features, options, prior, rng, limits, units)
    choice, kind = None, Candidate(structure, n_states or 1)
    undecided = n_states is None and k > 1
    if undecided:
        choice = choose(task, work, starts * limits[0])
        kind = choice.chosen if choice else kind

    def reports(number: int) -> Callable[[float], None]:
        return work.part((1 - work.share) / (starts - number), int(limits[0]))

    first = None if start is None else units.model(start)
    parameters, path, converged = best_run(task, kind.n_states, reports, starts, first)
    options = options._replace(reads=features is None and kind.n_states < k)
    ahead = end = float(em.e_step(parameters, data).log_likelihood)
    if data.seen.shape[2] > 1:  # plays of one round must not predict each other
        ahead = float(log_densities(parameters, data)[data.seen > 0].sum())
    doubt = assembly.offset_cov(parameters, data, units.offset_var()) if doubtful else None
    doubt = None if doubt is None else doubt * units.scale**2
    parameters = units.raw(parameters)
    if options.reads:
        parameters = assembly.scaled_by_reads(parameters, structure)
    begin = assembly.start_distribution(parameters, len(data.lengths))
    span = float(times(data).max()) + 1
    model, rows = assembly.assembled(parameters, begin, options.offsets, doubt, span)
    guessed = undecided and choice is None
    warnings = warnings_of(parameters, raw, read, converged, guessed, ahead, options, still)
    shift = -float(data.seen.sum()) * float(np.log(units.scale))
    likelihoods = np.array(path) + shift, end + shift
    return Fit(
        model, rows, read.names, *likelihoods, converged, parameters, tuple(warnings), kind, choice
    )


def warnings_of(
    parameters: Parameters,
    data: Data,
    log: Log,
    converged: bool,
    guessed: bool,
    ahead: float,
    options: em.Options,
    still: bool = False,
) -> list[str]:
    """How the log was read, and what it does not show.

    ``guessed``: the log was too short to choose the number of states; ``ahead``: log-density of the
    standardized rewards, each given the rounds before its own; ``still``: all of them are zero.
    """
    found = [*log.notes, *log.unused_features]
    if guessed:
        found.append("Too few rewards to choose the number of states: there is one.")
    if not data.rewards.any():
        found.append(f"All rewards are zero: {UNLEARNED}")
    elif still:
        found.append(f"No arm has two different rewards: {UNLEARNED}")
    elif not converged:
        found.append("The likelihood was still rising: give more iterations.")
    elif options.offsets and not guessed:
        rewards = float(data.seen.sum())
        without = -0.5 * rewards * (math.log(2 * math.pi) + 1)
        if ahead - without < _freedom(parameters, options):
            found.append(f"{NOTHING} Fewer states or a simpler structure may.")
    played = np.bincount(data.arms[data.seen > 0], minlength=len(log.names)) > 0
    if not played.all():
        silent = [str(log.names[i]) for i in np.flatnonzero(~played)[:5]]
        found.append(f"No reward was seen of {(~played).sum()} arms: {', '.join(silent)}.")
    hidden = _hidden_directions(parameters, played)
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


def continued(system: System, log: Log) -> System | None:
    """The system in the round after the log's last; None if several sequences end apart."""
    if len(log.sequences) > 1:
        return None
    (sequence,) = log.sequences
    model, belief, now = system.model, kalman.prior(system.model), int(sequence.rounds[0])
    for round_, arm, reward in zip(
        sequence.rounds.tolist(), sequence.arms.tolist(), sequence.rewards.tolist(), strict=True
    ):
        if round_ > now:
            belief, now = kalman.advance(belief, model, round_ - now), round_
        if not math.isnan(reward):
            belief = kalman.observe(belief, model, system.arms[arm], np.float64(reward))
    mean, cov = kalman.advance(belief, model, 1)
    parts = model.transition, model.process_cov, float(model.reward_std), cov, mean
    return System(LGDS(*parts), system.arms, system.names, None, now + 1, log.clock)
