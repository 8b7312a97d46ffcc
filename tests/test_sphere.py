"""Every unit vector an arm: P2, P7, P8, P12, P13, P15 on the sphere."""

import hashlib
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import driftbandit as db
import naive
from driftbandit.actions import FINITE, SPHERE, action_set, sphere
from driftbandit.actions.idea_objective import framed, idea
from driftbandit.cli.app import app
from driftbandit.kalman import Belief
from driftbandit.policies import Problem
from driftbandit.simulation import Options, draws
from engine_paths import states_and_rewards
from sphere_cases import KINDS, case, scores_of

SOLVED = ("kode", "kalman_ucb", "idea")


def solved(name, belief, model):
    return sphere.best(belief, model, name)


@pytest.mark.parametrize("name", SOLVED)
def test_nothing_random_or_polished_scores_more(name):
    """P12, P13, P15: neither random directions nor SciPy's climbs from the best of them do."""
    rng = np.random.default_rng(1)
    for kind in KINDS:
        for d in (1, 2, 5):
            belief, model = case(kind, d, rng)
            found = solved(name, belief, model)
            score = scores_of(name, belief, model)
            tried = rng.standard_normal((1000, d))
            values = score(tried / np.linalg.norm(tried, axis=1, keepdims=True))
            climb = scipy.optimize.minimize(
                lambda a, score=score: -score(a[None, :] / np.linalg.norm(a))[0],
                tried[values.argmax()],
                options={"maxiter": 20},
            )
            scale = max(abs(found.value), 1e-300)
            assert max(values.max(), -climb.fun) <= found.value + 1e-9 * scale, (kind, d)
            assert score(found.arm[None, :])[0] == pytest.approx(found.value, rel=1e-9)
            assert found.arm @ found.arm == pytest.approx(1, abs=1e-12)
            assert found.bound >= found.value


TIGHT = [kind for kind in KINDS if kind != "singular, no noise"]  # there rounding leaves a gap


@pytest.mark.parametrize("name", ["kalman_ucb", "idea"])
def test_the_bound_proves_the_maximum(name):
    """P13, P15: the certificate closes to 1e-8, hard cases included, and the gradient vanishes."""
    rng = np.random.default_rng(2)
    for kind in TIGHT:
        for d in (1, 2, 3, 10):
            found = solved(name, *case(kind, d, rng))
            assert 0 <= found.gap <= 1e-8 * abs(found.value), (kind, d)
            assert found.residual <= 1e-5 * abs(found.value), (kind, d)


@pytest.mark.parametrize(("d", "seed"), [(10, 25), (10, 268), (50, 233), (50, 847)])
def test_the_higher_of_two_tops_is_found(d, seed):
    """Tops on both sides of a plane differ by 1e-4 and less; here one of them once was missed."""
    belief, model = case(KINDS[seed % len(KINDS)], d, np.random.default_rng([d, seed]))
    found = sphere.best(belief, model, "idea")
    assert found.gap <= 1e-8 * found.value


@pytest.mark.parametrize("name", SOLVED)
def test_the_plane_s_best_vector_is_the_textbook_s(name):
    rng = np.random.default_rng(3)
    for kind in ("plain", "no noise", "not normal", "hard"):
        belief, model = case(kind, 2, rng)
        numbers = (*belief, model.transition, float(model.reward_std))
        arm = naive.sphere_best(name, *numbers, points=300)
        highest = naive.sphere_score(name, *numbers, arm)
        found = solved(name, belief, model)
        ours = naive.sphere_score(name, *numbers, found.arm)
        assert ours == pytest.approx(highest, rel=1e-8), kind
        assert found.value == pytest.approx(ours, rel=1e-6), kind


def test_scores_are_the_policies_own():
    rng = np.random.default_rng(4)
    for kind in KINDS:
        belief, model = case(kind, 4, rng)
        for name in ("kode", "kalman_ucb", "idea"):
            found = sphere.best(belief, model, name)
            policy = db.policies.make(name)
            problem = Problem(model, found.arm[None, :], dict(policy.parameters))
            expected, bonuses = policy.scores(belief, problem)
            assert float(expected[0] + bonuses[0]) == pytest.approx(found.value, rel=1e-9)


def test_slopes_are_the_scores_derivatives():
    """By differences; the Hessian is the one between tangents, which takes b to zero."""
    rng = np.random.default_rng(6)
    belief, model = case("plain", 4, rng)
    frame = framed(belief, model)
    rows, step = rng.standard_normal((3, 4)), 1e-4
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    objective = idea(frame)
    gradient, hessian = objective.slopes(rows)
    assert (hessian @ rows[:, :, None])[:, :, 0] == pytest.approx(0 * rows, abs=1e-12)
    cross = rows[:, :, None] * gradient[:, None, :]
    hessian = hessian - cross - cross.mT
    for i, way in enumerate(step * np.eye(4)):
        scores = [objective.scores(rows + s * way) - s * way @ frame.mean for s in (1, -1)]
        slopes = [objective.slopes(rows + s * way)[0] for s in (1, -1)]
        assert gradient[:, i] == pytest.approx((scores[0] - scores[1]) / (2 * step), abs=1e-6)
        assert hessian[:, i] == pytest.approx((slopes[0] - slopes[1]) / (2 * step), abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), log=st.floats(-8, 8))
def test_turned_and_scaled_problems_have_the_same_value(seed, log):
    """Nothing depends on coordinates or units, where neither P nor the noise is zero."""
    rng = np.random.default_rng(seed)
    belief, model = case("plain", 3, rng)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    unit = 10.0**log
    moved = Belief(unit * turn @ belief.mean, unit**2 * turn @ belief.cov @ turn.T)
    moved_model = db.LGDS(
        turn @ model.transition @ turn.T,
        model.process_cov,
        unit * model.reward_std,
        model.initial_cov,
    )
    for name in ("kalman_ucb", "idea"):
        plain, other = solved(name, belief, model), solved(name, moved, moved_model)
        assert other.value == pytest.approx(unit * plain.value, rel=1e-9)
        assert turn.T @ other.arm == pytest.approx(plain.arm, abs=1e-5)


@pytest.mark.parametrize("name", ["kode", "kalman_ucb", "idea"])
def test_jax_plays_the_same_vector(name):
    rng = np.random.default_rng(7)
    policy = db.policies.make(name)
    play = jax.jit(policy.actions.on_sphere)
    for kind in ("plain", "singular", "hard", "zero mean"):
        belief, model = case(kind, 3, rng)
        problem = Problem(model, np.eye(3), dict(policy.parameters))
        plain = policy.actions.on_sphere(belief, problem, None)
        with jax.enable_x64(True):
            compiled = play(*jax.tree.map(jnp.asarray, (belief, problem)), None)
        score = scores_of(name, belief, model)
        assert score(np.asarray(compiled)[None]) == pytest.approx(score(plain[None]), rel=1e-10)
        if kind == "plain":
            assert np.asarray(compiled) == pytest.approx(plain, abs=1e-7)


def test_systems_along_the_axes():
    """Newton's systems have exact zeros in them where nothing is known about the mean."""
    model = db.LGDS(np.diag([0.9, 0.5, 0.9]), np.eye(3), 0.5)
    belief = Belief(np.zeros(3), np.diag([1.0, 2.0, 0.0]))
    with jax.enable_x64(False):
        single = jax.jit(sphere.idea_arm)(*jax.tree.map(jnp.asarray, (belief, model)))
    assert single.dtype == np.float32
    for arm in (sphere.idea_arm(belief, model), single):
        assert np.abs(arm) == pytest.approx([1, 0, 0], abs=1e-5)


@pytest.mark.parametrize("name", SOLVED)
def test_a_known_state_is_followed(name):
    """P = 0: nothing to learn, and ẑ in length one is best."""
    agent = db.Agent(
        db.LGDS(0.9 * np.eye(2), np.zeros((2, 2)), 1.0, np.zeros((2, 2)), [3, 4]), "sphere", name
    )
    for _ in range(3):
        decision = agent.ask()
        assert decision.arm == pytest.approx([0.6, 0.8])
        agent.tell(decision, 1.0)


SHRINKING = [
    ([1e-160, -1e-160, 1e-160], [0, 0.25, 0], [[0, 1, 0], [2, 2, 1], [1, 1, -1]], 1.0),
    ([1.0, 0.5], [1.0, 1.0], [[1e-52, 0], [0, 1e-52]], 1.0),
    ([1.0, 0.0], [1e-158, 1e-166], [[0, 2], [0, 0]], 1e-75),
    ([0.0, 0.0], [1e-300, 1e-310], [[0.9, 0.1], [0, 0.9]], 0.0),
]


@pytest.mark.parametrize(("mean", "variances", "transition", "reward_std"), SHRINKING)
def test_numbers_too_small_to_be_squared(mean, variances, transition, reward_std):
    """As in an agent that is asked for hundreds of rounds, and told nothing."""
    belief = Belief(np.array(mean), np.diag(variances))
    model = db.LGDS(transition, np.eye(len(mean)), reward_std, np.eye(len(mean)))
    with np.errstate(all="ignore"):
        assert np.linalg.norm(sphere.idea_arm(belief, model)) == pytest.approx(1)


PLAYED = ("idea", "kode", "kalman_ucb", "kalman_oracle", "random")


@pytest.fixture(scope="module")
def plane():
    """A system that starts from a mean, so that no first vector ties with its opposite."""
    rng = np.random.default_rng(8)
    turn = rng.standard_normal((2, 2))
    turn *= 0.9 / np.abs(np.linalg.eigvals(turn)).max()
    return db.LGDS(turn, np.diag([0.5, 1.0]), 0.1, np.diag([2.0, 1.0]), np.array([1.0, -0.5]))


@pytest.fixture(scope="module")
def played(plane):
    return db.simulate(plane, "sphere", PLAYED, rounds=66, runs=256, seed=3)


@pytest.mark.parametrize("name", PLAYED)
def test_simulated_regret_equals_the_textbook(name, plane, played):
    """P4: every checkpoint of two runs; the textbook finds its vectors to eight digits."""
    numbers = (plane.transition, plane.process_cov, float(plane.reward_std), plane.initial_cov)
    for run in range(2):
        states, rewards = states_and_rewards(plane, np.eye(2), 66, seed=3, run=run)
        with jax.enable_x64(True):
            key = draws.run_key(draws.role_key(3, "", "policy:random"), 0, run)
            normals = draws.normal(key, np.arange(66)[:, None], np.arange(2), np.float64)
        path = naive.sphere_regret_path(
            name, numbers, plane.initial_mean, states, rewards, np.asarray(normals)
        )
        curve = played.curves[name][run]
        assert curve == pytest.approx(path[played.checkpoints - 1], rel=1e-6, abs=1e-6)


def test_nobody_beats_theorem_2_and_the_oracle_meets_it(plane, played):
    """P8: the Oracle sees the coordinates' rewards, which is the bound's own system."""
    model = db.families.sample("gaussian", n_states=2, n_arms=2, seed=4)[0][0]
    runs, rounds = 4000, 66
    result = db.simulate(model, "sphere", ["kalman_oracle"], rounds=rounds, runs=runs)
    settled = db.theory.sphere_lower_bound(model)
    curve, at = result.curves["kalman_oracle"], result.checkpoints
    since = int(np.searchsorted(at, 12))  # its error has settled by then
    spent = (curve[:, -1] - curve[:, since]) / (rounds - at[since])
    error = spent.std(ddof=1) / math.sqrt(runs)
    assert error < 0.02 * settled.value
    assert spent.mean() == pytest.approx(settled.value, abs=4 * error)
    floor = db.theory.sphere_lower_bound(plane, rounds=66).value
    for name, regret in played.regret.items():
        lost, more = regret / 66, (regret - played.regret["kalman_oracle"]) / 66
        assert lost.mean() > floor - 4 * lost.std() / 16, name
        assert name == "kalman_oracle" or more.mean() > 4 * more.std() / 16, name


def test_policies_that_can_are_all_that_play():
    chosen = db.policies.chosen(None, SPHERE)
    assert set(PLAYED) <= set(chosen)
    assert all(policy.actions.on_sphere for policy in chosen.values())
    assert set(chosen) == {name for name, e in db.policies.REGISTRY.items() if e.sphere}
    assert "ucb" not in chosen


def test_learners_may_be_wrong_and_noise_may_count(plane, played):
    """P24: the oracle knows the truth; noisy regret has the same mean."""
    wrong = db.LGDS(-plane.transition, plane.process_cov, 0.1, plane.initial_cov)
    options = {"rounds": 66, "runs": 256, "seed": 3}
    pair = ["kode", "kalman_oracle"]
    other = db.simulate([(plane, "sphere")], None, pair, assumed=[(wrong, "sphere")], **options)
    noisy = db.simulate(plane, "sphere", ["kode"], **options, options=Options(regret="noisy"))
    assert (played.regret["kalman_oracle"] == other.regret["kalman_oracle"][0]).all()
    assert played.regret["kode"].mean() < other.regret["kode"].mean()
    gap = noisy.regret["kode"] - played.regret["kode"]
    assert abs(gap.mean()) < 4 * gap.std() / 16
    assert gap.std() == pytest.approx(0.1 * math.sqrt(2 * 66), rel=0.2)


@pytest.mark.parametrize("name", PLAYED)
def test_agents_play_unit_vectors(name, plane, tmp_path):
    """Late, missing and repeated rewards, and a restart, as on a list of arms."""
    rng = np.random.default_rng(9)
    size = (2,) if name == "kalman_oracle" else ()
    rewards = [rng.standard_normal(size) for _ in range(12)]
    agent, late = (db.Agent(plane, "sphere", name, seed=5) for _ in range(2))
    decisions = []
    for reward in rewards:
        decision = agent.ask()
        assert not decision.arm.flags.writeable
        assert decision.arm @ decision.arm == pytest.approx(1, abs=1e-12)
        assert agent.tell(decision, reward) == "learned"
        decisions.append(decision)
    assert agent.tell(decisions[-1], rewards[-1]) == "duplicate"
    opened = [late.ask() for _ in rewards]
    for decision, before, reward in zip(opened[::-1], decisions[::-1], rewards[::-1], strict=True):
        if name in ("random", "kalman_oracle"):  # who learns nothing, or the same from any vector
            late.tell(decision, reward)
            assert name == "kalman_oracle" or (decision.arm == before.arm).all()
    agent.save(tmp_path / "agent.json")
    back = db.Agent.load(tmp_path / "agent.json")
    assert back.to_json() == agent.to_json()
    again, other = agent.ask(), back.ask()
    assert (again.arm == other.arm).all()
    assert again[2:] == other[2:]
    if name == "kalman_oracle":
        assert (late.ask().arm == again.arm).all()
    back.tell(decisions[-1].id, rewards[-1])
    with pytest.raises(db.InvalidInput, match=r"decision: 11 is arm .* in round 11, not Decision"):
        back.tell(decisions[-1]._replace(arm=-decisions[-1].arm), rewards[-1])


def test_agents_fold_vectors_as_the_filter_does(plane):
    agent = db.Agent(plane, "sphere", "kalman_ucb(width=2)")
    belief = db.kalman.prior(plane)
    for reward in (0.5, -1.0, 2.0):
        decision = agent.ask()
        assert decision.arm == pytest.approx(
            sphere.best(belief, plane, "kalman_ucb", width=2).arm, abs=1e-12
        )
        assert decision.mean == pytest.approx(decision.arm @ belief.mean)
        assert decision.uncertainty**2 == pytest.approx(decision.arm @ belief.cov @ decision.arm)
        agent.tell(decision, reward)
        belief = db.kalman.step(belief, plane, decision.arm, reward)
    assert agent.state.mean == pytest.approx(belief.mean, abs=1e-12)


def test_agents_stored_before_there_was_a_sphere_are_read(plane):
    agent = db.Agent(plane, np.eye(2))
    agent.tell(agent.ask(), 1.0)
    whole = json.loads(agent.to_json())
    whole["driftbandit_agent"] = 2
    del whole["agent"]["sphere"]
    text = json.dumps(whole["agent"])
    whole["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    back = db.Agent.from_json(json.dumps(whole))
    assert back.actions == FINITE
    assert back.ask() == agent.ask()


def test_both_action_sets_answer_the_same_questions(plane):
    """What the engine asks: rows, means, the best mean, which noise, and what update sees."""
    values, problem = np.array([3.0, 4.0]), Problem(plane, np.eye(2), {})
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
    np.testing.assert_array_equal(SPHERE.rows("sphere", plane), np.eye(2))
    able = ("idea", "kode", "kalman_ucb", "thompson", "kalman_oracle", "random")
    assert db.policies.default(SPHERE) == able
    assert "lookahead" not in db.policies.default(FINITE, 3000)


def _wrong(message, call, *arguments, **options):
    with pytest.raises(db.InvalidInput, match=message):
        call(*arguments, **options)


def test_what_the_sphere_refuses(plane):
    _wrong("arms: is 'ball'; give a k × d array, or \"sphere\"", db.simulate, plane, "ball")
    _wrong("ucb chooses from a list.*such as idea", db.simulate, plane, "sphere", ["ucb"])
    _wrong(
        "regret: is 'hindsight'", db.simulate, plane, "sphere", options=Options(regret="hindsight")
    )
    mixed = [(plane, "sphere"), (plane, np.eye(2))]
    _wrong("arms: are a list in some", db.simulate, mixed)
    _wrong("assumed.*has a list", db.simulate, mixed[:1], assumed=mixed[1:])
    _wrong("oful chooses from a list", db.Agent, plane, "sphere", "oful")
    _wrong("model: is None, and the agent plays on the sphere", db.Agent, None, "sphere")
    _wrong("refit: is Refit", db.Agent, plane, "sphere", refit=db.Refit())
    _wrong("model: has type int", db.Agent, 3, "sphere")
    agent = db.Agent(plane, "sphere")
    _wrong("arms: is .* plays on the sphere; ask without arms", agent.ask, arms=[0])
    _wrong("policy: unknown name 'ucb'", sphere.best, db.kalman.prior(plane), plane, "ucb")
    _wrong("width: is -1", sphere.best, db.kalman.prior(plane), plane, "kalman_ucb", -1)
    short = db.policies.optimistic("short", db.policies.idea.bonus, on_sphere=lambda *_: np.ones(2))
    _wrong("arm of policy 'short'", db.Agent(plane, "sphere", short).ask)


def test_the_command_line_plays_the_sphere():
    def run(*arguments):
        return CliRunner().invoke(app, ["simulate", "--sphere", "--states", "2", *arguments])

    few = ("--systems", "1", "--runs", "2", "--rounds", "5", "--policies", "kode", "--json")
    shown = json.loads(run(*few).stdout)["studies"]["gaussian"]["policies"]
    model = db.families.sample("gaussian", 1, 2)[0][0]
    result = db.simulate(
        [(model, "sphere")], None, ["kode"], rounds=5, runs=2, options=Options(stream="gaussian")
    )
    assert shown["kode"]["mean"] == pytest.approx(result.regret["kode"].mean(), rel=1e-12)
    assert "was given together with --sphere" in str(run("--arms", "3").exception)
