"""The linear Gaussian dynamical system that drives the rewards (P1–P3).

    z(t+1) = Γ z(t) + ξ(t),   ξ ~ N(0, Q)        hidden state, d numbers
    X(t)   = ⟨a, z(t)⟩ + η(t), η ~ N(0, σ²)      reward of arm a

Arms are rows: a set of k arms is a k × d array. A state is a known constant if its row of Γ is a
unit vector, its row of Q is zero and its start is known. It adds an offset to the arms that read
it and nothing to any covariance; stability and uncertainty concern the other, moving states only.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

RANK_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as zero in rank decisions."""


@dataclasses.dataclass(frozen=True, eq=False)
class LGDS:
    """A known linear Gaussian dynamical system; its arguments are checked (P1).

    Args:
        transition: Γ, d × d.
        process_cov: Q, d × d, symmetric positive semidefinite; may be singular.
        reward_std: σ ≥ 0; zero means rewards without noise.
        initial_cov: Σ0, the covariance of z(0). None: the stationary covariance, which exists only
            if ρ(Γ) < 1; constants are then known.
        initial_mean: the mean of z(0), d numbers. None: zero, as in the paper.

    Example:
        A slow and a fast state, observed with noise. Arrays are checked and read-only.

        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[0.19, 0.0], [0.0, 3.0]], reward_std=1.0)
        >>> model.n_states, model.spectral_radius, model.is_stable
        (2, 0.9, True)
        >>> model.stationary_cov().round(6).tolist()  # Z = Γ Z Γᵀ + Q
        [[1.0, 0.0], [0.0, 4.0]]
        >>> bool((model.start_cov() == model.stationary_cov()).all()), model.start_mean().tolist()
        (True, [0.0, 0.0])
        >>> model.is_controllable()
        True

        A random walk has no stationary state, so its start has to be given.

        >>> walk = LGDS([[1.0]], [[0.5]], 1.0, initial_cov=[[2.0]], initial_mean=[3.0])
        >>> walk.is_stable, walk.state_mean(4).tolist(), walk.state_cov(4).tolist()
        (False, [3.0], [[4.0]])
        >>> walk.check_stable()
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: transition: has spectral radius 1, so there is no ...
    """

    transition: np.ndarray
    process_cov: np.ndarray
    reward_std: Any
    initial_cov: np.ndarray | None = None
    initial_mean: np.ndarray | None = None

    if TYPE_CHECKING:  # lists may be given, although arrays are kept

        def __init__(
            self,
            transition: ArrayLike,
            process_cov: ArrayLike,
            reward_std: Any,
            initial_cov: ArrayLike | None = None,
            initial_mean: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        transition = errors.matrix(self.transition, "transition", shape=(None, None))
        d, columns = transition.shape
        if d != columns:
            problem = f"has shape {transition.shape}"
            raise errors.InvalidInput("transition", problem, "give a square matrix")
        checked = {
            "transition": transition,
            "process_cov": errors.covariance(self.process_cov, "process_cov", size=d),
            "reward_std": np.float64(errors.number(self.reward_std, "reward_std", low=0)),
        }
        if self.initial_cov is not None:
            checked["initial_cov"] = errors.covariance(self.initial_cov, "initial_cov", size=d)
        if self.initial_mean is not None:
            checked["initial_mean"] = errors.matrix(self.initial_mean, "initial_mean", shape=(d,))
        for name, value in checked.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def many(cls, transitions: Any, process_covs: Any, reward_stds: Any) -> list[LGDS]:
        """``LGDS(Γ, Q, σ)`` of n systems, checked together, which is faster than one by one.

        Args:
            transitions: Γ of each, n × d × d.
            process_covs: Q of each, n × d × d.
            reward_stds: σ of each, n numbers.

        Returns:
            n models that start stationary.

        Example:
            >>> LGDS.many([[[0.5]], [[0.9]]], [[[3.0]], [[1.0]]], [1.0, 2.0])[1].spectral_radius
            0.9
        """
        given = transitions, process_covs, reward_stds
        transition, process_cov, reward_std = (np.array(part, np.float64) for part in given)
        n, d, _ = transition.shape
        fits = transition.shape == process_cov.shape == (n, d, d) and reward_std.shape == (n,)
        finite = fits and all(map(errors.finite, (transition, process_cov, reward_std)))
        covs = errors.covariances(process_cov) if finite and (reward_std >= 0).all() else None
        if covs is None:  # one of them is wrong: its own check says which and why
            return [cls(*one) for one in zip(*given, strict=True)]
        for stack in (transition, covs):
            stack.setflags(write=False)
        models = [cls.__new__(cls) for _ in range(n)]
        for model, one, cov, std in zip(models, transition, covs, reward_std, strict=True):
            values = {"transition": one, "process_cov": cov, "reward_std": std}
            model.__dict__.update(values, initial_cov=None, initial_mean=None)
        return models

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are equal; an initial_cov of None equals no given one."""
        if not isinstance(other, LGDS):
            return NotImplemented
        pairs = zip(self._values(), other._values(), strict=True)
        return all(one is other or np.array_equal(one, other) for one, other in pairs)

    def __hash__(self) -> int:
        values = self._values()
        return hash(tuple(None if v is None else (v + 0.0).tobytes() for v in values))  # no −0

    def __repr__(self) -> str:
        size = f"LGDS({self.n_states} state{'s' * (self.n_states > 1)}"
        transition: Any = self.transition
        if not isinstance(transition, np.ndarray):  # inside a compiled program
            return f"{size})"
        radius = shown_radius(self.spectral_radius)
        return f"{size}, spectral radius {radius}, σ {self.reward_std:.4g})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the arguments: a copy is checked again and its arrays are read-only."""
        return LGDS, self._values()

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    @property
    def n_states(self) -> int:
        """d, the number of hidden states."""
        return int(self.transition.shape[0])

    @functools.cached_property
    def constants(self) -> np.ndarray:
        """Which states are known constants, d booleans.

        Row i of Γ is the i-th unit vector, row i of Q is zero, and so is row i of Σ0 if given.

        Example:
            >>> LGDS(np.diag([0.5, 1.0]), np.diag([3.0, 0.0]), 1.0).constants.tolist()
            [False, True]
        """
        found = (self.transition == np.eye(self.n_states)).all(axis=1)
        found &= ~self.process_cov.any(axis=1)
        if self.initial_cov is not None:
            found &= ~self.initial_cov.any(axis=1)
        found.setflags(write=False)
        return found

    @functools.cached_property
    def moving(self) -> LGDS:
        """The model without known constants and means: zeros in Γ. Its covariances are the same.

        Example:
            >>> model = LGDS([[0.5, 1.0], [0.0, 1.0]], np.diag([3.0, 0.0]), 1.0)
            >>> model.moving.transition.tolist()
            [[0.5, 0.0], [0.0, 0.0]]
        """
        if not self.constants.any():
            return self
        transition = np.where(self.constants | self.constants[:, None], 0.0, self.transition)
        return LGDS(transition, self.process_cov, self.reward_std, self.initial_cov)

    def without_offsets(self, arms: np.ndarray) -> np.ndarray:
        """The arms with zeros where the state is a known constant.

        Args:
            arms: k × d.

        Example:
            >>> model = LGDS(np.diag([0.5, 1.0]), np.diag([3.0, 0.0]), 1.0, initial_mean=[0, 1])
            >>> model.without_offsets(np.array([[1.0, 7.0], [2.0, 8.0]])).tolist()
            [[1.0, 0.0], [2.0, 0.0]]
        """
        return np.where(self.constants, 0.0, arms) if self.constants.any() else arms

    @functools.cached_property
    def spectral_radius(self) -> float:
        """ρ(Γ), the largest absolute eigenvalue of Γ; those of known constants do not count.

        Example:
            >>> LGDS(np.diag([0.5, 1.0]), np.diag([3.0, 0.0]), 1.0).spectral_radius
            0.5
        """
        return float(np.abs(np.linalg.eigvals(self.moving.transition)).max())

    @property
    def is_stable(self) -> bool:
        """Whether ρ(Γ) < 1, so that the moving states have a stationary distribution."""
        return self.spectral_radius < 1

    def check_stable(
        self,
        argument: str = "transition",
        remedy: str = "give initial_cov, or a transition with spectral radius below 1",
    ) -> None:
        """Raise `InvalidInput` if there is no stationary state.

        Args:
            argument, remedy: what the message calls the model, and what it says to do.
        """
        if not self.is_stable:
            found = f"has spectral radius {self.spectral_radius:.6g}"
            problem = f"{found}, so there is no stationary state"
            raise errors.InvalidInput(argument, problem, remedy)

    def stationary_cov(self) -> np.ndarray:
        """Z = Γ Z Γᵀ + Q, the state's stationary covariance (P3); needs ρ(Γ) < 1.

        Zero in the rows and columns of known constants.
        """
        return self._stationary_cov

    @functools.cached_property
    def _stationary_cov(self) -> np.ndarray:
        self.check_stable()
        cov = _stationary_covs(self.moving.transition[None], self.process_cov[None])[0]
        cov.setflags(write=False)
        return cov

    def stationary_mean(self) -> np.ndarray:
        """E z = Γ E z, the state's stationary mean; needs ρ(Γ) < 1.

        Known constants keep their c and shift the moving states to (I − Γ_mm)⁻¹ Γ_mc c. Without
        constants the mean is zero.

        Example:
            >>> model = LGDS([[0.5, 1.0], [0, 1]], np.diag([3.0, 0]), 1.0, initial_mean=[0, 4])
            >>> model.stationary_mean().tolist()
            [8.0, 4.0]
        """
        self.check_stable()
        known = np.where(self.constants, self.start_mean(), 0.0)
        if not known.any():
            return known
        fades = np.eye(self.n_states) - self.moving.transition
        return np.asarray(np.linalg.solve(fades, self.transition @ known))

    def start_cov(self) -> np.ndarray:
        """Covariance of z(0): Σ0 if given, otherwise the stationary Z."""
        return self.stationary_cov() if self.initial_cov is None else self.initial_cov

    def start_mean(self) -> np.ndarray:
        """Mean of z(0): zero if none was given."""
        return np.zeros(self.n_states) if self.initial_mean is None else self.initial_mean

    def state_mean(self, rounds: int) -> np.ndarray:
        """Mean of the state after ``rounds`` steps, Γ^t E z(0) (P3), d numbers."""
        rounds = errors.whole_number(rounds, "rounds", low=0)
        if self.initial_mean is None:
            return np.zeros(self.n_states)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow: infinite or NaN
            return np.asarray(np.linalg.matrix_power(self.transition, rounds) @ self.initial_mean)

    def state_cov(self, rounds: int) -> np.ndarray:
        """Z(t) after ``rounds`` steps of Z(t+1) = Γ Z(t) Γᵀ + Q from z(0)'s covariance (P3).

        Not finite if an unstable state overflows.
        """
        if self.initial_cov is None:
            errors.whole_number(rounds, "rounds", low=0)
            return self.stationary_cov()
        return self.propagated(self.start_mean(), self.initial_cov, rounds)[1]

    def propagated(self, mean: Any, cov: Any, rounds: int) -> tuple[Any, Any]:
        """Mean and covariance after ``rounds`` steps z ↦ Γ z + ξ, by repeated squaring.

        Args:
            mean, cov: of the state now, d numbers and d × d.
            rounds: number of steps ≥ 0.

        Example:
            >>> model = LGDS([[0.5]], [[3.0]], reward_std=1.0)
            >>> mean, cov = model.propagated(np.array([8.0]), np.array([[0.0]]), rounds=2)
            >>> mean.tolist(), cov.tolist()
            ([2.0], [[3.75]])
        """
        rounds = errors.whole_number(rounds, "rounds", low=0)  # a negative one would never end
        # (A, C) stands for the map P ↦ A P Aᵀ + C; maps compose as
        # (A2, C2) ∘ (A1, C1) = (A2 A1, A2 C1 A2ᵀ + C2).
        power, noise = self.transition, self.process_cov
        with np.errstate(over="ignore", invalid="ignore"):  # overflow: infinite or NaN
            while rounds:
                if rounds & 1:
                    mean, cov = power @ mean, power @ cov @ power.T + noise
                power, noise, rounds = power @ power, power @ noise @ power.T + noise, rounds >> 1
        return mean, 0.5 * (cov + cov.T)

    def settled_cov(self, rounds: int) -> np.ndarray:
        """The state covariance that tuning constants use: Z if stable, otherwise Z(rounds).

        Example:
            >>> walk = LGDS([[1.0]], [[0.5]], 1.0, initial_cov=[[2.0]])
            >>> walk.settled_cov(100).tolist(), LGDS([[0.5]], [[3.0]], 1.0).settled_cov(9).tolist()
            ([[52.0]], [[4.0]])
        """
        return self.stationary_cov() if self.is_stable else self.state_cov(rounds)

    def settled_moment(self, rounds: int) -> np.ndarray:
        """E z zᵀ after ``rounds`` steps: `settled_cov` plus the outer product of the mean.

        Example:
            >>> walk = LGDS([[1.0]], [[0.5]], 1.0, initial_cov=[[2.0]], initial_mean=[3.0])
            >>> walk.settled_moment(100).tolist()
            [[61.0]]
        """
        if self.initial_mean is None:
            return self.settled_cov(rounds)
        mean = self.state_mean(rounds)
        return self.settled_cov(rounds) + np.outer(mean, mean)

    def is_controllable(self) -> bool:
        """Whether (Γ, Q^½) is controllable: noise reaches all moving states (P3, Assumption 2)."""
        size = int((~self.constants).sum())
        blocks = [factor(self.process_cov)]
        for _ in range(self.n_states - 1):
            block = self.moving.transition @ blocks[-1]
            blocks.append(block / max(np.linalg.norm(block), np.finfo(float).tiny))
        blocks[0] = blocks[0] / max(np.linalg.norm(blocks[0]), np.finfo(float).tiny)
        values = np.linalg.svd(np.hstack(blocks), compute_uv=False)
        return not size or bool(values[size - 1] > RANK_TOLERANCE * values[0])

    def observability_gramian(self, played: Any) -> np.ndarray:
        """O = Σ_τ (Γᵀ)^τ a_τ a_τᵀ Γ^τ (P3); if positive definite, the arms observe the state.

        Args:
            played: n × d; row τ is the arm of round τ.

        Example:
            >>> turning = LGDS([[0.0, 0.9], [-0.9, 0.0]], np.eye(2), reward_std=1.0)
            >>> gramian = turning.observability_gramian([[1.0, 0.0], [1.0, 0.0]])
            >>> gramian.round(6).tolist()  # one arm shows both states, one after the other
            [[1.0, 0.0], [0.0, 0.81]]
        """
        played = checked_arms(played, self, "played")
        gramian = np.zeros_like(self.transition)
        for arm in played[::-1]:
            gramian = self.transition.T @ gramian @ self.transition + np.outer(arm, arm)
        return gramian


def solve_together(models: Sequence[LGDS]) -> None:
    """Compute ρ(Γ), constants and Z of models with equally many states, at once for all.

    Each model keeps its own numbers, the same as if it computed them itself. Models with known
    constants or without a stationary state are left as they are.
    """
    # What a model has computed before is not computed again.
    models = [m for m in models if m.initial_cov is None and "_stationary_cov" not in m.__dict__]
    if not models:
        return
    transition = np.stack([model.transition for model in models])
    process_cov = np.stack([model.process_cov for model in models])
    constants = (transition == np.eye(transition.shape[1])).all(axis=2) & ~process_cov.any(axis=2)
    constants.setflags(write=False)
    radius = np.abs(np.linalg.eigvals(transition)).max(axis=1)
    plain = np.flatnonzero(~constants.any(axis=1) & (radius < 1))
    covs = _stationary_covs(transition[plain], process_cov[plain])
    covs.setflags(write=False)
    for i, cov in zip(plain.tolist(), covs, strict=True):
        found = {"spectral_radius": float(radius[i]), "constants": constants[i]}
        models[i].__dict__.update(found, _stationary_cov=cov)


def _stationary_covs(power: np.ndarray, covs: np.ndarray) -> np.ndarray:
    """Z = Σ_k Γ^k Q (Γ^k)ᵀ of n systems by doubling, from Γ and Q, n × d × d (Smith 1968).

    It only adds covariances, so nothing cancels if Γ is far from normal, where SciPy's solver
    perturbs its input.
    """
    covs, going = covs.copy(), np.arange(len(covs))
    with np.errstate(over="ignore", invalid="ignore"):  # overflow: infinite or NaN
        # Stop when Γ^k is zero, not when the sum stops changing: that would miss states in
        # small units or reached late. ρ(Γ) one rounding error below 1 takes 64 doublings.
        for _ in range(64):
            covs[going] += power @ covs[going] @ power.mT
            power = power @ power
            left = power.any(axis=(1, 2))
            going, power = going[left], power[left]
            if not going.size:
                break
        return (covs + covs.mT) / 2


def start_moments(models: Sequence[LGDS]) -> tuple[np.ndarray, np.ndarray]:
    """Mean, n × d, and covariance, n × d × d, of z(0) in models with equally many states."""
    covs = np.array([model.start_cov() for model in models])
    means = np.zeros(covs.shape[:2])
    for i, model in enumerate(models):
        if model.initial_mean is not None:
            means[i] = model.initial_mean
    return means, covs


def shown_radius(radius: float) -> str:
    """A spectral radius with four digits, or its distance from 1 if it would round to 1.

    Example:
        >>> shown_radius(0.97), shown_radius(1 - 2e-6)
        ('0.97', '1 − 2e-06')
    """
    text = f"{radius:.4g}"
    return f"1 − {1 - radius:.2g}" if text == "1" and radius < 1 else text


def checked_arms(arms: Any, model: LGDS, argument: str = "arms") -> np.ndarray:
    """Return ``arms`` as a k × d array of finite, non-zero rows that fit ``model`` (P2)."""
    if not isinstance(model, LGDS):
        raise errors.InvalidInput("model", f"has type {type(model).__name__}", "give an LGDS")
    rows = errors.matrix(arms, argument, shape=(None, model.n_states))
    zero = np.flatnonzero(~rows.any(axis=1))
    if zero.size:
        problem = f"row {int(zero[0])} is the zero vector"
        raise errors.InvalidInput(argument, problem, "an arm needs at least one non-zero entry")
    rows.setflags(write=False)
    return rows


def arm_stack(systems: Sequence[tuple[LGDS, Any]]) -> np.ndarray | None:
    """The arms of n systems, n × k × d, read-only; None: look at them with `checked_arms`.

    None if shapes differ, an entry is not a float, or an arm is not valid.
    """
    (model, first), *_ = systems
    alike = model.n_states, np.shape(first), np.float64
    if any((m.n_states, np.shape(a), getattr(a, "dtype", None)) != alike for m, a in systems):
        return None
    stack = np.array([arms for _, arms in systems])
    if stack.shape[2:] != (model.n_states,) or not stack.size:
        return None
    stack.setflags(write=False)
    return stack if errors.finite(stack) and stack.any(axis=2).all() else None


def unit_rows(arms: np.ndarray) -> np.ndarray:
    """Scale every arm to length one (P2, Assumption 1)."""
    return arms / np.linalg.norm(arms, axis=-1, keepdims=True)


def factor(cov: np.ndarray) -> np.ndarray:
    """F with F Fᵀ = cov, for any positive semidefinite ``cov``, including singular ones.

    Also of a stack, n × d × d.
    """
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0))[..., None, :])


def same_cov(cov: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Whether all entries agree to ``tolerance`` √(P_ii P_jj), whatever the units of the states."""
    size = np.sqrt(np.maximum(np.diag(cov), np.diag(other)))
    return bool((np.abs(cov - other) <= tolerance * np.outer(size, size)).all())
