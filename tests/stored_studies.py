"""Small studies, an engine that counts, and checks of what is stored."""

import dataclasses
import hashlib
import json
import random
from pathlib import Path

import numpy as np

from driftbandit import studies
from driftbandit.paper.readings import Cell
from driftbandit.studies import Specification, engines, store

# Nothing is compiled for the metric, so what concerns storage is tested with it.
METRIC = Specification(
    (Cell("gaussian"), Cell("bernoulli", perturbed="arms", strength=0.1)),
    ("idea", "kode"),
    systems=7,
    runs=2,
    rounds=40,
    n_states=3,
    n_arms=3,
    measure="metric",
    chunk=2,
)
REGRET = dataclasses.replace(
    METRIC, policies=("idea", "random"), systems=10, measure="regret", chunk=3
)
NAMES = [chunk.name for chunk in METRIC.chunks()]


class Interrupted(Exception):
    pass


class Plays:
    """An engine that counts, shuffles if asked to, and fails where it is told to."""

    def __init__(self, fail_after=None, shuffle=None):
        self.names = []
        self.fail_after = fail_after
        self.shuffle = shuffle

    def __call__(self, specification, wanted, is_stored, report):
        if self.shuffle is not None:
            wanted = random.Random(self.shuffle).sample(wanted, len(wanted))
        for chunk in wanted:
            if len(self.names) == self.fail_after:
                raise Interrupted
            self.names.append(chunk.name)
            yield engines.play(specification, chunk, report)


def contents(folder):
    """All that is stored below a folder, but the logs, which know the time."""
    atomic = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in atomic
        if path.name != "log.jsonl"
    }


def file_of(folder, name):
    [path] = folder.glob(f"{name}.*.parquet")
    return path


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for label in one:
        assert list(one[label]) == list(other[label])
        for name in one[label]:
            np.testing.assert_array_equal(one[label][name], other[label][name], strict=True)


def assert_manifest_is_right(folder, specification=METRIC):
    """Every chunk is listed with what its file really holds, and nothing else lies around."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["complete"] is True
    assert manifest["study"] == specification.identity == folder.name
    assert list(manifest["chunks"]) == sorted(chunk.name for chunk in specification.chunks())
    for name, listed in manifest["chunks"].items():
        content = (folder / listed["file"]).read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        assert listed["file"] == f"{name}.{sha256[:16]}.parquet"
        assert (listed["sha256"], listed["bytes"]) == (sha256, len(content))
        assert listed["versions"] == store.versions()
    assert {path.name for path in folder.iterdir()} == {
        "specification.json",
        "manifest.json",
        "log.jsonl",
        *(listed["file"] for listed in manifest["chunks"].values()),
    }


def assert_heals(folder, finished, damaged):
    """A run gives what it gave before, plays the damaged chunks only, and leaves a whole folder."""
    plays = Plays()
    outcome = studies.run(METRIC, folder, plays)
    assert plays.names == list(damaged)
    assert_equal(outcome.columns, finished[1].columns)
    assert contents(folder) == contents(finished[0])
    assert_manifest_is_right(folder / METRIC.identity)
