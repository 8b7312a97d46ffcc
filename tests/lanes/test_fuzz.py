"""Random programs: lanes against JAX."""

import jax
import numpy as np
import pytest

from driftbandit.lanes import Unsupported
from driftbandit.lanes.program import aligned, compiled, in_lanes
from random_steps import OPERATIONS, RandomStep

ROUNDS, LANES = 3, 4


def _by_jax(steps):
    """State after the rounds, and the results of each, of many steps: compiled as one program."""
    rounds = np.arange(ROUNDS, dtype=np.uint32)

    def play(inputs):
        return [
            jax.lax.scan(lambda now, t, step=step, i=i: step(i[0], now, t, i[2]), i[1], rounds)
            for step, i in zip(steps, inputs, strict=True)
        ]

    quickly = {"xla_backend_optimization_level": 0}
    inputs = [(step.own, step.state, step.stream) for step in steps]
    return jax.tree.map(np.asarray, jax.jit(play, compiler_options=quickly)(inputs))


def _by_lanes(step, results):
    def in_all(tree):
        leaves = [np.repeat(np.asarray(leaf)[None], LANES, axis=0) for leaf in tree]
        return [in_lanes(leaf, LANES) for leaf in leaves]

    program = compiled(step, step.own, step.state, step.stream, lanes=LANES)
    own, state = in_all(step.own), in_all(step.state)
    stream = [np.repeat(leaf[:, None], ROUNDS, axis=1) for leaf in in_all(step.stream)]
    stream = [_copied(leaf) for leaf in stream]
    found = [aligned((1, *r.shape, LANES), r.dtype) for r in results]
    program.on(own, state, stream, found)(ROUNDS, 0)
    return [leaf[0] for leaf in state], [leaf[0] for leaf in found]


def _copied(leaf):
    found = aligned(leaf.shape, leaf.dtype)
    found[...] = leaf
    return found


def check(step, wanted):
    found = _by_lanes(step, wanted[1])
    for ours, theirs in zip(found[0] + found[1], wanted[0] + wanted[1], strict=True):
        assert ours.dtype == theirs.dtype
        message = f"seed {step.seed}"
        np.testing.assert_array_equal(ours, ours[..., :1] + 0 * ours, message)  # all lanes alike
        if ours.dtype.kind == "f":
            few = 16 * OPERATIONS * ROUNDS * np.finfo(step.real).eps
            np.testing.assert_allclose(ours[..., 0], theirs, rtol=few, err_msg=message)
        else:
            np.testing.assert_array_equal(ours[..., 0], theirs, message)


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


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_random_programs(first):
    assert refused(range(first, first + 30)) <= 3


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 11_000, 50))
def test_many_random_programs(first):
    assert refused(range(first, first + 50)) <= 5
