"""CUSUM charts of standardized surprises: has something changed, in which arm, and since when?

Under the true model the surprises u are independent and standard normal, whatever arms were played
and why, so those of a single arm are, too. A chart adds up evidence of one kind of change and never
falls below zero:

    c ← max(0, c + g(u)),     alarm if c > limit

    higher    g = u − ½         the mean rose from 0 to 1
    lower     g = −u − ½        the mean fell to −1
    larger    g = u² − 2 log 2  the variance rose from 1 to 2
    smaller   g = log 2 − u²    the variance fell to ½

Each g is a log-likelihood ratio up to its scale, which makes the chart optimal for that change
(Page 1954, Moustakides 1986). The change began after the chart's last zero.

Every reward enters eight charts: the four of its arm and the four of all arms together. So with n
rewards and one limit for all charts of a kind, the chance of any false alarm is at most 8 n / L,
where L is the mean number of rewards until a chart alarms under the true model: arms need no
correction of their own. `limit` finds the limit for a given L.

A sudden change that the filter follows at once leaves one large surprise. So beside the charts
there is a limit on every single |u| (Shewhart's chart), the kind "peak".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

import numpy as np
import scipy

from driftbandit.arrays import Array

KINDS = ("higher", "lower", "larger", "smaller")
CHARTS = 2 * len(KINDS)  # that each reward enters: its arm's, and those of all arms
REFERENCE, RISE, FALL = 0.5, 2 * math.log(2), math.log(2)
MOST = 4000  # charts that `Charts` keeps
CELLS = 150  # of the grid on which `run_length` solves its integral equation


def increments(u: Array) -> dict[str, Array]:
    """g(u) of every kind of chart, for a number or an array.

    Example:
        >>> {kind: round(value, 3) for kind, value in increments(2.0).items()}
        {'higher': 1.5, 'lower': -2.5, 'larger': 2.614, 'smaller': -3.307}
    """
    square = u * u
    return {
        "higher": u - REFERENCE,
        "lower": -u - REFERENCE,
        "larger": square - RISE,
        "smaller": FALL - square,
    }


def _chance_above(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    """The function x ↦ P(g(u) > x), under the true model."""
    if kind in ("higher", "lower"):
        return lambda x: scipy.special.ndtr(-(x + REFERENCE))
    if kind == "larger":
        return lambda x: 2 * scipy.special.ndtr(-np.sqrt(np.maximum(x + RISE, 0.0)))
    return lambda x: np.where(
        x < FALL, 1 - 2 * scipy.special.ndtr(-np.sqrt(np.maximum(FALL - x, 0.0))), 0.0
    )


def run_length(kind: str, height: float) -> float:
    """Mean number of rewards until a chart passes ``height`` under the true model.

    The chart is a Markov chain on a grid of cells (Brook and Evans 1972): with R the chances to go
    from cell to cell without an alarm, the mean run lengths x solve x = 1 + R x.

    Example:
        >>> round(run_length("higher", 5.0), -1)  # tables: 465 for two sides, so 930
        930.0
    """
    above = _chance_above(kind)
    width = 2 * height / (2 * CELLS - 1)  # the first cell is half as wide, around zero
    centers = width * np.arange(CELLS)
    edges = np.append(-np.inf, centers + width / 2)  # the first cell takes all that is below
    beyond = above(edges[None, :] - centers[:, None])
    stays = beyond[:, :-1] - beyond[:, 1:]
    return float(np.linalg.solve(np.eye(CELLS) - stays, np.ones(CELLS))[0])


@functools.lru_cache(maxsize=256)
def limit(kind: str, length: float) -> float:
    """The limit with which a chart alarms every ``length`` rewards on average.

    Example:
        >>> round(limit("higher", 930.0), 1)
        5.0
    """

    def excess(height: float) -> float:
        return math.log(run_length(kind, height) / length)

    high = 2.0
    while excess(high) < 0:
        high *= 1.5
    return float(scipy.optimize.brentq(excess, 0.05, high, xtol=1e-4))


def limits(rewards: int, chance: float) -> dict[str, float]:
    """Limits with which anything alarms falsely in so many rewards with that chance, or less.

    A quarter of the chance is for single surprises, which are the kind "peak".

    Example:
        >>> {kind: round(height, 1) for kind, height in limits(1000, 0.01).items()}
        {'higher': 12.0, 'lower': 12.0, 'larger': 42.9, 'smaller': 22.7, 'peak': 4.7}
    """
    length = float(f"{CHARTS * rewards / (0.75 * chance):.3g}")  # few different ones: they are kept
    found = {kind: limit(kind, length) for kind in KINDS}
    return found | {"peak": float(-scipy.special.ndtri(chance / 8 / rewards))}


def path(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A chart after every reward, from its increments, and where its last zero was.

    c(t) = C(t) − min(0, C(0), …, C(t)) with C the cumulative sum. A zero before the first reward is
    at −1.

    Example:
        >>> path(np.array([1.0, -3.0, 2.0, 1.0]))
        (array([1., 0., 2., 3.]), array([-1,  1,  1,  1]))
    """
    total = np.append(0.0, np.cumsum(steps))
    lowest = np.minimum.accumulate(total)
    zeros = np.maximum.accumulate(np.where(total <= lowest, np.arange(len(total)), 0))
    return (total - lowest)[1:], zeros[1:] - 1


def highest(u: np.ndarray, heights: Mapping[str, float]) -> np.ndarray:
    """After every surprise, the height of the highest chart in units of its limit."""
    shares = [path(steps)[0] / heights[kind] for kind, steps in increments(u).items()]
    return np.max([*shares, np.abs(u) / heights["peak"]], axis=0)


class Crossing(NamedTuple):
    """A chart that passed its limit; both are places among the chart's own rewards."""

    kind: str
    since: int  # the first reward after the chart's last zero
    alarm: int  # the reward that passed the limit


def crossings(u: np.ndarray, heights: Mapping[str, float]) -> list[Crossing]:
    """The first alarm of every kind along these surprises, the earliest first."""
    found = []
    for kind, steps in increments(u).items():
        chart, zeros = path(steps)
        beyond = np.flatnonzero(chart > heights[kind])
        if beyond.size:
            found.append(Crossing(kind, int(zeros[beyond[0]]) + 1, int(beyond[0])))
    for place in np.flatnonzero(np.abs(u) > heights["peak"])[:1].tolist():
        found.append(Crossing("peak", place, place))
    return sorted(found, key=lambda one: one.alarm)


class Chart(NamedTuple):
    """One chart as it stands, above zero."""

    height: float
    since: int  # the round of the first reward after its last zero
    rewards: int  # since then
    squares: float  # Σ u² since then


class Alarm(NamedTuple):
    """A chart that has just passed its limit."""

    kind: str
    arm: Hashable | None  # None: all arms
    chart: Chart

    @property
    def mean_square(self) -> float:
        """Of the surprises since the change."""
        return self.chart.squares / self.chart.rewards


class Charts:
    """The charts of every arm and of all arms, reward by reward.

    Charts at zero are not kept. If more than `MOST` are above it, those of the arm that was played
    least recently are dropped.

    Args:
        heights: limits by kind, as `limits` gives them; "peak" is not used.

    Example:
        >>> charts = Charts(limits(1000, 0.01))
        >>> [charts.add("a", 2.0, round) is not None for round in range(9)]
        [False, False, False, False, False, False, False, False, True]
    """

    def __init__(self, heights: Mapping[str, float]) -> None:
        self.heights = heights
        self.state: dict[tuple[Hashable | None, str], Chart] = {}

    def copy(self) -> Charts:
        """An independent copy."""
        other = Charts(self.heights)
        other.state = self.state.copy()
        return other

    def add(self, arm: Hashable, u: float, round: int) -> Alarm | None:
        """Take in a surprise. After an alarm, all charts begin again at zero."""
        found = None
        for owner in (arm, None):
            for kind, step in increments(u).items():
                old = self.state.pop((owner, kind), None) or Chart(0.0, round, 0, 0.0)
                height = old.height + step
                if height > 0:
                    new = Chart(height, old.since, old.rewards + 1, old.squares + u * u)
                    self.state[owner, kind] = new
                    if height > self.heights[kind] and found is None:
                        found = Alarm(kind, owner, new)
        if found is not None:
            self.state.clear()
        while len(self.state) > MOST:
            del self.state[next(iter(self.state))]
        return found
