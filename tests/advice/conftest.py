"""Advice that several files look at."""

import pytest

import driftbandit as db
from advised_systems import SIZE, WALK, WALK_ARMS


@pytest.fixture(scope="session")
def system():
    return db.families.sample("gaussian", n_states=3, n_arms=3, seed=4)[0]


@pytest.fixture(scope="session")
def advice(system):
    return db.advise(*system, **SIZE)


@pytest.fixture(scope="session")
def unsettled():
    return db.advise(WALK, WALK_ARMS, **SIZE)
