"""How well a model predicts rewards, each from all rounds before its own.

A decision is made before its round shows anything, so rewards of the same round do not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit.identify.data import Data, Parameters, data_of
from driftbandit.identify.smoothing import predicted
from driftbandit.io.logs import as_log


class OneStep(NamedTuple):
    """Rewards and their predictions, sequence after sequence in order of time."""

    rewards: np.ndarray
    """Those that were observed, n."""
    means: np.ndarray
    """Predicted, n."""
    stds: np.ndarray
    """Standard deviations of the prediction errors, n: the state's uncertainty and the noise."""
    own: np.ndarray
    """The mean of each reward's arm in this log, n: the prediction without a state."""

    @property
    def surprises(self) -> np.ndarray:
        """(x − mean) / std, n: standard normal if the model is right; rounds are independent."""
        left = self.rewards - self.means
        return np.divide(left, self.stds, out=np.zeros_like(left), where=self.stds > 0)

    @property
    def share(self) -> float:
        """The share of the rewards' variance around their arm's mean that was predicted."""
        apart = float(((self.rewards - self.own) ** 2).sum())
        left = float(((self.rewards - self.means) ** 2).sum())
        return 1 - left / apart if apart > 0 else math.nan

    @property
    def log_likelihood(self) -> float:
        """Per reward."""
        with np.errstate(divide="ignore"):
            logs = np.log(2 * math.pi * self.stds**2) + self.surprises**2
        return float(-0.5 * logs.mean())

    @property
    def log_likelihood_without_state(self) -> float:
        """Per reward, if all were independent and normal around their arm's mean."""
        variance = float(((self.rewards - self.own) ** 2).mean())
        return -0.5 * (math.log(2 * math.pi * variance) + 1) if variance > 0 else math.inf


def one_step(
    found: Any, log: Any, columns: Mapping[str, str] | None = None, step: str | None = None
) -> OneStep:
    """Predict every reward of a log from the rounds before its own, sequence after sequence.

    Args:
        found: as `fit` returned it, or a `System`.
        log: of the same arms: the one it was learned from or, for a fair judgment, another.
        columns: as in `fit`, and ``step`` as well.

    Example:
        >>> from driftbandit.identify import fit
        >>> log = {"round": range(40), "arm": [0, 1] * 20, "reward": [1, 2] * 20}
        >>> one_step(fit(log, n_states=1, starts=1, iterations=3), log).means.shape
        (40,)
    """
    read = as_log(log, found.names, columns=columns, step=step)
    model, k = found.model, len(read.names)
    data = data_of(read, model.n_states)
    parameters = Parameters(
        model.transition,
        model.process_cov,
        np.asarray(model.reward_std**2),
        model.start_mean(),
        model.start_cov(),
        found.arms,
        np.zeros(len(found.arms)),
    )
    means, variances, _ = predicted(parameters, data)
    seen = data.seen > 0
    arms, rewards = data.arms[seen], data.rewards[seen]
    plays = np.bincount(arms, minlength=k)
    own = np.bincount(arms, rewards, k) / np.maximum(plays, 1)
    return OneStep(rewards, means[seen], np.sqrt(variances[seen]), own[arms])


def log_densities(parameters: Parameters, data: Data, extra_var: Any = 0.0) -> np.ndarray:
    """Of all rewards, each given the rounds before its own, S × n × m.

    ``extra_var`` is added to the variances of an arm's predictions, k.
    """
    means, variances, _ = predicted(parameters, data)
    variances = variances + np.broadcast_to(extra_var, len(parameters.reads))[data.arms]
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = (data.rewards - means) ** 2 / variances
        return np.asarray(-0.5 * (np.log(2 * math.pi * variances) + squares))
