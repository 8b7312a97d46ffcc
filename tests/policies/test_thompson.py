"""Thompson sampling."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.special

import driftbandit as db
from systems import problem_of, situation


def test_thompson_plays_an_arm_as_often_as_it_may_be_best():
    """Two arms: P(⟨a − b, z⟩ > 0) = Φ(⟨a − b, ẑ⟩ / √((a − b)ᵀP(a − b)))."""
    model, arms, belief = situation(9, 3, 2, 0.5, rank=3)
    policy = db.policies.make("thompson")
    problem = problem_of(policy, model, arms)
    noise = np.random.default_rng(0).standard_normal((4000, 3))
    share = np.mean([policy.choose(belief, problem, row) == 0 for row in noise])
    gap = arms[0] - arms[1]
    chance = scipy.special.ndtr(gap @ belief.mean / math.sqrt(gap @ belief.cov @ gap))
    assert share == pytest.approx(chance, abs=4 * math.sqrt(0.25 / 4000))
