"""Predictions of the learned model, and its coordinates."""

import numpy as np
import pytest

from driftbandit.replays import tasks


def test_predictability_is_what_it_says():
    rng = np.random.default_rng(0)
    rewards, predicted = rng.normal(size=(2, 50, 3))
    means = np.array([0.1, 0.2, 0.3])
    found = tasks.predictability(predicted, rewards, means)
    whole = ((rewards - means) ** 2).sum()
    assert found.rewards == pytest.approx(1 - ((rewards - predicted) ** 2).sum() / whole)

    def apart(table):
        return table - table.mean(axis=1, keepdims=True)

    ratio = (apart(rewards - predicted) ** 2).sum() / (apart(rewards - means) ** 2).sum()
    assert found.differences == pytest.approx(1 - ratio)
    rewards[np.arange(3) != rng.integers(3, size=50)[:, None]] = np.nan
    assert tasks.predictability(rewards, rewards, means) == (1.0, None)
