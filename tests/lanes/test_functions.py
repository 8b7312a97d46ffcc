"""log, log1p and exp: errors in units in the last place, against 80-bit numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandit.lanes.program import aligned, compiled

RNG = np.random.default_rng(0)
SPREAD = RNG.uniform(-1, 1, 20_000) * 10.0 ** RNG.uniform(-300, 2, 20_000)
CASES = {  # function, where it is tried, largest error in ulp
    "log": (np.abs(10.0 ** RNG.uniform(-307, 308, 20_000)), 1.0),
    "log near 1": (RNG.uniform(0.5, 2, 20_000), 1.0),
    "log1p": (np.concatenate([SPREAD[SPREAD > -1], RNG.uniform(-0.9, 9, 20_000)]), 3.0),
    "exp": (np.concatenate([SPREAD, RNG.uniform(-708, 709, 20_000)]), 2.0),
}


def values(function, x):
    """A function of every number, by lanes."""
    with jax.enable_x64(True):
        program = compiled(lambda own, *_: ((), function(own)), x[0], (), (), lanes=8)
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
