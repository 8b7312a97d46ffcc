"""Where every random number of a simulation comes from.

A number is a pure function of (seed, stream, role, system, run, round, index): Threefry-2x32
(Salmon et al., SC 2011) hashes the first five into a key and the last two into 64 bits under that
key. So a run's numbers do not depend on blocks, workers, order, or the policies that run beside
it; all policies see the same state path and the same noise on the same arm; and the noise of one
arm out of a million costs one hash, not a million.

JAX's own generator has no such random access, and on CPUs its rolled loop takes eight times as
long as these unrolled rounds. ``tests/simulation/test_draws.py`` checks that the two hashes agree.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.arrays import Array

START, PROCESS, REWARD = "start", "process", "reward"
"""Roles of the environment's streams; a policy's role is ``policy:`` and its name."""

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


class Key(NamedTuple):
    """Two 32-bit words."""

    low: Array
    high: Array


def threefry(key: Key, first: Array, second: Array) -> Key:
    """Threefry-2x32 with 20 rounds: hash two 32-bit words under a key."""
    words = (key.low, key.high, key.low ^ key.high ^ np.uint32(0x1BD11BDA))
    x, y = first + words[0], second + words[1]
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << np.uint32(turn)) | (y >> np.uint32(32 - turn))
            y = y ^ x
        x = x + words[(group + 1) % 3]
        y = y + words[(group + 2) % 3] + np.uint32(group + 1)
    return Key(x, y)


def role_key(seed: int, stream: str, role: str) -> Key:
    """The key of one role (start, process, reward, a policy) of one study."""
    root = Key(*(jnp.asarray([word], jnp.uint32) for word in (seed & 0xFFFFFFFF, seed >> 32)))
    stream_word, role_word = (
        jnp.asarray([zlib.crc32(text.encode())], jnp.uint32) for text in (stream, role)
    )
    return Key(*(word[0] for word in threefry(root, stream_word, role_word)))


def run_key(key: Key, system: Array, run: Array) -> Key:
    """The key of one run of one system under a role's key."""
    return threefry(key, jnp.asarray(system, jnp.uint32), jnp.asarray(run, jnp.uint32))


def inside(word: Key, dtype: Any) -> Array:
    """Map 64 bits to the middle of one of 2⁵² (float32: 2²³) equal cells of (0, 1).

    One bit less than the type holds: with it the last middle would round to 1.
    """
    if np.dtype(dtype) == np.float32:
        return ((word.low >> np.uint32(9)).astype(jnp.float32) + 0.5) * np.float32(2**-23)
    cell = (word.low >> np.uint32(6)).astype(jnp.float64) * 2.0**26 + (word.high >> np.uint32(6))
    return (cell + 0.5) * 2.0**-52


def uniform(key: Key, round_: Array, index: Array, dtype: Any) -> Array:
    """A number in (0, 1), neither end ever drawn."""
    word = threefry(key, jnp.asarray(round_, jnp.uint32), jnp.asarray(index, jnp.uint32))
    return inside(word, dtype)


def normal(key: Key, round_: Array, index: Array, dtype: Any) -> Array:
    """A standard normal number, by the inverse of the distribution function."""
    return jax.scipy.special.ndtri(uniform(key, round_, index, dtype))
