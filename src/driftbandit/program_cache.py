"""Compiled programs, kept on disk between processes.

JAX can keep compiled programs in a folder. This module chooses the folder, limits its size and
removes what a killed process left half-written. The command line uses it by default. The library
does not, because the setting applies to every JAX program of the process: ``enable()`` turns it on.
The programs of `lanes` are always kept there (`kept`).
The environment variable ``DRIFTBANDIT_CACHE`` names another folder, or is ``off``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

__all__ = ["VARIABLE", "enable", "folder", "in_environment", "kept"]

VARIABLE = "DRIFTBANDIT_CACHE"
OFF = ("off", "no", "none", "0", "false")
MAX_BYTES = 500e6  # size limit of all programs; one takes 10 to 100 kB
TORN = 2.0  # files written so many seconds before a killed process's last one may be incomplete
SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def folder() -> Path | None:
    """Where programs are kept; None: nowhere, by choice or because the folder is not writable.

    Programs are machine code, so every kind of processor and every XLA_FLAGS has its own folder.
    """
    choice = os.environ.get(VARIABLE, "").strip()
    if choice.lower() in OFF:
        return None
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = Path(choice).expanduser() if choice else Path(home) / "driftbandit"
        found = base / "programs" / _machine()
        found.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a read-only disk; a user without a home
        return None
    return found if os.access(found, os.W_OK) else None


def _machine() -> str:
    """A key that is the same for machines that can run each other's programs."""
    features = platform.processor()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    parts = [platform.system(), platform.machine(), features, os.environ.get("XLA_FLAGS", "")]
    with contextlib.suppress(metadata.PackageNotFoundError):
        parts.append(metadata.version("jaxlib"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def enable() -> Path | None:
    """Keep this process's programs, also those of other JAX code, in `folder`; return that."""
    import jax

    found = folder()
    if found is not None:
        tidy(found)
        for name, value in {"jax_compilation_cache_dir": str(found), **SETTINGS}.items():
            jax.config.update(name, value)
    return found


@contextlib.contextmanager
def in_environment() -> Iterator[None]:
    """As `enable`, but by environment variables, without loading JAX, until the block ends.

    It has no effect if JAX is already loaded, or if JAX's own variable names a folder.
    """
    wanted = "JAX_COMPILATION_CACHE_DIR"
    found = None if "jax" in sys.modules or wanted in os.environ else folder()
    if found is None:
        yield
        return
    tidy(found)
    values = {wanted: str(found)} | {name.upper(): str(value) for name, value in SETTINGS.items()}
    added = {name: value for name, value in values.items() if name not in os.environ}
    marker = found / f"running-{os.getpid()}"
    with contextlib.suppress(OSError):
        marker.touch()
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        with contextlib.suppress(OSError):
            marker.unlink(missing_ok=True)


def kept(name: str, make: Callable[[], bytes]) -> bytes:
    """The content of a file in `folder`; made, and written there, if it is missing or damaged.

    The file starts with a hash of the rest: machine code that was cut off must never run.
    """
    found = folder()
    if found is None:
        return make()
    path = found / name
    with contextlib.suppress(OSError):
        stored = path.read_bytes()
        if hashlib.sha256(stored[32:]).digest() == stored[:32]:
            return stored[32:]
    content = make()
    temporary = found / f"{name}.{secrets.token_hex(4)}~"
    with contextlib.suppress(OSError):
        temporary.write_bytes(hashlib.sha256(content).digest() + content)
        temporary.replace(path)
    return content


def tidy(found: Path) -> None:
    """Remove incomplete files of killed processes and, above the limit, the oldest programs."""
    with contextlib.suppress(OSError):
        for marker in found.glob("running-*"):
            number = marker.name.partition("-")[2]
            if number.isdigit() and not _is_alive(int(number), marker):
                _remove_written_last(found, since=marker.stat().st_mtime)
                marker.unlink(missing_ok=True)
        files = [path for path in found.parent.rglob("*") if path.is_file()]
        files.sort(key=lambda path: path.stat().st_mtime)
        total = sum(path.stat().st_size for path in files)
        goal = total if total <= MAX_BYTES else MAX_BYTES / 2
        for path in files:
            if total <= goal:
                break
            total -= path.stat().st_size
            path.unlink(missing_ok=True)


def _remove_written_last(found: Path, since: float) -> None:
    """JAX writes its files in place, so the last ones of a killed process may be incomplete."""
    times = {path: path.stat().st_mtime for path in found.glob("*-cache")}
    last = max(times.values(), default=0.0)
    for path, written in times.items():
        if written >= max(since, last - TORN):
            path.unlink(missing_ok=True)


def _is_alive(process: int, marker: Path) -> bool:
    if os.name != "posix":  # there, os.kill ends processes
        return time.time() - marker.stat().st_mtime < 86_400
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True
