"""Arms that drift each by itself, or not at all.

    x = o_a + u_a(t) + η,   o_a ~ N(μ, τ²),   u_a(t+g) = f u_a(t) + ξ,   f = exp(−g / m_a)

u_a is an AR(1) with memory m_a and variance v_a; arms share nothing but σ and what their offsets,
memories and variances are drawn from. So an arm is a filter of two states, its drift and its
offset, over its own plays alone, and a pause of any length costs one step. The offsets are
integrated out: what is left of their doubt after the log is part of what is found.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from driftbandit.identify.grid import roomy
from driftbandit.identify.quantities import Data, times

__all__ = ["KINDS", "Found", "Kind", "Law", "Plays", "densities", "law_of", "learn", "plays_of"]

Kind = Literal["constant", "alike", "apart"]
KINDS: tuple[Kind, ...] = ("constant", "alike", "apart")
"""No drift; one memory and one variance for all arms; each arm its own."""

PRIOR = {"offset_std": (0.5, 1.5), "memory": (10.0, 2.0), "drift_std": (0.5, 1.5)}
"""Median and spread of the logarithm, rewards measured by their spread, memories by the time
between plays: so wide that a few dozen rewards overrule them."""
APART = 0.7
"""Spread of the logarithms of arms' memories and standard deviations around their common ones."""
LEAST_STD = 1e-5
"""Least σ in units of the rewards' spread."""
LONGEST = 1e15
"""Most rounds of memory: f must stay below 1."""
ABNORMAL = 2
"""What SciPy says where a line search finds nothing better."""
LEAST_GAIN = 1e-6
"""A last gain, as a share of the likelihood, that counts as rest."""
STARTS = (3.0, 30.0)
"""Memories to climb from, in times between plays."""


class Plays(NamedTuple):
    """Every arm's own plays in order of time, padded to n."""

    gaps: np.ndarray
    """Rounds since the arm's last play, k × n; infinite where a sequence begins."""
    rewards: np.ndarray
    """k × n."""
    seen: np.ndarray
    """1 where there is a play, k × n."""
    places: np.ndarray
    """Where in the data it was, flat, k × n."""
    step: float
    """The usual time between two plays of any arms, in rounds."""
    span: float
    """The longest sequence, in rounds."""


class Found(NamedTuple):
    """What was learned."""

    kind: Kind
    theta: np.ndarray
    """Unbounded coordinates, as `densities` takes them."""
    path: list[float]
    """Log-likelihood and the prior's part along the climb; it never falls."""
    converged: bool


class Law(NamedTuple):
    """The parameters, k numbers each where arms have their own."""

    mean: Any
    """μ."""
    offset_var: Any
    """τ²."""
    reward_var: Any
    """σ²."""
    memory: Any
    """m, k."""
    drift_var: Any
    """v, k."""


def plays_of(data: Data, n_arms: int, size: int = 1, later: np.ndarray | None = None) -> Plays:
    """Every arm's plays, sequence after sequence.

    Args:
        data: S sequences.
        n_arms: k.
        size: n at least, so that parts of a log share a compiled program.
        later: S booleans: sequences to put after the others.
    """
    S, n, m = data.seen.shape
    rounds = times(data)
    which, row, slot = np.nonzero(data.seen > 0)
    last = np.zeros(S, bool) if later is None else later
    arm, time = data.arms[which, row, slot], rounds[which, row]
    order = np.lexsort((slot, row, which, last[which], arm))
    which, row, slot, arm, time = (part[order] for part in (which, row, slot, arm, time))
    counts = np.bincount(arm, minlength=n_arms)
    place = np.arange(len(arm)) - (np.cumsum(counts) - counts)[arm]
    size = roomy(max(int(counts.max()), size))
    found = [np.zeros((n_arms, size)) for _ in range(4)]
    gaps = np.full(len(arm), np.inf)
    same = (arm[1:] == arm[:-1]) & (which[1:] == which[:-1])
    gaps[1:][same] = (time[1:] - time[:-1])[same]
    flat = (which * n + row) * m + slot
    values = (gaps, data.rewards[which, row, slot], 1.0, flat)
    for table, part in zip(found, values, strict=True):
        table[arm, place] = part
    steps = np.concatenate([np.diff(np.unique(time[which == s])) for s in np.unique(which)])
    step = float(np.median(steps)) if len(steps) else 1.0
    span = float(max((np.ptp(time[which == s]) for s in np.unique(which)), default=1.0))
    gaps_, rewards, seen, places = found
    return Plays(gaps_, rewards, seen, places.astype(np.int64), step, max(span, step))


def learn(
    plays: Plays,
    kind: Kind,
    offsets: bool = True,
    spread: float | None = None,
    near: Found | None = None,
) -> Found:
    """The likeliest law of the plays, beside a wide prior.

    Args:
        plays: rewards around zero, of spread about one.
        kind: what drifts.
        offsets: whether arms have offsets; else μ = τ = 0.
        spread: τ, where it is not to be learned.
        near: of another kind, to climb from.
    """
    k = len(plays.seen)
    low, high = math.log(0.1 * plays.step), math.log(min(1e3 * plays.span, LONGEST))
    bounds = [(-99.0, 99.0), (-7.0, 6.0), (math.log(LEAST_STD), 2.0), (low, high), (-12.0, 5.0)]
    bounds += [(-4.0, 4.0)] * (2 * k)
    if spread is not None:
        bounds[1] = (math.log(spread),) * 2
    size = _size(kind, k)
    lows, highs = np.array(bounds[:size]).T
    begins = []
    for memory in STARTS if kind != "constant" else STARTS[:1]:
        begin = np.zeros(5 + 2 * k)
        begin[1:5] = np.log([0.5, 0.7, memory * plays.step, 0.7])
        begins.append(begin[:size])
    if near is not None and near.kind == "alike" and kind == "apart":
        begins = [np.r_[near.theta, np.zeros(2 * k)]]
    ends = [_climb(np.clip(begin, lows, highs), plays, kind, offsets, bounds) for begin in begins]
    return max(ends, key=lambda found: found.path[-1])


def _size(kind: str, n_arms: int) -> int:
    return {"constant": 3, "alike": 5, "apart": 5 + 2 * n_arms}[kind]


def _climb(
    begin: np.ndarray, plays: Plays, kind: Kind, offsets: bool, bounds: list[tuple[float, float]]
) -> Found:
    size, given = len(begin), (plays.gaps, plays.rewards, plays.seen, plays.step)
    switches = np.array([kind != "constant", offsets], float)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        whole = np.zeros(len(bounds))
        whole[:size] = theta
        with jax.enable_x64(True):
            value, slope = _loss(whole, switches, *given)
        return float(value), np.asarray(slope)[:size]

    path = [-loss(begin)[0]]

    def keep(intermediate_result: Any) -> None:  # SciPy asks for the name
        path.append(-float(intermediate_result.fun))

    options = {"ftol": 1e-12, "gtol": 1e-5, "maxiter": 500}
    end = scipy.optimize.minimize(
        loss, begin, jac=True, bounds=bounds[:size], callback=keep, options=options
    )
    # Close to the top, rounding may leave the line search without a step that gains anything.
    gain = path[-1] - path[-2] if len(path) > 1 else math.inf
    rest = end.success or (end.status == ABNORMAL and gain <= LEAST_GAIN * (1 + abs(path[-1])))
    return Found(kind, np.asarray(end.x), path, bool(rest))


def law_of(found: Found, n_arms: int, offsets: bool) -> Law:
    """The parameters in plain numbers, k memories and variances."""
    whole, switches = _whole(found, n_arms, offsets)
    return _law(whole, switches, np)


def _whole(found: Found, n_arms: int, offsets: bool) -> tuple[np.ndarray, np.ndarray]:
    """All coordinates, those that the kind has not at zero; and what is switched on."""
    whole = np.zeros(5 + 2 * n_arms)
    whole[: len(found.theta)] = found.theta
    return whole, np.array([found.kind != "constant", offsets], float)


def _law(theta: Any, switches: Any, xp: Any) -> Law:
    """One program for all kinds: what is switched off is multiplied by zero."""
    drifts, offsets = switches[0], switches[1]
    arms = (len(theta) - 5) // 2
    memory, drift = theta[3] + theta[5 : 5 + arms], theta[4] + theta[5 + arms :]
    return Law(
        offsets * theta[0],
        offsets * xp.exp(2 * theta[1]),
        xp.exp(2 * theta[2]),
        xp.exp(memory),
        drifts * xp.exp(2 * drift),
    )


@jax.jit
@functools.partial(jax.value_and_grad, argnums=0)
def _loss(theta: Any, switches: Any, gaps: Any, rewards: Any, seen: Any, step: Any) -> Any:
    law = _law(theta, switches, jnp)
    one = functools.partial(_arm, law)
    likelihood = jax.vmap(one)(law.memory, law.drift_var, gaps, rewards, seen)[0].sum()
    drifts, offsets = switches[0], switches[1]

    def doubt(value: Any, name: str, unit: Any = 1.0) -> Any:
        median, spread = PRIOR[name]
        return 0.5 * ((value - jnp.log(median * unit)) / spread) ** 2

    drifting = doubt(theta[3], "memory", step) + doubt(theta[4], "drift_std")
    loss = drifts * (drifting + 0.5 * ((theta[5:] / APART) ** 2).sum()) - likelihood
    idle = 0.5 * (theta[0] ** 2 + theta[1] ** 2)
    return loss + offsets * doubt(theta[1], "offset_std") + (1 - offsets) * idle


def _arm(law: Law, memory: Any, drift_var: Any, gaps: Any, rewards: Any, seen: Any) -> Any:
    """Of one arm: log-density of all rewards, those of each, and the offset's posterior.

    The first is the likelihood. The second are given the rounds before alone: of two plays in one
    round, the first tells nothing of the second.
    """

    def step(carry: Any, play: Any) -> Any:
        (u, o, uu, uo, oo), ahead = carry
        gap, reward, there = play
        fresh = jnp.isinf(gap)
        rate = jnp.where(fresh, 0.0, gap) / memory
        f = jnp.where(fresh, 0.0, jnp.exp(-rate))
        new = jnp.where(fresh, 1.0, -jnp.expm1(-2 * rate))
        u, uu, uo = f * u, f**2 * uu + new * drift_var, f * uo
        variance = uu + 2 * uo + oo + law.reward_var
        surprise = reward - law.mean - u - o
        ahead = tuple(
            jnp.where(gap == 0, *both) for both in zip(ahead, (u + o, variance), strict=True)
        )
        gain_u, gain_o = there * (uu + uo) / variance, there * (uo + oo) / variance
        belief = (
            u + gain_u * surprise,
            o + gain_o * surprise,
            uu - gain_u * (uu + uo),
            uo - gain_u * (uo + oo),
            oo - gain_o * (uo + oo),
        )
        densities = (
            _density(surprise, variance),
            _density(reward - law.mean - ahead[0], ahead[1]),
        )
        return (belief, ahead), tuple(there * one for one in densities)

    parts = (0.0, 0.0, drift_var, 0.0, law.offset_var)
    start = tuple(jnp.asarray(part, jnp.float64) for part in parts)
    before = (start[0], start[0] + 1.0)  # no play comes before the first
    (end, _), (likelihood, each) = jax.lax.scan(step, (start, before), (gaps, rewards, seen))
    return likelihood.sum(), each, end[1], end[4]


def _density(surprise: Any, variance: Any) -> Any:
    """The logarithm of a normal density."""
    return -0.5 * (jnp.log(2 * math.pi * variance) + surprise**2 / variance)


@jax.jit
def _run(theta: Any, switches: Any, gaps: Any, rewards: Any, seen: Any) -> Any:
    law = _law(theta, switches, jnp)
    return jax.vmap(functools.partial(_arm, law))(law.memory, law.drift_var, gaps, rewards, seen)


def densities(
    found: Found, plays: Plays, offsets: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Log-densities of all rewards, given the rounds before, and the offsets' posterior.

    Returns:
        Log-densities, k × n; means and variances of o_a, k each; and the log-likelihood.
    """
    whole, switches = _whole(found, len(plays.seen), offsets)
    with jax.enable_x64(True):
        total, each, means, variances = _run(whole, switches, plays.gaps, plays.rewards, plays.seen)
    mean = _law(whole, switches, np).mean
    spread = np.maximum(variances, 0.0)
    return np.asarray(each), np.asarray(means) + mean, spread, float(np.asarray(total).sum())
