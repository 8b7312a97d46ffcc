"""How well a model predicts a log: every reward, from the rounds before its own."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, kalman
from driftbandit.io.log_reader import log_of_system
from driftbandit.io.logs import Sequence
from driftbandit.system import System


class OneStep(NamedTuple):
    """Rewards and their predictions, sequence after sequence in order of time, n each.

    Example:
        >>> from driftbandit import LGDS, System
        >>> system = System(LGDS([[0.5]], [[3.0]], reward_std=2.0), [[1.0]])
        >>> ahead = one_step(system, {"round": [0, 1], "arm": [0, 0], "reward": [1.0, 2.0]})
        >>> ahead.surprises.round(3).tolist()  # 1/√8, 1.75/√7.5: small, so the model fits
        [0.354, 0.639]
        >>> round(ahead.log_likelihood, 3), round(ahead.log_likelihood_without_state, 3)
        (-2.076, -0.726)
        >>> ahead.own.tolist(), round(ahead.share, 3)  # worse than the mean, known in hindsight
        ([1.5, 1.5], -7.125)
    """

    rewards: np.ndarray  # those that were observed
    means: np.ndarray  # predicted
    stds: np.ndarray  # of the prediction errors: the state's uncertainty and the noise
    own: np.ndarray  # the mean of each reward's arm in this log: the prediction without a state

    def __repr__(self) -> str:
        each = f"log-likelihood {self.log_likelihood:.4g} per reward"
        return f"OneStep({len(self.rewards)} rewards; {each})"

    @property
    def surprises(self) -> np.ndarray:
        """(x − mean) / std: standard normal, and independent between rounds, in the true model."""
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


def one_step(found: Any, log: Any) -> OneStep:
    """Predict every reward of a log from the rounds before its own, sequence after sequence.

    A decision is made before its round shows anything, so rewards of the same round do not help.

    Args:
        found: as `fit` returned it, or a `System`. The state of a system with a ``first_round``
            moves on from there to the log's first round.
        log: a `Log`, or what `read_log` reads, of the same arms: the one it was learned from or,
            for a fair judgment, another. Times are counted by the system's clock, if it has one. A
            `System` refuses rounds before its ``first_round``: it contains them.

    Returns:
        The observed rewards and their predictions.

    Example:
        >>> from driftbandit import LGDS, System
        >>> system = System(LGDS([[0.5]], [[3.0]], reward_std=2.0), [[1.0]])
        >>> ahead = one_step(system, {"round": [0, 1], "arm": [0, 0], "reward": [1.0, 2.0]})
        >>> ahead.means.round(6).tolist(), (ahead.stds**2).round(6).tolist()
        ([0.0, 0.25], [8.0, 7.5])
    """
    read = log_of_system(found, log)
    if hasattr(found, "problem_of"):
        means, variances = found.problem_of(read).predicted(found.theta)
    elif features := found.contexts:
        problem = f"has contexts ({', '.join(features)}), and here arms cannot change"
        raise errors.InvalidInput("found", problem, "give what fit returned")
    else:
        parts = [predicted(found, sequence) for sequence in read.sequences]
        means, variances = (np.concatenate(part) for part in zip(*parts, strict=True))
    arms, rewards = (
        np.concatenate([getattr(sequence, field) for sequence in read.sequences])
        for field in ("arms", "rewards")
    )
    seen = ~np.isnan(rewards)
    own = _own_means(arms[seen], rewards[seen], len(read.names))
    return OneStep(rewards[seen], means[seen], np.sqrt(variances[seen]), own)


def predicted(system: System, sequence: Sequence) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every reward of a sequence given the rounds before its own, n each.

    Args:
        system: whose state moves on from ``first_round``, if it has one, else from the sequence's
            first round.
        sequence: plays of its arms.
    """
    model, belief = system.model, kalman.prior(system.model)
    now = int(sequence.rounds[0]) if system.first_round is None else system.first_round
    means, variances = np.empty(len(sequence)), np.empty(len(sequence))
    rounds, begins = np.unique(sequence.rounds, return_index=True)
    for round_, begin, end in zip(
        rounds.tolist(), begins, np.append(begins[1:], len(sequence)), strict=True
    ):
        if round_ > now:
            belief, now = kalman.advance(belief, model, round_ - now), round_
        rows, rewards = system.arms[sequence.arms[begin:end]], sequence.rewards[begin:end]
        means[begin:end] = rows @ belief.mean
        variances[begin:end] = np.vecdot(rows @ belief.cov, rows) + model.reward_std**2
        for row, reward in zip(rows, rewards, strict=True):
            if not np.isnan(reward):
                belief = kalman.observe(belief, model, row, reward)
    return means, variances


def _own_means(arms: np.ndarray, rewards: np.ndarray, n_arms: int) -> np.ndarray:
    """The mean of each reward's arm."""
    plays = np.bincount(arms, minlength=n_arms)
    return np.asarray((np.bincount(arms, rewards, n_arms) / np.maximum(plays, 1))[arms])
