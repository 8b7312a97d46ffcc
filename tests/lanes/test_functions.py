"""log, log1p, exp and power: errors in units in the last place, against 80-bit numbers."""

import platform

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandit.lanes import machine_code
from driftbandit.lanes.machine_code import Machine
from driftbandit.lanes.program import aligned, compiled

RNG = np.random.default_rng(0)
SPREAD = RNG.uniform(-1, 1, 20_000) * 10.0 ** RNG.uniform(-300, 2, 20_000)
CASES = {  # function, where it is tried, largest error in ulp
    "log": (np.abs(10.0 ** RNG.uniform(-307, 308, 20_000)), 1.0),
    "log near 1": (RNG.uniform(0.5, 2, 20_000), 1.0),
    "log1p": (np.concatenate([SPREAD[SPREAD > -1], RNG.uniform(-0.9, 9, 20_000)]), 3.0),
    "exp": (np.concatenate([SPREAD, RNG.uniform(-708, 709, 20_000)]), 2.0),
}


def values(function, x, machine=None):
    """A function of every number, by lanes."""
    with jax.enable_x64(True):
        step = lambda own, *_: ((), function(own))  # noqa: E731
        program = compiled(step, x[0], (), (), lanes=8, machine=machine)
    own = aligned((-(-len(x) // 8), 8), x.dtype)
    own.reshape(-1)[...] = np.resize(x, own.size)
    found = aligned((len(own), 1, 8), x.dtype)
    program.on([own], [], [], [found])(1, 0)
    return found.reshape(-1)[: len(x)]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs 80-bit numbers")
@pytest.mark.parametrize("case", CASES)
def test_errors_in_ulp(case):
    x, limit = CASES[case]
    name = case.split()[0]
    exact = getattr(np, name)(x.astype(np.longdouble))
    found = values(getattr(jnp, name), x)
    unit = np.spacing(np.abs(exact.astype(float)))
    assert np.max(np.abs(found - exact) / unit) < limit


def test_ends():
    x = np.array([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(values(jnp.log, x)[:6], np.log(x)[:6])
        np.testing.assert_allclose(values(jnp.log, x), np.log(x), rtol=1e-15)
        np.testing.assert_array_equal(values(jnp.log1p, x[:6]), np.log1p(x[:6]))
        np.testing.assert_array_equal(
            values(jnp.exp, x[:6])[[0, 1, 3, 4, 5]], [1, 1, np.inf, 0, np.nan]
        )
    wide = np.array([709.7, 709.8, -745.1, -745.2, -720.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(values(jnp.exp, wide), np.exp(wide), rtol=1e-13)


def test_single_precision_is_correctly_rounded_almost_always():
    x = RNG.uniform(0.1, 50, 10_000).astype(np.float32)
    for name in ("log", "exp", "log1p"):
        exact = getattr(np, name)(x.astype(float)).astype(np.float32)
        assert np.mean(values(getattr(jnp, name), x) == exact) > 0.9999


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs 80-bit numbers")
@pytest.mark.parametrize("y", [-3.7, -1.0, -0.3, 1 / 3, 0.5, 1.5, 2.0, 7.25, 40.0])
def test_powers(y):
    x = 10.0 ** RNG.uniform(-7, 7, 10_000)
    exact = x.astype(np.longdouble) ** np.longdouble(y)
    found = values(lambda x: x**y, x)
    assert np.max(np.abs(found / exact - 1)) < 2e-13
    assert np.max(np.abs(found / exact - 1)) < 3e-16 * (2 + np.abs(y * np.log(x)).max())


def test_powers_at_the_ends_are_those_of_c():
    x = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, np.inf, -np.inf, np.nan])
    for y in (0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.25, 1.5, -1.5, np.inf, -np.inf, np.nan):
        with np.errstate(all="ignore"):
            expected = x**y
        np.testing.assert_allclose(
            values(lambda x, y=y: jnp.power(x, jnp.asarray(y)), x), expected, rtol=1e-14
        )
    for y in (-2, 0, 3):  # whole exponents that are arrays, and single precision
        power = values(lambda x, y=y: jnp.power(x, jnp.int32(y)), np.array([2.0, -3.0]))
        np.testing.assert_allclose(power, np.array([2.0, -3.0]) ** y, rtol=1e-14)
    single = RNG.uniform(0.1, 50, 10_000).astype(np.float32)
    exact = (single.astype(float) ** np.float32(0.3)).astype(np.float32)
    assert np.mean(values(lambda x: x**0.3, single) == exact) > 0.9999


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86-64")
@pytest.mark.parametrize(
    ("level", "needed"), [("v2", "sse4.2"), ("v3", "avx2"), ("v4", "avx512dq")]
)
def test_bits_do_not_depend_on_the_instruction_set(level, needed):
    if f"+{needed}" not in machine_code.here().features:
        pytest.skip(f"this processor has no {needed}")
    x = 10.0 ** RNG.uniform(-7, 7, 4_000)
    for function in (jnp.log, jnp.log1p, lambda x: jnp.exp(jnp.log(x)), lambda x: x**-0.3):
        older = values(function, x, Machine(f"x86-64-{level}", ""))
        np.testing.assert_array_equal(older, values(function, x))
