"""The published examples of policies that forget."""

import math

import numpy as np

import driftbandit as db
from driftbandit.policies import Problem, make
from driftbandit.simulation import Options
from systems import still

FORGETTING = (
    *("discounted_linucb", "sliding_window_linucb"),
    *("weighted_linucb", "restarted_linucb"),
)


EYE = np.eye(2)


RUSSAC = {"delta": 0.01, "ridge": 0.1, "bound": 1.0}
"""δ, λ and S in the experiments of Russac, Vernade and Cappé (2019)."""


def circle(count):
    angles = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def tuned(name, rounds, variation, d=2):
    """The published memory for so many rounds and so much variation."""
    memory = {
        "oful": {},
        "discounted_linucb": {"gamma": 1 - (variation / (d * rounds)) ** (2 / 3)},
        "sliding_window_linucb": {"window": math.ceil((d * rounds / variation) ** (2 / 3))},
        "weighted_linucb": {"gamma": 1 - math.sqrt(variation / (d * rounds))},
        "restarted_linucb": {"batch": int(d**0.25 * math.sqrt(rounds / variation))},
    }
    return make(name, **RUSSAC, **memory[name])


def lost(policy, means, noise, arms, scale):
    """Regret of one run where arm i pays means[t, i] and noise."""
    model = still(arms.shape[1], scale)
    constants, state = policy.prepare(model, arms, len(means))
    problem = Problem(model, arms, constants)
    regret = 0.0
    for mean, shock in zip(means, noise, strict=True):
        arm = int(policy.choose(state, problem, None))
        state = policy.update(state, problem, arm, mean[arm] + shock)
        regret += mean.max() - mean[arm]
    return regret


# The published examples.


def test_a_parameter_that_jumps():
    """Russac et al. (2019): θ = (1, 0), (−1, 0), (0, 1), (0, −1), 6000 rounds, σ = 1."""
    places = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0, -1], [0, -1]], float)
    arms = circle(12)
    means = np.repeat(places, 1000, axis=0) @ arms.T
    noise = np.random.default_rng(0).standard_normal(6000)
    keeps = lost(tuned("oful", 6000, 1.0), means, noise, arms, 1.0)
    assert keeps > 3000
    for name in FORGETTING:
        policy = tuned(name, 6000, variation=4 + math.sqrt(2))
        assert lost(policy, means, noise, arms, 1.0) < 0.5 * keeps, name


def turn(angle):
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def regrets(world, arms, policies, rounds, scale, runs=16):
    """Each run's regret, by policy, where policies are told R = scale and nothing else."""
    assumed = [(still(world.n_states, scale), arms)]
    return db.simulate(
        world, arms, policies, rounds, runs, assumed=assumed, options=Options(checkpoints=1)
    ).regret


def slope(regrets):
    """Exponent of mean regret in n between two horizons, and its error."""
    (first, few), (last, many) = regrets.items()
    wide = [one.std(ddof=1) / one.mean() / math.sqrt(len(one)) for one in (few, many)]
    ratio = math.log(last / first)
    return math.log(many.mean() / few.mean()) / ratio, math.hypot(*wide) / ratio


def test_growth_while_a_parameter_turns():
    """Half a turn in n rounds, whatever n: bounds grow as n^⅔ and n^¾, OFUL's regret as n.

    A parameter that turns is an LGDS: a rotation, without noise.
    """
    found, names = {}, ("oful", *FORGETTING)
    for rounds in (250, 4000):
        world = db.LGDS(turn(math.pi / rounds), 0 * EYE, 0.3, 0 * EYE, initial_mean=[1.0, 0.0])
        policies = [tuned(name, rounds, variation=math.pi) for name in names]
        found[rounds] = regrets(world, circle(12), policies, rounds, scale=0.3)
    exponents = {name: slope({n: each[name] for n, each in found.items()}) for name in names}
    value, error = exponents.pop("oful")
    assert value - 3 * error > 0.9
    for name, (value, error) in exponents.items():
        assert value + 3 * error < 0.85, name
        assert found[4000][name].mean() < 0.25 * found[4000]["oful"].mean(), name


def test_two_changes():
    """Garivier and Moulines (2011): means 0.5, 0.3, 0.4, the last 0.9 for a fifth of the time."""
    rounds = 10_000
    means = np.tile([0.5, 0.3, 0.4], (rounds, 1))
    means[3000:5000, 2] = 0.9
    noise = 0.1 * np.random.default_rng(1).standard_normal(rounds)
    window = math.ceil(2 * math.sqrt(rounds * math.log(rounds) / 2))
    policies = {
        "ucb": make("ucb", delta=rounds**-1.2),
        "discounted_ucb": make("discounted_ucb", gamma=1 - 0.25 * math.sqrt(2 / rounds), xi=2.4),
        "sliding_window_ucb": make("sliding_window_ucb", window=window, delta=window**-1.2),
    }
    regret = {name: lost(one, means, noise, np.eye(3), 0.1) for name, one in policies.items()}
    assert regret["discounted_ucb"] < 0.5 * regret["ucb"]
    assert regret["sliding_window_ucb"] < 0.5 * regret["ucb"]


def test_ucb_grows_as_the_logarithm():
    """Σ 2R² log(1/δ) / Δ for δ = 1/n: each arm is left once its radius is below its gap."""
    gaps, scale, found = np.array([0.0, 0.2, 0.4]), 0.25, {}
    world = db.LGDS(np.eye(3), np.zeros((3, 3)), scale, np.zeros((3, 3)), initial_mean=1 - gaps)
    for rounds in (500, 8000):
        policy = make("ucb", delta=1 / rounds)
        found[rounds] = regrets(world, np.eye(3), [policy], rounds, scale, runs=32)["ucb"].mean()
        expected = 2 * scale**2 * math.log(rounds) * (1 / gaps[1:]).sum()
        assert 0.5 < found[rounds] / expected < 1.2
    assert found[8000] / found[500] < 2  # log 8000 / log 500 = 1.4; √16 = 4


def test_oful_grows_as_the_root():
    """A parameter that stands still, arms all around: √n and logarithms."""
    world = db.LGDS(EYE, 0 * EYE, 1.0, 0 * EYE, initial_mean=[0.6, 0.8])
    policy, arms = make("oful", **RUSSAC), circle(12)
    found = {n: regrets(world, arms, [policy], n, scale=1.0)["oful"] for n in (250, 4000)}
    value, error = slope(found)
    assert value - 3 * error > 0.35
    assert value + 3 * error < 0.75


def test_rexp3_follows_waves_and_exp3_does_not():
    """Besbes, Gur and Zeevi (2014): means ½ ± 0.3 sin, a variation of 3 in n rounds, V known.

    The waves are an LGDS too: a rotation of which one coordinate is read, with both signs.
    """
    rounds = 8000
    world = db.LGDS(turn(5 * math.pi / rounds), 0 * EYE, 0.1, 0 * EYE, initial_mean=[0.3, 0.0])
    batch = math.ceil((2 * math.log(2)) ** (1 / 3) * (rounds / 3) ** (2 / 3))
    policies = [make("rexp3", batch=length) for length in (batch, rounds)]
    arms = np.array([[0.0, 1.0], [0.0, -1.0]])
    found = regrets(world, arms, policies, rounds, scale=1 / 6)  # ±½ fill Exp3's interval
    restarted, kept = (regret.mean() for regret in found.values())
    assert restarted < 0.7 * kept
