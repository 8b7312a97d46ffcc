"""Learning a model: expectation maximization against pykalman, and against one big normal law."""

import numpy as np
import pykalman
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from driftbandit import kalman
from driftbandit.identify import em
from driftbandit.identify.data import Data, Parameters
from driftbandit.identify.smoothing import predicted
from driftbandit.model import factor
from systems import assert_close, random_system

VARIABLES = [
    "transition_matrices",
    "transition_covariance",
    "observation_covariance",
    "initial_state_mean",
    "initial_state_covariance",
]


def played(model, arms, sequences, rounds, plays=1, missing=0.2, seed=0):
    """A log of random play, `plays` arms a round, some rewards missing."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((sequences, model.n_states)) @ factor(model.start_cov()).T
    chosen = rng.integers(len(arms), size=(sequences, rounds, plays))
    rewards = np.empty(chosen.shape)
    for t in range(rounds):
        rewards[:, t] = np.einsum("smd,sd->sm", arms[chosen[:, t]], z)
        shocks = rng.standard_normal(z.shape) @ factor(model.process_cov).T
        z = z @ model.transition.T + shocks
    rewards += model.reward_std * rng.standard_normal(rewards.shape)
    seen = (rng.random(rewards.shape) >= missing).astype(float)
    return Data(chosen, rewards * seen, seen, np.full(sequences, rounds))


def start(arms, offsets=None, size=0.5):
    d = arms.shape[1]
    offsets = np.zeros(len(arms)) if offsets is None else offsets
    return Parameters(
        size * np.eye(d), np.eye(d), np.asarray(1.0), np.zeros(d), np.eye(d), arms, offsets
    )


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


@pytest.mark.parametrize("d", [1, 3])
def test_the_filter_and_smoother_are_kalmans(d):
    """`smoothing` compiles what `kalman` says for one sequence with one reward in every round."""
    model, arms = random_system(1, d, k=5)
    data = played(model, arms, 1, 60, missing=0.0)
    parameters = start(arms)._replace(
        transition=model.transition,
        process_cov=model.process_cov,
        reward_var=np.asarray(model.reward_std**2),
        initial_cov=model.start_cov(),
    )
    chosen, rewards = arms[data.arms[0, :, 0]], data.rewards[0, :, 0]
    expected = kalman.predictions(model, chosen, rewards)
    means, variances, covs = predicted(parameters, data)
    assert_close(rewards - means[0, :, 0], expected.surprises, 1e-10)
    assert_close(variances[0, :, 0], expected.variances, 1e-10)
    last = kalman.step(
        kalman.Belief(expected.means[-1], expected.covs[-1]), model, chosen[-1], rewards[-1]
    )
    assert_close(covs[0], last.cov, 1e-10)
    sums = em.e_step(parameters, data)
    assert sums.log_likelihood == pytest.approx(kalman.log_likelihood(model, chosen, rewards))
    smooth = kalman.smooth(model, chosen, rewards)
    assert_close(sums.start_means[0], smooth.mean[0], 1e-10)
    assert_close(sums.start_covs, smooth.cov[0], 1e-10)
    moments = smooth.cov + smooth.mean[:, :, None] * smooth.mean[:, None, :]
    assert_close(sums.before, moments[:-1].sum(axis=0), 1e-10)


def test_sums_are_those_of_the_joint_law():
    """Sequences of several lengths, up to two plays a round, none in some, offsets."""
    rng = np.random.default_rng(2)
    model, arms = random_system(2, 2, k=3)
    offsets = rng.standard_normal(3)
    lengths = np.array([6, 1, 4])
    data = played(model, arms, 3, 6, plays=2, missing=0.4)._replace(lengths=lengths)
    outside = np.arange(6)[None, :, None] >= lengths[:, None, None]
    seen = np.where(outside, 0.0, data.seen)
    data = data._replace(seen=seen, rewards=data.rewards * seen)
    parameters = Parameters(
        model.transition,
        model.process_cov,
        np.asarray(0.3),
        rng.standard_normal(2),
        np.diag([2.0, 0.5]),
        arms,
        offsets,
    )
    found = em.e_step(parameters, data)
    total, d = 0.0, 2
    before, after, across = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    plays, products, moments = np.zeros(3), np.zeros((3, d)), np.zeros((3, d, d))
    start_covs = np.zeros((d, d))
    for s, length in enumerate(lengths):
        log = [
            [
                (int(data.arms[s, t, i]), data.rewards[s, t, i])
                for i in range(2)
                if data.seen[s, t, i]
            ]
            for t in range(length)
        ]
        likelihood, means, covs = naive.joint_smoothing(parameters, log)
        total += likelihood
        assert_close(found.start_means[s], means[0], 1e-10)
        start_covs += covs[0, :, 0]
        for t, played_now in enumerate(log):
            moment = covs[t, :, t] + np.outer(means[t], means[t])
            if t + 1 < length:
                before += moment
                after += covs[t + 1, :, t + 1] + np.outer(means[t + 1], means[t + 1])
                across += covs[t + 1, :, t] + np.outer(means[t + 1], means[t])
            for arm, reward in played_now:
                plays[arm] += 1
                products[arm] += reward * means[t]
                moments[arm] += moment
    assert found.log_likelihood == pytest.approx(total, rel=1e-12)
    assert found.transitions == 8
    for name, expected in {
        "before": before,
        "after": after,
        "across": across,
        "start_covs": start_covs,
        "plays": plays,
        "products": products,
        "moments": moments,
    }.items():
        assert_close(getattr(found, name), expected, 1e-10)


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
