"""Rewards around zero and of spread one: what is learned depends on neither zero nor unit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit.identify import em
from driftbandit.model import LGDS

__all__ = ["Units"]

FAR = 100.0
"""Arms' means that lie farther apart, in units of the spread around them, tell nothing of each
other."""
ROUNDING = 1e-13
"""Largest difference from the mean that is rounding, as a share of the rewards' size."""
LEAST = 1e-6
"""Spread, as a share of their size, of rewards that are all the same."""


class Units(NamedTuple):
    """Where the rewards lie and how far they spread."""

    centers: np.ndarray
    """Mean of each arm, k; zero without offsets, where a constant is the state's."""
    scale: float
    """Standard deviation around them."""

    @staticmethod
    def of(data: em.Data, n_arms: int, offsets: bool) -> Units:
        """Those of a log."""
        seen = data.seen > 0
        played, rewards = data.arms[seen], data.rewards[seen]
        centers = np.zeros(n_arms)
        if offsets:
            middle = float(rewards.mean())
            counts = np.bincount(played, minlength=n_arms)
            sums = np.bincount(played, rewards - middle, minlength=n_arms)
            centers = middle + sums / np.maximum(counts, 1)
        size = float(np.abs(rewards).max())
        left = rewards - centers[played]
        largest = float(np.abs(left).max())
        if largest <= ROUNDING * size:
            return Units(centers, LEAST * size or 1.0)
        return Units(centers, largest * float(np.sqrt(((left / largest) ** 2).mean())))

    def between(self) -> tuple[np.ndarray, float | None]:
        """Arms' means in these units, k, and their spread where it is too large to be learned."""
        apart = (self.centers - self.centers.mean()) / self.scale
        return (apart, None) if np.abs(apart).max() <= FAR else (np.zeros_like(apart), FAR)

    def offset_var(self) -> float:
        """How far an arm's offset may lie from the others', in these units, squared."""
        return 1.0 + float(self.between()[0].var())

    def standard(self, data: em.Data) -> em.Data:
        """The data in these units."""
        rewards = (data.rewards - self.centers[data.arms]) * data.seen / self.scale
        return data._replace(rewards=np.where(data.seen > 0, rewards, 0.0))

    def model(self, model: LGDS) -> LGDS:
        """A model of the rewards as they are, in these units."""
        return LGDS(
            model.transition,
            model.process_cov / self.scale**2,
            model.reward_std / self.scale,
            model.start_cov() / self.scale**2,
            np.where(model.constants, model.start_mean(), model.start_mean() / self.scale),
        )

    def raw(self, parameters: em.Parameters) -> em.Parameters:
        """Parameters of the rewards as they are, from those in these units."""
        square = self.scale**2
        return parameters._replace(
            process_cov=parameters.process_cov * square,
            reward_var=parameters.reward_var * square,
            initial_mean=parameters.initial_mean * self.scale,
            initial_cov=parameters.initial_cov * square,
            offsets=self.centers + parameters.offsets * self.scale,
        )
