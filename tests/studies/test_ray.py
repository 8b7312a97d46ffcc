"""Studies on Ray, in processes of their own: Ray forks, which JAX warns about once it is loaded."""

import dataclasses
import json
import shutil
import socket
import subprocess
import sys

import pytest

from driftbandit import MissingExtra, studies

SPECIFICATION = studies.Specification(
    (studies.Cell("gaussian"), studies.Cell("bernoulli")),
    ("random",),
    systems=6,
    runs=2,
    rounds=50,
    n_states=3,
    n_arms=3,
    chunk=2,
)
# What `on_ray` starts takes all cores it sees; Ray is told of two.
PLAY = """
import json, os, sys
os.environ["RAY_OVERRIDE_RESOURCES"] = '{"CPU": 2}'
from driftbandit import studies
specification = studies.Specification.from_dict(json.loads(sys.argv[2]))
seen = []
engine = studies.on_ray()
import ray
def progress(*news):
    seen.append(news)
    if ray.is_initialized():
        assert ray.cluster_resources()["CPU"] == 2
studies.run(specification, sys.argv[1], engine, progress=progress)
assert not ray.is_initialized()
assert "jax" not in sys.modules, "the driver plays nothing"
print(json.dumps(seen))
"""


def play(out):
    command = [sys.executable, "-W", "error", "-c", PLAY, str(out)]
    done = subprocess.run(
        [*command, json.dumps(SPECIFICATION.as_dict())], capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "log.jsonl"
    }


@pytest.mark.nightly
def test_the_same_files_as_here(tmp_path):
    """Names and bytes; with one chunk stored before and one that is damaged."""
    here, there = tmp_path / "here", tmp_path / "there"
    studies.run(SPECIFICATION, here)
    chunks = sorted((here / SPECIFICATION.identity).glob("*.parquet"))
    assert len(chunks) == 6
    (there / SPECIFICATION.identity).mkdir(parents=True)
    kept = there / SPECIFICATION.identity / chunks[5].name
    kept.write_bytes(chunks[5].read_bytes())
    (there / SPECIFICATION.identity / chunks[4].name).write_bytes(chunks[4].read_bytes()[:100])
    written = kept.stat().st_mtime_ns
    seen = play(there)
    assert contents(there) == contents(here)
    assert kept.stat().st_mtime_ns == written
    assert "gaussian" in chunks[5].name
    for cell, first in (("gaussian", pytest.approx(1 / 3)), ("bernoulli", 0)):
        shares = [share for name, share, _ in seen if name == cell]
        assert shares[0] == first
        assert shares == sorted(shares)
        assert shares[-1] == 1


class OneProcessRay:
    """As much of Ray as the engine uses; tasks are played when they are waited for."""

    def __init__(self):
        self.running = False
        self.most = 0
        self.played = []

    def is_initialized(self):
        return self.running

    def init(self, **options):
        self.running = True

    def shutdown(self):
        self.running = False

    def cluster_resources(self):
        return {"CPU": 1.0}

    def remote(self, play):
        class Task:
            @staticmethod
            def remote(*arguments):
                return lambda: play(*arguments)

        return Task

    def wait(self, tasks, num_returns):
        self.most = max(self.most, len(tasks))
        return tasks[-1:], tasks[:-1]

    def get(self, task):
        done = task()
        self.played.append(done.chunk.name)
        return done


def test_chunks_that_others_store_meanwhile(tmp_path, monkeypatch):
    """They are not sent to the cluster, which never has more to do than twice its cores."""
    metric = dataclasses.replace(SPECIFICATION, policies=("idea",), measure="metric")
    ray = OneProcessRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    studies.run(metric, tmp_path / "other", studies.local(1))
    seen = []

    def progress(*news):
        seen.append(news)
        if len(ray.played) == 1:
            shutil.copytree(tmp_path / "other", tmp_path / "mine", dirs_exist_ok=True)

    studies.run(metric, tmp_path / "mine", studies.on_ray(), progress=progress)
    assert len(ray.played) == 3  # two sent at first, and one more when the first came back
    assert ray.most == 2
    assert not ray.running
    assert contents(tmp_path / "mine") == contents(tmp_path / "other")
    for cell in metric.cells:
        shares = [share for name, share, _ in seen if name == cell.label]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0, 1)


def test_ray_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"^engine 'ray' needs Ray; install driftbandit\[ray\]$"):
        studies.on_ray()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize(
    "address", [None, pytest.param("nonsense", marks=pytest.mark.nightly)], ids=["port", "word"]
)
def test_nobody_answers(address, tmp_path):
    """Said without waiting for ever, in one line, and nothing is stored."""
    address = address or f"127.0.0.1:{free_port()}"
    program = "from driftbandit.cli import main; main()"
    command = [sys.executable, "-c", program, "reproduce", "table2", "--engine", "ray"]
    done = subprocess.run(
        [*command, "--address", address, "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip().startswith(f"error address: '{address}' does not answer")
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert list(tmp_path.rglob("*.parquet")) == []
