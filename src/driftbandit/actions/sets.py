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
    """A list of k arms; an arm is a row number. `FINITE` is one.

    Example:
        What an engine asks: how arms are stored, who can play them, what they pay.

        >>> from driftbandit import policies
        >>> idea, model = policies.make("idea"), LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> rows = FINITE.rows([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], model)
        >>> FINITE.describe(len(rows)), FINITE.refusal(idea, len(rows), "policy")
        ('3 arms', None)
        >>> FINITE.choose(idea) is idea.choose, FINITE.noise(idea), FINITE.noise_index(2)
        (True, None, 2)
        >>> values = rows @ np.array([3.0, 1.0])  # the mean rewards in a state z
        >>> float(FINITE.mean(values, 1)), float(FINITE.best_mean(values))
        (2.0, 4.0)
        >>> highest, noise_index = FINITE.best(values)
        >>> float(highest), int(noise_index)
        (4.0, 2)

        After a play, the policy learns from the row of that arm. Nothing is refused that needs a
        list of arms, or another definition of regret.

        >>> FINITE.played(policies.Problem(model, rows, None), 1)[1]
        1
        >>> FINITE.check_listed("names", "were given", "leave them out")
        >>> FINITE.check_regret("hindsight")
        >>> FINITE.scratch_size(idea, n_states=2, n_rows=3) >= 0
        True
    """

    title: ClassVar[str] = "a list"  # what messages call it
    listed: ClassVar[bool] = True  # whether arms are numbered rows, which can have names
    threads: ClassVar[bool] = True  # whether several programs may run at once on a CPU

    def rows(self, arms: Any, model: Any, argument: str = "arms") -> np.ndarray:
        """The checked k × d array for ``problem.arms``.

        Args:
            arms: what the user gave.
            model: the `LGDS` whose states they read.
            argument: what messages call the arms.
        """
        return checked_arms(arms, model, argument)

    def describe(self, n_rows: int) -> str:
        """The arms in an agent's repr, of which there are ``n_rows``."""
        return f"{n_rows} arms"

    def refusal(self, policy: Any, n_rows: int, argument: str) -> errors.InvalidInput | None:
        """Why the policy cannot play this set; None: it can.

        Args:
            policy: a `Policy`.
            n_rows: the number of arms.
            argument: what messages call the policy.
        """
        most = policy.actions.max_arms
        if most is None or n_rows <= most:
            return None
        problem = f"are {n_rows}, and {policy.name} compares each with each"
        return errors.InvalidInput("arms", problem, f"give at most {most}, or play idea")

    def check_listed(self, argument: str, problem: str, remedy: str) -> None:
        """Refuse what needs a list of arms, unless this is one.

        Args:
            argument, problem, remedy: of the `InvalidInput`.
        """

    def check_regret(self, regret: str) -> None:
        """Refuse a definition of regret that this set does not have.

        Args:
            regret: as in `simulation.Options`.
        """

    def choose(self, policy: Any) -> Callable[..., Array]:
        """The function of a policy that chooses an arm: a row number, or a unit vector."""
        return policy.choose

    def noise(self, policy: Any) -> Any:
        """The `Noise` that this function asks for; None: none."""
        return policy.noise

    def scratch_size(self, policy: Any, n_states: int, n_rows: int) -> int:
        """About how many numbers a run holds while it chooses; 0: few.

        Args:
            policy: a `Policy`.
            n_states, n_rows: d and k.
        """
        size = policy.batch.scratch_size
        return size(n_states, n_rows) if size else 0

    def mean(self, values: Array, arm: Array) -> Array:
        """⟨a, z⟩ of an arm; ``values`` are those of all rows, k numbers."""
        return values[arm]

    def best_mean(self, values: Array) -> Array:
        """The highest ⟨a, z⟩ of ``values``, which regret is measured from."""
        return namespace(values).max(values)

    def best(self, values: Array) -> tuple[Array, Array]:
        """⟨a, z⟩ of the best arm by ``values``, and the index of its reward's noise."""
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
    """All unit vectors (P2); an arm is a vector of d numbers. `SPHERE` is one.

    Methods and their arguments are as in `FiniteArms`. The reward of a vector has noise 0, that of
    the best vector noise 1. A policy with full information sees the rewards of the d coordinate
    vectors.

    Example:
        >>> from driftbandit import policies
        >>> idea, model = policies.make("idea"), LGDS(0.5 * np.eye(2), np.eye(2), reward_std=1.0)
        >>> rows = SPHERE.rows("sphere", model)  # the coordinate vectors, so that rows @ z is z
        >>> rows.tolist(), SPHERE.describe(len(rows))
        ([[1.0, 0.0], [0.0, 1.0]], 'the sphere')
        >>> str(SPHERE.refusal(policies.make("ucb"), 2, "policy"))
        'policy: ucb chooses from a list of arms, not from the sphere; give a policy that plays ...
        >>> SPHERE.choose(idea) is idea.actions.on_sphere, SPHERE.noise(idea)
        (True, None)
        >>> SPHERE.scratch_size(idea, n_states=2, n_rows=2)
        800

        In the state z = (3, 4) the best vector pays ‖z‖.

        >>> z, arm = np.array([3.0, 4.0]), SPHERE.checked_vector([1.0, 0.0], n_states=2)
        >>> float(SPHERE.mean(z, arm)), float(SPHERE.best_mean(z))
        (3.0, 5.0)
        >>> [float(one) for one in SPHERE.best(z)], int(SPHERE.noise_index(arm))
        ([5.0, 1.0], 0)
        >>> problem, row = SPHERE.played(policies.Problem(model, rows, None), arm)
        >>> problem.arms.tolist(), row
        ([[1.0, 0.0]], 0)

        >>> SPHERE.check_regret("mean")
        >>> SPHERE.check_listed("names", "were given", "leave them out")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: names: were given, and the agent plays on the sphere; ...
    """

    word: ClassVar[str] = "sphere"  # what a user gives as ``arms=``
    title: ClassVar[str] = "the sphere"
    listed: ClassVar[bool] = False
    threads: ClassVar[bool] = False
    """Choosing factorizes matrices. JAX spreads that over the threads that programs run on and
    waits for them there: two programs at once on two cores would wait forever."""

    def rows(self, arms: Any, model: Any, argument: str = "arms") -> np.ndarray:
        """The d coordinate vectors, d × d, whatever ``arms`` is."""
        if not isinstance(model, LGDS):
            raise errors.InvalidInput("model", f"has type {type(model).__name__}", "give an LGDS")
        rows = np.eye(model.n_states)
        rows.setflags(write=False)
        return rows

    def describe(self, n_rows: int) -> str:
        """The arms in an agent's repr."""
        return self.title

    def refusal(self, policy: Any, n_rows: int, argument: str) -> errors.InvalidInput | None:
        """Why the policy cannot play the sphere; None: it can."""
        if policy.actions.on_sphere is not None:
            return None
        problem = f"{policy.name} chooses from a list of arms, not from the sphere"
        remedy = "give a policy that plays unit vectors, such as idea"
        return errors.InvalidInput(argument, problem, remedy)

    def check_listed(self, argument: str, problem: str, remedy: str) -> None:
        """Refuse what needs a list of arms."""
        raise errors.InvalidInput(argument, f"{problem}, and the agent plays on the sphere", remedy)

    def check_regret(self, regret: str) -> None:
        """Refuse "hindsight": there is no highest of infinitely many rewards."""
        if regret == "hindsight":
            problem = "is 'hindsight', and the sphere has no highest of its rewards"
            raise errors.InvalidInput("regret", problem, "give 'mean' or 'noisy'")

    def choose(self, policy: Any) -> Callable[..., Array]:
        """The policy's function that chooses a unit vector."""
        return policy.actions.on_sphere

    def noise(self, policy: Any) -> Any:
        """The `Noise` that this function asks for; None: none."""
        return policy.actions.sphere_noise or policy.noise

    def scratch_size(self, policy: Any, n_states: int, n_rows: int) -> int:
        """About how many numbers a run holds while it searches its best vector."""
        return MATRICES * n_states * n_states

    def mean(self, values: Array, arm: Array) -> Array:
        """⟨a, z⟩ of a unit vector; ``values`` is z."""
        return arm @ values

    def best_mean(self, values: Array) -> Array:
        """‖z‖, the highest ⟨a, z⟩."""
        return namespace(values).sqrt(values @ values)

    def best(self, values: Array) -> tuple[Array, Array]:
        """‖z‖, and the index of the noise in its reward, 1."""
        return self.best_mean(values), namespace(values).asarray(1)

    def noise_index(self, arm: Array) -> Array:
        """The index of the noise in the reward of the vector that is played, 0."""
        return namespace(arm).asarray(0)

    def played(self, problem: Any, arm: Array) -> tuple[Any, Array]:
        """A problem whose only arm is the vector that was played, and its row number, 0."""
        return problem._replace(arms=arm[None, :]), 0

    def checked_vector(self, vector: Any, n_states: int, argument: str = "arm") -> np.ndarray:
        """A vector of length one that a user or a policy gives as an arm, read-only.

        Args:
            vector: d numbers; `InvalidInput` if its length is not one.
            n_states: d.
            argument: what messages call it.
        """
        row = errors.matrix(vector, argument, shape=(n_states,))
        if not abs(row @ row - 1) <= 2 * TOLERANCE:
            problem = f"has length {math.sqrt(row @ row):.6g}"
            raise errors.InvalidInput(argument, problem, "give a vector of length one")
        row.setflags(write=False)
        return row


ActionSet = FiniteArms | Sphere
"""What a policy chooses from."""
FINITE, SPHERE = FiniteArms(), Sphere()
"""The two action sets; `action_set` returns one of them."""


def action_set(arms: Any, argument: str = "arms") -> ActionSet:
    """The action set that a user means by ``arms``: k × d rows, or the word "sphere".

    Args:
        arms: what was given; rows are not checked here but by `FiniteArms.rows`.
        argument: what messages call it.

    Example:
        >>> action_set("sphere"), action_set([[1.0, 0.0]])
        (Sphere(), FiniteArms())
    """
    if not isinstance(arms, str):
        return FINITE
    if arms != SPHERE.word:
        raise errors.InvalidInput(argument, f"is {arms!r}", 'give a k × d array, or "sphere"')
    return SPHERE
