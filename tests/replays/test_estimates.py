"""Estimates from logs of one reward per round: their expectation and variance, exactly.

Every log that a rule can draw from given rewards is listed with its probability. So expectations
are sums, and nothing is left to chance.
"""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit.replays.estimates import (
    Shown,
    earned,
    effective,
    interval,
    shares,
    tolerance,
    variances,
)

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
    reach = scipy.stats.t.ppf(0.975, 2 * 9**2 / (4**2 + 5**2)) * 3 / 4
    assert (low, high) == pytest.approx((1 - reach, 1 + reach), rel=1e-6)
    assert interval(2.0, np.zeros(3), 0.95) == (2.0, 2.0)
    shown = Shown(np.zeros(4, int), np.zeros(4), np.full(4, 0.25), np.zeros((4, 1)))
    assert effective(np.array([1.0, 1.0, 0.0, 1.0]), shown) == pytest.approx(3)
    assert effective(np.zeros(4), shown) == 0


def test_intervals_cover_if_few_rounds_carry_the_variance():
    """Clicks of 5% with chance 0.05: about 12 of 4800 rounds. The normal interval covers 90.7%."""
    rng, covered, logs = np.random.default_rng(0), 0, 1500
    for _ in range(logs):
        clicks, drawn = rng.random(4800) < 0.05, rng.random(4800) < 0.05
        shown = Shown(1 - drawn, clicks.astype(float), np.full(4800, 0.05), np.full((4800, 2), 0.1))
        counted = drawn.astype(float)
        weights = counted / shown.chances
        mean = 0.1 + float((weights * (clicks - 0.1)).mean())
        low, high = interval(mean, variances(counted, shown), 0.95)
        covered += low <= clicks.mean() <= high
    assert covered / logs > 0.93


def test_tolerance_by_hand():
    """Two rounds with chance 1/3, so that 1/p − 1 = 2, and errors of 3 and −1: g = 6 and −2.

    A mean of 3 is a sum of 6. With Γ it is 6 − 6 (1 − 1/Γ) − 2 (Γ − 1) = 0: Γ² − Γ − 3 = 0.
    """
    factor = tolerance(3.0, np.array([6.0, -2.0]))
    assert factor == pytest.approx((1 + np.sqrt(13)) / 2)
    weights = np.array([1 + 2 / factor, 1 + 2 * factor])
    predictions = 6 - (3 * 3 - 3 * 1)  # of both rounds
    assert predictions + weights @ [3, -1] == pytest.approx(0, abs=1e-12)
    assert tolerance(1.0, np.array([4.0, 0.0])) == pytest.approx(2.0)  # 2 = 4 (1 − 1/Γ)
    assert tolerance(1.0, np.array([1.0, 0.0])) == np.inf
    assert tolerance(1.0, np.array([0.0, -1.0])) == pytest.approx(3.0)  # 2 = Γ − 1


@settings(deadline=None)
@given(st.integers(0, 2**32), st.floats(0.001, 2.0))
def test_no_chances_within_the_tolerance_undo_a_gain(seed, gain):
    rng = np.random.default_rng(seed)
    pulls = rng.normal(size=20)
    factor = tolerance(gain, pulls)
    assert factor > 1
    worst = min(factor, 1e9)
    share = np.where(pulls > 0, 1 / worst, worst)
    slack = 1e-9 * worst
    if np.isfinite(factor):
        assert 20 * gain - ((1 - share) * pulls).sum() == pytest.approx(0, abs=slack + 1e-9)
    other = worst ** rng.uniform(-1, 1, size=20)
    assert 20 * gain - ((1 - other) * pulls).sum() >= -slack - 1e-9
