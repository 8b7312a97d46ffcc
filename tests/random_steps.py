"""Random steps for `lanes`: small programs over its table of primitives.

All real numbers stay positive and are never subtracted from each other, so that rounding errors do
not grow: two right answers agree to a few units in the last place per operation. Whole numbers and
choices are exact.
"""

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.arrays import put

SHAPES = [(), (3,), (4,), (1, 4), (3, 4), (4, 3), (4, 4), (2, 3, 4)]
OPERATIONS = 14
RUNS = 4  # each with numbers of its own


class RandomStep:
    """``step(own, state, round, stream) -> state, results``, drawn from a seed."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.seed = seed
        self.real = np.float32 if rng.random() < 0.25 else np.float64
        self.own = [self._real(rng, shape) for shape in self._shapes(rng, 4)]
        self.own.append(rng.integers(0, 50, (RUNS, 4)).astype(np.int32))
        self.state = [self._real(rng, shape) for shape in self._shapes(rng, 3)]
        self.state.append(rng.integers(0, 9, (RUNS, 3)).astype(np.int32))
        self.stream = [self._real(rng, (4,))]

    def _shapes(self, rng, count):
        return [SHAPES[i] for i in rng.integers(0, len(SHAPES), count)]

    def _real(self, rng, shape):
        return rng.uniform(0.5, 2.0, (RUNS, *shape)).astype(self.real)

    def __call__(self, own, state, round_, stream):
        rng = np.random.default_rng([self.seed, 1])
        reals = [*own[:-1], *state[:-1], *stream]
        whole = [own[-1], state[-1], round_.astype(jnp.int32)[None]]
        for _ in range(OPERATIONS):
            chance = rng.random()
            if chance < 0.2:
                whole.append(_whole(rng, whole))
            elif chance < 0.4:
                reals.append(_view(rng, _pick(rng, reals)))
            else:
                reals.append(_bounded(_real(rng, reals, whole)))
        after = [_like(rng, reals, old, whole[1][0] % 6 - 1) for old in state[:-1]] + [
            whole[-1][:1] + state[-1]
        ]
        return after, [reals[-1], reals[-2], whole[-1], jnp.argmax(reals[-1].ravel())]


def _bounded(x):
    """Back into the range where nothing overflows: a choice that rounding cannot change much."""
    return x / (1 + x) + 0.5


def _like(rng, reals, old, place):
    """A new value for a state: something of its shape, or a sum spread over it."""
    same = [x for x in reals if x.shape == old.shape]
    if old.ndim and rng.random() < 0.3:  # a row replaced, or none if there is no such row
        row = 0.5 + jnp.mean(_pick(rng, reals)) / 8
        return put(old, place, row.astype(old.dtype))
    if same and rng.random() < 0.8:
        return _pick(rng, same)
    return 0.5 * old + 0.25 * jnp.mean(_pick(rng, reals))


def _pick(rng, values):
    return values[rng.integers(max(0, len(values) - 8), len(values))]


def _real(rng, reals, whole):
    x = _pick(rng, reals)
    kind = rng.integers(0, 20)
    if kind < 6:
        other = _pick(rng, [y for y in reals if y.shape in (x.shape, (), x.shape[1:])] or [x])
        ways = (jnp.add, jnp.multiply, jnp.divide, jnp.maximum, jnp.minimum)
        return ways[kind](x, other) if kind < 5 else x * other + 0.5
    if kind == 6:
        return jnp.sqrt(x)
    if kind == 7:
        return jnp.exp(0.25 * x) + jnp.log1p(x)
    if kind == 8:
        return 3 + jnp.log(x)
    if kind == 9:
        return x**3 + jnp.square(x) ** 0.3
    if kind == 10:
        return jnp.where(whole[0][0] % 2 == 0, x, 2 * x)
    if kind == 11 and x.ndim:
        axis = int(rng.integers(0, x.ndim))
        return jnp.sum(x, axis=axis) if rng.random() < 0.5 else jnp.max(x, axis=axis)
    if kind == 12 and x.ndim:
        return jnp.min(x, axis=-1, keepdims=True) * x
    if kind == 13 and x.ndim == 2:
        matrices = [y for y in reals if y.ndim == 2 and y.shape[0] == x.shape[1]]
        return x @ (_pick(rng, matrices) if matrices else x.T)
    if kind == 14 and x.ndim:
        vectors = [y for y in reals if y.shape == x.shape[-1:]]
        return x @ _pick(rng, vectors) if vectors else jnp.vecdot(x, x)
    if kind == 15 and x.ndim:
        return x[whole[1][0] % x.shape[0]]
    if kind == 16 and x.ndim:
        return jnp.concatenate([x, x[:1]])[1:]
    if kind == 17 and x.ndim:
        return x[jnp.argmax(_distinct(x)) % x.shape[0]]
    if kind == 18 and x.ndim == 2 and x.shape[0] == x.shape[1]:
        return jnp.where(np.triu(np.ones(x.shape, bool)), x @ x, x.T)
    if kind == 18 and x.ndim == 1:
        return jnp.cumsum(x)
    if kind == 19 and x.ndim:
        return jax.lax.scan(lambda c, row: (0.5 * c + jnp.mean(row), row * c), 0 * x.sum() + 1, x)[
            1
        ]
    return 2 * x


def _view(rng, x):
    """The same numbers, elsewhere; read by whatever comes later."""
    thin = x[..., :1] if x.ndim else x[None]
    ways = [x.reshape(-1)[-1], x.reshape(-1)[::-1], x.T, thin]
    return ways[rng.integers(0, len(ways))]


def _distinct(x):
    """Numbers whose order rounding cannot change."""
    places = jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape)
    return (places * 7 + 3) % 11


def _quotient(x, y):
    return x // (y % 5)


def _remainder(x, y):
    return x % (y % 7 - 2)


def _whole(rng, whole):
    x, y = _pick(rng, whole), _pick(rng, whole)
    kind = rng.integers(0, 9)
    if kind < 6:
        y = y if y.shape == x.shape else y[:1]
        ways = (jnp.add, jnp.subtract, jnp.multiply, jnp.bitwise_xor, _quotient, _remainder)
        return ways[kind](x, y)
    if kind == 6:
        return (x << 3) | (x.astype(jnp.uint32) >> 5).astype(jnp.int32)
    if kind == 7:
        return jnp.where(x > y[:1], x, -x)
    return jnp.cumsum(x) & 1023
