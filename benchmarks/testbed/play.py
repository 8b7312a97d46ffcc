"""The loop that trains a problem under a method, and what comes out of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from testbed.problems import EPOCHS, Array, Problem, State

EVERY = 8  # epochs between points of a curve


class Method(Protocol):
    """Chooses step sizes; seeds × members. One object plays one problem once."""

    members: int

    def rates(self, epoch: int) -> Array:
        """The step sizes of the epoch."""
        ...

    def learn(self, epoch: int, before: Array, after: Array) -> Array | None:
        """Take the log losses around the epoch; return whose weights each member goes on with.

        None: its own. The rows of an answer with fewer columns are the members that go on.
        """
        ...


@dataclasses.dataclass
class Played:
    """What one method did on one problem."""

    final: Array  # log of the true loss in the end, of the member with the lowest measured loss
    curves: Array  # the same at the start and after every EVERY epochs; seeds × …
    rates: Array  # the median step size of the members; seeds × epochs
    spent: int  # epochs of training per seed, all members together


def taken(state: State, source: Array) -> State:
    """The members ``source`` (seeds × members) of a state."""
    rows = np.arange(len(source))[:, None]
    return tuple(part[rows, source] for part in state)


def play(problem: Problem, seeds: Sequence[int], method: Method, epochs: int = EPOCHS) -> Played:
    state = problem.start(seeds, method.members)
    before = np.log(problem.measured(seeds, state, 0))
    rows, curves, rates, spent = np.arange(len(seeds)), [], [], 0

    def best() -> Array:
        return np.log(problem.true(seeds, state)[rows, before.argmin(axis=1)])

    curves.append(best())
    for epoch in range(epochs):
        chosen = method.rates(epoch)
        state = problem.train(seeds, state, chosen, epoch)
        spent += chosen.shape[1]
        after = np.log(problem.measured(seeds, state, epoch + 1))
        source = method.learn(epoch, before, after)
        before = after
        if source is not None:
            state, before = taken(state, source), np.take_along_axis(after, source, axis=1)
        if (epoch + 1) % EVERY == 0 or epoch + 1 == epochs:
            curves.append(best())
        rates.append(np.median(chosen, axis=1))
    return Played(curves[-1], np.stack(curves, axis=1), np.stack(rates, axis=1), spent)
