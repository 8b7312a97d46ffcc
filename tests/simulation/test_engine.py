"""The batch engine: what must not change a run's numbers, and what bounds its memory."""

import dataclasses
import functools
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit.policies import Noise, Policy
from driftbandit.simulation import Options, jobs
from engine_paths import states_and_rewards

POLICIES = ["kode", "rexp3", "kalman_oracle"]
"""Filters one reward, draws its own numbers, sees all rewards: what the engine tells apart."""


@pytest.fixture(scope="module", autouse=True, params=["lanes", "xla"])
def engine(request):
    """Every test of this file runs with both engines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(db, "simulate", functools.partial(db.simulate, engine=request.param))
        tied_whole.cache_clear()
        yield request.param


@pytest.fixture(scope="module")
def systems():
    return db.families.sample("gaussian", systems=5, n_states=3, n_arms=4, seed=1)


@pytest.fixture(scope="module")
def whole(systems, engine):
    return db.simulate(
        systems, policies=POLICIES, rounds=100, runs=6, seed=2, options=Options(stream="x")
    )


def assert_same(one, other, **kwargs):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-12, **kwargs)


def test_shapes(whole):
    assert whole.regret["kode"].shape == (5, 6)
    assert whole.curves["kode"].shape == (5, 6, len(whole.checkpoints))
    assert whole.checkpoints[0] == 1
    assert whole.checkpoints[-1] == 100
    for curve in whole.curves.values():
        assert (np.diff(curve, axis=-1) >= 0).all()  # dynamic regret never falls


def test_single_system_drops_the_systems_axis(systems, whole):
    model, arms = systems[0]
    one = db.simulate(
        model, arms, POLICIES, rounds=100, runs=6, seed=2, options=Options(stream="x")
    )
    assert_same(one.regret, {name: regret[0] for name, regret in whole.regret.items()})


def test_numbers_do_not_depend_on_the_company(systems, whole):
    """Alone, the policy gives bit for bit what it gives beside others."""
    for name in POLICIES:
        alone = db.simulate(
            systems, policies=[name], rounds=100, runs=6, seed=2, options=Options(stream="x")
        )
        np.testing.assert_array_equal(alone.regret[name], whole.regret[name])


def test_numbers_do_not_depend_on_workers(systems, whole, monkeypatch):
    monkeypatch.setitem(jobs.LIMITS, "cpu", jobs.Limits(8, 1e9))
    results = [
        db.simulate(
            systems,
            policies=POLICIES,
            rounds=100,
            runs=6,
            seed=2,
            options=Options(stream="x", workers=n),
        )
        for n in (1, 3)
    ]
    for name in POLICIES:
        np.testing.assert_array_equal(results[0].regret[name], results[1].regret[name])
    assert_same(results[0].regret, whole.regret)


LAST_BIT = ("idea", "oful", "discounted_linucb", "sliding_window_linucb")
"""Policies that on Bernoulli systems, whose arms are often equal, see scores that are equal."""
MORE = ("information_directed", "weighted_linucb", "restarted_linucb")
TIED = db.families.sample("bernoulli", 24, n_states=4, n_arms=6, seed=0)
STUDY = {"rounds": 200, "seed": 1}
where_a_last_bit_would_decide = pytest.mark.parametrize(
    "names", [LAST_BIT, pytest.param(MORE, marks=pytest.mark.nightly)], ids=["some", "more"]
)


@functools.cache
def tied_whole(*names):
    return db.simulate(TIED, policies=names, runs=4, **STUDY)


@where_a_last_bit_would_decide
def test_numbers_do_not_depend_on_the_number_of_runs(names):
    """Bit for bit."""
    one = db.simulate(TIED, policies=names, runs=1, **STUDY)
    for name in names:
        np.testing.assert_array_equal(one.curves[name], tied_whole(*names).curves[name][:, :1])


@where_a_last_bit_would_decide
def test_numbers_do_not_depend_on_the_other_systems(names):
    options = Options(first_system=7)
    some = db.simulate(TIED[7:12], policies=names, runs=3, **STUDY, options=options)
    for name in names:
        expected = tied_whole(*names).curves[name][7:12, :3]
        np.testing.assert_array_equal(some.curves[name], expected)


def test_numbers_do_not_depend_on_what_others_remember():
    """A policy with a huge memory plays fewer lanes at a time; those beside it do not."""
    company = ["discounted_linucb", "sliding_window_ucb(window=100000)"]
    beside, alone = (
        db.simulate(TIED[:2], policies=names, runs=4, rounds=130, seed=1)
        for names in (company, company[:1])
    )
    name = company[0]
    np.testing.assert_array_equal(beside.curves[name], alone.curves[name])


@pytest.mark.parametrize(
    ("lanes", "memory"),
    [(2, 1e9), pytest.param(8, 1e9, marks=pytest.mark.nightly), (64, 100e3)],
)
def test_decisions_do_not_depend_on_lanes(monkeypatch, lanes, memory):
    """Programs of another shape round differently; ties are broken the same all the same."""
    names = ["idea", "discounted_linucb"]
    expected = tied_whole(*LAST_BIT).curves
    monkeypatch.setitem(jobs.LIMITS, "cpu", jobs.Limits(lanes, memory))
    again = db.simulate(TIED[:6], policies=names, runs=2, **STUDY)
    for name in names:
        np.testing.assert_allclose(again.curves[name], expected[name][:6, :2], rtol=1e-9, atol=1e-9)


@pytest.mark.nightly
def test_decisions_do_not_depend_on_the_instruction_set(tmp_path):
    """Another instruction set rounds differently; ties are broken the same all the same."""
    code = """
import sys, numpy as np, driftbandit as db
systems = db.families.sample("bernoulli", 24, n_states=4, n_arms=6, seed=0)
study = {"policies": sys.argv[2].split(","), "rounds": 200, "seed": 1}
np.savez(sys.argv[1], **db.simulate(systems, runs=4, **study).curves)
"""
    names = ["idea", "oful", "discounted_linucb"]
    flags = {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}
    command = [sys.executable, "-c", code, str(tmp_path / "curves.npz"), ",".join(names)]
    subprocess.run(command, check=True, env=os.environ | flags)
    with np.load(tmp_path / "curves.npz") as curves:
        for name in names:
            expected = tied_whole(*LAST_BIT).curves[name]
            np.testing.assert_allclose(curves[name], expected, rtol=1e-9, atol=1e-9)


def test_a_study_can_be_played_in_pieces(systems, whole):
    piece = db.simulate(
        systems[3:],
        policies=POLICIES,
        rounds=100,
        runs=6,
        seed=2,
        options=Options(stream="x", first_system=3),
    )
    assert_same(piece.regret, {name: regret[3:] for name, regret in whole.regret.items()})


def test_longer_and_wider_studies_begin_the_same(systems, whole):
    """More runs and more rounds only add; the horizon-tuned policies (rexp3) are left out."""
    more = db.simulate(
        systems, policies=["kode"], rounds=130, runs=8, seed=2, options=Options(stream="x")
    )
    shared = whole.checkpoints < 20
    np.testing.assert_array_equal(
        more.curves["kode"][:, :6, np.isin(more.checkpoints, whole.checkpoints[shared])],
        whole.curves["kode"][:, :, np.isin(whole.checkpoints, more.checkpoints) & shared],
    )


def test_seed_and_stream_change_the_numbers(systems, whole):
    for seed, stream in ((3, "x"), (2, "y")):
        other = {"seed": seed, "options": Options(stream=stream)}
        again = db.simulate(systems, policies=["kode"], rounds=100, runs=6, **other)
        assert not np.isclose(again.regret["kode"], whole.regret["kode"]).any()


def test_policies_share_their_noise():
    """Common random numbers: two names for one rule have the same regret in every run."""
    model, arms = db.families.sample("uniform", n_states=3, n_arms=4)[0]
    twin = dataclasses.replace(db.policies.make("kode"), name="twin")
    result = db.simulate(model, arms, ["kode", twin], rounds=80, runs=5)
    np.testing.assert_array_equal(result.regret["kode"], result.regret["twin"])


def test_starts_stationary():
    """P20: the first round's state has the stationary covariance."""
    model, arms = db.families.sample("gaussian", n_states=2, n_arms=2)[0]
    result = db.simulate(model, arms, ["random"], rounds=1, runs=20_000)
    gap_std = np.sqrt((arms[0] - arms[1]) @ model.stationary_cov() @ (arms[0] - arms[1]))
    # Random play loses half of E|gap| = √(2/π) std on average.
    expected = gap_std * np.sqrt(2 / np.pi) / 2
    regret = result.regret["random"]
    assert abs(regret.mean() - expected) < 4 * regret.std() / np.sqrt(regret.size)


def test_warmup_moves_the_start():
    """A warm-up from Σ0 is a start with covariance Z(warmup), for the learner too."""
    model = db.LGDS(np.diag([0.9, 0.5, 0.7]), np.eye(3), 1.0, initial_cov=np.zeros((3, 3)))
    moved = dataclasses.replace(model, initial_cov=model.state_cov(30))
    arms = np.vstack([np.eye(3), np.ones(3)])
    warm = db.simulate(model, arms, ["kode"], rounds=50, runs=9, options=Options(warmup=30))
    direct = db.simulate(moved, arms, ["kode"], rounds=50, runs=9)
    np.testing.assert_array_equal(warm.regret["kode"], direct.regret["kode"])
    cold = db.simulate(model, arms, ["kode"], rounds=50, runs=9)
    assert (cold.regret["kode"] != warm.regret["kode"]).all()


def test_progress_reaches_one(systems):
    seen = []
    db.simulate(systems, policies=["kode", "random"], rounds=100, runs=2, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_normalized_and_summary(whole):
    base = whole.regret["kalman_oracle"]
    expected = (whole.regret["kode"] - base) / base
    np.testing.assert_allclose(whole.normalized()["kode"], expected)
    summary = whole.summary()["kode"]
    assert summary["mean"] == pytest.approx(whole.regret["kode"].mean())
    assert summary["iqr"] > 0
    assert "kode" in str(whole)


def test_same_policy_with_two_parameters():
    model, arms = db.families.sample("gaussian", n_states=3, n_arms=4)[0]
    result = db.simulate(model, arms, ["kalman_ucb", "kalman_ucb(width=3)"], rounds=20, runs=2)
    assert list(result.regret) == ["kalman_ucb", "kalman_ucb(width=3)"]
    one, same = result.regret["kalman_ucb"], result.regret["Kalman-UCB(width=1)"]
    assert one is same
    assert np.abs(one - result.regret["kalman_ucb(width=3)"]).max() > 0


def test_a_policy_with_other_parameters_is_labeled_with_them_also_alone():
    model, arms = db.families.sample("gaussian", n_states=3, n_arms=4)[0]
    own = db.policies.optimistic("own", lambda cov, model, arms, width: width * arms[:, 0], width=2)
    players = ["idea", "kalman_ucb(width=1.5)", "discounted_ucb(gamma=0.9, xi=0.6)", own]
    result = db.simulate(model, arms, players, rounds=20, runs=2)
    labels = ["idea", "kalman_ucb(width=1.5)", "discounted_ucb(gamma=0.9)", "own"]
    assert list(result.regret) == list(result.curves) == labels
    assert all(label in str(result) for label in labels)
    for part in (result.regret, result.curves, result.summary(), result.compare("idea")):
        assert part["kalman_ucb"] is part["kalman_ucb(width=1.5)"]  # the only one
        for unknown in ("kalman_ucb(width=1)", "kode", "nobody", 3):
            with pytest.raises(KeyError):
                part[unknown]
    assert "kalman_ucb" not in result.regret


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
    model, arms = db.families.sample("gaussian", n_states=3, n_arms=4)[0]
    result = db.simulate(model, arms, [policy, "kode", "random"], rounds=100, runs=20)
    means = {name: regret.mean() for name, regret in result.regret.items()}
    assert means["kode"] < means["dithered"] < means["random"]
    agent = db.Agent(model, arms, policy)
    for reward in (1.0, -1.0):
        agent.tell(agent.ask(), reward)
    assert int(agent.state.rounds) == 2


def test_all_rewards_and_one_reward_carry_the_same_noise():
    """A policy that reacts to its last reward, seeing one or all: the same regret."""
    model, arms = db.families.sample("gaussian", n_states=2, n_arms=3, seed=4)[0]

    def prepare(model, arms, rounds):
        return {}, Counted(np.zeros(()), np.zeros(()), np.zeros((), np.int32))

    def choose(state, problem, noise):
        return (state.rounds + (state.mean > 0)) % 3

    def follower(full):
        def update(state, problem, arm, reward):
            return Counted(reward[arm] if full else reward, state.cov, state.rounds + 1)

        return Policy(f"follower {full}", prepare, choose, update, full_information=full)

    result = db.simulate(model, arms, [follower(True), follower(False)], rounds=99, runs=5)
    np.testing.assert_array_equal(*result.regret.values())


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_study():
    """Peak memory of a process: twenty times the runs, totals only, at most 60 MiB more.

    Without blocks, 40 000 runs take 270 MiB more.
    """
    code = """
import resource, sys, driftbandit as db
model, arms = db.families.sample("gaussian", n_states=3, n_arms=4)[0]
options = db.simulation.Options(checkpoints=1)
db.simulate(model, arms, ["kode"], rounds=64, runs=int(sys.argv[1]), options=options)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    peak = [
        float(
            subprocess.run([sys.executable, "-c", code, n], capture_output=True, check=True).stdout
        )
        for n in ("2000", "40000")
    ]
    assert peak[1] - peak[0] < 60, peak


def test_models_with_and_without_initial_cov_mix():
    with_start = db.LGDS(0.5 * np.eye(3), np.eye(3), 1.0, initial_cov=np.eye(3))
    without = db.LGDS(0.5 * np.eye(3), np.eye(3), 1.0)
    arms = np.vstack([np.eye(3), np.ones(3)])
    systems = [(with_start, arms), (without, arms)]
    result = db.simulate(systems, policies=["kode"], rounds=20, runs=2)
    assert result.regret["kode"].shape == (2, 2)
    for place, system in enumerate(systems):
        alone = db.simulate(
            [system], policies=["kode"], rounds=20, runs=2, options=Options(first_system=place)
        )
        np.testing.assert_allclose(alone.regret["kode"][0], result.regret["kode"][place])


def test_an_interrupt_stops_the_workers(systems):
    """Whatever ends the main thread, or a progress callback, ends the play at the next step."""
    calls = []

    def progress(share):
        calls.append(share)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.simulate(systems, policies=["random"], rounds=10**6, runs=2, progress=progress)
    assert len(calls) < 10


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


def test_a_state_that_starts_from_a_mean():
    """A constant state pays each arm an offset; filters know it, and the engine plays it."""
    arms = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [0.5, 0.5, -2.0], [-0.5, 0.5, 0.0]])
    model = db.LGDS(
        np.diag([0.9, 0.5, 1.0]),
        np.diag([0.2, 0.2, 0.0]),
        0.3,
        np.diag([1.0, 0.3, 0.0]),
        [0.0, 0.0, 1.0],
    )
    policies = ["kode", "idea", "kalman_oracle", "random"]
    result = db.simulate(model, arms, policies, rounds=80, runs=128)
    states, rewards = states_and_rewards(model, arms, 80, run=1)
    assert (states[:, 2] == 1).all()
    belief, total = db.kalman.prior(model), 0.0
    for z, paid in zip(states, rewards, strict=True):
        arm = int((arms @ belief.mean).argmax())
        total += (arms @ z).max() - arms[arm] @ z
        belief = db.kalman.step(belief, model, arms[arm], paid[arm])
    assert result.regret["kode"][1] == pytest.approx(total, rel=1e-9)
    assert result.regret["kalman_oracle"].mean() <= result.regret["kode"].mean()
    assert result.regret["idea"].mean() < 0.5 * result.regret["random"].mean()
    waited = db.simulate(model, arms, ["kode"], rounds=80, runs=128, options=Options(warmup=30))
    assert np.isfinite(waited.regret["kode"]).all()


def test_the_batch_engine_with_many_arms():
    """P4, P9: regret of 1000 arms, also of the oracle, which never makes a k × k matrix."""
    model, _ = db.families.sample("gaussian", n_states=4, n_arms=2, seed=4)[0]
    arms, rounds = np.random.default_rng(7).standard_normal((1000, 4)), 10
    result = db.simulate(model, arms, ["idea", "kode", "kalman_oracle"], rounds=rounds, runs=2)
    G, Q, sigma = model.transition, model.process_cov, float(model.reward_std)
    states, rewards = states_and_rewards(model, arms, rounds, run=1)
    for name in ("idea", "kode"):
        played = naive.play(name, G, Q, sigma, None, arms, rewards, [])
        expected = naive.regret(arms, states, played)
        np.testing.assert_allclose(result.regret[name][1], expected, rtol=1e-10)
    # The gain in information form, (P⁻¹ + CᵀC/σ²)⁻¹ Cᵀ/σ².
    P = db.steady_state.oracle_cov(model, arms)
    inside = np.linalg.inv(P) + arms.T @ arms / sigma**2
    np.testing.assert_allclose(
        G @ np.linalg.inv(inside) @ G.T + Q, P, rtol=1e-9, atol=1e-9 * np.abs(P).max()
    )
    gain = np.linalg.solve(inside, arms.T) / sigma**2
    z, played = np.zeros(4), []
    for seen in rewards:
        played.append(int(np.argmax(arms @ z)))
        z = G @ (z + gain @ (seen - arms @ z))
    expected = naive.regret(arms, states, played)
    np.testing.assert_allclose(result.regret["kalman_oracle"][1], expected, rtol=1e-10)
