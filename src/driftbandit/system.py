"""A model with its arms, names and contexts: what `fit` returns, a file stores, an agent plays.

system = db.load_model("model.json")
agent = db.Agent(system)             # decisions use system.names, not row numbers
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from driftbandit import contexts as reading
from driftbandit import errors
from driftbandit.contexts import Contexts
from driftbandit.model import LGDS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Returned = TypeVar("Returned")
LAST_ROUND = 2**53  # the largest round: JSON readers may round larger numbers
Name = str | int  # the name of an arm: a text or a whole number


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """A model, its arms, their names, and the contexts that change how the arms read the state.

    Args:
        model: the `LGDS` that drives the rewards.
        arms: k × d, one row of features per arm.
        names: k different texts or whole numbers. None: the row numbers 0 … k − 1.
        contexts: by the name of each feature x_j, the k × d array B_j that it adds to the arms,
            arms(x) = A + Σ_j x_j B_j. None: the arms are the same in every round.
        first_round: the round of which the model's initial mean and covariance speak, if they
            already contain what was learned from earlier rounds; an `Agent` then starts in it.
            None: they speak of any first round.
        clock: how rounds count times, if it was learned from a log with times (`Log.clock`).

    Example:
        >>> system = System(LGDS([[0.5]], [[1.0]], 1.0), [[1.0], [2.0]], ["left", "right"])
        >>> system.names, system.arms.tolist(), system.model.n_states
        (('left', 'right'), [[1.0], [2.0]], 1)
        >>> from driftbandit import Agent
        >>> Agent(system, policy="kalman_ucb").ask().arm  # what takes a model takes a System
        'right'
        >>> learned = System(system.model, system.arms, system.names, first_round=899)
        >>> learned
        System(1 states, 2 arms: 'left', 'right'; from round 899)
        >>> Agent(learned).ask().round
        899
    """

    model: LGDS
    arms: np.ndarray
    names: tuple[Name, ...] = None  # type: ignore[assignment]
    contexts: Contexts = None  # type: ignore[assignment]
    first_round: int | None = None
    clock: Any = None  # an `io.times.Clock`

    if TYPE_CHECKING:  # lists may be given, although arrays are kept

        def __init__(
            self,
            model: LGDS,
            arms: ArrayLike,
            names: Iterable[Name] | None = None,
            contexts: Mapping[str, ArrayLike] | None = None,
            first_round: int | None = None,
            clock: Any = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        arms, contexts = reading.checked(self.arms, self.contexts, self.model)
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "names", checked_names(self.names, len(arms)))
        object.__setattr__(self, "contexts", contexts)
        if self.first_round is not None:
            limits = {"low": -LAST_ROUND, "high": LAST_ROUND}
            first = errors.whole_number(self.first_round, "first_round", **limits)
            object.__setattr__(self, "first_round", first)
        if self.clock is not None and not hasattr(self.clock, "round_of"):
            problem = f"has type {type(self.clock).__name__}"
            raise errors.InvalidInput("clock", problem, "give the clock of a Log, or None")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, System) or self.names != other.names:
            return False
        if (self.first_round, self.clock) != (other.first_round, other.clock):
            return False
        if list(self.contexts) != list(other.contexts):  # their order is that of arrays of features
            return False
        same = (np.array_equal(self.contexts[x], other.contexts[x]) for x in self.contexts)
        return np.array_equal(self.arms, other.arms) and all(same) and self.model == other.model

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = names_and_number(self.names)
        if self.contexts:
            features = [label(name) for name in self.contexts]
            shown += f"; contexts: {', '.join(features[:4])}" + ", …" * (len(features) > 4)
        if self.first_round is not None:
            shown += f"; from round {self.first_round}"
        return f"System({self.model.n_states} states, {shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the arguments: a copy is checked again and its arms are read-only."""
        parts = self.model, self.arms, self.names, dict(self.contexts)
        return System, (*parts, self.first_round, self.clock)

    def arms_in(self, context: Mapping[str, Any]) -> np.ndarray:
        """The arms in a context, k × d: arms(x) = A + Σ_j x_j B_j.

        Args:
            context: every feature's value by its name: one number for all arms, k numbers in the
                order of arms, or a mapping from the names of all arms to numbers.

        Returns:
            k × d.

        Example:
            >>> model = LGDS(0.9 * np.eye(2), np.eye(2), 1.0)
            >>> by_price = {"x_price": [[0.0, 1.0], [0.0, 1.0]]}
            >>> shop = System(model, [[1.0, 0.0], [0.5, 0.0]], ["old", "new"], by_price)
            >>> shop.arms_in({"x_price": {"old": 3.0, "new": 4.0}}).tolist()
            [[1.0, 3.0], [0.5, 4.0]]
        """
        if not self.contexts:
            raise errors.InvalidInput("context", "was given, and the system has none", "use arms")
        return reading.arms_in(self.arms, self.contexts, context, self.names)

    def round_of(self, time: Any) -> int:
        """The round in which a time falls, if the system was learned from a log with times.

        Args:
            time: as for `Log.round_of`.

        Example:
            >>> from driftbandit.identify import as_log
            >>> days = ["2024-01-31", "2024-02-01", "2024-02-03"]
            >>> log = as_log({"round": days, "arm": ["a", "a", "a"], "reward": [1, 2, 3]})
            >>> system = System(LGDS([[0.5]], [[1.0]], 1.0), [[1.0]], ["a"], clock=log.clock)
            >>> system.round_of("2024-02-05")
            5
        """
        return round_of(self.clock, time, "system")

    def index(self, name: Name) -> int:
        """The row of the arm with that name.

        Args:
            name: one of ``names``; any other raises `InvalidInput`.

        Example:
            >>> system = System(LGDS([[0.5]], [[1.0]], 1.0), [[1.0], [2.0]], ["left", "right"])
            >>> system.arms[system.index("right")].tolist()
            [2.0]
        """
        if name in self.names and not isinstance(name, bool):
            return self.names.index(name)
        valid = ", ".join(map(str, self.names[:20])) + (", …" if len(self.names) > 20 else "")
        raise errors.InvalidInput("arm", f"{name!r} is not the name of an arm", f"valid: {valid}")


def round_of(clock: Any, time: Any, owner: str) -> int:
    """The round of a time by a clock; an error if there is none."""
    if clock is None:
        problem = f"cannot be read: this {owner} knows no times, only numbers of rounds"
        raise errors.InvalidInput("time", problem, "give the number of the round itself")
    return int(clock.round_of(time))


def checked_names(names: Iterable[Any] | None, n_arms: int, argument: str = "names") -> tuple:
    """One name for each arm, all different; None gives the row numbers."""
    if names is None:
        return tuple(range(n_arms))
    remedy = "give one text or whole number for each arm"
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise errors.InvalidInput(argument, f"is {names!r}", remedy)
    found = [_plain(name) for name in names]
    for place, name in enumerate(found):
        is_text = isinstance(name, str) and name.strip()
        if not is_text and (isinstance(name, bool) or not isinstance(name, int)):
            shown = errors.printable(repr(name)[:60])
            raise errors.InvalidInput(argument, f"entry [{place}] is {shown}", remedy)
    if len(found) != n_arms:
        raise errors.InvalidInput(argument, f"has {len(found)} entries for {n_arms} arms", remedy)
    for name, times in Counter(map(str, found)).items():  # 1 and "1" look the same on a page
        if times > 1:
            shown = errors.printable(repr(name)[:60])
            raise errors.InvalidInput(argument, f"has {shown} twice", "give each name once")
    return tuple(found)


def _plain(name: Any) -> Any:
    """A text or number without what an enumeration or NumPy adds to it."""
    if isinstance(name, str):
        return str.__str__(name)
    whole = isinstance(name, int | np.integer) and not isinstance(name, bool)
    return int(name) if whole else name


def names_and_number(names: Sequence[Name]) -> str:
    """How many arms there are and the first names, as a repr shows them.

    Example:
        >>> names_and_number(("left", "right")), names_and_number(range(9))
        ("2 arms: 'left', 'right'", '9 arms: 0, 1, 2, 3, …')
    """
    shown = ", ".join(map(repr, names[:4])) + (", …" if len(names) > 4 else "")
    return f"{len(names)} arms: {shown}"


def label(name: Name) -> str:
    """A name as tables and sentences show it: on one line, at most 30 characters.

    Example:
        >>> label(7), label("a very long name of an arm that goes on")
        ('7', 'a very long name of an arm th…')
    """
    text = str(name)
    return errors.printable(text if len(text) <= 30 else text[:29] + "…")


def checked_system(model: Any, arms: Any = None) -> System:
    """The given `System`, or one made of a model and arms."""
    if isinstance(model, System):
        pair(model, arms)
        return model
    if not isinstance(model, LGDS):
        problem = f"has type {type(model).__name__}"
        raise errors.InvalidInput("model", problem, "give a System, or an LGDS with arms")
    if arms is None:
        raise errors.InvalidInput("arms", "is missing", "give a k × d array, or a System")
    return System(model, arms)


def takes_system(function: Callable[..., Returned]) -> Callable[..., Returned]:
    """Let a function of (…, model, arms, …) take a `System` in place of the two.

    The arguments after it move up by one: ``f(model, arms, rounds)`` is ``f(system, rounds)``.

    Example:
        >>> @takes_system
        ... def size(model, arms, extra=0):
        ...     return model.n_states, len(arms) + extra
        >>> system = System(LGDS([[0.5]], [[1.0]], 1.0), [[1.0], [2.0]], ["left", "right"])
        >>> size(system, 5), size(system, extra=5), size(system.model, system.arms, 5)
        ((1, 7), (1, 7), (1, 7))
    """
    place = list(inspect.signature(function).parameters).index("model")

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Returned:
        system = named.get("model", given[place] if len(given) > place else None)
        if isinstance(system, System):
            model, arms = pair(system, named.pop("arms", None))
            if "model" in named:
                named |= {"model": model, "arms": arms}
            else:
                given = (*given[:place], model, arms, *given[place + 1 :])
        return function(*given, **named)

    return called


def pair(system: Any, arms: Any = None) -> Any:
    """The model and arms of a `System` without contexts; anything else is returned unchanged."""
    if not isinstance(system, System):
        return system
    check_alone(system, arms)
    if system.contexts:
        problem = f"has contexts ({', '.join(system.contexts)}), and here arms cannot change"
        remedy = "give (system.model, system.arms_in(context)) for one context"
        raise errors.InvalidInput("system", problem, remedy)
    return system.model, system.arms


def check_alone(system: System, arms: Any) -> None:
    """Refuse arms beside a `System`."""
    if arms is not None:
        problem = "were given together with a System, which has its own"
        raise errors.InvalidInput("arms", problem, "leave them out")
