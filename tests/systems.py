"""Random systems and one comparison that the test files share."""

import numpy as np

from driftbandit import LGDS
from driftbandit.kalman import Belief
from driftbandit.policies import Problem


def random_system(seed, d, k=4, radius=0.9, reward_std=0.5, noise_rank=None, initial=False):
    """A Gaussian system (model, arms): ρ(Γ) = radius, Q of `noise_rank` (full if None)."""
    rng = np.random.default_rng([seed, d])
    transition = rng.standard_normal((d, d))
    transition *= radius / np.abs(np.linalg.eigvals(transition)).max()
    root = rng.standard_normal((d, d if noise_rank is None else noise_rank))
    start = rng.standard_normal((d, d))
    model = LGDS(transition, root @ root.T, reward_std, start @ start.T if initial else None)
    return model, rng.standard_normal((k, d))


def assert_close(actual, expected, tolerance):
    """No entry is off by more than `tolerance` times the largest expected entry."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    error = np.abs(actual - expected).max()
    assert error <= tolerance * np.abs(expected).max(), f"off by {error:.3g}: {actual}\n{expected}"


def with_constants(model, arms, seed=0, count=1, start=None):
    """The system beside ``count`` constants that arms read and that push the states, shuffled.

    Also where its own states are now. ``start`` is the mean its states begin with.
    """
    rng = np.random.default_rng([seed, count])
    d = model.n_states
    order = rng.permutation(d + count)
    transition = np.eye(d + count)
    transition[:d, :d], transition[:d, d:] = model.transition, rng.standard_normal((d, count))
    covs = [model.process_cov, model.initial_cov]
    covs = [None if cov is None else np.pad(cov, (0, count)) for cov in covs]
    mean = np.append(np.zeros(d) if start is None else start, rng.standard_normal(count))
    shuffled = [None if cov is None else cov[np.ix_(order, order)] for cov in covs]
    whole = LGDS(
        transition[np.ix_(order, order)], shuffled[0], model.reward_std, shuffled[1], mean[order]
    )
    rows = np.hstack([arms, rng.standard_normal((len(arms), count))])
    return whole, rows[:, order], np.argsort(order)[:d]


def situation(seed, d, k, reward_std, rank):
    """A random model, arms, and a belief whose covariance has the given rank."""
    model, arms = random_system(seed, d, k=k, reward_std=reward_std)
    rng = np.random.default_rng([seed, d, k, rank])
    root = rng.standard_normal((d, rank))
    return model, arms, Belief(rng.standard_normal(d), root @ root.T)


def problem_of(policy, model, arms):
    constants, _ = policy.prepare(model, arms, 100)
    return Problem(model, arms, constants)


def still(states, scale=1.0):
    """A model that tells policies R, and nothing of how θ moves."""
    return LGDS(np.zeros((states, states)), np.zeros((states, states)), scale)


def played(policy, paid, model, arms):
    """The arms a policy plays where arm i pays paid[t, i], and the state it ends in."""
    constants, state = policy.prepare(model, arms, len(paid))
    problem = Problem(model, arms, constants)
    chosen = []
    for row in paid:
        chosen.append(int(policy.choose(state, problem, None)))
        state = policy.update(state, problem, chosen[-1], row[chosen[-1]])
    return np.array(chosen), state, problem
