"""Where experiments are kept: SQLite in one file, or PostgreSQL.

Everything goes through a `Transaction`. What it wrote is there, whole, once it has committed and
the disk has confirmed it; or nothing of it is. SQLite runs with a write-ahead log and full
synchronization. A transaction that locks an experiment is alone with it, on all servers.
"""

from __future__ import annotations

import contextlib
import logging
import re
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
from driftbandit.service.sqlite_file import (
    OURS,
    SQLiteFile,
    is_damage,
    refusal,
    use_write_ahead_log,
)
from driftbandit.service.transaction import Damaged, StoreError, Transaction

__all__ = ["Damaged", "Store", "StoreError", "checked_url", "using"]

BUSY = 5000  # milliseconds to wait for another writer
REMEDY = "give sqlite:///FILE or postgresql://USER@HOST/DATABASE"
MIGRATING = 7_273_643  # a number of our own, for PostgreSQL's advisory lock

logger = logging.getLogger("driftbandit.service")


class Store:
    """A database with experiments. It is made, or brought up to date, when it is opened.

    Args:
        url: ``sqlite:///decisions.db`` or ``postgresql://user@host/database``.
        make: whether to make one that is not there.
    """

    def __init__(self, url: str, *, make: bool = True) -> None:
        self.url = checked_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        file = SQLiteFile(str(self.url.database)) if self.is_sqlite else None
        self._engine = _postgresql(self.url) if file is None else _sqlite(self.url, file)
        try:
            with _refusals(self.url):
                if file is not None:
                    file.check_content(_shown(self.url), make=make)
                self._migrate(make=make)
                if file is not None:
                    file.remember()
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
        """A transaction that only reads; it sees the store as it is at one moment."""
        with _failures(), self._engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield Transaction(connection)

    def _migrate(self, *, make: bool) -> None:
        """Bring the tables up to date; refuse those of a newer version."""
        config = Config()
        folder = str(Path(__file__).parent / "migrations")
        config.set_main_option("script_location", folder.replace("%", "%%"))
        scripts = ScriptDirectory.from_config(config)
        with self._engine.connect() as connection:
            connection = connection.execution_options(driftbandit_write=True)
            with connection.begin():
                if not self.is_sqlite:  # several servers may start at once
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATING)))
                found = MigrationContext.configure(connection).get_current_revision()
                if found is None and not make:
                    problem = f"{_shown(self.url)} has no experiments and no keys"
                    raise errors.InvalidInput("store", problem, "give the store of a server")
                tables = sa.inspect(connection).get_table_names()
                if found is not None and not OURS.issubset(tables):
                    problem = f"{_shown(self.url)} is the database of another program"
                    raise errors.InvalidInput("store", problem, "give another one")
                if found is not None and found not in {one.revision for one in _all(scripts)}:
                    problem = f"{_shown(self.url)} has version {found!r:.20} of the tables"
                    known = scripts.get_current_head()
                    remedy = f"this version of driftbandit knows {known}; install a newer one"
                    raise errors.InvalidInput("store", problem, remedy)
                if found != scripts.get_current_head():
                    config.attributes["connection"] = connection
                    command.upgrade(config, "head")
                    what = "is a new store" if found is None else f"had version {found}"
                    logger.info("%s %s; its tables were made", _shown(self.url), what)


def _all(scripts: ScriptDirectory) -> list[Any]:
    return list(scripts.walk_revisions())


def checked_url(url: str) -> URL:
    """The URL of a store, with the driver that is used."""
    try:
        found = make_url(url)
        backend = found.get_backend_name()
    except (sa.exc.ArgumentError, ValueError):
        # A URL with a mistake may hold a password that is not where it is looked for.
        shown = errors.printable(re.sub(":.*@", ":***@", url, flags=re.DOTALL))[:80]
        raise errors.InvalidInput("store", f"is {shown}", REMEDY) from None
    if backend == "sqlite":
        if not found.database or found.database == ":memory:":
            raise errors.InvalidInput("store", "is in memory, which is not kept", REMEDY)
        if found.query:
            problem = f"has the option {errors.printable(next(iter(found.query)))[:40]}"
            raise errors.InvalidInput("store", problem, "leave out the question mark and the rest")
        path = Path(found.database)
        if not path.absolute().parent.is_dir():
            problem = f"is in the folder {errors.printable(str(path.parent))}, which does not exist"
            raise errors.InvalidInput("store", problem, "make it first")
        return found.set(drivername="sqlite")
    if backend in ("postgresql", "postgres"):
        return found.set(drivername="postgresql+psycopg")
    raise errors.InvalidInput("store", f"is a {backend} database", REMEDY)


def _shown(url: URL) -> str:
    """The store as messages name it, without a password; options may hold one, too."""
    return errors.printable(url.set(query={}).render_as_string(hide_password=True))


@contextlib.contextmanager
def using(url: str, *, make: bool = True) -> Iterator[Store]:
    """A store for one command: its failures are told in one line, and it is closed at the end."""
    store = Store(url, make=make)
    try:
        yield store
    except StoreError as error:
        problem = f"{_shown(store.url)} cannot be used ({error})"
        raise errors.InvalidInput("store", problem, error.remedy) from None
    finally:
        store.close()


def _sqlite(url: URL, file: SQLiteFile) -> sa.Engine:
    engine = sa.create_engine(url, pool_size=20, max_overflow=20, hide_parameters=True)
    # Many rows by one statement: at every row the driver lets other threads run, and waits.
    engine.dialect.use_insertmanyvalues_wo_returning = True

    @sa.event.listens_for(engine, "do_connect")
    def check(*_: Any) -> None:
        file.check_identity()  # SQLite would make a new file where there is none

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        file.count_connections(+1)
        connection.isolation_level = None  # transactions begin below, not by the driver's rules
        connection.execute(f"PRAGMA busy_timeout = {BUSY}")
        use_write_ahead_log(connection, BUSY / 1000)
        connection.execute("PRAGMA synchronous = FULL")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        file.check_identity()
        writes = connection.get_execution_options().get("driftbandit_write")
        # A writer takes its lock at once: one that begins as a reader might have to give up later.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
        if writes:  # then there is a log
            file.remember_log()

    @sa.event.listens_for(engine, "close")
    def closed(*_: Any) -> None:
        file.count_connections(-1)

    return engine


def _postgresql(url: URL) -> sa.Engine:
    errors.require("PostgreSQL", "psycopg")
    options = f"-c lock_timeout={BUSY} -c statement_timeout=60000 -c synchronous_commit=on"
    given: dict[str, Any] = {"connect_timeout": 5, "application_name": "driftbandit"}
    given |= {"options": options, "tcp_user_timeout": 20_000}  # a server that does not answer
    given |= {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}
    # No ping before each use: after a restart one request gets 503, then connections are new.
    return sa.create_engine(url, connect_args=given, pool_size=5, hide_parameters=True)


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Turn what a database raises into a `StoreError` with a short reason."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, UnicodeDecodeError) as error:
        reason = reason_of(error)
        raise (Damaged if is_damage(reason) else StoreError)(reason) from error


@contextlib.contextmanager
def _refusals(url: URL) -> Iterator[None]:
    """Turn what a database raises when it is opened into a message with a remedy."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, UnicodeDecodeError) as error:
        raise refusal(_shown(url), reason_of(error)) from None


def reason_of(error: Exception) -> str:
    """The database's own words, on one line, without the statement."""
    origin = getattr(error, "orig", None) or error
    text = " ".join(str(origin).split()) or type(origin).__name__
    return errors.printable(text[:200])
