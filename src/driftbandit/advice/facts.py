"""What advice is computed from: the system, its arms, its lower bound, φ, a short simulation."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandit import errors, policies, statistics, steady_state, theory
from driftbandit.actions import FINITE
from driftbandit.advice.finding import Number
from driftbandit.arrays import Array
from driftbandit.model import LGDS, RANK_TOLERANCE, factor
from driftbandit.policies import REGISTRY, Policy, idea, kalman_ucb, optimistic
from driftbandit.priced_arm import independent_arms
from driftbandit.result import Result
from driftbandit.statistics import Paired
from driftbandit.system import Name

# The paper's policies, for which the metric φ is known.
BONUSES = {name: entry.bonus for name, entry in REGISTRY.items() if entry.bonus is not None}
RANDOM = "random"
UNIT = "regret per round"
# By default every policy plays that knows the model and can play any arms.
FILTERS = {name: REGISTRY[name] for name in policies.available() if REGISTRY[name].filters}
PLAYED = [name for name, entry in FILTERS.items() if not entry.policy.full_information]
DRAWS = 1 << 14  # draws of the state that `Arm.best_share` comes from
ROUNDS_SHOWN = 64  # rounds in which a state that never settles is drawn
LARGE = 200  # states: of more, one round is enough work
BLOCK = 1 << 22  # numbers held at once
LONGEST = 1e7  # work of the metric, about 2.5 seconds of one core
ACCURACY = 0.03  # of a lower bound over the first rounds, each with its own covariances
SETTLED = 0.01  # a run counts as settled if this much of the start is left after a fifth of it
MOST_ROUNDS = 2000  # of a lower bound over the first rounds
MOST_KINDS = 2  # of independent arms whose least possible regret is computed: 3 s for each kind
BUDGET = 1.9e7  # work of one policy: 256 runs × 500 rounds with d = k = 10, a fifth of a second
FEWEST_RUNS, MOST_RUNS = 32, 1024
GROWTH = 1e6  # an unstable state is followed until it has grown by this much
WEIGHTS = {"idea": (1.0, 0.0), "kode": (0.0, 0.0), "kalman_ucb": (0.0, 1.0)}  # see `_bonus`


@dataclass(frozen=True)
class SystemFacts:
    """The system at a glance (P1, P3)."""

    n_states: int
    n_arms: int
    reward_std: float
    spectral_radius: float  # ρ(Γ), known constants left out
    stable: bool
    noise_reaches_all: bool  # (Γ, Q^½) is controllable
    starts_stationary: bool  # False: it starts from ``initial_cov``, or from another mean
    constants: int = 0  # number of states that are known constants, which carry arms' offsets


@dataclass(frozen=True)
class Arm:
    """What one arm pays and shows of the state (P3, P14)."""

    name: Name  # its row number if it has no name
    detectable: bool  # every mode that does not die out shows in its rewards
    error_trace: float | None  # tr P_a, left if it is played forever; None: grows, or not found
    removed_share: float | None  # 1 − tr P_a / tr Z: how much of the state's variance that removes
    gramian_condition: float | None  # condition number of O after d rounds; None: O is singular
    gramian_rank: int  # rank of O; d minus the known constants: it shows every direction that moves
    reward_spread: float | None  # √(aᵀZa), the std of ⟨a, z⟩ once the state has settled
    best_share: float | None  # how often it is the best arm, from draws of the state
    same_as: Name | None  # the first arm that is equal to it, by name
    mean_reward: float | None = 0.0  # ⟨a, E z⟩ once settled: its offset; None: it never settles


@dataclass(frozen=True)
class LowerBound:
    """The lower bound on regret per round: with full information (P11), or of any policy."""

    value: float | None
    error: float | None  # half-width of a 99% interval
    rounds: int | None  # over how many first rounds; None: once the state has settled
    reason: str  # why there is no value
    full_information: bool = True  # False: it also counts that only the played arm is seen

    @property
    def when(self) -> str:
        """Which rounds it is of."""
        settled = self.rounds is None
        return "once the state has settled" if settled else f"over the first {self.rounds} rounds"


@dataclass(frozen=True)
class Metric:
    """The interval of φ for each policy (P17), and which of IDEA and Kalman-UCB it favors."""

    printed: dict[str, tuple[float, float]] | None
    squared: dict[str, tuple[float, float]] | None
    winner: str | None  # smaller upper end as printed, the paper's rule; None: tie, or no intervals
    squared_winner: str | None
    reason: str  # why there are no intervals


@dataclass(frozen=True)
class Simulation:
    """A short paired simulation."""

    runs: int
    rounds: int
    seed: int
    policies: tuple[Number, ...]  # from the lowest mean regret up; random choice comes last
    differences: tuple[Number, ...]  # every other one against the lowest, in the same order
    rivals: Number | None  # Kalman-UCB against IDEA; None: not both were played

    @property
    def best(self) -> Number:
        """The policy with the lowest mean regret."""
        return self.policies[0]


def system_facts(model: LGDS, arms: np.ndarray) -> SystemFacts:
    """Size, stability, noise and start."""
    settled = model.initial_cov is None and model.is_stable
    return SystemFacts(
        n_states=model.n_states,
        n_arms=len(arms),
        reward_std=float(model.reward_std),
        spectral_radius=model.spectral_radius,
        stable=model.is_stable,
        noise_reaches_all=model.is_controllable(),
        starts_stationary=settled and np.allclose(model.start_mean(), model.stationary_mean()),
        constants=int(model.constants.sum()),
    )


def arm_facts(model: LGDS, arms: np.ndarray, names: Sequence[Name], rounds: int) -> tuple[Arm, ...]:
    """What every arm pays and shows; with an unstable state, which is best in ``rounds`` rounds."""
    seen = steady_state.detectable(model, arms)
    traces = _error_traces(model, arms, seen)
    spreads: list[float | None] = [None] * len(arms)
    pays: list[float | None] = [None] * len(arms)
    total = 0.0
    if (known := _with_known_constants(model)).is_stable:
        Z = known.stationary_cov()
        total = float(np.trace(Z))
        pays = (arms @ known.stationary_mean()).tolist()
        spreads = np.sqrt(np.maximum(np.vecdot(arms @ Z, arms), 0)).tolist()
    conditions, ranks = _gramians(model, arms)
    first, group = _groups(arms)
    shares = _best_shares(model, arms, rounds)
    return tuple(
        Arm(
            name=names[i],
            detectable=bool(seen[i]),
            error_trace=trace,
            removed_share=max(0.0, 1 - trace / total) if trace is not None and total > 0 else None,
            gramian_condition=conditions[i],
            gramian_rank=ranks[i],
            reward_spread=spreads[i],
            best_share=shares[i],
            same_as=None if first[group[i]] == i else names[int(first[group[i]])],
            mean_reward=pays[i],
        )
        for i, trace in enumerate(traces)
    )


def _with_known_constants(model: LGDS) -> LGDS:
    """The model as if states that never move, such as learned means, were known."""
    still = (model.transition == np.eye(model.n_states)).all(axis=1)
    still &= ~model.process_cov.any(axis=1)
    if model.initial_cov is None or not still.any():
        return model
    cov = np.where(still | still[:, None], 0.0, model.initial_cov)
    parts = model.transition, model.process_cov, float(model.reward_std), cov, model.initial_mean
    return LGDS(*parts)


def _error_traces(model: LGDS, arms: np.ndarray, seen: np.ndarray) -> list[float | None]:
    """The traces of P_a, None where P_a does not exist or was not found."""
    traces: list[float | None] = [None] * len(arms)
    numbers = np.flatnonzero(seen).tolist()
    if not numbers:
        return traces
    try:
        found = np.trace(steady_state.prediction_covs(model, arms[seen]), axis1=1, axis2=2)
        for i, trace in zip(numbers, found.tolist(), strict=True):
            traces[i] = trace
    except errors.NotDetectable:  # one by one, so that a hard one does not hide the others
        for i in numbers:
            with contextlib.suppress(errors.NotDetectable):
                traces[i] = float(np.trace(steady_state.prediction_cov(model, arms[i])))
    return traces


def _gramians(model: LGDS, arms: np.ndarray) -> tuple[list[float | None], list[int]]:
    """Condition number and rank of O after d rounds of each arm, for what moves."""
    # O = MᵀM with rows aᵀΓ^τ in M, whose singular values keep the digits that squaring loses.
    d, moving = model.n_states, int((~model.constants).sum())
    arms, transition = model.without_offsets(arms), model.moving.transition
    conditions: list[float | None] = []
    ranks: list[int] = []
    size = max(1, BLOCK // d**2)
    for start in range(0, len(arms), size):
        rows = arms[start : start + size]
        M = np.empty((len(rows), d, d))
        with np.errstate(over="ignore", invalid="ignore"):
            for power in range(d):
                M[:, power] = rows
                rows = rows @ transition
        M[~np.isfinite(M).all(axis=(1, 2))] = 0  # overflowed
        for values in np.linalg.svd(M, compute_uv=False):
            ranks.append(int((values > RANK_TOLERANCE * values[0]).sum()))
            full = 0 < ranks[-1] == moving
            conditions.append(float((values[0] / values[moving - 1]) ** 2) if full else None)
    return conditions, ranks


def _groups(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first arm of each kind, and the kind of each arm."""
    _, first, group = np.unique(arms, axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


def _best_shares(model: LGDS, arms: np.ndarray, rounds: int) -> list[Any]:
    """How often each of ``arms`` is the best, alone or with others, from draws of the state.

    A state that never settles is drawn in some of the first ``rounds``: of a model with seasons, a
    single round would show a single hour or weekday.
    """
    rng = np.random.default_rng(0)
    times = np.array([rounds])
    if not model.is_stable:  # at random, so that no season keeps step with them
        count = min(rounds, ROUNDS_SHOWN if model.n_states <= LARGE else 1)
        times = np.sort(rng.choice(rounds, count, replace=False)) if count > 1 else times
    wins = np.zeros(len(arms))
    draws, size = DRAWS // len(times), max(1, BLOCK // max(arms.shape))
    for time in times.tolist():
        means, cov = arms @ model.state_mean(time), model.settled_cov(time)
        if not (np.isfinite(cov).all() and np.isfinite(means).all()):
            return [None] * len(arms)
        directions = arms @ factor(cov)
        tie = 1e-9 * np.abs(directions).max()
        for start in range(0, draws, size):
            points = rng.standard_normal((min(size, draws - start), arms.shape[1]))
            values = means + points @ directions.T
            wins += (values >= values.max(axis=1, keepdims=True) - tie).sum(axis=0)
    return (wins / (draws * len(times))).tolist()


def lower_bound(model: LGDS, arms: np.ndarray, rounds: int) -> LowerBound:
    """The lower bound on regret per round: of a settled state, or of the first ``rounds``."""
    fast = model.spectral_radius ** (rounds / 5) < SETTLED
    settled = fast and model.initial_cov is None
    if not settled and rounds > MOST_ROUNDS:
        reason = f"it takes too long for {rounds} rounds; db.theory.finite_lower_bound computes it"
        return LowerBound(None, None, None, reason)
    if settled and (value := _least_regret(model, arms)) is not None:
        return LowerBound(value.value, value.error, None, "", full_information=False)
    options = {} if settled else {"rounds": rounds, "accuracy": ACCURACY}
    try:
        bound = theory.finite_lower_bound(model, arms, **options)
    except errors.NotDetectable as error:
        return LowerBound(None, None, None, f"it was not found ({error})")
    return LowerBound(bound.value, bound.error, None if settled else rounds, "")


def _least_regret(model: LGDS, arms: np.ndarray) -> theory.Bound | None:
    """The least possible regret, if arms are independent and of few kinds."""
    try:
        found = independent_arms(model, arms)
    except errors.InvalidInput:
        return None
    kinds = np.unique(np.stack([found.decay, found.noise]), axis=1)
    return theory.least_regret(model, arms) if kinds.shape[1] <= MOST_KINDS else None


def metric(model: LGDS, arms: np.ndarray) -> Metric:
    """The intervals of φ, or why there are none."""
    reason = _no_metric(model, arms)
    if reason:
        return Metric(None, None, None, None, reason)
    try:
        found = theory.metric_intervals([(model, arms)], BONUSES)
    except errors.NotDetectable as error:
        return Metric(None, None, None, None, f"a steady state was not found ({error})")
    printed = {name: _ends(found[name].printed) for name in BONUSES}
    squared = {name: _ends(found[name].squared) for name in BONUSES}
    return Metric(printed, squared, _lower(printed), _lower(squared), "")


def _no_metric(model: LGDS, arms: np.ndarray) -> str:
    if len(arms) == 1:
        return "there is a single arm"
    if len(_groups(arms)[0]) == 1:
        return "all arms are the same"
    if not model.is_stable:
        return (
            f"it needs a state that settles, and ρ(Γ) = {model.spectral_radius:.6g} is not below 1"
        )
    k, m = len(arms), min(len(arms) - 1, model.n_states)
    # k²(k − 1) singular value decompositions of 2m × 2m matrices, measured.
    if k**3 * (8 + m**2) > LONGEST:
        size = f"{k} arms in {model.n_states} states"
        return f"it takes too long for {size}; db.theory.metric_interval computes it"
    return ""


def _ends(interval: np.ndarray) -> tuple[float, float]:
    low, high = interval[0].tolist()
    return max(0.0, low), high  # a distance, below zero by rounding


def _lower(intervals: dict[str, tuple[float, float]]) -> str | None:
    (_, first), (_, second) = intervals["idea"], intervals["kalman_ucb"]
    return None if first == second else "idea" if first < second else "kalman_ucb"


# The simulation


def sizes(n_states: int, n_arms: int, spectral_radius: float) -> tuple[int, int]:
    """How many runs and rounds to play, from the size alone: the same on every machine.

    A round takes about as long as d (d + k/3) + 15 steps (measured from d = 2 to 100). If
    ρ(Γ) > 1, rounds end when the state has grown a millionfold.

    Example:
        >>> sizes(10, 10, 0.9), sizes(2, 3, 0.9), sizes(100, 50, 0.9), sizes(2, 3, 2.0)
        ((256, 500), (1024, 500), (32, 200), (1024, 19))
    """
    plays = BUDGET / (n_states * (n_states + n_arms / 3) + 15)
    rounds = 500 if plays >= 500 * 2 * FEWEST_RUNS else 200
    if spectral_radius > 1:
        rounds = min(rounds, max(10, int(math.log(GROWTH) / math.log(spectral_radius))))
    runs = int(min(max(plays / rounds, FEWEST_RUNS), MOST_RUNS))
    return runs - runs % FEWEST_RUNS, rounds


def players(names: Iterable[str] | None, n_arms: int) -> dict[str, Policy]:
    """The policies to play, by label, without random choice, which always plays.

    By default those of `PLAYED` that can play so many arms.
    """
    if isinstance(names, str):
        names = [names]
    made = [policies.make(name) for name in (PLAYED if names is None else names)]
    if names is None:
        made = [policy for policy in made if (policy.actions.max_arms or n_arms) >= n_arms]
    found: dict[str, Policy] = {}
    for policy in made:
        policy.check_plays(FINITE, n_arms)
        if policy.full_information:
            problem = f"{policy.name} sees the rewards of all arms"
            raise errors.InvalidInput("policies", problem, "leave it out")
        usual = policies.short_label(policy) == policy.name
        label = policy.name if usual else policy.label
        if label in found:
            raise errors.InvalidInput("policies", f"{label!r} is named twice", "name each once")
        if label != RANDOM:
            found[label] = policy
    if not found:
        raise errors.InvalidInput("policies", "names no policy to advise", "name at least one")
    return found


def play(
    model: LGDS,
    arms: np.ndarray,
    chosen: Mapping[str, Policy],
    runs: int,
    rounds: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Play policies and random choice on the same states and noise."""
    from driftbandit.simulation import Options, simulate  # loads JAX

    shared: list[str | Policy] = []
    for name, policy in chosen.items():
        if name in WEIGHTS:
            informed, width = WEIGHTS[name]
            shared.append(optimistic(name, _bonus, informed=informed, width=width))
        else:
            shared.append(dataclasses.replace(policy, name=name))
    # On the CPU, so that a near tie ends the same way on every machine.
    settings: dict[str, Any] = {"device": "cpu", "options": Options(checkpoints=1)}
    settings |= {"rounds": rounds, "runs": runs, "seed": seed, "progress": progress}
    return summarized(simulate(model, arms, [*shared, RANDOM], **settings))


def _bonus(cov: Array, model: LGDS, arms: Array, informed: float, width: float) -> Array:
    """IDEA's bonus, Kalman-UCB's, or none, by their weights: one program in place of three."""
    # Zero times a bonus adds exactly zero, and compiling takes most of the time.
    return informed * idea.bonus(cov, model, arms) + kalman_ucb.bonus(cov, model, arms, width)


def summarized(result: Result) -> Simulation:
    """Means, differences and their 95% intervals, per round; runs are independent."""
    rounds, seed = result.rounds, result.seed
    means = {name: float(regret.mean()) for name, regret in result.regret.items()}
    rivals = [name for name in means if name != RANDOM]
    order = [*sorted(rivals, key=lambda name: means[name]), RANDOM]

    def number(name: str, row: Paired) -> Number:
        ends = row.mean_difference / rounds, row.mean_low / rounds, row.mean_high / rounds
        return Number(*ends, row.mean_verdict, name, UNIT)

    zero = np.zeros_like(result.regret[RANDOM])
    own = {name: statistics.paired(result.regret[name], zero, seed=seed) for name in order}
    apart = result.compare(order[0], seed=seed)
    rivals_apart = None
    if {"idea", "kalman_ucb"} <= set(rivals):
        rivals_apart = number("kalman_ucb", result.compare("idea", seed=seed)["kalman_ucb"])
    return Simulation(
        runs=len(result.regret[order[0]]),
        rounds=rounds,
        seed=seed,
        policies=tuple(number(name, own[name])._replace(verdict="") for name in order),
        differences=tuple(number(name, apart[name]) for name in order[1:]),
        rivals=rivals_apart,
    )
