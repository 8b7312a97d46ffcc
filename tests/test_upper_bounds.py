"""P12, P18: Theorem 4 on every path, and Theorem 6's number as it is printed."""

import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit import families, kalman
from driftbandit.model import factor, unit_rows
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.theory import path_upper_bound, round_upper_bound, ucb_upper_bound
from systems import random_system

BONUSES = {"idea": idea.bonus, "kalman_ucb": kalman_ucb.bonus, "kode": kode.bonus}
NAIVE = {"idea": naive.bonus_idea, "kalman_ucb": naive.bonus_kalman_ucb, "kode": naive.bonus_kode}


@functools.partial(jax.jit, static_argnames=("bonus", "rounds"))
def simulated(keys, system, bonus, rounds):
    """`round_upper_bound` along one path per key, each part paths × rounds."""
    model = types.SimpleNamespace(**system)
    d, k = model.arms.shape[1], len(model.arms)

    def one_path(key):
        first, second, third = jax.random.split(key, 3)
        start = model.start @ jax.random.normal(first, (d,))
        shocks = jax.random.normal(second, (rounds, d)) @ model.shock.T
        noises = model.reward_std * jax.random.normal(third, (rounds, k))

        def advance(carry, drawn):
            belief, z = carry
            shock, noise = drawn
            found = round_upper_bound(belief, z, model, model.arms, bonus)
            i = (model.arms @ belief.mean + bonus(belief.cov, model, model.arms)).argmax()
            arm = model.arms[i]
            belief = kalman.step(belief, model, arm, arm @ z + noise[i])
            return (belief, model.transition @ z + shock), found

        prior = kalman.Belief(jnp.zeros(d), model.start @ model.start.T)
        return jax.lax.scan(advance, (prior, start), (shocks, noises))[1]

    return jax.vmap(one_path)(keys)


def path(model, arms, rounds):
    """States and every arm's rewards along one path."""
    rng = np.random.default_rng(1)
    z = factor(model.start_cov()) @ rng.standard_normal(model.n_states)
    states = np.empty((rounds, model.n_states))
    for t in range(rounds):
        states[t] = z
        shock = factor(model.process_cov) @ rng.standard_normal(model.n_states)
        z = model.transition @ z + shock
    return states, states @ arms.T + model.reward_std * rng.standard_normal((rounds, len(arms)))


def parts(model, arms):
    """What `simulated` needs of a system, as arrays that share one compiled program."""
    return {
        "transition": model.transition,
        "process_cov": model.process_cov,
        "reward_std": model.reward_std,
        "start": factor(model.start_cov()),
        "shock": factor(model.process_cov),
        "arms": arms,
    }


@pytest.mark.parametrize("name", BONUSES)
def test_P12_theorem_4_holds_on_ten_thousand_paths(name):
    """Unit arms, 5 families × 2000 paths × 50 rounds: in every round, so in every sum."""
    paths = 0
    for family in families.FAMILIES:
        system = families.sample(family, n_states=3, n_arms=5, unit_arms=True, seed=4)[0]
        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(0), 2000)
            found = simulated(keys, parts(*system), BONUSES[name], rounds=50)
        regret, bound, sharp = (np.asarray(part) for part in found)
        slack = 1e-12 * np.abs(bound).max()
        assert (regret >= 0).all()
        assert (regret <= sharp + slack).all()
        assert (sharp <= bound + slack).all()
        assert (regret.cumsum(axis=1) <= bound.cumsum(axis=1) + 50 * slack).all()
        assert regret.max() > 0.05 * bound.max()  # the inequality is not about nothing
        paths += len(regret)
    assert paths == 10_000


@pytest.mark.parametrize("name", BONUSES)
def test_P12_along_a_path_is_the_textbook_sum(name):
    model, arms = random_system(4, 3, k=5)
    arms = unit_rows(arms)
    states, rewards = path(model, arms, 60)
    found = path_upper_bound(model, arms, BONUSES[name], states, rewards)
    start = (model.transition, model.process_cov, model.reward_std, model.start_cov())
    regret, bound = naive.path_bound(start, arms, NAIVE[name], states, rewards)
    assert found.regret.sum() == pytest.approx(regret, rel=1e-9)
    assert found.bound.sum() == pytest.approx(bound, rel=1e-9)
    assert (found.sharp <= found.bound + 1e-12).all()


def test_P12_needs_lengths_where_arms_are_not_unit():
    """With 2 ‖e‖ alone, as printed for unit arms, long arms would break it."""
    model, arms = random_system(4, 3, k=5)
    arms = 20 * arms
    states, rewards = path(model, arms, 200)
    found = path_upper_bound(model, arms, kode.bonus, states, rewards)
    assert (found.regret <= found.bound + 1e-9).all()
    lengths = np.linalg.norm(arms, axis=1)
    assert (found.regret > found.bound / lengths.min()).any()  # at least as large as 2 ‖e‖


def test_P18_as_printed():
    model, arms = random_system(4, 3, k=5)
    Z = naive.stationary_cov(model.transition, model.process_cov)
    n, delta = 70, 0.2
    expected = max(math.sqrt((3 * n**2 + n + 1) * (a @ Z @ a) * math.log(1 / delta)) for a in arms)
    assert ucb_upper_bound(model, arms, n, delta) == pytest.approx(expected, rel=1e-10)


def test_P18_is_no_bound():
    """It should hold with probability 1 − δ; with δ = 0.8 it fails on every run, not on four of
    five: in the mean of independent arms the best one is above √(3 log(1/δ)) standard deviations.
    """
    model = db.LGDS(0.5 * np.eye(8), np.eye(8), reward_std=1.0)
    arms = np.eye(8)
    regret = db.simulate(model, arms, ["ucb"], rounds=200, runs=50).regret["ucb"]
    assert (regret > ucb_upper_bound(model, arms, 200, delta=0.8)).all()
    assert (regret < ucb_upper_bound(model, arms, 200, delta=0.05)).all()
