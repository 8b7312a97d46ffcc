"""UCB and discounted UCB."""

import numpy as np
import pytest

import driftbandit as db
from systems import played, still

EYE = np.eye(3)


def test_after_an_abrupt_change_d_ucb_recovers_and_ucb_does_not():
    """Garivier and Moulines (2011): the best arm drops below another one, once.

    The mean of all its rewards stays above the other arm's for twice as long as it was good.
    """
    rounds, change = 3000, 1500
    means = np.tile([0.8, 0.6, 0.3], (rounds, 1))
    means[change:, 0] = 0.5
    paid = means + 0.1 * np.random.default_rng(0).standard_normal(means.shape)
    model = db.LGDS(0 * EYE, 0 * EYE, reward_std=0.1)
    for name, before, after in [("discounted_ucb", 0, 1), ("ucb", 0, 0)]:
        chosen, _, _ = played(db.policies.make(name), paid, model, EYE)
        assert np.mean(chosen[change - 500 : change] == before) > 0.9, name
        assert np.mean(chosen[-1000:] == after) > 0.9, name


def test_d_ucb_remembers_so_many_rounds():
    """n_t(γ) = (1 − γ^t) / (1 − γ), whatever is played; without discount N_a counts plays."""
    paid = np.random.default_rng(1).standard_normal((300, 3))
    _, state, _ = played(db.policies.make("discounted_ucb", gamma=0.95), paid, still(3), EYE)
    assert state.counts.sum() == pytest.approx((1 - 0.95**300) / 0.05, rel=1e-12)
    chosen, state, _ = played(db.policies.make("discounted_ucb", gamma=1), paid, still(3), EYE)
    np.testing.assert_array_equal(state.counts, np.bincount(chosen))


def test_d_ucb_before_and_after_the_first_reward():
    """n < 1 or n = 1: no bonus but the infinite one, no NaN; γ = 0 keeps the last round alone."""
    policy = db.policies.make("discounted_ucb", gamma=0)
    chosen, state, problem = played(policy, np.ones((7, 3)), still(3), EYE)
    assert list(chosen) == [0, 1, 0, 1, 0, 1, 0]
    means, bonuses = policy.scores(state, problem)
    np.testing.assert_array_equal(means, [1, 0, 0])
    np.testing.assert_array_equal(bonuses, [0, np.inf, np.inf])
    faint = state._replace(counts=state.counts * 0.25, sums=state.sums * 0.25)
    np.testing.assert_array_equal(policy.scores(faint, problem), [means, bonuses])


def test_defaults_of_gamma():
    """1 − ¼√(1/n); 1 − (B / (dn))^⅔, which is 1 where nothing drifts and at least 1 − 1/d."""
    ucb, linear = (db.policies.make(f"discounted_{name}") for name in ("ucb", "linucb"))
    assert ucb.prepare(still(3), EYE, 400)[0]["gamma"] == 1 - 0.25 / 20
    # One state: D = (1 − 0.9)² + 0.19 = 0.2 for Z = 1, R² = 4 (1 + σ²).
    slow = db.LGDS([[0.9]], [[0.19]], reward_std=np.sqrt(3) * 2)
    gamma = linear.prepare(slow, np.array([[2.0]]), 100)[0]["gamma"]
    assert gamma == pytest.approx(1 - (np.sqrt(0.2 * 4) / 4) ** (2 / 3), rel=1e-12)
    assert linear.prepare(still(3), EYE, 100)[0]["gamma"] == 1
    fast = db.LGDS(-0.99 * EYE, EYE, reward_std=0.0)
    assert linear.prepare(fast, EYE, 100)[0]["gamma"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_arm_that_nobody_plays_for_long_keeps_its_mean(dtype):
    """Its discounted count would be 2⁻³⁰⁰⁰, which is zero in either precision."""
    model = db.LGDS(np.eye(2), np.zeros((2, 2)), 0.1, np.zeros((2, 2)), [1.0, 0.0])
    policy = db.policies.make("discounted_ucb", gamma=0.5, xi=0)  # always the highest mean
    result = db.simulate(model, EYE[:2, :2], [policy], rounds=3000, runs=4, dtype=dtype)
    (regret,) = result.regret.values()
    np.testing.assert_allclose(regret[..., -1], 1.0, rtol=1e-4)  # one round of the worse arm


def test_float32_earns_what_float64_earns():
    systems = db.families.sample("gaussian", systems=20, n_states=3, n_arms=3, seed=1)
    wanted = [("discounted_ucb", {"gamma": gamma}) for gamma in (0.5, 0.9, 0.99)]
    policies = [db.policies.make(name, **given) for name, given in wanted]
    policies.append(db.policies.make("discounted_ucb", gamma=0.9, xi=0))
    both = [
        db.simulate(systems, None, policies, rounds=2000, runs=8, dtype=dtype).regret
        for dtype in (np.float64, np.float32)
    ]
    for name, exact in both[0].items():
        ratio = float(np.mean(both[1][name])) / float(np.mean(exact))
        assert ratio == pytest.approx(1, abs=0.02), name
