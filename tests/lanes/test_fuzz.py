"""Random programs: lanes against JAX."""

import functools

import jax
import numpy as np
import pytest

from driftbandit.lanes import Unsupported
from driftbandit.lanes.program import aligned, compiled, in_lanes
from random_steps import OPERATIONS, RUNS, RandomStep

ROUNDS = 3


def _by_jax(steps):
    """State after the rounds, and the results of each, of many steps: compiled as one program."""
    rounds = np.arange(ROUNDS, dtype=np.uint32)

    def play(step, own, state, stream):
        return jax.lax.scan(lambda now, t: step(own, now, t, stream), state, rounds)

    def all_of_them(inputs):
        return [
            jax.vmap(functools.partial(play, step))(*given)
            for step, given in zip(steps, inputs, strict=True)
        ]

    quickly = {"xla_backend_optimization_level": 0}
    inputs = [(step.own, step.state, step.stream) for step in steps]
    return jax.tree.map(np.asarray, jax.jit(all_of_them, compiler_options=quickly)(inputs))


def _by_lanes(step, wanted):
    """The same, with the runs first."""
    one = jax.tree.map(lambda leaf: leaf[0], (step.own, step.state, step.stream))
    program = compiled(step, *one, lanes=RUNS)
    own, state = ([in_lanes(leaf, RUNS) for leaf in tree] for tree in (step.own, step.state))
    stream = [in_lanes(np.repeat(leaf[:, None], ROUNDS, axis=1), RUNS) for leaf in step.stream]
    found = [aligned((1, *leaf.shape[1:], RUNS), leaf.dtype) for leaf in wanted[1]]
    program.on(own, state, stream, found)(ROUNDS, 0)
    return [np.moveaxis(leaf[0], -1, 0) for leaf in (*state, *found)]


def check(step, wanted):
    found = _by_lanes(step, wanted)
    few = {"rtol": 16 * OPERATIONS * ROUNDS * np.finfo(step.real).eps, "err_msg": str(step.seed)}
    *ours, places = found
    *theirs, _ = *wanted[0], *wanted[1]
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, **few)
        else:
            np.testing.assert_array_equal(one, other, few["err_msg"])
    numbers = wanted[1][0].reshape(RUNS, ROUNDS, -1)  # where the last result finds the highest
    highest = np.take_along_axis(numbers, places[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(highest, numbers.max(axis=-1), **few)


def refused(seeds):
    """How many programs lanes refuses; all others must be right."""
    count = 0
    with jax.enable_x64(True):
        steps = [RandomStep(seed) for seed in seeds]
        for step, wanted in zip(steps, _by_jax(steps), strict=True):
            try:
                check(step, wanted)
            except Unsupported:
                count += 1
    return count


@pytest.mark.parametrize("first", range(0, 150, 30))
def test_random_programs(first):
    assert refused(range(first, first + 30)) <= 3


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(150, 11_000, 50))
def test_many_random_programs(first):
    assert refused(range(first, first + 50)) <= 5
