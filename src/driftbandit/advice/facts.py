"""What is computed about a system before anything is played: arms, floor, metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandit import errors, steady_state, theory
from driftbandit.advice.parts import POLICIES, Arm, Floor, Metric, System
from driftbandit.model import LGDS, RANK_TOLERANCE, factor
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.system import Name

__all__ = ["arm_facts", "floor", "metric", "system_facts"]

BONUSES = {"idea": idea.bonus, "kode": kode.bonus, "kalman_ucb": kalman_ucb.bonus}
DRAWS = 1 << 14
"""Draws of the state that `Arm.best_share` comes from."""
BLOCK = 1 << 22
"""Numbers held at once."""
LONGEST = 1e7
"""Work of the metric, about 2.5 seconds of one core."""
ACCURACY = 0.03
"""Of a floor over a stretch of rounds, as a share of it: each round has its own covariances."""

SETTLED = 0.01
"""What may be left of the start after a fifth of the run, for the run to count as settled."""
MOST_ROUNDS = 2000
"""Of such a stretch."""


def system_facts(model: LGDS, arms: np.ndarray) -> System:
    """Size, stability, noise and start."""
    settled = model.initial_cov is None and model.is_stable
    return System(
        n_states=model.n_states,
        n_arms=len(arms),
        reward_std=float(model.reward_std),
        spectral_radius=model.spectral_radius,
        stable=model.is_stable,
        noise_reaches_all=model.is_controllable(),
        starts_stationary=settled and np.allclose(model.start_mean(), model.stationary_mean()),
        constants=int(model.constants.sum()),
    )


def arm_facts(model: LGDS, arms: np.ndarray, names: Sequence[Name], rounds: int) -> tuple[Arm, ...]:
    """What every arm pays and teaches.

    Args:
        model: Γ, Q, σ.
        arms: k × d.
        names: what the arms are called.
        rounds: by when an unstable state is looked at, to see which arms are best.
    """
    seen = steady_state.detectable(model, arms)
    traces = _error_traces(model, arms, seen)
    spreads: list[float | None] = [None] * len(arms)
    pays: list[float | None] = [None] * len(arms)
    total = 0.0
    if model.is_stable:
        Z = model.stationary_cov()
        total = float(np.trace(Z))
        pays = (arms @ model.stationary_mean()).tolist()
        spreads = np.sqrt(np.maximum(np.vecdot(arms @ Z, arms), 0)).tolist()
    conditions, ranks = _gramians(model, arms)
    first, group = _groups(arms)
    means = arms @ model.state_mean(rounds)
    shares = _best_shares(means, model.settled_cov(rounds), arms)
    return tuple(
        Arm(
            name=names[i],
            detectable=bool(seen[i]),
            error_trace=trace,
            removed_share=max(0.0, 1 - trace / total) if trace is not None and total > 0 else None,
            gramian_condition=conditions[i],
            gramian_rank=ranks[i],
            reward_spread=spreads[i],
            best_share=shares[i],
            same_as=None if first[group[i]] == i else names[int(first[group[i]])],
            mean_reward=pays[i],
        )
        for i, trace in enumerate(traces)
    )


def _error_traces(model: LGDS, arms: np.ndarray, seen: np.ndarray) -> list[float | None]:
    """The traces of P_a, None where P_a does not exist or was not found."""
    traces: list[float | None] = [None] * len(arms)
    if not seen.any():
        return traces
    numbers = np.flatnonzero(seen).tolist()
    try:
        found = np.trace(steady_state.prediction_covs(model, arms[seen]), axis1=1, axis2=2)
        for i, trace in zip(numbers, found.tolist(), strict=True):
            traces[i] = trace
    except errors.NotDetectable:  # one that is hard must not hide the others
        for i in numbers:
            try:
                traces[i] = float(np.trace(steady_state.prediction_cov(model, arms[i])))
            except errors.NotDetectable:
                continue
    return traces


def _gramians(model: LGDS, arms: np.ndarray) -> tuple[list[float | None], list[int]]:
    """Condition number and rank of O after d rounds of each arm, for what moves.

    O = MᵀM with rows aᵀΓ^τ in M, whose singular values keep the digits that squaring loses.
    """
    d, moving = model.n_states, int((~model.constants).sum())
    arms, transition = model.without_offsets(arms), model.moving.transition
    conditions: list[float | None] = []
    ranks: list[int] = []
    size = max(1, BLOCK // d**2)
    for start in range(0, len(arms), size):
        rows = arms[start : start + size]
        M = np.empty((len(rows), d, d))
        with np.errstate(over="ignore", invalid="ignore"):
            for power in range(d):
                M[:, power] = rows
                rows = rows @ transition
        M[~np.isfinite(M).all(axis=(1, 2))] = 0  # beyond any number
        for values in np.linalg.svd(M, compute_uv=False):
            ranks.append(int((values > RANK_TOLERANCE * values[0]).sum()))
            full = 0 < ranks[-1] == moving
            conditions.append(float((values[0] / values[moving - 1]) ** 2) if full else None)
    return conditions, ranks


def _groups(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first arm of each kind, and the kind of each arm."""
    _, first, group = np.unique(arms, axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


def _best_shares(means: np.ndarray, cov: np.ndarray, arms: np.ndarray) -> list[Any]:
    """How often each of ``arms`` is the best, alone or with others, by its mean and Cov z."""
    if not (np.isfinite(cov).all() and np.isfinite(means).all()):
        return [None] * len(arms)
    directions = arms @ factor(cov)
    tie = 1e-9 * np.abs(directions).max()
    rng = np.random.default_rng(0)
    wins = np.zeros(len(arms))
    size = max(1, BLOCK // max(arms.shape))
    for start in range(0, DRAWS, size):
        points = rng.standard_normal((min(size, DRAWS - start), arms.shape[1]))
        values = means + points @ directions.T
        wins += (values >= values.max(axis=1, keepdims=True) - tie).sum(axis=0)
    return (wins / DRAWS).tolist()


def floor(model: LGDS, arms: np.ndarray, rounds: int) -> Floor:
    """The lower bound on regret per round: of a settled state, or of the first ``rounds``."""
    fast = model.spectral_radius ** (rounds / 5) < SETTLED
    settled = fast and model.initial_cov is None
    if not settled and rounds > MOST_ROUNDS:
        reason = f"it takes too long for {rounds} rounds; db.theory.finite_lower_bound computes it"
        return Floor(None, None, None, reason)
    try:
        if settled:
            bound = theory.finite_lower_bound(model, arms)
        else:
            bound = theory.finite_lower_bound(model, arms, rounds=rounds, accuracy=ACCURACY)
    except errors.NotDetectable as error:
        return Floor(None, None, None, f"it was not found ({error})")
    return Floor(bound.value, bound.error, None if settled else rounds, "")


def metric(model: LGDS, arms: np.ndarray) -> Metric:
    """The intervals of φ, or why there are none."""
    reason = _no_metric(model, arms)
    if reason:
        return Metric(None, None, None, None, reason)
    try:
        found = theory.metric_intervals([(model, arms)], BONUSES)
    except errors.NotDetectable as error:
        return Metric(None, None, None, None, f"a steady state was not found ({error})")
    printed = {name: _ends(found[name].printed) for name in POLICIES}
    squared = {name: _ends(found[name].squared) for name in POLICIES}
    return Metric(printed, squared, _lower(printed), _lower(squared), "")


def _no_metric(model: LGDS, arms: np.ndarray) -> str:
    if len(arms) == 1:
        return "there is a single arm"
    if len(_groups(arms)[0]) == 1:
        return "all arms are the same"
    if not model.is_stable:
        return f"it needs a stationary state, and ρ(Γ) = {model.spectral_radius:.6g} is not below 1"
    k, m = len(arms), min(len(arms) - 1, model.n_states)
    # k²(k − 1) singular value decompositions of 2m × 2m matrices, measured.
    if k**3 * (8 + m**2) > LONGEST:
        return (
            f"it takes too long for {k} arms in {model.n_states} states; "
            "db.theory.metric_interval computes it"
        )
    return ""


def _ends(interval: np.ndarray) -> tuple[float, float]:
    low, high = interval[0].tolist()
    return max(0.0, low), high  # a distance, below zero by rounding


def _lower(intervals: dict[str, tuple[float, float]]) -> str | None:
    idea_high, ucb_high = intervals["idea"][1], intervals["kalman_ucb"][1]
    if idea_high == ucb_high:
        return None
    return "idea" if idea_high < ucb_high else "kalman_ucb"
