"""Logs of four independent arms whose truth may leave the model."""

import numpy as np

from driftbandit import LGDS, System

ARMS, MEMORY, NOISE = 4, 0.98, 0.5
NAMES = tuple("abcd")
MODEL = LGDS(MEMORY * np.eye(ARMS), (1 - MEMORY**2) * np.eye(ARMS), NOISE)
SYSTEM = System(MODEL, np.eye(ARMS), NAMES)


def played(seed, rounds=400, *, speed=1.0, jump=0.0, season=0.0, tails=False, plays=1):
    """Columns of a log of random play; the first arm jumps half-way."""
    rng = np.random.default_rng(seed)
    level, rows = rng.standard_normal(ARMS), []
    for t in range(rounds):
        for arm in rng.permutation(ARMS)[:plays]:
            error = rng.standard_t(3) / np.sqrt(3) if tails else rng.standard_normal()
            mean = level[arm] + season * np.sin(2 * np.pi * t / 12)
            mean += jump * (arm == 0 and t >= rounds // 2)
            rows.append((t, NAMES[arm], mean + NOISE * error))
        moves = np.sqrt(speed * (1 - MEMORY**2))
        level = MEMORY * level + moves * rng.standard_normal(ARMS)
    return dict(zip(("round", "arm", "reward"), zip(*rows, strict=True), strict=True))
