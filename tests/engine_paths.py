"""The engine's own random numbers, replayed one run at a time for the textbook loops."""

import jax
import numpy as np

import driftbandit as db
from driftbandit.model import factor
from driftbandit.simulation import draws

# Compiled: operation by operation the first draws of each shape take seconds.
run_key = jax.jit(draws.run_key)
normals = jax.jit(draws.normal, static_argnums=3)
uniform = jax.jit(draws.uniform, static_argnums=3)


def _key(role, seed, stream, system, run):
    return run_key(draws.role_key(seed, stream, role), system, run)


def states_and_rewards(model, arms, rounds, *, seed=0, stream="", system=0, run=0):
    """z(t), n × d, and the reward every arm would pay, n × k."""
    d, k = model.n_states, len(arms)
    with jax.enable_x64(True):
        t = np.arange(rounds)[:, None]

        def normal(role, round_, size):
            key = _key(role, seed, stream, system, run)
            return np.asarray(normals(key, round_, np.arange(size), np.float64))

        start = normal(draws.START, np.zeros(1), d)
        shocks = normal(draws.PROCESS, t, d)
        noise = normal(draws.REWARD, t, k)
    z = model.start_mean() + factor(model.start_cov()) @ start
    states = np.empty((rounds, d))
    for n in range(rounds):
        states[n] = z
        z = model.transition @ z + factor(model.process_cov) @ shocks[n]
    return states, states @ arms.T + model.reward_std * noise


def noises(policy, rounds, states=None, *, seed=0, stream="", system=0, run=0):
    """The random numbers a policy is handed: one uniform a round, or a normal for every state."""
    with jax.enable_x64(True):
        key = _key(f"policy:{policy}", seed, stream, system, run)
        known = policy in db.policies.available() and db.policies.make(policy).noise
        if known and known.distribution == "normal":
            rows = np.arange(rounds)[:, None]
            return np.asarray(normals(key, rows, np.arange(states), np.float64))
        return np.asarray(uniform(key, np.arange(rounds), 0, np.float64))
