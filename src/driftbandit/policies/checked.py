"""A Kalman policy that checks the spread its model assumes against the rewards it sees.

A wrong model assumes too little or too much uncertainty, and a policy that rests on it explores too
little or too much. Let v = aᵀPa be the variance of ⟨a, z⟩ that the model states, s = v + σ², and ε
the surprise in a reward, X − ⟨a, ẑ⟩. If the true variances are c v and r σ², E ε² = c v + r σ², and

    E (ε²/s − 1) = xᵀ (c − 1, r − 1),   x = (v/s, σ²/s)

This is a linear regression, whose noise has the same variance, 2, in every round if the model
holds. Its estimate with a prior that counts as twenty such x along each axis (c = 1 ± 0.3, and
r = 1 ± 0.3) is

    (c, r) = 1 + N⁻¹ D,   D = Σ x (ε²/s − 1),   N = 20 I + Σ x xᵀ

The policy plays its bonus for c P instead of P. r is estimated so that noise which the model
misstates is not taken for spread. The filter itself stays as it is: to learn a better model is what
refits are for. A surprise counts as at most three standard deviations, which happens so rarely that
the mean of ε²/s becomes 0.995 instead of 1.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit import kalman
from driftbandit.arrays import Array, dots, namespace, or_infinite
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.policies.base import AgentAbilities, Policy, Prepared, Problem

__all__ = ["Checked", "checked", "trusted"]

LEAST = 1 / 16  # of c
PRIOR = 20.0  # N before the first reward, on its diagonal
FARTHEST = 3.0  # standard deviations of a surprise
EXPECTED = 1 - 6 * math.exp(-4.5) / math.sqrt(2 * math.pi) + 8 * math.erfc(3 / math.sqrt(2))
"""E min(ω², 9) = 1 − 6 φ(3) + 16 Φ(−3), for a standard normal ω: 0.995"""


class Checked(NamedTuple):
    """A belief, and how the surprises so far compare with what it expected of them.

    Example:
        >>> before = Checked(np.zeros(1), np.eye(1), np.zeros(2), 20 * np.eye(2))
        >>> trusted(before).cov.tolist()
        [[1.0]]
        >>> trusted(before._replace(excess=np.array([30.0, 0.0]))).cov.tolist()
        [[2.5]]
    """

    mean: Array  # ẑ, d numbers
    cov: Array  # P, d × d
    excess: Array  # D, 2 numbers
    weight: Array  # N, 2 × 2

    @property
    def extends_belief(self) -> bool:
        """True: see `kalman.is_belief`."""
        return True


def trusted(state: Checked) -> Belief:
    """The belief with c P: the spread that rewards show."""
    (spread, noise), ((own, both), (_, other)) = state.excess, state.weight
    share = 1 + (other * spread - both * noise) / (own * other - both * both)
    return Belief(state.mean, state.cov * namespace(state.cov).maximum(share, LEAST + 0 * share))


def checked(policy: Policy) -> Policy:
    """A policy of beliefs, made by `filtering`, whose state is `Checked`."""
    abilities = AgentAbilities(reads_features=True, observe=_observe, advance=_advance)
    prepare = _Prepare(policy.prepare)
    return dataclasses.replace(policy, prepare=prepare, update=_update, agent=abilities)


@dataclasses.dataclass(frozen=True)
class _Prepare:
    prepare: Any

    def __call__(self, model: LGDS, arms: Array, rounds: int) -> Prepared:
        constants, belief = self.prepare(model, arms, rounds)
        return constants, Checked(belief.mean, belief.cov, np.zeros(2), PRIOR * np.eye(2))


def _observe(state: Checked, problem: Problem, arm: Array, reward: Array) -> Checked:
    model, row = problem.model, problem.arms[arm]
    belief = kalman.observe(Belief(state.mean, state.cov), model, row, reward)
    xp, noise = namespace(state.cov), model.reward_std**2
    known = dots(row, state.cov @ row)
    known = xp.maximum(known, 0 * known)
    variance = or_infinite(known + noise, noise)
    shares = xp.stack([known, noise + 0 * known]) / variance
    surprise = reward - dots(row, state.mean)
    size = xp.minimum(surprise * surprise / variance, FARTHEST**2 + 0 * known)
    excess = state.excess + shares * (size - EXPECTED)
    weight = state.weight + shares[:, None] * shares
    return Checked(belief.mean, belief.cov, excess, weight)


def _advance(state: Checked, problem: Problem, rounds: int) -> Checked:
    belief = kalman.advance(Belief(state.mean, state.cov), problem.model, rounds)
    return state._replace(mean=belief.mean, cov=belief.cov)


def _update(state: Checked, problem: Problem, arm: Array, reward: Array) -> Checked:
    return _advance(_observe(state, problem, arm, reward), problem, 1)
