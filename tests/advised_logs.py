"""Logs to advise on: two or three arms, with or without drift, a season, and chances."""

import contextlib
from unittest import mock

import numpy as np

from driftbandit.identify.structured import selection


@contextlib.contextmanager
def few_structures():
    """Compare only three structures, so that little is compiled."""
    extras = [selection.parse("level(shared)")]
    few = {"BASES": ("constant(arm)", "level(arm)"), "_extras": lambda *_: extras}
    with mock.patch.multiple(selection, **few, _factors=lambda *_: []):
        yield


def log(
    rounds=240,
    arms=("left", "right"),
    drift=0.0,
    season=0.0,
    noise=0.3,
    chances=True,
    full=False,
    seed=0,
):
    """Columns of a log whose arms are drawn uniformly; seasons of neighbors have opposite signs."""
    rng = np.random.default_rng(seed)
    k = len(arms)
    levels = np.linspace(0.0, 0.3, k) + drift * rng.standard_normal((rounds, k)).cumsum(axis=0)
    waves = np.sin(2 * np.pi * np.arange(rounds) / 7)[:, None] * (-1.0) ** np.arange(k)
    paid = levels + season * waves + noise * rng.standard_normal((rounds, k))
    if full:
        rows, played = np.divmod(np.arange(rounds * k), k)
        return {"round": rows, "arm": [arms[a] for a in played], "reward": paid.ravel()}
    played = rng.integers(k, size=rounds)
    found = {"round": np.arange(rounds), "arm": [arms[a] for a in played]}
    found["reward"] = paid[np.arange(rounds), played]
    return found | ({"chance": np.full(rounds, 1 / k)} if chances else {})
