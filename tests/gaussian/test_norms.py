"""Mean lengths of Gaussian vectors."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln

from driftbandit.gaussian.norms import expected_length, expected_norm
from systems import random_system

checked = settings(deadline=None, derandomize=True, max_examples=40)


stable = st.builds(
    random_system,
    seed=st.integers(0, 10**6),
    d=st.integers(1, 5),
    k=st.integers(1, 7),
    radius=st.sampled_from([0.1, 0.9, 0.99]),
    reward_std=st.sampled_from([0.0, 0.1, 1.0]),
)


# Mean lengths.


@pytest.mark.parametrize("d", [1, 2, 3, 10, 50])
def test_mean_length_of_a_unit_normal_vector(d):
    exact = math.sqrt(2) * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
    assert expected_norm(np.zeros(d), np.eye(d)) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("shift", [0.0, 0.1, 1.0, 5.0, 1e4])
@pytest.mark.parametrize("across", [0.0, 1e-3, 0.3, 1.0, 100.0])
def test_mean_length_with_a_kink(shift, across):
    """E √((ω + c)² + b²), whose integrand bends at −c as sharply as b is small."""

    def density(w):
        return math.hypot(w + shift, across) * math.exp(-(w**2) / 2) / math.sqrt(2 * math.pi)

    cuts = sorted({-13.0, 13.0, *(np.clip(-shift + across * np.arange(-8, 9), -13, 13))})
    exact = sum(
        quad(density, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in itertools.pairwise(cuts)
    )
    found = expected_length(np.array([shift**2, across**2]), np.array([1.0, 0.0]))
    assert found == pytest.approx(exact, rel=1e-11)


@checked
@given(stable, st.floats(1e-6, 1e6))
def test_mean_length_scales_and_does_not_depend_on_the_axes(system, scale):
    model, arms = system
    cov, mean = model.stationary_cov(), arms[0]
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal(cov.shape))[0]
    length = expected_norm(mean, cov)
    assert expected_norm(scale * mean, scale**2 * cov) == pytest.approx(scale * length, rel=1e-12)
    assert expected_norm(turn @ mean, turn @ cov @ turn.T) == pytest.approx(length, rel=1e-10)
    assert np.linalg.norm(mean) <= length * (1 + 1e-12)
    assert length <= math.sqrt(mean @ mean + np.trace(cov)) * (1 + 1e-12)
