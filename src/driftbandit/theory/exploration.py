"""The value of exploration, and the arms that pure exploration plays (P7, P14, P15).

This round's reward moves the prediction to Γẑ + v ω, ω ~ N(0, 1), with v = Γ P a / √(aᵀPa + σ²).
The two-step value is this round's predicted reward plus the expected reward of the next round's
best arm. IDEA's bonus is the length of v. A schedule is the sequence of arms with the highest
bonus, regardless of their rewards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, kalman, steady_state
from driftbandit.arrays import Array, first_highest, namespace
from driftbandit.gaussian.lines import expected_highest
from driftbandit.gaussian.norms import expected_length
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, checked_arms, same_cov
from driftbandit.policies import idea
from driftbandit.policies.optimistic import Bonus
from driftbandit.system import takes_system
from driftbandit.theory import checks

TOLERANCE = 1e-9  # between covariances one period apart, as a fraction of √(P_ii P_jj)


@takes_system
def two_step_value(belief: Belief, model: LGDS, arms: Array) -> Array:
    """⟨a, ẑ⟩ + E max_b ⟨b, Γẑ + v_a ω⟩ for each arm: the exact value of two rounds (P7).

    The arms are a finite set. The next round's predictions are lines in ω, and the highest
    prediction is their upper envelope. The optimal two-step plan plays the arm with the highest
    value; `policies.lookahead` plans farther ahead. Runs under NumPy and JAX.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1).
        model: Γ, Q, σ.
        arms: k × d, one row per arm.

    Returns:
        One value per arm, k numbers.

    Example:
        >>> model = LGDS(np.eye(2), np.eye(2), reward_std=1.0, initial_cov=np.diag([1.0, 9.0]))
        >>> two_step_value(kalman.prior(model), model, np.eye(2)).round(4).tolist()
        [0.2821, 1.1354]
    """
    rows, belief = _checked(belief, model, arms)
    offsets = rows @ (model.transition @ belief.mean)
    slopes = kalman.moves(belief.cov, model, rows) @ rows.T  # row a: the slopes if a is played
    return rows @ belief.mean + expected_highest(offsets, slopes)


@takes_system
def sphere_two_step_value(belief: Belief, model: LGDS, arms: Array) -> np.ndarray:
    """⟨a, ẑ⟩ + E ‖Γẑ + v_a ω‖ for each arm, if the next arm is any unit vector (Theorem 1, P7).

    The mean length is a one-dimensional integral. It is computed up to rounding error, even if Γẑ
    and v_a are parallel, so that the length has a kink.

    Args:
        belief, model: as in `two_step_value`.
        arms: k × d, one row per arm; give unit vectors if this round's arm is also on the sphere.

    Example:
        >>> model = LGDS(np.eye(2), np.eye(2), reward_std=0.0, initial_cov=np.eye(2))
        >>> sphere_two_step_value(kalman.prior(model), model, np.eye(2)).round(6).tolist()  # √(2/π)
        [0.797885, 0.797885]
    """
    rows, belief = _checked(belief, model, arms)
    moves = kalman.moves(belief.cov, model, rows)
    ahead = model.transition @ belief.mean
    spread = np.vecdot(moves, moves)
    along = (moves @ ahead) / np.sqrt(np.where(spread > 0, spread, 1.0))
    across = np.maximum(ahead @ ahead - along**2, 0.0)
    squares = np.stack([along**2, across], axis=-1)
    variances = np.stack([spread, np.zeros_like(spread)], axis=-1)
    return np.asarray(rows @ belief.mean + expected_length(squares, variances))


@takes_system
def two_step_upper_bound(
    belief: Belief, model: LGDS, arms: Array, bonus: Bonus = idea.bonus
) -> Array:
    """⟨a, ẑ⟩ + ‖Γẑ‖ + u(a | P): Theorem 5's bound on the two-step value on the sphere (P15).

    E ‖Γẑ + v ω‖ ≤ ‖Γẑ‖ + ‖v‖ E|ω| by the triangle inequality, and E|ω| = √(2/π) < 1. With IDEA's
    u = ‖v‖, it is an upper bound on `sphere_two_step_value` for every arm, and its argmax is IDEA's
    choice.

    Args:
        belief, model, arms: as in `two_step_value`.
        bonus: u; the theorem assumes IDEA's bonus.

    Example:
        >>> model = LGDS(np.eye(2), np.eye(2), reward_std=0.0, initial_cov=np.eye(2))
        >>> two_step_upper_bound(kalman.prior(model), model, np.eye(2)).round(6).tolist()
        [1.0, 1.0]
    """
    rows, belief = _checked(belief, model, arms)
    xp, ahead = namespace(rows), model.transition @ belief.mean
    values = rows @ belief.mean + xp.sqrt(ahead @ ahead)
    if xp is np:
        return values + checks.bonuses(bonus, belief.cov, model, rows)
    return values + bonus(belief.cov, model, rows)


def _checked(belief: Belief, model: LGDS, arms: Array) -> tuple[Array, Belief]:
    """Check lists and NumPy arrays; JAX arrays, which may be traced, are not checked."""
    for array in (arms, *belief):
        if hasattr(array, "__array_namespace__") and namespace(array) is not np:
            xp = namespace(array)
            return xp.asarray(arms), Belief(*(xp.asarray(part) for part in belief))
    rows = checked_arms(arms, model)
    mean = errors.matrix(belief.mean, "belief.mean", shape=(model.n_states,))
    cov = errors.covariance(belief.cov, "belief.cov", size=model.n_states)
    return rows, Belief(mean, cov)


class Schedule(NamedTuple):
    """Row numbers of the arms to play (P14): ``opening`` once, then ``cycle`` repeatedly.

    Example:
        >>> from driftbandit.policies import kalman_ucb
        >>> model = LGDS(np.diag([0.9, 0.5]), np.eye(2), reward_std=0.5)
        >>> found = exploration_schedule(model, np.eye(2), kalman_ucb.bonus, rounds=200)
        >>> found.period, found.opening.tolist(), found.cycle.tolist()
        (2, [], [0, 1])
        >>> found.covs.shape  # of the cycle's rounds
        (2, 2, 2)
    """

    opening: np.ndarray
    cycle: np.ndarray  # empty if no period was found
    covs: np.ndarray  # P(t|t−1) of the cycle's rounds, p × d × d; the last P if there is no cycle

    @property
    def period(self) -> int | None:
        """p, the length of the cycle; None if no period was found."""
        return len(self.cycle) or None


@takes_system
def exploration_schedule(
    model: LGDS, arms: Any, bonus: Bonus, rounds: int = 2000, cov: Any = None
) -> Schedule:
    """Play a = argmax u(a | P), P ↦ g(P, a), and find the period of this sequence (Lemma 3, P14).

    The sequence is deterministic. A period p is accepted if two conditions hold: the arms repeat
    over the last max(2p, p + 64) rounds, and the last covariance equals the one p rounds
    earlier, to a relative 10⁻⁹.

    Args:
        model: Γ, Q, σ.
        arms: k × d, one row per arm.
        bonus: u, for example ``policies.kalman_ucb.bonus``.
        rounds: how many rounds to play.
        cov: the first P; by default, the prior's.

    Returns:
        The arms before the cycle, the cycle, and its covariances.

    Raises:
        NotDetectable: the covariance overflows, because the explored arms miss a growing mode.

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
                f"arms: after {t + 1} rounds the covariance overflows, because the explored arms "
                "do not observe a growing mode; give fewer rounds, or add an arm that observes it"
            )
    covs[rounds] = P
    period = _period(played, covs)
    if period is None:
        return Schedule(played, played[:0], covs[rounds:])
    differs = np.flatnonzero(played[period:] != played[:-period])
    start = int(differs[-1]) + 1 if differs.size else 0
    last = rounds - period  # the cycle's covariances are those of the last period
    cycle = np.roll(covs[last:rounds], -((start - last) % period), axis=0)
    return Schedule(played[:start], played[start : start + period], cycle)


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
def no_arm_is_explored_forever(model: LGDS, arms: Any, bonus: Bonus) -> bool:
    """Lemma 3's condition: for every arm a, another arm a′ has u(a′ | P_a) ≥ u(a | P_a) (P14).

    Under this condition, exploration cannot stay with one arm forever, unless bonuses tie (as those
    of a and −a always do). The lemma concludes that every arm is explored infinitely often. That
    does not follow: two arms can alternate while a third is never played.

    Args:
        model, arms, bonus: as in `exploration_schedule`. Every arm must observe every growing mode.

    Example:
        >>> from driftbandit.policies import kalman_ucb
        >>> model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=0.5)
        >>> no_arm_is_explored_forever(model, np.eye(2), kalman_ucb.bonus)
        True
    """
    rows = checked_arms(arms, model)
    covs = steady_state.prediction_covs(model, rows)
    u = np.array([checks.bonuses(bonus, P, model, rows) for P in covs])
    return all((np.delete(row, arm) >= row[arm]).any() for arm, row in enumerate(u))
