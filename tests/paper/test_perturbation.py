"""P24: models that learners have wrong, T⁻¹ΓT and its like, and chunks played with them."""

import re

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment

import driftbandit as db
import driftbandit.simulation
from driftbandit import InvalidInput, families
from driftbandit.paper.perturbation import TARGETS, perturb, similarity
from driftbandit.paper.readings import Cell
from driftbandit.simulation import Options
from driftbandit.studies import Chunk, Specification, specification

FAMILIES = list(families.FAMILIES)
STRENGTHS = (0.1, 1.0, 10.0)
SYSTEMS, STATES = 12, 10


def similarities(family, strength, systems=SYSTEMS, states=STATES, seed=0):
    return [similarity(family, seed, number, states, strength) for number in range(systems)]


def perturbed(family, target, strength):
    """Triples of the truth, what is assumed, and T."""
    systems, Ts = families.sample(family, SYSTEMS), similarities(family, strength)
    return list(zip(systems, perturb(systems, target, Ts), Ts, strict=True))


def assert_only(changed, truth, assumed):
    """All but ``changed`` is bit for bit the truth's."""
    parts = [
        {"transition": m.transition, "process_cov": m.process_cov, "arms": arms}
        for m, arms in (truth, assumed)
    ]
    for name in parts[0]:
        assert np.array_equal(parts[0][name], parts[1][name]) == (name != changed), name
    assert truth[0].reward_std == assumed[0].reward_std
    assert truth[0].initial_cov is assumed[0].initial_cov is None


@pytest.mark.parametrize("states", [1, 3, 10])
@pytest.mark.parametrize("family", FAMILIES)
def test_P24_T_lies_at_distance_nu_along_one_direction(family, states):
    """P24: ‖T − I‖_F = ν, and Ξ = (T − I)/ν is the same for every ν."""
    for number in range(5):
        directions = []
        for strength in (*STRENGTHS, 1e-3):
            moved = similarity(family, 3, number, states, strength) - np.eye(states)
            assert np.linalg.norm(moved) == pytest.approx(strength, rel=1e-12)
            directions.append(moved / strength)
        for direction in directions[1:]:
            np.testing.assert_allclose(direction, directions[0], rtol=1e-9, atol=1e-12)


def test_P24_every_system_has_a_direction_of_its_own():
    """Another for another system, family and seed, and none that a system was drawn from."""
    places = [(f, seed, n) for f in FAMILIES for seed in (0, 1) for n in range(4)]
    directions = [similarity(f, s, n, 4, 1.0) - np.eye(4) for f, s, n in places]
    drawn = [families.generator(*place).standard_normal((4, 4)) for place in places]
    directions += [xi / np.linalg.norm(xi) for xi in drawn]
    inner = np.abs([[np.sum(one * two) for one in directions] for two in directions])
    assert np.diag(inner) == pytest.approx(1)
    assert (inner - np.eye(len(inner))).max() < 0.95


def test_P24_entries_of_the_direction_are_normal():
    """Of 100 entries scaled to length ten each is normal, but for what the length takes away."""
    entries = [10 * (T - np.eye(10)) for T in similarities("gaussian", 1.0, systems=40)]
    assert stats.kstest(np.ravel(entries), stats.norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("family", FAMILIES)
def test_P24_the_transition_keeps_its_eigenvalues(family, strength):
    """Γ̃ = T⁻¹ΓT; Bernoulli's eigenvalues may be defective, so powers' traces say it sharply."""
    for truth, assumed, T in perturbed(family, "transition", strength):
        assert_only("transition", truth, assumed)
        before, after = truth[0].transition, assumed[0].transition
        condition = np.linalg.cond(T)
        scale = 1e-12 * condition**2 * np.abs(before).max()
        np.testing.assert_allclose(T @ after, before @ T, atol=scale)
        gaps = np.abs(np.linalg.eigvals(before)[:, None] - np.linalg.eigvals(after))
        assert gaps[linear_sum_assignment(gaps)].max() < 1e-8 * condition
        assert assumed[0].spectral_radius == pytest.approx(0.9, rel=1e-8)
        for power in range(1, STATES + 1):
            one, two = (np.linalg.matrix_power(G, power) for G in (before, after))
            slack = 1e-11 * condition * max(1, np.linalg.norm(two))
            assert np.trace(one) == pytest.approx(np.trace(two), abs=slack)


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("family", FAMILIES)
def test_P24_the_process_noise_stays_a_covariance(family, strength):
    """The covariance nearest to the symmetric part S of T⁻¹QT.

    Which is the one C ⪰ 0 with C − S ⪰ 0 and C (C − S) = 0.
    """
    clipped = 0
    for truth, assumed, T in perturbed(family, "process_cov", strength):
        assert_only("process_cov", truth, assumed)
        Q, cov = truth[0].process_cov, assumed[0].process_cov
        product = np.linalg.inv(T) @ Q @ T
        part = (product + product.T) / 2
        scale = 1e-9 * np.abs(product).max()
        assert np.array_equal(cov, cov.T)
        assert np.linalg.eigvalsh(cov)[0] >= -scale
        assert np.linalg.eigvalsh(cov - part)[0] >= -scale
        assert np.abs(cov @ (cov - part)).max() <= scale * np.abs(product).max()
        clipped += np.linalg.eigvalsh(part)[0] < -scale
    assert clipped or strength < 10  # it was no covariance before


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("family", FAMILIES)
def test_P24_the_congruent_process_noise(family, strength):
    """T⁻¹QT⁻ᵀ, which needs no projection: the covariance of T⁻¹ξ."""
    for truth, assumed, T in perturbed(family, "process_cov_congruent", strength):
        assert_only("process_cov", truth, assumed)
        cov, inverse = assumed[0].process_cov, np.linalg.inv(T)
        expected = inverse @ truth[0].process_cov @ inverse.T
        np.testing.assert_allclose(cov, expected, atol=1e-9 * np.abs(expected).max())
        assert np.array_equal(cov, cov.T)
        assert np.linalg.eigvalsh(cov)[0] >= -1e-9 * np.abs(cov).max()


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("family", FAMILIES)
def test_P24_the_arms(family, strength):
    """C̃ = T⁻¹CT, C the stacked arms."""
    for truth, assumed, T in perturbed(family, "arms", strength):
        assert_only("arms", truth, assumed)
        expected = np.linalg.inv(T) @ truth[1] @ T
        np.testing.assert_allclose(assumed[1], expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(("states", "arms"), [(3, 4), (4, 3), (2, 1)])
def test_P24_arms_need_to_be_as_many_as_states(states, arms):
    """T⁻¹CT of a C that is not square is no product; Γ and Q do not mind."""
    systems = families.sample("gaussian", n_states=states, n_arms=arms)
    Ts = similarities("gaussian", 1.0, systems=1, states=states)
    shape = re.escape(f"({arms}, {states})")
    with pytest.raises(InvalidInput, match=rf"^arms: .*{shape}.*as many arms as states"):
        perturb(systems, "arms", Ts)
    with pytest.raises(InvalidInput, match=r"^target: .*arms, process_cov, "):
        perturb(systems, "gamma", Ts)
    for target in ("transition", "process_cov"):
        assert np.array_equal(perturb(systems, target, Ts)[0][1], systems[0][1])
    cell = Cell("gaussian", perturbed="arms", strength=1.0)
    with pytest.raises(InvalidInput, match=r"^n_arms: .*as many arms as states"):
        Specification((cell,), ("kode",), n_states=states, n_arms=arms)


@pytest.mark.parametrize("target", TARGETS)
def test_P24_small_perturbations_tend_to_the_truth(target):
    """A thousandth of ν is a thousandth of the error; without ν there is none."""

    def part(system):
        model, arms = system
        return arms if target == "arms" else getattr(model, target.removesuffix("_congruent"))

    for family in FAMILIES:
        systems = families.sample(family, 4)
        errors = []
        for strength in (1e-3, 1e-6, 0.0):
            assumed = perturb(systems, target, similarities(family, strength, 4))
            errors.append(
                [
                    np.linalg.norm(part(seen) - part(true)) / np.linalg.norm(part(true))
                    for true, seen in zip(systems, assumed, strict=True)
                ]
            )
        large, small, none = errors
        assert max(large) < 1e-2
        assert min(large) > 1e-5
        np.testing.assert_allclose(np.divide(large, small), 1000, rtol=0.02)
        assert max(none) < 1e-12


@pytest.fixture(scope="module")
def study():
    """Every cell of two families, three states, as Figure 3 has them but smaller."""
    wrong = [("", 0.0), *((target, 10.0) for target in TARGETS)]
    cells = tuple(
        Cell(f, perturbed=t, strength=s) for f in ("gaussian", "uniform") for t, s in wrong
    )
    return Specification(
        cells, ("kode", "kalman_oracle"), systems=3, runs=2, rounds=20, seed=4, n_states=3, n_arms=3
    )


@pytest.fixture(scope="module")
def columns(study):
    return {c.cell.label: specification.compute(study, c)[0] for c in study.chunks()}


def test_P24_the_oracle_is_not_perturbed(columns):
    """Bit for bit the same regret in all cells of a family; the learner's is another."""
    for family in ("gaussian", "uniform"):
        for target in TARGETS:
            plain, wrong = columns[family], columns[f"{family}.{target}-10"]
            assert np.array_equal(plain["kalman_oracle"], wrong["kalman_oracle"])
            assert not np.array_equal(plain["kode"], wrong["kode"])
            assert np.array_equal(plain["system"], wrong["system"])


def test_P24_chunks_are_played_with_what_was_perturbed(study, columns):
    """Against `simulate` with T⁻¹ΓT and T⁻¹CT made by hand, on the family's own stream."""
    for family in ("gaussian", "uniform"):
        systems = families.sample(family, 3, 3, 3, seed=4)
        assumed = {"": list(systems), "transition": [], "arms": []}
        for number, (model, arms) in enumerate(systems):
            T = similarity(family, 4, number, 3, 10.0)
            inverse = np.linalg.inv(T)
            moved = db.LGDS(inverse @ model.transition @ T, model.process_cov, model.reward_std)
            assumed["transition"].append((moved, arms))
            assumed["arms"].append((model, inverse @ arms @ T))
        for target, learned in assumed.items():
            by_hand = db.simulate(
                systems,
                policies=study.policies,
                assumed=learned,
                rounds=20,
                runs=2,
                seed=4,
                options=Options(stream=family, checkpoints=1),
            )
            found = columns[f"{family}.{target}-10" if target else family]
            for policy in study.policies:
                np.testing.assert_allclose(found[policy], by_hand.regret[policy].ravel(), rtol=1e-9)


def test_P24_a_piece_of_a_chunk_is_the_same(study, monkeypatch):
    """Ξ goes with the system's number, not with its place in the chunk."""

    class Caught(Exception):
        pass

    def caught(systems, **options):
        raise Caught(options["assumed"])

    monkeypatch.setattr(driftbandit.simulation, "simulate", caught)
    for cell in study.cells:
        if not cell.perturbed:
            continue
        with pytest.raises(Caught) as whole:
            specification.compute(study, Chunk(cell, 0, 3))
        with pytest.raises(Caught) as piece:
            specification.compute(study, Chunk(cell, 1, 2))
        [all_three], [last_two] = whole.value.args, piece.value.args
        for (model, arms), (same_model, same_arms) in zip(all_three[1:], last_two, strict=True):
            assert np.array_equal(arms, same_arms)
            assert np.array_equal(model.transition, same_model.transition)
            assert np.array_equal(model.process_cov, same_model.process_cov)
