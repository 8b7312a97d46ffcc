"""Exploration alone: the arms a bonus would have played if rewards did not count (P14)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, kalman, steady_state
from driftbandit.arrays import first_highest
from driftbandit.model import LGDS, checked_arms, same_cov
from driftbandit.policies.optimistic import Bonus
from driftbandit.system import takes_system
from driftbandit.theory import checks

__all__ = ["Schedule", "every_arm_is_left", "exploration_schedule"]

TOLERANCE = 1e-9
"""Covariances one period apart differ by at most this share of √(P_ii P_jj)."""


class Schedule(NamedTuple):
    """Arms by row: first ``opening``, then ``cycle`` again and again."""

    opening: np.ndarray
    cycle: np.ndarray
    """Empty where no period was found."""
    covs: np.ndarray
    """P(t|t−1) of the cycle's rounds, p × d × d; without a cycle the last one, 1 × d × d."""

    @property
    def period(self) -> int | None:
        """p, the length of the cycle; None where none was found."""
        return len(self.cycle) or None


@takes_system
def exploration_schedule(
    model: LGDS, arms: Any, bonus: Bonus, rounds: int = 2000, cov: Any = None
) -> Schedule:
    """Play a = argmax u(a | P), P ↦ g(P, a), and find the period it settles to (Lemma 3, P14).

    The path is deterministic. A period p counts if over the last 2p rounds and at least p + 64 of
    them the arms repeat, and the covariance is back where it was a period before, to 10⁻⁹.

    Args:
        model: Γ, Q, σ.
        arms: k × d.
        bonus: u, as ``policies.kalman_ucb.bonus``.
        rounds: how long to look.
        cov: P to start from; None: what is known before the first reward.

    Returns:
        `Schedule`.

    Example:
        >>> from driftbandit.policies import kalman_ucb
        >>> model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=0.5)
        >>> found = exploration_schedule(model, np.eye(2), kalman_ucb.bonus)
        >>> found.cycle.tolist(), found.period
        ([0, 1], 2)
    """
    rows = checked_arms(arms, model)
    rounds = errors.whole_number(rounds, "rounds", low=1, high=10**6)
    P = model.start_cov() if cov is None else errors.covariance(cov, "cov", size=model.n_states)
    played = np.empty(rounds, int)
    covs = np.empty((rounds + 1, model.n_states, model.n_states))
    for t in range(rounds):
        covs[t] = P
        played[t] = first_highest(checks.bonuses(bonus, P, model, rows))
        with np.errstate(over="ignore", invalid="ignore"):
            P = kalman.riccati_step(P, model, rows[played[t]])
        if not np.isfinite(P).all():
            raise errors.NotDetectable(
                f"arms: after {t + 1} rounds the error is beyond any number: what is explored "
                "does not show a mode that grows; give fewer rounds, or an arm that reads it"
            )
    covs[rounds] = P
    period = _period(played, covs)
    if period is None:
        return Schedule(played, played[:0], covs[rounds:])
    differs = np.flatnonzero(played[period:] != played[:-period])
    start = int(differs[-1]) + 1 if differs.size else 0
    last = rounds - period  # the cycle's covariances are those of the last period
    turn = (start - last) % period
    return Schedule(
        played[:start], played[start : start + period], np.roll(covs[last:rounds], -turn, axis=0)
    )


def _period(played: np.ndarray, covs: np.ndarray) -> int | None:
    rounds = len(played)
    for period in range(1, rounds):
        checked = max(2 * period, period + 64)
        if checked > rounds:
            return None
        tail = played[rounds - checked :]
        back = same_cov(covs[-1], covs[-1 - period], TOLERANCE)
        if back and (tail[period:] == tail[:-period]).all():
            return period
    return None


@takes_system
def every_arm_is_left(model: LGDS, arms: Any, bonus: Bonus) -> bool:
    """Lemma 3's condition: for every arm a another one has u(a′ | P_a) ≥ u(a | P_a) (P14).

    No arm can then be explored forever, unless bonuses tie, as those of a and −a always do. The
    lemma concludes that every arm is explored, again and again; that does not follow, since two
    arms can take turns while a third is never played.

    Args:
        model: Γ, Q, σ.
        arms: k × d; each must detect every growing mode.
        bonus: u, as ``policies.kalman_ucb.bonus``.

    Example:
        >>> from driftbandit.policies import kalman_ucb
        >>> model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=0.5)
        >>> every_arm_is_left(model, np.eye(2), kalman_ucb.bonus)
        True
    """
    rows = checked_arms(arms, model)
    for number, P in enumerate(steady_state.prediction_covs(model, rows)):
        u = checks.bonuses(bonus, P, model, rows)
        if not (np.delete(u, number) >= u[number]).any():
            return False
    return True
