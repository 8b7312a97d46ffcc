"""A real `driftbandit serve` in a process of its own: started, ended, killed, started again."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

READY = "driftbandit serves http://"


class NotReady(RuntimeError):
    """The process ended, or took too long, before it said that it serves."""


def command(*arguments: str) -> list[str]:
    """The command line of driftbandit, in the Python that runs the tests."""
    return [sys.executable, "-m", "driftbandit", *arguments]


def verified(store: str, *options: str) -> tuple[int, Any]:
    """The exit code of `driftbandit verify` on a store, and what it reports."""
    asked = command("verify", "--store", store, "--json", *options)
    ran = subprocess.run(asked, capture_output=True, text=True, timeout=1800, env=environment())
    try:
        return ran.returncode, json.loads(ran.stdout)
    except ValueError:
        return ran.returncode, {"stdout": ran.stdout[-2000:], "stderr": ran.stderr[-2000:]}


def environment() -> dict[str, str]:
    """Small matrices gain nothing from threads, and threads that spin slow the others down."""
    return os.environ | {"OPENBLAS_NUM_THREADS": "1"}


class Server:
    """One server on a free port of 127.0.0.1, which it keeps when it is started again.

    Args:
        store: the URL of the store.
        folder: where its log goes: stderr.txt, which every start continues.
        options: more arguments of `driftbandit serve`.
        port: 0: a free one.
    """

    def __init__(self, store: str, folder: Path, *options: str, port: int = 0) -> None:
        self.store, self.options, self.port = store, options, port
        self.log = Path(folder) / "stderr.txt"
        self.process: subprocess.Popen[bytes] | None = None
        self.said = b""

    @property
    def url(self) -> str:
        """Where it serves, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._running().pid

    def launch(self) -> None:
        """Start the process, and return before it is ready."""
        assert self.process is None, "it runs already"
        asked = command("serve", "--store", self.store, "--host", "127.0.0.1")
        asked += ["--port", str(self.port), *self.options]
        self.said = b""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                asked, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                env=environment(),
            )  # fmt: skip

    def wait_until_ready(self, seconds: float = 60) -> None:
        """Wait for the line that says where it serves."""
        process, deadline = self._running(), time.monotonic() + seconds
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.said:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.kill()
                    raise NotReady(f"not ready after {seconds} s; {self._last_words()}")
                more = os.read(process.stdout.fileno(), 4096)
                if not more:
                    code = process.wait()
                    self._forget()
                    raise NotReady(f"ended with exit code {code}; {self._last_words()}")
                self.said += more
        line = self.said.decode().splitlines()[0]
        if not line.startswith(READY):
            self.kill()
            raise NotReady(f"said {line!r}, not {READY!r}…")
        self.port = int(line.rstrip("/ ").rpartition(":")[2])

    def start(self, seconds: float = 60) -> Self:
        """Start it and wait until it is ready."""
        self.launch()
        self.wait_until_ready(seconds)
        return self

    def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL)."""
        process = self._running()
        process.kill()
        process.wait()
        self._forget()

    def stop(self, seconds: float = 30) -> int:
        """Ask it to end (SIGTERM); return its exit code."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            self._forget()

    def __enter__(self) -> Self:
        return self if self.process is not None else self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None, "it does not run"
        return self.process

    def _forget(self) -> None:
        process = self._running()
        if process.stdout is not None:
            process.stdout.close()
        self.process = None

    def _last_words(self) -> str:
        return f"its log ends with\n{self.log.read_text(errors='replace')[-3000:]}"
