"""Methods that train several members: successive halving, PBT and PB2."""

# ruff: noqa: D102  (`play.Method` documents the methods)
from __future__ import annotations

import itertools

import numpy as np

from testbed.problems import Array
from testbed.schedules import drawn

MEMBERS = 8
SHARE = 0.25  # of the members that copy, and of those that are copied


def exploited(losses: Array, rngs: list[np.random.Generator]) -> Array:
    """Truncation selection: whose weights each member goes on with; seeds × members.

    The worst quarter copies members drawn from the best quarter; all others go on with their own.
    """
    members = losses.shape[1]
    few = max(1, round(SHARE * members))
    source = np.tile(np.arange(members), (len(losses), 1))
    for row, order, rng in zip(source, losses.argsort(axis=1), rngs, strict=True):
        row[order[-few:]] = rng.choice(order[:few], size=few)
    return source


class SuccessiveHalving:
    """Many constant step sizes, fewer and fewer of which go on (Jamieson, Talwalkar 2016).

    64 settings train for 8 epochs, the 16 with the lowest loss up to epoch 16, then 8, 4 and 2 up
    to epochs 32, 64 and 128: 1024 epochs, as many as 8 members that train to the end.
    Those that go on are numbered anew, so they meet the noise of the first members.
    """

    members = 64
    rungs = {8: 16, 16: 8, 32: 4, 64: 2}  # noqa: RUF012  (epochs trained: how many go on)

    def __init__(self, grid: Array, seeds: list[int]) -> None:
        self.chosen = drawn(grid, seeds, self.members)

    def rates(self, epoch: int) -> Array:
        return self.chosen

    def learn(self, epoch: int, before: Array, after: Array) -> Array | None:
        if epoch + 1 not in self.rungs:
            return None
        source = after.argsort(axis=1)[:, : self.rungs[epoch + 1]]
        self.chosen = np.take_along_axis(self.chosen, source, axis=1)
        return source


class PBT:
    """Population based training (Jaderberg et al. 2017).

    Every ``period`` epochs the worst quarter copies weights and step size of the best quarter, then
    explores: with probability ¼ a new step size from the range, else the copied one times 1.2 or
    0.8. Simplified: members train in step, not asynchronously.
    """

    members = MEMBERS

    def __init__(self, grid: Array, seeds: list[int], period: int = 4) -> None:
        self.grid, self.period = grid, period
        self.chosen = drawn(grid, seeds, self.members)
        self.rngs = [np.random.default_rng([42, seed]) for seed in seeds]

    def rates(self, epoch: int) -> Array:
        return self.chosen

    def learn(self, epoch: int, before: Array, after: Array) -> Array | None:
        self.observe(epoch, before, after)
        if (epoch + 1) % self.period:
            return None
        source = exploited(after, self.rngs)
        self.chosen = np.take_along_axis(self.chosen, source, axis=1)
        for number, row in enumerate(source):
            copied = np.flatnonzero(row != np.arange(self.members))
            self.explore(number, copied, epoch)
        self.chosen = np.clip(self.chosen, self.grid[0], self.grid[-1])
        return source

    def observe(self, epoch: int, before: Array, after: Array) -> None:
        """PBT needs only the losses of the epoch in which it copies."""

    def explore(self, number: int, copied: Array, epoch: int) -> None:
        """Change the step sizes of members that copied, for seed ``number``."""
        rng = self.rngs[number]
        for member in copied:
            if rng.random() < 0.25:
                self.chosen[number, member] = np.exp(rng.uniform(*np.log(self.grid[[0, -1]])))
            else:
                self.chosen[number, member] *= rng.choice([0.8, 1.2])


class PB2(PBT):
    """Population based bandits (Parker-Holder, Nguyen, Roberts 2020).

    As PBT, but a member that copied takes the step size with the highest upper confidence bound of
    a Gaussian process. Its data are the falls of the log loss over the last intervals; its
    kernel is squared exponential in the logarithm of the step size, times (1 − ε)^(|t − t'| / 2);
    the variance takes the members' current step sizes as seen. Simplified: the newest
    80 observations, length, ε and noise from a grid by their marginal likelihood, and one
    step size, so that the maximum is found on 101 points.
    """

    memory = 80
    points = np.linspace(0, 1, 101)
    choices = tuple(itertools.product((0.1, 0.2, 0.4, 0.8), (0.01, 0.05, 0.2), (0.1, 0.3, 1.0)))

    def __init__(
        self, grid: Array, seeds: list[int], period: int = 4, clip: float | None = None
    ) -> None:
        super().__init__(grid, seeds, period)
        self.clip = clip  # largest fall of the log loss, in absolute value; not in the paper
        self.past: list[tuple[int, Array, Array]] = []  # interval, places, falls of the log loss
        self.first: Array | None = None

    def places(self, rates: Array) -> Array:
        """Where step sizes are in the range, from 0 to 1."""
        low, high = np.log(self.grid[[0, -1]])
        return (np.log(rates) - low) / (high - low)

    def observe(self, epoch: int, before: Array, after: Array) -> None:
        if epoch % self.period == 0:
            self.first = before
        if (epoch + 1) % self.period == 0:
            falls = self.first - after
            if self.clip is not None:
                falls = np.clip(falls, -self.clip, self.clip)
            self.past.append((epoch // self.period, self.places(self.chosen), falls))

    def explore(self, number: int, copied: Array, epoch: int) -> None:
        past = self.past[-(self.memory // self.members) :]
        now = self.past[-1][0] + 1
        t = np.repeat([float(when) for when, _, _ in past], self.members)
        x = np.concatenate([places[number] for _, places, _ in past])
        y = np.concatenate([falls[number] for _, _, falls in past])
        y = (y - y.mean()) / (y.std() + 1e-9)
        length, fade, noise = self.likeliest(t, x, y)
        low, high = np.log(self.grid[[0, -1]])
        others = np.setdiff1d(np.arange(self.members), copied)
        pending = list(self.places(self.chosen[number, others]))
        width = np.sqrt(0.2 + max(0.0, np.log(0.4 * len(y))))  # as in the authors' program
        for member in copied:
            mean, _ = _regressed(t, x, y, now, self.points, length, fade, noise)
            seen_t = np.concatenate([t, np.full(len(pending), float(now))])
            seen_x = np.concatenate([x, pending])
            empty = np.zeros(len(seen_t))
            _, std = _regressed(seen_t, seen_x, empty, now, self.points, length, fade, noise)
            place = self.points[np.argmax(mean + width * std)]
            self.chosen[number, member] = np.exp(low + (high - low) * place)
            pending.append(place)

    def likeliest(self, t: Array, x: Array, y: Array) -> tuple[float, float, float]:
        """The length, ε and noise variance of the grid with the largest marginal likelihood."""
        length, fade, noise = (column[:, None, None] for column in np.array(self.choices).T)
        covs = _kernel(t[:, None] - t, x[:, None] - x, length, fade) + noise * np.eye(len(y))
        roots = np.linalg.cholesky(covs)
        solved = np.linalg.solve(roots, np.broadcast_to(y[:, None], (len(covs), len(y), 1)))
        halves = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        return self.choices[int(np.argmax(-0.5 * (solved**2).sum(axis=(1, 2)) - halves))]


def _kernel(apart_t: Array, apart_x: Array, length: Array | float, fade: Array | float) -> Array:
    return np.exp(-0.5 * (apart_x / length) ** 2) * (1 - fade) ** (np.abs(apart_t) / 2)


def _regressed(
    t: Array,
    x: Array,
    y: Array,
    now: float,
    points: Array,
    length: float,
    fade: float,
    noise: float,
) -> tuple[Array, Array]:
    """Mean and standard deviation of a Gaussian process at ``points`` in interval ``now``."""
    cov = _kernel(t[:, None] - t, x[:, None] - x, length, fade) + noise * np.eye(len(y))
    cross = _kernel(now - t, points[:, None] - x, length, fade)
    solved = np.linalg.solve(cov, np.column_stack([y, cross.T]))
    variance = 1 - (cross * solved[:, 1:].T).sum(axis=1)
    return cross @ solved[:, 0], np.sqrt(np.maximum(variance, 1e-12))
