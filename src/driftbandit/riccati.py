"""Riccati equations of many systems at once: the solver behind `steady_state`.

    P = Γ P Γᵀ + Q − Γ P Cᵀ (C P Cᵀ + σ² I)⁻¹ C P Γᵀ,   C the observed arms (P9)

Systems are stacked along a leading axis n. If all modes decay, the recursion is followed by
doubling: k doublings are 2^k rounds. The remaining systems (modes that do not decay, singular Q
without noise) are solved one by one: by SciPy, by slower doubling, and if σ = 0 defeats both, by
the limit of small σ. Every solution must pass the checks of `_steady_gains`. Known constants are
left out: their part of P is zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

from driftbandit import errors
from driftbandit.model import LGDS

TOLERANCE = 1e-9
"""A solution must reproduce itself after one round, to this share of its largest entry."""
UNIT_CIRCLE = 1e-9  # eigenvalues with modulus above 1 − this must be detectable
NEWS = 1e-12
"""A reward is known if less than this share of its variance is left; the rest is rounding."""
EPSILON = float(np.finfo(float).eps)
STACK = 1 << 17
"""Entries of a stack of d × d matrices: few enough for the cache, enough to amortize a call."""


def _decays(model: LGDS) -> bool:
    return model.spectral_radius < 1 - UNIT_CIRCLE


def detects(model: LGDS, seen: np.ndarray) -> bool:
    """Whether the rewards of the arms ``seen``, m × d, show every mode that does not decay.

    Popov–Belevitch–Hautus test on the moving states: [λI − Γ; C] has full column rank for every λ
    with |λ| ≥ 1.
    """
    if _decays(model):
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
    """The moving states of n systems, and the arms observed in each."""

    transition: np.ndarray  # Γ, n × d × d
    process_cov: np.ndarray  # Q, n × d × d
    variance: np.ndarray  # σ², n × 1 × 1
    seen: np.ndarray  # C, n × m × d

    @classmethod
    def of(cls, models: Sequence[LGDS], seen: np.ndarray) -> Stack:
        """Stack the moving states of these models, of which all have the same number."""
        moving = _moving(constants_of(models))
        rows, columns = moving[:, :, None], moving[:, None, :]
        system = np.arange(len(models))[:, None, None]
        # Fresh arrays: with other strides BLAS may round differently.
        return cls(
            np.stack([model.transition for model in models])[system, rows, columns],
            np.stack([model.process_cov for model in models])[system, rows, columns],
            np.array([model.reward_std**2 for model in models])[:, None, None],
            np.array(np.take_along_axis(seen, columns, axis=2), order="C"),
        )

    def at(self, members: Any) -> Stack:
        """The systems with these indices, or where this mask is true."""
        return Stack(*(field[members] for field in self))


def constants_of(models: Sequence[LGDS]) -> np.ndarray:
    """Which states are known constants, n × d."""
    return np.stack([model.constants for model in models])


def _moving(constants: np.ndarray) -> np.ndarray:
    """The indices of the moving states, of which each row has equally many."""
    return np.nonzero(~constants)[1].reshape(len(constants), -1)


def _symmetric(matrices: np.ndarray) -> np.ndarray:
    return 0.5 * (matrices + matrices.mT)


def _largest(matrices: np.ndarray) -> np.ndarray:
    return np.abs(matrices).max(axis=(1, 2))


def settled(
    models: Sequence[LGDS], seen: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The steady covariances, n × d × d, and their gains, n × d × m.

    Arms must be zero at known constants (`LGDS.without_offsets`).
    """
    n, m, d = seen.shape
    covs, gains = np.zeros((n, d, d)), np.zeros((n, d, m))
    size = max(1, STACK // d**2)
    constants = constants_of(models)
    counts = (~constants).sum(axis=1)
    for count in np.unique(counts[counts > 0]):
        alike = np.flatnonzero(counts == count)
        for part in np.split(alike, range(size, len(alike), size)):
            places = part.tolist()
            chosen = [models[i] for i in places]
            found = _settled_stack(chosen, seen[part], [names[i] for i in places])
            moving = _moving(constants[part])
            covs[part[:, None, None], moving[:, :, None], moving[:, None, :]] = found[0]
            gains[part[:, None], moving] = found[1]
    return covs, gains


def _settled_stack(
    models: Sequence[LGDS], seen: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """`settled` for one stack; a system's numbers do not depend on the rest of the stack."""
    for model, arms, name in zip(models, seen, names, strict=True):
        if not detects(model, arms):
            raise errors.NotDetectable(
                f"{name}: a mode of the transition that does not decay (spectral radius "
                f"{model.spectral_radius:.6g}) never shows in the rewards, so the error grows "
                "without limit; add an arm that reads it"
            )
    stack = Stack.of(models, seen)
    covs = np.full_like(stack.process_cov, np.nan)
    # Starting from P = 0 finds the right solution if the modes that Q does not excite decay.
    fading = np.array([_decays(model) for model in models])
    with np.errstate(over="ignore", invalid="ignore"):  # overflow fails the checks
        shocks = np.vecdot(stack.seen @ stack.process_cov, stack.seen)
        for i in np.flatnonzero(~np.isfinite(shocks).all(axis=1)).tolist():
            problem = "the variance of the rewards overflows"
            raise errors.InvalidInput(names[i], problem, "measure the rewards in a larger unit")
        if fading.any():
            part = stack.at(fading)
            # Newton's method restores digits that ill-conditioned systems lose by doubling; each
            # step roughly squares the error.
            start = _by_doubling(part)
            covs[fading] = _until_still(_newton, *part, start, tolerance=1e-12, fading=False)
        gains, steady = _steady_gains(covs, stack)
        for i in np.flatnonzero(~steady).tolist():
            covs[i], gains[i] = _settled_slowly(stack.at([i]), names[i])
    return covs, gains


def _by_doubling(stack: Stack) -> np.ndarray:
    """Follow the covariance just after the rewards, from zero, and predict one more round."""
    # P ↦ L Q + L Γ P (I + Γᵀ J Γ P)⁻¹ Γᵀ Lᵀ,   J = Cᵀ (C Q Cᵀ + σ² I)⁺ C,   L = I − Q J
    # The rewards read the last shock and leave L of it, so that σ may be small or zero. If σ = 0,
    # arms of rank d leave nothing.
    G, Q, C = stack.transition, stack.process_cov, stack.seen
    _, m, d = C.shape
    spread = C @ Q @ C.mT + stack.variance * np.eye(m)
    J = C.mT @ np.linalg.pinv(spread, rcond=NEWS, hermitian=True) @ C
    L = np.eye(d) - Q @ J
    if m >= d:
        exact = stack.variance[:, 0, 0] == 0
        exact[exact] = np.linalg.matrix_rank(C[exact]) == d
        L[exact] = 0
    told = _symmetric(G.mT @ J @ G)
    doubt = _until_still(_riccati_twice, (L @ G).mT, told, _symmetric(L @ Q))
    return _symmetric(G @ doubt @ G.mT) + Q


def _newton(
    G: np.ndarray, Q: np.ndarray, variance: np.ndarray, C: np.ndarray, covs: np.ndarray
) -> tuple[np.ndarray, ...]:
    """One step (Kleinman 1968): the covariance if the gain K of ``covs`` is kept."""
    # P = Φ P Φᵀ + σ² Γ K Kᵀ Γᵀ + Q,   Φ = Γ − Γ K C
    stack = Stack(G, Q, variance, C)
    moved = G @ _fold(covs, stack)[1]
    shocks = variance * (moved @ moved.mT) + Q
    return *stack, _until_still(_lyapunov_twice, G - moved @ C, shocks)


def _until_still(
    advance: Callable[..., tuple[np.ndarray, ...]],
    *stacks: np.ndarray,
    tolerance: float = EPSILON,
    fading: bool = True,
) -> np.ndarray:
    """Iterate ``advance`` until each matrix of the last stack stops changing."""
    # With ``fading``, also until the first stack, a power, has decayed: otherwise states in small
    # units, or reached late, would be missed.
    ends = stacks[-1].copy()
    moving = np.arange(len(ends))
    for _ in range(64):
        before, stacks = stacks[-1], advance(*stacks)
        ends[moving] = stacks[-1]
        # False for NaN, too.
        going = _largest(stacks[-1] - before) > tolerance * _largest(stacks[-1])
        if fading:
            going |= _largest(stacks[0]) ** 2 > EPSILON
        moving, stacks = moving[going], tuple(matrices[going] for matrices in stacks)
        if not moving.size:
            break
    return ends


def _riccati_twice(A: np.ndarray, G: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, ...]:
    """The map P ↦ H + Aᵀ P (I + G P)⁻¹ A, twice (structure-preserving doubling, Anderson 1978)."""
    # After k calls it is the map of 2^k rounds, and H is its value at P = 0.
    d = H.shape[1]
    W = _solutions(np.eye(d) + G @ H, np.concatenate([A, G], axis=2))
    V1, V2, At = W[:, :, :d], W[:, :, d:], A.mT
    return A @ V1, G + _symmetric(A @ V2 @ At), H + _symmetric(At @ H @ V1)


def _lyapunov_twice(A: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, ...]:
    """The map P ↦ H + A P Aᵀ, twice (Smith 1968)."""
    return A @ A, H + _symmetric(A @ H @ A.mT)


def _solutions(matrices: np.ndarray, sides: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrices, sides)
    except np.linalg.LinAlgError:  # solve the others without the singular one
        if len(matrices) == 1:
            return np.full_like(sides, np.nan)
        pairs = zip(matrices, sides, strict=True)
        return np.concatenate([_solutions(one[None], side[None]) for one, side in pairs])


def _fold(covs: np.ndarray, stack: Stack) -> tuple[np.ndarray, np.ndarray]:
    """The covariances after one reward of every arm, and the gains, n × d × m."""
    # `kalman.observe` for a stack and several arms, but it must not round P up: P is a fixed point.
    seen = stack.seen
    n, m, d = seen.shape
    gains = np.zeros((n, d, m))
    floor = NEWS * np.vecdot(seen @ covs, seen)
    for i in range(m):
        row = seen[:, i : i + 1]
        cross = covs @ row.mT
        variance = row @ cross + stack.variance
        variance[variance <= floor[:, i, None, None]] = np.inf
        weight = cross / variance
        gains -= weight @ (row @ gains)
        gains[:, :, i] += weight[:, :, 0]
        covs = _symmetric(covs - weight @ cross.mT)
    return covs, gains


def next_round(covs: np.ndarray, stack: Stack) -> np.ndarray:
    """The covariances one round later, after the rewards of all arms of the stack."""
    folded, _ = _fold(covs, stack)
    after = stack.transition @ folded @ stack.transition.mT
    return _symmetric(after) + stack.process_cov


def _steady_gains(covs: np.ndarray, stack: Stack) -> tuple[np.ndarray, np.ndarray]:
    """The gains of ``covs``, and which covariances are steady: fixed, semidefinite and stable."""
    # Stability matters if Q does not excite a growing mode: P = 0 solves the equation there, too,
    # but no filter that starts with any uncertainty converges to it.
    steady = np.isfinite(covs).all(axis=(1, 2))
    covs = np.where(steady[:, None, None], covs, 0)
    scale = np.maximum(_largest(covs), np.finfo(float).tiny)
    steady &= np.linalg.eigvalsh(covs)[:, 0] >= -TOLERANCE * scale
    G = stack.transition
    folded, gains = _fold(covs, stack)
    # Rounding error of the products below, which is large if Γ is far from normal.
    rounding = 100 * EPSILON * _largest(np.abs(G) @ np.abs(covs) @ np.abs(G.mT))
    error = _largest(G @ folded @ G.mT + stack.process_cov - covs)
    steady &= error <= TOLERANCE * scale + rounding
    closed = np.where(steady[:, None, None], G - G @ gains @ stack.seen, 0)
    # ρ ≤ ‖Φ^64‖^(1/64): eigenvalues, which take longer, only if that exceeds 1.
    grows = ~(np.linalg.norm(np.linalg.matrix_power(closed, 64), axis=(1, 2)) < 1)
    steady[grows] &= np.abs(np.linalg.eigvals(closed[grows])).max(axis=1) <= 1 + 1e-6
    return gains, steady


def _settled_slowly(stack: Stack, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A difficult system, as a stack of one: the first solution that passes the checks."""
    both = (stack, _nearly_noiseless(stack))
    fast = itertools.product(both, (_by_scipy, _by_patient_doubling))
    for system, solve in (*fast, *itertools.product(both, (_by_recursion,))):
        covs = solve(system)
        gains, steady = _steady_gains(covs, system)
        if steady[0]:
            return covs[0], gains[0]
    raise errors.NotDetectable(f"{name}: the Riccati recursion did not converge")


def _nearly_noiseless(stack: Stack) -> Stack:
    """The same with a small σ in place of σ = 0."""
    # Without noise the gain is not unique where P is singular, and some gains let errors grow; the
    # limit of small σ picks one that does not.
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
    """Doubling, made semidefinite, then 50 plain rounds, in which rounding errors decay."""
    covs = _by_doubling(stack)
    if stack.variance == 0 or not np.isfinite(covs).all():
        return np.full_like(covs, np.nan)
    values, vectors = np.linalg.eigh(covs)
    covs = (vectors * np.maximum(values, 0)[:, None]) @ vectors.mT
    for _ in range(50):
        covs = next_round(covs, stack)
    return covs


def _by_recursion(stack: Stack) -> np.ndarray:
    """Follow the recursion itself, from a covariance above any possible one."""
    Q = stack.process_cov
    covs = Q + np.eye(Q.shape[1]) * max(np.trace(Q[0]), 1.0)
    for _ in range(20_000):
        before, covs = covs, next_round(covs, stack)
        if not np.abs(covs - before).max() > 1e-13 * np.abs(covs).max():
            break
    return covs
