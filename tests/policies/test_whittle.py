"""The Whittle index of independent arms."""

import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit import priced_arm
from driftbandit.kalman import Belief
from driftbandit.policies import Problem, whittle
from driftbandit.simulation import Options
from driftbandit.theory import independence, least_regret
from engine_paths import states_and_rewards


def alike(decay, noise, k=10):
    """Arms of variance one."""
    return db.LGDS(decay * np.eye(k), (1 - decay**2) * np.eye(k), noise), np.eye(k)


def bonus_at(decay, noise, mean, variance):
    """The bonus of one arm of variance one."""
    model, arms = alike(decay, noise, k=1)
    problem = Problem(model, arms, whittle.constants(model, arms, 100))
    _, bonus = whittle.scores(Belief(np.array([mean]), np.array([[variance]])), problem)
    return float(bonus[0])


def test_the_index_is_the_price_at_which_both_are_right():
    """At the price λ(m, P), a finer grid finds a play and a rest equally good."""
    grid = priced_arm.Grid(0.9, 1.0, np.linspace(-5, 5, 101), scales=20)
    for row, column in ((2, 50), (8, 65), (15, 43)):
        z, c = grid.z[column], grid.scale[row]
        index = z * c + bonus_at(0.9, 1.0, z * c, 1 - c * c)
        leads = [grid.solve(index + shift).lead[row, column] for shift in (-0.04, 0.04)]
        assert leads[0] > 0 > leads[1]


def test_an_arm_that_shows_nothing_or_forgets_at_once_has_no_bonus():
    assert abs(bonus_at(0.0, 1.0, 0.0, 1.0)) == 0
    assert 0 <= bonus_at(0.5, 1e4, 0.0, 1.0) < 1e-3
    assert bonus_at(0.5, 100.0, 0.0, 1.0) < bonus_at(0.5, 1.0, 0.0, 1.0)


def test_the_bonus_grows_with_uncertainty_and_memory():
    at = [bonus_at(0.9, 1.0, 0.5, p) for p in (0.4, 0.6, 0.8, 1.0)]
    assert (np.diff(at) > 0).all()
    assert bonus_at(0.97, 1.0, 0.0, 1.0) > bonus_at(0.9, 1.0, 0.0, 1.0) > 0.5


def test_units_order_and_offsets():
    """Scores of arms in other units: those of arms of variance one, times s, plus μ."""
    model = db.LGDS(
        np.diag([0.9, 0.9, 1.0]), np.diag([4 * 0.19, 0.19, 0.0]), 3.0, initial_mean=[0, 0, 5.0]
    )
    arms = np.array([[0, 3.0, 1.0], [-1.5, 0, 1.0]])
    problem = Problem(model, arms, whittle.constants(model, arms, 100))
    belief = Belief(np.array([-0.8, 0.2, 5.0]), np.diag([4 * 0.6, 0.7, 0.0]))
    expected, bonus = whittle.scores(belief, problem)
    np.testing.assert_allclose(expected, [5.6, 6.2])
    ours = [3 * bonus_at(0.9, 1.0, 0.2, 0.7), 3 * bonus_at(0.9, 1.0, 0.4, 0.6)]
    np.testing.assert_allclose(bonus, ours, rtol=1e-12)


def test_identical_arms_share_a_table():
    whittle.index_bonus.cache_clear()
    whittle.constants(*alike(0.9, 1.0, k=5), 100)
    whittle.constants(*alike(0.9, 1.0, k=2), 100)
    assert whittle.index_bonus.cache_info().misses == 1


@pytest.mark.parametrize("engine", ["lanes", "xla"])
def test_engines_play_as_numpy_does(engine):
    model = db.LGDS(np.diag([0.9, 0.5, 0.9]), np.diag([0.19, 3.0, 0.19]), 1.0)
    arms = np.diag([1.0, -1.0, 1.0])
    states, rewards = states_and_rewards(model, arms, 60)
    policy = db.policies.make("whittle")
    constants, belief = policy.prepare(model, arms, 60)
    problem, played = Problem(model, arms, constants), []
    for row in rewards:
        played.append(int(policy.choose(belief, problem, None)))
        belief = policy.update(belief, problem, played[-1], row[played[-1]])
    found = db.simulate(model, arms, ["whittle"], 60, runs=1, engine=engine).regret["whittle"]
    np.testing.assert_allclose(found[0], naive.regret(arms, states, played), rtol=1e-9)
    assert set(played) == {0, 1, 2}


def test_an_agent_plays_it():
    model, arms = alike(0.9, 1.0, k=3)
    agent = db.Agent(model, arms, policy="whittle")
    chosen = []
    for _ in range(12):
        decision = agent.ask()
        chosen.append(decision.arm)
        agent.tell(decision, reward=-1.0)
    assert set(chosen) == {0, 1, 2}
    assert agent.ask().bonus > 0
    assert not agent.policy.agent.reads_features


def test_it_is_registered_but_not_among_those_that_play_any_arms():
    assert "whittle" in db.policies.REGISTRY
    assert "whittle" not in db.policies.available()
    assert "whittle" not in db.policies.default()
    assert db.policies.make("Whittle") == db.policies.make("whittle")


@pytest.mark.parametrize("play", [db.simulate, db.Agent])
def test_coupled_arms_are_refused_before_any_work(play, monkeypatch):
    monkeypatch.setattr(whittle, "index_bonus", None)
    model = db.LGDS([[0.5, 0.1], [0.0, 0.5]], np.eye(2), 1.0)
    options = {"policies": ["whittle"]} if play is db.simulate else {"policy": "whittle"}
    said = "transition: has 0.1 in row 0, column 1: states 0 and 1 are coupled; whittle needs indep"
    with pytest.raises(db.InvalidInput, match=said):
        play(model, np.eye(2), **options)


def random_cell(seed):
    """A few arms of several kinds."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    decay = rng.choice(rng.uniform(0.5, 0.97, 2), k)
    variance = rng.choice(rng.uniform(0.5, 2, 2), k)
    noise = float(rng.choice([0.3, 1.0, 3.0]))
    return db.LGDS(np.diag(decay), np.diag(variance * (1 - decay**2)), noise), np.eye(k)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 20))]
)
def test_no_policy_has_less_regret_than_the_bound(seed, monkeypatch):
    """On a coarser grid than usual, whose bound is a little lower."""
    monkeypatch.setattr(independence, "FINE", 100)
    monkeypatch.setattr(independence, "SCALES", (14, 28))
    model, arms = random_cell(seed)
    rounds = 1000
    options = Options(checkpoints=1)
    regret = db.simulate(model, arms, ["whittle"], rounds, runs=40, options=options).regret
    per_round = regret["whittle"] / rounds
    error = per_round.std(ddof=1) / np.sqrt(len(per_round))
    assert 0 < least_regret(model, arms).value < per_round.mean() + 3 * error


def test_less_regret_than_idea_where_memory_is_long():
    model, arms = alike(0.99, 0.3)
    names = ["whittle", "idea"]
    regret = db.simulate(model, arms, names, 1500, runs=24, options=Options(checkpoints=1)).regret
    assert regret["whittle"].mean() < 0.97 * regret["idea"].mean()
