"""The value of two rounds: this one's reward, and the best choice next round knowing it (P7, P15).

This round's reward moves the prediction to Γẑ + v ω, ω ~ N(0, 1), with

    v = Γ P a / √(aᵀPa + σ²),

whose length is IDEA's bonus. What the best arm of the next round is then worth, on average, is
where exploration pays.
"""

from __future__ import annotations

import numpy as np

from driftbandit import errors, kalman
from driftbandit.arrays import Array, namespace
from driftbandit.gaussian.lines import expected_highest
from driftbandit.gaussian.normal import expected_length
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies import idea
from driftbandit.policies.optimistic import Bonus
from driftbandit.system import takes_system
from driftbandit.theory import checks

__all__ = ["sphere_two_step_value", "two_step_upper_bound", "two_step_value"]


@takes_system
def two_step_value(belief: Belief, model: LGDS, arms: Array) -> Array:
    """⟨a, ẑ⟩ + E max_b ⟨b, Γẑ + v_a ω⟩ of each arm: two rounds on a finite set, exactly (P7).

    Next round's predictions are lines in ω, the best one's their upper envelope (`envelope`).
    Runs under NumPy and JAX. `policies.lookahead` looks farther.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1).
        model: Γ, Q, σ.
        arms: k × d.

    Returns:
        k values; the two-step plan plays their argmax.

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
    """⟨a, ẑ⟩ + E ‖Γẑ + v_a ω‖ of each given arm: two rounds where next round's is any unit vector.

    Theorem 1 (P7). The mean length is a one-dimensional integral, exact to rounding, also where
    Γẑ and v_a are in line and the length has a kink.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1).
        model: Γ, Q, σ.
        arms: k × d; unit vectors if they are to lie on the sphere themselves.

    Returns:
        k values.

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
    """⟨a, ẑ⟩ + ‖Γẑ‖ + u(a | P): Theorem 5's bound of the two-step value on the sphere (P15).

    E ‖Γẑ + v ω‖ ≤ ‖Γẑ‖ + ‖v‖ E|ω| by the triangle inequality, and E|ω| = √(2/π) < 1; with IDEA's
    u = ‖v‖ it bounds `sphere_two_step_value` arm by arm, and its argmax is IDEA's choice.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1).
        model: Γ, Q, σ.
        arms: k × d.
        bonus: u; the theorem is about IDEA's.

    Returns:
        k values.

    Example:
        >>> model = LGDS(np.eye(2), np.eye(2), reward_std=0.0, initial_cov=np.eye(2))
        >>> two_step_upper_bound(kalman.prior(model), model, np.eye(2)).round(6).tolist()
        [1.0, 1.0]
    """
    rows, belief = _checked(belief, model, arms)
    ahead = model.transition @ belief.mean
    length = namespace(ahead).sqrt(ahead @ ahead)
    values = rows @ belief.mean + length
    if namespace(rows) is np:
        return values + checks.bonuses(bonus, belief.cov, model, rows)
    return values + bonus(belief.cov, model, rows)


def _checked(belief: Belief, model: LGDS, arms: Array) -> tuple[Array, Belief]:
    """Lists become arrays and are checked; arrays of another library are taken as they are."""
    for array in (arms, *belief):
        if hasattr(array, "__array_namespace__") and namespace(array) is not np:
            xp = namespace(array)
            return xp.asarray(arms), Belief(*(xp.asarray(part) for part in belief))
    rows = checked_arms(arms, model)
    mean = errors.matrix(belief.mean, "belief.mean", shape=(model.n_states,))
    cov = errors.covariance(belief.cov, "belief.cov", size=model.n_states)
    return rows, Belief(mean, cov)
