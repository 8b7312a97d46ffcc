"""Steps that are easy to compile wrongly: every run differs, on a CPU and as a kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cplusplus_gpu
from driftbandit.lanes import Unsupported
from driftbandit.lanes.kernel import kernel
from driftbandit.lanes.program import aligned, compiled, in_lanes

LANES, ROUNDS = 4, 3
RNG = np.random.default_rng(0)
MASK = np.triu(np.ones((3, 3), bool))


def by_jax(step, own, state):
    """State after the rounds, and every round's results: runs first."""

    def play(own, state):
        rounds = jnp.arange(ROUNDS, dtype=jnp.uint32)
        return jax.lax.scan(lambda now, t: step(own, now, t, ()), state, rounds)

    return jax.tree.map(np.asarray, jax.vmap(play)(own, state))


def by_lanes(step, own, state, wanted):
    one = jax.tree.map(lambda leaf: leaf[0], (own, state))
    program = compiled(step, *one, (), lanes=LANES)
    given, now = ([in_lanes(leaf, LANES) for leaf in tree] for tree in (own, state))
    found = [aligned((1, *r.shape[1:], LANES), r.dtype) for r in wanted]
    program.on(given, now, [], found)(ROUNDS, 0)
    return tuple(tuple(np.moveaxis(leaf, -1, 1)[0] for leaf in t) for t in (now, found))


def by_kernel(step, own, state, wanted, folder):
    machine = cplusplus_gpu.Machine(folder)
    one = jax.tree.map(lambda leaf: leaf[0], (own, state))
    settings = {"symmetric": [False] * len(state), "one_system": True}
    made = kernel(lambda own, *rest: step(own[0], *rest), (one[0], (), ()), one[1], (), **settings)
    launch = machine.Launchable(machine.machine_code(made.text, ""))

    def runs_last(leaf):
        return machine.uploaded(np.moveaxis(leaf, 0, -1))

    now = [runs_last(leaf) for leaf in state]
    found = [machine.Buffer(leaf.nbytes) for leaf in wanted]
    pairs = [x for pair in zip(now, now, strict=True) for x in pair]
    numbers = LANES, ROUNDS, 0, 0
    launch(LANES, 1, [*numbers, *map(runs_last, own), *pairs, *found])

    def runs_first(buffers, like):
        for buffer, leaf in zip(buffers, like, strict=True):
            shape = np.moveaxis(leaf, 0, -1).shape
            yield np.moveaxis(buffer.content.view(leaf.dtype).reshape(shape), -1, 0)

    return tuple(runs_first(now, state)), tuple(runs_first(found, wanted))


def check(step, own=(), state=(), folder=None):
    with jax.enable_x64(True):
        wanted = by_jax(step, own, state)
        ways = [by_lanes(step, own, state, wanted[1])]
        if folder and cplusplus_gpu.COMPILER:
            ways.append(by_kernel(step, own, state, wanted[1], folder))
    for found in ways:
        for ours, theirs in zip(found[0] + found[1], wanted[0] + wanted[1], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)


def real(*shape):
    return RNG.uniform(0.5, 2, (LANES, *shape))


def whole(low, high, *shape, dtype=np.int64):
    return RNG.integers(low, high, (LANES, *shape)).astype(dtype)


def column(own, state, t, _):
    (place,), (x,) = own, state
    return (jnp.where(jnp.arange(3) == place, jnp.arange(3.0), x),), ()


def by_float(own, state, t, _):
    (place,), (x,) = own, state
    return (jnp.where(jnp.arange(3.0) == place, 9.0, x),), ()


def by_float_long(own, state, t, _):
    (place,), (x,) = own, state
    return (jnp.where(jnp.arange(40.0) == place, 9.0, x),), ()


def turned(own, state, t, _):
    (x,) = state
    return ((2 * x).T + 1,), ()


def swapped(own, state, t, _):
    x, y = state
    return (y, x), (x, x, y)


def swapped_views(own, state, t, _):
    x, y = state
    return (y.T, x[::-1] + y), (x.T,)


def half_and_whole(own, state, t, _):
    (x,) = state
    z = x @ x
    return (jnp.where(MASK, z, x.T) / 8,), (z.T,)


def mask_and_max(own, state, t, _):
    (x,) = state
    return (jnp.where(MASK, x / jnp.max(x), x.T),), ()


def constants(own, state, t, _):
    _, _, b = state
    return (jnp.ones(3), own[0], ~b), (jnp.arange(3), jnp.asarray(2.0), b, own[0])


def long_chain(own, state, t, _):
    (x,) = state
    for i in range(700):
        x = x * 0.5 + own[0] if i % 2 else jnp.maximum(x, 0.1 * i)
    return (x,), ()


def turned_reshape(own, state, t, _):
    (x,) = state
    return (jax.lax.reshape(x, (3, 2), dimensions=(1, 0)).reshape(2, 3),), ()


def bits(own, state, t, _):
    (n,) = own
    return (), (jnp.bitwise_and.reduce(n), jnp.bitwise_or.reduce(n))


def wider_product(own, state, t, _):
    (x,) = own
    return (), (jnp.dot(x, x, preferred_element_type=jnp.float64),)


def bool_product(own, state, t, _):
    (x,) = own
    return (), (jax.lax.dot(x, x),)


def empty(own, state, t, _):
    (x,) = own
    nothing = x[:, :0]
    return (), (
        nothing.T @ x,
        x @ x + nothing @ nothing.T,
        jnp.sum(nothing),
        jnp.concatenate([nothing, x], 1),
    )


def empty_scan(own, state, t, _):
    (x,) = own
    c, ys = jax.lax.scan(lambda c, row: (c + row, row), x[0], x[:0])
    return (), (c, ys)


def overflow(own, state, t, _):
    n, m = own
    return (), (n * 3 + m, (n + 1 > n).astype(jnp.int32), n - 7 * m, abs(n), -n, n // -1)


def extremes(own, state, t, _):
    (x,) = own
    y = jnp.where(x > 1.5, jnp.nan, x)
    return (), (
        jnp.max(y),
        jnp.argmax(y),
        jnp.argmin(y),
        jnp.minimum(y, 1),
        jnp.clip(y, 0.7, 1),
        jnp.argmax(x > 1),
    )


def clamped(own, state, t, _):
    x, n = own
    part = jax.lax.dynamic_slice(x, (n[0], n[1]), (2, 2))
    take = jnp.take(x, n, axis=0, mode="clip")
    return (), (part, take, x[n[0]], jax.lax.dynamic_index_in_dim(x, n[1], 1))


def single(own, state, t, _):
    x, y = state
    return (x @ y, (y.T + x)), (jnp.argmax(x), jnp.stack([x[0, 0]]), jnp.concatenate([x[0]]))


def rows_put(own, state, t, _):
    n, m = own
    x, y = state
    a = jnp.where((jnp.arange(3) == n)[:, None], x[0] * 2, x)
    b = jnp.where(jnp.arange(3) == m, y[0], y)
    return (a, b), (a.sum(),)


def turned_twice(own, state, t, _):
    (x,) = state
    y = (x * 2).T
    return ((y + 1).T,), ()


def ring_reads(own, state, t, _):
    (n,), (x,) = own, state
    return (jnp.where(jnp.arange(40) == n, x[3] + 1, x),), (x[n], x.sum())


def strided(own, state, t, _):
    (x,) = own
    return (), (x[::2, ::-1], x[::-2], x[2:0:-1, 1], jnp.flip(x).reshape(-1)[1::3])


def small_types(own, state, t, _):
    (n,) = own
    return (), (n + 1,)


def powers(own, state, t, _):
    (x, n), (s,) = own, state
    return (0.5 * s**0.3 + (1.0 + t) ** -0.5,), (s**x, 2.0**-x, s**0.5, jnp.power(-x, n))


def mixed_cond(own, state, t, _):
    (n, x), (s,) = own, state
    a = jax.lax.cond(n > 2, lambda s: s[::-1], lambda s: s + x, s)
    b = jax.lax.switch(n, [lambda: 1.0, lambda: 2.0])
    return (a,), (b,)


CASES = {
    "column": (column, (whole(-1, 4),), (real(3, 3),)),
    "by_float": (by_float, (np.array([0.5, 1, 2, 7]),), (real(3),)),
    "by_float_long": (by_float_long, (np.array([0.5, 1, 2, 70]),), (real(40),)),
    "turned": (turned, (), (real(3, 3),)),
    "turned_twice": (turned_twice, (), (real(3, 3),)),
    "swapped": (swapped, (), (real(3, 3), real(3, 3))),
    "swapped_views": (swapped_views, (), (real(3, 3), real(3, 3))),
    "half_and_whole": (half_and_whole, (), (real(3, 3),)),
    "mask_and_max": (mask_and_max, (), (real(3, 3),)),
    "constants": (constants, (whole(0, 9),), (real(3), whole(0, 9), real(3) > 1)),
    "long_chain": (long_chain, (real(3),), (real(3),)),
    "bits": (bits, (whole(0, 99, 3),), ()),
    "wider_product": (wider_product, (real(3).astype(np.float32),), ()),
    "empty": (empty, (real(3, 3),), ()),
    "empty_scan": (empty_scan, (real(3, 3),), ()),
    "overflow": (
        overflow,
        (
            np.array([2**31 - 1, -(2**31), 2**30, 5], np.int32),
            np.array([2**31 - 1, 3, 2**29, -5], np.int32),
        ),
        (),
    ),
    "extremes": (extremes, (real(5),), ()),
    "clamped": (clamped, (real(3, 4), whole(-9, 9, 2)), ()),
    "clamped32": (clamped, (real(3, 4), whole(0, 9, 2, dtype=np.uint32)), ()),
    "single": (single, (), (real(1, 1), real(1, 1))),
    "rows_put": (
        rows_put,
        (whole(-1, 4, dtype=np.int32), whole(0, 5, dtype=np.uint32)),
        (real(3, 3), real(3)),
    ),
    "ring_reads": (ring_reads, (whole(-3, 43),), (real(40),)),
    "strided": (strided, (real(5, 3),), ()),
    "powers": (powers, (real(3), whole(-3, 4, dtype=np.int32)), (real(3),)),
    "mixed_cond": (mixed_cond, (whole(0, 5), real(3)), (real(3),)),
}


@pytest.mark.parametrize("case", CASES)
def test_cases(case, tmp_path):
    step, own, state = CASES[case]
    check(step, own, state, str(tmp_path))


REFUSED = {
    "turned_reshape": (turned_reshape, (), (real(2, 3),)),
    "bool_product": (bool_product, (real(3, 3) > 1,), ()),
    "small_types": (small_types, (whole(0, 9, 3, dtype=np.int8),), ()),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    with pytest.raises(Unsupported):
        check(*REFUSED[case])


def test_state_must_keep_its_kind():
    with (
        pytest.raises(
            TypeError, match=r"kind of its state from .*float64\[3\].* to .*float64\[4\]"
        ),
        jax.enable_x64(True),
    ):
        compiled(lambda own, x, *_: (jnp.append(x, 1.0), ()), (), np.ones(3), ())


def test_numbers_must_be_what_jax_reads():
    with pytest.raises(TypeError, match="JAX reads float64 as float32"):
        compiled(lambda own, *_: ((), own), np.ones(3), (), ())
