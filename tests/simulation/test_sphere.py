"""P4, P8, P24: simulated play on the sphere."""

import math

import jax
import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit.simulation import Options, draws
from engine_paths import states_and_rewards
from sphere_cases import PLANE, PLAYED


@pytest.fixture(scope="module")
def played():
    return db.simulate(PLANE, "sphere", PLAYED, rounds=66, runs=256, seed=3)


@pytest.mark.parametrize("name", PLAYED)
def test_simulated_regret_equals_the_textbook(name, played):
    """P4: every checkpoint of two runs; the textbook finds its vectors to eight digits."""
    numbers = (PLANE.transition, PLANE.process_cov, float(PLANE.reward_std), PLANE.initial_cov)
    for run in range(2):
        states, rewards = states_and_rewards(PLANE, np.eye(2), 66, seed=3, run=run)
        with jax.enable_x64(True):
            key = draws.run_key(draws.role_key(3, "", "policy:random"), 0, run)
            normals = draws.normal(key, np.arange(66)[:, None], np.arange(2), np.float64)
        path = naive.sphere_regret_path(
            name, numbers, PLANE.initial_mean, states, rewards, np.asarray(normals)
        )
        curve = played.curves[name][run]
        assert curve == pytest.approx(path[played.checkpoints - 1], rel=1e-6, abs=1e-6)


def test_nobody_beats_theorem_2_and_the_oracle_meets_it(played):
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
    floor = db.theory.sphere_lower_bound(PLANE, rounds=66).value
    for name, regret in played.regret.items():
        lost, more = regret / 66, (regret - played.regret["kalman_oracle"]) / 66
        assert lost.mean() > floor - 4 * lost.std() / 16, name
        assert name == "kalman_oracle" or more.mean() > 4 * more.std() / 16, name


def test_learners_may_be_wrong_and_noise_may_count(played):
    """P24: the oracle knows the truth; noisy regret has the same mean."""
    wrong = db.LGDS(-PLANE.transition, PLANE.process_cov, 0.1, PLANE.initial_cov)
    options = {"rounds": 66, "runs": 256, "seed": 3}
    pair = ["kode", "kalman_oracle"]
    other = db.simulate([(PLANE, "sphere")], None, pair, assumed=[(wrong, "sphere")], **options)
    noisy = db.simulate(PLANE, "sphere", ["kode"], **options, options=Options(regret="noisy"))
    assert (played.regret["kalman_oracle"] == other.regret["kalman_oracle"][0]).all()
    assert played.regret["kode"].mean() < other.regret["kode"].mean()
    gap = noisy.regret["kode"] - played.regret["kode"]
    assert abs(gap.mean()) < 4 * gap.std() / 16
    assert gap.std() == pytest.approx(0.1 * math.sqrt(2 * 66), rel=0.2)
