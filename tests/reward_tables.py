"""Rewards of arms that drift, as tables to replay."""

import numpy as np

NAN = float("nan")
FAST = {"n_states": 1, "starts": 1, "iterations": 20, "runs": 2}


def drifting(rounds=80, seed=0, gaps=0.0):
    """Rewards of four arms that read three slow states; few lengths, so that little compiles."""
    rng = np.random.default_rng(seed)
    state, reads = np.zeros(3), rng.normal(size=(4, 3))
    rewards = np.empty((rounds, 4))
    for t in range(rounds):
        state = 0.97 * state + 0.25 * rng.normal(size=3)
        rewards[t] = reads @ state + 0.3 * rng.normal(size=4) + 5
    rewards[rng.random((rounds, 4)) < gaps] = NAN
    return rewards


def logged_rewards():
    """One arm is shown in every round but one."""
    rewards = drifting(seed=1)
    shown = np.random.default_rng(2).integers(4, size=80)
    rewards[np.arange(4) != shown[:, None]] = NAN
    rewards[17] = NAN  # a round whose reward got lost
    return rewards
