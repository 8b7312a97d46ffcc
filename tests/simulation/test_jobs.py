"""What a policy remembers decides how many lanes it plays at a time."""

import jax
import numpy as np

import driftbandit as db
from driftbandit.simulation import jobs


def test_large_states_are_counted():
    """A policy that remembers a lot plays fewer lanes at a time."""
    model, arms = db.families.sample("gaussian", n_states=2, n_arms=3)[0]
    lanes = []
    for window in (10, 1_000_000):
        policy = db.policies.make("sliding_window_ucb", window=window)
        player = jobs.prepared(policy, [(model, arms)], 100)
        lanes.append(jobs.sized(player, None, np.dtype(float), jax.devices("cpu")[0]).lanes)
    assert lanes == [64, 2]
