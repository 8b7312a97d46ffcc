"""Compiled programs are kept between processes, for this kind of machine alone."""

import json
import os
import subprocess
import sys

import pytest

from driftbandit import program_cache


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    return program_cache.folder()


def write(path, at, size=1):
    path.write_bytes(b"x" * size)
    os.utime(path, (at, at))


def test_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DRIFTBANDIT_CACHE", raising=False)
    assert program_cache.folder().parent == tmp_path / "driftbandit" / "programs"
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path / "other"))
    assert program_cache.folder().parent == tmp_path / "other" / "programs"
    for off in ("off", "OFF", "0"):
        monkeypatch.setenv("DRIFTBANDIT_CACHE", off)
        assert program_cache.folder() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path / "file"))
    assert program_cache.folder() is None  # cannot be made: no cache, and no error


def test_other_instructions_have_another_folder(cache, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
    assert program_cache.folder() != cache


def test_what_a_killed_process_wrote_last_is_removed(cache):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write(cache / "old-cache", 1000)
    write(cache / f"running-{ended.pid}", 1500)
    write(cache / "whole-cache", 1600)
    write(cache / "torn-cache", 1700)
    write(cache / f"running-{os.getpid()}", 1800)
    program_cache.tidy(cache)
    assert sorted(path.name for path in cache.iterdir()) == [
        "old-cache",
        f"running-{os.getpid()}",
        "whole-cache",
    ]


def test_it_stays_small(cache, monkeypatch):
    for place in range(10):
        write(cache / str(place), 1000 + place, size=100)
    monkeypatch.setattr(program_cache, "MAX_BYTES", 1000)
    program_cache.tidy(cache)
    assert len(list(cache.iterdir())) == 10
    monkeypatch.setattr(program_cache, "MAX_BYTES", 800)
    program_cache.tidy(cache)
    assert sorted(path.name for path in cache.iterdir()) == ["6", "7", "8", "9"]


def test_the_environment_is_given_back(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "jax")
    before = dict(os.environ)
    with program_cache.in_environment():
        assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(cache)
        assert [path.name for path in cache.iterdir()] == [f"running-{os.getpid()}"]
    assert dict(os.environ) == before
    assert list(cache.iterdir()) == []


def test_a_second_process_compiles_nothing_and_finds_the_same(tmp_path):
    small = ["--systems", "1", "--runs", "2", "--rounds", "10", "--states", "2", "--arms", "2"]
    words = [sys.executable, "-m", "driftbandit", "simulate", "--policies", "ucb", "--json", *small]
    environment = dict(os.environ, DRIFTBANDIT_CACHE=str(tmp_path), JAX_PLATFORMS="cpu")
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    found, programs = [], []
    for _ in range(2):
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        assert done.returncode == 0
        assert "cache" not in done.stderr
        study = json.loads(done.stdout)["studies"]["gaussian"]
        found.append(study["policies"])
        programs.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("lanes-*.o")})
    assert len(programs[0]) == 3  # where runs start, how states move, and the policy
    assert programs[0] == programs[1]
    assert found[0] == found[1]


def test_a_damaged_program_is_made_anew(cache):
    made = []

    def make():
        made.append(1)
        return b"machine code"

    for damage in (None, b"", b"damaged", None):
        if damage is not None:
            (cache / "lanes-x.o").write_bytes(damage)
        assert program_cache.kept("lanes-x.o", make) == b"machine code"
    assert len(made) == 3
    assert [path.name for path in cache.iterdir()] == ["lanes-x.o"]


def test_without_a_folder_programs_are_made_every_time(monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", "off")
    assert program_cache.kept("lanes-x.o", lambda: b"code") == b"code"
