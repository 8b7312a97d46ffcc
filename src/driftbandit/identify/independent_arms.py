"""Arms that drift independently, or not at all.

    x = o_a + u_a(t) + η,   o_a ~ N(μ, τ²),   u_a(t+g) = f u_a(t) + ξ,   f = exp(−g / m_a)

u_a is an AR(1) with memory m_a and variance v_a; arms share only σ and the priors of their offsets,
memories and variances. So each arm has a filter of two states, its drift and its offset, over its
own plays, and a gap of any length is one step. The filter is separate from `smoothing` because it
runs arm by arm and is differentiated; a test checks it against statsmodels. Offsets are integrated
out, and their posterior is part of the result.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from driftbandit.identify import em
from driftbandit.identify.data import Data, Parameters, padded, times
from driftbandit.identify.restarts import Progress, Task

# No drift; one memory and one variance for all arms; each arm its own.
Kind = Literal["constant", "alike", "apart"]
KINDS: tuple[Kind, ...] = get_args(Kind)
WORK = 20  # cost of learning such a model, in iterations of EM
# Median, and standard deviation of the logarithm, with rewards in units of their spread and
# memories in units of the time between plays: so wide that a few dozen rewards outweigh them.
PRIOR = {"offset_std": (0.5, 1.5), "memory": (10.0, 2.0), "drift_std": (0.5, 1.5)}
APART = 0.7  # prior std of the logarithms of arms' memories and stds around the common ones
LEAST_STD = 1e-5  # least σ in units of the rewards' spread
LONGEST = 1e15  # longest memory in rounds: f must stay below 1
ABNORMAL = 2  # SciPy's status when a line search finds nothing better
LEAST_GAIN = 1e-6  # a last gain below this share of the likelihood counts as convergence
START_MEMORIES = (3.0, 30.0)  # of the restarts, in units of the time between plays


class Plays(NamedTuple):
    """Every arm's own plays in order of time, padded to n."""

    gaps: np.ndarray  # rounds since the arm's last play, k × n; infinite where a sequence begins
    rewards: np.ndarray  # k × n
    seen: np.ndarray  # 1 where there is a play, k × n
    places: np.ndarray  # flat index into the data, k × n
    step: float  # median time between two plays of any arms, in rounds
    span: float  # the longest sequence, in rounds


class Learned(NamedTuple):
    """A learned model of independent arms."""

    kind: Kind
    theta: np.ndarray  # unbounded: μ, log τ, log σ, log m, log √v, and each arm's deviations
    path: list[float]  # log-likelihood plus log-prior along the way; it never falls
    converged: bool


class Dynamics(NamedTuple):
    """The parameters, k numbers each where arms have their own."""

    mean: Any  # μ
    offset_var: Any  # τ²
    reward_var: Any  # σ²
    memory: Any  # m, k
    drift_var: Any  # v, k


def plays_of(data: Data, n_arms: int, size: int = 1, later: np.ndarray | None = None) -> Plays:
    """Every arm's plays, sequence after sequence, those of ``later`` ones last; n ≥ ``size``."""
    S, n, m = data.seen.shape
    which, row, slot = np.nonzero(data.seen > 0)
    last = np.zeros(S, bool) if later is None else later
    arm, time = data.arms[which, row, slot], times(data)[which, row]
    order = np.lexsort((slot, row, which, last[which], arm))
    which, row, slot, arm, time = (part[order] for part in (which, row, slot, arm, time))
    counts = np.bincount(arm, minlength=n_arms)
    place = np.arange(len(arm)) - (np.cumsum(counts) - counts)[arm]
    found = np.zeros((4, n_arms, padded(max(int(counts.max()), size))))
    gaps = np.full(len(arm), np.inf)
    same = (arm[1:] == arm[:-1]) & (which[1:] == which[:-1])
    gaps[1:][same] = (time[1:] - time[:-1])[same]
    flat = (which * n + row) * m + slot
    values = (gaps, data.rewards[which, row, slot], 1.0, flat)
    for table, part in zip(found, values, strict=True):
        table[arm, place] = part
    each = [time[which == s] for s in np.unique(which)]
    steps = np.concatenate([np.diff(np.unique(one)) for one in each])
    step = float(np.median(steps)) if len(steps) else 1.0
    span = float(max(np.ptp(one) for one in each))
    return Plays(found[0], found[1], found[2], found[3].astype(int), step, max(span, step))


def learn(
    plays: Plays,
    kind: Kind,
    offsets: bool = True,
    spread: float | None = None,
    near: Learned | None = None,
) -> Learned:
    """Maximize the posterior of the parameters, with a wide prior.

    Rewards are around zero, of spread about one. Without ``offsets``, μ = τ = 0; ``spread`` is τ,
    if it is given; ``near`` is a model of kind "alike", from which "apart" starts.
    """
    k = len(plays.seen)
    low, high = math.log(0.1 * plays.step), math.log(min(1e3 * plays.span, LONGEST))
    bounds = [(-99.0, 99.0), (-7.0, 6.0), (math.log(LEAST_STD), 2.0), (low, high), (-12.0, 5.0)]
    bounds += [(-4.0, 4.0)] * (2 * k)
    if spread is not None:
        bounds[1] = (math.log(spread),) * 2
    size = {"constant": 3, "alike": 5, "apart": 5 + 2 * k}[kind]
    lows, highs = np.array(bounds[:size]).T
    begins = []
    for memory in START_MEMORIES if kind != "constant" else START_MEMORIES[:1]:
        begin = np.zeros(5 + 2 * k)
        begin[1:5] = np.log([0.5, 0.7, memory * plays.step, 0.7])
        begins.append(begin[:size])
    if near is not None and near.kind == "alike" and kind == "apart":
        begins = [np.r_[near.theta, np.zeros(2 * k)]]
    starts = [np.clip(begin, lows, highs) for begin in begins]
    ends = [_maximized(start, plays, kind, offsets, bounds) for start in starts]
    return max(ends, key=lambda found: found.path[-1])


def _maximized(
    begin: np.ndarray, plays: Plays, kind: Kind, offsets: bool, bounds: list[tuple[float, float]]
) -> Learned:
    size, given = len(begin), (plays.gaps, plays.rewards, plays.seen, plays.step)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        whole, switches = _whole(kind, theta, len(plays.seen), offsets)
        with jax.enable_x64(True):
            value, slope = _loss(whole, switches, *given)
        return float(value), np.asarray(slope)[:size]

    path = [-loss(begin)[0]]

    def keep(intermediate_result: Any) -> None:  # SciPy requires this name
        path.append(-float(intermediate_result.fun))

    options = {"ftol": 1e-12, "gtol": 1e-5, "maxiter": 500}
    end = scipy.optimize.minimize(
        loss, begin, jac=True, bounds=bounds[:size], callback=keep, options=options
    )
    # Close to the maximum, rounding may leave the line search without a step that gains anything.
    gain = path[-1] - path[-2] if len(path) > 1 else math.inf
    rest = end.success or (end.status == ABNORMAL and gain <= LEAST_GAIN * (1 + abs(path[-1])))
    return Learned(kind, np.asarray(end.x), path, bool(rest))


def _whole(
    kind: Kind, theta: np.ndarray, n_arms: int, offsets: bool
) -> tuple[np.ndarray, np.ndarray]:
    """All coordinates, zero where the kind has none; and what is switched on: drift, offsets."""
    whole = np.zeros(5 + 2 * n_arms)
    whole[: len(theta)] = theta
    return whole, np.array([kind != "constant", offsets], float)


def _dynamics(theta: Any, switches: Any, xp: Any) -> Dynamics:
    """One program for all kinds: what is switched off is multiplied by zero."""
    drifts, offsets = switches[0], switches[1]
    arms = (len(theta) - 5) // 2
    memory, drift = theta[3] + theta[5 : 5 + arms], theta[4] + theta[5 + arms :]
    return Dynamics(
        offsets * theta[0],
        offsets * xp.exp(2 * theta[1]),
        xp.exp(2 * theta[2]),
        xp.exp(memory),
        drifts * xp.exp(2 * drift),
    )


@jax.jit
@functools.partial(jax.value_and_grad, argnums=0)
def _loss(theta: Any, switches: Any, gaps: Any, rewards: Any, seen: Any, step: Any) -> Any:
    likelihood = _arms(theta, switches, gaps, rewards, seen)[0].sum()
    drifts, offsets = switches[0], switches[1]

    def prior(value: Any, name: str, unit: Any = 1.0) -> Any:
        median, spread = PRIOR[name]
        return 0.5 * ((value - jnp.log(median * unit)) / spread) ** 2

    drifting = prior(theta[3], "memory", step) + prior(theta[4], "drift_std")
    loss = drifts * (drifting + 0.5 * ((theta[5:] / APART) ** 2).sum()) - likelihood
    idle = 0.5 * (theta[0] ** 2 + theta[1] ** 2)
    return loss + offsets * prior(theta[1], "offset_std") + (1 - offsets) * idle


def _arm(
    dynamics: Dynamics, memory: Any, drift_var: Any, gaps: Any, rewards: Any, seen: Any
) -> Any:
    """Filter one arm: the log-likelihood, each reward's log-density, and the offset's posterior."""
    # The log-densities are given earlier rounds only: of two plays in one round, the first does not
    # help to predict the second.

    def step(carry: Any, play: Any) -> Any:
        (u, o, uu, uo, oo), ahead = carry
        gap, reward, there = play
        fresh = jnp.isinf(gap)
        rate = jnp.where(fresh, 0.0, gap) / memory
        f = jnp.where(fresh, 0.0, jnp.exp(-rate))
        new = jnp.where(fresh, 1.0, -jnp.expm1(-2 * rate))
        u, uu, uo = f * u, f**2 * uu + new * drift_var, f * uo
        variance = uu + 2 * uo + oo + dynamics.reward_var
        surprise = reward - dynamics.mean - u - o
        now = u + o, variance
        ahead = tuple(jnp.where(gap == 0, *both) for both in zip(ahead, now, strict=True))
        gain_u, gain_o = there * (uu + uo) / variance, there * (uo + oo) / variance
        belief = (
            u + gain_u * surprise,
            o + gain_o * surprise,
            uu - gain_u * (uu + uo),
            uo - gain_u * (uo + oo),
            oo - gain_o * (uo + oo),
        )
        likelihood = there * _density(surprise, variance)
        density = there * _density(reward - dynamics.mean - ahead[0], ahead[1])
        return (belief, ahead), (likelihood, density)

    parts = (0.0, 0.0, drift_var, 0.0, dynamics.offset_var)
    start = tuple(jnp.asarray(part, jnp.float64) for part in parts)
    before = (start[0], start[0] + 1.0)  # not used: the first gap is infinite
    (end, _), (likelihood, each) = jax.lax.scan(step, (start, before), (gaps, rewards, seen))
    return likelihood.sum(), each, end[1], end[4]


def _density(surprise: Any, variance: Any) -> Any:
    """The logarithm of a normal density."""
    return -0.5 * (jnp.log(2 * math.pi * variance) + surprise**2 / variance)


def _arms(theta: Any, switches: Any, gaps: Any, rewards: Any, seen: Any) -> Any:
    d = _dynamics(theta, switches, jnp)
    return jax.vmap(functools.partial(_arm, d))(d.memory, d.drift_var, gaps, rewards, seen)


_run = jax.jit(_arms)


def densities(
    found: Learned, plays: Plays, offsets: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Log-densities given earlier rounds, k × n; means and variances of o_a; log-likelihood."""
    whole, switches = _whole(found.kind, found.theta, len(plays.seen), offsets)
    with jax.enable_x64(True):
        total, each, means, variances = _run(whole, switches, plays.gaps, plays.rewards, plays.seen)
    mean = _dynamics(whole, switches, np).mean
    spread = np.maximum(variances, 0.0)
    return np.asarray(each), np.asarray(means) + mean, spread, float(np.asarray(total).sum())


# As candidates of `fit`


def _shifted(plays: Plays, shifts: np.ndarray) -> Plays:
    """Rewards around one zero for all arms, so that the spread of their means can be learned."""
    return plays._replace(rewards=plays.rewards + shifts[:, None] * plays.seen)


def split_densities(
    task: Task, kind: Kind, learned: Data, whole: Data, near: Learned | None
) -> tuple[np.ndarray, Learned]:
    """Log-densities of all rewards, S × n × m, by a model learned from a part of them."""
    k, offsets = task.n_arms, task.options.offsets
    size = int(np.bincount(task.data.arms[task.data.seen > 0]).max())
    shifts, spread = task.units.between()
    found = learn(_shifted(plays_of(learned, k, size), shifts), kind, offsets, spread, near)
    plays = plays_of(whole, k, size, learned.lengths == 0)
    each, *_ = densities(found, _shifted(plays, shifts), offsets)
    logs = np.zeros(whole.seen.size)
    there = plays.seen > 0
    logs[plays.places[there]] = each[there]
    return logs.reshape(whole.seen.shape), found


def fitted(task: Task, kind: Kind, progress: Progress) -> tuple[em.Run, float, np.ndarray | None]:
    """As `em.run`, the log-likelihood at the end, and the covariance of the offsets' errors."""
    k, offsets = task.n_arms, task.options.offsets
    shifts, spread = task.units.between()
    plays = _shifted(plays_of(task.data, k), shifts)
    report = progress.part(1 - progress.share, WORK)
    near = learn(plays, "alike", offsets, spread) if kind == "apart" else None
    found = learn(plays, kind, offsets, spread, near)
    report(1.0)
    _, means, variances, end = densities(found, plays, offsets)
    dynamics = _dynamics(*_whole(found.kind, found.theta, k, offsets), np)
    d = 0 if kind == "constant" else k
    parameters = Parameters(
        np.diag(np.exp(-1 / dynamics.memory))[:d, :d],
        np.diag(-np.expm1(-2 / dynamics.memory) * dynamics.drift_var)[:d, :d],
        np.asarray(dynamics.reward_var),
        np.zeros(d),
        np.diag(dynamics.drift_var)[:d, :d],
        np.eye(k)[:, :d],
        means - shifts if offsets else np.zeros(k),
    )
    doubt = np.diag(variances) if offsets else None
    return (parameters, found.path, found.converged), end, doubt
