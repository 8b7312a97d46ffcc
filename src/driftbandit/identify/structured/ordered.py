"""Whether rewards come in an order that chance would hardly give: the test for drift.

If nothing drifts, the rewards of an arm, less their mean, their season and what context features
explain, may stand in any order. So their order is drawn anew many times (permutation test). It
needs no assumption on how rewards are distributed: it holds for clicks, counts and heavy tails.
Where most rounds have the same arms, whole rounds are exchanged, so a shock that hits all arms of a
round is none of drift; elsewhere the rewards of an arm.

An arm that drifts has rewards that resemble those shortly before, and if arms drift together, those
of other arms do. With a memory of m rounds, the residuals e before round t, faded, are

    f_a(t) = Σ e(s) e^(−(t − s)/m)     over plays s of arm a in earlier rounds,
    c_t = Σ e(p) f_a(p)(t)     over the plays p of round t,     Z = Σ c_t / √Σ c_t²,

and the same with Σ_a f_a in place of f_a(p). Z is about standard normal if nothing drifts, also if
arms were chosen by what they had paid: the c_t are martingale differences. What counts is the
largest of all Z, each in units of its spread over the drawn orders.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftbandit.identify.data import ROUNDING
from driftbandit.io.logs import Log

MEMORIES = (3, 10, 30, 100, 300, 1000)  # rounds
ORDERS = 199  # that are drawn
SAME = 2  # rounds with the same arms that are exchanged
ENOUGH = 10  # rewards for each column of a regression
TINY = 1e-300


def p_value(log: Log, periods: Sequence[float] = (), seed: int = 0) -> float | None:
    """The chance of an order at least as telling, if nothing drifts (p-value).

    Args:
        log: what was played, and what it paid.
        periods: of its seasons, in rounds.
        seed: of the orders that are drawn.

    Returns:
        A number from 1/200 to 1; None, if no arm has two different rewards.

    Example:
        >>> from driftbandit.identify import as_log
        >>> rng, t = np.random.default_rng(0), np.arange(200)
        >>> log = {"round": t, "arm": rng.integers(2, size=200), "reward": rng.normal(size=200)}
        >>> moving = log | {"reward": np.sin(t / 20) + rng.normal(size=200)}
        >>> p_value(as_log(log)) > 0.05, p_value(as_log(moving))
        (True, 0.005)
    """
    rounds, arms, rewards, sequences, features = _columns(log)
    waves = [_waves(rounds, period, len(rounds)) for period in periods]
    errors = _residuals(rewards, arms, np.hstack([features, *waves]))
    if not errors.any():
        return None
    new = (np.diff(rounds, prepend=-1) != 0) | (np.diff(sequences, prepend=-1) != 0)
    begins = np.flatnonzero(new)
    orders = _orders(arms, begins, np.random.default_rng(seed))
    scores = _scores(errors[orders].T, rounds, arms, sequences, begins)
    spread = scores[1:].std(axis=0)
    units = np.where(spread > 0, spread, np.inf)
    largest = ((scores - scores[1:].mean(axis=0)) / units).max(axis=1)
    return float((largest >= largest[0]).mean())


def _columns(log: Log) -> tuple[np.ndarray, ...]:
    """Rounds, arms, rewards, sequences and features of the rewards that were observed."""
    each = [[one.rounds, one.arms, one.rewards] for one in log.sequences]
    rounds, arms, rewards = map(np.concatenate, zip(*each, strict=True))
    sequences = np.repeat(np.arange(len(each)), [len(one) for one in log.sequences])
    features = np.zeros((len(rounds), 0))
    if log.feature_names:
        features = np.concatenate([np.asarray(one.features) for one in log.sequences])
    seen = ~np.isnan(rewards)
    return rounds[seen], arms[seen], rewards[seen], sequences[seen], features[seen]


def _waves(rounds: np.ndarray, period: float, rewards: int) -> np.ndarray:
    """All waves of a season, or as many as the rewards can show."""
    count = max(1, min(int(period / 2), rewards // (2 * ENOUGH)))
    angles = np.outer(rounds, 2 * np.pi * np.arange(1, count + 1) / period)
    return np.hstack([np.cos(angles), np.sin(angles)])


def _residuals(rewards: np.ndarray, arms: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Rewards less the arm's mean and what columns explain, in units of the arm's spread.

    Columns are regressed on for all arms together, then for each arm that has enough rewards.
    """
    places = [np.flatnonzero(arms == arm) for arm in np.unique(arms)]
    errors = rewards.astype(float)

    def explain(rows: np.ndarray, design: np.ndarray) -> None:
        errors[rows] -= design @ np.linalg.lstsq(design, errors[rows], rcond=None)[0]

    for own in places:
        explain(own, np.ones((len(own), 1)))
    if columns.shape[1]:
        explain(np.arange(len(arms)), columns - columns.mean(axis=0))
        for own in places:
            if len(own) >= ENOUGH * columns.shape[1]:
                explain(own, np.hstack([np.ones((len(own), 1)), columns[own]]))
    for own in places:
        apart = errors[own] - errors[own].mean()
        spread = float(np.sqrt((apart**2).mean()))
        real = spread > ROUNDING * float(np.abs(rewards[own]).max())
        errors[own] = apart / spread if real else 0.0
    return errors


def _orders(arms: np.ndarray, begins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Orders of n rewards, the first of them as they are; the others exchange rounds, or plays."""
    n = len(arms)
    ends = np.append(begins[1:], n)
    groups: dict[tuple[int, ...], list[np.ndarray]] = {}
    for begin, end in zip(begins, ends, strict=True):
        places = begin + np.argsort(arms[begin:end], kind="stable")
        groups.setdefault(tuple(arms[places].tolist()), []).append(places)
    blocks = [np.stack(rounds) for rounds in groups.values() if len(rounds) >= SAME]
    if 2 * sum(block.size for block in blocks) < n:
        blocks = [np.flatnonzero(arms == arm)[:, None] for arm in np.unique(arms)]
    orders = np.tile(np.arange(n), (ORDERS + 1, 1))
    for block in blocks:
        rows = np.tile(np.arange(len(block)), (ORDERS, 1))
        orders[1:, block.ravel()] = block[rng.permuted(rows, axis=1)].reshape(ORDERS, -1)
    return orders


def _scores(
    errors: np.ndarray,
    rounds: np.ndarray,
    arms: np.ndarray,
    sequences: np.ndarray,
    begins: np.ndarray,
) -> np.ndarray:
    """Z of an arm's own rewards and of all arms', by memory, for each column of n errors."""
    rates = -1 / np.array(MEMORIES, float)[:, None]
    shape = len(MEMORIES), errors.shape[1]
    own, last = np.zeros((int(arms.max()) + 1, *shape)), np.zeros(int(arms.max()) + 1)
    shared, sums, squares = np.zeros(shape), np.zeros((2, *shape)), np.zeros((2, *shape))
    now, sequence = rounds[0], -1
    for begin, end in zip(begins, np.append(begins[1:], len(rounds)), strict=True):
        plays = range(begin, end)
        if sequences[begin] != sequence:
            own[:], shared[:], sequence = 0.0, 0.0, sequences[begin]
        else:
            shared *= np.exp(rates * (rounds[begin] - now))
        now, terms = rounds[begin], np.zeros((2, *shape))
        for play in plays:
            arm = arms[play]
            own[arm] *= np.exp(rates * max(now - last[arm], 0))
            last[arm] = now
            terms[0] += errors[play] * own[arm]
            terms[1] += errors[play] * shared
        for play in plays:
            own[arms[play]] += errors[play]
            shared += errors[play]
        sums += terms
        squares += terms**2
    return (sums / np.sqrt(squares + TINY)).reshape(-1, shape[1]).T
