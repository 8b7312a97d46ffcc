"""P1–P3: the system, its arms and its structure."""

import copy
import pickle

import numpy as np
import pytest

import driftbandit as db
import naive
from driftbandit import LGDS, InvalidInput, steady_state
from driftbandit.model import arm_stack, checked_arms, factor, solve_together, unit_rows
from refusals import EYE, INF, NAN, STABLE, UNSTABLE, Case, assert_refused, each, lgds
from systems import assert_close, random_system, with_constants

SIZES = [1, 2, 4, 10]


CHAIN = [[0.5, 1.0], [0.0, 0.5]]  # z2 drives z1, never the other way


@pytest.mark.parametrize("d", SIZES)
def test_P3_stationary_cov_solves_its_equation(d):
    model, _ = random_system(1, d)
    Z = model.stationary_cov()
    assert_close(Z, naive.stationary_cov(model.transition, model.process_cov), 1e-12)
    assert_close(Z, model.transition @ Z @ model.transition.T + model.process_cov, 1e-12)
    assert (Z == Z.T).all()


@pytest.mark.parametrize("radius", [1.0, 1.05])
def test_P3_no_stationary_cov_without_stability(radius):
    model = LGDS(np.diag([radius, 0.5]), np.eye(2), 1.0, initial_cov=np.eye(2))
    assert not model.is_stable
    with pytest.raises(InvalidInput, match=r"^transition: has spectral radius 1"):
        model.stationary_cov()


@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 64, 1000])
@pytest.mark.parametrize("radius", [0.0, 0.5, 0.9, 1.0, 1.05])
def test_P3_state_cov_follows_the_recursion(radius, rounds):
    model, _ = random_system(2, d=4, radius=radius, noise_rank=2, initial=True)
    expected = naive.state_cov(model.transition, model.process_cov, model.initial_cov, rounds)
    assert_close(model.state_cov(rounds), expected, 1e-11)


@pytest.mark.parametrize("rounds", [0, 1, 7, 1000])
def test_P3_stationary_start_stays_put(rounds):
    model, _ = random_system(3, d=4)
    Z = model.stationary_cov()
    assert_close(model.state_cov(rounds), Z, 0)
    started = LGDS(model.transition, model.process_cov, 1.0, initial_cov=Z)
    assert_close(started.state_cov(rounds), Z, 1e-12)


def test_P3_state_cov_warns_of_no_overflow_while_finite():
    growing = LGDS([[2.0]], [[16.0]], 1.0, initial_cov=[[1.0]])
    expected = naive.state_cov(growing.transition, growing.process_cov, growing.initial_cov, 300)
    assert_close(growing.state_cov(300), expected, 1e-12)


def test_P1_start_cov_is_the_given_or_the_stationary_one():
    given, _ = random_system(4, d=3, initial=True)
    free, _ = random_system(4, d=3)
    assert_close(given.start_cov(), given.initial_cov, 0)
    assert_close(free.start_cov(), naive.stationary_cov(free.transition, free.process_cov), 1e-12)


def test_P3_settled_cov_is_stationary_or_the_horizons():
    stable, _ = random_system(5, d=3, initial=True)
    growing, _ = random_system(5, d=3, radius=1.05, initial=True)
    assert_close(stable.settled_cov(20), stable.stationary_cov(), 0)
    assert_close(growing.settled_cov(20), growing.state_cov(20), 0)


@pytest.mark.parametrize("d", SIZES)
def test_P1_spectral_radius_and_states(d):
    model, _ = random_system(6, d, radius=0.7)
    assert model.n_states == d
    assert model.spectral_radius == pytest.approx(0.7, rel=1e-12)
    assert model.is_stable


@pytest.mark.parametrize(
    ("transition", "process_cov", "expected"),
    [
        (np.diag([0.9, 0.5]), np.eye(2), True),
        (CHAIN, np.diag([0.0, 1.0]), True),
        (CHAIN, np.diag([1.0, 0.0]), False),
        (np.diag([0.9, 0.5]), np.ones((2, 2)), True),  # one noise, two speeds
        (np.diag([0.9, 0.9]), np.ones((2, 2)), False),  # one noise, one speed
        (np.eye(4, k=1) + 0.1 * np.eye(4), np.diag([0.0, 0.0, 0.0, 1.0]), True),
        (np.eye(4, k=1) + 0.1 * np.eye(4), np.diag([0.0, 0.0, 1.0, 0.0]), False),
        (np.diag([0.9, 0.5]), np.zeros((2, 2)), False),
        (np.zeros((2, 2)), np.eye(2), True),
    ],
)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_P3_is_controllable(transition, process_cov, expected, scale):
    model = LGDS(transition, scale * np.asarray(process_cov), 1.0)
    assert model.is_controllable() is expected


@pytest.mark.parametrize("d", [2, 3])
def test_P3_a_nilpotent_chain_is_controllable(d):
    last = np.diag([0.0] * (d - 1) + [1.0])  # Γ carries it to every state: [Q^½, ΓQ^½, …] = I
    assert LGDS(np.eye(d, k=1), last, 1.0).is_controllable()


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("n", [1, 2, 12])
def test_P3_observability_gramian(d, n):
    model, played = random_system(7, d, k=n, radius=1.02, initial=True)
    gramian = model.observability_gramian(played)
    assert_close(gramian, naive.observability_gramian(model.transition, played), 1e-12)


def test_P3_observability_gramian_counts_from_zero():
    model = LGDS([[2.0]], [[1.0]], 1.0, initial_cov=[[1.0]])
    assert model.observability_gramian([[3.0]]).tolist() == [[9.0]]
    assert model.observability_gramian([[3.0], [1.0]]).tolist() == [[9.0 + 4.0 * 1.0]]


@pytest.mark.parametrize("name", ["transition", "process_cov", "initial_cov"])
def test_P1_the_model_keeps_its_own_read_only_copies(name):
    given = {"transition": CHAIN, "process_cov": np.eye(2), "initial_cov": np.eye(2)}
    given = {key: np.array(value) for key, value in given.items()}
    before = given[name].copy()
    model = LGDS(reward_std=1.0, **given)
    given[name][:] = 7.0
    kept = getattr(model, name)
    assert (kept == before).all()
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 7.0


def test_P3_the_cached_stationary_cov_is_read_only():
    model, _ = random_system(8, d=2)
    with pytest.raises(ValueError, match="read-only"):
        model.stationary_cov()[0, 0] = 7.0


def test_P2_checked_arms_are_a_read_only_copy():
    model, arms = random_system(9, d=3)
    before = arms.copy()
    kept = checked_arms(arms, model)
    arms[:] = 7.0
    assert (kept == before).all()
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 7.0


def test_P2_a_stack_of_arms_is_what_the_checks_return():
    systems = [random_system(seed, 3, 5) for seed in range(4)]
    stack = arm_stack(systems)
    assert np.array_equal(stack, [checked_arms(arms, model) for model, arms in systems])
    assert not stack.flags.writeable
    model, arms = systems[0]
    assert arm_stack([*systems, (model, arms[:2])]) is None
    wrong = (arms[:, :2], arms.tolist(), arms > 0, 0 * arms, NAN * arms, 1e160 * arms, arms[:0])
    for other in (*wrong, "sphere"):
        assert arm_stack([*systems, (model, other)]) is None
        assert arm_stack([(model, other)]) is None


@pytest.mark.parametrize("d", SIZES)
def test_P2_unit_rows_have_length_one_and_keep_their_direction(d):
    _, arms = random_system(10, d, k=5)
    unit = unit_rows(arms)
    lengths = np.linalg.norm(arms, axis=1)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(lengths[:, None] * unit, arms, rtol=1e-15)


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_P1_factor_of_singular_covariances_too(rank):
    root = np.random.default_rng(11).standard_normal((5, rank))
    cov = root @ root.T
    F = factor(cov)
    assert_close(F @ F.T, cov, 1e-14)


@pytest.mark.parametrize("d", SIZES)
def test_P1_many_models_are_those_made_one_by_one(d):
    """Equal numbers, read-only; what they compute together is what each computes alone."""
    alone = [random_system(seed, d)[0] for seed in range(20)]
    given = [(m.transition, m.process_cov, m.reward_std) for m in alone]
    models = LGDS.many(*zip(*given, strict=True))
    assert models == alone
    solve_together(models)
    for model, other in zip(models, alone, strict=True):
        assert type(model.reward_std) is type(other.reward_std)
        for name in ("transition", "process_cov", "constants"):
            assert not getattr(model, name).flags.writeable
        assert {"spectral_radius", "constants", "_stationary_cov"} <= model.__dict__.keys()
        assert model.spectral_radius == other.spectral_radius
        assert np.array_equal(model.constants, other.constants)
        assert np.array_equal(model.stationary_cov(), other.stationary_cov())
        assert not model.stationary_cov().flags.writeable


def test_P3_models_that_are_solved_together_may_have_no_stationary_state():
    """One that grows, one with a constant and one with a given start do as they do alone."""
    grows, fades = LGDS([[1.5]], [[1.0]], 1.0), LGDS([[0.5]], [[3.0]], 1.0)
    constant, started = LGDS([[1.0]], [[0.0]], 1.0), LGDS([[0.5]], [[3.0]], 1.0, [[2.0]])
    solve_together([grows, fades, constant, started])
    solve_together([])
    assert fades.stationary_cov().tolist() == started.stationary_cov().tolist() == [[4.0]]
    assert constant.stationary_cov().tolist() == [[0.0]]
    assert started.start_cov().tolist() == [[2.0]]
    with pytest.raises(InvalidInput, match=r"spectral radius 1\.5"):
        grows.stationary_cov()


def test_stationary_cov_in_any_units():
    """A state that is reached late, or measured in tiny units, is not left out of the sum."""
    chain = [[0, 0, 0], [1e-9, 0, 0], [0, 1e9, 0.5]]
    model = LGDS(chain, np.diag([1.0, 0, 0]), 0.1)
    assert model.stationary_cov()[2, 2] == pytest.approx(4 / 3, rel=1e-12)
    slow = LGDS([[0, 0], [1e-8, 0.999999]], np.diag([1.0, 0]), 0.1)
    expected = 1e-16 / (1 - 0.999999**2)
    assert slow.stationary_cov()[1, 1] == pytest.approx(expected, rel=1e-9)
    # One arm that reads the first state alone: what is left of it feeds the second's doubt.
    left = 1e-16 * 0.01 / 1.01 / (1 - 0.999999**2)
    found = steady_state.prediction_cov(slow, [1.0, 0.0])[1, 1]
    assert found == pytest.approx(left, rel=1e-6)


def test_P3_a_state_that_starts_from_a_mean():
    model = LGDS(
        [[0.5, 1.0], [0.0, 1.0]], np.diag([1.0, 0.0]), 1.0, np.diag([1.0, 0.0]), [2.0, 1.0]
    )
    assert model.start_mean().tolist() == [2.0, 1.0]
    assert model.state_mean(0).tolist() == [2.0, 1.0]
    assert model.state_mean(2).tolist() == [2.0, 1.0]  # the second state pushes the first
    moment = model.settled_moment(3)
    mean = model.state_mean(3)
    np.testing.assert_allclose(moment, model.settled_cov(3) + np.outer(mean, mean))
    assert model.settled_cov(3)[0, 0] == pytest.approx(4 / 3)  # beside a known constant
    assert not LGDS([[0.5]], [[1.0]], 1.0).start_mean().any()


# The model.


@pytest.mark.parametrize(
    ("transition", "process_cov", "initial_cov", "expected"),
    [
        (np.diag([0.5, 1.0]), np.diag([1.0, 0.0]), None, [False, True]),
        ([[0.5, 2.0], [0.0, 1.0]], np.diag([1.0, 0.0]), np.diag([3.0, 0.0]), [False, True]),
        (np.diag([1.0, 1.0]), np.zeros((2, 2)), None, [True, True]),
        (np.diag([0.5, 1.0]), np.diag([1.0, 0.0]), np.eye(2), [False, False]),  # not known
        (np.diag([0.5, 1.0]), np.eye(2), None, [False, False]),  # moved by noise
        (np.diag([0.5, 1 - 1e-15]), np.diag([1.0, 0.0]), None, [False, False]),  # fades
        ([[0.5, 0.0], [1e-15, 1.0]], np.diag([1.0, 0.0]), None, [False, False]),  # is pushed
    ],
)
def test_what_a_known_constant_is(transition, process_cov, initial_cov, expected):
    model = LGDS(transition, process_cov, 1.0, initial_cov)
    assert model.constants.tolist() == expected
    if not any(expected):
        assert model.moving is model


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_P3_what_moves_settles_around_the_mean_that_constants_push_it_to(initial, count):
    base, arms = random_system(1, 3, radius=0.8, initial=initial)
    model, _, own = with_constants(base, arms, count=count, start=[1.0, -2.0, 3.0])
    assert model.is_stable
    assert model.spectral_radius == pytest.approx(0.8, rel=1e-12)
    Z, mean = model.stationary_cov(), model.stationary_mean()
    assert_close(Z[np.ix_(own, own)], base.stationary_cov(), 1e-12)
    assert not Z[model.constants].any()
    assert_close(model.transition @ Z @ model.transition.T + model.process_cov, Z, 1e-12)
    assert_close(model.state_mean(500), mean, 1e-12)
    assert (mean[model.constants] == model.initial_mean[model.constants]).all()
    assert model.is_controllable()
    assert_close(model.settled_moment(500), Z + np.outer(mean, mean), 1e-12)
    assert not base.stationary_mean().any()


def test_P3_constants_do_not_settle_what_grows():
    base, arms = random_system(1, 2, radius=1.05, initial=True)
    model, _, _ = with_constants(base, arms)
    assert not model.is_stable
    for settled in (model.stationary_cov, model.stationary_mean):
        with pytest.raises(InvalidInput, match=r"^transition: has spectral radius 1\.05, so there"):
            settled()
    reached = LGDS(np.diag([0.5, 0.5, 1.0]), np.diag([1.0, 0, 0]), 1.0)
    assert not reached.is_controllable()


def model(**changes):
    given = {
        "transition": [[0.5, 0.1], [0.0, 0.9]],
        "process_cov": np.eye(2),
        "reward_std": 0.5,
        "initial_cov": 2 * np.eye(2),
        "initial_mean": [1.0, 0.0],
    }
    return db.LGDS(**given | changes)


# Models.


def test_models_are_equal_by_their_numbers():
    assert model() == model()
    assert hash(model()) == hash(model())
    assert len({model(), model(), model(reward_std=1.0)}) == 2
    for changes in (
        {"transition": [[0.5, 0.2], [0.0, 0.9]]},
        {"process_cov": 2 * np.eye(2)},
        {"reward_std": 0.6},
        {"initial_cov": None},
        {"initial_mean": None},
        {"initial_mean": [0.0, 1.0]},
    ):
        assert model(**changes) != model(), changes
    zero = model(transition=[[0.5, 0.1], [-0.0, 0.9]])
    assert zero == model()
    assert hash(zero) == hash(model())
    assert model() != "a model"
    assert db.System(model(), np.eye(2)) == db.System(model(), np.eye(2))


def test_a_model_is_shown_on_one_line():
    assert repr(model()) == "LGDS(2 states, spectral radius 0.9, σ 0.5)"
    assert repr(db.LGDS([[0.5]], [[1.0]], 1.0)) == "LGDS(1 state, spectral radius 0.5, σ 1)"
    assert len(repr(db.families.sample("gaussian", n_states=50)[0][0])) < 80


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_models_are_equal_and_cannot_be_written_to(copied):
    found = copied(model())
    assert found == model()
    assert not found.transition.flags.writeable
    assert not found.initial_cov.flags.writeable


def test_a_model_inside_a_compiled_program_can_be_shown():
    import jax

    import driftbandit.simulation  # noqa: F401  (makes an LGDS a JAX pytree)

    shown = []
    jax.make_jaxpr(lambda given: shown.append(repr(given)) or given.reward_std)(model())
    assert shown == ["LGDS(2 states)"]


CASES = [
    Case("transition 3x2", lambda: lgds(np.ones((3, 2))), "transition", "(3, 2)"),
    Case("transition 1-D", lambda: lgds([0.5, 0.5]), "transition", "(2,)"),
    Case("transition number", lambda: lgds(0.5), "transition", "()"),
    Case("transition 3-D", lambda: lgds(np.ones((2, 2, 2))), "transition", "(2, 2, 2)"),
    Case("transition ragged", lambda: lgds([[1, 2], [3]]), "transition", "[[1, 2], [3]]"),
    Case("transition text", lambda: lgds("gamma"), "transition", "'gamma'"),
    Case("transition nested text", lambda: lgds([["a", 0], [0, 1]]), "transition", "'a'"),
    Case("transition dict", lambda: lgds({"a": 1}), "transition", "{'a': 1}"),
    Case("transition None", lambda: lgds(None), "transition", "None"),
    Case("transition complex", lambda: lgds([[1j, 0], [0, 1]]), "transition", "1j"),
    Case("transition NaN", lambda: lgds([[0.5, NAN], [0, 0.5]]), "transition", "[0, 1] is nan"),
    Case("transition inf", lambda: lgds([[0.5, 0], [INF, 0.5]]), "transition", "[1, 0] is inf"),
    Case("transition empty", lambda: lgds(np.zeros((0, 0))), "transition", "(0, 0)"),
    Case("transition empty list", lambda: lgds([]), "transition", "(0,)"),
    Case("process_cov 3x3", lambda: lgds(process_cov=np.eye(3)), "process_cov", "(3, 3)"),
    Case("process_cov 1-D", lambda: lgds(process_cov=[1.0, 1.0]), "process_cov", "(2,)"),
    Case("process_cov text", lambda: lgds(process_cov="Q"), "process_cov", "'Q'"),
    Case("process_cov None", lambda: lgds(process_cov=None), "process_cov", "None"),
    Case(
        "process_cov NaN",
        lambda: lgds(process_cov=[[1, 0], [0, NAN]]),
        "process_cov",
        "[1, 1] is nan",
    ),
    Case(
        "process_cov -inf",
        lambda: lgds(process_cov=[[-INF, 0], [0, 1]]),
        "process_cov",
        "[0, 0] is -inf",
    ),
    Case(
        "process_cov asymmetric",
        lambda: lgds(process_cov=[[1, 0.25], [0, 1]]),
        "process_cov",
        "entry [0, 1] is 0.25 but [1, 0] is 0",
    ),
    Case(
        "process_cov indefinite",
        lambda: lgds(process_cov=[[1, 2], [2, 1]]),
        "process_cov",
        "eigenvalue -1",
    ),
    Case("reward_std -1", lambda: lgds(reward_std=-1), "reward_std", "-1"),
    Case("reward_std NaN", lambda: lgds(reward_std=NAN), "reward_std", "nan"),
    Case("reward_std inf", lambda: lgds(reward_std=INF), "reward_std", "inf"),
    Case("reward_std text", lambda: lgds(reward_std="1"), "reward_std", "'1'"),
    Case("reward_std None", lambda: lgds(reward_std=None), "reward_std", "None"),
    Case("reward_std True", lambda: lgds(reward_std=True), "reward_std", "True"),
    Case("reward_std list", lambda: lgds(reward_std=[1.0]), "reward_std", "[1.0]"),
    Case("reward_std complex", lambda: lgds(reward_std=1j), "reward_std", "1j"),
    Case("initial_cov 1x1", lambda: lgds(initial_cov=[[1.0]]), "initial_cov", "(1, 1)"),
    Case(
        "initial_cov asymmetric",
        lambda: lgds(initial_cov=[[1, 0.5], [0, 1]]),
        "initial_cov",
        "0.5",
    ),
    Case("initial_cov indefinite", lambda: lgds(initial_cov=-EYE), "initial_cov", "-1"),
    Case("initial_cov NaN", lambda: lgds(initial_cov=NAN * EYE), "initial_cov", "nan"),
    Case("state_cov -1 rounds", lambda: STABLE.state_cov(-1), "rounds", "-1"),
    Case(
        "gramian width", lambda: STABLE.observability_gramian(np.ones((4, 3))), "played", "(4, 3)"
    ),
    Case("no stationary", lambda: UNSTABLE.stationary_cov(), "transition", "spectral radius 2"),
    Case(
        "transition array of text",
        lambda: lgds(np.array([["a", "b"], ["c", "d"]])),
        "transition",
        "'a'",
    ),
    Case(
        "transition complex array",
        lambda: lgds(np.array([[0.5j, 0], [0, 0.5]])),
        "transition",
        "0.5j",
    ),
    Case(
        "transition 10**400",
        lambda: lgds([[10**400, 0], [0, 0.5]]),
        "transition",
        "1000",
    ),
]


@pytest.mark.parametrize(
    "wrong",
    [
        (EYE, [[1.0, 0.5], [0.0, 1.0]], 1.0),
        (EYE, [[1.0, 0.0], [0.0, -1.0]], 1.0),
        (EYE, [[1.0, 0.0], [0.0, INF]], 1.0),
        ([[NAN, 0.0], [0.0, 1.0]], EYE, 1.0),
        ([[1e160, 0.0], [0.0, 1.0]], EYE, 1.0),
        (EYE, EYE, -1.0),
        (EYE, EYE, NAN),
    ],
)
def test_one_bad_model_among_many_is_refused_as_if_alone(wrong):
    with pytest.raises(InvalidInput) as alone:
        LGDS(*wrong)
    with pytest.raises(InvalidInput) as among:
        LGDS.many(*zip((EYE, EYE, 1.0), wrong, strict=True))
    assert str(among.value) == str(alone.value)


def test_many_models_are_square():
    with pytest.raises(InvalidInput, match=r"^transition: has shape \(1, 2\); give a square"):
        LGDS.many([[[0.5, 0.1]]], [[[1.0]]], [1.0])


@each(CASES)
def test_bad_models_are_refused(case):
    assert_refused(case)
