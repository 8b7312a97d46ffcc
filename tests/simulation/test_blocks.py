"""Blocks: every run once, within the memory budget."""

import itertools

import pytest

from driftbandit.simulation import blocks


@pytest.mark.parametrize(
    ("systems", "runs", "lanes"),
    [(1, 1, 2), (1, 2000, 64), (1000, 10, 64), (7, 3, 8), (3, 7, 4), (1, 5, 4)],
)
def test_blocks_cover_every_run_once(systems, runs, lanes):
    limits = blocks.Limits(lanes, 1e9)
    plan = blocks.plan(systems, runs, 100, per_round=60, at_rest=1000, limits=limits)
    covered = []
    for block in plan.blocks():
        assert block.systems.shape == block.runs.shape == (plan.lanes,) == (lanes,)
        covered += zip(block.systems[: block.kept], block.runs[: block.kept], strict=True)
    assert covered == list(itertools.product(range(systems), range(runs)))


def test_the_plan_does_not_depend_on_the_study():
    """Lanes and spans are what programs are compiled for."""
    limits = blocks.Limits(64, 256e6)
    plans = [
        blocks.plan(systems, runs, 1000, per_round=60, at_rest=1000, limits=limits)
        for systems, runs in [(1, 1), (1000, 10), (3, 10**6)]
    ]
    assert len({(plan.lanes, plan.span) for plan in plans}) == 1


@pytest.mark.parametrize("per_round", [60, 4_000, 4_000_000])
@pytest.mark.parametrize("at_rest", [1_000, 300_000])
def test_blocks_stay_within_the_memory_budget(per_round, at_rest):
    """Lanes become fewer first, then spans shorter; two lanes are the least."""
    limits = blocks.Limits(64, 256e6)
    plan = blocks.plan(1000, 10, 10**6, per_round=per_round, at_rest=at_rest, limits=limits)
    assert 8 * plan.lanes * (plan.span * per_round + at_rest) <= limits.memory
    assert plan.span >= 1
