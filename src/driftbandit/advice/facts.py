"""What advice is computed from: the system, its arms, its lower bound, φ, a short simulation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, policies, statistics, steady_state, theory
from driftbandit.actions import FINITE
from driftbandit.advice.finding import Number
from driftbandit.model import LGDS, RANK_TOLERANCE, factor
from driftbandit.policies import REGISTRY, Policy
from driftbandit.priced_arm import independent_arms
from driftbandit.result import Result
from driftbandit.statistics import Paired
from driftbandit.system import Name

# The paper's policies, for which the metric φ is known.
BONUSES = {name: entry.bonus for name, entry in REGISTRY.items() if entry.bonus is not None}
RANDOM = "random"
UNIT = "regret per round"
# By default every policy plays that knows the model and can play any arms.
PLAYED = [name for name in policies.available() if REGISTRY[name].filters]
PLAYED = [name for name in PLAYED if not REGISTRY[name].policy.full_information]
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


class SystemFacts(NamedTuple):
    """The system at a glance (P1, P3)."""

    n_states: int
    n_arms: int
    reward_std: float
    spectral_radius: float  # ρ(Γ), known constants left out
    stable: bool
    noise_reaches_all: bool  # (Γ, Q^½) is controllable
    starts_stationary: bool  # False: it starts from ``initial_cov``, or from another mean
    constants: int = 0  # number of states that are known constants, which carry arms' offsets


class Arm(NamedTuple):
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


class LowerBound(NamedTuple):
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


class Metric(NamedTuple):
    """The interval of φ for each policy (P17), and which of IDEA and Kalman-UCB it favors."""

    printed: dict[str, tuple[float, float]] | None
    squared: dict[str, tuple[float, float]] | None
    winner: str | None  # smaller upper end as printed, the paper's rule; None: tie, or no intervals
    squared_winner: str | None
    reason: str  # why there are no intervals


class Simulation(NamedTuple):
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
    of_seen = iter(_error_traces(model, arms[seen]) if seen.any() else ())
    traces = [next(of_seen) if shows else None for shows in seen]
    pays: list[Any] = [None] * len(arms)
    removed, spreads = pays, pays
    if (known := _with_known_constants(model)).is_stable:
        Z = known.stationary_cov()
        total = float(np.trace(Z))
        pays = (arms @ known.stationary_mean()).tolist()
        spreads = np.sqrt(np.maximum(np.vecdot(arms @ Z, arms), 0)).tolist()
        if total > 0:
            removed = [None if trace is None else max(0.0, 1 - trace / total) for trace in traces]
    firsts: dict[tuple[float, ...], Name] = {}
    alike = [
        firsts.setdefault(tuple(arm), name) for arm, name in zip(arms.tolist(), names, strict=True)
    ]
    twins = [None if first == name else first for first, name in zip(alike, names, strict=True)]
    conditions, ranks = zip(*(_gramian(model, arm) for arm in arms), strict=True)
    shares = _best_shares(model, arms, rounds)
    columns = names, seen.tolist(), traces, removed, conditions, ranks, spreads, shares, twins, pays
    return tuple(Arm(*row) for row in zip(*columns, strict=True))


def _with_known_constants(model: LGDS) -> LGDS:
    """The model as if states that never move, such as learned means, were known."""
    still = (model.transition == np.eye(model.n_states)).all(axis=1)
    still &= ~model.process_cov.any(axis=1)
    if model.initial_cov is None or not still.any():
        return model
    cov = np.where(still | still[:, None], 0.0, model.initial_cov)
    return dataclasses.replace(model, initial_cov=cov)


def _error_traces(model: LGDS, arms: np.ndarray) -> list[float | None]:
    """The trace of P_a of each detectable arm; None where it was not found."""
    try:
        covs = steady_state.prediction_covs(model, arms)
    except errors.NotDetectable:  # one by one, so that a hard one does not hide the others
        if len(arms) == 1:
            return [None]
        return [trace for arm in arms for trace in _error_traces(model, arm[None])]
    return list(np.trace(covs, axis1=1, axis2=2).tolist())


def _gramian(model: LGDS, arm: np.ndarray) -> tuple[float | None, int]:
    """Condition number and rank of O after d rounds of an arm, for what moves."""
    # O = MᵀM with rows aᵀΓ^τ in M, whose singular values keep the digits that squaring loses.
    moving, rows = int((~model.constants).sum()), [model.without_offsets(arm)]
    with np.errstate(over="ignore", invalid="ignore"):
        while len(rows) < model.n_states:
            rows.append(rows[-1] @ model.moving.transition)
    if not np.isfinite(rows).all():
        return None, 0
    values = np.linalg.svd(rows, compute_uv=False)
    rank = int((values > RANK_TOLERANCE * values[0]).sum())
    full = 0 < rank == moving
    return float((values[0] / values[moving - 1]) ** 2) if full else None, rank


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
    wins, draws = np.zeros(len(arms)), DRAWS // len(times)
    for time in times.tolist():
        means, cov = arms @ model.state_mean(time), model.settled_cov(time)
        if not (np.isfinite(cov).all() and np.isfinite(means).all()):
            return [None] * len(arms)
        directions = arms @ factor(cov)
        tie = 1e-9 * np.abs(directions).max()
        points = rng.standard_normal((draws, model.n_states))
        for block in np.array_split(points, -(-draws * len(arms) // BLOCK)):
            values = means + block @ directions.T
            wins += (values >= values.max(axis=1, keepdims=True) - tie).sum(axis=0)
    return list((wins / (draws * len(times))).tolist())


def lower_bound(model: LGDS, arms: np.ndarray, rounds: int) -> LowerBound:
    """The lower bound on regret per round: of a settled state, or of the first ``rounds``."""
    settled = model.initial_cov is None and model.spectral_radius ** (rounds / 5) < SETTLED
    if not settled and rounds > MOST_ROUNDS:
        reason = f"it takes too long for {rounds} rounds; db.theory.finite_lower_bound computes it"
        return LowerBound(None, None, None, reason)
    if settled and _few_kinds(model, arms):
        least = theory.least_regret(model, arms)
        return LowerBound(least.value, least.error, None, "", full_information=False)
    options = {} if settled else {"rounds": rounds, "accuracy": ACCURACY}
    try:
        bound = theory.finite_lower_bound(model, arms, **options)
    except errors.NotDetectable as error:
        return LowerBound(None, None, None, f"it was not found ({error})")
    return LowerBound(bound.value, bound.error, None if settled else rounds, "")


def _few_kinds(model: LGDS, arms: np.ndarray) -> bool:
    """Whether arms are independent and of few kinds, so that `least_regret` takes little time."""
    try:
        alone = independent_arms(model, arms)
    except errors.InvalidInput:
        return False
    return len(np.unique(np.stack([alone.decay, alone.noise], axis=1), axis=0)) <= MOST_KINDS


def metric(model: LGDS, arms: np.ndarray) -> Metric:
    """The intervals of φ, or why there are none."""
    reason = _no_metric(model, arms)
    if reason:
        return Metric(None, None, None, None, reason)
    try:
        intervals = theory.metric_intervals([(model, arms)], BONUSES)
    except errors.NotDetectable as error:
        return Metric(None, None, None, None, f"a steady state was not found ({error})")
    printed, squared = (
        {name: _ends(getattr(intervals[name], form)) for name in BONUSES}
        for form in ("printed", "squared")
    )
    return Metric(printed, squared, _lower(printed), _lower(squared), "")


def _no_metric(model: LGDS, arms: np.ndarray) -> str:
    k, m = len(arms), min(len(arms) - 1, model.n_states)
    if k == 1:
        return "there is a single arm"
    if (arms == arms[0]).all():
        return "all arms are the same"
    if not model.is_stable:
        radius = f"ρ(Γ) = {model.spectral_radius:.6g}"
        return f"it needs a state that settles, and {radius} is not below 1"
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


def players(names: Any, n_arms: int) -> dict[str, Policy]:
    """The policies to play, by label, without random choice, which always plays.

    By default those of `PLAYED` that can play so many arms.
    """
    if names is None:
        names = [name for name in policies.default(FINITE, n_arms) if name in PLAYED]
    chosen = policies.chosen(names, n_arms=n_arms)
    for label, policy in chosen.items():
        if policy.full_information:
            problem = f"{label} sees the rewards of all arms"
            raise errors.InvalidInput("policies", problem, "leave it out")
    chosen.pop(RANDOM, None)
    if not chosen:
        raise errors.InvalidInput("policies", "names no policy to advise", "name at least one")
    return chosen


def play(
    model: LGDS, arms: np.ndarray, chosen: Mapping[str, Policy], settings: Mapping[str, Any]
) -> Simulation | None:
    """Play policies and random choice on the same states and noise, with settings of `simulate`.

    None: all arms are the same, so there is nothing to decide.
    """
    from driftbandit.simulation import Options, simulate  # loads JAX

    if (arms == arms[0]).all():
        return None
    # On the CPU, so that a near tie ends the same way on every machine.
    how = {"device": "cpu", "options": Options(checkpoints=1), **settings}
    return summarized(simulate(model, arms, [*chosen.values(), RANDOM], **how))


def summarized(result: Result) -> Simulation:
    """Means, differences and their 95% intervals, per round; runs are independent."""
    rounds, seed = result.rounds, result.seed
    rivals = [name for name in result.regret if name != RANDOM]
    rivals.sort(key=lambda name: float(result.regret[name].mean()))

    def number(name: str, row: Paired, verdict: str = "") -> Number:
        ends = row.mean_difference / rounds, row.mean_low / rounds, row.mean_high / rounds
        return Number(*ends, verdict, name, UNIT)

    def differences(base: str) -> dict[str, Number]:
        compared = result.compare(base, seed=seed)
        return {name: number(name, row, row.mean_verdict) for name, row in compared.items()}

    order = [*rivals, RANDOM]
    zero = np.zeros_like(result.regret[RANDOM])
    own = [statistics.paired(result.regret[name], zero, seed=seed) for name in order]
    apart = differences(order[0])
    both = {"idea", "kalman_ucb"} <= set(rivals)
    return Simulation(
        runs=len(zero),
        rounds=rounds,
        seed=seed,
        policies=tuple(map(number, order, own)),
        differences=tuple(apart[name] for name in order[1:]),
        rivals=differences("idea")["kalman_ucb"] if both else None,
    )
