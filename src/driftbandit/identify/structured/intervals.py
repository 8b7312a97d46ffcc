"""How certain the estimates are: profile intervals, and standard errors for what each copy has.

A profile interval holds the values that lower the highest log-likelihood by at most 1.92 =
½ χ²₁(95%), all other parameters at their best for that value. The parameter itself has no prior,
and the others' are ten times weaker than by default: so the interval is what the log says. (Without
any, a drift that is near zero would stay there, where the likelihood is flat.) It need not be
symmetric, and it is open where the log sets no limit: it begins at zero if the log does not show
that anything drifts.

Two corrections matter where few numbers tell how large a size is, such as three arms' means:

- The rewards' mean μ is estimated, too. If constants hold it, the likelihood is integrated over μ
  (restricted likelihood, REML), or the size of k constants would be learned as if k − 1 deviations
  were k. Rewards are linear in μ, so the loss is a parabola in it: a + b μ + ½ c μ², and its
  integral is a − ½ b²/c + ½ log c, up to a constant.
- Twice the log-likelihood ratio of the size of ν normal numbers has the mean
  ν (log(ν/2) − ψ(ν/2)), and not 1: 1.27 for one number, 1.06 for six. The limit of 1.92 is
  multiplied by it (Bartlett correction).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.special

from driftbandit.identify.structured import profiles
from driftbandit.identify.structured.fitting import Fit, Problem
from driftbandit.structure.base import SIZE
from driftbandit.structure.parameters import Free

LEVEL = 1.959963984540054  # normal quantile of a 95% interval
WEAK = 0.1  # strength of the other parameters' priors
TINY = 1e-12  # the least curvature of a loss in the rewards' mean


class Estimate(NamedTuple):
    """A parameter as the log shows it."""

    name: str
    value: float
    std_error: float  # of the value; of its logarithm, times the value, if it is positive
    low: float  # 95% interval
    high: float
    unit: str
    is_drift: bool = False  # whether it says how fast things drift
    is_profile: bool = False  # whether the interval is a profile interval, without the prior
    prior_median: float = math.nan  # NaN: it has no prior that can be said in its unit
    prior_low: float = math.nan  # 95% of the prior
    prior_high: float = math.nan


def estimates(found: Fit) -> list[Estimate]:
    """All parameters with their 95% intervals, in the order of the structure.

    Args:
        found: as `fit` returned it.

    Returns:
        One `Estimate` for each parameter; loadings come last. The value includes the priors; a
        profile interval does not, so it may exclude the value.

    Example:
        >>> from driftbandit.identify import fit
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 100))
        >>> rewards = 5 + np.cumsum(0.3 * drift) + 0.5 * noise
        >>> log = {"round": range(100), "arm": ["a"] * 100, "reward": rewards}
        >>> for row in estimates(fit(log, structure="level(arm)", starts=1)):
        ...     print(f"{row.name}: {row.value:.2f}, {row.low:.1f} to {row.high:.1f} {row.unit}")
        level(arm).drift: 0.25, 0.2 to 0.4 reward per √round
        noise: 0.51, 0.4 to 0.6 reward
    """
    free, rows = found.layout.free, []
    for place, number in enumerate(free):
        if not number.is_value:
            continue
        same = (number.component, number.parameter)
        if copies := [
            other
            for other, x in enumerate(free)
            if x.copy is not None and (x.component, x.parameter) == same
        ]:
            rows += [_of_copy(found, place, copy) for copy in copies]
        else:
            rows.append(_of_all(found, place))
    return rows + _loadings(found)


def _of_copy(found: Fit, place: int, copy: int) -> Estimate:
    """What one copy has: the common number and how far it is from it, with a standard error."""
    number = found.layout.free[place]
    weights = np.zeros(len(found.theta))
    weights[[place, copy]] = 1.0
    middle, error = float(weights @ found.theta), _spread(found, weights)
    ends = middle - LEVEL * error, middle, middle + LEVEL * error
    low, value, high = _values(found, number, *ends)
    error *= _slope(number, value)
    name, parameter = found.layout.free[copy].name, number.parameter
    return Estimate(name, value, error, low, high, parameter.unit, parameter.drift)


def _of_all(found: Fit, place: int) -> Estimate:
    """What all copies have in common, with a profile interval."""
    number, strength = found.layout.free[place], found.problem.prior
    name, parameter = number.name, number.parameter
    middle = float(found.theta[place])
    (value,) = _values(found, number, middle)
    if not _has_profile(number) or found.layout.learns_factors:
        return Estimate(name, value, math.nan, math.nan, math.nan, parameter.unit)
    error = _spread(found, np.eye(len(found.theta))[place]) * _slope(number, value)
    low, high = _values(found, number, *_profile(found, place))
    known = name, value, error, low, high, parameter.unit, parameter.drift, True
    if not strength:
        return Estimate(*known)
    away = LEVEL * number.spread / math.sqrt(strength)
    prior = _values(found, number, *(number.center + way * away for way in (0, -1, 1)))
    return Estimate(*known, *prior)


def _values(found: Fit, number: Free, *numbers: float) -> list[float]:
    """Values of a parameter for numbers in θ, also for infinite ones."""
    scale = found.problem.described.units.scale
    return [number.value(each, scale) for each in numbers]


def _spread(found: Fit, weights: np.ndarray) -> float:
    return math.sqrt(max(float(weights @ found.covariance @ weights), 0.0))


def _slope(number: Free, value: float) -> float:
    """The derivative of a value by its number in θ."""
    slopes = {"share": value * (1 - value), "correlation": 1 - value**2}
    return slopes.get(number.parameter.kind, value)


def _profile(found: Fit, place: int) -> tuple[float, float]:
    """Both ends of the profile interval of θ_place."""
    layout, number = found.layout, found.layout.free[place]
    problem, quantile = found.learned or found.problem, LEVEL
    likelihood = Likelihood(*problem._replace(flat=place, prior=max(problem.prior, WEAK)))
    if number.parameter == SIZE:
        copies = zip(layout.copies, layout.copy_states, strict=True)
        states = sum(len(own) for copy, own in copies if copy.component == number.component)
        estimated_mean = number.component == layout.mean_component
        quantile *= math.sqrt(bartlett(max(states - estimated_mean, 1)))
    curvature = np.linalg.inv(found.covariance)
    return profiles.ends(
        likelihood.loss, found.theta, curvature, place, likelihood.bounds, quantile
    )


def bartlett(count: int) -> float:
    """The mean of twice the log-likelihood ratio of the size of so many normal numbers.

    Args:
        count: ν, how many there are.

    Returns:
        ν (log(ν/2) − ψ(ν/2)).

    Example:
        >>> [round(bartlett(count), 3) for count in (1, 2, 6, 100)]
        [1.27, 1.154, 1.055, 1.003]
    """
    return count * (math.log(count / 2) - float(scipy.special.digamma(count / 2)))


class Likelihood(Problem):
    """A problem whose priors hardly count: none on the flat parameter, weak ones on the others.

    What ties copies and loadings to each other keeps its strength. The likelihood is integrated
    over the rewards' mean if constants hold it.
    """

    __slots__ = ()

    @property
    def spreads(self) -> np.ndarray:
        """Of the prior; ∞: none."""
        weaker = [
            math.sqrt(self.prior / WEAK) if _has_profile(x) else 1.0 for x in self.layout.free
        ]
        return super().spreads * weaker

    @property
    def integrates(self) -> bool:
        """Whether the likelihood is integrated over the rewards' mean."""
        mean, components = self.layout.mean_component, self.layout.structure.components
        return mean is not None and SIZE in components[mean].parameters()

    def loss(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the objective, and its gradient."""
        here = super().loss(theta)
        if not self.integrates:
            return here
        down, up = (super(Likelihood, self._less(mean)).loss(theta) for mean in (-1, 1))
        if not np.isfinite([here[0], down[0], up[0]]).all():
            return math.inf, np.zeros_like(theta)
        # For the mean μ: a + b μ + ½ c μ², here at μ = 0, −1 and 1; and the same for gradients
        a, a_slope = here
        b, b_slope = (up[0] - down[0]) / 2, (up[1] - down[1]) / 2
        c, c_slope = up[0] + down[0] - 2 * a, up[1] + down[1] - 2 * a_slope
        c = max(c, TINY)
        slope = a_slope - b / c * b_slope + 0.5 * (b**2 / c + 1) / c * c_slope
        return a - 0.5 * b**2 / c + 0.5 * math.log(c), slope

    def _less(self, mean: float) -> Likelihood:
        """The same for rewards less a mean, in units of their spread."""
        data = self.described
        rewards = data.rows.rewards - mean * data.units.scale * data.rows.seen
        return self._replace(described=data._replace(rows=data.rows._replace(rewards=rewards)))


def _has_profile(number: Free) -> bool:
    kind: str = number.parameter.kind
    return number.is_value and kind != "real"  # a real number may mean nothing by itself


def _loadings(found: Fit) -> list[Estimate]:
    """Loadings are scaled to a mean square of 1; standard errors by the delta method."""
    layout, rows = found.layout, []
    for index in range(len(layout.structure.components)):
        places = [
            i for i, x in enumerate(layout.free) if x.component == index and x.arm is not None
        ]
        if not places or layout.learns_factors:
            continue  # those of several factors mean nothing one by one: see `Fit.arms`
        raw = found.theta[places]
        length = math.sqrt(float(raw @ raw) / len(raw))
        values = raw / length
        # ∂(w_i / length) / ∂w_j = (δ_ij − w_i w_j / Σw²) / length
        slopes = (np.eye(len(raw)) - np.outer(raw, raw) / (raw @ raw)) / length
        covariance = slopes @ found.covariance[np.ix_(places, places)] @ slopes.T
        for place, value, error in zip(places, values, np.sqrt(np.diag(covariance)), strict=True):
            low, high = float(value - LEVEL * error), float(value + LEVEL * error)
            rows.append(
                Estimate(layout.free[place].name, float(value), float(error), low, high, "")
            )
    return rows
