"""Mistakes in a policy of one's own get one line that names the policy and the place."""

from typing import NamedTuple

import jax
import numpy as np
import pytest

import driftbandit as db
from driftbandit.arrays import first_highest, namespace
from driftbandit.policies import Noise, Policy, filtering, optimistic

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
        assert str(caught.value) == f"policy 'mine' {text}"


def refusal(policy, **options):
    with pytest.raises(db.InvalidInput) as caught:
        db.simulate(MODEL, ARMS, ["kode", policy], rounds=60, runs=8, **options)
    return str(caught.value)


def nan_parameter(cov, model, arms, width):
    return width * arms[:, 0]


def root_of_a_negative_number(cov, model, arms):
    """NaN only once the state is known well enough."""
    return namespace(cov).sqrt(cov[0, 0] - 0.999 * START[0, 0]) + 0 * arms[:, 0]


def one_arm_is_nan(cov, model, arms):
    xp = namespace(cov)
    return xp.where(xp.arange(len(arms)) == 1, xp.nan, 0.0)


START = MODEL.stationary_cov()
NAN = [
    optimistic("mine", nan_parameter, width=float("nan")),
    optimistic("mine", root_of_a_negative_number),
    optimistic("mine", one_arm_is_nan),
    filtering("mine", lambda belief, problem, noise: first_highest(belief.mean / 0 * 0)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("engine", ["auto", "xla"])
@pytest.mark.parametrize("policy", NAN, ids=range(len(NAN)))
def test_nan_is_not_a_score(policy, engine, dtype):
    """It would play one arm for good, and the table would say that the policy is bad."""
    text = refusal(policy, engine=engine, dtype=dtype)
    assert text.startswith("policy 'mine': computed NaN (system 0, run ")
    assert "the root of a negative number" in text
    assert ("float64" in text) == (dtype == "float32")
    assert "\n" not in text


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero)")
def test_nan_in_an_agent():
    for compiled in (False, True):
        agent = db.Agent(MODEL, ARMS, NAN[2], compiled=compiled)
        with pytest.raises(db.InvalidInput, match=r"^policy 'mine': gives arm 1 .* bonus nan"):
            agent.ask()
    with pytest.raises(db.InvalidInput, match=r"^policy 'mine': computed NaN; look for 0 / 0"):
        db.Agent(MODEL, ARMS, NAN[3]).ask()


@pytest.mark.filterwarnings("ignore:invalid value")
def test_noise_that_an_agent_did_not_ask_for():
    shaken = filtering("mine", lambda belief, problem, noise: first_highest(belief.mean + noise))
    with pytest.raises(db.InvalidInput, match=r"^policy 'mine' choose: uses None as a number .*ar"):
        db.Agent(MODEL, ARMS, shaken).ask()


@pytest.mark.parametrize("engine", ["auto", "xla"])
@pytest.mark.parametrize("index", [99, 3, -1, -4])
def test_arms_that_do_not_exist(index, engine):
    always = filtering("mine", lambda belief, problem, noise: index)
    in_range = "return an index from 0 to 2"
    assert refusal(always, engine=engine) == f"policy 'mine' choose: returns {index}; {in_range}"
    scores = filtering(
        "mine", lambda belief, problem, noise: 0 * first_highest(belief.mean) + index
    )
    text = "chose an arm that does not exist (system 0, run 0, in the first round)"
    assert refusal(scores, engine=engine) == f"policy 'mine': {text}; {in_range}"


def test_the_earliest_mistake_is_named():
    """In the second system alone, and there in later rounds."""
    systems = [(db.LGDS([[0.5]], [[q]], 1.0), np.array([[1.0], [-1.0]])) for q in (1.0, 4.0)]

    def bonus(cov, model, arms):
        return namespace(cov).sqrt(2.0 - cov[0, 0] * (cov[0, 0] < 4.6)) + 0 * arms[:, 0]

    with pytest.raises(
        db.InvalidInput, match=r"NaN \(system 1, run 0, within the first 2 rounds\)"
    ):
        db.simulate(systems, policies=[optimistic("mine", bonus)], rounds=20, runs=3)


class Counts(NamedTuple):
    played: np.ndarray


def prepare(model, arms, rounds):
    return {}, Counts(np.zeros(len(arms)))


def choose(state, problem, noise):
    return first_highest(state.played)


def update(state, problem, arm, reward):
    return Counts(state.played + reward)


@pytest.mark.parametrize("engine", ["auto", "xla"])
@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"choose": lambda s, p, noise: first_highest(s.played + noise)}, "asks for no noise"),
        ({"choose": lambda s, p, noise: first_highest(noise.real)}, "asks for no noise"),
        ({"update": lambda *_: None}, "update: returns a NoneType; return a Counts, as prepare"),
        ({"update": lambda state, *_: state.played}, "update: returns an array of shape (3,)"),
        (
            {"update": lambda state, *_: Counts(None)},
            "state.played: starts as an array of shape (3,) and becomes None; ",
        ),
        ({"update": lambda state, *_: Counts(state.played[1:])}, "becomes an array of shape (2,)"),
        ({"update": lambda state, *_: Counts(state.played[0])}, "becomes a number"),
        ({"prepare": lambda *_: {"a": 1.0}}, "prepare: returns a dict; return (constants, state)"),
        ({"prepare": lambda *_: None}, "prepare: returns a NoneType; return (constants, state)"),
        ({"prepare": lambda *_: (Counts(np.zeros(3)), {})}, "returns constants that are a Counts"),
        ({"prepare": lambda *_: Counts(np.zeros(3))}, "prepare: returns a Counts; return (constan"),
    ],
)
def test_what_the_functions_of_a_policy_return(parts, text, engine):
    given = {"prepare": prepare, "choose": choose, "update": update} | parts
    found = refusal(Policy("mine", **given), engine=engine)
    assert found.startswith("policy 'mine' ")
    assert text in found
    assert "\n" not in found


def test_agents_are_not_compiled_so_their_states_may_grow():
    """Constants may be anything that the policy's functions can use, and the pair may be a list."""

    class Seen(NamedTuple):
        rewards: np.ndarray

    growing = Policy(
        "growing",
        lambda *_: [None, Seen(np.zeros(0))],
        lambda state, problem, noise: len(state.rewards) % 3,
        lambda state, problem, arm, reward: Seen(np.append(state.rewards, reward)),
    )
    agent = db.Agent(MODEL, ARMS, growing)
    for _ in range(4):
        decision = agent.ask()
        agent.tell(decision, 1.0)
    assert agent.state.rewards.tolist() == [1.0] * 4
    assert decision.arm == 0


def test_scores_may_be_whole_numbers():
    """A count per arm: the first of the highest."""

    def counting(state, problem, arm, reward):
        return Counts(state.played + (namespace(state.played).arange(3) == arm))

    given = lambda *_: ({}, Counts(np.zeros(3, int)))  # noqa: E731
    least = Policy("least", given, lambda s, p, noise: first_highest(-s.played), counting)
    regret = db.simulate(MODEL, ARMS, [least], rounds=60, runs=8).regret["least"]
    assert np.isfinite(regret).all()
    agent = db.Agent(MODEL, ARMS, least)
    arms = []
    for _ in range(4):
        decision = agent.ask()
        arms.append(decision.arm)
        agent.tell(decision, 0.0)
    assert arms == [0, 1, 2, 0]


def test_noise_is_there_if_it_is_asked_for():
    shaken = Policy(
        "shaken",
        prepare,
        lambda s, p, noise: first_highest(s.played + noise),
        update,
        noise=Noise("normal", "arms"),
    )
    assert np.isfinite(played(shaken, "auto").regret["shaken"]).all()


def test_other_errors_stay_what_they_are():
    def bonus(cov, model, arms):
        return model.nothing

    with pytest.raises(AttributeError, match="nothing") as caught:
        played(optimistic("mine", bonus), "auto")
    assert "This happened while policy 'mine' was compiled." in caught.value.__notes__


def test_the_first_arguments_of_a_bonus():
    with pytest.raises(db.InvalidInput, match=r"; write def bonus\(cov, model, arms\)$"):
        optimistic("mine", lambda cov, arms: arms[:, 0])


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
