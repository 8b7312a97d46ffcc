"""How well a learned model predicts rewards, each from all that came before it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.identify import em
from driftbandit.identify.readers import as_log

if TYPE_CHECKING:
    from driftbandit.identify.fitting import Fit

__all__ = ["OneStep", "one_step"]


class OneStep(NamedTuple):
    """Rewards and what was predicted of them, sequence after sequence in order of time."""

    rewards: np.ndarray
    """Those that were seen, n."""
    means: np.ndarray
    """Predicted, n."""
    stds: np.ndarray
    """Standard deviations of the predictions' errors, n: the state's doubt and the noise."""
    own: np.ndarray
    """Means of each reward's arm in this log, n: what one would say who knows of no state."""

    @property
    def surprises(self) -> np.ndarray:
        """(x − mean) / std, n: independent standard normal if the model is right."""
        left = self.rewards - self.means
        return np.divide(left, self.stds, out=np.zeros_like(left), where=self.stds > 0)

    @property
    def share(self) -> float:
        """Of the variance of rewards around their arm's own mean, the share that was predicted."""
        apart = float(((self.rewards - self.own) ** 2).sum())
        return (
            1 - float(((self.rewards - self.means) ** 2).sum()) / apart if apart > 0 else math.nan
        )

    @property
    def log_likelihood(self) -> float:
        """Per reward."""
        with np.errstate(divide="ignore"):
            logs = np.log(2 * math.pi * self.stds**2) + self.surprises**2
        return float(-0.5 * logs.mean())

    @property
    def log_likelihood_without_state(self) -> float:
        """Per reward, if all were independent and normal around their arm's own mean."""
        variance = float(((self.rewards - self.own) ** 2).mean())
        return -0.5 * (math.log(2 * math.pi * variance) + 1) if variance > 0 else math.inf


def one_step(
    found: Fit, log: Any, columns: Mapping[str, str] | None = None, step: str | None = None
) -> OneStep:
    """Predict every reward of a log from those before it, sequence after sequence.

    Args:
        found: as `fit` returned it.
        log: of the same arms: the one that was learned from, or, for an honest judgment, another.
        columns: as in `fit`, and ``step`` as well.

    Returns:
        `OneStep`.

    Example:
        >>> from driftbandit.identify import fit
        >>> log = {"round": range(40), "arm": [0, 1] * 20, "reward": [1, 2] * 20}
        >>> one_step(fit(log, states=1, starts=1, iterations=3), log).means.shape
        (40,)
    """
    from driftbandit.identify.fitting import data_of

    read = as_log(log, found.names, columns=columns, step=step)
    d = len(found.parameters.transition)
    data = data_of(read, d)
    # EM's own start is that of the sequences it learned from; the model's is any sequence's.
    start = found.model.start_mean()[:d], found.model.start_cov()[:d, :d]
    parameters = found.parameters._replace(initial_mean=start[0], initial_cov=start[1])
    with jax.enable_x64(True):
        means, variances = map(np.asarray, _predicted(parameters, data))
    seen = data.seen > 0
    arms, rewards = data.arms[seen], data.rewards[seen]
    plays = np.bincount(arms, minlength=len(read.names))
    own = np.bincount(arms, rewards, len(read.names)) / np.maximum(plays, 1)
    return OneStep(rewards, means[seen], np.sqrt(variances[seen]), own[arms])


@jax.jit
def _predicted(parameters: em.Parameters, data: em.Data) -> Any:
    return jax.vmap(functools.partial(_sequence, parameters))(data.arms, data.rewards, data.seen)


def _sequence(p: em.Parameters, arms: Any, rewards: Any, seen: Any) -> Any:
    """Means and variances of all rewards; those of one round are seen one after another."""

    def forward(belief: Any, now: Any) -> Any:
        arm, reward, mask = now

        def fold(belief: Any, play: Any) -> Any:
            mean, cov = belief
            read, offset, x, there = play
            cross = cov @ read
            told, variance = offset + read @ mean, read @ cross + p.reward_var
            weight = jnp.where(variance > 0, there / variance, 0.0)
            mean = mean + cross * (weight * (x - told))
            return (mean, cov - jnp.outer(cross, cross) * weight), (told, variance)

        plays = (p.reads[arm], p.offsets[arm], reward, mask)
        unroll = min(len(arm), em.UNROLLED)
        (mean, cov), told = jax.lax.scan(fold, belief, plays, unroll=unroll)
        mean, cov = p.transition @ mean, p.transition @ cov @ p.transition.T + p.process_cov
        return (mean, 0.5 * (cov + cov.T)), told

    return jax.lax.scan(forward, (p.initial_mean, p.initial_cov), (arms, rewards, seen))[1]
