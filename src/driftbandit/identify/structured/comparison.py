"""How well structures predicted held-out rewards, and which of them is chosen.

Of structures whose scores are within one standard error of the highest, the simplest is chosen; if
the log shows drift, the simplest of those that drift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftbandit.structure import Structure

LEVEL = 0.025  # of the test whether something drifts
SLACK = 1e-3  # per reward: structures whose scores are this close are as good as each other
BLOCKS = 20  # of consecutive rewards, whose means give the standard error of a score
MOVES = ("level", "trend", "ar", "factors")  # components that drift
Scored = tuple[Structure, np.ndarray, tuple[int, int]]
"""A structure, the log-densities of the scored rewards, its numbers of states and parameters."""


def drifts(structure: Structure) -> bool:
    """Whether something wanders, seasons aside.

    Example:
        >>> from driftbandit.structure import parse
        >>> [drifts(parse(text)) for text in ("constant(arm) + season(7)", "factors(2)")]
        [False, True]
    """
    return any(component.kind in MOVES for component in structure.components)


def repeats(structure: Structure) -> bool:
    """Whether there is a season."""
    return any(component.kind == "season" for component in structure.components)


class Comparison(NamedTuple):
    """Structures in the order in which they were tried, and how well they predicted.

    Example:
        >>> from driftbandit.identify import as_log, compare
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 100))
        >>> rewards = 5 + np.cumsum(0.3 * drift) + 0.5 * noise
        >>> log = as_log({"round": range(100), "arm": ["a"] * 100, "reward": rewards})
        >>> still, moving = (compare(log, [text]) for text in ("constant(arm)", "level(arm)"))
        >>> both = still.joined(moving)
        >>> str(both.chosen), both.scored, both.scores[1] > both.scores[0]
        ('level(arm)', 50, True)
        >>> gain, error = both.difference(1, 0)  # per reward
        >>> round(gain, 1), round(error, 1)
        (1.6, 0.1)
        >>> both.chosen_place, str(both.part([0]).chosen)
        (1, 'constant(arm)')
        >>> both.p_value, both.shows_drift
        (0.005, True)
    """

    structures: tuple[Structure, ...]
    scores: tuple[float, ...]  # mean log-likelihood of the scored rewards
    errors: tuple[float, ...]  # standard error of the difference from the highest score
    scored: int  # number of scored rewards
    densities: tuple[np.ndarray, ...] = ()  # log-likelihood of each scored reward, by structure
    sizes: tuple[tuple[int, int], ...] = ()  # number of states and of parameters, by structure
    p_value: float | None = None  # of the test for drift (`ordered`)

    def __repr__(self) -> str:
        return f"Comparison({self.chosen}, of {len(self.structures)} structures)"

    @property
    def chosen(self) -> Structure:
        """The simplest whose score is within one standard error (or 0.001) of the highest.

        Simpler: nothing drifts, or something does if the log shows it; then fewer states; fewer
        parameters; and the higher score.
        """
        return self.structures[self.chosen_place]

    @property
    def shows_drift(self) -> bool:
        """Whether the test for drift says so, at a level of 2.5%."""
        return self.p_value is not None and self.p_value <= LEVEL

    @property
    def chosen_place(self) -> int:
        """The place of `chosen` in ``structures``."""
        best, places = max(self.scores), range(len(self.scores))
        near = [i for i in places if best - self.scores[i] <= max(self.errors[i], SLACK)]
        unlike = [drifts(one) != self.shows_drift for one in self.structures]
        return min(near, key=lambda i: (unlike[i], self._sizes[i], -self.scores[i]))

    @property
    def _sizes(self) -> tuple[tuple[int, int], ...]:
        return self.sizes or ((0, 0),) * len(self.scores)

    def difference(self, one: int, other: int) -> tuple[float, float]:
        """How much higher the score of structure ``one`` is than that of ``other``; ± its error."""
        apart = self.densities[one] - self.densities[other]
        return float(apart.mean()), _standard_error(apart)

    def part(self, places: Sequence[int]) -> Comparison:
        """Only the structures at these places."""
        rows = [(self.structures[i], self.densities[i], self._sizes[i]) for i in places]
        return comparison_of(rows, self.p_value) if rows else Comparison((), (), (), self.scored)

    def joined(self, more: Comparison) -> Comparison:
        """Both comparisons as one; they scored the same rewards of the same log."""
        parts = [(one.structures, one.densities, one._sizes) for one in (self, more)]
        rows = [row for part in parts for row in zip(*part, strict=True)]
        return comparison_of(rows, self.p_value)


def comparison_of(found: Sequence[Scored], p_value: float | None = None) -> Comparison:
    """The candidates in the order in which they were tried."""
    structures, each, sizes = zip(*found, strict=True)
    best = max(each, key=np.mean)
    doubts = tuple(_standard_error(best - one) for one in each)
    means = tuple(float(one.mean()) for one in each)
    return Comparison(structures, means, doubts, len(best), each, sizes, p_value)


def _standard_error(differences: np.ndarray) -> float:
    """Of their mean; neighbors depend on each other, so blocks are compared."""
    blocks = np.array([block.mean() for block in np.array_split(differences, BLOCKS)])
    return float(blocks.std(ddof=1) / math.sqrt(BLOCKS))
