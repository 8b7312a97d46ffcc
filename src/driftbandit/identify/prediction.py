"""How well a learned model predicts rewards, each from all rounds before its own.

A decision is made before its round shows anything: what arms of one round tell of each other is no
prediction.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.identify import em, waits
from driftbandit.identify.grid import data_of
from driftbandit.io.logs import as_log

if TYPE_CHECKING:
    from driftbandit.identify.fitting import Fit

__all__ = ["OneStep", "log_density", "one_step", "predicted"]


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
        """(x − mean) / std, n: standard normal if the model is right; rounds are independent."""
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
    """Predict every reward of a log from the rounds before its own, sequence after sequence.

    Args:
        found: as `fit` returned it.
        log: of the same arms: the one that was learned from, or, for an honest judgment, another.
        columns: as in `fit`, and ``step`` as well.

    Returns:
        `OneStep`.

    Example:
        >>> from driftbandit.identify import fit
        >>> log = {"round": range(40), "arm": [0, 1] * 20, "reward": [1, 2] * 20}
        >>> one_step(fit(log, n_states=1, starts=1, iterations=3), log).means.shape
        (40,)
    """
    read = as_log(log, found.names, columns=columns, step=step)
    data = data_of(read, found.model.n_states)
    model = found.model
    # EM's own start is that of the sequences it learned from; the model's is any sequence's.
    parameters = em.Parameters(
        model.transition,
        model.process_cov,
        np.asarray(model.reward_std**2),
        model.start_mean(),
        model.start_cov(),
        found.arms,
        np.zeros(len(found.arms)),
    )
    means, variances = predicted(parameters, data)
    seen = data.seen > 0
    arms, rewards = data.arms[seen], data.rewards[seen]
    plays = np.bincount(arms, minlength=len(read.names))
    own = np.bincount(arms, rewards, len(read.names)) / np.maximum(plays, 1)
    return OneStep(rewards, means[seen], np.sqrt(variances[seen]), own[arms])


def predicted(parameters: em.Parameters, data: em.Data) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of all rewards, given the rounds before theirs, S × n × m each."""
    bits = None if data.waits is None else waits.bits_of(data.waits)
    with jax.enable_x64(True):
        means, variances = _predicted(
            parameters, data.arms, data.rewards, data.seen, data.gaps, bits
        )
        return np.asarray(means), np.asarray(variances)


def log_density(parameters: em.Parameters, data: em.Data) -> float:
    """Of all rewards, each given the rounds before its own, added up."""
    means, variances = predicted(parameters, data)
    seen = data.seen > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = (data.rewards - means)[seen] ** 2 / variances[seen]
        return float(-0.5 * (np.log(2 * math.pi * variances[seen]) + squares).sum())


@jax.jit
def _predicted(p: em.Parameters, arms: Any, rewards: Any, seen: Any, gaps: Any, bits: Any) -> Any:
    if bits is None:
        F, Q, gaps = p.transition[None], p.process_cov[None], jnp.zeros(arms.shape[:2], int)
    else:
        F, Q = waits.steps(p.transition, p.process_cov, bits)
    return jax.vmap(functools.partial(_sequence, p, F, Q))(arms, rewards, seen, gaps)


def _sequence(
    p: em.Parameters, F: Any, Q: Any, arms: Any, rewards: Any, seen: Any, gaps: Any
) -> Any:
    """Means and variances of all rewards, as they are before the round shows any."""

    def forward(belief: Any, now: Any) -> Any:
        arm, reward, mask, gap = now
        reads, offsets = p.reads[arm], p.offsets[arm]
        told = offsets + reads @ belief[0]
        variances = ((reads @ belief[1]) * reads).sum(axis=1) + p.reward_var

        def fold(belief: Any, play: Any) -> Any:
            mean, cov = belief
            read, offset, x, there = play
            cross = cov @ read
            variance = read @ cross + p.reward_var
            weight = jnp.where(variance > 0, there / variance, 0.0)
            mean = mean + cross * (weight * (x - offset - read @ mean))
            return (mean, cov - jnp.outer(cross, cross) * weight), None

        unroll = min(len(arm), em.UNROLLED)
        (mean, cov), _ = jax.lax.scan(fold, belief, (reads, offsets, reward, mask), unroll=unroll)
        mean, cov = F[gap] @ mean, F[gap] @ cov @ F[gap].T + Q[gap]
        return (mean, 0.5 * (cov + cov.T)), (told, variances)

    return jax.lax.scan(forward, (p.initial_mean, p.initial_cov), (arms, rewards, seen, gaps))[1]
