"""What people try first, as reference strategies: `EpsilonGreedy` and `SeasonalMean`.

Each is a `Player`: it is made from the training part, of which it sees all rewards, as every
reference strategy does; then it plays by itself and sees only the reward of the arm it played. What
is not fixed, such as ε, is chosen on the training part. An arm of which no reward was ever seen
scores ∞, so it is tried first. The last value of each arm is a mean that forgets all others.

They play tables of all arms only. Of a log of one reward per decision they would have to learn from
rewards of arms that they did not choose, and ε could not be chosen without estimating that as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from driftbandit.identify.structured.periods import shown_periods
from driftbandit.io import logs
from driftbandit.replays.data import cell_means
from driftbandit.replays.tasks import training_means

BASELINES = ("last_value", "epsilon_greedy", "seasonal_mean")
EPSILONS = (0.02, 0.05, 0.1, 0.2)
FACTORS = (0.8, 0.95, 0.99, 1.0)
TRIES = 3  # plays of each pair of them, with other random numbers
WIDEST, LONGEST = 8, 5000  # arms and rounds in which a season is looked for: it takes a second


class Part(NamedTuple):
    """Rounds of a table."""

    rewards: np.ndarray  # T × k; NaN where an arm is not available
    times: np.ndarray  # T increasing whole numbers, the round of each row


def choices(player: Player, part: Part) -> np.ndarray:
    """The arm that a player chooses in each row; −1 where none is available.

    Example:
        >>> before, after = np.array([[3.0, 2.0]]), np.array([[1.0, 9.0], [0.0, 1.5], [5.0, 4.0]])
        >>> player = EpsilonGreedy(Part(before, np.array([0])), epsilon=0.0, factor=0.0)
        >>> choices(player, Part(after, np.array([1, 2, 3]))).tolist()
        [0, 1, 1]
    """
    arms = np.full(len(part.rewards), -1)
    available = np.isfinite(part.rewards)
    for row in np.flatnonzero(available.any(axis=1)):
        time, scores = int(part.times[row]), player.scores(int(part.times[row]))
        arm = arms[row] = int(np.where(available[row], scores, -np.inf).argmax())
        player.see(time, arm, float(part.rewards[row, arm]))
    return arms


class EpsilonGreedy:
    """The arm with the highest forgotten mean; with probability ε any available arm.

        m_a(t) = Σ_s γ^(t − s) X_a(s) / Σ_s γ^(t − s),   s < t the rounds in which a was seen

    With γ = 0 the mean is the last reward.

    Example:
        >>> before = Part(np.array([[0.0, 5.0], [4.0, np.nan]]), np.arange(2))
        >>> player = EpsilonGreedy(before, epsilon=0.0, factor=0.5)
        >>> player.scores(2).round(3)  # (0.5 · 0 + 4) / 1.5, and 5
        array([2.667, 5.   ])
        >>> EpsilonGreedy(before, epsilon=0.0, factor=0.0).scores(2)
        array([4., 5.])
    """

    def __init__(self, before: Part, epsilon: float, factor: float, seed: int = 0) -> None:
        self.epsilon, self.factor = epsilon, factor
        self.random = np.random.default_rng(seed)
        seen = np.isfinite(before.rewards)
        _, self.times = _last(before.rewards, before.times)
        # As of the arm's own last reward: the mean is the same, and no weight becomes 0 / 0.
        ages = np.maximum(self.times - before.times[:, None], 0)
        weights = np.where(seen, factor**ages, 0.0)
        self.weights = weights.sum(axis=0)
        sums = (weights * np.where(seen, before.rewards, 0.0)).sum(axis=0)
        unseen = self.weights == 0
        self.means = np.where(unseen, np.inf, sums / np.where(unseen, 1.0, self.weights))

    def scores(self, time: int) -> np.ndarray:
        """The means; with probability ε random numbers."""
        if self.random.random() < self.epsilon:
            return self.random.random(len(self.means))
        return self.means

    def see(self, time: int, arm: int, reward: float) -> None:
        """Forget as many rounds as passed, then average."""
        old = self.factor ** float(time - self.times[arm]) * self.weights[arm]
        mean = self.means[arm] if old else 0.0
        self.means[arm] = (old * mean + reward) / (old + 1.0)
        self.weights[arm], self.times[arm] = old + 1.0, time


def chosen_greed(before: Part) -> tuple[float, float]:
    """ε and γ of `EpsilonGreedy`: those that earn most in the second half of the training part.

    Means begin with the first half, of which all rewards are seen. The pairs are those of
    `EPSILONS` and `FACTORS`, each played `TRIES` times; the first of equal ones is chosen.

    Example:
        >>> best = np.tile(np.eye(2).repeat(20, axis=0), (4, 1))  # changes every 20 rounds
        >>> chosen_greed(Part(best, np.arange(160)))[1]
        0.8
    """
    known = np.isfinite(before.rewards).any(axis=1)
    before = Part(before.rewards[known], before.times[known])
    half = len(before.rewards) // 2
    first, second = (Part(*(x[part] for x in before)) for part in (np.s_[:half], np.s_[half:]))
    rows = np.arange(len(second.rewards))

    def earned(epsilon: float, factor: float) -> float:
        players = (EpsilonGreedy(first, epsilon, factor, seed) for seed in range(TRIES))
        return sum(float(second.rewards[rows, choices(who, second)].sum()) for who in players)

    pairs = [(epsilon, factor) for epsilon in EPSILONS for factor in FACTORS]
    return max(pairs, key=lambda pair: earned(*pair))


class SeasonalMean:
    """The arm with the highest mean in this phase of the season plus decayed last deviation.

        m_a(t mod p) + φ^(t − s) (X_a(s) − m_a(s mod p)),   s the round in which a was seen last

    m and φ come from the training part. p is 1, or a period of `shown_periods`.

    Example:
        >>> rewards = np.tile([[0.0, 1.0], [4.0, 1.0]], (3, 1))
        >>> player = SeasonalMean(Part(rewards, np.arange(6)), period=2)
        >>> choices(player, Part(rewards, np.arange(6, 12))).tolist()
        [1, 0, 1, 0, 1, 0]
    """

    def __init__(self, before: Part, period: int = 1) -> None:
        self.period = period
        self.means = phase_means(before, period)
        left = before.rewards - self.means[before.times % period]
        self.decay = learned_decay(Part(left, before.times))
        self.left, self.times = _last(left, before.times)

    def scores(self, time: int) -> np.ndarray:
        """Seasonal means plus decayed deviations."""
        unseen = np.isinf(self.left)
        left = np.where(unseen, 0.0, self.left) * self.decay ** (time - self.times)
        return np.where(unseen, np.inf, self.means[time % self.period] + left)

    def see(self, time: int, arm: int, reward: float) -> None:
        """Remember the deviation; means stay those of the training part."""
        self.left[arm] = reward - self.means[time % self.period, arm]
        self.times[arm] = time


Player = EpsilonGreedy | SeasonalMean


def season(before: Part) -> int:
    """The period of the training part's season, in rounds; 1 if none shows.

    The clearest of `shown_periods`, or the other one if that is a multiple of it. It is looked for
    in the arms with the most rewards, at most `WIDEST`, and in the latest `LONGEST` rounds.

    Example:
        >>> days, noise = np.arange(140), np.random.default_rng(0).normal(size=(140, 2))
        >>> season(Part(3.0 * np.sin(2 * np.pi * days / 7)[:, None] + noise, days))
        7
    """
    rewards, times = (part[-LONGEST:] for part in before)
    most = np.argsort(-np.isfinite(rewards).sum(axis=0), kind="stable")[:WIDEST]
    rows, arms = np.nonzero(np.isfinite(rewards[:, most]))
    if not rows.size:
        return 1
    plays = logs.Sequence(times[rows] - times[0], arms, rewards[:, most][rows, arms])
    periods = shown_periods(logs.Log((plays,), tuple(range(len(most)))))
    return int(max((period for period in periods if period % periods[0] == 0), default=1))


def phase_means(before: Part, period: int) -> np.ndarray:
    """Mean rewards, p × k; where a phase has none, the arm's mean, or else that of all rewards.

    Example:
        >>> phase_means(Part(np.array([[1.0, 7.0], [3.0, np.nan], [5.0, 9.0]]), np.arange(3)), 2)
        array([[3., 8.], [3., 8.]])
    """
    overall = training_means(before.rewards, float(np.nanmean(before.rewards)))
    rows, arms = np.nonzero(np.isfinite(before.rewards))
    phases, shown = before.times[rows] % period, before.rewards[rows, arms]
    means = cell_means(period, len(overall), phases, arms, shown)
    return np.where(np.isnan(means), overall, means)


def learned_decay(left: Part) -> float:
    """φ in [0, 1] with the least squares of L(t) − φ^(t − s) L(s), s the arm's round before t.

    φ is one of 101 numbers, which are closest together near one; if rounds are far apart, they are
    those of φ^g instead, g the median of t − s.

    Example:
        >>> learned_decay(Part(8 * 0.51 ** np.arange(5)[:, None], np.arange(5)))
        0.51
    """
    pairs = []  # of each arm: consecutive values and the rounds between them
    for values in left.rewards.T:
        rows = np.flatnonzero(np.isfinite(values))
        pairs.append([values[rows[:-1]], values[rows[1:]], np.diff(left.times[rows])])
    before, after, gap = np.concatenate(pairs, axis=1)
    if not gap.size:
        return 0.0
    typical = float(np.median(gap))
    grid = 1 - np.linspace(1, 0, 101) ** 2
    wrong = [((after - step ** (gap / typical) * before) ** 2).sum() for step in grid]
    return float(grid[int(np.argmin(wrong))] ** (1 / typical))


def _last(rewards: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last known reward of each arm and its round; ∞ and the first round if it has none."""
    seen = np.isfinite(rewards)
    rows = np.where(seen, np.arange(len(rewards))[:, None], 0).max(axis=0)
    values = np.where(seen.any(axis=0), rewards[rows, np.arange(rewards.shape[1])], np.inf)
    return values, times[rows]


def players(before: Part, runs: int, seed: int) -> Mapping[str, tuple[Sequence[Player], str]]:
    """The players of every baseline, one per run, and what it chose on the training part, in words.

    `EpsilonGreedy` plays ``runs`` times; the others draw no random numbers.

    Example:
        >>> rewards = np.random.default_rng(0).normal([0.0, 1.0], size=(20, 2))
        >>> list(players(Part(rewards, np.arange(20)), runs=2, seed=0))
        ['last_value', 'epsilon_greedy', 'seasonal_mean']
    """
    greed, period = chosen_greed(before), season(before)
    greedy = [EpsilonGreedy(before, *greed, seed + run) for run in range(runs)]
    seasonal = SeasonalMean(before, period)
    phases = f"a season of {period} rounds" if period > 1 else "no season"
    return {
        "last_value": ([EpsilonGreedy(before, 0.0, 0.0)], ""),
        "epsilon_greedy": (greedy, "ε = {:g}, γ = {:g}".format(*greed)),
        "seasonal_mean": ([seasonal], f"{phases}, φ = {seasonal.decay:.3g}"),
    }
