"""A policy whose functions are compiled: a few microseconds each, most of it for copies.

NumPy needs a dozen calls for an update of 10 × 10 matrices, each about a microsecond, whatever it
computes. `lanes` compiles the whole update to one call. It is made for many runs side by side; here
two lanes compute the same. What cannot be compiled stays with NumPy. Which of the two computes a
number depends only on the problem and on the play, so that agents stay reproducible bit for bit.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array, namespace
from driftbandit.model import LGDS
from driftbandit.policies import Policy, Problem
from driftbandit.policies.base import Prepared, Scores, first_best, highest

MOST_WORK = 30_000  # d² max(d, k): with more, NumPy's matrix products are faster
MOST_ARMS = 1000  # with more, NumPy's vectors are
NUMBERS = (np.ndarray, np.generic, float, int)
LANES = 2  # the fewest that `lanes` compiles for

Parts = tuple[Any, ...]  # a function and its first arguments; equal ones are compiled once
Program = Callable[..., list[np.ndarray]]  # of arrays


def compiled(policy: Policy) -> Policy:
    """The policy with compiled functions for the problems that its ``prepare`` sees."""
    errors.require("compiled", "llvmlite", "jax")
    observe, advance = policy.agent.observe or policy.update, policy.agent.advance
    by_row = _is_by_row(policy)

    def observed(state: Any, problem: Problem, arm: Array, reward: Array) -> Any:
        program = _programs(problem).observe
        if program is None:
            return observe(state, problem, arm, reward)
        return type(state)(*program(*state, problem.arms[arm] if by_row else arm, reward))

    def advanced(state: Any, problem: Problem, rounds: int) -> Any:
        program = _programs(problem).advance if rounds == 1 else None
        if program is None:
            return advance(state, problem, rounds)  # type: ignore[misc]
        return type(state)(*program(*state))

    abilities = policy.agent._replace(observe=observed, advance=advance and advanced)
    prepare = functools.partial(_prepare, policy)
    choose = policy.choose if policy.scores is None else _Highest(policy.scores)
    return dataclasses.replace(policy, prepare=prepare, choose=choose, agent=abilities)


class _Highest(highest):
    """The same scores and the same choice; compiled for the arms that were prepared."""

    def best(self, state: Any, problem: Problem) -> tuple[int, float, float]:
        program = _programs(problem).best
        if program is None or problem.arms is not problem.constants.arms:  # type: ignore[attr-defined]
            return super().best(state, problem)
        place, mean, bonus = program(*state)[0].tolist()
        if place >= len(problem.arms):  # a score is NaN: NumPy finds whose
            return super().best(state, problem)
        return int(place), mean, bonus


class _Programs(NamedTuple):
    """The compiled functions of a problem; None: NumPy's."""

    observe: Program | None = None
    advance: Program | None = None
    best: Program | None = None


class _Constants(dict[str, Any]):
    """A policy's constants, with the programs of the problem that they were prepared for."""

    arms: Array
    programs: _Programs


def _programs(problem: Problem) -> _Programs:
    return problem.constants.programs  # type: ignore[attr-defined]


def _is_by_row(policy: Policy) -> bool:
    """Whether the policy learns from the features that were played, whoever offered them."""
    return policy.agent.reads_features and not policy.full_information


def _prepare(policy: Policy, model: LGDS, arms: Array, rounds: int) -> Prepared:
    prepared, state = policy.prepare(model, arms, rounds)
    constants = _Constants(prepared)
    arms = arms if arms.ndim == 2 else arms[:, 0]  # of one round, if contexts change them
    constants.arms, constants.programs = arms, _Programs()
    k, d = arms.shape
    is_flat = all(isinstance(leaf, NUMBERS) and np.size(leaf) for leaf in state)
    is_small = d * d * max(d, k) <= MOST_WORK and k <= MOST_ARMS
    if state and is_flat and is_small:
        problem, by_row = Problem(model, arms, dict(prepared)), _is_by_row(policy)
        observe, advance = policy.agent.observe or policy.update, policy.agent.advance
        own = problem._replace(arms=arms[:0]) if by_row else problem
        played = arms[0] if by_row else np.int32(0)
        reward = np.zeros(k if policy.full_information else ())
        constants.programs = _Programs(
            _single((_observed, observe, by_row), own, state, played, reward),
            advance and _single((_advanced, advance), problem, state),
            policy.scores and _single((_best, policy.scores), problem, state),
        )
    return constants, state


# What is compiled, beside a policy's own function.


def _observed(
    observe: Any, by_row: bool, problem: Problem, state: Any, arm: Any, reward: Any
) -> Any:
    if by_row:  # the row that was played, not its number
        problem, arm = problem._replace(arms=arm[None, :]), 0
    return _like(state, observe(state, problem, arm, reward))


def _advanced(advance: Any, problem: Problem, state: Any) -> Any:
    return _like(state, advance(state, problem, 1))


def _best(scores: Scores, problem: Problem, state: Any) -> Any:
    means, bonuses = scores(state, problem)
    place, xp = first_best(means, bonuses), namespace(means)
    return (xp.stack([xp.astype(place, means.dtype), means[place], bonuses[place]]),)


def _like(before: Any, after: Any) -> tuple[Array, ...]:
    """The new state's arrays, of the old ones' types."""
    import jax.numpy as jnp

    return tuple(jnp.asarray(new, old.dtype) for new, old in zip(after, before, strict=True))


def _single(parts: Parts, problem: Problem, *values: Any) -> Program | None:
    """What the parts make of a problem and values like these, compiled; None: it cannot be."""
    import jax

    from driftbandit.lanes.program import aligned
    from driftbandit.simulation import jobs  # registers models as trees

    tree = jax.tree.map(np.asarray, (problem, values))
    try:
        program, kinds = _program(parts, *jobs.shapes(tree))
    except Exception:  # whatever a policy does that JAX cannot trace; NumPy may well compute it
        return None
    inputs = [np.empty_like(value) for value in jax.tree.leaves(tree[1])]
    outputs = [aligned((1, 1, *kind.shape, LANES), kind.dtype) for kind in kinds]
    firsts = [output[0, 0, ..., 0] for output in outputs]
    own = [aligned((1, LANES), float), *jax.tree.leaves(tree[0]), *inputs]
    play = program.on([own[0], *map(np.ascontiguousarray, own[1:])], outputs)
    lock = threading.Lock()  # inputs and outputs serve one call at a time

    def call(*values: Any) -> list[np.ndarray]:
        with lock:
            for place, value in zip(inputs, values, strict=True):
                place[...] = value
            play(1, 0)
            return [first.copy() for first in firsts]

    return call


@functools.lru_cache(maxsize=64)
def _program(parts: Parts, structure: Any, shapes: Any) -> tuple[Any, Any]:
    """The program of these parts, and the shapes and types of its results."""
    import jax

    from driftbandit.lanes.program import compiled as program_of
    from driftbandit.simulation import programs

    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    own = jax.ShapeDtypeStruct((), np.float64), *jax.tree.unflatten(structure, leaves)

    def results(own: Any) -> tuple[Array, ...]:
        _, problem, values = own  # of the first, `lanes` takes the number of runs
        function, *own_parts = parts
        return function(*own_parts, problem, *values)

    def step(own: Any, state: Any, round_: Array, stream: Any) -> Any:
        return state, results(own)

    shared = [False] + [True] * len(leaves)
    with programs.numerics(np.float64):
        kinds = jax.eval_shape(results, own)
        return program_of(step, own, (), (), shared=shared, lanes=LANES), kinds
