"""What a policy is: three pure functions, and the random numbers they ask for.

    prepare(model, arms, rounds) -> (constants, state)   once per system, plain NumPy
    choose(state, problem, noise) -> arm index           every round
    update(state, problem, arm, reward) -> state         every round

A policy that plays the highest of k scores writes ``highest(scores)`` for ``choose``, with

    scores(state, problem) -> (expected rewards, bonuses), k numbers each

``choose``, ``scores`` and ``update`` are written for one system and one run against the array API
(`driftbandit.arrays.namespace`), without in-place writes and without branching on values, so the
same lines decide one at a time under NumPy and by the million under JAX. A state is a NamedTuple of
arrays; constants are any dictionary of numbers and arrays.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Literal, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.actions import ActionSet
from driftbandit.arrays import NO_ARM, Array, first_highest
from driftbandit.model import LGDS

NEEDS_NOISE = (
    'if it needs random numbers, give the policy noise=Noise("normal", "arms"), '
    'or "uniform", and "one" or "states"'
)
"""What to do if ``choose`` uses noise and gets None."""
COMPUTED_NAN = "look for 0 / 0, the root of a negative number, or a parameter that is NaN"
"""What to do if a policy's scores are NaN."""
Prepared = tuple[Mapping[str, Any], NamedTuple]  # constants, and the state before the first round


class Problem(NamedTuple):
    """What a policy knows besides its state.

    ``choose``, ``scores`` and ``update`` of a policy get it beside the state.

    Example:
        >>> from driftbandit.policies import make
        >>> model, arms = LGDS([[0.5]], [[3.0]], reward_std=1.0), np.array([[1.0], [-2.0]])
        >>> policy = make("kalman_ucb(width=2)")
        >>> constants, state = policy.prepare(model, arms, 100)
        >>> problem = Problem(model, arms, constants)
        >>> int(policy.choose(state, problem, None)), dict(problem.constants)
        (1, {'width': 2.0})
    """

    model: LGDS
    arms: Array  # k × d
    constants: Mapping[str, Any]  # what ``prepare`` computed


class Noise(NamedTuple):
    """The random numbers a policy asks for, fresh every round; the engine draws them.

    Example:
        >>> from driftbandit.policies import make
        >>> make("thompson").noise, make("thompson").noise.shape(n_states=3, n_arms=5)
        (Noise(distribution='normal', size='states'), (3,))
    """

    distribution: Literal["uniform", "normal"]  # uniform on [0, 1), or standard normal
    size: Literal["one", "states", "arms"]  # shape (), (d,) or (k,)

    def shape(self, n_states: int, n_arms: int) -> tuple[int, ...]:
        """The shape of one round's draw."""
        return {"one": (), "states": (n_states,), "arms": (n_arms,)}[self.size]


Scores = Callable[[Any, Problem], tuple[Array, Array]]
"""``scores(state, problem) -> (expected rewards, bonuses)``, k numbers each."""


@dataclasses.dataclass(frozen=True)  # equal for the same scores, so it compiles once
class highest:  # noqa: N801  (a function that can be compared and pickled)
    """``choose`` of a policy that plays the highest score, the first of equal ones.

    Args:
        scores: ``scores(state, problem) -> (expected rewards, bonuses)``, k numbers each.

    Example:
        >>> def scores(state, problem):
        ...     return np.array([1.0, 3.0, 2.0]), np.array([0.5, 0.0, 2.0])
        >>> choose = highest(scores)
        >>> int(choose(None, None, None))
        2
        >>> choose.best(None, None)
        (2, 2.0, 2.0)
    """

    scores: Scores

    def __call__(self, state: Any, problem: Problem, noise: Array) -> Array:
        """The arm to play."""
        return first_best(*self.scores(state, problem))

    def best(self, state: Any, problem: Problem) -> tuple[int, float, float]:
        """The arm to play, its expected reward and its bonus, for NumPy alone."""
        return first_with_score(*self.scores(state, problem))


def first_best(expected: Array, bonuses: Array) -> Array:
    """The first arm whose expected reward plus bonus is the highest, up to rounding."""
    return first_highest(expected + bonuses, abs(expected) + abs(bonuses))


def first_with_score(expected: np.ndarray, bonuses: np.ndarray) -> tuple[int, float, float]:
    """`first_best`, its expected reward and its bonus."""
    place = int(first_best(expected, bonuses))
    if place == NO_ARM:  # its first NaN, which the caller names
        place = int(np.isnan(expected + bonuses).argmax())
    return place, expected.item(place), bonuses.item(place)


class LengthRatio(NamedTuple):
    """A bonus as a ratio of lengths, u(a) = ‖M Fᵀa‖ / √(‖Fᵀa‖² + σ²), or without the divisor.

    Its rounding errors are known in advance, so `Agent` can screen very many arms in single
    precision and score only those that can be the best (`agent.screening`).

    Example:
        >>> from driftbandit.policies import kalman_ucb
        >>> model = LGDS(np.eye(2) / 2, np.eye(2), reward_std=1.0)
        >>> ratio, arm = kalman_ucb.length_ratio(np.eye(2), model, width=2.0), np.array([3.0, 4.0])
        >>> round(float(np.linalg.norm(ratio.stretch @ ratio.factor.T @ arm)), 9)  # no divisor
        10.0
        >>> kalman_ucb.bonus(np.eye(2), model, arm[None], width=2.0).tolist()
        [10.0]
    """

    factor: np.ndarray  # F, d × r, with F Fᵀ = P
    stretch: np.ndarray  # M, with r columns: Γ F for IDEA, w I for Kalman-UCB
    noise: float | None  # σ; None: no divisor
    size: float
    """At least ‖M‖; for M = Γ F the product ‖Γ‖ ‖F‖ (Frobenius norms), which bounds the rounding
    error of multiplying by one after the other."""


class ActionAbilities(NamedTuple):
    """Which arms a policy can play besides a short list.

    Example:
        >>> from driftbandit.policies import make
        >>> make("lookahead").actions.max_arms, make("idea").actions.max_arms
        (2000, None)
        >>> make("idea").actions.on_sphere is not None, make("ucb").actions.on_sphere
        (True, None)
        >>> [make(name).actions.contexts for name in ("idea", "ucb", "rexp3")]
        ['online', 'in advance', None]
    """

    max_arms: int | None = None  # the longest list of arms; None: any
    compares: int = 0  # the longest list whose arms' scores depend on each other
    length_ratio: Callable[[Any, Problem], tuple[Array, LengthRatio]] | None = None
    """``(state, problem) -> (mean, LengthRatio)``: the scores as ⟨a, mean⟩ and a bonus, for very
    many arms; None: every arm is scored."""
    on_sphere: Callable[[Any, Problem, Array], Array] | None = None
    """``(state, problem, noise) -> unit vector``, where ``problem.arms`` is the identity; None: the
    policy needs a list of arms."""
    sphere_noise: Noise | None = None  # for ``on_sphere``; None: the same as for ``choose``
    contexts: Literal["online", "in advance"] | None = None
    """How it plays arms that contexts change; every round finds its own in ``problem.arms``.
    "online": ``prepare`` does not look at the rows. "in advance": ``prepare`` needs the rows of all
    rounds, k × rounds × d, which only `simulate` knows. None: it cannot play them."""


class AgentAbilities(NamedTuple):
    """What lets an `Agent` offer other arms and skip rounds.

    Example:
        >>> from driftbandit import kalman
        >>> from driftbandit.policies import make
        >>> idea, model = make("idea"), LGDS([[0.5]], [[3.0]], reward_std=1.0)
        >>> belief = kalman.Belief(np.array([8.0]), np.array([[1.0]]))
        >>> idea.agent.advance(belief, Problem(model, np.eye(1), {}), 3).mean.tolist()
        [1.0]
        >>> make("ucb").agent.reads_features  # it counts plays: a new arm needs a new agent
        False
    """

    reads_features: bool = False  # whether it can play new arms by their rows in ``problem.arms``
    observe: Callable[[Any, Problem, Array, Array], Any] | None = None
    """``update`` without the passing of time: fold in a reward; None: ``update`` itself."""
    advance: Callable[[Any, Problem, int], Any] | None = None
    """``(state, problem, rounds) -> state``: let rounds pass without rewards; None: no change."""


Systems = Sequence[tuple[LGDS, Array]]  # models and their arms, all of one shape


class BatchAbilities(NamedTuple):
    """What helps simulations to plan time and memory.

    Example:
        >>> from driftbandit.policies import make
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=1.0)
        >>> systems = [(model, np.eye(1)), (model, 2 * np.eye(1))]
        >>> constants, beliefs = make("kalman_ucb").batch.prepare_stack(systems, 100)
        >>> constants["width"].tolist(), beliefs.mean.shape
        ([1.0, 1.0], (2, 1))
    """

    prepare_stack: Callable[[Systems, int], Prepared] | None = None
    """``prepare`` for many systems at once: the same numbers, with a leading systems axis. None:
    what ``prepare`` returns for each system is stacked."""
    scratch_size: Callable[[int, int], int] | None = None
    """``(d, k)`` -> about how many numbers ``choose`` holds at once; None: few."""


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """A named decision rule: three functions, and optional abilities.

    Two policies with the same ``choose`` and ``update`` share one compiled program, whatever
    their constants: put tuning parameters into the constants, not into closures.

    `simulate` and `Agent` take a Policy, registered or not. A Kalman policy needs only its bonus:
    see `optimistic`.

    Args:
        name: for tables and logs.
        prepare: ``prepare(model, arms, rounds) -> (constants, state)``, once per system.
        choose: ``choose(state, problem, noise) -> arm index``, every round.
        update: ``update(state, problem, arm, reward) -> state``, every round.
        noise: the random numbers that ``choose`` gets; None: it gets None.
        full_information: whether ``update`` gets the rewards of all k arms.
        parameters: the tuning parameters, for labels and stored state.
        actions, agent, batch: what it can do besides.

    Example:
        >>> class Round(NamedTuple):
        ...     number: int
        >>> in_turn = Policy(
        ...     "in_turn",
        ...     prepare=lambda model, arms, rounds: ({}, Round(0)),
        ...     choose=lambda state, problem, noise: state.number % problem.arms.shape[0],
        ...     update=lambda state, problem, arm, reward: Round(state.number + 1),
        ... )
        >>> from driftbandit import Agent
        >>> agent = Agent(LGDS(np.eye(2) / 2, np.eye(2), 1.0), np.eye(2), policy=in_turn)
        >>> for _ in range(3):
        ...     decision = agent.ask()
        ...     print(decision.arm, agent.tell(decision, reward=0.0))
        0 learned
        1 learned
        0 learned

        What a policy says of itself:

        >>> from driftbandit import actions, policies
        >>> wide = policies.make("kalman_ucb", width=2)
        >>> wide.label, wide == policies.make(wide.label), len(wide.values())
        ('kalman_ucb(width=2)', True, 10)
        >>> model = LGDS([[0.5]], [[4.0]], reward_std=1.0, initial_cov=[[4.0]])
        >>> constants, belief = wide.prepare(model, np.eye(1), 100)
        >>> expected, bonus = wide.scores(belief, Problem(model, np.eye(1), constants))
        >>> expected.tolist(), bonus.tolist(), in_turn.scores
        ([0.0], [4.0], None)
        >>> in_turn.check_plays(actions.SPHERE, n_arms=2)
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: policy: in_turn chooses from a list of arms, not from ...
    """

    name: str
    prepare: Callable[[LGDS, Array, int], Prepared]
    choose: Callable[[Any, Problem, Array], Array]
    update: Callable[[Any, Problem, Array, Array], Any]
    noise: Noise | None = None  # random numbers for ``choose``; None: it gets None
    full_information: bool = False  # whether ``update`` gets the rewards of all k arms
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The tuning parameters, for labels and stored state."""
    actions: ActionAbilities = ActionAbilities()  # noqa: RUF009 (immutable)
    agent: AgentAbilities = AgentAbilities()  # noqa: RUF009
    batch: BatchAbilities = BatchAbilities()  # noqa: RUF009

    @property
    def scores(self) -> Scores | None:
        """What ``choose`` maximizes; None: it is not a `highest`."""
        return self.choose.scores if isinstance(self.choose, highest) else None

    def __eq__(self, other: object) -> bool:
        """Whether both decide by the same functions, with the same parameters."""
        if not isinstance(other, Policy):
            return NotImplemented
        return _alike(self.values(), other.values())

    def __hash__(self) -> int:
        return hash(self.label)

    def __repr__(self) -> str:
        return f"Policy({self.label})"

    def values(self) -> tuple[Any, ...]:
        """The values of all fields, from which an equal policy can be made."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def check_plays(self, actions: ActionSet, n_arms: int, argument: str = "policy") -> None:
        """Raise `InvalidInput` if the policy cannot play these arms.

        Args:
            actions: `actions.FINITE`, a list of arms, or `actions.SPHERE`, all unit vectors.
            n_arms: how long the list is.
            argument: what the message calls the policy.
        """
        refusal = actions.refusal(self, n_arms, argument)
        if refusal is not None:
            raise refusal

    @property
    def label(self) -> str:
        """Name and parameters, as `make` reads them."""
        given = [f"{k}={_shown(v)}" for k, v in self.parameters.items() if v is not None]
        return f"{self.name}({', '.join(given)})" if given else self.name


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are equal; functions are equal if their code and what it holds are."""
    if one is other:
        return True
    if isinstance(one, functools.partial) and isinstance(other, functools.partial):
        return _alike(*((part.func, part.args, part.keywords) for part in (one, other)))
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return _alike(_held(one), _held(other))
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    return bool(one == other)


def _held(function: FunctionType) -> tuple[Any, ...]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return function.__code__, function.__defaults__, function.__kwdefaults__, cells


def _shown(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def if_given(check: Callable[..., Any], value: Any, argument: str, **limits: Any) -> Any:
    """The checked value of a tuning parameter; None stays None."""
    return None if value is None else check(value, argument, **limits)


def prepare_alone(
    prepare_stack: Callable[[Systems, int], Prepared], model: LGDS, arms: Array, rounds: int
) -> Prepared:
    """``prepare`` of a policy that has a ``prepare_stack``: a stack of one system."""
    constants, state = prepare_stack([(model, arms)], rounds)
    alone = (leaf[0, ...] for leaf in state)
    return {name: value[0] for name, value in constants.items()}, type(state)(*alone)


def checked_prepared(policy: Policy, model: LGDS, arms: Array, rounds: int) -> Prepared:
    """What the policy's ``prepare`` returns, if it is constants and a state."""
    found: Any = policy.prepare(model, arms, rounds)
    if not isinstance(found, tuple | list) or hasattr(found, "_fields") or len(found) != 2:
        problem = f"returns {kind_of(found)}"
        remedy = "return (constants, state): a dictionary, and a NamedTuple of arrays"
        raise errors.InvalidInput(f"policy {policy.name!r} prepare", problem, remedy)
    constants, state = found
    return constants, state


def kind_of(value: Any) -> str:
    """What a function returned instead of what it should have returned, for messages."""
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" if shape is None else f"an array of shape {shape}"


def check_kinds(before: Any, after: Any, name: str = "state") -> None:
    """Refuse a state whose numbers change kind, for example from whole to real."""
    if hasattr(before, "_fields"):
        for field in before._fields:
            check_kinds(getattr(before, field), getattr(after, field), f"{name}.{field}")
        return
    old, new = _kind(before), _kind(after)
    if old != new:
        raise errors.InvalidInput(name, f"starts as {old} and becomes {new}", f"start it as {new}")


def check_shapes(before: Any, after: Any, name: str = "state") -> None:
    """Refuse a state that changes its type or shape, which compiled programs cannot do."""
    if hasattr(before, "_fields"):
        if type(after) is not type(before):
            kind = type(before).__name__
            problem, remedy = f"returns {kind_of(after)}", f"return a {kind}, as prepare does"
            raise errors.InvalidInput("update", problem, remedy)
        for field in before._fields:
            check_shapes(getattr(before, field), getattr(after, field), f"{name}.{field}")
        return
    old, new = _shape(before), _shape(after)
    if old != new:
        raise errors.InvalidInput(name, f"starts as {old} and becomes {new}", f"keep it {old}")


def _shape(value: Any) -> str:
    if value is None:
        return "None"
    shape = getattr(value, "shape", ())
    return f"an array of shape {shape}" if shape else "a number"


def _kind(value: Any) -> str:
    kind = getattr(value, "dtype", np.asarray(value).dtype if np.isscalar(value) else None)
    letter = getattr(kind, "kind", "f")
    return {"f": "real", "i": "whole", "u": "whole", "b": "boolean"}.get(letter, str(kind))
