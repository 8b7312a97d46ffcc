"""Compiled programs, kept on disk between processes.

To compile the programs of a simulation takes longer than to play them. JAX can keep them in a
folder, under a key made of the program, its versions and its flags. This module chooses the
folder, keeps it small and removes what a killed process left half-written.

The command line uses it by itself. The library does not, since the setting would hold for every
JAX program of the process: call ``driftbandit.program_cache.enable()`` to choose it. The
environment variable ``DRIFTBANDIT_CACHE`` names another folder, or is ``off``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

__all__ = ["VARIABLE", "enable", "folder", "in_environment"]

VARIABLE = "DRIFTBANDIT_CACHE"
OFF = ("off", "no", "none", "0", "false")
MOST = 500e6
"""Bytes that are kept. A program of a simulation takes 10 to 100 kB."""
TORN = 2.0
"""Seconds before the end of a killed process in which it may have been writing."""
SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def folder() -> Path | None:
    """Where programs are kept; None: nowhere, by choice or since the folder cannot be written.

    Programs hold machine code. Machines that differ in their processor, and processes that differ
    in XLA_FLAGS, have folders of their own, so that none runs the code of another.
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


def enable() -> Path | None:
    """Keep this process's compiled programs on disk, those of other JAX code too.

    Returns:
        The folder; None: nowhere (see `folder`).
    """
    import jax

    found = folder()
    if found is not None:
        _tidy(found)
        jax.config.update("jax_compilation_cache_dir", str(found))
        for name, value in SETTINGS.items():
            jax.config.update(name, value)
    return found


@contextlib.contextmanager
def in_environment() -> Iterator[None]:
    """The same by environment variables, without loading JAX, until the block ends.

    It has no effect where JAX is loaded already, or where its own variable names a folder.
    """
    wanted = "JAX_COMPILATION_CACHE_DIR"
    found = None if "jax" in sys.modules or wanted in os.environ else folder()
    if found is None:
        yield
        return
    _tidy(found)
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


def _machine() -> str:
    """A name for machines that can run each other's programs."""
    features = platform.processor()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    parts = [platform.system(), platform.machine(), features, os.environ.get("XLA_FLAGS", "")]
    with contextlib.suppress(metadata.PackageNotFoundError):
        parts.append(metadata.version("jaxlib"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _tidy(found: Path) -> None:
    with contextlib.suppress(OSError):
        _remove_torn(found)
        _keep_small(found.parent)


def _remove_torn(found: Path) -> None:
    """JAX writes its files in place: of a killed process, the last ones may be torn."""
    for marker in found.glob("running-*"):
        number = marker.name.partition("-")[2]
        if not number.isdigit() or _alive(int(number), marker):
            continue
        since = marker.stat().st_mtime
        times = {path: path.stat().st_mtime for path in found.glob("*-cache")}
        last = max(times.values(), default=0.0)
        for path, at in times.items():
            if at >= max(since, last - TORN):
                path.unlink(missing_ok=True)
        marker.unlink(missing_ok=True)


def _alive(process: int, marker: Path) -> bool:
    if os.name != "posix":  # there, os.kill ends processes
        return time.time() - marker.stat().st_mtime < 86_400
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _keep_small(base: Path) -> None:
    """Above the limit, remove the oldest half."""
    files = [path for path in base.rglob("*") if path.is_file()]
    sizes = {path: path.stat().st_size for path in files}
    total = sum(sizes.values())
    if total <= MOST:
        return
    for path in sorted(files, key=lambda path: path.stat().st_mtime):
        total -= sizes[path]
        path.unlink(missing_ok=True)
        if total <= MOST / 2:
            return
