"""Kernels for a GPU, compiled as C++: the same bits as on a CPU."""

import numpy as np
import pytest

import cplusplus_gpu
import driftbandit as db
from driftbandit.lanes import Unsupported
from driftbandit.simulation import Options, engine, with_kernels, with_lanes

pytestmark = pytest.mark.skipif(cplusplus_gpu.COMPILER is None, reason="needs a C++ compiler")
POLICIES = ["idea", "thompson", "rexp3", "sliding_window_ucb", "sliding_window_linucb", "oful"]
POLICIES += ["kalman_oracle", "discounted_ucb"]


@pytest.fixture
def kernels(monkeypatch, tmp_path):
    """`simulate` plays with kernels on the stand-in."""
    monkeypatch.setenv("DRIFTBANDIT_CACHE", "off")
    monkeypatch.setattr(with_kernels, "gpu", cplusplus_gpu.Machine(tmp_path))
    monkeypatch.setattr(with_kernels, "_kept", {})

    def play(*args, **settings):
        with monkeypatch.context() as patch:
            patch.setattr(engine, "with_lanes", with_kernels)
            return db.simulate(*args, engine="lanes", **settings)

    return play


def test_one_system_has_the_bits_of_the_cpu(kernels):
    systems = db.families.sample("gaussian", n_states=3, n_arms=4, seed=1)
    settings = {"policies": POLICIES, "rounds": 150, "runs": 9, "seed": 3}
    assert kernels(systems, **settings) == db.simulate(systems, engine="lanes", **settings)


def test_many_systems_and_pieces_have_the_bits_of_the_cpu(kernels, monkeypatch):
    systems = db.families.sample("gaussian", systems=5, n_states=3, n_arms=4, seed=2)
    settings = {"policies": ["idea", "ucb", "weighted_linucb"], "rounds": 70, "runs": 3}
    monkeypatch.setattr(with_kernels, "MOST_RUNS", 4)
    assert kernels(systems, **settings) == db.simulate(systems, engine="lanes", **settings)


@pytest.mark.parametrize("systems", [1, 3])
def test_single_precision(kernels, systems):
    systems = db.families.sample("gaussian", systems=systems, n_states=2, n_arms=3, seed=4)
    settings = {"policies": ["idea", "rexp3"], "rounds": 40, "runs": 4, "dtype": np.float32}
    assert kernels(systems, **settings) == db.simulate(systems, engine="lanes", **settings)


@pytest.mark.parametrize("regret", ["noisy", "hindsight"])
def test_options(kernels, regret):
    systems = db.families.sample("gaussian", systems=2, n_states=2, n_arms=3, seed=5)
    options = Options(regret=regret, common_noise=regret == "noisy", first_system=7)
    settings = {"policies": ["kode"], "rounds": 30, "runs": 4, "options": options}
    assert kernels(systems, **settings) == db.simulate(systems, engine="lanes", **settings)


def test_long_programs_are_refused(kernels):
    systems = db.families.sample("gaussian", n_states=20, n_arms=20)
    with pytest.raises(db.InvalidInput, match="cannot play 'idea': a round of more than 11000"):
        kernels(systems, policies=["idea"], rounds=10, runs=2)


@pytest.mark.parametrize(
    ("sizes", "policies", "reason"),
    [
        ({"n_states": 70}, ["random"], "more than 30000 bytes"),  # the environment, not the policy
        ({"n_states": 20, "systems": 40}, ["kalman_ucb"], "too large for shared memory"),
    ],
)
def test_systems_too_large_are_refused_before_play(kernels, sizes, policies, reason):
    systems = db.families.sample("gaussian", n_arms=10, **sizes)
    with pytest.raises(db.InvalidInput, match=reason):
        kernels(systems, policies=policies, rounds=5, runs=1)


def test_without_nvrtc_xla_plays(kernels, monkeypatch):
    def missing(*_):
        raise Unsupported("libnvrtc.so is missing")

    monkeypatch.setattr(with_kernels.gpu, "machine_code", missing)
    systems = db.families.sample("gaussian", n_states=2, n_arms=3)
    with pytest.raises(db.InvalidInput, match=r"libnvrtc.so is missing"):
        kernels(systems, policies=["random"], rounds=5, runs=2)


def test_without_nvidia_libraries_xla_plays(monkeypatch):
    def missing():
        raise Unsupported("libcuda.so is missing")

    monkeypatch.setattr(with_kernels.gpu, "architecture", missing)
    monkeypatch.setattr(engine, "with_lanes", with_kernels)
    systems = db.families.sample("gaussian", n_states=2, n_arms=3)
    result = db.simulate(systems, policies=["random"], rounds=5, runs=2)
    assert result.timing.engine == "xla"
    assert with_lanes is not with_kernels
