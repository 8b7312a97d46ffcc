"""The systems of the leaderboard: what each family draws, and how long it is played."""

import math

import numpy as np
import pytest

import driftbandit as db
from driftbandit.leaderboard.problems import MEMORIES, PROBLEMS, Cell
from driftbandit.priced_arm import independent_arms

CELLS = [(family, memory) for family, one in PROBLEMS.items() for memory in one.memories]


def drawn(family, memory, numbers=range(3), seed=0):
    return Cell(family, memory=memory).systems(numbers, 0, 0, seed)


def variances(system):
    return np.diag(system.arms @ system.model.start_cov() @ system.arms.T)


def parts(system):
    model = system.model
    return [system.arms, model.transition, model.process_cov, model.reward_std, model.start_cov()]


@pytest.mark.parametrize(("family", "memory"), CELLS)
def test_a_system_depends_on_seed_family_memory_and_number_alone(family, memory):
    truth, assumed = drawn(family, memory)
    [again], other = drawn(family, memory, range(2, 3))
    for mine, theirs in zip(parts(truth[2]), parts(again), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    if assumed is None:
        assert other is None
        return
    assert truth[0].arms.shape == assumed[0].arms.shape
    changed = [
        not np.array_equal(*pair) for pair in zip(*map(parts, (truth[0], assumed[0])), strict=True)
    ]
    assert any(changed)
    assert PROBLEMS[family].kind == "wrong models"


@pytest.mark.parametrize(("family", "memory"), CELLS)
def test_memories_are_what_they_are_called(family, memory):
    [system], _ = drawn(family, memory, range(1))
    sizes = np.abs(np.linalg.eigvals(system.model.transition))
    if memory == "mixed":
        np.testing.assert_allclose(1 / (1 - np.unique(sizes)[[0, -1]]), [2, 1000])
        return
    if family == "no_season":  # whose last two states turn
        sizes = sizes[np.argsort(np.abs(sizes - 1))[2:]] if memory != "forever" else sizes
    assert sizes.max() == pytest.approx(1 - 1 / MEMORIES[memory])


@pytest.mark.parametrize("family", [name for name, one in PROBLEMS.items() if one.independent])
def test_policies_believe_that_independent_arms_are(family):
    for memory in PROBLEMS[family].memories:
        truth, assumed = drawn(family, memory, range(1))
        for system in (assumed or truth) if memory != "forever" else ():
            independent_arms(system.model, system.arms)


def test_variances_and_noise():
    [mixed], _ = drawn("mixed_memories", "mixed", range(1))
    [unequal], _ = drawn("unequal_variance", "10", range(1))
    [noisy], _ = drawn("unequal_noise", "10", range(1))
    np.testing.assert_allclose(variances(mixed), 1)
    assert (variances(unequal).min(), variances(unequal).max()) == pytest.approx((0.2, 5))
    relative = noisy.model.reward_std / np.sqrt(variances(noisy))
    assert (relative.min(), relative.max()) == pytest.approx((1, 9))
    factors, _ = drawn("common_factor", "100", range(20))
    assert {round(float(system.arms[0, 0] ** 2), 6) for system in factors} == {0.3, 0.6, 0.9}
    np.testing.assert_allclose(variances(factors[0]), 1)


@pytest.mark.parametrize(("family", "factor"), [("drift_times_4", 4), ("drift_by_4", 0.25)])
def test_a_wrong_drift(family, factor):
    (truth, *_), (assumed, *_) = drawn(family, "100")
    drifts = [1 - system.model.spectral_radius for system in (truth, assumed)]
    assert drifts == pytest.approx([0.01, 0.01 * factor])
    np.testing.assert_allclose(assumed.model.start_cov(), truth.model.start_cov())


@pytest.mark.parametrize(("family", "factor"), [("noise_times_2", 2), ("noise_by_2", 0.5)])
def test_a_wrong_noise(family, factor):
    (truth, *_), (assumed, *_) = drawn(family, "100")
    assert (truth.model.reward_std, assumed.model.reward_std) == (1, factor)
    np.testing.assert_array_equal(assumed.model.transition, truth.model.transition)


def test_what_policies_miss():
    (truth, *_), (assumed, *_) = drawn("no_common_factor", "10")
    covariance = truth.arms @ truth.model.start_cov() @ truth.arms.T
    np.testing.assert_allclose(covariance, 0.5 + 0.5 * np.eye(10))
    np.testing.assert_allclose(
        assumed.arms @ assumed.model.start_cov() @ assumed.arms.T, np.eye(10)
    )
    (truth, *_), (assumed, *_) = drawn("no_season", "10")
    wave = truth.model.transition[10:, 10:]
    np.testing.assert_allclose(np.linalg.matrix_power(wave, 24), np.eye(2), atol=1e-12)
    assert truth.arms[:, 10:].all()
    assert not assumed.arms[:, 10:].any()


def test_the_papers_families_are_among_them():
    """P20: as `families.sample` draws them, at every memory."""
    for family in db.families.FAMILIES:
        by_memory = [drawn(family, memory, range(1))[0][0] for memory in ("2", "1000")]
        first, last = (system.model for system in by_memory)
        np.testing.assert_allclose(first.transition / 0.5, last.transition / 0.999)
        np.testing.assert_array_equal(first.process_cov, last.process_cov)
        np.testing.assert_array_equal(by_memory[0].arms, by_memory[1].arms)


def test_rounds_grow_with_memory_and_work_stays_the_same():
    found = {
        m: Cell("equal_arms", memory=m).runs_and_rounds(4, 8000, 10, 10)
        for m in MEMORIES
        if m != "mixed"
    }
    assert found == {
        **dict.fromkeys(["2", "10", "100"], (32, 1000)),
        "1000": (4, 8000),
        "forever": (16, 2000),
    }
    assert Cell("100_arms", memory="10").runs_and_rounds(4, 8000, 10, 100) == (3, 1000)
    assert Cell("equal_arms", memory="1000").runs_and_rounds(1, 1, 10, 10) == (1, 1)


def test_the_least_regret_is_known_of_independent_arms_in_the_long_run():
    for family, problem in PROBLEMS.items():
        for memory in problem.memories:
            cell = Cell(family, memory=memory)
            if not problem.independent or problem.kind == "wrong models" or memory == "forever":
                assert cell.least_regret([], 8000) is None
    cell = Cell("equal_arms", memory="2")
    systems, _ = cell.systems(range(3), 0, 0, 0)
    assert cell.least_regret(systems, 7999) is None
    least = cell.least_regret(systems, 8000)
    bounds = {system.model.reward_std: db.theory.least_regret(system).value for system in systems}
    assert least == [bounds[system.model.reward_std] for system in systems]


def test_a_memory_that_a_family_does_not_have_is_refused():
    with pytest.raises(db.InvalidInput, match="memory: unknown name 'forever'"):
        Cell("gaussian", memory="forever")
    assert math.isinf(MEMORIES["forever"])
