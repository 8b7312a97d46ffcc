"""Files that are complete or absent: bytes, and archives of arrays."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import secrets
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors

FORMAT = 1  # of archives

_unfinished: set[Path] = set()
_naming = threading.Lock()


def abandon() -> None:
    """Remove half-written files and let no new one appear: the process is about to end."""
    _naming.acquire()  # never released: threads that begin or finish a file wait until the end
    for temporary in tuple(_unfinished):
        with contextlib.suppress(OSError):
            temporary.unlink()


def _check_plain(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "Not a plain file")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that readers see all of its content or none.

    The content is written to a temporary file in the same folder, synced to the disk, and renamed.
    A process killed at any moment leaves the old file or the new one, and perhaps a ``.NAME.…~``
    that nobody reads. An existing file keeps its permissions; a symbolic link stays, and the file
    it points to is written. Devices, pipes and folders are refused.
    """
    asked, path = path, Path(os.path.realpath(path))
    temporary = path.parent / f".{path.name[:60]}.{secrets.token_hex(6)}~"
    try:
        with _naming:
            _check_plain(path)
            _unfinished.add(temporary)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less umask
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, path.stat().st_mode & 0o777)
            with _naming:
                os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:  # name the file that was asked for
        raise type(error)(error.errno, error.strerror or str(error), str(asked)) from None
    finally:
        _unfinished.discard(temporary)
    with contextlib.suppress(OSError):  # some systems cannot sync folders
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_arrays(path: Path, kind: str, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write arrays and a JSON header as one .npz file, whole; each part has a checksum."""
    header = {f"driftbandit_{kind}": FORMAT} | header
    sink = io.BytesIO()
    np.savez(sink, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    write_whole(path, sink.getvalue())


def read_arrays(path: Path, kind: str, remedy: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and arrays that `write_arrays` wrote with this kind; pickles are refused."""
    name = errors.printable(str(path))
    try:
        content = io.BytesIO(path.read_bytes())
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise errors.InvalidInput(name, problem, remedy) from None
    try:
        with zipfile.ZipFile(content) as archive:
            packed = any(part.compress_type for part in archive.infolist())
        if not packed:
            with np.load(content, allow_pickle=False) as parts:
                arrays = {key: parts[key] for key in parts.files}
            header = json.loads(arrays.pop("header").tobytes())
            version = header.pop(f"driftbandit_{kind}")
    except Exception:  # NumPy, zip and JSON each have errors of their own for damaged input
        raise errors.InvalidInput(name, f"is not a whole {kind} file", remedy) from None
    if packed:  # a small file could unpack to any size
        raise errors.InvalidInput(name, "is packed, which driftbandit never does", remedy)
    if version != FORMAT:
        problem = f"has format {version!r}"
        raise errors.InvalidInput(name, problem, f"this version reads format {FORMAT}")
    return header, arrays
