"""Blocks hold every run once and fit into the memory."""

import itertools

import jax
import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("systems", "runs", "lanes"),
    [(1, 1, 2), (1, 2000, 64), (1000, 10, 64), (7, 3, 8), (3, 7, 4), (1, 5, 4)],
)
def test_blocks_cover_every_run_once(systems, runs, lanes):
    limits = jobs.Limits(lanes, 1e9)
    plan = jobs.plan(systems, runs, 100, per_round=60, at_rest=1000, limits=limits)
    covered = []
    for block in plan.blocks():
        assert block.systems.shape == block.runs.shape == (plan.lanes,) == (lanes,)
        covered += zip(block.systems[: block.kept], block.runs[: block.kept], strict=True)
    assert covered == list(itertools.product(range(systems), range(runs)))


def test_the_plan_does_not_depend_on_the_study():
    """Lanes and spans are what programs are compiled for."""
    limits = jobs.Limits(64, 256e6)
    plans = [
        jobs.plan(systems, runs, 1000, per_round=60, at_rest=1000, limits=limits)
        for systems, runs in [(1, 1), (1000, 10), (3, 10**6)]
    ]
    assert len({(plan.lanes, plan.span) for plan in plans}) == 1


@pytest.mark.parametrize("per_round", [60, 4_000, 4_000_000])
@pytest.mark.parametrize("at_rest", [1_000, 300_000])
def test_blocks_stay_within_the_memory_budget(per_round, at_rest):
    """Lanes become fewer first, then spans shorter; two lanes are the least."""
    limits = jobs.Limits(64, 256e6)
    plan = jobs.plan(1000, 10, 10**6, per_round=per_round, at_rest=at_rest, limits=limits)
    assert 8 * plan.lanes * (plan.span * per_round + at_rest) <= limits.memory
    assert plan.span >= 1
