"""What can be played in a round: a list of arms, or the unit sphere.

An action set knows how its arms are stored, chosen, paid and learned from. It holds no arrays: the
rows are in ``problem.arms``, for the sphere the d coordinate vectors. So an action set is hashable,
and simulations compile one program for each. Methods that compute take arrays of NumPy or JAX, for
one run; ``values`` are the mean rewards of all rows, so on the sphere the state z itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, first_highest, namespace
from driftbandit.model import LGDS, checked_arms

TOLERANCE = 1e-6  # how far the length of a unit vector may be from one
MATRICES = 200  # d × d matrices, at most, that a run holds while it searches its best unit vector


@dataclasses.dataclass(frozen=True)
class FiniteArms:
    """A list of k arms; an arm is a row number."""

    title: ClassVar[str] = "a list"  # what messages call it
    listed: ClassVar[bool] = True  # whether arms are numbered rows, which can have names
    threads: ClassVar[bool] = True  # whether several programs may run at once on a CPU

    def rows(self, arms: Any, model: Any, argument: str = "arms") -> np.ndarray:
        """The checked k × d array for ``problem.arms``."""
        return checked_arms(arms, model, argument)

    def describe(self, n_rows: int) -> str:
        """The arms in an agent's repr."""
        return f"{n_rows} arms"

    def refusal(self, policy: Any, n_rows: int, argument: str) -> errors.InvalidInput | None:
        """Why the policy cannot play this set; None: it can."""
        most = policy.actions.max_arms
        if most is None or n_rows <= most:
            return None
        problem = f"are {n_rows}, and {policy.name} compares each with each"
        return errors.InvalidInput("arms", problem, f"give at most {most}, or play idea")

    def check_listed(self, argument: str, problem: str, remedy: str) -> None:
        """Refuse what needs a list of arms, unless this is one."""

    def check_regret(self, regret: str) -> None:
        """Refuse a definition of regret that this set does not have."""

    def choose(self, policy: Any) -> Callable[..., Array]:
        """The policy's function that chooses an arm: a row number, or a unit vector."""
        return policy.choose

    def noise(self, policy: Any) -> Any:
        """The `Noise` that this function asks for; None: none."""
        return policy.noise

    def scratch_size(self, policy: Any, n_states: int, n_rows: int) -> int:
        """About how many numbers a run holds while it chooses."""
        size = policy.batch.scratch_size
        return size(n_states, n_rows) if size else 0

    def mean(self, values: Array, arm: Array) -> Array:
        """⟨a, z⟩ of an arm."""
        return values[arm]

    def best_mean(self, values: Array) -> Array:
        """The highest ⟨a, z⟩, which regret is measured from."""
        return namespace(values).max(values)

    def best(self, values: Array) -> tuple[Array, Array]:
        """⟨a, z⟩ of the best arm, and the index of its reward's noise."""
        place = first_highest(values)
        return values[place], place

    def noise_index(self, arm: Array) -> Array:
        """The index of the noise in an arm's reward."""
        return arm

    def played(self, problem: Any, arm: Array) -> tuple[Any, Array]:
        """The problem and the row number that ``update`` takes after this arm was played."""
        return problem, arm


@dataclasses.dataclass(frozen=True)
class Sphere:
    """All unit vectors (P2); an arm is a vector of d numbers. Methods are as in `FiniteArms`.

    The reward of a vector has noise 0, that of the best vector noise 1. A policy with full
    information sees the rewards of the d coordinate vectors.
    """

    word: ClassVar[str] = "sphere"  # what a user gives as ``arms=``
    title: ClassVar[str] = "the sphere"
    listed: ClassVar[bool] = False
    threads: ClassVar[bool] = False
    """Choosing factorizes matrices. JAX spreads that over the threads that programs run on and
    waits for them there: two programs at once on two cores would wait forever."""

    def rows(self, arms: Any, model: Any, argument: str = "arms") -> np.ndarray:
        if not isinstance(model, LGDS):
            raise errors.InvalidInput("model", f"has type {type(model).__name__}", "give an LGDS")
        rows = np.eye(model.n_states)
        rows.setflags(write=False)
        return rows

    def describe(self, n_rows: int) -> str:
        return self.title

    def refusal(self, policy: Any, n_rows: int, argument: str) -> errors.InvalidInput | None:
        if policy.actions.on_sphere is not None:
            return None
        problem = f"{policy.name} chooses from a list of arms, not from the sphere"
        remedy = "give a policy that plays unit vectors, such as idea"
        return errors.InvalidInput(argument, problem, remedy)

    def check_listed(self, argument: str, problem: str, remedy: str) -> None:
        raise errors.InvalidInput(argument, f"{problem}, and the agent plays on the sphere", remedy)

    def check_regret(self, regret: str) -> None:
        if regret == "hindsight":
            problem = "is 'hindsight', and the sphere has no highest of its rewards"
            raise errors.InvalidInput("regret", problem, "give 'mean' or 'noisy'")

    def choose(self, policy: Any) -> Callable[..., Array]:
        return policy.actions.on_sphere

    def noise(self, policy: Any) -> Any:
        return policy.actions.sphere_noise or policy.noise

    def scratch_size(self, policy: Any, n_states: int, n_rows: int) -> int:
        return MATRICES * n_states * n_states

    def mean(self, values: Array, arm: Array) -> Array:
        return arm @ values

    def best_mean(self, values: Array) -> Array:
        return namespace(values).sqrt(values @ values)

    def best(self, values: Array) -> tuple[Array, Array]:
        return self.best_mean(values), namespace(values).asarray(1)

    def noise_index(self, arm: Array) -> Array:
        return namespace(arm).asarray(0)

    def played(self, problem: Any, arm: Array) -> tuple[Any, Array]:
        return problem._replace(arms=arm[None, :]), 0

    def checked_vector(self, vector: Any, n_states: int, argument: str = "arm") -> np.ndarray:
        """A vector of length one that a user or a policy gives as an arm."""
        row = errors.matrix(vector, argument, shape=(n_states,))
        if not abs(row @ row - 1) <= 2 * TOLERANCE:
            problem = f"has length {math.sqrt(row @ row):.6g}"
            raise errors.InvalidInput(argument, problem, "give a vector of length one")
        row.setflags(write=False)
        return row


ActionSet = FiniteArms | Sphere
FINITE, SPHERE = FiniteArms(), Sphere()


def action_set(arms: Any, argument: str = "arms") -> ActionSet:
    """The action set that a user means by ``arms``: k × d rows, or the word "sphere".

    Example:
        >>> action_set("sphere"), action_set([[1.0, 0.0]])
        (Sphere(), FiniteArms())
    """
    if not isinstance(arms, str):
        return FINITE
    if arms != SPHERE.word:
        raise errors.InvalidInput(argument, f"is {arms!r}", 'give a k × d array, or "sphere"')
    return SPHERE
