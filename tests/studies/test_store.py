"""What is stored of a study, and what damage does to it."""

import contextlib
import dataclasses
import hashlib
import json
import os
import random
import time
from pathlib import Path

import pytest

import driftbandit as db
from driftbandit import studies
from driftbandit.studies import Store, store
from stored_studies import (
    METRIC,
    NAMES,
    Interrupted,
    Plays,
    assert_equal,
    assert_heals,
    assert_manifest_is_right,
    contents,
    file_of,
)


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


@pytest.mark.parametrize("place", ["file", "below a file"])
def test_a_folder_that_cannot_be_made(place, tmp_path):
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" if place == "file" else tmp_path / "file" / "below"
    with pytest.raises(db.InvalidInput, match=r"^out: .*cannot be written to"):
        studies.run(METRIC, folder)
