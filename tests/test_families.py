"""P20: the five families of Table I, and what misprint 7 says about Bernoulli."""

import itertools

import numpy as np
import pytest
from scipy import stats

import driftbandit as db
import naive
from driftbandit import InvalidInput, families
from driftbandit.families import FAMILIES, sample
from refusals import Case, assert_refused, each

NAMES = list(FAMILIES)


LAWS = {
    "gaussian": stats.norm(),
    "cauchy": stats.cauchy(),
    "uniform": stats.uniform(),
    "exponential": stats.expon(),
}


SIZES = {
    "gaussian": stats.halfnorm(),
    "cauchy": stats.halfcauchy(),
    "uniform": stats.uniform(),
    "exponential": stats.expon(),
}
"""Law of an entry's absolute value."""


DOUBT = 1e-3
"""Seeds are fixed: a law that fits stays above this p-value forever."""


def arrays(system):
    model, arms = system
    return model.transition, model.process_cov, model.reward_std, arms


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(arrays(one), arrays(other), strict=True))


def test_the_families_of_table_ii():
    """P20, P21: all five, in the table's order."""
    assert NAMES == ["gaussian", "cauchy", "uniform", "bernoulli", "exponential"]


@pytest.mark.parametrize(("states", "arms"), [(10, 10), (1, 1), (3, 7)])
@pytest.mark.parametrize("family", NAMES)
def test_every_system_is_a_bandit(family, states, arms):
    """P20: ρ(Γ) = 0.9, Q symmetric and semidefinite, σ ≥ 0, arms that are not zero."""
    systems = sample(family, 100, states, arms, seed=4)
    assert len(systems) == 100
    assert systems.family == family
    for model, rows in systems:
        assert model.transition.shape == model.process_cov.shape == (states, states)
        assert rows.shape == (arms, states)
        radius = np.abs(np.linalg.eigvals(model.transition)).max()
        assert radius == pytest.approx(0.9, abs=1e-9)
        Q = model.process_cov
        assert np.array_equal(Q, Q.T)
        assert np.linalg.eigvalsh(Q)[0] >= -1e-12 * np.abs(Q).max()
        assert np.ndim(model.reward_std) == 0
        assert model.reward_std >= 0
        assert rows.any(axis=1).all()


@pytest.mark.parametrize("family", NAMES)
def test_the_state_starts_stationary(family):
    """P20: the paper's 10⁴ rounds of warm-up, exactly."""
    for model, _ in sample(family, 20, n_states=4, n_arms=2, seed=5):
        assert model.initial_cov is None
        Z = naive.stationary_cov(model.transition, model.process_cov)
        scale = np.abs(Z).max()
        np.testing.assert_allclose(model.start_cov(), Z, rtol=0, atol=1e-7 * scale)


@pytest.mark.parametrize("family", NAMES)
def test_unit_arms(family):
    """P2: length one, the same directions, the same models."""
    drawn = sample(family, 20, seed=6)
    scaled = sample(family, 20, seed=6, unit_arms=True)
    assert scaled.redraws == drawn.redraws
    for (model, rows), (same_model, unit) in zip(drawn, scaled, strict=True):
        assert np.array_equal(same_model.transition, model.transition)
        assert np.array_equal(same_model.process_cov, model.process_cov)
        assert same_model.reward_std == model.reward_std
        np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-14)
        lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(unit * lengths, rows, rtol=1e-13)
    assert any(not np.array_equal(a[1], b[1]) for a, b in zip(drawn, scaled, strict=True))


@pytest.mark.parametrize("family", NAMES)
def test_another_radius_and_noise_of_the_same_draw(family):
    """Γ and σ are scaled, all else is the table's; 0.9 and 1 are the table itself."""
    drawn = sample(family, 10, 4, 3, seed=8)
    table = sample(family, 10, 4, 3, seed=8, radius=0.9, noise_scale=1.0)
    assert all(same(a, b) for a, b in zip(drawn, table, strict=True))
    changed = sample(family, 10, 4, 3, seed=8, radius=0.45, noise_scale=4.0)
    for (model, rows), (other, others) in zip(drawn, changed, strict=True):
        assert np.abs(np.linalg.eigvals(other.transition)).max() == pytest.approx(0.45)
        np.testing.assert_allclose(other.transition, model.transition / 2, rtol=1e-14)
        assert np.array_equal(other.process_cov, model.process_cov)
        assert other.reward_std == 4 * model.reward_std
        assert np.array_equal(others, rows)
    assert sample(family, noise_scale=0.0)[0][0].reward_std == 0


@pytest.mark.parametrize(
    ("argument", "value"),
    [("radius", 0.0), ("radius", 1.0), ("radius", None), ("noise_scale", -1), ("noise_scale", "2")],
)
def test_wrong_radius_or_noise(argument, value):
    with pytest.raises(InvalidInput, match=f"^{argument}: "):
        sample("gaussian", **{argument: value})


@pytest.mark.parametrize("family", NAMES)
def test_a_system_does_not_depend_on_its_neighbors(family):
    seven = sample(family, 7, 4, 3, seed=7)
    assert all(same(a, b) for a, b in zip(sample(family, 3, 4, 3, seed=7), seven, strict=False))
    late = sample(family, 3, 4, 3, seed=7, first=4)
    assert all(same(a, b) for a, b in zip(late, seven[4:], strict=True))
    assert same(sample(family, 1, 4, 3, seed=7, first=6)[0], seven[-1])
    pieces = [sample(family, 1, 4, 3, seed=7, first=i) for i in range(7)]
    assert sum(piece.redraws for piece in pieces) == seven.redraws


@pytest.mark.parametrize(("states", "arms"), [(10, 10), (2, 5), (1, 3)])
@pytest.mark.parametrize("family", NAMES)
def test_systems_drawn_together_are_those_drawn_one_by_one(family, states, arms):
    """P20: bit for bit, with all redraws."""
    drawn, redraws = sample(family, 60, states, arms, seed=3, first=2), 0
    for number, system in enumerate(drawn, start=2):
        rng = families.generator(family, 3, number)
        *expected, rejected = naive.random_system(FAMILIES[family], rng, states, arms)
        assert all(np.array_equal(a, b) for a, b in zip(arrays(system), expected, strict=True))
        redraws += rejected
    assert drawn.redraws == redraws


def test_as_a_sequence():
    systems = sample("uniform", 5, 2, 3)
    assert isinstance(systems[1:4], list)
    assert [id(pair) for pair in systems[1:4]] == [id(systems[i]) for i in (1, 2, 3)]
    assert [id(pair) for pair in systems] == [id(systems[i]) for i in range(5)]
    assert repr(systems) == "Systems('uniform', 5 systems, 0 redraws)"
    with pytest.raises(IndexError):
        systems[5]


@pytest.mark.parametrize("family", NAMES)
def test_every_draw_is_another(family):
    """Numbers and seeds of systems set them apart, in every part."""
    drawn = [*sample(family, 4, seed=0), *sample(family, 4, seed=1), *sample(family, 4, seed=2)]
    for one, other in itertools.combinations(drawn, 2):
        for a, b in zip(arrays(one), arrays(other), strict=True):
            assert np.ndim(a) == 0 or not np.array_equal(a, b)


def test_families_have_streams_of_their_own(monkeypatch):
    """Even under one common law no two families draw the same numbers."""
    for name in NAMES:
        monkeypatch.setitem(families.FAMILIES, name, FAMILIES["gaussian"])
    drawn = [sample(name, seed=8)[0] for name in NAMES]
    for one, other in itertools.combinations(drawn, 2):
        assert not any(
            np.array_equal(a, b) for a, b in zip(arrays(one), arrays(other), strict=True)
        )


# The law of the entries.


@pytest.fixture(scope="module", params=LAWS)
def continuous(request):
    return request.param, sample(request.param, 500, seed=9)


def test_law_of_the_arms(continuous):
    family, systems = continuous
    entries = np.concatenate([rows.ravel() for _, rows in systems])
    assert entries.size == 50_000
    assert stats.kstest(entries, LAWS[family].cdf).pvalue > DOUBT
    assert systems.redraws == 0


def test_law_of_the_reward_noise(continuous):
    """σ = |r|."""
    family, systems = continuous
    sigmas = [model.reward_std for model, _ in systems]
    assert stats.kstest(sigmas, SIZES[family].cdf).pvalue > DOUBT


def test_law_of_the_transition(continuous):
    """Γ is T but for one factor, so ratios of its entries are ratios of two draws."""
    family, systems = continuous
    ratios = [model.transition[0, :-1] / model.transition[1, 1:] for model, _ in systems]
    rng = np.random.default_rng(10)
    top, bottom = (LAWS[family].rvs(50_000, random_state=rng) for _ in range(2))
    assert stats.ks_2samp(np.concatenate(ratios), top / bottom).pvalue > DOUBT


@pytest.mark.parametrize("family", LAWS)
def test_law_of_the_process_noise(family):
    """With one state Q is the square of one draw; with ten, Q is R Rᵀ of 100."""
    single = [float(model.process_cov[0, 0]) for model, _ in sample(family, 500, 1, 1, seed=11)]
    assert stats.kstest(np.sqrt(single), SIZES[family].cdf).pvalue > DOUBT
    drawn = [model.process_cov for model, _ in sample(family, 500, seed=11)]
    rng = np.random.default_rng(12)
    roots = [LAWS[family].rvs((10, 10), random_state=rng) for _ in range(2000)]
    for entry in [(0, 0), (2, 7)]:
        expected = [(root @ root.T)[entry] for root in roots]
        assert stats.ks_2samp([Q[entry] for Q in drawn], expected).pvalue > DOUBT


def test_parts_are_independent(continuous):
    """An entry of T, one of Q, σ and an arm's entry have nothing to do with each other."""
    _, systems = continuous
    parts = [[m.transition[0, 1], m.process_cov[0, 1], m.reward_std, a[0, 0]] for m, a in systems]
    chances = stats.spearmanr(parts).pvalue[np.triu_indices(4, 1)]
    assert chances.min() > DOUBT


# Bernoulli, misprint 7.


def test_bernoulli_entries():
    """Everything is made of zeros and ones, each half of the time; σ = 0 stays."""
    systems = sample("bernoulli", 200, seed=13)
    ones = 0
    for model, rows in systems:
        assert np.isin(rows, (0, 1)).all()
        T = (model.transition != 0).astype(float)
        factor = 0.9 / np.abs(np.linalg.eigvals(T)).max()
        np.testing.assert_allclose(model.transition, factor * T, rtol=1e-12)
        ones += T.sum()
        Q, sizes = model.process_cov, np.diag(model.process_cov)
        assert np.array_equal(Q, np.round(Q))
        assert (Q >= 0).all()
        assert (np.minimum(sizes[:, None], sizes) >= Q).all()
        assert sizes.max() <= 10
        assert model.reward_std in (0, 1)
    silent = sum(model.reward_std == 0 for model, _ in systems)
    assert 0 < silent < 200
    assert stats.binomtest(int(silent), 200).pvalue > DOUBT
    assert stats.binomtest(int(ones), 20_000).pvalue > DOUBT
    arm_ones = int(sum(rows.sum() for _, rows in systems))
    share = 0.5 / (1 - 0.5**10)  # given that no row is zero
    assert stats.binomtest(arm_ones, 20_000, share).pvalue > DOUBT
    trace = sum(np.trace(model.process_cov) for model, _ in systems)
    assert stats.binomtest(int(trace), 20_000).pvalue > DOUBT  # diagonal of R Rᵀ: its ones


def test_bernoulli_redraws():
    """With two states a quarter of the arms are zero, and 3 of 16 T are nilpotent."""
    systems = sample("bernoulli", 200, n_states=2, n_arms=10, seed=14)
    assert systems.redraws > 0
    for model, rows in systems:
        assert rows.any(axis=1).all()
        T = model.transition
        assert (T @ T).any()
    # Draws until the first good one are geometric: mean (1-p)/p and variance (1-p)/p² thrown away.
    mean = 200 * (10 * (1 / 4) / (3 / 4) + (3 / 16) / (13 / 16))
    variance = 200 * (10 * (1 / 4) / (3 / 4) ** 2 + (3 / 16) / (13 / 16) ** 2)
    assert systems.redraws == pytest.approx(mean, abs=4 * variance**0.5)


def test_redraws_are_counted_one_by_one(monkeypatch):
    nilpotent = [[0.0, 1.0], [0.0, 0.0]]
    script = [
        np.zeros((2, 2)),
        np.array(nilpotent),
        np.array(nilpotent).T,
        np.array([[0.0, 2.0], [2.0, 0.0]]),  # T
        np.array([[1.0, 0.0], [1.0, 1.0]]),  # R
        np.array(-3.0),  # r
        np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]),  # arms: two are zero
        np.array([[0.0, 0.0], [0.0, 5.0]]),  # one still is
        np.array([[7.0, 0.0]]),
    ]
    queue = iter(script)

    def law(rng, shape):
        value = next(queue)
        assert value.shape == shape
        return value.copy()

    monkeypatch.setitem(families.FAMILIES, "bernoulli", law)
    systems = sample("bernoulli", n_states=2, n_arms=3)
    assert next(queue, None) is None
    assert systems.redraws == 3 + 2 + 1
    model, rows = systems[0]
    np.testing.assert_allclose(model.transition, [[0, 0.9], [0.9, 0]], rtol=1e-15)
    assert model.process_cov.tolist() == [[1, 1], [1, 2]]
    assert model.reward_std == 3
    assert rows.tolist() == [[7, 0], [1, 2], [0, 5]]


def test_the_names_of_version_0_1_still_work():
    (model, arms), (same, rows) = (
        families.sample("gaussian", **size)[0]
        for size in ({"n_states": 3, "n_arms": 5}, {"states": 3, "arms": 5})
    )
    assert model == same
    assert np.array_equal(arms, rows)


CASES = [
    Case("gausian", lambda: db.families.sample("gausian"), "family", "did you mean 'gaussian'?"),
    Case("family number", lambda: db.families.sample(3), "family", "3"),
    Case("family None", lambda: db.families.sample(None), "family", "None"),
    Case("systems 0", lambda: db.families.sample("uniform", systems=0), "systems", "is 0"),
    Case("states 0", lambda: db.families.sample("uniform", n_states=0), "n_states", "is 0"),
    Case("arms 0", lambda: db.families.sample("uniform", n_arms=0), "n_arms", "is 0"),
    Case("family seed -1", lambda: db.families.sample("uniform", seed=-1), "seed", "-1"),
    Case("first -1", lambda: db.families.sample("uniform", first=-1), "first", "-1"),
]


@each(CASES)
def test_bad_families_are_refused(case):
    assert_refused(case)
