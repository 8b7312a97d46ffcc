"""Studies that are killed, interrupted, or run twice at once, as processes."""

import functools
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import killed_study
from driftbandit import paper
from driftbandit.studies import Store

SCRIPT = Path(killed_study.__file__)
# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start too.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from driftbandit.cli import main
main()
"""


def start(out, measure, *meeting):
    """Start the script, the leader of a process group of its own."""
    command = [sys.executable, str(SCRIPT), str(out), measure, *map(str, meeting)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)


def finish(process):
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert stderr == ""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Where the script ran alone to its end, by measure."""

    @functools.cache
    def out(measure):
        folder = tmp_path_factory.mktemp(f"undisturbed-{measure}")
        finish(start(folder, measure))
        return folder

    return out


def folder_of(out, measure):
    return out / "studies" / killed_study.STUDIES[measure].identity


def names(folder):
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def stored(folder):
    return sum(name.endswith(".parquet") for name in names(folder))


def half_written(folder):
    return sum(name.endswith("~") for name in names(folder))


def contents(folder, temporary=False):
    """Files by name; the log knows the time."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name != "log.jsonl" and (temporary or not path.name.endswith("~"))
    }


def assert_chunks_are_whole(folder):
    """Whenever it was killed: what has a chunk's name has all of its bytes."""
    for path in folder.glob("*.parquet"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert path.name.split(".")[-2] == digest[:16]


def wait_for(condition, process, seconds=120.0):
    """Wait until it holds or the process has ended."""
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.0005)


def kill(process, folder, rng, moment):
    """Kill at a random moment of a kind; whether it was still at work."""
    before = stored(folder)
    left = half_written(folder)
    if moment == "anywhen":
        time.sleep(rng.uniform(0, 1.0))
    else:
        more = before + rng.randint(1, 9)
        wait_for(lambda: stored(folder) >= more, process)
        if moment == "playing":
            time.sleep(rng.uniform(0, 0.02))
        else:
            wait_for(lambda: half_written(folder) > left, process)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    _, stderr = process.communicate()
    assert stderr == ""
    return running and process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("measure", "kills"),
    [
        ("metric", ["anywhen", "playing", "writing"]),
        pytest.param(
            "metric", ["anywhen"] * 4 + ["playing", "writing"] * 7, marks=pytest.mark.nightly
        ),
        pytest.param("regret", ["playing"] * 2, marks=pytest.mark.nightly),
    ],
    ids=["some", "many", "regret"],
)
def test_killed_at_random_moments(measure, kills, undisturbed, tmp_path):
    """Resumed after each kill, it ends with the bytes of an undisturbed run."""
    rng = random.Random(7)
    moments = rng.sample(kills, len(kills))
    interrupted, torn, early = 0, 0, []
    while moments:
        out = tmp_path / f"killed {len(early)}"
        folder = folder_of(out, measure)
        left = half_written(folder)
        if kill(start(out, measure), folder, rng, moments[-1]):
            moments.pop()
            assert not (out / "summary.json").exists()
            assert_chunks_are_whole(folder)
            interrupted += 1
            torn += half_written(folder) > left
        else:  # it was done before: that kill is still to come, in another folder
            early.append(out)
            assert len(early) < 5
    finish(start(out, measure))
    total = len(list(killed_study.STUDIES[measure].chunks()))
    expected = folder_of(undisturbed(measure), measure)
    summary = (undisturbed(measure) / "summary.json").read_bytes()
    assert stored(expected) == total
    for done in {*early, out}:
        assert contents(folder_of(done, measure)) == contents(expected)
        assert (done / "summary.json").read_bytes() == summary
    assert interrupted == len(kills)
    if measure == "metric":
        assert torn >= (3 if len(kills) > 9 else 1)


def test_two_at_once(undisturbed, tmp_path):
    """On one folder, which holds damaged files that both want to clear away."""
    alone, shared = undisturbed("metric"), tmp_path / "shared"
    specification = killed_study.METRIC
    folder = folder_of(shared, "metric")
    folder.mkdir(parents=True)
    for chunk in specification.chunks():
        for number in range(3):
            (folder / f"{chunk.name}.{number:016x}.parquet").write_bytes(b"damaged")
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    both = [start(shared, "metric", meeting) for _ in range(2)]
    for process in both:
        finish(process)
    # No leftovers, and the manifest, whose sha256 were right alone, is the same.
    assert contents(folder, temporary=True) == contents(folder_of(alone, "metric"), temporary=True)
    assert (shared / "summary.json").read_bytes() == (alone / "summary.json").read_bytes()
    log = (folder / "log.jsonl").read_text().splitlines()
    played = [json.loads(line)["chunk"] for line in log]
    assert set(played) == {chunk.name for chunk in specification.chunks()}
    assert len(played) > len(set(played))  # they did meet
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["complete"] is True
    for listed in manifest["chunks"].values():
        content = (folder / listed["file"]).read_bytes()
        assert listed["sha256"] == hashlib.sha256(content).hexdigest()


def reproduce(out, *arguments):
    command = [sys.executable, "-c", PROGRAM, "reproduce", *arguments, "--out", str(out)]
    return subprocess.Popen(
        [*command, "--device", "cpu"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def interrupt(process, out, chunks):
    """Ctrl-C once so many chunks are stored."""
    wait_for(lambda: len(list(out.glob("studies/*/*.parquet"))) >= chunks, process)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert stdout == ""
    said = stderr.splitlines()[-1]  # after the lines of progress
    assert said.startswith(f"Interrupted. Finished parts are kept in {out}")
    assert said.endswith("Run the same command again to resume.")


def test_ctrl_c_and_the_same_command_again(tmp_path):
    arguments = ["figure2", "--families", "gaussian", "--systems", "100", "--workers", "1"]
    out, undisturbed = tmp_path / "out", tmp_path / "undisturbed"
    # While the next chunk is under way, of which it does not wait for the end.
    interrupt(reproduce(out, *arguments), out, 1)
    target = paper.TARGETS["figure2"]
    options = paper.Options(target.full._replace(systems=100), families=("gaussian",))
    kept = Store(out / "studies", target.specification(options))
    assert [chunk.first for chunk in kept.missing()] == [50]
    [first] = kept.folder.glob("*.parquet")
    played = first.stat().st_mtime_ns
    again = reproduce(out, *arguments)
    _, stderr = again.communicate(timeout=120)
    assert again.returncode == 0, stderr
    assert first.stat().st_mtime_ns == played  # it was not played again
    paper.reproduce(target, options, undisturbed)
    assert (out / "figure2.json").read_bytes() == (undisturbed / "figure2.json").read_bytes()
    assert contents(kept.folder) == contents(undisturbed / "studies" / kept.folder.name)


@pytest.mark.nightly
def test_ctrl_c_while_policies_play(tmp_path):
    arguments = ["figure3", "--families", "gaussian", "--systems", "200", "--runs", "2"]
    process = reproduce(tmp_path, *arguments, "--rounds", "300")
    interrupt(process, tmp_path, 2)  # while a chunk is being stored
    options = paper.Options(paper.Size(200, 2, 300), families=("gaussian",))
    kept = Store(tmp_path / "studies", paper.TARGETS["figure3"].specification(options))
    assert_chunks_are_whole(kept.folder)
    assert half_written(kept.folder) == 0
    assert 1 <= len(kept.missing()) <= len(list(kept.specification.chunks())) - 2
