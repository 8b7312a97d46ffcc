"""Whatever happens to the store: the server says so, and loses nothing that it acknowledged."""

import contextlib
import json
import logging
import os
import random
import resource
import shutil
import subprocess
import time

import pytest

from driftbandit.errors import InvalidInput
from driftbandit.service import store as stores
from driftbandit.service import writer
from driftbandit.service.experiment import Experiment
from driftbandit.service.problems import Problem
from driftbandit.service.sqlite_file import SQLiteFile
from driftbandit.service.store import Store, StoreError, using
from driftbandit.service.verifying import verify
from service.load import settings
from service.postgres import postgres  # noqa: F401
from service.servers import NotReady, Server, command, environment
from service.stores import call, desk, rows, sqlite_url

LINUX = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit")


def problems(url):
    """What `driftbandit verify` finds in each experiment."""
    with using(url, make=False) as store:
        return {one.experiment: one.problem for one in verify(store)}


class Player:
    """Plays an experiment of a server, and notes what was acknowledged."""

    def __init__(self, server, name="one"):
        self.server, self.url = server, f"{server.url}/v1/experiments/{name}"
        self.decisions, self.rewards, self.number = {}, {}, 0
        assert call(f"{server.url}/v1/experiments", settings(name)).status == 201

    def round(self):
        """One decision and its reward; the answer to the one that failed, or to the last."""
        answer = call(f"{self.url}/decisions", {})
        if answer.status == 201:
            made = answer.document
            self.decisions[made["decision"]] = made["arm"]
            self.number += 1
            told = {"decision": made["decision"], "reward": self.number / 7}
            answer = call(f"{self.url}/rewards", told)
            if answer.status == 200:
                self.rewards[made["decision"]] = told["reward"]
        return answer

    def play(self, rounds):
        for _ in range(rounds):
            assert self.round().status == 200

    def until_it_fails(self, most=2000):
        for _ in range(most):
            answer = self.round()
            if answer.status != 200:
                return answer
        raise AssertionError(f"{most} rounds, and nothing failed")

    def check(self):
        """Everything that was acknowledged is there, and nothing else."""
        events = call(f"{self.url}/events?limit=10000").document["events"]
        assert [event["number"] for event in events] == list(range(1, len(events) + 1))
        found = {e["decision"]: e["arm"] for e in events if e["kind"] == "decided"}
        assert found == self.decisions
        found = {e["decision"]: e["reward"] for e in events if e["kind"] == "rewarded"}
        assert found == self.rewards

    def ends_well(self):
        """It works again, everything is there, and the store is what it should be."""
        self.play(3)
        self.check()
        assert call(f"{self.server.url}/readyz").status == 200
        assert self.server.stop() == 0
        assert problems(self.server.store) == {"one": None}
        assert "Traceback" not in self.server.log.read_text()


def is_unavailable(answer, *words):
    """Whether an answer says, without a traceback, that the store cannot be used."""
    assert answer.status == 503, answer
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    detail = answer.document["detail"]
    assert detail.startswith("the store cannot be used now (")
    assert all(word in detail for word in words), detail
    assert "Traceback" not in json.dumps(answer.document)
    return True


def refused_start(server):
    """The one line with which a server refuses to start."""
    with pytest.raises(NotReady, match="ended with exit code 2"):
        server.start()
    (line,) = server.log.read_text().splitlines()
    assert line.startswith("error store: ")
    return line


# The disk is full.


@LINUX
def test_no_more_room_in_the_middle_of_the_load(tmp_path):
    """The largest size of the server's files is made smaller, and larger again."""
    with Server(sqlite_url(tmp_path), tmp_path) as server:
        player = Player(server)
        player.play(20)
        size = (tmp_path / "decisions.db-wal").stat().st_size
        before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size + 100_000, before[1]))
        assert is_unavailable(player.until_it_fails(), "; try again")
        assert call(f"{player.url}/state").status == 200
        for _ in range(3):
            assert is_unavailable(player.round())
        player.check()
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)
        player.ends_well()


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of its own."""
    folder.mkdir()
    asked = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(asked, capture_output=True).returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk(tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        filler = disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            for _ in range(300):
                file.write(bytes(4096))
        server = Server(sqlite_url(disk), tmp_path)
        assert "cannot be opened (database or disk is full)" in refused_start(server)
        server.log.unlink()
        filler.write_bytes(b"")
        with server:
            player = Player(server)
            player.play(5)
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                for _ in range(300):
                    file.write(bytes(4096))
            assert is_unavailable(player.until_it_fails(), "full")
            assert is_unavailable(call(f"{server.url}/readyz"), "full")
            player.check()
            filler.unlink()
            player.ends_well()


def test_no_room_to_make_a_store(tmp_path):
    url = sqlite_url(tmp_path)
    limited = ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh"]  # 8 KiB
    asked = command("keys", "create", "--scope", "read", "--store", url)
    done = subprocess.run([*limited, *asked], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error store: ")
    with desk(url) as service:
        service.create()
        assert service.decide()["decision"] == 0


def test_the_database_has_its_largest_size(tmp_path):
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        with service.store.write() as transaction:
            connection = transaction._connection
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(Problem, match="database or disk is full"):
            service.play(5000)
        made = sum(event["kind"] == "decided" for event in service.events())
        with service.store.write() as transaction:
            transaction._connection.exec_driver_sql(f"PRAGMA max_page_count = {10**6}")
        assert service.decide()["decision"] == made > 0
        assert [one.problem for one in verify(service.store)] == [None]


# Somebody else has it.


def test_the_database_is_locked(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(stores, "BUSY", 100)
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        service.play(3)
        with rows(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Problem, match="database is locked") as caught:
                service.decide()
            assert (caught.value.status, caught.value.retry_after) == (503, 1)
            assert len(service.events()) == 7  # who only reads does not wait
            service.snapshot()
            other.execute("ROLLBACK")
        assert service.decide()["decision"] == 3
        with rows(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            with caplog.at_level(logging.WARNING):
                service.writer.close()
            assert "experiment one: no snapshot (database is locked)" in caplog.text
    with desk(sqlite_url(tmp_path)) as service:
        assert service.decide()["decision"] == 4
        assert [one.problem for one in verify(service.store)] == [None]


def test_a_command_waits_for_a_lock_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "BUSY", 50)
    with using(sqlite_url(tmp_path)):
        pass
    with rows(tmp_path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InvalidInput, match=r"decisions.db cannot be opened .database is lock"):
            Store(sqlite_url(tmp_path))


# The file is damaged.


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The content of a store with 121 events, closed in good order; its events; its state."""
    folder = tmp_path_factory.mktemp("template")
    with desk(sqlite_url(folder)) as service:
        service.create()
        service.play(60)
        events, state = service.events(), service.snapshot()
    return (folder / "decisions.db").read_bytes(), events, state


@pytest.fixture
def folder(template, tmp_path):
    (tmp_path / "decisions.db").write_bytes(template[0])
    return tmp_path


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_file_that_was_cut_off_while_it_was_closed(folder, template, share):
    path = folder / "decisions.db"
    os.truncate(path, int(len(template[0]) * share))
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"is damaged \(.*\); restore it from a backup"):
        Store(sqlite_url(folder))
    assert path.read_bytes() == before


def test_a_server_refuses_a_damaged_file_in_one_line(folder, template):
    path = folder / "decisions.db"
    os.truncate(path, len(template[0]) // 2)
    before = path.read_bytes()
    server = Server(sqlite_url(folder), folder)
    assert refused_start(server).endswith("restore it from a backup; it was not changed")
    assert path.read_bytes() == before
    path.write_bytes(template[0])
    assert problems(sqlite_url(folder)) == {"one": None}


def test_an_empty_file_beside_its_log_is_refused(folder):
    """SQLite would delete the log, and with it the last trace of the events."""
    os.truncate(folder / "decisions.db", 0)
    (folder / "decisions.db-wal").write_bytes(b"events")
    with pytest.raises(InvalidInput, match=r"it is empty, and decisions.db-wal holds changes"):
        Store(sqlite_url(folder))
    assert (folder / "decisions.db-wal").read_bytes() == b"events"


def outcome(folder, events):
    """What becomes of a damaged store: refused, noticed, or not hurt; never silently wrong."""
    try:
        with desk(sqlite_url(folder)) as service:
            verdicts = verify(service.store)
            if [one.experiment for one in verdicts] != ["one"]:
                return "lost"  # found below: its row is gone, or has another name
            if verdicts[0].problem is not None:
                with contextlib.suppress(Problem):
                    service.decide()
                return "noticed"
            assert service.events() == events
            assert service.decide()["decision"] == 60
            return "not hurt"
    except InvalidInput as error:
        return "refused" if str(error).startswith("store: ") else str(error)
    except StoreError:
        return "noticed"


def test_every_page_overwritten(folder, template):
    path, (content, events, _) = folder / "decisions.db", template
    size = int.from_bytes(content[16:18], "big")
    found = []
    for place in range(0, len(content), size):
        path.write_bytes(content[:place] + b"\xa5" * size + content[place + size :])
        before = path.read_bytes()
        found.append(outcome(folder, events))
        if found[-1] == "refused":
            assert path.read_bytes() == before
    assert len(found) > 10
    assert set(found) == {"refused"}


@pytest.mark.parametrize("changes", [25, pytest.param(80, marks=pytest.mark.nightly)])
def test_bytes_here_and_there(folder, template, changes, caplog):
    """SQLite has no checksums of its own; events and snapshots have."""
    path, (content, events, _) = folder / "decisions.db", template
    rng, found = random.Random(1), []
    for _ in range(changes):
        changed = bytearray(content)
        place = rng.randrange(len(content))
        changed[place] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        found.append(outcome(folder, events))
    counts = {kind: found.count(kind) for kind in sorted(set(found))}
    assert set(counts) <= {"refused", "noticed", "not hurt"}, counts
    assert counts["noticed"] > changes / 8


def test_the_log_is_deleted_after_a_kill(tmp_path):
    """It held the newest events. What is left is a part of the truth, and that is said."""
    folder = tmp_path / "killed"
    folder.mkdir()
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        service.play(20)
        with rows(tmp_path) as connection:  # as SQLite does from time to time
            connection.execute("PRAGMA wal_checkpoint")
        service.play(20)
        events = service.events()
        for ending in ("", "-wal", "-shm"):
            shutil.copy(tmp_path / f"decisions.db{ending}", folder)
    (folder / "decisions.db-wal").unlink()
    before = (folder / "decisions.db").read_bytes()
    said = "was not closed, and decisions.db-wal with its newest events is missing; put that file"
    with pytest.raises(InvalidInput, match=said):
        Store(sqlite_url(folder))
    assert (folder / "decisions.db").read_bytes() == before
    (folder / "decisions.db-shm").unlink()
    with desk(sqlite_url(folder)) as service:
        assert service.events() == events[:41]
        assert service.decide()["decision"] == 20
    assert problems(sqlite_url(folder)) == {"one": None}


@pytest.mark.parametrize("replaced", [False, True])
def test_the_log_is_deleted_while_the_server_runs(tmp_path, replaced):
    """Nothing is acknowledged any more, and what was is in the file after the server has ended."""
    log = tmp_path / "decisions.db-wal"
    with Server(sqlite_url(tmp_path), tmp_path) as server:
        player = Player(server)
        player.play(10)
        assert log.stat().st_size > 0
        log.unlink()
        if replaced:
            log.write_bytes(b"")
        said = "decisions.db-wal was deleted or replaced; stop the server"
        assert is_unavailable(player.round(), said)
        assert is_unavailable(call(f"{player.url}/events"), said)
        assert is_unavailable(call(f"{server.url}/readyz"), said)
        assert server.stop() == 0
        server.start()
        player.ends_well()


def test_a_file_that_is_cut_off_while_the_server_runs(tmp_path):
    path = tmp_path / "decisions.db"
    with Server(sqlite_url(tmp_path), tmp_path) as server:
        player = Player(server)
        player.play(10)
        with rows(tmp_path) as connection:
            connection.execute("PRAGMA wal_checkpoint")
        player.play(2)
        content = path.read_bytes()
        os.truncate(path, 8192)
        said = "decisions.db became smaller; start the server again"
        assert is_unavailable(player.round(), said)
        assert is_unavailable(call(f"{player.url}/events"), said)
        assert is_unavailable(call(f"{player.url}/state"), said)
        assert is_unavailable(call(f"{server.url}/readyz"), said)
        assert call(f"{server.url}/healthz").status == 200
        with path.open("r+b") as file:  # the same file gets its content back
            file.write(content)
        player.ends_well()


def test_a_file_that_another_thread_saw_grow(tmp_path):
    path = tmp_path / "decisions.db"
    path.write_bytes(b"old")
    file = SQLiteFile(str(path))
    file.remember()

    class Slow:
        name = path.name

        def stat(self):
            before = path.stat()
            path.write_bytes(b"grown")
            file.path = path
            file.check_identity()  # the other thread
            return before

    file.path = Slow()
    file.check_identity()


def test_pages_that_are_overwritten_while_the_server_runs(tmp_path):
    path = tmp_path / "decisions.db"
    with Server(sqlite_url(tmp_path), tmp_path) as server:
        player = Player(server)
        player.play(30)
        with rows(tmp_path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        content = path.read_bytes()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (len(content) - 4096))
        answers = [call(f"{server.url}/v1/experiments/one/events") for _ in range(3)]
        answers += [call(f"{server.url}/v1/experiments"), call(f"{player.url}/decisions", {})]
        for answer in answers:
            assert answer.status in (200, 201, 503)
            assert "Traceback" not in json.dumps(answer.document)
        assert 503 in {answer.status for answer in answers}
        server.kill()
    with pytest.raises(InvalidInput, match=r"decisions.db is damaged \("):
        Store(sqlite_url(tmp_path))
    for ending in ("-wal", "-shm"):
        (tmp_path / f"decisions.db{ending}").unlink()
    path.write_bytes(content)
    assert problems(sqlite_url(tmp_path)) == {"one": None}


# Rows are damaged.


@pytest.mark.parametrize(
    "change",
    [
        "agent = '{'",
        "agent = replace(agent, '\"mean\": [', '\"mean\": [1')",
        "agent = substr(agent, 1, 500)",
        "rest = 'null'",
        "rest = replace(rest, '\"rewards\": 60', '\"rewards\": 61')",
        "rest = replace(rest, '\"rest\"', '\"lest\"')",
    ],
)
def test_a_damaged_snapshot_is_left_out(folder, template, change, caplog):
    with rows(folder) as connection:
        before = connection.execute("SELECT agent, rest FROM snapshots").fetchall()
        connection.execute(f"UPDATE snapshots SET {change}")
        assert connection.execute("SELECT agent, rest FROM snapshots").fetchall() != before
    with caplog.at_level(logging.WARNING), desk(sqlite_url(folder)) as service:
        assert service.snapshot() == template[2]
        assert service.decide()["decision"] == 60
    assert "experiment one: snapshot 121 is left out (" in caplog.text


def test_the_snapshot_before_the_damaged_one_is_used(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 10)
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        service.play(20)
        state = service.snapshot()
    with rows(tmp_path) as connection:
        connection.execute("UPDATE snapshots SET agent = '' WHERE number = 41")
    applied, apply = [], Experiment.apply
    monkeypatch.setattr(Experiment, "apply", lambda one, e: (applied.append(e), apply(one, e))[1])
    with desk(sqlite_url(tmp_path)) as service:
        assert service.snapshot() == state
        assert [event["number"] for event in applied] == [41]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """A running server with experiments whose events were changed, and one that is whole."""
    folder = tmp_path_factory.mktemp("damaged")
    changes = {
        "deleted": "DELETE FROM events WHERE experiment = 'deleted' AND number = 4",
        "changed": "UPDATE events SET data = replace(data, '\"reward\":', '\"reward\":1') "
        "WHERE experiment = 'changed' AND number = 5",
        "headless": "DELETE FROM events WHERE experiment = 'headless' AND number = 1",
        "shorter": "DELETE FROM events WHERE experiment = 'shorter' AND number = 7",
        "retold": "UPDATE experiments SET summary = '{' WHERE id = 'retold'",
    }
    with desk(sqlite_url(folder)) as service:
        for name in (*changes, "whole"):
            service.create(name)
            service.play(3, name)
    with rows(folder) as connection:
        connection.execute("DELETE FROM snapshots")
        for change in changes.values():
            assert connection.execute(change).rowcount == 1
    with Server(sqlite_url(folder), folder) as server:
        yield server


WORDS = {
    "deleted": "event 4 of experiment deleted is missing",
    "changed": "event 5 of experiment changed is not what was stored",
    "headless": "event 1 of experiment headless is missing",
    "shorter": "event 6 is the last of experiment shorter, which says that it has 7",
}


@pytest.mark.parametrize("name", WORDS)
def test_a_damaged_experiment_is_refused(damaged, name):
    url = f"{damaged.url}/v1/experiments/{name}"
    remedy = "restore the store from a backup; driftbandit verify says more"
    answers = [call(f"{url}/decisions", {}), call(f"{url}/rewards", {"decision": 0, "reward": 1})]
    answers += [call(f"{url}{path}") for path in ("", "/state", "/live")]
    answers += [call(f"{url}/pause", {})]
    for answer in answers:
        assert is_unavailable(answer, WORDS[name], remedy)
    if name != "shorter":
        assert is_unavailable(call(f"{url}/events"), WORDS[name], remedy)
        assert is_unavailable(call(f"{url}/log.parquet"), WORDS[name], remedy)
    assert f"event {WORDS[name].split()[1]}" in problems(damaged.store)[name].replace(" is", "")


def test_other_experiments_go_on(damaged):
    for name in ("whole", "retold"):  # a summary is only for lists
        assert call(f"{damaged.url}/v1/experiments/{name}/decisions", {}).status == 201
    assert call(f"{damaged.url}/readyz").status == 200
    assert call(f"{damaged.url}/v1/experiments").status == 200
    said = damaged.log.read_text()
    assert "Traceback" not in said
    assert all(json.loads(line)["level"] in ("info", "error") for line in said.splitlines())


# The folder is gone.


def test_the_folder_is_moved_away(tmp_path):
    folder, other = tmp_path / "store", tmp_path / "elsewhere"
    folder.mkdir()
    with Server(sqlite_url(folder), tmp_path) as server:
        player = Player(server)
        player.play(3)
        folder.rename(other)
        assert is_unavailable(player.round(), "decisions.db: No such file or directory")
        assert is_unavailable(call(f"{server.url}/readyz"))
        folder.mkdir()
        assert is_unavailable(player.round(), "decisions.db: No such file or directory")
        assert list(folder.iterdir()) == []  # nothing is made there
        shutil.copy(other / "decisions.db", folder)
        assert is_unavailable(player.round(), "decisions.db was replaced; start the server again")
        shutil.rmtree(folder)
        other.rename(folder)
        player.ends_well()


def test_the_folder_is_deleted(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    with Server(sqlite_url(folder), tmp_path) as server:
        player = Player(server)
        player.play(3)
        shutil.rmtree(folder)
        assert is_unavailable(player.round())
        assert server.stop() == 0
        assert not folder.exists()


# PostgreSQL is away.


def test_postgresql_is_stopped_at_the_start(tmp_path, postgres):  # noqa: F811
    url = postgres.database()
    postgres.stop()
    try:
        line = refused_start(Server(url.replace("postgres@", "postgres:SECRET@"), tmp_path))
        assert "postgresql+psycopg://postgres:***@127.0.0.1" in line
        assert "cannot be opened (" in line
        assert "SECRET" not in line
    finally:
        postgres.start()


def test_postgresql_is_stopped_for_a_while(tmp_path, postgres):  # noqa: F811
    with Server(postgres.database(), tmp_path) as server:
        player = Player(server)
        player.play(3)
        postgres.stop()
        try:
            assert is_unavailable(player.round(), "; try again")
            assert is_unavailable(call(f"{player.url}/state"))
            assert is_unavailable(call(f"{player.url}/events"))
            assert is_unavailable(call(f"{server.url}/readyz"))
            assert call(f"{server.url}/healthz").status == 200
        finally:
            postgres.start()
        player.ends_well()
        for line in server.log.read_text().splitlines():
            json.loads(line)


def test_postgresql_does_not_answer(tmp_path, postgres):  # noqa: F811
    """Its processes are stopped: connections stay, and nothing comes."""
    with Server(postgres.database(), tmp_path) as server:
        player = Player(server)
        player.play(3)
        postgres.pause()
        try:
            begun = time.monotonic()
            assert is_unavailable(call(f"{server.url}/readyz"), "has not answered for 3 s")
            assert time.monotonic() - begun < 20
            assert call(f"{server.url}/healthz").status == 200
        finally:
            postgres.go_on()
        player.ends_well()


def test_postgresql_has_an_experiment_locked(postgres, monkeypatch):  # noqa: F811
    monkeypatch.setattr(stores, "BUSY", 100)
    with desk(postgres.database()) as service:
        service.create()
        service.create("two")
        with service.store.write() as other:
            other.version("one", lock=True)
            begin = time.monotonic()
            with pytest.raises(Problem, match="lock timeout"):
                service.decide()
            assert time.monotonic() - begin < 3
            assert service.decide("two")["decision"] == 0
        assert service.decide()["decision"] == 0
