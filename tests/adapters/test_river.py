"""river's policy is the Agent (P12)."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from river import bandit, stats
from river.checks import common

from driftbandit import LGDS, Agent, InvalidInput, families, kalman, policies
from driftbandit.adapters.gymnasium import ID
from driftbandit.adapters.river import KalmanPolicy

MODEL, ARMS = families.sample("gaussian", n_states=3, n_arms=5, seed=1)[0]


K = len(ARMS)


# ---------------------------------------------------------------- river


IDS = ["a", "b", "c", 3, "e"]


NAMED = dict(zip(IDS, ARMS, strict=True))


def rewards(rounds=100, seed=0):
    return 3 * np.random.default_rng(seed).standard_normal((rounds, K))


def mixed(cov, model, arms):
    return 0.5 * policies.idea.bonus(cov, model, arms)


RULES = {
    "reach": "reach",
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
