"""Covariances that must not rot over long runs (P5).

Each case of the grid is one system; all run side by side. Arms are those IDEA plays on the
simulated system; with ρ > 1, where the state itself overflows, a fixed rotation of the arms.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import driftbandit as db
import driftbandit.simulation  # lets JAX map over LGDS
from driftbandit import kalman
from driftbandit.model import factor
from driftbandit.policies import idea

D = K = 10


CONDITION = 1e12


GRID = list(itertools.product((0.0, 1.0), ("full", "rank one", "ill"), (0.9, 1.0, 1.05), range(5)))


def system(reward_std, noise, radius, seed):
    """A random system; "ill" spreads Q's and the arms' singular values over twelve decades."""
    rng = np.random.default_rng(seed)
    transition = rng.standard_normal((D, D))
    transition *= radius / np.abs(np.linalg.eigvals(transition)).max()
    root, arms = rng.standard_normal((2, D, D))
    if noise == "rank one":
        root = root[:, :1]
    if noise == "ill":
        root = np.linalg.qr(root)[0] * np.geomspace(1, CONDITION**-0.5, D)
        left, _, right = np.linalg.svd(arms)
        arms = left * np.geomspace(1, CONDITION**-1, D) @ right
    return db.LGDS(transition, root @ root.T, reward_std, initial_cov=np.eye(D)), arms


def worst_eigenvalue_ratio(cases, rounds, look_every):
    """Smallest λ_min/λ_max along the run, per case; every round of the first 1000 is looked at."""
    systems = [system(*case) for case in cases]
    rotates = np.array([model.spectral_radius > 1 + 1e-9 for model, _ in systems])

    def one_round(carry, t, shock, noise, model, arms, root, rotate):
        belief, z = carry
        score = arms @ belief.mean + idea.bonus(belief.cov, model, arms)
        arm = arms[jnp.where(rotate, t % K, jnp.argmax(score))]
        belief = kalman.step(belief, model, arm, arm @ z + model.reward_std * noise)
        return belief, jnp.where(rotate, 0.0, model.transition @ z + root @ shock)

    @functools.partial(jax.jit, static_argnums=0)
    def play(length, carry, first, key, problem):
        def body(carry, t):
            shocks = jax.random.normal(jax.random.fold_in(key, t), (len(systems), D + 1))
            step = jax.vmap(one_round, (0, None, 0, 0, 0, 0, 0, 0))
            return step(carry, t, shocks[:, :D], shocks[:, D], *problem), None

        return jax.lax.scan(body, carry, first + jnp.arange(length))[0]

    def look(carry, worst):
        cov = np.asarray(carry[0].cov)
        assert np.isfinite(cov).all()
        assert np.isfinite(np.asarray(carry[0].mean)).all()
        values = np.linalg.eigvalsh(cov)
        assert (values[:, -1] > 0).all()
        return np.minimum(worst, values[:, 0] / values[:, -1])

    with jax.enable_x64(True):
        roots = [factor(model.process_cov) for model, _ in systems]
        problem = jax.tree.map(
            lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]),
            *[(m, a, r, rotate) for (m, a), r, rotate in zip(systems, roots, rotates, strict=True)],
        )
        size = len(systems)
        carry = kalman.Belief(jnp.zeros((size, D)), jnp.tile(jnp.eye(D), (size, 1, 1)))
        carry = (carry, jnp.zeros((size, D)))
        worst, done, key = np.zeros(size), 0, jax.random.key(0)
        for length, until in ((1, 1000), (look_every, rounds)):
            while done < until:
                carry = play(length, carry, done, key, problem)
                done += length
                worst = look(carry, worst)
    return worst


def assert_semidefinite(worst, cases):
    bad = {c: value for c, value in zip(cases, worst, strict=True) if not value >= -1e-12}
    assert not bad, bad


def test_covariances_stay_semidefinite_for_5000_rounds():
    """σ ∈ {0, 1} × Q {full, rank one, condition 10¹²} × ρ {0.9, 1, 1.05} × 5 seeds (P5)."""
    assert_semidefinite(worst_eigenvalue_ratio(GRID, 5000, 1000), GRID)


@pytest.mark.nightly
def test_covariances_stay_semidefinite_for_1e6_rounds():
    """The same for a million rounds (P5)."""
    assert_semidefinite(worst_eigenvalue_ratio(GRID, 1_000_000, 1000), GRID)


def _plain(cov, model, arm):
    cross = cov @ arm
    after = cov - np.outer(cross, cross) / (arm @ cross + model.reward_std**2)
    after = model.transition @ after @ model.transition.T + model.process_cov
    return (after + after.T) / 2


def _joseph(cov, model, arm):
    gain = cov @ arm / (arm @ cov @ arm + model.reward_std**2)
    keep = np.eye(D) - np.outer(gain, arm)
    after = keep @ cov @ keep.T + model.reward_std**2 * np.outer(gain, gain)
    after = model.transition @ after @ model.transition.T + model.process_cov
    return (after + after.T) / 2


@pytest.mark.parametrize(
    ("form", "survives"), [(kalman.riccati_step, True), (_plain, False), (_joseph, False)]
)
def test_why_covariances_are_rounded_up(form, survives):
    """The measurement behind `kalman`'s choice: σ = 0, rank-one Q, the most informative arm.

    Here aᵀPa sinks to rounding level, and one division by it ruins the plain and the Joseph form.
    """
    worst = 0.0
    for seed in range(4):
        model, arms = system(0.0, "rank one", 0.9, seed)
        cov = np.eye(D)
        with np.errstate(all="ignore"):
            for _ in range(1500):
                news = np.linalg.norm(arms @ cov @ model.transition.T, axis=1)
                scale = np.einsum("kd,de,ke->k", arms, cov, arms)
                bonus = news / np.sqrt(np.maximum(scale, 1e-300))
                cov = form(cov, model, arms[np.argmax(bonus)])
                values = np.linalg.eigvalsh(cov)
                worst = min(worst, values[0] / values[-1] if values[-1] > 0 else -np.inf)
    assert (worst >= -1e-12) == survives, worst


def test_rounding_up_is_small():
    """The price: P_a found by following the rounded-up recursion, against SciPy's solution."""
    for seed in range(5):
        model, arms = system(1.0, "full", 0.9, seed)
        cov = model.process_cov
        for _ in range(300):
            cov = kalman.riccati_step(cov, model, arms[0])
        exact = db.steady_state.prediction_cov(model, arms[0])
        assert np.abs(cov - exact).max() <= 1e-11 * np.abs(exact).max()
