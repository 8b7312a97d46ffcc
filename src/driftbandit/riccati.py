"""The solver behind `steady_state`: Riccati equations, many at once.

    P = Γ P Γᵀ + Q − Γ P Cᵀ (C P Cᵀ + σ² I)⁻¹ C P Γᵀ,   C the arms that are seen (P9)

Systems are stacks with a leading axis n; one system is a stack of one. Where every mode dies out,
the recursion is followed by doubling: k doublings are 2^k rounds. What this leaves open (modes
that do not die out, a singular Q without noise) is settled one by one: by SciPy, by doubling with
more patience, and where σ = 0 defeats these too, by the limit of small σ. A solution counts only
if it passes the checks of `_steady_gains`.

Known constants are left out: nothing about them is in doubt, and what is found is zero there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

from driftbandit import errors
from driftbandit.model import LGDS

__all__ = ["Stack", "next_round", "sees_growth", "settled"]

TOLERANCE = 1e-9
"""A solution must reproduce itself under one more round to this share of its largest entry."""
UNIT_CIRCLE = 1e-9
"""Eigenvalues with modulus above 1 − this must be seen."""
NEWS = 1e-12
"""A reward with less than this share of its variance left open is known: the rest is rounding."""
EPSILON = float(np.finfo(float).eps)
STACK = 1 << 17
"""Entries of a stack of d × d matrices: few enough for the memory, enough to amortize a call."""


def _dies_out(model: LGDS) -> bool:
    return model.spectral_radius < 1 - UNIT_CIRCLE


def sees_growth(model: LGDS, seen: np.ndarray) -> bool:
    """Whether every mode that does not die out shows in the rewards of ``seen``, m × d.

    Popov–Belevitch–Hautus: [λI − Γ; C] keeps full column rank for every λ with |λ| ≥ 1. Γ and C
    are those of what moves.
    """
    if _dies_out(model):
        return True
    told = seen[seen.any(axis=1)]
    rows = told / np.linalg.norm(told, axis=1, keepdims=True)
    transition = model.moving.transition
    for value in np.linalg.eigvals(transition):
        if abs(value) < 1 - UNIT_CIRCLE:
            continue
        pencil = np.vstack([value * np.eye(model.n_states) - transition, rows])
        singular = np.linalg.svd(pencil, compute_uv=False)
        if singular[-1] <= 1e-9 * singular[0]:
            return False
    return True


class Stack(NamedTuple):
    """n systems, or what moves in them, and the arms seen in each."""

    transition: np.ndarray
    """Γ, n × d × d."""
    process_cov: np.ndarray
    """Q, n × d × d."""
    variance: np.ndarray
    """σ², n × 1 × 1."""
    seen: np.ndarray
    """C, n × m × d."""

    @classmethod
    def of(cls, models: Sequence[LGDS], seen: np.ndarray) -> Stack:
        """The stack of what moves in these models, as many states in each, and the arms seen."""
        moving = _moving(models)
        rows, columns = moving[:, :, None], moving[:, None, :]
        system = np.arange(len(models))[:, None, None]
        # Strides of its own: BLAS must go the same way in any stack.
        return cls(
            np.stack([model.transition for model in models])[system, rows, columns],
            np.stack([model.process_cov for model in models])[system, rows, columns],
            np.array([model.reward_std**2 for model in models])[:, None, None],
            np.array(np.take_along_axis(seen, columns, axis=2), order="C"),
        )

    def at(self, members: Any) -> Stack:
        """The systems with these numbers, or where this mask is true."""
        return Stack(*(field[members] for field in self))


def _moving(models: Sequence[LGDS]) -> np.ndarray:
    """The numbers of the states that move, one row for each model."""
    return np.stack([np.flatnonzero(~model.constants) for model in models])


def _transposed(matrices: np.ndarray) -> np.ndarray:
    return matrices.swapaxes(-1, -2)


def _symmetric(matrices: np.ndarray) -> np.ndarray:
    return 0.5 * (matrices + _transposed(matrices))


def _largest(matrices: np.ndarray) -> np.ndarray:
    return np.abs(matrices).max(axis=(1, 2))


def settled(
    models: Sequence[LGDS], seen: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The steady covariances and the gains that keep them, n × d × d and n × d × m.

    Arms must not read known constants (`LGDS.without_offsets`).
    """
    n, m, d = seen.shape
    covs, gains = np.zeros((n, d, d)), np.zeros((n, d, m))
    size = max(1, STACK // d**2)
    counts = np.array([np.count_nonzero(~model.constants) for model in models])
    for count in np.unique(counts[counts > 0]):
        alike = np.flatnonzero(counts == count)
        for part in np.split(alike, range(size, len(alike), size)):
            chosen = [models[i] for i in part]
            found = _settled_stack(chosen, seen[part], [names[i] for i in part])
            moving = _moving(chosen)
            covs[part[:, None, None], moving[:, :, None], moving[:, None, :]] = found[0]
            gains[part[:, None], moving] = found[1]
    return covs, gains


def _settled_stack(
    models: Sequence[LGDS], seen: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """`settled`, all at once.

    Every operation acts on each matrix of a stack by itself, so that a system's numbers do not
    depend on what is solved beside it.
    """
    for model, arms, name in zip(models, seen, names, strict=True):
        if not sees_growth(model, arms):
            raise errors.NotDetectable(
                f"{name}: a mode of the transition that does not die out (spectral radius "
                f"{model.spectral_radius:.6g}) never shows in the rewards, so the error grows "
                "forever; play an arm, or a set of arms, that reads it"
            )
    stack = Stack.of(models, seen)
    covs = np.full_like(stack.process_cov, np.nan)
    # From no doubt the right solution is reached if what Q leaves alone dies out by itself.
    fading = np.array([_dies_out(model) for model in models])
    with np.errstate(over="ignore", invalid="ignore"):  # beyond any number: the checks see it
        _check_sizes(stack, names)
        if fading.any():
            covs[fading] = _refined(_by_doubling(stack.at(fading)), stack.at(fading))
        gains, steady = _steady_gains(covs, stack)
        for i in np.flatnonzero(~steady).tolist():
            covs[i], gains[i] = _settled_slowly(stack.at([i]), names[i])
    return covs, gains


def _check_sizes(stack: Stack, names: Sequence[str]) -> None:
    shocks = np.vecdot(stack.seen @ stack.process_cov, stack.seen)
    for i in np.flatnonzero(~np.isfinite(shocks).all(axis=1)).tolist():
        raise errors.InvalidInput(
            names[i],
            "the rewards' variance is beyond the largest number",
            "measure the rewards in a larger unit",
        )


def _by_doubling(stack: Stack) -> np.ndarray:
    """Follow what is in doubt just after the rewards, from none, and let one more round pass.

        P ↦ L Q + L Γ P (I + Γᵀ J Γ P)⁻¹ Γᵀ Lᵀ,   J = Cᵀ (C Q Cᵀ + σ² I)⁺ C,   L = I − Q J

    The rewards read the last shock, which leaves L of it, and what they say of the state before
    is blurred by it; so σ may be small or zero. Where σ = 0, arms of rank d leave nothing.
    """
    G, Q, C = stack.transition, stack.process_cov, stack.seen
    _, m, d = C.shape
    spread = C @ Q @ _transposed(C) + stack.variance * np.eye(m)
    J = _transposed(C) @ np.linalg.pinv(spread, rcond=NEWS, hermitian=True) @ C
    L = np.eye(d) - Q @ J
    if m >= d:
        exact = stack.variance[:, 0, 0] == 0
        exact[exact] = np.linalg.matrix_rank(C[exact]) == d
        L[exact] = 0
    told = _symmetric(_transposed(G) @ J @ G)
    doubt = _until_still(_riccati_twice, _transposed(L @ G), told, _symmetric(L @ Q))
    return _symmetric(G @ doubt @ _transposed(G)) + Q


def _refined(covs: np.ndarray, stack: Stack) -> np.ndarray:
    """Newton's method: gives back the digits that ill-conditioned systems cost `_by_doubling`."""
    # A step about squares the error.
    return _until_still(_newton, *stack, covs, tolerance=1e-12, fading=False)


def _newton(
    G: np.ndarray, Q: np.ndarray, variance: np.ndarray, C: np.ndarray, covs: np.ndarray
) -> tuple[np.ndarray, ...]:
    """One step (Kleinman 1968): where the gain K of ``covs`` leads if it is kept.

    P = Φ P Φᵀ + σ² Γ K Kᵀ Γᵀ + Q,   Φ = Γ − Γ K C
    """
    stack = Stack(G, Q, variance, C)
    moved = G @ _fold(covs, stack)[1]
    shocks = variance * (moved @ _transposed(moved)) + Q
    return *stack, _until_still(_lyapunov_twice, G - moved @ C, shocks)


def _until_still(
    advance: Callable[..., tuple[np.ndarray, ...]],
    *stacks: np.ndarray,
    tolerance: float = EPSILON,
    fading: bool = True,
) -> np.ndarray:
    """Advance ``stacks`` until the last of them stands still, each of its matrices by itself.

    ``fading``: and until the first, a power, has died out; else states in small units, or reached
    late, would be left out.
    """
    ends = stacks[-1].copy()
    moving = np.arange(len(ends))
    for _ in range(64):
        before, stacks = stacks[-1], advance(*stacks)
        ends[moving] = stacks[-1]
        # False also for what is no number any more.
        going = _largest(stacks[-1] - before) > tolerance * _largest(stacks[-1])
        if fading:
            going |= _largest(stacks[0]) ** 2 > EPSILON
        moving, stacks = moving[going], tuple(matrices[going] for matrices in stacks)
        if not moving.size:
            break
    return ends


def _riccati_twice(A: np.ndarray, G: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, ...]:
    """The map P ↦ H + Aᵀ P (I + G P)⁻¹ A, twice (structure-preserving doubling, Anderson 1978).

    After k calls it is that of 2^k rounds, and H what these make of P = 0.
    """
    d = H.shape[1]
    W = _solutions(np.eye(d) + G @ H, np.concatenate([A, G], axis=2))
    V1, V2, At = W[:, :, :d], W[:, :, d:], _transposed(A)
    return A @ V1, G + _symmetric(A @ V2 @ At), H + _symmetric(At @ H @ V1)


def _lyapunov_twice(A: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, ...]:
    """The map P ↦ H + A P Aᵀ, twice (Smith 1968)."""
    return A @ A, H + _symmetric(A @ H @ _transposed(A))


def _solutions(matrices: np.ndarray, sides: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrices, sides)
    except np.linalg.LinAlgError:  # one singular matrix must not spoil the others
        if len(matrices) == 1:
            return np.full_like(sides, np.nan)
        pairs = zip(matrices, sides, strict=True)
        return np.concatenate([_solutions(one[None], side[None]) for one, side in pairs])


def _fold(covs: np.ndarray, stack: Stack) -> tuple[np.ndarray, np.ndarray]:
    """Fold one reward of every arm in: the covariances after it, and the n × d × m gains."""
    seen = stack.seen
    n, m, d = seen.shape
    gains = np.zeros((n, d, m))
    floor = NEWS * np.vecdot(seen @ covs, seen)
    for i in range(m):
        row = seen[:, i : i + 1]
        cross = covs @ _transposed(row)
        variance = row @ cross + stack.variance
        variance[variance <= floor[:, i, None, None]] = np.inf
        weight = cross / variance
        gains -= weight @ (row @ gains)
        gains[:, :, i] += weight[:, :, 0]
        covs = _symmetric(covs - weight @ _transposed(cross))
    return covs, gains


def next_round(covs: np.ndarray, stack: Stack) -> np.ndarray:
    """The covariances one round later, all rewards of the stack's arms seen."""
    folded, _ = _fold(covs, stack)
    after = stack.transition @ folded @ _transposed(stack.transition)
    return _symmetric(after) + stack.process_cov


def _steady_gains(covs: np.ndarray, stack: Stack) -> tuple[np.ndarray, np.ndarray]:
    """The gains of ``covs``, and which of these reproduce themselves, are semidefinite and stay.

    The last part, an error that does not grow, matters where Q leaves a growing mode alone: P = 0
    there solves the equation too, but no filter that starts with any doubt ends there.
    """
    steady = np.isfinite(covs).all(axis=(1, 2))
    covs = np.where(steady[:, None, None], covs, 0)
    scale = np.maximum(_largest(covs), np.finfo(float).tiny)
    steady &= np.linalg.eigvalsh(covs)[:, 0] >= -TOLERANCE * scale
    G = stack.transition
    folded, gains = _fold(covs, stack)
    # What the products below lose to rounding, which a Γ far from normal makes large.
    rounding = 100 * EPSILON * _largest(np.abs(G) @ np.abs(covs) @ np.abs(_transposed(G)))
    error = _largest(G @ folded @ _transposed(G) + stack.process_cov - covs)
    steady &= error <= TOLERANCE * scale + rounding
    closed = np.where(steady[:, None, None], G - G @ gains @ stack.seen, 0)
    steady &= np.abs(np.linalg.eigvals(closed)).max(axis=1) <= 1 + 1e-6
    return gains, steady


def _settled_slowly(stack: Stack, name: str) -> tuple[np.ndarray, np.ndarray]:
    """One system that is hard, as a stack of one: several ways, until one passes the checks."""
    limit = _nearly_noiseless(stack)
    for system, solve in (
        (stack, _by_scipy),
        (stack, _by_patient_doubling),
        (limit, _by_scipy),
        (limit, _by_patient_doubling),
        (stack, _by_recursion),
        (limit, _by_recursion),
    ):
        covs = solve(system)
        gains, steady = _steady_gains(covs, system)
        if steady[0]:
            return covs[0], gains[0]
    raise errors.NotDetectable(f"{name}: the Riccati recursion did not settle")


def _nearly_noiseless(stack: Stack) -> Stack:
    """σ = 0 read as the limit of small σ.

    Without any noise a singular covariance leaves the gain open where nothing is in doubt, and
    the one at hand may let a first error grow; the limit's gain does not.
    """
    size = np.vecdot(stack.seen @ stack.process_cov, stack.seen).max()
    size = size or np.vecdot(stack.seen, stack.seen).max()
    return stack._replace(variance=np.maximum(stack.variance, 1e-12 * size))


def _by_scipy(stack: Stack) -> np.ndarray:
    (G,), (Q,), (variance,), (seen,) = stack
    told = seen[seen.any(axis=1)]
    try:
        cov = scipy.linalg.solve_discrete_are(G.T, told.T, Q, variance * np.eye(len(told)))
    except (np.linalg.LinAlgError, ValueError):
        return np.full((1, *Q.shape), np.nan)
    return _symmetric(np.asarray(cov)[None])


def _by_patient_doubling(stack: Stack) -> np.ndarray:
    """Doubling, made semidefinite and followed by 50 plain rounds.

    In these, what a marginal mode's rounding left in the others dies out.
    """
    covs = _by_doubling(stack)
    if stack.variance == 0 or not np.isfinite(covs).all():
        return np.full_like(covs, np.nan)
    values, vectors = np.linalg.eigh(covs)
    covs = (vectors * np.maximum(values, 0)[:, None]) @ _transposed(vectors)
    for _ in range(50):
        covs = next_round(covs, stack)
    return covs


def _by_recursion(stack: Stack) -> np.ndarray:
    """Follow the recursion itself, from more doubt than there can be."""
    Q = stack.process_cov
    covs = Q + np.eye(Q.shape[1]) * max(np.trace(Q[0]), 1.0)
    for _ in range(20_000):
        before, covs = covs, next_round(covs, stack)
        if not np.abs(covs - before).max() > 1e-13 * np.abs(covs).max():
            break
    return covs
