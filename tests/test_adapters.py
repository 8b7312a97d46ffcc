"""Adapters (P1, P4, P12): the environment pays what the model says; river's policy is the Agent."""

import copy
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from river import bandit, stats
from river.checks import common

from driftbandit import LGDS, Agent, InvalidInput, System, families, kalman, policies
from driftbandit.adapters.gymnasium import HIGHEST, ID, LGDSBandit
from driftbandit.adapters.river import KalmanPolicy

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


# ---------------------------------------------------------------- river

IDS = ["a", "b", "c", 3, "e"]
NAMED = dict(zip(IDS, ARMS, strict=True))


def rewards(rounds=100, seed=0):
    return 3 * np.random.default_rng(seed).standard_normal((rounds, K))


def mixed(cov, model, arms):
    return 0.5 * policies.idea.bonus(cov, model, arms)


RULES = {
    "idea": "idea",
    "kode": "kode",
    "kalman_ucb": "kalman_ucb(width=2)",
    "policy": policies.make("kalman_ucb", width=0.3),
    "bonus": mixed,
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_river_pulls_what_the_agent_plays(rule):
    policy = KalmanPolicy(MODEL, NAMED, rule)
    agent = Agent(MODEL, ARMS, policies.optimistic("mixed", mixed) if rule is mixed else rule)
    played = set()
    for row in rewards():
        decision, arm_id = agent.ask(), policy.pull(IDS)
        assert arm_id == IDS[decision.arm]
        agent.tell(decision, row[decision.arm])
        policy.update(arm_id, row[decision.arm])
        played.add(arm_id)
        np.testing.assert_array_equal(policy.belief.mean, agent.state.mean)
        np.testing.assert_array_equal(policy.belief.cov, agent.state.cov)
    assert len(played) > 1


def test_some_arms_a_foreign_arm_and_a_round_without_reward():
    policy = KalmanPolicy(MODEL, NAMED)
    belief = kalman.prior(MODEL)
    rng = np.random.default_rng(2)
    for row in rewards(50):
        offered = [IDS[i] for i in rng.permutation(K)[: rng.integers(1, K)]]
        score = {
            arm_id: NAMED[arm_id] @ belief.mean
            + policies.idea.bonus(belief.cov, MODEL, NAMED[arm_id][None])[0]
            for arm_id in offered
        }
        assert policy.pull(offered) == max(score, key=score.get)
        assert policy.pull(offered) == policy.pull(offered)  # a pull alone changes nothing
        policy.update("b", row[1])  # what was played in the end, offered or not
        belief = kalman.step(belief, MODEL, ARMS[1], row[1])
        policy.advance()
        belief = kalman.advance(belief, MODEL)
    assert policy.predictions == pytest.approx({i: NAMED[i] @ belief.mean for i in IDS})


def test_a_long_pause_takes_no_time():
    """A billion rounds by repeated squaring; the state's law is then the stationary one."""
    policy = KalmanPolicy(MODEL, NAMED)
    policy.update("b", 2.0)
    before = policy.belief
    policy.advance(0)
    assert policy.belief is before
    policy.advance(5)
    belief = before
    for _ in range(5):
        belief = kalman.advance(belief, MODEL)
    np.testing.assert_allclose(policy.belief.mean, belief.mean, rtol=1e-12)
    np.testing.assert_allclose(policy.belief.cov, belief.cov, rtol=1e-12)
    policy.advance(10**9)
    np.testing.assert_allclose(policy.belief.cov, MODEL.stationary_cov(), rtol=1e-9)
    policy = KalmanPolicy(LGDS([[1.05]], [[1.0]], 1.0, [[1.0]]), [[1.0]])
    before = policy.belief
    with pytest.raises(InvalidInput, match=r"rounds: is 1e\+09, after which the state exceeds"):
        policy.advance(10**9)
    assert policy.belief is before


@pytest.mark.parametrize(
    "check",
    [
        common.check_repr,
        common.check_str,
        common.check_clone_same_class,
        common.check_clone_is_idempotent,
        common.check_init_has_default_params_for_tests,
        common.check_init_default_params_are_not_mutable,
        common.check_doc,
        common.check_clone_changes_memory_addresses,
        common.check_mutate_can_be_idempotent,
        common.check_pickling_supports_roundtrip,
        common.check_repr_roundtrips_clone,
        common.check_clone_with_new_params_applies,
        common.check_get_params_matches_signature,
    ],
    ids=lambda check: check.__name__,
)
def test_river_finds_nothing_to_criticize(check):
    for parameters in KalmanPolicy._unit_test_params():
        check(KalmanPolicy(**parameters))


def test_copies_go_on_and_clones_start_afresh():
    policy = KalmanPolicy(MODEL, NAMED, "kalman_ucb(width=2)", reward_obj=stats.Max(), burn_in=2)
    for row in rewards(20):
        arm_id = policy.pull(IDS)
        policy.update(arm_id, row[IDS.index(arm_id)])
    fresh = policy.clone()
    np.testing.assert_array_equal(fresh.belief.mean, np.zeros(3))
    assert (fresh.policy, fresh.burn_in) == ("kalman_ucb(width=2)", 2)
    assert [fresh._n, policy._n] == [0, 20]
    assert isinstance(fresh.reward_obj, stats.Max)
    for twin in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        np.testing.assert_array_equal(twin.belief.mean, policy.belief.mean)
        assert twin.pull(IDS) == policy.pull(IDS)
        assert twin.ranking == policy.ranking


def test_burn_in_pulls_every_arm_first_and_ranking_is_rivers():
    policy = KalmanPolicy(MODEL, NAMED, burn_in=1)
    for reward, expected in enumerate(IDS):
        assert policy.pull(IDS) == expected
        policy.update(expected, reward)
    assert policy.ranking == IDS[::-1]
    played = kalman.predictions(MODEL, ARMS, np.arange(K))
    last = kalman.Belief(played.means[-1], played.covs[-1])
    np.testing.assert_allclose(policy.belief.mean, kalman.step(last, MODEL, ARMS[-1], K - 1)[0])


def test_rivers_evaluate_plays_it_in_the_environment():
    env = gymnasium.make(ID, model=MODEL, arms=ARMS, rounds=100)
    players = [KalmanPolicy(MODEL, ARMS), bandit.UCB(delta=1, seed=1)]
    trace = list(bandit.evaluate(players, env, n_episodes=2, seed=4))
    assert len(trace) == 2 * 2 * 100
    earned = [sum(s["reward"] for s in trace if s["policy_idx"] == i) for i in (0, 1)]
    assert earned[0] > earned[1]


def test_rivers_offline_evaluation_uses_the_matching_rounds():
    rng = np.random.default_rng(0)
    log = [(IDS, None, IDS[rng.integers(K)], bool(rng.integers(2))) for _ in range(200)]
    total, used = bandit.evaluate_offline(KalmanPolicy(MODEL, NAMED), log)
    twin, expected = KalmanPolicy(MODEL, NAMED), []
    for _, _, arm_id, reward in log:
        if twin.pull(IDS) == arm_id:
            twin.update(arm_id, float(reward))
            expected.append(reward)
    assert used == len(expected) > 0
    assert total.get() == sum(expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "ucb"}, "policy: is 'ucb', which is not of the form"),
        ({"policy": "kalman_oracle"}, "policy: is 'kalman_oracle', which is not of the form"),
        ({"policy": "ideal"}, "did you mean 'idea'"),
        ({"policy": 3}, "policy: is 3"),
        ({"arms": {}}, "arms: has shape"),
        ({"arms": {"a": [1.0, 2.0]}}, r"arms: has shape \(1, 2\)"),
        ({"arms": 5}, "arms: has shape"),
        ({"model": None}, "model: has type NoneType"),
        ({"burn_in": -1}, "burn_in: is -1"),
    ],
)
def test_wrong_policies_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        KalmanPolicy(**{"model": MODEL, "arms": NAMED} | change)


def test_wrong_pulls_and_updates_are_refused_and_change_nothing():
    policy = KalmanPolicy(MODEL, NAMED)
    for call, message in [
        (lambda: policy.pull([]), "arm_ids: is empty"),
        (lambda: policy.pull(["a", "z"]), "arm_id: is 'z', .*; valid: 'a', 'b', 'c', 3, 'e'"),
        (lambda: policy.update("z", 1.0), "arm_id: is 'z'"),
        (lambda: policy.update(["a"], 1.0), "arm_id"),
        (lambda: policy.update("a"), "reward: is .*; give one number"),
        (lambda: policy.update("a", 1.0, 2.0), "reward"),
        (lambda: policy.update("a", float("nan")), "reward: is nan"),
        (lambda: policy.advance(-1), "rounds: is -1"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            call()
    assert policy._n == 0
    np.testing.assert_array_equal(policy.belief.mean, np.zeros(3))


# ---------------------------------------------------------------- without the libraries


def test_driftbandit_loads_neither_and_says_what_to_install():
    code = """
import sys
import driftbandit, driftbandit.adapters
assert not {"gymnasium", "river"} & set(sys.modules)
import driftbandit.adapters.gymnasium
assert not {"jax", "river"} & set(sys.modules)
for name in ("gymnasium", "driftbandit.adapters.gymnasium", "river"):
    sys.modules[name] = None
del sys.modules["driftbandit.adapters.gymnasium"]
for name in ("gymnasium", "river"):
    try:
        __import__(f"driftbandit.adapters.{name}")
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "driftbandit.adapters.gymnasium needs gymnasium; install driftbandit[gym]",
        "driftbandit.adapters.river needs river; install driftbandit[river]",
    ]
