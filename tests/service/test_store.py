"""Stores: made, opened again, shared; what they keep and what they drop; what is refused."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from driftbandit.errors import InvalidInput
from driftbandit.service import sqlite_file, transaction
from driftbandit.service.store import Damaged, Store, checked_url, using
from driftbandit.service.tables import metadata
from driftbandit.service.transaction import Answer, Snapshot
from driftbandit.service.verifying import verify
from service.postgres import postgres  # noqa: F401
from service.stores import desk, rows, sqlite_url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """The URL of a store that is not there yet."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    return request.getfixturevalue("postgres").database()


@pytest.fixture
def store(url):
    with using(url) as opened:
        yield opened


@contextlib.contextmanager
def connected(url):
    engine = sa.create_engine(checked_url(url))
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def refusal(url, **options):
    """The one line with which a store is refused."""
    with pytest.raises(InvalidInput) as caught:
        Store(url, **options)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("store: ")
    return str(caught.value)


def test_the_migrations_make_the_tables(url):
    with using(url), connected(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_what_is_stored_is_there_when_it_is_opened_again(url):
    for number in range(3):  # the first one makes it
        with desk(url) as service:
            if number == 0:
                service.create()
            service.decide()
            assert [event["number"] for event in service.events()] == list(range(1, number + 3))


def test_sqlite_waits_for_the_disk_and_writers_are_alone(tmp_path):
    with using(sqlite_url(tmp_path)) as store, store.write() as one:
        asked = {name: one._connection.scalar(sa.text(f"PRAGMA {name}")) for name in PRAGMAS}
        assert asked == PRAGMAS
        with (
            contextlib.closing(sqlite3.connect(tmp_path / "decisions.db", timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("INSERT INTO experiments VALUES ('a', 0, 0, '')")


PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 5000}


def test_postgresql_waits_for_the_disk_and_a_reader_sees_one_moment(postgres):  # noqa: F811
    with using(postgres.database()) as store, store.read() as reader:
        show = lambda name: reader._connection.scalar(sa.text(f"SHOW {name}"))  # noqa: E731
        assert show("synchronous_commit") == "on"
        assert show("transaction_isolation") == "repeatable read"
        assert reader.version("one") is None
        with store.write() as writer:
            assert writer._connection.scalar(sa.text("SHOW transaction_isolation")) == (
                "read committed"  # after its lock, a writer must see what others committed
            )
            writer.add_experiment("one", 1.0)
        assert reader.version("one") is None


def test_an_error_undoes_a_transaction(store):
    def fails():
        with store.write() as one:
            one.add_experiment("one", 1.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with store.read() as one:
        assert one.experiments() == one.ids() == []


def test_two_stores_are_opened_at_once(url):
    opened, barrier = [], threading.Barrier(6)

    def open_one():
        barrier.wait()
        with contextlib.suppress(InvalidInput), using(url) as one, one.read() as read:
            opened.append(read.ids())

    threads = [threading.Thread(target=open_one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [[]] * 6


def test_the_log_is_switched_on_when_others_are_done(tmp_path):
    """SQLite says at once that the file is locked, whatever its timeout is."""
    path = tmp_path / "a.db"
    with (
        contextlib.closing(sqlite3.connect(path, check_same_thread=False)) as one,
        contextlib.closing(sqlite3.connect(path)) as two,
    ):
        one.execute("CREATE TABLE a (b)")
        one.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sqlite_file.use_write_ahead_log(two, 0.0)
        timer = threading.Timer(0.05, one.rollback)
        timer.start()
        sqlite_file.use_write_ahead_log(two, 10.0)
        timer.join()
        assert two.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_migration_that_fails_leaves_nothing(url, monkeypatch):
    from alembic import op

    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(op, "create_index", fails)  # after four tables
    with pytest.raises(ZeroDivisionError):
        Store(url)
    with connected(url) as connection:
        assert sa.inspect(connection).get_table_names() == []
    monkeypatch.undo()
    Store(url).close()


# What is refused.


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite://", "is in memory, which is not kept; give sqlite:///FILE"),
        ("sqlite:///:memory:", "is in memory, which is not kept; give sqlite:///FILE"),
        ("sqlite:///file::memory:?uri=true", "has the option uri; leave out"),
        ("sqlite:////no/such/folder/a.db", "is in the folder /no/such/folder, which does not"),
        ("mysql://root@localhost/a", "is a mysql database; give sqlite:///FILE or postgresql://"),
        ("decisions.db", "is decisions.db; give sqlite:///FILE or postgresql://"),
        ("", "is ; give sqlite:///FILE"),
        ("sqlite:///a\nb/c.db", r"which does not exist"),
    ],
)
def test_a_url_is_checked(url, problem):
    assert problem in refusal(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:SECRET@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db?password=SECRET",
        "postgresql://me:SECRET@127.0.0.1:port/db",
        "postgresql:/me:SECRET@127.0.0.1/db",
        "postgresql:///me:SE@CRET@\n127.0.0.1:x/db",
        "mysql://me:SECRET@127.0.0.1/db",
        "me:SECRET@127.0.0.1",
    ],
)
def test_no_message_holds_the_password(url):
    said = refusal(url)
    assert "SECRET" not in said
    assert "CRET@" not in said


def test_a_path_may_have_spaces_and_other_letters(tmp_path):
    folder = tmp_path / "my store, ä 100%"
    folder.mkdir()
    with desk(sqlite_url(folder)) as service:
        service.create()
    with using(sqlite_url(folder), make=False) as store, store.read() as read:
        assert read.ids() == ["one"]


def test_a_store_that_must_be_there_is_not_made(tmp_path, postgres):  # noqa: F811
    assert "decisions.db does not exist" in refusal(sqlite_url(tmp_path), make=False)
    assert list(tmp_path.iterdir()) == []
    url = postgres.database()
    assert "has no experiments and no keys" in refusal(url, make=False)
    with connected(url) as connection:
        assert sa.inspect(connection).get_table_names() == []


def foreign(tables):
    """Makes the database of another program at a path."""

    def make(path):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for table in tables:
                connection.execute(f"CREATE TABLE {table} (version_num TEXT)")
            connection.execute(f"INSERT INTO {tables[0]} VALUES ('0001')")
            connection.commit()

    return make


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.write_text("a diary\n" * 100), "is damaged (file is not a database)"),
        (lambda path: path.write_bytes(bytes(5000)), "is damaged (file is not a database)"),
        (foreign(["diary"]), "is the database of another program; give another one"),
        (foreign(["alembic_version", "diary"]), "is the database of another program"),
        (foreign(["experiments", "diary"]), "is the database of another program"),
        (lambda path: path.mkdir(), "is a folder; give a file in it"),
    ],
    ids=["text", "zeros", "other", "other with Alembic", "same name", "folder"],
)
def test_another_file_is_refused_and_not_changed(tmp_path, make, problem):
    path = tmp_path / "decisions.db"
    make(path)
    before = path.is_file() and path.read_bytes()
    assert problem in refusal(sqlite_url(tmp_path))
    assert (path.is_file() and path.read_bytes()) == before
    assert os.listdir(tmp_path) == ["decisions.db"]


def test_another_program_in_postgresql_is_left_alone(postgres):  # noqa: F811
    url = postgres.database()
    with connected(url) as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num TEXT)"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES ('0001')"))
        connection.commit()
    assert "is the database of another program; give another one" in refusal(url)


def test_tables_of_a_newer_version_are_refused(url):
    Store(url).close()
    with connected(url) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    said = refusal(url)
    assert "has version '9999' of the tables; this version of driftbandit knows 0001" in said
    assert said.endswith("install a newer one")


def test_a_file_that_cannot_be_written(tmp_path):
    """Root may write everything, and becomes somebody else for a moment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with desk(sqlite_url(folder)) as service:
            service.create()
        path = folder / "decisions.db"
        path.chmod(0o444)
        folder.chmod(0o555)
        before, root = path.read_bytes(), os.geteuid() == 0
        try:
            if root:
                os.seteuid(65534)
            said = refusal(sqlite_url(folder))
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)
        assert "cannot be opened (" in said
        assert said.endswith("check that it is there and writable")
        assert path.read_bytes() == before


# What is kept.


def test_a_backup_that_is_taken_while_it_runs(tmp_path):
    """As docs/do/serve.md says."""
    place = tmp_path / "restored"
    place.mkdir()
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        service.play(10)
        before = service.snapshot()
        with rows(tmp_path) as connection:
            connection.execute("VACUUM INTO ?", [str(place / "decisions.db")])
        service.play(1)
    with desk(sqlite_url(place)) as service:
        assert service.snapshot() == before
        assert service.decide()["decision"] == 10
        assert [one.problem for one in verify(service.store)] == [None]


def event(number, **fields):
    return {"number": number, "kind": "paused", "time": number / 3, **fields}


def test_events_are_paged_and_come_back_as_they_were(store, monkeypatch):
    monkeypatch.setattr(transaction, "PAGE", 3)
    new = [event(n, reason="ä\u2028\x00\ud800", x=[0.1, 1e300, None]) for n in range(1, 11)]
    with store.write() as one:
        assert one.add_experiment("one", 1.0)
        assert one.add_experiment("two", 1.0)
        assert not one.add_experiment("one", 2.0)
        one.append("one", new[:4], {"decisions": 4})
        one.append("one", new[4:], {"decisions": 10})
        one.append("two", [event(1)], {})
    with store.read() as one:
        assert list(one.events("one", 0)) == new
        for after in (0, 2, 3, 9, 10, 11):
            for limit in (0, 1, 2, 3, 4, 6, 100):
                assert list(one.events("one", after, limit)) == new[after : after + limit]
        assert one.version("one") == 10
        first, _ = one.experiments()
        assert first == {"id": "one", "created": 1.0, "version": 10, "decisions": 10}


def test_an_event_is_not_written_twice(store):
    with store.write() as one:
        one.add_experiment("one", 1.0)
        one.append("one", [event(1)], {})
    with pytest.raises(Exception, match=r"(?i)unique"), store.write() as one:
        one.append("one", [event(2), event(1)], {})
    with store.read() as one:
        assert [found["number"] for found in one.events("one", 0)] == [1]


def test_the_newest_two_snapshots_are_kept(store):
    with store.write() as one:
        one.put_snapshot("other", Snapshot(1, "a", "b"))
        for number in (3, 5, 8, 8):
            one.put_snapshot("one", Snapshot(number, f"agent {number}", "rest"))
    with store.read() as one:
        kept = [Snapshot(number, f"agent {number}", "rest") for number in (5, 8)]
        assert one.snapshots("one") == kept
        assert len(one.snapshots("other")) == 1


def test_samples_are_thinned_and_the_newest_stay(store):
    with store.write() as one:
        for number in range(1, 101):
            one.put_sample("one", number, {"time": number}, most=20)
    with store.read() as one:
        kept = [found["number"] for found in one.samples("one", 1000)]
        assert len(kept) <= 20
        assert kept[0] == 1
        assert kept[-10:] == list(range(91, 101))
        assert kept == sorted(kept)
        assert one.samples("one", 2) == [{"number": n, "time": n} for n in (99, 100)]


def test_answers_are_forgotten_after_a_time(store):
    first, second = Answer("f", 201, "1"), Answer("g", 200, "2")
    with store.write() as one:
        one.put_answers("one", {"a": first}, 100.0)
        one.put_answers("one", {"b": second}, 200.0)
        one.put_answers("two", {"a": second}, 200.0)
        assert one.answers("one", ["a", "b", "c"]) == {"a": first, "b": second}
        assert one.forget_answers(150.0, most=10) == 1
        assert one.answers("one", ["a", "b"]) == {"b": second}
        assert one.answers("two", ["a"]) == {"a": second}


@pytest.mark.parametrize(
    "change",
    ["kind = 'resumed'", "time = time + 1e-6", "data = '{}'", "data = '['", "checksum = 0"],
)
def test_an_event_that_was_changed_is_noticed(tmp_path, change):
    with using(sqlite_url(tmp_path)) as store:
        with store.write() as one:
            one.add_experiment("one", 1.0)
            one.append("one", [event(n, reason="") for n in range(1, 4)], {})
        with rows(tmp_path) as connection:
            connection.execute(f"UPDATE events SET {change} WHERE number = 2")
        with pytest.raises(Damaged, match="event 2 of experiment one is not"), store.read() as one:
            list(one.events("one", 0))


def test_a_summary_that_was_changed_is_noticed(tmp_path):
    with using(sqlite_url(tmp_path)) as store:
        with store.write() as one:
            one.add_experiment("one", 1.0)
        for text in ("", "[1]", "{"):
            with rows(tmp_path) as connection:
                connection.execute("UPDATE experiments SET summary = ?", [text])
            with pytest.raises(Damaged, match="the summary of experiment one"), store.read() as one:
                one.experiments()


def test_large_files_are_not_read_whole_when_they_are_opened(tmp_path, monkeypatch):
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
    monkeypatch.setattr(sqlite_file, "CHECKED", 100)
    with rows(tmp_path) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'samples'"
        ).fetchone()
    with (tmp_path / "decisions.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    Store(sqlite_url(tmp_path)).close()
    monkeypatch.undo()
    assert "is damaged (" in refusal(sqlite_url(tmp_path))


def test_the_plain_driver_is_named_if_it_is_missing():
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from driftbandit.service.store import Store\n"
        "Store('postgresql://me@127.0.0.1/db')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith(
        "PostgreSQL needs psycopg; install driftbandit[service]"
    )
