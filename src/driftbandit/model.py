"""The linear Gaussian dynamical system that drives the rewards (P1–P3).

    z(t+1) = Γ z(t) + ξ(t),   ξ ~ N(0, Q)        hidden state, d numbers
    X(t)   = ⟨a, z(t)⟩ + η(t), η ~ N(0, σ²)      reward of arm a

Arms are rows: a set of k arms is a k × d array.

A state whose row of Γ is a unit vector, which Q leaves alone and whose start is known, is a known
constant: what arms read of it are their offsets. It adds to the mean of the state and nothing to
any covariance; stability, noise and doubt are those of the other states, which move.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from driftbandit import errors

__all__ = ["LGDS", "checked_arms", "factor", "same_cov", "shown_radius", "unit_rows"]

RANK_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as zero in rank decisions."""


@dataclasses.dataclass(frozen=True, eq=False)
class LGDS:
    """A known linear Gaussian dynamical system, checked when it is made (P1).

    Args:
        transition: Γ, d × d.
        process_cov: Q, d × d, symmetric positive semidefinite; may be singular.
        reward_std: σ ≥ 0; zero means rewards without noise.
        initial_cov: Σ0, the covariance of z(0); None means the stationary covariance, which
            exists only if ρ(Γ) < 1, and with it that constants are known.
        initial_mean: the mean of z(0), d numbers; None means zero, as in the paper.

    Example:
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=1.0)
        >>> float(model.stationary_cov()[0, 0])
        4.0
    """

    transition: np.ndarray
    process_cov: np.ndarray
    reward_std: Any
    initial_cov: np.ndarray | None = None
    initial_mean: np.ndarray | None = None

    def __post_init__(self) -> None:
        transition = errors.matrix(self.transition, "transition", shape=(None, None))
        d, columns = transition.shape
        if d != columns:
            raise errors.InvalidInput(
                "transition", f"has shape {transition.shape}", "give a square matrix"
            )
        checked = {
            "transition": transition,
            "process_cov": errors.covariance(self.process_cov, "process_cov", size=d),
            "reward_std": np.float64(errors.number(self.reward_std, "reward_std", low=0)),
            "initial_cov": None
            if self.initial_cov is None
            else errors.covariance(self.initial_cov, "initial_cov", size=d),
            "initial_mean": None
            if self.initial_mean is None
            else errors.matrix(self.initial_mean, "initial_mean", shape=(d,)),
        }
        for name, value in checked.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are equal; a start that was left open equals no given one."""
        if not isinstance(other, LGDS):
            return NotImplemented
        return all(map(_equal, self._values(), other._values()))

    def __hash__(self) -> int:
        numbers = (None if value is None else value + 0.0 for value in self._values())  # no −0
        return hash(tuple(None if value is None else value.tobytes() for value in numbers))

    def __repr__(self) -> str:
        size = f"LGDS({self.n_states} state{'s' * (self.n_states > 1)}"
        transition: Any = self.transition
        if not isinstance(transition, np.ndarray):  # inside a compiled program
            return f"{size})"
        radius = shown_radius(self.spectral_radius)
        return f"{size}, spectral radius {radius}, σ {self.reward_std:.4g})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew where it arrives: checked, and with arrays that cannot be written to."""
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

        Row i of Γ is the i-th unit vector, that of Q is zero, and that of Σ0 too where it is given.

        Example:
            >>> LGDS(np.diag([0.5, 1.0]), np.diag([3.0, 0.0]), 1.0).constants.tolist()
            [False, True]
        """
        found = (self.transition == np.eye(self.n_states)).all(axis=1) & ~self.process_cov.any(
            axis=1
        )
        if self.initial_cov is not None:
            found &= ~self.initial_cov.any(axis=1)
        found.setflags(write=False)
        return found

    @functools.cached_property
    def moving(self) -> LGDS:
        """What moves: Γ with zeros in the rows and columns of known constants, and no mean.

        All covariances are the model's own. The model itself where there are no constants.
        """
        if not self.constants.any():
            return self
        transition = np.where(self.constants | self.constants[:, None], 0.0, self.transition)
        return LGDS(transition, self.process_cov, self.reward_std, self.initial_cov)

    def without_offsets(self, arms: np.ndarray) -> np.ndarray:
        """The arms as they read what moves: zero where the state is a known constant."""
        return np.where(self.constants, 0.0, arms) if self.constants.any() else arms

    @functools.cached_property
    def spectral_radius(self) -> float:
        """ρ(Γ), the largest modulus of Γ's eigenvalues; the ones of known constants do not count.

        Example:
            >>> LGDS(np.diag([0.5, 1.0]), np.diag([3.0, 0.0]), 1.0).spectral_radius
            0.5
        """
        return float(np.abs(np.linalg.eigvals(self.moving.transition)).max())

    @property
    def is_stable(self) -> bool:
        """Whether ρ(Γ) < 1: what moves has a stationary law, and what does not is known."""
        return self.spectral_radius < 1

    def _check_stable(self) -> None:
        if not self.is_stable:
            raise errors.InvalidInput(
                "transition",
                f"has spectral radius {self.spectral_radius:.6g}, so there is no stationary state",
                "give initial_cov, or a transition with spectral radius below 1",
            )

    @functools.cached_property
    def _stationary_cov(self) -> np.ndarray:
        self._check_stable()
        # Z = Σ_k Γ^k Q (Γ^k)ᵀ by doubling (Smith 1968): sums of covariances alone, so that nothing
        # cancels where Γ is far from normal, which SciPy's solver perturbs its input for.
        power, cov = self.moving.transition, self.process_cov
        with np.errstate(over="ignore", invalid="ignore"):  # beyond any number: infinite or NaN
            # Until Γ^k is zero, not until the sum seems to stand still: states in small units, or
            # reached late, would be left out. ρ(Γ) < 1 by one rounding takes 64 doublings.
            for _ in range(64):
                cov = cov + power @ cov @ power.T
                power = power @ power
                if not power.any():
                    break
            cov = (cov + cov.T) / 2
        cov.setflags(write=False)
        return cov

    def stationary_cov(self) -> np.ndarray:
        """Z = Γ Z Γᵀ + Q, the covariance the state settles at (P3); needs ρ(Γ) < 1.

        Zero in the rows and columns of known constants.
        """
        return self._stationary_cov

    def stationary_mean(self) -> np.ndarray:
        """E z = Γ E z, the mean the state settles at; needs ρ(Γ) < 1.

        Known constants keep their c, and push what moves to (I − Γ_mm)⁻¹ Γ_mc c. Zero without.

        Example:
            >>> model = LGDS([[0.5, 1.0], [0, 1]], np.diag([3.0, 0]), 1.0, initial_mean=[0, 4])
            >>> model.stationary_mean().tolist()
            [8.0, 4.0]
        """
        self._check_stable()
        known = np.where(self.constants, self.start_mean(), 0.0)
        if not known.any():
            return known
        fades = np.eye(self.n_states) - self.moving.transition
        return np.asarray(np.linalg.solve(fades, self.transition @ known))

    def start_cov(self) -> np.ndarray:
        """Covariance of z(0): Σ0 where given, otherwise the stationary Z."""
        return self.stationary_cov() if self.initial_cov is None else self.initial_cov

    def start_mean(self) -> np.ndarray:
        """Mean of z(0): zero where none was given."""
        return np.zeros(self.n_states) if self.initial_mean is None else self.initial_mean

    def state_mean(self, rounds: int) -> np.ndarray:
        """The mean of the state after ``rounds`` steps, Γ^t E z(0) (P3)."""
        rounds = errors.whole_number(rounds, "rounds", low=0)
        if self.initial_mean is None:
            return np.zeros(self.n_states)
        with np.errstate(over="ignore", invalid="ignore"):  # beyond any number: infinite or NaN
            return np.asarray(np.linalg.matrix_power(self.transition, rounds) @ self.initial_mean)

    def state_cov(self, rounds: int) -> np.ndarray:
        """Z(t) after ``rounds`` steps of Z(t+1) = Γ Z(t) Γᵀ + Q from z(0)'s covariance (P3).

        Computed by repeated squaring, so that 10⁶ rounds cost twenty products. Not finite where
        an unstable state outgrows the largest number.
        """
        rounds = errors.whole_number(rounds, "rounds", low=0)
        if self.initial_cov is None:
            return self.stationary_cov()
        # (A, C) stands for the map Z ↦ A Z Aᵀ + C; maps compose as
        # (A2, C2) ∘ (A1, C1) = (A2 A1, A2 C1 A2ᵀ + C2).
        power, noise = self.transition, self.process_cov
        cov = self.initial_cov
        with np.errstate(over="ignore", invalid="ignore"):  # beyond any number: infinite or NaN
            while rounds:
                if rounds & 1:
                    cov = power @ cov @ power.T + noise
                noise = power @ noise @ power.T + noise
                power = power @ power
                rounds >>= 1
        return (cov + cov.T) / 2

    def settled_cov(self, rounds: int) -> np.ndarray:
        """The state's own spread that tuning constants come from: Z if stable, else Z(rounds)."""
        return self.stationary_cov() if self.is_stable else self.state_cov(rounds)

    def settled_moment(self, rounds: int) -> np.ndarray:
        """E z zᵀ by then: `settled_cov`, and what is left of the mean."""
        mean = self.state_mean(rounds)
        return self.settled_cov(rounds) + np.outer(mean, mean)

    def is_controllable(self) -> bool:
        """Whether (Γ, Q^½) is controllable: the noise reaches all that moves (P3, Assumption 2)."""
        size = int((~self.constants).sum())
        blocks = [factor(self.process_cov)]
        for _ in range(self.n_states - 1):
            block = self.moving.transition @ blocks[-1]
            blocks.append(block / max(np.linalg.norm(block), np.finfo(float).tiny))
        blocks[0] = blocks[0] / max(np.linalg.norm(blocks[0]), np.finfo(float).tiny)
        values = np.linalg.svd(np.hstack(blocks), compute_uv=False)
        return not size or bool(values[size - 1] > RANK_TOLERANCE * values[0])

    def observability_gramian(self, played: Any) -> np.ndarray:
        """O = Σ_τ (Γᵀ)^τ a_τ a_τᵀ Γ^τ of an arm sequence (P3); positive definite: observable.

        Args:
            played: n × d, the arms in the order they are played, τ = 0 … n−1.
        """
        played = checked_arms(played, self, "played")
        gramian = np.zeros_like(self.transition)
        for arm in played[::-1]:
            gramian = self.transition.T @ gramian @ self.transition + np.outer(arm, arm)
        return gramian


def _equal(one: Any, other: Any) -> bool:
    return one is other or (
        one is not None and other is not None and bool(np.array_equal(one, other))
    )


def shown_radius(radius: float) -> str:
    """A spectral radius with four digits, or its distance from 1 where they would say 1.

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
    silent = np.flatnonzero(~rows.any(axis=1))
    if silent.size:
        raise errors.InvalidInput(
            argument,
            f"row {int(silent[0])} is the zero vector",
            "an arm needs at least one non-zero entry",
        )
    rows.setflags(write=False)
    return rows


def unit_rows(arms: np.ndarray) -> np.ndarray:
    """Scale every arm to length one (P2, Assumption 1)."""
    return arms / np.linalg.norm(arms, axis=-1, keepdims=True)


def factor(cov: np.ndarray) -> np.ndarray:
    """Return F with F Fᵀ = cov, for any positive semidefinite ``cov``, singular ones included."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def same_cov(cov: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Whether no entries differ by more than ``tolerance`` √(P_ii P_jj): in any units of states."""
    size = np.sqrt(np.maximum(np.diag(cov), np.diag(other)))
    return bool((np.abs(cov - other) <= tolerance * np.outer(size, size)).all())
