"""A PostgreSQL server of one's own, in a temporary folder: real, durable, and easy to restart.

It takes connections on a socket in its folder and on a free port of 127.0.0.1, without passwords.
PostgreSQL does not run as root: root starts it as the user `postgres` or `nobody`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

Mode = Literal["smart", "fast", "immediate"]
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
"""How to end: after the last client, at once but in order, or as in a crash."""


class Unavailable(RuntimeError):
    """PostgreSQL cannot be had here."""


def programs() -> Path:
    """The folder with initdb and postgres: on the PATH, or the newest of Debian's."""
    found = [Path(one).resolve().parent for one in [shutil.which("initdb")] if one]
    places = Path("/usr/lib/postgresql").glob("*/bin")
    found += sorted(places, key=lambda place: -float(re.sub(r"[^\d.]", "", place.parent.name) or 0))
    for folder in found:
        if all((folder / name).exists() for name in ("initdb", "postgres")):
            return folder
    raise Unavailable("initdb and postgres are neither on the PATH nor in /usr/lib/postgresql")


def owner() -> pwd.struct_passwd | None:
    """The user to run it as; None: the present one."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Unavailable("root cannot run PostgreSQL, and there is no user postgres or nobody")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Postgres:
    """One server; every `database` is empty and new.

    Args:
        settings: settings of postgresql.conf, such as fsync="off"; it is on by default.
    """

    def __init__(self, **settings: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise Unavailable(f"psycopg cannot be imported ({error})") from error
        self._connect = psycopg.connect
        self._error = psycopg.OperationalError
        self._programs, user = programs(), owner()
        self._as: dict[str, Any] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="driftbandit-postgres-"))
        if user is not None:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.port = free_port()
        self.settings = {"shared_buffers": "64MB", "max_connections": "50"} | settings
        self.process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._initialize()

    def url(self, database: str = "postgres") -> str:
        """The URL of a database, over TCP."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        with self._connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def start(self, seconds: float = 30) -> None:
        """Start it and wait until it takes connections, after a crash once it has recovered."""
        assert self.process is None, "it runs already"
        settings = self.settings | {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
        }
        given = [f"-c{name}={value}" for name, value in settings.items()]
        asked = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *given]
        with (self.folder / "log.txt").open("ab") as log:
            self.process = self._started(asked, stdout=log, stderr=log)
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._connect(self.url(), connect_timeout=5).close()
                return
            except self._error as error:
                ended = self.process.poll() is not None
                if ended or time.monotonic() > deadline:
                    self.stop("immediate")
                    log_text = (self.folder / "log.txt").read_text(errors="replace")[-2000:]
                    raise Unavailable(f"PostgreSQL does not start ({error}): {log_text}") from error
            time.sleep(0.02)

    def stop(self, mode: Mode = "fast", seconds: float = 60) -> None:
        """End it; "immediate" is what a crash leaves behind."""
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(SIGNALS[mode])
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait(seconds)

    def restart(self, mode: Mode = "fast", pause: float = 0.0) -> None:
        """End it, wait, and start it again on the same port."""
        self.stop(mode)
        time.sleep(pause)
        self.start()

    def pause(self) -> None:
        """Stop all its processes where they are: connections stay, and nobody answers."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Go on after `pause`."""
        self._signal(signal.SIGCONT)

    def _signal(self, which: signal.Signals) -> None:
        assert self.process is not None
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == self.process.pid or int(folder.name) == self.process.pid:
                    os.kill(int(folder.name), which)

    def remove(self) -> None:
        """End it and delete everything."""
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _initialize(self) -> None:
        asked = [str(self._programs / "initdb"), "-D", str(self.folder / "data")]
        asked += ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        process = self._started(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = process.communicate(timeout=120)
        if process.returncode != 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            words = said.decode(errors="replace").strip()[-1000:]
            raise Unavailable(f"initdb ended with exit code {process.returncode}: {words}")

    def _started(self, asked: list[str], **streams: Any) -> subprocess.Popen[bytes]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        clean |= {"LC_ALL": "C"}
        options = {"stdin": subprocess.DEVNULL, "cwd": self.folder, "env": clean}
        return subprocess.Popen(asked, **options, **self._as, **streams)


@contextlib.contextmanager
def running(**settings: str) -> Iterator[Postgres]:
    """A running server, which is deleted at the end."""
    server = Postgres(**settings)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running server; tests import this fixture by its name."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(running())
        except Unavailable as error:
            pytest.skip(f"PostgreSQL cannot be had here: {' '.join(str(error).split())}")
        yield server
