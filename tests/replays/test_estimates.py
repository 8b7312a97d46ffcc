"""Estimates from logs of one reward per round: their expectation and variance, exactly.

Every log that a rule can draw from given rewards is listed with its probability. So expectations
are sums, and nothing is left to chance.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.replays.estimates import Shown, earned, effective, interval, shares, variances

REWARDS = np.array([[1.0, -2.0, 0.5], [0.3, 4.0, -1.0], [2.0, 1.0, 0.0], [-1.0, 0.2, 3.0]])
ROUNDS, ARMS = REWARDS.shape


def even(history):
    return np.full(ARMS, 1 / ARMS)


def uneven(history):
    return np.array([0.6, 0.3, 0.1])


def greedy(history):
    """Prefers the arm that has paid most: its chances depend on past rewards."""
    chances = np.full(ARMS, 0.1)
    best = max(history, key=lambda play: play[1], default=(2, 0.0))[0]
    chances[best] += 0.7
    return chances


def leader(history):
    """A policy that learns: names the arm with the highest mean so far, unseen ones first."""
    means = [np.mean([x for b, x in history if b == a] or [9.0]) for a in range(ARMS)]
    return np.eye(ARMS)[int(np.argmax(means))]


def hesitant(history):
    """A policy whose runs disagree."""
    return 0.7 * leader(history) + 0.3 * np.array([0.0, 0.5, 0.5])


def constant(history):
    return np.full(ARMS, 0.4)


def last_reward(history):
    """A wrong model: predicts the last reward for arm 0, and twice that for the others."""
    last = history[-1][1] if history else 0.0
    return last * np.array([1.0, 2.0, 2.0])


def every_log(chances, *columns):
    """All logs of a rule, with their probability: the log, and what each column says on its way."""
    for arms in itertools.product(range(ARMS), repeat=ROUNDS):
        history, weight, drawn = [], 1.0, []
        said = [[] for _ in columns]
        for t, arm in enumerate(arms):
            for column, values in zip(columns, said, strict=True):
                values.append(column(history))
            p = chances(history)
            weight *= p[arm]
            drawn.append(p[arm])
            history.append((arm, REWARDS[t, arm]))
        played = np.array(arms)
        paid = REWARDS[np.arange(ROUNDS), played]
        predicted, *named = map(np.array, said)
        yield weight, Shown(played, paid, np.array(drawn), predicted), named


@pytest.mark.parametrize("model", [constant, last_reward])
@pytest.mark.parametrize("policy", [leader, hesitant])
@pytest.mark.parametrize("chances", [even, uneven, greedy])
def test_unbiased_with_the_right_variance(chances, policy, model):
    """A policy that names one arm has an exact variance, others one that is too large."""
    whole = error = square = said = 0.0
    for weight, shown, [q] in every_log(chances, model, policy):
        apart = float((earned(q, shown) - np.vecdot(q, REWARDS)).sum())
        whole += weight
        error += weight * apart
        square += weight * apart**2
        said += weight * variances(shown.of_played(q), shown).sum()
    assert whole == pytest.approx(1)
    assert error == pytest.approx(0, abs=1e-12)
    if policy is leader:
        assert said == pytest.approx(square)
    else:
        assert square < said < 2 * square


@pytest.mark.parametrize("chances", [even, uneven, greedy])
def test_differences_are_unbiased_and_their_variance_is_not_too_small(chances):
    error = square = said = 0.0
    for weight, shown, [one, other] in every_log(chances, last_reward, leader, hesitant):
        q = one - other
        apart = float((earned(q, shown) - np.vecdot(q, REWARDS)).sum())
        counted = shown.of_played(one), shown.of_played(other)
        error += weight * apart
        square += weight * apart**2
        said += weight * variances(counted[0], shown, counted[1]).sum()
    assert error == pytest.approx(0, abs=1e-12)
    assert square < said


@given(st.integers(0, 2**32), st.floats(-1e3, 1e3), st.permutations(range(3)))
def test_zero_of_rewards_and_order_of_arms_do_not_matter(seed, shift, order):
    rng = np.random.default_rng(seed)
    arms, chances = rng.integers(3, size=9), rng.uniform(0.05, 1, size=9)
    shown = Shown(arms, rng.normal(size=9), chances, rng.normal(size=(9, 3)))
    q = rng.dirichlet(np.ones(3), size=9)
    q[::2] = np.eye(3)[rng.integers(3, size=5)]
    places = np.argsort(order)
    rewards, predicted = shown.rewards + shift, shown.predicted[:, order] + shift
    moved = Shown(places[arms], rewards, chances, predicted)
    np.testing.assert_allclose(
        earned(q[:, order], moved), earned(q, shown) + shift, atol=1e-9 * (1 + abs(shift))
    )
    spread = variances(shown.of_played(q), shown)
    assert (spread >= -1e-12).all()
    other = variances(moved.of_played(q[:, order]), moved)
    np.testing.assert_allclose(other, spread, rtol=1e-6, atol=1e-8)


def test_what_the_log_always_plays_is_known():
    shown = Shown(np.array([0, 1]), np.array([3.0, 5.0]), np.ones(2), np.zeros((2, 2)))
    q = np.eye(2)
    assert earned(q, shown).tolist() == [3.0, 5.0]
    assert variances(shown.of_played(q), shown).tolist() == [0.0, 0.0]
    assert variances(np.ones(2), shown, np.ones(2)).tolist() == [0.0, 0.0]


def test_shares_interval_and_effective_size():
    assert shares(np.array([[2, 0], [1, 0]]), 3).tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    low, high = interval(1.0, np.array([4.0, 0.0, 5.0, 0.0]), 0.95)
    assert (low, high) == pytest.approx((1 - 1.959964 * 3 / 4, 1 + 1.959964 * 3 / 4), rel=1e-6)
    shown = Shown(np.zeros(4, int), np.zeros(4), np.full(4, 0.25), np.zeros((4, 1)))
    assert effective(np.array([1.0, 1.0, 0.0, 1.0]), shown) == pytest.approx(3)
    assert effective(np.zeros(4), shown) == 0
