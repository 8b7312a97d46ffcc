"""Profile intervals of losses whose ends are known."""

import math

import numpy as np
import pytest
import scipy.optimize

from driftbandit.identify.structured import profiles

BOUNDS = [(-20.0, 20.0)] * 3


def quadratic(theta):
    """Half of θᵀ H θ."""
    return 0.5 * float(theta @ HESSIAN @ theta), HESSIAN @ theta


HESSIAN = np.array([[4.0, 1.5, 0.5], [1.5, 2.0, -0.7], [0.5, -0.7, 3.0]])


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("known", [HESSIAN, np.eye(3), 6 * np.eye(3)], ids=["exact", "low", "high"])
def test_the_ends_of_a_parabola(place, known):
    error = math.sqrt(np.linalg.inv(HESSIAN)[place, place])
    ends = profiles.ends(quadratic, np.ones(3), known, place, BOUNDS, 1.96)
    assert ends == pytest.approx((-1.96 * error, 1.96 * error), rel=0.01)


def curved(theta):
    """A valley that is bent: the best second number is the square of the first."""
    x, y = theta
    off = y - x**2
    return 2 * x**2 + 5 * off**2, np.array([4 * x - 20 * x * off, 10 * off])


def test_the_other_numbers_follow_a_bent_valley():
    low, high = profiles.ends(curved, np.array([0.3, -1]), np.diag([4.0, 10.0]), 0, BOUNDS[:2], 3.0)
    assert (low, high) == pytest.approx((-1.5, 1.5), rel=0.01)  # 2 x² = 4.5


def variance(theta):
    """The size of an effect, in logarithms, beside noise: flat below."""
    total = 1 + math.exp(2 * theta[0])
    value = 5 * (math.log(total) + 1.3 / total)
    return value, np.array([5 * (1 / total - 1.3 / total**2) * (total - 1) * 2])


def test_an_end_is_open_where_the_loss_does_not_rise():
    low, high = profiles.ends(variance, np.zeros(1), np.eye(1), 0, [(-14.0, 7.0)], 1.96)
    assert low == -math.inf
    least = 5 * (math.log(1.3) + 1)
    exact = scipy.optimize.brentq(lambda x: variance([x])[0] - least - 1.96**2 / 2, 0, 5)
    assert high == pytest.approx(exact, abs=0.01)
    assert profiles.ends(variance, np.zeros(1), np.eye(1), 0, [(-14.0, 0.4)], 1.96)[1] == math.inf


def walled(theta):
    """Infinite beyond 1."""
    if theta[0] > 1:
        return math.inf, np.zeros(1)
    return 0.5 * float(theta[0] ** 2) / 0.16, theta / 0.16


def test_a_search_turns_back_where_the_loss_is_infinite():
    ends = profiles.ends(walled, np.zeros(1), np.eye(1) / 9, 0, [(-9.0, 9.0)], 1.96)
    assert ends == pytest.approx((-0.784, 0.784), rel=0.01)
