"""Studies: what must not change their numbers, and what no crash or damage may do to them."""

import contextlib
import dataclasses
import hashlib
import importlib.resources
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftbandit as db
from driftbandit import studies
from driftbandit.io import atomic
from driftbandit.paper.perturbation import TARGETS
from driftbandit.paper.readings import CHOICES, Cell, Reading
from driftbandit.result import Timing
from driftbandit.simulation import Options
from driftbandit.studies import Specification, Store, engines, store
from driftbandit.studies import specification as specifications

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


@pytest.fixture
def computed(monkeypatch):
    """Names of the chunks that any engine of this process computes, as it begins them."""
    names = []
    compute = engines.compute

    def counted(specification, chunk, *rest):
        names.append(chunk.name)
        return compute(specification, chunk, *rest)

    monkeypatch.setattr(engines, "compute", counted)
    return names


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with the whole of METRIC, never written to again."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, studies.run(METRIC, folder, Plays())


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of that folder to be damaged, and the study's own folder in it."""
    shutil.copytree(finished[0], tmp_path / "studies")
    return tmp_path / "studies", tmp_path / "studies" / METRIC.identity


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


# What a specification covers, and how it is told from others.


@given(
    cells=st.lists(st.sampled_from(list(db.families.FAMILIES)), min_size=1, unique=True),
    systems=st.integers(1, 60),
    chunk=st.integers(1, 70),
)
def test_chunks_cover_every_system_once(cells, systems, chunk):
    specification = Specification(
        tuple(map(Cell, cells)), ("random",), systems=systems, chunk=chunk
    )
    cut = list(specification.chunks())
    covered = [
        (part.cell.family, number)
        for part in cut
        for number in range(part.first, part.first + part.systems)
    ]
    assert covered == [(family, number) for family in cells for number in range(systems)]
    assert len({part.name for part in cut}) == len(cut)
    assert all(1 <= part.systems <= chunk for part in cut)


READINGS = st.builds(Reading, **{q: st.sampled_from(list(a)) for q, a in CHOICES.items()})
CELLS = st.builds(
    Cell,
    st.sampled_from(list(db.families.FAMILIES)),
    reading=READINGS,
    perturbed=st.sampled_from(["", *TARGETS]),
    strength=st.floats(0, 100),
    radius=st.floats(0.01, 0.99),
    noise_scale=st.floats(0, 100),
) | st.builds(
    Cell,
    st.sampled_from(list(db.families.FAMILIES)),
    n_states=st.integers(1, 50),
    n_arms=st.none() | st.integers(1, 2**31),
    absent=st.just(()) | st.just(("random",)),
)


@given(
    cells=st.lists(CELLS, min_size=1, max_size=4, unique_by=lambda cell: cell.label),
    policies=st.lists(st.sampled_from(db.policies.available()), min_size=1, unique=True),
    sizes=st.tuples(*[st.integers(1, 2**31)] * 3),
    seed=st.integers(0, 2**63 - 1),
    n_states=st.integers(1, 50),
    kind=st.tuples(*map(st.sampled_from, (["regret", "metric"], ["float64", "float32"]))),
    platform=st.sampled_from(["cpu", "gpu"]),
    chunk=st.integers(1, 2**31),
)
def test_a_specification_survives_json(
    cells, policies, sizes, seed, n_states, kind, platform, chunk
):
    if kind[0] == "metric":  # which is measured of bonuses alone
        policies = ["idea", "kalman_ucb"]
        cells = [dataclasses.replace(cell, absent=()) for cell in cells]
    elif any(cell.absent for cell in cells):
        policies = {"idea": None, "random": None, **dict.fromkeys(policies)}
    given = Specification(
        tuple(cells), tuple(policies), *sizes, seed, n_states, n_states, *kind, platform, chunk
    )
    again = Specification.from_dict(json.loads(json.dumps(given.as_dict())), Cell)
    assert again == given
    assert again.identity == given.identity


CHANGES = {
    "cells": METRIC.cells[:1],
    "policies": ("kode", "idea"),
    "systems": 8,
    "runs": 3,
    "rounds": 41,
    "seed": 1,
    "n_states": 4,
    "n_arms": 4,
    "measure": "regret",
    "dtype": "float32",
    "platform": "gpu",
    "chunk": 3,
}
CELL_CHANGES = {
    "family": "cauchy",
    "perturbed": "transition",
    "strength": 0.2,
    "n_states": 5,
    "n_arms": 5,
    "radius": 0.8,
    "noise_scale": 2.0,
    "absent": ("kode",),
    **{f"reading.{question}": list(answers)[1] for question, answers in CHOICES.items()},
}


@pytest.mark.parametrize("field", [*CHANGES, *CELL_CHANGES])
def test_any_change_changes_the_identity(field):
    # "n_arms" may not differ from "n_states" where arms are perturbed.
    cell = Cell("gaussian", perturbed="process_cov", strength=0.1)
    base = dataclasses.replace(METRIC, cells=(cell,))
    if field in CHANGES:
        changed = dataclasses.replace(base, **{field: CHANGES[field]})
    elif field.startswith("reading."):
        reading = Reading(**{field.removeprefix("reading."): CELL_CHANGES[field]})
        changed = dataclasses.replace(base, cells=(dataclasses.replace(cell, reading=reading),))
    else:
        other = dataclasses.replace(cell, **{field: CELL_CHANGES[field]})
        changed = dataclasses.replace(base, cells=(other,))
    assert changed.identity != base.identity


def test_every_field_is_changed_above():
    def fields(kind):
        return {field.name for field in dataclasses.fields(kind)}

    assert set(CHANGES) == fields(Specification)
    plain = {name for name in CELL_CHANGES if "." not in name}
    assert plain | {"reading"} == fields(Cell)
    assert {f"reading.{name}" for name in fields(Reading)} == set(CELL_CHANGES) - plain


def test_equal_specifications_have_one_identity():
    """Whatever kinds of numbers and sequences they were given as."""
    cells = [Cell("gaussian", perturbed="transition", strength=1)]
    loose = Specification(cells, ["random"], np.int64(5), seed=np.uint32(3))
    cells = (Cell("gaussian", perturbed="transition", strength=1.0),)
    strict = Specification(cells, ("random",), 5, seed=3)
    assert loose == strict
    assert loose.identity == strict.identity
    assert hash(loose) == hash(strict)


@pytest.mark.parametrize("strength", [float("nan"), float("inf"), "0.1"])
def test_a_strength_is_a_number(strength):
    with pytest.raises(db.InvalidInput, match=r"^strength: "):
        Cell("gaussian", perturbed="arms", strength=strength)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_states", 0),
        ("n_arms", 2.0),
        ("radius", 1.0),
        ("radius", 0),
        ("radius", "0.9"),
        ("noise_scale", -1.0),
        ("noise_scale", float("nan")),
    ],
)
def test_what_a_cell_changes_is_checked(field, value):
    with pytest.raises(db.InvalidInput, match=f"^{field}: "):
        Cell("gaussian", **{field: value})


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (Cell("gaussian", absent=("kod",)), "absent: unknown name 'kod'; did you mean 'kode'"),
        (Cell("gaussian", absent=("idea", "kode")), "absent: leaves no policy to play gaussian"),
        (Cell("gaussian", perturbed="arms", n_arms=4), "n_arms: is 4 with 3 states"),
    ],
)
def test_a_cell_that_does_not_fit_its_study(cell, words):
    with pytest.raises(db.InvalidInput) as caught:
        dataclasses.replace(METRIC, cells=(cell,))
    assert str(caught.value).startswith(words)


def test_a_study_stored_before_cells_could_change_their_systems():
    """Its cells say nothing of states, arms, radius, noise and absent policies."""
    stored = METRIC.as_dict()
    later = ("n_states", "n_arms", "radius", "noise_scale", "absent")
    stored["cells"] = [
        {name: value for name, value in cell.items() if name not in later}
        for cell in stored["cells"]
    ]
    assert Specification.from_dict(json.loads(json.dumps(stored)), Cell) == METRIC


def test_cells_of_several_shapes_in_one_study(tmp_path):
    """Each is what `simulate` plays on the systems it names, by those who play there."""
    cells = (
        Cell("gaussian"),
        Cell("gaussian", n_states=2, n_arms=4, absent=("kode",)),
        Cell("gaussian", radius=0.5, noise_scale=3.0),
    )
    several = dataclasses.replace(
        REGRET, cells=cells, policies=("kode", "random"), systems=4, chunk=4
    )
    found = studies.run(several, tmp_path).results()
    assert list(found) == ["gaussian", "gaussian.d-2.k-4", "gaussian.radius-0.5.noise-3"]
    for cell, changes in zip(
        cells,
        ({}, {"n_states": 2, "n_arms": 4}, {"radius": 0.5, "noise_scale": 3.0}),
        strict=True,
    ):
        systems = db.families.sample("gaussian", 4, **{"n_states": 3, "n_arms": 3} | changes)
        players = ["random"] if cell.absent else ["kode", "random"]
        size = {"rounds": REGRET.rounds, "runs": REGRET.runs}
        alone = db.simulate(
            systems, None, players, **size, options=Options(stream="gaussian", checkpoints=1)
        )
        regret = found[cell.label].regret
        assert list(regret) == players
        for policy in players:
            np.testing.assert_array_equal(regret[policy], alone.regret[policy])


def test_other_code_has_another_identity(monkeypatch):
    before = METRIC.identity
    monkeypatch.setattr(specifications, "code_fingerprint", lambda *_: "0" * 16)
    assert METRIC.identity != before


def played_by_sources(root):
    places = [root / place for place in (*specifications.PLAYED_BY, *Cell.SOURCES)]
    return {
        file for place in places for file in (place.glob("*.py") if place.is_dir() else [place])
    }


def test_the_fingerprint_sees_every_byte_of_the_code(tmp_path, monkeypatch):
    """Of the code that numbers come from, and of no other."""
    root = tmp_path / "driftbandit"
    shutil.copytree(importlib.resources.files("driftbandit"), root)
    monkeypatch.setattr(importlib.resources, "files", lambda package: root)
    fresh = getattr(specifications.code_fingerprint, "__wrapped__", specifications.code_fingerprint)
    before = fresh(Cell.SOURCES)
    counting = played_by_sources(root)
    assert len(counting) > 20
    for source in root.rglob("*.py"):
        text = source.read_bytes()
        source.write_bytes(text + b"#")
        assert (fresh(Cell.SOURCES) != before) == (source in counting), source
        source.write_bytes(text)
    assert fresh(Cell.SOURCES) == before


BESIDE_THE_NUMBERS = {
    "__init__.py",
    "io/__init__.py",
    "io/atomic.py",
    "io/model_file.py",
    "_version.py",
    "machine.py",
    "paper/__init__.py",
    "paper/figure1.py",
    "paper/figure2.py",
    "paper/figure3.py",
    "paper/table2.py",
    "result.py",
    "statistics.py",
    "studies/__init__.py",
    "studies/engines.py",
    "studies/store.py",
    "studies/target.py",
    "system.py",
}
"""Loaded by a study, but no number of a chunk comes from there."""


def test_the_fingerprint_knows_all_code_that_plays():
    code = """
import sys, driftbandit, pathlib
from driftbandit import studies
from driftbandit.paper.readings import Cell
for measure in ("regret", "metric"):
    small = studies.Specification(
        (Cell("gaussian", perturbed="arms", strength=0.1),),
        ("idea",), 1, 1, 2, n_states=2, n_arms=2, measure=measure,
    )
    studies.engines.compute(small, next(small.chunks()))
root = pathlib.Path(driftbandit.__file__).parent
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] == "driftbandit":
        print(pathlib.Path(module.__file__).relative_to(root).as_posix())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    root = Path(db.__file__).parent
    known = {path.relative_to(root).as_posix() for path in played_by_sources(root)}
    loaded = set(done.stdout.split())
    beside = {name for name in loaded if name.startswith(("agent/", "report/", "theory/"))}
    assert {"theory/checks.py", "theory/metric.py"} <= known
    assert loaded - known - beside <= BESIDE_THE_NUMBERS


# What numbers do not depend on.


@pytest.mark.parametrize("base", [REGRET, METRIC], ids=["regret", "metric"])
def test_numbers_do_not_depend_on_the_chunk_size(base, tmp_path):
    """Bit for bit."""
    whole = dataclasses.replace(base, chunk=base.systems)
    expected = studies.run(whole, tmp_path, Plays()).columns
    for size in (3, 7):
        cut = dataclasses.replace(base, chunk=size)
        assert_equal(studies.run(cut, tmp_path, Plays()).columns, expected)
    if base.measure == "regret":
        systems = db.families.sample("gaussian", base.systems, base.n_states, base.n_arms)
        size = {"rounds": base.rounds, "runs": base.runs}
        alone = db.simulate(
            systems, None, base.policies, **size, options=Options(stream="gaussian", checkpoints=1)
        )
        for policy in base.policies:
            np.testing.assert_array_equal(
                expected["gaussian"][policy].reshape(base.systems, base.runs), alone.regret[policy]
            )


@pytest.mark.parametrize("base", [REGRET, METRIC], ids=["regret", "metric"])
def test_files_do_not_depend_on_workers_or_order(base, tmp_path):
    found = []
    for name, engine in {
        "one": studies.local(1),
        "three": studies.local(3),
        "default": None,
        "shuffled": Plays(shuffle=1),
        "otherwise": Plays(shuffle=2),
    }.items():
        outcome = studies.run(base, tmp_path / name, engine)
        found.append((contents(tmp_path / name), outcome.columns))
    atomic, columns = found[0]
    assert sum(name.endswith(".parquet") for name in atomic) == len(list(base.chunks()))
    for other_files, other_columns in found[1:]:
        assert other_files == atomic
        assert_equal(other_columns, columns)


def test_rows_are_numbered(finished):
    for columns in finished[1].columns.values():
        np.testing.assert_array_equal(columns["system"], np.arange(METRIC.systems))


# Resuming.


@pytest.mark.parametrize("first", [0, 1, 5, len(NAMES) - 1])
def test_an_interrupted_study_goes_on_from_there(first, finished, tmp_path):
    with pytest.raises(Interrupted):
        studies.run(METRIC, tmp_path, Plays(fail_after=first))
    assert len(list(tmp_path.rglob("*.parquet"))) == first
    rest = Plays()
    outcome = studies.run(METRIC, tmp_path, rest)
    assert rest.names == NAMES[first:]
    assert_equal(outcome.columns, finished[1].columns)
    assert contents(tmp_path) == contents(finished[0])


def test_a_finished_study_plays_nothing(copy, finished):
    assert_heals(copy[0], finished, [])


def test_a_finished_study_plays_nothing_on_any_engine(copy, finished, computed):
    outcome = studies.run(METRIC, copy[0])
    assert computed == []
    assert_equal(outcome.columns, finished[1].columns)


def test_without_resume_all_is_played_again(copy, finished, computed):
    outcome = studies.run(METRIC, copy[0], studies.local(1), resume=False)
    assert computed == NAMES
    assert_equal(outcome.columns, finished[1].columns)
    assert contents(copy[0]) == contents(finished[0])


def test_without_resume_what_was_stored_is_replaced(copy, finished, monkeypatch):
    """Also where the same chunk comes out in other bytes, as with other versions of packages."""
    folder, inner = copy
    monkeypatch.setattr(store, "versions", lambda: {"jax": "99"})
    outcome = studies.run(METRIC, folder, Plays(), resume=False)
    assert outcome.versions == {"jax": ["99"]}
    assert_manifest_is_right(inner)
    old = set(contents(finished[0]))
    assert not old & {name for name in contents(folder) if name.endswith(".parquet")}


def test_versions_that_were_mixed_are_told(finished, copy, monkeypatch):
    file_of(copy[1], NAMES[3]).unlink()
    mine = store.versions()
    monkeypatch.setattr(store, "versions", lambda: {**mine, "jax": "99"})
    outcome = studies.run(METRIC, copy[0], Plays())
    assert outcome.versions == {
        name: sorted({version, "99"}) if name == "jax" else [version]
        for name, version in mine.items()
    }


def test_another_study_leaves_this_one_alone(copy, finished):
    folder, inner = copy
    times = {path: path.stat().st_mtime_ns for path in inner.iterdir()}
    studies.run(dataclasses.replace(METRIC, seed=1), folder, Plays())
    assert len(list(folder.iterdir())) == 2
    assert contents(inner) == contents(finished[0] / METRIC.identity)
    assert {path: path.stat().st_mtime_ns for path in inner.iterdir()} == times


# Damage.


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_truncated_chunk(share, copy, finished):
    path = file_of(copy[1], NAMES[2])
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert_heals(copy[0], finished, [NAMES[2]])


def test_longer_chunk(copy, finished):
    path = file_of(copy[1], NAMES[2])
    path.write_bytes(path.read_bytes() + b"\0")
    assert_heals(copy[0], finished, [NAMES[2]])


def test_flipped_bits(copy, finished):
    """One bit anywhere in a chunk; every tenth time all of the run is looked at."""
    rng = random.Random(4)
    opened = Store(copy[0], METRIC)
    for turn in range(50):
        chunk = rng.choice(list(METRIC.chunks()))
        path = file_of(copy[1], chunk.name)
        whole = path.read_bytes()
        content = bytearray(whole)
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        assert opened.missing() == [chunk]
        assert opened.find(chunk) is None
        if turn % 10 == 0:
            assert_heals(copy[0], finished, [chunk.name])
        path.write_bytes(whole)


def test_manifest_of_an_unfinished_study(copy):
    file_of(copy[1], NAMES[0]).unlink()
    path = file_of(copy[1], NAMES[1])
    path.write_bytes(path.read_bytes()[1:])
    with pytest.raises(db.InvalidInput, match=f"{NAMES[0]} is missing or damaged"):
        Store(copy[0], METRIC).gather()
    manifest = json.loads((copy[1] / "manifest.json").read_text())
    assert manifest["complete"] is False
    assert sorted(manifest["chunks"]) == sorted(NAMES[2:])


def test_deleted_chunks(copy, finished):
    for name in (NAMES[1], NAMES[6]):
        file_of(copy[1], name).unlink()
    assert_heals(copy[0], finished, [NAMES[1], NAMES[6]])


@pytest.mark.parametrize("hashed", ["as it was", "rightly"])
@pytest.mark.parametrize("source", ["chunk", "study"])
def test_bytes_of_another_chunk(source, hashed, copy, finished, tmp_path):
    """Whole, and even under a name with their own hash, but not what belongs there."""
    path = file_of(copy[1], NAMES[2])
    if source == "chunk":
        foreign = file_of(copy[1], NAMES[0]).read_bytes()
    else:
        other = dataclasses.replace(METRIC, seed=1)
        with contextlib.suppress(Interrupted):
            studies.run(other, tmp_path / "other", Plays(fail_after=3))
        foreign = file_of(tmp_path / "other" / other.identity, NAMES[2]).read_bytes()
    path.write_bytes(foreign)
    if hashed == "rightly":
        digest = hashlib.sha256(foreign).hexdigest()[:16]
        path.rename(path.with_name(f"{NAMES[2]}.{digest}.parquet"))
    assert_heals(copy[0], finished, [NAMES[2]])


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff" * 100])
def test_junk_under_a_fitting_name(content, copy, finished):
    digest = hashlib.sha256(content).hexdigest()[:16]
    (copy[1] / f"{NAMES[2]}.{digest}.parquet").write_bytes(content)
    file_of_it = next(p for p in copy[1].glob(f"{NAMES[2]}.*") if digest not in p.name)
    file_of_it.unlink()
    assert_heals(copy[0], finished, [NAMES[2]])


def test_damaged_beside_whole(copy, finished):
    """A whole file counts, whatever else has the chunk's name."""
    damaged = copy[1] / f"{NAMES[2]}.{'0' * 16}.parquet"
    damaged.write_bytes(b"PAR1")
    assert Store(copy[0], METRIC).missing() == []
    studies.run(METRIC, copy[0], Plays(), resume=False)
    assert not damaged.exists()
    assert contents(copy[0]) == contents(finished[0])


def test_half_written_files(copy, finished):
    """They never count; those of an hour ago are nobody's any more, younger ones may be."""
    inner = copy[1]
    whole = file_of(inner, NAMES[2])
    old, young = (inner / f".{whole.name}.{word}~" for word in ("old", "young"))
    old.write_bytes(whole.read_bytes()[:50])
    young.write_bytes(whole.read_bytes())
    os.utime(old, (time.time() - 3700,) * 2)
    whole.unlink()
    plays = Plays()
    outcome = studies.run(METRIC, copy[0], plays)
    assert plays.names == [NAMES[2]]
    assert_equal(outcome.columns, finished[1].columns)
    assert not old.exists()
    assert young.exists()
    young.unlink()
    assert contents(copy[0]) == contents(finished[0])


@pytest.mark.parametrize("damage", ["delete", "empty", "half", "noise", "lie"])
@pytest.mark.parametrize("name", ["manifest.json", "specification.json", "log.jsonl"])
def test_damaged_side_files(name, damage, copy, finished):
    """Nothing is read from them but the time that was spent, and that never fails."""
    path = copy[1] / name
    content = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(
            {
                "empty": b"",
                "half": content[: len(content) // 2],
                "noise": random.Random(1).randbytes(300) + b'\xff\n[1]\n{"play": []}\n',
                "lie": b'{"complete": true, "prepare": NaN, "compile": 1e999, "play": 1}\n',
            }[damage]
        )
    plays = Plays()
    outcome = studies.run(METRIC, copy[0], plays)
    assert plays.names == []
    assert_equal(outcome.columns, finished[1].columns)
    assert all(0 <= seconds < 1e6 for seconds in outcome.seconds.values())
    assert contents(copy[0]) == contents(finished[0])
    if name != "log.jsonl":
        assert outcome.seconds == finished[1].seconds
        assert_manifest_is_right(copy[1])


def test_torn_log_line_costs_only_itself(copy, finished):
    log = copy[1] / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:3], lines[3][:20] + b"\n", *lines[4:]]))
    seconds = studies.run(METRIC, copy[0], Plays()).seconds
    expected = finished[1].seconds["play"] - json.loads(lines[3])["play"]
    assert seconds["play"] == pytest.approx(expected)


def test_a_file_is_seen_whole_or_not_at_all(tmp_path, monkeypatch):
    """Its bytes are on the disk before it has its name, and the old ones stay until then."""
    path = tmp_path / "file"
    seen = []
    fsync = os.fsync

    def checked_fsync(handle):
        fsync(handle)
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            return
        seen.append(path.read_bytes() if path.exists() else None)
        assert os.fstat(handle).st_size == len(content)

    monkeypatch.setattr(atomic.os, "fsync", checked_fsync)
    for content in (b"first", b"the second"):
        atomic.write_whole(path, content)
        assert path.read_bytes() == content
    assert seen == [None, b"first"]

    monkeypatch.undo()

    def broken(*_):
        raise OSError("disk full")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(atomic.os, step, broken)
            with pytest.raises(OSError, match="disk full"):
                atomic.write_whole(path, b"third")
        assert path.read_bytes() == b"the second"
        assert os.listdir(tmp_path) == ["file"]


def test_files_may_vanish_while_they_are_looked_for(copy, monkeypatch):
    """Another process clears damaged files away between our looking and our reading."""
    opened = Store(copy[0], METRIC)
    chunk = next(METRIC.chunks())
    file_of(copy[1], chunk.name).write_bytes(b"damaged")
    read = Path.read_bytes

    def vanished(path):
        path.unlink(missing_ok=True)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", vanished)
    assert opened.find(chunk) is None


def test_chunks_that_other_code_played_are_refused(tmp_path, monkeypatch):
    """As nodes of a cluster might, that have another version installed."""

    def elsewhere(specification, wanted, is_stored, report):
        with monkeypatch.context() as patch:
            patch.setattr(specifications, "code_fingerprint", lambda *_: "0" * 16)
            done = engines.play(specification, wanted[0])
        yield done

    with pytest.raises(db.InvalidInput, match="gaussian-000000 was computed by other code"):
        studies.run(METRIC, tmp_path, elsewhere)
    assert list(tmp_path.rglob("*.parquet")) == []


@pytest.mark.parametrize("place", ["file", "below a file"])
def test_a_folder_that_cannot_be_made(place, tmp_path):
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" if place == "file" else tmp_path / "file" / "below"
    with pytest.raises(db.InvalidInput, match=r"^out: .*cannot be written to"):
        studies.run(METRIC, folder)


# Interrupts and errors.


@pytest.mark.parametrize("place", ["put", "progress"])
def test_an_interrupt_stops_the_threads(place, tmp_path, monkeypatch, computed):
    """Wherever it comes: nothing more is played, and what was finished is kept."""
    many = dataclasses.replace(METRIC, systems=100)
    put = Store.put

    def interrupted(self, *arguments, **more):
        put(self, *arguments, **more)
        if len(list(self.folder.glob("*.parquet"))) >= 3:
            raise KeyboardInterrupt

    def progress(label, share, before):
        if len(computed) >= 4:
            raise KeyboardInterrupt

    if place == "put":
        monkeypatch.setattr(Store, "put", interrupted)
        progress = None
    with pytest.raises(KeyboardInterrupt) as caught:  # holds the frames, as a traceback does
        studies.run(many, tmp_path, studies.local(2), progress=progress)
    begun = len(computed)
    assert not [t for t in threading.enumerate() if "ThreadPoolExecutor" in t.name]
    time.sleep(0.2)
    assert len(computed) == begun < 50, caught
    stored = len(list(tmp_path.rglob("*.parquet")))
    assert 1 <= stored <= begun
    assert len(Store(tmp_path, many).missing()) == 100 - stored


def test_an_interrupt_does_not_wait_for_long_chunks(tmp_path, monkeypatch):
    """What is in flight leaves at its next step."""

    def slow(specification, chunk, progress, *rest):
        for step in range(1, 10 if chunk.name == NAMES[0] else 3000):
            progress(step / 3000)
            time.sleep(0.01)
        return {"system": np.arange(2)}, Timing(0.0, 0.0, 0.0, "cpu")

    def interrupted(self, *arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(engines, "compute", slow)
    monkeypatch.setattr(Store, "put", interrupted)
    clock = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        studies.run(METRIC, tmp_path, studies.local(2))
    assert time.monotonic() - clock < 5


def test_an_error_in_a_chunk_is_the_runs_error(tmp_path, monkeypatch):
    def failing(specification, chunk, *rest):
        if chunk.name == NAMES[4]:
            raise db.InvalidInput("dtype", "is too narrow", "use float64")
        return {"system": np.arange(2)}, Timing(0.0, 0.0, 0.0, "cpu")

    monkeypatch.setattr(engines, "compute", failing)
    with pytest.raises(db.InvalidInput, match="dtype: is too narrow"):
        studies.run(METRIC, tmp_path, studies.local(2))


# Progress.


def moves(label, seen):
    return [share for name, share, _ in seen if name == label]


@pytest.mark.parametrize("engine", [studies.local(1), studies.local(3), Plays(shuffle=3)])
def test_progress_rises_to_one(engine, tmp_path):
    seen = []
    studies.run(METRIC, tmp_path, engine, progress=lambda *news: seen.append(news))
    for cell in METRIC.cells:
        shares = moves(cell.label, seen)
        assert shares[0] == 0
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert shares.count(1) == 1
    assert {before for _, _, before in seen} == {0}


def test_progress_begins_with_what_was_stored(copy):
    missing = [NAMES[1], NAMES[3]]  # two systems, and the last one of seven
    for name in missing:
        file_of(copy[1], name).unlink()
    seen = []
    studies.run(METRIC, copy[0], studies.local(2), progress=lambda *news: seen.append(news))
    shares = moves("gaussian", seen)
    assert shares[0] == pytest.approx(4 / 7)
    assert shares == sorted(shares)
    assert len(shares) >= 3
    assert shares[-1] == 1
    assert moves("bernoulli.arms-0.1", seen) == [1]
    assert {before for name, _, before in seen if name == "gaussian"} == {shares[0]}


@pytest.mark.parametrize("sizes", [(7, 2), (10, 3), (49, 1), (1, 5)])
def test_progress_ends_at_exactly_one(sizes, tmp_path, monkeypatch):
    """Whatever sevenths and tenths add up to in floating point."""

    def quick(specification, chunk, progress, *rest):
        for share in (0.1, 1 / 3, 1.0):
            progress(share)
        return {"system": np.arange(chunk.systems)}, Timing(0.0, 0.0, 0.0, "cpu")

    monkeypatch.setattr(engines, "compute", quick)
    seen = []
    cut = dataclasses.replace(METRIC, systems=sizes[0], chunk=sizes[1])
    studies.run(cut, tmp_path, Plays(shuffle=1), progress=lambda *news: seen.append(news))
    for cell in METRIC.cells:
        shares = moves(cell.label, seen)
        assert shares == sorted(shares)
        assert shares[-1] == 1


def test_chunks_that_others_store_meanwhile(finished, tmp_path, computed):
    """They are not played again, and progress counts them."""
    seen = []

    def progress(*news):
        seen.append(news)
        if len(seen) == len(METRIC.cells):  # the run knows what is missing, and plays nothing yet
            shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)

    outcome = studies.run(METRIC, tmp_path, studies.local(2), progress=progress)
    assert computed == []
    assert_equal(outcome.columns, finished[1].columns)
    for cell in METRIC.cells:
        shares = moves(cell.label, seen)
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0, 1)
