"""The file of a SQLite store: what it holds before it is opened, and that it stays the same one."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from pathlib import Path

from driftbandit import errors
from driftbandit.service.transaction import StoreError

CHECKED = 2**30  # bytes: larger files are not read whole when a store is opened
LOOKS = 5
OURS = frozenset({"alembic_version", "events", "experiments", "keys"})
"""Some tables of ours, by which a store is told from the database of another program."""


class SQLiteFile:
    """A file that is looked at before SQLite may write to it, and while it is in use.

    Args:
        path: where it is, or will be made.
    """

    def __init__(self, path: str) -> None:
        self.path, self.log = Path(path), Path(f"{path}-wal")
        self._seen: os.stat_result | None = None
        self._log_seen: tuple[int, int] | None = None  # of the log that our connections write
        self._connections = 0
        self._lock = threading.Lock()

    def check_content(self, shown: str, *, make: bool) -> None:
        """Refuse a file that is damaged or belongs to another program; nothing is written to it."""
        if self.path.is_dir():
            raise errors.InvalidInput("store", f"{shown} is a folder", "give a file in it")
        size = self.path.stat().st_size if self.path.exists() else 0
        log, index = self.log, Path(f"{self.path}-shm")
        if size == 0 and log.exists() and log.stat().st_size > 0:
            raise damaged(shown, f"it is empty, and {log.name} holds changes of it")
        if size > 0 and _is_missing(log, index):
            problem = f"{shown} was not closed, and {log.name} with its newest events is missing"
            remedy = f"put that file back, or delete {index.name} to go on without them"
            raise errors.InvalidInput("store", problem, remedy)
        if not self.path.exists() and not make:
            raise errors.InvalidInput("store", f"{shown} does not exist", "give the right file")
        if size == 0:
            return
        if not log.exists() and (missing := self._stated_size() - size) > 0:
            raise damaged(shown, f"its last {missing:,} bytes are missing")
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
                rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                tables = {name for (name,) in rows}
                if tables and not tables >= OURS:
                    problem = f"{shown} is the database of another program"
                    raise errors.InvalidInput("store", problem, "give another one")
                if size <= CHECKED:
                    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                    if found != "ok":
                        raise damaged(shown, str(found))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise refusal(shown, str(error)) from None

    def _stated_size(self) -> int:
        """The bytes that the file has by its header: page size × pages. SQLite may not notice."""
        with self.path.open("rb") as file:
            header = file.read(32)
        if not header.startswith(b"SQLite format 3\0"):
            return 0
        page = int.from_bytes(header[16:18], "big")
        return (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")

    def remember(self) -> None:
        """Keep in mind which file it is."""
        self._seen = self.path.stat()

    def check_identity(self) -> None:
        """Raise `StoreError` if it, or its log, is another file now, or none, or was cut off.

        SQLite would go on with a file that was deleted, and lose what it writes there.
        """
        seen = self._seen  # before the file is looked at: another thread may see a larger one later
        if seen is None:
            return
        try:
            now = self.path.stat()
        except OSError as error:
            raise StoreError(f"{self.path.name}: {error.strerror}") from None
        if (now.st_dev, now.st_ino) != (seen.st_dev, seen.st_ino):
            raise StoreError(f"{self.path.name} was replaced; start the server again")
        if now.st_size < seen.st_size:
            raise StoreError(f"{self.path.name} became smaller; start the server again")
        self._seen = now
        with self._lock:
            if self._log_seen is not None and self._log_seen != _identity(self.log):
                # Ours still have the log, and the last that is closed brings it into the file.
                what = f"{self.log.name} was deleted or replaced; stop the server"
                raise StoreError(f"{what}, which brings its events into {self.path.name}")

    def remember_log(self) -> None:
        """Keep in mind which log our connections write; one of them has begun a transaction."""
        if self._log_seen is None:
            with self._lock:
                self._log_seen = _identity(self.log)

    def count_connections(self, change: int) -> None:
        """Note that one was opened or closed; the last one deletes the log, as it should."""
        with self._lock:
            self._connections += change
            if self._connections == 0:
                self._log_seen = None


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_missing(log: Path, index: Path) -> bool:
    """Whether there is an index of the log, and no log.

    SQLite makes the log first, and deletes it last. Other programs may do so at this moment, so it
    is looked at more than once.
    """
    for _ in range(LOOKS):
        if not index.exists() or log.exists():
            return False
        time.sleep(0.01)
    return True


def use_write_ahead_log(connection: sqlite3.Connection, patience: float) -> None:
    """Switch the log on; SQLite does not wait for others here, as it does elsewhere."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.005)


def is_damage(reason: str) -> bool:
    """Whether a database's words say that its file is damaged."""
    return any(words in reason for words in ("not a database", "malformed", "decode"))


def damaged(shown: str, reason: str) -> errors.InvalidInput:
    """The refusal of a damaged store."""
    problem = f"{shown} is damaged ({errors.printable(' '.join(reason.split()))[:120]})"
    return errors.InvalidInput("store", problem, "restore it from a backup; it was not changed")


def refusal(shown: str, reason: str) -> errors.InvalidInput:
    """The refusal of a store that cannot be opened."""
    if is_damage(reason):
        return damaged(shown, reason)
    problem = f"{shown} cannot be opened ({reason})"
    return errors.InvalidInput("store", problem, "check that it is there and writable")
