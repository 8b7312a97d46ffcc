"""Readings of what the paper leaves open (P20, P21): each answer changes what it says, no more."""

import dataclasses
import functools
import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import driftbandit.simulation
from driftbandit import InvalidInput, families
from driftbandit.model import checked_arms
from driftbandit.paper import readings
from driftbandit.paper.readings import CHOICES, NAMED, PLAIN, Cell, Reading, assumed, named
from driftbandit.studies import Chunk, Specification, specification
from refusals import Case, assert_refused, each

BENCHMARK = Path(__file__).parents[2] / "benchmarks/readings.py"
spec = importlib.util.spec_from_file_location("benchmark_readings", BENCHMARK)
benchmark = importlib.util.module_from_spec(spec)
spec.loader.exec_module(benchmark)
search = benchmark.search
FAMILIES = list(families.FAMILIES)
ANSWERS = [(question, answer) for question, answers in CHOICES.items() for answer in answers]
SEED, SYSTEMS = 3, 8
DOUBT = 1e-3
"""Seeds are fixed: a law that fits stays above this p-value forever."""
PARTS = ("transition", "process_cov", "reward_std", "initial_cov", "arms")
CHANGED = {
    "arms": {"arms"},
    "transition": {"transition"},
    "process": {"process_cov"},
    "noise": {"reward_std"},
    "start": {"initial_cov"},
}
"""What a question decides of a system; an interval decides all that Uniform draws."""
SILENT = [
    ("noise", "common"),
    *((q, a) for q, a in ANSWERS if q in ("regret", "belief", "medians")),
]
"""Answers about how systems are played and counted, not about what they are."""


def sample(reading, family, systems=SYSTEMS, n_states=4, n_arms=4, seed=SEED, first=0):
    return readings.sample(
        reading, family, systems, n_states=n_states, n_arms=n_arms, seed=seed, first=first
    )


def changed(**answers):
    return dataclasses.replace(PLAIN, **answers)


def parts(system):
    model, arms = system
    return {part: arms if part == "arms" else getattr(model, part) for part in PARTS}


def same(one, other):
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def assert_same_systems(one, other):
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        theirs = parts(theirs)
        assert all(same(value, theirs[part]) for part, value in parts(mine).items())


def raw_draws(family, states=4, arms=4, law=None):
    """What Table I draws for each system, before it is made one."""
    law = law or families.FAMILIES[family]
    numbers = range(SYSTEMS)
    rngs = [families.generator(family, SEED, number) for number in numbers]
    *drawn, redraws = families.draw(law, rngs, states, arms)
    return [families.Draw(*one, redraws) for one in zip(*drawn, strict=True)]


@pytest.mark.parametrize(("states", "arms"), [(10, 10), (3, 7), (5, 2), (1, 1)])
@pytest.mark.parametrize("family", FAMILIES)
def test_P20_the_plain_reading_is_table_i(family, states, arms):
    """P20: bit for bit `families.sample`, redraws included, wherever it starts."""
    for first in (0, 5):
        mine = sample(PLAIN, family, 4, states, arms, first=first)
        theirs = families.sample(family, 4, states, arms, seed=SEED, first=first)
        assert_same_systems(mine, theirs)
        assert mine.redraws == theirs.redraws
        assert mine.family == family


@pytest.mark.parametrize("answer", CHOICES["transition"])
def test_every_transition_keeps_within_the_radius(answer):
    drawn = readings.sample(
        changed(transition=answer), "gaussian", 8, n_states=4, n_arms=4, seed=SEED
    )
    radii = [model.spectral_radius for model, _ in drawn]
    assert max(radii) <= 0.9 + 1e-9
    if answer != "norm":  # whose radius lies below its norm
        assert max(radii) == pytest.approx(0.9)


def test_the_first_answers_are_the_texts():
    assert [field.name for field in dataclasses.fields(Reading)] == list(CHOICES)
    assert dataclasses.asdict(PLAIN) == {q: next(iter(a)) for q, a in CHOICES.items()}
    assert PLAIN.changes() == {}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("question", "answer"), ANSWERS)
def test_every_answer_makes_bandits(question, answer, family):
    """Valid arms and a stable Γ, so that a stationary state exists, whatever the shape."""
    shapes = [(10, 10), (4, 3), (1, 1)]
    if answer != "identity" or question != "arms":  # which has one arm per state
        shapes.append((3, 6))
    for states, arms in shapes:
        for model, rows in sample(changed(**{question: answer}), family, 3, states, arms):
            assert model.transition.shape == (states, states)
            assert checked_arms(rows, model).shape == (arms, states)
            assert 0 < model.spectral_radius <= 0.9 + 1e-9
            assert np.isfinite(model.stationary_cov()).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("question", "answer"), ANSWERS)
def test_an_answer_changes_what_it_says_and_no_more(question, answer, family):
    """All other parts of a system are bit for bit the plain ones."""
    differ = dict.fromkeys(PARTS, False)
    plain, other = sample(PLAIN, family), sample(changed(**{question: answer}), family)
    for one, two in zip(plain, other, strict=True):
        theirs = parts(two)
        for part, value in parts(one).items():
            differ[part] |= not same(value, theirs[part])
    if answer == getattr(PLAIN, question) or (question, answer) in SILENT:
        expected = set()
    elif question == "interval":
        expected = set(PARTS) - {"initial_cov"} if family == "uniform" else set()
    else:
        expected = CHANGED[question]
    if answer == "capped" and all(raw.radius > 0.9 for raw in raw_draws(family)):
        expected = set()
    if family == "bernoulli" and answer in ("squared", "root"):  # of 0 and 1
        expected = set()
    assert {part for part, found in differ.items() if found} == expected


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", ["plain", "closest", "arms=common", "noise=vector, arms=gaussian"])
def test_a_system_depends_on_its_number_alone(text, family):
    """However many are drawn beside it, and wherever a chunk starts."""
    reading = named(text)
    whole = sample(reading, family, 7)
    assert_same_systems(sample(reading, family, 3), whole[:3])
    assert_same_systems(sample(reading, family, 3, first=4), whole[4:])
    assert_same_systems(sample(reading, family, 1, first=6), whole[6:])
    pieces = [sample(reading, family, 1, first=first) for first in range(7)]
    assert sum(piece.redraws for piece in pieces) == whole.redraws


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("arms", [4, 7])
def test_arms(family, arms):
    drawn = [raw.arms for raw in raw_draws(family, arms=arms)]

    def of(answer):
        return [rows for _, rows in sample(changed(arms=answer), family, n_arms=arms)]

    for rows, unit, bounded in zip(drawn, of("unit"), of("bounded"), strict=True):
        lengths = np.sqrt((rows**2).sum(axis=1))
        np.testing.assert_allclose(unit * lengths[:, None], rows, rtol=1e-13)
        np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-14)
        np.testing.assert_allclose(bounded * lengths.max(), rows, rtol=1e-13)
        assert np.linalg.norm(bounded, axis=1).max() == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("family", FAMILIES)
def test_common_arms(family):
    """One draw for all systems and chunks, which is none of theirs, for each family and seed."""
    common = changed(arms="common")
    rows = [rows for _, rows in sample(common, family)]
    rows += [rows for _, rows in sample(common, family, 2, first=500)]
    assert all(np.array_equal(rows[0], other) for other in rows)
    for raw in raw_draws(family):
        for drawn in (raw.transition, raw.process_root, raw.arms):
            assert not np.array_equal(rows[0], drawn)
    assert not np.array_equal(rows[0], sample(common, family, 1, seed=SEED + 1)[0][1])
    others = [sample(common, other, 1)[0][1] for other in FAMILIES if other != family]
    assert not any(np.array_equal(rows[0], other) for other in others)


def test_gaussian_arms():
    """Standard normal in every family, another draw for every system."""
    for family in FAMILIES:
        rows = [rows for _, rows in sample(changed(arms="gaussian"), family, 40, 10, 10)]
        assert stats.kstest(np.ravel(rows), stats.norm.cdf).pvalue > DOUBT
        assert len({row.tobytes() for row in rows}) == len(rows)


@pytest.mark.parametrize("arms", [4, 2])
def test_identity_arms(arms):
    for _, rows in sample(changed(arms="identity"), "gaussian", n_arms=arms):
        assert rows.tolist() == np.eye(4)[:arms].tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_transitions(family):
    kinds = ("scaled", "capped", "norm", "symmetric")
    found = [[m for m, _ in sample(changed(transition=kind), family)] for kind in kinds]
    for raw, *models in zip(raw_draws(family), *found, strict=True):
        T, radius = raw.transition, np.abs(np.linalg.eigvals(raw.transition)).max()
        scaled, capped, norm, symmetric = (model.transition for model in models)
        np.testing.assert_allclose(scaled, 0.9 / radius * T, rtol=1e-12)
        np.testing.assert_allclose(capped, T if radius <= 0.9 else 0.9 / radius * T, rtol=1e-12)
        np.testing.assert_allclose(norm, 0.9 / np.linalg.svd(T)[1][0] * T, rtol=1e-12)
        assert np.array_equal(symmetric, symmetric.T)
        assert np.abs(np.linalg.eigvalsh(symmetric)).max() == pytest.approx(0.9, rel=1e-12)
        share = symmetric[T + T.T != 0] / (T + T.T)[T + T.T != 0]
        np.testing.assert_allclose(share, share[0], rtol=1e-12)
        assert share[0] > 0


def test_capped_transitions_are_left_alone_where_they_are_small():
    """Uniform on [−½, ½] with two states: ρ(T) is below 0.9 nearly always, but not always."""
    narrow = {"interval": "-0.5..0.5", "transition": "capped"}
    small, large = 0, 0
    for model, _ in sample(changed(**narrow), "uniform", 200, 2, 2):
        entries = np.abs(model.transition)
        if model.spectral_radius < 0.9 - 1e-9:
            small += 1
            assert entries.max() <= 0.5
        else:
            large += 1
    assert small > 150
    assert large < 50
    wide = changed(interval="-1..1", transition="capped")
    radii = [model.spectral_radius for model, _ in sample(wide, "uniform", 200, 2, 2)]
    assert sum(radius > 0.9 - 1e-9 for radius in radii) > 20
    assert max(radii) <= 0.9 + 1e-9


@pytest.mark.parametrize("family", FAMILIES)
def test_process_noise(family):
    kinds = ("full", "mean", "diagonal", "identity")
    found = [[m for m, _ in sample(changed(process=kind), family)] for kind in kinds]
    for raw, *models in zip(raw_draws(family), *found, strict=True):
        R = raw.process_root
        full, mean, diagonal, identity = (model.process_cov for model in models)
        np.testing.assert_allclose(full, R @ R.T, rtol=1e-12)
        np.testing.assert_allclose(4 * mean, full, rtol=1e-15)
        assert diagonal.tolist() == np.diag([r**2 for r in np.diag(R)]).tolist()
        assert identity.tolist() == np.eye(4).tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_reward_noise(family):
    kinds = ("drawn", "squared", "root", "one", "common")
    found = [[m for m, _ in sample(changed(noise=kind), family)] for kind in kinds]
    for raw, *models in zip(raw_draws(family), *found, strict=True):
        r = abs(raw.reward_root)
        sigmas = [float(model.reward_std) for model in models]
        assert sigmas == pytest.approx([r, r**2, r**0.5, 1, r], rel=1e-14)


@pytest.mark.parametrize(
    ("family", "square"),
    [("gaussian", 1), ("uniform", 1 / 3), ("bernoulli", 1 / 2), ("exponential", 2)],
)
def test_vector_noise(family, square):
    """σ² is a sum of d squares: its mean is d E[r²]; Cauchy's has none."""
    for states in (10, 4):
        drawn = sample(changed(noise="vector"), family, 400, states, 2)
        squares = np.array([float(model.reward_std) ** 2 for model, _ in drawn])
        error = squares.std(ddof=1) / np.sqrt(len(squares))
        assert squares.mean() == pytest.approx(states * square, abs=4 * error)
        assert error < 0.1 * squares.mean()


def test_vector_noise_of_bernoulli_is_never_zero():
    """Where one draw is zero half of the time, ten are in one of 1024."""
    drawn = sample(changed(noise="vector"), "bernoulli", 200, 10, 10, seed=0)
    assert min(float(model.reward_std) for model, _ in drawn) >= 1
    plain = sample(PLAIN, "bernoulli", 200, 10, 10, seed=0)
    assert min(float(model.reward_std) for model, _ in plain) == 0


@pytest.mark.parametrize(("interval", "low"), [("-1..1", -1.0), ("-0.5..0.5", -0.5)])
def test_intervals(interval, low):
    """Uniform's draws, moved; T, R, r and the arms are made of the moved ones."""

    def law(rng, shape):
        return low - 2 * low * rng.random(shape)

    drawn = sample(changed(interval=interval), "uniform")
    for (model, rows), raw in zip(drawn, raw_draws("uniform", law=law), strict=True):
        np.testing.assert_allclose(rows, raw.arms, rtol=1e-12, atol=1e-15)
        radius = np.abs(np.linalg.eigvals(raw.transition)).max()
        np.testing.assert_allclose(model.transition, 0.9 / radius * raw.transition, rtol=1e-9)
        Q = raw.process_root @ raw.process_root.T
        np.testing.assert_allclose(model.process_cov, Q, rtol=1e-9, atol=1e-12)
        assert float(model.reward_std) == pytest.approx(abs(raw.reward_root), rel=1e-9)
    wide = np.ravel([rows for _, rows in sample(changed(interval=interval), "uniform", 200)])
    assert stats.kstest(wide, stats.uniform(low, -2 * low).cdf).pvalue > DOUBT
    common = changed(interval=interval, arms="common")
    assert sample(common, "uniform", 1, 10, 10)[0][1].min() < 0


def test_a_state_that_starts_at_zero():
    for model, _ in sample(changed(start="zero"), "gaussian"):
        assert model.initial_cov.tolist() == np.zeros((4, 4)).tolist()


@pytest.mark.parametrize("start", CHOICES["start"])
@pytest.mark.parametrize("belief", CHOICES["belief"])
def test_beliefs(belief, start):
    """The filter starts where the reading says; all else it knows."""
    reading = changed(belief=belief, start=start)
    systems = sample(reading, "exponential")
    learned = assumed(reading, systems)
    if belief == start == "stationary":
        assert learned is None
        return
    for one, two in zip(systems, learned, strict=True):
        mine = parts(two)
        for part, value in parts(one).items():
            assert part == "initial_cov" or same(value, mine[part])
        Q = two[0].process_cov
        expected = {"stationary": None, "identity": np.eye(4), "process": Q}[belief]
        assert same(two[0].initial_cov, expected)


class _Caught(Exception):
    pass


def asked_of_the_engine(monkeypatch, text, first=0):
    """What a chunk asks `simulate` for; nothing is played."""

    def caught(systems, **options):
        raise _Caught(systems, options)

    monkeypatch.setattr(driftbandit.simulation, "simulate", caught)
    cell = Cell("exponential", reading=named(text))
    study = Specification((cell,), ("idea",), 4, runs=2, rounds=5, seed=7, n_states=3, n_arms=3)
    with pytest.raises(_Caught) as error:
        specification.compute(study, Chunk(cell, first, 2))
    return error.value.args


@pytest.mark.parametrize("answer", CHOICES["regret"])
def test_the_yardstick_reaches_the_engine(answer, monkeypatch):
    _, options = asked_of_the_engine(monkeypatch, f"regret={answer}")
    assert options["options"].regret == answer


@pytest.mark.parametrize("answer", CHOICES["noise"])
def test_common_noise_reaches_the_engine(answer, monkeypatch):
    _, options = asked_of_the_engine(monkeypatch, f"noise={answer}")
    assert options["options"].common_noise == (answer == "common")


def test_systems_and_beliefs_reach_the_engine(monkeypatch):
    systems, options = asked_of_the_engine(monkeypatch, "arms=unit, belief=process", first=2)
    reading = changed(arms="unit", belief="process")
    truth = sample(reading, "exponential", 2, 3, 3, seed=7, first=2)
    assert_same_systems(systems, truth)
    assert_same_systems(options["assumed"], assumed(reading, truth))
    assert (options["options"].first_system, options["options"].stream) == (2, "exponential")
    assert (options["seed"], options["runs"]) == (7, 2)
    assert asked_of_the_engine(monkeypatch, "plain")[1]["assumed"] is None


def test_search_has_every_single_change_and_nothing_twice():
    found = search()
    assert len(set(found)) == len(found) > 400
    assert all(changed(**{question: answer}) in found for question, answer in ANSWERS)
    assert set(NAMED.values()) <= set(found)
    assert found[0] == PLAIN


def test_names_lead_back_to_their_reading():
    for reading in search():
        assert named(str(reading)) == reading
        assert Reading(**reading.changes()) == reading
    for name, reading in NAMED.items():
        assert named(name) == named(f" {name} ") == named(str(reading)) == reading
    assert str(PLAIN) == "plain"
    assert str(changed(noise="one", arms="unit")) == "arms=unit, noise=one"


def test_spaces_and_order_do_not_matter():
    for one, two in itertools.permutations(["arms = unit", " noise=one "]):
        assert named(f"{one},{two}") == changed(arms="unit", noise="one")


@each(
    [
        *(
            Case(text or "empty", functools.partial(named, text), argument, value)
            for text, argument, value in [
                ("clos", "reading: ", "'clos'; did you mean 'closest'? valid: closest, plain"),
                ("", "reading: ", "unknown name ''; valid: closest, plain, unit"),
                ("arms", "reading: ", "'arms'"),
                ("arms=uni", "reading.arms: ", "'uni'; did you mean 'unit'? valid: bounded"),
                ("arm=unit", "reading: ", "'arm'; did you mean 'arms'? valid: arms, belief"),
                ("arms=", "reading.arms: ", "bounded, common, drawn"),
                ("=unit", "reading: ", "arms, belief, interval"),
                ("arms=unit,", "reading: ", "''"),
                ("arms=unit noise=one", "reading.arms: ", "unknown name 'unit noise=one'"),
                ("plain, arms=unit", "reading: ", "unknown name 'plain'"),
                ("unit, noise=one", "reading: ", "'unit'"),
            ]
        ),
        Case("Reading arms", lambda: Reading(arms="uni"), "reading.arms", "'unit'"),
        Case("Reading None", lambda: Reading(noise=None), "reading.noise", "None"),
        Case("family", lambda: sample(PLAIN, "gausian"), "family", "did you mean 'gaussian'?"),
    ]
)
def test_bad_arguments_are_refused(case):
    assert_refused(case)


def test_two_answers_to_one_question_are_refused():
    with pytest.raises(InvalidInput, match="arms"):
        named("arms=unit, arms=common")
