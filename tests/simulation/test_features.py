"""Simulated systems whose arms change with contexts, against textbook loops."""

import dataclasses

import numpy as np
import pytest

import driftbandit as db
import naive
from context_cases import NAMES, context, features, shop
from context_cases import textbook as textbook_run
from driftbandit.policies import Policy
from engine_paths import noises, states_and_rewards
from refusals import EYE, NAN, STABLE, Case, assert_refused, each

POLICIES = ["idea", "kalman_ucb", "ucb", "random", "kalman_oracle"]
ROUNDS, RUNS = 150, 6  # crosses the engine's span of 128
STUDY = {"policies": POLICIES, "rounds": ROUNDS, "runs": RUNS, "seed": 3}


def textbook(name, truth, x, *, assumed=None, **where):
    """A run of the textbook's policy with the random numbers of the engine."""
    flat = np.ones((4, truth.model.n_states))
    states, paid = states_and_rewards(truth.model, flat, len(x), **where)
    uniforms = noises(name, len(x), **where) if name == "random" else None
    return textbook_run(name, truth, x, states, paid - states @ flat.T, uniforms, assumed)


@pytest.fixture(scope="module")
def system():
    return shop()


@pytest.fixture(scope="module")
def played(system):
    return db.simulate(system, contexts=features(ROUNDS), **STUDY)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_equals_the_textbook(name, system, played):
    for run in (0, RUNS - 1):
        _, _, path = textbook(name, system, features(ROUNDS), seed=3, run=run)
        expected = path[played.checkpoints - 1]
        np.testing.assert_allclose(played.curves[name][run], expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["idea", "kalman_ucb"])
def test_an_agent_decides_as_the_simulation_does(name, system, played):
    x = features(ROUNDS)
    arms, rewards, path = textbook(name, system, x, seed=3)
    agent = db.Agent(system, policy=name)
    for t in range(ROUNDS):
        decision = agent.ask(context=context(x[t]))
        assert decision.arm == NAMES[arms[t]]
        agent.tell(decision, rewards[t, arms[t]])
    assert played.regret[name][0] == pytest.approx(path[-1], rel=1e-9)


def test_the_result_says_that_xla_played(played):
    assert played.timing.engine == "xla"


def test_a_policy_that_reads_contexts_beats_one_that_does_not(played):
    """The price decides which arm is best: a mean over rounds says little."""
    assert played.regret["idea"].mean() < 0.8 * played.regret["ucb"].mean()


@pytest.mark.parametrize("reward_std", [0.0, 0.5])
def test_the_oracle_works_without_noise_too(reward_std):
    system = shop(reward_std)
    result = db.simulate(system, contexts=features(40), policies="kalman_oracle", rounds=40, runs=2)
    _, _, path = textbook("kalman_oracle", system, features(40), run=1)
    assert result.regret["kalman_oracle"][1] == pytest.approx(path[-1], rel=1e-9)


def test_one_number_for_all_arms_is_the_same_number_for_each(system):
    x = features(ROUNDS, per_arm=False)
    one = db.simulate(system, contexts=x, **STUDY)
    each_arm = db.simulate(system, contexts=np.repeat(x[:, None], 4, axis=1), **STUDY)
    assert one == each_arm
    _, _, path = textbook("idea", system, x, seed=3)
    assert one.regret["idea"][0] == pytest.approx(path[-1], rel=1e-9)


def test_contexts_that_change_nothing_change_no_bit(system):
    """B = 0: all states, rewards, decisions and regrets are those of a run without contexts."""
    model, arms = system.model, system.arms + 1.0
    none = {name: np.zeros_like(arms) for name in system.contexts}
    without = db.simulate(model, arms, engine="xla", **STUDY)
    still = db.simulate(db.System(model, arms, None, none), contexts=features(ROUNDS), **STUDY)
    assert still == without


def test_a_constant_context_is_another_list_of_arms(system):
    """Arms that contexts change once and for all, up to the rounding of A + x B."""
    x = np.full((ROUNDS, 2), 0.5)
    arms = system.arms_in({"x_price": 0.5, "x_rain": 0.5})
    fixed = db.simulate(system.model, arms, engine="xla", **STUDY)
    changed = db.simulate(system, contexts=x, **STUDY)
    for name in POLICIES:
        np.testing.assert_allclose(changed.regret[name], fixed.regret[name], rtol=1e-9)


def test_what_policies_assume_may_be_wrong(system):
    wrong = shop(reward_std=1.5, seed=2)
    x = features(ROUNDS)
    result = db.simulate([system], assumed=[wrong], contexts=x, **STUDY)
    _, _, path = textbook("idea", system, x, assumed=wrong, seed=3)
    assert result.regret["idea"][0, 0] == pytest.approx(path[-1], rel=1e-9)
    _, _, path = textbook("kalman_oracle", system, x, seed=3)  # full information: it knows
    assert result.regret["kalman_oracle"][0, 0] == pytest.approx(path[-1], rel=1e-9)


def test_systems_in_one_study_keep_their_own_contexts(system):
    other = shop(seed=4)
    x = features(ROUNDS)
    both = db.simulate([system, other], contexts=x, **STUDY)
    _, _, path = textbook("idea", other, x, seed=3, system=1, run=2)
    assert both.regret["idea"][1, 2] == pytest.approx(path[-1], rel=1e-9)


def test_numbers_do_not_depend_on_the_company(system, played):
    alone = db.simulate(system, contexts=features(ROUNDS), **STUDY | {"policies": "kalman_ucb"})
    np.testing.assert_array_equal(alone.curves["kalman_ucb"], played.curves["kalman_ucb"])


def test_linear_policies_are_tuned_to_the_rows_of_all_rounds(system):
    """λ is the largest ‖a‖² of any round, and R the largest standard deviation of a reward."""
    x = features(ROUNDS)
    rows = naive.rows_in_contexts(system.arms, list(system.contexts.values()), x).reshape(-1, 3)
    largest = float((rows**2).sum(axis=1).max())
    given = f"oful(ridge={largest!r})"
    by_default = db.simulate(system, contexts=x, **STUDY | {"policies": "oful"})
    told = db.simulate(system, contexts=x, **STUDY | {"policies": given})
    np.testing.assert_allclose(told.regret["oful"], by_default.regret["oful"], rtol=1e-9)


def test_by_default_all_policies_play_that_can(system):
    names = db.policies.default(contexts=True)
    assert set(db.policies.default()) - set(names) == {"rexp3"}
    assert set(POLICIES) < set(names)


def test_float32_plays_contexts(system):
    x = features(64)
    study = {"policies": ["random"], "rounds": 64, "runs": 2, "seed": 3}
    single = db.simulate(system, contexts=x, dtype=np.float32, **study).regret["random"]
    double = db.simulate(system, contexts=x, **study).regret["random"]
    np.testing.assert_allclose(single, double, rtol=1e-4)


def own_policy():
    return Policy("mine", lambda *_: ({}, (np.zeros(()),)), lambda *_: 0, lambda state, *_: state)


def play(system=None, rounds=20, **changes):
    given = {"contexts": features(rounds), "policies": ["idea"], "rounds": rounds, "runs": 1}
    return db.simulate(shop() if system is None else system, **given | changes)


PRICED = db.System(STABLE, EYE, contexts={"x_price": EYE})
PLAIN = db.System(shop().model, np.ones((4, 3)))
REVERSED = dataclasses.replace(shop(), contexts=dict(reversed(shop().contexts.items())))
CASES = [
    Case("missing", lambda: play(contexts=None), "contexts: are missing", "20 rounds × 2 features"),
    Case("not wanted", lambda: play(PLAIN), "contexts: were given", "System(…, contexts=…)"),
    Case("too few rounds", lambda: play(contexts=features(19)), "contexts: has shape", "20 rounds"),
    Case("too few arms", lambda: play(contexts=features(20)[:, 1:]), "contexts", "(20, 3, 2)"),
    Case(
        "too few features", lambda: play(contexts=np.ones((20, 1))), "contexts", "x_price, x_rain"
    ),
    Case(
        "one axis", lambda: play(contexts=np.ones(20)), "contexts: has shape (20,)", "20 × 4 arms"
    ),
    Case("a gap", lambda: play(contexts=np.full((20, 2), NAN)), "contexts: entry [0, 0]", "nan"),
    Case("texts", lambda: play(contexts=[["a", "b"]] * 20), "contexts", "not an array of real"),
    Case("ragged", lambda: play(contexts=[[1.0], [1.0, 2.0]]), "contexts", "not an array"),
    Case("lanes", lambda: play(engine="lanes"), "engine: cannot play 'idea'", "contexts"),
    Case("rexp3", lambda: play(policies=["rexp3"]), "policies: rexp3", "valid: reach, lookahead"),
    Case("own policy", lambda: play(policies=[own_policy()]), "policies: mine", "valid:"),
    Case("mixed", lambda: play([shop(), PLAIN]), "model[1]: has the contexts none", "x_price"),
    Case("order", lambda: play([shop(), REVERSED]), "model[1]", "x_rain, x_price"),
    Case("assumed", lambda: play(assumed=[PLAIN]), "assumed: has the contexts none", "x_price"),
    Case("pairs", lambda: play([(STABLE, EYE), PRICED]), "model[1]", "x_price"),
    Case("advice", lambda: db.advise(PRICED), "system: has contexts (x_price)", "arms_in"),
    Case("too large", lambda: play(contexts=np.full((20, 2), 1e140)), "model", "variances"),
]


@each(CASES)
def test_wrong_arguments_are_refused(case):
    assert_refused(case)
