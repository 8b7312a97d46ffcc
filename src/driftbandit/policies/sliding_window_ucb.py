"""Sliding-window UCB: UCB that remembers only the last rounds, Algorithm 5 (P18).

    argmax_a  μ̂_a + √(2 R² log(1/δ) / N_a),   μ̂_a and N_a over the last ``window`` rounds

The paper's inner loop adds X_t where X_τ is meant; arms absent from the window come first.
Where rewards are missing, rounds count that have one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, namespace, put
from driftbandit.model import LGDS
from driftbandit.policies import ucb
from driftbandit.policies.base import Policy, Problem, highest

__all__ = ["WindowState", "policy"]


class WindowState(NamedTuple):
    """The last ``window`` rounds as a ring, and their sums."""

    sums: Array
    """S_a over the window, k numbers."""
    counts: Array
    """N_a over the window, k numbers."""
    arms: Array
    """Played arm of each remembered round; −1 where there is none yet."""
    rewards: Array
    """What it paid."""
    place: Array
    """Where the next round goes, 0 … window − 1."""


def prepare(
    delta: float, window: int | None, model: LGDS, arms: Array, rounds: int
) -> tuple[Mapping[str, Any], WindowState]:
    """UCB's radius and an empty ring."""
    constants, empty = ucb.prepare(delta, model, arms, rounds)
    if window is None:
        window = max(1, min(rounds, math.ceil(2 * math.sqrt(rounds * math.log(rounds)))))
    ring = np.full(window, -1, np.int32), np.zeros(window), np.zeros((), np.int32)
    return constants, WindowState(*empty, *ring)


def scores(state: WindowState, problem: Problem) -> tuple[Array, Array]:
    """μ̂_a and radius / √N_a over the window."""
    return ucb.scores(ucb.UCBState(state.sums, state.counts), problem)


def update(state: WindowState, problem: Problem, arm: Array, reward: Array) -> WindowState:
    """Add the new round, take the oldest one back, write over it in the ring."""
    index = namespace(state.sums).arange(state.sums.shape[0])
    enters, leaves = index == arm, index == state.arms[state.place]
    return WindowState(
        state.sums + enters * reward - leaves * state.rewards[state.place],
        state.counts + enters - leaves,
        put(state.arms, state.place, arm),
        put(state.rewards, state.place, reward),
        (state.place + 1) % state.arms.shape[0],
    )


def policy(window: int | None = None, delta: float = 0.1) -> Policy:
    """Sliding-window UCB with confidence 1 − ``delta``; R is taken from the model.

    Args:
        window: rounds remembered; None: 2 √(n log n), the choice of Garivier and Moulines (2011)
            for one change within n rounds.
        delta: chance that a confidence interval fails.
    """
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    if window is not None:
        window = errors.whole_number(window, "window", low=1, high=10**7)
    return Policy(
        "sliding_window_ucb",
        functools.partial(prepare, delta, window),
        highest(scores),
        update,
        parameters={"window": window, "delta": delta},
        scores=scores,
    )
