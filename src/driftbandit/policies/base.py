"""What a policy is: three pure functions and the noise they ask for.

    prepare(model, arms, rounds) -> (constants, state)   once per system, plain NumPy
    choose(state, problem, noise) -> arm index           every round
    update(state, problem, arm, reward) -> state         every round

A policy that plays the highest of k scores says so instead of writing ``choose`` (`highest`):

    scores(state, problem) -> (expected rewards, bonuses), k numbers each

One that can play any unit vector, instead of one of k arms, says how:

    on_sphere(state, problem, noise) -> the vector       every round

``choose``, ``scores``, ``on_sphere`` and ``update`` are written for one system and one run against
the array API (`driftbandit.arrays.namespace`), without in-place writes and without branching on
values, so that the same lines decide one at a time under NumPy and by the million under JAX. A
state is a NamedTuple of arrays; constants are any dictionary of numbers and arrays.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Literal, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, first_highest
from driftbandit.model import LGDS
from driftbandit.policies.outline import Outline

__all__ = ["Noise", "Policy", "Problem", "Scores", "first_best", "highest"]


class Problem(NamedTuple):
    """What a policy knows besides its state."""

    model: LGDS
    arms: Array
    """k × d."""
    constants: Mapping[str, Any]
    """What ``prepare`` computed."""


class Noise(NamedTuple):
    """The random numbers a policy asks for, fresh every round; the engine draws them."""

    law: Literal["uniform", "normal"]
    """Uniform on [0, 1) or standard normal."""
    size: Literal["one", "states", "arms"]
    """One number (shape ()), one per state (d,), or one per arm (k,)."""

    def shape(self, n_states: int, n_arms: int) -> tuple[int, ...]:
        """The shape of one round's draw."""
        return {"one": (), "states": (n_states,), "arms": (n_arms,)}[self.size]


Scores = Callable[[Any, Problem], tuple[Array, Array]]
"""``scores(state, problem) -> (expected rewards, bonuses)``, k numbers each."""


@dataclasses.dataclass(frozen=True)  # equal for the same scores, so that it compiles once
class highest:  # noqa: N801  (a function that can be compared and pickled)
    """``choose`` of a policy that plays the highest score, the first of equal ones."""

    scores: Scores

    def __call__(self, state: Any, problem: Problem, noise: Array) -> Array:
        """The arm to play."""
        return first_best(*self.scores(state, problem))


def first_best(expected: Array, bonuses: Array) -> Array:
    """The first arm whose expected reward plus bonus is the highest, up to rounding."""
    return first_highest(expected + bonuses, abs(expected) + abs(bonuses))


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """A named decision rule; see the module's first lines for the contract.

    Two policies with the same ``choose`` and ``update`` share one compiled program, whatever
    their constants: put tuning parameters into the constants, not into closures.
    """

    name: str
    prepare: Callable[[LGDS, Array, int], tuple[Mapping[str, Any], NamedTuple]]
    choose: Callable[[Any, Problem, Array], Array]
    update: Callable[[Any, Problem, Array, Array], Any]
    noise: Noise | None = None
    """Random numbers handed to ``choose``; None: it gets None."""
    full_information: bool = False
    """Whether ``update`` gets the rewards of all k arms instead of the played one's."""
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The tuning parameters the policy was made with, for labels and stored state."""
    prepare_all: (
        Callable[[Sequence[tuple[LGDS, Array]], int], list[tuple[Mapping[str, Any], NamedTuple]]]
        | None
    ) = None
    """Prepare for many systems at once, where that is faster; must give what ``prepare`` gives."""

    scores: Scores | None = None
    """What ``choose`` maximizes, so that a part of the arms can be chosen from; None: no scores."""
    reads_features: bool = False
    """Whether arms matter by their rows in ``problem.arms`` alone, so that new ones may come."""
    observe: Callable[[Any, Problem, Array, Array], Any] | None = None
    """``update`` within a round: learn a reward, let no time pass; None: ``update`` itself."""
    advance: Callable[[Any, Problem, int], Any] | None = None
    """What so many rounds without a reward do to the state; None: nothing."""
    compares: bool = False
    """Whether an arm's score depends on which other arms there are."""
    max_arms: int | None = None
    """How many arms it can play at most; None: any number."""
    scratch_size: Callable[[int, int], int] | None = None
    """About how many numbers ``choose`` holds at once, given d and k; None: few."""
    outline: Callable[[Any, Problem], tuple[Array, Outline]] | None = None
    """The scores as ⟨a, mean⟩ and an `Outline`, for huge sets of arms; None: all are scored."""
    on_sphere: Callable[[Any, Problem, Array], Array] | None = None
    """The unit vector to play where all are on offer (``problem.arms`` is then the identity);
    None: the policy needs a list of arms."""
    sphere_noise: Noise | None = None
    """Random numbers handed to ``on_sphere``; None: those of ``noise``."""

    def __eq__(self, other: object) -> bool:
        """Whether both decide by the same functions, with the same parameters."""
        if not isinstance(other, Policy):
            return NotImplemented
        return _alike(self._values(), other._values())

    def __hash__(self) -> int:
        return hash(self.label)

    def __repr__(self) -> str:
        return f"Policy({self.label})"

    def __reduce__(self) -> tuple[Any, ...]:
        """By name where it is the registry's; else by its functions, which must have names."""
        from driftbandit import policies  # which imports this

        made = functools.partial(policies.make, self.name, **self.parameters)
        with contextlib.suppress(errors.InvalidInput):
            if made() == self:
                return made, ()
        return type(self), self._values()

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def check_count(self, n_arms: int, argument: str = "arms") -> None:
        """Refuse more arms than the policy can play."""
        if self.max_arms is not None and n_arms > self.max_arms:
            problem = f"are {n_arms}, and {self.name} compares each with each"
            remedy = f"give at most {self.max_arms}, or play idea"
            raise errors.InvalidInput(argument, problem, remedy)

    @property
    def label(self) -> str:
        """Name and parameters, as `make` reads them."""
        given = [f"{k}={_shown(v)}" for k, v in self.parameters.items() if v is not None]
        return f"{self.name}({', '.join(given)})" if given else self.name


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, functions by what they do: their code and what it holds."""
    if one is other:
        return True
    if isinstance(one, functools.partial) and isinstance(other, functools.partial):
        parts = [(part.func, part.args, part.keywords) for part in (one, other)]
        return _alike(*parts)
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        held = [
            (
                f.__code__,
                f.__defaults__,
                f.__kwdefaults__,
                [cell.cell_contents for cell in f.__closure__ or ()],
            )
            for f in (one, other)
        ]
        return _alike(*held)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    return bool(one == other)


def _shown(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def check_kinds(before: Any, after: Any, name: str = "state") -> None:
    """Refuse a state whose numbers change kind, as whole ones that become real would."""
    if hasattr(before, "_fields"):
        for field in before._fields:
            check_kinds(getattr(before, field), getattr(after, field), f"{name}.{field}")
        return
    old, new = _kind(before), _kind(after)
    if old != new:
        raise errors.InvalidInput(name, f"starts as {old} and becomes {new}", f"start it as {new}")


def _kind(value: Any) -> str:
    kind = getattr(value, "dtype", np.asarray(value).dtype if np.isscalar(value) else None)
    letter = getattr(kind, "kind", "f")
    return {"f": "real", "i": "whole", "u": "whole", "b": "boolean"}.get(letter, str(kind))
