"""Profile intervals of a smooth loss: where the loss rises, all other numbers at their best.

With r = √(2 (loss − least loss)), an end is where r equals a normal quantile. r is almost linear
along the profile, so Newton steps find the end. At each of them Newton steps with a quasi-Newton
(BFGS) matrix move the other numbers to their best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""A loss and its gradient."""

NEAR = 0.02  # of the quantile: one more Newton step, without a further loss, is accurate enough
CLOSE = 0.3  # longest such step
SETTLED = 0.002  # what a further step may lower the loss by, if the other numbers are at their best
LONGEST = 3.0  # step of a number at most
MOST_MOVES = 12  # of the profile, to find one end
MOST_STEPS = 15  # to bring the other numbers to their best
HALVINGS = 6  # of a step that does not lower the loss
DAMPING = 0.2  # of BFGS updates: a smaller share of the expected curvature is not believed (Powell)


class Point(NamedTuple):
    """Where a search is."""

    theta: np.ndarray
    loss: float
    slope: np.ndarray
    curvature: np.ndarray  # BFGS approximation of the Hessian

    def moved(self, theta: np.ndarray, loss: float, slope: np.ndarray) -> Point:
        """The same search at another point, with its curvature updated."""
        step, turn = theta - self.theta, slope - self.slope
        pull = self.curvature @ step
        expected, seen = float(step @ pull), float(step @ turn)
        if not 0 < expected < math.inf:
            return Point(theta, loss, slope, self.curvature)
        if seen < DAMPING * expected:
            share = (1 - DAMPING) * expected / (expected - seen)
            turn = share * turn + (1 - share) * pull
            seen = float(step @ turn)
        grown = np.outer(turn, turn) / seen - np.outer(pull, pull) / expected
        return Point(theta, loss, slope, self.curvature + grown)


class Box(NamedTuple):
    """The lowest and the highest value of each number."""

    low: np.ndarray
    high: np.ndarray


def ends(
    loss: Loss,
    start: np.ndarray,
    curvature: np.ndarray,
    place: int,
    bounds: list[tuple[float, float]],
    quantile: float,
) -> tuple[float, float]:
    """Both ends of the profile interval of one number.

    Args:
        loss: minus a log-likelihood, and its gradient.
        start: near the minimum of the loss.
        curvature: its Hessian there, about; positive definite.
        place: of the number.
        bounds: of every number.
        quantile: r at the ends; 1.96 for 95%.

    Returns:
        Low and high; −∞ or ∞ where the loss does not rise enough before the bound.

    Example:
        >>> def loss(x):  # a normal mean, and the logarithm of its standard deviation; 10 values
        ...     off = x[0] * np.exp(-x[1])
        ...     value = 10 * (x[1] + 0.5 * np.exp(-2 * x[1]) + 0.5 * off**2)
        ...     slope = [off * np.exp(-x[1]), 1 - np.exp(-2 * x[1]) - off**2]
        ...     return value, 10 * np.array(slope)
        >>> low, high = ends(loss, np.zeros(2), np.diag([10.0, 20.0]), 0, [(-9.0, 9.0)] * 2, 1.96)
        >>> print(f"{low:.2f} to {high:.2f}; exact: {math.sqrt(math.exp(1.96**2 / 10) - 1):.2f}")
        -0.68 to 0.68; exact: 0.68
    """
    box = Box(*np.array(bounds).T)
    begin = np.clip(start, *box)
    free = np.ones(len(begin), bool)
    best, gain = _settled(loss, Point(begin, *loss(begin), curvature), free, box)
    best = best._replace(loss=best.loss - gain)
    low, high = (_end(loss, best, place, way, box, quantile) for way in (-1, 1))
    return low, high


def _newton(point: Point, free: np.ndarray, box: Box) -> np.ndarray:
    """The step to the least loss that slope and curvature promise; only free numbers move."""
    theta, slope = point.theta, point.slope
    stuck = ((theta <= box.low) & (slope > 0)) | ((theta >= box.high) & (slope < 0))
    moving, step = free & ~stuck, np.zeros_like(theta)
    if moving.any():
        step[moving] = -np.linalg.solve(point.curvature[np.ix_(moving, moving)], slope[moving])
    return step


def _settled(loss: Loss, point: Point, free: np.ndarray, box: Box) -> tuple[Point, float]:
    """The free numbers at their best, and by how much a further step would lower the loss."""
    gain = 0.0
    for _ in range(MOST_STEPS):
        step = _newton(point, free, box)
        gain = -0.5 * float(point.slope @ step)
        if gain < SETTLED:
            return point, gain
        step = step * min(1.0, LONGEST / float(np.abs(step).max()))
        for _ in range(HALVINGS):
            theta = np.clip(point.theta + step, *box)
            value, slope = loss(theta)
            if value < point.loss:
                point = point.moved(theta, value, slope)
                break
            if math.isfinite(value):
                point = point._replace(curvature=point.moved(theta, value, slope).curvature)
            step = step / 2
        else:
            return point, 0.0
    return point, gain


def _end(loss: Loss, best: Point, place: int, way: int, box: Box, quantile: float) -> float:
    """The end downwards (−1) or upwards (1)."""
    edge = float((box.low if way < 0 else box.high)[place])
    others = np.arange(len(best.theta)) != place
    point, inside, outside = best, float(best.theta[place]), math.nan
    move = min(quantile * math.sqrt(np.linalg.inv(best.curvature)[place, place]), LONGEST)
    for _ in range(MOST_MOVES):
        now = float(point.theta[place])
        target = now + way * move
        if not math.isnan(outside) and not min(inside, outside) < target < max(inside, outside):
            target = (inside + outside) / 2
        target = max(target, edge) if way < 0 else min(target, edge)
        if target == inside:  # at the bound
            return way * math.inf
        # The others follow as the curvature says: B_oo step = −B_op (target − now)
        pushed = point._replace(slope=point.slope + point.curvature[:, place] * (target - now))
        step = np.clip(_newton(pushed, others, box), -LONGEST, LONGEST)
        begin = np.clip(point.theta + step, *box)
        begin[place] = target
        value, slope = loss(begin)
        if not math.isfinite(value):
            outside = target
            continue
        point, gain = _settled(loss, point.moved(begin, value, slope), others, box)
        rise = math.sqrt(2 * max(point.loss - gain - best.loss, 0.0))
        pace = way * float(point.slope[place]) / rise if rise else 0.0
        move = (quantile - rise) / pace if pace > 0 else LONGEST
        if abs(rise - quantile) <= NEAR * quantile and pace > 0 and abs(move) < CLOSE:
            return target + way * move
        left = abs(edge - target)
        if rise > quantile:
            outside = target
        elif target == edge:
            return way * math.inf
        else:
            inside = target
        flat = math.isnan(outside) and rise + pace * left < quantile / 2
        move = left if flat else float(np.clip(move, -LONGEST, LONGEST))
    return target
