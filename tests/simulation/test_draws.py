"""The counter-based generator."""

import jax
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from driftbandit.simulation import draws


def test_hash_equals_jax():
    rng = np.random.default_rng(0)
    for _ in range(20):
        key = rng.integers(0, 2**32, 2, dtype=np.uint32)
        words = rng.integers(0, 2**32, (2, 50), dtype=np.uint32)
        ours = draws.threefry(draws.Key(key[:1], key[1:]), words[0], words[1])
        theirs = np.asarray(threefry_2x32(key, words.ravel())).reshape(2, 50)
        np.testing.assert_array_equal(np.stack(ours), theirs)


def test_known_answer():
    """Random123's published vectors for threefry2x32, 20 rounds."""
    zero, ones = np.zeros(1, np.uint32), np.full(1, 0xFFFFFFFF, np.uint32)
    assert [int(x[0]) for x in draws.threefry(draws.Key(zero, zero), zero, zero)] == [
        0x6B200159,
        0x99BA4EFE,
    ]
    assert [int(x[0]) for x in draws.threefry(draws.Key(ones, ones), ones, ones)] == [
        0x1CB996FC,
        0xBB002BE7,
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_laws(dtype):
    with jax.enable_x64(dtype == np.float64):
        key = draws.role_key(7, "laws", "reward")
        where = np.arange(1000)[:, None], np.arange(200)
        uniform = np.asarray(draws.uniform(key, *where, dtype)).ravel()
        normal = np.asarray(draws.normal(key, *where, dtype)).ravel()
    assert uniform.dtype == normal.dtype == dtype
    assert uniform.min() > 0
    assert uniform.max() < 1
    assert stats.kstest(uniform.astype(float), "uniform").pvalue > 0.01
    assert stats.kstest(normal.astype(float), "norm").pvalue > 0.01


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extreme_words_stay_inside_the_interval(dtype):
    """The largest and the smallest hash still give a finite normal number."""
    with jax.enable_x64(dtype == np.float64):
        for word in (0, 0xFFFFFFFF):
            key = draws.Key(*(jax.numpy.full(1, word, jax.numpy.uint32),) * 2)
            edge = draws.inside(key, dtype)
            assert edge.dtype == dtype
            assert 0 < float(edge[0]) < 1
            assert np.isfinite(float(jax.scipy.special.ndtri(edge)[0]))


def test_streams_differ():
    """Any one word of (seed, stream, role, system, run, round, index) changes the numbers."""
    base = (0, "a", "reward", 0, 0, 0, 0)
    others = [
        (1, "a", "reward", 0, 0, 0, 0),
        (2**32, "a", "reward", 0, 0, 0, 0),
        (0, "b", "reward", 0, 0, 0, 0),
        (0, "a", "process", 0, 0, 0, 0),
        (0, "a", "reward", 1, 0, 0, 0),
        (0, "a", "reward", 0, 1, 0, 0),
        (0, "a", "reward", 0, 0, 1, 0),
        (0, "a", "reward", 0, 0, 0, 1),
    ]

    def number(seed, stream, role, system, run, round_, index):
        key = draws.run_key(draws.role_key(seed, stream, role), system, run)
        return float(draws.uniform(key, round_, index, np.float64))

    with jax.enable_x64(True):
        values = [number(*case) for case in [base, *others]]
        assert number(*base) == values[0]
    assert len(set(values)) == len(values)
