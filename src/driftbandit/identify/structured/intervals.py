"""How certain the estimates are: standard errors, and profile intervals for drifts.

A profile interval holds the values that lower the highest log-likelihood by at most 1.92 =
½ χ²₁(95%), all other parameters at their best for that value, with their priors. The parameter
itself has none: so the interval is what the log says of it. It need not be symmetric, and it begins
at zero if the log does not show that anything drifts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.identify.structured.fitting import (
    Fit,
    Problem,
    hessian,
    minimized,
)
from driftbandit.structure.parameters import original

LEVEL = 1.959963984540054  # normal quantile of a 95% interval
NEAR = 0.02  # of the quantile: the end of an interval is found
STEPS = 8  # at most, to find one end
LONGEST = 3.0  # step of θ at most
WITHIN = 30  # iterations to find the best of the other parameters


class Estimate(NamedTuple):
    """A parameter as the log shows it."""

    name: str
    value: float
    std_error: float  # of the value; of its logarithm, times the value, if it is positive
    low: float  # 95% interval
    high: float
    unit: str
    is_drift: bool  # whether it says how fast things drift; then the interval is a profile interval


def estimates(found: Fit) -> list[Estimate]:
    """All parameters with their 95% intervals, in the order of the structure.

    Args:
        found: as `fit` returned it.

    Returns:
        One `Estimate` for each parameter; loadings come last.

    Example:
        >>> from driftbandit.identify import fit
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 100))
        >>> rewards = 5 + np.cumsum(0.3 * drift) + 0.5 * noise
        >>> log = {"round": range(100), "arm": ["a"] * 100, "reward": rewards}
        >>> for one in estimates(fit(log, structure="level(arm)", starts=1)):
        ...     print(f"{one.name}: {one.value:.2f}, {one.low:.1f} to {one.high:.1f} {one.unit}")
        level(arm).drift: 0.25, 0.2 to 0.4 reward per √round
        noise: 0.51, 0.4 to 0.6 reward
    """
    layout, problem = found.layout, found.learned or found.problem
    scale, free = problem.described.units.scale, layout.free
    second = hessian(problem, found.theta)
    rows = []
    for place, one in enumerate(free):
        if one.copy is not None or one.arm is not None:
            continue
        kind, name = one.parameter.kind, one.name
        own = [j for j, x in enumerate(free) if x.copy is not None and _same(one, x)]
        unit = scale if kind == "size" else 1.0
        if own:
            for j in own:
                both = np.zeros(len(free))
                both[[place, j]] = 1.0
                ends = _wald(found, both)
                rows.append(_estimate(free[j].name, kind, ends, unit, one.parameter, False))
        elif one.parameter.drift:
            error = math.sqrt(found.covariance[place, place])
            flat = problem._replace(flat=place)
            given = flat, minimized(flat, found.theta).loss, found.theta, second, place, error
            low, high = (_end(*given, way) for way in (-1, 1))
            ends = low, float(found.theta[place]), high, error
            rows.append(_estimate(name, kind, ends, unit, one.parameter, True))
        else:
            ends = _wald(found, np.eye(len(free))[place])
            rows.append(_estimate(name, kind, ends, unit, one.parameter, False))
    return rows + _loadings(found)


def _same(one: Any, other: Any) -> bool:
    return bool(one.component == other.component and one.parameter == other.parameter)


def _wald(found: Fit, weights: np.ndarray) -> tuple[float, float, float, float]:
    middle = float(weights @ found.theta)
    error = math.sqrt(max(float(weights @ found.covariance @ weights), 0.0))
    return middle - LEVEL * error, middle, middle + LEVEL * error, error


def _estimate(
    name: str,
    kind: str,
    ends: tuple[float, float, float, float],
    unit: float,
    one: Any,
    drift: bool,
) -> Estimate:
    low, value, high = (unit * float(original(np.float64(end), kind, np)) for end in ends[:3])
    slopes = {"share": value * (1 - value), "correlation": 1 - value**2}
    error = ends[3] * slopes.get(kind, value)
    return Estimate(name, value, error, low, high, one.unit, drift)


def _loadings(found: Fit) -> list[Estimate]:
    """Loadings are scaled to a mean square of 1; standard errors by the delta method."""
    layout, rows = found.layout, []
    for index in range(len(layout.structure.components)):
        places = [
            i for i, x in enumerate(layout.free) if x.component == index and x.arm is not None
        ]
        if not places:
            continue
        raw = found.theta[places]
        length = math.sqrt(float(raw @ raw) / len(raw))
        values = raw / length
        # ∂(w_i / length) / ∂w_j = (δ_ij − w_i w_j / Σw²) / length
        slopes = (np.eye(len(raw)) - np.outer(raw, raw) / (raw @ raw)) / length
        covariance = slopes @ found.covariance[np.ix_(places, places)] @ slopes.T
        for place, value, error in zip(places, values, np.sqrt(np.diag(covariance)), strict=True):
            low, high = float(value - LEVEL * error), float(value + LEVEL * error)
            name = layout.free[place].name
            rows.append(Estimate(name, float(value), float(error), low, high, "", False))
    return rows


def _end(
    problem: Problem,
    least: float,
    theta: np.ndarray,
    second: np.ndarray,
    place: int,
    error: float,
    way: int,
) -> float:
    """The end of θ_place's profile interval, downwards (−1) or upwards (1).

    ``least`` is the lowest loss; the search begins at θ, where ``second`` are the derivatives.
    """
    # √(2 (loss − least)) grows almost linearly along the profile: secants find 1.96 quickly.
    bounds, others = problem.bounds, np.arange(len(theta)) != place
    best = theta[place]
    slope = np.zeros(len(theta))  # how the others follow θ_place at first
    if others.any():
        rest = second[np.ix_(others, others)] + 1e-9 * np.eye(int(others.sum()))
        slope[others] = -np.linalg.solve(rest, second[others, place])
    slope[place] = 1.0
    near, height, point = best, math.sqrt(2 * max(problem.loss(theta)[0] - least, 0.0)), theta
    target = best + way * min(LEVEL * error, LONGEST)
    for _ in range(STEPS):
        edge = bounds[place][(way + 1) // 2]
        target = max(target, edge) if way < 0 else min(target, edge)
        begin = point + (target - point[place]) * slope
        begin[place] = target
        held = [(target, target) if i == place else bounds[i] for i in range(len(theta))]
        end = minimized(problem, begin, held, WITHIN) if others.any() else None
        loss = problem.loss(begin)[0] if end is None else end.loss
        point = begin if end is None else end.theta
        rise = math.sqrt(2 * max(loss - least, 0.0))
        if abs(rise - LEVEL) <= NEAR * LEVEL:
            return float(target)
        if target == edge and rise < LEVEL:
            return -math.inf if way < 0 else math.inf
        pace = (rise - height) / (target - near) if target != near else 0.0
        near, height = target, rise
        move = (LEVEL - rise) / pace if pace * way > 0 else way * LONGEST
        target = near + float(np.clip(move, -LONGEST, LONGEST))
    return float(target)
