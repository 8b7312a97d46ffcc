"""Running a study: what numbers do not depend on, resuming, interrupts, progress."""

import dataclasses
import shutil
import threading
import time

import numpy as np
import pytest

import driftbandit as db
from driftbandit import studies
from driftbandit.result import Timing
from driftbandit.simulation import Options
from driftbandit.studies import Store, engines
from driftbandit.studies import specification as specifications
from stored_studies import (
    METRIC,
    NAMES,
    REGRET,
    Interrupted,
    Plays,
    assert_equal,
    assert_heals,
    contents,
    file_of,
)


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
    assert len(computed) == begun < 100, caught
    stored = len(list(tmp_path.rglob("*.parquet")))
    assert 1 <= stored <= begun
    assert len(Store(tmp_path, many).missing()) == 100 - stored


def test_an_interrupt_does_not_wait_for_long_chunks(tmp_path, monkeypatch):
    """What is in flight leaves at its next step."""
    finished = []

    def slow(specification, chunk, progress, *rest):
        for step in range(1, 10 if chunk.name == NAMES[0] else 3000):
            progress(step / 3000)
            time.sleep(0.01)
        finished.append(chunk.name)
        return {"system": np.arange(2)}, Timing(0.0, 0.0, 0.0, "cpu")

    def interrupted(self, *arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(engines, "compute", slow)
    monkeypatch.setattr(Store, "put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        studies.run(METRIC, tmp_path, studies.local(2))
    assert finished == NAMES[:1]


def test_an_error_in_a_chunk_is_the_runs_error(tmp_path, monkeypatch):
    def failing(specification, chunk, *rest):
        if chunk.name == NAMES[4]:
            raise db.InvalidInput("dtype", "is too narrow", "use float64")
        return {"system": np.arange(2)}, Timing(0.0, 0.0, 0.0, "cpu")

    monkeypatch.setattr(engines, "compute", failing)
    with pytest.raises(db.InvalidInput, match="dtype: is too narrow"):
        studies.run(METRIC, tmp_path, studies.local(2))


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
