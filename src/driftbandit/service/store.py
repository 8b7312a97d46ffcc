"""Where experiments are kept: SQLite in one file, or PostgreSQL.

Everything goes through a `Transaction`. What it wrote is there, whole, once it has committed and
the disk has confirmed it; or nothing of it is. SQLite runs with a write-ahead log and full
synchronization. A transaction that locks an experiment is alone with it, on all servers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import URL, Connection, make_url

from driftbandit import errors
from driftbandit.service.transaction import Transaction

BUSY = 5000  # milliseconds to wait for another writer
CHECKED = 2**30  # bytes: larger files are not read whole when a store is opened
REMEDY = "give sqlite:///FILE or postgresql://USER@HOST/DATABASE"
MIGRATING = 7_273_643  # a number of our own, for PostgreSQL's advisory lock


class StoreError(Exception):
    """The store cannot do its work now; nothing of the transaction was kept."""


class Store:
    """A database with experiments. It is made, or brought up to date, when it is opened.

    Args:
        url: ``sqlite:///decisions.db`` or ``postgresql://user@host/database``.
    """

    def __init__(self, url: str) -> None:
        self.url = checked_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._engine = _sqlite(self.url) if self.is_sqlite else _postgresql(self.url)
        try:
            with _refusals(self.url):
                if self.is_sqlite:
                    self._check_file()
                self._migrate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction that commits at the end of the block; an error undoes it."""
        with _failures(), self._engine.connect() as connection:
            connection = connection.execution_options(driftbandit_write=True)
            with connection.begin():
                yield Transaction(connection)

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """A transaction that only reads."""
        with _failures(), self._engine.connect() as connection, connection.begin():
            yield Transaction(connection)

    def _check_file(self) -> None:
        """Refuse a file that is damaged, or that belongs to another program."""
        with self._engine.connect() as connection:
            size = Path(str(self.url.database)).stat().st_size
            tables = sa.inspect(connection).get_table_names()
            if tables and "alembic_version" not in tables:
                problem = f"{_shown(self.url)} is the database of another program"
                raise errors.InvalidInput("store", problem, "give another file")
            if size <= CHECKED:
                found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
                if found != "ok":
                    raise _damaged(self.url, str(found))

    def _migrate(self) -> None:
        """Bring the tables up to date; refuse those of a newer version."""
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        scripts = ScriptDirectory.from_config(config)
        with self._engine.connect() as connection:
            connection = connection.execution_options(driftbandit_write=True)
            with connection.begin():
                if not self.is_sqlite:  # several servers may start at once
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATING)))
                found = MigrationContext.configure(connection).get_current_revision()
                if found == scripts.get_current_head():
                    return
                if found is not None and found not in {one.revision for one in _all(scripts)}:
                    problem = f"{_shown(self.url)} has version {found!r:.20} of the tables"
                    known = scripts.get_current_head()
                    remedy = f"this version of driftbandit knows {known}; install a newer one"
                    raise errors.InvalidInput("store", problem, remedy)
                config.attributes["connection"] = connection
                command.upgrade(config, "head")


def _all(scripts: ScriptDirectory) -> list[Any]:
    return list(scripts.walk_revisions())


def checked_url(url: str) -> URL:
    """The URL of a store, with the driver that is used."""
    try:
        found = make_url(url)
        backend = found.get_backend_name()
    except (sa.exc.ArgumentError, ValueError):
        raise errors.InvalidInput("store", f"is {errors.printable(url)[:80]}", REMEDY) from None
    if backend == "sqlite":
        if not found.database or found.database == ":memory:":
            raise errors.InvalidInput("store", "is in memory, which is not kept", REMEDY)
        path = Path(found.database)
        if not path.absolute().parent.is_dir():
            problem = f"is in the folder {errors.printable(str(path.parent))}, which does not exist"
            raise errors.InvalidInput("store", problem, "make it first")
        return found.set(drivername="sqlite")
    if backend in ("postgresql", "postgres"):
        return found.set(drivername="postgresql+psycopg")
    raise errors.InvalidInput("store", f"is a {backend} database", REMEDY)


def _shown(url: URL) -> str:
    """The store as messages name it, without a password."""
    return errors.printable(url.render_as_string(hide_password=True))


def _damaged(url: URL, reason: str) -> errors.InvalidInput:
    problem = f"{_shown(url)} is damaged ({errors.printable(reason)[:120]})"
    return errors.InvalidInput("store", problem, "restore it from a backup; it was not changed")


def _sqlite(url: URL) -> sa.Engine:
    engine = sa.create_engine(url, pool_size=20, max_overflow=20)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin below, not by the driver's rules
        connection.execute(f"PRAGMA busy_timeout = {BUSY}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("driftbandit_write")
        # A writer takes its lock at once: one that begins as a reader might have to give up later.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL) -> sa.Engine:
    errors.require("PostgreSQL", "psycopg")
    options = f"-c lock_timeout={BUSY} -c statement_timeout=60000 -c synchronous_commit=on"
    given = {"connect_timeout": 5, "application_name": "driftbandit", "options": options}
    return sa.create_engine(url, connect_args=given, pool_pre_ping=True, pool_size=5)


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Turn what a database raises into a `StoreError` with a short reason."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(reason_of(error)) from error


@contextlib.contextmanager
def _refusals(url: URL) -> Iterator[None]:
    """Turn what a database raises when it is opened into a message with a remedy."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        reason = reason_of(error)
        if "not a database" in reason or "malformed" in reason:
            raise _damaged(url, reason) from None
        problem = f"{_shown(url)} cannot be opened ({reason})"
        raise errors.InvalidInput("store", problem, "check that it is there and writable") from None


def reason_of(error: sa.exc.SQLAlchemyError) -> str:
    """The database's own words, on one line, without the statement."""
    origin = getattr(error, "orig", None) or error
    text = " ".join(str(origin).split()) or type(origin).__name__
    return errors.printable(text[:200])
