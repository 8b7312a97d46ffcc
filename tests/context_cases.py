"""A shop whose arms read a price and the weather, and rounds of its contexts."""

import numpy as np

import driftbandit as db
import naive
from systems import random_system

FEATURES = ("x_price", "x_rain")
NAMES = ("a", "b", "c", "d")


def shop(reward_std=0.5, d=3, seed=1):
    """Four named arms, three states, two features; the last arm reads nothing without a context."""
    model, arms = random_system(seed, d, k=4, reward_std=reward_std)
    rng = np.random.default_rng([seed, 7])
    read_outs = rng.standard_normal((2, *arms.shape))
    arms = arms.copy()
    arms[3] = 0.0
    return db.System(model, arms, NAMES, dict(zip(FEATURES, read_outs, strict=True)))


def features(rounds, per_arm=True, seed=0):
    """Contexts of every round, rounds × 4 × 2 or rounds × 2."""
    rng = np.random.default_rng([seed, 8])
    return rng.standard_normal((rounds, 4, 2) if per_arm else (rounds, 2))


def context(x):
    """The context of one round, k × J or J numbers, as an agent takes it."""
    return {name: x[..., place] for place, name in enumerate(FEATURES)}


def drawn(system, rounds, seed=0):
    """States, n × d, and the noise of every arm, n × k, of one run."""
    rng, model = np.random.default_rng([seed, 9]), system.model
    z = rng.multivariate_normal(model.start_mean(), model.start_cov())
    states = np.empty((rounds, len(z)))
    for t in range(rounds):
        states[t] = z
        z = rng.multivariate_normal(model.transition @ z, model.process_cov)
    return states, model.reward_std * rng.standard_normal((rounds, 4))


def textbook(name, system, x, states, noise, uniforms=None, assumed=None):
    """What a policy plays in one run, the rewards of all arms, and the regret after each round."""
    rows = naive.rows_in_contexts(system.arms, list(system.contexts.values()), x)
    values = np.einsum("tkd,td->tk", rows, states)
    known = assumed or system
    believed = naive.rows_in_contexts(known.arms, list(known.contexts.values()), x)
    law = known.model
    arrays = law.transition, law.process_cov, float(law.reward_std), law.initial_cov
    played = naive.play_in_contexts(name, arrays, believed, values + noise, uniforms)
    regret = np.cumsum(values.max(axis=1) - values[range(len(x)), played])
    return played, values + noise, regret
