"""Ctrl-C: one line that says what was kept, and exit code 130, at any moment.

`KeyboardInterrupt` does not work for a program that runs JAX. It may be raised in a callback of
JAX's garbage collection, where it is lost; and if it ends the program, the interpreter shuts down
under JAX's threads and crashes. So the main thread is never interrupted: another thread waits for
the signal, removes half-written files, says what was kept and ends the process.

This module imports only the standard library, because it starts before NumPy is loaded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

EXIT_CODE = 130
PATIENCE = 10.0  # seconds for cleaning up, after which the process ends anyway
NOTHING = "No work had begun."

_cleanups: list[Callable[[], object]] = []
_outputs: dict[Path, int | None] = {}
_kept = NOTHING
_arrived = threading.Event()


def keeps(sentences: str) -> None:
    """Set the line for an interruption from now on: what is kept, and how to continue."""
    global _kept
    _kept = sentences


def output(path: Path | None) -> None:
    """Register a file that the command will write; the line says whether it was written."""
    if path is not None:
        _outputs[path] = _file_number(path)


def at_exit(cleanup: Callable[[], object]) -> None:
    """Call ``cleanup``, from another thread, when the command is interrupted."""
    _cleanups.append(cleanup)


@contextlib.contextmanager
def handled(*, last: bool = False) -> Iterator[None]:
    """Handle Ctrl-C within this block; a process that ignores Ctrl-C keeps ignoring it.

    If the process ends after the block (``last``), Ctrl-C is ignored from there on: an exception
    would only disturb the interpreter's shutdown.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    _reset()
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.signal(signal.SIGINT, lambda *_: None)  # without a handler no byte is written
    old = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader,), name="Ctrl-C", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        if _arrived.is_set():  # the process is already ending
            watcher.join()
        signal.set_wakeup_fd(old)
        signal.signal(signal.SIGINT, signal.SIG_IGN if last else before)
        writer.close()
        watcher.join()
        reader.close()
        _reset()


@contextlib.contextmanager
def released() -> Iterator[None]:
    """Leave Ctrl-C, within this block, to a server, which shuts down cleanly by itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


def _reset() -> None:
    keeps(NOTHING)
    _outputs.clear()
    _cleanups.clear()


def _watch(reader: socket.socket) -> None:
    """Wait for the signal; a second one, or ten seconds, ends the process at once."""
    if not _signaled(reader):
        return
    _arrived.set()
    threading.Thread(target=_leave, daemon=True).start()
    reader.settimeout(PATIENCE)
    with contextlib.suppress(TimeoutError):
        _signaled(reader)
    os._exit(EXIT_CODE)


def _signaled(reader: socket.socket) -> bool:
    """Whether Ctrl-C came before the command ended. Other signals write bytes too."""
    while numbers := reader.recv(64):
        if signal.SIGINT in numbers:
            return True
    return False


def _leave() -> None:
    modules: Any = sys.modules
    try:
        if hasattr(modules.get("driftbandit.io.atomic"), "abandon"):  # files may be half-written
            modules["driftbandit.io.atomic"].abandon()
        steps = list(reversed(_cleanups))
        if hasattr(modules.get("ray"), "shutdown"):  # the only library that starts processes
            steps.append(modules["ray"].shutdown)
        for step in (*steps, sys.stdout.flush, _print_line):
            with contextlib.suppress(Exception):
                step()
    finally:
        os._exit(EXIT_CODE)


def _print_line() -> None:
    sys.stderr.write(f"Interrupted. {_line()}\n")
    sys.stderr.flush()


def _line() -> str:
    written = [path for path, number in _outputs.items() if _file_number(path) != number]
    if not written:
        return _kept
    names = " and ".join(ascii(str(path)).strip("'\"") for path in written)
    return f"{names} {'was' if len(written) == 1 else 'were'} written before that."


def _file_number(path: Path) -> int | None:
    """The file's inode, which changes when the file is written again."""
    try:
        return path.stat().st_ino
    except OSError:
        return None
