"""A greedy oracle: the most that any method with this reward could hope for.

Before every interval it tries all step sizes of the grid with the noise to come and keeps the
one with the lowest true loss. No method can do that; it separates what a bandit loses by learning
from what it loses by looking only one interval ahead.
"""

from __future__ import annotations

import numpy as np

from testbed.play import EVERY, Played
from testbed.problems import EPOCHS, Array, Problem


def greedy(problem: Problem, seeds: list[int], hold: int, epochs: int = EPOCHS) -> Played:
    state = problem.start(seeds, 1)
    curves, rates = [np.log(problem.true(seeds, state)[:, 0])], []
    for first in range(0, epochs, hold):
        tried = []
        for rate in problem.rates:
            after = state
            for epoch in range(first, first + hold):
                after = problem.train(seeds, after, np.full((len(seeds), 1), rate), epoch)
            tried.append(after)
        losses = np.stack([problem.true(seeds, after)[:, 0] for after in tried])
        best: Array = losses.argmin(axis=0)
        state = tuple(
            np.stack([tried[arm][part][seed] for seed, arm in enumerate(best)])
            for part in range(len(state))
        )
        rates += [problem.rates[best]] * hold
        if (first + hold) % EVERY == 0:
            curves.append(np.log(losses.min(axis=0)))
    spent = epochs * len(problem.rates)
    return Played(curves[-1], np.stack(curves, axis=1), np.stack(rates, axis=1), spent)
