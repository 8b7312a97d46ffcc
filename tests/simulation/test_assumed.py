"""Learners that are wrong about the system, and other yardsticks of a round's regret (P4, P24)."""

import dataclasses

import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit.policies import Policy
from driftbandit.simulation import Options
from engine_paths import noises as policy_noises
from engine_paths import states_and_rewards

POLICIES = ["idea", "kode", "kalman_ucb", "thompson", "ucb", "oful", "random", "kalman_oracle"]
OTHERS = [name for name in db.policies.available() if name not in POLICIES]
EVERY = [*POLICIES, *(pytest.param(name, marks=pytest.mark.nightly) for name in OTHERS)]


FEW = ["kode", "random", "kalman_oracle"]
"""Filters on one reward, draws a number of its own, sees all rewards."""


ROUNDS, RUNS = 150, 100  # crosses the engine's span of 128


STREAM = Options(stream="beliefs")


SIZE = {"rounds": ROUNDS, "runs": RUNS, "seed": 9}


STUDY = {**SIZE, "options": STREAM}


GAMES = [("noisy", False), ("hindsight", False), ("mean", True), ("hindsight", True)]


@pytest.fixture(scope="module")
def truth():
    """Two systems whose noise is a third of what their best arm pays: both matter."""
    systems = []
    for law in ("gaussian", "exponential"):
        model, arms = db.families.sample(law, n_states=3, n_arms=5, seed=5)[0]
        spread = np.sqrt(max(arm @ model.stationary_cov() @ arm for arm in arms))
        systems.append((dataclasses.replace(model, reward_std=spread / 3), arms))
    return systems


@pytest.fixture(scope="module")
def wrong(truth):
    """Wrong in everything: Γ, Q, σ, the arms and the start; the second one is unstable."""
    rng = np.random.default_rng(6)
    assumed = []
    for radius, (model, arms) in zip((0.9, 1.02), truth, strict=True):
        transition = rng.standard_normal((3, 3))
        transition *= radius / np.abs(np.linalg.eigvals(transition)).max()
        root = rng.standard_normal((3, 3))
        start = 4.0 * np.eye(3)
        other = db.LGDS(transition, root @ root.T, 2 * model.reward_std + 0.1, start)
        assumed.append((other, arms[::-1] + rng.standard_normal(arms.shape)))
    return assumed


@pytest.fixture(scope="module")
def plain(truth):
    return db.simulate(truth, None, POLICIES, **STUDY)


@pytest.fixture(scope="module")
def misled(truth, wrong):
    return db.simulate(truth, None, POLICIES, assumed=wrong, **STUDY)


@pytest.fixture(scope="module")
def games(truth, wrong, misled):
    """Every yardstick and kind of noise, all with wrong beliefs."""
    played = {
        game: db.simulate(
            truth,
            None,
            FEW,
            assumed=wrong,
            **SIZE,
            options=dataclasses.replace(STREAM, regret=game[0], common_noise=game[1]),
        )
        for game in GAMES
    }
    return {("mean", False): misled, **played}


def as_arrays(system):
    model, arms = system
    start = model.initial_cov
    return model.transition, model.process_cov, float(model.reward_std), start, arms


def replayed(name, system, place, run):
    """States, every arm's noise, and the policy's own chances, as the engine draws them."""
    where = {"seed": STUDY["seed"], "stream": "beliefs", "system": place, "run": run}
    model, arms = system
    # A state that rests at zero, paid with unit noise: the rewards are the noise itself.
    still = db.LGDS(model.transition, 0 * model.process_cov, 1.0, 0 * model.process_cov)
    states, _ = states_and_rewards(model, arms, ROUNDS, **where)
    _, noises = states_and_rewards(still, arms, ROUNDS, **where)
    return states, noises, policy_noises(name, ROUNDS, model.n_states, **where)


def textbook(name, truth, assumed, place, run, **game):
    """The regret path of one run."""
    systems = as_arrays(truth[place]), as_arrays(assumed[place])
    return naive.run(name, *systems, *replayed(name, truth[place], place, run), **game)


def assert_same_curve(curve, path, checkpoints):
    """To 1e-10 of the largest value, since a path of noisy regret may cross zero."""
    expected = path[checkpoints - 1]
    np.testing.assert_allclose(curve, expected, rtol=1e-10, atol=1e-10 * np.abs(path).max())


@pytest.mark.parametrize("name", EVERY)
def test_P24_wrong_beliefs_equal_the_textbook(name, truth, wrong, misled):
    """P24: every policy acts on what it believes; states, rewards and regret are the truth's."""
    if name in OTHERS:
        misled = db.simulate(truth, None, [name], assumed=wrong, **STUDY)
    for place, run in ((0, 0), (1, RUNS - 1)):
        path = textbook(name, truth, wrong, place, run)
        assert_same_curve(misled.curves[name][place, run], path, misled.checkpoints)


@pytest.mark.parametrize("name", EVERY)
def test_P24_beliefs_change_the_learners_alone(name, truth, wrong, plain, misled):
    """P24: the Oracle's is not perturbed, bit for bit; who ignores the model does not notice."""
    if name in OTHERS:
        plain = db.simulate(truth, None, [name], **STUDY)
        misled = db.simulate(truth, None, [name], assumed=wrong, **STUDY)
    same = np.array_equal(plain.curves[name], misled.curves[name])
    assert same == (name in ("kalman_oracle", "random"))


def test_P24_wrong_filters_lose_more(plain, misled):
    for name in ("idea", "kode", "kalman_ucb"):
        assert (misled.regret[name].mean(axis=1) > 1.1 * plain.regret[name].mean(axis=1)).all()


@pytest.mark.parametrize(("kind", "names"), [(list, POLICIES), (tuple, FEW), (iter, FEW)])
def test_believing_the_truth_changes_nothing(kind, names, truth, plain):
    """Bit for bit, whatever kind of sequence it comes in."""
    again = db.simulate(truth, None, names, assumed=kind(truth), **STUDY)
    assert list(again.curves) == names
    for name in names:
        np.testing.assert_array_equal(again.curves[name], plain.curves[name])


def test_believing_the_truth_changes_nothing_after_a_warmup(truth):
    started = [(dataclasses.replace(model, initial_cov=100 * np.eye(3)), a) for model, a in truth]
    alone = db.simulate(
        started, None, ["kode"], **SIZE, options=dataclasses.replace(STREAM, warmup=50)
    )
    again = db.simulate(
        started,
        None,
        ["kode"],
        assumed=started,
        **SIZE,
        options=dataclasses.replace(STREAM, warmup=50),
    )
    np.testing.assert_array_equal(again.regret["kode"], alone.regret["kode"])


def test_own_policies_that_see_all_rewards_know_the_truth(truth, wrong):
    """One rule, which plays the longest arm it knows: of the truth, or of the belief."""

    def of(sees_all):
        return Policy(
            f"longest {sees_all}",
            lambda model, arms, rounds: ({}, (np.zeros(()),)),
            lambda state, problem, noise: (problem.arms**2).sum(axis=1).argmax(),
            lambda state, problem, arm, reward: state,
            full_information=sees_all,
        )

    result = db.simulate(truth, None, [of(True), of(False)], assumed=wrong, **STUDY)
    for place, (model, arms) in enumerate(truth):
        states, _, _ = replayed("longest", (model, arms), place, 0)
        for sees_all, known in ((True, arms), (False, wrong[place][1])):
            longest = int((known**2).sum(axis=1).argmax())
            expected = naive.regret(arms, states, [longest] * ROUNDS)
            found = result.regret[f"longest {sees_all}"][place, 0]
            assert found == pytest.approx(expected, rel=1e-10)
    assert not np.array_equal(*result.regret.values())


# What a round is held against.


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize(("regret", "common"), GAMES)
def test_P4_yardsticks_equal_the_textbook(regret, common, name, truth, wrong, games):
    """P4 in its three forms, noise of each arm or of all, on top of wrong beliefs."""
    result = games[regret, common]
    path = textbook(name, truth, wrong, 1, 2, regret=regret, common_noise=common)
    assert_same_curve(result.curves[name][1, 2], path, result.checkpoints)


@pytest.mark.parametrize("name", FEW)
def test_P4_noise_leaves_the_mean_regret_alone(name, games):
    """P4: run by run the difference is noise around zero, within four standard errors of it."""
    mean, noisy = (games[regret, False].regret[name] for regret in ("mean", "noisy"))
    difference, size = noisy - mean, mean.mean(axis=1)
    error = difference.std(axis=1, ddof=1) / np.sqrt(RUNS)
    assert (np.abs(difference.mean(axis=1)) < 4 * error).all()
    assert (error > 1e-3 * size).all()  # there is noise,
    assert (error < 0.1 * size).all()  # but not so much that this would say nothing


@pytest.mark.parametrize("name", FEW)
def test_hindsight_sees_more_than_the_best_mean(name, games):
    """The highest reward drawn: above the best mean on average, and never below any reward."""
    mean, noisy, hindsight = (
        games[regret, False].curves[name] for regret in ("mean", "noisy", "hindsight")
    )
    more = (hindsight - mean)[..., -1]
    error = more.std(axis=1, ddof=1) / np.sqrt(RUNS)
    assert (more.mean(axis=1) > 10 * error).all()
    slack = 1e-12 * hindsight.max()
    assert np.diff(hindsight, axis=-1, prepend=0).min() >= -slack
    assert np.diff(hindsight - noisy, axis=-1, prepend=0).min() >= -slack


@pytest.mark.parametrize("name", FEW)
def test_common_noise_cancels(name, games):
    """With one noise for all arms the best mean pays best, in hindsight too."""
    mean, hindsight = (games[regret, True].curves[name] for regret in ("mean", "hindsight"))
    np.testing.assert_allclose(hindsight, mean, rtol=1e-12, atol=1e-12 * mean.max())


def test_common_noise_is_another_game(games):
    """Learners see other rewards; who looks at none plays as before."""
    for name in FEW:
        apart, common = (games["mean", noise].regret[name] for noise in (False, True))
        assert np.array_equal(apart, common) == (name == "random")


def test_without_noise_the_yardsticks_agree(truth):
    """σ = 0: bit for bit the same regret."""
    silent = [(dataclasses.replace(model, reward_std=0), arms) for model, arms in truth]
    mean, noisy, hindsight = (
        db.simulate(
            silent, None, ["random"], **SIZE, options=dataclasses.replace(STREAM, regret=regret)
        ).regret["random"]
        for regret in ("mean", "noisy", "hindsight")
    )
    np.testing.assert_array_equal(noisy, mean)
    np.testing.assert_array_equal(hindsight, mean)
