"""The two compiled programs: the environment, and one policy playing it, for a span of rounds.

Each is written for one run and mapped over lanes: a lane is one run of one system, with arrays of
its own. Axes are always (rounds, lanes, …). Every policy has its own program, so its results do not
depend on the other policies; and its shape depends only on the policy and the system's shape
(`jobs`), so they do not depend on the number of runs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit import errors
from driftbandit.actions import FINITE, ActionSet
from driftbandit.arrays import Array
from driftbandit.contexts import read_rows
from driftbandit.model import LGDS
from driftbandit.policies import Noise, Policy, Problem
from driftbandit.policies.base import check_kinds, check_shapes
from driftbandit.simulation import blame, draws
from driftbandit.simulation.draws import Key

LEAVES = ("transition", "process_cov", "reward_std")
"""What policies see of a model every round; only `prepare` sees where the state starts."""


def _flatten(model: LGDS) -> tuple[tuple[Any, ...], None]:
    return tuple(getattr(model, name) for name in LEAVES), None


def _unflatten(_: None, leaves: tuple[Any, ...]) -> LGDS:
    return model_of(leaves)


def model_of(leaves: Iterable[Any]) -> LGDS:
    """A model with these `LEAVES`, which may also be stacks of arrays."""
    model = object.__new__(LGDS)  # leaves may be tracers: no validation here
    for name, leaf in zip(LEAVES, leaves, strict=True):
        object.__setattr__(model, name, leaf)
    for name in ("initial_cov", "initial_mean"):
        object.__setattr__(model, name, None)
    return model


jax.tree_util.register_pytree_node(LGDS, _flatten, _unflatten)


@contextlib.contextmanager
def numerics(dtype: Any) -> Iterator[None]:
    """JAX settings of a simulation, for this thread and this block of code only."""
    double = np.dtype(dtype) == np.float64
    with jax.enable_x64(double), jax.default_matmul_precision("highest"):
        yield


class Environment(NamedTuple):
    """The true system, as arrays."""

    model: LGDS
    arms: Array  # k × d
    process_factor: Array  # F with F Fᵀ = Q
    start_factor: Array  # F with F Fᵀ = covariance of z(0)
    start_mean: Array  # E z(0), d numbers
    contexts: Array = None  # the B_j, J × k × d; None: none


class Rule(NamedTuple):
    """The part of a policy that is compiled; equal rules share one program."""

    choose: Callable[..., Array]  # the index of an arm or, on the sphere, the unit vector
    update: Callable[..., Any]
    noise: Noise | None
    full_information: bool

    @classmethod
    def of(cls, policy: Policy, actions: ActionSet = FINITE) -> Rule:
        """The rule of a policy on an action set: all of it but its name and constants."""
        choose, noise = actions.choose(policy), actions.noise(policy)
        rule = cls(choose, policy.update, noise, policy.full_information)
        try:
            hash(rule)
        except TypeError:
            name, remedy = f"policy {policy.name!r}", "give plain functions"
            problem = "has a choose or update that cannot be hashed"
            raise errors.InvalidInput(name, problem, remedy) from None
        return rule


class Game(NamedTuple):
    """What is compiled into every policy's program besides its rule."""

    regret: str = "mean"
    common_noise: bool = False
    actions: ActionSet = FINITE
    whole_spans: bool = False
    """Whether spans are always played to their end, and surplus rounds dropped: a GPU must not wait
    for the host after every round."""


class Lanes(NamedTuple):
    """What a policy's program takes for each lane and never changes."""

    reward_key: Key
    policy_key: Key
    problem: Problem
    noise_std: Array  # of the true system
    contexts: Array = None  # the B_j as the policy knows them, J × k × d; None: none


@jax.jit
def lane_keys(role: Key, systems: Array, runs: Array) -> Key:
    """A role's key for every lane."""
    return jax.vmap(draws.run_key, (None, 0, 0))(role, systems, runs)


@jax.jit
def of_lanes(tree: Any, systems: Array) -> Any:
    """Arrays with a leading systems axis as every lane's own, by its system's number."""
    return jax.tree.map(lambda leaf: leaf[systems], tree)


def start(key: Key, environment: Environment) -> Array:
    """z(0) of one run, with the environment's mean and covariance."""
    factor = environment.start_factor
    states = jnp.arange(factor.shape[0])
    return environment.start_mean + factor @ draws.normal(key, 0, states, factor.dtype)


starts = jax.jit(jax.vmap(start))
"""z(0) for every lane."""


def move(key: Key, environment: Environment, z: Array, round_: Array) -> Array:
    """z(t + 1) of one run."""
    shock = draws.normal(key, round_, jnp.arange(z.shape[0]), z.dtype)
    return environment.model.transition @ z + environment.process_factor @ shock


@functools.lru_cache(maxsize=64)
def environment_program(span: int) -> Callable[..., Any]:
    """``(keys, z, first, environment, features) -> z, values`` for rounds first … first + span − 1.

    ``features`` are the contexts x of these rounds, span × k × J, or None. ``values`` are ⟨a, z⟩ of
    every arm, rounds × lanes × k.
    """

    def one_run(
        key: Key, z: Array, first: Array, environment: Environment, features: Array | None
    ) -> Any:
        model, arms = environment.model, environment.arms
        rounds = first + jnp.arange(span, dtype=jnp.uint32)
        shocks = draws.normal(key, rounds[:, None], jnp.arange(z.shape[0]), z.dtype)

        def move(z: Array, shock: Array) -> tuple[Array, Array]:
            return model.transition @ z + shock, z

        z, path = jax.lax.scan(move, z, shocks @ environment.process_factor.T)
        values = path @ arms.T
        if features is not None:  # ⟨A z⟩ stays a product of its own, so that B = 0 changes no bit
            for place in range(features.shape[-1]):
                values = values + features[..., place] * (path @ environment.contexts[place].T)
        return z, values

    return jax.jit(jax.vmap(one_run, (0, 0, None, 0, None), (0, 1)))


def policy_round(rule: Rule, game: Game) -> Callable[..., tuple[Any, Array]]:
    """``(lane, state, round, values, features) -> state, regret``: one round of one run.

    ``features`` are the round's contexts x, k × J; None: the arms are always the same.
    """

    def one_round(
        lane: Lanes, state: Any, round_: Array, values: Array, features: Array | None = None
    ) -> tuple[Any, Array]:
        problem = lane.problem
        if features is not None:
            problem = problem._replace(arms=read_rows(problem.arms, lane.contexts, features))
        k, d = problem.arms.shape
        noise = None
        if rule.noise:
            draw = draws.uniform if rule.noise.distribution == "uniform" else draws.normal
            size = rule.noise.shape(d, k)
            index = jnp.arange(size[0]) if size else 0
            noise = draw(lane.policy_key, round_, index, values.dtype)
        with blame.without_noise(noise):
            arm = rule.choose(state, problem, noise)
        if game.actions == FINITE:
            blame.check_arm(arm, k)

        def reward(mean: Array, index: Array) -> Array:
            index = index * 0 if game.common_noise else index
            noise = draws.normal(lane.reward_key, round_, index, values.dtype)
            return mean + lane.noise_std * noise

        actions, every = game.actions, jnp.arange(k)
        paid = reward(actions.mean(values, arm), actions.noise_index(arm))
        if rule.full_information:
            after = rule.update(state, problem, arm, reward(values, every))
        else:
            after = rule.update(state, *actions.played(problem, arm), paid)
        check_shapes(state, after)
        check_kinds(state, after)
        after = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, state)
        if game.regret == "noisy":
            lost = reward(*actions.best(values)) - paid
        elif game.regret == "hindsight":
            lost = jnp.max(reward(values, every)) - paid
        else:
            lost = actions.best_mean(values) - actions.mean(values, arm)
        return after, blame.marked(lost, arm, k) if actions == FINITE else lost

    return one_round


@functools.lru_cache(maxsize=256)
def policy_program(rule: Rule, game: Game, span: int) -> Callable[..., Any]:
    """Play the first ``count`` of ``span`` rounds, from round ``first``, whose contexts are given.

    Returns the state after them, the regret so far, and that after each round, span × lanes.
    """
    everywhere = jax.vmap(policy_round(rule, game), (0, 0, None, 0, None))

    def program(
        lanes: Lanes,
        state: Any,
        regret: Array,
        first: Array,
        count: Array,
        values: Array,
        features: Array | None,
    ) -> Any:
        def play(place: Array, now: tuple[Any, Array, Array]) -> Any:
            state, regret, path = now
            round_ = first + place.astype(jnp.uint32)
            now_known = None if features is None else features[place]
            state, lost = everywhere(lanes, state, round_, values[place], now_known)
            regret = regret + lost
            return state, regret, path.at[place].set(regret)

        path = jnp.zeros((span, *regret.shape), regret.dtype)
        last = span if game.whole_spans else count
        return jax.lax.fori_loop(0, last, play, (state, regret, path))

    return jax.jit(program)
