"""Policies by name: parameters, copies, equality."""

import copy
import dataclasses
import pickle

import pytest

import driftbandit as db
from driftbandit.policies import (
    available,
    chosen,
    idea,
    label_among,
    make,
    optimistic,
    rollout,
    short_label,
)
from refusals import INF, Case, assert_refused, each

# Policies.


def bonus(cov, model, arms, width=1.0):
    return width * arms[:, 0]


@pytest.mark.parametrize("name", available())
def test_policies_of_the_registry_travel_by_name(name):
    policy = make(name)
    for copied in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
        assert copied == policy == make(name)
        assert hash(copied) == hash(policy)
        assert (copied.choose, copied.update) == (policy.choose, policy.update)  # compiled once
    assert b"_made" in pickle.dumps(policy)
    assert repr(policy) == f"Policy({policy.label})"


def test_parameters_travel_and_tell_policies_apart():
    policy = make("kalman_ucb(width=2)")
    assert repr(policy) == "Policy(kalman_ucb(width=2))"
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert policy != make("kalman_ucb(width=3)")
    assert make("ucb") != make("oful")
    assert make("ucb") != "ucb"
    assert make("information_directed(points=32)") != make("information_directed")


OTHERS = {"gamma": 0.9}  # in place of None


@pytest.mark.parametrize("name", available())
def test_a_label_shows_the_parameters_that_are_not_the_default_ones(name):
    default = make(name)
    assert short_label(default) == name
    for key, value in default.parameters.items():
        other = OTHERS.get(key, 3) if value is None else value / 2
        other = int(other) if isinstance(value, int) else other
        policy = make(name, **{key: other})
        assert short_label(policy) == f"{name}({key}={other:g})"
        assert make(short_label(policy)) == policy
        assert list(chosen([policy])) == [short_label(policy)]
        assert list(chosen([name, policy])) == [name, short_label(policy)]
        assert label_among([short_label(policy), name], policy) == short_label(policy)
        assert label_among([name], policy) == short_label(policy)  # who does not play


def test_own_policies_are_labeled_by_their_name_unless_it_occurs_twice():
    narrow, wide = (optimistic("mine", bonus, width=width) for width in (1.0, 2.0))
    assert list(chosen([wide, "idea"])) == ["mine", "idea"]
    assert list(chosen([narrow, wide])) == ["mine(width=1)", "mine(width=2)"]
    assert label_among(["mine", "idea"], wide) == "mine"
    stand_in = optimistic("kalman_ucb", lambda cov, model, arms, a, b: arms[:, 0], a=1.0, b=2.0)
    assert list(chosen([stand_in])) == ["kalman_ucb"]


def test_own_policies_travel_by_their_functions():
    own = optimistic("mine", bonus, width=2.0)
    copied = pickle.loads(pickle.dumps(own))
    assert copied == own
    assert copied.choose == own.choose
    assert hash(copied.choose) == hash(own.choose)  # so that it compiles once
    named = optimistic("idea", bonus)  # only the name is the registry's
    assert named != make("idea")
    assert pickle.loads(pickle.dumps(named)) == named
    whole = {"on_sphere": idea.on_sphere, "length_ratio": idea.length_ratio}
    assert optimistic("idea", idea.bonus, **whole) == make("idea")
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(optimistic("mine", lambda cov, model, arms: arms[:, 0]))


def test_a_copied_policy_decides_the_same():
    system, arms = db.families.sample("gaussian", n_states=3, n_arms=4)[0]
    for policy in (make("lookahead"), optimistic("mine", bonus, width=2.0)):
        agents = [db.Agent(system, arms, each) for each in (policy, copy.deepcopy(policy))]
        decisions = [agent.ask() for agent in agents]
        assert decisions[0] == decisions[1]


CASES = [
    Case("unknown parameter", lambda: make("kalman_ucb", widht=2), "kalman_ucb", "widht"),
    Case("unknown parameter in text", lambda: make("ucb(width=2)"), "ucb(width=…)", "valid: delta"),
    Case("parameter of idea", lambda: make("idea(width=2)"), "idea(width=…)", "valid: none"),
    Case("no closing", lambda: make("kalman_ucb(width=2"), "policy", "'kalman_ucb(width=2'"),
    Case("no equals sign", lambda: make("kalman_ucb(2)"), "policy", "'2'"),
    Case("empty text", lambda: make(""), "policy", "''"),
    Case("not a number", lambda: make("kalman_ucb(width=two)"), "kalman_ucb(width=…)", "'two'"),
    Case("keyword text", lambda: make("kalman_ucb", width="2"), "width", "'2'"),
    Case("keyword None", lambda: make("ucb", delta=None), "delta", "None"),
    Case("width -1", lambda: make("kalman_ucb(width=-1)"), "width", "-1"),
    Case("width NaN", lambda: make("kalman_ucb(width=nan)"), "width", "nan"),
    Case("width inf", lambda: make("kalman_ucb", width=INF), "width", "inf"),
    Case("delta 0", lambda: make("ucb(delta=0)"), "delta", "is 0"),
    Case("delta 1", lambda: make("oful(delta=1)"), "delta", "is 1"),
    Case("delta 2", lambda: make("sliding_window_ucb(delta=2)"), "delta", "is 2"),
    Case("window 0", lambda: make("sliding_window_ucb(window=0)"), "window", "is 0"),
    Case("window 2.5", lambda: make("sliding_window_ucb(window=2.5)"), "window", "2.5"),
    Case("batch 0", lambda: make("rexp3(batch=0)"), "batch", "is 0"),
    Case("gamma 2", lambda: make("rexp3(gamma=2)"), "gamma", "is 2"),
    Case("gamma -0.1", lambda: make("rexp3(gamma=-0.1)"), "gamma", "-0.1"),
    Case("gamma 1.1", lambda: make("discounted_ucb(gamma=1.1)"), "gamma", "is 1.1"),
    Case("xi -1", lambda: make("discounted_ucb(xi=-1)"), "xi", "-1"),
    Case("ridge 0", lambda: make("oful(ridge=0)"), "ridge", "is 0"),
    Case("bound -1", lambda: make("oful(bound=-1)"), "bound", "-1"),
    Case("discount -1", lambda: make("discounted_linucb(gamma=-1)"), "gamma", "-1"),
    Case("discounted delta", lambda: make("discounted_linucb(delta=1)"), "delta", "is 1"),
    Case("discounted ridge", lambda: make("discounted_linucb(ridge=0)"), "ridge", "is 0"),
    Case("discounted bound", lambda: make("discounted_linucb(bound=-2)"), "bound", "-2"),
    Case("steps 0", lambda: make("lookahead(steps=0)"), "steps", "is 0"),
    Case("lookahead discount", lambda: make("lookahead(discount=2)"), "discount", "is 2"),
    Case("scenarios 3", lambda: rollout.policy(scenarios=3), "scenarios", "is 3"),
    Case("depth 0", lambda: rollout.policy(depth=0), "depth", "is 0"),
    Case("points 48", lambda: make("information_directed(points=48)"), "points", "is 48"),
    Case("linear window 0", lambda: make("sliding_window_linucb(window=0)"), "window", "is 0"),
    Case("linear window", lambda: make("sliding_window_linucb(window=2.5)"), "window", "2.5"),
    Case("linear delta", lambda: make("sliding_window_linucb(delta=1)"), "delta", "is 1"),
    Case("weighted gamma", lambda: make("weighted_linucb(gamma=1.1)"), "gamma", "1.1"),
    Case("weighted ridge", lambda: make("weighted_linucb(ridge=0)"), "ridge", "is 0"),
    Case("linear batch", lambda: make("restarted_linucb(batch=0)"), "batch", "is 0"),
    Case("linear bound", lambda: make("restarted_linucb(bound=-1)"), "bound", "-1"),
]


@each(CASES)
def test_bad_policies_are_refused(case):
    assert_refused(case)


@pytest.mark.parametrize("name", ["", " "])
def test_a_policy_needs_a_name(name):
    nameless = dataclasses.replace(make("kode"), name=name)
    with pytest.raises(db.InvalidInput, match=f"policies: has one named '{name}'; name it"):
        db.policies.chosen([nameless, "random"])
