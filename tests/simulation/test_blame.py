"""Mistakes in a policy of one's own get one line that names the policy and the place."""

import jax
import numpy as np
import pytest

import driftbandit as db
from driftbandit.policies import filtering, optimistic

MODEL, ARMS = db.families.sample("gaussian", n_states=2, n_arms=3)[0]


def numpy_function(cov, model, arms):
    return np.sqrt(np.abs(arms @ cov.sum(axis=0)))


def branch(cov, model, arms):
    scores = arms @ cov.sum(axis=0)
    return scores if scores[0] > 0 else -scores


def python_number(cov, model, arms):
    return float(cov[0, 0]) * arms[:, 0]


def place_in_a_list(cov, model, arms):
    return [arms[:, 0]][(cov[0, 0] > 1) * 1]


def selection(cov, model, arms):
    scores = arms @ cov.sum(axis=0)
    return scores[scores > 0]


def writing(cov, model, arms):
    scores = arms @ cov.sum(axis=0)
    scores[0] = 1.0
    return scores


def played(policy, engine):
    return db.simulate(MODEL, ARMS, ["kode", policy], rounds=3, runs=2, engine=engine)


JAX = jax.errors
MISTAKES = {
    numpy_function: ("calls a NumPy function", "namespace", JAX.TracerArrayConversionError),
    branch: ("branches on the value", "xp.where", JAX.TracerBoolConversionError),
    python_number: ("needs the value", "keep it an array", JAX.ConcretizationTypeError),
    place_in_a_list: ("needs the value", "keep it an array", JAX.TracerIntegerConversionError),
    selection: ("selects by a condition", "xp.where", JAX.NonConcreteBooleanIndexError),
    writing: ("writes into an array", "arrays.put", TypeError),
}


@pytest.mark.parametrize("engine", ["auto", "xla"])
@pytest.mark.parametrize("bonus", MISTAKES)
def test_what_jax_cannot_trace(bonus, engine):
    problem, remedy, cause = MISTAKES[bonus]
    with pytest.raises(db.InvalidInput) as caught:
        played(optimistic("mine", bonus), engine)
    error = caught.value
    assert error.argument == "policy 'mine'"
    assert error.problem.startswith(problem)
    assert f"({bonus.__name__}, line " in error.problem
    assert remedy in error.remedy
    assert "add_a_policy" in error.remedy
    assert "\n" not in str(error)
    assert isinstance(error.__cause__, cause)


@pytest.mark.parametrize("engine", ["auto", "xla"])
def test_what_choose_and_bonus_return(engine):
    def refusal(policy):
        with pytest.raises(db.InvalidInput) as caught:
            played(policy, engine)
        return str(caught.value)

    scores = filtering("mine", lambda belief, problem, noise: problem.arms @ belief.mean)
    assert refusal(scores).startswith("policy 'mine' choose: returns an array of shape (3,); ")
    real = filtering("mine", lambda belief, problem, noise: belief.mean[0])
    assert refusal(real).startswith("policy 'mine' choose: returns a number of type float64; ")
    found = {
        "a float": lambda cov, model, arms: 0.0,
        "an array of shape ()": lambda cov, model, arms: cov[0, 0],
        "an array of shape (3, 2)": lambda cov, model, arms: arms @ cov,
    }
    for kind, bonus in found.items():
        text = f"bonus: returns {kind}; return one number per arm, shape (3,)"
        assert refusal(optimistic("mine", bonus)) == f"policy 'mine' {text}"
        with pytest.raises(db.InvalidInput) as caught:
            db.Agent(MODEL, ARMS, optimistic("mine", bonus)).ask()
        assert str(caught.value) == text


def test_other_errors_stay_what_they_are():
    def bonus(cov, model, arms):
        return model.nothing

    with pytest.raises(AttributeError, match="nothing") as caught:
        played(optimistic("mine", bonus), "auto")
    assert "This happened while policy 'mine' was compiled." in caught.value.__notes__


def test_arguments_of_a_bonus_are_checked_when_the_policy_is_made():
    def bonus(cov, model, arms, width):
        return width * arms[:, 0]

    with pytest.raises(db.InvalidInput, match=r"policy 'mine' bonus: .* argument: 'width'; give "):
        optimistic("mine", bonus)
    with pytest.raises(db.InvalidInput, match=r"cov, model, arms, width, depth: .* 'depth'"):
        optimistic("mine", bonus, width=1.0, depth=2.0)
    with pytest.raises(db.InvalidInput, match=r"^bonus: is a float; give a function of cov"):
        optimistic("mine", 1.5)
    assert optimistic("mine", bonus, width=1.0).label == "mine(width=1)"
