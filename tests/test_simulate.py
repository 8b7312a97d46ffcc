"""The batch engine: what must not change a run's numbers, and what bounds its memory."""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
import pytest

import driftbandit as db
from driftbandit.policies import Noise, Policy
from driftbandit.simulation import blocks, engine
from engine_paths import states_and_rewards

POLICIES = ["idea", "ucb", "rexp3", "kalman_oracle"]


@pytest.fixture(scope="module")
def systems():
    return db.families.sample("gaussian", systems=5, states=3, arms=4, seed=1)


@pytest.fixture(scope="module")
def whole(systems):
    return db.simulate(systems, policies=POLICIES, rounds=100, runs=6, seed=2, stream="x")


def assert_same(one, other, **kwargs):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-12, **kwargs)


def test_shapes(whole):
    assert whole.regret["idea"].shape == (5, 6)
    assert whole.curves["idea"].shape == (5, 6, len(whole.checkpoints))
    assert whole.checkpoints[0] == 1
    assert whole.checkpoints[-1] == 100
    for curve in whole.curves.values():
        assert (np.diff(curve, axis=-1) >= 0).all()  # dynamic regret never falls


def test_single_system_drops_the_systems_axis(systems, whole):
    model, arms = systems[0]
    one = db.simulate(model, arms, POLICIES, rounds=100, runs=6, seed=2, stream="x")
    assert_same(one.regret, {name: regret[0] for name, regret in whole.regret.items()})


def test_numbers_do_not_depend_on_the_company(systems, whole):
    """Alone, the policy gives bit for bit what it gives beside others."""
    for name in POLICIES:
        alone = db.simulate(systems, policies=[name], rounds=100, runs=6, seed=2, stream="x")
        np.testing.assert_array_equal(alone.regret[name], whole.regret[name])


def test_numbers_do_not_depend_on_workers(systems, whole, monkeypatch):
    monkeypatch.setitem(engine.RUNS_IN_FLIGHT, "cpu", 7)
    results = [
        db.simulate(systems, policies=POLICIES, rounds=100, runs=6, seed=2, stream="x", workers=n)
        for n in (1, 3)
    ]
    for name in POLICIES:
        np.testing.assert_array_equal(results[0].regret[name], results[1].regret[name])
    assert_same(results[0].regret, whole.regret)  # other block shapes may round differently


@pytest.mark.parametrize("most", [1, 4, 13])
def test_numbers_do_not_depend_on_blocks(systems, whole, monkeypatch, most):
    monkeypatch.setitem(engine.RUNS_IN_FLIGHT, "cpu", most)
    again = db.simulate(systems, policies=POLICIES, rounds=100, runs=6, seed=2, stream="x")
    assert_same(again.regret, whole.regret)


def test_a_study_can_be_played_in_pieces(systems, whole):
    piece = db.simulate(
        systems[3:], policies=POLICIES, rounds=100, runs=6, seed=2, stream="x", first_system=3
    )
    assert_same(piece.regret, {name: regret[3:] for name, regret in whole.regret.items()})


def test_longer_and_wider_studies_begin_the_same(systems, whole):
    """More runs and more rounds only add; the horizon-tuned policies (rexp3) are left out."""
    more = db.simulate(systems, policies=["idea"], rounds=130, runs=8, seed=2, stream="x")
    shared = whole.checkpoints < 20
    np.testing.assert_allclose(
        more.curves["idea"][:, :6, np.isin(more.checkpoints, whole.checkpoints[shared])],
        whole.curves["idea"][:, :, np.isin(whole.checkpoints, more.checkpoints) & shared],
        rtol=1e-12,
    )


def test_seed_and_stream_change_the_numbers(systems, whole):
    for other in ({"seed": 3, "stream": "x"}, {"seed": 2, "stream": "y"}):
        again = db.simulate(systems, policies=["idea"], rounds=100, runs=6, **other)
        assert not np.isclose(again.regret["idea"], whole.regret["idea"]).any()


def test_policies_share_their_noise():
    """Common random numbers: two names for one rule have the same regret in every run."""
    model, arms = db.families.sample("uniform", states=3, arms=4)[0]
    twin = dataclasses.replace(db.policies.make("idea"), name="twin")
    result = db.simulate(model, arms, ["idea", twin], rounds=80, runs=5)
    np.testing.assert_array_equal(result.regret["idea"], result.regret["twin"])


def test_starts_stationary():
    """P20: the first round's state has the stationary covariance."""
    model, arms = db.families.sample("gaussian", states=2, arms=2)[0]
    result = db.simulate(model, arms, ["random"], rounds=1, runs=20_000)
    gap_std = np.sqrt((arms[0] - arms[1]) @ model.stationary_cov() @ (arms[0] - arms[1]))
    # Random play loses half of E|gap| = √(2/π) std on average.
    expected = gap_std * np.sqrt(2 / np.pi) / 2
    regret = result.regret["random"]
    assert abs(regret.mean() - expected) < 4 * regret.std() / np.sqrt(regret.size)


def test_warmup_moves_the_start():
    """A warm-up from Σ0 is a start with covariance Z(warmup), for the learner too."""
    model = db.LGDS([[0.9, 0.0], [0.0, 0.5]], np.eye(2), 1.0, initial_cov=np.zeros((2, 2)))
    moved = dataclasses.replace(model, initial_cov=model.state_cov(30))
    arms = np.eye(2)
    warm = db.simulate(model, arms, ["idea"], rounds=50, runs=9, warmup=30)
    direct = db.simulate(moved, arms, ["idea"], rounds=50, runs=9)
    np.testing.assert_array_equal(warm.regret["idea"], direct.regret["idea"])
    cold = db.simulate(model, arms, ["idea"], rounds=50, runs=9)
    assert (cold.regret["idea"] != warm.regret["idea"]).all()


def test_unstable_system_runs():
    model = db.LGDS([[1.05, 0.1], [0.0, 0.9]], np.eye(2), 1.0, initial_cov=np.eye(2))
    result = db.simulate(model, [[1.0, 0.0], [0.3, 1.0]], rounds=300, runs=4)
    for name, regret in result.regret.items():
        assert np.isfinite(regret).all(), name
    assert result.regret["idea"].mean() < result.regret["random"].mean()


def test_progress_reaches_one(systems):
    seen = []
    db.simulate(systems, policies=["kode", "random"], rounds=100, runs=2, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_normalized_and_summary(whole):
    base = whole.regret["kalman_oracle"]
    expected = (whole.regret["idea"] - base) / base
    np.testing.assert_allclose(whole.normalized()["idea"], expected)
    summary = whole.summary()["idea"]
    assert summary["mean"] == pytest.approx(whole.regret["idea"].mean())
    assert summary["iqr"] > 0
    assert "idea" in str(whole)


def test_same_policy_with_two_parameters():
    model, arms = db.families.sample("gaussian", states=2, arms=3)[0]
    result = db.simulate(model, arms, ["kalman_ucb", "kalman_ucb(width=3)"], rounds=20, runs=2)
    assert set(result.regret) == {"kalman_ucb(width=1)", "kalman_ucb(width=3)"}


class Counted(NamedTuple):
    """A user's own policy: ε-greedy on the Kalman prediction, with a counter."""

    mean: object
    cov: object
    rounds: object


def test_own_policy_with_noise():
    """An own policy that draws one normal number per arm and keeps an integer in its state."""

    def prepare(model, arms, rounds):
        belief = db.kalman.prior(model)
        return {"spread": 0.5}, Counted(*belief, np.zeros((), np.int32))

    def choose(state, problem, noise):
        return (problem.arms @ state.mean + problem.constants["spread"] * noise).argmax()

    def update(state, problem, arm, reward):
        belief = db.kalman.Belief(state.mean, state.cov)
        belief = db.kalman.step(belief, problem.model, problem.arms[arm], reward)
        return Counted(*belief, state.rounds + 1)

    policy = Policy("dithered", prepare, choose, update, noise=Noise("normal", "arms"))
    model, arms = db.families.sample("gaussian", states=3, arms=4)[0]
    result = db.simulate(model, arms, [policy, "kode", "random"], rounds=100, runs=20)
    means = {name: regret.mean() for name, regret in result.regret.items()}
    assert means["kode"] < means["dithered"] < means["random"]
    agent = db.Agent(model, arms, policy)
    for reward in (1.0, -1.0):
        agent.tell(agent.ask(), reward)
    assert int(agent.state.rounds) == 2


def test_all_rewards_and_one_reward_carry_the_same_noise():
    """A policy that reacts to its last reward, seeing one or all: the same regret."""
    model, arms = db.families.sample("gaussian", states=2, arms=3, seed=4)[0]

    def prepare(model, arms, rounds):
        return {}, Counted(np.zeros(()), np.zeros(()), np.zeros((), np.int32))

    def choose(state, problem, noise):
        return (state.rounds + (state.mean > 0)) % 3

    def follower(full):
        def update(state, problem, arm, reward):
            return Counted(reward[arm] if full else reward, state.cov, state.rounds + 1)

        return Policy(f"follower {full}", prepare, choose, update, sees_all_rewards=full)

    result = db.simulate(model, arms, [follower(True), follower(False)], rounds=99, runs=5)
    np.testing.assert_array_equal(*result.regret.values())


@pytest.mark.parametrize(
    ("systems", "runs", "most"),
    [(1, 1, 1), (1, 2000, 512), (1000, 10, 512), (7, 3, 5), (3, 7, 5), (1, 5, 4)],
)
def test_blocks_cover_every_run_once(systems, runs, most):
    plan = blocks.plan(systems, runs, 100, 10, 10, most=most, memory=1e9)
    covered = []
    for block in plan.blocks():
        assert block.systems.size == plan.block_systems
        assert block.runs.size == plan.block_runs
        assert block.systems.size * block.runs.size <= most
        s, r = block.kept
        covered += itertools.product(block.systems[:s], block.runs[:r])
    assert sorted(covered) == list(itertools.product(range(systems), range(runs)))


def test_memory_budget_shrinks_blocks():
    small = blocks.plan(1000, 10, 1000, 10, 1000, most=10**6, memory=100e6)
    large = blocks.plan(1000, 10, 1000, 10, 1000, most=10**6, memory=1e9)
    assert small.block_systems * small.block_runs < large.block_systems * large.block_runs
    # A block's arrays (values of all arms over a span) stay inside the budget.
    assert small.block_systems * small.block_runs * small.span * 1000 * 8 <= 100e6


def test_replayed_paths_are_the_engines(systems):
    """`tests/engine_paths.py` replays the engine: best fixed arm's regret by hand."""
    model, arms = systems[0]
    first_arm = Policy(
        "first",
        lambda model, arms, rounds: ({}, Counted(*np.zeros((3, 1)))),
        lambda state, problem, noise: 0,
        lambda state, problem, arm, reward: state,
    )
    result = db.simulate(model, arms, [first_arm], rounds=40, runs=2, seed=5)
    for run in range(2):
        states, _ = states_and_rewards(model, arms, 40, seed=5, run=run)
        values = states @ arms.T
        expected = (values.max(axis=1) - values[:, 0]).sum()
        np.testing.assert_allclose(result.regret["first"][run], expected, rtol=1e-12)
