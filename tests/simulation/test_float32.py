"""Single precision (P20)."""

import numpy as np
import pytest

import driftbandit as db

SLOW = ["lookahead", "information_directed"]


QUICK = [name for name in db.policies.available() if name not in SLOW]
FEW = ["idea", "discounted_linucb", "rexp3", "random", "kalman_oracle"]


@pytest.mark.parametrize(
    ("families", "quick", "slow"),
    [
        (("gaussian", "cauchy"), FEW, []),
        pytest.param(tuple(db.families.FAMILIES), QUICK, SLOW, marks=pytest.mark.nightly),
    ],
    ids=["some", "all"],
)
def test_float32_in_the_papers_setting(families, quick, slow):
    """k = d = 10, n = 1000: no NaN, and IDEA still works (P20).

    One test for all families, since what is compiled for one serves the others.
    """
    for family in families:
        systems = db.families.sample(family, systems=32)  # with two runs each, one block
        single = db.simulate(systems, None, quick, rounds=1000, runs=2, dtype=np.float32)
        played = single.regret
        if slow:
            few = db.simulate(systems[:10], None, slow, rounds=60, runs=2, dtype=np.float32)
            played |= few.regret
        for name, regret in played.items():
            assert np.isfinite(regret).all(), (family, name)
            assert (regret >= 0).all(), (family, name)
        excess = {name: np.median(values) for name, values in single.normalized().items()}
        assert excess["idea"] < excess["random"] / 1.5, family
