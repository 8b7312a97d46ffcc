"""Hidden states that drift together: every parameter gives a stable system, and its inverse."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
from driftbandit.structure import Layout, factors, parse
from systems import random_system

FORMS = ["free", "diagonal", "scalar"]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from(FORMS), st.booleans())
def test_every_parameter_gives_a_stationary_system(seed, d, form, known):
    rng = np.random.default_rng(seed)
    reads = rng.standard_normal((4, d)) if known else None
    layout = Layout(factors(d, form, reads), list("abcd"))
    theta = layout.begin + rng.standard_normal(len(layout.free))
    model = layout.model(theta)
    assert model.is_stable
    # It starts where it settles.
    settled = model.transition @ model.start_cov() @ model.transition.T + model.process_cov
    np.testing.assert_allclose(settled, model.start_cov(), atol=1e-9 * model.start_cov().max())
    if form != "free":
        for matrix in (model.transition, model.process_cov):
            assert not (matrix - np.diag(np.diag(matrix))).any()
    if form == "scalar":
        assert np.ptp(np.diag(model.transition)) < 1e-12
    arms, _ = layout.arms(theta)
    if known:
        np.testing.assert_array_equal(arms, reads)
    else:
        assert (arms**2).sum() == pytest.approx(d)


@pytest.mark.parametrize("seed", range(5))
def test_parameters_of_a_model_give_it_back(seed):
    model, arms = random_system(seed, 3, k=5)
    structure = factors(3, "free", arms)
    layout = Layout(structure, list("abcde"))
    values = {f"{structure}.{name}": x for name, x in structure.values_of(model).items()}
    again = layout.model(layout.theta_of(values | {"noise": float(model.reward_std)}))
    np.testing.assert_allclose(again.transition, model.transition, atol=1e-6)
    np.testing.assert_allclose(again.process_cov, model.process_cov, atol=1e-6)
    assert again.reward_std == pytest.approx(float(model.reward_std))


def test_text_names_the_form():
    assert str(parse("factors(3, scalar)")) == "factors(3, form=scalar)"
    assert parse("factors(2, form=diagonal)") == parse("factors(2, diagonal)")
    assert parse("factors(2, free)") == parse("factors(2)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("factors()", "factors: n_states: is missing; give it, as factors(2)"),
        ("factors(0)", "factors: n_states: is 0"),
        ("factors(2, own)", "factors: own: was given"),
        ("factors(2, arm)", "factors: scope: is arm"),
        ("factors(2, triangular)", "factors: 'triangular' is not one of its options"),
        ("factors(2, form=triangular)", "factors: form: is 'triangular'"),
    ],
)
def test_what_makes_no_sense_is_refused(text, said):
    with pytest.raises(db.InvalidInput, match=re.escape(said)):
        parse(text)


def test_weights_that_are_known_have_a_row_for_each_arm():
    with pytest.raises(db.InvalidInput, match="factors: reads: has 2 rows for 3 arms"):
        Layout(factors(1, reads=[[1.0], [2.0]]), list("abc"))
