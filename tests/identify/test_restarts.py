"""Where EM starts: moments of the rewards."""

import itertools

import numpy as np

from driftbandit.identify import Log, Sequence, restarts
from driftbandit.identify.data import data_of
from random_logs import sparse_log
from systems import assert_close


def test_moments_are_means_over_pairs_of_plays():
    log = sparse_log()
    data, offsets = data_of(log), np.array([0.1, -0.2, 0.3])
    sums, pairs = np.zeros((2, restarts.LAGS, 3, 3))
    for one in log.sequences:
        left = one.rewards - offsets[one.arms]
        for i, j in itertools.product(range(len(left)), repeat=2):
            lag = int(one.rounds[i] - one.rounds[j])
            if 1 <= lag <= restarts.LAGS:
                sums[lag - 1, one.arms[i], one.arms[j]] += left[i] * left[j]
                pairs[lag - 1, one.arms[i], one.arms[j]] += 1
    assert_close(restarts.moments_of(data, offsets), sums / np.maximum(pairs, 1), 1e-12)


def test_moments_of_many_plays_in_a_round_are_little_work():
    """A loop over pairs of slots would take 400 million steps of NumPy here."""
    rng = np.random.default_rng(0)
    plays, rounds = 20_000, np.repeat([0, 1], 20_000)
    one = Sequence(rounds, rng.integers(3, size=2 * plays), rng.standard_normal(2 * plays))
    found = restarts.moments_of(data_of(Log((one,), ("a", "b", "c"))), np.zeros(3))
    chosen = [one.rewards[(rounds == t) & (one.arms == 1)] for t in (0, 1)]
    assert_close(found[0, 1, 1], chosen[0].mean() * chosen[1].mean(), 1e-12)
