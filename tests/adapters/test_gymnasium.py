"""The environment (P1, P4) pays what the model says."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from driftbandit import LGDS, Agent, InvalidInput, System, families
from driftbandit.adapters.gymnasium import HIGHEST, ID, LGDSBandit

MODEL, ARMS = families.sample("gaussian", n_states=3, n_arms=5, seed=1)[0]


K = len(ARMS)


# ---------------------------------------------------------------- Gymnasium


def play(env, choose, seed=0):
    """Every step of one episode: (state before it, action, what `step` returned)."""
    env.reset(seed=seed)
    steps, truncated = [], False
    while not truncated:
        state, action = env.unwrapped.state.copy(), choose()
        steps.append((state, action, env.step(action)))
        truncated = steps[-1][2][3]
    return steps


def uniform(seed=0):
    rng = np.random.default_rng(seed)
    return lambda: int(rng.integers(K))


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        LGDS(MODEL.transition, MODEL.process_cov, 0.0),
        LGDS(2.0 * np.eye(3), np.eye(3), 1.0, initial_cov=np.zeros((3, 3))),
    ],
    ids=["stable", "no noise", "unstable"],
)
def test_gymnasium_finds_nothing_to_criticize(model, recwarn):
    env = gymnasium.make(ID, model=model, arms=ARMS, rounds=50)
    check_env(env.unwrapped)
    assert [str(warning.message) for warning in recwarn] == []
    assert env.observation_space.contains(env.observation_space.sample())


def test_a_step_pays_and_counts_what_the_model_says():
    env = gymnasium.make(ID, model=MODEL, arms=ARMS, rounds=30)
    steps = play(env, uniform(), seed=5)
    rng = np.random.default_rng(5)  # the same numbers, spelled out
    values, vectors = np.linalg.eigh(MODEL.stationary_cov())
    np.testing.assert_allclose(
        steps[0][0], vectors @ (np.sqrt(values) * rng.standard_normal(3)), rtol=1e-12
    )
    values, vectors = np.linalg.eigh(MODEL.process_cov)
    total = 0.0
    for number, (state, action, (observation, reward, terminated, truncated, info)) in enumerate(
        steps, start=1
    ):
        eta, xi = rng.standard_normal(), rng.standard_normal(3)
        means = [float(arm @ state) for arm in ARMS]
        total += max(means) - means[action]
        assert reward == pytest.approx(means[action] + MODEL.reward_std * eta, rel=1e-12)
        assert info["mean"] == pytest.approx(means[action], rel=1e-12)
        assert info["best_arm"] == means.index(max(means))
        assert info["regret"] == pytest.approx(max(means) - means[action], rel=1e-12, abs=1e-12)
        assert info["total_regret"] == pytest.approx(total, rel=1e-12)
        assert set(info) == {"mean", "best_arm", "regret", "total_regret"}
        np.testing.assert_allclose(
            observation, [*np.eye(K)[action], reward, number / 30], rtol=1e-6
        )
        assert observation.dtype == np.float32
        assert (terminated, truncated) == (False, number == 30)
        after = MODEL.transition @ state + vectors @ (np.sqrt(values) * xi)
        following = steps[number][0] if number < 30 else env.unwrapped.state
        np.testing.assert_allclose(following, after, rtol=1e-9, atol=1e-12)


def test_states_and_noise_have_the_models_covariances():
    env = LGDSBandit(MODEL, ARMS, rounds=1)
    env.reset(seed=1)
    starts, noise = [], []
    for _ in range(4000):
        env.reset()
        starts.append(env.state)
        _, reward, *_, info = env.step(0)
        noise.append(reward - info["mean"])
    scale = np.sqrt(np.diag(MODEL.stationary_cov()))
    gap = (np.cov(np.array(starts).T) - MODEL.stationary_cov()) / np.outer(scale, scale)
    assert np.abs(gap).max() < 0.1
    assert np.std(noise) == pytest.approx(MODEL.reward_std, rel=0.05)


def test_the_seed_decides_and_players_are_paired():
    env = gymnasium.make(ID, model=MODEL, arms=ARMS, rounds=20)
    first, again = play(env, uniform(), seed=3), play(env, uniform(), seed=3)
    other = play(env, uniform(), seed=4)
    fixed = play(env, lambda: 0, seed=3)
    rewards = [[step[2][1] for step in run] for run in (first, again, other)]
    assert rewards[0] == rewards[1] != rewards[2]
    for step, twin in zip(first, fixed, strict=True):
        np.testing.assert_array_equal(step[0], twin[0])
        noise = [s[2][1] - s[2][4]["mean"] for s in (step, twin)]
        assert noise[0] == pytest.approx(noise[1], abs=1e-9)


def test_idea_loses_far_less_than_random():
    env = gymnasium.make(ID, model=MODEL, arms=ARMS, rounds=400)
    agent = Agent(MODEL, ARMS, "idea")
    env.reset(seed=0)
    truncated = False
    while not truncated:
        decision = agent.ask()
        _, reward, _, truncated, info = env.step(decision.arm)
        agent.tell(decision, reward)
    assert 0 < info["total_regret"] < 0.5 * play(env, uniform())[-1][2][4]["total_regret"]


def test_a_given_state_and_no_noise():
    model = LGDS(2.0 * np.eye(2), np.zeros((2, 2)), 0.0, initial_cov=np.eye(2))
    env = LGDSBandit(model, np.eye(2), rounds=3, render_mode="ansi")
    observation, info = env.reset(seed=0, options={"state": [3.0, -1.0]})
    assert not observation.any()
    assert info == {}
    assert env.render() == "round 0 of 3"
    rewards = [env.step(np.array(action))[1] for action in (0, 1, 0)]
    assert rewards == [3.0, -2.0, 12.0]
    assert env.render() == "round 3 of 3: arm 0 paid 12, best was arm 0, regret 0, 8 in all"
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(0)


def test_an_episode_starts_where_the_model_does():
    model = LGDS(MODEL.transition, MODEL.process_cov, 1.0, np.diag([4.0, 0.0, 0.0]), [0, 5, 6])
    env = LGDSBandit(model, ARMS)
    env.reset(seed=1)
    starts = np.array([(env.reset(), env.state)[1] for _ in range(1000)])
    assert starts[:, 0].std() == pytest.approx(2, rel=0.1)
    assert (starts[:, 1:] == [5, 6]).all()


def test_an_unstable_state_outgrows_the_observation_not_the_reward():
    model = LGDS([[2.0]], [[0.0]], 0.0, initial_cov=[[1.0]])
    env = LGDSBandit(model, [[1.0], [-1.0]], rounds=200)
    env.reset(seed=0, options={"state": [1.0]})
    for _ in range(200):
        observation, reward, *_ = env.step(1)
        assert observation in env.observation_space
    assert reward == -(2.0**199)
    assert observation[2] == -np.float32(HIGHEST)


def test_an_environment_takes_a_system():
    system = System(LGDS([[0.5]], [[1.0]], 1.0), [[1.0], [2.0]], ["left", "right"])
    env = gymnasium.make(ID, model=system, rounds=3).unwrapped
    assert env.names == ("left", "right")
    assert env.action_space.n == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: is 0; give a whole number ≥ 1"),
        ({"arms": [[1.0, 2.0]]}, r"arms: has shape \(1, 2\)"),
        ({"model": None}, "model: has type NoneType; give a System"),
        ({"model": LGDS(np.eye(3), np.eye(3), 1.0)}, "give initial_cov"),
        (
            {"model": LGDS(9 * np.eye(3), np.eye(3), 1.0, np.eye(3))},
            "rounds: is 1000, after which the state .* play fewer rounds",
        ),
        ({"render_mode": "human"}, "render_mode: unknown name 'human'"),
    ],
)
def test_wrong_environments_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        LGDSBandit(**{"model": MODEL, "arms": ARMS} | change)


def test_wrong_steps_are_refused():
    env = LGDSBandit(MODEL, ARMS)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(InvalidInput, match=r"options\['state'\]: has shape \(1,\)"):
        env.reset(options={"state": [1.0]})
    with pytest.raises(InvalidInput, match="did you mean 'state'"):
        env.reset(options={"stat": [1.0, 2.0, 3.0]})
    env.reset()
    for action in (-1, K, 0.0, None):
        with pytest.raises(InvalidInput, match="action"):
            env.step(action)


def rewards(rounds=100, seed=0):
    return 3 * np.random.default_rng(seed).standard_normal((rounds, K))
