"""Small training problems, trained for many seeds and members at once.

Arrays are seeds × members × … All randomness is keyed by purpose, seed and epoch, and member m's
numbers do not depend on how many members there are: every method meets the same start and the same
gradient noise, and a single run meets those of member 0. Member 0 of two methods differs
only by the step sizes that they chose.
"""

# ruff: noqa: D102  (`Problem` documents the methods)
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Array = np.ndarray
State = tuple[Array, ...]
"""Weights and the like, each seeds × members × …; `play` copies members by their index."""

EPOCHS = 128
MEASURED, TRUE = 23, 24  # purposes of the network's examples
HIGHEST = 1e12  # a loss that is larger, or not a number, counts as this


def draws(purpose: int, seeds: Sequence[int], epoch: int, shape: tuple[int, ...]) -> Array:
    """Standard normal numbers, seeds × shape; the first axis of ``shape`` is the members."""
    return np.stack(
        [np.random.default_rng([purpose, seed, epoch]).standard_normal(shape) for seed in seeds]
    )


def capped(losses: Array) -> Array:
    return np.where(np.isfinite(losses), np.minimum(losses, HIGHEST), HIGHEST)


class Problem(Protocol):
    """What a method trains. Step sizes are positive, one per seed and member."""

    name: str
    rates: Array  # the grid: step sizes, evenly spaced in their logarithm

    def start(self, seeds: Sequence[int], members: int) -> State:
        """The state before training."""
        ...

    def train(self, seeds: Sequence[int], state: State, rates: Array, epoch: int) -> State:
        """The state after one epoch."""
        ...

    def measured(self, seeds: Sequence[int], state: State, epoch: int) -> Array:
        """The loss that a method may see, with noise; seeds × members, positive."""
        ...

    def true(self, seeds: Sequence[int], state: State) -> Array:
        """The excess loss that is reported, without noise; no method sees it."""
        ...


class Quadratic:
    """Noisy quadratic: ½ Σ λ_i w_i², λ from 1 to 1/1000, gradient noise of covariance λ_i.

    The stationary loss under a constant rate is proportional to the rate, so that the best rate
    falls with time (Wu, Ren, Liao, Grosse 2018).
    """

    name = "noisy quadratic"
    rates = np.geomspace(1e-3, 4.0, 10)
    steps, size = 10, 50
    noise, seen = 1.0, 0.02  # of a gradient; of the measured loss, relative

    def __init__(self) -> None:
        self.curvature = np.geomspace(1.0, 1e-3, self.size)

    def start(self, seeds: Sequence[int], members: int) -> State:
        return (10 * draws(10, seeds, 0, (members, self.size)),)

    def train(self, seeds: Sequence[int], state: State, rates: Array, epoch: int) -> State:
        (weights,) = state
        shape = weights.shape[1], self.steps, self.size
        noise = self.noise * np.sqrt(self.curvature) * draws(11, seeds, epoch, shape)
        for step in range(self.steps):
            slope = self.curvature * weights + noise[:, :, step]
            weights = np.clip(weights - rates[..., None] * slope, -1e6, 1e6)
        return (weights,)

    def measured(self, seeds: Sequence[int], state: State, epoch: int) -> Array:
        noise = draws(12, seeds, epoch, (state[0].shape[1],))
        return self.true(seeds, state) * np.exp(self.seen * noise)

    def true(self, seeds: Sequence[int], state: State) -> Array:
        return capped(0.5 * (self.curvature * state[0] ** 2).sum(axis=-1))


class Network:
    """A tanh network with 24 hidden units learns a noisy function of 4 inputs by SGD.

    Every minibatch is new, so there is no overfitting. The measured loss is the squared error on
    256 noisy examples; the reported one is on 1024 examples without noise.
    """

    name = "small network"
    rates = np.geomspace(4e-3, 4.0, 10)
    steps, batch, inputs, hidden = 10, 8, 4, 24
    noise, clip = 0.3, 5.0  # of the targets; longest gradient

    def __init__(self) -> None:
        self._examples: dict[tuple[int, ...], tuple[Array, Array]] = {}  # drawn once

    def _target(self, seeds: Sequence[int], x: Array) -> Array:
        """A sum of three waves, with directions of the seed; x is seeds × … × inputs."""
        drawn = draws(20, seeds, 0, (3, self.inputs + 1))
        flat = x.reshape(len(seeds), -1, self.inputs)
        angles = flat @ drawn[..., :-1].transpose(0, 2, 1) + drawn[..., -1][:, None]
        return np.sin(angles).sum(axis=-1).reshape(x.shape[:-1])

    def start(self, seeds: Sequence[int], members: int) -> State:
        d, h = self.inputs, self.hidden
        drawn = draws(21, seeds, 0, (members, d * h + h + h + 1))
        cuts = np.cumsum([d * h, h, h])
        first, bias, second, last = np.split(drawn, cuts, axis=-1)
        first = first.reshape(*first.shape[:2], d, h) / np.sqrt(d)
        return first, 0.1 * bias, second / np.sqrt(h), 0.1 * last

    @staticmethod
    def _layers(state: State, x: Array) -> tuple[Array, Array]:
        first, bias, second, last = state
        hidden = np.tanh(x @ first + bias[..., None, :])
        return hidden, (hidden @ second[..., None])[..., 0] + last

    def train(self, seeds: Sequence[int], state: State, rates: Array, epoch: int) -> State:
        members = rates.shape[1]
        drawn = draws(22, seeds, epoch, (members, self.steps, self.batch, self.inputs + 1))
        inputs = drawn[..., :-1]
        targets = self._target(seeds, inputs) + self.noise * drawn[..., -1]
        for step in range(self.steps):
            x, y = inputs[:, :, step], targets[:, :, step]
            hidden, found = self._layers(state, x)
            error = 2 * (found - y) / self.batch
            back = error[..., None] * state[2][..., None, :] * (1 - hidden**2)
            slopes = (
                np.swapaxes(x, -1, -2) @ back,
                back.sum(axis=-2),
                (error[..., None] * hidden).sum(axis=-2),
                error.sum(axis=-1, keepdims=True),
            )
            length = np.sqrt(sum((s**2).reshape(*rates.shape, -1).sum(axis=-1) for s in slopes))
            scale = rates * np.minimum(1.0, self.clip / np.maximum(length, 1e-12))
            state = tuple(
                w - scale.reshape(scale.shape + (1,) * (w.ndim - 2)) * s
                for w, s in zip(state, slopes, strict=True)
            )
        return state

    def _error(self, seeds: Sequence[int], state: State, purpose: int, size: int) -> Array:
        key = purpose, *seeds
        if key not in self._examples:
            drawn = draws(purpose, seeds, 0, (size, self.inputs + 1))
            x = drawn[:, None, :, :-1]
            noise = self.noise if purpose == MEASURED else 0.0
            self._examples[key] = x, self._target(seeds, x) + noise * drawn[:, None, :, -1]
        x, y = self._examples[key]
        return capped(((self._layers(state, x)[1] - y) ** 2).mean(axis=-1))

    def measured(self, seeds: Sequence[int], state: State, epoch: int) -> Array:
        return self._error(seeds, state, MEASURED, 256)

    def true(self, seeds: Sequence[int], state: State) -> Array:
        return self._error(seeds, state, TRUE, 1024)


class Control:
    """An evolution strategy learns the gain of a linear controller from rollouts.

    x ← A x + B u + w, u = −K x, cost Σ xᵀx + uᵀu over 20 rounds; 4 states, 2 inputs, A of spectral
    radius 1.05, one plant per seed. A step draws 4 directions and runs the plant with K ± 0.1 of
    each (Salimans et al. 2017). The measured loss is the mean cost of 8 rollouts; the reported
    one is the expected cost relative to the best gain's, minus 1.
    """

    name = "control"
    rates = np.geomspace(1e-4, 0.1, 10)
    steps, directions, spread = 3, 4, 0.1
    rounds, states, inputs, shock = 20, 4, 2, 0.3
    limit = 5.0  # of a gain, in absolute value

    def __init__(self) -> None:
        self._plants: dict[int, tuple[Array, Array, float]] = {}

    def _plant(self, seeds: Sequence[int]) -> tuple[Array, Array, Array]:
        """A, B and the cost of the best gain, of each seed."""
        for seed in seeds:
            if seed not in self._plants:
                drawn = draws(30, [seed], 0, (self.states, self.states + self.inputs))[0]
                A, B = drawn[:, : self.states], drawn[:, self.states :] / 2
                A = 1.05 * A / np.abs(np.linalg.eigvals(A)).max()
                self._plants[seed] = A, B, self._best(A, B)
        A, B, best = zip(*(self._plants[seed] for seed in seeds), strict=True)
        return np.stack(A), np.stack(B), np.array(best)

    def _expected(self, A: Array, B: Array, gain: Array) -> Array:
        """E Σ xᵀx + uᵀu of constant gains (… × inputs × states), from x(0) ~ N(0, I)."""
        closed = A - B @ gain
        weight = np.eye(self.states) + np.swapaxes(gain, -1, -2) @ gain
        value, cost = weight, 0.0
        for _ in range(self.rounds - 1):  # backwards: value of the rounds that are left
            cost = cost + self.shock**2 * np.trace(value, axis1=-2, axis2=-1)
            value = weight + np.swapaxes(closed, -1, -2) @ value @ closed
        return cost + np.trace(value, axis1=-2, axis2=-1)

    def _best(self, A: Array, B: Array) -> float:
        """The cost of the best constant gain: by quasi-Newton from the stationary Riccati one."""
        from scipy.linalg import solve_discrete_are
        from scipy.optimize import minimize

        value = solve_discrete_are(A, B, np.eye(self.states), np.eye(self.inputs))
        gain = np.linalg.solve(np.eye(self.inputs) + B.T @ value @ B, B.T @ value @ A)
        found = minimize(
            lambda x: float(self._expected(A, B, x.reshape(gain.shape))), gain.ravel(), tol=1e-9
        )
        return float(found.fun)

    def start(self, seeds: Sequence[int], members: int) -> State:
        return (0.05 * draws(31, seeds, 0, (members, self.inputs, self.states)),)

    def _rollouts(self, A: Array, B: Array, gains: Array, noise: Array) -> Array:
        """Costs of gains (seeds × members × n × inputs × states) under given start and shocks."""
        closed = A[:, None, None] - B[:, None, None] @ gains
        x, cost = noise[..., 0, :, None], 0.0
        for t in range(1, self.rounds + 1):
            u = gains @ x
            cost = cost + (x**2).sum(axis=(-2, -1)) + (u**2).sum(axis=(-2, -1))
            if t < self.rounds:
                x = np.clip(closed @ x + self.shock * noise[..., t, :, None], -100, 100)
        return cost

    def train(self, seeds: Sequence[int], state: State, rates: Array, epoch: int) -> State:
        (gain,) = state
        A, B, _ = self._plant(seeds)
        members, n = rates.shape[1], self.directions
        shape = members, self.steps, n, self.rounds * self.states + self.inputs * self.states
        drawn = draws(32, seeds, epoch, shape)
        cut = self.rounds * self.states
        noises = drawn[..., :cut].reshape(*drawn.shape[:-1], self.rounds, self.states)
        ways = drawn[..., cut:].reshape(*drawn.shape[:-1], self.inputs, self.states)
        for step in range(self.steps):
            way, noise = ways[:, :, step], noises[:, :, step]
            both = np.concatenate([gain[:, :, None] + s * self.spread * way for s in (1, -1)], 2)
            costs = self._rollouts(A, B, both, np.concatenate([noise, noise], 2))
            apart = (costs[..., :n] - costs[..., n:]) / costs.mean(axis=-1, keepdims=True)
            slope = (apart[..., None, None] * way).mean(axis=2) / (2 * self.spread)
            moved = gain - rates[..., None, None] * slope
            gain = np.clip(moved, -self.limit, self.limit)
        return (gain,)

    def measured(self, seeds: Sequence[int], state: State, epoch: int) -> Array:
        A, B, _ = self._plant(seeds)
        noise = draws(33, seeds, epoch, (state[0].shape[1], 8, self.rounds, self.states))
        gains = np.broadcast_to(state[0][:, :, None], (*state[0].shape[:2], 8, *state[0].shape[2:]))
        return capped(self._rollouts(A, B, gains, noise).mean(axis=-1))

    def true(self, seeds: Sequence[int], state: State) -> Array:
        A, B, best = self._plant(seeds)
        cost = self._expected(A[:, None], B[:, None], state[0])
        return np.clip(cost / best[:, None] - 1, 1e-9, 1e3)  # all failures are alike


def every() -> list[Any]:
    return [Quadratic(), Network(), Control()]
