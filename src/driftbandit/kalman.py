"""The Kalman one-step predictor (P5), its likelihood and its smoother.

Functions of one `Belief` run under NumPy and JAX. Rounding pushes a covariance slightly outside the
positive semidefinite cone; if aᵀPa is at rounding level (σ = 0, singular Q), dividing by it blows
the error up. So `spread` rounds P *up*, by 8 d ε of its diagonal, and `observe` does so again
before it subtracts wwᵀ. That covers the rounding error of the subtraction (at most d ε diag P as a
matrix) and of the products that follow, in any units of the states: P stays semidefinite, and a
reward that is known up to rounding changes nothing. ``tests/test_long_runs.py`` compares this with
the plain and the Joseph form. It fails only if ‖Γ^k‖² ε > 1 for some k.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, dots, namespace, or_infinite, times
from driftbandit.model import LGDS, checked_arms, start_moments

__all__ = ["Belief", "Predictions", "Spread", "Update", "advance", "imagined_step"]
__all__ += [
    "is_belief",
    "log_likelihood",
    "moves",
    "observe",
    "plain_update",
    "predictions",
    "prior",
    "priors",
]
__all__ += ["riccati_step", "rounded_up", "smooth", "spread", "step"]


class Belief(NamedTuple):
    """What is known about the state: z ~ N(mean, cov).

    A filter is a loop over beliefs: predict, decide, fold the reward in.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
        >>> arm = np.array([1.0])
        >>> belief = prior(model)
        >>> for reward in (1.0, 2.0, -1.0):
        ...     belief = step(belief, model, arm, reward)
        >>> expected, std = arm @ belief.mean, np.sqrt(arm @ belief.cov @ arm)
        >>> round(float(expected), 3), round(float(std), 3)
        (-0.089, 1.861)
    """

    mean: Array  # ẑ, d numbers
    cov: Array  # P, d × d


def is_belief(state: Any) -> TypeGuard[Belief]:
    """Whether a policy's state is a belief, or a belief with more fields that says so.

    Example:
        >>> is_belief(Belief(np.zeros(1), np.eye(1))), is_belief((np.zeros(1), np.eye(1)))
        (True, False)
    """
    return isinstance(state, Belief) or getattr(state, "extends_belief", False)


def prior(model: LGDS) -> Belief:
    """Belief before the first reward: the mean of z(0), covariance Σ0 or the stationary Z (P1).

    Args:
        model: Γ, Q, σ; ρ(Γ) < 1 if it has no Σ0.

    Example:
        >>> prior(LGDS([[0.5]], [[3.0]], 1.0)).cov.tolist()
        [[4.0]]
    """
    return Belief(model.start_mean(), model.start_cov())


def priors(models: Sequence[LGDS]) -> Belief:
    """The `prior` of n models, as arrays with a leading axis.

    Args:
        models: n models with the same number of states.

    Returns:
        Belief with means n × d and covariances n × d × d.

    Example:
        >>> models = [LGDS([[0.5]], [[q]], reward_std=1.0) for q in (3.0, 6.0)]
        >>> priors(models).cov.ravel().round(9).tolist()
        [4.0, 8.0]
    """
    return Belief(*start_moments(models))


@functools.lru_cache(maxsize=64)
def _upwards(n_states: int, dtype: Any) -> np.ndarray:
    raise_ = 8 * n_states * np.finfo(dtype).eps
    return np.ones((n_states, n_states), dtype) + raise_ * np.eye(n_states, dtype=dtype)


@functools.lru_cache(maxsize=64)
def _upper(n_states: int) -> np.ndarray:
    return np.triu(np.ones((n_states, n_states), bool))


def rounded_up(cov: Array) -> Array:
    """P with a diagonal larger by 8 d ε of itself, which covers the rounding error of an update.

    Example:
        >>> raised = np.diag(rounded_up(np.eye(2))) - 1
        >>> bool((raised == 16 * np.finfo(float).eps).all())
        True
    """
    return cov * _upwards(cov.shape[0], cov.dtype)


class Spread(NamedTuple):
    """How uncertain the rewards of arms are; see `spread`.

    Example:
        >>> model = LGDS(np.eye(2) / 2, np.eye(2), reward_std=2.0)
        >>> seen = spread(np.eye(2), model, np.array([[1.0, 0.0], [3.0, 4.0]]))
        >>> seen.variance.round(9).tolist(), seen.cross.round(9).tolist()
        ([5.0, 29.0], [[1.0, 0.0], [3.0, 4.0]])
    """

    cov: Array  # P, rounded up, d × d
    cross: Array  # P a, the shape of the arms
    variance: Array  # aᵀPa + σ², that shape without its last axis; infinite where it is zero


def spread(cov: Array, model: LGDS, arms: Array) -> Spread:
    """P rounded up, P a and aᵀPa + σ², for one arm (d,) or many (k, d) (P5).

    A variance of zero means that the reward is known in advance. It is returned as infinity, which
    makes the gain zero without a branch and without NaN.

    Args:
        cov, model: P(t|t−1), d × d; Γ, Q, σ.
        arms: a, d numbers, or k × d.

    Returns:
        P rounded up; P a, of the shape of ``arms``; and one variance per arm.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
        >>> seen = spread(np.array([[4.0]]), model, np.array([1.0]))
        >>> gain = seen.cross / seen.variance  # of the Kalman filter
        >>> round(float(seen.variance), 9), gain.round(9).tolist()
        (8.0, [0.5])
    """
    cov = rounded_up(cov)
    cross = times(arms, cov)
    noise = model.reward_std**2
    return Spread(cov, cross, or_infinite(dots(arms, cross) + noise, noise))


def moves(cov: Array, model: LGDS, arms: Array) -> Array:
    """Γ P a / √(aᵀPa + σ²) of every arm as a row v: ẑ⁺ = Γẑ + v ω, ω ~ N(0, 1) (P7, P15).

    √(aᵀPa + σ²) ω is the innovation of the arm's reward. Zero for an arm whose reward is known.

    Args:
        cov, model, arms: P(t|t−1), d × d; Γ, Q, σ; k × d.

    Returns:
        k × d.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=0.0)
        >>> moves(np.array([[4.0]]), model, np.array([[1.0], [-3.0]])).round(9).tolist()
        [[1.0], [-1.0]]
    """
    seen = spread(cov, model, arms)
    shares = seen.cross * (1 / namespace(cov).sqrt(seen.variance))[:, None]
    return times(shares, model.transition.T)


def _observed_cov(seen: Spread) -> Array:
    weight = seen.cross / namespace(seen.cov).sqrt(seen.variance)
    return rounded_up(seen.cov) - weight[:, None] * weight


def _predicted_cov(cov: Array, model: LGDS) -> Array:
    """Γ P Γᵀ + Q. One half of the product is taken for both: compilers drop the other half."""
    moved = times(times(model.transition, cov), model.transition.T)
    upper = _upper(moved.shape[0])
    return namespace(cov).where(upper, moved, moved.T) + model.process_cov


def observe(belief: Belief, model: LGDS, arm: Array, reward: Array) -> Belief:
    """Fold in a reward: ẑ(t|t) = ẑ + K (X − ⟨a, ẑ⟩), P(t|t) = P − K aᵀP, K = Pa/(aᵀPa + σ²) (P5).

    The first half of `step`; time does not pass. So it can fold in several rewards of one round.

    Args:
        belief, model: ẑ(t|t−1) and P(t|t−1); Γ, Q, σ.
        arm, reward: a, d numbers; X, what it paid.

    Returns:
        ẑ(t|t) and P(t|t).

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
        >>> belief = observe(prior(model), model, np.array([1.0]), reward=1.0)
        >>> round(float(belief.mean[0]), 6), round(float(belief.cov[0, 0]), 6)
        (0.5, 2.0)
    """
    seen = spread(belief.cov, model, arm)
    surprise = reward - dots(arm, belief.mean)
    return Belief(belief.mean + seen.cross * (surprise / seen.variance), _observed_cov(seen))


def advance(belief: Belief, model: LGDS, rounds: int = 1) -> Belief:
    """Predict ``rounds`` ≥ 0 rounds ahead: ẑ ↦ Γ ẑ, P ↦ Γ P Γᵀ + Q each time (P5).

    Args:
        belief, model: ẑ(t|t) and P(t|t), or those of a round without a reward; Γ, Q, σ.
        rounds: how many; several are one power of Γ, by repeated squaring.

    Example:
        >>> belief = Belief(np.array([8.0]), np.array([[0.0]]))
        >>> advance(belief, LGDS([[0.5]], [[3.0]], reward_std=1.0), rounds=3)
        Belief(mean=array([1.]), cov=array([[3.9375]]))
    """
    if rounds == 1:
        return Belief(times(model.transition, belief.mean), _predicted_cov(belief.cov, model))
    return Belief(*model.propagated(*belief, rounds))


def step(belief: Belief, model: LGDS, arm: Array, reward: Array) -> Belief:
    """One round of the predictor: ẑ⁺ = Γ(ẑ + K (X − ⟨a, ẑ⟩)), P⁺ = g(P, a) (P5).

    Args:
        belief, model: ẑ(t|t−1) and P(t|t−1); Γ, Q, σ.
        arm, reward: a, the feature vector that was played, d numbers; X, what it paid.

    Returns:
        ẑ(t+1|t) and P(t+1|t).

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
        >>> belief = step(prior(model), model, np.array([1.0]), reward=1.0)
        >>> round(float(belief.mean[0]), 6), round(float(belief.cov[0, 0]), 6)
        (0.25, 3.5)
    """
    return advance(observe(belief, model, arm, reward), model)


def riccati_step(cov: Array, model: LGDS, arm: Array) -> Array:
    """g(P, a) = Γ P Γᵀ + Q − Γ P a aᵀ P Γᵀ / (aᵀPa + σ²): the covariance part of `step` (P5).

    Args:
        cov, model, arm: P(t|t−1), d × d; Γ, Q, σ; a, d numbers.

    Returns:
        P(t+1|t), d × d. No reward is needed: exploration can be planned ahead.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
        >>> riccati_step(np.array([[4.0]]), model, np.array([1.0])).round(9).tolist()
        [[3.5]]
    """
    return _predicted_cov(_observed_cov(spread(cov, model, arm)), model)


class Update(NamedTuple):
    """A belief after one reward, and what a smoother needs; see `plain_update`.

    Example:
        >>> one = np.ones(1)
        >>> found = plain_update(0 * one, np.array([[4.0]]), one, reward=1.0, noise=4.0)
        >>> found.mean.tolist(), found.cov.tolist()
        ([0.5], [[2.0]])
        >>> found.surprise.tolist(), found.variance.tolist(), found.weight.tolist()
        (1.0, 8.0, 0.125)
    """

    mean: Array  # ẑ(t|t), d numbers
    cov: Array  # P(t|t), d × d
    cross: Array  # P a, d numbers
    surprise: Array  # X − ⟨a, ẑ⟩
    variance: Array  # aᵀPa + σ²; infinite where it is zero
    weight: Array  # 1/variance; zero if the reward is known or missing


def plain_update(
    mean: Array, cov: Array, arm: Array, reward: Array, noise: Array, observed: Array = 1.0
) -> Update:
    """`observe` in textbook form, for compiled loops over logs.

    It does not round P up: a log starts from the prior and has σ > 0, so the two extra products
    per reward are not needed.

    Args:
        mean, cov, arm, noise: ẑ, P, a and σ².
        reward: X, less the arm's offset if it has one.
        observed: 1, or 0 for a play whose reward is missing.

    Returns:
        ẑ(t|t), P(t|t), P a, the innovation e = X − ⟨a, ẑ⟩, its variance s = aᵀPa + σ² (infinite
        where it is zero), and 1/s, which is zero if the reward is known or missing.

    Example:
        >>> belief = prior(LGDS([[0.5]], [[3.0]], reward_std=2.0))
        >>> plain_update(*belief, np.ones(1), reward=0.0, noise=4.0, observed=0).cov.tolist()
        [[4.0]]
    """
    cross = cov @ arm
    variance = arm @ cross + noise
    variance = namespace(cov).where(variance > 0, variance, math.inf)
    weight, surprise = observed / variance, reward - arm @ mean
    after = cov - (cross[:, None] * cross) * weight
    return Update(mean + cross * (surprise * weight), after, cross, surprise, variance, weight)


def imagined_step(beliefs: Belief, model: LGDS, arms: Array, surprise: Array) -> Belief:
    """`step` of many beliefs, each with a standardized innovation ω in place of the reward (P7).

        ẑ⁺ = Γ(ẑ + P a ω / √(aᵀPa + σ²)),   P⁺ = g(P, a)

    Unlike `step` it takes any leading axes, and does not round P up, because imagined paths last
    only a few rounds.

    Args:
        beliefs, model: means of shape (…, d) and covariances of shape (…, d, d); Γ, Q, σ.
        arms, surprise: the arm that each belief plays, (…, d), and its ω, (…).

    Returns:
        The beliefs of the next round, with the same leading axes.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=0.0)
        >>> two = Belief(np.array([[1.0], [1.0]]), np.array([[[4.0]], [[4.0]]]))
        >>> ahead = imagined_step(two, model, np.ones((2, 1)), np.array([-1.0, 1.0]))
        >>> ahead.mean.ravel().tolist(), ahead.cov.ravel().tolist()  # Γ(1 ± 2); Q, as σ = 0
        ([-0.5, 1.5], [3.0, 3.0])
    """
    means, covs = beliefs
    xp, noise = namespace(covs), model.reward_std**2
    cross = xp.matmul(covs, arms[..., None])[..., 0]
    variance = or_infinite(xp.maximum(xp.vecdot(arms, cross), 0 * surprise) + noise, noise)
    share = cross / xp.sqrt(variance)[..., None]
    means = (means + share * surprise[..., None]) @ model.transition.T
    covs = covs - share[..., :, None] * share[..., None, :]
    return Belief(means, model.transition @ covs @ model.transition.T + model.process_cov)


class Predictions(NamedTuple):
    """The predictor along a sequence of n rewards.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
        >>> run = predictions(model, played=[[1.0], [1.0]], rewards=[1.0, 2.0])
        >>> run.means.ravel().round(6).tolist(), run.surprises.round(6).tolist()
        ([0.0, 0.25], [1.0, 1.75])
        >>> run.covs.ravel().round(6).tolist(), run.variances.round(6).tolist()
        ([4.0, 3.5], [8.0, 7.5])
    """

    means: np.ndarray  # ẑ(t|t−1), n × d
    covs: np.ndarray  # P(t|t−1), n × d × d
    surprises: np.ndarray  # innovations X(t) − ⟨a(t), ẑ(t|t−1)⟩
    variances: np.ndarray  # of the innovations, aᵀPa + σ²; zero if the reward was known in advance


def _sequence(model: LGDS, played: Any, rewards: Any) -> tuple[np.ndarray, np.ndarray]:
    played = checked_arms(played, model, "played")
    return played, errors.matrix(rewards, "rewards", shape=(len(played),))


def predictions(
    model: LGDS, played: Any, rewards: Any, belief: Belief | None = None
) -> Predictions:
    """Run the predictor along a sequence of played arms and their rewards (P5).

    Args:
        model, played, rewards: Γ, Q, σ; n × d, the arm of each round; n numbers.
        belief: the belief before the first round; None: the prior.

    Returns:
        One row per round: ẑ, P, the innovation and its variance, all before the round's reward.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=2.0)
        >>> run = predictions(model, [[1.0]] * 3, [1.0, 2.0, -1.0])
        >>> (run.surprises / np.sqrt(run.variances)).round(3).tolist()  # N(0, 1) if it fits
        [0.354, 0.639, -0.561]
    """
    played, rewards = _sequence(model, played, rewards)
    belief = prior(model) if belief is None else belief
    n, d = played.shape
    result = Predictions(np.empty((n, d)), np.empty((n, d, d)), np.empty(n), np.empty(n))
    rounding = np.zeros((d, d))  # the part of P that comes from rounding it up
    for t, (arm, reward) in enumerate(zip(played, rewards, strict=True)):
        result.means[t], result.covs[t] = belief
        result.surprises[t] = reward - arm @ belief.mean
        variance = arm @ belief.cov @ arm + model.reward_std**2
        fresh = 16 * d * np.finfo(float).eps * np.diag(np.diag(belief.cov))
        known = model.reward_std == 0 and variance <= 4 * arm @ (rounding + fresh) @ arm
        result.variances[t] = 0.0 if known else variance
        seen = spread(belief.cov, model, arm)
        keep = np.eye(d) - np.outer(seen.cross / seen.variance, arm)
        rounding = model.transition @ (keep @ rounding @ keep.T + fresh) @ model.transition.T
        belief = step(belief, model, arm, reward)
    return result


def log_likelihood(model: LGDS, played: Any, rewards: Any, belief: Belief | None = None) -> float:
    """Log-density of a reward sequence: −½ Σ log 2πs + e²/s, e the innovations, s their variances.

    A reward that is known in advance (s = 0) has no density and adds zero.

    Args:
        model, played, rewards, belief: as in `predictions`.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=0.0)
        >>> round(log_likelihood(model, [[1.0]], [2.0]), 6)  # log N(2; 0, 4)
        -2.112086
    """
    run = predictions(model, played, rewards, belief)
    seen = run.variances > 0
    e, s = run.surprises[seen], run.variances[seen]
    return float(-0.5 * np.sum(np.log(2 * math.pi * s) + e**2 / s))


def smooth(model: LGDS, played: Any, rewards: Any, belief: Belief | None = None) -> Belief:
    """Fixed-interval smoother: the state of every round given all rewards.

    In the backward form of Durbin and Koopman (Time Series Analysis by State Space Methods, 4.4),
    which divides only by innovation variances and therefore allows singular covariances:

        r ← a e/s + Lᵀ r,   N ← a aᵀ/s + Lᵀ N L,   L = Γ (I − K aᵀ)
        ẑ(t|n) = ẑ(t|t−1) + P r,   P(t|n) = P − P N P

    Args:
        model, played, rewards, belief: as in `predictions`.

    Returns:
        Belief with means n × d and covariances n × d × d.

    Example:
        >>> model = LGDS([[1.0]], [[1.0]], reward_std=1.0, initial_cov=[[1.0]])
        >>> known = smooth(model, played=[[1.0], [1.0]], rewards=[0.0, 5.0])
        >>> known.mean.ravel().round(6).tolist()  # the second reward also tells of the first round
        [1.0, 3.0]
        >>> known.cov.ravel().round(6).tolist()
        [0.4, 0.6]
    """
    played, rewards = _sequence(model, played, rewards)
    run = predictions(model, played, rewards, belief)
    means, covs = np.empty_like(run.means), np.empty_like(run.covs)
    r, N = np.zeros(model.n_states), np.zeros((model.n_states, model.n_states))
    for t in range(len(played) - 1, -1, -1):
        arm, P = played[t], run.covs[t]
        variance = run.variances[t] if run.variances[t] > 0 else math.inf
        L = model.transition @ (np.eye(model.n_states) - np.outer(P @ arm / variance, arm))
        r = arm * (run.surprises[t] / variance) + L.T @ r
        N = np.outer(arm, arm) / variance + L.T @ N @ L
        means[t] = run.means[t] + P @ r
        covs[t] = P - P @ N @ P
    return Belief(means, 0.5 * (covs + covs.transpose(0, 2, 1)))
