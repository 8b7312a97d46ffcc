"""The engine's own random numbers, replayed one run at a time for the textbook loops."""

import jax
import numpy as np

from driftbandit.model import factor
from driftbandit.simulation import draws


def _key(role, seed, stream, system, run):
    return draws.run_key(draws.role_key(seed, stream, role), system, run)


def states_and_rewards(model, arms, rounds, *, seed=0, stream="", system=0, run=0):
    """z(t), n × d, and the reward every arm would pay, n × k."""
    d, k = model.states, len(arms)
    with jax.enable_x64(True):
        t = np.arange(rounds)[:, None]

        def normal(role, round_, size):
            key = _key(role, seed, stream, system, run)
            return np.asarray(draws.normal(key, round_, np.arange(size), np.float64))

        start = normal(draws.START, np.zeros(1), d)
        shocks = normal(draws.PROCESS, t, d)
        noise = normal(draws.REWARD, t, k)
    z = model.start_mean() + factor(model.start_cov()) @ start
    states = np.empty((rounds, d))
    for n in range(rounds):
        states[n] = z
        z = model.transition @ z + factor(model.process_cov) @ shocks[n]
    return states, states @ arms.T + model.reward_std * noise


def uniforms(policy, rounds, *, seed=0, stream="", system=0, run=0):
    """The uniform numbers a randomized policy is handed, one per round."""
    with jax.enable_x64(True):
        key = _key(f"policy:{policy}", seed, stream, system, run)
        return np.asarray(draws.uniform(key, np.arange(rounds), 0, np.float64))
