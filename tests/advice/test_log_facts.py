"""Facts about a log against textbook formulas."""

import math

import numpy as np
import pytest

import driftbandit as db
from advised_logs import log
from driftbandit.advice import log_facts
from driftbandit.identify import as_log
from driftbandit.identify.findings import UNKNOWN, answer
from driftbandit.identify.structured.comparison import Comparison, drifts, repeats
from driftbandit.identify.structured.fitting import fit_structure
from driftbandit.structure import parse


def comparison(*gains, noise=0.0):
    """constant(arm), then level(arm) and others that gain so much per reward."""
    rng = np.random.default_rng(0)
    texts = ["constant(arm)", "level(arm)", "constant(arm) + level(shared)", "level(arm) + ar(1)"]
    base = rng.standard_normal(400)
    each = [base, *(base + gain + noise * rng.standard_normal(400) for gain in gains)]
    structures = tuple(map(parse, texts[: len(each)]))
    scores = tuple(float(one.mean()) for one in each)
    return Comparison(structures, scores, (0.0,) * len(each), 400, tuple(each))


@pytest.mark.parametrize(
    ("gains", "noise", "verdict"),
    [
        ([0.3], 0.5, "yes"),
        ([-0.01], 0.05, "no"),
        ([0.005], 0.05, "no"),  # too little to matter
        ([0.0], 2.0, "cannot tell"),
        ([0.2], 5.0, "cannot tell"),
        ([-0.3, 0.3, -0.3], 0.5, "yes"),
    ],
)
def test_drift_is_a_gain_that_luck_does_not_explain(gains, noise, verdict):
    found = answer(comparison(*gains, noise=noise), drifts)
    assert found.verdict == verdict
    assert found.best_without == "constant(arm)"


def test_nothing_to_compare_is_no():
    found = answer(comparison(0.1, noise=0.1), repeats)
    assert found == UNKNOWN._replace(verdict="no")


def test_a_difference_is_the_mean_of_differences_and_has_their_block_error():
    found = comparison(0.3, noise=0.5)
    gain, error = found.difference(1, 0)
    apart = found.densities[1] - found.densities[0]
    blocks = apart.reshape(20, 20).mean(axis=1)
    assert gain == pytest.approx(apart.mean())
    assert error == pytest.approx(blocks.std(ddof=1) / math.sqrt(20))
    assert found.difference(0, 1) == pytest.approx((-gain, error))


CASES = {
    "chances": (log(rounds=90), None, "chances"),
    "none": (log(rounds=90, chances=False), None, "none"),
    "said": (log(rounds=90, chances=False), "uniform", "chances"),
    "full": (log(rounds=90, full=True), None, "full"),
    "one arm": (log(rounds=90, arms=("a",)), None, "none"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_log_says_about_other_arms(name):
    columns, chances, evidence = CASES[name]
    found = log_facts.contents(as_log(columns), chances)
    assert found.evidence == evidence
    assert sum(arm.rewards for arm in found.arms) == found.rewards == len(columns["reward"])
    assert sum(arm.share for arm in found.arms) == pytest.approx(1)
    for arm in found.arms:
        own = [r for r, a in zip(columns["reward"], columns["arm"], strict=True) if a == arm.name]
        assert arm.mean == pytest.approx(np.mean(own))


@pytest.mark.parametrize("full", [False, True])
def test_the_test_part_is_that_of_replay(full):
    columns = log(drift=0.1, full=full)
    read = as_log(columns)
    test = log_facts.split(read)
    settings = {"structure": "level(arm)", "train": log_facts.TRAIN, "runs": 1}
    played = db.replay(read, ["kode"], **settings)
    first = int(np.asarray(columns["round"])[test].min())
    assert first == played.first_round
    (before,) = read.only(~test).sequences
    np.testing.assert_array_equal(before.rewards, read.sequences[0].rewards[~test])
    assert before.rounds.max() == first - 1


@pytest.fixture(scope="module")
def walk():
    return fit_structure(as_log(log(drift=0.15)), "level(arm)")


def test_a_random_walk_moves_with_the_square_root_of_time(walk):
    step = math.sqrt(walk.model.process_cov[0, 0])
    for rounds in (1, 7, 100):
        found = log_facts.speed(walk, rounds)
        assert found.change == pytest.approx(step * math.sqrt(rounds))
        assert found.low < found.change < found.high
    assert found.low < 0.15 * 10 < found.high  # the truth
    assert found.shared is None


@pytest.mark.nightly
def test_a_level_with_a_memory_moves_less_and_less():
    text = "constant(arm) + level(arm, memory=free) + level(shared)"
    found = fit_structure(as_log(log(drift=0.15)), text, starts=1)
    model, arms = found.model, found.arms
    read = arms[0]
    # Var(⟨a, z(h)⟩ − ⟨a, z(0)⟩) from Γ and Q, the state of the level with a memory stationary
    factor, step = model.transition[2, 2], model.process_cov[2, 2]
    shared = model.process_cov[4, 4]
    start = np.diag([0, 0, step / (1 - factor**2), 0, 0])
    power, moved = np.eye(5), np.zeros((5, 5))
    for _ in range(20):
        moved = model.transition @ moved @ model.transition.T + model.process_cov
        power = model.transition @ power
    change = (power - np.eye(5)) @ start @ (power - np.eye(5)).T + moved
    said = log_facts.speed(found, 20)
    assert said.change == pytest.approx(math.sqrt(read @ change @ read))
    assert said.shared == pytest.approx(20 * shared / (read @ change @ read))
    assert said.shared_low < said.shared < said.shared_high


def test_half_life_of_a_random_walk_is_variance_over_variance_per_round(walk):
    step = float(walk.model.process_cov[0, 0])
    for rounds in (1, 2, 13, 1000):
        assert log_facts.half_life(walk, (rounds - 0.5) * step) == rounds


def test_constants_are_known_forever():
    still = fit_structure(as_log(log()), "constant(arm)")
    assert log_facts.half_life(still, 0.1) == math.inf


def test_the_share_that_is_predicted(walk):
    read = as_log(log(drift=0.15))
    test = log_facts.split(read)
    found = fit_structure(read.only(~test), "level(arm)")
    known = log_facts.predictability(found, read, test, walk)
    one = read.sequences[0]
    wrong = spread = 0.0
    belief = db.kalman.prior(found.start_system.model)
    means = {arm: one.rewards[test & (one.arms == arm)].mean() for arm in (0, 1)}
    for t, (arm, reward) in enumerate(zip(one.arms, one.rewards, strict=True)):
        row = found.start_system.arms[arm]
        if test[t]:
            wrong += (reward - row @ belief.mean) ** 2
            spread += (reward - means[arm]) ** 2
        belief = db.kalman.step(belief, found.start_system.model, row, reward)
    assert known.share == pytest.approx(1 - wrong / spread, abs=1e-9)
    assert known.low < known.share < known.high
    assert known.rewards == test.sum()


def test_rewards_without_variance_predict_nothing():
    read = as_log(log(noise=0.0))
    test = log_facts.split(read)
    found = fit_structure(read.only(~test), "level(arm)")
    known = log_facts.predictability(found, read, test, found)
    assert math.isnan(known.share)
    assert known.half_life is None
