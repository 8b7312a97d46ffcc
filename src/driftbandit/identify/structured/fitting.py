"""Learn the parameters of a structure from a log: maximum likelihood with a wide prior."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.optimize

from driftbandit import errors
from driftbandit.identify.data import ROUNDING, no_arm_varies
from driftbandit.identify.findings import Answer, drift_of
from driftbandit.identify.structured import likelihood
from driftbandit.identify.structured.comparison import Comparison
from driftbandit.identify.structured.likelihood import Keeps
from driftbandit.identify.structured.moves import moves_of, places_of, whole
from driftbandit.identify.structured.rows import LARGEST_GRADIENT, Described, Rows, rows_of
from driftbandit.io.logs import Log
from driftbandit.model import LGDS
from driftbandit.structure import Layout, Structure
from driftbandit.structure.kinds import Constant, Factors
from driftbandit.system import Name, System, names_and_number

BOUNDS = {"size": (math.log(1e-6), math.log(1e3)), "time": (math.log(0.1), math.log(1e7))}
BOUNDS |= {"share": (-12.0, 12.0), "correlation": (-6.0, 6.0), "real": (-8.0, 8.0)}
LOADINGS = (-50.0, 50.0)
STARTS = (0.0, -1.5, 1.5, -3.0, 3.0)  # shifts of the drifts, from the medians of their priors
MANY = 20  # arms, beyond which a search does without states for their means
UNSEEN = 1e-6  # a direction that shows this much less in rewards than the best is not seen
LEAST_SPREAD = 1e-3  # of the arms' means, in units of the rewards' spread
ITERATIONS = 200  # most of a search
STEP = 1e-4  # of the differences of gradients that give the Hessian
ABNORMAL = 2  # SciPy's status when a line search finds nothing better
SEARCH_ROWS, SEARCH_SIZE = 2000, 10**6
"""Plays, and plays × states², that a search takes at least and at most if arms share states."""
SHARED = 10**5  # plays × states² of a log whose gradients keep everything, needed or not
Report = Callable[[float], None]


class Problem(NamedTuple):
    """What is maximized: the log-likelihood of a log, plus a prior of the given strength."""

    layout: Layout
    described: Described
    prior: float
    flat: int | None = None  # the place of a parameter without a prior

    @property
    def keeps(self) -> Keeps:
        """What a gradient keeps. Of short logs everything, so that they share a program."""
        layout = self.layout
        if self.described.n_rows * layout.n_states**2 <= SHARED:
            return Keeps(True, True)
        return Keeps(layout.learns_transition, layout.learns_reads)

    def moves(self, theta: np.ndarray) -> tuple[Any, Any]:
        """What the programs of `likelihood` take, for a θ; and `moves_of`'s gradient."""
        layout, data = self.layout, self.described
        kinds = data.rows if data.rows.apart is None else data.rows.apart
        moves, gradient = moves_of(layout, theta, data.units, kinds)
        return (moves, places_of(layout)[1], data.rows), gradient

    def only(self, seen: np.ndarray) -> Problem:
        """The same log, of which only these rewards are observed, a mask of n."""
        rows: Rows = self.described.rows
        there = np.zeros_like(rows.seen)
        there[: len(seen)] = seen
        rows = rows._replace(seen=rows.seen * there)
        return self._replace(described=self.described._replace(rows=rows))

    def for_search(self, log: Log, early: np.ndarray | None = None) -> Problem:
        """The problem that a search solves: of a long log whose arms share states, its end.

        The plays of such arms cost states² numbers each, hundreds of times in a search.

        Args:
            log: whose problem this is.
            early: the plays that the search may see, a mask of n; None: all.
        """
        data, layout = self.described, self.layout
        size = SEARCH_SIZE // (10 if layout.learns_reads else 1)
        most = max(SEARCH_ROWS, size // layout.n_states**2)
        if layout.apart is not None or data.n_rows <= most:
            return self if early is None else self.only(early)
        seen = data.rows.seen[: data.n_rows] > 0
        seen = seen if early is None else seen & early
        last = seen & (np.cumsum(seen[::-1])[::-1] <= most)
        return self._replace(described=rows_of(log.only(last), layout, data))

    def without_means(self) -> tuple[Problem, np.ndarray, np.ndarray] | None:
        """The same with rewards less their arm's mean in place of states that hold it.

        Returns:
            The problem; where its parameters stand in θ; a θ that has the spread of the means.
            None, if there are few such states, or arms share no other.
        """
        layout, rows = self.layout, self.described.rows
        components = layout.structure.components
        rest = [one for one in components if not (isinstance(one, Constant) and one.is_plain)]
        few = len(layout.names) <= MANY or len(rest) == len(components)
        if layout.apart is not None or few or not rest:
            return None
        k = len(layout.names)
        counts = np.bincount(rows.arms, rows.seen, k)
        centers = np.bincount(rows.arms, rows.rewards * rows.seen, k) / np.maximum(counts, 1)
        apart = rows._replace(rewards=(rows.rewards - centers[rows.arms]) * rows.seen)
        small = Layout(Structure(tuple(rest)), layout.names, layout.groups)
        described = self.described._replace(rows=apart)
        kept = [None, *(place for place, one in enumerate(components) if one in rest)]
        places = [place for place, free in enumerate(layout.free) if free.component in kept]
        theta = layout.begin.copy()
        spread = max(float(centers[counts > 0].std()) / described.units.scale, LEAST_SPREAD)
        theta[np.setdiff1d(np.arange(len(theta)), places)] = math.log(spread)
        return Problem(small, described, self.prior), np.array(places), theta

    def loss(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the objective, and its gradient."""
        with jax.enable_x64(True):
            moves, gradient_of = self.moves(theta)
            value, slopes = likelihood.objective_and_slopes(*moves, self.keeps)
            slope = gradient_of(slopes)
        away = (theta - self.centers) / self.spreads
        prior = 0.5 * self.prior * float(away @ away)
        gradient = self.prior * away / self.spreads - slope
        value = prior - float(value)
        return (value, gradient) if math.isfinite(value) else (math.inf, np.zeros_like(theta))

    def log_likelihood(self, theta: np.ndarray) -> float:
        """Of the rewards, without the prior."""
        if _has_gradient(self):
            away = (theta - self.centers) / self.spreads
            return 0.5 * self.prior * float(away @ away) - self.loss(theta)[0]
        with jax.enable_x64(True):
            return float(likelihood.objective(*self.moves(theta)[0], self.keeps))

    def predicted(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each row's reward given the rounds before its own, n each."""
        data = self.described
        with jax.enable_x64(True):
            _, means, variances = likelihood.predicted(*self.moves(theta)[0])
        shown = np.s_[: data.n_rows]
        return np.asarray(means)[shown] + data.center, np.asarray(variances)[shown]

    @property
    def centers(self) -> np.ndarray:
        """Of the prior."""
        return np.array([free.center for free in self.layout.free])

    @property
    def spreads(self) -> np.ndarray:
        """Of the prior."""
        spreads = enumerate(free.spread for free in self.layout.free)
        return np.array([math.inf if place == self.flat else one for place, one in spreads])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Of θ."""
        free = self.layout.free
        return [LOADINGS if one.arm is not None else BOUNDS[one.parameter.kind] for one in free]


class Maximum(NamedTuple):
    """The end of a search."""

    theta: np.ndarray
    loss: float
    converged: bool


def minimized(
    problem: Problem,
    start: np.ndarray,
    bounds: list[tuple[float, float]] | None = None,
    iterations: int = ITERATIONS,
) -> Maximum:
    """Minimize the loss from a start, by L-BFGS-B."""
    bounds = problem.bounds if bounds is None else bounds
    low, high = np.array(bounds).T
    start = np.clip(start, low, high)
    first, slope = problem.loss(start)
    if not math.isfinite(first):
        return Maximum(start, first, False)
    # The first step is the gradient: divided by its length, it does not jump to the bounds. Where
    # the loss is infinite, a finite wall lets the line search turn back.
    unit = max(1.0, float(np.linalg.norm(slope)))
    wall = first + 10 * unit

    def scaled(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = problem.loss(theta)
        return min(value, wall) / unit, slope / unit

    flat = 1e-7 if problem.layout.learns_factors else 1e-13  # they turn into each other
    options = {"ftol": flat, "gtol": 1e-5 / unit, "maxiter": iterations, "maxcor": 20}
    end = scipy.optimize.minimize(scaled, start, jac=True, bounds=bounds, options=options)
    # Close to the minimum, rounding may leave the line search without a step that gains anything.
    loss, slope = problem.loss(end.x)
    inside = (end.x > low) & (end.x < high)
    near = np.abs(slope * inside).max() < 1e-2
    converged = bool(near if end.status == ABNORMAL else end.success)
    return Maximum(np.asarray(end.x), loss, converged)


def best_of_starts(
    problem: Problem,
    starts: int,
    report: Report = lambda share: None,
    begin: np.ndarray | None = None,
    iterations: int = ITERATIONS,
) -> Maximum:
    """The best end of several searches, the first of which may begin at a given θ."""
    ends = []
    for number in range(starts):
        start = _start(problem.layout, number) if number or begin is None else begin
        ends.append(minimized(problem, start, iterations=iterations))
        report((number + 1) / starts)
    return min(ends, key=lambda end: end.loss)


def search(
    problem: Problem,
    log: Log,
    starts: int,
    early: np.ndarray | None = None,
    begin: np.ndarray | None = None,
    report: Report = lambda share: None,
    iterations: int = ITERATIONS,
) -> Maximum:
    """The maximum, or near it: found on the end of a long log, beside the means of many arms.

    Args:
        problem, log: the problem of a log.
        starts: how many searches begin.
        early: the plays that it may see, a mask of n; None: all.
        begin: where the first search begins; None: at the medians of the priors.
        report: called with the share of the work done.
        iterations: most of each search.
    """
    part = problem.for_search(log, early)
    apart = part.without_means()
    if apart is None:
        return best_of_starts(part, starts, report, begin, iterations)
    small, places, theta = apart
    begin = None if begin is None else begin[places]
    end = best_of_starts(small, starts, report, begin, iterations)
    theta[places] = end.theta
    return end._replace(theta=theta)


def _start(layout: Layout, number: int) -> np.ndarray:
    """Where a search begins: 0 is the first.

    Things may drift slowly or fast at first; arms may follow a factor, or every other one may move
    against it. Of several factors the weights are drawn, and the states turn.
    """
    theta, rng = layout.begin.copy(), np.random.default_rng(number)
    if number == 0:
        return theta
    turns = [one.turned(rng) for one in layout.structure.components]
    for place, free in enumerate(layout.free):
        if free.component is None or free.copy is not None:
            continue
        name, own = free.parameter.name, turns[free.component]
        if free.begin is not None:
            theta[place] = rng.standard_normal()
        elif free.arm is not None:
            theta[place] *= (-1.0) ** (free.arm * number)
        elif own:
            theta[place] = own.get(name, theta[place])
        elif free.parameter.kind == "size":
            theta[place] += STARTS[number]
    return theta


def _theta_of(problem: Problem, model: LGDS) -> np.ndarray:
    """Where a search begins that knows a model of the factors."""
    layout = problem.layout
    (component,) = (one for one in layout.structure.components if isinstance(one, Factors))
    if model.n_states != component.n_states:
        remedy = f"give a model of {component.n_states}"
        raise errors.InvalidInput("start", f"has {model.n_states} states", remedy)
    if not model.is_stable:  # a random walk says nothing of where states return to
        return layout.begin
    values = {f"{component}.{name}": x for name, x in component.values_of(model).items()}
    values["noise"] = max(float(model.reward_std), ROUNDING)
    return layout.theta_of(values, problem.described.units.scale)


def hessian(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """Second derivatives of the loss, from differences of its gradient."""
    rows = []
    for place in range(len(theta)):
        step = np.zeros_like(theta)
        step[place] = STEP
        up, down = problem.loss(theta + step)[1], problem.loss(theta - step)[1]
        rows.append((up - down) / (2 * STEP))
    found = np.array(rows)
    return np.asarray((found + found.T) / 2)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A structure whose parameters were learned from a log, as `fit` returns it.

    Example:
        >>> from driftbandit.identify import as_log, fit
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 100))
        >>> rewards = 5 + np.cumsum(0.3 * drift) + 0.5 * noise
        >>> log = {"round": range(100), "arm": ["a"] * 100, "reward": rewards}
        >>> found = fit(log, structure="level(arm)", starts=1)
        >>> found.summary(), found.n_states, found.spectral_radius
        ('level(arm); level(arm).drift 0.25... per round.', 1, 1.0)
        >>> str(found.structure), found.names, found.arms.tolist()
        ('level(arm)', ('a',), [[1.0]])

        The system goes on where the log ends; ``start_system`` is the same before any reward:

        >>> bool(found.model.initial_cov < 0.5), bool(found.start_system.model.initial_cov > 10)
        (True, True)
        >>> from driftbandit import Agent
        >>> round(Agent(found.system).ask().mean, 1) == round(float(found.model.initial_mean[0]), 1)
        True

        θ holds the logarithms of the drift and of the noise; its covariance, and its likelihood in
        another log:

        >>> found.covariance.shape, bool(np.sqrt(found.covariance[1, 1]) < 0.2)  # of log σ
        ((2, 2), True)
        >>> noisier = found.problem_of(as_log(log | {"reward": rewards + [2.0, -2.0] * 50}))
        >>> noisier.log_likelihood(found.theta) < found.log_likelihood
        True
    """

    layout: Layout
    problem: Problem
    theta: np.ndarray
    log_likelihood: float
    converged: bool
    warnings: tuple[str, ...]
    comparison: Comparison | None = None  # if the structure was chosen
    clock: Any = None  # how the log's rounds count times, if they do
    learned: Problem | None = None  # what was solved, if the whole log is too long for a gradient

    @property
    def drift(self) -> Answer:
        """Whether arms drift, as `advise` says it; "cannot tell" if nothing was compared.

        Example:
            >>> from driftbandit.identify import fit
            >>> log = {"round": range(20), "arm": [0, 1] * 10, "reward": [1.0, 2.0, 1.5, 2.5] * 5}
            >>> fit(log, structure="level(arm)", starts=1).drift.verdict
            'cannot tell'
        """
        return drift_of(self.comparison)

    @property
    def structure(self) -> Structure:
        """The sum of components."""
        return self.layout.structure

    @property
    def names(self) -> tuple[Name, ...]:
        """The arms' names in the log."""
        return tuple(self.layout.names)

    @functools.cached_property
    def covariance(self) -> np.ndarray:
        """Of θ: the inverse of the Hessian, whose eigenvalues are kept above zero."""
        values, vectors = np.linalg.eigh(hessian(self.learned or self.problem, self.theta))
        least = 1 / self.problem.spreads.max() ** 2 / 100
        return np.asarray((vectors / np.maximum(values, least)) @ vectors.T)

    @functools.cached_property
    def _end(self) -> tuple[np.ndarray, np.ndarray]:
        """The belief one round after the log's last; in a new sequence, if it has several."""
        data = self.problem.described
        with jax.enable_x64(True):
            belief, *_ = likelihood.predicted(*self.problem.moves(self.theta)[0])
        mean, cov = whole(self.layout, *belief)
        gap = int(data.rounds.max() - data.rounds[-1]) + 1  # another sequence may end later
        model = self.layout.model(self.theta, units=data.units)
        mean, cov = model.propagated(mean, cov, gap)
        if data.sequences[-1] > 0:  # states that move are drawn anew
            kept = self.layout.persistent[self.layout.block_of]
            mean = np.where(kept, mean, 0.0)
            cov = np.where(kept & kept[:, None], cov, 0.0)
            cov = cov + np.where(kept, 0.0, model.start_cov())
        return mean + self.layout.means_of(data.centers), cov

    @functools.cached_property
    def model(self) -> LGDS:
        """The model, which starts where the log ends."""
        units = self.problem.described.units
        return self.layout.model(self.theta, *self._end, units=units)

    @functools.cached_property
    def system(self) -> System:
        """Model, arms and names; it starts in the round after the log's last (``first_round``).

        The model contains the log, so an agent of it is not told the log.
        """
        return self._system(self.model, int(self.problem.described.rounds.max()) + 1)

    @functools.cached_property
    def start_system(self) -> System:
        """The same before any reward was seen: it starts in the log's first round.

        An agent of it learns the present state from `Agent.tell_log`.
        """
        data = self.problem.described
        mean = self.layout.means_of(data.centers)
        return self._system(self.layout.model(self.theta, mean, units=data.units))

    def _system(self, model: LGDS, first_round: int | None = None) -> System:
        arms, contexts = self.layout.arms(self.theta)
        return System(model, arms, self.names, contexts, first_round, self.clock)

    @property
    def arms(self) -> np.ndarray:
        """How arms read the state, k × d, where all context features are zero."""
        return self.system.arms

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.layout.n_states

    @property
    def spectral_radius(self) -> float:
        """ρ(Γ): 1 if something never fades."""
        return self.model.spectral_radius

    @property
    def memory(self) -> float | None:
        """Rounds after which 37% of a shock on the factors remain, −1/log ρ; None: there are none.

        Example:
            >>> from driftbandit.identify import fit
            >>> log = {"round": range(40), "arm": [0, 1] * 20, "reward": [0, 0, 1, 1] * 10}
            >>> fit(log, n_states=1, starts=1).memory > 0
            True
            >>> fit(log, structure="level(arm)", starts=1).memory is None
            True
        """
        states = _factor_states(self.layout)
        if not len(states):
            return None
        radius = np.abs(np.linalg.eigvals(self.model.transition[np.ix_(states, states)])).max()
        return float(-1 / math.log(radius)) if radius > 0 else 0.0

    def problem_of(self, log: Log) -> Problem:
        """The same problem with another log of the same arms."""
        described = rows_of(log, self.layout, self.problem.described)
        return self.problem._replace(described=described)

    def __repr__(self) -> str:
        end = "" if self.converged else ", not converged"
        end = f"log-likelihood {self.log_likelihood:.4g}{end}"
        return f"Fit({self.structure}, {names_and_number(self.names)}; {end})"

    def summary(self) -> str:
        """The structure and its drifts in one sentence."""
        free = self.layout.free
        drifts = [i for i, one in enumerate(free) if one.parameter.drift and one.copy is None]
        scale = self.problem.described.units.scale
        shown = [f"{free[i].name} {self.layout.value(i, self.theta[i], scale):.3g}" for i in drifts]
        return f"{self.structure}" + (f"; {', '.join(shown)} per round." if shown else ".")


def fit_structure(
    log: Log,
    structure: Any,
    groups: Mapping[Name, Any] | None = None,
    prior: float = 1.0,
    starts: int = 3,
    report: Report = lambda share: None,
    start: LGDS | None = None,
    iterations: int = ITERATIONS,
) -> Fit:
    """Learn a structure's parameters from a log.

    Args:
        log: what was played, and what it paid.
        structure: a `Structure`, a `Component` or text.
        groups: the group of each arm by name, if a component has one copy per group.
        prior: strength of the prior; 0: maximum likelihood.
        starts: from how many points the search begins, 1 to 5.
        report: called with the share of the work done.
        start: a stable model of factors with known weights, from which the first search begins.
        iterations: most of each search.
    """
    prior = errors.number(prior, "prior", low=0)
    starts = errors.whole_number(starts, "starts", low=1, high=len(STARTS))
    layout = Layout(structure, log.names, groups)
    problem = Problem(layout, rows_of(log, layout), prior)
    _check_size(problem)
    begin = None if start is None else _theta_of(problem, start)
    end = search(problem, log, starts, None, begin, report, iterations)
    part, notes, learned = problem.for_search(log), list(log.notes), None
    if _has_gradient(problem) and (part is not problem or part.without_means() is not None):
        end = minimized(problem, end.theta, iterations=iterations)
    elif part is not problem:
        learned, rows = part, part.described.n_rows
        notes.append(f"The parameters were learned from the last {rows:,} rewards.")
    found = problem.log_likelihood(end.theta)
    warnings = (*notes, *_warnings(problem, log, end))
    given = (layout, problem, end.theta, found, end.converged, warnings)
    return Fit(*given, clock=log.clock, learned=learned)


def _has_gradient(problem: Problem) -> bool:
    """Whether there is space for the gradient of all plays."""
    layout, rows = problem.layout, problem.described.n_rows
    keeps = layout.learns_transition + layout.learns_reads
    return keeps * rows * layout.n_states**2 <= LARGEST_GRADIENT


def _check_size(problem: Problem) -> None:
    layout, rows = problem.layout, problem.described.rows
    # Each arm has its own moves if no two share a state, and only its own states then.
    kinds, arms = (rows, 1) if rows.apart is None else (rows.apart, len(layout.names))
    gaps = len(kinds.gaps)
    if gaps * layout.n_states**2 > LARGEST_GRADIENT * arms:
        said = f"has pauses of {gaps:,} lengths, for {layout.n_states} states"
        raise errors.InvalidInput("log", said, "give longer rounds, or a structure of fewer states")


def plays(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """The arm and the reward of every play that has one."""
    arms = np.concatenate([sequence.arms for sequence in log.sequences])
    rewards = np.concatenate([sequence.rewards for sequence in log.sequences])
    seen = ~np.isnan(rewards)
    return arms[seen], rewards[seen]


def _factor_states(layout: Layout) -> np.ndarray:
    """The states of factors."""
    parts = zip(layout.structure.components, layout.parts.values(), strict=True)
    own = [places for one, places in parts if isinstance(one, Factors)]
    return np.concatenate([np.zeros(0, int), *own])


def _hidden_states(layout: Layout, theta: np.ndarray, played: np.ndarray) -> tuple[int, int]:
    """How many of the factors' directions the played arms do not show, and of how many."""
    states = _factor_states(layout)
    d = len(states)
    if not d:
        return 0, 0
    model, (arms, _) = layout.model(theta), layout.arms(theta)
    # The observability matrix of d rounds that play all arms, in units of the states' spread.
    rows = [arms[np.ix_(played, states)]]
    for _ in range(d - 1):
        rows.append(rows[-1] @ model.transition[np.ix_(states, states)])
    root = np.linalg.cholesky(model.start_cov()[np.ix_(states, states)])
    values = np.linalg.svd(np.vstack(rows) @ root, compute_uv=False)
    return int((values**2 < UNSEEN * values[0] ** 2).sum()) + max(0, d - len(values)), d


def _predicts_nothing(problem: Problem, log: Log, theta: np.ndarray) -> bool:
    """Whether factors predict no more than so many parameters do by chance (Akaike 1974)."""
    arms, rewards = plays(log)
    factors = any(isinstance(one, Factors) for one in problem.layout.structure.components)
    if not factors or no_arm_varies(arms, rewards):
        return False
    own = np.bincount(arms, rewards) / np.maximum(np.bincount(arms), 1)
    seen = problem.described.rows.seen[: problem.described.n_rows] > 0
    left = ((rewards - problem.predicted(theta)[0][seen]) ** 2).sum()
    before = ((rewards - own[arms]) ** 2).sum()
    return bool(before - left <= 2 * len(theta) * left / len(rewards))


def _warnings(problem: Problem, log: Log, end: Maximum) -> list[str]:
    found, data = [], problem.described
    varies = not no_arm_varies(*plays(log))
    if not end.converged and varies:
        found.append("The search for the maximum did not converge: give more iterations.")
    seen = data.rows.seen > 0
    played = np.bincount(data.rows.arms[seen], minlength=len(log.names)) > 0
    if not played.all():
        silent = [str(log.names[i]) for i in np.flatnonzero(~played)[:5]]
        found.append(f"No reward was seen of {(~played).sum()} arms: {', '.join(silent)}.")
    rewards = data.rows.rewards[seen]
    small = "drifts and noise are as small as the model allows."
    if np.ptp(rewards) <= ROUNDING * data.units.scale:
        found.append(f"All rewards are equal: {small}")
    elif len(rewards) > played.sum() and not varies:
        found.append(f"No arm has two different rewards: {small}")
    if (hidden := _hidden_states(problem.layout, end.theta, played))[0]:
        shown = "{} of {} states".format(*hidden)
        found.append(f"The rewards hardly show {shown}: they keep their prior.")
    if _predicts_nothing(problem, log, end.theta):
        found.append("The model predicts rewards no better than each arm's mean.")
    span = max(int(one.rounds[-1] - one.rounds[0]) + 1 for one in log.sequences)
    components = problem.layout.structure.components
    long = [str(one) for one in components if getattr(one, "period", 0) > span]
    if long:
        found.append(f"The log spans {span} rounds, less than the period of {', '.join(long)}.")
    unused = [name for name in log.feature_names if name not in problem.layout.structure.features]
    if unused:
        found.append(f"The features {', '.join(unused)} are not used: add regression(…).")
    mean = float(rewards.mean())
    if not any(one.holds_mean for one in components) and abs(mean) > 0.5 * data.units.scale:
        found.append(
            f"Rewards have a mean of {mean:.3g}, and every component returns to zero: "
            "add constant(arm) or a level without memory."
        )
    return found
