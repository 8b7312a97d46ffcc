"""Logs in which nothing, or only some arms, are random: every way to fit gives a usable model."""

import numpy as np
import pytest
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli.app import app
from driftbandit.identify import as_log, one_step, read_log

ROWS = 100
RNG = np.random.default_rng(0)
ARMS = RNG.integers(3, size=ROWS)
CONSTANTS = {
    "each arm its own": [1.0, 2.0, 3.0],
    "all equal": [2.0, 2.0, 2.0],
    "zero": [0.0, 0.0, 0.0],
    "clicks": [0.0, 1.0, 0.0],
    "sums that are not exact": [0.1, 0.2, 0.3],
    "tiny": [1e-20, 2e-20, 3e-20],
    "large": [1e12 + 1, 1e12 + 2, 1e12 + 3],
}
WAYS = {
    "chosen": {},
    "2 states": {"n_states": 2, "starts": 1},
    "scalar": {"structure": "scalar", "starts": 1},
    "maximum likelihood": {"n_states": 1, "starts": 1, "prior": 0},
    "level(arm)": {"structure": "level(arm)", "starts": 1},
    "chosen components": {"structure": ["constant(arm)", "level(arm)"], "starts": 1},
}


def log_of(rewards, arms=ARMS, **more):
    names = np.array(list("abc"))[arms]
    return {"round": np.arange(len(arms)), "arm": names, "reward": rewards} | more


def assert_usable(found, log):
    """Its model is finite, predicts the log, and an agent and a simulation take it."""
    model = found.system.model
    for part in (model.transition, model.process_cov, model.initial_cov, found.system.arms):
        assert np.isfinite(part).all()
    assert np.linalg.eigvalsh(model.initial_cov).min() >= -1e-9 * np.abs(model.initial_cov).max()
    ahead = one_step(found, as_log(log, found.names))
    assert np.isfinite(ahead.means).all()
    assert np.isfinite(ahead.stds).all()
    agent = db.Agent(found.system)
    for reward in (1.0, 0.5):
        agent.tell(agent.ask(), reward)
    assert np.isfinite([score.mean for score in agent.scores()]).all()
    result = db.simulate(found.system, policies=["idea"], rounds=5, runs=2)
    assert np.isfinite(result.regret["idea"]).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["each arm its own", "all equal", "zero"])
def test_arms_that_pay_constants(name, way):
    paid = np.array(CONSTANTS[name])
    log = log_of(paid[ARMS])
    found = db.fit(log, **WAYS[way])
    assert_usable(found, log)
    means = [score.mean for score in db.Agent(found.system).scores()]
    np.testing.assert_allclose(means, paid, atol=1e-4)
    if way == "chosen":
        assert (str(found.structure), found.drift.verdict) == ("constant(arm)", "no")
    elif name == "each arm its own":
        assert any(said.startswith("No arm has two different rewards") for said in found.warnings)


@pytest.mark.parametrize("name", CONSTANTS)
def test_rounding_errors_are_no_rewards(name):
    """The mean of equal numbers may differ from them in the last digit."""
    paid = np.array(CONSTANTS[name])
    found = db.fit(log_of(paid[ARMS]), n_states=1, starts=1)
    size = np.abs(paid).max() or 1.0
    assert 0 < found.model.reward_std / size < 1
    assert any("two different rewards" in said or "equal" in said for said in found.warnings)
    assert not any("did not converge" in said for said in found.warnings)
    chosen = db.fit(log_of(paid[ARMS]))
    assert str(chosen.structure) == "constant(arm)"
    means = chosen.arms @ chosen.model.start_mean()
    np.testing.assert_allclose(means, paid, rtol=1e-6, atol=1e-9 * size)


@pytest.mark.parametrize("way", WAYS)
def test_one_arm_that_pays_a_constant_beside_others(way):
    rewards = np.where(ARMS == 0, 1.0, 2 + RNG.standard_normal(ROWS))
    log = log_of(rewards)
    found = db.fit(log, **WAYS[way])
    assert_usable(found, log)
    assert db.Agent(found.system).scores()[0].mean == pytest.approx(1.0, abs=0.4)


def test_an_arm_is_centered_where_another_pays_much_more():
    rewards = np.where(ARMS == 0, 1e15, RNG.standard_normal(ROWS))
    found = db.fit(log_of(rewards), n_states=3, structure="diagonal", starts=1)
    (b, c) = (score.mean for score in db.Agent(found.system).scores()[1:])
    means = [rewards[arm == ARMS].mean() for arm in (1, 2)]
    np.testing.assert_allclose([b, c], means, atol=0.5)


@pytest.mark.parametrize("way", ["chosen", "2 states", "scalar"])
def test_one_reward_of_each_arm_says_nothing_of_the_noise(way):
    found = db.fit(log_of([1.0, 2.0, 3.0], np.arange(3)), **WAYS[way])
    assert 0.1 < found.model.reward_std < 2


PAID, TURNS = np.array([1.0, 2.0, 3.0]), np.arange(ROWS) % 3
LOGS = {
    "sequences": log_of(
        PAID[ARMS], round=np.tile(np.arange(20), 5), sequence=np.repeat(range(5), 20)
    ),
    "all arms at once": log_of(PAID[TURNS], TURNS, round=np.arange(ROWS) // 3),
    "gaps": log_of(np.where(ARMS == 2, np.nan, PAID[ARMS]), round=9 * np.arange(ROWS)),
}


@pytest.mark.parametrize("way", ["scalar", "level(arm)"])
@pytest.mark.parametrize("name", LOGS)
def test_sequences_plays_of_one_round_gaps_and_missing_rewards(name, way):
    options = WAYS[way] | ({"n_states": 1} if way == "scalar" else {})
    assert_usable(db.fit(LOGS[name], **options), LOGS[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", LOGS)
def test_they_are_chosen_from(name):
    assert_usable(db.fit(LOGS[name]), LOGS[name])


@pytest.mark.parametrize("options", [[], ["--states", "1"], ["--structure", "level(arm)"]])
def test_the_command_line_fits_constants(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{t},{'abc'[arm]},{arm + 1}" for t, arm in enumerate(ARMS)]
    (tmp_path / "log.csv").write_text("\n".join(["round,arm,reward", *rows]))
    result = CliRunner().invoke(app, ["fit", "log.csv", "--out", "model.json", *options])
    assert result.exit_code == 0, result.output
    assert db.load_model("model.json").names == read_log("log.csv").names
