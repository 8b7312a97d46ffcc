"""P5, P6: the predictor against the textbook, other libraries and its own statistics."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import driftbandit as db
import naive
from driftbandit import LGDS, kalman, riccati
from driftbandit.kalman import Belief, log_likelihood
from driftbandit.model import factor
from driftbandit.policies import idea
from refusals import EYE, NAN, STABLE, Case, assert_refused, each
from systems import assert_close, random_system

SYSTEMS = [(seed, d) for d in (1, 2, 4, 10) for seed in (0, 1, 2)]


on_random_systems = pytest.mark.parametrize(
    ("seed", "d"),
    [pytest.param(seed, d, marks=pytest.mark.nightly if seed == 2 else ()) for seed, d in SYSTEMS],
)


def problem(seed, d, rounds=12, **options):
    """A random system, the arms played on it, rewards of its own size, and a first belief."""
    model, played = random_system(seed, d, k=rounds, **options)
    rng = np.random.default_rng([seed, d, 1])
    root = rng.standard_normal((d, d))
    rewards = rng.standard_normal(rounds) * math.sqrt(np.trace(model.start_cov()))
    return model, played, rewards, Belief(rng.standard_normal(d), root @ root.T)


def matrices(model):
    """Γ, Q, σ, the way naive.py takes them."""
    return model.transition, model.process_cov, model.reward_std


def under_numpy(function, *arguments):
    return function(*arguments)


def under_jax(function, *arguments):
    import jax

    import driftbandit.simulation  # noqa: F401  (makes an LGDS a JAX pytree)

    with jax.enable_x64(True):
        result = jax.jit(function)(*arguments)
    assert all(leaf.dtype == np.float64 for leaf in jax.tree.leaves(result))
    return jax.tree.map(np.asarray, result)


under_both = pytest.mark.parametrize("call", [under_numpy, under_jax])


# Against the textbook.


@under_both
@on_random_systems
def test_P5_step_along_a_path(seed, d, call):
    model, played, rewards, belief = problem(seed, d)
    mean, cov = belief
    for arm, reward in zip(played, rewards, strict=True):
        belief = call(kalman.step, belief, model, arm, reward)
        mean, cov = naive.kalman_step(mean, cov, *matrices(model), arm, reward)
        assert_close(belief.mean, mean, 1e-10)
        assert_close(belief.cov, cov, 1e-10)


@under_both
@on_random_systems
def test_P5_riccati_step(seed, d, call):
    model, played, _, belief = problem(seed, d, rounds=3)
    for arm in played:
        expected = naive.riccati_step(belief.cov, *matrices(model), arm)
        assert_close(call(kalman.riccati_step, belief.cov, model, arm), expected, 1e-10)


@under_both
@on_random_systems
def test_P5_observe_then_predict(seed, d, call):
    model, (arm,), (reward,), belief = problem(seed, d, rounds=1)
    still = np.eye(d), np.zeros((d, d)), model.reward_std  # Γ = I, Q = 0: no time passes
    seen = call(kalman.observe, belief, model, arm, reward)
    expected = naive.kalman_step(*belief, *still, arm, reward)
    assert_close(seen.mean, expected[0], 1e-10)
    assert_close(seen.cov, expected[1], 1e-10)
    after = call(kalman.advance, seen, model)
    expected = naive.kalman_step(*belief, *matrices(model), arm, reward)
    assert_close(after.mean, expected[0], 1e-10)
    assert_close(after.cov, expected[1], 1e-10)


@pytest.mark.parametrize("rounds", [-1, 2.5, None])
def test_only_whole_rounds_pass(rounds):
    """Minus one never came back."""
    model = LGDS([[0.5]], [[1.0]], 1.0)
    with pytest.raises(ValueError, match="rounds: "):
        kalman.advance(kalman.prior(model), model, rounds)


@pytest.mark.parametrize("given_belief", [False, True])
@on_random_systems
def test_P5_predictions(seed, d, given_belief):
    model, played, rewards, belief = problem(seed, d, initial=True)
    run = kalman.predictions(model, played, rewards, belief if given_belief else None)
    mean, cov = belief if given_belief else (np.zeros(d), model.initial_cov)
    for t, arm in enumerate(played):
        if mean.any():  # the prior's mean is zero, which has no relative error
            assert_close(run.means[t], mean, 1e-10)
        assert_close(run.covs[t], cov, 1e-10)
        assert_close(run.surprises[t], rewards[t] - arm @ mean, 1e-10)
        assert_close(run.variances[t], arm @ cov @ arm + model.reward_std**2, 1e-10)
        mean, cov = naive.kalman_step(mean, cov, *matrices(model), arm, rewards[t])


@on_random_systems
def test_P5_log_likelihood(seed, d):
    model, played, rewards, belief = problem(seed, d)
    value = kalman.log_likelihood(model, played, rewards, belief)
    textbook = naive.log_likelihood(*belief, *matrices(model), played, rewards)
    joint = naive.joint_log_likelihood(*belief, *matrices(model), played, rewards)
    assert value == pytest.approx(textbook, rel=1e-10)
    assert value == pytest.approx(joint, rel=1e-10)
    from_prior = np.zeros(d), naive.stationary_cov(model.transition, model.process_cov)
    textbook = naive.log_likelihood(*from_prior, *matrices(model), played, rewards)
    assert kalman.log_likelihood(model, played, rewards) == pytest.approx(textbook, rel=1e-10)


@pytest.mark.parametrize("noise_rank", [None, 1])
@on_random_systems
def test_P5_smooth(seed, d, noise_rank):
    model, played, rewards, belief = problem(seed, d, noise_rank=noise_rank)
    smoothed = kalman.smooth(model, played, rewards, belief)
    means, covs = naive.smooth(*belief, *matrices(model), played, rewards)
    assert_close(smoothed.mean, means, 1e-10)
    assert_close(smoothed.cov, covs, 1e-10)


def test_P5_prior_is_the_start():
    model, _ = random_system(0, d=3)
    belief = kalman.prior(model)
    assert belief.mean.tolist() == [0.0, 0.0, 0.0]
    assert_close(belief.cov, naive.stationary_cov(model.transition, model.process_cov), 1e-12)


# Against other libraries.


@on_random_systems
def test_P5_filter_and_smoother_agree_with_pykalman(seed, d):
    import pykalman

    model, played, rewards, belief = problem(seed, d, rounds=40)
    other = pykalman.KalmanFilter(
        transition_matrices=model.transition,
        observation_matrices=played[:, None, :],
        transition_covariance=model.process_cov,
        observation_covariance=[[model.reward_std**2]],
        initial_state_mean=belief.mean,
        initial_state_covariance=belief.cov,
    )
    means, covs = other.filter(rewards[:, None])
    run = kalman.predictions(model, played, rewards, belief)
    for t in range(len(played)):
        predicted = Belief(run.means[t], run.covs[t])
        seen = kalman.observe(predicted, model, played[t], rewards[t])
        assert_close(seen.mean, means[t], 1e-9)
        assert_close(seen.cov, covs[t], 1e-9)
    means, covs = other.smooth(rewards[:, None])
    smoothed = kalman.smooth(model, played, rewards, belief)
    assert_close(smoothed.mean, means, 1e-9)
    assert_close(smoothed.cov, covs, 1e-9)


@on_random_systems
def test_P5_step_agrees_with_filterpy(seed, d):
    import filterpy.kalman

    model, played, rewards, belief = problem(seed, d, rounds=40)
    other = filterpy.kalman.KalmanFilter(dim_x=d, dim_z=1)
    other.x, other.P = belief.mean[:, None], belief.cov
    other.F, other.Q, other.R = model.transition, model.process_cov, [[model.reward_std**2]]
    for arm, reward in zip(played, rewards, strict=True):
        belief = kalman.step(belief, model, arm, reward)
        other.update(np.array([[reward]]), H=arm[None])
        other.predict()
        assert_close(belief.mean, other.x[:, 0], 1e-9)
        assert_close(belief.cov, other.P, 1e-9)


@pytest.mark.parametrize("noise_rank", [None, 1])
@on_random_systems
def test_P5_likelihood_filter_and_smoother_agree_with_statsmodels(seed, d, noise_rank):
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    model, played, rewards, belief = problem(seed, d, rounds=40, noise_rank=noise_rank)
    other = KalmanSmoother(k_endog=1, k_states=d)
    other.bind(rewards.copy())
    other["design"] = played.T[None]  # 1 × d × n: a new row each round
    other["obs_cov"] = np.array([[model.reward_std**2]])
    other["transition"] = np.array(model.transition)
    other["selection"] = np.eye(d)
    other["state_cov"] = np.array(model.process_cov)
    other.initialize_known(belief.mean, belief.cov)
    expected = other.smooth()
    value = kalman.log_likelihood(model, played, rewards, belief)
    assert value == pytest.approx(expected.llf, rel=1e-10)
    run = kalman.predictions(model, played, rewards, belief)
    assert_close(run.means, expected.predicted_state.T[:-1], 1e-9)
    assert_close(run.covs, expected.predicted_state_cov.transpose(2, 0, 1)[:-1], 1e-9)
    smoothed = kalman.smooth(model, played, rewards, belief)
    assert_close(smoothed.mean, expected.smoothed_state.T, 1e-9)
    assert_close(smoothed.cov, expected.smoothed_state_cov.transpose(2, 0, 1), 1e-9)


# Its own statistics: 2000 independent runs of 50 rounds, the arms chosen by IDEA on the way.


RUNS, ROUNDS = 2000, 50


@pytest.fixture(scope="module")
def played_by_idea():
    """Per round and run: z(t), ẑ(t|t−1), P(t|t−1), ẑ(t|t), the innovation and its variance."""
    import jax

    import driftbandit.simulation  # noqa: F401  (makes an LGDS a JAX pytree)

    model, arms = random_system(3, d=3, k=5)
    rng = np.random.default_rng(3)
    z = rng.standard_normal((RUNS, 3)) @ factor(model.start_cov()).T
    shocks = rng.standard_normal((ROUNDS, RUNS, 3)) @ factor(model.process_cov).T
    noise = rng.standard_normal((ROUNDS, RUNS)) * model.reward_std

    def play(model, arms, z, belief, shocks, noise):
        def one_round(now, drawn):
            (z, belief), (shock, noise) = now, drawn
            arm = arms[(arms @ belief.mean + idea.bonus(belief.cov, model, arms)).argmax()]
            reward = arm @ z + noise
            seen = kalman.observe(belief, model, arm, reward)
            innovation = reward - arm @ belief.mean, arm @ belief.cov @ arm + model.reward_std**2
            after = kalman.step(belief, model, arm, reward)
            return (model.transition @ z + shock, after), (z, *belief, seen.mean, *innovation)

        return jax.lax.scan(one_round, (z, belief), (shocks, noise))[1]

    over_runs = jax.jit(jax.vmap(play, (None, None, 0, None, 1, 1), 1))
    with jax.enable_x64(True):
        record = over_runs(model, arms, z, kalman.prior(model), shocks, noise)
    return [np.asarray(part) for part in record]


def standard_errors(samples):
    """How many standard errors the mean over (round, run, …) is off zero; runs are independent."""
    runs = samples.mean(axis=0)
    return np.abs(runs.mean(axis=0)) / (runs.std(axis=0, ddof=1) / math.sqrt(len(runs)))


def test_P6_error_is_orthogonal_to_prediction(played_by_idea):
    """Lemma 1: E[eᵀ ẑ] = 0, and with it every entry of E[e ẑᵀ]."""
    z, predicted, *_ = played_by_idea
    products = (z - predicted)[..., :, None] * predicted[..., None, :]
    assert standard_errors(np.trace(products, axis1=-2, axis2=-1)) < 4
    assert (standard_errors(products) < 4).all()


def test_P6_second_moment_splits(played_by_idea):
    """Lemma 1: E[zᵀSz] = E[ẑᵀSẑ] + tr(S P) for S ⪰ 0."""
    z, predicted, cov, *_ = played_by_idea
    root = np.random.default_rng(4).standard_normal((3, 3))
    for S in (np.eye(3), root @ root.T, np.diag([1.0, 0.0, 0.0])):
        moment = np.einsum("...i,ij,...j", z, S, z) - np.einsum(
            "...i,ij,...j", predicted, S, predicted
        )
        assert standard_errors(moment - np.einsum("ij,...ji", S, cov)) < 4


def test_P6_tower_rule(played_by_idea):
    """Lemma 1: E[ẑ(t|t) | F(t−1)] = ẑ(t|t−1): the correction is blind to all that was known."""
    _, predicted, _, filtered, *_ = played_by_idea
    correction = filtered - predicted
    assert np.abs(correction).mean() > 0.1  # it does correct
    assert (standard_errors(correction) < 4).all()
    assert (standard_errors(correction[..., :, None] * predicted[..., None, :]) < 4).all()


def test_P6_normalized_innovations_are_chi_square(played_by_idea):
    *_, surprise, variance = played_by_idea
    low, high = scipy.stats.chi2.interval(0.99, RUNS * ROUNDS)
    assert low < np.sum(surprise**2 / variance) < high


# Properties. Entries are multiples of 1/8, so that a drawn covariance is positive semidefinite to
# the last bit and singular ones are exactly so; σ = 0 and singular Q are common.


in_eighths = st.integers(-16, 16).map(lambda n: n / 8)


checked = settings(deadline=None, derandomize=True, max_examples=50)


def squares(d):
    """Covariances R Rᵀ of every rank."""
    roots = st.integers(0, d).flatmap(lambda rank: arrays(float, (d, rank), elements=in_eighths))
    return roots.map(lambda root: root @ root.T)


@st.composite
def situations(draw):
    """A model, an arm and a belief."""
    d = draw(st.integers(1, 4))
    transition = draw(arrays(float, (d, d), elements=in_eighths))
    reward_std = draw(st.sampled_from([0.0, 0.125, 1.0, 8.0]))
    model = LGDS(transition, draw(squares(d)), reward_std, initial_cov=np.eye(d))
    arm = draw(arrays(float, d, elements=in_eighths).filter(np.any))
    return model, arm, Belief(draw(arrays(float, d, elements=in_eighths)), draw(squares(d)))


def assert_semidefinite(matrix, tolerance, scale):
    assert np.linalg.eigvalsh(matrix)[0] >= -tolerance * np.linalg.norm(scale, 2)


def test_a_state_that_is_known_to_the_last_bit_and_beyond():
    """σ = 0 and Q = 0: P shrinks to nothing, and no reward moves the mean to infinity."""
    model = LGDS([[0.125]], [[0.0]], 0.0, initial_cov=[[1.0]])
    belief = kalman.prior(model)
    for reward in np.random.default_rng(0).standard_normal(400):
        belief = kalman.step(belief, model, np.array([1.0]), reward)
        assert abs(belief.mean[0]) < 1e3


@checked
@given(situations(), st.integers(0, 2**32 - 1))
def test_P5_covariance_stays_symmetric_semidefinite(situation, seed):
    model, arm, belief = situation
    rng = np.random.default_rng(seed)
    for _ in range(20):
        belief = kalman.step(belief, model, arm, rng.standard_normal())
        assert (belief.cov == belief.cov.T).all()
        assert_semidefinite(belief.cov, 1e-12, scale=belief.cov)
        arm = rng.choice([arm, rng.standard_normal(model.n_states)])


@checked
@given(situations(), in_eighths)
def test_P5_observing_never_raises_a_variance(situation, reward):
    model, arm, belief = situation
    seen = kalman.observe(belief, model, arm, reward)
    # Rounding up adds 4 d ε ≤ 4e-15 of the diagonal.
    assert_semidefinite(belief.cov - seen.cov, 1e-14, scale=belief.cov)
    assert_semidefinite(seen.cov, 1e-14, scale=belief.cov)


@checked
@given(situations(), st.data())
def test_P5_riccati_step_is_monotone(situation, data):
    model, arm, (_, small) = situation
    large = small + data.draw(squares(model.n_states))
    after_small = kalman.riccati_step(small, model, arm)
    after_large = kalman.riccati_step(large, model, arm)
    assert_semidefinite(after_large - after_small, 1e-9, scale=after_large)


@checked
@given(situations(), in_eighths, st.data())
def test_P5_units_of_the_state_do_not_matter(situation, reward, data):
    """z ↦ D z: Γ ↦ D Γ D⁻¹, Q ↦ D Q D, a ↦ D⁻¹ a, and the belief follows."""
    model, arm, belief = situation
    powers = st.integers(-20, 20).map(lambda n: 2.0**n)  # exact in floating point
    D = data.draw(arrays(float, model.n_states, elements=powers))
    DD = np.outer(D, D)
    scaled = LGDS(
        model.transition * D[:, None] / D, model.process_cov * DD, model.reward_std, np.eye(len(D))
    )
    expected = kalman.step(belief, model, arm, reward)
    after = kalman.step(Belief(D * belief.mean, DD * belief.cov), scaled, arm / D, reward)
    np.testing.assert_allclose(after.mean / D, expected.mean, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(after.cov / DD, expected.cov, rtol=1e-13, atol=1e-13)


@checked
@given(situations())
def test_P5_an_expected_reward_teaches_the_mean_nothing(situation):
    model, arm, belief = situation
    after = kalman.step(belief, model, arm, arm @ belief.mean)
    assert (after.mean == model.transition @ belief.mean).all()


# Rewards that are known beforehand.


@under_both
@pytest.mark.parametrize("cov", [np.diag([1.0, 0.0]), np.zeros((2, 2))])
def test_P5_a_known_reward_has_no_gain(cov, call):
    """aᵀPa + σ² = 0: nothing is learned, nothing is NaN, and NumPy has nothing to warn of."""
    model = LGDS([[0.5, 1.0], [0.0, 0.5]], np.diag([0.0, 2.0]), reward_std=0.0)
    belief, arm = Belief(np.array([1.0, 2.0]), cov), np.array([0.0, 3.0])
    after = call(kalman.step, belief, model, arm, 100.0)
    predicted = model.transition @ cov @ model.transition.T + model.process_cov
    assert after.mean.tolist() == [2.5, 1.0]
    np.testing.assert_allclose(after.cov, predicted, rtol=1e-14)
    np.testing.assert_allclose(call(kalman.riccati_step, cov, model, arm), predicted, rtol=1e-14)


@pytest.mark.parametrize("start", [1.0, 0.0])
def test_P5_a_reward_known_up_to_rounding_has_no_gain(start):
    """σ = 0 and an arm blind to the only noise: aᵀPa is zero on paper, not in the machine."""
    root = np.array([2.0, 2.0, 1.0]) / 3
    model = LGDS(0.5 * np.eye(3), np.outer(root, root), 0.0, start * np.outer(root, root))
    belief, arm = kalman.prior(model), np.array([-0.8, 0.9, -0.2])
    for rounds in range(1, 5):
        belief = kalman.step(belief, model, arm, 0.0)
        assert_close(belief.cov, model.state_cov(rounds), 1e-12)


def test_P5_known_rewards_add_no_likelihood():
    model = LGDS([[0.5]], [[0.0]], reward_std=0.0, initial_cov=[[4.0]])
    played, rewards = [[1.0]], [2.0]
    once = kalman.log_likelihood(model, played, rewards)
    assert once == pytest.approx(scipy.stats.norm.logpdf(2.0, scale=2.0), rel=1e-12)
    sure = Belief(np.array([2.0]), np.zeros((1, 1)))
    assert kalman.log_likelihood(model, played * 3, rewards * 3, sure) == 0
    smoothed = kalman.smooth(model, played * 3, rewards * 3, sure)
    assert smoothed.mean.ravel().tolist() == [2.0, 1.0, 0.5]
    assert not smoothed.cov.any()


@pytest.mark.parametrize("rounds", [1, 3, 10, 60])
def test_P5_known_rewards_add_no_likelihood_ever(rounds):
    """σ = 0, Q = 0: after the first reward all others are known, and stay so."""
    model = LGDS([[0.5]], [[0.0]], 0.0, initial_cov=[[4.0]])
    rewards = 2.0 * 0.5 ** np.arange(rounds)
    played = np.ones((rounds, 1))
    expected = naive.log_likelihood(
        np.zeros(1), np.array([[4.0]]), model.transition, model.process_cov, 0.0, played, rewards
    )
    assert kalman.log_likelihood(model, played, rewards) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_P5_no_noise_and_a_singular_q_keep_the_likelihood(seed):
    """σ = 0, rank-one Q, random arms: every round brings one new shock, none is called known."""
    rng = np.random.default_rng(seed)
    transition = 0.5 * rng.standard_normal((3, 3))
    root = rng.standard_normal((3, 1))
    model = LGDS(transition, root @ root.T, 0.0, initial_cov=np.eye(3))
    played = rng.standard_normal((12, 3))
    rewards = rng.standard_normal(12)
    run = kalman.predictions(model, played, rewards)
    assert (run.variances > 0).all()


def test_P5_known_rewards_do_not_disturb_the_smoother():
    model = LGDS([[0.5]], [[0.0]], 0.0, initial_cov=[[4.0]])
    smoothed = kalman.smooth(model, np.ones((5, 1)), 2.0 * 0.5 ** np.arange(5))
    np.testing.assert_allclose(smoothed.mean[:, 0], 2.0 * 0.5 ** np.arange(5), rtol=1e-12)
    np.testing.assert_allclose(smoothed.cov[:, 0, 0], 0.0, atol=1e-13)


# The filter is written again where speed or the last bits ask for it: all spellings agree.


@under_both
@on_random_systems
def test_P5_the_plain_update_equals_observe(seed, d, call):
    model, (arm,), (reward,), belief = problem(seed, d, rounds=1)
    noise = model.reward_std**2
    found = call(kalman.plain_update, *belief, arm, reward, noise)
    seen = kalman.observe(belief, model, arm, reward)
    assert_close(found.mean, seen.mean, 1e-10)
    assert_close(found.cov, seen.cov, 1e-10)
    assert_close(found.cross * found.weight, belief.cov @ arm / found.variance, 1e-12)
    missing = call(kalman.plain_update, *belief, arm, reward, noise, 0.0)
    assert (missing.mean == belief.mean).all()
    assert (missing.cov == belief.cov).all()
    known = call(kalman.plain_update, belief.mean, 0 * belief.cov, arm, reward, 0.0)
    assert (known.mean == belief.mean).all()


@under_both
@on_random_systems
def test_P7_imagined_steps_equal_steps(seed, d, call):
    model, arms, surprises, _ = problem(seed, d, rounds=6)
    beliefs = [problem(seed + n, d)[3] for n in range(6)]
    stacked = Belief(*(np.stack(part) for part in zip(*beliefs, strict=True)))
    found = call(kalman.imagined_step, stacked, model, arms, surprises)
    for n, (belief, arm, surprise) in enumerate(zip(beliefs, arms, surprises, strict=True)):
        deviation = math.sqrt(arm @ belief.cov @ arm + model.reward_std**2)
        after = kalman.step(belief, model, arm, arm @ belief.mean + deviation * surprise)
        assert_close(found.mean[n], after.mean, 1e-9)
        assert_close(found.cov[n], after.cov, 1e-9)


@on_random_systems
def test_P9_a_round_of_the_riccati_solver_equals_the_filter(seed, d):
    """All rewards of a round, one after the other."""
    model, arms, rewards, belief = problem(seed, d, rounds=3)
    stack = riccati.Stack.of([model], arms[None])
    after = belief
    for arm, reward in zip(arms, rewards, strict=True):
        after = kalman.observe(after, model, arm, reward)
    expected = kalman.advance(after, model).cov
    assert_close(riccati.next_round(belief.cov[None], stack)[0], expected, 1e-9)


CASES = [
    Case("rewards short", lambda: log_likelihood(STABLE, EYE, [1.0]), "rewards", "(1,)"),
    Case("rewards NaN", lambda: log_likelihood(STABLE, EYE, [1, NAN]), "rewards", "[1] is nan"),
    Case("rewards 2-D", lambda: log_likelihood(STABLE, EYE, EYE), "rewards", "(2, 2)"),
    Case("played width", lambda: log_likelihood(STABLE, [[1.0]], [1.0]), "played", "(1, 1)"),
    Case("smooth short", lambda: db.kalman.smooth(STABLE, EYE, [1.0]), "rewards", "(1,)"),
]


@each(CASES)
def test_bad_arguments_are_refused(case):
    assert_refused(case)


def test_P5_priors_of_many_models():
    """As of each alone, with and without a start of their own."""
    cov, mean = np.diag([2.0, 3.0]), [1.0, -1.0]
    starts = [{}, {"initial_cov": cov}, {"initial_mean": mean}]
    starts += [{"initial_cov": cov, "initial_mean": mean}]
    models = [LGDS(0.5 * np.eye(2), np.eye(2), 1.0, **start) for start in starts]
    for model, *found in zip(models, *kalman.priors(models), strict=True):
        for one, other in zip(found, kalman.prior(model), strict=True):
            assert np.array_equal(one, other)
