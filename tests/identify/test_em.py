"""Expectation maximization, against pykalman and by its own rules."""

import numpy as np
import pykalman
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit.identify import Log, Sequence, em
from driftbandit.identify.data import data_of
from random_logs import played, round_by_round, start
from systems import assert_close, random_system

VARIABLES = [
    "transition_matrices",
    "transition_covariance",
    "observation_covariance",
    "initial_state_mean",
    "initial_state_covariance",
]


def improved(parameters, data, options, iterations):
    """The parameters after so many steps, and what is climbed before each."""
    found = []
    for _ in range(iterations):
        sums = em.e_step(parameters, data)
        found.append(em.objective(parameters, sums, options))
        parameters = em.m_step(parameters, sums, options)
    return parameters, found


@pytest.mark.parametrize("d", [1, 3])
def test_five_iterations_equal_pykalmans(d):
    model, arms = random_system(1, d, k=5)
    data = played(model, arms, 1, 80)
    ours, likelihoods = improved(start(arms), data, em.Options(), 5)
    theirs = pykalman.KalmanFilter(
        transition_matrices=0.5 * np.eye(d),
        transition_covariance=np.eye(d),
        observation_matrices=arms[data.arms[0, :, 0]][:, None],
        observation_covariance=np.eye(1),
        initial_state_mean=np.zeros(d),
        initial_state_covariance=np.eye(d),
        em_vars=VARIABLES,
    )
    rewards = np.ma.masked_array(data.rewards[0], mask=data.seen[0] == 0)
    assert likelihoods[0] == pytest.approx(theirs.loglikelihood(rewards), rel=1e-10)
    theirs = theirs.em(rewards, n_iter=5)
    assert_close(ours.transition, theirs.transition_matrices, 1e-8)
    assert_close(ours.process_cov, theirs.transition_covariance, 1e-8)
    assert_close(ours.reward_var, theirs.observation_covariance[0, 0], 1e-8)
    assert_close(ours.initial_mean, theirs.initial_state_mean, 1e-8)
    assert_close(ours.initial_cov, theirs.initial_state_covariance, 1e-8)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    structure=st.sampled_from(em.STRUCTURES),
    stable=st.booleans(),
    reads=st.booleans(),
    offsets=st.booleans(),
    reward_std=st.sampled_from([0.0, 0.5]),
    radius=st.sampled_from([0.5, 0.99]),
    rounds=st.sampled_from([None, 0.5, 30.0]),
)
def test_the_likelihood_never_falls(
    seed, structure, stable, reads, offsets, reward_std, radius, rounds
):
    model, arms = random_system(seed, 2, k=3, reward_std=reward_std, radius=radius)
    data = played(model, arms, 2, 40, seed=seed)
    prior = None if rounds is None else em.Prior(rounds, np.diag([2.0, 0.5]))
    options = em.Options(structure, stable, reads, offsets, prior)
    parameters, likelihoods = improved(start(arms), data, options, 12)
    steps = np.diff(likelihoods)
    assert (steps >= -1e-8 * np.abs(likelihoods[:-1])).all(), steps.min()
    if stable:
        assert np.abs(np.linalg.eigvals(parameters.transition)).max() < 1
    if structure != "free":
        off = parameters.transition - np.diag(np.diag(parameters.transition))
        assert not off.any()
    if not reads:
        assert (parameters.reads == arms).all()
    if not offsets:
        assert not parameters.offsets.any()


def test_imagined_rounds_are_rounds():
    """The prior's M-step and density are those of a log to which such rounds were added."""
    rng = np.random.default_rng(4)
    model, arms = random_system(2, 3, k=4)
    data = played(model, arms, 2, 60)
    parameters = start(arms)
    sums = em.e_step(parameters, data)
    cov, n = np.diag([1.0, 3.0, 0.2]), 400_000
    prior = em.Prior(7.0, cov)
    before, after = (rng.standard_normal((n, 3)) @ np.sqrt(cov) for _ in range(2))
    weight = prior.rounds / n
    drawn = sums._replace(
        transitions=sums.transitions + prior.rounds,
        before=sums.before + weight * before.T @ before,
        after=sums.after + weight * after.T @ after,
        across=sums.across + weight * after.T @ before,
    )
    expected = em.m_step(parameters, drawn, em.Options())
    found = em.m_step(parameters, sums, em.Options(prior=prior))
    np.testing.assert_allclose(found.transition, expected.transition, atol=5e-3)
    np.testing.assert_allclose(found.process_cov, expected.process_cov, atol=5e-3)

    def drawn_density(transition, process_cov):
        law = scipy.stats.multivariate_normal(np.zeros(3), process_cov)
        return prior.rounds * law.logpdf(after - before @ transition.T).mean()

    gain = prior.log_density(found) - prior.log_density(parameters)
    expected_gain = drawn_density(found.transition, found.process_cov)
    expected_gain -= drawn_density(parameters.transition, parameters.process_cov)
    assert gain == pytest.approx(expected_gain, abs=0.05)


def test_a_climb_over_pauses_rises_to_where_every_rounds_does():
    model, arms = random_system(2, 2, k=3, radius=0.95)
    data = played(model, arms, 1, 240, missing=0.0)
    rounds = np.arange(240) + np.where(np.arange(240) >= 120, 400, 0)
    log = Log(
        (Sequence(rounds, data.arms[0, :, 0].astype(np.int64), data.rewards[0, :, 0]),),
        tuple("012"),
    )
    ends = []
    for grid in (data_of(log), round_by_round(log)):
        found, heights, _ = em.run(
            start(arms), grid, em.Options(stable=True), 100, 1e-6, lambda share: None
        )
        assert (np.diff(heights) > -1e-6).all()
        ends.append((heights[-1], found.transition))
    assert ends[0][0] == pytest.approx(ends[1][0], abs=0.02)
    np.testing.assert_allclose(ends[0][1], ends[1][1], atol=0.03)
