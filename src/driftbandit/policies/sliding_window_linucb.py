"""SW-LinUCB: LinUCB that remembers only the last rounds, Cheung, Simchi-Levi and Zhu (2019).

    V = λI + Σ a aᵀ,   θ̂ = V⁻¹ Σ a X   over the last w rounds
    argmax_a  ⟨a, θ̂⟩ + β √(aᵀV⁻¹a)
    β = √λ S + R √(d log((1 + L² w / λ) / δ)),   L = max ‖a‖

The source proves a regret of order (d² B n²)^⅓. Its proof, and D-LinUCB's, has a gap in θ̂'s bias
that Zhao et al. (2021) and Touati and Vincent (2020) found; what is proved since is d^⅞ B^¼ n^¾.
The window here is the source's. Where rewards are missing, rounds count that have one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, inverse, namespace, put
from driftbandit.model import LGDS
from driftbandit.policies import confidence
from driftbandit.policies.base import Policy, Problem, highest
from driftbandit.policies.optimistic import arm_variances

__all__ = ["LinearWindowState", "policy"]

LONGEST = 100_000
"""Rounds of a window that is not given: they are all kept."""


class LinearWindowState(NamedTuple):
    """The last w rounds as a ring, and their sums."""

    design: Array
    """V, d × d."""
    total: Array
    """Σ a X over the window, d numbers."""
    rows: Array
    """Played arm of each remembered round, zeros where there is none yet; w × d or longer."""
    rewards: Array
    """What it paid."""
    place: Array
    """Where the next round goes, 0 … w − 1."""


def prepare(
    delta: float,
    window: int | None,
    ridge: float | None,
    bound: float | None,
    model: LGDS,
    arms: Array,
    rounds: int,
) -> tuple[Mapping[str, Any], LinearWindowState]:
    """β, λ and w, from the model where they are not given, and an empty ring."""
    d = model.n_states
    if window is None:
        drift = confidence.relative_drift(model, arms, rounds)
        best = (d / drift) ** (2 / 3) if drift > 0 else math.inf
        window = math.ceil(min(rounds, LONGEST, max(d, best)))
        size = 1 << (window - 1).bit_length()  # few sizes, so that studies share compiled programs
    else:
        size = window
    constants = confidence.constants(delta, ridge, bound, model, arms, rounds)
    volume = d * (math.log1p(constants["growth"] * d * window) + math.log(1 / delta))
    radius = constants["bias"] + constants["scale"] * math.sqrt(volume)
    ring = np.zeros((size, d)), np.zeros(size), np.zeros((), np.int32)
    start = LinearWindowState(constants["ridge"] * np.eye(d), np.zeros(d), *ring)
    return {"radius": radius, "window": np.int32(window)}, start


def prepare_all(
    delta: float,
    window: int | None,
    ridge: float | None,
    bound: float | None,
    systems: Sequence[tuple[LGDS, Array]],
    rounds: int,
) -> list[tuple[Mapping[str, Any], NamedTuple]]:
    """`prepare` for each system, with rings as long as the longest, so that they stack."""
    each = [prepare(delta, window, ridge, bound, model, arms, rounds) for model, arms in systems]
    longest = max((state for _, state in each), key=lambda state: len(state.rewards))
    return [
        (constants, state._replace(rows=longest.rows, rewards=longest.rewards))
        for constants, state in each
    ]


def scores(state: LinearWindowState, problem: Problem) -> tuple[Array, Array]:
    """⟨a, θ̂⟩ and β √(aᵀV⁻¹a)."""
    # Rank-one steps of V⁻¹ lose digits where rounds leave, a hundred times as many for small λ.
    cross, variances = arm_variances(inverse(state.design), problem.arms)
    bonuses = problem.constants["radius"] * namespace(state.total).sqrt(variances)
    return cross @ state.total, bonuses


def update(
    state: LinearWindowState, problem: Problem, arm: Array, reward: Array
) -> LinearWindowState:
    """Add the new round, take the oldest one back, write over it in the ring."""
    row, old, paid = problem.arms[arm], state.rows[state.place], state.rewards[state.place]
    return LinearWindowState(
        state.design + row[:, None] * row[None, :] - old[:, None] * old[None, :],
        state.total + row * reward - old * paid,
        put(state.rows, state.place, row),
        put(state.rewards, state.place, reward),
        (state.place + 1) % problem.constants["window"],
    )


def policy(
    delta: float = 0.1,
    window: int | None = None,
    ridge: float | None = None,
    bound: float | None = None,
) -> Policy:
    """SW-LinUCB with confidence 1 − ``delta``; R² = max aᵀZa + σ² is taken from the model.

    Args:
        delta: chance that the confidence ellipsoid fails.
        window: w, rounds remembered; None: (dn/B)^⅔ as published, with the model's B as for
            D-LinUCB and, by our choice, d at least: fewer rounds do not show d directions.
        ridge: λ; None: the largest ‖a‖², as for OFUL.
        bound: S, a bound on ‖θ‖; None: √tr Z, the root mean square of ‖z‖.
    """
    delta, ridge, bound = confidence.checked(delta, ridge, bound)
    if window is not None:
        window = errors.whole_number(window, "window", low=1, high=10**7)
    given = delta, window, ridge, bound
    return Policy(
        "sliding_window_linucb",
        functools.partial(prepare, *given),
        highest(scores),
        update,
        parameters={"delta": delta, "window": window, "ridge": ridge, "bound": bound},
        prepare_all=functools.partial(prepare_all, *given),
        scores=scores,
        reads_features=True,
    )
