"""What people try first, against slow loops written down from the formulas."""

import math

import numpy as np
import pytest

from driftbandit.policies import REGISTRY, make
from driftbandit.replays import Table, baselines, replay, report
from driftbandit.replays.baselines import EpsilonGreedy, Part, SeasonalMean, choices
from reward_tables import FAST, NAN, drifting


def tables(seed):
    """Both parts of a table: arms and rounds are missing, time has gaps, an arm comes late."""
    rng = np.random.default_rng(seed)
    rewards = drifting(70, seed, gaps=0.2 * (seed % 3))
    times = np.cumsum(rng.integers(1, 4, size=70)) if seed % 2 else np.arange(70)
    rewards[rng.integers(70, size=4)] = NAN
    if seed % 4 == 3:
        rewards[:40, 2] = NAN
    return Part(rewards[:35], times[:35]), Part(rewards[35:], times[35:])


def known(part):
    """(round, arm, reward) of everything that a part shows."""
    for time, row in zip(part.times.tolist(), part.rewards.tolist(), strict=True):
        for arm, reward in enumerate(row):
            if not math.isnan(reward):
                yield time, arm, reward


def slow(before, after, score):
    """Play the arm with the highest score of all that was seen of it; what is seen is a list."""
    seen, played = list(known(before)), []
    for time, row in zip(after.times.tolist(), after.rewards.tolist(), strict=True):
        best, highest = -1, -math.inf
        for arm, reward in enumerate(row):
            if math.isnan(reward):
                continue
            own = [(s, x) for s, who, x in seen if who == arm]
            value = score(time, arm, own) if own else math.inf
            if value > highest:
                best, highest = arm, value
        played.append(best)
        if best >= 0:
            seen.append((time, best, row[best]))
    return played


def mean(values):
    return sum(values) / len(values)


def seasonal_score(before, period, decay):
    """m_a(t mod p) + φ^(t − s) (X_a(s) − m_a(s mod p))."""
    data = list(known(before))

    def middle(time, arm):
        own = [(s, x) for s, who, x in data if who == arm] or [(s, x) for s, _, x in data]
        of_arm = any(who == arm for _, who, _ in data)
        phase = [x for s, x in own if s % period == time % period] if of_arm else []
        return mean(phase or [x for _, x in own])

    def score(time, arm, own):
        last, reward = own[-1]
        return middle(time, arm) + decay ** (time - last) * (reward - middle(last, arm))

    return score, middle


@pytest.mark.parametrize("seed", range(12))
def test_last_value(seed):
    before, after = tables(seed)
    own = slow(before, after, lambda time, arm, seen: seen[-1][1])
    assert choices(EpsilonGreedy(before, 0.0, 0.0), after).tolist() == own


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("factor", [0.8, 1.0])
def test_forgotten_means(seed, factor):
    before, after = tables(seed)

    def score(time, arm, seen):
        weights = [factor ** (time - s) for s, _ in seen]
        return sum(w * x for w, (_, x) in zip(weights, seen, strict=True)) / sum(weights)

    own = slow(before, after, score)
    assert choices(EpsilonGreedy(before, 0.0, factor), after).tolist() == own


def test_forgetting_over_years_of_seconds_keeps_the_last_value():
    """γ^(t − s) is zero in floating point, and so was the sum of all weights."""
    part = Part(np.array([[1.0, 5.0], [2.0, NAN], [NAN, 4.0]]), np.array([0, 10**7, 10**8]))
    player = EpsilonGreedy(part, 0.0, 0.8)
    assert player.scores(10**9).tolist() == [2.0, 4.0]
    player.see(10**9, 0, -1.0)
    assert player.scores(10**9 + 1).tolist() == [-1.0, 4.0]


def test_a_random_arm_as_often_as_epsilon_says():
    """Arm 0 pays most; any arm is drawn in ε of the rounds, and only an available one."""
    rewards = np.tile([9.0, 1.0, 1.0, 1.0], (20_000, 1))
    rewards[::2, 3] = NAN
    part = Part(rewards, np.arange(20_000))
    arms = choices(EpsilonGreedy(part, 0.2, 1.0, seed=1), part)
    assert (arms[::2] != 3).all()
    even, odd = (arms[start::2] != 0 for start in (0, 1))
    assert even.mean() == pytest.approx(0.2 * 2 / 3, abs=0.015)  # five standard errors
    assert odd.mean() == pytest.approx(0.2 * 3 / 4, abs=0.015)


@pytest.mark.parametrize("seed", range(4))
def test_greed_is_chosen_on_the_training_part(seed):
    """Every pair plays the second half of it, with three random numbers."""
    before, _ = tables(seed)
    seen = np.isfinite(before.rewards).any(axis=1)
    rewards, times = before.rewards[seen], before.times[seen]
    half = len(rewards) // 2
    first, second = Part(rewards[:half], times[:half]), Part(rewards[half:], times[half:])
    best, highest = None, -math.inf
    for epsilon in baselines.EPSILONS:
        for factor in baselines.FACTORS:
            total = 0.0
            for number in range(3):
                arms = choices(EpsilonGreedy(first, epsilon, factor, number), second)
                total += sum(second.rewards[t, arm] for t, arm in enumerate(arms))
            if total > highest:
                best, highest = (epsilon, factor), total
    assert baselines.chosen_greed(before) == best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("period", [1, 7])
def test_seasonal_means(seed, period):
    before, after = tables(seed)
    player = SeasonalMean(before, period)
    score, middle = seasonal_score(before, period, player.decay)
    for time in range(period):
        for arm in range(4):
            assert player.means[time, arm] == pytest.approx(middle(time, arm))
    assert choices(player, after).tolist() == slow(before, after, score)


@pytest.mark.parametrize("seed", range(6))
def test_the_decay_has_the_least_squares(seed):
    """Of a fine grid; gaps count."""
    before, _ = tables(seed)
    left = Part(before.rewards - np.nanmean(before.rewards), before.times)
    last, pairs = {}, []
    for time, arm, value in known(left):
        if arm in last:
            pairs.append((*last[arm], time, value))
        last[arm] = time, value

    def wrong(decay):
        return sum((x - decay ** (t - s) * y) ** 2 for s, y, t, x in pairs)

    best = min(wrong(decay) for decay in np.linspace(0, 1, 1001))
    assert wrong(baselines.learned_decay(left)) <= 1.001 * best


def test_a_decay_over_thousands_of_rounds():
    """Seconds as rounds: φ is close to one, and the deviation is half gone after a day."""
    rng = np.random.default_rng(0)
    values = np.zeros((4000, 1))
    for t in range(1, 4000):
        values[t] = 0.5 * values[t - 1] + rng.normal()
    decay = baselines.learned_decay(Part(values, 86_400 * np.arange(4000)))
    assert decay**86_400 == pytest.approx(0.5, abs=0.05)
    assert baselines.learned_decay(Part(np.array([[1.0, NAN], [NAN, 1.0]]), np.arange(2))) == 0


def test_seasons():
    """The longer period if it is a multiple of the clearest; none in noise or in a short table."""
    rng, hours = np.random.default_rng(0), np.arange(1000)
    noise = rng.normal(size=(1000, 3))
    day = 3 * np.sin(2 * np.pi * hours / 24)[:, None]
    week = 3 * np.sin(2 * np.pi * hours / 84)[:, None]
    for rewards, period in ((noise + day, 24), (noise + day + week, 168), (noise, 1)):
        assert baselines.season(Part(rewards, hours)) == period
    assert baselines.season(Part((noise + day)[:27], hours[:27])) == 1


def test_the_test_part_is_seen_only_where_it_was_played():
    """Rewards of arms that a baseline did not play may be anything lower: it never knows."""
    before, after = tables(2)
    for player in (
        lambda: EpsilonGreedy(before, 0.0, 0.0),
        lambda: EpsilonGreedy(before, 0.2, 0.95, seed=3),
        lambda: SeasonalMean(before, 7),
    ):
        arms = choices(player(), after)
        other = np.arange(4) != arms[:, None]
        changed = np.where(other, after.rewards + np.random.default_rng(0).normal(size=(35, 4)), 0)
        changed = Part(np.where(other, changed, after.rewards), after.times)
        assert choices(player(), changed).tolist() == arms.tolist()


def test_rows_of_a_replay():
    rewards = drifting(seed=4, gaps=0.15)
    rewards[70] = NAN
    result = replay(rewards, ["ucb"], **FAST)
    before, after = Part(rewards[:40], np.arange(40)), Part(rewards[40:], np.arange(40, 80))
    rows = [row for row in result.rows() if row.label in baselines.BASELINES]
    assert len(rows) == 3
    assert {(row.kind, row.arm, row.counted) for row in rows} == {("reference", None, 39)}
    kept = np.arange(40) != 30
    arms = choices(EpsilonGreedy(before, 0.0, 0.0), after)[kept]
    np.testing.assert_array_equal(
        result.references["last_value"].earned, after.rewards[kept][np.arange(39), arms]
    )
    pair = baselines.chosen_greed(before)
    runs = [choices(EpsilonGreedy(before, *pair, seed), after)[kept] for seed in range(2)]
    paid = [after.rewards[kept][np.arange(39), arms] for arms in runs]
    np.testing.assert_array_equal(
        result.references["epsilon_greedy"].earned, (paid[0] + paid[1]) / 2
    )
    assert result.references["epsilon_greedy"].setting == f"ε = {pair[0]:g}, γ = {pair[1]:g}"
    said = " ".join(report.explanation(result))
    assert f"or a random one (ε = {pair[0]:g}, γ = {pair[1]:g})" in said
    assert "plus last deviation (no season, φ = " in said
    against = replay(rewards, ["ucb"], baseline="last_value", **FAST)
    assert against.baseline == "last_value"


def test_a_policy_of_the_same_name_takes_its_place():
    assert not {*baselines.BASELINES} & {*REGISTRY}
    own = make("ucb")
    own = type(own)(**vars(own) | {"name": "epsilon_greedy"})
    result = replay(Table(drifting()), [own, "kode"], **FAST)
    assert set(result.played) == {"epsilon_greedy", "kode"}
    assert {"last_value", "seasonal_mean"} < set(result.references)
    assert "epsilon_greedy" not in result.references
    row = next(row for row in result.rows() if row.label == "epsilon_greedy")
    assert row.kind == "policy"
