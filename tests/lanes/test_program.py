"""The contract: many runs, many rounds, each as if it were alone, on every machine the same."""

import platform
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import driftbandit as db
from driftbandit.arrays import namespace, put
from driftbandit.lanes import Unsupported, machine_code
from driftbandit.lanes.machine_code import Machine
from driftbandit.lanes.program import aligned, compiled, in_lanes
from driftbandit.simulation import Options, draws, jobs, programs, with_lanes
from driftbandit.simulation.parts import parts

X86 = platform.machine() in ("x86_64", "AMD64")
MACHINES = {  # what instruction sets older and newer processors have
    "SSE4.2": Machine("x86-64-v2", ""),
    "AVX2": Machine("x86-64-v3", ""),
    "AVX-512": Machine("x86-64-v4", ""),
}


def _played(part, arguments, stream, lanes, machine):
    """All bits that a policy's part computes for 16 runs and 40 rounds."""
    program = compiled(part.step, *arguments, lanes=lanes, machine=machine)
    rng = np.random.default_rng(0)
    (keys, _, system), state, _ = arguments

    def of_runs(leaf):
        return in_lanes(np.repeat(np.asarray(leaf)[None], 16, axis=0), lanes)

    words = [rng.integers(0, 2**32, 16, dtype=np.uint32) for _ in jax.tree.leaves(keys)]
    own = [in_lanes(word, lanes) for word in words]
    own += [of_runs(leaf) for leaf in jax.tree.leaves(system)]
    now = [of_runs(leaf) for leaf in jax.tree.leaves(state)]
    values = aligned((16 // lanes, 40, stream.shape[-1], lanes), stream.dtype)
    values[...] = np.moveaxis(stream.reshape(16 // lanes, lanes, 40, -1), 1, -1)
    path = aligned((16 // lanes, 40, lanes), stream.dtype)
    program.on(own, now, [values], [path])(40, 0)
    return np.moveaxis(path, 1, 0).reshape(40, 16)


@pytest.fixture(scope="module")
def thompson():
    """A part with random numbers, on one system, its arguments, and random values of the arms."""
    systems = db.families.sample("gaussian", n_states=3, n_arms=4, seed=1)
    player = jobs.prepared(db.policies.make("thompson"), systems, 40)
    environment = jobs.environment(systems)
    known = player._replace(known=jobs.known(systems))
    roles = {draws.START: draws.role_key(0, "", draws.START)}
    game = programs.Game()
    job = jobs.Job(None, environment, {"p": known}, None, 40, roles, game, 0, float, None)
    part = parts(job)["p"]
    stream = np.random.default_rng(1).normal(size=(16, 40, 4))
    with jax.enable_x64(True):
        yield part, part.arguments(), stream


def _runnable(machine):
    needed = {"SSE4.2": "sse4.2", "AVX2": "avx2", "AVX-512": "avx512dq"}[machine]
    return f"+{needed}" in machine_code.here().features


@pytest.mark.skipif(not X86, reason="instruction sets of x86-64")
@pytest.mark.parametrize("machine", MACHINES)
def test_bits_do_not_depend_on_the_instruction_set(thompson, machine):
    if not _runnable(machine):
        pytest.skip(f"this processor has no {machine}")
    ours = _played(*thompson, 4, machine_code.here())
    np.testing.assert_array_equal(_played(*thompson, 4, MACHINES[machine]), ours)


@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_bits_do_not_depend_on_the_lanes(thompson, lanes):
    ours = _played(*thompson, 4, machine_code.here())
    np.testing.assert_array_equal(_played(*thompson, lanes, machine_code.here()), ours)


def test_regret_does_not_depend_on_workers_neighbors_or_pieces(monkeypatch):
    systems = db.families.sample("gaussian", systems=3, n_states=3, n_arms=4, seed=2)
    settings = {"policies": ["idea", "ucb"], "rounds": 150, "seed": 5, "engine": "lanes"}
    whole = db.simulate(systems, runs=21, **settings)
    assert whole.timing.engine == "lanes"
    for workers, vectors in ((1, 1), (3, 2)):
        monkeypatch.setattr(with_lanes, "MOST_VECTORS", vectors)
        again = db.simulate(systems, runs=21, options=Options(workers=workers), **settings)
        assert again == whole
    fewer = db.simulate(systems[1:2], runs=5, options=Options(first_system=1), **settings)
    for name in whole.regret:
        np.testing.assert_array_equal(fewer.regret[name][0], whole.regret[name][1, :5])


class Counts(NamedTuple):
    pulls: np.ndarray


def test_whole_numbers_have_32_bits_in_single_precision():
    policy = db.policies.Policy(
        name="round_robin",
        prepare=lambda model, arms, rounds: ({}, Counts(np.arange(len(arms)) + 5)),
        choose=lambda state, problem, noise: namespace(state.pulls).argmin(state.pulls),
        update=lambda state, problem, arm, reward: Counts(
            put(state.pulls, arm, state.pulls[arm] + 1)
        ),
    )
    systems = db.families.sample("gaussian", systems=2, n_states=3, n_arms=4, seed=1)
    settings = {"policies": [policy], "rounds": 30, "runs": 3, "dtype": np.float32}
    lanes, xla = (db.simulate(systems, engine=name, **settings) for name in ("lanes", "xla"))
    np.testing.assert_allclose(lanes.regret["round_robin"], xla.regret["round_robin"], rtol=1e-5)


def test_what_is_not_in_the_table_is_refused():
    with pytest.raises(Unsupported, match="sort is not in the table of primitives"):
        compiled(lambda own, *_: ((), jnp.sort(own)), np.ones(4, np.float32), (), ())
    with pytest.raises(Unsupported, match="a scan over 33 steps"):
        compiled(
            lambda own, *_: ((), jax.lax.scan(lambda c, _: (c * 2, None), own, length=33)[0]),
            np.ones(4, np.float32),
            (),
            (),
        )


def test_choices_and_scans():
    """lax.cond computes both branches and takes one; scans run forwards and backwards."""

    def step(own, state, round_, stream):
        turned = jax.lax.scan(lambda c, x: (c + x, c * x), 0.0, own, reverse=True)
        chosen = jax.lax.cond(own[0] > 0, lambda x: x + 1, lambda x: x * 2, own)
        return (), (*turned, chosen)

    with jax.enable_x64(True):
        program = compiled(step, np.zeros(3), (), (), lanes=2)
        runs = np.array([[1.0, 2.0, 3.0], [-1.0, 5.0, 0.5]])
        found = [aligned((1, 1, *shape, 2), float) for shape in ((), (3,), (3,))]
        program.on([in_lanes(runs, 2)], [], [], found)(1, 0)
        for run in (0, 1):
            wanted = step(jnp.asarray(runs[run]), (), 0, ())[1]
            for ours, theirs in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(ours[0, 0, ..., run], theirs)


def test_a_policy_with_a_huge_memory_is_played_by_xla(monkeypatch):
    monkeypatch.setattr(with_lanes, "MOST_MEMORY", 1e4)
    systems = db.families.sample("gaussian", n_states=2, n_arms=3)
    policies = ["sliding_window_ucb(window=300)", "random"]
    result = db.simulate(systems, policies=policies, rounds=5, runs=2)
    assert result.timing.engine == "lanes, xla for sliding_window_ucb(window=300)"


def test_arrays_of_the_wrong_size_are_refused():
    with jax.enable_x64(True):
        program = compiled(lambda own, state, *_: (state + own, own), np.ones(3), np.ones(3), ())
        good = [aligned((1, 3, program.lanes), float) for _ in range(2)]
        path = aligned((1, 5, 3, program.lanes), float)
        program.on([good[0]], [good[1]], [], [path])(5, 0)
        for bad in (path[:, :, :2], path.astype(np.float32)[..., :3], path[..., :-1]):
            with pytest.raises(ValueError, match="array 2 has shape"):
                program.on([good[0]], [good[1]], [], [bad])
