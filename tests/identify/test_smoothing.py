"""Filter and smoother, against `kalman`, the joint distribution, and round by round."""

import numpy as np
import pytest

import naive
from driftbandit import kalman
from driftbandit.identify import em
from driftbandit.identify.data import Parameters, data_of
from driftbandit.identify.smoothing import bits_of, gap_transitions, predicted
from random_logs import played, round_by_round, sparse_log, start
from systems import assert_close, random_system


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


@pytest.mark.parametrize("radius", [0.6, 0.98, 1.02])
@pytest.mark.parametrize("singular", [False, True])
def test_sums_are_those_of_every_round(radius, singular):
    model, arms = random_system(2, 2, k=3, radius=radius)
    noise = np.diag([0.5, 0.0]) if singular else model.process_cov
    log = sparse_log()
    parameters = start(arms)._replace(
        transition=model.transition / radius * min(radius, 1.002), process_cov=noise
    )
    data = data_of(log)
    assert data.gap_lengths is not None
    found = em.e_step(parameters, data, whole=True)
    expected = em.e_step(parameters, round_by_round(log))
    assert found.transitions == expected.transitions > 1500
    for name, value in expected._asdict().items():
        assert_close(getattr(found, name), value, 1e-8)


def test_shortened_sums_have_the_same_slopes():
    """S₁₀ − Γ S₀₀ and R − nQ are the likelihood's slopes: EM rests where they are zero."""
    model, arms = random_system(2, 2, k=3, radius=0.6)
    parameters = start(arms)._replace(transition=model.transition, process_cov=model.process_cov)
    slopes = []
    for whole in (True, False):
        sums = em.e_step(parameters, data_of(sparse_log()), whole)
        Γ, Q = parameters.transition, parameters.process_cov
        turned = Γ @ sums.across.T
        left = sums.after - turned - turned.T + Γ @ sums.before @ Γ.T
        slopes.append((sums.across - Γ @ sums.before, left - sums.transitions * Q))
    assert sums.transitions < 1000
    for ours, theirs in zip(*slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_predictions_are_those_of_every_round():
    model, arms = random_system(2, 2, k=3, radius=0.98)
    log = sparse_log()
    parameters = start(arms)._replace(transition=model.transition, process_cov=model.process_cov)
    data, whole = data_of(log), round_by_round(log)
    found, expected = predicted(parameters, data), predicted(parameters, whole)
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(ours[data.seen > 0], theirs[whole.seen > 0], rtol=1e-9)


def test_lengths_in_binary():
    model, _ = random_system(2, 3, k=3, radius=0.9)
    lengths = np.array([1, 6, 1000])
    bits = bits_of(data_of(sparse_log())._replace(gap_lengths=lengths))
    F, Q = gap_transitions(model.transition, model.process_cov, bits)
    for number, length in enumerate(lengths):
        np.testing.assert_allclose(
            F[number], np.linalg.matrix_power(model.transition, int(length)), atol=1e-5
        )
        walk = type(model)(model.transition, model.process_cov, 1.0, np.zeros((3, 3)))
        np.testing.assert_allclose(Q[number], walk.state_cov(int(length)), rtol=1e-4)
