"""Finite sets and the sphere answer the same questions."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit.actions import FINITE, SPHERE, action_set, sphere
from driftbandit.policies import Problem
from driftbandit.simulation import Options
from sphere_cases import PLANE, PLAYED


def test_policies_that_can_are_all_that_play():
    chosen = db.policies.chosen(None, SPHERE)
    assert set(PLAYED) <= set(chosen)
    assert all(policy.actions.on_sphere for policy in chosen.values())
    assert set(chosen) == {name for name, e in db.policies.REGISTRY.items() if e.sphere}
    assert "ucb" not in chosen


def test_both_action_sets_answer_the_same_questions():
    """What the engine asks: rows, means, the best mean, which noise, and what update sees."""
    values, problem = np.array([3.0, 4.0]), Problem(PLANE, np.eye(2), {})
    assert (action_set(np.eye(2)), action_set("sphere")) == (FINITE, SPHERE)
    assert (FINITE.describe(2), SPHERE.describe(2)) == ("2 arms", "the sphere")
    assert FINITE.mean(values, 0) == 3
    assert FINITE.best_mean(values) == 4
    assert FINITE.best(values) == (4, 1)
    assert FINITE.played(problem, 1) == (problem, 1)
    vector = np.array([0.6, 0.8])
    assert SPHERE.mean(values, vector) == SPHERE.best_mean(values) == 5
    assert SPHERE.best(values) == (5, 1)
    folded, row = SPHERE.played(problem, vector)
    assert (folded.arms[row] == vector).all()
    np.testing.assert_array_equal(SPHERE.rows("sphere", PLANE), np.eye(2))
    able = ("reach", "idea", "kode", "kalman_ucb", "thompson", "kalman_oracle", "random")
    assert db.policies.default(SPHERE) == able
    assert "lookahead" not in db.policies.default(FINITE, 3000)


def _wrong(message, call, *arguments, **options):
    with pytest.raises(db.InvalidInput, match=message):
        call(*arguments, **options)


def test_what_the_sphere_refuses():
    _wrong("arms: is 'ball'; give a k × d array, or \"sphere\"", db.simulate, PLANE, "ball")
    _wrong("ucb chooses from a list.*such as idea", db.simulate, PLANE, "sphere", ["ucb"])
    _wrong(
        "regret: is 'hindsight'", db.simulate, PLANE, "sphere", options=Options(regret="hindsight")
    )
    mixed = [(PLANE, "sphere"), (PLANE, np.eye(2))]
    _wrong("arms: are a list in some", db.simulate, mixed)
    _wrong("assumed.*has a list", db.simulate, mixed[:1], assumed=mixed[1:])
    _wrong("oful chooses from a list", db.Agent, PLANE, "sphere", "oful")
    _wrong("model: is None, and the agent plays on the sphere", db.Agent, None, "sphere")
    _wrong("refit: is Refit", db.Agent, PLANE, "sphere", refit=db.Refit())
    _wrong("model: has type int", db.Agent, 3, "sphere")
    agent = db.Agent(PLANE, "sphere")
    _wrong("arms: is .* plays on the sphere; ask without arms", agent.ask, arms=[0])
    _wrong("policy: unknown name 'ucb'", sphere.best, db.kalman.prior(PLANE), PLANE, "ucb")
    _wrong("width: is -1", sphere.best, db.kalman.prior(PLANE), PLANE, "kalman_ucb", -1)
    short = db.policies.optimistic("short", db.policies.idea.bonus, on_sphere=lambda *_: np.ones(2))
    _wrong("arm of policy 'short'", db.Agent(PLANE, "sphere", short).ask)
