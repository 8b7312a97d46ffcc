"""P16: how often arm i is played while arm j is best, against SciPy's orthants and simulation."""

import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit import LGDS, InvalidInput, families, steady_state, theory
from driftbandit.model import factor
from driftbandit.policies import idea, kalman_ucb, kode
from driftbandit.steady_state import oracle_cov, prediction_cov
from driftbandit.theory import wrong_action_probability
from refusals import EYE, NAN, STABLE, UNSTABLE, Case, assert_refused, each
from systems import random_system, with_constants

BONUSES = {"idea": idea.bonus, "kalman_ucb": kalman_ucb.bonus, "kode": kode.bonus}


def simulated(model, arms, u, P, draws, seed=0):
    """How often i was played while j was best, and how often j was best."""
    rng = np.random.default_rng(seed)
    known = rng.standard_normal((draws, model.n_states)) @ factor(model.stationary_cov() - P).T
    state = known + rng.standard_normal((draws, model.n_states)) @ factor(P).T
    played, best = (known @ arms.T + u).argmax(axis=1), (state @ arms.T).argmax(axis=1)
    counts = np.zeros((len(arms), len(arms)))
    np.add.at(counts, (played, best), 1)
    return counts, counts.sum(axis=0)


@pytest.mark.parametrize(
    ("k", "d", "name"),
    [
        (3, 3, "idea"),
        (4, 2, "kalman_ucb"),
        pytest.param(6, 4, "kode", marks=pytest.mark.nightly),
        pytest.param(6, 10, "idea", marks=pytest.mark.nightly),
    ],
)
def test_P16_matches_simulation(k, d, name):
    """Every entry to 4.5 standard errors and the stated accuracy; most of them to far less."""
    for family in ("gaussian", "bernoulli"):
        model, arms = families.sample(family, n_states=d, n_arms=k, seed=3)[0]
        P = prediction_cov(model, arms[0])
        u = BONUSES[name](P, model, arms)
        found = wrong_action_probability(model, arms, BONUSES[name], P, accuracy=3e-3).probability
        counts, best = simulated(model, arms, u, P, draws=400_000)
        assert (np.isnan(found).any(axis=0) <= (best < 10)).all()  # never best: hardly ever seen
        seen = best >= 1000
        share, found, best = counts[:, seen] / best[seen], found[:, seen], best[seen]
        assert found.sum(axis=0) == pytest.approx(1, abs=1e-12)
        error = np.sqrt(found * (1 - found) / best) + 1 / best
        assert (np.abs(share - found) <= 4.5 * error + 3e-3).all()
        assert np.median(np.abs(share - found) / error) < 1.5


@pytest.mark.filterwarnings("ignore")  # SciPy's, where a covariance is nearly singular
@pytest.mark.parametrize(("k", "d"), [(2, 1), (3, 3), (4, 4)])
def test_P16_matches_scipys_orthants(k, d):
    """The printed ratio of integrals in 2 (k − 1) and k − 1 dimensions, by somebody else's code."""
    model, arms = random_system(8, d, k=k)
    P = prediction_cov(model, arms[0])
    found = wrong_action_probability(model, arms, idea.bonus, P, accuracy=1e-3).probability
    expected = naive.wrong_action_probability(
        arms, idea.bonus(P, model, arms), model.stationary_cov(), P
    )
    assert found == pytest.approx(expected, abs=1.5e-3)


def test_P16_two_arms_in_closed_form():
    """P(play the other) = arccos(correlation)/π without a bonus."""
    model, arms = random_system(8, 3, k=2)
    P = oracle_cov(model, arms)
    gap, Z = arms[0] - arms[1], model.stationary_cov()
    wrong = np.arccos(np.sqrt(gap @ (Z - P) @ gap / (gap @ Z @ gap))) / np.pi
    found = wrong_action_probability(model, arms, kode.bonus, P, accuracy=1e-3).probability
    assert found == pytest.approx(np.array([[1 - wrong, wrong], [wrong, 1 - wrong]]), abs=1e-3)


def test_P16_nothing_known_and_all_known():
    model, arms = random_system(8, 3, k=4)
    Z = model.stationary_cov()
    u = kalman_ucb.bonus(Z, model, arms)
    blind = wrong_action_probability(model, arms, kalman_ucb.bonus, Z).probability
    decided = np.tile(np.eye(4)[:, [u.argmax()]], 4)
    assert blind == pytest.approx(decided, abs=1e-12)  # the bonus alone decides
    seeing = wrong_action_probability(model, arms, kode.bonus, 0 * Z).probability
    assert seeing == pytest.approx(np.eye(4), abs=1e-9)


def test_P16_equal_arms_and_arms_that_are_never_best():
    model, _ = random_system(8, 2)
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    found = wrong_action_probability(
        model, arms, idea.bonus, 0.3 * model.stationary_cov()
    ).probability
    assert np.isnan(found[:, 2:]).all()  # the third repeats the first, the last lies between them
    assert found[:, :2].sum(axis=0) == pytest.approx(1)
    assert (found[2:, 0] == [0, found[3, 0]]).all()


def test_P16_refuses_what_it_cannot_say_with_accuracy(monkeypatch):
    model, arms = random_system(8, 3, k=4)
    P = prediction_cov(model, arms[0])
    many, crowd = random_system(8, 3, k=17)
    with pytest.raises(InvalidInput, match=r"^arms: has 17 rows; give 2 to 16"):
        wrong_action_probability(many, crowd, idea.bonus, prediction_cov(many, crowd[0]))
    monkeypatch.setattr("driftbandit.theory.mistakes.LAST", 8)
    with pytest.raises(InvalidInput, match=r"^accuracy: is 1e-06, but 0\.0\d+ was reached"):
        wrong_action_probability(model, arms, idea.bonus, P, accuracy=1e-6)


def test_P16_refuses_where_few_points_have_all_the_weight():
    """An arm that is best in a needle of a cone: by symmetry the others share what it loses."""
    turns = 2 * np.pi * np.arange(9) / 9 + 0.1
    needle = np.array([0.0, 0.0, 1.0])
    others = needle - np.stack([np.cos(turns), np.sin(turns), np.full(9, 1e-4)], axis=1)
    model = LGDS(0.5 * np.eye(3), np.eye(3), 1.0)
    P = 0.4 * model.stationary_cov()
    with pytest.raises(
        InvalidInput, match=r"^accuracy: .*no estimate was possible for arm 0 of 10"
    ):
        wrong_action_probability(model, np.vstack([needle, others]), kode.bonus, P, accuracy=0.1)
    wide = needle - np.stack([np.cos(turns), np.sin(turns), np.full(9, 0.3)], axis=1)
    found = wrong_action_probability(
        model, np.vstack([needle, wide]), kode.bonus, P, accuracy=0.01
    ).probability
    assert found[1:, 0] == pytest.approx(found[1:, 0].mean(), abs=0.02)


def test_P16_arms_that_nearly_agree_are_told_apart():
    model = LGDS(0.9 * np.eye(2), np.eye(2), 1.0)
    P = 0.3 * model.stationary_cov()
    far, near = (
        wrong_action_probability(model, [[1, 0], [-1, 0], [1, gap]], kode.bonus, P).probability
        for gap in (1e-4, 1e-7)
    )
    assert near == pytest.approx(far, abs=2e-3)
    assert not np.isnan(near).any()


def test_P16_does_not_depend_on_the_units_of_the_states():
    model, arms = random_system(8, 3, k=4)
    units = np.array([1.0, 1e6, 1e-6])
    same = LGDS(
        model.transition * np.outer(units, 1 / units),
        model.process_cov * np.outer(units, units),
        model.reward_std,
    )
    P = prediction_cov(model, arms[0])
    expected = wrong_action_probability(model, arms, kalman_ucb.bonus, P).probability
    found = wrong_action_probability(
        same, arms / units, kalman_ucb.bonus, P * np.outer(units, units)
    ).probability
    assert found == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("family", ["gaussian", "uniform", "bernoulli", "exponential"])
def test_P16_says_what_accuracy_it_reached(family):
    """By default all of 20 random systems get an answer, with an error that simulation confirms."""
    for model, arms in families.sample(family, n_states=3, n_arms=3, systems=5, seed=1):
        P = prediction_cov(model, arms[0])
        found = wrong_action_probability(model, arms, idea.bonus, P)
        assert (found.error <= 5e-3).all()
        known = ~np.isnan(found.probability[0])
        assert (found.error[known] > 0).all()
        counts, best = simulated(model, arms, idea.bonus(P, model, arms), P, draws=20_000)
        seen = best >= 500
        if len(np.unique(arms, axis=0)) < len(arms):  # rounding decides between equal arms
            continue
        assert known[seen].all()
        chance = found.probability[:, seen]
        error = 4.5 * (np.sqrt(chance * (1 - chance) / best[seen]) + 1 / best[seen])
        assert (np.abs(counts[:, seen] / best[seen] - chance) <= error + found.error[seen]).all()


def test_P16_works_harder_where_the_usual_effort_is_not_enough(monkeypatch):
    """Arm 2 is best in one round of 10⁵ or so: the usual points say nothing about it."""
    model, arms = families.sample("uniform", n_states=4, n_arms=6, systems=5, seed=1)[0]
    P = prediction_cov(model, arms[0])
    found = wrong_action_probability(model, arms, idea.bonus, P)
    assert np.isfinite(found.error).all()
    assert found.error[2] < 0.02
    monkeypatch.setattr("driftbandit.theory.mistakes.MOST", 10)
    found = wrong_action_probability(model, arms, idea.bonus, P)
    assert np.isinf(found.error[2])
    assert np.isnan(found.probability[:, 2]).all()
    assert found.error.max(initial=0, where=np.isfinite(found.error)) < 0.05


def test_P16_wrong_actions_with_offsets():
    model, rows, _ = with_constants(*random_system(8, 2, k=3), seed=8)
    far = np.where(model.constants, -1e3 / model.stationary_mean(), rows[0])  # paid −1000
    rows = np.vstack([rows, far])
    P = steady_state.prediction_cov(model, rows[0])
    found = theory.wrong_action_probability(model, rows, idea.bonus, P, accuracy=1e-2).probability
    rng, n = np.random.default_rng(0), 100_000
    Z = model.stationary_cov()
    known = model.stationary_mean() + rng.standard_normal((n, 3)) @ factor(Z - P).T
    state = known + rng.standard_normal((n, 3)) @ factor(P).T
    u = idea.bonus(P, model, rows)
    played, best = (known @ rows.T + u).argmax(axis=1), (state @ rows.T).argmax(axis=1)
    counts = np.zeros((4, 4))
    np.add.at(counts, (played, best), 1)
    assert np.isnan(found[:, 3]).all()
    times = counts.sum(axis=0)[:3]
    assert (times > 1000).all()
    share = counts[:, :3] / times
    error = np.sqrt(share * (1 - share) / times)
    assert (np.abs(share - found[:, :3]) <= 4.5 * error + 1e-2).all()


u = db.policies.idea.bonus


mistakes = db.theory.wrong_action_probability


CASES = [
    Case("mistakes alone", lambda: mistakes(STABLE, [[1, 0]], u, EYE), "arms", "1 rows"),
    Case("mistakes crowd", lambda: mistakes(STABLE, np.ones((17, 2)), u, EYE), "arms", "17 rows"),
    Case("mistakes cov", lambda: mistakes(STABLE, EYE, u, 2 * EYE), "cov", "by 0.666667"),
    Case("mistakes unstable", lambda: mistakes(UNSTABLE, EYE, u, EYE), "model", "radius 2"),
    Case("mistakes accuracy", lambda: mistakes(STABLE, EYE, u, EYE, -1), "accuracy", "-1"),
    Case("mistakes bonus", lambda: mistakes(STABLE, EYE, lambda *_: NAN, EYE), "bonus", "nan"),
]


@each(CASES)
def test_bad_arguments_are_refused(case):
    assert_refused(case)
