"""What a policy cannot exceed: Theorem 4 on every path (P12), Theorem 6 as printed (P18)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors, kalman
from driftbandit.arrays import Array, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies.optimistic import Bonus
from driftbandit.system import takes_system
from driftbandit.theory import checks

__all__ = ["RegretBound", "path_upper_bound", "round_upper_bound", "ucb_upper_bound"]


class RegretBound(NamedTuple):
    """A round's regret and what it cannot exceed; or those of n rounds, each an array."""

    regret: Array
    """⟨a* − a, z⟩."""
    bound: Array
    """u(a) − u(a*) + (‖a‖ + ‖a*‖) ‖e‖, which for unit arms is the paper's, with 2 ‖e‖."""
    sharp: Array
    """u(a) − u(a*) + ⟨a* − a, e⟩, before lengths are taken."""


@takes_system
def round_upper_bound(
    belief: Belief, state: Array, model: LGDS, arms: Array, bonus: Bonus
) -> RegretBound:
    """What a = argmax ⟨a, ẑ⟩ + u(a | P) loses in one round, and at most (Theorem 4, P12).

    With e = z − ẑ, a the arm that is played and a* the best one: ⟨a*, ẑ⟩ + u(a*) ≤ ⟨a, ẑ⟩ + u(a),
    so ⟨a* − a, z⟩ ≤ u(a) − u(a*) + ⟨a* − a, e⟩. Holds on every path, whatever ẑ and P are.
    Written against the array API: `jax.vmap` makes it that of many paths.

    Args:
        belief: ẑ(t|t−1) and P(t|t−1).
        state: z(t), d numbers.
        model: Γ, Q, σ.
        arms: k × d, of any length.
        bonus: u, as ``policies.idea.bonus``.

    Example:
        >>> from driftbandit.policies import kode
        >>> model = LGDS([[0.5]], [[1.0]], reward_std=1.0)
        >>> arms = np.array([[1.0], [-1.0]])
        >>> start, state = kalman.prior(model), np.array([-2.0])
        >>> [float(v) for v in round_upper_bound(start, state, model, arms, kode.bonus)]
        [4.0, 4.0, 4.0]
    """
    xp = namespace(arms)
    u = bonus(belief.cov, model, arms)
    rewards = arms @ state
    played = xp.argmax(arms @ belief.mean + u)
    best = xp.argmax(rewards)
    error = state - belief.mean
    lengths = xp.sqrt(xp.vecdot(arms, arms))
    lead = u[played] - u[best]
    return RegretBound(
        rewards[best] - rewards[played],
        lead + (lengths[played] + lengths[best]) * xp.sqrt(error @ error),
        lead + (arms[best] - arms[played]) @ error,
    )


@takes_system
def path_upper_bound(
    model: LGDS, arms: Any, bonus: Bonus, states: Any, rewards: Any
) -> RegretBound:
    """Theorem 4 along one path: every round's regret and bound; their sums are R_n and its (P12).

    Args:
        model: Γ, Q, σ.
        arms: k × d.
        bonus: u, as ``policies.idea.bonus``.
        states: z(0) … z(n−1), n × d.
        rewards: n × k, what each arm would pay in each round; only the played one's is looked at.

    Returns:
        `RegretBound` of n numbers each.

    Example:
        >>> from driftbandit.policies import idea
        >>> model = LGDS([[0.5]], [[1.0]], reward_std=1.0)
        >>> found = path_upper_bound(model, [[1.0], [-1.0]], idea.bonus, [[-2.0], [1.0]], np.eye(2))
        >>> bool(found.regret.sum() <= found.sharp.sum() <= found.bound.sum())
        True
    """
    rows = checked_arms(arms, model)
    states = errors.matrix(states, "states", shape=(None, model.n_states))
    rewards = errors.matrix(rewards, "rewards", shape=(len(states), len(rows)))
    belief = kalman.prior(model)
    found = []
    for state, payoffs in zip(states, rewards, strict=True):
        found.append(round_upper_bound(belief, state, model, rows, bonus))
        played = int(np.argmax(rows @ belief.mean + bonus(belief.cov, model, rows)))
        belief = kalman.step(belief, model, rows[played], payoffs[played])
    return RegretBound(*(np.array(values) for values in zip(*found, strict=True)))


@takes_system
def ucb_upper_bound(model: LGDS, arms: Any, rounds: int, delta: float = 0.05) -> float:
    """Theorem 6's number for R_n of UCB and sliding-window UCB, as printed (P18).

        max_a √((3n² + n + 1) aᵀ Z a log(1/δ)),   with probability 1 − δ

    **Not a bound** in general: its proof holds each round's ⟨a, z⟩ below √(2 aᵀZa log(1/δ)) with
    one δ for all rounds, and drops the 2, a square of 3 and the n of the Cauchy–Schwarz
    inequality on the way. Arms whose best is typically above √(3 aᵀZa log(1/δ)), many arms or a δ
    near one, exceed it on nearly every run. It grows like n, as any policy's regret does here.

    Args:
        model: Γ, Q, σ; without known constants other than zero, which the proof does not bound.
        arms: k × d.
        rounds: n.
        delta: δ, in (0, 1).

    Example:
        >>> model = LGDS([[0.5]], [[0.75]], reward_std=1.0)
        >>> round(ucb_upper_bound(model, [[1.0]], rounds=10, delta=math.exp(-1)), 6) == round(
        ...     math.sqrt(311), 6
        ... )
        True
    """
    rows = checked_arms(arms, model)
    checks.check_no_offsets(model, "leave the constant out")
    n = errors.whole_number(rounds, "rounds", low=1)
    delta = errors.number(delta, "delta", low=0, high=1, strict=True)
    cov = model.settled_cov(n)
    if not np.isfinite(cov).all():
        raise errors.InvalidInput(
            "rounds", f"is {n}", "the state outgrows the largest number by then; give fewer"
        )
    spread = float(np.vecdot(rows @ cov, rows).max())
    return math.sqrt((3 * n**2 + n + 1) * spread * math.log(1 / delta))
