"""A fitted model in the coordinates that arms read."""

import numpy as np

import driftbandit as db
from driftbandit.identify.assembly import scaled_by_reads
from driftbandit.identify.data import Parameters
from systems import random_system


def test_the_state_is_measured_by_what_arms_read():
    """Two bases of one system come out as one up to a rotation: IDEA's bonus is the same."""
    model, arms = random_system(3, 2, k=4)
    T = np.array([[3.0, 0.5], [-1.0, 0.2]])
    inverse = np.linalg.inv(T)
    given = Parameters(
        model.transition,
        model.process_cov,
        np.asarray(0.25),
        np.array([1.0, 2.0]),
        np.eye(2),
        arms,
        np.zeros(4),
    )
    turned = given._replace(
        transition=T @ given.transition @ inverse,
        process_cov=T @ given.process_cov @ T.T,
        initial_mean=T @ given.initial_mean,
        initial_cov=T @ given.initial_cov @ T.T,
        reads=arms @ inverse,
    )
    bonuses = []
    for one in (scaled_by_reads(given), scaled_by_reads(turned)):
        np.testing.assert_allclose(one.reads.T @ one.reads, np.eye(2), atol=1e-9)
        np.testing.assert_allclose(one.reads @ one.initial_mean, arms @ given.initial_mean)
        np.testing.assert_allclose(one.reads @ one.initial_cov @ one.reads.T, arms @ arms.T)
        found = db.LGDS(one.transition, one.process_cov, 0.5)
        cov = found.stationary_cov()
        np.testing.assert_allclose(
            one.reads @ cov @ one.reads.T, arms @ model.stationary_cov() @ arms.T
        )
        bonuses.append(db.policies.idea.bonus(cov, found, one.reads))
    np.testing.assert_allclose(*bonuses)
